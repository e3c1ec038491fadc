"""Seeded, stratified splits into training and test patterns.

The paper gives the sizes (section 6.4, Problems 7 to 9) but neither its splits nor its scaling of
the features. Here the classes keep their shares in both parts to within one pattern, the order of
the patterns is a random permutation (the sampler takes them one after another, so the order of a
sorted file must not reach it), and standardising is the caller's explicit choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.common.data.parse import RawData

PAPER_SIZES: dict[str, tuple[int, int]] = {
    "crabs": (100, 100),
    "breast_cancer": (200, 249),
    "usps": (750, 790),
    "usps_raw": (750, 790),
}
"""Numbers of training and test patterns in the paper's Problems 7, 8 and 9."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A data set, split.

    Attributes
    ----------
    X_train, X_test : ndarray, shape (n_train, d) and (n_test, d)
        Features: standardised (no unit), or as they were in `RawData`.
    y_train, y_test : ndarray, shape (n_train,) and (n_test,)
        Labels, -1.0 or +1.0.
    train_index, test_index : ndarray of int, shape (n_train,) and (n_test,)
        Rows of `RawData` that the patterns are.
    """

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

    Parameters
    ----------
    raw : RawData
        The data set, n patterns.
    n_train, n_test : int
        Numbers of patterns, each at least 1, together at most n; the paper's are in `PAPER_SIZES`.
    standardise : bool
        Whether every feature is shifted and scaled to mean 0 and standard deviation 1 (divisor
        n_train) over the training patterns. Test patterns get the same shift and scale. A feature
        that is constant in training is only shifted.
    rng : numpy.random.Generator
        Source of the randomness; the same state gives the same split.

    Returns
    -------
    Split
        Both parts in random order. Each class has its share of either part to within one pattern.

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
