"""The audit for its readers: a page, the tables of the paper, one line."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.report.audit import (
    Audited,
    appendix,
    claims_table,
    controls_table,
    line,
    page,
)

given, made = snakemake.input, snakemake.output
audited = Audited.read({name: given[name] for name in Audited._fields})
texts = {
    made.page: page(audited, given.template, snakemake.wildcards.scale),
    made.appendix: appendix(audited),
    made.claims: claims_table(audited),
    made.controls: controls_table(audited),
    made.line: line(audited) + "\n",
}
for path, text in texts.items():
    Path(path).write_text(text, encoding="utf-8")
