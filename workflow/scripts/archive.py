"""Pack sources, results and their checksums into one file."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report.archive import write_archive

files = write_archive(".", snakemake.params.scale, snakemake.params.target)
print(f"{files} files in {snakemake.params.target}")
