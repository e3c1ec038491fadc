"""The covariance of a kernel at one setting of its hyperparameters, factorised; section 4 of Neal (1997)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigh
from scipy.linalg.lapack import dpotri

from gpcmc._validation import FloatArray
from gpcmc.covariance.gradient import Contraction, covariance_with_gradient
from studies.neal1997.model.priors import Priors

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Logarithms of hyperparameters beyond it count as impossible: their exponentials would overflow.
FARTHEST = 100.0


@dataclass(frozen=True)
class Factor:
    """A covariance C, its Cholesky factor and what its log density needs.

    Attributes
    ----------
    K : (n, n) array
        The kernel at the inputs, without `diagonal`.
    cholesky : (n, n) array
        Lower factor of C = K + diag(diagonal).
    precision : (n, n) array
        C^-1.
    log_determinant : float
        Of C.
    contract : callable
        Takes M (n, n) and returns tr(M dK / dtheta) / 2.
    """

    K: FloatArray
    cholesky: FloatArray
    precision: FloatArray
    log_determinant: float
    contract: Contraction

    def log_density(self, values: FloatArray) -> float:
        """Return the log density of the rows of `values` (k, n), independent with covariance C: N(6)."""
        k, n = values.shape
        squares = float(np.sum((values @ self.precision) * values))
        return -0.5 * (k * (n * math.log(2.0 * math.pi) + self.log_determinant) + squares)

    def curvature(self, values: FloatArray) -> FloatArray:
        """Return M = sum_k b_k b_k' - k C^-1 with b_k = C^-1 y_k: the gradient is tr(M dC) / 2, N(21)."""
        b = values @ self.precision
        return b.T @ b - len(values) * self.precision

    def solve(self, values: FloatArray) -> FloatArray:
        """Return C^-1 times an array (n, ...)."""
        return cho_solve((self.cholesky, True), values, check_finite=False)

    def prior_root(self) -> FloatArray:
        """Return A (n, n) with A A' = K.

        A smooth kernel's K is singular to rounding, though C is not. Its root is then that of its eigenvalues, those
        below zero taken as zero.
        """
        try:
            return cholesky(self.K, lower=True, check_finite=False)
        except LinAlgError:
            eigenvalues, vectors = eigh(self.K, check_finite=False)
            return vectors * np.sqrt(np.maximum(eigenvalues, 0.0))

    def conditional(
        self, kernel: Kernel, X: FloatArray, X_star: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return weights and variances of latent values at test inputs, given what has covariance C: N(4), N(5).

        Parameters
        ----------
        kernel : sklearn.gaussian_process.kernels.Kernel
            That of K.
        X : (n, d) array
            Training inputs.
        X_star : (m, d) array
            Test inputs.

        Returns
        -------
        weights : (n, m) array
            C^-1 K(X, X_star): given y (k, n), the means are ``y @ weights``.
        variance : (m,) array
        """
        K_star = kernel(X, X_star)
        weights = self.solve(K_star)
        variance = kernel.diag(X_star) - np.einsum("ij,ij->j", K_star, weights)
        return weights, np.maximum(variance, 0.0)


def factorise(
    priors: Priors, x: FloatArray, X: FloatArray, diagonal: FloatArray | float = 0.0
) -> Factor | None:
    """Return the covariance at log hyperparameters x, or None where it is not numerically positive definite.

    Parameters
    ----------
    priors : Priors
    x : (p,) array
    X : (n, d) array
        Inputs.
    diagonal : float or (n,) array
        Variances to be added: noise.
    """
    if not (np.abs(x) < FARTHEST).all():
        return None
    K, contract = covariance_with_gradient(priors.kernel_at(x), X)
    C = K.copy()
    C[np.diag_indices_from(C)] += diagonal
    if not np.isfinite(C).all():
        return None
    try:
        L = cholesky(C, lower=True, check_finite=False)
    except LinAlgError:
        return None
    lower, _ = dpotri(L, lower=True)
    precision = np.tril(lower) + np.tril(lower, -1).T
    return Factor(K, L, precision, 2.0 * float(np.log(np.diag(L)).sum()), contract)
