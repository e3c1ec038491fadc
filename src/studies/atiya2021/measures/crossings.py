"""Curves of error against CPU seconds, and where they cross a target: the CPU seconds that a method needs for an error.

Curves of log error against log CPU seconds are fitted to the sizes of a method. A crossing is a value, a bound, or the
word that says why there is none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from scipy.special import stdtr

from recheck.judge.measures import BOUNDS, OK
from studies.atiya2021.measures.common import Known, Row, estimate

#: Curves are extrapolated to so many times their longest CPU seconds, and not further.
FARTHEST = 100.0
#: A claim rests on no bound that noise alone makes with a larger probability than this.
DOUBT = 0.025


@dataclass(frozen=True, slots=True)
class Crossing:
    """Natural log of CPU seconds, or of a ratio of them, with its standard error and the degrees of freedom of that.

    The status is ``ok``, ``at least``, ``at most``, or why there is no value. `beyond` is the log of the factor by
    which the longest CPU seconds were extrapolated. `doubt` is the probability that noise alone made a bound of it.
    """

    log: float
    se: float = 0.0
    df: float = math.inf
    status: str = OK
    beyond: float = 0.0
    doubt: float = 0.0

    def over(self, other: "Crossing") -> "Crossing":
        """The ratio of this to the other, in logs."""
        turned = {"at most": "at least", "at least": "at most"}.get(other.status, other.status)
        statuses = {self.status, turned} - {OK}
        if unknown := sorted(statuses - {*BOUNDS}):
            return Crossing(math.nan, status=unknown[0])
        if len(statuses) > 1:
            return Crossing(math.nan, status="not comparable")
        se = math.hypot(self.se, other.se)
        _, df = joint([self.se, other.se], [self.df, other.df])
        beyond, doubt = max(self.beyond, other.beyond), min(1.0, self.doubt + other.doubt)
        return Crossing(self.log - other.log, se, df, min(statuses, default=OK), beyond, doubt)

    def jackknifed(self, left: Sequence[float]) -> "Crossing":
        """With the standard error over data sets, from the logs without each of them. `doubt` remains unpaired."""
        df = len(left) - 1.0
        return replace(self, se=math.sqrt(df) * float(np.std(left)), df=df)

    def row(self, name: str, source: str, **more: Any) -> Row:
        """As a row of measures: the factor itself, with its standard error. A claim rests on no doubtful bound."""
        doubtful = name.startswith("claim/") and self.doubt > DOUBT
        value, status = math.exp(self.log), "not comparable" if doubtful else self.status
        known = Known(value, value * self.se, self.df, status)
        return estimate(name, known, source, scale="log", **more)


def joint(errors: Sequence[float], dfs: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of a sum of independent terms, and its degrees of freedom (Welch, Satterthwaite)."""
    variances = np.square(errors)
    total, spent = float(variances.sum()), float((variances**2 / dfs).sum())
    return math.sqrt(total), total**2 / spent if spent > 0 else math.inf


class Curve:
    """A curve through the log errors of the sizes of one method, straight between them on logarithmic axes.

    The mean error of ten runs is known to a quarter, so that a size may err more than a smaller one by chance, and what
    is read between two sizes hangs on that chance. The curve is therefore the nearest of the right shape, by isotonic
    regression with equal weights. The error of a method that `converges` falls at least as the square root of time
    (faster where time has a start in it), and goes on so beyond the longest run. That of a biased method does not rise.

    `line` has the sizes that count: ``seconds``, ``log_error``, ``log_error_se``, ``df``, ``exact``.
    """

    def __init__(self, line: pd.DataFrame, *, converges: bool = True) -> None:
        self.converges, self.exact = converges, bool(line["exact"].all())
        names = ["seconds", "log_error", "log_error_se", "df"]
        seconds, e, self.se, self.df = line.sort_values("seconds")[names].to_numpy(dtype=float).T
        self.x = np.log(seconds)
        law = -0.5 * self.x if converges else np.zeros(len(e))
        fit = isotonic_regression(e - law, increasing=False)
        self.log_error = fit.x + law
        # row i: how the fitted error of size i is made of the errors of all sizes
        sizes = np.diff(fit.blocks)
        block = np.repeat(np.arange(len(sizes)), sizes)
        self._shares = (block[:, None] == block) / sizes[block]

    def error(self, i: int) -> tuple[float, float, float]:
        """The fitted log error of a size, its standard error, and the degrees of freedom of that."""
        return float(self.log_error[i]), *self._joint(self._shares[i])

    def _joint(self, shares: np.ndarray, more: Sequence[float] = ()) -> tuple[float, float]:
        """Standard error and degrees of freedom of such shares of all sizes, and of one more term."""
        used = np.flatnonzero(shares)
        errors, dfs = [*np.abs(shares * self.se)[used]], [*self.df[used]]
        return joint([*errors, *more[:1]], [*dfs, *more[1:]])

    def crossing(
        self, target: float, target_se: float = 0.0, target_df: float = math.inf
    ) -> Crossing:
        """CPU seconds that the method needs for a log error.

        If no size has a larger error, they are at most the seconds of the first size. If all have, a method that
        converges is extrapolated to at most `FARTHEST` times its seconds, and otherwise they are at least those of the
        last size. The standard error takes the blocks of the regression as given.
        """
        if not len(self.x) or not math.isfinite(target):
            return Crossing(math.nan, status="not run")
        x, e, last = self.x, self.log_error, len(self.x) - 1
        above = np.flatnonzero(e > target)
        if not len(above):
            doubt = self._doubt(0, target, target_se, target_df)
            return Crossing(float(x[0]), status="at most", doubt=doubt)
        i = int(above[-1])
        if i == last:
            if self.exact:
                return Crossing(math.nan, status="not reached")
            further = 2.0 * float(e[i] - target)
            if not self.converges or further > math.log(FARTHEST):
                doubt = self._doubt(i, target, target_se, target_df)
                return Crossing(float(x[i]), status="at least", doubt=doubt)
            se, df = self._joint(2.0 * self._shares[i], [2.0 * target_se, target_df])
            return Crossing(float(x[i] + further), se, df, beyond=further)
        slope = (x[i + 1] - x[i]) / (e[i] - e[i + 1])
        part = (e[i] - target) / (e[i] - e[i + 1])
        shares = slope * ((1.0 - part) * self._shares[i] + part * self._shares[i + 1])
        se, df = self._joint(shares, [slope * target_se, target_df])
        return Crossing(float(x[i] + part * (x[i + 1] - x[i])), se, df)

    def _doubt(self, i: int, target: float, target_se: float, target_df: float) -> float:
        """Probability that noise alone puts the error of a size on its side of the target; zero without noise."""
        se, df = self._joint(self._shares[i], [target_se, target_df])
        margin = abs(float(self.log_error[i]) - target)
        return float(stdtr(min(df, 1e12), -margin / se)) if se > 0 else 0.0
