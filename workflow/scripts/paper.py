"""Typeset the paper."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import json
from pathlib import Path

from gpcmc.audit import check_explained, read_audit
from gpcmc.report import build_paper

check_explained(map(read_audit, snakemake.input.audit), snakemake.wildcards.scale)
record = json.loads(Path(snakemake.input.provenance).read_text())
wide = build_paper(
    snakemake.input.text,
    {
        "": [snakemake.input.values, snakemake.input.origins, *snakemake.input.appendix],
        "tables": snakemake.input.tables,
        "figures": snakemake.input.figures,
    },
    snakemake.output[0],
    epoch=record["commit_time"] or 0,
    log=snakemake.log[0],
)
# on the terminal too: the paper is there, but a table or a line is in its margin
for message in wide:
    print(f"paper.pdf: {message}", file=sys.__stderr__)
