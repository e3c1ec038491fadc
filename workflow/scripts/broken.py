"""Runs that are wrong on purpose, for the audit to find."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import pandas as pd

from gpcmc.experiments.broken import broken_runs

found = broken_runs(
    snakemake.wildcards.kind, root=snakemake.params.root, **snakemake.params.settings
)
for rows, path in zip(found, snakemake.output, strict=True):
    pd.DataFrame(rows).to_csv(path, index=False)
