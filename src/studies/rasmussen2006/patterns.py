"""Patterns of the experiments: the digits in the book's order, and the data sets of Kuss and Rasmussen (2005)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from studies.common.data import registered
from studies.rasmussen2006.gp import squared_distances
from studies.rasmussen2006.scores import baseline

Array = np.ndarray

#: The digits of the binary problem: the first one is the class +1.
THREE, FIVE = 3, 5
#: Arrays of digits: images, partition, and whether threes and fives alone.
DIGITS: dict[str, dict[str, Any]] = {
    "usps": {"images": "smoothed", "partition": "book", "pair": False},
    "pair": {"images": "smoothed", "partition": "book", "pair": True},
    "pair_raw": {"images": "raw", "partition": "book", "pair": True},
    "pair_zip": {"images": "smoothed", "partition": "zip", "pair": True},
}


def patterns(name: str, **options: object) -> dict[str, Array]:
    """Return the arrays of digits (a key of `DIGITS`), or of a data set of Kuss and Rasmussen."""
    return usps(**DIGITS[name]) if name in DIGITS else two_classes(name)


def usps(*, images: str, partition: str, pair: bool) -> dict[str, Array]:
    """Return the arrays of USPS digits: ``X``, ``digit`` and ``training``, how many are for training.

    Images are "smoothed" or "raw", the partition is that of the "book" or "zip" (of the files), a `pair` is threes and
    fives alone.
    """
    raw = registered(f"usps_{partition}_{images}")
    used = np.isin(raw.y, (THREE, FIVE)) | (not pair)
    training = np.array(int(used[: raw.training].sum()))
    return {"X": raw.X[used], "digit": raw.y[used], "training": training}


def two_classes(name: str) -> dict[str, Array]:
    """Return ``X`` and ``y`` of a data set of Kuss and Rasmussen, who count the index of Crabs as a feature."""
    raw = registered("crabs_index" if name == "crabs" else name)
    return {"X": raw.X, "y": raw.y}


@dataclass(frozen=True)
class Binary:
    """A binary problem with its distances: training and test cases (n, d) and (t, d), labels -1/+1."""

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
