"""Experiment 1: log orthant probabilities with a known truth (Table 1), and the floor of its published errors."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from recheck.judge.measures import OK, join_sources
from recheck.judge.measures import estimate as summarise
from recheck.judge.noise import DRAWS
from recheck.judge.printed import half_unit
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import PRINTED, Known, Row, each, estimate, measured
from studies.atiya2021.measures.convergence import (
    biases,
    log_slope,
    slope_of_means,
    slopes,
    variances,
)
from studies.atiya2021.measures.inexact import suspects
from studies.common.measuring import Rows

#: The paper's numbers of the problems, by dimension.
PROBLEMS = {50: 1, 200: 2, 500: 3}
#: Instances behind a published cell of Table 1.
INSTANCES = 50
#: A bracket that is larger than this many times the scatter of the instances is due to few of them.
BEYOND = 2.0
#: Of the interval of the effective number of wrong truths.
COVERAGE = 0.9

_COLUMNS = ["dimension", "instance", "samples", "count", "scheme", "seed", "bias_eq43"]
_FINITE = ["truth", "estimate", "standard_error", "variance_eq44"]
_UNIT = "experiment1/N{dimension}/instance{instance}"


def measure(given: Rows) -> pd.DataFrame:
    """All measures of Experiment 1, and the findings about the published brackets of Tables 1 to 3."""
    published = given.published
    every = common.table(given, "experiment1", [*_COLUMNS, *_FINITE], finite=_FINITE)
    every["problem"] = every["dimension"].map(PROBLEMS).astype("Int64")  # others have none
    off, status = every["estimate"] - every["truth"], paper_scheme(every)
    every = every.assign(error=absolute_percentage_error(every), cluster=every["instance"])
    every = every.assign(square=off**2, weight=1.0, nats=off.abs())
    cell = "N{dimension}/M{samples}"
    cells = measured(every, f"table1/{cell}", "error", unit=_UNIT, status=status)
    runs = every[status == OK]
    large = runs[runs["dimension"] == max(PROBLEMS)].drop_duplicates("instance")
    powers = large["truth"] / math.log(10.0)
    # what independent signs would have, as an estimate that looks at nothing
    every_instance = runs.drop_duplicates(["dimension", "instance"])
    halves = every_instance.assign(estimate=-every_instance["dimension"] * math.log(2.0))
    constant = absolute_percentage_error(halves)
    longest = runs[runs["samples"] == runs["samples"].max()]
    # the mean of (1 - P_i) / P_i over stages, from Eq. (44); it is one if every P_i is a half
    odds = longest["samples"] * longest["variance_eq44"] / longest["dimension"]
    table1 = common.published_cells(published, "table1/N{dimension}/M{samples}")
    table1["problem"] = table1["dimension"].map(PROBLEMS)
    ours = summarise(common.combine(cells)).set_index("id")
    floor = [*_floor(table1, ours)]
    return common.combine(
        cells,
        measured(every, f"experiment1/{cell}/nats", "nats", unit=_UNIT, status=status),
        measured(halves, "experiment1/N{dimension}/constant/error", constant, unit=_UNIT),
        measured(large, "claim/integral/order", powers, unit=_UNIT, scale="linear"),
        slopes(runs, table1, "table1"),
        variances(runs, "experiment1"),
        biases(runs, "experiment1"),
        _dimension(runs),
        measured(longest, "claim/stages/middle", odds, unit=_UNIT),
        _quadrature(given, runs),
        suspects(given, runs, 100.0 * (runs["estimate"] - runs["truth"]) / runs["truth"].abs()),
        _brackets(published),
        floor,
        _slopes_of_means(table1, runs, floor),
    )


def paper_scheme(frame: pd.DataFrame) -> pd.Series:
    """Status of runs of Tables 1 to 3: ok for Algorithm GPC-MC with the hard count, which made the published tables."""
    own = (frame["scheme"] == "bootstrap") & (frame["count"] == "hard")
    return own.map({True: OK, False: "not comparable"})


def absolute_percentage_error(frame: pd.DataFrame) -> pd.Series:
    """100 |log I - log I-hat| / |log I| of each row (Eq. 64 before averaging), in percent."""
    return 100.0 * (frame["estimate"] - frame["truth"]).abs() / frame["truth"].abs()


def _dimension(runs: pd.DataFrame) -> Iterator[Row]:
    """Slope of log error on log N at a given M, every instance counting alike; in nats it is one higher."""
    runs = runs[runs["error"] > 0]
    # the level of a sample size is taken out first; an instance is then one point
    level = np.log(runs["error"]) + 0.5 * np.log(runs["samples"].astype(float))
    means = level.groupby([runs["dimension"], runs["instance"]]).mean().reset_index(name="level")
    if means["dimension"].nunique() > 2:
        found = log_slope(means["dimension"], means["level"])
        yield estimate("claim/dimension", found, join_sources(runs["source"]))


def _quadrature(given: Rows, runs: pd.DataFrame) -> Iterator[Any]:
    """Truths from a coarse grid: their own errors, and our estimates scored against them."""
    columns = ["dimension", "instance", "du", "truth", "coarse", "ape_percent"]
    grid = common.table(given, "quadrature", columns, finite=columns[3:])
    name = "experiment1/N{dimension}/step{du}"
    yield measured(grid, f"{name}/truth-error", "ape_percent", unit=_UNIT)
    largest = {"largest-truth-error": ("ape_percent", "max")}
    yield each(grid, ["dimension", "du"], f"{name}/{{quantity}}", largest)
    both = runs.merge(grid[["dimension", "instance", "du", "coarse"]], on=["dimension", "instance"])
    scored = absolute_percentage_error(both.assign(truth=both["coarse"]))
    yield measured(both, f"{name}/M{{samples}}/error", scored, unit=_UNIT)


def _brackets(published: Path) -> Iterator[Row]:
    """Which number n of runs makes every bracket of Tables 2 and 3 equal to value/sqrt(n).

    A standard error varies with the spread of its runs. If a bracket is value/sqrt(n) instead, the rounding of its two
    numbers confines n to an interval, and the intervals of all cells overlap. Table 1 stands beside for contrast.
    """
    cells = common.published_cells(published, "table{number}/{block}/M{samples}")
    half, value, rounding = cells["bracket"].map(half_unit), cells["value"], cells["rounding"]
    cells["low"] = ((value - rounding) / (cells["bracket_value"] + half)) ** 2
    cells["high"] = ((value + rounding) / (cells["bracket_value"] - half)) ** 2
    cells["ratio"] = value / cells["bracket_value"]
    names = {f"N{dimension}": f"P{problem}" for dimension, problem in PROBLEMS.items()}
    cells["block"] = cells["block"].replace(names)
    first = cells["number"] == 1
    tables = cells.assign(number=np.where(first, "table1", "tables2-3"))
    three = tables[~first].assign(block=cells["block"].where(cells["block"] == "P4", "P1-P3"))
    single = cells.assign(number="table" + cells["number"].astype(str))
    quantities = {
        "cells": len,
        "runs-low": ("low", "max"),
        "runs-high": ("high", "min"),
        "ratio-low": ("ratio", "min"),
        "ratio-high": ("ratio", "max"),
        "runs": lambda part: _only_integer(part["low"].max(), part["high"].min()),
    }
    frame = pd.concat([single, three, tables.assign(block="all")])
    template = "finding/brackets/{number}/{block}/{quantity}"
    yield from each(frame, ["number", "block"], template, quantities, source=PRINTED)


def _only_integer(low: float, high: float) -> Known:
    inside = range(math.ceil(low), math.floor(high) + 1)
    if len(inside) == 1:
        return Known(float(inside[0]), 0.0)
    return Known(se=0.0, status="none" if low > high else "several")


def _floor(table1: pd.DataFrame, ours: pd.DataFrame) -> Iterator[Row]:
    """How many wrong truths would make the part of a published column that does not fall with M.

    ``bracket-over-scatter`` sets a published bracket beside what the scatter of 50 absolute values of normal errors
    makes of the same mean. Where it is above `BEYOND`, few instances make most of the error, and the bracket says
    how many at least: `effective_number`. The number does not identify the truths: where it is below
    two, two truths, wrong by ``pair-larger`` and ``pair-smaller`` percent, give the same mean and bracket, and so do
    many larger sets.
    """
    for cell in table1.to_dict("records"):
        name = f"finding/floor/N{cell['dimension']}/M{cell['samples']}"
        mean, bracket = float(cell["value"]), float(cell["bracket_value"])
        beyond = bracket / (math.sqrt((math.pi / 2 - 1) / INSTANCES) * mean)
        yield estimate(f"{name}/bracket-over-scatter", beyond, PRINTED)
        if cell["id"] not in ours.index:
            continue
        own, wrong = ours.loc[cell["id"]], f"{name}/effective-wrong-truths"
        source = join_sources([PRINTED, own["source"]])
        if not own["units"] > 1 or not beyond > BEYOND:
            status = "scatter" if own["units"] > 1 else "not comparable"
            yield estimate(wrong, Known(status=status), source)
            continue
        level, spread = float(own["value"]), float(own["se"]) * math.sqrt(own["units"])
        printed = (mean, cell["rounding"]), (bracket, half_unit(cell["bracket"]))
        number, low, high = effective_number(*printed, INSTANCES, (level, spread))
        se = (high - low) / (2 * NormalDist().inv_cdf((1 + COVERAGE) / 2))
        yield estimate(wrong, Known(number, se, own["df"]), source, scale="log")
        if number <= 2:
            half_sum = (INSTANCES * mean - (INSTANCES - 1) * level) / 2
            apart = half_sum * math.sqrt(2 / number - 1)
            for quantity, error in (("larger", half_sum + apart), ("smaller", half_sum - apart)):
                yield estimate(f"{name}/pair-{quantity}", Known(error), source)


def _slopes_of_means(
    table1: pd.DataFrame, runs: pd.DataFrame, floor: Iterable[Row]
) -> Iterator[Row]:
    """The published statistic of our runs: slopes through the logarithms of mean errors; and with two wrong truths.

    ``with-pair`` is what two truths, wrong as `_floor` has it at the column's largest M, make of our column.
    """
    pairs = {row["id"]: row["value"] for row in floor}
    for problem, column in table1.groupby("problem"):
        own = runs[(runs["problem"] == problem) & runs["samples"].isin(column["samples"])]
        errors = own.pivot_table(index="instance", columns="samples", values="error")
        errors = errors.loc[:, errors.mean() > 0]
        if errors.shape[1] < 3:
            continue
        source, name = join_sources(own["source"]), f"slope/table1/P{problem}"
        yield estimate(f"{name}/of-means", slope_of_means(errors), source)
        largest = f"N{column['dimension'].iloc[0]}/M{errors.columns.max()}"
        pair = f"finding/floor/{largest}/pair-"
        if {f"{pair}larger", f"{pair}smaller"} <= pairs.keys():
            wrong = pairs[f"{pair}larger"] + pairs[f"{pair}smaller"]
            planted = (errors.mean() * (INSTANCES - 2) + wrong) / INSTANCES
            source = join_sources([PRINTED, source])
            slope = log_slope(pd.Series(errors.columns), np.log(planted))
            yield estimate(f"{name}/with-pair", slope, source)


def effective_number(
    value: tuple[float, float], bracket: tuple[float, float], n: int, own_error: tuple[float, float]
) -> tuple[float, float, float]:
    """How many wrong truths a mean absolute error and its standard error over n units speak of at least.

    It is (sum of errors)^2 / (sum of their squares), their number, were they equally wrong; and the ends of an interval
    that has `COVERAGE`, from rounding and our own Monte Carlo error. `value` and `bracket` are printed, each with half
    a unit in its last place. `own_error`, mean and standard deviation over units of the Monte Carlo error alone, is
    taken off first; all three are NaN where nothing is left. ValueError if there are fewer than three units.
    """
    if n < 3:
        raise ValueError(f"n: needed are three units or more, given was {n}")
    rng, (mean, sd) = np.random.default_rng(0), own_error
    # the printed numbers themselves come first, then draws
    a, b = (np.r_[one, one + half * rng.uniform(-1, 1, DRAWS)] for one, half in (value, bracket))
    spread = sd / math.sqrt(n) * ndtri(rng.uniform(size=DRAWS))
    noise = np.r_[mean, np.maximum(mean + spread, 0.0)]
    # units with a wrong truth have their noise in quadrature, which is next to none: their share is left out
    total = n * a - (n - 1.0) * noise
    squares = n * (n - 1.0) * b**2 + n * a**2 - (n - 1.0) * (noise**2 + sd**2)
    left = (total > 0) & (squares > 0)
    if not left[0] or left[1:].mean() < 0.5:
        return math.nan, math.nan, math.nan
    numbers = total[left] ** 2 / squares[left]
    low, high = np.quantile(numbers[1:], [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(numbers[0]), float(low), float(high)
