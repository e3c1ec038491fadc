"""The exponential part of a covariance, N(15) with R = 2, as a kernel of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    Hyperparameter,
    Kernel,
    NormalizedKernelMixin,
    StationaryKernelMixin,
)


class SquaredExponential(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """The correlation ``exp(-sum_u (rho_u (x_u - x'_u))^2)``: RBF with length scales 1 / (sqrt(2) rho_u).

    Parameters
    ----------
    rho : float or (d,) array
        Relevances, one over a length: one for all inputs, or one for each.
    """

    def __init__(self, rho: Any = 1.0) -> None:
        self.rho = rho

    @property
    def anisotropic(self) -> bool:
        """Whether each input has a relevance of its own."""
        return np.ndim(self.rho) > 0

    @property
    def hyperparameter_rho(self) -> Hyperparameter:
        """What scikit-learn asks for the logarithms of rho."""
        count = len(self.rho) if self.anisotropic else 1
        return Hyperparameter("rho", "numeric", (1e-5, 1e5), count)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the correlations of X (n, d) and Y (m, d), by default X, and the gradient if it is asked for.

        Returns
        -------
        K : (n, m) array
        gradient : (n, n, p) array, with `eval_gradient` alone
            With respect to log rho, where Y is X: -2 (rho_u (x_u - x'_u))^2 K, for one rho its sum over u.
        """
        X = np.atleast_2d(X)
        Y = X if Y is None else np.atleast_2d(Y)
        rho = np.asarray(self.rho, dtype=np.float64)
        squares = (rho * (X[:, None, :] - Y[None, :, :])) ** 2
        K = np.exp(-squares.sum(axis=2))
        if not eval_gradient:
            return K
        slopes = squares if self.anisotropic else squares.sum(axis=2, keepdims=True)
        return K, -2.0 * slopes * K[:, :, None]
