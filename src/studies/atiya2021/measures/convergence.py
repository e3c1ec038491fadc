"""How the sampler's errors behave in Experiments 1 and 2: slopes, and the paper's formulas (43) and (44).

Runs on one problem instance (Experiment 1) or data set (Experiment 2) resemble one another. All standard errors here
leave out one of these clusters at a time, and rest on as many degrees of freedom as there are clusters, less one.

A frame of runs has the columns ``problem``, ``samples``, ``cluster``, ``truth``, ``estimate``, ``standard_error``,
``bias_eq43``, ``variance_eq44`` and ``source``. For `variances` it also has ``square``, the squared deviation of the
log estimate, and ``weight``: square / weight is an unbiased estimate of the variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import PRINTED, Known, Row, each, estimate


def jackknife_ratio(above: pd.Series, below: pd.Series, clusters: pd.Series) -> Known:
    """Ratio of two sums. For its standard error the terms of one cluster are left out together."""
    above, below = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    sums = pd.DataFrame({"above": above, "below": below}).groupby(clusters.to_numpy()).sum()
    n = len(sums)
    value = float(above.sum() / below.sum()) if below.sum() > 0 else math.nan
    left = sums.sum() - sums
    if n < 2 or not (left["below"] > 0).all():
        return Known(value, math.nan, n - 1.0, "one instance or data set only")
    values = (left["above"] / left["below"]).to_numpy()
    se = float(np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum()))
    return Known(value, se, n - 1.0, OK if math.isfinite(se) else "one instance or data set only")


def _clusters(runs: pd.DataFrame) -> pd.Series:
    """Clusters of all problems together."""
    return runs["problem"].astype(str) + "/" + runs["cluster"].astype(str)


def variances(runs: pd.DataFrame, experiment: str) -> Iterator[Row]:
    """Measured variance of the log estimate over Eq. (44), and over the sampler's own squared standard error.

    Sums over the runs of a problem are of M times a variance, which hardly depends on M. Over all problems every run
    counts alike.
    """
    if runs.empty:
        return
    samples, own = runs["samples"].astype(float), runs["standard_error"] ** 2
    terms = runs.assign(
        measured=samples * runs["square"],
        predicted=samples * runs["weight"] * runs["variance_eq44"],
        own=samples * runs["weight"] * own,
    )
    template = f"variance/{experiment}/P{{problem}}/{{quantity}}"
    quantities = {
        "ratio": lambda g: jackknife_ratio(g["measured"], g["predicted"], g["cluster"]),
        "own-ratio": lambda g: jackknife_ratio(g["measured"], g["own"], g["cluster"]),
        "measured": lambda g: Known(g["measured"].sum() / g["weight"].sum(), math.nan),
        "predicted": lambda g: Known(g["predicted"].sum() / g["weight"].sum(), math.nan),
    }
    yield from each(terms, "problem", template, quantities, scale="log")
    yield from each(terms, "problem", template, {"runs": len})
    name, source, clusters = (
        f"variance/{experiment}/all",
        join_sources(runs["source"]),
        _clusters(runs),
    )
    for quantity, other in (("ratio", runs["variance_eq44"]), ("own-ratio", own)):
        ratio = jackknife_ratio(runs["square"] / other, runs["weight"], clusters)
        yield estimate(f"{name}/{quantity}", ratio, source, scale="log")
        if quantity == "ratio":
            for claim in [experiment, *(["dependence"] if experiment == "experiment2" else [])]:
                yield estimate(f"claim/variance/{claim}", ratio, source)
    yield estimate(f"{name}/runs", len(runs), source)


def biases(runs: pd.DataFrame, experiment: str) -> Iterator[Row]:
    """Bias of the log estimate over that of Eq. (43).

    Each error is regressed on the bias that Eq. (43) predicts, through the origin, with the inverse of its variance as
    its weight; a right formula has the slope one. Prediction and variance are means over the runs of one problem with
    one number of samples, because those of a single run depend on its own error. The expected bias is minus half of
    the true variance, so the slope should be near the ratio of `variances`.
    """
    if runs.empty:
        return
    error = (runs["estimate"] - runs["truth"]).astype(float)
    cells = runs.assign(own=runs["standard_error"] ** 2).groupby(["problem", "samples"])
    predicted = cells["bias_eq43"].transform("mean").astype(float)
    weight = 1.0 / cells["own"].transform("mean").astype(float)
    ratio = jackknife_ratio(weight * predicted * error, weight * predicted**2, _clusters(runs))
    yield estimate(f"claim/bias/{experiment}", ratio, join_sources(runs["source"]))


def slopes(runs: pd.DataFrame, cells: pd.DataFrame, table: str) -> Iterator[Row]:
    """Slope of log ``error`` against log M, for each column of a table; independent samples have -1/2.

    The published slope is a least-squares line through the column. Ours is the common slope of lines that each cluster
    has for itself, through the logarithms of the errors of single runs, every run counting alike: the logarithm of a
    mean would depend on the number of runs, which differs between sample sizes. The claim is about the mean over
    problems. It is not weighted, because standard errors that rest on few clusters favour what is small by chance.
    """
    found, sources = [], []
    for problem, column in cells.groupby("problem"):
        x = np.log(column["samples"].to_numpy(dtype=float))
        fit, covariance = np.polyfit(x, np.log(column["value"].to_numpy()), 1, cov=True)
        name, line = (
            f"slope/{table}/P{problem}",
            Known(fit[0], covariance[0, 0] ** 0.5, len(x) - 2.0),
        )
        yield estimate(f"{name}/published", line, PRINTED)
        mine = runs[(runs["problem"] == problem) & (runs["error"] > 0)]
        if mine["samples"].nunique() < 3:
            continue
        logs = np.log(mine[["samples", "error"]].astype(float))
        logs -= logs.groupby(mine["cluster"]).transform("mean")
        slope = jackknife_ratio(
            logs["samples"] * logs["error"], logs["samples"] ** 2, mine["cluster"]
        )
        if math.isfinite(slope.value):
            found.append(slope)
            sources.append(join_sources(mine["source"]))
            yield estimate(f"{name}/ours", slope, sources[-1])
    known = [slope for slope in found if slope.status == OK]
    if known:
        parts = np.square([slope.se for slope in known])
        df = float(parts.sum() ** 2 / (parts**2 / [slope.df for slope in known]).sum())
        se = math.sqrt(parts.sum()) / len(known)
        mean = Known(float(np.mean([slope.value for slope in known])), se, df)
        yield estimate(f"claim/slope/{table}", mean, join_sources(sources))
