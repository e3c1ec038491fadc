"""Errors of coarse quadrature in the truth of Experiment 1."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import pandas as pd

from gpcmc.experiments.orthant_accuracy import quadrature_errors

rows = quadrature_errors(
    snakemake.params.dimensions,
    root=snakemake.params.root,
    instances=snakemake.params.instances,
    **snakemake.params.quadrature,
)
pd.DataFrame(rows).to_csv(snakemake.output[0], index=False)
