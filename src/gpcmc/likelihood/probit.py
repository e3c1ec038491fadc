"""Likelihoods p(y | f) of labels y in {-1, +1}: the probit Phi(y f) and the logistic 1 / (1 + exp(-y f)).

A `Likelihood` is a record of what Laplace's approximation needs of one, and nothing else. The probit's functions are
accurate in both tails. With z = y f and the ratio r(z) = phi(z) / Phi(z), the derivatives of log Phi(y f) with respect
to f are y r and -r (z + r) (Rasmussen and Williams 2006, Eq. 3.16). For z -> -inf the factor z + r is the difference of
two nearly equal numbers; there it comes from Laplace's continued fraction.

Two integrals are in use for the logistic's mean over a Gaussian. The exact one is by quadrature, with an absolute
error below 1e-12 for every mean and variance. MacKay's approximation, the logistic of m / sqrt(1 + pi s2 / 8), is
off by up to 0.018.

References
----------
Rasmussen and Williams (2006), Eqs. (3.15), (3.16), (3.25), (3.80)-(3.82). MacKay (1992), The evidence framework applied
to classification networks, Neural Computation 4(5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtr

from gpcmc._validation import FloatArray

_FAR = 10.0  # beyond -_FAR the continued fraction; there 20 levels leave less than one rounding
_LEVELS = 20
_FAR_THIRD = 5.0  # the same for the third derivative
_LEVELS_THIRD = 100
_CHUNK = 4096  # test inputs at a time


@dataclass(frozen=True, slots=True)
class Likelihood:
    """A likelihood of labels -1/+1, log-concave in the latent value; all functions are elementwise.

    Attributes
    ----------
    name : str
        For messages.
    log_likelihood : callable
        log p(y | f) of (y, f).
    derivatives : callable
        The first derivative in f, and W, minus the second one, of (y, f).
    third_derivative : callable
        The third derivative in f of (y, f).
    predictive_probability : callable
        The mean of p(+1 | f) over f ~ N(mean, variance), of (mean, variance).
    """

    name: str
    log_likelihood: Callable[[FloatArray, FloatArray], FloatArray]
    derivatives: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    third_derivative: Callable[[FloatArray, FloatArray], FloatArray]
    predictive_probability: Callable[[FloatArray, FloatArray], FloatArray]


# --- the probit


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


def probit_third_derivative(y: FloatArray, f: FloatArray) -> FloatArray:
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


# --- the logistic


def logistic_log_likelihood(y: FloatArray, f: FloatArray) -> FloatArray:
    """Return -log(1 + exp(-y f)), elementwise."""
    return log_expit(y * f)


def logistic_derivatives(y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient of the log likelihood and W = -(second derivative), elementwise."""
    return y * expit(-y * f), expit(f) * expit(-f)


def logistic_third_derivative(y: FloatArray, f: FloatArray) -> FloatArray:
    """Return the third derivative of the log likelihood in f, elementwise; it does not depend on y."""
    return expit(f) * expit(-f) * np.tanh(0.5 * f)


def logistic_predictive_probability(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E sigma(f) for f ~ N(mean, variance), by quadrature.

    Where the standard deviation is below 1, Gauss and Hermite's rule integrates sigma over the Gaussian. Elsewhere
    the trapezoidal rule integrates P(f > u) sigma'(u) over u, which is the same by parts. It converges
    exponentially, because the integrand is analytic around the real line up to the poles of sigma at +-i pi.
    """
    means, variances = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    flat_mean, deviation = means.ravel(), np.sqrt(variances.ravel())
    found = np.empty_like(flat_mean)
    for start in range(0, len(flat_mean), _CHUNK):
        part = slice(start, start + _CHUNK)
        found[part] = _logistic_mean(flat_mean[part, None], deviation[part, None])
    return found.reshape(means.shape)


def _logistic_mean(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Both rules for columns of means and standard deviations; each where it is the accurate one."""
    node, weight = np.polynomial.hermite_e.hermegauss(40)
    narrow = expit(mean + np.minimum(deviation, 1.0) * node) @ (weight / weight.sum())
    step = 0.5
    level = np.arange(-38.0, 38.0 + step, step)  # beyond, sigma' is below one rounding
    weight = step * expit(level) * expit(-level)
    wide = ndtr((mean - level) / np.maximum(deviation, 1.0)) @ weight
    return np.where(deviation[:, 0] < 1.0, narrow, wide)


def mackay_predictive_probability(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return MacKay's approximation of E sigma(f) for f ~ N(mean, variance)."""
    return expit(mean / np.sqrt(1.0 + np.pi * np.asarray(variance) / 8.0))


# --- the records


PROBIT = Likelihood(
    name="probit",
    log_likelihood=log_likelihood,
    derivatives=derivatives,
    third_derivative=probit_third_derivative,
    predictive_probability=predictive_probability,
)
LOGISTIC = Likelihood(
    name="logistic",
    log_likelihood=logistic_log_likelihood,
    derivatives=logistic_derivatives,
    third_derivative=logistic_third_derivative,
    predictive_probability=logistic_predictive_probability,
)
#: Likelihoods by name.
LIKELIHOODS = {record.name: record for record in (PROBIT, LOGISTIC)}
