"""Predictions of Experiment 4 against the Bayes posterior, the median and the labels; and how far data sets differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import join_sources
from studies.atiya2021.measures.common import estimate, published_cells, whole
from studies.atiya2021.measures.experiment4_cells import ONCE, TWICE
from studies.atiya2021.measures.experiment4_runs import PAPER, SAMPLER, Runs
from studies.atiya2021.measures.experiment4_settings import mean_over_settings
from studies.atiya2021.names import REAL

__all__ = ["data_set_means", "mae_med_by_problem", "mae_post_ranges", "posterior_rows"]

Row = dict[str, Any]

#: The problems of the paper; the reliability diagrams leave out what was added.
_NINE = range(1, 10)
#: Bins of equal width of the predicted probability.
_BINS = 10


def posterior_rows(
    runs: Runs, strict: pd.DataFrame, loose: pd.DataFrame, cells: pd.DataFrame, published: Path
) -> list[Row]:
    """All rows of this module.

    Parameters
    ----------
    runs : Runs
    strict, loose : DataFrame
        `summarise`, of the runs whose status is "ok", and of those that count by the paper's rule.
    cells : DataFrame
        Measures of Table 4.
    published : Path
        Folder of the published cells.
    """
    return [
        *_reliability(runs),
        *_mae_post(runs, strict, loose, published),
        *_mae_med(cells, published),
    ]


def _group(problem: int) -> str:
    return REAL[problem].replace("_", "-") if problem in REAL else "synthetic"


def _reliability(runs: Runs) -> Iterator[Row]:
    """Predicted probability of class 1 against the frequency of class 1, in bins of the prediction.

    Settings in which the prior is the same for every pattern but itself predict one half everywhere and are left out.
    The settings share their test patterns, so the standard error of a frequency counts distinct patterns.
    """
    first = runs.first
    trivial = set(map(tuple, first.loc[first["trivial"], ["problem", "set"]].to_numpy()))
    pieces = []
    for problem, method, number in sorted(runs.predictions):
        data = runs.problems.get(problem)
        probability = runs.predictions[problem, method, number].on(0, every=False)
        if problem not in _NINE or not data or (problem, number) in trivial or not len(probability):
            continue
        mean = probability.mean(axis=0)
        columns = {
            "group": _group(problem),
            "method": method,
            "bin": np.minimum((mean * _BINS).astype(int), _BINS - 1),
            "pattern": [f"{problem}/{i}" for i in range(len(mean))],
            "predicted": mean,
            "positive": data["y_test"] > 0,
            "bayes": data["bayes_posterior"],
            "file": f"experiment4/problem{problem}/{method}.npz",
        }
        pieces.append(pd.DataFrame(columns))
    if not pieces:
        return
    keys = ["group", "method", "bin"]
    for (group, method, place), rows in pd.concat(pieces, ignore_index=True).groupby(keys):
        path, source = f"reliability/{group}/{method}/bin{place}", join_sources(rows["file"])
        n, frequency = rows["pattern"].nunique(), float(rows["positive"].mean())
        # Half a pattern is added on either side, so that a bin of one class only does not claim to be exact.
        smoothed = (frequency * n + 0.5) / (n + 1)
        se = float(np.sqrt(smoothed * (1 - smoothed) / n))
        yield estimate(f"{path}/frequency", frequency, source, se=se)
        yield whole(f"{path}/predicted", rows["predicted"].mean(), source)
        yield whole(f"{path}/patterns", n, source)
        if group == "synthetic":
            yield whole(f"{path}/bayes", rows["bayes"].mean(), source)


def data_set_means(runs: Runs) -> pd.Series:
    """MAE-POST of Laplace's approximation by problem and data set, averaged over hyperparameter settings."""
    return runs.spread.groupby(["problem", "dataset"])["mae_post"].mean()


def _complete_means(summary: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """MAE-POST by problem (rows) and method, where all hyperparameter settings have one."""
    found = {
        (problem, method): mean.value
        for (problem, method), group in summary[summary["method"].isin(methods)].groupby(
            ["problem", "method"]
        )
        if (mean := mean_over_settings(group, "mae_post")).settings == mean.wanted > 0
    }
    index = pd.MultiIndex.from_tuples(list(found), names=["problem", "method"])
    return pd.Series(list(found.values()), index, dtype=float).unstack().reindex(columns=methods)


def mae_post_ranges(runs: Runs, summary: pd.DataFrame, published: Path) -> pd.DataFrame:
    """How far apart the paper's methods are in MAE-POST, and how far data sets are; in percent of the mean.

    Returns
    -------
    DataFrame
        One row a problem: ``published`` and ``ours`` (range over methods; ours where two or more of them have all
        settings), ``between`` (standard deviation of data sets, by Laplace's approximation); NaN where not known.
    """
    cells = published_cells(published, "table4/*/mae-post")
    numbers = cells["id"].str.extract(r"/P(\d+)/")[0].astype(int)
    theirs = cells["printed"].astype(float).groupby(numbers)
    ours = _complete_means(summary, list(PAPER.values()))
    several = ours[ours.count(axis=1) > 1]
    data_sets = data_set_means(runs).groupby("problem")
    return pd.DataFrame(
        {
            "published": 100 * (theirs.max() - theirs.min()) / theirs.mean(),
            "ours": 100 * (several.max(axis=1) - several.min(axis=1)) / several.mean(axis=1),
            "between": (100 * data_sets.std() / data_sets.mean()).dropna(),
        },
        dtype=float,
    )


def _mae_post(
    runs: Runs, strict: pd.DataFrame, loose: pd.DataFrame, published: Path
) -> Iterator[Row]:
    """Ranges of MAE-POST over methods and over data sets.

    The range over data sets is known by Laplace's approximation, whose bias can be larger than they differ: all are
    multiplied by the sampler's value over Laplace's on the first data set.
    """
    ranges = mae_post_ranges(runs, loose, published)
    drawn = join_sources(runs.spread["file"] + ":" + runs.spread["line"].astype(str))
    source = join_sources(loose["source"])
    ends = {
        "published-range": (ranges["published"].max(), "data/published/atiya2021/cells.csv"),
        "ours-range": (ranges["ours"].max(), source),
        "data-sets-lowest": (ranges["between"].min(), drawn),
        "data-sets-highest": (ranges["between"].max(), drawn),
    }
    for name, (value, where) in ends.items():
        yield whole(f"mae-post/{name}", value, where)
    for name in ("published", "ours"):
        both = ranges.dropna(subset=[name, "between"])
        yield whole(f"mae-post/{name}-closer", (both[name] < both["between"]).sum(), source)
        yield whole(f"mae-post/{name}-problems", len(both), source)
    wide = _complete_means(strict, [SAMPLER, "laplace"])
    factor = (wide[SAMPLER] / wide["laplace"]).dropna()
    scaled = data_set_means(runs)
    scaled = scaled[scaled.index.get_level_values(0).isin(factor.index)]
    scaled = scaled * factor.reindex(scaled.index.get_level_values(0)).to_numpy()
    limits = scaled.groupby("problem").agg(["min", "max", "size"])
    for problem, low, high, n in limits.itertuples():
        for name, value in (("low", low), ("high", high), ("count", n)):
            yield whole(f"mae-post/data-sets/P{problem}/{name}", value, drawn)
    cells = published_cells(published, "table4/*/mae-post")
    numbers = cells["id"].str.extract(r"/P(\d+)/")[0].astype(int)
    known = numbers.isin(limits.index)
    printed, numbers = cells["printed"].astype(float)[known], numbers[known]
    inside = printed.between(numbers.map(limits["min"]), numbers.map(limits["max"]))
    yield whole("mae-post/inside", inside.sum(), drawn)
    yield whole("mae-post/inside-of", len(inside), drawn)


def mae_med_by_problem(cells: pd.DataFrame, reading: str) -> pd.DataFrame:
    """MAE-MED by problem (rows) and method, the mean over data sets of the mean over runs.

    Parameters
    ----------
    cells : DataFrame
        Measures of Table 4.
    reading : str
        Of the toolbox's chains.
    """
    rows = cells[(cells["reading"] == reading) & (cells["status"] == "ok")]
    rows = rows[rows["id"].str.endswith("/mae-med")]
    parts = rows["id"].str.extract(r"table4/P(\d+)/(\w+)/")
    keys = [parts[0].astype(int).rename("problem"), parts[1].rename("method")]
    units = rows["value"].groupby([*keys, rows["unit"]]).mean()
    return units.groupby(["problem", "method"]).mean().unstack().reindex(columns=list(PAPER))


def _mae_med(cells: pd.DataFrame, published: Path) -> Iterator[Row]:
    """Ends of MAE-MED over problems by method, and in how many problems HMC is furthest from the median."""
    printed = published_cells(published, "table4/*/mae-med")
    parts = printed["id"].str.extract(r"/P(\d+)/(\w+)/")
    index = pd.MultiIndex.from_arrays([parts[0].astype(int), parts[1]])
    theirs = pd.Series(printed["printed"].astype(float).to_numpy(), index).unstack()
    where = "data/published/atiya2021/cells.csv"
    tables = [("published", "", theirs, where)]
    rows = cells[cells["id"].str.endswith("/mae-med")]
    for reading in (TWICE, ONCE):
        source = join_sources(rows["source"][rows["reading"] == reading])
        tables.append(("ours", reading, mae_med_by_problem(cells, reading), source))
    for name, reading, table, source in tables:
        for method, values in table.items():
            for end, value in (("lowest", values.min()), ("highest", values.max())):
                path = f"mae-med/{name}/{PAPER[str(method)]}/{end}"
                yield estimate(path, value, source, se=0.0, scale="log", reading=reading)
        both = table.dropna(subset="hmc")
        furthest = both["hmc"] > both.drop(columns="hmc").max(axis=1)
        for end, count in (("hmc-furthest", furthest.sum()), ("problems", len(both))):
            yield estimate(f"mae-med/{name}/{end}", count, source, se=0.0, reading=reading)
