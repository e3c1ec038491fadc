"""Laplace's approximation for the probit and the logistic model: Rasmussen and Williams, Algorithms 3.1 and 3.2.

Newton's iteration climbs Psi(f) = log p(y | f) - f' K^-1 f / 2 in the variables a = K^-1 f, so that
K is never inverted and may be singular. A step that would lower Psi is halved. One step takes one
Cholesky factorization, n^3 / 3 flops; 5 to 15 steps are usual.

References
----------
Rasmussen and Williams (2006), Algorithms 3.1, 3.2, 5.1, Eqs. (3.12), (3.13), (3.26), (3.32), (5.22)-(5.24).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from gpcmc._validation import FloatArray, check_option, check_positive, check_positive_int
from gpcmc.gp.likelihood import LIKELIHOODS, LOGISTIC, Likelihood, mackay_predictive_probability
from gpcmc.inference.gaussian import (
    GaussianApproximation,
    GaussianPosterior,
    factorize,
    noise_precision,
)
from gpcmc.inference.interface import ConvergenceError

_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Laplace(GaussianApproximation):
    """Options of Laplace's method.

    Attributes
    ----------
    tolerance : float
        Newton stops when Psi rises by less than this times ``|Psi|`` and no entry of its gradient
        exceeds this times ``max(1, max |a|)``, or what rounding in f = K a leaves of either.
    max_iterations : int
        Newton steps at most.
    likelihood : {"probit", "logistic"}
        p(y | f): Phi(y f), or 1 / (1 + exp(-y f)).
    predictive : {"exact", "mackay"}
        The likelihood's mean over the latent Gaussian at a test input: exact, or, for the logistic likelihood and two
        classes only, by MacKay's approximation, which is off by up to 0.018.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    matrices: ClassVar[float] = 6.0

    tolerance: float = 1e-12
    max_iterations: int = 200
    likelihood: Literal["probit", "logistic"] = "probit"
    predictive: Literal["exact", "mackay"] = "exact"

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance)
        check_positive_int("max_iterations", self.max_iterations)
        check_option("likelihood", self.likelihood, tuple(LIKELIHOODS))
        check_option("predictive", self.predictive, ("exact", "mackay"))
        if self.predictive == "mackay" and self.likelihood != "logistic":
            raise ValueError(
                "predictive='mackay' is for likelihood='logistic'; the probit's integral is exact in "
                f"closed form; got likelihood={self.likelihood!r}"
            )

    @property
    def record(self) -> Likelihood:
        """The likelihood that the options name, with the predictive integral that they name."""
        if self.predictive == "mackay":
            return replace(LOGISTIC, predictive_probability=mackay_predictive_probability)
        return LIKELIHOODS[self.likelihood]

    def approximate(
        self, K: FloatArray, y: FloatArray, start: GaussianPosterior | None = None
    ) -> GaussianPosterior:
        """Find the mode of p(f | y) and the Gaussian there; f, a, W and L are those of one iterate."""
        likelihood = self.record

        def objective(a: FloatArray, f: FloatArray) -> float:
            return float(np.sum(likelihood.log_likelihood(y, f)) - 0.5 * a @ f)

        a = np.zeros(len(y))
        f = np.zeros(len(y))
        psi, rise = objective(a, f), np.inf
        if start is not None:
            f_start = K @ start.a
            if (psi_start := objective(start.a, f_start)) > psi:
                a, f, psi = start.a, f_start, psi_start
        magnitude, eps = np.abs(K), np.sqrt(len(y)) * np.finfo(float).eps
        for iteration in range(self.max_iterations + 1):
            gradient, W = likelihood.derivatives(y, f)
            L = factorize(K, W)  # 4, 5
            rounding = eps * (magnitude @ np.abs(a))  # rounding error of f = K a, and of Psi
            psi_rounding = eps * abs(psi) + np.abs(a) @ rounding
            steepness = np.abs(gradient - a)  # of Psi, Eq. 3.13
            flat = steepness <= self.tolerance * max(1.0, np.max(np.abs(a))) + W * rounding
            done = bool(flat.all()) and rise <= self.tolerance * abs(psi) + psi_rounding
            if done or iteration == self.max_iterations:
                break
            root = np.sqrt(W)
            b = W * f + gradient  # 6
            direction = b - root * cho_solve((L, True), root * (K @ b), check_finite=False) - a  # 7
            for halving in range(_HALVINGS):
                a_new = a + 0.5**halving * direction
                f_new = K @ a_new  # 8
                psi_new = objective(a_new, f_new)
                if psi_new >= psi - psi_rounding:
                    break
            else:
                break  # no ascent along a Newton direction: the iterate is as good as it gets
            rise = abs(psi_new - psi)
            a, f, psi = a_new, f_new, psi_new

        posterior = GaussianPosterior(
            log_evidence=psi - float(np.sum(np.log(np.diag(L)))),  # 10, Eq. 3.32
            mean=f,
            a=a,
            S=W,
            L=L,
            work={"newton_steps": iteration, "cholesky_factorizations": iteration + 1},
            likelihood=likelihood,
        )
        if not done:
            raise ConvergenceError(
                f"laplace: Newton stopped after {iteration} steps with gradient {steepness.max():.3g} "
                f"and last rise {rise:.3g}; raise max_iterations or tolerance",
                posterior,
            )
        return posterior

    def gradient_matrix(
        self, K: FloatArray, y: FloatArray, posterior: GaussianPosterior
    ) -> FloatArray:
        """Return M = a a' - R + v a' + a v', v = (I - R K) s, s_i = Sigma_ii (d^3 log p / df_i^3) / 2.

        The first two terms are for a fixed mode (Rasmussen and Williams 2006, Eq. 5.22). The others follow the mode,
        on which W depends (Eqs. 5.23, 5.24).
        """
        a, R = posterior.a, noise_precision(posterior)
        half = solve_triangular(
            posterior.L, np.sqrt(posterior.S)[:, None] * K, lower=True, check_finite=False
        )
        variance = K.diagonal() - np.einsum("ij,ij->j", half, half)
        s = 0.5 * variance * posterior.likelihood.third_derivative(y, posterior.mean)
        v = s - R @ (K @ s)
        across = np.outer(v + 0.5 * a, a)
        return across + across.T - R
