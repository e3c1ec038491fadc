"""Measures of Experiment 4: errors against the reference, and the cells of Table 4 under each of their readings.

A run of a cell is one number: its error, averaged over the six hyperparameter settings. With one run a setting these
are the runs with the same replicate; where some do not count, the first of each setting make the first, and so on.
"""

import math
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from recheck.judge.measures import OK, join_sources, levels_of, reading_text, with_fields
from recheck.judge.published import read_published
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import Known, Row, combine, each, estimate, estimates
from studies.atiya2021.measures.experiment4_claims import claims, works
from studies.atiya2021.measures.experiment4_errors import calibration, gains, scatter, seconds
from studies.atiya2021.measures.experiment4_runs import (
    ERRORS,
    PAPER,
    SAMPLER,
    TWISTED,
    Runs,
    from_median,
    read_runs,
    summarise,
)
from studies.atiya2021.names import REAL
from studies.common.measuring import Rows
from studies.common.rows import NO_DATA

#: The problems of the paper; the reliability diagrams leave out what was added.
_NINE = range(1, 10)
#: Bins of equal width of the predicted probability.
_BINS = 10
#: What the row of a method in the configuration ends with, by level of a choice that the paper leaves unsaid.
UNSAID = {
    "orthant": {"million-soft": "-million-soft", "million-hard": "-million-hard"},
    "hmc-gpml": {"20": "-20", "50": "-50", "200": "-200"},
    "ess-gpml": {"400": "-400"},
}
#: Which choice that is, in ``readings.yaml``.
CHOICE = {"orthant": "count", "hmc-gpml": "hmc", "ess-gpml": "ess"}
#: The paper's methods that are chains of the toolbox.
CHAINS = ["ess-gpml", "hmc-gpml"]
#: Hyperparameter settings that a published cell is an average over: (alpha, beta) by number.
_PAIRS = (5.0, 1.0), (5.0, 5.0), (3.0, 2.0), (0.5, 0.5), (3.0, 1.0), (0.5, 3.0)
PUBLISHED_SETTINGS = dict(enumerate(_PAIRS, start=1))
#: Methods whose errors are compared, the error, the end of its ids, and how settings are averaged.
_COMPARED = (
    ("ep", SAMPLER, "mae_reference", "", ("", "means/")),
    ("ep", "hmc", "mae_reference", "", ("means/",)),
    (TWISTED, SAMPLER, "nats", "/nats", ("",)),
)
#: Errors of probabilities and of log L that are all but rounding.
SMALL = 1e-7
#: Beginnings of the columns that cells of Table 4 are read from.
_READ = (
    *("problem", "dataset", "set", "method", "alpha", "beta", "status", "count", "scheme"),
    *("seed", "source", "mae_post", "probability"),
)


def measure(given: Rows) -> pd.DataFrame:
    """All measures of Experiment 4."""
    runs, published = read_runs(given), given.published
    if runs.rows.empty:
        return combine(between_data_sets(runs))
    cells = combine(table4(runs, published))
    # rows that only the readings of Table 4 need
    extra = [name + end for name, ends in UNSAID.items() for end in ends.values()]
    runs = replace(runs, rows=runs.rows[~runs.rows["method"].isin(extra)])
    strict = summarise(runs, runs.first["status"] == OK)
    loose = summarise(runs, runs.first["counts"])
    certified = strict[strict["certified"]]
    keys = ["problem", "set"]
    settings = certified[keys].drop_duplicates()
    known = {"probability-se": "probability_se", "log-evidence-se": "log_evidence_se"}
    settings = settings.join(runs.reference[[*known.values(), "source"]], on=keys)
    errors = {name: (column, "mean") for name, column in known.items()}
    had = runs.rows[runs.rows["samples"].notna() & (runs.rows["status"] != NO_DATA)]
    samples = {"samples": ("samples", "max")}
    return combine(
        cells,
        contrasts(cells),
        between_data_sets(runs),
        _by_setting(strict),
        _over_settings(strict, "certified"),
        _over_settings(loose, "every-run"),
        each(settings, "problem", "experiment4/P{problem}/certified/reference/{quantity}", errors),
        _accuracy(loose[loose["certified"]]),
        _pairs(certified, ""),
        _pairs(loose[loose["certified"]], "-every-run"),
        _ratios(loose[loose["certified"]]),
        calibration(runs),
        scatter(runs),
        seconds(runs, loose),
        gains(loose, strict),
        each(had, ["method", "problem"], "settings/{method}/{quantity}/P{problem}", samples),
        _reliability(runs),
        claims(runs, strict, loose, cells, published),
        works(runs),
    )


def _by_setting(summary: pd.DataFrame) -> Iterator[Row]:
    """Differences of log evidence from the reference by setting, with the standard error of both.

    They say whether two estimates are of one number. How far off a finished run is, is known better: `works`.
    """
    gives = summary.groupby("method")["log_evidence"].transform("count") > 0
    for row in summary[gives].itertuples():
        name = f"experiment4/P{row.problem}/S{row.set}/{row.method}/difference"
        if math.isnan(row.log_evidence):
            yield estimate(name, Known(status=row.status), row.source)
        elif not pd.isna(row.reference):
            se = float(np.hypot(row.log_evidence_se, row.reference_se))
            yield estimate(name, Known(row.log_evidence - row.reference, se), row.source)


def _over_settings(summary: pd.DataFrame, counted: str) -> Iterator[Row]:
    """Averages of errors over certified settings; `counted` says which runs the summary counts.

    A setting with one run is given the mean variance of the others. Only an average over all settings counts, because
    settings differ much more than methods do. One over fewer has a value, and a status that says how many.
    """
    for (problem, method), group in summary.groupby(["problem", "method"]):
        mine = group[group["certified"]]
        for column, last in ERRORS.items():
            there = mine[mine[column].notna()]
            n, found = len(there), Known(status=_absent(summary, group, column))
            if n:
                variances = there[f"{column}_se"] ** 2
                total = float(variances.fillna(variances.mean()).sum(skipna=False))
                status = OK if n == len(mine) else f"{n} of {len(mine)}"
                found = Known(float(there[column].mean()), math.sqrt(total) / n, status=status)
            if found.status:
                name = f"experiment4/P{problem}/{counted}/{method}/{last}"
                yield estimate(name, found, join_sources(mine["source"]), scale="log")


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


def _accuracy(certified: pd.DataFrame) -> Iterator[Row]:
    """Mean and largest errors against the reference of all runs, as a reader of the numbers alone would have them."""
    for method, group in certified.groupby("method"):
        mean, name = Known(group["mae_reference"].mean()), f"accuracy/{method}"
        if math.isfinite(mean.value):
            yield estimate(f"{name}/mean", mean, join_sources(group["source"]), scale="log")
        for worst in group.dropna(subset="nats").nlargest(1, "nats").to_dict("records"):
            largest = Known(worst["nats"])
            yield estimate(f"{name}/nats-largest", largest, worst["source"], scale="log")


def _pairs(certified: pd.DataFrame, end: str) -> Iterator[Row]:
    """In how many settings EP is closer to the reference than a method, and on how many problems the sampler is.

    Compared are means over runs, and of the sampler over all settings of a problem. The ids have `end`, which says
    which runs the summary counts.
    """
    for column, last in {"mae_reference": "", "nats": "/nats"}.items():
        wide = certified.pivot(index=["problem", "set"], columns="method", values=column)
        wide = wide.drop(columns="laplace", errors="ignore")
        yield from _closer(f"ep/{{}}{end}{last}", "ep", wide, certified)
    by_problem = certified.groupby(["problem", "method"])
    for column, last in ERRORS.items():
        means = by_problem[column].agg(lambda errors: errors.mean(skipna=False)).unstack()
        yield from _closer(f"sampler/{{}}{end}/{last}", SAMPLER, means, certified)


def _closer(name: str, one: str, errors: pd.DataFrame, certified: pd.DataFrame) -> Iterator[Row]:
    """How many errors a method has in common with each other one, and how many of its own are smaller.

    ``resolved`` leaves out those of which both are below `SMALL`, if there are any.
    """
    for method in sorted(set(errors) - {one}) if one in errors else ():
        both = errors[[one, method]].dropna()
        if len(both):
            source = join_sources(certified.loc[certified["method"].isin(both.columns), "source"])
            kinds, small = {"": both}, (both < SMALL).all(axis=1)
            if small.any():
                kinds["/resolved"] = both[~small]
            for end, some in kinds.items():
                fewer = (some[one] < some[method]).sum()
                yield estimate(f"{name.format('common')}/{method}{end}", len(some), source)
                yield estimate(f"{name.format('closer')}/{method}{end}", fewer, source)


def _ratios(certified: pd.DataFrame) -> Iterator[Row]:
    """Geometric mean over problems of a method's errors over another's, with its 95 % interval, every run counted.

    Settings share the data of their problem, so that problems are the units: each has the mean of the logarithms over
    its settings, or (``means``) the ratio of its mean errors, to which the settings with large errors contribute most;
    ``below`` counts the problems whose ratio is below one.
    """
    for one, other, column, last, kinds in _COMPARED:
        wide = certified.pivot(index=["problem", "set"], columns="method", values=column)
        both = wide.reindex(columns=[one, other]).dropna()
        source = join_sources(certified.loc[certified["method"].isin(both.columns), "source"])
        for kind in kinds:
            errors = both.groupby(level="problem").mean() if kind == "means/" else both
            errors = errors[(errors > 0.0).all(axis=1)]
            logs = np.log(errors[one] / errors[other]).groupby(level="problem").mean()
            if (n := len(logs)) > 1:
                middle, half = logs.mean(), stdtrit(n - 1, 0.975) * logs.sem()
                found = {"middle": middle, "low": middle - half, "high": middle + half}
                known = {name: np.exp(log) for name, log in found.items()}
                known |= {"below": (logs < 0.0).sum()} if kind else {}
                yield from estimates(f"ratio/{one}-every-run{last}/{other}/{kind}", known, source)


def _reliability(runs: Runs) -> Iterator[Row]:
    """Predicted probability of class 1 against the frequency of class 1, in bins of the prediction.

    Settings in which the prior is the same for every pattern but itself predict one half everywhere and are left out.
    The settings share their test patterns, so the standard error of a frequency counts distinct patterns.
    """
    first = runs.first
    shown = first[(first["status"] == OK) & ~first["trivial"] & first["problem"].isin(_NINE)]
    pieces = []
    for (problem, method, _), rows in shown.groupby(["problem", "method", "set"]):
        found, data = rows["probability"].dropna(), runs.problems.get(problem)
        if not data or not len(found):
            continue
        mean = np.mean(list(found), axis=0)
        columns = {
            "group": REAL.get(problem, "synthetic").replace("_", "-"),
            "method": method,
            "bin": np.minimum((mean * _BINS).astype(int), _BINS - 1),
            "pattern": [f"{problem}/{i}" for i in range(len(mean))],
            "predicted": mean,
            "positive": data["y_test"] > 0,
            "bayes": data["bayes_posterior"],
            "source": "experiment4.npz",
        }
        pieces.append(pd.DataFrame(columns))
    if pieces:
        bins, by = pd.concat(pieces, ignore_index=True), ["group", "method", "bin"]
        quantities = {
            "frequency": _frequency,
            "predicted": ("predicted", "mean"),
            "patterns": ("pattern", "nunique"),
        }
        template = "reliability/{group}/{method}/bin{bin}/{quantity}"
        yield from each(bins, by, template, quantities)
        synthetic = bins[bins["group"] == "synthetic"]
        yield from each(synthetic, by, template, {"bayes": ("bayes", "mean")})


def _frequency(rows: pd.DataFrame) -> Known:
    """Frequency of class 1; half a pattern more on either side keeps a bin of one class from claiming to be exact."""
    n, frequency = rows["pattern"].nunique(), float(rows["positive"].mean())
    smoothed = (frequency * n + 0.5) / (n + 1)
    return Known(frequency, float(np.sqrt(smoothed * (1 - smoothed) / n)))


def table4(runs: Runs, published: Path) -> Iterator[Row]:
    """Rows of all cells of Table 4 under each reading that was run: one a data set and run, or why there is none.

    MAE-MED is a deviation from the median of four methods, or three on USPS: those that have a cell.
    """
    cells = common.published_cells(published, "table4/P{problem}/{paper}/{metric}")
    cells["method"] = cells["paper"].map(PAPER)
    in_median = cells[cells["metric"] == "mae-med"].groupby("problem")["method"].agg(list)
    readings = read_published(published)
    images = {"raw": runs.scanned, "smoothed": runs.rows}
    # of many columns, which would be copied with every cut
    rows = {
        level: dict(
            list(of[[name for name in of if name.startswith(_READ)]].groupby(["problem", "method"]))
        )
        for level, of in images.items()
    }

    @cache  # most readings differ in one of the methods
    def part(
        level: str, problem: int, name: str, column: str, paper: str, count: str
    ) -> "_Part | None":
        found = rows[level].get((problem, name))
        return None if found is None else _Part.of(found, found[column], paper, count)

    for cell in cells.itertuples():
        alone = cell.metric == "mae-post"
        metric = "mae_post" if alone else "probability"
        papers = [cell.method] if alone else in_median[cell.problem]
        for levels in readings.combinations([cell.id], "runs"):
            level, count = levels.get("images", "smoothed"), levels.get("count", "")
            found = {}
            for paper in papers:
                name = paper + UNSAID.get(paper, {}).get(levels.get(CHOICE.get(paper, ""), ""), "")
                read = f"_{levels['variance']}" if paper in CHAINS and "variance" in levels else ""
                found[paper] = part(level, cell.problem, name, metric + read, paper, count)
            parts = {paper: one for paper, one in found.items() if one is not None}
            if len(parts) == len(papers):
                for row in _cell(parts, cell.method, alone):
                    yield estimate(cell.id, **row, reading=reading_text(levels), scale="log")


class _Part(NamedTuple):
    """The runs of one method that a cell takes, by data set, and those of them that count.

    `answers` has what is read of the latter by data set and setting; `refused` says why they are no cell, if so.
    """

    runs: dict[int, pd.DataFrame]
    counted: dict[int, pd.DataFrame]
    answers: dict[tuple[int, int], list[Any]]
    refused: str | None

    @classmethod
    def of(cls, runs: pd.DataFrame, answer: pd.Series, paper: str, count: str) -> "_Part":
        used = runs.assign(answer=answer)[runs["counts"] & answer.notna()]
        answers = used.groupby(["dataset", "set"])["answer"].agg(list).to_dict()
        by_data, counted = (dict(list(some.groupby("dataset"))) for some in (runs, used))
        return cls(by_data, counted, answers, _refused(runs, paper, count))


def _cell(parts: Mapping[str, _Part], method: str, alone: bool) -> Iterator[Row]:
    """One cell under one reading: the mean error against the Bayes posterior, or deviation from the median."""
    if said := next(filter(None, (parts[name].refused for name in sorted(parts))), None):
        yield _row(pd.concat(parts[method].runs), 0, math.nan, status=said)
        return
    for dataset in sorted(set.intersection(*({*one.runs} for one in parts.values()))):
        settings = []
        for number in PUBLISHED_SETTINGS:
            of_set = {name: one.answers.get((dataset, number), []) for name, one in parts.items()}
            settings.append(of_set[method] if alone else from_median(of_set)[method])
        behind = pd.concat([one.runs[dataset] for one in parts.values()])
        if not (n := min(map(len, settings))):
            bad = behind.loc[behind["status"] != OK, "status"]  # the most frequent reason
            status = str(bad.mode().iloc[0]) if len(bad) else "not comparable"
            yield _row(behind, dataset, math.nan, status=status)
            continue
        if alone:
            mine = parts[method].counted[dataset]
            by_run = [rows for _, rows in mine.groupby(mine.groupby("set").cumcount())]
        else:
            by_run = [behind]  # of every run
        made = [_row(rows, dataset, math.nan, seed=common_seed(rows)) for rows in by_run]
        for run, value in enumerate(np.mean([errors[:n] for errors in settings], axis=0)):
            yield made[run if alone else 0] | {"found": Known(value), "run": run}


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


def _refused(rows: pd.DataFrame, method: str, count: str) -> str | None:
    """Why the runs of one method cannot be averaged as the published cell is, or None."""
    if (rows["status"] == NO_DATA).any():
        return NO_DATA
    used = set(zip(rows["set"], rows["alpha"], rows["beta"], strict=True))
    wanted = used == {(number, *pair) for number, pair in PUBLISHED_SETTINGS.items()}
    if method == SAMPLER:  # files of other methods do not say
        counted = "hard" if count == "million-hard" else "soft"
        for column, one in (("count", counted), ("scheme", "bootstrap")):
            wanted &= set(rows[column].dropna()) <= {one}
    return None if wanted else "not comparable"


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
    return common.measured(both, template, change, reading=both["reading"], **given)
