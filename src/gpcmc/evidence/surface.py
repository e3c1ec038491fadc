"""The log marginal likelihood of a kernel's hyperparameters: one surface for all methods and forms of covariance.

The hyperparameters are those of ``kernel.theta``: logarithms of those that are not fixed. A surface keeps the last
posterior, from which the next evaluation starts: an optimiser's next point is seldom far.

References
----------
Rasmussen and Williams (2006), sections 5.1, 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance import Covariance, GradientMatrix
from gpcmc.evidence.forms import Climbed, dense
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.posterior import GaussianApproximation
from gpcmc.methods import Method
from gpcmc.rectangle.classification import OrdinalTwisted

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

_TOLERANCE = 2e-6  # of expectation propagation in a search: gradients are then good to 1e-5, the values to 1e-9


class Approximation(Protocol):
    """A method whose evidence has a gradient."""

    def approximate(self, covariance: Covariance, y: FloatArray, start: Any = None) -> Any:
        """Return the posterior, with its `log_evidence`; `start` is one of another covariance and the same labels."""
        ...

    def gradient(self, covariance: Covariance, y: FloatArray, posterior: Any) -> GradientMatrix:
        """Return M with d log Z = tr(M dK) / 2."""
        ...


def surface_method(method: Method, *, searching: bool = False) -> Approximation:
    """Return the method whose evidence is climbed: Laplace's method itself, else expectation propagation.

    The evidence of a Monte Carlo method is noisy, and has no gradient; expectation propagation is near it. While
    `searching`, expectation propagation stops earlier, which saves a third of the time.
    """
    if isinstance(method, GaussianApproximation):
        found = method
    elif isinstance(method, OrdinalTwisted):
        found = ExpectationPropagation(likelihood=method.likelihood)
    else:
        found = ExpectationPropagation()
    if searching and isinstance(found, ExpectationPropagation):
        return replace(found, tolerance=max(found.tolerance, _TOLERANCE))
    return found


@dataclass(slots=True)
class Surface:
    """Log marginal likelihood (nats) of a kernel's hyperparameters.

    Attributes
    ----------
    method : Approximation
        Whose evidence it is.
    kernel : Kernel
        Its hyperparameters that are not fixed are the arguments.
    X : (n, d) array, or n things that the kernel takes
    y : (n,) or (C, n) array
        Labels as the method takes them.
    form : callable
        Takes theta (p,) and returns the covariance there; by default a dense one.
    posterior : object or None
        The last one.
    """

    method: Approximation
    kernel: Kernel
    X: Any
    y: FloatArray
    form: Climbed | None = None
    posterior: Any = None

    def __post_init__(self) -> None:
        if self.form is None:
            self.form = dense(self.kernel, self.X)

    @property
    def poor(self) -> float:
        """A value (nats) below any that a search should end at: ten times that of labels by the toss of a coin."""
        return -10.0 * np.log(2.0) * len(self.X)

    @one_thread()
    def value(self, theta: FloatArray) -> float:
        """Return log Z (nats) at theta.

        Raises
        ------
        ValueError
            If theta makes a covariance that floating point cannot hold.
        ConvergenceError
            If the method does not converge.
        """
        return self._approximate(theta)[1].log_evidence

    @one_thread()
    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z (nats) and its gradient (p,) at theta.

        Raises
        ------
        ValueError, ConvergenceError
            As of `value`.
        """
        covariance, posterior = self._approximate(theta)
        M = self.method.gradient(covariance, self.y, posterior)
        return posterior.log_evidence, covariance.contract(M)

    def _approximate(self, theta: FloatArray) -> tuple[Covariance, Any]:
        assert self.form is not None
        covariance = self.form(np.asarray(theta, dtype=np.float64))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = self.method.approximate(covariance, self.y, self.posterior)
        if not -np.inf < found.log_evidence <= 0.0:
            raise ValueError(
                "theta must make smaller variances: the log marginal likelihood is lost in rounding, "
                f"at {found.log_evidence:.3g}"
            )
        self.posterior = found
        return covariance, found
