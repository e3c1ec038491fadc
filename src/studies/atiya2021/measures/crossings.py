"""Where a curve of error against CPU seconds crosses a target: the CPU seconds that a method needs for an error.

Curves of log error against log CPU seconds are interpolated between sizes. A crossing is a value, a bound, or the word
that says why there is none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
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


def _doubt(margin: float, errors: Sequence[float], dfs: Sequence[float]) -> float:
    """Probability of the tail beyond a margin; zero without an error."""
    se, df = joint(errors, dfs)
    return float(stdtr(min(df, 1e12), -margin / se)) if se > 0 else 0.0


def crossing(
    line: pd.DataFrame,
    target: float,
    target_se: float = 0.0,
    target_df: float = math.inf,
    *,
    converges: bool = True,
) -> Crossing:
    """CPU seconds that a method needs for a log error, by interpolation on logarithmic axes.

    They lie between the last size with a larger error and the next one. If no size has a larger error, they are at most
    the seconds of the first size. If the last one has, they are at least its seconds; of a method that `converges` the
    error goes on to fall with the square root of time, to at most `FARTHEST` times the seconds.

    `line` has the sizes of one method that count: ``seconds``, ``log_error``, ``log_error_se``, ``df``, ``exact``.
    """
    if line.empty or not math.isfinite(target):
        return Crossing(math.nan, status="not run")
    names = ["seconds", "log_error", "log_error_se", "df"]
    seconds, e, s, df = line.sort_values("seconds")[names].to_numpy(dtype=float).T
    x, above = np.log(seconds), np.flatnonzero(e > target)
    if not len(above):
        doubt = _doubt(target - e[0], [s[0], target_se], [df[0], target_df])
        return Crossing(float(x[0]), status="at most", doubt=doubt)
    i = int(above[-1])
    if i == len(e) - 1:
        if line["exact"].all():
            return Crossing(math.nan, status="not reached")
        further = 2.0 * (e[i] - target)
        if not converges or further > math.log(FARTHEST):
            doubt = _doubt(e[i] - target, [s[i], target_se], [df[i], target_df])
            return Crossing(float(x[i]), status="at least", doubt=doubt)
        se, freedom = joint([2.0 * s[i], 2.0 * target_se], [df[i], target_df])
        return Crossing(float(x[i] + further), se, freedom, beyond=float(further))
    slope = (x[i + 1] - x[i]) / (e[i] - e[i + 1])
    share = (e[i] - target) / (e[i] - e[i + 1])
    errors = [slope * (1 - share) * s[i], slope * share * s[i + 1], slope * target_se]
    se, freedom = joint(errors, [df[i], df[i + 1], target_df])
    return Crossing(float(x[i] + share * (x[i + 1] - x[i])), se, freedom)
