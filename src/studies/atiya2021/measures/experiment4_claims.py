"""Quantities behind the paper's claims about Experiment 4, and how far single runs of its method are off.

The problem is the unit of replication where several settings or runs share one. At the paper's budget every run counts,
converged or not, as in the paper: `loose` is a summary (`summarise`) of the runs that count by this rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.inference.interface import STOPPED
from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import (
    Known,
    Row,
    estimate,
    geometric_mean,
    mean_and_error,
    measured,
    published_cells,
)
from studies.atiya2021.measures.experiment4_runs import PAPER, SAMPLER, Runs, complete_means
from studies.atiya2021.runs import NO_DATA

_NOT_COMPARABLE = Known(math.nan, math.nan, status="not comparable")
#: Largest difference between log evidences, in joint standard errors, of estimates that agree.
_MAX_Z = 3.0
#: Share of log L below which a gap is rounding.
_ROUNDING = 1e-6


def claims(runs: Runs, loose: pd.DataFrame) -> Iterator[Row]:
    """The quantity of every claim that Experiment 4 decides, but for those on single runs: `works`."""
    yield from _medians(loose)
    yield from _mae_post(runs, loose)
    smallest, middle, largest = (0.5, 3.0, 5.0)  # length scales of the settings
    yield _seconds("control-variables/slow", loose, PAPER["titsias"], smallest, largest)
    yield _seconds("control-variables/slower", loose, PAPER["titsias"], middle, largest)
    yield _seconds("sampler/same-speed", loose, SAMPLER, smallest, largest)
    yield from _usps(runs)
    yield _gap("evidence/ess", loose, "ess-gpml")
    yield _gap("evidence/hmc", loose, "hmc-gpml")
    yield _gap("evidence/hmc-usps", loose, "hmc-gpml", 9)
    rows = runs.rows[(runs.rows["method"] == SAMPLER) & (runs.rows["problem"] == 2)]
    minutes = (rows["cpu_seconds"] / rows["samples"] * 1e6 / 60).dropna()
    if len(minutes):
        found = Known(*mean_and_error(minutes), status="not comparable")
        yield estimate("claim/matlab-seconds", found, join_sources(rows["source"]), scale="log")


def _shares(claim: str, inside: pd.Series, unit: str, source: str) -> Iterator[Row]:
    """A share: one row a unit, which is the index of `inside`, with the value 0 or 1."""
    if inside.empty:
        yield estimate(f"claim/{claim}", _NOT_COMPARABLE, source)
    for place, yes in inside.items():
        row = {"id": f"claim/{claim}", "unit": unit.format(place), "run": 0, "value": float(yes)}
        yield row | {"scale": "linear", "source": source}


def _medians(loose: pd.DataFrame) -> Iterator[Row]:
    """MAE-MED of first data sets: how far all but HMC are from the median, and whether HMC is furthest."""
    table = complete_means(loose, "mae_med", list(PAPER.values()))
    source = join_sources(loose["source"][loose["method"].isin(table.columns)])
    others = np.log(table.drop(columns="hmc-gpml")).mean(axis=1).dropna()
    yield estimate("claim/median/close", geometric_mean(others), source, scale="log")
    both = table.dropna(subset="hmc-gpml")
    furthest = both["hmc-gpml"] > both.drop(columns="hmc-gpml").max(axis=1)
    yield from _shares("median/hmc", furthest, "experiment4/P{}", source)


def data_set_means(runs: Runs) -> pd.Series:
    """MAE-POST of Laplace's approximation by problem and data set, averaged over hyperparameter settings."""
    return runs.spread.groupby(["problem", "dataset"])["mae_post"].mean()


def _mae_post(runs: Runs, loose: pd.DataFrame) -> Iterator[Row]:
    """Whether methods differ by less than data sets do, and how MAE-POST depends on the size of the training set."""
    ours = complete_means(loose, "mae_post", list(PAPER.values()))
    several = ours[ours.count(axis=1) > 1]
    methods = 100 * (several.max(axis=1) - several.min(axis=1)) / several.mean(axis=1)
    means = data_set_means(runs).groupby("problem")
    data_sets = (100 * means.std() / means.mean()).dropna()
    drawn = join_sources(runs.spread["source"])
    for end, value in (("lowest", data_sets.min()), ("highest", data_sets.max())):
        yield estimate(f"mae-post/data-sets-{end}", value, drawn)
    methods, data_sets = methods.dropna().align(data_sets, join="inner")
    source = join_sources([*loose["source"][loose["method"].isin(ours.columns)], drawn])
    yield from _shares("mae-post/alike", methods < data_sets, "experiment4/P{}", source)
    logs = np.log(data_set_means(runs))
    if {1, 6} <= set(logs.index.get_level_values(0)):
        (large, se_large), (small, se_small) = (mean_and_error(logs[problem]) for problem in (6, 1))
        value, se = math.exp(large - small), math.hypot(se_large, se_small)
        df = min(len(logs[6]), len(logs[1])) - 1.0
        known = Known(value, value * se, df, OK if math.isfinite(se) else "not comparable")
        yield estimate("claim/mae-post/size", known, drawn, scale="log")


def _seconds(claim: str, loose: pd.DataFrame, method: str, above: float, below: float) -> Row:
    """CPU seconds with one length scale over those with another, geometric mean over problems."""
    rows = loose[(loose["method"] == method) & ~loose["trivial"]]
    logs = np.log(rows["cpu_seconds"].where(rows["cpu_seconds"] > 0))
    ends = [logs[rows["alpha"] == end].groupby(rows["problem"]).mean() for end in (above, below)]
    found, source = geometric_mean((ends[0] - ends[1]).dropna()), join_sources(rows["source"])
    return estimate(f"claim/{claim}", found, source, scale="log")


def _usps(runs: Runs) -> Iterator[Row]:
    """Whether control variables converge on USPS, by setting; runs that a limit of ours stopped do not say."""
    rows = runs.rows[(runs.rows["method"] == PAPER["titsias"]) & (runs.rows["problem"] == 9)]
    if rows.empty:
        return
    source = join_sources(rows["source"])
    if (rows["status"] == NO_DATA).any():
        no_data = _NOT_COMPARABLE._replace(status=NO_DATA)
        yield estimate("claim/control-variables/usps", no_data, source)
        return
    ran = rows[rows["status"] != STOPPED]
    good = (ran["status"] == OK).groupby(ran["set"]).all()
    yield from _shares("control-variables/usps", good, "experiment4/P9/S{}", source)
    limits = rows["max_controls"][(rows["status"] == STOPPED) & rows["controls_needed"].notna()]
    if len(limits):
        first = join_sources(rows["source"][rows["dataset"] == 0])
        yield estimate("control-variables/usps-limit", limits.max(), first)


def _gap(claim: str, loose: pd.DataFrame, method: str, problem: int | None = None) -> Row:
    """|Difference of log L from the sampler's|, in percent: the median setting, geometric mean over problems.

    Of one problem it is the geometric mean over settings. They share its data set, so its standard error is for other
    settings and not for other data.
    """
    cells = loose[~loose["trivial"] & loose["method"].isin([SAMPLER, method])]
    if problem is not None:
        cells = cells[cells["problem"] == problem]
    wide = cells.pivot(index=["problem", "set"], columns="method", values="log_evidence")
    wide = wide.reindex(columns=[SAMPLER, method]).dropna()
    gaps = 100 * (wide[method] / wide[SAMPLER] - 1).abs().clip(lower=_ROUNDING)
    found = geometric_mean(np.log(gaps.groupby("problem").median() if problem is None else gaps))
    if len(cells) and (cells["status"] == NO_DATA).all():
        found = _NOT_COMPARABLE._replace(status=NO_DATA)
    return estimate(f"claim/{claim}", found, join_sources(cells["source"]), scale="log")


def only_chains(strict: pd.DataFrame) -> Row:
    """Error of expectation propagation over that of the better corrected chain, geometric mean over problems."""
    certified = strict[strict["certified"]]
    wide = certified.pivot(index=["problem", "set"], columns="method", values="mae_reference")
    wide = wide.reindex(columns=["ep", "ess", "hmc"])
    logs = np.log(wide["ep"]) - np.log(wide[["ess", "hmc"]].min(axis=1))
    source = join_sources(certified.loc[certified["method"].isin(wide.columns), "source"])
    found = geometric_mean(logs.dropna().groupby("problem").mean())
    return estimate("claim/only/chains", found, source, scale="log")


def run_gaps(runs: Runs) -> pd.DataFrame:
    """Log evidence of single runs of the sampler less the reference: an average hides what one of them is off.

    These are all settings in which the two methods of the reference agree in log evidence. A setting may be
    uncertified for another reason, such as a second method that is not as exact as a certificate asks for: its
    standard error counts here with that of the first.
    """
    rows = runs.first[(runs.first["method"] == SAMPLER) & (runs.first["status"] == OK)]
    found = rows[~rows["trivial"] & (rows["z"].astype(float).abs() < _MAX_Z)]
    errors = found[["log_evidence_se", "reference_se", "certifier_se"]].astype(float)
    gap = found["log_evidence"] - found["reference"].astype(float)
    joint = np.sqrt((errors**2).sum(axis=1, skipna=False))
    return found.assign(gap=gap, joint_se=joint)


def works(runs: Runs) -> Iterator[pd.DataFrame | list[Row]]:
    """Whether a run of the sampler gives no answer, and how many nats each is off: every one of them has to be right.

    The largest error is what a run says of itself. It is an estimate too: its degrees of freedom are those with which
    the squares of the standard errors of replicates scatter, and no more than the randomisations of the reference give.
    """
    rows = runs.rows[(runs.rows["method"] == SAMPLER) & (runs.rows["status"] != NO_DATA)]
    failed = (rows["status"] != OK).astype(float)
    unit = "experiment4/P{problem}/dataset{dataset}/S{set}/run{replicate}"
    yield measured(rows, "claim/works/no-failure", failed, unit=unit, scale="linear")
    gaps = run_gaps(runs)
    source = join_sources(gaps["source"])
    counts = {"hard/runs": (rows, len(rows)), "hard/judged": (gaps, len(gaps))}
    yield [estimate(name, n, join_sources(of["source"])) for name, (of, n) in counts.items()]
    squares = gaps["log_evidence_se"].pow(2).groupby([gaps["problem"], gaps["set"]])
    scatter = float((squares.var() / squares.mean() ** 2).mean())  # of chi-squared it is 2 / df
    if math.isnan(scatter):  # no setting has two runs
        yield [estimate("claim/works/right", _NOT_COMPARABLE, source)]
    else:
        fewest = float(gaps["known_sets"].min()) - 1.0
        df = min(2 / scatter, fewest) if scatter > 0 else fewest
        given = {"unit": "experiment4/P{problem}/S{set}", "run": gaps["replicate"]}
        off = measured(gaps, "claim/works/right", gaps["gap"].abs(), scale="linear", **given)
        yield off.assign(se=gaps["joint_se"], df=df)
    if len(gaps):
        worst = gaps.loc[gaps["gap"].abs().idxmax()]
        here = gaps[(gaps["problem"] == worst["problem"]) & (gaps["set"] == worst["set"])]
        own, where = math.sqrt((here["log_evidence_se"] ** 2).mean()), join_sources(here["source"])
        yield [
            estimate("hard/replicates", len(here), where),
            estimate("hard/own", Known(own, math.nan), where, scale="log"),
        ]


def mae_post_ranges(runs: Runs, strict: pd.DataFrame, published: Path) -> Iterator[Row]:
    """Range of MAE-POST over data sets, and how many published values lie in it.

    It is known by Laplace's approximation, whose bias can be larger than data sets differ: all are multiplied by the
    sampler's value over Laplace's on the first data set.
    """
    drawn = join_sources(runs.spread["source"])
    wide = complete_means(strict, "mae_post", [SAMPLER, "laplace"])
    factor = (wide[SAMPLER] / wide["laplace"]).dropna()
    scaled = data_set_means(runs)
    scaled = scaled.mul(factor, level="problem").dropna()
    ends = scaled.groupby("problem").agg(["min", "max"])
    for problem, low, high in ends.itertuples():
        yield estimate(f"mae-post/data-sets/P{problem}/low", low, drawn)
        yield estimate(f"mae-post/data-sets/P{problem}/high", high, drawn)
    cells = published_cells(published, "table4/P{problem}/{paper}/mae-post")
    cells = cells[cells["problem"].isin(ends.index)].join(ends, on="problem")
    inside = cells["value"].between(cells["min"], cells["max"])
    yield estimate("mae-post/inside", inside.sum(), drawn)
    yield estimate("mae-post/inside-of", len(inside), drawn)
