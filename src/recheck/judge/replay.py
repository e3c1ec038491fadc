"""Replay of a published design: how a printed number falls if it is drawn as ours are.

Variances are estimates. They enter as draws from their fiducial distributions, s^2 df / chi^2(df). With one variance
the mixture of normals over these draws is Student's t, with two the solution of Behrens and Fisher's problem.
Probabilities are means of normal ones over the draws, so that small p-values carry no noise of a simulation.

Without a printed standard error (`replayed`)
    The statistic of one published unit is the logarithm of the unit's mean over its runs, of several the logarithm of
    the mean over units; on a linear scale it is the mean itself. Its variance is between^2 (1/n + 1/n_published) and
    the noise of runs on both sides. The variance of our unit means contains the noise of our runs, which is taken off
    once: between^2 = max(s^2 - noise(r_ours), 0).
With one (`printed_error`)
    The published side varies as it says itself. Its relative errors reach 0.7, where a logarithm is far from normal, so
    ratios are tested on the linear scale, as Fieller does: our value less R times theirs. Differences are differences.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, digamma, ndtr, ndtri, polygamma

from recheck.judge.noise import DRAWS, Between, RunNoise, Sampler

#: No value of ours is larger, and none but zero is smaller than one over it.
LARGEST = 1e100
#: No end of an interval is looked for beyond so many deviations, and no ratio beyond the exponential of so much.
_FAR, _FAR_RATIO = 1e5, 40.0


@dataclass(frozen=True, eq=False)
class Ranks:
    """What the order of exchangeable means says of a published one, whatever they are distributed like.

    `means` are ours in groups as large as the published one; what prints as the number is between `low` and `high`.
    Few of ours say little. Where all of ours coincide, nothing but the same number agrees with them.
    """

    means: np.ndarray
    low: float
    high: float
    logs: bool

    @classmethod
    def of(cls, values: np.ndarray, low: float, high: float, published: int, logs: bool) -> Self:
        """Of our values, beside a mean over so many published ones."""
        groups = len(values) // published
        means = values[: groups * published].reshape(groups, published).mean(axis=1)
        return cls(np.sort(means) if groups else values[:0], low, high, logs)

    def _share(self, beyond: np.ndarray) -> float:
        return (1.0 + float(beyond.sum())) / (len(self.means) + 1)

    def _moved(self, end: float, by: float) -> float:
        if not self.logs:
            return end + by
        return end * math.exp(by) if end > 0 else end

    @property
    def p(self) -> float:
        """Two-sided p-value of no effect."""
        return min(
            1.0, 2 * min(self._share(self.means <= self.high), self._share(self.means >= self.low))
        )

    def p_agree(self, margin: float) -> float:
        """p-value of an effect outside of the margin."""
        above = self._share(self.means >= self._moved(self.low, margin))
        return max(above, self._share(self.means <= self._moved(self.high, -margin)))

    def interval(self, coverage: float) -> tuple[float, float]:
        """Interval of the true effect, infinite where there are too few of ours."""
        place = math.floor((1 - coverage) / 2 * (len(self.means) + 1))
        if place < 1:
            return -math.inf, math.inf
        low, high = float(self.means[place - 1]), float(self.means[-place])
        if not self.logs:
            return low - self.high, high - self.low
        inf = math.inf
        return (
            math.log(low / self.high) if low > 0 < self.high < inf else -inf,
            math.log(high / self.low) if high > 0 < self.low else inf,
        )


@dataclass(frozen=True)
class Predictive:
    """Distribution of log(ours/published), or of ours minus published, about the true effect.

    `effect` is the observed effect less what it is expected to be, `deviation` its standard deviation, both by draw.
    `published` is the printed statistic on the scale of the effect. Of the mean of a column, `cells` has the effects of
    the cells, and `heterogeneity` is the p-value of their scatter; NaN if it cannot be tested. `ranks` say
    what holds whatever our values are distributed like: no p-value is below theirs, no interval within theirs.
    """

    effect: np.ndarray
    deviation: np.ndarray
    published: float = 0.0
    cells: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    heterogeneity: float = field(default=math.nan, kw_only=True)
    ranks: Ranks | None = field(default=None, kw_only=True)

    exact = False

    @property
    def center(self) -> float:
        """The effect in one number."""
        return float(np.mean(self.effect))

    @property
    def sd(self) -> float:
        """Scale of the Student t whose variance has the same distribution in the first two moments of its logarithm."""
        half = self.df / 2
        logs = np.log(self.deviation**2).mean()
        return math.exp(0.5 * (logs - math.log(half) + float(digamma(half))))

    @property
    def df(self) -> float:
        """Degrees of freedom of that Student t."""
        spread = max(float(np.log(self.deviation**2).var()), 2e-6)
        half = 0.5 + 1.0 / spread
        for _ in range(5):  # Newton's steps to trigamma(half) = spread
            value = float(polygamma(1, half))
            half += value * (1.0 - value / spread) / float(polygamma(2, half))
        return 2.0 * half

    def _z(self, delta: float) -> np.ndarray:
        return (self.effect - delta) / self.deviation

    def above(self, delta: float) -> float:
        """Probability that the true effect exceeds delta."""
        return float(ndtr(self._z(delta)).mean())

    def below(self, delta: float) -> float:
        """Probability that the true effect falls short of delta; accurate where it is small."""
        return float(ndtr(-self._z(delta)).mean())

    @property
    def p(self) -> float:
        """Two-sided p-value of no effect; of a column, that every cell is drawn as ours are."""
        mean = min(1.0, 2.0 * min(self.above(0.0), self.below(0.0)))
        both = min(1.0, 2.0 * min(mean, self.heterogeneity))
        p = mean if math.isnan(self.heterogeneity) else both
        return max(p, self.ranks.p) if self.ranks else p

    def p_agree(self, margin: float) -> float:
        """p-value of an effect outside -margin .. margin: the larger of two one-sided ones."""
        p = max(self.below(-margin), self.above(margin))
        return max(p, self.ranks.p_agree(margin)) if self.ranks else p

    def interval(self, coverage: float) -> tuple[float, float]:
        """Equal-tailed interval of the true effect; infinite where no end exists."""
        tail, (center, scale, far) = (1 - coverage) / 2, self._ruler()
        low = _root(lambda x: self.below(center + scale * x) - tail, far=far)
        high = _root(lambda x: tail - self.above(center + scale * x), far=far)
        low, high = center + scale * low, center + scale * high
        if self.ranks:
            free = self.ranks.interval(coverage)
            low, high = min(low, free[0]), max(high, free[1])
        return low, high

    def _ruler(self) -> tuple[float, float, float]:
        """Where and in which unit the ends of an interval are looked for, and how far."""
        return self.center, float(np.median(self.deviation)), _FAR

    def _off(self, delta: float) -> tuple[float, np.ndarray]:
        """An effect and the deviations of its estimate, over the median of the deviations."""
        scale = float(np.median(self.deviation))
        return abs(delta) / scale, self.deviation / scale

    def _level(self, level: float) -> float:
        """Level of the test of the mean: a column has a test of its scatter beside it."""
        return level / 2 if self.cells else level

    def power(self, delta: float, level: float) -> float:
        """Probability with which a two-sided test at a level finds an effect."""
        far, deviation = self._off(delta)
        return float(ndtr((far - _limit(deviation, self._level(level))) / deviation).mean())

    def detectable(self, level: float, power: float) -> float:
        """Effect that a two-sided test at a level finds with a probability."""
        if self.ranks and 2 / (len(self.ranks.means) + 1) > level:
            return math.inf
        return self._reached(_needed(self._off(0.0)[1], self._level(level), power))

    def _reached(self, needed: float) -> float:
        """The effect of so many deviations."""
        return float(np.median(self.deviation)) * needed

    def _error(self) -> tuple[np.ndarray | float, np.ndarray]:
        """Ours less the published statistic, and deviations of the latter under the replayed design."""
        return self.effect, self.deviation

    def quantiles(self, probabilities: Sequence[float]) -> list[float]:
        """Quantiles of the published statistic under the replayed design."""
        error, sd = self._error()
        center, scale = float(np.mean(error)), float(np.median(sd))
        error, sd = (error - center) / scale, sd / scale

        def solve(q: float) -> float:
            return _root(lambda x: ndtr((x - error) / sd).mean() - q)

        return [self.published + center + scale * solve(q) for q in probabilities]

    @property
    def log_density(self) -> float:
        """Logarithm of the density of the published statistic at its printed value."""
        error, sd = self._error()
        density = float((np.exp(-0.5 * (error / sd) ** 2) / sd).mean()) / math.sqrt(2 * math.pi)
        return math.log(max(density, 1e-300))


@dataclass(frozen=True)
class Spread(Predictive):
    """The logarithm of our deviation over a printed one: all of its distribution is in the draws of the effect."""

    observed: float = field(kw_only=True)

    @property
    def center(self) -> float:
        """The logarithm of the ratio as it is."""
        return self.observed

    @property
    def sd(self) -> float:
        """Standard deviation of the effect."""
        return float(self.effect.std())

    @property
    def df(self) -> float:
        """Both variances are in the draws."""
        return math.inf

    def _ruler(self) -> tuple[float, float, float]:
        return self.observed, self.sd, _FAR

    def detectable(self, level: float, power: float) -> float:
        """Effect that is found, by the normal approximation."""
        return float(ndtri(1 - level / 2) + ndtri(power)) * self.sd


@dataclass(frozen=True)
class OneSided(Predictive):
    """A printed bound, such as ``<.001``: what was printed lies on one side of it, if it is drawn as ours are.

    `side` is -1 of an upper bound and 1 of a lower one. It agrees if our mean is proved to lie on that side.
    """

    side: int = field(kw_only=True)

    @property
    def p(self) -> float:
        """p-value of the hypothesis that the printed statistic lies on its side."""
        p = min(1.0, self.below(0.0) if self.side < 0 else self.above(0.0))
        return max(p, self.ranks.p) if self.ranks else p

    def p_agree(self, margin: float) -> float:
        """p-value of a mean of ours on the other side."""
        p = self.above(0.0) if self.side < 0 else self.below(0.0)
        return max(p, self.ranks.p_agree(0.0)) if self.ranks else p


@dataclass(frozen=True)
class Ratio(Predictive):
    """Ours over published on the linear scale: both are normal, and the published one may be near zero.

    `effect` is the logarithm of the ratio of the two values; `published` is not a logarithm here.
    """

    ours: float = field(kw_only=True)
    ours_deviation: np.ndarray = field(kw_only=True)
    their_deviation: np.ndarray = field(kw_only=True)

    def _z(self, delta: float) -> np.ndarray:
        ratio = math.exp(delta)
        sd = np.sqrt(self.ours_deviation**2 + ratio**2 * self.their_deviation**2)
        return (self.ours - ratio * self.published) / sd

    def _ruler(self) -> tuple[float, float, float]:
        return 0.0, 1.0, _FAR_RATIO

    def _off(self, delta: float) -> tuple[float, np.ndarray]:
        """The same of the two values if ours is off by a factor; the published relative error stays as printed."""
        theirs = self.ours * math.exp(-delta)
        sd = np.hypot(self.ours_deviation, self.their_deviation * theirs / self.published)
        scale = float(np.median(sd))
        return abs(self.ours - theirs) / scale, sd / scale

    def _reached(self, needed: float) -> float:
        """The same, in the harder direction."""

        def found(sign: float) -> float:
            return _root(lambda x: self._off(sign * x)[0] - needed, 0.0, far=_FAR_RATIO)

        return max(found(1.0), found(-1.0))

    def _error(self) -> tuple[np.ndarray | float, np.ndarray]:
        return self.ours - self.published, np.hypot(self.ours_deviation, self.their_deviation)


def _needed(deviation: np.ndarray, level: float, power: float) -> float:
    """Effect that is found with a power, in the unit of the deviations."""
    return _limit(deviation, level) + _root(lambda x: ndtr(x / deviation).mean() - power)


def _limit(deviation: np.ndarray, level: float) -> float:
    """Observed effect beyond which a two-sided test rejects."""
    return _root(lambda x: level / 2 - ndtr(-x / deviation).mean())


def _root(function: Callable[[float], float], low: float | None = None, far: float = _FAR) -> float:
    """The root of an increasing function; infinite beyond `far`."""
    low, high = -far if low is None else low, far
    if function(low) >= 0:
        return -math.inf if low < 0 else low
    if function(high) < 0:
        return math.inf
    for end in (-4.0, 4.0):  # nearly all roots are near
        if low < end < high:
            low, high = (end, high) if function(end) < 0 else (low, end)
    return float(brentq(function, low, high, xtol=1e-10))


def combined(parts: Sequence[Predictive], weights: Sequence[float]) -> Predictive:
    """The weighted mean of independent effects."""
    both = [(one, weight / sum(weights)) for one, weight in zip(parts, weights, strict=True)]
    effect = sum((one.effect * w for one, w in both), np.zeros(DRAWS))
    variance = sum(((one.deviation * w) ** 2 for one, w in both), np.zeros(DRAWS))
    return Predictive(effect, np.sqrt(variance), sum(one.published * w for one, w in both))


def excess(effects: np.ndarray, variances: np.ndarray) -> float:
    """p-value of n effects that scatter more than errors with variances (n, DRAWS) let them: Cochran's Q."""
    weights = 1.0 / variances
    mean = (weights * effects[:, None]).sum(axis=0) / weights.sum(axis=0)
    q = (weights * (effects[:, None] - mean) ** 2).sum(axis=0)
    return float(chdtrc(len(effects) - 1, q).mean())


def replayed(
    effect: float,
    published: float,
    units: tuple[int, int],
    between: Between,
    noise: RunNoise,
    sampler: Sampler,
    *,
    rounding: float = 0.0,
    fresh: Between | None = None,
) -> Predictive:
    """A published statistic beside ours: both are means over units, ours and published ones in number.

    `effect` is our statistic less the published one, `rounding` a variance. `fresh` is the variance between published
    units where it differs from ours: of cells that had units of their own.
    """
    ours, theirs = units
    mine, inner = between.draws(sampler, sampler(noise.df), noise.df)
    others = mine if fresh is None else fresh.draws(sampler, inner, noise.df)[0]
    runs = (noise.ours / ours + noise.theirs / theirs) * inner
    variances = mine / ours + others / theirs + runs + rounding
    deviation = np.sqrt(np.maximum(variances, 1e-24))
    return Predictive(effect - noise.shift * inner, deviation, published)


def printed_error(
    ours: tuple[float, float, float],
    theirs: tuple[float, float, float],
    rounding: float,
    sampler: Sampler,
    scale: str = "log",
    same: bool = False,
) -> Predictive:
    """Our mean beside a printed one: value, standard error and degrees of freedom of each; the variance of rounding.

    Both errors rest on the `same` estimate where ours is one value.
    """
    (mine, se, df), (their, error, their_df) = ours, theirs
    inner = sampler(df)
    ours_sd = se * np.sqrt(inner)
    their_sd = np.sqrt(error**2 * (inner if same else sampler(their_df)) + rounding)
    if scale == "linear":
        return Predictive(np.full(DRAWS, mine - their), np.hypot(ours_sd, their_sd), their)
    relative = np.hypot(ours_sd / mine, their_sd / their)
    sides = {"ours": mine, "ours_deviation": ours_sd, "their_deviation": their_sd}
    return Ratio(np.full(DRAWS, math.log(mine / their)), relative, their, **sides)
