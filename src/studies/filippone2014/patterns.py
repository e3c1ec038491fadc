"""Data sets as features and labels: real ones, and those simulated from the model."""

from __future__ import annotations

import re

import numpy as np

from studies.common.data import registered
from studies.filippone2014.problems import data_path
from studies.filippone2014.simulated import simulate

#: Names in the table of recipes, where they are others.
NAMES = {"breast": "wisconsin", "crabs": "crabs_index"}


def patterns(name: str, *, seed: int, standardise: object) -> dict[str, np.ndarray]:
    """Return ``X`` (n, d) and ``y`` (n,): real ones in the units of the source, or simulated ones, as n50_d2_set0."""
    if simulated := re.fullmatch(r"n(\d+)_d(\d+)_set(\d+)", name):
        n, d, number = map(int, simulated.groups())
        X, y, _ = simulate(n, d, data_path(seed, "table1", n, d, number), balanced=True)
        return {"X": X, "y": y}
    raw = registered(NAMES.get(name, name))
    return {"X": raw.X, "y": raw.y}
