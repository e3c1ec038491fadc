"""The advice for the marginal likelihood: whether its stated error covers, meets the tolerance, and what it costs.

Runs of the rule are measured by a longer run of twisted EP with other random numbers. The stated interval is the 95 %
one by Student's t, with the joint standard error of both (``covered``), or as it is stated (``covered-alone``). An
error and the tolerance are compared as they are. Shares have Clopper and Pearson's 95 % interval. A tolerance is in
thousandths of a nat in the ids. Ratios of seconds are of means by problem, to the run of twisted EP at its defaults;
``seconds-share`` is the ratio of their totals.

On the real data sets there are the errors of further methods, with the truth of the study of scaling, from the same two
long runs. Test probabilities are compared with those of twisted EP's long run, and those of a method that has a long
run with the other's.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from gpcmc.rectangle.rounds import student
from recheck.judge.measures import OK, join_sources
from studies.atiya2021.experiments.advice import FIT, FITTED, TRUTH
from studies.atiya2021.experiments.scaling import REFERENCES
from studies.atiya2021.measures.common import Known, Row, combine, each, estimate, estimates, timed
from studies.atiya2021.measures.long_runs import FIRST, SECOND, scored, truths
from studies.atiya2021.measures.scaling import LENGTH, SAMPLER, seconds_at
from studies.common.measuring import Rows

#: Nats: an error below it is small.
SMALL = 0.1
#: Of a log evidence; smaller errors are not told from rounding.
ROUNDING = 1e-9
#: Of the stated interval, and of intervals of shares.
LEVEL = 0.95

_COLUMNS = ["row", "data", "kernel", "method", "inference", "status", "N", "dataset", "inputs"]
_COLUMNS += ["test", "alpha", "beta"]
_NUMBERS = ["log_evidence", "log_evidence_se", "log_loss", "error_rate", "evaluations"]
_RULE = ["tolerance", "replicate", "samples", "rounds", "effective_eves"]
_TEXT = ["seed", "at_bound"]


def measure(given: Rows) -> pd.DataFrame:
    """All measures of the experiment."""
    rows = read(given)
    if rows.empty:
        return combine()
    arrays = predictions(given.arrays("advice"))
    real = rows[(rows["kernel"] == FITTED) & rows["replicate"].isna()]
    real = real.assign(kernel=real["data"])  # by which data sets go in the study of scaling
    at, known = optima(real[~real["method"].isin([FIT, TRUTH])])
    runs = _with_predictions(at, real, arrays)
    fits = real[real["method"] == FIT]
    return combine(
        _followed(judged(rows)),
        _data_sets(real, known, arrays),
        _runs(runs),
        _over_all(runs),
        _fits(fits),
        _closer(runs),
        _costs(real, fits),
    )


def read(given: Rows) -> pd.DataFrame:
    """The lines that have data."""
    rows = timed(given, "advice", _COLUMNS, optional=[*_NUMBERS, *_RULE, *LENGTH, *_TEXT])
    numbers = [*_NUMBERS, *_RULE, *LENGTH, "cpu_seconds", "alpha", "beta"]
    rows[numbers] = rows[numbers].astype(float)
    return rows


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs of EP, of twisted EP at its defaults and of the rule, with their distance from the longer run."""
    known = rows[rows["method"] == TRUTH].set_index("data")
    chosen = rows["replicate"].notna() | rows["method"].isin(["ep", FIRST])
    runs = rows[chosen & rows["data"].isin(known.index)].reset_index(drop=True)
    truth = known.loc[runs["data"]].reset_index()
    difference = runs["log_evidence"] - truth["log_evidence"]
    randomizations = runs["randomizations"].fillna(_randomizations())
    width = [student(LEVEL, int(number)) for number in randomizations]
    joint = np.hypot(runs["log_evidence_se"], truth["log_evidence_se"])
    pairs = zip(runs["source"], truth["source"], strict=True)
    return runs.assign(
        error=difference.abs(),
        truth_se=truth["log_evidence_se"],
        covered=difference.abs() <= width * joint,
        low=difference < -(width * joint),
        covered_alone=difference.abs() <= width * runs["log_evidence_se"],
        both=[join_sources(pair) for pair in pairs],
    )


def _randomizations() -> int:
    """Those of a run of the rule, the library's default."""
    from gpcmc.rectangle.classification import Twisted

    return Twisted().randomizations


def _followed(runs: pd.DataFrame) -> Iterator[Row]:
    """The rule, EP and twisted EP at its defaults, over all problems and over groups of these."""
    real = runs["kernel"] == FITTED
    groups = {"all": runs, "real": runs[real], "simulated": runs[~real]}
    groups |= dict(iter(runs[~real].groupby("kernel", sort=False)))
    for (kernel, n), group in runs[~real].groupby(["kernel", "N"], sort=False):
        groups[f"{kernel}-N{n}"] = group
    for name, group in groups.items():
        for method, own in group[group["replicate"].isna()].groupby("method", sort=False):
            if name != "real":  # whose methods have the truth of two long runs
                yield from _of_method(f"advice/{name}/{method}/", own)
        default = group[group["method"] == FIRST].set_index("data")["cpu_seconds"]
        for tolerance, own in group[group["replicate"].notna()].groupby("tolerance"):
            path = f"advice/{name}/tolerance-{1000 * float(str(tolerance)):.0f}/"
            yield from _of_rule(path, own, default)


def _of_method(path: str, runs: pd.DataFrame) -> Iterator[Row]:
    source = join_sources(runs["both"])
    found = {"runs": len(runs), "median": runs["error"].median(), "largest": runs["error"].max()}
    found |= _seconds(runs)
    yield from estimates(path, found, source)


def _seconds(runs: pd.DataFrame) -> dict[str, float]:
    """Of one run in the median, and of all."""
    return {"seconds": runs["cpu_seconds"].median(), "seconds-total": runs["cpu_seconds"].sum()}


def _of_rule(path: str, runs: pd.DataFrame, default: pd.Series) -> Iterator[Row]:
    """How often the rule keeps what it says, and its seconds.

    ``reached`` counts the runs that say so; ``within`` those whose error is at most the tolerance; ``first`` those of
    one round, of which ``first-covered`` cover; ``low`` those that lie below an interval that does not cover; ``blind``
    those whose stated error is below that of the longer run; ``cheaper`` the problems on which the rule takes fewer
    seconds than the default, of ``problems``.
    """
    source, count = join_sources(runs["both"]), len(runs)
    covered = int(runs["covered"].sum())
    tolerance = runs["tolerance"].iloc[0]
    found: dict[str, float] = {"runs": count, "reached": (runs["status"] == OK).sum()}
    found |= {"covered": covered, "covered-share": covered / count}
    found |= _interval(covered, count) | {"low": runs["low"].sum()}
    alone = int(runs["covered_alone"].sum())
    found |= {"covered-alone": alone, "covered-alone-share": alone / count}
    first = runs["rounds"] == 1
    found |= {"within": (runs["error"] <= tolerance).sum(), "first": first.sum()}
    found |= {"first-covered": (first & runs["covered"]).sum()}
    found |= {"blind": (runs["truth_se"] > runs["log_evidence_se"]).sum()}
    found |= {"median": runs["error"].median(), "largest": runs["error"].max()}
    found |= {"largest-se": runs["log_evidence_se"].max(), "samples": runs["samples"].median()}
    found |= _seconds(runs)
    mean = runs.groupby("data")["cpu_seconds"].mean()
    ratio = mean / default.reindex(mean.index)
    found |= {"seconds-share": mean.sum() / default.reindex(mean.index).sum()}
    found |= {"seconds-ratio": ratio.median(), "seconds-ratio-largest": ratio.max()}
    found |= {"cheaper": (ratio < 1.0).sum(), "problems": len(ratio)}
    yield from estimates(path, found, source)


def _interval(count: int, runs: int) -> dict[str, float]:
    """Clopper and Pearson's interval of a share."""
    tail, rest = 0.5 * (1.0 - LEVEL), runs - count
    low = float(betaincinv(count, rest + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, rest, 1.0 - tail)) if rest else 1.0
    return {"covered-low": low, "covered-high": high}


def optima(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the runs of all methods on real data sets, scored, and what stands for the truth there."""
    long = rows["method"].isin([*REFERENCES.values()])
    known = truths(rows[long])
    return scored(rows[~long].reset_index(drop=True), known), known


def predictions(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Test probabilities by the name of their row."""
    found: dict[str, np.ndarray] = {}
    for name, stacked in arrays.items():
        if not name.endswith("/rows"):
            found |= dict(zip(arrays[f"{name}/rows"].tolist(), stacked, strict=True))
    return found


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
        group, path = rows[rows["data"] == data], f"advice/{data}/"
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
    yield from estimates("advice/reference/", found, source)


def _runs(runs: pd.DataFrame) -> Iterator[Row]:
    """Error of log L and of predictions, by data set and method; a bound where the truth does not resolve it."""
    for row in runs.to_dict("records"):
        where, source = f"advice/{row['data']}/{{}}-{row['method']}", row["error_source"]
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
        "seconds": ("cpu_seconds", "median"),
        "seconds-total": ("cpu_seconds", "sum"),
    }
    rows = runs.assign(source=runs["error_source"])
    return each(rows, "method", "advice/real/{method}/{quantity}", quantities)


def _closer(runs: pd.DataFrame) -> Iterator[Row]:
    """On how many data sets a method's test probabilities are closer to the truth than the sampler's."""
    wide = runs.pivot(index="data", columns="method", values="mae")
    source = join_sources(runs["source"])
    for method in sorted({*wide.columns} - {SAMPLER}) if SAMPLER in wide else ():
        both = wide[[method, SAMPLER]].dropna()
        found = (both[method] < both[SAMPLER]).sum()
        yield estimate(f"advice/real/{method}/closer-than-sampler", found, source)


def _costs(at: pd.DataFrame, fits: pd.DataFrame) -> Iterator[Row]:
    """CPU seconds of minimax tilting over those of twisted EP at minimax tilting's own standard error.

    ``dearer`` is the median, ``cheaper`` how often it is below one, of ``data-sets``: of all; of those where the fitted
    variance ends at the upper bound of its search (``bounded``); and of the others (``free``). A data set on which
    either method is exact counts in none. ``falls`` counts those on which the ratio is smaller for minimax tilting's
    long run, whose error is smaller.
    """
    # twisted EP's long run has as many points as its default, so that the longer one tells what a point takes
    names = FIRST, SECOND, TRUTH, REFERENCES[SECOND]
    by = {name: at[at["method"] == name].set_index("data") for name in names}
    if any(own.empty for own in by.values()):
        return
    error = by[SECOND]["log_evidence_se"]
    error = error[(error > 0) & (by[FIRST]["log_evidence_se"].reindex(error.index) > 0)]
    short, own, long, longer = (by[name].loc[error.index] for name in names)
    ratio = own["cpu_seconds"] / seconds_at(error, short, long)
    further = longer["cpu_seconds"] / seconds_at(longer["log_evidence_se"], short, long)
    fit = fits.set_index("data").loc[ratio.index]
    # a fit may also end at the lower bound, or at one of the length scale
    most = fit["at_bound"].astype(str).eq("True") & (fit["beta"] == fits["beta"].max())
    source = join_sources(line for one in (short, own, long, longer) for line in one["source"])
    for kind, chosen in (("", most | ~most), ("bounded/", most), ("free/", ~most)):
        found = {"dearer": ratio[chosen].median(), "cheaper": (ratio[chosen] < 1.0).sum()}
        found |= {"falls": (further < ratio)[chosen].sum(), "data-sets": chosen.sum()}
        yield from estimates(f"advice/real/{SECOND}/{kind}", found, source)


def _fits(fits: pd.DataFrame) -> Iterator[Row]:
    """Hyperparameters that are fitted, and how many fits end at a bound of the search."""
    where = "advice/{data}/{quantity}"
    yield from each(fits, "data", where, {"alpha": "alpha", "beta": "beta"})
    quantities: dict[str, Any] = {
        "at-bound": lambda group: group["at_bound"].astype(str).eq("True").sum(),
        "seconds": ("cpu_seconds", "median"),
        "seconds-total": ("cpu_seconds", "sum"),
    }
    yield from each(fits, "method", "advice/real/{method}/{quantity}", quantities)
