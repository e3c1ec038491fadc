"""Errors of single runs of Experiment 4 beside the errors that they report, and beside their CPU seconds.

Every run counts here, whatever its status: the question is whether a run that is off says so.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.measures.common import (
    OFF,
    Known,
    Row,
    by_eves,
    each,
    estimate,
    estimates,
    eves_of,
    measured,
)
from studies.atiya2021.measures.convergence import jackknife_ratio
from studies.atiya2021.measures.experiment4_runs import (
    ERRORS,
    PAPER,
    SAMPLER,
    TWISTED,
    Runs,
    with_known_error,
)

#: Reported standard errors, in nats, of a run that warns and of one that is confident.
WARNS, CONFIDENT = 0.4, 0.1
#: Degrees of freedom of a standard error that is as good as known.
_MANY = 1e9
#: Methods whose replicates are set beside one another: those whose errors the reference does not resolve.
_REPLICATED = (TWISTED, "minimax-tilting")
#: Reported standard errors below this multiple of log L are rounding.
_ROUNDING = 1e-12
#: The problems with 750 training patterns or more.
LARGE = (6, 9)
#: Length scale of the settings with a rough kernel, and the setting at which the paper makes CPU times equal.
_ROUGH, _EQUAL = 0.5, 1
#: Methods whose CPU seconds and errors stand beside one another: the paper's four, and the re-engineered chains.
TIMED = [*PAPER.values(), "ess", "hmc"]


def calibration(runs: Runs) -> Iterator[Any]:
    """Error in log evidence against reported standard error, by method, over runs whose error the reference gives."""
    first = with_known_error(runs.first)
    drawn = first[first["seed"].notna() & (first["log_evidence_se"] > 0)]
    error = np.hypot(drawn["log_evidence_se"], drawn["reference_se"].astype(float))
    # few randomisations have a wider interval
    degrees = drawn["randomizations"].astype(float).fillna(_MANY) - 1.0
    covered = (drawn["signed"] / error).abs() <= stdtrit(degrees, 0.975)
    drawn = drawn.assign(score=drawn["signed"] / error, covered=covered.astype(float))
    drawn = drawn[~drawn["method"].str.contains("-million|-gpml-")]
    # for the figure, which shows what became of each
    given = {"unit": "experiment4/P{problem}/dataset0", "run": "replicate", "status": "status"}
    place = "calibration/{method}/P{problem}/S{set}/"
    yield measured(drawn, f"{place}error", "off", **given)
    yield measured(drawn, f"{place}reported", "log_evidence_se", **given)
    # a run is a unit
    one = {"unit": "experiment4/P{problem}/S{set}/run{replicate}", "scale": "linear"}
    yield measured(drawn, "calibration/{method}/coverage", "covered", **one)
    off, refused, reported = drawn["off"] > OFF, drawn["status"] != OK, drawn["log_evidence_se"]
    warned, confident = reported >= WARNS, reported <= CONFIDENT
    kinds = {"off": off, "off-warned": off & warned, "off-confident": off & confident}
    kinds |= {"off-refused": off & refused, "off-certified": off & drawn["certified"]}
    kinds |= {"confident": confident, "refused": refused}
    kinds |= {"right": ~off, "right-refused": ~off & refused, "right-warned": ~off & warned}
    flagged = drawn.assign(**{f"is {kind}": of_kind for kind, of_kind in kinds.items()})
    counts = {kind: (f"is {kind}", "sum") for kind in kinds}
    quantities: dict[str, Any] = {"runs": len, "rms-z": _root_mean_square}
    quantities |= {kind: count for kind, count in counts.items() if "right" not in kind}
    quantities |= {"largest-error": ("off", "max")}
    yield from each(flagged, "method", "calibration/{method}/{quantity}", quantities)
    ends = ("off", "off-refused", "off-warned", "right", "right-refused", "right-warned")
    alike = {end: counts[end] for end in ends}
    large = flagged["problem"].isin(LARGE)
    for name, own in {"large": flagged[large], "small": flagged[~large]}.items():
        yield from each(own, "method", f"calibration/{{method}}/{name}/{{quantity}}", alike)
    sure = flagged[confident]
    worst = {"confident-largest-error": ("off", "max"), "confident-rms-z": _root_mean_square}
    yield from each(sure, "method", "calibration/{method}/{quantity}", worst)
    own = flagged[flagged["method"] == SAMPLER]
    wrong_or_right = {"off": own["is off"], "right": own["is right"]}
    wrong_or_right |= {"short": own["is off"] & (own["signed"] < 0)}
    yield from by_eves("calibration/orthant/eves/", own, wrong_or_right)
    wrong = own[own["is off"]]
    pairs = wrong.groupby(["problem", "set"]).ngroups
    yield estimate("calibration/orthant/off-pairs", pairs, join_sources(wrong["source"]))
    few = own[eves_of(own).between(20.0, 50.0, inclusive="left")]
    yield from each(
        few,
        "method",
        "calibration/{method}/eves/{quantity}",
        {"runs-20-50": len, "rms-20-50": _root_mean_square},
    )
    least = {"off-least-reported": ("log_evidence_se", "min")}
    yield from each(flagged[off], "method", "calibration/{method}/{quantity}", least)


def _root_mean_square(runs: pd.DataFrame) -> Known:
    """Root mean square of error over reported standard error; its own leaves out one problem and setting at a time."""
    squares, clusters = runs["score"] ** 2, runs["problem"] * 10 + runs["set"]
    mean = jackknife_ratio(squares, pd.Series(1.0, squares.index), clusters)
    root = math.sqrt(mean.value)
    return Known(root, mean.se / (2.0 * root) if root else 0.0, mean.df)


def scatter(runs: Runs) -> Iterator[Row]:
    """How far replicates of a run are apart, over the standard errors that they report: no reference is needed for it.

    By case, a problem and a setting, the variance of log L between replicates is divided by the mean of the reported
    ones. ``ratio`` is the root of its mean over so many ``cases``, with the 95 % interval by Student's t: replicates
    have random numbers of their own, so that cases are independent. A case counts if its prior is not trivial, all its
    runs pass, and more than rounding is left to chance.

    Of twisted EP also on how many cases the reference's standard error is ``reference-larger``, or its number of draws
    is (``reference-longer``), of so many ``reference-cases`` where both report an error above rounding.
    """
    first = runs.first
    told = first["log_evidence_se"].astype(float)
    drawn = first[first["seed"].notna() & ~first["trivial"] & (told > 0)]
    drawn = drawn.assign(variance=told**2, passed=drawn["status"] == OK)
    for method, own in drawn[drawn["method"].isin(_REPLICATED)].groupby("method"):
        by = own.groupby(["problem", "set"])
        cases = by.agg(
            told=("variance", "mean"), seen=("log_evidence", "var"), all=("passed", "all")
        )
        chance = np.sqrt(cases["told"]) > _ROUNDING * by["log_evidence"].mean().abs()
        path, source = f"calibration/{method}/scatter", join_sources(own["source"])
        if method == TWISTED:
            columns = ["log_evidence_se", "samples", "source"]
            known = runs.reference[columns].join(cases[chance], how="inner")
            draws = by["work_samples"].mean()[known.index]
            larger = known["log_evidence_se"] > np.sqrt(known["told"])
            found = {"cases": len(known), "larger": larger.sum()}
            found |= {"longer": (known["samples"] > draws).sum()}
            both = join_sources([source, *known["source"]])
            yield from estimates(f"{path}/reference-", found, both)
        shares = (cases["seen"] / cases["told"])[chance & cases["all"]].dropna()
        if (n := len(shares)) > 1:
            mean, half = shares.mean(), stdtrit(n - 1, 0.975) * shares.sem()
            ends = {"low": math.sqrt(max(mean - half, 0.0)), "high": math.sqrt(mean + half)}
            found = {"cases": n, "ratio": math.sqrt(mean)} | ends
            yield from estimates(f"{path}/", found, source)


def seconds(runs: Runs, loose: pd.DataFrame) -> Iterator[Row]:
    """CPU seconds of the methods by problem and setting beside their errors, and how unequal the seconds are."""
    rows = loose[loose["method"].isin(TIMED)]
    template = "setting/P{problem}/S{set}/{method}/{quantity}"
    columns = {"seconds": "cpu_seconds", **{last: column for column, last in ERRORS.items()}}
    known = {last: lambda group, c=c: Known(group[c].iloc[0]) for last, c in columns.items()}
    for last, find in known.items():
        there = rows[rows[columns[last]].notna()]
        yield from each(there, ["problem", "set", "method"], template, {last: find}, scale="log")
    stopped = runs.first["status"].str.startswith("stopped") & (
        runs.first["method"] == PAPER["titsias"]
    )
    no_rule = set(
        runs.first.loc[stopped, "problem"]
    )  # the seconds of control variables are no budget
    wide = rows[~rows["problem"].isin(no_rule) & ~rows["trivial"]]
    wide = wide.pivot(index=["problem", "set", "alpha"], columns="method", values="cpu_seconds")
    if SAMPLER not in wide:
        return
    ratios, source = wide.div(wide[SAMPLER], axis=0).reset_index(), join_sources(rows["source"])
    for method in [m for m in TIMED if m in wide and m != SAMPLER]:
        own = ratios.dropna(subset=method)
        rough = own[own["alpha"] == _ROUGH]
        groups = {"equal": own[own["set"] == _EQUAL], "rough": rough}
        groups |= {f"P{problem}/rough": group for problem, group in rough.groupby("problem")}
        for name, group in groups.items():
            ends = ("min", "max") if len(group) else ()
            found = {end: Known(float(group[method].agg(end))) for end in ends}
            yield from estimates(f"budget/{method}/{name}-", found, source, scale="log")


def gains(loose: pd.DataFrame, strict: pd.DataFrame) -> Iterator[Row]:
    """The sampler's mean error over a method's: least, median and most over problems, and the medians themselves.

    Errors are means over certified settings and all runs. A problem counts where all runs of the method passed their
    diagnostics, whatever those of the sampler say; under ``every-run`` all problems count. ``resolved`` counts the
    problems on which most of a method's runs are farther from the reference's log L than two of its standard errors.
    """
    certified = loose[loose["certified"]]
    near = certified["nats"] <= 2.0 * certified["reference_se"].astype(float)
    shares = near[~certified["trivial"]].groupby([certified["problem"], certified["method"]]).mean()
    for method, share in shares.groupby("method"):
        source = join_sources(certified.loc[certified["method"] == method, "source"])
        yield estimate(f"gain/{method}/resolved", (share < 0.5).sum(), source)
    passed = strict[strict["certified"]].groupby(["problem", "method"])["status"]
    passed = passed.agg(lambda found: (found == OK).all()).unstack(fill_value=False)
    for column, last in ERRORS.items():
        means = certified.groupby(["problem", "method"])[column].agg(
            lambda errors: errors.mean(skipna=False)
        )
        means = means.unstack()
        for method in [m for m in means if means[m].notna().any()]:
            source = join_sources(certified.loc[certified["method"] == method, "source"])
            middle = Known(float(means[method].median()))
            yield estimate(f"accuracy/{method}/{last}-median", middle, source, scale="log")
            if SAMPLER not in means or method == SAMPLER:
                continue
            every = (means[SAMPLER] / means[method]).dropna()
            passing = every[passed[method].reindex(every.index)]
            for path, ratio in {"": passing, "every-run/": every}.items():
                name = f"gain/{method}/{last}/{path}"
                yield estimate(f"{name}problems", len(ratio), source)
                ends = ("min", "median", "max") if len(ratio) else ()
                found = {end: Known(float(ratio.agg(end))) for end in ends}
                yield from estimates(name, found, source, scale="log")
