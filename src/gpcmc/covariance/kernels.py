"""Kernels of scikit-learn: the paper's, and their evaluation with what is refused.

The paper's RBF covariance (Eq. 3) has no factor 2 in the exponent, scikit-learn's has one: a length
scale ``alpha`` of the paper is ``alpha / sqrt(2)`` there. `linear` is Eq. (65).

References
----------
Atiya, Fayed, Abdel-Gawad (2021), Eqs. (2)-(4), (65). Rasmussen and Williams (2006), Eq. (4.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpcmc._validation import FloatArray, check_positive

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
    """Set entries below the least normal number, 2.2e-308, to zero, in place, and return K, an array of one's own.

    A processor multiplies subnormal numbers in microcode: products with a matrix of them take 17 times
    as long. They are covariances of patterns far apart, too small to change any sum of normal numbers.
    """
    K[np.abs(K) < _TINY] = 0.0
    return K


def check_kernel(kernel: Any) -> Kernel:
    """Return a kernel whose hyperparameters are good.

    Raises
    ------
    ValueError
        If it is no kernel of scikit-learn, or a hyperparameter is not a finite number above zero; a noise, a constant
        and an intercept that are fixed may be zero.
    """
    if not callable(kernel) or not hasattr(type(kernel), "hyperparameters"):
        raise ValueError(
            "kernel must be a kernel of scikit-learn, e.g. gpcmc.gp.rbf(alpha, beta) or "
            f"sklearn.gaussian_process.kernels.RBF(); got {kernel!r}"
        )
    parameters = kernel.get_params()
    for one in kernel.hyperparameters:
        if one.value_type != "numeric" or one.name not in parameters:
            continue
        value = np.asarray(parameters[one.name], dtype=np.float64)
        may_be_zero = one.fixed and not one.name.endswith("length_scale")
        if (
            not np.isfinite(value).all()
            or (value < 0).any()
            or ((value == 0).any() and not may_be_zero)
        ):
            raise ValueError(
                f"kernel: {one.name} must be a finite number > 0; got {parameters[one.name]!r} in {kernel}"
            )
    return kernel


def evaluate(kernel: Kernel, X: Any, Y: Any = None) -> FloatArray:
    """Return the covariances (n, m) of inputs X and Y, or of X alone, as an array of one's own.

    Entries below the least normal number are zeros. What the kernel returned stays as it is.

    Raises
    ------
    ValueError
        If the kernel cannot be evaluated there, or returns something else than a real matrix of this shape; the message
        names the kernel.
    """
    shape = (len(X), len(X if Y is None else Y))
    with np.errstate(under="ignore"):  # far apart
        try:
            given = kernel(X) if Y is None else kernel(X, Y)
        except (TypeError, ValueError) as error:
            where = " and ".join(
                str(getattr(one, "shape", (len(one),))) for one in (X, Y) if one is not None
            )
            raise ValueError(
                f"kernel {kernel} does not fit inputs of shape {where}: {error}"
            ) from error
        return flush_subnormal(real(kernel, given, shape))


def diagonal(kernel: Kernel, X: Any) -> FloatArray:
    """Return the prior variances (n,) at inputs X, as an array of one's own.

    Raises
    ------
    ValueError
        As of `evaluate`.
    """
    with np.errstate(under="ignore"):
        return real(kernel, kernel.diag(X), (len(X),))


def real(kernel: Kernel, given: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return a copy of what a kernel returned, if it is real and of this shape.

    Raises
    ------
    ValueError
        If it is not; the message names the kernel.
    """
    try:
        found = None if np.iscomplexobj(given) else np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        found = None
    if found is None or found.shape != shape:
        got = type(given).__name__ if found is None else f"shape {found.shape}"
        raise ValueError(
            f"kernel {kernel} must return real covariances of shape {shape}; got {got}"
        )
    return found


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
