"""Rectangles in one and two dimensions, to rounding, and the quadrature of log-concave integrands.

All that matters of a log-concave integrand lies in one interval about its mode, found by bisection. Where its only
sharp features are steps of a known place and width, Gauss-Legendre panels, even in width and geometric towards these,
reach rounding on the log scale; the result is compared with that of all panels halved.

In two dimensions P = integral over l_1 < x < u_1 of phi(x) P(l_2 < rho x + s Z < u_2), s^2 = 1 - rho^2, with two
steps at x = l_2 / rho and u_2 / rho, of width s / |rho|.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from gpcmc._validation import FloatArray
from gpcmc.rectangle.limits import moments

_DEPTH = 46.0  # nats below the mode where the interval ends: e^-46 = 1e-20 of the peak
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_FAR = 1e18  # beyond it nothing of a standard normal is left


def one_dimension(lower: float, upper: float) -> tuple[float, float]:
    """Return log P(lower < Z < upper) and a bound on its rounding."""
    log_p = float(moments(np.array([lower]), np.array([upper]))[0][0])
    return log_p, 1e-15 * (1.0 + abs(log_p))


def two_dimensions(lower: FloatArray, upper: FloatArray, rho: float) -> tuple[float, float]:
    """Return log P(lower < x < upper) and its error, for x standard normal in two dimensions, limits (2,).

    The correlation is -1 < rho < 1.
    """
    s = np.sqrt((1.0 - rho) * (1.0 + rho))

    def log_f(x: FloatArray) -> FloatArray:
        inner = moments((lower[1] - rho * x) / s, (upper[1] - rho * x) / s)[0]
        return inner - 0.5 * x * x - _LOG_ROOT_2PI

    def slope(x: float) -> float:
        at = np.array([x])
        return (
            rho / s * float(moments((lower[1] - rho * at) / s, (upper[1] - rho * at) / s)[1][0]) - x
        )

    ends = (max(float(lower[0]), -_FAR), min(float(upper[0]), _FAR))
    steps = [limit / rho for limit in (lower[1], upper[1]) if rho and np.isfinite(limit)]
    edges, mode = panels(log_f, slope, ends, steps, s / abs(rho) if rho else np.inf)

    def rule(edges: FloatArray) -> FloatArray:
        x, weight = nodes(edges)
        return np.array([logsumexp(log_f(x), b=weight)])

    found, gap = refined(rule, edges, 1e-12)
    value = float(found[0])
    # the exponent is a sum of terms as large as x^2 / 2, each rounded
    return value, max(gap, 4e-15 * (1.0 + abs(value) + mode**2))


def panels(
    log_f: Callable[[FloatArray], FloatArray],
    slope: Callable[[float], float],
    ends: tuple[float, float],
    steps: list[float],
    width: float,
) -> tuple[FloatArray, float]:
    """Return the edges of panels for a log-concave integrand between two ends, and its mode.

    `log_f` is its logarithm at points (m,), `slope` the derivative of that at one point, falling; `steps` says where
    the integrand is sharp, `width` how sharp.
    """
    mode = _root(slope, *ends)
    low, high = _range(log_f, mode, ends)
    return _edges(low, high, steps, width), mode


def nodes(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of all panels."""
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1.0 + _NODES)).ravel(), (half * _WEIGHTS).ravel()


def refined(
    rule: Callable[[FloatArray], FloatArray], edges: FloatArray, agreement: float
) -> tuple[FloatArray, float]:
    """Halve all panels until what a rule makes of them agrees; return that, and the last distance.

    The agreement asked for is that of the first value, a logarithm, with as much more as it is rounded by.
    """
    value = rule(edges)
    gap = np.inf
    for _ in range(5):
        edges = np.sort(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])]))
        coarse, value = value, rule(edges)
        gap = float(np.max(np.abs(value - coarse)))
        if gap <= agreement + 4e-15 * abs(value[0]):
            break
    return value, gap


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function has its root between two ends, or the end that is nearest."""
    if falling(low) <= 0.0:
        return low
    if falling(high) >= 0.0:
        return high
    for _ in range(200):
        # geometric where the ends are far apart, for the scale of the root is not known
        middle = 0.5 * (low + high)
        if high - low > 10.0 * (1.0 + min(abs(low), abs(high))):
            middle = np.sign(middle) * np.sqrt(
                1.0 + min(abs(low), abs(high)) * max(abs(low), abs(high))
            )
            middle = middle if low < middle < high else 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
        if high - low <= 1e-12 * (1e-3 + abs(low)):
            break
    return 0.5 * (low + high)


def _range(
    log_f: Callable[[FloatArray], FloatArray], mode: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Return where the integrand is `_DEPTH` below its mode, or an end before that."""
    peak = float(log_f(np.array([mode]))[0])
    found = []
    for end in ends:
        way = abs(end - mode)
        # a log-concave function is below the depth from some distance on
        near, far = 0.0, min(way, 1e-8 * (1.0 + abs(mode)) * 1e-4)
        sign = 1.0 if end > mode else -1.0

        def inside(distance: float, sign: float = sign) -> bool:
            return float(log_f(np.array([mode + sign * distance]))[0]) > peak - _DEPTH

        while far < way and inside(far):
            near, far = far, min(2.0 * far, way)
        if far < way or not inside(far):
            for _ in range(40):
                middle = 0.5 * (near + far)
                near, far = (middle, far) if inside(middle) else (near, middle)
        found.append(mode + sign * far)
    return found[0], found[1]


def _edges(low: float, high: float, steps: list[float], width: float) -> FloatArray:
    edges = [np.linspace(low, high, 17)]
    for step in steps:
        reach = max(abs(low - step), abs(high - step))
        count = np.ceil(np.log2(max(reach / width, 1.0)))
        away = width * 2.0 ** np.arange(-2.0, min(count, 80.0) + 1.0)
        edges += [step - away, np.array([step]), step + away]
    every = np.unique(np.concatenate(edges))
    return every[(every >= low) & (every <= high)]
