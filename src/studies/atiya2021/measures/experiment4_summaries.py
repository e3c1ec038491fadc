"""Summaries of Experiment 4 over problems and settings: one number a method, for the text and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from gpcmc.gp.covariance import rbf
from gpcmc.inference.interface import MIN_EFFECTIVE, NOT_CONVERGED, STOPPED
from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import estimate, whole
from studies.atiya2021.measures.experiment4_runs import PAPER, SAMPLER, Runs
from studies.atiya2021.measures.experiment4_settings import within
from studies.atiya2021.runs import NO_DATA

__all__ = ["control_inputs", "relative_seconds", "summaries"]

Row = dict[str, Any]

#: Methods without Monte Carlo error.
_EXACT = ("ep", "laplace")
#: Options of methods whose value is a count, as the rows of a run have them.
_COUNTS = {
    "samples": "samples",
    "points": "points",
    "randomizations": "randomizations",
    "burn_in": "burn-in",
    "iterations": "iterations",
    "temperatures": "temperatures",
}


def summaries(runs: Runs, summary: pd.DataFrame) -> list[Row]:
    """All rows of this module.

    Parameters
    ----------
    runs : Runs
    summary : DataFrame
        `summarise`, of the runs whose status is "ok".
    """
    if summary.empty:
        return []
    return [
        *_design(runs, summary),
        *_accuracy(summary),
        *_against_ep(summary),
        *_furthest(summary),
        *_evidence_gaps(runs, summary),
        *_seconds(summary),
        *_seconds_where_trivial(runs, summary),
        *_budget(summary),
        *_settings(runs),
    ]


def _design(runs: Runs, summary: pd.DataFrame) -> Iterator[Row]:
    """What was run, and how many runs of each method do not count."""
    source = join_sources(summary["source"])
    trivial = summary[summary["trivial"] & (summary["ok"] > 0)].drop_duplicates(["problem", "set"])
    yield whole("experiment4/trivial", len(trivial), source)
    for name, column in (("methods", "method"), ("problems", "problem"), ("settings", "set")):
        yield whole(f"experiment4/{name}", summary[column].nunique(), source)
    for method, group in summary[summary["status"] != NO_DATA].groupby("method"):
        where = join_sources(group["source"])
        yield whole(f"status/{method}/runs", group["runs"].sum(), where)
        yield whole(f"status/{method}/bad", (group["runs"] - group["ok"]).sum(), where)
    for method in ("ess-gpml", "hmc-gpml"):  # too few samples to converge, however well they mix
        mine = runs.rows[(runs.rows["method"] == method) & (runs.rows["samples"] < MIN_EFFECTIVE)]
        if len(mine):
            kept, where = mine.groupby("problem")["samples"].max(), join_sources(mine["source"])
            yield whole(f"experiment4/short/{method}/most", kept.max(), where)
            yield whole(f"experiment4/short/{method}/problems", len(kept), where)
    usps = runs.first[(runs.first["method"] == PAPER["titsias"]) & (runs.first["problem"] == 9)]
    if len(usps):
        where = join_sources(usps["source"])
        yield whole("control-variables/usps-settings", usps["set"].nunique(), where)
        good = (usps["status"] == OK).groupby(usps["set"]).all()
        yield whole("control-variables/usps-ok", good.sum(), where)
        for name, value in control_inputs(usps).items():
            yield whole(f"control-variables/usps-{name}", value, where)


def control_inputs(rows: pd.DataFrame) -> dict[str, float]:
    """How many control inputs the runs that were stopped for them need, and our limit; empty without such runs."""
    stopped = rows[(rows["status"] == STOPPED) & rows["controls_needed"].notna()]
    if stopped.empty:
        return {}
    needed, limit = stopped["controls_needed"], stopped["max_controls"]
    return {"least": needed.min(), "most": needed.max(), "limit": limit.max()}


def _accuracy(summary: pd.DataFrame) -> Iterator[Row]:
    """Errors against the certified reference, over problems and settings."""
    for method, group in within(summary, "certified").groupby("method"):
        path, source = f"accuracy/{method}", join_sources(group["source"])
        errors, nats = group["mae_reference"].dropna(), group["nats"].dropna()
        if len(errors):
            yield whole(f"{path}/settings", len(errors), source)
            yield estimate(f"{path}/mean", errors.mean(), source, scale="log")
            largest = group["largest_reference"].max()
            yield estimate(f"{path}/largest", largest, source, scale="log")
        if len(nats):
            yield estimate(f"{path}/nats-median", nats.median(), source, scale="log")
            worst = group.loc[nats.idxmax()]
            where = worst["source"]
            yield estimate(f"{path}/nats-largest", worst["nats"], where, scale="log")
            for name, column in (("problem", "problem"), ("setting", "set")):
                yield whole(f"{path}/nats-largest-{name}", worst[column], where)
    there = summary[(summary["effective_per_second"] > 0) & (summary["status"] != NO_DATA)]
    for method, group in there.groupby("method"):
        speed = float(np.exp(np.log(group["effective_per_second"]).median()))
        source = join_sources(group["source"])
        yield estimate(f"efficiency/{method}", speed, source, scale="log")


def _against_ep(summary: pd.DataFrame) -> Iterator[Row]:
    """Expectation propagation beside each Monte Carlo method, setting by setting."""
    certified = within(summary, "certified")
    wide = certified.pivot(index=["problem", "set"], columns="method", values="mae_reference")
    if "ep" not in wide:
        return
    for method in sorted(set(wide) - set(_EXACT)):
        both = wide[["ep", method]].dropna()
        if both.empty:
            continue
        source = join_sources(certified.loc[certified["method"].isin(["ep", method]), "source"])
        yield whole(f"ep/common/{method}", len(both), source)
        yield whole(f"ep/closer/{method}", (both["ep"] < both[method]).sum(), source)
        for end, name in (("ep", "ep"), ("own", method)):
            mean = both[name].mean()
            yield estimate(f"ep/mean/{method}/{end}", mean, source, scale="log")


def _furthest(summary: pd.DataFrame) -> Iterator[Row]:
    """Errors of the paper's methods against the reference, where all of them have one."""
    certified = within(summary, "certified")
    certified = certified[certified["method"].isin(list(PAPER.values()))]
    wide = certified.pivot(index=["problem", "set"], columns="method", values="mae_reference")
    whole_rows = wide.dropna() if set(PAPER.values()) <= set(wide) else wide.iloc[:0]
    source = join_sources(certified["source"])
    yield whole("furthest/settings", len(whole_rows), source)
    for method in whole_rows if len(whole_rows) else []:
        yield estimate(f"furthest/{method}", whole_rows[method].mean(), source, scale="log")


def _percent(path: str, values: pd.Series, source: str) -> Iterator[Row]:
    """Median and largest of percentages, and how many there are; nothing without any."""
    values = values.dropna()
    if len(values):
        yield whole(f"{path}/count", len(values), source)
        yield estimate(f"{path}/median", values.median(), source, scale="log")
        yield estimate(f"{path}/largest", values.max(), source, scale="log")


def _evidence_gaps(runs: Runs, summary: pd.DataFrame) -> Iterator[Row]:
    """Log evidence in percent of the sampler's and of the reference's; of runs that do not count, apart."""
    telling, certified = within(summary, "nontrivial"), within(summary, "certified")
    wide = telling.pivot(index=["problem", "set"], columns="method", values="log_evidence")
    stray = runs.first[runs.first["status"] == NOT_CONVERGED]
    known = certified.drop_duplicates(["problem", "set"])[["problem", "set", "reference"]]
    stray = stray.merge(known, on=["problem", "set"])
    off = 100 * (stray["log_evidence"] / stray["reference"].astype(float) - 1).abs()
    for method in ("ess-gpml", "hmc-gpml", "ess", "hmc", SAMPLER, "ep", "laplace"):
        part = certified[certified["method"] == method]
        source, path = join_sources(part["source"]), f"evidence/{method}"
        if method != SAMPLER and {SAMPLER, method} <= set(wide):
            gaps = 100 * (wide[method] / wide[SAMPLER] - 1).abs()
            yield from _percent(f"{path}/sampler", gaps, source)
        gaps = 100 * (part["nats"] / part["reference"].astype(float)).abs()
        yield from _percent(f"{path}/reference", gaps, source)
        yield from _percent(f"{path}/usps", gaps[part["problem"] == 9], source)
        mine = stray["method"] == method
        for name, rows in (("stray", mine), ("stray-usps", mine & (stray["problem"] == 9))):
            where = join_sources(stray["source"][rows])
            yield from _percent(f"{path}/{name}", off[rows], where)


def relative_seconds(summary: pd.DataFrame) -> pd.DataFrame:
    """A summary with ``relative``: CPU seconds over those of setting 1, same method and problem."""
    base = summary[summary["set"] == 1].set_index(["problem", "method"])["cpu_seconds"]
    both = summary.join(base.rename("base"), on=["problem", "method"])
    both["relative"] = both["cpu_seconds"] / both["base"]
    return both.dropna(subset="relative")


def _geometric(path: str, values: pd.Series, source: str) -> Row:
    """Geometric mean over problems, with its standard error."""
    logs, n = np.log(values), len(values)
    mean = float(np.exp(logs.mean()))
    se = mean * float(logs.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return estimate(path, mean, source, se=se, df=n - 1.0, scale="log")


def _seconds(summary: pd.DataFrame) -> Iterator[Row]:
    """CPU seconds by setting over those of setting 1, where K is not beta I to rounding.

    The ratio is that of the settings with the smallest alpha to those with the largest; the paper speaks of settings 4
    and 6 compared to 1 and 2.
    """
    both = within(relative_seconds(summary), "nontrivial")
    ends = {"short": both["alpha"].min(), "long": both["alpha"].max()}
    for method, group in both.groupby("method"):
        means = {}
        for number, rows in group.groupby("set"):
            source = join_sources(rows["source"])
            row = _geometric(f"seconds/{method}/S{number}", rows["relative"], source)
            means[number] = math.log(row["value"])
            yield row
        alphas = group.drop_duplicates("set").set_index("set")["alpha"]
        logs = {
            end: [means[number] for number in alphas.index[alphas == alpha]]
            for end, alpha in ends.items()
        }
        if all(logs.values()) and ends["short"] < ends["long"]:
            ratio = math.exp(np.mean(logs["short"]) - np.mean(logs["long"]))
            source = join_sources(group["source"])
            yield estimate(f"seconds/{method}/ratio", ratio, source, scale="log")
    mine = summary[(summary["method"] == SAMPLER) & (summary["problem"] == 2)]
    if len(mine):
        source = join_sources(mine["source"])
        yield estimate("seconds/orthant/P2", mine["cpu_seconds"].mean(), source, scale="log")


def _seconds_where_trivial(runs: Runs, summary: pd.DataFrame) -> Iterator[Row]:
    """Seconds where K is beta I to rounding, and how many entries of K are subnormal numbers there.

    Most processors are many times slower with subnormal numbers, so these seconds tell of the processor.
    """
    both = relative_seconds(summary)
    both = both[both["trivial"]]
    if both.empty:
        return
    slow = np.exp(np.log(both["relative"]).groupby(both["method"]).mean())
    source = join_sources(both["source"])
    yield estimate("seconds/trivial/lowest", slow.min(), source, scale="log")
    yield estimate("seconds/trivial/highest", slow.max(), source, scale="log")
    tiny, shares = np.finfo(float).tiny, []
    pairs = summary[summary["trivial"]].drop_duplicates(["problem", "set"])
    for pair in pairs.itertuples():
        entries = rbf(pair.alpha, pair.beta)(runs.problems[pair.problem]["X_train"])
        shares.append(float(np.mean((entries > 0) & (entries < tiny))))
    files = "; ".join(sorted({f"experiment4/problem{p}.npz" for p in pairs["problem"]}))
    yield whole("seconds/trivial/subnormal", float(np.mean(shares)), files)


def _budget(summary: pd.DataFrame) -> Iterator[Row]:
    """CPU seconds of Monte Carlo methods with setting 1 over those of control variables, and where they differ most."""
    first = summary[(summary["set"] == 1) & ~summary["method"].isin(list(_EXACT))]
    first = first[~first["method"].str.startswith("pseudo")].dropna(subset="cpu_seconds")
    wide = first.pivot(index="problem", columns="method", values="cpu_seconds")
    source = join_sources(first["source"])
    own = PAPER["titsias"]
    if own in wide:
        logs = np.log(wide.drop(columns=own).div(wide[own], axis=0))
        ratios = np.exp(logs.mean()).dropna()
        for method, ratio in ratios.items():
            yield estimate(f"budget/{method}", ratio, source, scale="log")
        yield estimate("budget/lowest", ratios.min(), source, scale="log")
        yield estimate("budget/highest", ratios.max(), source, scale="log")
    apart = first.groupby("problem")["cpu_seconds"].agg(lambda found: found.max() / found.min())
    if len(apart):
        yield estimate("budget/apart", apart.max(), source, scale="log")


def _settings(runs: Runs) -> Iterator[Row]:
    """Counts of Experiment 4 by method and problem, as configured."""
    there = runs.rows[runs.rows["status"] != NO_DATA]
    # of importance sampling "points" is a word
    counts = there.reindex(columns=list(_COUNTS)).apply(pd.to_numeric, errors="coerce")
    for (method, problem), group in there.groupby(["method", "problem"]):
        source = join_sources(group["source"])
        for column, count in counts.loc[group.index].max().dropna().items():
            name = f"settings/{method}/{_COUNTS[str(column)]}/P{problem}"
            yield whole(name, count, source)
