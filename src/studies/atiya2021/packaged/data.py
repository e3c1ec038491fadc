"""Patterns of the binary data sets that ship with scikit-learn or are registered, split and standardised."""

from __future__ import annotations

import numpy as np

from studies.atiya2021.names import RAW, REGISTRY
from studies.atiya2021.packaged.names import DATA_SETS, DataSet
from studies.atiya2021.problems import Problem
from studies.common.data import RawData, load, read_registry, split
from studies.common.seeds import generator, seed


def packaged_problem(name: str, root: int) -> Problem:
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
    raw = two_classes(name, given, *(_registered(given) if given.registered else _shipped(given)))
    rng = generator(seed(root, "packaged", name))
    parts = split(raw, given.training, given.test, standardise=True, rng=rng)
    unknown = np.full(given.test, np.nan)
    return Problem(parts.X_train, parts.y_train, parts.X_test, parts.y_test, unknown)


def two_classes(name: str, given: DataSet, X: np.ndarray, target: np.ndarray) -> RawData:
    """Return features and labels -1/+1 of two classes, or of values above the median and of the others."""
    if given.classes is not None:
        own = np.isin(target, given.classes)
        return RawData(name, X[own], np.where(target[own] == given.classes[0], 1.0, -1.0))
    if {*target} in ({0, 1}, {-1.0, 1.0}):
        return RawData(name, X, np.where(target > 0, 1.0, -1.0))
    return RawData(name, X, np.where(target > np.median(target), 1.0, -1.0))


def _registered(given: DataSet) -> tuple[np.ndarray, np.ndarray]:
    raw = load(given.origin, RAW, read_registry(REGISTRY))
    return raw.X, raw.y


def _shipped(given: DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets that scikit-learn has on disk; no connection is opened."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{given.origin}")()
    # of the three targets of linnerud, the first: weight
    target = found.target if found.target.ndim == 1 else found.target[:, 0]
    return np.asarray(found.data, dtype=np.float64), target
