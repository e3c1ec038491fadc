r"""Gradients of log P in the limits, the mean and the covariance.

With the points U of the unit cube fixed, a sample's weight is a smooth function of the limits and of the factor of
the covariance, for the tilt mu may be held: the estimate is unbiased whatever it is. The derivative of the average
weight is therefore the average of the derivatives, which one pass backwards through the coordinates finds. With low
and high the limits of Z_i = e_i - mu_i, Phi(z) = (1 - u) Phi(high) + u Phi(low), and a bar for the derivative of the
log weight:

    low-bar  = -phi(low) / P + e-bar u phi(low) / phi(z),
    high-bar = phi(high) / P + e-bar (1 - u) phi(high) / phi(z),
    c-bar_i  = -(low-bar_i + high-bar_i),       e-bar_i = -mu_i + sum_{j>i} G_ji c-bar_j.

The gradient of log P is their weighted mean. That in the covariance follows by the derivative of a Cholesky factor,
and between independent blocks from d2 P / dm_i dm_j = dP / dc_ij (Plackett 1954). As a shift of all is a shift of
the limits, the gradient in the mean is minus the sum of those in the limits.

References
----------
Murray (2016), "Differentiation of the Cholesky decomposition". Plackett (1954), Biometrika 41, 351.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from gpcmc._validation import FloatArray
from gpcmc.rectangle import rounds
from gpcmc.rectangle.blocks import Block, Reduced
from gpcmc.rectangle.factor import Factor, factorize
from gpcmc.rectangle.intervals import draw
from gpcmc.rectangle.tilt import rectangle_tilt

_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_CHUNK = 1024  # points whose way back is held


@dataclass(frozen=True, slots=True)
class RectangleGradient:
    """Derivatives of log P(lower < v < upper), and their standard errors.

    Attributes
    ----------
    lower : (n,) array
        In the lower limits; zero for an infinite one.
    upper : (n,) array
        In the upper limits; zero for an infinite one.
    mean : (n,) array
        In the mean.
    cov : (n, n) array
        Symmetric: a symmetric change D of the covariance changes log P by ``np.sum(cov * D)``, to first order.
    lower_se : (n,) array
        Standard errors, from the spread between 16 scrambles.
    upper_se : (n,) array
        The same, of `upper`.
    mean_se : (n,) array
        The same, of `mean`.
    cov_se : (n, n) array
        The same, of `cov`.
    effective_fraction : float
        The least over the blocks of effective samples over samples; errors mean little where it is below 0.01.
    """

    lower: FloatArray
    upper: FloatArray
    mean: FloatArray
    cov: FloatArray
    lower_se: FloatArray
    upper_se: FloatArray
    mean_se: FloatArray
    cov_se: FloatArray
    effective_fraction: float


@dataclass(frozen=True, slots=True)
class _BlockGradient:
    """Of a block, in the problem's units; first axis: the scrambles, each a contribution to a mean."""

    lower: FloatArray  # (r, m)
    upper: FloatArray
    cov: FloatArray  # (r, m, m)
    effective: float


def gradient(reduced: Reduced, points: int, rng: np.random.Generator) -> RectangleGradient:
    """Return the gradient of a problem in standard form.

    Parameters
    ----------
    reduced : Reduced
    points : int
        Sobol' points of each of 16 scrambles, a power of two.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If the probability is zero or the covariance singular, where log P has no derivative.
    """
    if not reduced.possible:
        raise ValueError(
            "lower and upper must leave a probability above zero, for its logarithm's gradient"
        )
    n = reduced.size
    low, high, mean = (np.zeros((2, n)) for _ in range(3))
    cov = np.zeros((2, n, n))
    effective = 1.0
    for block in reduced.blocks:
        found = _block(block, points, rng)
        effective = min(effective, found.effective)
        at = block.index
        low[:, at], high[:, at] = _mean_and_error(found.lower), _mean_and_error(found.upper)
        mean[:, at] = _mean_and_error(-(found.lower + found.upper))
        cov[:, at[:, None], at] = _mean_and_error(found.cov)
    _between_blocks(reduced, mean, cov)
    return RectangleGradient(
        low[0], high[0], mean[0], cov[0], low[1], high[1], mean[1], cov[1], effective
    )


def _mean_and_error(x: FloatArray) -> FloatArray:
    return np.stack([x.mean(axis=0), np.std(x, axis=0, ddof=1) / np.sqrt(len(x))])


def _between_blocks(reduced: Reduced, mean: FloatArray, cov: FloatArray) -> None:
    for block in reduced.blocks:
        others = np.setdiff1d(np.concatenate([b.index for b in reduced.blocks]), block.index)
        if len(others):
            place = (block.index[:, None], others)
            cov[0][place] = 0.5 * np.outer(mean[0, block.index], mean[0, others])
            cov[1][place] = 0.5 * np.hypot(
                np.outer(mean[0, block.index], mean[1, others]),
                np.outer(mean[1, block.index], mean[0, others]),
            )


def _block(block: Block, points: int, rng: np.random.Generator) -> _BlockGradient:
    factor = factorize(block)
    if factor.ties:
        raise ValueError(
            f"cov must be regular, for a gradient; {len(block.R)} correlated coordinates have rank {factor.rank}"
        )
    rounds.check_dimension(factor.rank)
    mu = rectangle_tilt(factor.L, factor.lower, factor.upper).mu
    seeds = rng.integers(2**63, size=rounds.SCRAMBLES)
    each = [_scramble(factor, mu, points, int(seed)) for seed in seeds]
    log_Z = np.array([one[0] for one in each])
    share = np.exp(log_Z - logsumexp(log_Z) + np.log(len(each)))
    squares = logsumexp([one[1] for one in each])
    effective = float(np.exp(2.0 * logsumexp(log_Z) - squares) / (points * len(each)))
    # sums over the scrambles, and what each deviates from its share in them
    raw = [share[:, None] * np.array([one[k] for one in each]) for k in (2, 3)]
    inner = share[:, None, None] * np.array([one[4] for one in each])
    low, high = (x - (share[:, None] - 1.0) * x.mean(axis=0) for x in raw)
    G = inner - (share[:, None, None] - 1.0) * inner.mean(axis=0)
    return _in_units(block, factor, low, high, G, effective)


def _scramble(
    factor: Factor, mu: FloatArray, points: int, seed: int
) -> tuple[float, float, FloatArray, FloatArray, FloatArray]:
    """Return log sum of w and of w^2, and weighted means of low-bar, high-bar and G-bar."""
    n = factor.rank
    parts = []
    for U in rounds.sobol(n, points, np.random.default_rng(seed)):
        for start in range(0, U.shape[1], _CHUNK):
            parts.append(_there_and_back(factor, mu, U[:, start : start + _CHUNK]))
    log_w = np.array([part[0] for part in parts])
    total = logsumexp(log_w)
    share = np.exp(log_w - total)
    means = [np.tensordot(share, np.array([part[k] for part in parts]), 1) for k in (2, 3, 4)]
    return float(total), float(logsumexp([part[1] for part in parts])), means[0], means[1], means[2]


def _there_and_back(
    factor: Factor, mu: FloatArray, U: FloatArray
) -> tuple[float, float, FloatArray, FloatArray, FloatArray]:
    n, d = factor.rank, np.diag(factor.L)
    G = np.tril(factor.L, -1) / d[:, None]
    lower, upper = factor.lower / d - mu, factor.upper / d - mu
    E, to_low, to_high, by_low, by_high = (np.empty(U.shape) for _ in range(5))
    log_w = np.zeros(U.shape[1])
    for i in range(n):
        c = G[i, :i] @ E[:i]
        low, high = lower[i] - c, upper[i] - c
        log_p, z = draw(low, high, U[i])
        E[i] = mu[i] + z
        log_w += log_p - mu[i] * E[i]
        at_low, at_high = (-0.5 * x * x - _LOG_ROOT_2PI for x in (low, high))
        to_low[i], to_high[i] = np.exp(at_low - log_p), np.exp(at_high - log_p)
        at_z = -0.5 * z * z - _LOG_ROOT_2PI
        with np.errstate(divide="ignore", over="ignore"):
            by_low[i] = np.exp(np.log(U[i]) + at_low - at_z)
            by_high[i] = np.exp(np.log1p(-U[i]) + at_high - at_z)
    low_bar, high_bar, c_bar = (np.empty(U.shape) for _ in range(3))
    for i in range(n - 1, -1, -1):
        e_bar = G[i + 1 :, i] @ c_bar[i + 1 :] - mu[i]
        low_bar[i] = e_bar * by_low[i] - to_low[i]
        high_bar[i] = to_high[i] + e_bar * by_high[i]
        c_bar[i] = -(low_bar[i] + high_bar[i])
    log_w += 0.5 * float(mu @ mu)
    total = logsumexp(log_w)
    w = np.exp(log_w - total)
    G_bar = np.tril((c_bar * w) @ E.T, -1)
    return float(total), float(logsumexp(2.0 * log_w)), low_bar @ w, high_bar @ w, G_bar


def _in_units(
    block: Block, factor: Factor, low: FloatArray, high: FloatArray, G: FloatArray, effective: float
) -> _BlockGradient:
    """Go from the limits and the rows of the factor, in units of its diagonal, to those of the problem."""
    d, L = np.diag(factor.L), factor.L
    r, m = low.shape
    x_low, x_high = (np.where(np.isinf(x), 0.0, x) for x in (factor.lower, factor.upper))
    low, high = low / d, high / d  # in standard units
    L_bar = G / d[:, None]
    of_d = -(low * x_low + high * x_high + np.einsum("rik,ik->ri", L_bar, L)) / d
    L_bar[:, np.arange(m), np.arange(m)] = of_d
    cov = np.empty((r, m, m))
    R = L @ L.T
    for k in range(r):
        Q = np.tril(L.T @ L_bar[k])
        Q.flat[:: m + 1] *= 0.5
        half = solve_triangular(L, 0.5 * (Q + Q.T), lower=True, trans="T", check_finite=False)
        M = solve_triangular(L, half.T, lower=True, trans="T", check_finite=False)
        pairs = M * R
        # a variance scales the limits and the correlations of its coordinate
        own = -0.5 * (low[k] * x_low + high[k] * x_high) - (pairs.sum(axis=1) - pairs.diagonal())
        M.flat[:: m + 1] = own
        cov[k] = M
    unit = (block.sign * block.sd)[factor.order]
    cov /= np.outer(unit, unit)
    low, high = low / unit, high / unit
    flipped = unit < 0
    low, high = np.where(flipped, high, low), np.where(flipped, low, high)
    back = np.argsort(factor.order)
    return _BlockGradient(low[:, back], high[:, back], cov[:, back[:, None], back], effective)
