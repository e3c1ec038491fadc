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
    ratios are tested on the linear scale, as Fieller does: our value less R times theirs.
"""

import functools
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri, digamma, ndtr, polygamma

#: Draws of each variance.
DRAWS = 2048
#: No end of an interval is looked for beyond so many deviations, and no ratio beyond the exponential of so much.
_FAR, _FAR_RATIO = 1e5, 40.0
#: Values that the distribution of run noise has to be known from before it replaces the gamma distribution.
_KNOWN_NOISE = 40


class Sampler:
    """Draws of variances for one comparison; the same seed and name give the same draws."""

    def __init__(self, seed: int, name: str) -> None:
        self._rng = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def __call__(self, df: float) -> np.ndarray:
        """True over estimated variance, df / chi^2(df), shape (DRAWS,): stratified, in random order."""
        if not df > 0:
            raise ValueError(f"df: needed are positive degrees of freedom, given was {df}")
        return self._rng.permutation(_quantiles(float(min(df, 1e7))))


@functools.lru_cache(maxsize=512)
def _quantiles(df: float) -> np.ndarray:
    if df >= 1e6:
        return np.ones(DRAWS)
    return df / chdtri(df, (np.arange(DRAWS) + 0.5) / DRAWS)


@dataclass(frozen=True)
class Predictive:
    """Distribution of log(ours/published), or of ours minus published, about the true effect.

    `effect` is the observed effect less what it is expected to be, `deviation` its standard deviation, both by draw.
    `published` is the printed statistic on the scale of the effect. Of the mean of a column, `cells` has the effects of
    the cells, and `heterogeneity` is the p-value of their scatter; NaN if it cannot be tested.
    """

    effect: np.ndarray
    deviation: np.ndarray
    published: float = 0.0
    cells: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    heterogeneity: float = field(default=math.nan, kw_only=True)

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
        return mean if math.isnan(self.heterogeneity) else both

    def p_agree(self, margin: float) -> float:
        """p-value of an effect outside -margin .. margin: the larger of two one-sided ones."""
        return max(self.below(-margin), self.above(margin))

    def interval(self, coverage: float) -> tuple[float, float]:
        """Equal-tailed interval of the true effect; infinite where no end exists."""
        tail, (center, scale, far) = (1 - coverage) / 2, self._ruler()
        low = _root(lambda x: self.below(center + scale * x) - tail, far=far)
        high = _root(lambda x: tail - self.above(center + scale * x), far=far)
        return center + scale * low, center + scale * high

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
        needed = _needed(self._off(0.0)[1], self._level(level), power)
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

    def detectable(self, level: float, power: float) -> float:
        """Effect that is found, in the harder direction."""
        needed = _needed(self._off(0.0)[1], self._level(level), power)

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


@dataclass(frozen=True)
class Noise:
    """Variation between runs on one unit.

    `variance` is that of one run, relative to the unit's mean on the scale ``log``. It has `df` degrees of freedom, 0
    where it is unknown. Many `values`, runs over their unit's mean, replace the gamma distribution.
    """

    variance: float
    df: float
    scale: str = "log"
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    _drawn: dict[int, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_units(cls, units: Sequence[np.ndarray], scale: str) -> Self:
        """Pool the noise of units, each an array of runs; of cells that share units too, for it is relative."""
        repeated = [np.asarray(runs, dtype=float) for runs in units if len(runs) > 1]
        if not repeated:
            return cls(0.0, 0.0, scale)
        n = np.array([len(runs) for runs in repeated])
        df, starts = float((n - 1).sum()), np.r_[0, n.cumsum()[:-1]]
        every = np.concatenate(repeated)
        means = np.add.reduceat(every, starts) / n
        variances = np.add.reduceat((every - means.repeat(n)) ** 2, starts) / (n - 1)
        if scale == "linear":
            return cls(float(((n - 1) * variances).sum() / df), df, scale)
        # the square of a mean of r runs is expected variance/r above that of the expectation
        expected = np.maximum(means**2 - variances / n, 0.5 * means**2)
        squares = ((n - 1) * variances / np.maximum(expected, 1e-300)).sum()
        many = (n > 4).repeat(n)
        values = every[many] / means.repeat(n)[many]
        known = len(values) >= _KNOWN_NOISE and (values > 0).all()
        return cls(float(squares / df), df, scale, values if known else np.empty(0))

    @property
    def plain(self) -> Self:
        """The same noise of means that are not turned into logarithms."""
        return replace(self, scale="linear", values=np.empty(0))

    def of_mean(self, runs: float) -> tuple[float, float]:
        """Bias and variance of the statistic of a mean over runs (their harmonic mean, if units differ)."""
        if self.scale == "linear" or not self.variance:
            return 0.0, self.variance / runs
        if len(self.values) and runs < 12:
            low, part = math.floor(runs), runs % 1
            known = self._known(low)
            bias, variance = (1 - part) * known + part * self._known(low + 1) if part else known
            return float(bias), float(variance)
        shape = runs / self.variance
        return float(digamma(shape) - math.log(shape)), float(polygamma(1, shape))

    def _known(self, runs: int) -> np.ndarray:
        """The same, drawn from known runs."""
        if runs not in self._drawn:
            drawn = np.random.default_rng(runs).choice(self.values, (8192, runs))
            logs = np.log(drawn.mean(axis=1))
            self._drawn[runs] = np.array([logs.mean(), logs.var()])
        return self._drawn[runs]


class RunNoise(NamedTuple):
    """Noise of runs in a statistic: bias of ours less that of the published one, and variances on one unit.

    `df` are the degrees of freedom of both variances; infinite where there is no noise.
    """

    shift: float
    ours: float
    theirs: float
    df: float


class Between(NamedTuple):
    """Variance of a statistic between units: its estimate, and what of that is noise of runs."""

    variance: float
    df: float
    contained: float = 0.0

    def draws(
        self, sampler: Sampler, noise: np.ndarray, df: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws of the variance without the noise of runs, and of the factor of that noise; shape (DRAWS,) each.

        `noise` has draws of the factor, with `df` degrees of freedom. The noise is part of the whole. Where a draw
        of it exceeds the whole, the one with fewer degrees of freedom gives way.
        """
        whole = self.variance * sampler(self.df)
        if self.contained and df < self.df:
            noise = np.minimum(noise, whole / self.contained)
        return np.maximum(whole - self.contained * noise, 0.0), noise


def run_noise(terms: Sequence[tuple[float, Noise, float, float]]) -> RunNoise:
    """Noise of a weighted sum of cells: weight, noise, our runs a unit and published ones, of each."""
    weights = np.array([weight for weight, *_ in terms])
    mine = np.array([noise.of_mean(runs) for _, noise, runs, _ in terms])
    theirs = np.array([noise.of_mean(runs) for _, noise, _, runs in terms])
    shift = float(weights @ (mine - theirs)[:, 0])
    ours, others = (float(weights**2 @ side[:, 1]) for side in (mine, theirs))
    df = max(noise.df for _, noise, *_ in terms)
    return RunNoise(shift, ours, others, df if df and (ours or others) else math.inf)


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
) -> Ratio:
    """Our mean beside a printed one: value, standard error and degrees of freedom of each; the variance of rounding."""
    (mine, se, df), (their, error, their_df) = ours, theirs
    ours_sd = se * np.sqrt(sampler(df))
    their_sd = np.sqrt(error**2 * sampler(their_df) + rounding)
    relative = np.hypot(ours_sd / mine, their_sd / their)
    sides = {"ours": mine, "ours_deviation": ours_sd, "their_deviation": their_sd}
    return Ratio(np.full(DRAWS, math.log(mine / their)), relative, their, **sides)
