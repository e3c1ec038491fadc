"""Execute the notebook on the results of this scale."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.report.notebook import execute_notebook

execute_notebook(
    snakemake.input.notebook, snakemake.output[0], scale=snakemake.wildcards.scale, root="."
)
