"""The two-class data sets of Kuss and Rasmussen (2005), Table 1, but for the digits.

They state cases and features, and neither targets nor cleaning. What is done here gives their numbers: Ionosphere 351
x 34, Wisconsin 683 x 9 (the complete rows, repetitions kept), Pima 768 x 8, Crabs 200 x 7 (with the index; target sex),
and Sonar 208 x 60. No loader opens a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.common.data.parse import CYTOLOGY, LENGTHS, breast_cancer_table, crabs_table
from studies.common.data.registry import Entry, files_of, read_verified

#: Features (n, d) and labels -1/+1 (n,).
Arrays = tuple[NDArray[np.float64], NDArray[np.float64]]
Folder = str | PathLike[str]
#: Cases, features, and cases of the class +1.
FACTS = {
    "ionosphere": (351, 34, 225),
    "wisconsin": (683, 9, 239),
    "pima": (768, 8, 268),
    "crabs": (200, 7, 100),
    "sonar": (208, 60, 111),
}


def _comma_separated(
    name: str, positive: str, folder: Folder, registry: Sequence[Entry]
) -> tuple[pd.DataFrame, pd.Series]:
    """A file without a head whose last column is the class."""
    (entry,) = files_of(name, registry)
    table = pd.read_csv(BytesIO(read_verified(entry, Path(folder) / entry.file)), header=None)
    return table.iloc[:, :-1], table.iloc[:, -1].astype(str) == positive


def _wisconsin(folder: Folder, registry: Sequence[Entry]) -> tuple[pd.DataFrame, pd.Series]:
    table = breast_cancer_table(folder, registry).dropna()
    return table[list(CYTOLOGY)], table["class"] == 4


def _crabs(folder: Folder, registry: Sequence[Entry]) -> tuple[pd.DataFrame, pd.Series]:
    table = crabs_table(folder, registry)
    species = (table["sp"] == "O").astype(float)
    return table[["index", *LENGTHS]].assign(species=species), table["sex"] == "M"


_LOADERS: dict[str, Callable[..., tuple[pd.DataFrame, pd.Series]]] = {
    "ionosphere": partial(_comma_separated, "ionosphere", "g"),
    "wisconsin": _wisconsin,
    "pima": partial(_comma_separated, "pima", "1"),
    "crabs": _crabs,
    "sonar": partial(_comma_separated, "sonar", "M"),
}


def load_two_classes(name: str, folder: Folder, registry: Sequence[Entry]) -> Arrays:
    """Return features (n, d) in the units of the source, and labels -1/+1 (n,).

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If a file is not the registered one, or not there.
    ValueError
        If there is no such data set, or the facts that are known about it do not come out.
    """
    if name not in _LOADERS:
        raise ValueError(f"name={name!r}, need one of {list(_LOADERS)}")
    features, positive = _LOADERS[name](folder, registry)
    X = np.ascontiguousarray(features.to_numpy(dtype=np.float64))
    y = np.where(positive.to_numpy(), 1.0, -1.0)
    found = (*X.shape, int((y > 0).sum()))
    if found != FACTS[name] or not np.isfinite(X).all():
        raise ValueError(f"{name}: cases, features and positive cases {found}, need {FACTS[name]}")
    return X, y
