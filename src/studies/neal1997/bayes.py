"""The Bayes rule of the three-way problem: the best that any classifier can do, on given cases and in expectation.

The recipe is in section 6 of the paper: x~ is uniform on the unit square (and two inputs that do not matter), the class
is a function of x~, and inputs are x~ plus N(0, 0.1^2). So p(class | x) is an integral over the square, by the midpoint
rule; its kernel is a product, and all test cases are two products of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.stats import binom, norm

from studies.common.rows import Line
from studies.common.seeds import generator

Array = np.ndarray
CLASSES = 3
#: Standard deviation of what is added to the clean inputs.
DEVIATION = 0.1
#: Where the rule's error is integrated: six deviations beyond the square.
_REACH = 6 * DEVIATION


def class_of(x: Array, y: Array) -> Array:
    """Return the class of clean inputs: 0 in the circle, otherwise 1 below the line, otherwise 2."""
    circle = np.hypot(x - 0.4, y - 0.5) < 0.35
    return np.where(circle, 0, np.where(0.8 * x + 1.8 * y < 0.6, 1, 2))


def made(cases: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return inputs (cases, 2) that matter, and classes (cases,), made from the recipe."""
    clean = rng.random((cases, 2))
    return clean + DEVIATION * rng.standard_normal(clean.shape), class_of(*clean.T)


class BayesRule:
    """Class densities of noisy inputs.

    Parameters
    ----------
    points : int
        Of the midpoint rule, on each axis of the square.
    """

    def __init__(self, points: int) -> None:
        self.axis = (np.arange(points) + 0.5) / points
        classes = class_of(self.axis[:, None], self.axis[None, :])
        self._inside = [(classes == k).astype(float) for k in range(CLASSES)]

    def _kernel(self, x: Array) -> Array:
        return norm.pdf(x[:, None], self.axis, DEVIATION) / len(self.axis)

    def densities(self, X: Array) -> Array:
        """Return p(x, class) (n, 3) of inputs (n, 2)."""
        first, second = self._kernel(X[:, 0]), self._kernel(X[:, 1])
        return np.stack([((first @ one) * second).sum(axis=1) for one in self._inside], axis=1)

    def guess(self, X: Array) -> Array:
        """Return the most probable class of inputs (n, 2)."""
        return self.densities(X).argmax(axis=1)

    def log_probability(self, X: Array, t: Array) -> Array:
        """Return log p(t | x) (n,)."""
        density = self.densities(X)
        return np.log(density[np.arange(len(t)), t] / density.sum(axis=1))

    def error_rate(self) -> float:
        """Return the share of errors in expectation: one less the integral of the largest density."""
        points = len(self.axis)
        grid = (np.arange(points) + 0.5) / points * (1 + 2 * _REACH) - _REACH
        step = (1 + 2 * _REACH) / points
        kernel = self._kernel(grid)
        largest = np.max([kernel @ one @ kernel.T for one in self._inside], axis=0)
        return float(1.0 - largest.sum() * step**2)


def on_releases(points: int, old: Mapping[str, Array], new: Mapping[str, Array]) -> list[Line]:
    """Evaluate the rule on the test cases of both releases, and in expectation.

    Parameters
    ----------
    points : int
        Of the midpoint rule on each axis.
    old, new : mapping
        The releases of 1997 and 2022: ``X``, ``t``, ``training``.

    Returns
    -------
    list of dict
        ``data``, ``quantity`` and ``value``: the ``error-rate`` and the mean ``log-probability`` on test cases; of the
        population its ``error-rate``, and the probability of as few errors as in the file of 1997 (``luck``).
    """
    rule, lines, errors = BayesRule(points), [], {}
    for name, arrays in {"1997": old, "2022": new}.items():
        test = slice(int(arrays["training"]), None)
        X, t = arrays["X"][test, :2], arrays["t"][test].astype(int)
        wrong = rule.guess(X) != t
        errors[name] = int(wrong.sum()), len(t)
        found = {"error-rate": wrong.mean(), "log-probability": rule.log_probability(X, t).mean()}
        lines += [{"data": name, "quantity": key, "value": v} for key, v in found.items()]
    rate = rule.error_rate()
    found = {"error-rate": rate, "luck": binom.cdf(*errors["1997"], rate)}
    return lines + [{"data": "population", "quantity": k, "value": v} for k, v in found.items()]


def on_new_sets(points: int, sets: int, path: str, old: Mapping[str, Array]) -> list[Line]:
    """Return the ``error-rate`` of the rule on so many test sets as large as the old one, made anew."""
    rule, rng = BayesRule(points), generator(path)
    cases, line = len(old["t"]) - int(old["training"]), {"data": "anew", "quantity": "error-rate"}
    lines: list[Line] = []
    for _ in range(sets):
        X, t = made(cases, rng)
        value = float((rule.guess(X) != t).mean())
        lines.append({**line, "seed": path, "value": value})
    return lines
