"""One table of the paper, as CSV and as LaTeX."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.audit import ResultFiles, read_registry
from gpcmc.report import write_table

write_table(
    snakemake.params.table,
    read_registry(Path(snakemake.input.published[0]).parent),
    ResultFiles.of(dict(snakemake.input.items())),
    snakemake.output.csv,
    snakemake.output.tex,
)
