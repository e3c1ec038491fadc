"""Assert the facts of the raw data, and show them."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc import datasets

table = datasets.check(Path("data/raw"), datasets.read_registry(snakemake.input.registry))
table.to_csv(snakemake.output.table, index=False)
Path(snakemake.output.page).write_text(datasets.to_html(table))
datasets.require(table)
