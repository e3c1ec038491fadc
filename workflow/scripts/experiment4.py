"""One method on one problem of Experiment 4."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import numpy as np
import pandas as pd

from gpcmc.experiments.classification import Problem, experiment4, patterns_digest
from gpcmc.experiments.pieces import Pieces
from gpcmc.inference import METHODS

given = snakemake.params
with np.load(snakemake.input.problem) as stored:
    problem = Problem(**stored) if stored.files else None
pieces = Pieces(
    given.pieces,
    ["gpcmc.experiments.classification", METHODS[given.method["method"]].__module__],
    [given.root, given.hyperparameters, given.method, patterns_digest(problem)],
)
rows, timing, arrays = experiment4(
    int(snakemake.wildcards.problem),
    snakemake.wildcards.method,
    problem,
    root=given.root,
    hyperparameters=given.hyperparameters,
    pieces=pieces,
    **given.method,
)
pd.DataFrame(rows).to_csv(snakemake.output.rows, index=False)
pd.DataFrame(timing).to_csv(snakemake.output.timing, index=False)
for path, hyper in zip(snakemake.output.probabilities, given.hyperparameters, strict=True):
    ending = f"_set{hyper['set']}"
    of_set = {k.removesuffix(ending): v for k, v in arrays.items() if k.endswith(ending)}
    np.savez(path, **of_set)
pieces.finish()
