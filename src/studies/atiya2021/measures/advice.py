"""Packaged data sets: errors at fitted hyperparameters, and whether they change predictions or the choice of a point.

The truth of log L is that of the study of scaling, from the same two long runs. Test probabilities are compared with
those of twisted EP's long run, and those of a method that has a long run with the other's. Among the points of the grid
twisted EP judges: what a method's choice loses is the evidence there less that of the best point, by twisted EP.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.experiments.packaged import REFERENCES
from studies.atiya2021.measures.common import (
    Known,
    Row,
    by_eves,
    combine,
    each,
    estimate,
    estimates,
    timed,
)
from studies.atiya2021.measures.long_runs import FIRST, LARGE, SECOND, WIDTH, scored, truths
from studies.atiya2021.measures.scaling import LENGTH, SAMPLER, seconds_at
from studies.common.measuring import Rows

#: Nats: an error below it is small.
SMALL = 0.1
#: The point of the grid at which EP's search ended.
CENTRE = "grid4"
#: Of a log evidence; smaller errors are not told from rounding.
ROUNDING = 1e-9

_COLUMNS = ["row", "data", "stage", "point", "method", "inference", "status", "N", "inputs", "test"]
_COLUMNS += ["alpha", "beta"]
_NUMBERS = ["log_evidence", "log_evidence_se", "log_loss", "error_rate", "evaluations"]
_RULE = ["tolerance", "replicate", "samples", "stated_error", "effective_eves"]
_TEXT = ["seed", "chosen", "at_bound"]


def measure(given: Rows) -> pd.DataFrame:
    """All measures of packaged data sets but those of the rule."""
    rows = read(given)
    if rows.empty:
        return combine()
    arrays = predictions(given.arrays("packaged"))
    at, known = optima(rows)
    runs = _with_predictions(at, rows, arrays)
    chosen = choices(rows[rows["stage"] == "grid"])
    return combine(
        _data_sets(rows, known, arrays),
        _runs(runs),
        _over_all(runs),
        _choices(chosen),
        _fits(rows),
        _own_optimum(rows[rows["stage"] == "grid"], arrays),
        _closer(runs),
        _costs(rows[rows["stage"] == "optimum"], rows[rows["stage"] == "fit"]),
        _eves(runs, rows[rows["stage"] == "grid"]),
    )


def read(given: Rows) -> pd.DataFrame:
    """The lines of packaged data sets that have data; with the columns by which those of the study of scaling go."""
    rows = timed(given, "packaged", _COLUMNS, optional=[*_NUMBERS, *_RULE, *LENGTH, *_TEXT])
    numbers = [*_NUMBERS, *_RULE, *LENGTH, "cpu_seconds", "alpha", "beta"]
    rows[numbers] = rows[numbers].astype(float)
    return rows.assign(kernel=rows["data"], dataset=0)


def optima(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the runs of all methods at the optimum of EP, scored, and what stands for the truth there."""
    at = rows[rows["stage"] == "optimum"]
    long = at["method"].isin([*REFERENCES.values()])
    known = truths(at[long])
    return scored(at[~long].reset_index(drop=True), known), known


def predictions(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Test probabilities by the name of their row."""
    found: dict[str, np.ndarray] = {}
    for name, stacked in arrays.items():
        if not name.endswith("/rows"):
            found |= dict(zip(arrays[f"{name}/rows"].tolist(), stacked, strict=True))
    return found


def choices(grid: pd.DataFrame) -> pd.DataFrame:
    """The point of the grid that each method finds best: a line a data set and method.

    ``lost`` is how much more evidence twisted EP's best point has, by twisted EP, and ``own`` whether it is the same
    point; ``centre`` whether the choice is the middle of the grid, where EP's search ended; ``log_loss`` is that of
    twisted EP's predictions at the choice less that at the best point.
    """
    found = []
    for data, group in grid.groupby("data", sort=False):
        judge = group[group["method"] == FIRST].set_index("point")
        if judge["log_evidence"].isna().all():
            continue
        best = judge["log_evidence"].idxmax()
        for method, own in group.groupby("method", sort=False):
            there = own.dropna(subset=["log_evidence"]).set_index("point")["log_evidence"]
            if there.empty or method == FIRST:
                continue
            gap = judge.loc[best] if there.idxmax() == best else judge.loc[there.idxmax()]
            lost = judge.loc[best, "log_evidence"] - gap["log_evidence"]
            se = np.hypot(judge.loc[best, "log_evidence_se"], gap["log_evidence_se"])
            more = gap["log_loss"] - judge.loc[best, "log_loss"]
            line = {"data": data, "method": method, "lost": lost, "lost_se": se if lost else 0.0}
            line |= {"own": there.idxmax() == best, "centre": there.idxmax() == CENTRE}
            source = join_sources([*own["source"], *judge["source"]])
            found.append(line | {"log_loss": more, "source": source})
    columns = ["data", "method", "lost", "lost_se", "own", "centre", "log_loss", "source"]
    return pd.DataFrame(found, columns=columns)


def _with_predictions(
    runs: pd.DataFrame, rows: pd.DataFrame, arrays: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Runs with ``mae``, the mean absolute error of their test probabilities, and ``decisions`` that differ."""
    names = rows.set_index(["data", "method"])["row"]
    found = []
    for row in runs.to_dict("records"):
        against = REFERENCES[SECOND if row["inference"] == FIRST else FIRST]
        found.append(_apart(arrays, row["row"], names.get((row["data"], against), "")))
    mae, decisions = zip(*found, strict=True) if found else ((), ())
    return runs.assign(mae=mae, decisions=decisions)


def _apart(arrays: Mapping[str, np.ndarray], row: str, truth: str) -> tuple[float, float]:
    """Mean absolute difference of the test probabilities of two rows, and how many change class; NaN without them."""
    if not {row, truth} <= arrays.keys():
        return np.nan, np.nan
    own, true = arrays[row], arrays[truth]
    return float(np.mean(np.abs(own - true))), float(np.sum((own >= 0.5) != (true >= 0.5)))


def _data_sets(
    rows: pd.DataFrame, known: pd.DataFrame, arrays: Mapping[str, np.ndarray]
) -> Iterator[Row]:
    """What each data set is, what stands for its truth, and how far the two long runs are apart."""
    named = rows.set_index(["data", "method"])["row"]
    for (data, n, _), truth in known.iterrows():
        group, path = rows[rows["data"] == data], f"packaged/{data}/"
        source = truth["source_combined"]
        yield estimate(f"{path}N", n, source)
        for name in ("inputs", "test"):
            yield estimate(f"{path}{name}", group[name].iloc[0], source)
        value = Known(truth["value_combined"], truth["se_combined"])
        yield estimate(f"{path}log-evidence", value, source)
        for name, column in (("z", "z"), ("agree", "agree"), ("se", "se_combined")):
            yield estimate(f"{path}{name}-reference", truth[column], source)
        first, second = (named.get((data, REFERENCES[one]), "") for one in (FIRST, SECOND))
        mae, _ = _apart(arrays, first, second)
        if not np.isnan(mae):
            yield estimate(f"{path}mae-reference", mae, source)
    source = join_sources(known["source_combined"])
    found = {"data-sets": len(known), "agree": known["agree"].sum()}
    if known["z"].notna().any():
        found |= {"largest-z": known["z"].abs().max()}
    found |= {"largest-se": known["se_combined"].max()}
    yield from estimates("packaged/reference/", found, source)


def _runs(runs: pd.DataFrame) -> Iterator[Row]:
    """Error of log L and of predictions, by data set and method; a bound where the truth does not resolve it."""
    for row in runs.to_dict("records"):
        where, source = f"packaged/{row['data']}/{{}}-{row['method']}", row["error_source"]
        least = ROUNDING * abs(row["truth_value"])
        status = "at most" if row["bound"] or row["error"] < least else OK
        error = Known(max(row["error"], least), 0.0, status=status)
        if row["failed"]:
            error = Known(status=row["status"])
        yield estimate(where.format("error"), error, source)
        yield estimate(where.format("flagged"), row["flagged"], row["source"])
        for name in ("mae", "decisions", "log_loss", "error_rate", "cpu_seconds"):
            yield estimate(where.format(name.replace("_", "-")), row[name], source)


def _over_all(runs: pd.DataFrame) -> Iterator[Row]:
    """Over data sets: errors, how many are certainly small or large, and what they do to predictions."""
    quantities: dict[str, Any] = {
        "runs": len,
        "flagged": ("flagged", "sum"),
        "small": lambda group: (group["error"] <= SMALL).sum(),
        "right": ("right", "sum"),
        "wrong": ("wrong", "sum"),
        "failed": ("failed", "sum"),
        "wrong-flagged": lambda group: (group["wrong"] & group["flagged"]).sum(),
        "median": ("error", "median"),
        "largest": ("error", "max"),
        "mean-mae": ("mae", "mean"),
        "largest-mae": ("mae", "max"),
        "decisions": ("decisions", "sum"),
        "tests": ("test", "sum"),
        "log-loss": ("log_loss", "mean"),
        "seconds": ("cpu_seconds", "sum"),
    }
    rows = runs.assign(source=runs["error_source"])
    return each(rows, "method", "packaged/all/{method}/{quantity}", quantities)


def _choices(chosen: pd.DataFrame) -> Iterator[Row]:
    """What the choice of each method among the points loses, by data set and over all."""
    for row in chosen.to_dict("records"):
        lost, path = Known(row["lost"], row["lost_se"]), f"packaged/{row['data']}/"
        yield estimate(f"{path}lost-{row['method']}", lost, row["source"])
    quantities: dict[str, Any] = {
        "same": ("own", "sum"),
        "runs": len,
        "centre": ("centre", "sum"),
        "centre-same": lambda group: (group["own"] & group["centre"]).sum(),
        "median": ("lost", "median"),
        "largest": ("lost", "max"),
        "small": lambda group: (group["lost"] <= SMALL).sum(),
        "log-loss": ("log_loss", "mean"),
        "largest-log-loss": ("log_loss", "max"),
    }
    yield from each(chosen, "method", "packaged/all/{method}/choice-{quantity}", quantities)


def _own_optimum(grid: pd.DataFrame, arrays: Mapping[str, np.ndarray]) -> Iterator[Row]:
    """The errors of Laplace's method at its own optimum, where twisted EP stands for the truth.

    Of log L, and of test probabilities: their mean error over data sets, and the patterns that change class.
    """
    there = grid[grid["point"] == "laplace"].set_index("data")
    own, judge = (there[there["method"] == name] for name in ("laplace", FIRST))
    error = (own["log_evidence"] - judge["log_evidence"]).abs().dropna()
    source = join_sources([*own["source"], *judge["source"]])
    found = {"median": error.median(), "largest": error.max(), "wrong": (error > LARGE).sum()}
    rows = zip(own.loc[error.index, "row"], judge.loc[error.index, "row"], strict=True)
    apart = np.array([_apart(arrays, *pair) for pair in rows]).reshape(-1, 2)
    apart = apart[~np.isnan(apart[:, 0])]
    if len(apart):
        found |= {"mean-mae": apart[:, 0].mean(), "decisions": apart[:, 1].sum()}
    if len(error):
        yield from estimates("packaged/all/laplace/own-optimum/", found, source)


def _closer(runs: pd.DataFrame) -> Iterator[Row]:
    """On how many data sets a method's test probabilities are closer to the truth than the sampler's."""
    wide = runs.pivot(index="data", columns="method", values="mae")
    source = join_sources(runs["source"])
    for method in sorted({*wide.columns} - {SAMPLER}) if SAMPLER in wide else ():
        both = wide[[method, SAMPLER]].dropna()
        found = (both[method] < both[SAMPLER]).sum()
        yield estimate(f"packaged/all/{method}/closer-than-sampler", found, source)


def _costs(at: pd.DataFrame, fits: pd.DataFrame) -> Iterator[Row]:
    """CPU seconds of minimax tilting over those of twisted EP at minimax tilting's own standard error.

    ``dearer`` is the median, ``cheaper`` how often it is below one, of ``data-sets``: of all; of those where the fitted
    variance ends at the upper bound of its search (``bounded``); and of the others (``free``). A data set on which
    either method is exact counts in none. ``falls`` counts those on which the ratio is smaller for minimax tilting's
    long run, whose error is smaller.
    """
    names = FIRST, SECOND, *REFERENCES.values()
    by = {name: at[at["method"] == name].set_index("data") for name in names}
    if any(own.empty for own in by.values()):
        return
    error = by[SECOND]["log_evidence_se"]
    error = error[(error > 0) & (by[FIRST]["log_evidence_se"].reindex(error.index) > 0)]
    short, own, long, longer = (by[name].loc[error.index] for name in names)
    ratio = own["cpu_seconds"] / seconds_at(error, short, long)
    further = longer["cpu_seconds"] / seconds_at(longer["log_evidence_se"], short, long)
    fit = fits[fits["method"] == "fit-ep"].set_index("data").loc[ratio.index]
    # a fit may also end at the lower bound, or at one of the length scale
    most = fit["at_bound"].astype(str).eq("True") & (fit["beta"] == fits["beta"].max())
    source = join_sources(line for one in (short, own, long, longer) for line in one["source"])
    for kind, chosen in (("", most | ~most), ("bounded/", most), ("free/", ~most)):
        found = {"dearer": ratio[chosen].median(), "cheaper": (ratio[chosen] < 1.0).sum()}
        found |= {"falls": (further < ratio)[chosen].sum(), "data-sets": chosen.sum()}
        yield from estimates(f"packaged/all/{SECOND}/{kind}", found, source)


def _eves(runs: pd.DataFrame, grid: pd.DataFrame) -> Iterator[Row]:
    """Effective eves of the sampler's runs that are off by more than a nat, and of those that are not.

    On the grid twisted EP stands for the truth.
    """
    keys = ["data", "point"]
    judge = grid.loc[grid["method"] == FIRST, [*keys, "log_evidence", "log_evidence_se"]]
    tried = grid.merge(judge, on=keys, suffixes=("", "_truth"))
    size = (tried["log_evidence"] - tried["log_evidence_truth"]).abs()
    width = WIDTH * tried["log_evidence_se_truth"]
    tried = tried.assign(wrong=size - width > LARGE, right=size + width <= LARGE)
    own = pd.concat([runs, tried], ignore_index=True)
    own = own[own["method"].str.startswith(SAMPLER)]
    kinds = {"off": own["wrong"], "right": own["right"]}
    # on the grid, runs at ten points share the data set and their random numbers
    kinds |= {"off-grid": own["wrong"] & own["stage"].eq("grid")}
    yield from by_eves("packaged/eves/", own, kinds)
    off = own[kinds["off-grid"]]
    yield estimate(
        "packaged/eves/off-grid/data-sets", off["data"].nunique(), join_sources(off["source"])
    )


def _fits(rows: pd.DataFrame) -> Iterator[Row]:
    """Hyperparameters that are fitted, and what Laplace's optimum loses against EP's."""
    fits = rows[rows["stage"] == "fit"]
    where = "packaged/{data}/{quantity}-{method}"
    yield from each(fits, ["data", "method"], where, {"alpha": "alpha", "beta": "beta"})
    quantities: dict[str, Any] = {
        "at-bound": lambda group: group["at_bound"].astype(str).eq("True").sum(),
        "seconds": ("cpu_seconds", "sum"),
    }
    yield from each(fits, "method", "packaged/all/{method}/{quantity}", quantities)
    judge = rows[(rows["stage"] == "grid") & (rows["method"] == FIRST)]
    points = judge.pivot(index="data", columns="point", values=["log_evidence", "log_loss"])
    if len(points):
        source = join_sources(judge["source"])
        behind = points["log_evidence"].max(axis=1) - points["log_evidence"][CENTRE]
        yield estimate("packaged/all/fit-ep/lost", behind.max(), source)
        lost = points["log_evidence"][CENTRE] - points["log_evidence"]["laplace"]
        more = points["log_loss"]["laplace"] - points["log_loss"][CENTRE]
        found = {"largest": lost.max(), "median": lost.median(), "log-loss": more.mean()}
        yield from estimates("packaged/all/laplace-optimum/", found, source)
        for data in points.index:
            yield estimate(f"packaged/{data}/lost-laplace-optimum", lost[data], source)
