"""The quadrature of log-concave integrands with steps of a known place and width.

All that matters of a log-concave integrand lies in one interval about its mode, found by bisection. Where its only
sharp features are steps of a known place and width, Gauss-Legendre panels, even in width and geometric towards these,
reach rounding on the log scale; the result is compared with that of all panels halved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpcmc._validation import FloatArray

_DEPTH = 46.0  # nats below the mode where the interval ends: e^-46 = 1e-20 of the peak
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


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
