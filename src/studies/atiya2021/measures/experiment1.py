"""Experiment 1: log orthant probabilities with a known truth (Table 1), and the floor of its published errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources
from recheck.measures import estimate as summarise
from recheck.replay import effective_number
from studies.atiya2021.measures.common import (
    PRINTED,
    combine,
    estimate,
    measure,
    published_cells,
    raw_rows,
    whole,
)
from studies.atiya2021.measures.convergence import biases, slopes, variances

__all__ = ["PROBLEMS", "absolute_percentage_error", "measure_experiment1", "paper_scheme"]

#: The paper's numbers of the problems, by dimension.
PROBLEMS = {50: 1, 200: 2, 500: 3}
#: Instances behind a published cell of Table 1.
INSTANCES = 50
#: A bracket that is larger than this many times the scatter of the instances is due to few of them.
BEYOND = 2.0
#: Of the interval of the effective number of wrong truths.
COVERAGE = 0.9

_COLUMNS = ["dimension", "instance", "samples", "count", "scheme", "seed", "truth", "estimate"]
_ERRORS = ["standard_error", "bias_eq43", "variance_eq44"]
_FINITE = ["truth", "estimate", "standard_error", "variance_eq44"]


def measure_experiment1(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of Experiment 1, and the findings about the published brackets of Tables 1 to 3.

    Parameters
    ----------
    root : path
        Folder of the study's results.
    published : path
        Folder with ``cells.csv``.
    reference : path
        Folder of the certified reference; not needed here.
    """
    every = raw_rows(root, "experiment1/N*.csv", [*_COLUMNS, *_ERRORS], finite=_FINITE)
    every["problem"] = (
        every["dimension"].map(PROBLEMS).astype("Int64")
    )  # none of further dimensions
    status, every["ape"] = paper_scheme(every), absolute_percentage_error(every)
    unit = "experiment1/N{dimension}/instance{instance}"
    cells = measure(every, "table1/N{dimension}/M{samples}", every["ape"], unit=unit, status=status)
    off = (every["estimate"] - every["truth"]).abs()
    nats = measure(every, "experiment1/N{dimension}/M{samples}/nats", off, unit=unit, status=status)
    runs = every[status == OK]
    runs = runs.assign(
        cluster=runs["instance"],
        square=(runs["estimate"] - runs["truth"]) ** 2,
        weight=1.0,
        error=runs["ape"],
    )
    table1 = published_cells(published, "table1/*")
    table1["dimension"] = table1["block"].str[1:].astype(int)
    table1["problem"] = table1["dimension"].map(PROBLEMS)
    return combine(
        cells,
        nats,
        _truths(runs),
        slopes(runs, table1, "table1"),
        variances(runs, "experiment1"),
        biases(runs, "experiment1"),
        _dimension(runs),
        _counts(runs),
        *_quadrature(root, runs),
        _brackets(published),
        _floor(table1, cells),
    )


def paper_scheme(frame: pd.DataFrame) -> pd.Series:
    """Status of runs of Tables 1 to 3: ok for Algorithm GPC-MC with the hard count, which made the published tables."""
    own = (frame["scheme"] == "bootstrap") & (frame["count"] == "hard")
    return own.map({True: OK, False: "not comparable"})


def absolute_percentage_error(frame: pd.DataFrame) -> pd.Series:
    """100 |log I - log I-hat| / |log I| of each row (Eq. 64 before averaging), in percent."""
    return 100.0 * (frame["estimate"] - frame["truth"]).abs() / frame["truth"].abs()


def _truths(runs: pd.DataFrame) -> pd.DataFrame:
    """How small the orthant probabilities are, in powers of ten; the claim is about 500 dimensions."""
    first = runs.drop_duplicates(["dimension", "instance"])
    unit, tens = "experiment1/N{dimension}/instance{instance}", first["truth"] / math.log(10.0)
    powers = measure(first, "experiment1/N{dimension}/power", tens, unit=unit, scale="linear")
    large = first["dimension"] == max(PROBLEMS)
    claim = measure(first[large], "claim/integral/order", tens[large], unit=unit, scale="linear")
    return pd.concat([powers, claim])


def _counts(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Instances behind each cell."""
    for (dimension, samples), group in runs.groupby(["dimension", "samples"]):
        name = f"experiment1/N{dimension}/M{samples}/instances"
        yield whole(name, group["instance"].nunique(), join_sources(group["source"]))


def _dimension(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Slope of log APE on log N at a given M, every instance counting alike; in nats it is one higher."""
    runs = runs[runs["error"] > 0]
    # the level of a sample size is taken out first; an instance is then one point
    level = np.log(runs["error"]) + 0.5 * np.log(runs["samples"].astype(float))
    means = level.groupby([runs["dimension"], runs["instance"]]).mean().reset_index(name="level")
    if means["dimension"].nunique() < 3:
        return
    x = np.log(means["dimension"].astype(float).to_numpy())
    fit, covariance = np.polyfit(x, means["level"].to_numpy(), 1, cov=True)
    se, source = float(np.sqrt(covariance[0, 0])), join_sources(runs["source"])
    yield estimate("claim/dimension", float(fit[0]), source, se=se, df=len(means) - 2.0)


def _quadrature(root: Path, runs: pd.DataFrame) -> list[Any]:
    """Truths from a coarse grid: their own errors, and our estimates scored against them."""
    columns = ["dimension", "instance", "du", "truth", "coarse", "ape_percent"]
    grid = raw_rows(root, "experiment1/quadrature.csv", columns, finite=columns[3:])
    unit = "experiment1/N{dimension}/instance{instance}"
    own = measure(
        grid, "experiment1/N{dimension}/step{du}/truth-error", grid["ape_percent"], unit=unit
    )
    exact: list[dict[str, Any]] = []
    for (dimension, step), rows in grid.groupby(["dimension", "du"]):
        name, source = f"experiment1/N{dimension}/step{step}", join_sources(rows["source"])
        largest, mean = float(rows["ape_percent"].max()), float(rows["ape_percent"].mean())
        exact.append(whole(f"{name}/largest-truth-error", largest, source))
        if mean > 0:
            exact.append(whole(f"{name}/largest-over-mean", largest / mean, source))
    both = runs.merge(grid[["dimension", "instance", "du", "coarse"]], on=["dimension", "instance"])
    if both.empty:
        return [own, exact]
    scored = absolute_percentage_error(both.assign(truth=both["coarse"]))
    template = "experiment1/N{dimension}/step{du}/M{samples}/error"
    return [own, exact, measure(both, template, scored, unit=unit)]


def _brackets(published: Path) -> Iterator[dict[str, Any]]:
    """Which number n of runs makes every bracket of Tables 2 and 3 equal to value/sqrt(n).

    A standard error varies with the spread of its runs. If a bracket is value/sqrt(n) instead, the rounding of its two
    numbers confines n to an interval, and the intervals of all cells overlap. Table 1 stands beside for contrast.
    """
    cells = published_cells(published, "table[123]/*")
    cells["table"] = cells["id"].str.split("/").str[0]
    half = cells["bracket"].map(lambda text: 0.5 * 10.0 ** -len(text.partition(".")[2]))
    value, bracket, rounding = cells["value"], cells["bracket_value"], cells["rounding"]
    cells["low"] = ((value - rounding) / (bracket + half)) ** 2
    cells["high"] = ((value + rounding) / (bracket - half)) ** 2
    cells["ratio"] = value / bracket
    dimensions = {f"N{dimension}": f"P{problem}" for dimension, problem in PROBLEMS.items()}
    cells["block"] = cells["block"].replace(dimensions)
    later = cells[cells["table"] != "table1"]
    groups = {f"{t}/{b}": g for (t, b), g in cells.groupby(["table", "block"])}
    groups |= {
        "tables2-3/P1-P3": later[later["block"] != "P4"],
        "tables2-3/P4": later[later["block"] == "P4"],
        "tables2-3/all": later,
        "table1/all": cells[cells["table"] == "table1"],
    }
    for name, group in groups.items():
        yield from _bracket_block(f"finding/brackets/{name}", group)


def _bracket_block(name: str, group: pd.DataFrame) -> Iterator[dict[str, Any]]:
    low, high, source = float(group["low"].max()), float(group["high"].min()), PRINTED
    yield whole(f"{name}/cells", len(group), source)
    yield whole(f"{name}/runs-low", low, source)
    yield whole(f"{name}/runs-high", high, source)
    yield whole(f"{name}/ratio-low", float(group["ratio"].min()), source)
    yield whole(f"{name}/ratio-high", float(group["ratio"].max()), source)
    inside = range(math.ceil(low), math.floor(high) + 1)
    status = OK if len(inside) == 1 else "none" if low > high else "several"
    value = float(inside[0]) if len(inside) == 1 else math.nan
    yield estimate(f"{name}/runs", value, source, se=0.0, status=status)


def _floor(table1: pd.DataFrame, cells: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The part of a published column that does not fall with M, and how many wrong truths would make it.

    ``fit`` is a of the line a + b M^(-1/2) through the published column, by least squares of relative residuals.
    ``bracket-over-scatter`` sets a published bracket beside what the scatter of 50 absolute values of normal errors
    makes of the same mean. Where it is above `BEYOND`, few instances make most of the error, and the bracket says
    how many at least: `recheck.replay.effective_number`.
    """
    ours = summarise(cells).set_index("id") if len(cells) else None
    for dimension, column in table1.groupby("dimension"):
        column = column.sort_values("samples")
        value = column["value"].to_numpy()
        design = np.column_stack(
            [np.ones(len(column)), column["samples"].to_numpy(dtype=float) ** -0.5]
        )
        fit = np.linalg.lstsq(design / value[:, None], np.ones(len(column)), rcond=None)[0]
        yield whole(f"finding/floor/N{dimension}/fit", float(fit[0]), PRINTED)
        for _, cell in column.iterrows():
            name = f"finding/floor/N{dimension}/M{cell['samples']:.0f}"
            scatter = math.sqrt((math.pi / 2 - 1) / INSTANCES) * cell["value"]
            beyond = cell["bracket_value"] / scatter
            yield whole(f"{name}/bracket-over-scatter", beyond, PRINTED)
            if ours is not None and cell["id"] in ours.index:
                yield from _wrong_truths(name, cell, ours.loc[cell["id"]], beyond > BEYOND)


def _wrong_truths(
    name: str, cell: pd.Series, own: pd.Series, beyond: bool
) -> Iterator[dict[str, Any]]:
    """The effective number of wrong truths that a published mean and bracket imply, and a pair that fits both.

    The number does not identify the truths: where it is below two, two truths, wrong by ``pair-larger`` and
    ``pair-smaller`` percent, give the same mean and bracket, and so do many larger sets.
    """
    source, name = join_sources([PRINTED, own["source"]]), f"{name}/effective-wrong-truths"
    if not beyond or not own["units"] > 1:
        status = "scatter" if own["units"] > 1 else "not comparable"
        yield estimate(name, math.nan, source, status=status)
        return
    half = 0.5 * 10.0 ** -len(cell["bracket"].partition(".")[2])
    mean, bracket = float(cell["value"]), float(cell["bracket_value"])
    ours, spread = float(own["value"]), float(own["se"]) * math.sqrt(own["units"])
    found = effective_number(
        (mean, cell["rounding"]), (bracket, half), INSTANCES, (ours, spread), coverage=COVERAGE
    )
    se = (found.high - found.low) / (2 * NormalDist().inv_cdf((1 + COVERAGE) / 2))
    yield estimate(name, found.value, source, se=se, df=own["df"], scale="log")
    if not math.isfinite(found.value):
        return
    yield whole(f"{name}-low", found.low, source)
    yield whole(f"{name}-high", found.high, source)
    if found.value <= 2:
        half_sum = (INSTANCES * mean - (INSTANCES - 1) * ours) / 2
        apart, place = math.sqrt(2 / found.value - 1), name.rpartition("/")[0]
        yield estimate(f"{place}/pair-larger", half_sum * (1 + apart), source)
        yield estimate(f"{place}/pair-smaller", half_sum * (1 - apart), source)
