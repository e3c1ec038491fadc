"""Experiment 4 by problem, hyperparameter setting and method, on the first data set of each problem.

Runs are rows of their own wherever a value is the mean over runs. A log evidence is averaged on the probability scale,
and an average over settings gives each the same weight, so both are rows with their own standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from gpcmc.inference.interface import NOT_CONVERGED, UNTRUSTED
from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import estimate, whole
from studies.atiya2021.measures.experiment4_cells import TWICE, deviations
from studies.atiya2021.measures.experiment4_runs import MEASURES, Runs
from studies.atiya2021.names import REAL
from studies.atiya2021.runs import NO_DATA

__all__ = [
    "all_deviations",
    "averages",
    "by_setting",
    "deviation_rows",
    "mean_over_settings",
    "reference_rows",
    "summarise",
    "within",
]

Row = dict[str, Any]

KEY = ["problem", "set", "method"]
#: Statuses of runs whose seconds count: they did their work.
_WORKED = [OK, NOT_CONVERGED, UNTRUSTED]
#: Averages over settings: all settings, those where K is not beta I to rounding, and of these the certified ones.
_SCOPES = {
    "all": ("mae_post", "mae_med"),
    "nontrivial": ("error_rate", "cpu_seconds", "effective_per_second"),
    "certified": ("mae_reference", "nats", "largest_reference"),
}


def by_setting(runs: Runs, summary: pd.DataFrame) -> list[Row]:
    """One row a run and measure; a run that does not count has its status, and may have no value."""
    first, rows = runs.first, []
    for column, (name, scale) in MEASURES.items():
        if column != "mae_med":
            rows += _of_runs(first, column, name, scale)
    for name, column in (("k-hat", "k_hat"), ("r-hat", "r_hat")):
        for (problem, number, method), group in first.dropna(subset=column).groupby(KEY):
            path = f"experiment4/P{problem}/S{number}/{method}/{name}"
            rows.append(estimate(path, group[column].max(), join_sources(group["source"])))
    return [*rows, *_evidence(runs, summary)]


def _of_runs(first: pd.DataFrame, column: str, name: str, scale: str) -> list[Row]:
    """Rows of one measure. Methods and problems that cannot have it have no rows."""
    worked = first["status"].isin(_WORKED) if column == "cpu_seconds" else first["status"] == OK
    there = first[column].notna()
    gives = there.groupby(first["method"]).transform("any")
    empty = (first["status"] == NO_DATA).groupby(first["problem"]).transform("all")
    has = there.groupby(first["problem"]).transform("any") | empty
    if column == "mae_post":
        has &= ~first["problem"].isin(list(REAL))
    wanted = first[there | (~worked & gives & has)]
    exact = wanted["exact"] & (column != "cpu_seconds")
    table = pd.DataFrame(
        {
            "id": "experiment4/P"
            + wanted["problem"].astype(str)
            + "/S"
            + wanted["set"].astype(str)
            + "/"
            + wanted["method"]
            + f"/{name}",
            "unit": "experiment4/P" + wanted["problem"].astype(str) + "/dataset0",
            "run": wanted["replicate"],
            "value": wanted[column],
            "scale": scale,
            "status": wanted["status"].where(~worked[wanted.index], OK),
            "source": wanted["source"],
            "seed": wanted["seed"],
            "se": np.where(exact, 0.0, np.nan),
        }
    )
    return table.to_dict("records")


def _evidence(runs: Runs, summary: pd.DataFrame) -> Iterator[Row]:
    """Log evidence by setting and method, and its difference from the reference."""
    gives = set(runs.first["method"][runs.first["log_evidence"].notna()])
    for row in summary[summary["method"].isin(gives)].itertuples():
        path = f"experiment4/P{row.problem}/S{row.set}/{row.method}"
        if math.isnan(row.log_evidence):
            yield estimate(f"{path}/log-evidence", math.nan, row.source, status=row.status)
            yield estimate(f"{path}/difference", math.nan, row.source, status=row.status)
            continue
        yield estimate(f"{path}/log-evidence", row.log_evidence, row.source, se=row.log_evidence_se)
        if not math.isnan(row.difference):
            se = row.difference_se
            yield estimate(f"{path}/difference", row.difference, row.source, se=se)


def _average_evidence(group: pd.DataFrame) -> tuple[float, float]:
    """Average of the evidence over runs, on the probability scale, and the standard error of its logarithm.

    Two errors are at hand: from what the runs say of themselves, and from how they differ. The larger counts, for
    a run with too few samples does not know how wrong it is.
    """
    there = np.isfinite(group["log_evidence"])
    logs = group["log_evidence"].to_numpy()[there]
    errors = group["log_evidence_se"].to_numpy()[there]
    if not len(logs):
        return math.nan, math.nan
    own = float(np.sqrt(np.sum((softmax(logs) * errors) ** 2)))
    between = float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else 0.0
    return float(logsumexp(logs) - np.log(len(logs))), max(own, between)


def summarise(runs: Runs, counts: pd.Series, found: pd.DataFrame) -> pd.DataFrame:
    """Means over the runs that count, by problem, setting and method.

    Parameters
    ----------
    runs : Runs
    counts : Series of bool
        Which of `Runs.first` count.
    found : DataFrame
        `all_deviations`.

    Returns
    -------
    DataFrame
        ``problem``, ``set``, ``method``, ``alpha``, ``beta``, ``trivial``, ``runs``, ``ok`` (how many count),
        ``status`` ("ok" if all do, else the most frequent other one), ``certified``, ``reference`` (log evidence, NaN
        without one), ``source``; ``log_evidence`` and ``difference`` (from the reference, nats) with standard errors;
        each column of `MEASURES`, with ``_se`` from the spread of the runs.
    """
    first = runs.first
    groups = first.groupby(KEY, sort=True)
    table = groups.agg(
        alpha=("alpha", "first"),
        beta=("beta", "first"),
        trivial=("trivial", "any"),
        runs=("status", "size"),
        exact=("exact", "all"),
        source=("source", join_sources),
    )
    good = first[counts].groupby(KEY)
    table["ok"] = good.size().reindex(table.index, fill_value=0)
    bad = first.loc[~counts].groupby(KEY)["status"].agg(lambda found: found.mode().iloc[0])
    table["status"] = bad.reindex(table.index).fillna(OK)
    columns = [name for name in MEASURES if name not in ("cpu_seconds", "mae_med")]
    worked = first[first["status"].isin(_WORKED)].groupby(KEY)
    others = [("cpu_seconds", worked), ("mae_med", found.groupby(KEY))]
    for name, source in [*((name, good) for name in columns), *others]:
        table[name] = source[name].mean()
        table[f"{name}_se"] = source[name].std() / np.sqrt(source[name].count())
    exact = [f"{name}_se" for name in columns]
    table[exact] = table[exact].mask(table["exact"] & (table["ok"] > 0), 0.0, axis=0)
    logs = {key: _average_evidence(group) for key, group in good}
    table["log_evidence"] = pd.Series({key: pair[0] for key, pair in logs.items()}, dtype=float)
    table["log_evidence_se"] = pd.Series({key: pair[1] for key, pair in logs.items()}, dtype=float)
    known = runs.reference.reindex(columns=["log_evidence", "log_evidence_se", "verdict"])
    known = known.rename(columns={"log_evidence": "reference", "log_evidence_se": "reference_se"})
    table = table.reset_index().merge(known.reset_index(), on=["problem", "set"], how="left")
    table["certified"] = table["verdict"] == "certified"
    table["difference"] = table["log_evidence"] - table["reference"].astype(float)
    table["difference_se"] = np.hypot(table["log_evidence_se"], table["reference_se"].astype(float))
    return table


def all_deviations(runs: Runs, medians: dict[int, list[str]]) -> pd.DataFrame:
    """MAE-MED of every method on first data sets, by the paper's rule.

    Parameters
    ----------
    runs : Runs
    medians : dict
        `consensus`: methods that the median is over, by problem.

    Returns
    -------
    DataFrame
        ``problem``, ``set``, ``method``, ``run``, ``mae_med``: one row a median, of runs paired in order. All runs of a
        method that has no part in the median are set beside each of them.
    """
    rows = []
    for problem, method, number in sorted(runs.predictions):
        every, names = problem in runs.at_budget, medians.get(problem, [])
        found = {
            name: runs.predictions[problem, name, number].on(0, every=every)
            for name in {*names, method}
            if (problem, name, number) in runs.predictions
        }
        if not names or set(found) != {*names, method} or not all(map(len, found.values())):
            continue
        paper = {name: found[name] for name in names}
        if method in names:
            values = deviations(paper, method)
        else:
            n = min(map(len, paper.values()))
            middle = np.median(np.stack([p[:n] for p in paper.values()]), axis=0)
            values = np.abs(found[method][None] - middle[:, None]).mean(axis=(1, 2))
        rows += [(problem, number, method, run, value) for run, value in enumerate(values)]
    return pd.DataFrame(rows, columns=[*KEY, "run", "mae_med"])


def deviation_rows(found: pd.DataFrame) -> list[Row]:
    """The rows of `all_deviations` as measures."""
    return [
        {
            "id": f"experiment4/P{row.problem}/S{row.set}/{row.method}/mae-med",
            "reading": TWICE,
            "unit": f"experiment4/P{row.problem}/dataset0",
            "run": row.run,
            "value": row.mae_med,
            "scale": "log",
            "source": f"experiment4/problem{row.problem}/{row.method}.csv",
        }
        for row in found.itertuples()
    ]


class Mean(NamedTuple):
    """A mean over hyperparameter settings: over so many of those that are wanted."""

    value: float
    se: float
    settings: int
    wanted: int


def within(summary: pd.DataFrame, scope: str) -> pd.DataFrame:
    """The rows of a summary that a scope takes in: ``all``, ``nontrivial`` or ``certified``."""
    if scope == "all":
        return summary
    summary = summary[~summary["trivial"]]
    return summary[summary["certified"]] if scope == "certified" else summary


def mean_over_settings(used: pd.DataFrame, column: str) -> Mean:
    """Mean of a column over those rows of `summarise`, of one problem and method, that have a value.

    A setting with one run has no standard error of its own; it is given the mean variance of the others.
    """
    there = used[column].notna()
    n = int(there.sum())
    if not n:
        return Mean(math.nan, math.nan, 0, len(used))
    variances = used.loc[there, f"{column}_se"] ** 2
    se = math.sqrt(float(variances.fillna(variances.mean()).sum(skipna=False))) / n
    return Mean(float(used.loc[there, column].mean()), se, n, len(used))


def averages(summary: pd.DataFrame) -> list[Row]:
    """Averages over settings by problem and method.

    Only an average over all settings of its scope counts, because settings differ much more than methods do. One over
    fewer has a value, and a status that says how many.
    """
    rows = []
    for scope, columns in _SCOPES.items():
        used = dict(list(within(summary, scope).groupby(["problem", "method"])))
        for (problem, method), group in summary.groupby(["problem", "method"]):
            mine = used.get((problem, method), group.iloc[:0])
            source = join_sources(mine["source"])
            for column in columns:
                name, scale = MEASURES[column]
                mean = mean_over_settings(mine, column)
                status = _status(summary, group, column, mean)
                if status:
                    path = f"experiment4/P{problem}/{scope}/{method}/{name}"
                    reading = TWICE if column == "mae_med" else ""
                    given: Row = {"se": mean.se, "scale": scale, "reading": reading}
                    rows.append(estimate(path, mean.value, source, status=status, **given))
    return rows


def _status(summary: pd.DataFrame, group: pd.DataFrame, column: str, mean: Mean) -> str:
    """Whether an average counts, or why not; empty if its method or problem cannot have it."""
    if mean.settings:
        return OK if mean.settings == mean.wanted else f"{mean.settings} of {mean.wanted}"
    problem, method = group["problem"].iloc[0], group["method"].iloc[0]
    if (group["status"] == NO_DATA).any():
        return "" if column == "mae_post" and problem in REAL else NO_DATA
    here, mine = summary[summary["problem"] == problem], summary[summary["method"] == method]
    possible = here[column].notna().any() and mine[column].notna().any()
    bad = group.loc[group["status"] != OK, "status"]
    return str(bad.mode().iloc[0]) if possible and len(bad) else ""


def reference_rows(runs: Runs, summary: pd.DataFrame) -> list[Row]:
    """The certified reference by setting, its mean standard error of a probability by problem, and the settings."""
    rows = []
    for (problem, number), cell in runs.reference.iterrows():
        path = f"experiment4/P{problem}/S{number}/reference"
        source = f"{cell['file']}:{cell['line']}"
        evidence, se = float(cell["log_evidence"]), float(cell["log_evidence_se"])
        rows.append(estimate(f"{path}/log-evidence", evidence, source, se=se))
        size = len(runs.problems[problem]["y_train"])
        rows.append(estimate(f"{path}/per-pattern", evidence / size, source, se=se / size))
        error = float(np.mean(cell["probability_se"]))
        rows.append(whole(f"{path}/probability-se", error, source))
        rows.append(whole(f"{path}/certified", cell["verdict"] == "certified", source))
        rows.append(whole(f"{path}/trivial", bool(cell["trivial"]), source))
    ran = within(summary, "certified").drop_duplicates(["problem", "set"])
    for problem, group in ran.groupby("problem"):
        cells = [runs.reference.loc[(problem, number)] for number in group["set"]]
        error = float(np.mean([np.mean(cell["probability_se"]) for cell in cells]))
        source = join_sources(f"{cell['file']}:{cell['line']}" for cell in cells)
        path = f"experiment4/P{problem}/certified/reference/probability-se"
        rows.append(whole(path, error, source))
    for number, group in summary.groupby("set"):
        for name in ("alpha", "beta"):
            source = group["source"].iloc[0]
            rows.append(whole(f"experiment4/S{number}/{name}", group[name].iloc[0], source))
    return rows
