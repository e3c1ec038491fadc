"""Gaussians N(m, v) tilted by a likelihood: normalisers and moments of p(y | f) N(f; m, v), by quadrature.

With Z(m) the normaliser, the first two derivatives of log Z in m are all that expectation propagation needs:

    d log Z / dm = E[g] = E[f - m] / v,    -d2 log Z / dm2 = E[W] - var(g) = (1 - var(f) / v) / v,

expectations under the tilted law, g and W the likelihood's first and minus its second derivative. The former forms do
not cancel where v is small; the latter do not where it is large, where g turns too fast for a rule to see.

The tilted law is log-concave. It is integrated on both sides of its mode, as far as it falls by exp(-40), by Gauss and
Legendre's rule on panels that are halved until halves agree with the whole: a likelihood that turns within one unit of f
is seen beside a Gaussian that is a thousand wide.

References
----------
Rasmussen and Williams (2006), Eqs. (3.52)-(3.59), Algorithm 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import roots_legendre

from gpcmc._validation import FloatArray

_NODES = 10  # a panel
_PANELS = (2.0, 12.0)  # where the first ones end, in widths of the peak
_FALL = 40.0  # in log density, where the integral ends
_STEPS = 120  # of Newton's method, at most
_HALVINGS = 25  # of a panel, at most
_AGREED = (
    1e-8  # of a moment: halves that differ by less from the whole are themselves exact to rounding
)
_CHUNK = 2048  # patterns at a time


class Tilted(NamedTuple):
    """A tilted Gaussian for each pattern (n,).

    Attributes
    ----------
    log_z : (n,) array
        Log of the normaliser.
    slope, curvature : (n,) array
        The first, and minus the second, derivative of `log_z` in the Gaussian's mean; the latter is at least zero.
    ratio : (n,) array
        Variance of the tilted law over the Gaussian's: 1 - variance * curvature, without cancellation.
    """

    log_z: FloatArray
    slope: FloatArray
    curvature: FloatArray
    ratio: FloatArray

    def sites(self, mean: FloatArray) -> FloatArray:
        """Return the terms (2, n) of precision tau and shift nu with these moments, for Gaussians of means (n,)."""
        return np.array([self.curvature, self.slope + mean * self.curvature]) / self.ratio


def by_quadrature(
    log_likelihood: Callable[[FloatArray, FloatArray], FloatArray],
    derivatives: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    y: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
) -> Tilted:
    """Integrate a log-concave likelihood, given by log p(y | f) and its derivatives, over Gaussians.

    Parameters
    ----------
    log_likelihood, derivatives : callable
        As of `gpcmc.likelihood.form.Likelihood`.
    y, mean, variance : (n,) arrays
        Labels -1/+1; variances may be zero.
    """
    y, mean, variance = (np.atleast_1d(one) for one in np.broadcast_arrays(y, mean, variance))
    found = np.empty((4, len(y)))
    for start in range(0, len(y), _CHUNK):
        here = slice(start, start + _CHUNK)
        found[:, here] = _integrate(
            log_likelihood, derivatives, y[here], mean[here], variance[here]
        )
    return Tilted(*found)


def _integrate(log_likelihood, derivatives, y, mean, variance):  # type: ignore[no-untyped-def]
    """One chunk, in x = (f - mode) / root of the variance."""
    root = np.sqrt(variance)
    mode = _mode(derivatives, y, mean, variance)
    g_mode = derivatives(y, mode)[0]
    offset = root * g_mode  # (mode - mean) / root, where that is not 0 / 0
    top = log_likelihood(y, mode) - 0.5 * offset**2

    def height(i, x):  # type: ignore[no-untyped-def]
        f = mode[i] + root[i] * x
        return log_likelihood(y[i], f) - 0.5 * (x + offset[i]) ** 2 - top[i]

    def moments(i, low, high):  # type: ignore[no-untyped-def]
        """Integrals (6, panels) of 1, x, x^2, W, g, g^2 over panels of patterns i; g from its value at the mode."""
        node, weight = _rule()
        x = low + (high - low) * node[:, None]
        g, W = derivatives(y[i], mode[i] + root[i] * x)
        g, W = np.where(variance[i] < 1.0, (g - g_mode[i], W), 0.0)
        w = weight[:, None] * np.abs(high - low) * np.exp(height(i, x))
        return np.array([np.sum(w * one, axis=0) for one in (1.0, x, x * x, W, g, g * g)])

    every = np.arange(len(y))
    left, right = (_end(side, derivatives, y, mode, root, offset, height) for side in (-1.0, 1.0))
    # the first panels have the width of the peak, beside which the likelihood may go on to turn
    peak = 1.0 / np.sqrt(1.0 + variance * derivatives(y, mode)[1])
    ends = [0.0 * peak]
    for side, end in ((-1.0, left), (1.0, right)):
        ends += [side * np.minimum(np.abs(end), far * peak) for far in _PANELS] + [end]
    starts = [0.0 * peak, *ends[1 : len(_PANELS) + 1], 0.0 * peak, *ends[len(_PANELS) + 2 : -1]]
    i, low, high = np.tile(every, len(starts)), np.concatenate(starts), np.concatenate(ends[1:])
    there = low != high
    i, low, high = i[there], low[there], high[there]
    whole, total = moments(i, low, high), np.zeros((6, len(y)))
    size = np.array([np.bincount(i, np.abs(one), len(y)) for one in whole])
    # log densities are rounded as they are large
    allowed = _AGREED + 1e-15 * (np.abs(top) + offset**2)
    for halving in range(_HALVINGS):
        middle = 0.5 * (low + high)
        near, far = moments(i, low, middle), moments(i, middle, high)
        agreed = (np.abs(near + far - whole) <= allowed[i] * size[:, i]).all(axis=0)
        if halving == _HALVINGS - 1:
            agreed[:] = True
        for k in range(6):
            total[k] += np.bincount(i[agreed], (near + far)[k, agreed], len(y))
        open_ = ~agreed
        if not open_.any():
            break
        whole = np.concatenate([near[:, open_], far[:, open_]], axis=1)
        low, high = (
            np.concatenate([low[open_], middle[open_]]),
            np.concatenate([middle[open_], high[open_]]),
        )
        i = np.tile(i[open_], 2)
    Z, centre, square, W, g, g_square = total / np.array([total[0] ** 0, *[total[0]] * 5])
    ratio = square - centre**2
    small, wide = variance < 1.0, np.maximum(variance, 1.0)
    slope = np.where(small, g_mode + g, (centre + offset) / np.sqrt(wide))
    curvature = np.where(small, W - (g_square - g**2), (1.0 - ratio) / wide)
    curvature = np.maximum(curvature, 0.0)
    ratio = np.where(small, 1.0 - variance * curvature, ratio)
    return top + np.log(Z) - 0.5 * np.log(2.0 * np.pi), slope, curvature, ratio


@cache
def _rule() -> tuple[FloatArray, FloatArray]:
    """Gauss and Legendre's nodes and weights on [0, 1]."""
    node, weight = roots_legendre(_NODES)
    return 0.5 * (node + 1.0), 0.5 * weight


def _mode(derivatives, y, mean, variance):  # type: ignore[no-untyped-def]
    """Solve f = mean + variance g(f), by Newton's method and bisection in turn: g falls in f."""
    g = derivatives(y, mean)[0]
    low, high = np.minimum(mean, mean + variance * g), np.maximum(mean, mean + variance * g)
    f = mean
    for step in range(_STEPS):
        g, W = derivatives(y, f)
        gap = f - mean - variance * g
        low, high = np.where(gap < 0, f, low), np.where(gap > 0, f, high)
        new = f - gap / (1.0 + variance * W)
        if step % 2 == 0 and np.max(np.abs(new - f) / (1.0 + np.abs(f))) < 1e-10:
            break
        outside = (new < low) | (new > high)
        f = np.where(outside | (step % 2 == 1), 0.5 * (low + high), new)
    return f


def _end(side, derivatives, y, mode, root, offset, height):  # type: ignore[no-untyped-def]
    """Return about where the log density has fallen so much, by Newton's method from outside: it is concave."""
    every, x = np.arange(len(y)), np.full(len(y), side * np.sqrt(2.0 * _FALL))
    for _ in range(_STEPS):
        missing = -_FALL - height(every, x)
        if (missing < 0.1 * _FALL).all():
            break
        steep = root * derivatives(y, mode + root * x)[0] - (x + offset)
        x = np.where(missing > 0.0, x + missing / steep, x)
    return x
