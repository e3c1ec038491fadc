"""Checksums of all result files and figures."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report import write_manifest

write_manifest([*snakemake.input.files, snakemake.params.stamp], snakemake.output[0])
