"""Distributions of a published number about ours: mixtures of normals over draws of uncertain variances.

Variances are estimates. They enter as draws from their fiducial distributions, s^2 df / chi^2(df). With one variance
the mixture is Student's t, with two the solution of Behrens and Fisher's problem. Probabilities are means of normal
ones over the draws, so that small p-values carry no noise of a simulation.
"""

import functools
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri, digamma, ndtr, polygamma

#: Draws of each variance.
DRAWS = 2048
#: No end of an interval is looked for beyond so many deviations, and no ratio beyond the exponential of so much.
_FAR, _FAR_RATIO = 1e5, 40.0


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
