"""Quantities behind the paper's claims about Experiment 4, and how far single runs of its method are off.

The problem is the unit of replication where several settings or runs share one. At the paper's budget every run counts,
converged or not, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtri

from gpcmc.inference.interface import STOPPED
from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import estimate, mean_and_error, whole
from studies.atiya2021.measures.experiment4_posterior import (
    data_set_means,
    mae_post_ranges,
)
from studies.atiya2021.measures.experiment4_runs import PAPER, SAMPLER, Runs
from studies.atiya2021.measures.experiment4_settings import (
    mean_over_settings,
    within,
)
from studies.atiya2021.runs import NO_DATA

__all__ = ["claims", "hard_settings", "run_gaps"]

Row = dict[str, Any]

_NOT_COMPARABLE = "not comparable"
#: Largest difference between log evidences, in joint standard errors, of estimates that agree.
_MAX_Z = 3.0
#: Share of log L below which a gap is rounding.
_ROUNDING = 1e-6


def claims(runs: Runs, loose: pd.DataFrame, published: Path) -> list[Row]:
    """The quantity of every claim that Experiment 4 decides.

    Parameters
    ----------
    runs : Runs
    loose : DataFrame
        `summarise`, of the runs that count by the paper's rule.
    published : Path
        Folder of the published cells.
    """
    if loose.empty:
        return []
    return [
        *_medians(loose),
        *_mae_post(runs, loose, published),
        _seconds("control-variables/slow", loose, PAPER["titsias"]),
        _seconds("sampler/same-speed", loose, SAMPLER),
        *_usps(runs),
        _gap("evidence/ess", loose, "ess-gpml"),
        _gap("evidence/hmc", loose, "hmc-gpml"),
        _gap("evidence/hmc-usps", loose, "hmc-gpml", 9),
        *_minutes(runs),
        *_failures(runs),
        *_worst(runs),
    ]


def _geometric(claim: str, values: pd.Series, source: str) -> Row:
    """The geometric mean over units; of fewer than two it has no standard error, and is not compared."""
    name = f"claim/{claim}"
    if len(values) < 2:
        return estimate(name, math.nan, source, scale="log", status=_NOT_COMPARABLE)
    mean, se = mean_and_error(np.log(values))
    value, df = math.exp(mean), len(values) - 1.0
    return estimate(name, value, source, se=value * se, df=df, scale="log")


def _shares(claim: str, inside: pd.Series, source: str) -> list[Row]:
    """A share: one row a unit, the index of `inside`, with the value 0 or 1."""
    if inside.empty:
        return [estimate(f"claim/{claim}", math.nan, source, status=_NOT_COMPARABLE)]
    return [
        {"id": f"claim/{claim}", "unit": unit, "run": 0, "value": float(yes), "scale": "linear"}
        | {"source": source}
        for unit, yes in inside.items()
    ]


def _problems(index: pd.Index) -> list[str]:
    return [f"experiment4/P{problem}" for problem in index]


def _medians(loose: pd.DataFrame) -> Iterator[Row]:
    """MAE-MED of first data sets: how far all but HMC are from the median, and whether HMC is furthest."""
    used = loose[loose["method"].isin(list(PAPER.values()))]
    means = {
        (problem, method): mean.value
        for (problem, method), group in used.groupby(["problem", "method"])
        if (mean := mean_over_settings(group, "mae_med")).settings == mean.wanted > 0
    }
    index = pd.MultiIndex.from_tuples(list(means), names=["problem", "method"])
    table = pd.Series(list(means.values()), index, dtype=float).unstack()
    table = table.reindex(columns=list(PAPER.values()))
    source = join_sources(used["source"])
    others = table.drop(columns="hmc-gpml")
    yield _geometric("median/close", np.exp(np.log(others).mean(axis=1).dropna()), source)
    both = table.dropna(subset="hmc-gpml")
    furthest = both["hmc-gpml"] > both.drop(columns="hmc-gpml").max(axis=1)
    yield from _shares("median/hmc", furthest.set_axis(_problems(furthest.index)), source)


def _mae_post(runs: Runs, loose: pd.DataFrame, published: Path) -> Iterator[Row]:
    """Whether methods differ by less than data sets do, and how MAE-POST depends on the size of the training set."""
    ranges = mae_post_ranges(runs, loose, published).dropna(subset=["ours", "between"])
    alike = ranges["ours"] < ranges["between"]
    drawn = join_sources(runs.spread["file"] + ":" + runs.spread["line"].astype(str))
    source = join_sources([*loose["source"][loose["method"].isin(list(PAPER.values()))], drawn])
    yield from _shares("mae-post/alike", alike.set_axis(_problems(alike.index)), source)
    logs = np.log(data_set_means(runs))
    if not {1, 6} <= set(logs.index.get_level_values(0)):
        return
    (large, se_large), (small, se_small) = (mean_and_error(logs[problem]) for problem in (6, 1))
    value, se = math.exp(large - small), math.hypot(se_large, se_small)
    df = min(len(logs[6]), len(logs[1])) - 1.0
    status = OK if math.isfinite(se) else _NOT_COMPARABLE
    given: Row = {"df": df, "scale": "log", "status": status}
    yield estimate("claim/mae-post/size", value, drawn, se=value * se, **given)


def _seconds(claim: str, loose: pd.DataFrame, method: str) -> Row:
    """CPU seconds with the smallest alpha over those with the largest, geometric mean over problems."""
    rows = within(loose[loose["method"] == method], "nontrivial")
    logs = np.log(rows["cpu_seconds"].where(rows["cpu_seconds"] > 0))
    ends = [
        logs[rows["alpha"] == end].groupby(rows["problem"]).mean()
        for end in (loose["alpha"].min(), loose["alpha"].max())
    ]
    ratios = np.exp(ends[0] - ends[1]).dropna() if loose["alpha"].nunique() > 1 else logs[:0]
    return _geometric(claim, ratios, join_sources(rows["source"]))


def _usps(runs: Runs) -> list[Row]:
    """Whether control variables converge on USPS, by setting; runs that a limit of ours stopped do not say."""
    rows = runs.rows[(runs.rows["method"] == PAPER["titsias"]) & (runs.rows["problem"] == 9)]
    if rows.empty:
        return []
    source = join_sources(rows["source"])
    if (rows["status"] == NO_DATA).any():
        return [estimate("claim/control-variables/usps", math.nan, source, status=NO_DATA)]
    ran = rows[rows["status"] != STOPPED]
    good = (ran["status"] == OK).groupby(ran["set"]).all()
    return _shares(
        "control-variables/usps",
        good.set_axis([f"experiment4/P9/S{k}" for k in good.index]),
        source,
    )


def _gap(claim: str, loose: pd.DataFrame, method: str, problem: int | None = None) -> Row:
    """|Difference of log L from the sampler's|, in percent: the median setting, geometric mean over problems.

    Of one problem it is the geometric mean over settings. They share its data set, so its standard error is for other
    settings and not for other data.
    """
    cells = within(loose, "nontrivial")
    cells = cells[cells["method"].isin([SAMPLER, method])]
    if problem is not None:
        cells = cells[cells["problem"] == problem]
    source = join_sources(cells["source"])
    if len(cells) and (cells["status"] == NO_DATA).all():
        return estimate(f"claim/{claim}", math.nan, source, scale="log", status=NO_DATA)
    wide = cells.pivot(index=["problem", "set"], columns="method", values="log_evidence")
    wide = wide.reindex(columns=[SAMPLER, method]).dropna()
    gaps = 100 * (wide[method] / wide[SAMPLER] - 1).abs().clip(lower=_ROUNDING)
    return _geometric(claim, gaps.groupby("problem").median() if problem is None else gaps, source)


def _minutes(runs: Runs) -> Iterator[Row]:
    """CPU minutes of the sampler with a million samples on Problem 2, in proportion to those that it had."""
    rows = runs.rows[(runs.rows["method"] == SAMPLER) & (runs.rows["problem"] == 2)]
    minutes = (rows["cpu_seconds"] / rows["samples"] * 1e6 / 60).dropna()
    if len(minutes):
        value, se = mean_and_error(minutes)
        source = join_sources(rows["source"])
        given: Row = {"se": se, "scale": "log"}
        yield estimate("claim/matlab-seconds", value, source, status=_NOT_COMPARABLE, **given)
        yield estimate("seconds/orthant/minutes-per-million", value, source, **given)


def _failures(runs: Runs) -> list[Row]:
    """Whether a run of the sampler gives no answer, run by run."""
    rows = runs.rows[(runs.rows["method"] == SAMPLER) & (runs.rows["status"] != NO_DATA)]
    return [
        {
            "id": "claim/works/no-failure",
            "unit": f"experiment4/P{row.problem}/dataset{row.dataset}/S{row.set}/run{row.replicate}",
            "run": 0,
            "value": float(row.status != OK),
            "scale": "linear",
            "source": row.source,
            "seed": row.seed,
        }
        for row in rows.itertuples()
    ]


def run_gaps(runs: Runs) -> pd.DataFrame:
    """Log evidence of single runs of the sampler less the reference: an average hides what one of them is off.

    These are all settings in which the two methods of the reference agree in log evidence. A setting may be
    uncertified for another reason, such as a second method that is not as exact as a certificate asks for: its
    standard error counts here with that of the first.

    Returns
    -------
    DataFrame
        One row a run that is "ok" on a first data set, where K is not beta I to rounding: the columns of `Runs.rows`;
        ``certified``, ``certifier_se``, ``known_sets`` (of randomised points); ``gap`` (nats) and ``joint_se``
        (of run and reference).
    """
    rows = runs.first[(runs.first["method"] == SAMPLER) & (runs.first["status"] == OK)]
    known = runs.reference
    if known.empty:
        return rows.iloc[:0].assign(
            gap=[], joint_se=[], certified=[], certifier_se=[], known_sets=[]
        )
    known = known[known["z"].abs() < _MAX_Z].rename(
        columns={
            "log_evidence": "known",
            "log_evidence_se": "known_se",
            "randomizations": "known_sets",
        }
    )
    columns = ["known", "known_se", "certifier_se", "known_sets", "verdict"]
    found = rows[~rows["trivial"]].join(known[columns], on=["problem", "set"], how="inner")
    errors = found[["log_evidence_se", "known_se", "certifier_se"]].astype(float)
    return found.assign(
        gap=found["log_evidence"] - found["known"],
        joint_se=np.sqrt((errors**2).sum(axis=1, skipna=False)),
        certified=found["verdict"] == "certified",
    )


def _worst(runs: Runs) -> list[Row]:
    """How many nats each run of the sampler is off the reference: every one of them has to be right.

    The largest error is what a run says of itself. It is an estimate too: its degrees of freedom are those with which
    the squares of the standard errors of replicates scatter, and no more than the randomisations of the reference give.
    """
    gaps = run_gaps(runs)
    squares = gaps["log_evidence_se"].pow(2).groupby([gaps["problem"], gaps["set"]])
    scatter = float((squares.var() / squares.mean() ** 2).mean())  # of chi-squared it is 2 / df
    if math.isnan(scatter):  # no setting has two runs
        source = join_sources(gaps["source"])
        return [estimate("claim/works/right", math.nan, source, status=_NOT_COMPARABLE)]
    fewest = float(gaps["known_sets"].min()) - 1.0
    df = min(2 / scatter, fewest) if scatter > 0 else fewest
    return [
        {
            "id": "claim/works/right",
            "unit": f"experiment4/P{row.problem}/S{row.set}",
            "run": row.replicate,
            "value": abs(row.gap),
            "scale": "linear",
            "source": row.source,
            "seed": row.seed,
            "se": row.joint_se,
            "df": df,
        }
        for row in gaps.itertuples()
    ]


def hard_settings(runs: Runs, strict: pd.DataFrame) -> Iterator[Row]:
    """The setting in which a run of the sampler is furthest from the reference, and how many runs are off by a nat."""
    mine = runs.rows[(runs.rows["method"] == SAMPLER) & (runs.rows["status"] != NO_DATA)]
    yield whole("hard/runs", len(mine), join_sources(mine["source"]))
    yield whole("hard/failed", (mine["status"] != OK).sum(), join_sources(mine["source"]))
    gaps = run_gaps(runs)
    if gaps.empty:
        return
    everywhere = join_sources(gaps["source"])
    pairs = gaps.drop_duplicates(["problem", "set"])
    wrong = gaps["gap"].abs() - _MAX_Z * gaps["joint_se"] > 1  # nats
    counts = {
        "judged": len(gaps),
        "settings": len(pairs),
        "uncertified": (~pairs["certified"]).sum(),
    }
    for name, count in (counts | {"wrong": wrong.sum()}).items():
        yield whole(f"hard/{name}", count, everywhere)
    worst = gaps.loc[gaps["gap"].abs().idxmax()]
    here = gaps[(gaps["problem"] == worst["problem"]) & (gaps["set"] == worst["set"])]
    source, n = join_sources(here["source"]), len(here)
    named = {
        "problem": worst["problem"],
        "setting": worst["set"],
        "alpha": worst["alpha"],
        "beta": worst["beta"],
        "patterns": len(runs.problems[worst["problem"]]["y_train"]),
        "samples": worst["samples"],
        "replicates": n,
        "certifier-se": worst["certifier_se"],
    }
    for name, value in named.items():
        yield whole(f"hard/{name}", value, source)
    yield whole("hard/furthest", abs(worst["gap"]), worst["source"])
    if (here["gap"] < 0).all():  # all fall short: by this at least
        yield whole("hard/short", -here["gap"].max(), source)
    own, spread = math.sqrt(float((here["log_evidence_se"] ** 2).mean())), float(here["gap"].std())
    yield estimate("hard/own", own, source, scale="log")
    # the setting was chosen for a run that is far off: one percent over all settings
    if n > 1 and (n - 1) * (spread / own) ** 2 > chdtri(n - 1, 0.01 / len(pairs)):
        yield estimate("hard/overdispersed", spread, source, scale="log")
    same = (strict["problem"] == worst["problem"]) & (strict["set"] == worst["set"])
    for method in ("ep", "best"):
        other = strict[same & (strict["method"] == method)].dropna(subset="nats")
        if len(other):
            where = other["source"].iloc[0]
            yield estimate(f"hard/{method}", other["nats"].iloc[0], where, scale="log")
