"""Counts that give the rows of Experiment 4 equal CPU seconds, as a file of the configuration."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)

from pathlib import Path

import numpy as np
import yaml

from gpcmc.experiments.calibration import as_lists, calibrate
from gpcmc.experiments.classification import Problem

given = snakemake.params
found, budgets = [], []
for number, path in enumerate(snakemake.input.problems, start=1):
    with np.load(path) as stored:
        if not stored.files:
            raise SystemExit(
                f"Problem {number} has no data: place the file that data_check.csv names"
            )
        problem = Problem(**stored)
    # control variables do not finish on USPS: its budget is Problem 6's
    fixed = budgets[5] if number == 9 else None
    rows = {name: row[number] for name, row in given.rows.items()}
    budget, counts = calibrate(
        problem, rows, root=given.root, alpha=given.alpha, beta=given.beta, budget=fixed
    )
    found.append(counts)
    budgets.append(budget)
    print(number, budget, counts, file=sys.stderr)
lists = yaml.safe_dump(
    {"experiment4": {"methods": as_lists(found)}}, default_flow_style=None, width=110
)
seconds = ", ".join(f"{budget:.2g}" for budget in budgets)
Path(snakemake.output[0]).write_text(
    "# Made by `snakemake calibrate`: counts that give every row the CPU seconds of control variables on\n"
    f"# hyperparameter set 1. On the machine that made them, the nine problems: {seconds}.\n"
    + lists
)
