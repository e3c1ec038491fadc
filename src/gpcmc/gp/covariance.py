"""Covariance matrices of the Gaussian process prior, by scikit-learn's kernels.

The paper's RBF covariance (Eq. 3) has no factor 2 in the exponent, scikit-learn's has one: a length
scale ``alpha`` of the paper is ``alpha / sqrt(2)`` there. `linear` is Eq. (65).

References
----------
Atiya, Fayed, Abdel-Gawad (2021), Eqs. (2)-(4), (65). Rasmussen and Williams (2006), Eq. (4.9).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_array, check_positive

if TYPE_CHECKING:  # scikit-learn takes half a second: the functions that make kernels import it
    from sklearn.gaussian_process.kernels import Kernel

_TINY = float(np.finfo(float).tiny)


def rbf(alpha: float, beta: float) -> Kernel:
    """Return the paper's RBF kernel, ``beta exp(-|x - x'|^2 / alpha^2)`` (Eq. 3).

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
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    length_scale = check_positive("alpha", alpha) / np.sqrt(2.0)
    return ConstantKernel(check_positive("beta", beta)) * RBF(length_scale)


def linear() -> Kernel:
    """Return the linear kernel, the dot product without a constant (Eq. 65)."""
    from sklearn.gaussian_process.kernels import DotProduct

    return DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")


def rbf_parameters(kernel: Kernel | None) -> tuple[float, FloatArray] | None:
    """Return the variance and length scales of an RBF kernel, alone or times a constant.

    Parameters
    ----------
    kernel : Kernel or None

    Returns
    -------
    variance : float
    length_scale : () or (d,) array
        In units of the inputs.

        None, in place of the pair, for any other kernel.
    """
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product

    variance, shape = 1.0, kernel
    if isinstance(kernel, Product):
        constant, shape = kernel.k1, kernel.k2
        if isinstance(shape, ConstantKernel):
            constant, shape = shape, constant
        if not isinstance(constant, ConstantKernel):
            return None
        variance = float(constant.constant_value)
    if shape is None or type(shape) is not RBF:  # its subclasses are other kernels
        return None
    return variance, np.asarray(shape.length_scale, dtype=np.float64)


def flush_subnormal(K: FloatArray) -> FloatArray:
    """Set entries below the least normal number, 2.2e-308, to zero, in place, and return K.

    A processor multiplies subnormal numbers in microcode: products with a matrix of them take 17 times
    as long. They are covariances of patterns far apart, too small to change any sum of normal numbers.
    """
    K[np.abs(K) < _TINY] = 0.0
    return K


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
    """The Gaussian process prior at the training inputs, and at the test inputs if there are any.

    ``Prior(K)`` is a prior without test inputs; `prior` makes one from a kernel.

    Attributes
    ----------
    K : (n, n) array
        Covariance of the latent values at the training inputs.
    K_star : (n, t) array
        Covariance between training (rows) and test (columns) latent values. By default t is 0.
    k_star_star : (t,) array
        Prior variances of the latent values at the test inputs.
    kernel : Kernel, optional
        The covariances' kernel, for methods that place inputs of their own or change its hyperparameters.
    X : (n, d) array, optional
    X_star : (t, d) array, optional
        Training and test inputs, for the same.
    """

    K: FloatArray
    K_star: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    k_star_star: FloatArray = field(default_factory=lambda: np.empty(0))
    kernel: Kernel | None = None
    X: FloatArray | None = None
    X_star: FloatArray | None = None

    def __post_init__(self) -> None:
        if np.size(self.K_star) == np.size(self.k_star_star) == 0:
            object.__setattr__(self, "K_star", np.empty((len(self.K), 0)))


@one_thread()
def prior(kernel: Kernel, X: ArrayLike, X_star: ArrayLike | None = None) -> Prior:
    """Evaluate a kernel at the training and test inputs.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : (n, d) array
        Training inputs.
    X_star : (t, d) array, optional
        Test inputs; without them the prior has none, and t is 0.

    Raises
    ------
    ValueError
        If an input is not a finite two-dimensional array, is empty, or the two differ in d.
    """
    X = check_array("X", X, ndim=2)
    if 0 in X.shape:
        raise ValueError(f"X must not be empty; got shape {X.shape}")
    if X_star is None:
        return Prior(flush_subnormal(kernel(X)), kernel=kernel, X=X)
    X_star = check_array("X_star", X_star, ndim=2)
    if X.shape[1] != X_star.shape[1]:
        raise ValueError(f"X_star must have {X.shape[1]} columns as X has; got {X_star.shape[1]}")
    if len(X_star) == 0:
        raise ValueError("X_star must not be empty (leave it out for a prior without test inputs)")
    return Prior(
        K=flush_subnormal(kernel(X)),
        K_star=flush_subnormal(kernel(X, X_star)),
        k_star_star=kernel.diag(X_star),
        kernel=kernel,
        X=X,
        X_star=X_star,
    )
