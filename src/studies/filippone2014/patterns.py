"""Real data sets, as features and labels."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np

Array = np.ndarray
#: Where raw files and their register are, from the root of the repository.
RAW, REGISTRY = "data/raw", "data/registry.csv"
#: Cases, features, and cases of the class +1 (M against F).
ABALONE = (2835, 8, 1528)


def two_classes(*, name: str) -> dict[str, Array]:
    """Return ``X`` (n, d) in the units of the source, and ``y`` (n,), of a data set by its name."""
    from studies.common.data import read_registry
    from studies.common.data.uci import load_two_classes

    registry = read_registry(REGISTRY)
    X, y = abalone(RAW) if name == "abalone" else load_two_classes(name, RAW, registry)
    return {"X": X, "y": y}


def abalone(folder: str | Path) -> tuple[Array, Array]:
    """Return seven measurements and the rings of Abalone, and the sex of the animals, M +1 and F -1; none is an infant.

    Raises
    ------
    DamagedFileError, DataUnavailableError
        If the file is not the registered one, or not there.
    ValueError
        If the facts that are known about the data set do not come out.
    """
    import pandas as pd

    from studies.common.data import files_of, read_registry
    from studies.common.data.registry import read_verified

    (entry,) = files_of("abalone", read_registry(REGISTRY))
    table = pd.read_csv(BytesIO(read_verified(entry, Path(folder) / entry.file)), header=None)
    table = table[table[0] != "I"]
    X = np.ascontiguousarray(table.iloc[:, 1:].to_numpy(dtype=np.float64))
    y = np.where(table[0] == "M", 1.0, -1.0)
    found = (*X.shape, int((y > 0).sum()))
    if found != ABALONE:
        raise ValueError(f"abalone: cases, features and positive cases {found}, need {ABALONE}")
    return X, y
