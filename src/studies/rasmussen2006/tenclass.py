"""All ten digits: Laplace's approximation for several classes, and other classifiers (section 3.7.4, Figure 3.11)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from gpcmc.covariance.dense import Dense
from gpcmc.gaussian.softmax_mode import MulticlassLaplace
from gpcmc.likelihood.softmax import one_hot
from studies.common.rows import Line
from studies.rasmussen2006.gp import squared_distances, squared_exponential
from studies.rasmussen2006.scores import baseline, information

Array = np.ndarray
#: Draws of the weights' Gaussian that a probability is an average over.
DRAWS = 512
#: Of the support vector machines' kernel: the book's 1/2, and 1, as the software that it names may have.
EXPONENTS = {"half": 0.5, "whole": 1.0}


class Problem(NamedTuple):
    """The first training and test cases of the book's order; labels 0 to 9."""

    X: Array
    y: Array
    X_star: Array
    y_star: Array

    @property
    def bits(self) -> float:
        """What the frequencies of the classes leave unknown, bits a test case."""
        return baseline(self.y, self.y_star)


def first_cases(digits: Mapping[str, Array], training: int, test: int) -> Problem:
    """Return the first cases of both parts.

    Raises
    ------
    ValueError
        If there are not so many.
    """
    cut = int(digits["training"])
    X, y = digits["X"], digits["digit"].astype(int)
    if training > cut or test > len(y) - cut:
        raise ValueError(
            f"training={training}, test={test}: the digits have {cut} and {len(y) - cut} of these"
        )
    return Problem(X[:training], y[:training], X[cut : cut + test], y[cut : cut + test])


def _scores(log_probability: Array, problem: Problem) -> Line:
    """Errors and information of log probabilities (t, C)."""
    cases = np.arange(len(problem.y_star))
    told = information(log_probability[cases, problem.y_star], problem.bits)
    wrong = log_probability.argmax(axis=1) != problem.y_star
    return {"error_percent": 100 * float(wrong.mean()), "information": float(told.mean())}


def _monte_carlo(p: Array, error: Array, problem: Problem) -> Line:
    """Bounds on the Monte Carlo error of the scores of probabilities (t, C) with standard errors.

    All test cases have the same Sobol' points, so that their errors are dependent: the standard error of the mean
    information is at most the mean of its standard errors. A case is close if its two largest probabilities differ by
    less than twice the sum of theirs, which is at least two standard errors of the difference.
    """
    cases = np.arange(len(problem.y_star))
    of_class = p[cases, problem.y_star], error[cases, problem.y_star]
    order = np.argsort(p, axis=1)
    first, second = order[:, -1], order[:, -2]
    gap = p[cases, first] - p[cases, second]
    close = gap < 2 * (error[cases, first] + error[cases, second])
    return {
        "information_se": float(np.mean(of_class[1] / np.maximum(of_class[0], 1e-300)))
        / math.log(2),
        "close_percent": 100 * float(close.mean()),
    }


def laplace(
    point: tuple[float, float], digits: Mapping[str, Array], training: int, test: int
) -> Line:
    """Fit all classes at one point (log l, log sf), which they share.

    Returns
    -------
    dict
        Log evidence, and as Algorithm 3.3 prints it (line 16 without - sum log M_ii); errors by the largest probability
        and by the largest latent mean; information; and bounds on the Monte Carlo error of the scores.
    """
    problem = first_cases(digits, training, test)
    K = squared_exponential(squared_distances(problem.X, problem.X), *point)
    labels = one_hot(problem.y)
    start: Any = SimpleNamespace(a=mode(K, labels))  # all that the method looks at
    found = MulticlassLaplace(tolerance=1e-8).approximate(Dense(K), labels, start)
    across = squared_exponential(squared_distances(problem.X, problem.X_star), *point)
    predicted = found.predict(across, np.full(test, math.exp(2 * point[1])))
    p = predicted.probability
    by_mean = (across.T @ found.a.T).argmax(axis=1) != problem.y_star
    return {
        "log_evidence": found.log_evidence,
        "as_printed": found.log_evidence + float(np.log(found.conditioned.M.diagonal()).sum()),
        **_scores(np.log(np.maximum(p, 1e-300)), problem),
        **_monte_carlo(p, predicted.standard_error, problem),
        "error_percent_by_mean": 100 * float(by_mean.mean()),
        "newton_steps": found.work["newton_steps"],
    }


def mode(K: Array, y: Array) -> Array:
    """Return a = K^-1 f (C, n) at the mode of p(f | y), y (C, n) as `one_hot` makes it.

    Newton's steps solve (I + W K) da = y - pi - a by conjugate gradients in the inner product of K, in which that
    matrix is symmetric and positive definite. They take products with K alone, where the library's take the inverses
    of C matrices: it has the last step, and the determinant. A step that does not climb is halved.
    """
    a, f = np.zeros(y.shape), np.zeros(y.shape)
    value = _psi(y, a, f)
    for _ in range(100):
        pi = softmax(f, axis=0)
        step, along = _newton_step(K, pi, y - pi - a)
        size, before = 1.0, value
        while True:
            a_new, f_new = a + size * step, f + size * along
            value = _psi(y, a_new, f_new)
            if value >= before or size < 1e-6:
                break
            size *= 0.5
        a, f = a_new, f_new
        if np.abs(size * step).max() <= 1e-7 * max(1.0, np.abs(a).max()):
            break
    return a


def _psi(y: Array, a: Array, f: Array) -> float:
    return float(np.sum(y * log_softmax(f, axis=0)) - 0.5 * np.sum(a * f))


def _newton_step(K: Array, pi: Array, gradient: Array) -> tuple[Array, Array]:
    """Return x with (I + W K) x = gradient to 1e-6 of its size, and K x; W is that of the softmax."""
    x, along = np.zeros_like(gradient), np.zeros_like(gradient)
    rest = gradient.copy()
    K_rest = rest @ K
    direction, K_direction = rest.copy(), K_rest.copy()
    square = first = float(np.sum(rest * K_rest))
    for _ in range(1000):
        if square <= 1e-12 * first:
            break
        weighted = pi * K_direction
        image = direction + weighted - pi * weighted.sum(axis=0)
        length = square / float(np.sum(K_direction * image))
        x += length * direction
        along += length * K_direction
        rest -= length * image
        K_rest = rest @ K
        square, last = float(np.sum(rest * K_rest)), square
        direction = rest + square / last * direction
        K_direction = K_rest + square / last * K_direction
    return x, along


def others(
    method: str, theta: float | None, digits: Mapping[str, Array], training: int, test: int
) -> list[Line]:
    """Classify by another method than Gaussian processes.

    Parameters
    ----------
    method : {"neighbour", "linear", "linear-best", "svm"}
        The nearest neighbour, which is cheap, always has all cases; multiple linear logistic regression; its theta with
        the largest evidence; support vector machines at the printed C = 1 and l = 5.
    theta : float or None
        Of k = theta^2 x'x, of ``linear`` alone.
    digits : mapping
        Arrays of `patterns.usps`.
    training, test : int

    Returns
    -------
    list of dict
        ``method``, ``training``, ``test``, ``theta``, ``quantity`` and ``value``.
    """
    if method == "neighbour":
        cut = int(digits["training"])
        problem = first_cases(digits, cut, len(digits["digit"]) - cut)
        share = np.bincount(problem.y_star) / len(problem.y_star)
        targets = {"entropy": -float(share @ np.log2(share)), "baseline": problem.bits}
        found = {"targets": targets, "p1nn": p1nn(problem)}
    else:
        problem = first_cases(digits, training, test)
        if method == "linear":
            assert theta is not None
            found = {method: linear_logistic(problem, theta)}
        elif method == "linear-best":
            found = {method: best_linear(problem)}
            theta = found[method]["theta"]
        else:
            machines = {
                f"error_percent_{name}": support_vectors(problem, exponent)
                for name, exponent in EXPONENTS.items()
            }
            found = {method: machines}
    sizes = {"training": len(problem.y), "test": len(problem.y_star)}
    at = math.nan if theta is None else theta
    return [
        {"method": name, **sizes, "theta": at, "quantity": quantity, "value": float(value)}
        for name, values in found.items()
        for quantity, value in values.items()
    ]


def best_linear(problem: Problem) -> Line:
    """Return the theta of linear logistic regression with the largest evidence, and that evidence."""

    def objective(log_theta: float) -> float:
        return -WeightSpace(problem.X, problem.y, math.exp(log_theta)).log_evidence

    found = minimize_scalar(
        objective, bounds=(-2.0, 1.0), method="bounded", options={"xatol": 2e-3}
    )
    return {"theta": math.exp(found.x), "log_evidence": -found.fun}


def p1nn(problem: Problem) -> Line:
    """Return what the probabilistic nearest neighbour finds; the other classes share 1 - pi."""
    own = squared_distances(problem.X, problem.X)
    np.fill_diagonal(own, np.inf)
    accuracy = float(np.mean(problem.y[own.argmin(axis=1)] == problem.y))
    nearest = problem.y[squared_distances(problem.X, problem.X_star).argmin(axis=0)]
    classes = int(problem.y.max()) + 1
    p = np.full((len(nearest), classes), (1.0 - accuracy) / (classes - 1))
    p[np.arange(len(nearest)), nearest] = accuracy
    return {"accuracy": accuracy, **_scores(np.log(p), problem)}


def support_vectors(problem: Problem, exponent: float) -> float:
    """Return the percentage of errors of support vector machines, each class against the rest.

    Their kernel is exp(-exponent d^2 / l^2).
    """
    from sklearn.svm import SVC

    scores = []
    for label in range(int(problem.y.max()) + 1):
        machine = SVC(C=1.0, gamma=exponent / 5.0**2).fit(problem.X, problem.y == label)
        scores.append(machine.decision_function(problem.X_star))
    return 100 * float(np.mean(np.argmax(scores, axis=0) != problem.y_star))


class WeightSpace:
    """Laplace's approximation for linear logistic regression, over weights with the prior N(0, theta^2 I).

    It is that of the Gaussian process with k = theta^2 (x'x + 1), at the cost of the weights' number. Newton's steps
    are halved where they do not climb.

    Attributes
    ----------
    weights : (C, d + 1) array
        At the mode; the last one is the bias.
    log_evidence : float
    """

    def __init__(self, X: Array, y: Array, theta: float) -> None:
        self._X = np.column_stack([X, np.ones(len(X))])
        self._y, self._theta = one_hot(y), theta
        self.weights = np.zeros((len(self._y), self._X.shape[1]))
        value = self._objective(self.weights)
        for _ in range(200):
            gradient, hessian = self._derivatives()
            self._factor = cho_factor(hessian, lower=True, overwrite_a=True)
            step = cho_solve(self._factor, gradient.ravel()).reshape(self.weights.shape)
            if float(np.sum(gradient * step)) < 1e-9:
                break
            size = 1.0
            while self._objective(self.weights + size * step) < value and size > 1e-6:
                size *= 0.5
            self.weights = self.weights + size * step
            value = self._objective(self.weights)
        else:
            raise ValueError(f"theta={theta}: Newton's iteration does not converge")
        # |I + theta^2 H| is theta^(2p) |H + I / theta^2|
        log_det = 2 * float(np.log(np.diag(self._factor[0])).sum())
        self.log_evidence = value - 0.5 * log_det - self.weights.size * math.log(theta)

    def _objective(self, weights: Array) -> float:
        f = weights @ self._X.T
        fit = float(np.sum(self._y * f) - logsumexp(f, axis=0).sum())
        return fit - 0.5 * float(np.sum(weights**2)) / self._theta**2

    def _derivatives(self) -> tuple[Array, Array]:
        """The gradient (C, d + 1), and minus the matrix of second derivatives."""
        X, (classes, size) = self._X, self.weights.shape
        pi = softmax(self.weights @ X.T, axis=0)
        gradient = (self._y - pi) @ X - self.weights / self._theta**2
        hessian = np.empty((classes, size, classes, size))
        for c in range(classes):
            for d in range(c, classes):
                w = pi[c] * ((c == d) - pi[d])
                hessian[c, :, d] = (X * w[:, None]).T @ X
                hessian[d, :, c] = hessian[c, :, d].T
        flat = hessian.reshape(classes * size, -1)
        flat.flat[:: len(flat) + 1] += 1.0 / self._theta**2
        return gradient, flat

    def latent_mean(self, X_star: Array) -> Array:
        """Return the latent means (t, C)."""
        return np.column_stack([X_star, np.ones(len(X_star))]) @ self.weights.T

    def averaged(self, X_star: Array, rng: np.random.Generator) -> Array:
        """Return probabilities (t, C), averages over draws of the weights from their Gaussian."""
        X = np.column_stack([X_star, np.ones(len(X_star))])
        total = np.zeros((len(X), len(self.weights)))
        normals = rng.standard_normal((self.weights.size, DRAWS))
        drawn = solve_triangular(self._factor[0], normals, lower=True, trans=1, check_finite=False)
        for one in drawn.T:
            total += softmax(X @ (self.weights + one.reshape(self.weights.shape)).T, axis=1)
        return total / DRAWS


def linear_logistic(problem: Problem, theta: float) -> Line:
    """Return evidence, errors and information at a theta: by averaged probabilities, and by those at the mode."""
    found = WeightSpace(problem.X, problem.y, theta)
    at_mode = _scores(log_softmax(found.latent_mean(problem.X_star), axis=1), problem)
    averaged = np.log(found.averaged(problem.X_star, np.random.default_rng(0)))
    return {
        "log_evidence": found.log_evidence,
        **_scores(averaged, problem),
        **{f"{name}_at_mode": value for name, value in at_mode.items()},
    }
