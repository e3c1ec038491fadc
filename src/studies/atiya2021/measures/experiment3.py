"""Experiment 3: errors against CPU seconds, for every method and size, on Problem 3 of Experiment 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import combine, measure, raw_rows, whole
from studies.atiya2021.measures.seconds import times

__all__ = ["measure_experiment3"]

_KEYS = ["method", "size", "run"]
#: What is measured of a run: its column, and whether it is compared as a ratio.
_QUANTITIES = {
    "mae": ("probability_mae", "log"),
    "mape": ("ape_percent", "log"),
    "nats": ("nats", "log"),
    "bias": ("log_evidence_error", "linear"),
    "seconds": ("cpu_seconds", "log"),
}
#: Counts that make the sizes of a method; of several that vary the first.
_COUNTS = ("temperatures", "points", "samples")
_UNIT = "experiment2/P3/dataset0"


def measure_experiment3(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of Experiment 3, and what follows from them about CPU time.

    A size counts if half of its runs, and at least two, have converged. Otherwise its status says how many have, as
    "1 of 10", and what the other runs gave stands under ``unconverged``: no average mixes the two.

    Parameters
    ----------
    root : path
        Folder of the study's results.
    published, reference : path
        Not needed here.
    """
    rows = raw_rows(root, "experiment3/*.csv", [*_KEYS, "status"])
    timing = raw_rows(root, "experiment3/*_timing.csv", [*_KEYS, "cpu_seconds"])
    rows = rows.merge(timing[[*_KEYS, "cpu_seconds"]], on=_KEYS, how="left")
    for name in ("probability_mae", "ape_percent", "log_evidence_error", "seed"):
        if name not in rows:
            rows[name] = None
    rows["nats"] = rows["log_evidence_error"].astype(float).abs()
    points: list[pd.DataFrame] = []
    counts: list[dict[str, Any]] = []
    for method, mine in rows.groupby("method"):
        what = _what_varies(mine)
        for size, group in mine.groupby("size"):
            name = f"experiment3/{method}/size{size}"
            points += _point(group, name)
            counts += _counts(group, name, what)
    measures = combine(*points, counts)
    return combine(measures, times(measures))


def _what_varies(rows: pd.DataFrame) -> str | None:
    """The count that makes the sizes of a method: one that varies, else one that is there; None without any."""
    there = {}
    for name in _COUNTS:
        counts = pd.to_numeric(rows[name], errors="coerce") if name in rows else pd.Series([0.0])
        if (counts > 0).all():
            there[name] = counts.nunique()
    return next((name for name, sizes in there.items() if sizes > 1), next(iter(there), None))


def _point(group: pd.DataFrame, name: str) -> Iterator[pd.DataFrame]:
    good = group["status"] == OK
    exact = bool(group["seed"].isna().all())  # a method that draws nothing has one run
    counts = good.all() if exact else good.sum() >= max(2, len(group) / 2)
    short = pd.Series(f"{good.sum()} of {len(group)}", index=group.index)
    status = group["status"] if counts else short
    for quantity, (column, scale) in _QUANTITIES.items():
        known = group[group[column].notna()]
        if known.empty:
            continue
        value, run = known[column], known["run"]
        kept = status[known.index]
        yield measure(
            known, f"{name}/{quantity}", value, unit=_UNIT, run=run, scale=scale, status=kept
        )
        if not counts:
            other = known[~good[known.index]]
            template = f"{name}/unconverged/{quantity}"
            yield measure(other, template, other[column], unit=_UNIT, run=other["run"], scale=scale)


def _counts(group: pd.DataFrame, name: str, what: str | None) -> Iterator[dict[str, Any]]:
    source = join_sources(group["source"])
    yield whole(f"{name}/runs", len(group), source)
    yield whole(f"{name}/converged", int((group["status"] == OK).sum()), source)
    if what is not None:
        yield whole(f"{name}/count", int(pd.to_numeric(group[what].iloc[0])), source)
