r"""The trapezoidal rule over the scale of Student's t.

A Student's t is z / s with df s^2 chi-squared. With x = log s the probability of its rectangle is

    integral of f(x) = p(x) P(x),     P(x) = P(e^x lower < z < e^x upper),

p the density of x. The error of the trapezoidal rule falls exponentially with the number of nodes.

*Where f lies.* The rectangle is a convex cone of (z, s), so that P is log-concave as a function of s (Prekopa 1973),
and log p is concave in s as well. Thus f has one mode, and is above any level on one interval, which a search from the
mode finds. To the left p falls as C e^(df x) only, while P settles as P_0 + (P(a) - P_0) e^(x - a), linear in s: P_0 is
the probability of limits that are zero or infinite. With it the rest of the rule to the left of a node a is two
geometric series,

    h C e^(df a) sum_k [P_0 e^(-df h k) + (P(a) - P_0) e^(-(df + 1) h k)],     k = 1, 2, ...

P has settled where it is that at x - 1 too: log P is concave in s, and cannot leave a line that three points are on.

*How many nodes.* Their distance is halved until the rule agrees with that of every other node; then its own error is
the square of the distance between the two, or about that.

References
----------
Prekopa (1973), Acta Scientiarum Mathematicarum 34, 335. Trefethen and Weideman (2014), SIAM Review 56, 385.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from gpcmc._validation import FloatArray
from gpcmc.rectangle.blocks import Block

#: Distance of nodes at most: P may fall as e^(-s^2) does.
_WIDEST = 0.33
_PURE = 0.1  # nats that log p may be off a straight line to the left of the first node
_FIRST, _MOST = 16, 2**12  # intervals
_STIRLING = 40.0  # half the degrees of freedom from which on the series for log Gamma is exact


@dataclass(frozen=True, slots=True)
class Rule:
    """Nodes at even distances, after minus infinity if P has settled at the first of them."""

    df: float
    low: float
    high: float
    count: int  # of intervals, even
    settled: bool

    @property
    def x(self) -> FloatArray:
        """The nodes (m,); those of a rule of half as many intervals are among them, to the last bit."""
        found = np.linspace(self.low, self.high, self.count + 1)
        return np.concatenate([[-np.inf], found]) if self.settled else found

    @property
    def log_weight(self) -> FloatArray:
        """Logarithms (m,) of the weights of P at the nodes."""
        step = (self.high - self.low) / self.count
        found = math.log(step) + log_density(
            np.linspace(self.low, self.high, self.count + 1), self.df
        )
        if not self.settled:
            return found
        # p is C e^(df x) to the left of the first node; a series is e^(-rate h) / (1 - e^(-rate h))
        pure = 0.5 * self.df * math.exp(2.0 * self.low)
        of_limit, of_first = (-math.expm1(-rate * step) for rate in (self.df, self.df + 1.0))
        both = math.log(-math.expm1(-step)) - math.log(of_limit) - math.log(of_first)
        rest = found[0] + pure - self.df * step + both
        found[0] += math.log1p(math.exp(pure - (self.df + 1.0) * step) / of_first)
        return np.concatenate([[rest], found])

    @property
    def every_other(self) -> NDArray[np.intp]:
        """Where the nodes of a rule of half as many intervals are among these."""
        found = np.arange(0, self.count + 1, 2)
        return np.concatenate([[0], 1 + found]) if self.settled else found

    def of(self, count: int) -> Rule:
        """Return the rule of so many intervals."""
        return replace(self, count=count)

    def total(self, log_p: FloatArray) -> tuple[float, FloatArray]:
        """Return the logarithm of the integral, and the share (m,) that each node has in it."""
        values = self.log_weight + log_p
        total = float(logsumexp(values))
        return total, np.exp(values - total)

    def change(self, log_p: FloatArray) -> FloatArray:
        """Return what each node (m,) adds to the integral less that by every other node, over the former."""
        total, share = self.total(log_p)
        few, found = self.every_other, share.copy()
        found[few] -= np.exp(self.of(self.count // 2).log_weight + log_p[few] - total)
        return found


def rule_of(
    log_p: Callable[[FloatArray], FloatArray],
    blocks: tuple[Block, ...],
    df: float,
    fall: float,
    settled: float,
    agreed: float,
) -> tuple[Rule, FloatArray] | None:
    """Return a rule, and log P at its nodes; None where floating point holds nothing of f.

    `log_p` is log P at some x (m,), minus infinity among them. The interval ends `fall` nats below the mode, or where
    the series are off by the share `settled` of the integral; and `agreed` is the relative distance that the
    rule of every other node may have.
    """
    known: dict[float, float] = {}

    def P(x: FloatArray) -> FloatArray:
        new = [one for one in x.tolist() if one not in known]
        if new:
            known.update(zip(new, log_p(np.array(new)).tolist(), strict=True))
        return np.array([known[one] for one in x.tolist()])

    def f(x: float) -> float:
        return float((log_density(np.array([x]), df) + P(np.array([x])))[0])

    top, step = _mode(f, _start(blocks, df), min(1.0 / math.sqrt(2.0 * df), _WIDEST))
    peak = f(top)
    if not math.isfinite(peak):
        return None
    limit = float(P(np.array([-np.inf]))[0])

    def rests(x: float) -> bool:
        here, there = P(np.array([x, x - 1.0])).tolist()
        off = 0.5 * df * math.exp(2.0 * min(x, 0.0))
        if x > 0.0 or off > _PURE or not (math.isfinite(limit) and math.isfinite(here)):
            return False
        # P(x - 1) and P_0, over P(x)
        ratio, rest = (math.exp(min(one - here, 500.0)) for one in (there, limit))
        away = abs(ratio - rest - (1.0 - rest) / math.e) + off * max(1.0, rest)
        # it falls by a further e^x or more, and is as much of the integral as f(x) of f
        return away * min(df, math.exp(f(x) - peak) / step) / (1.0 + df) <= settled

    low = top - _reach(lambda way: f(top - way) < peak - fall or rests(top - way), step)
    high = top + _reach(lambda way: f(top + way) < peak - fall, step)
    count = max(_FIRST, 2 * math.ceil(0.5 * (high - low) / _WIDEST))
    rule = Rule(df, low, high, count, f(low) >= peak - fall and rests(low))
    while True:
        values = P(rule.x)
        if abs(float(rule.change(values).sum())) < agreed or rule.count >= _MOST:
            return rule, values
        rule = rule.of(2 * rule.count)


def _start(blocks: tuple[Block, ...], df: float) -> float:
    """Return the mode of f if P were that of the one coordinate whose limits are farthest out."""
    far = max(0.0, *(float(max(b.lower.max(), (-b.upper).max())) for b in blocks))
    return -0.5 * float(np.logaddexp(0.0, 2.0 * math.log(far) - math.log(df))) if far else 0.0


def _mode(f: Callable[[float], float], x: float, step: float) -> tuple[float, float]:
    """Climb by steps that grow; return where that ends, and the step."""
    for side in (-1.0, 1.0):
        size = step
        while f(x + side * size) > f(x):
            x, size = x + side * size, 1.5 * size
    return x, step


def _reach(ended: Callable[[float], bool], step: float) -> float:
    """Return about the least distance at which an interval has ended."""
    near, far = 0.0, step
    while not ended(far):
        near, far = far, 2.0 * far
    while far - near > 0.1 * far:
        middle = 0.5 * (near + far)
        near, far = (near, middle) if ended(middle) else (middle, far)
    return far


def scaled(limit: FloatArray, x: Any) -> FloatArray:
    """Return e^x times limits, which may be infinite, as x may be minus infinity."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        size = np.exp(x + np.log(np.abs(limit)))
    return np.where(np.isinf(limit), limit, np.sign(limit) * size)


def log_density(x: FloatArray, df: float) -> FloatArray:
    """Return the log density of x = log s, where df s^2 is chi-squared; without cancellation where df is large."""
    half = 0.5 * df
    if half < _STIRLING:
        rest = float(gammaln(half)) - ((half - 0.5) * math.log(half) - half)
    else:
        rest = 0.5 * math.log(2.0 * math.pi) + 1 / (12 * half) - 1 / (360 * half**3)
        rest += 1 / (1260 * half**5)
    # (z^z e^-z / Gamma(z)) e^{-z (e^{2x} - 1 - 2x)} times two
    small = np.where(np.abs(x) < 1e-2, x, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        away = np.where(
            np.abs(x) < 1e-2,
            sum((2.0 * small) ** k / math.factorial(k) for k in range(2, 12)),
            np.expm1(2.0 * x) - 2.0 * x,
        )
    return math.log(2.0) + 0.5 * math.log(half) - rest - half * away
