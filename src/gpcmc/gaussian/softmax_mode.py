"""Laplace's approximation for two or more classes, with the softmax likelihood: Algorithms 3.3 and 3.4.

Every class has a latent function of its own, and all have the same prior covariance K. p(y_i = c | f) is the softmax of
the C latent values at x_i. Newton's iteration climbs Psi(f) = log p(y | f) - f' K^-1 f / 2 in the variables a = K^-1 f;
a step takes one conditioning of the covariance, for all classes together.

Three lines of the printed algorithms are corrected. In lines 15 and 16 of Algorithm 3.3 the log-sum-exp is subtracted.
Line 16 also lacks - sum_i log M_ii, without which it is not Eq. (3.44). In line 11 of Algorithm 3.4 the product is
with every E_c.

References
----------
Rasmussen and Williams (2006), Algorithms 3.3, 3.4, 5.1, Eqs. (3.34)-(3.44), (5.22)-(5.24).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from gpcmc._validation import FloatArray, check_memory, check_positive, check_positive_int
from gpcmc.covariance.form import Covariance, GradientMatrix
from gpcmc.gaussian.posterior import GaussianApproximation, GaussianPosterior
from gpcmc.likelihood.softmax import Softmax, check_classes, half_slope_of_log_det, log_likelihood
from gpcmc.posterior import ConvergenceError

_HALVINGS = 40
_WHOLE = 5  # steps at most where Psi cannot judge them


@dataclass(frozen=True, slots=True)
class MulticlassLaplace(GaussianApproximation):
    """Options of Laplace's method for two or more classes; labels are 0 to C - 1, each of which occurs.

    Probabilities are (t, C): the softmax averaged over the latent Gaussian, by Sobol' points, whose randomisations give
    their standard errors. They do not depend on the labels' order.

    Attributes
    ----------
    tolerance : float
        Newton stops when Psi rises by less than this times ``|Psi|`` and no entry of its gradient exceeds this, or
        what rounding leaves of either.
    max_iterations : int
        Newton steps at most. Where Psi cannot rise by more than its rounding, five more, which are not halved.
    points : int
        Sobol' points of a randomisation, a power of two.
    randomizations : int
        Independent randomisations: their spread is the standard error of the probabilities.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    tolerance: float = 1e-12
    max_iterations: int = 200
    points: int = 512
    randomizations: int = 4

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance)
        check_positive_int("max_iterations", self.max_iterations)
        check_positive_int("randomizations", self.randomizations)
        if check_positive_int("points", self.points) & (self.points - 1):
            raise ValueError(f"points must be a power of two; got {self.points}")

    def check_size(self, n: int, classes: int = 2) -> None:
        """Refuse n training patterns of so many classes if `fit` would need more memory than this machine has.

        Raises
        ------
        MemoryError
            If it would, with a dense covariance; the message says how much, and what fits.
        """
        needed = 8.0 * (2 * classes + 4) * n**2  # E of two iterates, and what makes one
        check_memory(f"Laplace's method with {classes} classes", n, needed, needed)

    def check_labels(self, y: ArrayLike, n: int) -> FloatArray:
        """Return ones and zeros (C, n) of n labels 0 to C - 1.

        Raises
        ------
        ValueError
            If there are not n labels, a label is another number, or one of the labels does not occur.
        """
        return check_classes("y", y, n)

    def approximate(
        self, covariance: Covariance, y: FloatArray, start: GaussianPosterior | None = None
    ) -> GaussianPosterior:
        """Find the mode of p(f | y) and the Gaussian there.

        Its work counts ``newton_steps``, each of which conditions the covariance once; and once at the end.
        """
        found = _find_mode(
            covariance,
            y,
            None if start is None else start.a,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        posterior = GaussianPosterior(
            covariance=covariance,
            log_evidence=found.psi - 0.5 * found.conditioned.log_determinant,  # 16, corrected
            mean=found.f,
            a=found.a,
            conditioned=found.conditioned,
            likelihood=Softmax(self.points, self.randomizations),
            y=y,
            method=self,
            work={"newton_steps": found.steps},
        )
        if found.failure:
            raise ConvergenceError(found.failure, posterior)
        return posterior

    def gradient(
        self, covariance: Covariance, y: FloatArray, posterior: GaussianPosterior
    ) -> GradientMatrix:
        """Return the sum over classes of a a' - R_cc + v a' + a v', v = (I - R K) s.

        s is that of `gpcmc.likelihood.softmax.half_slope_of_log_det`.
        """
        s = half_slope_of_log_det(softmax(posterior.mean, axis=0), posterior.variance)
        v = s - posterior.conditioned.solve((covariance @ s.T).T)
        return GradientMatrix.of(posterior.a, v, posterior.conditioned)

    def answer(
        self, y: FloatArray, conditioned: Any, a: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The terms that match a posterior that has moved; see `GaussianApproximation.answer`."""
        pi = softmax(mean, axis=0)
        return pi, y - pi - a


@dataclass(frozen=True, slots=True)
class _Mode:
    """The last iterate; `failure` says why the iteration stopped before its tolerances were met, if so."""

    f: FloatArray
    a: FloatArray
    psi: float
    conditioned: Any
    steps: int
    failure: str


def _find_mode(
    K: Covariance,
    y: FloatArray,
    start: FloatArray | None,
    *,
    tolerance: float,
    max_iterations: int,
) -> _Mode:
    """Climb Psi from a = `start` (C, n), where Psi is higher there than at 0, for y (C, n) of ones and zeros."""
    a, f = np.zeros(y.shape), np.zeros(y.shape)
    psi, rise = _objective(y, a, f), np.inf
    if start is not None:
        f_start = (K @ start.T).T
        if (psi_start := _objective(y, start, f_start)) > psi:
            a, f, psi = start, f_start, psi_start
    eps, size = np.sqrt(y.size) * np.finfo(float).eps, np.sqrt(K.diagonal)
    steps, limit, whole = 0, max_iterations, False
    while True:
        pi = softmax(f, axis=0)
        conditioned = K.conditioned_softmax(pi)
        rounding = eps * np.outer(np.abs(a) @ size, size)  # of f = K a: |K_ij| <= size_i size_j
        psi_rounding = eps * abs(psi) + np.sum(np.abs(a) * rounding)
        gradient = y - pi - a  # of Psi
        steepness = np.abs(gradient)
        flat = steepness <= tolerance * max(1.0, np.abs(a).max()) + pi * rounding + eps
        done = bool(flat.all()) and (whole or rise <= tolerance * abs(psi) + psi_rounding)
        if done:
            break
        lifted, higher = (K @ gradient.T).T, None
        if steps < limit:
            direction = gradient - conditioned.solve(
                lifted
            )  # 8-10, a subtracted before it can cancel
            higher = _climb(K, y, a, direction, -np.inf if whole else psi - psi_rounding)
        if higher is None:  # at the limit, or no ascent along a Newton direction
            if whole or _possible_rise(lifted, gradient) > psi_rounding + _certain_rounding(y):
                break
            whole, limit = True, steps + _WHOLE
            continue
        a, f, psi_new = higher
        rise, psi = abs(psi_new - psi), psi_new
        steps += 1
    failure = (
        f"laplace: Newton stopped after {steps} steps with gradient {steepness.max():.3g} "
        f"and last rise {rise:.3g}; raise max_iterations or tolerance"
    )
    return _Mode(f, a, psi, conditioned, steps, "" if done else failure)


def _objective(y: FloatArray, a: FloatArray, f: FloatArray) -> float:
    """Psi(f) = log p(y | f) - f' K^-1 f / 2 (Eq. 3.34; line 15, corrected)."""
    return log_likelihood(y, f) - 0.5 * float(np.sum(a * f))


def _possible_rise(lifted: FloatArray, gradient: FloatArray) -> float:
    """Return a bound of what any step adds to Psi: g' K g / 2, with its gradient g = y - pi - a, and K g (C, n).

    log p(y | f) is concave, so that Psi(f + K d) <= Psi(f) + g' K d - d' K d / 2 for every d. The bound needs no
    factorization, and so has no error of one.
    """
    return 0.5 * float(np.sum(gradient * lifted))


def _certain_rounding(y: FloatArray) -> float:
    """Return the rounding error of log p(y | f) where every pattern is certain of its class.

    The log-sum-exp of a pattern is then log(1 + little). Its error is a rounding of the 1 for each class, however small
    Psi is. Near the mode of separable classes a Newton step raises Psi by less. Halved until Psi seems to rise, such
    steps do nothing, and the gradient stays at 1e-11.
    """
    return y.size * float(np.finfo(float).eps)


def _climb(
    K: Covariance, y: FloatArray, a: FloatArray, direction: FloatArray, least: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Return a, f and Psi after the longest of the halved steps with Psi >= `least`; None if there is none."""
    for halving in range(_HALVINGS):
        a_new = a + 0.5**halving * direction
        f_new = (K @ a_new.T).T  # 11
        psi = _objective(y, a_new, f_new)
        if psi >= least:
            return a_new, f_new, psi
    return None
