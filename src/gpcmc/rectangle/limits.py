r"""Mass, moments and draws of a standard normal between two limits, without cancellation and in every tail.

All functions are elementwise in limits a < b, either of which may be infinite. They first reflect the interval, so that
its larger part lies on one known side, and then tell apart three cases:

narrow
    (b - a) max(|a|, |b|) <= 10: the density is smooth over the interval, and 20 Gauss-Legendre nodes around its middle
    reach rounding; no difference of distribution functions is taken.
tail
    both limits on one side: with Q the upper tail, Q(b) / Q(a) from scaled complementary error functions, in which
    exp(-a^2/2) has cancelled.
central
    zero inside: one minus two small tails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp

from gpcmc._validation import FloatArray
from gpcmc.likelihood.probit import hazard

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(20)
_NARROW = 10.0
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_ROOT_2 = float(np.sqrt(2.0))
# A difference of two distribution functions keeps ten digits if it is at least this share of the larger one.
_SHARE = 1e-6
_SMALLEST = 1e-290  # of a distribution function that is taken off the log scale
_LAST = 1.0 - 2.0**-32  # uniform points are on a grid of 2^-30, and 1 would be an infinite quantile


def moments(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log P(a < Z < b), E[Z | a < Z < b] and w = 1 - Var[Z | a < Z < b]; see `all_moments`."""
    return all_moments(a, b)[:3]


def all_moments(
    a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the log mass of intervals a < b (n,), and mean, w and variance inside, (n,) each.

    w is 1 - variance, in [0, 1]: d mean(a - t, b - t) / dt = -w in a shift of both limits. The variance has its full
    precision where the interval is narrow.
    """
    with np.errstate(invalid="ignore"):
        flip = a + b < 0.0  # NaN where both are infinite: not reflected
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    log_p, mean, w, variance = (np.empty_like(low) for _ in range(4))
    width = high - low
    with np.errstate(over="ignore"):
        narrow = width * np.maximum(np.abs(low), np.abs(high)) <= _NARROW
    tail = ~narrow & (low > 0.0)
    central = ~narrow & ~tail
    for mask, rule in ((narrow, _narrow), (tail, _tail), (central, _central)):
        if mask.any():
            log_p[mask], mean[mask], w[mask], variance[mask] = rule(low[mask], high[mask])
    w, variance = np.clip(w, 0.0, 1.0), np.clip(variance, 0.0, 1.0)
    return log_p, np.where(flip, -mean, mean), w, variance


def log_mass(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return log P(a < Z < b); minus infinity where a >= b."""
    return _quick(a, b)[0]


def draw(a: FloatArray, b: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log P(a < Z < b), and Z by inversion of uniform numbers.

    Parameters
    ----------
    a, b : (m,) array
        Limits. Where a >= b the log probability is minus infinity and the draw is of no meaning, but finite.
    u : (m,) array
        In [0, 1); Z falls with u.
    """
    log_p, flip, low, high, p, p_high, hard = _quick(a, b)
    v = np.minimum(np.where(flip, 1.0 - u, u), _LAST)
    z = ndtri(np.maximum(p_high - v * p, 1e-300))
    if hard.any():
        z[hard] = _hard_draw(low[hard], high[hard], v[hard])
    z = np.clip(z, low, np.maximum(low, high))
    return log_p, np.where(flip, -z, z)


def _narrow(a: FloatArray, b: FloatArray) -> tuple[FloatArray, ...]:
    half, middle = 0.5 * (b - a), 0.5 * (a + b)
    x = half[:, None] * _NODE
    g = _WEIGHT * np.exp(-x * (middle[:, None] + 0.5 * x))
    total = g.sum(axis=1)
    shift = np.sum(g * x, axis=1) / total
    variance = np.sum(g * (x - shift[:, None]) ** 2, axis=1) / total
    with np.errstate(divide="ignore"):  # limits that rounding made equal
        log_p = np.log(half * total) - 0.5 * middle**2 - _LOG_ROOT_2PI
    return log_p, middle + shift, 1.0 - variance, variance


def _tail(a: FloatArray, b: FloatArray) -> tuple[FloatArray, ...]:
    r_a, w_a = hazard(-a)  # phi(a) / Q(a), and 1 - Var[Z | Z > a]
    ratio = _tail_ratio(a, b)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        r_b = np.where(np.isinf(b), 0.0, np.sqrt(2.0 / np.pi) / erfcx(b / _ROOT_2))
        r_b, b = np.where(ratio > 0, r_b, 0.0), np.where(ratio > 0, b, 0.0)
    odds = ratio / (1.0 - ratio)
    less = odds * (r_b - r_a)  # of the mean, by the upper limit
    w = w_a + less**2 + odds * (r_b * (b - 2.0 * r_a) + r_a * (2.0 * r_a - a))
    return log_ndtr(-a) + np.log1p(-ratio), r_a - less, w, 1.0 - w


def _central(a: FloatArray, b: FloatArray) -> tuple[FloatArray, ...]:
    outside = ndtr(a) + ndtr(-b)
    p = 1.0 - outside
    with np.errstate(over="ignore"):
        at_a, at_b = (np.exp(-0.5 * x**2 - _LOG_ROOT_2PI) for x in (a, b))
    a, b = (np.where(np.isinf(x), 0.0, x) for x in (a, b))
    mean = (at_a - at_b) / p
    w = mean**2 + (b * at_b - a * at_a) / p
    return np.log1p(-outside), mean, w, 1.0 - w


def _tail_ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return Q(b) / Q(a) for 0 < a < b."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-0.5 * (b - a) * (a + b)) * erfcx(b / _ROOT_2) / erfcx(a / _ROOT_2)


def _quick(a: FloatArray, b: FloatArray) -> tuple[Any, ...]:
    """Return log P, and all that a draw needs; the larger part of each interval is reflected to the left."""
    with np.errstate(invalid="ignore"):
        flip = a + b > 0.0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    p_low, p_high = ndtr(low), ndtr(high)
    p = p_high - p_low
    hard = (p < _SHARE * p_high) | (p_high < _SMALLEST)
    log_p = np.log(np.maximum(p, _SMALLEST))
    log_p[hard] = -np.inf
    there = hard & (low < high)
    if there.any():
        log_p[there] = moments(low[there], high[there])[0]
    return log_p, flip, low, high, p, p_high, hard


def _hard_draw(low: FloatArray, high: FloatArray, v: FloatArray) -> FloatArray:
    """Draw from intervals that are far out, or so narrow that their density is an exponential."""
    width, slope = high - low, np.maximum(-0.5 * (low + high), 1e-300)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = np.where(high < 0.0, _tail_ratio(np.maximum(-high, 0.0), -low), 1.0)
        inside = log_ndtr(high) + np.log1p(-v * (1.0 - ratio))
        far = ndtri_exp(np.minimum(inside, -(2.0**-54)))
        near = high + np.log1p(v * np.expm1(-slope * width)) / slope
        near = np.where(slope * width < 1e-12, high - v * width, near)
    z = np.where(ratio < 1.0 - _SHARE, far, near)
    return np.where(np.isfinite(z), z, np.where(np.isfinite(high), high, 0.0))
