"""How the sampler's errors behave in Experiments 1 and 2: slopes, and the paper's formulas (43) and (44).

Runs on one problem instance (Experiment 1) or data set (Experiment 2) resemble one another. All standard errors here
leave out one of these clusters at a time, and rest on as many degrees of freedom as there are clusters, less one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import PRINTED, estimate, whole

__all__ = ["Ratio", "biases", "jackknife_ratio", "slopes", "variances"]


class Ratio(NamedTuple):
    """A ratio of sums, its standard error, and the degrees of freedom of that error."""

    value: float
    se: float
    df: float


def jackknife_ratio(above: np.ndarray, below: np.ndarray, clusters: pd.Series) -> Ratio:
    """Ratio of the sum of `above` to the sum of `below`.

    Parameters
    ----------
    above, below : ndarray, shape (n,)
        Terms of the two sums.
    clusters : Series, shape (n,)
        Terms of one cluster are left out together for the standard error.

    Returns
    -------
    Ratio
        The ratio is NaN if the sum below is not positive, the standard error also with one cluster.
    """
    sums = pd.DataFrame({"above": above, "below": below}).groupby(clusters.to_numpy()).sum()
    n = len(sums)
    value = above.sum() / below.sum() if below.sum() > 0 else math.nan
    left = sums.sum() - sums
    if n < 2 or not (left["below"] > 0).all():
        return Ratio(float(value), math.nan, n - 1.0)
    values = (left["above"] / left["below"]).to_numpy()
    se = float(np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum()))
    return Ratio(float(value), se, n - 1.0)


def _ratio_row(name: str, ratio: Ratio, source: str) -> dict[str, Any]:
    status = OK if math.isfinite(ratio.se) else "one instance or data set only"
    return estimate(name, ratio.value, source, se=ratio.se, df=ratio.df, scale="log", status=status)


def variances(frame: pd.DataFrame, experiment: str) -> Iterator[dict[str, Any]]:
    """Measured variance of the log estimate over Eq. (44), and over the sampler's own squared standard error.

    Parameters
    ----------
    frame : DataFrame
        Runs: ``problem``, ``samples``, ``cluster``, ``square`` (squared deviation of the log estimate), ``weight``
        (square / weight is an unbiased estimate of the variance), ``variance_eq44``, ``standard_error``, ``source``.
    experiment : str
        ``experiment1`` or ``experiment2``.

    Yields
    ------
    dict
        Rows ``variance/<experiment>/<block>/<quantity>`` and the claims. The block is ``P1/M10000``, ``P1`` (the sums
        are then of M times a variance, which hardly depends on M) or ``all`` (every run counts alike).
    """
    blocks = [("P{problem}", ["problem"]), ("P{problem}/M{samples}", ["problem", "samples"])]
    for template, keys in blocks:
        for key, group in frame.groupby(keys):
            block = template.format(**dict(zip(keys, key, strict=True)))
            factor = group["samples"].astype(float) if len(keys) == 1 else 1.0
            yield from _variance_block(group, factor, f"variance/{experiment}/{block}")
    if frame.empty:
        return
    source = join_sources(frame["source"])
    clusters = frame["problem"].astype(str) + "/" + frame["cluster"].astype(str)
    weight = frame["weight"].to_numpy()
    for name, other in (
        ("ratio", frame["variance_eq44"]),
        ("own-ratio", frame["standard_error"] ** 2),
    ):
        relative = (frame["square"] / other).to_numpy()
        ratio = jackknife_ratio(relative, weight, clusters)
        yield _ratio_row(f"variance/{experiment}/all/{name}", ratio, source)
        if name == "ratio":  # claims compare differences, as in the first edition
            claims = [experiment] + ["dependence"] * (experiment == "experiment2")
            for claim in claims:
                row = _ratio_row(f"claim/variance/{claim}", ratio, source)
                yield row | {"scale": "linear"}
    yield whole(f"variance/{experiment}/all/runs", len(frame), source)


def _variance_block(
    group: pd.DataFrame, factor: pd.Series | float, name: str
) -> Iterator[dict[str, Any]]:
    source, weight = join_sources(group["source"]), group["weight"].to_numpy()
    square = (factor * group["square"]).to_numpy()
    predicted = (factor * group["weight"] * group["variance_eq44"]).to_numpy()
    own = (factor * group["weight"] * group["standard_error"] ** 2).to_numpy()
    yield _ratio_row(f"{name}/ratio", jackknife_ratio(square, predicted, group["cluster"]), source)
    yield _ratio_row(f"{name}/own-ratio", jackknife_ratio(square, own, group["cluster"]), source)
    for quantity, terms in (("measured", square), ("predicted", predicted), ("own", own)):
        value = float(terms.sum() / weight.sum())
        yield estimate(f"{name}/{quantity}", value, source, scale="log")
    yield whole(f"{name}/runs", len(group), source)


def biases(frame: pd.DataFrame, experiment: str) -> Iterator[dict[str, Any]]:
    """Bias of the log estimate over that of Eq. (43): the row ``claim/bias/<experiment>``.

    Each error of the log estimate is regressed on the bias that Eq. (43) predicts, through the origin, with the inverse
    of its variance as its weight; a right formula has the slope one. Prediction and variance are means over the runs of
    one problem with one number of samples, because those of a single run depend on its own error. The expected bias
    is minus half of the true variance, so the slope should be near the ratio of `variances`.

    Parameters
    ----------
    frame : DataFrame
        Runs: ``problem``, ``samples``, ``cluster``, ``truth``, ``estimate``, ``standard_error``, ``bias_eq43``,
        ``source``.
    experiment : str
        ``experiment1`` or ``experiment2``.
    """
    if frame.empty:
        return
    error = (frame["estimate"] - frame["truth"]).to_numpy(dtype=float)
    cells = frame.assign(own=frame["standard_error"] ** 2).groupby(["problem", "samples"])
    predicted = cells["bias_eq43"].transform("mean").to_numpy(dtype=float)
    weight = 1.0 / cells["own"].transform("mean").to_numpy(dtype=float)
    clusters = frame["problem"].astype(str) + "/" + frame["cluster"].astype(str)
    ratio = jackknife_ratio(weight * predicted * error, weight * predicted**2, clusters)
    source = join_sources(frame["source"])
    # a bias may have either sign
    yield _ratio_row(f"claim/bias/{experiment}", ratio, source) | {"scale": "linear"}


def slopes(frame: pd.DataFrame, cells: pd.DataFrame, table: str) -> Iterator[dict[str, Any]]:
    """Slope of log error against log M, for each column of a table; independent samples have -1/2.

    The published slope is a least-squares line through the column. Ours is the common slope of lines that each cluster
    has for itself, through the logarithms of the errors of single runs, every run counting alike: the logarithm of a
    mean would depend on the number of runs, which differs between sample sizes.

    Parameters
    ----------
    frame : DataFrame
        Runs: ``problem``, ``samples``, ``cluster``, ``error``, ``source``.
    cells : DataFrame
        The published cells of the table (`common.published_cells`) with their ``problem``.
    table : str
        ``table1``, ``table2`` or ``table3``.

    Yields
    ------
    dict
        ``slope/<table>/P1/published``, ``slope/<table>/P1/ours``, and ``claim/slope/<table>``: the mean over problems.
        It is not weighted, because standard errors that rest on few clusters favour what is small by chance.
    """
    found, sources = [], []
    for problem, column in cells.groupby("problem"):
        x = np.log(column["samples"].to_numpy(dtype=float))
        fit, covariance = np.polyfit(x, np.log(column["value"].to_numpy()), 1, cov=True)
        se = float(np.sqrt(covariance[0, 0]))
        name, source = f"slope/{table}/P{problem}", PRINTED
        yield estimate(f"{name}/published", float(fit[0]), source, se=se, df=len(x) - 2.0)
        runs = frame[(frame["problem"] == problem) & (frame["error"] > 0)]
        ratio = _slope_within(runs) if len(runs) else None
        if ratio is None:
            continue
        found.append(ratio)
        sources.append(join_sources(runs["source"]))
        yield _ratio_row(f"{name}/ours", ratio, sources[-1]) | {"scale": "linear"}
    known = [ratio for ratio in found if math.isfinite(ratio.se)]
    if not known:
        return
    parts = np.square([ratio.se for ratio in known])
    df = float(parts.sum() ** 2 / (parts**2 / [ratio.df for ratio in known]).sum())
    value = float(np.mean([ratio.value for ratio in known]))
    se, source = math.sqrt(parts.sum()) / len(known), join_sources(sources)
    yield estimate(f"claim/slope/{table}", value, source, se=se, df=df)
    if table == "table1":
        far = max(abs(ratio.value + 0.5) / ratio.se for ratio in known)
        yield whole("slope/table1/furthest", far, source)


def _slope_within(runs: pd.DataFrame) -> Ratio | None:
    """Common slope of log error against log M with an intercept a cluster; None with fewer than three sample sizes."""
    if runs["samples"].nunique() < 3:
        return None
    clusters = runs["cluster"]
    x, y = (np.log(runs[name].astype(float)) for name in ("samples", "error"))
    x, y = (value - value.groupby(clusters).transform("mean") for value in (x, y))
    below = (x * x).to_numpy()
    return jackknife_ratio((x * y).to_numpy(), below, clusters) if below.sum() > 0 else None
