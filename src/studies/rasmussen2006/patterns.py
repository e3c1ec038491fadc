"""Patterns of the experiments: the digits in the book's order, and the data sets of Kuss and Rasmussen (2005)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from studies.rasmussen2006.gp import squared_distances
from studies.rasmussen2006.scores import baseline

Array = np.ndarray

#: Where raw files and their register are, from the root of the repository.
RAW, REGISTRY = "data/raw", "data/registry.csv"
#: The digits of the binary problem: the first one is the class +1.
THREE, FIVE = 3, 5


def patterns(*, digits: Mapping[str, Any] | None = None, name: str = "") -> dict[str, Array]:
    """Return the arrays of digits with these options, or of a data set of Kuss and Rasmussen."""
    return two_classes(name) if digits is None else usps(**digits)


def usps(*, images: str, partition: str, pair: bool) -> dict[str, Array]:
    """Return the arrays of USPS digits: ``X``, ``digit`` and ``training``, how many are for training.

    Parameters
    ----------
    images : {"smoothed", "raw"}
    partition : {"book", "zip"}
    pair : bool
        Threes and fives alone.
    """
    from studies.common.data import read_registry
    from studies.common.data.usps import load_digits

    smoothed = images == "smoothed"
    found = load_digits(RAW, read_registry(REGISTRY), smoothed=smoothed, partition=partition)
    used = np.isin(found.digit, (THREE, FIVE)) | (not pair)
    training = int(used[: found.training].sum())
    return {"X": found.X[used], "digit": found.digit[used], "training": np.array(training)}


def two_classes(name: str) -> dict[str, Array]:
    """Return ``X`` and ``y`` of a data set of Kuss and Rasmussen."""
    from studies.common.data import read_registry
    from studies.common.data.uci import load_two_classes

    X, y = load_two_classes(name, RAW, read_registry(REGISTRY))
    return {"X": X, "y": y}


@dataclass(frozen=True)
class Binary:
    """A binary problem with its distances.

    Attributes
    ----------
    X, y, X_star, y_star : (n, d), (n,), (t, d), (t,) arrays
        Training and test cases, labels -1/+1.
    """

    X: Array
    y: Array
    X_star: Array
    y_star: Array

    @classmethod
    def of_digits(cls, arrays: Mapping[str, Array]) -> Binary:
        """Return threes against fives."""
        used = np.isin(arrays["digit"], (THREE, FIVE))
        train = np.arange(len(used)) < int(arrays["training"])
        y = np.where(arrays["digit"] == THREE, 1.0, -1.0)
        parts = used & train, used & ~train
        (X, y_train), (X_star, y_star) = ((arrays["X"][part], y[part]) for part in parts)
        return cls(X, y_train, X_star, y_star)

    @cached_property
    def distances(self) -> Array:
        """Squared distances of the training inputs (n, n)."""
        return squared_distances(self.X, self.X)

    @cached_property
    def across(self) -> Array:
        """Squared distances between training and test inputs (n, t)."""
        return squared_distances(self.X, self.X_star)

    @cached_property
    def bits(self) -> float:
        """What the frequencies of the classes leave unknown, bits a test case."""
        return baseline((self.y > 0).astype(int), (self.y_star > 0).astype(int))
