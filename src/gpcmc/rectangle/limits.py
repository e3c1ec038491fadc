r"""Draws of a standard normal between two limits, and its mass for many limits at once, in every tail.

`gpcmc.likelihood.interval` has mass and moments, and what makes them accurate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from gpcmc._validation import FloatArray
from gpcmc.likelihood.interval import all_moments, moments, tail_ratio

__all__ = ["all_moments", "draw", "log_mass", "moments"]

# A difference of two distribution functions keeps ten digits if it is at least this share of the larger one.
_SHARE = 1e-6
_SMALLEST = 1e-290  # of a distribution function that is taken off the log scale
_LAST = 1.0 - 2.0**-32  # uniform points are on a grid of 2^-30, and 1 would be an infinite quantile


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
        ratio = np.where(high < 0.0, tail_ratio(np.maximum(-high, 0.0), -low), 1.0)
        inside = log_ndtr(high) + np.log1p(-v * (1.0 - ratio))
        far = ndtri_exp(np.minimum(inside, -(2.0**-54)))
        near = high + np.log1p(v * np.expm1(-slope * width)) / slope
        near = np.where(slope * width < 1e-12, high - v * width, near)
    z = np.where(ratio < 1.0 - _SHARE, far, near)
    return np.where(np.isfinite(z), z, np.where(np.isfinite(high), high, 0.0))
