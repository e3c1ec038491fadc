"""Experiment 3: errors against CPU seconds, for every method and size, on Problem 3 of Experiment 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import Row, combine, estimate, measured, raw_rows
from studies.atiya2021.measures.seconds import times

__all__ = ["measure"]

_KEYS = ["method", "size", "run"]
#: What is measured of a run, and its column.
_QUANTITIES = {
    "mae": "probability_mae",
    "mape": "ape_percent",
    "nats": "nats",
    "seconds": "cpu_seconds",
}
#: Counts that make the sizes of a method: the first that varies, else the first that is there.
_COUNTS = ["temperatures", "points", "samples"]
_UNIT = "experiment2/P3/dataset0"


def measure(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of Experiment 3, and what follows from them about CPU time.

    A size counts if half of its runs, and at least two, have converged. Otherwise its status says how many have, as
    "1 of 10", and what the other runs gave stands under ``unconverged``: no average mixes the two.
    """
    rows = raw_rows(root, "experiment3/*.csv", [*_KEYS, "status"])
    timing = raw_rows(root, "experiment3/*_timing.csv", [*_KEYS, "cpu_seconds"])
    rows = rows.merge(timing[[*_KEYS, "cpu_seconds"]], on=_KEYS, how="left")
    needed = ["probability_mae", "ape_percent", "log_evidence_error", "seed", *_COUNTS]
    rows = rows.reindex(columns=list(dict.fromkeys([*rows.columns, *needed])))
    rows["nats"] = rows["log_evidence_error"].astype(float).abs()
    found = [part for _, group in rows.groupby(["method", "size"]) for part in _point(group)]
    measures = combine(*found, _counts(rows))
    return combine(measures, times(measures))


def _point(group: pd.DataFrame) -> Iterator[pd.DataFrame]:
    good = group["status"] == OK
    exact = bool(group["seed"].isna().all())  # a method that draws nothing has one run
    counts = good.all() if exact else good.sum() >= max(2, len(group) / 2)
    shown = group["status"] if counts else f"{good.sum()} of {len(group)}"
    states = {"": group.assign(status=shown)}
    states |= {} if counts else {"/unconverged": group[~good].assign(status=OK)}
    for quantity, column in _QUANTITIES.items():
        for state, part in states.items():
            known = part[part[column].notna()]
            template = f"experiment3/{{method}}/size{{size}}{state}/{quantity}"
            given = {"unit": _UNIT, "run": known["run"], "status": known["status"]}
            yield measured(known, template, known[column], **given)


def _counts(rows: pd.DataFrame) -> Iterator[Row]:
    """The count that makes a size of a method."""
    for method, mine in rows.groupby("method"):
        counts = mine[_COUNTS].apply(pd.to_numeric, errors="coerce")
        there = counts.loc[:, (counts > 0).all()]
        varies = there.loc[:, there.nunique() > 1] if (there.nunique() > 1).any() else there
        for size, group in mine.groupby("size") if len(there.columns) else ():
            count, source = varies.loc[group.index[0]].iloc[0], join_sources(group["source"])
            yield estimate(f"experiment3/{method}/size{size}/count", count, source)
