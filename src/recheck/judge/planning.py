"""How many units and runs it takes until a printed number that is off by a factor would be found.

A pilot, some runs on some units, says how much units and runs differ. What a design would detect follows from the same
replay that judges (`recheck.judge.replay`), with the degrees of freedom that the design will have. The published side
does not get better with our runs: where its own variation hides the factor, no design finds it, and the plan says so.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.compare import Comparer
from recheck.judge.measures import COUNTED
from recheck.judge.noise import Between, Noise, Sampler, run_noise
from recheck.judge.published import Published
from recheck.judge.replay import printed_error, replayed
from recheck.judge.samples import NotComparedError

#: Runs a unit that a plan tries, and the most units.
RUNS, MOST = (1, 2, 3, 5, 10, 20, 50), 10_000
COLUMNS = ["id", "between", "run_sd", "now", "detectable", "units", "runs", "limit", "note"]


@dataclass(frozen=True)
class Spread:
    """Relative variation of a cell: the variance between units without the noise of runs, and that noise."""

    between: float
    noise: Noise

    @classmethod
    def of(cls, units: Mapping[str, np.ndarray], their_units: int) -> "Spread":
        """Estimate it from a pilot's runs by unit, on the scale on which the published design is replayed."""
        runs = list(units.values())
        means = np.array([one.mean() for one in runs])
        noise = Noise.of_units(runs, "log")
        noise = noise.plain if their_units > 1 else noise
        statistic = means / means.mean() if their_units > 1 else np.log(means)
        each = 1.0 / float(np.mean([1.0 / len(one) for one in runs]))
        return cls(max(float(statistic.var(ddof=1)) - noise.of_mean(each)[1], 0.0), noise)


def detectable(
    spread: Spread, cell: Mapping[str, Any], ours: tuple[int, int], *rule: float
) -> float:
    """Logarithm of the factor that units and runs of ours detect; `rule` are the level and the power.

    Infinite where the noise of runs would be unknown: one run a unit of ours beside several of theirs.
    """
    (n, runs), theirs = ours, (int(cell["units"]), int(cell["runs"]))
    noise = replace(spread.noise, df=float(n * (runs - 1))) if spread.noise.df else spread.noise
    if not noise.df and runs != theirs[1]:
        return math.inf
    own, sampler = noise.of_mean(runs)[1], Sampler(1, str(ours))
    half = cell["rounding"] / cell["value"]
    if cell["error"] > 0:
        error, df = cell["error"] / cell["value"], max(theirs[0] - 1.0, 1.0)
        mine = 1.0, math.sqrt((spread.between + own) / n), n - 1.0
        return printed_error(mine, (1.0, error, df), half**2 / 3, sampler).detectable(*rule)
    between = Between(spread.between + own, n - 1.0, own)
    noises = run_noise([(1.0, noise, float(runs), float(theirs[1]))])
    found = replayed(0.0, 0.0, (n, theirs[0]), between, noises, sampler, rounding=half**2 / 3)
    return found.detectable(*rule)


def plan(pilot: pd.DataFrame, study: Published, factor: float) -> pd.DataFrame:
    """Plan each cell that is compared as a ratio: a row with `COLUMNS`.

    ``between`` and ``run_sd`` are relative standard deviations, ``now`` is the pilot's design and ``detectable`` what
    the judge detects with it. ``units`` and ``runs`` are the design with the fewest runs that detects the factor with
    the power of the protocol, at the hardest step of Holm's test over all cells, contrasts and columns of the study;
    ``limit`` is what any number of units would detect. A variance between units that is estimated below zero is zero
    in a planned design.
    ValueError of a factor that is not above 1.
    """
    if not 1.0 < factor < 1e9:
        raise ValueError(f"factor: needed is a number above 1, given was {factor}")
    columns = study.cells.groupby("column").size()
    family = len(study.cells) + int((columns > 1).sum()) + len(study.pairs())
    rule = study.protocol.family_error / family, study.protocol.power
    good = pilot[pilot["status"].isin(COUNTED) & pilot["se"].isna()]
    rows, comparer = [], Comparer(pilot, study, 1)
    for cell in study.cells.to_dict("records"):
        own = good[good["id"] == cell["id"]]
        units = {str(name): one["value"].to_numpy(dtype=float) for name, one in own.groupby("unit")}
        row = dict.fromkeys(COLUMNS, math.nan) | {"id": cell["id"], "now": "", "note": ""}
        if cell["scale"] != "log":
            row["note"] = "compared as a difference: a factor is none"
        elif len(units) < 2 or any(one.mean() <= 0 for one in units.values()):
            row["note"] = "the pilot needs two or more units with positive values"
        else:
            row |= _planned(units, cell, rule, math.log(factor))
            row["detectable"] = _factor(_now(comparer, str(cell["id"]), rule))
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _planned(
    units: Mapping[str, np.ndarray], cell: Mapping[str, Any], rule: tuple[float, float], aim: float
) -> dict[str, Any]:
    """One row of the plan; `aim` is the logarithm of the factor."""
    spread, runs = Spread.of(units, int(cell["units"])), min(len(one) for one in units.values())
    known = bool(spread.noise.df)
    designs = []
    for each in RUNS if known else (runs,):

        def reached(units: int, each: int = each) -> float:
            return detectable(spread, cell, (units, each), *rule)

        if needed := _fewest(reached, aim):
            designs.append((needed * each, needed, each))
    limit = detectable(spread, cell, (MOST, max(RUNS) if known else runs), *rule)
    note = "" if known else "one run a unit: only units are planned"
    if not designs:
        note = "no number of our units finds it: the printed number varies too much by itself"
    _, n, r = min(designs) if designs else (0, math.nan, math.nan)
    return {
        "between": math.sqrt(spread.between),
        "run_sd": math.sqrt(spread.noise.variance) if known else math.nan,
        "now": f"{len(units)} x {runs}",
        "units": n,
        "runs": r,
        "limit": _factor(limit),
        "note": note,
    }


def _now(comparer: Comparer, name: str, rule: tuple[float, float]) -> float:
    """What the judge detects with the pilot, under the reading where that is least; infinite if it cannot compare."""
    found = []
    for levels in comparer.published.combinations([name], "runs"):
        with suppress(NotComparedError):
            found.append(comparer.cell(name, levels).detectable(*rule))
    return max(found, default=math.inf)


def _fewest(factors: Callable[[int], float], aim: float) -> int:
    """The fewest units from 2 on whose logarithm of the factor is at most an aim; 0 if it is above with `MOST`."""
    if factors(MOST) > aim:
        return 0
    low, high = 1, MOST
    while high - low > 1:
        middle = round(math.sqrt(low * high)) if high > 2 * low else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if factors(middle) <= aim else (middle, high)
    return high


def _factor(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 40 else math.inf
