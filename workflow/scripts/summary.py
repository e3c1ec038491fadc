"""The three lines that a run ends with."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.audit import ResultFiles, read_audit
from gpcmc.report import summary

text = summary(
    read_audit(snakemake.input.audit),
    ResultFiles.of(dict(snakemake.input.items())),
    snakemake.wildcards.scale,
    next(iter(snakemake.input.get("pdf", [])), None),
    f"{Path(snakemake.input.line).read_text().strip()} ({snakemake.input.page})",
)
Path(snakemake.output[0]).write_text(text)
