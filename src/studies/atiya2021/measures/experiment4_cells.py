"""The published cells of Table 4, under each reading of what the paper leaves unsaid.

A run is one number here: its error, averaged over the six hyperparameter settings. With one run a setting these are
the runs with the same replicate; where some do not count, the first of each setting make the first, and so on.
"""

import math
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources, levels_of, reading_text, with_fields
from recheck.published import read_published
from studies.atiya2021.measures.common import Known, Row, estimate, measured, published_cells
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
_PAIRS = (5.0, 1.0), (5.0, 5.0), (3.0, 2.0), (0.5, 0.5), (3.0, 1.0), (0.5, 3.0)
PUBLISHED_SETTINGS = dict(enumerate(_PAIRS, start=1))


def table4(runs: Runs, published: Path) -> Iterator[Row]:
    """Rows of all cells of Table 4 under each reading that was run: one a data set and run, or why there is none.

    MAE-MED is a deviation from the median of four methods, or three on USPS: those that have a cell.
    """
    cells = published_cells(published, "table4/P{problem}/{paper}/{metric}")
    cells["method"] = cells["paper"].map(PAPER)
    in_median = cells[cells["metric"] == "mae-med"].groupby("problem")["method"].agg(list)
    readings = read_published(published)
    images = {"raw": runs.scanned, "smoothed": runs.rows}
    rows = {level: dict(list(of.groupby(["problem", "method"]))) for level, of in images.items()}
    for cell in cells.itertuples():
        alone = cell.metric == "mae-post"
        metric = "mae_post" if alone else "probability"
        papers = [cell.method] if alone else in_median[cell.problem]
        for levels in readings.combinations([cell.id], "runs"):
            of_level = rows[levels.get("images", "smoothed")]
            parts = []
            for paper in papers:
                name = paper + UNSAID.get(paper, {}).get(levels.get(CHOICE.get(paper, ""), ""), "")
                read = f"_{levels['variance']}" if paper in CHAINS and "variance" in levels else ""
                if (part := of_level.get((cell.problem, name))) is not None:
                    parts.append(part.assign(method=paper, answer=part[metric + read]))
            if len(parts) == len(papers):
                for row in _cell(pd.concat(parts), cell.method, alone, levels):
                    yield estimate(cell.id, **row, reading=reading_text(levels), scale="log")


def _cell(rows: pd.DataFrame, method: str, alone: bool, levels: Mapping[str, str]) -> Iterator[Row]:
    """One cell under one reading: the mean error against the Bayes posterior, or deviation from the median.

    `rows` has the runs of all methods that it takes, with what is read in the column ``answer``.
    """
    refused = [_refused(of, str(name), levels) for name, of in rows.groupby("method")]
    if said := next(filter(None, refused), None):
        yield _row(rows[rows["method"] == method], 0, math.nan, status=said)
        return
    used = rows[rows["counts"] & rows["answer"].notna()]
    methods = list(rows["method"].unique())
    answers = used.groupby(["dataset", "set", "method"])["answer"].agg(list).to_dict()
    shared = rows.groupby("dataset")["method"].nunique()
    for dataset in shared.index[shared == len(methods)]:
        settings = []
        for number in PUBLISHED_SETTINGS:
            of_set = {name: answers.get((dataset, number, name), []) for name in methods}
            settings.append(of_set[method] if alone else from_median(of_set)[method])
        n, part = min(map(len, settings)), rows[rows["dataset"] == dataset]
        if not n:
            yield _row(part, dataset, math.nan, status=_why(part))
        mine = used[used["dataset"] == dataset]
        for run, value in enumerate(np.mean([errors[:n] for errors in settings], axis=0)):
            behind = mine[mine.groupby("set").cumcount() == run] if alone else part
            yield _row(behind, dataset, value, run=run, seed=common_seed(behind))


def _row(
    behind: pd.DataFrame, dataset: int, value: float, *, status: str = OK, **given: object
) -> Row:
    unit = f"experiment4/P{behind['problem'].iloc[0]}/dataset{dataset}"
    row = {"found": Known(value, status=status), "source": join_sources(behind["source"])}
    return row | {"unit": unit} | given


def common_seed(rows: pd.DataFrame) -> str:
    """The part of seeds, which are paths, that all rows have in common; empty without any."""
    seeds = rows["seed"].dropna().unique()
    return posixpath.commonpath(seeds) if len(seeds) else ""


def _refused(rows: pd.DataFrame, method: str, levels: Mapping[str, str]) -> str | None:
    """Why the runs of one method cannot be averaged as the published cell is, or None."""
    if (rows["status"] == NO_DATA).any():
        return NO_DATA
    used = set(zip(rows["set"], rows["alpha"], rows["beta"], strict=True))
    wanted = used == {(number, *pair) for number, pair in PUBLISHED_SETTINGS.items()}
    if method == SAMPLER:  # files of other methods do not say
        counted = "hard" if levels.get("count") == "million-hard" else "soft"
        for column, one in (("count", counted), ("scheme", "bootstrap")):
            wanted &= set(rows[column].dropna()) <= {one}
    return None if wanted else "not comparable"


def _why(rows: pd.DataFrame) -> str:
    """The most frequent reason why runs do not count."""
    bad = rows.loc[rows["status"] != OK, "status"]
    return str(bad.mode().iloc[0]) if len(bad) else "not comparable"


def between_data_sets(runs: Runs) -> Iterator[Row]:
    """MAE-POST of Laplace's approximation on many data sets: how far apart data sets are."""
    for (problem, dataset), rows in runs.spread.groupby(["problem", "dataset"]):
        row = _row(rows, dataset, float(rows["mae_post"].mean()), seed=common_seed(rows))
        yield estimate(f"between/table4/P{problem}/mae-post", **row, scale="log")


def contrasts(cells: pd.DataFrame) -> pd.DataFrame:
    """MAE-POST of a method less that of the proposed one, on each data set and under each reading.

    The ids are those of the contrasts in ``protocol.yaml``. One row a data set that both methods have, the difference
    of their means over runs.
    """
    good = with_fields(cells[cells["status"] == OK], "table4/{problem}/{method}/mae-post")
    groups = good.groupby(["problem", "method", "reading", "unit"], sort=False)
    how = {"value": "mean", "source": join_sources, "seed": "first"}
    means = groups.agg(how).reset_index()
    new = means["method"] == "new"
    both = means[~new].merge(means[new], on=["problem", "unit"], suffixes=("", "_new"))
    pairs = zip(both["reading"].map(levels_of), both["reading_new"].map(levels_of), strict=True)
    # of one choice both must have one level
    alike = [reading_text(a | b) if a | b == b | a else None for a, b in pairs]
    both = both.assign(reading=pd.Series(alike, both.index, dtype=object)).dropna(subset="reading")
    pairs = zip(both["source"], both["source_new"], strict=True)
    both = both.assign(source=[join_sources(pair) for pair in pairs])
    change, given = both["value"] - both["value_new"], {"unit": "{unit}", "scale": "linear"}
    template = "contrast/table4/{problem}/{method}-new/mae-post"
    return measured(both, template, change, reading=both["reading"], **given)
