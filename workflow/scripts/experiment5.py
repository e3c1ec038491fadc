"""The hyperparameters of one problem by one method's chains, in Experiment 5."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import numpy as np
import pandas as pd

from gpcmc.experiments.classification import Problem, patterns_digest
from gpcmc.experiments.hyperparameters import hyperparameter_posterior
from gpcmc.experiments.pieces import Pieces
from gpcmc.inference import METHODS

given = snakemake.params
with np.load(snakemake.input.problem) as stored:
    problem = Problem(**stored) if stored.files else None
pieces = Pieces(
    given.pieces,
    ["gpcmc.experiments.hyperparameters", METHODS["best"].__module__],
    [given.root, given.method, patterns_digest(problem)],
)
rows, timing, arrays = hyperparameter_posterior(
    int(snakemake.wildcards.problem),
    snakemake.wildcards.method,
    problem,
    root=given.root,
    pieces=pieces,
    **given.method,
)
pd.DataFrame(rows).to_csv(snakemake.output.rows, index=False)
pd.DataFrame(timing).to_csv(snakemake.output.timing, index=False)
np.savez(snakemake.output.draws, **arrays)
pieces.finish()
