"""Ten-fold cross-validation of Laplace's method, EP and support vector machines: Kuss and Rasmussen (2005), Table 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, log_ndtr

from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.laplace import Laplace
from studies.common.pieces import Piece, Row, join
from studies.common.running import Keep
from studies.common.seeds import random_state, seed
from studies.rasmussen2006.gp import Surface, maximise, squared_exponential
from studies.rasmussen2006.machines import held_out_scores
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import information, logistic_of_score, probit_of_score

Array = np.ndarray
OUTER, INNER = 10, 5
#: Bounds of (log l, log sf), ours; EP's evidence may rise without an end in log sf.
BOUNDS = [(-1.0, 6.0), (-2.0, 8.0)]
#: A search ends where a step gains less than this share of the log evidence: a ten thousandth of a nat.
TOLERANCE = 1e-6
#: The support vector machine's grid, ours: log l beside the median distance, and log C.
LENGTHS, COSTS = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0), (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0)


class Fit(NamedTuple):
    """What a method says of held-out cases.

    Attributes
    ----------
    z : (t,) array
        Phi(z) is the probability of the class +1.
    at_bound : bool
        Whether hyperparameters ended at one of `BOUNDS`.
    logistic : (t,) array or None
        The argument of the logistic function in its place, of support vector machines.
    """

    z: Array
    at_bound: bool = False
    logistic: Array | None = None


def crossvalidation(
    *,
    data: Mapping[str, Array],
    name: str,
    prepared: bool,
    methods: Sequence[str],
    seeds: int,
    root: int,
    keep: Keep,
) -> Piece:
    """Classify every case by a fit to nine tenths of the others, with so many seeds of the folds.

    The source states neither folds nor scaling.

    Parameters
    ----------
    data : mapping
        ``X`` and ``y``, or the arrays of digits: threes against fives of both parts.
    name : str
        Keys the folds, which are the same whatever is done to the inputs.
    prepared : bool
        Whether features are shifted and scaled to mean 0 and standard deviation 1 over the training cases. Grey values
        never are; of digits it says whether the images in `data` are smoothed.
    methods : sequence of {"laplace", "ep", "svm"}
    seeds : int

    Returns
    -------
    rows : list of dict
        One row a seed, method and fold: ``cases`` and ``errors`` among them, mean ``information``, also by the logistic
        function of a machine's scores (``information_logistic``), and whether hyperparameters ended ``at_bound``.
    """
    X, y = _patterns(data)

    def one(
        number: int, method: str, fold: int, path: str, rest: Array, part: Array
    ) -> tuple[list[Row], dict[str, Array]]:
        held_out = _fold(X, y, rest, part, prepared and "digit" not in data)
        fit, labels = FITS[method](held_out, path), held_out.y_star
        found = {
            "cases": len(part),
            "errors": int(np.sum(labels * fit.z <= 0)),
            "information": float(information(log_ndtr(labels * fit.z), held_out.bits).mean()),
            "at_bound": fit.at_bound,
        }
        if fit.logistic is not None:
            told = information(log_expit(labels * fit.logistic), held_out.bits)
            found["information_logistic"] = float(told.mean())
        key = {"data": name, "prepared": prepared, "method": method, "run": number, "fold": fold}
        return [{**key, **found, "seed": path}], {}

    def pieces() -> Iterator[Piece]:
        for k in range(seeds):
            path = seed(root, "crossvalidation", name, f"seed{k}")
            folds = _folds(X, y, OUTER, path)
            for method in methods:
                for j, fold in enumerate(folds):
                    yield keep(f"{method}-seed{k}-fold{j}", partial(one, k, method, j, path, *fold))

    return join(pieces())


def _folds(X: Array, y: Array, count: int, path: str) -> list[tuple[Array, Array]]:
    """Indices of the training and of the held-out cases of each fold."""
    from sklearn.model_selection import StratifiedKFold

    shuffled = StratifiedKFold(count, shuffle=True, random_state=random_state(path))
    return list(shuffled.split(X, y))


def _patterns(data: Mapping[str, Array]) -> tuple[Array, Array]:
    if "y" in data:
        return data["X"], data["y"]
    found = Binary.of_digits(data)
    return np.concatenate([found.X, found.X_star]), np.concatenate([found.y, found.y_star])


def _fold(X: Array, y: Array, rest: Array, part: Array, scaled: bool) -> Binary:
    train, test = X[rest], X[part]
    if scaled:
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        deviation[np.ptp(train, axis=0) == 0] = 1.0
        train, test = (train - mean) / deviation, (test - mean) / deviation
    return Binary(train, y[rest], test, y[part])


def _gaussian_process(method: Laplace | ExpectationPropagation, data: Binary) -> Fit:
    """Predict at the maximum of the evidence."""
    surface = Surface(method, data.distances, data.y, warm=True)
    median = 0.5 * float(np.log(np.median(data.distances[data.distances > 0])))
    theta = maximise(surface.value_and_gradient, [median - 0.7, 1.0], BOUNDS, TOLERANCE).theta
    across = squared_exponential(data.across, *theta)
    own = np.full(len(data.y_star), np.exp(2 * theta[1]))
    mean, variance = surface.posterior(*theta).latent(across, own)
    bound = any(min(t - low, high - t) < 1e-3 for t, (low, high) in zip(theta, BOUNDS, strict=True))
    return Fit(mean / np.sqrt(1.0 + variance), bound)


def _support_vectors(data: Binary, path: str) -> Fit:
    """Train a support vector machine with C and l by inner folds, and turn its scores into probabilities."""
    from sklearn.svm import SVC

    median = 0.5 * float(np.log(np.median(data.distances[data.distances > 0])))
    folds = _folds(data.X, data.y, INNER, f"{path}/inner")
    best: tuple[float, Array, float, float] | None = None
    for length in LENGTHS:
        gamma = 0.5 * np.exp(-2 * (median + length))
        kernel = np.exp(-gamma * data.distances)
        for cost in COSTS:
            score = held_out_scores(kernel, data.y, float(np.exp(cost)), folds)
            error = float(np.mean(score * data.y <= 0))
            if best is None or error < best[0]:
                best = error, score, gamma, float(np.exp(cost))
    assert best is not None
    _, score, gamma, cost = best
    machine = SVC(C=cost, kernel="precomputed").fit(np.exp(-gamma * data.distances), data.y)
    new = machine.decision_function(np.exp(-gamma * data.across).T)
    (a, b), (slope, shift) = probit_of_score(score, data.y), logistic_of_score(score, data.y)
    return Fit(a * new + b, logistic=slope * new + shift)


FITS = {
    "laplace": lambda data, path: _gaussian_process(Laplace(), data),
    "ep": lambda data, path: _gaussian_process(ExpectationPropagation(tolerance=1e-6), data),
    "svm": _support_vectors,
}
