"""Regression on a Gaussian process with Gaussian noise or Student's t noise; sections 2 and 5 of Neal (1997)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from gpcmc._validation import FloatArray
from studies.neal1997.model.factor import FARTHEST, Factor, factorise
from studies.neal1997.model.hamiltonian import Point, trajectory
from studies.neal1997.model.priors import Gamma, Hierarchy, Priors, gamma_log_density

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Step of the trapezoidal rule over the logarithm of a test case's noise scale.
_STEP = 0.05


@dataclass(frozen=True)
class RegressionState:
    """State of a chain.

    Attributes
    ----------
    point : Point
        Logarithms (p + 1,) of the kernel's hyperparameters, then of the noise; and the factorised covariance there.
    variances : (n,) array
        Of the noise of each case. With Gaussian noise all are equal to that of the point.
    accepted : bool
        Whether the latest trajectory was.
    """

    point: Point
    variances: FloatArray
    accepted: bool = True

    @property
    def noise(self) -> float:
        """The noise's scale sigma."""
        return math.exp(float(self.point.x[-1]))


class Regression:
    """Targets are values of a Gaussian process with noise.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Of the latent values, without the noise. Its matrix may be singular, as that of a smooth kernel is to
        rounding, because the noise adds to the diagonal. Where the noise is too small for that, a `WhiteKernel`
        (jitter) helps.
    priors : sequence of Gamma or Hierarchy
        Of the kernel, see `studies.neal1997.model.priors.Priors`.
    noise : Gamma
        Prior of the noise's scale sigma.
    X : (n, d) array
        Inputs.
    t : (n,) array
        Targets.
    degrees : float or None
        Degrees of freedom of t noise with scale sigma, sampled as Gaussian noise whose precisions are gamma with mean
        sigma^-2; None for Gaussian noise of standard deviation sigma.
    sigma : float
        Where sigma begins.
    """

    def __init__(
        self,
        kernel: Kernel,
        priors: Sequence[Gamma | Hierarchy],
        noise: Gamma,
        X: FloatArray,
        t: FloatArray,
        *,
        degrees: float | None = None,
        sigma: float = 0.1,
    ) -> None:
        self.X, self.t = X, t
        self.priors, self.noise, self.degrees = Priors(kernel, priors), noise, degrees
        self._start = np.append(self.priors.start, math.log(sigma))
        # section 5: the noise's posterior is the narrower the more cases there are
        self.steps = np.append(self.priors.steps, 1.0 / math.sqrt(len(self.t) + 1))

    def start(self) -> RegressionState:
        """Return a state at the kernel's own hyperparameters and the given sigma.

        Raises
        ------
        ValueError
            If the covariance of the targets is not positive definite there.
        """
        variances = np.full(len(self.t), math.exp(2.0 * self._start[-1]))
        point = self._at(self._start, variances)
        if point is None:
            raise ValueError(
                "kernel must make the covariance of the targets positive definite, with noise sigma "
                f"= {math.exp(self._start[-1]):.3g}; add a WhiteKernel, or begin with a larger sigma"
            )
        return RegressionState(point, variances)

    def state(self, x: FloatArray, variances: FloatArray) -> RegressionState:
        """Return a state at logarithms x (p + 1,) and noise variances (n,), for example a saved one.

        With Gaussian noise all variances are exp(2 x[-1]).

        Raises
        ------
        ValueError
            If the covariance of the targets is not positive definite.
        """
        point = self._at(x, variances)
        if point is None:
            raise ValueError("x must make the covariance of the targets positive definite")
        return RegressionState(point, variances)

    def iterate(
        self,
        state: RegressionState,
        *,
        leapfrogs: int = 20,
        window: int = 4,
        factor: float,
        rng: np.random.Generator,
    ) -> RegressionState:
        """Make one iteration: a trajectory of all hyperparameters, then, with t noise, new noise variances.

        Parameters
        ----------
        state : RegressionState
        leapfrogs : int
            Steps of the trajectory, at least 1.
        window : int
            States of its windows, 1 to ``leapfrogs + 1``; see `studies.neal1997.model.hamiltonian.trajectory`.
        factor : float
            Of the step sizes ``steps``, above 0: 0.1 a hyperparameter, 1 / sqrt(n + 1) for sigma.
        rng : numpy.random.Generator

        Raises
        ------
        FloatingPointError
            If the covariance of the targets is not positive definite with new noise variances.
        """
        variances = state.variances
        point, accepted = trajectory(
            state.point,
            lambda x: self._at(x, variances),
            steps=factor * self.steps,
            leapfrogs=leapfrogs,
            window=window,
            rng=rng,
        )
        if self.degrees is None:
            variances = np.full(len(self.t), math.exp(2.0 * point.x[-1]))
            return RegressionState(point, variances, accepted)
        variances = self._variances(point, variances, rng)
        renewed = self._at(point.x, variances)
        if renewed is None:  # not with jitter: the variances only add to the diagonal
            raise FloatingPointError(
                "the covariance of the targets is not positive definite; add jitter"
            )
        return RegressionState(renewed, variances, accepted)

    def predict(self, state: RegressionState, X_star: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,) of latent values at test inputs (m, d), given one state: N(4), N(5)."""
        kernel = self.priors.kernel_at(state.point.x[:-1])
        weights, variance = state.point.factor.conditional(kernel, self.X, X_star)
        return self.t @ weights, variance

    def log_predictive(
        self, state: RegressionState, X_star: FloatArray, t_star: FloatArray
    ) -> FloatArray:
        """Return the log density (m,) of test targets (m,), given one state.

        With t noise the density is a mixture of normal ones over the noise variance of the test case. In the logarithm
        of that variance it is smooth, and the trapezoidal rule is exact to rounding.
        """
        mean, variance = self.predict(state, X_star)
        if self.degrees is None:
            return norm.logpdf(t_star, mean, np.sqrt(variance + state.noise**2))
        # the density falls as exp(-degrees x) above and much faster below
        x = np.arange(-5.0, 5.0 + 40.0 / self.degrees, _STEP)
        weight = [gamma_log_density(np.array([one]), 0.0, self.degrees)[0] for one in x]
        deviation = np.sqrt(variance[:, None] + (state.noise * np.exp(x)) ** 2)
        levels = norm.logpdf(t_star[:, None], mean[:, None], deviation)
        return logsumexp(levels + np.array(weight), axis=1) + math.log(_STEP)

    def _latent(
        self, factor: Factor, variances: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw latent values (n,) of the training cases given targets and hyperparameters, N(19) and N(20).

        A draw from the prior is corrected by what it gets wrong at the targets, which gives that law. The kernel's
        matrix may be singular.
        """
        n = len(self.t)
        latent = factor.prior_root() @ rng.standard_normal(n)
        made = latent + np.sqrt(variances) * rng.standard_normal(n)
        return latent + factor.K @ factor.solve(self.t - made)

    def _variances(
        self, point: Point, variances: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw 1 / v_i from gamma with shape (alpha + 1) / 2 and rate (alpha sigma^2 + (t_i - y_i)^2) / 2."""
        assert self.degrees is not None
        latent = self._latent(point.factor, variances, rng)
        rate = 0.5 * (self.degrees * math.exp(2.0 * point.x[-1]) + (self.t - latent) ** 2)
        return rate / rng.standard_gamma(0.5 * (self.degrees + 1.0), len(self.t))

    def _at(self, x: FloatArray, variances: FloatArray) -> Point | None:
        """The joint log density of x, the targets and, with t noise, the noise variances; and its gradient."""
        if abs(x[-1]) >= FARTHEST:
            return None
        sigma = math.exp(2.0 * float(x[-1]))
        factor = factorise(
            self.priors, x[:-1], self.X, sigma if self.degrees is None else variances
        )
        if factor is None:
            return None
        value, gradient = self.priors.log_density(x[:-1])
        of_noise, slope = self.noise.log_density(float(x[-1]))
        M = factor.curvature(self.t[None])
        gradient = gradient + self.priors.pull_back(factor.contract(M))
        value += of_noise + factor.log_density(self.t[None])
        if self.degrees is None:
            slope += sigma * float(np.trace(M))
        else:
            own, _, of_top = gamma_log_density(0.5 * np.log(variances), float(x[-1]), self.degrees)
            value += own
            slope += of_top
        return Point(x, value, np.append(gradient, slope), factor)
