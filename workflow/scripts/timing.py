"""When the run began and ended, and its CPU hours."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report import run_timing, write_provenance

write_provenance(run_timing(snakemake.input.timings, snakemake.params.logs), snakemake.output[0])
