"""The linear and the exponential part of a covariance, N(14) and N(15), as kernels of scikit-learn."""

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


def _hyperparameter(name: str, value: Any, bounds: Any) -> Hyperparameter:
    """What scikit-learn asks for one value, or one for each input."""
    return Hyperparameter(name, "numeric", bounds, len(value) if np.ndim(value) else 1)


def _checked(name: str, value: Any, inputs: int) -> FloatArray:
    """Return one positive value () for all inputs, or one for each (d,)."""
    values = np.asarray(value, dtype=np.float64)
    if not ((values > 0) & (values < np.inf)).all():
        raise ValueError(f"{name} must be positive and finite; got {value}")
    if values.shape not in ((), (inputs,)):
        raise ValueError(
            f"{name} must have one value for each of {inputs} inputs; got {values.size}"
        )
    return values


def _inputs(X: Any, Y: Any, eval_gradient: bool) -> tuple[FloatArray, FloatArray]:
    """Return the inputs of rows (n, d) and of columns (m, d); without Y both are the same array."""
    if eval_gradient and Y is not None:
        raise ValueError("eval_gradient must be False where Y is given: it is of K(X, X) alone")
    X = np.atleast_2d(X)
    Y = X if Y is None else np.atleast_2d(Y)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"Y must have {X.shape[1]} columns as X has; got {Y.shape[1]}")
    return X, Y


class Linear(Kernel):
    """The covariance ``sum_u s_u^2 x_u x'_u``, N(14): a linear function, whose slope along x_u has the deviation s_u.

    scikit-learn's DotProduct has one scale for all inputs, and no gradient with respect to it.

    Parameters
    ----------
    scale : float or (d,) array
        Standard deviations s of the slopes, in units of the function over those of the input: one for all inputs, or
        one for each.
    scale_bounds : pair of float or "fixed"
        Limits of s, for optimizers alone.

    Raises
    ------
    ValueError
        On evaluation, if a scale is not positive and finite, or their number is not that of the inputs.
    """

    def __init__(self, scale: Any = 1.0, scale_bounds: Any = (1e-5, 1e5)) -> None:
        self.scale = scale
        self.scale_bounds = scale_bounds

    @property
    def anisotropic(self) -> bool:
        """Whether each input has a scale of its own."""
        return np.ndim(self.scale) > 0

    @property
    def hyperparameter_scale(self) -> Hyperparameter:
        """What scikit-learn asks for the logarithms of the scales."""
        return _hyperparameter("scale", self.scale, self.scale_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the covariances of X (n, d) and Y (m, d), by default X, and the gradient if it is asked for.

        Returns
        -------
        K : (n, m) array
        gradient : (n, n, p) array, with `eval_gradient` alone
            With respect to log s: 2 s_u^2 x_u x'_u, for one scale its sum over u.
        """
        X, Y = _inputs(X, Y, eval_gradient)
        scale = _checked("scale", self.scale, X.shape[1])
        rows = scale * X
        columns = rows if Y is X else scale * Y
        K = rows @ columns.T
        if not eval_gradient:
            return K
        if self.hyperparameter_scale.fixed:
            return K, np.empty((*K.shape, 0))
        return K, 2.0 * (rows[:, None, :] * rows if self.anisotropic else K[:, :, None])

    def diag(self, X: Any) -> FloatArray:
        """Return the variances (n,) at X (n, d)."""
        X = np.atleast_2d(X)
        return np.sum((_checked("scale", self.scale, X.shape[1]) * X) ** 2, axis=1)

    def is_stationary(self) -> bool:
        """Return False: the variance grows with the distance from the origin."""
        return False

    def __repr__(self) -> str:
        return f"Linear(scale={np.round(self.scale, 3)})"


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
        On evaluation, if the power is not in (0, 2], a relevance is not positive and finite, or their number is not
        that of the inputs.
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
        return _hyperparameter("rho", self.rho, self.rho_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the correlations of X (n, d) and Y (m, d), by default X, and the gradient if it is asked for.

        Returns
        -------
        K : (n, m) array
        gradient : (n, n, p) array, with `eval_gradient` alone
            With respect to log rho: -R (rho_u |x_u - x'_u|)^R K, for one rho its sum over u.
        """
        powers = self._powers(*_inputs(X, Y, eval_gradient))
        K = np.exp(-powers.sum(axis=2))
        if not eval_gradient:
            return K
        if self.hyperparameter_rho.fixed:
            return K, np.empty((*K.shape, 0))
        slopes = powers if self.anisotropic else powers.sum(axis=2, keepdims=True)
        return K, -self.power * slopes * K[:, :, None]

    def _powers(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Return (rho_u |x_u - y_u|)^R (n, m, d)."""
        if not 0.0 < self.power <= 2.0:
            raise ValueError(f"power must be above 0 and at most 2; got {self.power}")
        rho = _checked("rho", self.rho, X.shape[1])
        distance = np.abs(rho * (X[:, None, :] - Y[None, :, :]))
        return distance * distance if self.power == 2.0 else distance**self.power

    def __repr__(self) -> str:
        return f"PowerExponential(rho={np.round(self.rho, 3)}, power={self.power})"
