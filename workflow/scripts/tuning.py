"""Tuning the hyperparameters of one problem by every method, in Experiment 5."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import numpy as np
import pandas as pd

from gpcmc.experiments.classification import Problem, patterns_digest
from gpcmc.experiments.pieces import Pieces
from gpcmc.experiments.tuning import tuning
from gpcmc.inference import METHODS

given = snakemake.params
with np.load(snakemake.input.problem) as stored:
    problem = Problem(**stored) if stored.files else None
methods = [given.settings["judge"], *given.settings["methods"].values()]
pieces = Pieces(
    given.pieces,
    ["gpcmc.experiments.tuning", *(METHODS[row["method"]].__module__ for row in methods)],
    [given.root, given.settings, patterns_digest(problem)],
)
rows, timing, arrays = tuning(
    int(snakemake.wildcards.problem), problem, root=given.root, pieces=pieces, **given.settings
)
pd.DataFrame(rows).to_csv(snakemake.output.rows, index=False)
pd.DataFrame(timing).to_csv(snakemake.output.timing, index=False)
np.savez(snakemake.output.searches, **arrays)
pieces.finish()
