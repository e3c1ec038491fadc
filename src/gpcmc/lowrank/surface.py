"""Evidence under a covariance of low rank as a function of the kernel's hyperparameters, and its maximum.

Inducing inputs stay where they are while L-BFGS climbs, and are chosen anew at each maximum.

References
----------
Rasmussen and Williams (2006), section 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from gpcmc._progress import Progress
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_rng
from gpcmc.covariance.lowrank import LowRank, low_rank
from gpcmc.covariance.pivoted import MAX_RANK, Inducing, inducing_at
from gpcmc.gaussian.posterior import GaussianApproximation, GaussianPosterior
from gpcmc.inference.evidence import EvidenceSurface, Optimum, maximize
from gpcmc.posterior import ConvergenceError

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Of the covariances in a search: maxima move by less than their own uncertainty.
TOLERANCE = 1e-3
_STEP = 1e-5  # of central differences, in logarithms of hyperparameters
_SETTLED = 1e-2  # a maximum that moves by less, in logarithms, keeps its inducing inputs
#: Nats of correction: with more, inducing inputs are chosen for a tenth of the tolerance.
_COST = 0.5
_REFINED = 3  # times, at most
_ROUNDS = 8
_FLAT = 1e-2  # nats for each unit of a logarithm, times the root of n: a hundredth of a standard deviation away
_FIRST = 2000  # patterns of the first climb; four times as many of the next


@dataclass(slots=True)
class LowRankSurface:
    """Log marginal likelihood of a kernel's hyperparameters at fixed inducing inputs, by a Gaussian approximation.

    Attributes
    ----------
    method : ExpectationPropagation, Laplace or MulticlassLaplace
    kernel : Kernel
        Its hyperparameters that are not fixed are the arguments.
    X : (n, d) array
    y : (n,) or (C, n) array
        Labels -1/+1, or ones and zeros of C classes.
    Z : (r, d) array
        Inducing inputs.
    progress : Progress, optional
        What is told of each value with its gradient.
    """

    method: GaussianApproximation
    kernel: Kernel
    X: FloatArray
    y: FloatArray
    Z: FloatArray
    progress: Progress | None = None
    _last: GaussianPosterior | None = None

    @one_thread()
    def value(self, theta: FloatArray) -> float:
        """Return log Z (nats), without a correction, at theta, the logarithms of the hyperparameters.

        Raises
        ------
        ValueError, ConvergenceError
            As the method's own.
        """
        return self._fitted(theta)[2].log_evidence

    @one_thread()
    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z (nats) and its gradient (p,) at theta, the logarithms of the hyperparameters.

        Raises
        ------
        ValueError, ConvergenceError
            As the method's own.
        """
        if self.progress is not None:
            self.progress.evaluations += 1
        inducing, K, posterior = self._fitted(theta)
        gradient = K.contract(self.method.gradient(K, self.y, posterior))
        if self.progress is not None:
            self.progress.evaluated(inducing.kernel, posterior.log_evidence)
        return posterior.log_evidence, gradient

    def _fitted(self, theta: FloatArray) -> tuple[Inducing, LowRank, GaussianPosterior]:
        """Start from the last posterior: an optimiser's next point is seldom far."""
        inducing = inducing_at(self.kernel.clone_with_theta(theta), self.Z)
        K = LowRank(*inducing.rows(self.X), inducing, X=self.X)
        self._last = self.method.approximate(K, self.y, self._last)
        return inducing, K, self._last


def maximize_low_rank(
    method: GaussianApproximation,
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    *,
    max_rank: int = MAX_RANK,
    tolerance: float = TOLERANCE,
    n_restarts: int = 0,
    rng: np.random.Generator | None = None,
    verbose: int = 0,
) -> Optimum:
    """Climb to the highest evidence, first with some of the patterns, then with more, then with all.

    Parameters
    ----------
    method : ExpectationPropagation, Laplace or MulticlassLaplace
    kernel : Kernel
        The climb starts from its hyperparameters.
    X : (n, d) array
    y : (n,) or (C, n) array
        Labels -1/+1, or ones and zeros of C classes.
    max_rank : int
        Inducing inputs at most.
    tolerance : float
        As of `gpcmc.gp.prior`. The search goes on to a tenth of it, and so on, while the correction of the evidence
        where a climb begins is above half a nat, and `max_rank` allows.
    n_restarts : int
        Further starts, log-uniform within the kernel's bounds. They climb with the first 2000 patterns, where they need
        a rank of 1000 at most; of all ends that with the highest evidence, corrected and at inducing inputs of its own,
        is climbed on.
    rng : numpy.random.Generator, optional
        Required by restarts.
    verbose : int
        1 prints where each climb begins and each tenth evaluation, 2 every one; 0 says nothing.

    Returns
    -------
    Optimum
        Its evidence is that of the covariance of low rank, without a correction.

    Raises
    ------
    ValueError
        If the tolerance needs a larger rank at all starts, or there are restarts and a bound is not finite.
    """
    order = np.random.default_rng(0).permutation(len(X))
    climber = _Climber(method, X, y, max_rank, Progress(verbose))
    first = order[:_FIRST] if len(X) > _FIRST else np.arange(len(X))
    if n_restarts:
        starts = [kernel, *_drawn(kernel, n_restarts, check_rng("rng", rng))]
        some = replace(climber, max_rank=min(max_rank, _FIRST // 2))
        kernel = some.best_end(starts, first, tolerance)
    here = first
    for _ in range(_ROUNDS):
        found, tolerance = climber.climb(kernel, here, tolerance)
        moved = float(np.max(np.abs(found.theta - kernel.theta)))
        kernel = kernel.clone_with_theta(found.theta)
        if len(here) == len(X) and moved <= _SETTLED:
            break
        count = 4 * len(here)
        here = order[:count] if count < len(X) else np.arange(len(X))
    return replace(found, evaluations=climber.progress.evaluations)


@dataclass(slots=True)
class _Climber:
    """Climbs with some of the patterns, and tells how that goes."""

    method: GaussianApproximation
    X: FloatArray
    y: FloatArray
    max_rank: int
    progress: Progress

    def climb(
        self, kernel: Kernel, here: NDArray[np.intp], tolerance: float
    ) -> tuple[Optimum, float]:
        """Return the maximum at the inducing inputs of a kernel, and their tolerance."""
        prior, tolerance = self._prior(kernel, here, tolerance)
        assert prior.inducing is not None
        Z = prior.inducing.Z
        self.progress.says(f"{len(here)} patterns, {len(Z)} inducing inputs, from {kernel}")
        surface = LowRankSurface(
            self.method, kernel, self.X[here], self.y[..., here], Z, progress=self.progress
        )
        found = maximize(cast(EvidenceSurface, surface), 0, np.random.default_rng(0))
        if (
            not found.converged
        ):  # L-BFGS looks at shares of the evidence, which is large where patterns are many
            slope = replace(surface, progress=None).value_and_gradient(found.theta)[1]
            inside = np.clip(found.theta + slope, *kernel.bounds.T) - found.theta
            flat = np.abs(inside).max() <= _FLAT * np.sqrt(len(here))
            found = replace(found, converged=bool(flat))
        return found, tolerance

    def _prior(
        self, kernel: Kernel, here: NDArray[np.intp], tolerance: float
    ) -> tuple[LowRank, float]:
        """Go on to a tenth of the tolerance while the correction is large.

        A share of the variance says little where the variance is large, or the patterns are many.
        """
        X, rank = self.X[here], self.max_rank
        prior = low_rank(kernel, X, tolerance=tolerance, max_rank=rank)
        for _ in range(_REFINED):
            try:
                if abs(self._corrected(prior, here)[1]) <= _COST:
                    break
                prior = low_rank(kernel, X, tolerance=0.1 * tolerance, max_rank=rank)
            except (ValueError, ConvergenceError):  # it needs a larger rank than is allowed
                break
            tolerance *= 0.1
        return prior, tolerance

    @one_thread()
    def _corrected(self, K: LowRank, here: NDArray[np.intp]) -> tuple[float, float]:
        """Return the evidence of some of the patterns, of which a class may be missing, and its correction."""
        y = self.y[..., here]
        posterior = self.method.approximate(K, y)
        change = K.correction(self.method.gradient(K, y, posterior)).change
        return posterior.log_evidence + change, change

    def best_end(self, starts: list[Kernel], here: NDArray[np.intp], tolerance: float) -> Kernel:
        """Return the end with the highest evidence; a start that fails, or whose end does, is left out.

        Raises
        ------
        ValueError
            If all fail: the reason of the first.
        """
        ends, failures = [], []
        for start in starts:
            try:
                end = start.clone_with_theta(self.climb(start, here, tolerance)[0].theta)
                prior, _ = self._prior(end, here, tolerance)
                ends.append((self._corrected(prior, here)[0], end))
            except (ValueError, ConvergenceError) as error:
                failures.append(error)
        if not ends:
            raise failures[0]
        return max(ends, key=lambda end: end[0])[1]


def _drawn(kernel: Kernel, count: int, rng: np.random.Generator) -> list[Kernel]:
    """Return kernels with hyperparameters drawn log-uniformly within the bounds."""
    low, high = kernel.bounds.T
    if not np.isfinite(kernel.bounds).all():
        raise ValueError(
            f"n_restarts={count} needs a kernel with finite bounds; got {kernel.bounds}"
        )
    return [kernel.clone_with_theta(theta) for theta in rng.uniform(low, high, (count, len(low)))]
