"""What this run was made with."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report import provenance, write_provenance

record = provenance(
    ".",
    snakemake.params.config,
    snakemake.input.registry,
    "data/raw",
    snakemake.input.package,
)
write_provenance(record, snakemake.output[0])
