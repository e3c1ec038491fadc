"""The examples of Neal's software for flexible Bayesian modelling: three classes, and a regression with outliers.

Two releases are registered. That of 1997-01-18 is the one that Neal (1997) describes, and a case that the paper quotes
is the second line of its file. That of 2022 has other cases from the same recipe, and more of them for tests. No loader
opens a connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.common.data.registry import Entry, files_of, read_verified

Folder = str | PathLike[str]
#: Cases of each file, how many of them are for training, and columns of inputs.
FACTS = {
    "neal_classes_1997": (1000, 400, 4),
    "neal_outliers_1997": (200, 100, 1),
    "neal_classes_2022": (1400, 400, 4),
    "neal_outliers_2022": (1100, 100, 1),
}
#: Cases of classes 0, 1 and 2 among those for training, and among those for tests.
CLASSES = {
    "neal_classes_1997": ((151, 42, 207), (230, 70, 300)),
    "neal_classes_2022": ((142, 49, 209), (379, 115, 506)),
}


def load_example(
    name: str, folder: Folder, registry: Sequence[Entry]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return inputs (n, d), targets (n,) and how many of the first cases are for training.

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If the file is not the registered one, or not there.
    ValueError
        If there is no such example, or the facts that are known about it do not come out.
    """
    if name not in FACTS:
        raise ValueError(f"name={name!r}, need one of {list(FACTS)}")
    (entry,) = files_of(name, registry)
    table = np.loadtxt(BytesIO(read_verified(entry, Path(folder) / entry.file)), ndmin=2)
    cases, training, inputs = FACTS[name]
    if table.shape != (cases, inputs + 1) or not np.isfinite(table).all():
        raise ValueError(f"{name}: shape {table.shape}, need {(cases, inputs + 1)}")
    X, t = np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])
    if name in CLASSES:
        parts = t[:training], t[training:]
        found = tuple(tuple(int((part == k).sum()) for k in range(3)) for part in parts)
        if found != CLASSES[name]:
            raise ValueError(f"{name}: classes {found}, need {CLASSES[name]}")
    return X, t, training
