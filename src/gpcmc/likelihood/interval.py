r"""Mass and moments of a standard normal between two limits, without cancellation and in every tail.

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

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from gpcmc._validation import FloatArray
from gpcmc.likelihood.probit import hazard

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(20)
_NARROW = 10.0
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_ROOT_2 = float(np.sqrt(2.0))


def moments(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log P(a < Z < b), E[Z | a < Z < b] and w = 1 - Var[Z | a < Z < b]; see `all_moments`."""
    return all_moments(a, b)[:3]


def all_moments(
    a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the mass of an interval on the log scale, and mean and variance inside.

    Parameters
    ----------
    a, b : (n,) array
        Limits, a < b.

    Returns
    -------
    log_mass : (n,) array
    mean : (n,) array
        Its derivative in a shift of both limits is what makes `w`: d mean(a - t, b - t) / dt = -w.
    w : (n,) array
        In [0, 1].
    variance : (n,) array
        1 - w, to full precision where the interval is narrow.
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
    ratio = tail_ratio(a, b)
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


def tail_ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return Q(b) / Q(a) for 0 < a < b."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-0.5 * (b - a) * (a + b)) * erfcx(b / _ROOT_2) / erfcx(a / _ROOT_2)
