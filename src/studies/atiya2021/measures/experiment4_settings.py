"""Experiment 4 by problem, hyperparameter setting and method, on the first data set of each problem.

A log evidence is averaged on the probability scale, and an average over settings gives each the same weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from gpcmc.inference.interface import NOT_CONVERGED, UNTRUSTED
from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import Known, Row, each, estimate
from studies.atiya2021.measures.experiment4_cells import deviations
from studies.atiya2021.measures.experiment4_runs import Runs, predictions
from studies.atiya2021.runs import NO_DATA

__all__ = ["by_setting", "complete_means", "reference_rows", "summarise", "within"]

_KEY = ["problem", "set", "method"]
#: Statuses of runs whose seconds count: they did their work.
_WORKED = [OK, NOT_CONVERGED, UNTRUSTED]
#: Errors against the reference, and the last part of their ids.
_ERRORS = {"mae_reference": "mae-reference", "nats": "nats"}


def summarise(runs: Runs, counts: pd.Series, medians: dict[int, list[str]]) -> pd.DataFrame:
    """Means over the runs that count, by problem, setting and method.

    ``status`` is "ok" if all runs count, else the most frequent other one. Standard errors of errors are from the
    spread of the runs, and zero of methods that draw nothing.
    """
    first = runs.first
    firsts = {name: (name, "first") for name in ("alpha", "beta", "certified", "reference")}
    table = first.groupby(_KEY).agg(
        **firsts,
        reference_se=("reference_se", "first"),
        trivial=("trivial", "any"),
        exact=("seed", lambda seeds: seeds.isna().all()),
        source=("source", join_sources),
    )
    good = first[counts].groupby(_KEY)
    bad = first[~counts].groupby(_KEY)["status"].agg(lambda found: found.mode().iloc[0])
    table["status"] = bad.reindex(table.index).fillna(OK)
    for name in _ERRORS:
        se = good[name].std() / np.sqrt(good[name].count())
        exact = table["exact"] & good.size().reindex(table.index).notna()
        table[name], table[f"{name}_se"] = good[name].mean(), se
        table[f"{name}_se"] = table[f"{name}_se"].mask(exact, 0.0)
    table["mae_post"] = good["mae_post"].mean()
    table["mae_med"] = _deviations(first[first["counts"]], medians)
    table["cpu_seconds"] = first[first["status"].isin(_WORKED)].groupby(_KEY)["cpu_seconds"].mean()
    logs = pd.DataFrame({key: _average_evidence(group) for key, group in good}).T
    table[["log_evidence", "log_evidence_se"]] = logs.reindex(table.index, columns=[0, 1])
    return table.reset_index()


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


def _deviations(used: pd.DataFrame, medians: dict[int, list[str]]) -> pd.Series:
    """MAE-MED of the paper's methods."""
    found = []
    for (problem, number), rows in used.groupby(["problem", "set"]):
        names = medians.get(problem, [])
        probabilities = {name: predictions(rows[rows["method"] == name]) for name in names}
        for method in names:
            values = deviations(probabilities, method)
            found += [(problem, number, method, value) for value in values]
    return pd.DataFrame(found, columns=[*_KEY, "value"]).groupby(_KEY)["value"].mean()


def within(summary: pd.DataFrame, scope: str) -> pd.DataFrame:
    """The rows of a summary that a scope takes in: ``nontrivial`` or, of these, ``certified``."""
    summary = summary[~summary["trivial"]]
    return summary[summary["certified"]] if scope == "certified" else summary


def complete_means(summary: pd.DataFrame, column: str, methods: list[str]) -> pd.DataFrame:
    """Means over settings by problem (rows) and method, where all settings have a value."""
    used = summary[summary["method"].isin(methods)].groupby(["problem", "method"])[column]
    means = used.agg(lambda values: values.mean() if values.notna().all() else math.nan)
    return means.unstack().reindex(columns=methods).astype(float)


def by_setting(summary: pd.DataFrame) -> Iterator[Row]:
    """Differences of log evidence from the reference by setting, and averages of errors over certified settings.

    Only an average over all settings counts, because settings differ much more than methods do. One over fewer has a
    value, and a status that says how many.
    """
    gives = summary.groupby("method")["log_evidence"].transform(lambda found: found.notna().any())
    for row in summary[gives].itertuples():
        name = f"experiment4/P{row.problem}/S{row.set}/{row.method}/difference"
        if math.isnan(row.log_evidence):
            yield estimate(name, Known(math.nan, math.nan, status=row.status), row.source)
        elif not pd.isna(row.reference):
            se = float(np.hypot(row.log_evidence_se, row.reference_se))
            yield estimate(name, Known(row.log_evidence - row.reference, se), row.source)
    certified = within(summary, "certified")
    for (problem, method), group in summary.groupby(["problem", "method"]):
        mine = certified[(certified["problem"] == problem) & (certified["method"] == method)]
        for column, last in _ERRORS.items():
            known = _over_settings(mine, column)
            status = known.status or _absent(summary, group, column)
            name = f"experiment4/P{problem}/certified/{method}/{last}"
            if status:
                found, source = known._replace(status=status), join_sources(mine["source"])
                yield estimate(name, found, source, scale="log")


def _over_settings(used: pd.DataFrame, column: str) -> Known:
    """Mean of a column over settings; one with one run is given the mean variance of the others."""
    there = used[column].notna()
    n = int(there.sum())
    if not n:
        return Known(math.nan, math.nan, status="")
    variances = used.loc[there, f"{column}_se"] ** 2
    se = math.sqrt(float(variances.fillna(variances.mean()).sum(skipna=False))) / n
    status = OK if n == len(used) else f"{n} of {len(used)}"
    return Known(float(used.loc[there, column].mean()), se, status=status)


def _absent(summary: pd.DataFrame, group: pd.DataFrame, column: str) -> str:
    """Why there is no average; empty if the method or the problem cannot have it."""
    if (group["status"] == NO_DATA).any():
        return NO_DATA
    possible = all(
        summary[column][summary[key] == group[key].iloc[0]].notna().any()
        for key in ("problem", "method")
    )
    bad = group.loc[group["status"] != OK, "status"]
    return str(bad.mode().iloc[0]) if possible and len(bad) else ""


def reference_rows(runs: Runs, summary: pd.DataFrame) -> Iterator[Row]:
    """The certified reference by setting, its mean standard error of a probability by problem, and the settings."""
    for (problem, number), cell in runs.reference.iterrows():
        path, source = f"experiment4/P{problem}/S{number}/reference", cell["source"]
        evidence, se = float(cell["log_evidence"]), float(cell["log_evidence_se"])
        size = len(runs.problems[problem]["y_train"])
        yield estimate(f"{path}/per-pattern", Known(evidence / size, se / size), source)
        yield estimate(f"{path}/certified", cell["verdict"] == "certified", source)
    ran = within(summary, "certified").drop_duplicates(["problem", "set"])[["problem", "set"]]
    cells = runs.reference.reindex(pd.MultiIndex.from_frame(ran)).reset_index()
    errors = {"probability-se": lambda group: np.mean(group["probability_se"])}
    template = "experiment4/P{problem}/certified/reference/{quantity}"
    yield from each(cells, "problem", template, errors)
    for number, group in summary.groupby("set"):
        for name in ("alpha", "beta"):
            source = group["source"].iloc[0]
            yield estimate(f"experiment4/S{number}/{name}", group[name].iloc[0], source)
