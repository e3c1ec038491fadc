"""Gaussians N(m, v) tilted by a likelihood: normalisers and moments of p(y | f) N(f; m, v), by quadrature.

With Z(m) the normaliser, the first two derivatives of log Z in m are all that expectation propagation needs:

    d log Z / dm = E[g] = E[f - m] / v,    -d2 log Z / dm2 = E[W] - var(g) = (1 - var(f) / v) / v,

expectations under the tilted law, g and W the likelihood's first and minus its second derivative. The former forms do
not cancel where v is small; the latter do not where it is large, where g turns too fast for a rule to see.

The tilted law is log-concave. It is integrated on both sides of its mode, as far as it falls by exp(-40), by Gauss and
Legendre's rule on panels that are halved until halves agree with the whole: a likelihood that turns within one unit of
f is seen beside a Gaussian that is a thousand wide.

References
----------
Rasmussen and Williams (2006), Eqs. (3.52)-(3.59), Algorithm 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from gpcmc._validation import FloatArray

#: log p(y | f) of (y, f), elementwise.
Log = Callable[[FloatArray, FloatArray], FloatArray]
#: Its first derivative in f and minus its second one.
Derivatives = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

_NODES = 10  # a panel
_PANELS = (2.0, 12.0)  # where the first ones end, in widths of the peak
_FALL = 40.0  # in log density, where the integral ends
_STEPS = 120  # of Newton's method, at most
_HALVINGS = 25  # of a panel, at most
_AGREED = 1e-8  # of a moment: halves so near to the whole are exact to rounding
_CHUNK = 2048  # patterns at a time


class Tilted(NamedTuple):
    """A tilted Gaussian for each pattern (n,).

    Attributes
    ----------
    log_z : (n,) array
        Log of the normaliser.
    slope : (n,) array
        Derivative of `log_z` in the Gaussian's mean.
    curvature : (n,) array
        Minus its second derivative, which is at least zero.
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
    log_likelihood: Log,
    derivatives: Derivatives,
    y: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
) -> Tilted:
    """Integrate a log-concave likelihood, given by log p(y | f) and its derivatives, over Gaussians (n,).

    Labels are -1/+1; variances may be zero.
    """
    y, mean, variance = (np.atleast_1d(one) for one in np.broadcast_arrays(y, mean, variance))
    found = np.empty((4, len(y)))
    for start in range(0, len(y), _CHUNK):
        here = slice(start, start + _CHUNK)
        law = _Law.of(log_likelihood, derivatives, y[here], mean[here], variance[here])
        found[:, here] = law.tilted()
    return Tilted(*found)


@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """Tilted laws of n patterns in x = (f - mode) / root of the variance."""

    log_likelihood: Log
    derivatives: Derivatives
    y: FloatArray
    variance: FloatArray
    root: FloatArray  # (n,)
    mode: FloatArray  # (n,)
    g_mode: FloatArray  # (n,) the likelihood's first derivative at the mode
    offset: FloatArray  # (n,) root g_mode, which is (mode - mean) / root where that is not 0 / 0
    top: FloatArray  # (n,) log density at the mode

    @classmethod
    def of(
        cls,
        log_likelihood: Log,
        derivatives: Derivatives,
        y: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
    ) -> _Law:
        """Find the modes."""
        root, mode = np.sqrt(variance), _mode(derivatives, y, mean, variance)
        g_mode = derivatives(y, mode)[0]
        offset = root * g_mode
        top = log_likelihood(y, mode) - 0.5 * offset**2
        return cls(log_likelihood, derivatives, y, variance, root, mode, g_mode, offset, top)

    def height(self, i: NDArray[np.intp], x: FloatArray) -> FloatArray:
        """Log density over its largest value at points x (..., m) of patterns i (m,)."""
        f = self.mode[i] + self.root[i] * x
        density = self.log_likelihood(self.y[i], f) - 0.5 * (x + self.offset[i]) ** 2
        return density - self.top[i]

    def moments(self, i: NDArray[np.intp], low: FloatArray, high: FloatArray) -> FloatArray:
        """Integrals (6, m) of 1, x, x^2, W, g, g^2 over panels of patterns i; g from its value at the mode.

        The last three are zero where the variance is large.
        """
        node, weight = _rule()
        x = low + (high - low) * node[:, None]
        g, W = self.derivatives(self.y[i], self.mode[i] + self.root[i] * x)
        g, W = np.where(self.variance[i] < 1.0, (g - self.g_mode[i], W), 0.0)
        w = weight[:, None] * np.abs(high - low) * np.exp(self.height(i, x))
        return np.array([np.sum(w * one, axis=0) for one in (1.0, x, x * x, W, g, g * g)])

    def end(self, side: float) -> FloatArray:
        """About where the density has fallen by exp(-40), by Newton's method from outside: its log is concave."""
        every = np.arange(len(self.y))
        x = np.full(len(self.y), side * np.sqrt(2.0 * _FALL))
        for _ in range(_STEPS):
            missing = -_FALL - self.height(every, x)
            if (missing < 0.1 * _FALL).all():
                break
            g = self.derivatives(self.y, self.mode + self.root * x)[0]
            steep = self.root * g - (x + self.offset)
            x = np.where(missing > 0.0, x + missing / steep, x)
        return x

    def panels(self) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Patterns (m,) and ends of the first panels.

        They have the width of the peak, beside which the likelihood may go on to turn.
        """
        peak = 1.0 / np.sqrt(1.0 + self.variance * self.derivatives(self.y, self.mode)[1])
        low, high = [], []
        for side in (-1.0, 1.0):
            end, near = self.end(side), np.zeros_like(peak)
            for far in (*(side * np.minimum(np.abs(end), k * peak) for k in _PANELS), end):
                low.append(near)
                high.append(far)
                near = far
        i = np.tile(np.arange(len(self.y)), len(low))
        starts, ends = np.concatenate(low), np.concatenate(high)
        there = starts != ends
        return i[there], starts[there], ends[there]

    def tilted(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Halve panels until halves agree with the whole, and put the moments together."""
        n, (i, low, high) = len(self.y), self.panels()
        whole, total = self.moments(i, low, high), np.zeros((6, n))
        size = np.array([np.bincount(i, np.abs(one), n) for one in whole])
        # log densities are rounded as they are large
        allowed = _AGREED + 1e-15 * (np.abs(self.top) + self.offset**2)
        for halving in range(_HALVINGS):
            middle = 0.5 * (low + high)
            near, far = self.moments(i, low, middle), self.moments(i, middle, high)
            agreed = (np.abs(near + far - whole) <= allowed[i] * size[:, i]).all(axis=0)
            agreed |= halving == _HALVINGS - 1
            for k in range(6):
                total[k] += np.bincount(i[agreed], (near + far)[k, agreed], n)
            left = ~agreed
            if not left.any():
                break
            whole = np.concatenate([near[:, left], far[:, left]], axis=1)
            low, high = (
                np.concatenate([low[left], middle[left]]),
                np.concatenate([middle[left], high[left]]),
            )
            i = np.tile(i[left], 2)
        Z = total[0]
        centre, square, W, g, g_square = total[1:] / Z
        ratio = square - centre**2
        small, wide = self.variance < 1.0, np.maximum(self.variance, 1.0)
        slope = np.where(small, self.g_mode + g, (centre + self.offset) / np.sqrt(wide))
        curvature = np.where(small, W - (g_square - g**2), (1.0 - ratio) / wide)
        curvature = np.maximum(curvature, 0.0)
        ratio = np.where(small, 1.0 - self.variance * curvature, ratio)
        return self.top + np.log(Z) - 0.5 * np.log(2.0 * np.pi), slope, curvature, ratio


@cache
def _rule() -> tuple[FloatArray, FloatArray]:
    """Gauss and Legendre's nodes and weights on [0, 1]."""
    node, weight = roots_legendre(_NODES)
    return 0.5 * (node + 1.0), 0.5 * weight


def _mode(
    derivatives: Derivatives, y: FloatArray, mean: FloatArray, variance: FloatArray
) -> FloatArray:
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
