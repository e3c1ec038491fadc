"""Suspects for the floor of Table 1: what each makes of the truths, and how often 50 problems then look as printed."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import join_sources
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import PRINTED, Known, each, estimate, measured
from studies.common.measuring import Rows

#: Problems behind a published cell of Table 1.
PROBLEMS = 50
#: A set of problems looks as printed if its mean and its standard error are within this factor of the printed ones.
FACTOR = 1.5
#: Sets of problems that are drawn, with replacement, from ours.
SETS = 20_000
#: A truth that is off by more counts as wrong, in percent.
WRONG = 0.1

_UNIT = "inexact/N{dimension}/problem{problem}"
_NAME = "inexact/N{dimension}/{rule}"


def suspects(given: Rows, runs: pd.DataFrame, noises: pd.Series) -> Iterator[Any]:
    """Errors of truths by each rule, in percent, and the share of sets that look as printed at the largest M.

    Parameters
    ----------
    given : Rows
        Holds the experiment ``inexact`` and the published cells.
    runs : table
        Runs of the sampler with an exact truth: ``dimension``, ``samples``, ``source``.
    noises : (runs,) series
        Their errors in percent, with signs.
    """
    columns = ["dimension", "problem", "rule", "truth", "off"]
    rows = common.table(given, "inexact", columns, finite=["truth"])
    if rows.empty:
        return
    rows = rows.assign(signed=100.0 * rows["off"].astype(float) / rows["truth"].abs())
    rows["error"] = rows["signed"].abs()
    yield measured(rows, f"{_NAME}/truth-error", "error", unit=_UNIT)
    quantities = {
        "largest-truth-error": ("error", "max"),
        "wrong-share": lambda part: 100.0 * float((part["error"] > WRONG).mean()),
    }
    yield each(rows, ["dimension", "rule"], f"{_NAME}/{{quantity}}", quantities)
    printed = _printed(given.published, runs)
    for rule, part in rows.groupby("rule", sort=False):
        known = []
        for dimension, (samples, value, bracket) in printed.items():
            mine = part[part["dimension"] == dimension]
            own = (runs["dimension"] == dimension) & (runs["samples"] == samples)
            if mine.empty:
                continue
            level = float(np.sqrt((noises[own] ** 2).mean()))
            share = looks_printed(mine["signed"].to_numpy(), level, value, bracket)
            source = join_sources(
                [PRINTED, *mine["source"].head(1), *runs.loc[own, "source"].head(1)]
            )
            yield estimate(f"inexact/N{dimension}/{rule}/as-printed", _percent(share), source)
            known.append(share)
        if len(known) == len(printed) > 1:
            source = join_sources([PRINTED, *part["source"].head(1)])
            yield estimate(f"inexact/all/{rule}/as-printed", _percent(math.prod(known)), source)


def _printed(published: Path, runs: pd.DataFrame) -> dict[int, tuple[int, float, float]]:
    """M, value and bracket of the published cell of each dimension with the largest M that we ran."""
    cells = common.published_cells(published, "table1/N{dimension}/M{samples}")
    ours = set(zip(runs["dimension"], runs["samples"], strict=True))
    both = zip(cells["dimension"], cells["samples"], strict=True)
    cells = cells[[one in ours for one in both]].sort_values("samples")
    largest = cells.drop_duplicates("dimension", keep="last").sort_values("dimension")
    return {
        int(cell["dimension"]): (cell["samples"], cell["value"], cell["bracket_value"])
        for cell in largest.to_dict("records")
    }


def looks_printed(off: np.ndarray, noise: float, value: float, bracket: float) -> float:
    """Share of sets of `PROBLEMS` whose mean absolute error and its standard error are both near printed ones.

    Parameters
    ----------
    off : (n,) array
        Errors of the truths of our problems, in percent, with signs; one that is not finite makes its set unlike.
    noise : float
        Standard deviation of the Monte Carlo error of one problem, in percent.
    value, bracket : float
        The printed mean and standard error, in percent.
    """
    rng = np.random.default_rng(0)
    drawn = off[rng.integers(len(off), size=(SETS, PROBLEMS))]
    errors = np.abs(drawn + noise * rng.standard_normal(drawn.shape))
    with np.errstate(invalid="ignore"):
        mean, se = errors.mean(axis=1), errors.std(axis=1, ddof=1) / math.sqrt(PROBLEMS)
        apart = np.maximum(np.abs(np.log(mean / value)), np.abs(np.log(se / bracket)))
    return float(np.mean(apart < math.log(FACTOR)))


def _percent(share: float) -> Known:
    return Known(100.0 * share, 0.0)
