"""Covariance matrices of the Gaussian process prior, by scikit-learn's kernels.

The paper's RBF covariance (Eq. 3) has no factor 2 in the exponent, scikit-learn's has one: a length
scale ``alpha`` of the paper is ``alpha / sqrt(2)`` there. `linear` is Eq. (65).

References
----------
Atiya, Fayed, Abdel-Gawad (2021), Eqs. (2)-(4), (65). Rasmussen and Williams (2006), Eq. (4.9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel
from threadpoolctl import threadpool_limits

from gpcmc._validation import FloatArray, check_array, check_positive


def rbf(alpha: float, beta: float) -> Kernel:
    """Return the paper's RBF kernel, beta exp(-|x - x'|^2 / alpha^2) (Eq. 3).

    Parameters
    ----------
    alpha : float
        Length scale, in units of the inputs.
    beta : float
        Latent function scale: the prior variance of f.

    Raises
    ------
    ValueError
        If either is not a finite number above zero.
    """
    length_scale = check_positive("alpha", alpha) / np.sqrt(2.0)
    return ConstantKernel(check_positive("beta", beta)) * RBF(length_scale)


def linear() -> Kernel:
    """Return the linear kernel, the dot product without a constant (Eq. 65)."""
    return DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")


def orthant_covariance(K: FloatArray, y: FloatArray) -> FloatArray:
    """Return I + C K C, C = diag(y): the covariance of v, of which p(y | X) = P(v >= 0) (Eq. 30).

    Parameters
    ----------
    K : (n, n) array
        Prior covariance of the latent values.
    y : (n,) array
        Labels -1/+1.
    """
    return np.eye(len(y)) + y[:, None] * K * y


@dataclass(frozen=True, slots=True)
class Prior:
    """The Gaussian process prior at the training and test inputs.

    Attributes
    ----------
    K : (n, n) array
        Covariance of the latent values at the training inputs.
    K_star : (n, t) array
        Covariance between training (rows) and test (columns) latent values.
    k_star_star : (t,) array
        Prior variances of the latent values at the test inputs.
    kernel : Kernel, optional
        What the covariances were made with, for methods that place inputs of their own.
    X : (n, d) array, optional
        Training inputs, for the same.
    """

    K: FloatArray
    K_star: FloatArray
    k_star_star: FloatArray
    kernel: Kernel | None = None
    X: FloatArray | None = None


@threadpool_limits.wrap(limits=1)
def prior(kernel: Kernel, X: ArrayLike, X_star: ArrayLike) -> Prior:
    """Evaluate a kernel at training inputs X (n, d) and test inputs X_star (t, d).

    Raises
    ------
    ValueError
        If an input is not a finite two-dimensional array, is empty, or the two differ in d.
    """
    X = check_array("X", X, ndim=2)
    X_star = check_array("X_star", X_star, ndim=2)
    if X.shape[1] != X_star.shape[1]:
        raise ValueError(f"X_star must have {X.shape[1]} columns as X has; got {X_star.shape[1]}")
    if 0 in X.shape or len(X_star) == 0:
        raise ValueError(f"X and X_star must not be empty; got {X.shape} and {X_star.shape}")
    return Prior(kernel(X), kernel(X, X_star), kernel.diag(X_star), kernel, X)
