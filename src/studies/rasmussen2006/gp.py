"""Covariances of the book, and evidence surfaces over the logarithms of their hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from gpcmc.covariance.dense import Dense, gradient_array
from gpcmc.covariance.form import GradientMatrix
from gpcmc.covariance.kernels import flush_subnormal
from gpcmc.evidence.climbing import climb

Array = np.ndarray


class Method(Protocol):
    """Laplace's method, expectation propagation, or Laplace's method for several classes."""

    def approximate(self, covariance: Dense, y: Array, start: Any = None) -> Any:
        """Return the posterior with its `log_evidence`."""

    def gradient(self, covariance: Dense, y: Array, posterior: Any) -> GradientMatrix:
        """Return M with d log Z = tr(M dK) / 2."""
        ...


def squared_distances(one: Array, two: Array) -> Array:
    """Return the squared distances (m, n) of the rows of two arrays."""
    return cdist(one, two, "sqeuclidean")


def squared_exponential(
    distances: Array, log_length: float, log_amplitude: float, exponent: float = 0.5
) -> Array:
    """Return sf^2 exp(-d^2 / (2 l^2)) of squared distances d^2.

    `exponent` is the 1/2, which a control leaves out.
    """
    K = np.exp(2 * log_amplitude - exponent * np.exp(-2 * log_length) * distances)
    return flush_subnormal(K)


@dataclass(slots=True)
class Surface:
    """The log evidence of a squared exponential, over (log l, log sf).

    Attributes
    ----------
    method : Method
    distances : (n, n) array
        Squared distances of the training inputs.
    y : (n,) or (C, n) array
        Labels as the method takes them.
    warm : bool
        Whether `value_and_gradient` begins at the posterior of its last point: that of a search is seldom far.
    """

    method: Method
    distances: Array
    y: Array
    warm: bool = False
    _last: Any = field(default=None, init=False, repr=False)

    def posterior(self, log_length: float, log_amplitude: float) -> Any:
        """Return the approximate posterior at a point."""
        K = squared_exponential(self.distances, log_length, log_amplitude)
        return self.method.approximate(Dense(K), self.y)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return the log evidence in nats, and its gradient (2,)."""
        K = squared_exponential(self.distances, *theta)
        covariance = Dense(K)
        posterior = self.method.approximate(covariance, self.y, self._last)
        self._last = posterior if self.warm else None
        weighted = gradient_array(self.method.gradient(covariance, self.y, posterior)) * K
        by_length = 0.5 * float(np.sum(weighted * self.distances)) * np.exp(-2 * theta[0])
        return posterior.log_evidence, np.array([by_length, float(weighted.sum())])


class Maximum(NamedTuple):
    """The best point of a search, and how many evaluations it took."""

    theta: Array
    log_evidence: float
    evaluations: int


def maximise(
    value_and_gradient: Callable[[Array], tuple[float, Array]],
    start: Sequence[float],
    bounds: Sequence[tuple[float, float]],
    tolerance: float = 1e-9,
) -> Maximum:
    """Climb by L-BFGS-B within bounds, until a step gains less than a share `tolerance` of the log evidence.

    A point where the method fails, because a covariance is too large for floating point, counts as a poor one.

    Raises
    ------
    ValueError
        If the method fails wherever it was tried.
    """
    # slopes of 1e-4 nats are far below the rounding of any printed number
    tolerances = {"ftol": tolerance, "gtol": 1e-4}
    found = climb(value_and_gradient, [start], bounds, poor=-1e6, tolerances=tolerances)
    if not np.isfinite(found.value):
        raise ValueError(f"start: the method fails at {list(start)} and wherever else it was tried")
    return Maximum(found.theta, found.value, found.evaluations)
