"""How the sampler's errors behave in Experiments 1 and 2: slopes, and the paper's formulas (43) and (44).

Runs on one problem instance (Experiment 1) or data set (Experiment 2) resemble one another. Standard errors here leave
out one of these clusters at a time, and rest on as many degrees of freedom as there are clusters, less one. Those of
slopes do not: `common_slope` says why.

A frame of runs has the columns ``problem``, ``samples``, ``cluster``, ``truth``, ``estimate``, ``standard_error``,
``bias_eq43``, ``variance_eq44`` and ``source``. For `variances` it also has ``square``, the squared deviation of the
log estimate, and ``weight``: square / weight is an unbiased estimate of the variance.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.measures.common import PRINTED, Known, Row, each, estimate

#: Samples of a long run: as many as most of the paper's.
LONG = 300_000


def jackknife_ratio(above: pd.Series, below: pd.Series, clusters: pd.Series) -> Known:
    """Ratio of two sums. For its standard error the terms of one cluster are left out together."""
    terms = {"above": np.asarray(above, dtype=float), "below": np.asarray(below, dtype=float)}
    sums = pd.DataFrame(terms).groupby(clusters.to_numpy()).sum()
    total, n = {name: of.sum() for name, of in terms.items()}, len(sums)
    value = float(total["above"] / total["below"]) if total["below"] > 0 else math.nan
    left, se = sums.sum() - sums, math.nan
    if n > 1 and (left["below"] > 0).all():
        values = (left["above"] / left["below"]).to_numpy()
        se = float(np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum()))
    return Known(value, se, n - 1.0, OK if math.isfinite(se) else "one instance or data set only")


def _over_all(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of all problems together."""
    cluster = runs["problem"].astype(str) + "/" + runs["cluster"].astype(str)
    return runs.assign(problem="all", cluster=cluster)


#: The measured and the predicted variance, both times M.
_MEANS = {
    name: lambda g, name=name: Known(g[name].sum() / g["weight"].sum())
    for name in ("measured", "predicted")
}


def variances(runs: pd.DataFrame, experiment: str) -> Iterator[Row]:
    """Measured variance of the log estimate over Eq. (44), and over the sampler's own squared standard error.

    Sums over the runs of a problem are of M times a variance, which hardly depends on M. Over all problems every run
    counts alike: its squared deviation is divided by the mean prediction of the runs of its problem and M. A mean of
    ratios to the predictions of single runs would be too large, because these are noisy. ``long`` has the runs of all
    problems with `LONG` samples or more.
    """
    if runs.empty:
        return
    template = f"variance/{experiment}/{{problem}}/{{quantity}}"
    samples = runs["samples"].astype(float)
    runs = runs.assign(own=runs["standard_error"] ** 2, measured=samples * runs["square"])
    single = runs.assign(problem="P" + runs["problem"].astype(str))
    for quantity, column in (("ratio", "variance_eq44"), ("own-ratio", "own")):
        predicted = runs.groupby(["problem", "samples"])[column].transform("mean").astype(float)
        alike = {"measured": runs["square"] / predicted, "predicted": runs["weight"]}
        terms = single.assign(predicted=samples * runs["weight"] * runs[column])
        together = _over_all(runs).assign(**alike)
        terms = pd.concat([terms, together])
        ratio = {quantity: lambda g: jackknife_ratio(g["measured"], g["predicted"], g["cluster"])}
        rows = list(each(terms, "problem", template, ratio, scale="log"))
        yield from rows
        longest = together[samples >= LONG].assign(problem="long")
        yield from each(longest, "problem", template, ratio, scale="log")
        if quantity == "ratio":
            own = terms[terms["problem"] != "all"]
            yield from each(own, "problem", template, _MEANS, scale="log")
        ratios = [row["value"] for row in rows[:-1] if math.isfinite(row["value"])]
        for end, value in zip(("least", "most"), (min(ratios), max(ratios)), strict=True):
            name = f"variance/{experiment}/{end}/{quantity}"
            yield estimate(name, Known(value), rows[-1]["source"], scale="log")
        if quantity == "ratio":
            for claim in [experiment, *(["dependence"] if experiment == "experiment2" else [])]:
                yield rows[-1] | {"id": f"claim/variance/{claim}", "scale": "linear"}
    yield from each(pd.concat([single, _over_all(runs)]), "problem", template, {"runs": len})


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
    clusters = _over_all(runs)["cluster"]
    ratio = jackknife_ratio(weight * predicted * error, weight * predicted**2, clusters)
    yield estimate(f"claim/bias/{experiment}", ratio, join_sources(runs["source"]))


def log_slope(x: pd.Series, y: pd.Series) -> Known:
    """Slope of y against log x, by least squares."""
    fit, covariance = np.polyfit(np.log(x.to_numpy(dtype=float)), y.to_numpy(), 1, cov=True)
    return Known(float(fit[0]), float(covariance[0, 0] ** 0.5), len(x) - 2.0)


def slope_of_means(errors: pd.DataFrame) -> Known:
    """Slope of the logarithm of the mean error on log M, of errors by instance (rows) and M (columns).

    All M share their instances, so that the residuals of a few points about the line say little of the slope's error.
    The standard error leaves out one instance at a time.
    """
    x = np.log(errors.columns.to_numpy(dtype=float))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    known, values = errors.notna().to_numpy(), errors.fillna(0.0).to_numpy(dtype=float)
    total, count, n = values.sum(axis=0), known.sum(axis=0), len(errors)
    value = float(np.log(total / count) @ weights)
    if n < 2 or (count - known < 1).any():
        return Known(value, status="one instance or data set only")
    left = np.log((total - values) / (count - known)) @ weights
    return Known(value, math.sqrt((n - 1.0) * np.var(left)), n - 1.0)


def common_slope(x: pd.Series, y: pd.Series, clusters: pd.Series) -> Known:
    """Least-squares slope of y on x within clusters; for its standard error the variance about the line is pooled by x.

    A slope is known from the runs at the largest M above all, and those are on few clusters. A jackknife over clusters
    is right on average, but it rests on these few: with the design of Experiment 2 it varies by a sixth. The variance
    of single runs is known from all of them. Here it may depend on x in any way, but clusters share the true slope. The
    degrees of freedom at one x are its residuals, less their leverage; Satterthwaite's formula adds them up.
    """
    frame = pd.DataFrame({"x": x, "y": y}).astype(float)
    groups = clusters.to_numpy()
    size = frame.groupby(groups)["x"].transform("size")
    centred = frame - frame.groupby(groups).transform("mean")
    square = centred["x"] ** 2
    below = float(square.sum())
    if not below > 0:
        return Known()
    value = float((centred["x"] * centred["y"]).sum()) / below
    if (square.groupby(groups).sum() > 0).sum() < 2:
        return Known(value, status="one instance or data set only")
    terms = pd.DataFrame({"left": 1.0 - 1.0 / size - square / below, "square": square})
    terms["residual"] = (centred["y"] - value * centred["x"]) ** 2
    levels = terms.groupby(frame["x"].to_numpy()).sum()
    parts = levels["residual"] / levels["left"] * levels["square"] / below**2
    total = float(parts.sum())
    df = total**2 / float((parts**2 / levels["left"]).sum()) if total > 0 else levels["left"].sum()
    return Known(value, math.sqrt(total), float(df))


def slopes(runs: pd.DataFrame, cells: pd.DataFrame, table: str) -> Iterator[Row]:
    """Slope of log ``error`` against log M, for each column of a table; independent samples have -1/2.

    The published slope is a least-squares line through the column. Ours is the common slope of lines that each cluster
    has for itself, through the logarithms of the errors of single runs, every run counting alike: the logarithm of a
    mean would depend on the number of runs, which differs between sample sizes. The claim is about the mean over
    problems. It is not weighted, because standard errors that rest on few clusters favour what is small by chance.
    """
    known, sources = [], []
    for problem, column in cells.groupby("problem"):
        line = log_slope(column["samples"], np.log(column["value"]))
        yield estimate(f"slope/{table}/P{problem}/published", line, PRINTED)
        mine = runs[(runs["problem"] == problem) & (runs["error"] > 0)]
        if mine["samples"].nunique() < 3:
            continue
        logs = np.log(mine[["samples", "error"]].astype(float))
        slope = common_slope(logs["samples"], logs["error"], mine["cluster"])
        source = join_sources(mine["source"])
        if math.isfinite(slope.value):
            yield estimate(f"slope/{table}/P{problem}/ours", slope, source)
            sources.append(source)
            known += [slope] if slope.status == OK else []
    if known:
        parts = np.square([slope.se for slope in known])
        df = float(parts.sum() ** 2 / (parts**2 / [slope.df for slope in known]).sum())
        mean = float(np.mean([slope.value for slope in known]))
        found = Known(mean, math.sqrt(parts.sum()) / len(known), df)
        yield estimate(f"claim/slope/{table}", found, join_sources(sources))
