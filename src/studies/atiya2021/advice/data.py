"""Patterns of the twenty real data sets of `advice`, split and standardised."""

from __future__ import annotations

import numpy as np

from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.names import RAW, REGISTRY
from studies.atiya2021.problems import Problem
from studies.atiya2021.whofits.data import two_classes
from studies.atiya2021.whofits.names import DataSet
from studies.common.data import load, read_registry, split
from studies.common.seeds import generator, seed


def real_data(name: str, root: int) -> Problem:
    """Return a data set, split at random with shares of the classes kept, and scaled by its training patterns.

    Parameters
    ----------
    name : str
        A key of `DATA_SETS`.
    root : int
        Root of the random streams, of which the split has its own.

    Raises
    ------
    DataUnavailableError, DamagedFileError, ValueError
        If a raw file is missing, is damaged, or its facts are not the registered ones.
    """
    given = DATA_SETS[name]
    raw = two_classes(name, given, *_read(given))
    # the word of an earlier name of the experiment keeps the splits
    rng = generator(seed(root, "packaged", name))
    parts = split(raw, given.training, given.test, standardise=given.scaled, rng=rng)
    unknown = np.full(given.test, np.nan)
    return Problem(parts.X_train, parts.y_train, parts.X_test, parts.y_test, unknown)


def _read(given: DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets, of the registry or of scikit-learn, which has them on disk."""
    if given.registered:
        raw = load(given.origin, RAW, read_registry(REGISTRY))
        return raw.X, raw.y
    from sklearn import datasets

    found = getattr(datasets, f"load_{given.origin}")()
    # of the three targets of linnerud, the first: weight
    target = found.target if found.target.ndim == 1 else found.target[:, 0]
    return np.asarray(found.data, dtype=np.float64), target
