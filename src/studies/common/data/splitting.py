"""Seeded, stratified splits into training and test patterns.

Atiya et al. (2021) give the sizes (section 6.4) but neither splits nor scaling. Here the order of the patterns is a
random permutation: the sampler takes them one after another, so the order of a sorted file must not reach it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.common.data.parse import RawData

#: Numbers of training and test patterns in Problems 7, 8 and 9.
PAPER_SIZES = {"crabs": (100, 100), "breast_cancer": (200, 249)}
PAPER_SIZES |= dict.fromkeys(("usps", "usps_raw"), (750, 790))


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Features (n, d) and (t, d), labels -1.0/+1.0 (n,) and (t,), and the rows of `RawData` that the patterns are."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.float64]
    train_index: NDArray[np.intp]
    test_index: NDArray[np.intp]


def split(
    raw: RawData, n_train: int, n_test: int, *, standardise: bool, rng: np.random.Generator
) -> Split:
    """Split a data set at random, stratified by class.

    Both parts are in random order, and each class has its share of either part to within one pattern. To standardise
    is to shift and scale every feature to mean 0 and standard deviation 1 (divisor n_train) over the training patterns,
    and the test patterns likewise. A feature that is constant in training is only shifted.

    Raises
    ------
    ValueError
        If the sizes do not fit, or if `rng` is no generator.
    """
    n, n_positive = len(raw.y), int(np.sum(raw.y > 0))
    if n_train < 1 or n_test < 1 or n_train + n_test > n:
        raise ValueError(
            f"n_train={n_train!r}, n_test={n_test!r}: need at least 1 each and together at most "
            f"the {n} patterns of {raw.name}"
        )
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng={rng!r}, need a numpy.random.Generator")

    train_positive = round(n_train * n_positive / n)
    # Rounding both may ask for one pattern more than a class has left: the test part gives in.
    left, left_negative = n_positive - train_positive, n - n_positive - (n_train - train_positive)
    test_positive = min(max(round(n_test * n_positive / n), n_test - left_negative), left)

    positive = rng.permutation(np.flatnonzero(raw.y > 0))
    negative = rng.permutation(np.flatnonzero(raw.y < 0))
    train_negative, test_negative = n_train - train_positive, n_test - test_positive
    train = rng.permutation(np.r_[positive[:train_positive], negative[:train_negative]])
    test = rng.permutation(
        np.r_[positive[train_positive:][:test_positive], negative[train_negative:][:test_negative]]
    )

    X_train, X_test = raw.X[train], raw.X[test]
    if standardise:
        mean, scale = X_train.mean(axis=0), X_train.std(axis=0)
        # A constant's computed standard deviation may be rounding error instead of 0.
        scale[(np.ptp(X_train, axis=0) == 0) | (scale == 0)] = 1.0
        X_train, X_test = (X_train - mean) / scale, (X_test - mean) / scale
    return Split(X_train, raw.y[train], X_test, raw.y[test], train, test)
