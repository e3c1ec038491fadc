"""Patterns of the data sets of `whofits` and `advice`: read, divided into two classes, split and scaled."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.atiya2021.names import RAW, REGISTRY
from studies.atiya2021.problems import Problem
from studies.atiya2021.whofits.names import DATA_SETS, DataSet
from studies.common.data import RawData, load, read_registry, split
from studies.common.seeds import generator, seed

_Arrays = tuple[NDArray[np.float64], NDArray[np.float64]]
#: Pixels of USPS along a side, and the side of the squares that are averaged.
_SIDE, _SQUARE = 16, 4


def split_problem(name: str, number: int, root: int) -> Problem:
    """Return a split of a data set: at random, with shares of the classes kept.

    Parameters
    ----------
    name, number : str, int
        A key of `DATA_SETS`, and which split.
    root : int
        Root of the random streams, of which each split has its own.

    Raises
    ------
    DataUnavailableError, DamagedFileError, ValueError
        If a raw file is missing, is damaged, or its facts are not the registered ones.
    """
    rng = generator(seed(root, "whofits", name, f"split{number}"))
    return drawn(name, DATA_SETS[name], rng)


def drawn(name: str, given: DataSet, rng: np.random.Generator) -> Problem:
    """Return a data set, split at random with shares of the classes kept; errors are those of `split_problem`."""
    raw = two_classes(name, given, *_read(given))
    parts = split(raw, given.training, given.test, standardise=given.scaled, rng=rng)
    unknown = np.full(given.test, np.nan)
    return Problem(parts.X_train, parts.y_train, parts.X_test, parts.y_test, unknown)


def two_classes(
    name: str, given: DataSet, X: NDArray[np.float64], target: NDArray[np.float64]
) -> RawData:
    """Return features (n, d) and labels -1/+1 (n,) as `DataSet` says."""
    if given.target is not None:
        X, target = np.delete(X, given.target, axis=1), X[:, given.target]
    if given.classes is not None:
        own = np.isin(target, [*given.classes[0], *given.classes[1]])
        return RawData(name, X[own], np.where(np.isin(target[own], given.classes[0]), 1.0, -1.0))
    least = 0.0 if {*np.unique(target)[:3]} <= {-1.0, 0.0, 1.0} else np.median(target)
    return RawData(name, X, np.where(target > least, 1.0, -1.0))


def _read(given: DataSet) -> _Arrays:
    if given.registered:
        raw = _registered(given.origin, RAW)
        # images of which fewer inputs are asked for
        averaged = given.registered == "usps" and given.inputs < raw.X.shape[1]
        return (squares(raw.X) if averaged else raw.X), raw.y
    if given.origin in _PICTURES:
        return places(_PICTURES[given.origin]())
    from sklearn import datasets

    found = getattr(datasets, f"load_{given.origin}")()
    # of the three targets of linnerud, the first: weight
    target = found.target if found.target.ndim == 1 else found.target[:, 0]
    return np.asarray(found.data, dtype=np.float64), target


@lru_cache(maxsize=1)
def _registered(name: str, folder: str | Path) -> RawData:
    """A data set of the registry; the last one is remembered, because it has several splits."""
    return load(name, folder, read_registry(REGISTRY))


def squares(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean grey values (n, 16) of the squares of four by four pixels of images (n, 256)."""
    several = _SIDE // _SQUARE
    blocks = X.reshape(len(X), several, _SQUARE, several, _SQUARE)
    return np.ascontiguousarray(blocks.mean(axis=(2, 4)).reshape(len(X), several**2))


def places(picture: NDArray[np.float64]) -> _Arrays:
    """Return row and column (n, 2) of every pixel of a picture, and its value (n,)."""
    rows, columns = np.indices(picture.shape)
    return np.column_stack([rows.ravel(), columns.ravel()]).astype(np.float64), picture.ravel()


def _sample(name: str) -> str:
    """Path of a file of examples that ships with matplotlib."""
    from matplotlib import cbook

    return str(cbook.get_sample_data(name, asfileobj=False))


def _sea_land() -> NDArray[np.float64]:
    """Whether the surface is above the sea, on a grid of 91 by 120 points about Vancouver Island; of matplotlib."""
    with np.load(_sample("topobathy.npz")) as found:
        return np.sign(found["topo"].astype(np.float64))


def _terrain() -> NDArray[np.float64]:
    """Height in metres of 344 by 403 points about the Jacksboro fault, Tennessee; of matplotlib."""
    with np.load(_sample("jacksboro_fault_dem.npz")) as found:
        return found["elevation"].astype(np.float64)


def _head() -> NDArray[np.float64]:
    """Values of a magnetic resonance image of a head, 256 by 256 pixels; of matplotlib. Air is zero."""
    with gzip.open(_sample("s1045.ima.gz")) as file:
        return np.frombuffer(file.read(), np.uint16).reshape(256, 256).astype(np.float64)


def _photograph() -> NDArray[np.float64]:
    """Mean of the three colours of 427 by 640 pixels of a photograph of a temple in China; of scikit-learn."""
    from sklearn.datasets import load_sample_image

    return np.asarray(load_sample_image("china.jpg"), dtype=np.float64).mean(axis=2)


_PICTURES = {
    "sea_land": _sea_land,
    "terrain": _terrain,
    "head": _head,
    "photograph": _photograph,
}
