"""Write the patterns of one problem of Experiment 4."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import dataclasses
import json
from pathlib import Path

import numpy as np

from gpcmc import datasets
from gpcmc.experiments.classification import (
    REAL,
    data_set_seed,
    real_problem,
    synthetic_problem,
)
from gpcmc.experiments.seeds import generator

number = int(snakemake.wildcards.problem)
rng = generator(data_set_seed(number, 0, snakemake.params.root))
statuses = [json.loads(Path(path).read_text()) for path in snakemake.input.get("status", [])]
if number not in REAL:
    arrays = dataclasses.asdict(synthetic_problem(number, rng))
elif all(status["available"] for status in statuses):
    raw, registry = Path("data/raw"), datasets.read_registry(snakemake.input.registry)
    datasets.require(datasets.check(raw, registry, [REAL[number]]))
    problem = real_problem(number, raw, registry, standardise=snakemake.params.standardise, rng=rng)
    arrays = dataclasses.asdict(problem)
else:
    arrays = {}  # no arrays: the methods' rows will say that there are no data
np.savez(snakemake.output[0], **arrays)
