"""The probit likelihood p(y | f) = Phi(y f), y in {-1, +1}, accurate in both tails.

With z = y f and the ratio r(z) = phi(z) / Phi(z), the derivatives of log Phi(y f) with respect to
f are y r and -r (z + r) (Rasmussen and Williams 2006, Eq. 3.16). For z -> -inf the factor z + r is
the difference of two nearly equal numbers; there it comes from Laplace's continued fraction.

References
----------
Rasmussen and Williams (2006), Eqs. (3.16), (3.80)-(3.82).
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from gpcmc._validation import FloatArray

_FAR = 10.0  # beyond -_FAR the continued fraction; there 20 levels leave less than one rounding
_LEVELS = 20


def log_likelihood(y: FloatArray, f: FloatArray) -> FloatArray:
    """Return log Phi(y f), elementwise."""
    return log_ndtr(y * f)


def hazard(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Return r = phi(z) / Phi(z) and w = r (z + r), which lies in [0, 1]; elementwise."""
    z = np.asarray(z, dtype=np.float64)
    r = np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0))
    x = np.maximum(-z, _FAR)
    excess = np.zeros_like(x)  # z + r = 1/(x + 2/(x + 3/(x + ...))) at x = -z
    for level in range(_LEVELS, 0, -1):
        excess = level / (x + excess)
    excess = np.where(-z > _FAR, excess, z + r)
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
