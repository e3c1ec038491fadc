"""MAE-POST on further data sets of Experiment 4's synthetic problems."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from gpcmc.experiments.classification import mae_post_of_data_sets

rows = mae_post_of_data_sets(
    snakemake.params.problems,
    root=snakemake.params.root,
    hyperparameters=snakemake.params.hyperparameters,
    data_sets=snakemake.params.data_sets,
)
rows.to_csv(snakemake.output[0], index=False)
