"""The published cells of Table 4, under each reading of what the paper leaves unsaid.

A run is one number here: its error, averaged over the six hyperparameter settings. With one run a setting these are
the runs with the same replicate; where some do not count, the first of each setting make the first, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources, levels_of, reading_text, with_fields
from recheck.published import read_published
from studies.atiya2021.measures.common import Row, measured, published_cells
from studies.atiya2021.measures.experiment4_runs import PAPER, SAMPLER, Runs, from_median
from studies.atiya2021.runs import NO_DATA

#: What the row of a method in the configuration ends with, by level of a choice that the paper leaves unsaid.
UNSAID = {
    "orthant": {"million-soft": "-million-soft", "million-hard": "-million-hard"},
    "hmc-gpml": {"20": "-20", "50": "-50", "200": "-200"},
}
#: Which choice that is, in ``readings.yaml``.
CHOICE = {"orthant": "count", "hmc-gpml": "hmc"}
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
    """Rows of all cells of Table 4 under each reading that was run: one a data set and run, or why there is none."""
    medians, readings = medians_of(published), read_published(published)
    answers = _Answers(runs)
    for cell in _cells(published).itertuples():
        metric = "mae_post" if cell.metric == "mae-post" else "probability"
        papers = [cell.method] if metric == "mae_post" else medians[cell.problem]
        for levels in readings.combinations([cell.id], "runs"):
            chosen = {paper: _chosen(paper, metric, levels) for paper in papers}
            parts = [answers.of(cell.problem, *one) for one in chosen.values()]
            if all(len(part) for part in parts):
                for row in _cell(dict(zip(papers, parts, strict=True)), cell.method, levels):
                    yield {"id": cell.id, "reading": reading_text(levels)} | row


def _chosen(paper: str, metric: str, levels: Mapping[str, str]) -> tuple[str, str, bool]:
    """Which row of the configuration stands for a method under a reading, which column, on which images."""
    row = paper + UNSAID.get(paper, {}).get(levels.get(CHOICE.get(paper, ""), ""), "")
    variance = f"_{levels['variance']}" if paper in CHAINS and "variance" in levels else ""
    return row, metric + variance, levels.get("images") == "raw"


class _Answers:
    """Runs of one row on one problem, looked up once; the column that is read is called ``answer``."""

    def __init__(self, runs: Runs) -> None:
        self._by_row = [
            dict(list(of.groupby(["problem", "method"]))) for of in (runs.rows, runs.scanned)
        ]
        self._none = runs.rows.head(0)
        self._found: dict[tuple[int, str, str, bool], pd.DataFrame] = {}

    def of(self, problem: int, row: str, column: str, scanned: bool) -> pd.DataFrame:
        key = (problem, row, column, scanned)
        if key not in self._found:
            rows = self._by_row[scanned].get((problem, row), self._none)
            self._found[key] = rows.assign(answer=rows[column] if len(rows) else None)
        return self._found[key]


def _cell(
    by_method: Mapping[str, pd.DataFrame], method: str, levels: Mapping[str, str]
) -> Iterator[Row]:
    """One cell under one reading: the mean absolute error against the Bayes posterior, or deviation from the median."""
    mine = by_method[method]
    refused = [_refused(rows, name, levels) for name, rows in by_method.items()]
    if said := next(filter(None, refused), None):
        yield _row(mine, 0, status=said)
        return
    shared = set.intersection(*({*rows["dataset"]} for rows in by_method.values()))
    for dataset in sorted(shared):
        of_data = {name: rows[rows["dataset"] == dataset] for name, rows in by_method.items()}
        used = {
            name: rows[rows["counts"] & rows["answer"].notna()] for name, rows in of_data.items()
        }
        by_set = {name: dict(list(rows.groupby("set")["answer"])) for name, rows in used.items()}
        settings = [
            _errors({name: found.get(k, ()) for name, found in by_set.items()}, method)
            for k in PUBLISHED_SETTINGS
        ]
        n, part = min(map(len, settings)), pd.concat(of_data.values())
        if not n:
            yield _row(part, dataset, status=_why(part))
        for run, value in enumerate(np.mean([errors[:n] for errors in settings], axis=0)):
            behind = part
            if len(by_method) == 1:
                behind = used[method][used[method].groupby("set").cumcount() == run]
            yield _row(behind, dataset, run=run, value=value, seed=common_path(behind["seed"]))


def _errors(answers: Mapping[str, Sequence[Any]], method: str) -> np.ndarray:
    """Errors of the runs with one setting: as they are, or deviations of predictions from the median of methods."""
    if len(answers) == 1:
        return np.asarray(list(answers[method]), dtype=float)
    paper = {name: np.array(list(of)) for name, of in answers.items()}
    return from_median(paper).get(method, np.empty(0))


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


def _refused(rows: pd.DataFrame, method: str, levels: Mapping[str, str]) -> str | None:
    """Why the runs of one method cannot be averaged as the published cell is, or None."""
    if (rows["status"] == NO_DATA).any():
        return NO_DATA
    used = set(zip(rows["set"], rows["alpha"], rows["beta"], strict=True))
    if used != {(number, *pair) for number, pair in PUBLISHED_SETTINGS.items()}:
        return "not comparable"
    if method == SAMPLER:  # files of other methods do not say
        counted = "hard" if levels.get("count") == "million-hard" else "soft"
        named = {("count", counted), ("scheme", "bootstrap")}
        if any(set(rows[column].dropna()) - {wanted} for column, wanted in named):
            return "not comparable"
    return None


def _why(rows: pd.DataFrame) -> str:
    """The most frequent reason why runs do not count."""
    bad = rows.loc[rows["status"] != OK, "status"]
    return str(bad.mode().iloc[0]) if len(bad) else "not comparable"


def between_data_sets(runs: Runs) -> list[Row]:
    """MAE-POST of expectation propagation on many data sets: how far apart data sets are."""
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
    new = means[means["method"] == "new"][["problem", "unit", "reading", "value", "source"]]
    both = means[means["method"] != "new"].merge(new, on=["problem", "unit"], suffixes=("", "_new"))
    levels = [
        (levels_of(own), levels_of(new))
        for own, new in zip(both["reading"], both["reading_new"], strict=True)
    ]
    # of one choice both must have one level
    both = both.assign(reading=[reading_text(own | new) for own, new in levels])
    alike = [own | new == new | own for own, new in levels]
    both = both[pd.Series(alike, both.index, dtype=bool)]
    pairs = zip(both["source"], both["source_new"], strict=True)
    both = both.assign(source=[join_sources(pair) for pair in pairs])
    template = "contrast/table4/{problem}/{method}-new/mae-post"
    given = {"unit": "{unit}", "scale": "linear", "reading": both["reading"]}
    return measured(both, template, both["value"] - both["value_new"], **given)
