"""Claims: statements of the prose, each a region for a quantity.

Two tests look at a quantity, whether it lies inside its region and whether it lies outside, Student's at the nearest
end of the region. A claim agrees if "outside" is rejected, and differs if "inside" is. Shares are tested as binomials.
Of a claim on every run, the run that is furthest outside is taken: that it lies inside is tested with Bonferroni's
correction for the choice, that it lies outside without one, for all are inside if each is. A bound says nothing about
the end of a region that lies on its open side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import bdtr, bdtrc, betaincinv, stdtr, stdtrit

from recheck.measures import COUNTED, unit_means
from recheck.published import Claim

__all__ = ["Quantity", "quantity"]


@dataclass(frozen=True)
class Quantity:
    """What is known of a claim's quantity, on the scale of its comparison.

    Attributes
    ----------
    value, se, df : float
    scale : str
        ``log`` or ``linear``.
    low, high : float
        The region.
    bound : str
        ``at least``, ``at most`` or empty.
    looks : int
        Runs out of which this one was chosen.
    successes, trials : int
        Of a share; no trials otherwise.
    """

    value: float
    se: float
    df: float
    scale: str
    low: float
    high: float
    bound: str = ""
    looks: int = 1
    successes: int = 0
    trials: int = 0

    @property
    def exact(self) -> bool:
        """Whether chance has no part in the quantity; such a claim is in no family."""
        return self.se == 0 and not self.trials

    @property
    def distance(self) -> float:
        """Distance from the nearest end of the region, positive inside."""
        return min(self.value - self.low, self.high - self.value)

    def p_values(self) -> tuple[float, float]:
        """p-values of the hypotheses that the quantity lies inside, and that it lies outside."""
        if self.trials:
            return self._binomial()
        below, above = self._tail(self.value - self.low), self._tail(self.high - self.value)
        if self.bound == "at least" and math.isfinite(self.high) and self.value <= self.high:
            above = 1.0
        if self.bound == "at most" and math.isfinite(self.low) and self.value >= self.low:
            below = 1.0
        inside = 1.0
        if self.value < self.low and self.bound != "at least":
            inside = self._tail(self.low - self.value)
        elif self.value > self.high and self.bound != "at most":
            inside = self._tail(self.value - self.high)
        return min(1.0, inside * self.looks), max(below, above)

    def _tail(self, distance: float) -> float:
        """p-value of the hypothesis that the quantity is beyond an end at a distance."""
        if self.se == 0:
            return float(distance < 0)
        return float(stdtr(self.df, -distance / self.se)) if math.isfinite(distance) else 0.0

    def _binomial(self) -> tuple[float, float]:
        n, k, low, high = self.trials, self.successes, max(self.low, 0.0), min(self.high, 1.0)
        above = _at_least(k, n, low) if low > 0 else 0.0
        below = float(bdtr(k, n, high)) if high < 1 else 0.0
        inside = 1.0
        if k / n < low:
            inside = float(bdtr(k, n, low))
        elif k / n > high:
            inside = _at_least(k, n, high)
        return inside, max(above, below)

    def interval(self, coverage: float) -> tuple[float, float]:
        """Equal-tailed interval; open on the open side of a bound, Clopper and Pearson's of a share."""
        tail = (1 - coverage) / 2
        if self.trials:
            return _clopper_pearson(self.successes, self.trials, tail)
        half = float(stdtrit(self.df, 1 - tail)) * self.se if self.se else 0.0
        low = -math.inf if self.bound == "at most" else self.value - half
        return low, math.inf if self.bound == "at least" else self.value + half

    def detectable(self, level: float, power: float) -> float:
        """How far outside the quantity would be found; NaN for shares and bounds."""
        if self.trials or self.bound:
            return math.nan
        if self.se == 0:
            return 0.0
        level = level / self.looks
        return float(stdtrit(self.df, 1 - level) + stdtrit(self.df, power)) * self.se


def _at_least(k: int, n: int, share: float) -> float:
    """Probability of k or more of n."""
    return float(bdtrc(k - 1, n, share)) if k else 1.0


def _clopper_pearson(k: int, n: int, tail: float) -> tuple[float, float]:
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    return low, float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0


def quantity(claim: Claim, estimate: pd.Series, rows: pd.DataFrame) -> Quantity | str:
    """The quantity of a claim.

    Parameters
    ----------
    claim : Claim
        With a region.
    estimate : Series
        `recheck.measures.ESTIMATES`: of the measure ``claim/<id>`` under one reading.
    rows : DataFrame
        The measures behind it.

    Returns
    -------
    Quantity or str
        Why there is none, if it cannot be judged.
    """
    good = rows[rows["status"].isin(COUNTED)]
    scale = str(estimate["scale"])
    low, high = (_scaled(end, scale) for end in (claim.low, claim.high))
    if good["se"].notna().any():
        values, errors, dfs = (good[c].to_numpy(dtype=float) for c in ("value", "se", "df"))
        if scale == "log":
            with np.errstate(divide="ignore"):
                values, errors = np.log(values), errors / values
        outside = np.maximum(low - values, values - high)
        near = outside / np.where(errors > 0, errors, 1e-300)
        worst = int(np.argmax(near))
        bound = str(good["status"].iloc[worst])
        df = dfs[worst] if errors[worst] > 0 else math.inf
        if not (np.isfinite(values[worst]) and df > 0):
            return "no degrees of freedom of its standard error, or no finite value"
        return Quantity(
            *(float(values[worst]), float(errors[worst]), float(df), scale, low, high),
            bound=bound if bound != "ok" else "",
            looks=len(good),
        )
    units = unit_means(rows)["mean"].to_numpy(dtype=float)
    if scale == "linear" and np.isin(units, (0.0, 1.0)).all():
        share, n = float(units.mean()), len(units)
        return Quantity(share, 0.0, math.inf, scale, low, high, "", 1, round(units.sum()), n)
    value, se = float(estimate["value"]), float(estimate["se"])
    if len(units) < 2 or not math.isfinite(se):
        return f"{len(units)} unit: no standard error over units"
    if scale == "log":
        if not value > 0:
            return "its value is zero"
        value, se = math.log(value), se / value
    return Quantity(value, se, float(estimate["df"]), scale, low, high)


def _scaled(end: float, scale: str) -> float:
    """An end of a region on the scale of the comparison."""
    if scale == "linear" or math.isinf(end):
        return end
    return math.log(end) if end > 0 else -math.inf
