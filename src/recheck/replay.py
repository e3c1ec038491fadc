"""Replay of a published design: how a printed number falls if it is drawn as ours are (see `recheck.predictive`).

Without a printed standard error (`replayed`)
    The statistic of one published unit is the logarithm of the unit's mean over its runs, of several the logarithm of
    the mean over units; on a linear scale it is the mean itself. Its variance is between^2 (1/n + 1/n_published) and
    the noise of runs on both sides. The variance of our unit means contains the noise of our runs, which is taken off
    once: between^2 = max(s^2 - noise(r_ours), 0).
With one (`printed_error`)
    The published side varies as it says itself. Its relative errors reach 0.7, where a logarithm is far from normal, so
    ratios are tested on the linear scale, as Fieller does: our value less R times theirs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.special import digamma, polygamma

from recheck.predictive import DRAWS, Predictive, Ratio, Sampler

#: Values that the distribution of run noise has to be known from before it replaces the gamma distribution.
_KNOWN_NOISE = 40


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

    def draws(self, sampler: Sampler, noise: np.ndarray) -> np.ndarray:
        """Draws of the variance without the noise of runs, whose own factor is given; shape (DRAWS,)."""
        return np.maximum(self.variance * sampler(self.df) - self.contained * noise, 0.0)


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
    inner = sampler(noise.df)
    mine = between.draws(sampler, inner)
    others = mine if fresh is None else fresh.draws(sampler, inner)
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
