"""What this run was made with."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report import provenance, run_timing, write_provenance

record = provenance(
    ".",
    snakemake.params.config,
    snakemake.input.registry,
    "data/raw",
    snakemake.input.package,
)
record |= run_timing(snakemake.input.timings, snakemake.params.logs)
write_provenance(record, snakemake.output[0])
