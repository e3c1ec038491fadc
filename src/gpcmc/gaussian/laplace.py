"""Laplace's approximation for the probit and the logistic model: Rasmussen and Williams, Algorithms 3.1 and 3.2.

Newton's iteration climbs Psi(f) = log p(y | f) - f' K^-1 f / 2 in the variables a = K^-1 f, so that
K is never inverted and may be singular. A step that would lower Psi is halved. One step takes one
conditioning of the covariance; 5 to 15 steps are usual.

References
----------
Rasmussen and Williams (2006), Algorithms 3.1, 3.2, 5.1, Eqs. (3.12), (3.13), (3.26), (3.32), (5.22)-(5.24).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from gpcmc._validation import FloatArray, check_option, check_positive, check_positive_int
from gpcmc.covariance.form import Covariance, GradientMatrix
from gpcmc.gaussian.posterior import GaussianApproximation, GaussianPosterior
from gpcmc.likelihood import LIKELIHOODS, Likelihood
from gpcmc.likelihood.logistic import Logistic
from gpcmc.posterior import ConvergenceError

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
        return (
            Logistic(mackay=True) if self.predictive == "mackay" else LIKELIHOODS[self.likelihood]
        )

    def approximate(
        self, covariance: Covariance, y: FloatArray, start: GaussianPosterior | None = None
    ) -> GaussianPosterior:
        """Find the mode of p(f | y) and the Gaussian there; f, a and W are those of one iterate."""
        K, likelihood = covariance, self.record

        def objective(a: FloatArray, f: FloatArray) -> float:
            return float(np.sum(likelihood.log_likelihood(y, f)) - 0.5 * a @ f)

        a = np.zeros(len(y))
        f = np.zeros(len(y))
        psi, rise = objective(a, f), np.inf
        if start is not None:
            f_start = K @ start.a
            if (psi_start := objective(start.a, f_start)) > psi:
                a, f, psi = start.a, f_start, psi_start
        size, eps = np.sqrt(K.diagonal), np.sqrt(len(y)) * np.finfo(float).eps
        for iteration in range(self.max_iterations + 1):
            slope, W = likelihood.derivatives(y, f)
            conditioned = K.conditioned(W)  # 4, 5
            left = slope - a  # the gradient of Psi in f, Eq. 3.13
            rounding = eps * size * (size @ np.abs(a))  # of f = K a: |K_ij| <= size_i size_j
            psi_rounding = eps * abs(psi) + np.abs(a) @ rounding
            steepness = np.abs(left)
            flat = steepness <= self.tolerance * max(1.0, np.max(np.abs(a))) + W * rounding
            done = bool(flat.all()) and rise <= self.tolerance * abs(psi) + psi_rounding
            if done or iteration == self.max_iterations:
                break
            # 6, 7 from what is left of the gradient: the step's rounding falls with that
            direction = left - conditioned.solve(K @ left)
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
            covariance=K,
            log_evidence=psi - 0.5 * conditioned.log_determinant,  # 10, Eq. 3.32
            mean=f,
            a=a,
            conditioned=conditioned,
            likelihood=likelihood,
            y=y,
            method=self,
            work={"newton_steps": iteration},
        )
        if not done:
            raise ConvergenceError(
                f"laplace: Newton stopped after {iteration} steps with gradient {steepness.max():.3g} "
                f"and last rise {rise:.3g}; raise max_iterations or tolerance",
                posterior,
            )
        return posterior

    def gradient(
        self, covariance: Covariance, y: FloatArray, posterior: GaussianPosterior
    ) -> GradientMatrix:
        """Return a a' - R + v a' + a v', v = (I - R K) s, s_i = Sigma_ii (d^3 log p / df_i^3) / 2.

        The first two terms are for a fixed mode (Rasmussen and Williams 2006, Eq. 5.22). The others follow the mode,
        on which W depends (Eqs. 5.23, 5.24).
        """
        third = self.record.third_derivative(y, posterior.mean)
        s = 0.5 * posterior.variance * third
        v = s - posterior.conditioned.solve(covariance @ s)
        return GradientMatrix.of(posterior.a, v, posterior.conditioned)

    def answer(
        self, y: FloatArray, conditioned: Any, a: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The terms that match a posterior that has moved; see `GaussianApproximation.answer`."""
        slope, W = self.record.derivatives(y, mean)
        return W, slope - a
