"""The problems of the experiments: laws, data sets, and their random streams (paper, sections 6.2 and 6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import multivariate_normal

from studies.atiya2021.names import REAL
from studies.common.data import PAPER_SIZES, Entry, RawData, load, split
from studies.common.seeds import generator

#: K is called beta I when no covariance exceeds this share of the variance: every probability is then one half to seven
#: digits, and an average over settings would be diluted by errors of zero.
TRIVIAL = 1e-8

#: Decimals of the features that enter a digest: another processor may round the last bits otherwise.
DECIMALS = 8


@dataclass(frozen=True, slots=True)
class Problem:
    """Training and test patterns.

    Attributes
    ----------
    X_train, y_train, X_test, y_test : (n, d), (n,), (t, d), (t,) arrays
        Features and labels -1/+1, in shuffled order.
    bayes_posterior : (t,) array
        P(+1 | x) at the test patterns under the law that drew them; NaN where that is not known.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    bayes_posterior: np.ndarray


def digest_bytes(array: np.ndarray) -> bytes:
    """Return an array's shape and its values, rounded to 8 decimals, as bytes for a digest."""
    # adding zero turns a negative zero into a positive one
    rounded = np.ascontiguousarray(np.round(array, DECIMALS) + 0.0, dtype="<f8")
    return f"{rounded.shape}".encode() + rounded.tobytes()


@dataclass(frozen=True, slots=True)
class _Synthetic:
    n_train: int
    n_test: int
    mean: np.ndarray  # of class 2; class 1 has mean zero
    cov: np.ndarray  # of class 2; class 1 has the identity


_SIGMA_0 = np.array([[1.0, 0.25], [0.25, 1.0]])  # Eq. 68
_SIGMA_10 = np.diag(np.full(10, 0.5)) + np.diag(np.full(9, 0.2), 1) + np.diag(np.full(9, 0.2), -1)
SYNTHETIC = {
    1: _Synthetic(50, 50, np.ones(2), _SIGMA_0),
    2: _Synthetic(200, 200, np.ones(2), _SIGMA_0),
    3: _Synthetic(50, 50, 0.5 * np.ones(2), _SIGMA_0),
    4: _Synthetic(50, 50, 2.0 * np.ones(2), _SIGMA_0),
    5: _Synthetic(50, 50, np.ones(10), _SIGMA_10),
    6: _Synthetic(1000, 1000, np.ones(2), _SIGMA_0),
}


def synthetic_problem(number: int, rng: np.random.Generator) -> Problem:
    """Draw Problem 1 to 6: half the patterns of each class (the priors are equal), shuffled."""
    law = SYNTHETIC[number]
    d = len(law.mean)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        first = rng.standard_normal((n - n // 2, d))
        second = rng.multivariate_normal(law.mean, law.cov, size=n // 2, method="cholesky")
        order = rng.permutation(n)
        y = np.repeat([1.0, -1.0], [len(first), len(second)])
        return np.concatenate([first, second])[order], y[order]

    X_train, y_train = draw(law.n_train)
    X_test, y_test = draw(law.n_test)
    log_odds = multivariate_normal.logpdf(X_test, np.zeros(d), np.eye(d)) - (
        multivariate_normal.logpdf(X_test, law.mean, law.cov)
    )
    return Problem(X_train, y_train, X_test, y_test, expit(log_odds))


def real_problem(
    name: str,
    folder: str | Path,
    registry: Sequence[Entry],
    *,
    standardise: bool,
    rng: np.random.Generator,
) -> Problem:
    """Split the data of Problem 7, 8 or 9 at the paper's sizes; `name` is a key of `PAPER_SIZES`.

    Raises
    ------
    DataUnavailableError, DamagedFileError
        If a raw file is missing, or is not the registered one.
    ValueError
        If there is no such data set, or its facts do not come out.
    """
    return _split(load(name, folder, registry), *PAPER_SIZES[name], standardise, rng)


def _split(
    raw: RawData, n_train: int, n_test: int, standardise: bool, rng: np.random.Generator
) -> Problem:
    parts = split(raw, n_train, n_test, standardise=standardise, rng=rng)
    unknown = np.full(len(parts.y_test), np.nan)
    return Problem(parts.X_train, parts.y_train, parts.X_test, parts.y_test, unknown)


def further_data_set(
    number: int, first: Problem, path: str, *, standardise: bool = False
) -> Problem:
    """Return another data set of a problem: a new draw, or the patterns of real data split anew.

    Parameters
    ----------
    number, first : int, Problem
        Problem, 1 to 9, and its first data set.
    path : str
        Its `data_set_seed`.
    standardise : bool
        Whether the features of real data are scaled by the moments of the new training patterns. That those of `first`
        were scaled by its own makes no difference.
    """
    rng = generator(path)
    if number not in REAL:
        return synthetic_problem(number, rng)
    X = np.concatenate([first.X_train, first.X_test])
    raw = RawData(REAL[number], X, np.concatenate([first.y_train, first.y_test]))
    return _split(raw, len(first.y_train), len(first.y_test), standardise, rng)


def trivial(K: np.ndarray, beta: float) -> bool:
    """Return whether a covariance (n, n) of variance `beta` is beta I to rounding: every pattern is alone."""
    off_diagonal = K - np.diag(np.diag(K))
    return bool(np.max(np.abs(off_diagonal)) <= TRIVIAL * beta)


@dataclass(frozen=True, slots=True)
class TwoClasses:
    """A problem of Experiment 2: normal class-conditional densities of one feature.

    Attributes
    ----------
    n_train, n_test : int
        Patterns, half of them of each class.
    means, deviations : (float, float)
        Of class 1 (+1) and class 2 (-1).
    """

    n_train: int
    n_test: int
    means: tuple[float, float]
    deviations: tuple[float, float]


#: Section 6.2.
EXPERIMENT2 = {
    1: TwoClasses(100, 50, (0.0, 1.0), (0.2, 0.3)),
    2: TwoClasses(200, 100, (0.0, 1.0), (2.0, 1.0)),
    3: TwoClasses(400, 200, (0.0, 1.5), (0.5, 0.75)),
    4: TwoClasses(800, 400, (0.0, 1.0), (1.0, 0.75)),
}


def one_factor(path: str, dimension: int) -> np.ndarray:
    """Return the vector d (dimension,) of the problem of Experiment 1 that has this seed."""
    return generator(path).uniform(-1.0, 1.0, dimension)


def two_class_data(
    problem: TwoClasses, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw training features, training labels (shuffled) and test features of Experiment 2.

    The paper does not say how many patterns each class has; here it is half.
    """

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.repeat([1.0, -1.0], [n - n // 2, n // 2])
        which = (y < 0).astype(int)
        x = rng.normal(np.take(problem.means, which), np.take(problem.deviations, which))
        order = rng.permutation(n)
        return x[order], y[order]

    x, y = draw(problem.n_train)
    x_star, _ = draw(problem.n_test)
    return x, y, x_star
