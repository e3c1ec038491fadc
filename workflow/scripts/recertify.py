"""A few cells of the kept reference, estimated anew."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.experiments.classification import Problem
from gpcmc.experiments.reference import load_reference, recertify

given = snakemake.params
problems = {}
for number, path in zip(given.problems, snakemake.input.problems, strict=True):
    with np.load(path) as stored:
        problems[number] = Problem(**stored) if stored.files else None
rows = recertify(
    load_reference(Path(snakemake.input.evidence).parent),
    problems,
    root=given.root,
    hyperparameters=given.hyperparameters,
    **given.check,
)
pd.DataFrame(rows).to_csv(snakemake.output[0], index=False)
