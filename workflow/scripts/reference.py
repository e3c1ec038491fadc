"""The reference of one problem of Experiment 4."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import numpy as np
import pandas as pd

from gpcmc.experiments.classification import Problem, patterns_digest
from gpcmc.experiments.pieces import Pieces
from gpcmc.experiments.reference import reference_problem

given = snakemake.params
with np.load(snakemake.input.problem) as stored:
    problem = Problem(**stored) if stored.files else None
if problem is None:
    raise SystemExit(f"problem {snakemake.wildcards.problem}: the raw data are not available")
pieces = Pieces(
    given.pieces,
    ["gpcmc.experiments.reference"],
    [given.root, given.hyperparameters, patterns_digest(problem)],
)
rows, _, arrays = reference_problem(
    int(snakemake.wildcards.problem),
    problem,
    root=given.root,
    hyperparameters=given.hyperparameters,
    pieces=pieces,
)
pd.DataFrame(rows).to_csv(snakemake.output.rows, index=False)
np.savez(snakemake.output.probabilities, **arrays)
pieces.finish()
