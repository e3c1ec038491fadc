"""The log marginal likelihood as a function of the kernel's hyperparameters, with its gradient, and its maximum.

Laplace's method and expectation propagation give value and gradient. The hyperparameters are those of ``kernel.theta``:
logarithms. L-BFGS-B climbs within the kernel's bounds, as in scikit-learn.

References
----------
Rasmussen and Williams (2006), sections 5.1, 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance.dense import Dense
from gpcmc.covariance.form import Covariance
from gpcmc.covariance.kernels import evaluate
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.posterior import GaussianApproximation, GaussianPosterior
from gpcmc.inference.climbing import climb
from gpcmc.methods import Method

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

_TOLERANCE = 1e-6  # of expectation propagation in a search: gradients are then good to 1e-6, the values to 1e-10
_NEAR = 1e-3  # a hyperparameter is at its bound if its logarithm is so near
_FLAT = 1e-2  # nats for each unit of a logarithm; steeper is no maximum


def surface_method(method: Method, *, searching: bool = False) -> GaussianApproximation:
    """Return the method whose evidence is climbed: Laplace's method itself, else expectation propagation.

    The evidence of a Monte Carlo method is noisy, and has no gradient; expectation propagation is near it. While
    `searching`, expectation propagation stops earlier, which saves a third of the time.
    """
    found = method if isinstance(method, GaussianApproximation) else ExpectationPropagation()
    if searching and isinstance(found, ExpectationPropagation):
        return replace(found, tolerance=max(found.tolerance, _TOLERANCE))
    return found


@dataclass(slots=True)
class EvidenceSurface:
    """Log marginal likelihood of a kernel's hyperparameters, by a Gaussian approximation.

    Attributes
    ----------
    method : GaussianApproximation
        Laplace's method or expectation propagation.
    kernel : Kernel
        Its hyperparameters that are not fixed are the arguments.
    X : (n, d) array
    y : (n,) or (C, n) array
        Labels as the method takes them.
    """

    method: GaussianApproximation
    kernel: Kernel
    X: FloatArray
    y: FloatArray
    _last: GaussianPosterior | None = None

    @one_thread()
    def value(self, theta: FloatArray) -> float:
        """Return log Z (nats) at theta, the logarithms of the hyperparameters.

        Raises
        ------
        ValueError, ConvergenceError
            As the method's `approximate`.
        """
        return self._approximate(self._covariance(theta)).log_evidence

    @one_thread()
    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z (nats) and its gradient (p,) at theta.

        Raises
        ------
        ValueError, ConvergenceError
            As the method's `approximate`.
        """
        K = self._covariance(theta)
        posterior = self._approximate(K)
        return posterior.log_evidence, K.contract(self.method.gradient(K, self.y, posterior))

    def _covariance(self, theta: FloatArray) -> Covariance:
        kernel = self.kernel.clone_with_theta(theta)
        return Dense(evaluate(kernel, self.X), kernel, self.X)

    def _approximate(self, K: Covariance) -> GaussianPosterior:
        """Start from the last posterior: an optimiser's next point is seldom far."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = self.method.approximate(K, self.y, self._last)
        if not -np.inf < found.log_evidence <= 0.0:
            raise ValueError(
                "theta must make smaller variances: the log marginal likelihood is lost in rounding, "
                f"at {found.log_evidence:.3g}"
            )
        self._last = found
        return found


@dataclass(frozen=True, slots=True)
class Optimum:
    """The highest point of an evidence surface that was found.

    Attributes
    ----------
    theta : (p,) array
        Logarithms of the hyperparameters.
    log_evidence : float
        There, in nats.
    at_bound : tuple of str
        Names of the hyperparameters that ended at a bound, as in ``"k2__length_scale[1]"``, counted from 0.
    converged : bool
        Whether the surface is flat there, apart from slopes towards a bound.
    evaluations : int
        Of value and gradient, over all starts.
    """

    theta: FloatArray
    log_evidence: float
    at_bound: tuple[str, ...]
    converged: bool
    evaluations: int


def maximize(surface: EvidenceSurface, n_restarts: int, rng: np.random.Generator) -> Optimum:
    """Climb from the kernel's own hyperparameters, and from others drawn log-uniformly within the bounds.

    A point where the method fails, because a covariance is too large for floating point, counts as a poor one.

    Parameters
    ----------
    surface : EvidenceSurface
    n_restarts : int
        Starts besides the first.
    rng : numpy.random.Generator
        Used by restarts only.

    Raises
    ------
    ValueError
        If a bound is not finite and there are restarts, or the method fails at all starts.
    """
    bounds: FloatArray = surface.kernel.bounds
    lowest, highest = bounds.T
    starts = [np.clip(surface.kernel.theta, lowest, highest)]
    if n_restarts:
        if not np.isfinite(bounds).all():
            raise ValueError(
                f"n_restarts={n_restarts} needs a kernel with finite bounds; got {bounds}"
            )
        starts += list(rng.uniform(lowest, highest, size=(n_restarts, len(bounds))))
    poor = -10.0 * np.log(2.0) * len(surface.X)
    found = climb(surface.value_and_gradient, starts, bounds, poor=poor)
    if not np.isfinite(found.value) and found.failure is not None:
        raise ValueError(
            f"kernel: {found.failure} (at every start of the search, {len(starts)} in all)"
        ) from found.failure
    inside = np.clip(found.theta + found.gradient, lowest, highest) - found.theta
    return Optimum(
        theta=found.theta,
        log_evidence=found.value,
        at_bound=tuple(
            name for name, _, _ in bounded(surface.kernel.clone_with_theta(found.theta))
        ),
        converged=bool(np.abs(inside).max() <= _FLAT),
        evaluations=found.evaluations,
    )


def bounded(kernel: Kernel) -> list[tuple[str, float, str]]:
    """Return name, value and side of the hyperparameters that are at a bound.

    Names are those of scikit-learn, with a number from 0 where there are several: ``k2__length_scale[1]``.
    """
    names: list[str] = []
    for parameter in kernel.hyperparameters:
        if not parameter.fixed:
            several = parameter.n_elements > 1
            names += [
                f"{parameter.name}[{k}]" if several else parameter.name
                for k in range(parameter.n_elements)
            ]
    found = []
    for name, theta, (low, high) in zip(names, kernel.theta, kernel.bounds, strict=True):
        if abs(theta - high) <= _NEAR:
            found.append((name, float(np.exp(theta)), "upper"))
        elif abs(theta - low) <= _NEAR:
            found.append((name, float(np.exp(theta)), "lower"))
    return found
