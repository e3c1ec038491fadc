"""Quantities behind the paper's claims about Experiment 4, and how far single runs of its method are off.

The problem is the unit of replication where several settings or runs share one. At the paper's budget every run counts,
converged or not, as in the paper: `loose` is a summary (`summarise`) of the runs that count by this rule.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpcmc.posterior import STOPPED
from recheck.judge.measures import OK, join_sources, levels_of, with_fields
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import (
    READINGS,
    Known,
    Row,
    estimate,
    geometric_mean,
    measured,
)
from studies.atiya2021.measures.experiment4_runs import PAPER, SAMPLER, Runs, with_known_error
from studies.common.rows import NO_DATA

_NOT_COMPARABLE = Known(status="not comparable")
#: Share of log L below which a gap is rounding.
_ROUNDING = 1e-6
#: Levels under which claims about the methods of Table 4 are judged; of ``variance`` it is each.
_LEVELS = {**dict.fromkeys(("count", "hmc", "ess"), "equal-seconds"), "images": "smoothed"}


def claims(
    runs: Runs, strict: pd.DataFrame, loose: pd.DataFrame, cells: pd.DataFrame, published: Path
) -> Iterator[Row]:
    """The quantity of every claim that Experiment 4 decides, but for those on single runs: `works`."""
    every = runs.spread.groupby(["problem", "dataset"])["mae_post"].mean()
    between = (every.groupby("problem").std() / every.groupby("problem").mean()).dropna()
    drawn = join_sources(runs.spread["source"])
    for level in READINGS:
        table, source = _first_data_sets(cells, "mae-post", level)
        alike = _alike(between, table, join_sources([source, drawn]))
        for row in (*_medians(*_first_data_sets(cells, "mae-med", level)), *alike):
            yield row | {"reading": f"variance={level}"}
    yield estimate("mae-post/data-sets-lowest", 100 * between.min(), drawn)
    yield estimate("mae-post/data-sets-highest", 100 * between.max(), drawn)
    yield from _mae_post(runs, loose, every, published)
    smallest, middle, largest = 0.5, 3.0, 5.0  # length scales of the settings
    yield _seconds("control-variables/slow", loose, PAPER["titsias"], smallest, largest)
    yield _seconds("control-variables/slower", loose, PAPER["titsias"], middle, largest)
    yield _seconds("sampler/same-speed", loose, SAMPLER, smallest, largest)
    yield _only_chains(strict)
    yield from _usps(runs)
    yield _gap("evidence/ess", loose, "ess-gpml")
    yield _gap("evidence/hmc", loose, "hmc-gpml")
    yield _gap("evidence/hmc-usps", loose[loose["problem"] == 9], "hmc-gpml")
    rows = runs.rows[(runs.rows["method"] == SAMPLER) & (runs.rows["problem"] == 2)]
    minutes = (rows["cpu_seconds"] / rows["samples"] * 1e6 / 60).dropna()
    if len(minutes):
        found = Known(minutes.mean(), minutes.sem(), status="not comparable")
        yield estimate("claim/matlab-seconds", found, join_sources(rows["source"]), scale="log")


def _first_data_sets(cells: pd.DataFrame, metric: str, level: str) -> tuple[pd.DataFrame, str]:
    """Cells of Table 4 on first data sets, means over runs, by problem (rows) and the paper's method; their source."""
    rows = with_fields(cells[cells["status"] == OK], f"table4/P{{problem}}/{{paper}}/{metric}")
    levels = {**_LEVELS, "variance": level}
    fits = rows["reading"].map(lambda reading: levels_of(reading).items() <= levels.items())
    rows = rows[fits.astype(bool) & rows["unit"].str.endswith("/dataset0")]
    table = rows.astype({"problem": int}).pivot_table("value", "problem", "paper")
    return table.reindex(columns=[*PAPER]), join_sources(rows["source"])


def _shares(claim: str, inside: pd.Series, unit: str, source: str) -> Iterator[Row]:
    """A share: one row a unit, which is the index of `inside`, with the value 0 or 1."""
    if inside.empty:
        yield estimate(f"claim/{claim}", _NOT_COMPARABLE, source)
    for place, yes in inside.items():
        found = Known(float(yes))
        yield estimate(f"claim/{claim}", found, source, unit=unit.format(place))


def _medians(table: pd.DataFrame, source: str) -> Iterator[Row]:
    """MAE-MED of first data sets: how far all but HMC are from the median, and whether HMC is furthest."""
    close = geometric_mean(np.log(table.drop(columns="hmc")).mean(axis=1).dropna())
    yield estimate("claim/median/close", close, source, scale="log")
    both = table.dropna(subset="hmc")
    furthest = both["hmc"] > both.drop(columns="hmc").max(axis=1)
    yield from _shares("median/hmc", furthest, "experiment4/P{}", source)


def _alike(between: pd.Series, table: pd.DataFrame, source: str) -> Iterator[Row]:
    """Whether methods differ by less in MAE-POST than data sets do, whose relative deviation is `between`."""
    several = table[table.count(axis=1) > 1]
    methods = (several.max(axis=1) - several.min(axis=1)) / several.mean(axis=1)
    methods, data_sets = methods.dropna().align(between, join="inner")
    yield from _shares("mae-post/alike", methods < data_sets, "experiment4/P{}", source)


def _mae_post(runs: Runs, loose: pd.DataFrame, every: pd.Series, published: Path) -> Iterator[Row]:
    """MAE-POST of data sets (`every`): whether a larger training set helps, and how many published values lie within.

    It is known by one cheap method. Its bias can be larger than data sets differ, so the range that published values
    are set beside is multiplied by the sampler's value over this method's on the first data set.
    """
    logs, drawn = np.log(every), join_sources(runs.spread["source"])
    if {1, 6} <= set(logs.index.get_level_values(0)):
        large, small = logs[6], logs[1]
        value, se = math.exp(large.mean() - small.mean()), math.hypot(large.sem(), small.sem())
        df = min(len(large), len(small)) - 1.0
        known = Known(value, value * se, df, OK if math.isfinite(se) else "not comparable")
        yield estimate("claim/mae-post/size", known, drawn, scale="log")
    both = [SAMPLER, *runs.spread["method"].unique()[:1]]
    own = loose[loose["method"].isin(both)].groupby(["problem", "method"])
    wide = own["mae_post"].agg(lambda values: values.mean(skipna=False)).unstack()
    wide = wide.reindex(columns=both)
    scaled = every.mul(wide[both[0]] / wide[both[-1]], level="problem").dropna()
    ends = (
        scaled.groupby("problem")
        .quantile([0.05, 0.95])
        .unstack()
        .reindex(columns=[0.05, 0.95])
        .set_axis(["q05", "q95"], axis=1)
    )
    cells = common.published_cells(published, "table4/P{problem}/{paper}/mae-post")
    cells = cells.join(ends, on="problem", how="inner")
    inside = cells["value"].between(cells["q05"], cells["q95"])
    yield estimate("mae-post/inside", inside.sum(), drawn)
    yield estimate("mae-post/inside-of", len(inside), drawn)


def _only_chains(strict: pd.DataFrame) -> Row:
    """Error of expectation propagation over that of the better re-engineered chain, geometric mean over problems."""
    certified = strict[strict["certified"]]
    wide = certified.pivot(index=["problem", "set"], columns="method", values="mae_reference")
    wide = wide.reindex(columns=["ep", "ess", "hmc"])
    logs = np.log(wide["ep"]) - np.log(wide[["ess", "hmc"]].min(axis=1))
    source = join_sources(certified.loc[certified["method"].isin(wide.columns), "source"])
    found = geometric_mean(logs.dropna().groupby("problem").mean())
    return estimate("claim/only/chains", found, source, scale="log")


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
        yield estimate("claim/control-variables/usps", Known(status=NO_DATA), source)
        return
    ran = rows[rows["status"] != STOPPED]
    good = (ran["status"] == OK).groupby(ran["set"]).all()
    yield from _shares("control-variables/usps", good, "experiment4/P9/S{}", source)
    limits = rows["max_controls"][(rows["status"] == STOPPED) & rows["controls_needed"].notna()]
    if len(limits):
        first = join_sources(rows["source"][rows["dataset"] == 0])
        yield estimate("control-variables/usps-limit", limits.max(), first)


def _gap(claim: str, loose: pd.DataFrame, method: str) -> Row:
    """|Difference of log L from the sampler's|, in percent: the median setting, geometric mean over problems.

    Of one problem it is the geometric mean over settings. They share its data set, so its standard error is for other
    settings and not for other data.
    """
    cells = loose[~loose["trivial"] & loose["method"].isin([SAMPLER, method])]
    wide = cells.pivot(index=["problem", "set"], columns="method", values="log_evidence")
    wide = wide.reindex(columns=[SAMPLER, method]).dropna()
    gaps = 100 * (wide[method] / wide[SAMPLER] - 1).abs().clip(lower=_ROUNDING)
    one = claim.endswith("usps")
    found = geometric_mean(np.log(gaps if one else gaps.groupby("problem").median()))
    if len(cells) and (cells["status"] == NO_DATA).all():
        found = _NOT_COMPARABLE._replace(status=NO_DATA)
    return estimate(f"claim/{claim}", found, join_sources(cells["source"]), scale="log")


def works(runs: Runs) -> Iterator[Any]:
    """Whether a run of the sampler gives no answer, and how many nats each is off: every one of them has to be right.

    An average hides what a run is off. How far off a finished run is, is no random quantity: it is known as well as the
    reference is, and what the run says of its own error has no part in it. Its standard error here is that of the
    reference, with that of the method which certifies it.
    """
    rows = runs.rows[(runs.rows["method"] == SAMPLER) & (runs.rows["status"] != NO_DATA)]
    rows = rows.assign(failed=rows["log_evidence"].isna())
    unit = "experiment4/P{problem}/dataset{dataset}/S{set}/run{replicate}"
    yield measured(rows, "claim/works/no-failure", "failed", unit=unit, scale="linear")
    gaps = with_known_error(rows)
    yield estimate("hard/runs", len(rows), join_sources(rows["source"]))
    yield estimate("hard/judged", len(gaps), join_sources(gaps["source"]))
    if gaps.empty:
        yield estimate("claim/works/right", _NOT_COMPARABLE, join_sources(gaps["source"]))
        return
    given = {"unit": "experiment4/P{problem}/S{set}", "run": "replicate", "scale": "linear"}
    known = {"se": gaps["known_se"], "df": gaps["known_sets"].astype(float) - 1.0}
    yield measured(gaps, "claim/works/right", "off", **given).assign(**known)
    worst = gaps.loc[gaps["off"].idxmax()]
    here = gaps[(gaps["problem"] == worst["problem"]) & (gaps["set"] == worst["set"])]
    own, where = math.sqrt((here["log_evidence_se"] ** 2).mean()), join_sources(here["source"])
    yield estimate("hard/replicates", len(here), where)
    yield estimate("hard/own", Known(own), where, scale="log")
    for quantity in ("samples", "populations"):
        yield estimate(f"hard/{quantity}", float(worst[f"work_{quantity}"]), where)
