"""Gradients in a kernel's hyperparameters, by contraction with one matrix.

A log marginal likelihood depends on the hyperparameters through K alone, so one symmetric matrix M has its gradient:
d log Z = tr(M dK) / 2. Any kernel of scikit-learn gives dK / dtheta as an array (n, n, p). Constants, RBF kernels,
noise, and sums and products of these need no such array. With Q = M * K, elementwise, and q its row sums,

    sum_ij Q_ij (x_iu - x_ju)^2 = 2 (sum_i q_i x_iu^2 - x_u' Q x_u),

so that all length scales of an anisotropic RBF kernel take one product of Q with X.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.gp.covariance import flush_subnormal

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Takes M and returns tr(M dK / dtheta_k) / 2 for each hyperparameter.
Contraction = Callable[[FloatArray], FloatArray]


def covariance_with_gradient(kernel: Kernel, X: FloatArray) -> tuple[FloatArray, Contraction]:
    """Evaluate a kernel in a way that gradients can follow.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : (n, d) array
        Inputs.

    Returns
    -------
    K : (n, n) array
        Covariance, as of `gpcmc.gp.prior`.
    contract : callable
        Takes a symmetric matrix M (n, n) and returns tr(M dK / dtheta_k) / 2 (p,), in the order of ``kernel.theta``,
        which holds the logarithms of the hyperparameters that are not fixed.
    """
    K, contract = _parts(kernel, X)
    return flush_subnormal(np.array(np.broadcast_to(K, (len(X), len(X))))), contract


def _parts(kernel: Kernel, X: FloatArray) -> tuple[FloatArray, Contraction]:
    """As `covariance_with_gradient`, but a constant kernel's K is a scalar."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product, Sum, WhiteKernel

    kind = type(kernel)  # a subclass is another kernel
    if kind is Sum or kind is Product:
        (K_1, contract_1), (K_2, contract_2) = _parts(kernel.k1, X), _parts(kernel.k2, X)
        if kind is Sum:
            return K_1 + K_2, lambda M: np.concatenate([contract_1(M), contract_2(M)])
        return K_1 * K_2, lambda M: np.concatenate([contract_1(M * K_2), contract_2(M * K_1)])
    if kind is ConstantKernel:
        constant = np.asarray(kernel.constant_value, dtype=np.float64)
        return constant, _unless_fixed(kernel, lambda M: np.array([0.5 * constant * M.sum()]))
    if kernel.n_dims == 0:
        return kernel(X), lambda M: np.empty(0)
    if kind is WhiteKernel:
        return kernel(X), lambda M: np.array([0.5 * kernel.noise_level * np.trace(M)])
    if kind is RBF:
        K, scaled = flush_subnormal(kernel(X)), (X - X.mean(axis=0)) / kernel.length_scale
        return K, lambda M: _length_scales(scaled, M * K, kernel.anisotropic)
    K, gradient = kernel(X, eval_gradient=True)
    return K, lambda M: 0.5 * np.einsum("ij,ijk->k", M, gradient)


def _unless_fixed(kernel: Kernel, contract: Contraction) -> Contraction:
    return contract if kernel.n_dims else lambda M: np.empty(0)


def _length_scales(X: FloatArray, Q: FloatArray, anisotropic: bool) -> FloatArray:
    """Return half the sums of Q_ij (x_iu - x_ju)^2 over i, j, and over u too unless anisotropic; Q is symmetric."""
    along = Q.sum(axis=1) @ X**2 - np.einsum("iu,iu->u", X, Q @ X)
    return along if anisotropic else along.sum(keepdims=True)
