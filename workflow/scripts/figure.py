"""One figure of the paper, as PDF and as PNG."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.audit import ResultFiles, read_registry
from gpcmc.report import write_figure

write_figure(
    snakemake.params.figure,
    read_registry(Path(snakemake.input.published[0]).parent),
    ResultFiles.of(dict(snakemake.input.items())),
    snakemake.output.pdf,
    snakemake.output.png,
)
