"""Shares of counts: ours k of n beside a printed share of m, and the grid on which values lie.

Items of 0 and 1 are no normal numbers: where all of ours coincide their variance is zero, and the variance of few says
little. The hypothesis of one share behind both counts is tested as Fisher does. Agreement and intervals rest on Clopper
and Pearson's bounds of each share. Values on a grid (accuracies on 100 items, numbers of two decimals) vary at least as
much as the steps of their grid do: the variance of a uniform one over a step is added to theirs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import bdtr, betaincinv, gammaln, ndtr, ndtri

from recheck.judge.noise import DRAWS
from recheck.judge.replay import Predictive

#: Denominators that are looked for, and decimals beyond which values lie on no grid.
_MOST, _DECIMALS = 10_000, 9


def grid(values: np.ndarray, most: int = _MOST) -> float:
    """The coarsest grid on which values can lie: decimals or, between 0 and 1 or 100, shares of up to `most` items.

    It is zero of values without a grid. Coarser is safer: [0.5, 0.5, 0.5] may be a half of two items.
    """
    unique = np.unique(values)
    if not np.isfinite(unique).all() or np.abs(unique).max() > 1e12:
        return 0.0
    decimals = next(
        (k for k in range(_DECIMALS) if np.abs(np.round(unique, k) - unique).max() <= 1e-12),
        None,
    )
    step = 0.0 if decimals is None else 10.0**-decimals
    whole = 1.0 if unique.max() <= 1 else 100.0
    if unique.min() < 0 or unique.max() > whole or len(unique) > 200:
        return step
    half = 1e-12 if decimals is None else 0.5000001 * step / whole
    places = np.arange(1, most + 1)
    for share in unique / whole:
        counts = share * places
        places = places[np.abs(counts - np.round(counts)) <= np.maximum(half * places, 1e-12)]
        if not len(places):
            return step
    return max(step, whole / float(places[0]))


def counted(units: Sequence[np.ndarray]) -> tuple[int, int] | None:
    """Successes and items, where each of ours is an item with the value 0 or 1; else None."""
    if len(units) < 2 or any(len(one) > 1 or one[0] not in (0.0, 1.0) for one in units):
        return None
    return int(sum(one[0] for one in units)), len(units)


def printed_counts(low: float, high: float, items: int) -> list[int]:
    """Counts of so many items whose share prints as a number between two ends; the nearest ones where none does."""
    first, last = math.ceil(low * items - 1e-9), math.floor(high * items + 1e-9)
    if first <= last:
        return sorted({max(first, 0), min(last, items)})
    middle = (low + high) / 2 * items
    return sorted({min(max(math.floor(middle), 0), items), min(max(math.ceil(middle), 0), items)})


@dataclass(frozen=True)
class Shares(Predictive):
    """k of n beside j of m: their difference, or the logarithm of their ratio (`logs`).

    `effect` has draws of it from Jeffreys' distributions of both shares; `ours` and `theirs` are (successes, items).
    """

    ours: tuple[int, int] = field(kw_only=True)
    theirs: tuple[int, int] = field(kw_only=True)
    logs: bool = field(kw_only=True)

    @property
    def center(self) -> float:
        """The effect of the two shares as they are."""
        (k, n), (j, m) = self.ours, self.theirs
        if not self.logs:
            return k / n - j / m
        return math.log(max(k, 0.5) / n) - math.log(max(j, 0.5) / m)

    @property
    def p(self) -> float:
        """Fisher's exact test of one share behind both counts."""
        (k, n), (j, m) = self.ours, self.theirs
        every = np.arange(max(0, k + j - m), min(k + j, n) + 1)
        logs = _choose(n, every) + _choose(m, k + j - every) - _choose(n + m, k + j)
        own = logs[k - every[0]]
        return min(1.0, float(np.exp(logs[logs <= own + 1e-7]).sum()))

    def above(self, delta: float) -> float:
        """Bound of the probability that the true effect exceeds delta."""
        return float((self._effect(1, 0) > delta).mean())

    def below(self, delta: float) -> float:
        """Bound of the probability that the true effect falls short of delta."""
        return float((self._effect(0, 1) < delta).mean())

    def _effect(self, mine: int, other: int) -> np.ndarray:
        """Draws of the effect from the upper (1) or lower (0) bounds of each share."""
        return _difference(_draws(self.ours, mine), _draws(self.theirs, other, 1), self.logs)

    def interval(self, coverage: float) -> tuple[float, float]:
        """Interval of the true effect that covers it at least so often."""
        tail = (1 - coverage) / 2
        low, high = self._effect(0, 1), self._effect(1, 0)
        return float(np.quantile(low, tail)), float(np.quantile(high, 1 - tail))

    def _variance(self) -> float:
        (k, n), (j, m) = self.ours, self.theirs
        share = (k + j + 1) / (n + m + 2)
        relative = share**2 if self.logs else 1.0
        return share * (1 - share) * (1 / n + 1 / m) / relative

    @property
    def sd(self) -> float:
        """Standard deviation of the effect if one share is behind both."""
        return math.sqrt(self._variance())

    @property
    def df(self) -> float:
        """It is known: infinite."""
        return math.inf

    def detectable(self, level: float, power: float) -> float:
        """Effect that is found, by the normal approximation; one of less than two items never is."""
        (_, n), (_, m) = self.ours, self.theirs
        needed = float(ndtri(1 - level / 2) + ndtri(power)) * self.sd
        return max(needed, 2 / min(n, m)) if not self.logs else needed

    def power(self, delta: float, level: float) -> float:
        """Probability with which an effect is found, by the normal approximation."""
        return float(ndtr(abs(delta) / self.sd - ndtri(1 - level / 2)))

    def quantiles(self, probabilities: Sequence[float]) -> list[float]:
        """Quantiles of a share of m items if it is drawn as ours are."""
        m = self.theirs[1]
        shares = _draws(self.ours, 0.5)[:: DRAWS // 64]
        cumulative = bdtr(np.arange(m + 1)[:, None], m, shares).mean(axis=1) if m <= 5000 else None
        if cumulative is None:
            normal = np.sqrt(shares * (1 - shares) / m)
            return [float((shares + ndtri(q) * normal).mean()) for q in probabilities]
        found = [int(np.searchsorted(cumulative, q)) / m for q in probabilities]
        return [math.log(max(one, 0.5 / m)) for one in found] if self.logs else found

    @property
    def log_density(self) -> float:
        """Logarithm of the probability of the printed count, per unit of the share."""
        (k, n), (j, m) = self.ours, self.theirs
        beta = _beta(k + j + 0.5, n + m - k - j + 0.5) - _beta(k + 0.5, n - k + 0.5)
        return float(_choose(m, np.array(j)) + beta + math.log(m))


def shares(ours: tuple[int, int], low: float, high: float, items: int, scale: str) -> Shares:
    """Our count beside a printed share, whose count is the one that is least unlike ours of those that print so."""
    logs, found = scale == "log", []
    for j in printed_counts(low, high, items):
        theirs = j, items
        effect = _difference(_draws(ours, 0.5), _draws(theirs, 0.5, 1), logs)
        value = max(j, 0.5) / items
        published = math.log(value) if logs else j / items
        sd = np.full(DRAWS, 1e-12)
        found.append(Shares(effect, sd, published, ours=ours, theirs=theirs, logs=logs))
    return max(found, key=lambda one: one.p)


def _draws(count: tuple[int, int], bound: float, stream: int = 0) -> np.ndarray:
    """Stratified draws of a share from its fiducial distribution: lower bounds (0), upper ones (1), Jeffreys' (0.5)."""
    k, n = count
    a, b = k + bound, n - k + 1 - bound
    if a <= 0 or b <= 0:
        return np.full(DRAWS, 0.0 if a <= 0 else 1.0)
    places = (np.arange(DRAWS) + 0.5) / DRAWS
    return np.random.default_rng([n, stream]).permutation(betaincinv(a, b, places))


def _difference(mine: np.ndarray, theirs: np.ndarray, logs: bool) -> np.ndarray:
    return np.log(np.maximum(mine, 1e-12) / np.maximum(theirs, 1e-12)) if logs else mine - theirs


def _choose(n: int, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def _beta(a: float, b: float) -> float:
    return float(gammaln(a) + gammaln(b) - gammaln(a + b))
