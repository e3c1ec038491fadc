"""Write the patterns of one problem of Experiment 4."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

import dataclasses
from pathlib import Path

import numpy as np

from gpcmc import datasets
from gpcmc.experiments.classification import REAL, real_problem, synthetic_problem
from gpcmc.experiments.seeds import generator, seed

number = int(snakemake.wildcards.problem)
rng = generator(seed(snakemake.params.root, "experiment4", f"problem{number}"))
if number not in REAL:
    arrays = dataclasses.asdict(synthetic_problem(number, rng))
else:
    try:
        problem = real_problem(
            number,
            Path("data/raw"),
            datasets.read_registry(snakemake.input.registry),
            standardise=snakemake.params.standardise[REAL[number]],
            rng=rng,
        )
        arrays = dataclasses.asdict(problem)
    except datasets.DataUnavailableError as error:
        print(error, file=sys.stderr)
        arrays = {}  # no arrays: the methods' rows will say that there are no data
np.savez(snakemake.output[0], **arrays)
