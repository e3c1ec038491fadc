"""Classes from latent values with a Gaussian process prior: N(8) to N(11), sampled as in section 5 of Neal (1997)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from gpcmc._validation import FloatArray
from studies.neal1997.model._gibbs import scan
from studies.neal1997.model.factor import Factor, factorise
from studies.neal1997.model.hamiltonian import Point, persistent_step
from studies.neal1997.model.priors import Gamma, Hierarchy, Priors

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Latent values of test cases at once, in numbers of type float64.
_BLOCK = 2**22


@dataclass(frozen=True)
class ClassificationState:
    """State of a chain.

    Attributes
    ----------
    point : Point
        Log hyperparameters (p,), and the factorised covariance there.
    momentum : (p,) array
    latent : (k, n) array
        Latent values of the training cases, a row a class.
    accepted : int
        Hyperparameter updates of the latest iteration that were accepted.
    """

    point: Point
    momentum: FloatArray
    latent: FloatArray
    accepted: int = 0


class Classification:
    """Softmax or logistic classification: classes have probabilities proportional to exp(latent value).

    (N(10) has the opposite sign, which is the same model.) The latent values of all classes are independent Gaussian
    processes with the same hyperparameters. A kernel with a large `WhiteKernel` part (jitter) makes the model probit.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        With some noise, so that its matrix can be inverted.
    priors : sequence of Gamma or Hierarchy
        See `studies.neal1997.model.priors.Priors`.
    X : (n, d) array
        Inputs.
    t : (n,) array of int
        Classes 0, 1, ...
    classes : int
        How many there are. Two have one latent value, the log odds of class 1; more have one each.
    """

    def __init__(
        self,
        kernel: Kernel,
        priors: Sequence[Gamma | Hierarchy],
        X: FloatArray,
        t: NDArray[np.int64],
        *,
        classes: int,
    ) -> None:
        self.X, self.t = X, t
        self.priors = Priors(kernel, priors)
        self.rows = 1 if classes == 2 else classes

    def start(self) -> ClassificationState:
        """Return a state at the kernel's own hyperparameters, with latent values of zero.

        Raises
        ------
        ValueError
            If the kernel's matrix is not positive definite there.
        """
        latent = np.zeros((self.rows, len(self.X)))
        point = self._at(self.priors.start, latent)
        if point is None:
            raise ValueError("kernel must be positive definite at the inputs; add a WhiteKernel")
        return ClassificationState(point, np.zeros(len(self.priors)), latent)

    def state(self, x: FloatArray, latent: FloatArray) -> ClassificationState:
        """Return a state at log hyperparameters x (p,) and latent values (k, n), for example a saved one.

        Raises
        ------
        ValueError
            If the kernel's matrix is not positive definite at x.
        """
        values = latent.copy()
        point = self._at(x, values)
        if point is None:
            raise ValueError("x must make the kernel positive definite")
        return ClassificationState(point, np.zeros(len(self.priors)), values)

    def iterate(
        self,
        state: ClassificationState,
        *,
        updates: int = 5,
        scans: int = 100,
        persistence: float,
        factor: float,
        rng: np.random.Generator,
    ) -> ClassificationState:
        """Make one iteration: so many times Gibbs scans, then one leapfrog step of the hyperparameters.

        Parameters
        ----------
        state : ClassificationState
            Not changed.
        updates : int
            Of the hyperparameters, at least 1.
        scans : int
            Gibbs scans before each, at least 1.
        persistence : float
            How much of the momentum stays at each update, from 0 to below 1. With 1 the momentum would never be
            renewed.
        factor : float
            Of the step sizes ``priors.steps``, above 0.
        rng : numpy.random.Generator
        """
        point, momentum, latent = state.point, state.momentum, state.latent.copy()
        accepted = 0
        for _ in range(updates):
            scan(point.factor.precision, latent, self.t, scans, rng)
            point, momentum, taken = persistent_step(
                self._evaluate(point.x, point.factor, latent),
                momentum,
                lambda x: self._at(x, latent),
                steps=factor * self.priors.steps,
                persistence=persistence,
                rng=rng,
            )
            accepted += taken
        return ClassificationState(point, momentum, latent, accepted)

    def predict_proba(
        self,
        state: ClassificationState,
        X_star: FloatArray,
        *,
        draws: int = 100,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return class probabilities (m, classes) of test inputs (m, d), given one state.

        Parameters
        ----------
        state : ClassificationState
        X_star : (m, d) array
        draws : int
            Of the latent values of each test case, over which probabilities are averaged; at least 1.
        rng : numpy.random.Generator
        """
        kernel = self.priors.kernel_at(state.point.x)
        weights, variance = state.point.factor.conditional(kernel, self.X, X_star)
        mean = state.latent @ weights
        scale = np.sqrt(variance)[:, None]
        total = np.zeros((len(variance), max(self.rows, 2)))
        at_once = max(1, _BLOCK // max(1, mean.size))
        for first in range(0, draws, at_once):
            count = min(at_once, draws - first)
            latent = mean[:, :, None] + scale * rng.standard_normal((*mean.shape, count))
            if self.rows == 1:
                share = expit(latent[0]).sum(axis=1)
                total += np.stack([count - share, share], axis=1)
            else:
                total += softmax(latent, axis=0).sum(axis=2).T
        return total / draws

    def _at(self, x: FloatArray, latent: FloatArray) -> Point | None:
        factor = factorise(self.priors, x, self.X)
        return None if factor is None else self._evaluate(x, factor, latent)

    def _evaluate(self, x: FloatArray, factor: Factor, latent: FloatArray) -> Point:
        """The joint log density of x and the latent values, and its gradient with respect to x."""
        value, gradient = self.priors.log_density(x)
        slopes = self.priors.pull_back(factor.contract(factor.curvature(latent)))
        return Point(x, value + factor.log_density(latent), gradient + slopes, factor)
