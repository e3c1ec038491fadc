"""The log marginal likelihood as a function of the kernel's hyperparameters, with its gradient.

Laplace's method and expectation propagation give both. The hyperparameters are those of ``kernel.theta``: logarithms.

References
----------
Rasmussen and Williams (2006), sections 5.1, 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.gp.gradient import covariance_with_gradient
from gpcmc.inference.gaussian import GaussianApproximation, GaussianPosterior

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel


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
    y : (n,) array
        Labels -1/+1.
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
            As `GaussianApproximation.approximate`.
        """
        K, _ = covariance_with_gradient(self.kernel.clone_with_theta(theta), self.X)
        return self._approximate(K).log_evidence

    @one_thread()
    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z (nats) and its gradient (p,) at theta.

        Raises
        ------
        ValueError, ConvergenceError
            As `GaussianApproximation.approximate`.
        """
        K, contract = covariance_with_gradient(self.kernel.clone_with_theta(theta), self.X)
        posterior = self._approximate(K)
        return posterior.log_evidence, contract(self.method.gradient_matrix(K, self.y, posterior))

    def _approximate(self, K: FloatArray) -> GaussianPosterior:
        """Start from the last posterior: an optimiser's next point is seldom far."""
        self._last = self.method.approximate(K, self.y, self._last)
        return self._last
