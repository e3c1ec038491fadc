"""Ten-fold cross-validation of Laplace's method, EP and support vector machines: Kuss and Rasmussen (2005), Table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy.special import log_ndtr

from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.laplace import Laplace
from studies.common.pieces import Piece, Row, join
from studies.common.running import Keep
from studies.common.seeds import generator, seed
from studies.rasmussen2006.gp import Surface, maximise, squared_exponential
from studies.rasmussen2006.machines import held_out_scores
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import information, probit_of_score

Array = np.ndarray
OUTER, INNER = 10, 5
#: Bounds of (log l, log sf), ours; EP's evidence may rise without an end in log sf.
BOUNDS = [(-1.0, 6.0), (-2.0, 5.0)]
#: The support vector machine's grid, ours: log l beside the median distance, and log C.
LENGTHS, COSTS = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0), (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0)


def crossvalidation(
    *,
    data: Mapping[str, Array],
    name: str,
    methods: Sequence[str],
    seeds: int,
    root: int,
    keep: Keep,
) -> Piece:
    """Classify every case by a fit to nine tenths of the others, with so many seeds of the folds.

    Features are shifted and scaled to mean 0 and standard deviation 1 over the training cases, but for grey values.
    The source states neither folds nor scaling.

    Parameters
    ----------
    data : mapping
        ``X`` and ``y``, or the arrays of digits: threes against fives of both parts.
    name : str
    methods : sequence of {"laplace", "ep", "svm"}
    seeds : int

    Returns
    -------
    rows : list of dict
        One row a seed and method: ``error_percent`` and ``information`` over all cases, and ``at_bound``, the folds
        whose hyperparameters ended at a bound.
    """
    X, y = _patterns(data)
    scaled = "digit" not in data

    def one(number: int, method: str) -> tuple[list[Row], dict[str, Array]]:
        from sklearn.model_selection import StratifiedKFold

        path = seed(root, "crossvalidation", name, f"seed{number}")
        folds = StratifiedKFold(OUTER, shuffle=True, random_state=_state(path))
        wrong, told, at_bound = [], [], 0
        for rest, part in folds.split(X, y):
            fold = _fold(X, y, rest, part, scaled)
            z, bound = FITS[method](fold, path)
            wrong.append(fold.y_star * z <= 0)
            told.append(information(log_ndtr(fold.y_star * z), fold.bits))
            at_bound += bound
        found = {
            "error_percent": 100 * float(np.concatenate(wrong).mean()),
            "information": float(np.concatenate(told).mean()),
            "at_bound": at_bound,
        }
        return [{"data": name, "method": method, "run": number, **found, "seed": path}], {}

    return join(
        keep(f"{method}-seed{k}", partial(one, k, method))
        for method in methods
        for k in range(seeds)
    )


def _state(path: str) -> int:
    return int(generator(path).integers(2**31))


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


def _gaussian_process(method: Laplace | ExpectationPropagation, data: Binary) -> tuple[Array, bool]:
    """The argument z of the probabilities Phi(z) at the maximum of the evidence, and whether that is at a bound."""
    surface = Surface(method, data.distances, data.y)
    median = 0.5 * float(np.log(np.median(data.distances[data.distances > 0])))
    theta = maximise(surface.value_and_gradient, [median - 0.7, 1.0], BOUNDS).theta
    across = squared_exponential(data.across, *theta)
    own = np.full(len(data.y_star), np.exp(2 * theta[1]))
    mean, variance = surface.posterior(*theta).latent(across, own)
    bound = any(min(t - low, high - t) < 1e-3 for t, (low, high) in zip(theta, BOUNDS, strict=True))
    return mean / np.sqrt(1.0 + variance), bound


def _support_vectors(data: Binary, path: str) -> tuple[Array, bool]:
    """A support vector machine with C and l by inner folds, and the probit of its held-out scores."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    median = 0.5 * float(np.log(np.median(data.distances[data.distances > 0])))
    inner = StratifiedKFold(INNER, shuffle=True, random_state=_state(f"{path}/inner"))
    folds = list(inner.split(data.X, data.y))

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
    a, b = probit_of_score(score, data.y)
    machine = SVC(C=cost, kernel="precomputed").fit(np.exp(-gamma * data.distances), data.y)
    return a * machine.decision_function(np.exp(-gamma * data.across).T) + b, False


FITS = {
    "laplace": lambda data, path: _gaussian_process(Laplace(), data),
    "ep": lambda data, path: _gaussian_process(ExpectationPropagation(tolerance=1e-6), data),
    "svm": _support_vectors,
}
