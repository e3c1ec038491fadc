"""Variances as draws: of a statistic between units, and of the noise of runs within them.

Variances are estimates. They enter as draws from their fiducial distributions, s^2 df / chi^2(df).
"""

import functools
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.special import chdtri, digamma, polygamma

#: Draws of each variance.
DRAWS = 2048
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
