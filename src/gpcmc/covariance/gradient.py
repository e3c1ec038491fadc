"""A kernel at given inputs, as a function of its hyperparameters: covariances, and gradients by contraction.

A log marginal likelihood depends on the hyperparameters through K alone, so one symmetric matrix M has its gradient:
d log Z = tr(M dK) / 2. Any kernel of scikit-learn gives dK / dtheta as an array (n, n, p). Constants, RBF kernels,
noise, and sums and products of these need no such array, nor a kernel object at each point. With Q = M * K,
elementwise, and q its row sums,

    sum_ij Q_ij (x_iu - x_ju)^2 = 2 (sum_i q_i x_iu^2 - x_u' Q x_u),

so that all length scales of an anisotropic RBF kernel take one product of Q with X. With one length scale the squared
distances are found once.

References
----------
Rasmussen and Williams (2006), Eqs. (5.22)-(5.27).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.covariance.kernels import evaluate, flush_subnormal, real

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Takes M (n, n) and returns tr(M dK / dtheta_k) / 2 for each hyperparameter.
Contraction = Callable[[FloatArray], FloatArray]
#: Takes theta (p,) and returns K, a scalar for a constant kernel, and its contraction.
_Function = Callable[[FloatArray], tuple[FloatArray, Contraction]]


class KernelOn:
    """A kernel at inputs X, as a function of the logarithms of its hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : (n, d) array, or n things that the kernel takes
    """

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.kernel, self.X = kernel, X
        self._function, _ = _function(kernel, X)

    def at(self, theta: FloatArray) -> tuple[FloatArray, Contraction]:
        """Return the covariance (n, n) at theta (p,), and its contraction.

        The contraction takes a symmetric matrix M (n, n) and returns tr(M dK / dtheta_k) / 2 (p,), in the order of
        ``kernel.theta``, which holds the logarithms of the hyperparameters that are not fixed.
        """
        n = len(self.X)
        with np.errstate(under="ignore"):  # far apart
            K, contract = self._function(np.asarray(theta, dtype=np.float64))
        if K.shape != (n, n):
            K = np.full((n, n), K)
        return flush_subnormal(K), contract


def covariance_with_gradient(kernel: Kernel, X: Any) -> tuple[FloatArray, Contraction]:
    """Evaluate a kernel in a way that gradients can follow: as `KernelOn.at`, at the kernel's own hyperparameters."""
    return KernelOn(kernel, X).at(kernel.theta)


def _function(kernel: Kernel, X: Any) -> tuple[_Function, int]:
    """Return a kernel as a function of theta, and how many hyperparameters it takes."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product, Sum, WhiteKernel

    kind, p = type(kernel), kernel.n_dims  # a subclass is another kernel
    if kind is Sum or kind is Product:
        return _joined(kind is Sum, _function(kernel.k1, X), _function(kernel.k2, X)), p
    if kind is ConstantKernel:
        return _constant(float(kernel.constant_value), p), p
    if p == 0:
        fixed = evaluate(kernel, X)
        return lambda theta: (fixed.copy(), _nothing), p
    if kind is WhiteKernel:
        return _noise(len(X)), p
    if kind is RBF:
        return (_length_scales if kernel.anisotropic else _length_scale)(X), p

    def own(theta: FloatArray) -> tuple[FloatArray, Contraction]:
        found = kernel.clone_with_theta(theta)
        K, gradient = found(X, eval_gradient=True)
        return real(found, K, (len(X), len(X))), lambda M: 0.5 * np.einsum("ij,ijk->k", M, gradient)

    return own, p


def _joined(is_sum: bool, first: tuple[_Function, int], second: tuple[_Function, int]) -> _Function:
    (f_1, p_1), (f_2, _) = first, second

    def both(theta: FloatArray) -> tuple[FloatArray, Contraction]:
        (K_1, contract_1), (K_2, contract_2) = f_1(theta[:p_1]), f_2(theta[p_1:])
        if is_sum:
            return K_1 + K_2, lambda M: np.concatenate([contract_1(M), contract_2(M)])
        return K_1 * K_2, lambda M: np.concatenate([contract_1(M * K_2), contract_2(M * K_1)])

    return both


def _nothing(M: FloatArray) -> FloatArray:
    return np.empty(0)


def _constant(value: float, p: int) -> _Function:
    if not p:
        return lambda theta: (np.array(value), _nothing)

    def constant(theta: FloatArray) -> tuple[FloatArray, Contraction]:
        K = np.exp(theta[0])
        return np.asarray(K), lambda M: np.array([0.5 * K * M.sum()])

    return constant


def _noise(n: int) -> _Function:
    def noise(theta: FloatArray) -> tuple[FloatArray, Contraction]:
        level = np.exp(theta[0])
        return level * np.eye(n), lambda M: np.array([0.5 * level * np.trace(M)])

    return noise


def _length_scale(X: FloatArray) -> _Function:
    from scipy.spatial.distance import pdist, squareform

    squared = squareform(pdist(X, "sqeuclidean"))

    def rbf(theta: FloatArray) -> tuple[FloatArray, Contraction]:
        precision = np.exp(-2.0 * theta[0])
        K = np.exp(squared * (-0.5 * precision))
        return K, lambda M: np.array([0.5 * precision * np.vdot(M * K, squared)])

    return rbf


def _length_scales(X: FloatArray) -> _Function:
    from scipy.spatial.distance import pdist, squareform

    centred = X - X.mean(axis=0)

    def rbf(theta: FloatArray) -> tuple[FloatArray, Contraction]:
        scaled = centred * np.exp(-theta)
        K = squareform(np.exp(-0.5 * pdist(scaled, "sqeuclidean")))
        np.fill_diagonal(K, 1.0)

        def contract(M: FloatArray) -> FloatArray:
            Q = M * K
            return Q.sum(axis=1) @ scaled**2 - np.einsum("iu,iu->u", scaled, Q @ scaled)

        return K, contract

    return rbf
