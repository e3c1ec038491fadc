"""Typeset the paper and its supplement.

Tables, figures and lists of another study than the first are in a folder of its name, ``tables/<study>``.
"""

import sys
from pathlib import Path

from begin import begin
from recheck.paper.typeset import typeset
from recheck.record.files import read_json

results = begin(snakemake)
given, made = snakemake.input, snakemake.output
files = {"": given.values}
for below, drawn in snakemake.params.drawn.items():
    for kind, ending in {"tables": ".tex", "figures": ".pdf"}.items():
        files[str(Path(kind, below))] = [path for path in drawn if path.endswith(ending)]
wide = typeset(
    given.text,
    files,
    {"main.tex": made.paper, "supplement.tex": made.supplement},
    epoch=read_json(given.provenance)["commit_time"] or 0,
    log=snakemake.log[0],
)
# on the terminal too: the paper is there, but a table or a line is in its margin
for message in wide:
    print(message, file=sys.__stderr__)
