"""The published cells of Table 4, under both readings of the toolbox's variance.

A run is one number here: its error, averaged over the six hyperparameter settings. With one run a setting these are
the runs with the same replicate; where some do not count, the first of each setting make the first, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources, with_fields
from studies.atiya2021.measures.common import Row, measured, published_cells
from studies.atiya2021.measures.experiment4_runs import PAPER, SAMPLER, Runs, deviations
from studies.atiya2021.runs import NO_DATA

#: The toolbox's chains as distributed count the variance of a prediction twice; repaired, once.
TWICE, ONCE = "variance=twice", "variance=once"
#: The paper's methods that are chains of the toolbox.
CHAINS = ["ess-gpml", "hmc-gpml"]
#: Hyperparameter settings that a published cell is an average over: (alpha, beta) by number.
PUBLISHED_SETTINGS = {
    1: (5.0, 1.0),
    2: (5.0, 5.0),
    3: (3.0, 2.0),
    4: (0.5, 0.5),
    5: (3.0, 1.0),
    6: (0.5, 3.0),
}


def _cells(published: Path) -> pd.DataFrame:
    cells = published_cells(published, "table4/P{problem}/{paper}/{metric}")
    return cells.assign(method=cells["paper"].map(PAPER))


def medians_of(published: Path) -> dict[int, list[str]]:
    """Methods whose median a published MAE-MED of a problem is taken from: four, or three on USPS."""
    cells = _cells(published)
    cells = cells[cells["metric"] == "mae-med"]
    return {int(number): list(found) for number, found in cells["method"].groupby(cells["problem"])}


def table4(runs: Runs, published: Path) -> Iterator[Row]:
    """Rows of all cells of Table 4, one a data set and run, or one that says why there is none."""
    medians = medians_of(published)
    for cell in _cells(published).itertuples():
        post, chain = cell.metric == "mae-post", cell.method in CHAINS
        names = [cell.method] if post else medians[cell.problem]
        for reading in (TWICE, ONCE) if chain or not post else ("",):
            rows = _under(runs, reading, cell.problem)
            rows = rows[rows["method"].isin(names)]
            if set(rows["method"]) == set(names):
                for row in _cell(rows, names, cell.method, post):
                    yield {"id": cell.id, "reading": reading} | row


def _under(runs: Runs, reading: str, problem: int) -> pd.DataFrame:
    """Runs on a problem under a reading, and which of them are used; once counted are the first."""
    rows = runs.rows[runs.rows["problem"] == problem]
    if reading != ONCE:
        return rows.assign(used=rows["counts"])
    single = runs.single[runs.single["problem"] == problem]
    rows = pd.concat([rows[~rows["method"].isin(CHAINS)], single])
    return rows.assign(used=rows["replicate"] == 0)


def _cell(rows: pd.DataFrame, names: list[str], method: str, post: bool) -> Iterator[Row]:
    """One cell under one reading: the mean absolute error against the Bayes posterior, or deviation from the median."""
    by_method = dict(list(rows.groupby("method")))
    mine = by_method[method]
    if refused := next(filter(None, (_refused(by_method[name], name) for name in names)), None):
        yield _row(mine, 0, status=refused)
        return
    shared = set.intersection(*({*of_method["dataset"]} for of_method in by_method.values()))
    for dataset in sorted(shared):
        part = rows[rows["dataset"] == dataset]
        used = part[part["used"] & np.isfinite(part["mae_post"])] if post else part[part["used"]]
        if post:
            settings = [used["mae_post"][used["set"] == k].to_numpy() for k in PUBLISHED_SETTINGS]
        else:
            found = deviations(used, names)
            settings = [found.get((k, method), np.empty(0)) for k in PUBLISHED_SETTINGS]
        n, order = min(map(len, settings)), used.groupby("set").cumcount()
        if not n:
            yield _row(part, dataset, status=_why(part))
        for run, value in enumerate(np.mean([errors[:n] for errors in settings], axis=0)):
            behind = used[order == run] if post else part
            yield _row(behind, dataset, run=run, value=value, seed=common_path(behind["seed"]))


def _row(behind: pd.DataFrame, dataset: int, **given: object) -> Row:
    unit = f"experiment4/P{behind['problem'].iloc[0]}/dataset{dataset}"
    row = {"unit": unit, "run": 0, "scale": "log", "value": np.nan, "status": OK}
    return row | {"source": join_sources(behind["source"])} | given


def common_path(seeds: Iterable[str]) -> str:
    """The part of seeds, which are paths, that all have in common; empty without any."""
    parts = [seed.split("/") for seed in set(seeds) if isinstance(seed, str)]
    same = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        same.append(names[0])
    return "/".join(same)


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


def _why(rows: pd.DataFrame) -> str:
    """The most frequent reason why runs do not count."""
    bad = rows.loc[rows["status"] != OK, "status"]
    return str(bad.mode().iloc[0]) if len(bad) else "not comparable"


def between_data_sets(runs: Runs) -> list[Row]:
    """MAE-POST of Laplace's approximation on many data sets: how far apart data sets are."""
    return [
        _row(rows, dataset, value=float(rows["mae_post"].mean()), seed=common_path(rows["seed"]))
        | {"id": f"between/table4/P{problem}/mae-post"}
        for (problem, dataset), rows in runs.spread.groupby(["problem", "dataset"])
    ]


def contrasts(cells: pd.DataFrame) -> pd.DataFrame:
    """MAE-POST of a method less that of the proposed one, on each data set and under each reading.

    The ids are those of the contrasts in ``protocol.yaml``. One row a data set that both methods have, the difference
    of their means over runs.
    """
    good = with_fields(cells[cells["status"] == OK], "table4/{problem}/{method}/mae-post")
    keys = ["problem", "method", "reading", "unit"]
    means = good.groupby(keys, sort=False).agg(
        value=("value", "mean"), source=("source", join_sources), seed=("seed", "first")
    )
    means = means.reset_index()
    new = means[means["method"] == "new"][["problem", "unit", "value", "source"]]
    both = means[means["method"] != "new"].merge(new, on=["problem", "unit"], suffixes=("", "_new"))
    pairs = zip(both["source"], both["source_new"], strict=True)
    both["source"] = [join_sources(pair) for pair in pairs]
    template = "contrast/table4/{problem}/{method}-new/mae-post"
    given = {"unit": "{unit}", "scale": "linear", "reading": both["reading"]}
    return measured(both, template, both["value"] - both["value_new"], **given)
