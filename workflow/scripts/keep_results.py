"""Store the tables of a finished run with the repository."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

from gpcmc.report.kept import keep_results

files = keep_results(Path(snakemake.input.summary).parent, snakemake.params.store)
print(f"{files} files kept in {snakemake.params.store}")
