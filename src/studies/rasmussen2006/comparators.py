"""Other classifiers beside Gaussian processes on threes against fives (section 3.7.3, Figure 3.10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import log_ndtr

from gpcmc.covariance.dense import Dense, gradient_array, inverse_from_factor
from gpcmc.gaussian.laplace import Laplace
from studies.common.rows import Line
from studies.common.seeds import random_state
from studies.rasmussen2006.binary import Evidence
from studies.rasmussen2006.gp import Maximum, maximise, squared_exponential
from studies.rasmussen2006.grid import PRINTED
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import information, over_rejections, probit_of_score

Array = np.ndarray
FOLDS = 5


class Classified(NamedTuple):
    """Predictions of test cases.

    Attributes
    ----------
    score : (t,) array
        Positive for the class +1.
    log_probability : (t,) array
        Of the true label.
    confidence : (t,) array
        The least confident cases are rejected first.
    facts : dict
        What the method found, by name.
    """

    score: Array
    log_probability: Array
    confidence: Array
    facts: dict[str, float]


#: Of the data, and the path of a random stream.
Classifier = Callable[[Binary, str], Classified]


def classified(
    method: str, shares: Sequence[float], path: str, digits: Mapping[str, Array]
) -> list[Line]:
    """Classify the test cases, and reject shares of them.

    Parameters
    ----------
    method : str
        A key of `CLASSIFIERS`.
    shares : sequence of float
        Shares that are rejected, the first one 0.
    path : str
        Of the random stream: the folds of the support vector machine.
    digits : mapping
        Arrays of `patterns.usps`.

    Returns
    -------
    list of dict
        ``quantity``, ``share`` (rejected) and ``value``.
    """
    data = Binary.of_digits(digits)
    return [*_lines(CLASSIFIERS[method](data, path), data, shares)]


def _lines(found: Classified, data: Binary, shares: Sequence[float]) -> Iterator[Line]:
    told = information(found.log_probability, data.bits)
    wrong = (found.score * data.y_star <= 0).astype(float)
    curves = {
        "error": over_rejections(wrong, found.confidence, shares),
        "information": over_rejections(told, found.confidence, shares),
    }
    for name, values in curves.items():
        for share, value in zip(shares, values.tolist(), strict=True):
            yield {"quantity": name, "share": share, "value": value}
    for name, value in {"errors": wrong.sum(), **found.facts}.items():
        yield {"quantity": name, "share": 0.0, "value": float(value)}


def _probit(z: Array, data: Binary, facts: dict[str, float]) -> Classified:
    """Predictions Phi(z)."""
    return Classified(z, log_ndtr(data.y_star * z), np.abs(z), facts)


def _gaussian_process(method: str, start: tuple[float, float]) -> Classifier:
    def classify(data: Binary, path: str) -> Classified:
        evidence = Evidence.of(method, data)
        # EP's evidence has a ridge: the book's good point
        point = start if method == "ep" else evidence.best(start, 2.0)
        z = evidence.predictive_argument(point)
        return _probit(z, data, {"log_length": point[0], "log_amplitude": point[1]})

    return classify


def linear_evidence(data: Binary, bias: float = 0.0) -> Maximum:
    """Return the maximum of Laplace's evidence of k = theta^2 (x'x + bias) over log theta."""
    product = data.X @ data.X.T + bias

    def value_and_gradient(theta: Array) -> tuple[float, Array]:
        method, K = Laplace(), np.exp(2 * theta[0]) * product
        posterior = method.approximate(Dense(K), data.y)
        M = gradient_array(method.gradient(Dense(K), data.y, posterior))
        return posterior.log_evidence, np.array([float(np.sum(M * K))])

    return maximise(value_and_gradient, [-0.7], [(-4.0, 4.0)])


def linear_probit(data: Binary, path: str) -> Classified:
    """Laplace's method with the linear kernel, at the maximum of its evidence."""
    best = linear_evidence(data)
    scale = np.exp(2 * best.theta[0])
    posterior = Laplace().approximate(Dense(scale * data.X @ data.X.T), data.y)
    own = scale * np.einsum("ij,ij->i", data.X_star, data.X_star)
    mean, variance = posterior.latent(scale * data.X @ data.X_star.T, own)
    facts = {"log_evidence": best.log_evidence, "theta": float(np.exp(best.theta[0]))}
    return _probit(mean / np.sqrt(1.0 + variance), data, facts)


def nearest_neighbour(data: Binary, path: str) -> Classified:
    """The probabilistic nearest neighbour, P1NN; rejections by the distance."""
    own = data.distances.copy()
    np.fill_diagonal(own, np.inf)
    accuracy = float(np.mean(data.y[own.argmin(axis=1)] == data.y))
    nearest = data.across.argmin(axis=0)
    right = data.y[nearest] == data.y_star
    log_probability = np.log(np.where(right, accuracy, 1.0 - accuracy))
    distance = data.across[nearest, np.arange(len(nearest))]
    return Classified(data.y[nearest], log_probability, -distance, {"accuracy": accuracy})


def support_vectors(data: Binary, path: str, exponent: float = 0.5) -> Classified:
    """A support vector machine at the printed C = 1 and l = 10; probabilities by the scores of held-out folds.

    Its kernel is exp(-exponent d^2 / l^2).
    """
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    machine = SVC(C=1.0, gamma=exponent / 10.0**2)
    held_out = np.empty(len(data.y))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state(path))
    for rest, part in folds.split(data.X, data.y):
        held_out[part] = machine.fit(data.X[rest], data.y[rest]).decision_function(data.X[part])
    a, b = probit_of_score(held_out, data.y)
    score = machine.fit(data.X, data.y).decision_function(data.X_star)
    errors = float(np.mean(held_out * data.y <= 0))
    return _probit(a * score + b, data, {"held_out_error": errors})._replace(score=score)


def least_squares(data: Binary, path: str) -> Classified:
    """The least-squares classifier: GP regression on -1/+1, mean only, all parameters by leaving one out.

    The mean depends on l and on the ratio of amplitude to noise alone. Both, and A and B of the probit of the score,
    are at the maximum of the leave-one-out log probability.
    """

    def left_out(theta: Array) -> Array:
        factor, _ = cho_factor(_regression(data, theta), lower=True)
        inverse = inverse_from_factor(factor)
        return data.y - inverse @ data.y / inverse.diagonal()

    def objective(theta: Array) -> float:
        score = left_out(theta)
        a, b = probit_of_score(score, data.y)
        return -float(log_ndtr(data.y * (a * score + b)).sum())

    options = {"xatol": 1e-2, "fatol": 1e-3, "maxfev": 80}
    theta = minimize(objective, [2.0, 1.0], method="Nelder-Mead", options=options).x
    a, b = probit_of_score(left_out(theta), data.y)
    weights = cho_solve(cho_factor(_regression(data, theta)), data.y)
    score = squared_exponential(data.across, theta[0], theta[1]).T @ weights
    facts = {"log_length": float(theta[0]), "log_ratio": float(theta[1])}
    return _probit(a * score + b, data, facts)._replace(score=score)


def _regression(data: Binary, theta: Array) -> Array:
    """Covariance of the targets, in units of the noise's variance."""
    K = squared_exponential(data.distances, theta[0], theta[1])
    K.flat[:: len(K) + 1] += 1.0
    return K


CLASSIFIERS: dict[str, Classifier] = {
    "laplace": _gaussian_process("laplace", PRINTED["laplace"]),
    "ep": _gaussian_process("ep", PRINTED["ep"]),
    "linear-probit": linear_probit,
    "svm": support_vectors,
    # as the software that the book names may have it
    "svm-whole": partial(support_vectors, exponent=1.0),
    "lsc": least_squares,
    "p1nn": nearest_neighbour,
}
