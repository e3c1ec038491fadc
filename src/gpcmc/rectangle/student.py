r"""Rectangles of the multivariate Student's t, as normal ones averaged over a scale.

v = mean + z / s with z ~ N(0, cov) and df s^2 chi-squared on df degrees of freedom, so that

    P(lower < v < upper) = E[ P(s (lower - mean) < z < s (upper - mean)) ].

In x = log s the integrand is smooth and falls on both sides, and the trapezoidal rule converges exponentially. Where it
lies is found from the closed forms, or from the bound of minimax tilting, which is near the probability.

References
----------
Genz and Bretz (2009), Computation of Multivariate Normal and t Probabilities, section 2.1.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import gammaln, logsumexp

from gpcmc._validation import FloatArray
from gpcmc.rectangle.arguments import Problem
from gpcmc.rectangle.blocks import Block, reduce
from gpcmc.rectangle.estimate import Options, RectangleEstimate, Scale, estimate, worst
from gpcmc.rectangle.order import ordered
from gpcmc.rectangle.small import LARGEST
from gpcmc.rectangle.solve import closed_form
from gpcmc.rectangle.tilt import minimax_tilt

_FALL = 42.0  # nats below the peak where the integral ends, of closed forms
_SAMPLED_FALL, _SAMPLED_NODES = 18.0, 25  # and of samples, whose error is larger
_AGREED = 1e-13
_MOST = 2**12  # nodes
_STIRLING = 40.0  # half the degrees of freedom from which on the series for log Gamma is exact


def check_df(value: object) -> float | None:
    """Return degrees of freedom, or None for the normal.

    Raises
    ------
    ValueError
        If they are not a number above zero.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value) > 0:
        raise ValueError(
            f"df must be a number above 0, or None for the normal distribution; got {value!r}"
        )
    return None if math.isinf(value) else float(value)


def student_estimate(
    problem: Problem, df: float, options: Options, rng: np.random.Generator
) -> RectangleEstimate:
    """Estimate the probability of one checked rectangle under Student's t."""
    low, high = problem.lower - problem.mean, problem.upper - problem.mean
    zero = np.zeros(len(low))

    def at(scale: float) -> Problem:
        return Problem(scale * low, scale * high, zero, problem.cov, problem.slack)

    whole = reduce(at(1.0))
    if not (whole.possible and whole.blocks):
        return estimate(at(1.0), options, rng)
    exact = options.request.method == "auto" and all(
        len(block.R) <= LARGEST for block in whole.blocks
    )

    def log_f(x: float) -> float:
        inside = sum(_log_near(block, math.exp(x)) for block in whole.blocks)
        return log_density(x, df) + inside

    x, values = _nodes(log_f, 1.0 / math.sqrt(2.0 * df), exact)
    if not np.isfinite(values.max()):  # floating point holds nothing of it
        return estimate(at(1.0), options, rng)
    kept = np.flatnonzero(values > values.max() - _FALL)
    found = [estimate(at(math.exp(x[k])), options, rng) for k in kept]
    logs = np.array(
        [log_density(x[k], df) + one.log_probability for k, one in zip(kept, found, strict=True)]
    )
    total = float(logsumexp(logs))
    share = np.exp(logs - total)
    errors = share * np.array([one.standard_error for one in found])
    largest = found[int(np.argmax(share))]
    log_p = min(total + math.log(x[1] - x[0]), 0.0)
    return replace(
        largest,
        log_probability=log_p,
        # errors of closed forms may be of one sign
        standard_error=float(errors.sum() + _AGREED if exact else np.sqrt(np.sum(errors**2))),
        samples=sum(one.samples for one in found),
        status=worst([one.status for one in found]),
        _scales=tuple(
            Scale(float(share[j]), math.exp(x[k]), one)
            for j, (k, one) in enumerate(zip(kept, found, strict=True))
            if share[j] > 0.0
        ),
    )


def log_density(x: float, df: float) -> float:
    """Return the log density of x = log s, where df s^2 is chi-squared; without cancellation where df is large."""
    half = 0.5 * df
    if half < _STIRLING:
        rest = float(gammaln(half)) - ((half - 0.5) * math.log(half) - half)
    else:
        rest = 0.5 * math.log(2.0 * math.pi) + 1 / (12 * half) - 1 / (360 * half**3)
        rest += 1 / (1260 * half**5)
    # (z^z e^-z / Gamma(z)) e^{-z (e^{2x} - 1 - 2x)} times two
    if abs(x) < 1e-2:
        away = sum((2.0 * x) ** k / math.factorial(k) for k in range(2, 12))
    else:
        away = math.expm1(2.0 * x) - 2.0 * x
    return math.log(2.0) + 0.5 * math.log(half) - rest - half * away


def _log_near(block: Block, scale: float) -> float:
    """Return about the log probability of a block whose limits are scaled: exactly, or a bound."""
    scaled = replace(block, lower=scale * block.lower, upper=scale * block.upper)
    exact = closed_form(scaled)
    if exact is not None:
        return exact.log_probability
    given = ordered(scaled.R, scaled.lower, scaled.upper, scaled.slack)
    tilt = minimax_tilt(given.factor, given.lower, given.upper, starts=[given.start])
    return min(tilt.log_bound, 0.0)


def _nodes(
    log_f: Callable[[float], float], step: float, exact: bool
) -> tuple[FloatArray, FloatArray]:
    """Return nodes at even distances, and log f there: as many as closed forms need, or 25."""
    fall = _FALL if exact else _SAMPLED_FALL
    known: dict[float, float] = {}

    def f(x: float) -> float:
        if x not in known:
            known[x] = log_f(x)
        return known[x]

    top = 0.0
    for side in (-1.0, 1.0):  # to the top, by steps that grow
        size = step
        while f(top + side * size) > f(top):
            top, size = top + side * size, 1.5 * size
    ends = []
    for side in (-1.0, 1.0):
        way = size = step
        while f(top + side * way) > f(top) - fall:
            size *= 1.25
            way += size
        ends.append(top + side * way)
    count = 32 if exact else _SAMPLED_NODES - 1
    while True:
        x = np.linspace(ends[0], ends[1], count + 1)
        values = np.array([f(float(one)) for one in x])
        if not exact or count >= _MOST:
            return x, values
        fine, coarse = float(logsumexp(values)), float(logsumexp(values[::2])) + math.log(2.0)
        # the error of a rule that converges exponentially is squared where the distance is halved
        if abs(fine - coarse) < math.sqrt(_AGREED):
            return x, values
        count *= 2
