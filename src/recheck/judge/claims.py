"""Claims: statements of the prose, each a region for a quantity.

Two tests look at whether a quantity lies inside its region and whether it lies outside: Student's at the nearest end,
binomial ones of shares. A claim agrees if "outside" is rejected, and differs if "inside" is. Of a claim on every run,
the run is tested that is furthest outside in standard errors: "inside" with Bonferroni's correction for the choice,
"outside" without one, for all are inside if each is. The run that is shown is the one whose value is furthest outside.
A bound says nothing about the end of a region that lies on its open side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv, stdtr, stdtrit

from recheck.judge.measures import COUNTED, outside
from recheck.judge.samples import NotComparedError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Quantity:
    """What is known of a claim's quantity and its region, on the scale of its comparison; judged as a `Predictive` is.

    `bound` is ``at least``, ``at most`` or empty. Of a claim on every run, this one was chosen out of `looks`, to be
    tested; `furthest` is the one to be shown, if that is another, and `name` says which one this is. A share is one of
    so many `trials`.
    """

    value: float
    sd: float
    df: float
    scale: str
    low: float
    high: float
    bound: str = ""
    looks: int = 1
    trials: int = 0
    furthest: Quantity | None = None
    name: str = ""

    heterogeneity = math.nan
    cells: ClassVar[Mapping[str, float]] = {}

    @property
    def successes(self) -> int:
        """Of a share."""
        return round(self.value * self.trials)

    @property
    def exact(self) -> bool:
        """Whether chance has no part in the quantity; such a claim is in no family."""
        return self.sd == 0 and not self.trials

    @property
    def center(self) -> float:
        """Distance from the nearest end of the region, positive inside."""
        return min(self.value - self.low, self.high - self.value)

    @property
    def p(self) -> float:
        """p-value of the hypothesis that the quantity lies inside."""
        if self.value < self.low and self.bound != "at least":
            return min(1.0, self._below(self.low) * self.looks)
        if self.value > self.high and self.bound != "at most":
            return min(1.0, self._above(self.high) * self.looks)
        return 1.0

    def p_agree(self, margin: float = 0.0) -> float:
        """p-value of the hypothesis that the quantity lies outside; the region is the margin."""
        open_above = self.bound == "at least" and self.value <= self.high < math.inf
        open_below = self.bound == "at most" and self.value >= self.low > -math.inf
        if open_above or open_below:
            return 1.0
        return max(self._above(self.low), self._below(self.high))

    def _above(self, end: float) -> float:
        """p-value of the hypothesis that the quantity is not above an end."""
        if not self.trials:
            return self._tail(self.value - end)
        if end <= 0 or not self.successes:
            return float(end > 0)
        return float(bdtrc(self.successes - 1, self.trials, end))

    def _below(self, end: float) -> float:
        """p-value of the hypothesis that the quantity is not below an end."""
        if self.trials:
            return float(bdtr(self.successes, self.trials, end)) if end < 1 else 0.0
        return self._tail(end - self.value)

    def _tail(self, distance: float) -> float:
        if self.sd == 0:
            return float(distance < 0)
        return float(stdtr(self.df, -distance / self.sd)) if math.isfinite(distance) else 0.0

    def interval(self, coverage: float) -> tuple[float, float]:
        """Equal-tailed interval; open on the open side of a bound, Clopper and Pearson's of a share."""
        tail = (1 - coverage) / 2
        if self.trials:
            k, rest = self.successes, self.trials - self.successes
            low = float(betaincinv(k, rest + 1, tail)) if k else 0.0
            return low, float(betaincinv(k + 1, rest, 1 - tail)) if rest else 1.0
        half = float(stdtrit(self.df, 1 - tail)) * self.sd if self.sd else 0.0
        low = -math.inf if self.bound == "at most" else self.value - half
        return low, math.inf if self.bound == "at least" else self.value + half

    def detectable(self, level: float, power: float) -> float:
        """How far outside the quantity would be found; NaN for shares and bounds."""
        if self.trials or self.bound:
            return math.nan
        if self.sd == 0:
            return 0.0
        found = stdtrit(self.df, 1 - level / self.looks) + stdtrit(self.df, power)
        return float(found) * self.sd


def quantity(
    region: tuple[float, float], estimate: Mapping[str, Any], rows: pd.DataFrame
) -> Quantity:
    """A quantity and its region, from its estimate under one reading and the measures behind it."""
    if math.isnan(region[0]):
        raise NotComparedError("no region")
    good, scale = rows[rows["status"].isin(COUNTED)], str(estimate["scale"])
    if good["se"].notna().any():
        return _every(good, scale, region)
    low, high = _ends(region, scale)
    units = good.groupby("unit", sort=False)["value"].mean().to_numpy()
    if scale == "linear" and np.isin(units, (0.0, 1.0)).all():
        return Quantity(float(units.mean()), 0.0, math.inf, scale, low, high, trials=len(units))
    value, se = float(estimate["value"]), float(estimate["se"])
    if len(units) < 2 or not math.isfinite(se):
        raise NotComparedError(f"{len(units)} unit: no standard error over units")
    if scale == "log":
        if not value > 0:
            raise NotComparedError("its value is zero")
        value, se = math.log(value), se / value
    return Quantity(value, se, float(estimate["df"]), scale, low, high)


def _ends(region: tuple[float, float], scale: str) -> tuple[float, float]:
    """A region on the scale of the comparison."""
    if scale == "linear":
        return region
    low, high = (math.log(end) if end > 0 else -math.inf for end in region)
    return low, high


def _every(good: pd.DataFrame, scale: str, region: tuple[float, float]) -> Quantity:
    """Of rows that have their own standard errors, the one to be tested, with the one to be shown."""
    values, errors, dfs = (good[c].to_numpy(dtype=float) for c in ("value", "se", "df"))
    distances = outside(values, *region, scale == "log")
    if scale == "log":
        with np.errstate(divide="ignore"):
            values, errors = np.log(values), errors / values

    def row(place: int) -> Quantity:
        df = float(dfs[place]) if errors[place] > 0 else math.inf
        bound = str(good["status"].iloc[place]).replace("ok", "")
        unit, run = good[["unit", "run"]].iloc[place]
        name = " ".join(filter(None, [unit, run and f"run {run}"]))
        own = float(values[place]), float(errors[place]), df, scale, *_ends(region, scale)
        return Quantity(*own, bound=bound, looks=len(good), name=name)

    place = int(np.argmax(distances / np.where(errors > 0, errors, 1e-300)))
    tested, shown = row(place), int(np.argmax(distances))
    if not math.isfinite(tested.value):
        raise NotComparedError("no finite value")
    if not tested.df > 0:
        needed = "needed is df, the units behind it less one (inf if it is known)"
        raise NotComparedError(f"no degrees of freedom of its standard error: {needed}")
    return tested if shown == place else replace(tested, furthest=row(shown))
