"""The exponential part of a covariance, N(15), as a kernel of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    Hyperparameter,
    Kernel,
    NormalizedKernelMixin,
    StationaryKernelMixin,
)

from gpcmc._validation import FloatArray


class PowerExponential(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """The correlation ``prod_u exp(-(rho_u |x_u - x'_u|)^R)``, N(15).

    Power 2 is scikit-learn's RBF with length scales 1 / (sqrt(2) rho_u). Power 1 is a product of exponentials.

    Parameters
    ----------
    rho : float or (d,) array
        Relevances, one over a length: one for all inputs, or one for each.
    power : float
        R, above 0 and at most 2. Not a hyperparameter.
    rho_bounds : pair of float or "fixed"
        Limits of rho, for optimizers alone.

    Raises
    ------
    ValueError
        On evaluation, if the power is not in (0, 2], rho is not positive, or their number is not that of the inputs.
    """

    def __init__(self, rho: Any = 1.0, power: float = 2.0, rho_bounds: Any = (1e-5, 1e5)) -> None:
        self.rho = rho
        self.power = power
        self.rho_bounds = rho_bounds

    @property
    def anisotropic(self) -> bool:
        """Whether each input has a relevance of its own."""
        return np.ndim(self.rho) > 0

    @property
    def hyperparameter_rho(self) -> Hyperparameter:
        """What scikit-learn asks for the logarithms of rho."""
        count = len(self.rho) if self.anisotropic else 1
        return Hyperparameter("rho", "numeric", self.rho_bounds, count)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the correlations of X (n, d) and Y (m, d), by default X, and the gradient if it is asked for.

        Returns
        -------
        K : (n, m) array
        gradient : (n, n, p) array, with `eval_gradient` alone
            With respect to log rho: -R (rho_u |x_u - x'_u|)^R K, for one rho its sum over u.
        """
        X = np.atleast_2d(X)
        if eval_gradient and Y is not None:
            raise ValueError("eval_gradient must be False where Y is given: it is of K(X, X) alone")
        powers = self._powers(X, X if Y is None else np.atleast_2d(Y))
        K = np.exp(-powers.sum(axis=2))
        if not eval_gradient:
            return K
        if self.hyperparameter_rho.fixed:
            return K, np.empty((*K.shape, 0))
        slopes = powers if self.anisotropic else powers.sum(axis=2, keepdims=True)
        return K, -self.power * slopes * K[:, :, None]

    def _powers(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Return (rho_u |x_u - y_u|)^R (n, m, d)."""
        rho = np.asarray(self.rho, dtype=np.float64)
        if not 0.0 < self.power <= 2.0:
            raise ValueError(f"power must be above 0 and at most 2; got {self.power}")
        if not (rho > 0).all():
            raise ValueError(f"rho must be positive; got {self.rho}")
        if self.anisotropic and len(rho) != X.shape[1]:
            raise ValueError(
                f"rho must have one value for each of {X.shape[1]} inputs; got {len(rho)}"
            )
        distance = np.abs(rho * (X[:, None, :] - Y[None, :, :]))
        return distance * distance if self.power == 2.0 else distance**self.power

    def __repr__(self) -> str:
        return f"PowerExponential(rho={np.round(self.rho, 3)}, power={self.power})"
