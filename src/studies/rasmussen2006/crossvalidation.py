"""Ten-fold cross-validation of Laplace's method, EP and support vector machines: Kuss and Rasmussen (2005), Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, log_ndtr

from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from studies.common.rows import Line
from studies.common.seeds import random_state
from studies.rasmussen2006.gp import Surface, maximise, squared_exponential
from studies.rasmussen2006.machines import held_out_scores
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import information, logistic_of_score, probit_of_score

Array = np.ndarray
#: Folds within the training cases, of a machine.
INNER = 5
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


def fitted(
    method: str, data: Mapping[str, Array], path: str, *, folds: int, fold: int, scaled: bool
) -> Line:
    """Classify the cases of a fold by a fit to all others.

    The source states neither folds nor scaling.

    Parameters
    ----------
    method : {"laplace", "ep", "svm"}
    data : mapping
        ``X`` and ``y``, or the arrays of digits: threes against fives of both parts.
    path : str
        Of the random stream that assigns cases to folds; the inner folds of a machine have one below it.
    folds, fold : int
        How many there are, and which one it is.
    scaled : bool
        Whether features are shifted and scaled to mean 0 and standard deviation 1 over the training cases. Grey values
        never are.

    Returns
    -------
    dict
        ``cases`` and ``errors`` among them, mean ``information``, whether hyperparameters ended ``at_bound``, and of a
        machine the information by the logistic function of its scores (``information_logistic``).
    """
    X, y = _patterns(data)
    rest, part = _folds(X, y, folds, path)[fold]
    held_out = _fold(X, y, rest, part, scaled and "digit" not in data)
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
    return found


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
