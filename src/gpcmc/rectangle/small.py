"""Rectangles of one to three coordinates and their derivatives, many at once, to rounding.

The probabilities are those of `gpcmc.rectangle._small`. A derivative is a density at a limit times the probability of
the other coordinates given that they are there: of fewer coordinates, and as exact.

References
----------
Plackett (1954), Biometrika 41, 351.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.rectangle._small import log_probabilities as fill

#: Coordinates of a block that needs no samples.
LARGEST = 3
_DEEP = -25.0  # log probability below which rounding of a singular covariance may be all of it
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))


def log_probabilities(
    lower: FloatArray, upper: FloatArray, R: FloatArray, slack: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return log P(lower < v < upper), v ~ N(0, R), and bounds on its error.

    Parameters
    ----------
    lower, upper : (m, n) array
        n is at most 3. Where a lower limit is not below the upper one the probability is zero.
    R : (m, n, n) array
        Correlations, positive semidefinite.
    slack : float
        A correlation so near to one, or to minus one, is that.

    Returns
    -------
    log_p, error : (m,) array
        An infinite error says that floating point holds nothing of the probability.
    """
    m, n = lower.shape
    pairs = list(combinations(range(n), 2))
    rho = np.empty((m, len(pairs)))
    for k, (i, j) in enumerate(pairs):
        rho[:, k] = R[:, i, j]
    rho = np.where(np.abs(rho) >= 1.0 - slack, np.sign(rho), rho)
    log_p, error = np.empty(m), np.empty(m)
    fill(*(np.ascontiguousarray(one, np.float64) for one in (lower, upper, rho)), log_p, error)
    if n == LARGEST:
        # what a spread of rounding leaves of a singular covariance is nothing
        singular = 1.0 - np.sum(rho**2, axis=1) + 2.0 * np.prod(rho, axis=1) <= slack
        error[singular & (log_p < _DEEP)] = np.inf
    return log_p, error


def one_dimension(lower: float, upper: float) -> tuple[float, float]:
    """Return log P(lower < Z < upper) and a bound on its error."""
    log_p, error = log_probabilities(np.array([[lower]]), np.array([[upper]]), np.ones((1, 1, 1)))
    return float(log_p[0]), float(error[0])


def slopes(
    lower: FloatArray, upper: FloatArray, R: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return log P, and its derivatives in the limits and in the covariance at R.

    Parameters
    ----------
    lower, upper : (m, n) array
        Limits of v ~ N(0, R), lower < upper.
    R : (m, n, n) array
        Correlations, positive definite.

    Returns
    -------
    log_p : (m,) array
    low, high : (m, n) array
        Zero for infinite limits.
    cov : (m, n, n) array
        Symmetric: a symmetric change D of R changes log P by ``np.sum(cov * D)``, to first order.
    """
    n = lower.shape[1]
    log_p = log_probabilities(lower, upper, R)[0]
    by_limit = np.zeros((2, *lower.shape))
    cov = np.zeros(R.shape)
    for i, (end, limits) in product(range(n), enumerate((lower, upper))):
        here, others = np.isfinite(limits[:, i]), [j for j in range(n) if j != i]
        c = np.where(here, limits[:, i], 0.0)
        inside = _given([i], c[:, None], others, lower, upper, R)
        density = np.exp(inside - 0.5 * c**2 - _LOG_ROOT_2PI - log_p)
        by_limit[end, :, i] = np.where(here, (2 * end - 1) * density, 0.0)
    for i, j in combinations(range(n), 2):
        others = [k for k in range(n) if k not in (i, j)]
        for (p, one), (q, two) in product(enumerate((lower, upper)), repeat=2):
            here = np.isfinite(one[:, i]) & np.isfinite(two[:, j])
            h, k = np.where(here, one[:, i], 0.0), np.where(here, two[:, j], 0.0)
            r = R[:, i, j]
            w = (1.0 - r) * (1.0 + r)
            inside = _given([i, j], np.stack([h, k], axis=1), others, lower, upper, R)
            exponent = 0.5 * ((h - r * k) ** 2 / w + k**2) + 0.5 * np.log(w) + 2.0 * _LOG_ROOT_2PI
            corner = np.where(here, np.exp(inside - exponent - log_p), 0.0)
            cov[:, i, j] += 0.5 * corner if p == q else -0.5 * corner
        cov[:, j, i] = cov[:, i, j]
    # a variance moves its own limits, and the correlations with it
    for i in range(n):
        moved = np.zeros(len(lower))
        for limits, slope in zip((lower, upper), by_limit, strict=True):
            moved -= np.where(np.isfinite(limits[:, i]), limits[:, i], 0.0) * slope[:, i]
        pulled = sum(2.0 * R[:, i, j] * cov[:, i, j] for j in range(n) if j != i)
        cov[:, i, i] = 0.5 * (moved - pulled)
    return log_p, by_limit[0], by_limit[1], cov


def _given(
    known: list[int],
    values: FloatArray,
    others: list[int],
    lower: FloatArray,
    upper: FloatArray,
    R: FloatArray,
) -> FloatArray:
    """Return log P (m,) of the other coordinates, where known ones have these values (m, k)."""
    if not others:
        return np.zeros(len(lower))
    own = R[:, known][:, :, known]
    W = np.linalg.solve(own, R[:, known][:, :, others])
    S = R[:, others][:, :, others] - np.einsum("mki,mkj->mij", R[:, known][:, :, others], W)
    mean = np.einsum("mki,mk->mi", W, values)
    sd = np.sqrt(np.einsum("mii->mi", S))
    corr = np.clip(S / sd[:, :, None] / sd[:, None, :], -1.0, 1.0)
    low, high = ((one[:, others] - mean) / sd for one in (lower, upper))
    return log_probabilities(low, high, corr)[0]
