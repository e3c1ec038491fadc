"""Numerical check of the paper's equations."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.experiments.equations import check_equations
from gpcmc.experiments.seeds import generator, seed

table = check_equations(generator(seed(snakemake.params.root, "equations")))
table.to_csv(snakemake.output[0], index=False)
