"""The published cells of Table 4, under both readings of the toolbox's variance.

A run is one number here: its error, averaged over the six hyperparameter settings. With one run a setting these are
the runs with the same replicate; where some do not count, the first of each setting make the first, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources, with_fields
from studies.atiya2021.measures.common import published_cells
from studies.atiya2021.measures.experiment4_runs import (
    PAPER,
    PUBLISHED_SETTINGS,
    SAMPLER,
    Runs,
    common_path,
)
from studies.atiya2021.runs import NO_DATA

__all__ = ["ONCE", "TWICE", "between_data_sets", "consensus", "contrasts", "deviations", "table4"]

#: The toolbox's chains as distributed count the variance of a prediction twice; repaired, once.
TWICE, ONCE = "variance=twice", "variance=once"
#: The paper's methods that are chains of the toolbox.
CHAINS = ("ess-gpml", "hmc-gpml")

Row = dict[str, Any]


def consensus(published: Path) -> dict[int, list[str]]:
    """Methods whose median a published MAE-MED of a problem is taken from: four, or three on USPS."""
    cells = published_cells(published, "table4/*/mae-med")
    parts = cells["id"].str.extract(r"table4/P(\d+)/(\w+)/")
    numbers, names = parts[0].astype(int), parts[1].map(PAPER)
    return {int(number): list(found) for number, found in names.groupby(numbers)}


def deviations(probabilities: Mapping[str, np.ndarray], method: str) -> np.ndarray:
    """Mean |P - median| over test patterns.

    Parameters
    ----------
    probabilities : mapping of str to (runs, t) array
        Predictions of the methods that the median is over; their runs are paired in order.
    method : str
        One of them.

    Returns
    -------
    (pairs,) array
    """
    n = min(map(len, probabilities.values()))
    medians = np.median(np.stack([found[:n] for found in probabilities.values()]), axis=0)
    return np.abs(probabilities[method][:n] - medians).mean(axis=1)


def table4(runs: Runs, published: Path) -> list[Row]:
    """Rows of all cells of Table 4.

    Returns
    -------
    list of dict
        ``table4/P<p>/<method>/<metric>``: one row a data set and run, and one that says why where there is none.
    """
    cells, rows = published_cells(published, "table4/*"), []
    medians = consensus(published)
    for cell in cells["id"]:
        _, place, name, metric = cell.split("/")
        problem, method = int(place.removeprefix("P")), PAPER[name]
        chain = method in CHAINS
        if metric == "mae-post":
            rows += _mae_post(runs, cell, problem, method, TWICE if chain else "")
            rows += _mae_post(runs, cell, problem, method, ONCE) if chain else []
        else:
            rows += _mae_med(runs, cell, problem, method, medians[problem], TWICE)
            rows += _mae_med(runs, cell, problem, method, medians[problem], ONCE)
    return rows


def between_data_sets(runs: Runs) -> list[Row]:
    """MAE-POST of Laplace's approximation on many data sets: how far apart data sets are."""
    return [
        {
            "id": f"between/table4/P{problem}/mae-post",
            "unit": f"experiment4/P{problem}/dataset{dataset}",
            "run": 0,
            "value": float(rows["mae_post"].mean()),
            "scale": "log",
            "source": join_sources(rows["file"] + ":" + rows["line"].astype(str)),
            "seed": common_path(rows["seed"]),
        }
        for (problem, dataset), rows in runs.spread.groupby(["problem", "dataset"])
    ]


def _refused(rows: pd.DataFrame, method: str) -> str | None:
    """Why the runs of one method cannot be averaged as the published cell is, or None."""
    if (rows["status"] == NO_DATA).any():
        return NO_DATA
    used = set(zip(rows["set"], rows["alpha"], rows["beta"], strict=True))
    if used != {(number, *pair) for number, pair in PUBLISHED_SETTINGS.items()}:
        return "not comparable"
    if method == SAMPLER:  # files of other methods do not say
        named = {("count", "soft"), ("scheme", "bootstrap")}
        if any(set(rows[column].dropna()) - {wanted} for column, wanted in named):
            return "not comparable"
    return None


def _row(cell: str, reading: str, problem: int, dataset: int, **given: Any) -> Row:
    unit = f"experiment4/P{problem}/dataset{dataset}"
    row = {"id": cell, "reading": reading, "unit": unit, "run": 0, "scale": "log"}
    return row | {"value": np.nan, "status": OK} | given


def _none(cell: str, reading: str, rows: pd.DataFrame, status: str, dataset: int = 0) -> Row:
    """The row that says why there is no value."""
    problem = int(rows["problem"].iloc[0])
    return _row(cell, reading, problem, dataset, status=status, source=join_sources(rows["source"]))


def _mae_post(runs: Runs, cell: str, problem: int, method: str, reading: str) -> list[Row]:
    """Mean absolute error against the Bayes posterior; with the variance counted once, of first runs."""
    every = runs.single_rows if reading == ONCE else runs.rows
    rows = every[(every["problem"] == problem) & (every["method"] == method)]
    if rows.empty:
        return []
    if refused := _refused(rows, method):
        return [_none(cell, reading, rows, refused)]
    good = rows[rows["counts"]] if reading != ONCE else rows[rows["replicate"] == 0]
    good = good[np.isfinite(good["mae_post"])]
    found = []
    for dataset, part in rows.groupby("dataset"):
        mine = good[good["dataset"] == dataset]
        order = mine.groupby("set").cumcount()
        table = mine.assign(order=order).pivot(index="order", columns="set", values="mae_post")
        table = table.reindex(columns=list(PUBLISHED_SETTINGS)).dropna()
        if table.empty:
            found.append(_none(cell, reading, part, _why(part), int(dataset)))
        for run, value in table.mean(axis=1).items():
            of_run = mine[order == run]
            given = {"run": run, "value": value, "source": join_sources(of_run["source"])}
            seed = common_path(of_run["seed"])
            found.append(_row(cell, reading, problem, int(dataset), seed=seed, **given))
    return found


def _why(rows: pd.DataFrame) -> str:
    """The most frequent reason why runs do not count."""
    bad = rows.loc[rows["status"] != OK, "status"]
    return str(bad.mode().iloc[0]) if len(bad) else "not comparable"


def _finder(runs: Runs, problem: int, dataset: int, reading: str) -> Callable[..., np.ndarray]:
    """Predictions of a method with one setting, on a data set under a reading."""
    once, every = reading == ONCE, reading == ONCE or problem in runs.at_budget

    def find(method: str, number: int) -> np.ndarray:
        source = runs.single_predictions if once and method in CHAINS else runs.predictions
        found = source.get((problem, method, number))
        return np.empty((0, 0)) if found is None else found.on(dataset, every=every, first=once)

    return find


def _mae_med(
    runs: Runs, cell: str, problem: int, method: str, names: Sequence[str], reading: str
) -> list[Row]:
    """Mean absolute deviation from the median of the paper's methods."""
    inside = runs.rows[(runs.rows["problem"] == problem) & runs.rows["method"].isin(list(names))]
    if reading == ONCE:
        single = runs.single_rows[runs.single_rows["problem"] == problem]
        chains = {name for name in names if name in CHAINS}
        if not chains <= set(single["method"]):
            return []
        inside = pd.concat([inside[~inside["method"].isin(list(chains))], single])
    if set(inside["method"]) != set(names):
        return []
    by_method = {name: inside[inside["method"] == name] for name in names}
    for name, rows in by_method.items():
        if refused := _refused(rows, name):
            return [_none(cell, reading, by_method[method], refused)]
    found = []
    shared = set.intersection(*({*rows["dataset"]} for rows in by_method.values()))
    for dataset in sorted(shared):
        part = inside[inside["dataset"] == dataset]
        find = _finder(runs, problem, dataset, reading)
        errors: list[np.ndarray] = []
        for number in PUBLISHED_SETTINGS:
            predicted = {name: find(name, number) for name in names}
            errors.append(
                deviations(predicted, method) if all(map(len, predicted.values())) else np.empty(0)
            )
        n = min(map(len, errors))
        if not n:
            found.append(_none(cell, reading, part, _why(part), dataset))
        values = np.mean([one[:n] for one in errors], axis=0) if n else []
        said = {"source": join_sources(part["source"]), "seed": common_path(part["seed"])}
        found += [
            _row(cell, reading, problem, dataset, run=run, value=value, **said)
            for run, value in enumerate(values)
        ]
    return found


def contrasts(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """MAE-POST of a method less that of the proposed one, on each data set and under each reading.

    Parameters
    ----------
    cells : DataFrame
        Measures of the cells of Table 4.

    Returns
    -------
    list of dict
        ``contrast/table4/P<p>/<method>-new/mae-post``, the ids of the contrasts in ``protocol.yaml``. One row a data
        set that both methods have, the difference of their means over runs.
    """
    good = with_fields(cells[cells["status"] == OK], "table4/{problem}/{method}/mae-post")
    keys = ["problem", "method", "reading", "unit"]
    means = good.groupby(keys, sort=False).agg(
        value=("value", "mean"), source=("source", join_sources), seed=("seed", "first")
    )
    means = means.reset_index()
    new = means[means["method"] == "new"][["problem", "unit", "value", "source"]]
    both = means[means["method"] != "new"].merge(new, on=["problem", "unit"], suffixes=("", "_new"))
    return [
        {
            "id": f"contrast/table4/{row.problem}/{row.method}-new/mae-post",
            "reading": row.reading,
            "unit": row.unit,
            "run": 0,
            "value": row.value - row.value_new,
            "scale": "linear",
            "status": OK,
            "source": join_sources([row.source, row.source_new]),
            "seed": row.seed,
        }
        for row in both.itertuples()
    ]
