"""The probit likelihood Phi(y f), of labels y in {-1, +1}; its functions are accurate in both tails.

With z = y f and the ratio r(z) = phi(z) / Phi(z), the derivatives of log Phi(y f) with respect to f are y r and
-r (z + r) (Rasmussen and Williams 2006, Eq. 3.16). For z -> -inf the factor z + r is the difference of two nearly equal
numbers; there it comes from Laplace's continued fraction.

References
----------
Rasmussen and Williams (2006), Eqs. (3.15), (3.16), (3.58), (3.59), (3.80)-(3.82).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from gpcmc._validation import FloatArray
from gpcmc.likelihood.form import Likelihood
from gpcmc.likelihood.tilted import Tilted

_FAR = 10.0  # beyond -_FAR the continued fraction; there 20 levels leave less than one rounding
_LEVELS = 20
_FAR_THIRD = 5.0  # the same for the third derivative
_LEVELS_THIRD = 100


def log_likelihood(y: FloatArray, f: FloatArray) -> FloatArray:
    """Return log Phi(y f), elementwise."""
    return log_ndtr(y * f)


def hazard(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Return r = phi(z) / Phi(z) and w = r (z + r), which lies in [0, 1]; elementwise."""
    z = np.asarray(z, dtype=np.float64)
    r = np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0))
    far = -z > _FAR
    excess = z + r
    if far.any():
        x = np.maximum(-z, _FAR)
        fraction = np.zeros_like(x)  # z + r = 1/(x + 2/(x + 3/(x + ...))) at x = -z
        for level in range(_LEVELS, 0, -1):
            fraction = level / (x + fraction)
        excess = np.where(far, fraction, excess)
    return r, np.clip(r * excess, 0.0, 1.0)


def derivatives(y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient of log p(y | f) and W = -(second derivative), elementwise.

    Parameters
    ----------
    y, f : (n,) array
        Labels -1/+1 and latent values.

    Returns
    -------
    gradient : (n,) array
        y r(y f).
    W : (n,) array
        In [0, 1].
    """
    r, w = hazard(y * f)
    return y * r, w


def predictive_probability(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E Phi(f) for f ~ N(mean, variance): Phi(mean / sqrt(1 + variance)) (Eq. 3.82)."""
    return ndtr(mean / np.sqrt(1.0 + variance))


def third_derivative(y: FloatArray, f: FloatArray) -> FloatArray:
    """Return the third derivative of log Phi(y f) in f, elementwise.

    With r and w of `hazard` at z = y f it is y (w (z + 2 r) - r). For z -> -inf that is a difference of nearly equal
    numbers. With e_k = k / (x + e_(k+1)), x = -z, it equals 2 y w (e_3 - e_2) / ((x + e_2)(x + e_3)), of which every
    factor is accurate there.
    """
    z = np.asarray(y * f, dtype=np.float64)
    r, w = hazard(z)
    x = np.maximum(-z, _FAR_THIRD)
    e_3 = np.zeros_like(x)
    for level in range(_LEVELS_THIRD, 2, -1):
        e_3 = level / (x + e_3)
    e_2 = 2.0 / (x + e_3)
    tail = 2.0 * w * ((e_3 - e_2) / (x + e_2)) / (x + e_3)
    near = np.maximum(z, -_FAR_THIRD)
    return y * np.where(-z > _FAR_THIRD, tail, w * (near + 2.0 * r) - r)


@dataclass(frozen=True, slots=True)
class Probit(Likelihood):
    """The functions above as a likelihood."""

    name: ClassVar[str] = "probit"
    largest_curvature: ClassVar[float] = 1.0

    log_likelihood = staticmethod(log_likelihood)
    derivatives = staticmethod(derivatives)
    third_derivative = staticmethod(third_derivative)
    predictive_probability = staticmethod(predictive_probability)

    def tilted(self, y: FloatArray, mean: FloatArray, variance: FloatArray) -> Tilted:
        """In closed form (Eqs. 3.58, 3.59): with z = y mean / sqrt(1 + variance), nothing cancels."""
        joint = 1.0 + variance
        scale = np.sqrt(joint)
        z = y * mean / scale
        r, w = hazard(z)
        return Tilted(
            log_z=log_ndtr(z),
            slope=y * r / scale,
            curvature=w / joint,
            ratio=(1.0 + variance * (1.0 - w)) / joint,
        )

    def rectangle(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return signs and limits with p(y | f) = P(lower < sign f + noise < upper): an orthant of y f + noise."""
        return y, np.zeros(len(y)), np.full(len(y), np.inf)


PROBIT = Probit()
