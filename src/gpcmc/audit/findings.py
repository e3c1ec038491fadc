"""What the published numbers themselves say, and what ours say about the paper's formulas.

Each function returns a table that the typeset paper prints: the brackets of Tables 2 and 3, the
floor of Table 1, the variance formula (44), and the numerical check of misprinted equations.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.special import stdtr

from gpcmc.audit.compare import comparisons
from gpcmc.audit.estimates import (
    HALF_NORMAL,
    Estimator,
    absolute_percentage_error,
    data_set_spread,
    paper_scheme,
)
from gpcmc.audit.published import PUBLISHED_PROBLEMS, half_width
from gpcmc.audit.results import ResultFiles, read_long

__all__ = [
    "bias",
    "brackets",
    "coarse_grid_errors",
    "data_sets",
    "floor",
    "floor_left",
    "overall_variance",
    "slopes",
    "variance",
]

#: A bracket that is more than so many times what the scatter of problems makes it is due to one of them.
BEYOND = 2.0


def brackets(registry: pd.DataFrame) -> pd.DataFrame:
    """Which number of runs makes every bracket of Tables 2 and 3 equal to value/sqrt(runs).

    A standard error varies with the spread of its runs. If instead a bracket is value/sqrt(n), each
    cell confines n to an interval that follows from the rounding of its two numbers, and the
    intervals of all cells overlap.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.

    Returns
    -------
    DataFrame
        One row a (table, problem): ``table``, ``problem``, ``cells``, ``runs_low`` and
        ``runs_high`` (common interval of n; low above high where there is none), ``runs`` (the
        integer inside, missing if none or several), ``ratio_low`` and ``ratio_high`` (extremes of
        value/bracket as printed). Table 1, whose brackets are genuine, is there for contrast.
    """
    rows = []
    frame = registry[registry["table"].isin([1, 2, 3])]
    for (table, problem), group in frame.groupby(["table", "problem"]):
        value, bracket = group["published"].to_numpy(), group["published_bracket"].to_numpy()
        h, k = group["rounding"].to_numpy(), group["printed_bracket"].map(half_width).to_numpy()
        low = float((((value - h) / (bracket + k)) ** 2).max())
        high = float((((value + h) / (bracket - k)) ** 2).min())
        inside = range(math.ceil(low), math.floor(high) + 1) if low <= high else range(0)
        rows.append(
            {
                "table": table,
                "problem": problem,
                "cells": len(group),
                "runs_low": low,
                "runs_high": high,
                "runs": inside[0] if len(inside) == 1 else pd.NA,
                "ratio_low": float((value / bracket).min()),
                "ratio_high": float((value / bracket).max()),
            }
        )
    return pd.DataFrame(rows).astype({"runs": "Int64"})


def coarse_grid_errors(files: ResultFiles) -> pd.DataFrame:
    """Experiment 1 scored against truths from a coarse grid.

    Returns
    -------
    DataFrame
        One row a (dimension, du, samples): ``truth_error`` and ``truth_error_max`` (mean and
        largest absolute percentage error of the coarse truths themselves), ``error`` and
        ``error_se`` (MAPE of our estimates scored against the coarse truths), in percent.
        ``samples`` is missing in rows without estimates.
    """
    grid = read_long("quadrature", files.quadrature)
    runs = paper_scheme(read_long("experiment1", files.experiment1))
    rows = []
    for (dimension, du), coarse in grid.groupby(["dimension", "du"]):
        common = {
            "dimension": dimension,
            "du": du,
            "truth_error": float(coarse["ape_percent"].mean()),
            "truth_error_max": float(coarse["ape_percent"].max()),
        }
        merged = runs[runs["dimension"] == dimension].merge(
            coarse[["instance", "coarse"]], on="instance"
        )
        if merged.empty:
            rows.append({**common, "samples": pd.NA, "error": math.nan, "error_se": math.nan})
        merged["error"] = (
            100 * (merged["estimate"] - merged["coarse"]).abs() / merged["coarse"].abs()
        )
        for samples, group in merged.groupby("samples"):
            rows.append(
                {
                    **common,
                    "samples": samples,
                    "error": float(group["error"].mean()),
                    "error_se": float(group["error"].std() / math.sqrt(len(group))),
                }
            )
    columns = ["dimension", "du", "samples", "truth_error", "truth_error_max", "error", "error_se"]
    return pd.DataFrame(rows, columns=columns).astype({"samples": "Int64"})


def floor(registry: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """The part of Table 1 that does not fall with M.

    If one of the n = 50 truths of a column is wrong by e percent and the other problems have a mean
    error m, then the column shows m + (e - m)/n with a standard error of (e - m)/n, whatever M is.
    So the bracket gives e, and value minus bracket gives m, which can be set beside our error. But only
    where the bracket is not just the scatter of the problems: that of absolute values of normal errors
    is sqrt(pi/2 - 1) of their mean, and a truth is taken out where the bracket is more than `BEYOND`
    times what it makes.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    beside : DataFrame
        `side_by_side`, or the cells of the audit, for our values.

    Returns
    -------
    DataFrame
        One row a cell of Table 1: ``id``, ``dimension``, ``samples``, ``published``, ``bracket``,
        ``outlier`` (e, percent), ``without_outlier`` (m, percent; both NaN where the bracket is scatter),
        ``ours``, ``ours_se``, ``replicates`` (problems behind ours), ``floor``
        (a of the fit a + b M^-1/2 to the published column by least squares of relative residuals).
    """
    table = registry[registry["table"] == 1].merge(
        beside[["id", "ours", "ours_se", "replicates"]], on="id"
    )
    rows = []
    for dimension, group in table.groupby("dimension"):
        group = group.sort_values("samples")
        value = group["published"].to_numpy()
        design = np.column_stack(
            [np.ones(len(group)), group["samples"].to_numpy(dtype=float) ** -0.5]
        )
        fit = np.linalg.lstsq(design / value[:, None], np.ones(len(group)), rcond=None)[0]
        for _, cell in group.iterrows():
            scatter = math.sqrt(HALF_NORMAL / PUBLISHED_PROBLEMS) * cell["published"]
            beyond = cell["published_bracket"] > BEYOND * scatter
            rest = cell["published"] - cell["published_bracket"] if beyond else math.nan
            rows.append(
                {
                    "id": cell["id"],
                    "dimension": dimension,
                    "samples": cell["samples"],
                    "published": cell["published"],
                    "bracket": cell["published_bracket"],
                    "outlier": PUBLISHED_PROBLEMS * cell["published_bracket"] + rest,
                    "without_outlier": rest,
                    "ours": cell["ours"],
                    "ours_se": cell["ours_se"],
                    "replicates": cell["replicates"],
                    "floor": float(fit[0]),
                }
            )
    return pd.DataFrame(rows)


def floor_left(registry: pd.DataFrame, table: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """What is left of a column of Table 1 without its one wrong truth, judged as the audit judges a column.

    Over all sample sizes that a truth is taken out of and that were run. The published side keeps the
    scatter of its other problems, as absolute values of normal errors have it.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    table : DataFrame
        `floor`.
    files : ResultFiles
        Experiment 1.

    Returns
    -------
    DataFrame
        One row a dimension with two such cells or more: ``dimension`` (the index), ``cells``, ``ratio`` and
        ``left`` (geometric means of published over ours, as printed and without that truth), ``left_se``,
        ``p`` (two-sided, of Student's t, that ``left`` is one).
    """
    taken = table.dropna(subset="without_outlier").set_index("id")
    cells = registry[registry["id"].isin(taken.index)]
    rest = cells["id"].map(taken["without_outlier"])
    scatter = rest * math.sqrt(HALF_NORMAL / (PUBLISHED_PROBLEMS - 1))
    cells = cells.assign(printed=cells["published"], published=rest, published_bracket=scatter)
    estimator = Estimator(ResultFiles(experiment1=files.experiment1), registry)
    compared = comparisons(cells, [estimator(cell) for _, cell in cells.iterrows()])
    factors = np.log(cells["printed"] / cells["published"]).groupby(cells["id"]).first()
    rows = []
    for _, column in compared.columns.iterrows():
        mine = compared.cells[compared.cells["column"] == column["id"]]
        rows.append(
            {
                "dimension": int(str(column["id"]).rpartition("N")[2]),
                "cells": column["cells"],
                "ratio": math.exp(mine["id"].map(factors).mean() - column["difference"]),
                "left": math.exp(-column["difference"]),
                "left_se": math.exp(-column["difference"]) * column["sd"],
                "p": 2 * stdtr(column["df"], -abs(column["difference"]) / column["sd"]),
            }
        )
    columns = ["dimension", "cells", "ratio", "left", "left_se", "p"]
    return pd.DataFrame(rows, columns=columns).set_index("dimension")


def _squared_errors(files: ResultFiles) -> pd.DataFrame:
    """Squared deviations of log I-hat, each with the weight that makes square/weight estimate the variance.

    Runs of one ``cluster`` (instance of Experiment 1, data set of Experiment 2) resemble one another.
    """
    first = paper_scheme(read_long("experiment1", files.experiment1)).assign(
        experiment=1, weight=1.0
    )
    first["cluster"] = first["instance"]
    first["square"] = (first["estimate"] - first["truth"]) ** 2
    second = paper_scheme(read_long("experiment2", files.experiment2)).assign(experiment=2)
    second["cluster"] = second["dataset"]
    runs = second.groupby(["problem", "samples", "dataset"])["estimate"]
    size = runs.transform("size")
    second["square"] = (second["estimate"] - runs.transform("mean")) ** 2
    second["weight"] = (
        size - 1
    ) / size  # a deviation from the mean of k runs has variance (k - 1)/k of a run's
    columns = [
        "experiment",
        "problem",
        "dimension",
        "samples",
        "cluster",
        "square",
        "weight",
        "variance_eq44",
        "standard_error",
    ]
    parts = [part[columns] for part in (first, second[size > 1]) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def variance(files: ResultFiles, *, pooled: bool = False) -> pd.DataFrame:
    """Variance of the log estimate: measured, predicted by Eq. (44), and by our own standard errors.

    In Experiment 1 the measured variance is the mean square of log I-hat - log I over the problems
    of one dimension (Eq. (43)'s bias is of order 1/M and far below it); in Experiment 2 it is the
    variance between runs on a data set, averaged over data sets. The ratios are ratios of sums;
    their standard errors leave out one problem (Experiment 1) or data set (Experiment 2) in turn with
    all of its runs, because runs on the same one resemble one another. They rest on as many degrees
    of freedom as there are of those, less one.

    Parameters
    ----------
    files : ResultFiles
        Experiments 1 and 2.
    pooled : bool
        One row for all sample sizes of a problem: the sums are of M times the variances, which
        hardly depend on M.

    Returns
    -------
    DataFrame
        One row an (experiment, problem, samples): ``dimension``, ``runs``, ``measured``,
        ``predicted`` (Eq. 44), ``own`` (mean squared standard error of the sampler), ``ratio``
        (measured/predicted), ``ratio_se``, ``own_ratio`` (measured/own), ``own_ratio_se``. If
        pooled, ``samples`` is missing and the three variances are M times a variance.
    """
    frame = _squared_errors(files)
    keys = ["experiment", "problem", "dimension"]
    rows = []
    for key, group in frame.groupby(keys if pooled else [*keys, "samples"]):
        scale = group["samples"].to_numpy(dtype=float) if pooled else np.ones(len(group))
        square, weight = scale * group["square"].to_numpy(), group["weight"].to_numpy()
        predicted = scale * weight * group["variance_eq44"].to_numpy()
        own = scale * weight * group["standard_error"].to_numpy() ** 2
        row = dict(zip([*keys, "samples"], [*key, pd.NA], strict=False))
        row |= {"runs": len(group), "measured": square.sum() / weight.sum()}
        for name, other in (("predicted", predicted), ("own", own)):
            ratio = "ratio" if name == "predicted" else "own_ratio"
            row |= {name: other.sum() / weight.sum(), ratio: square.sum() / other.sum()}
            row[f"{ratio}_se"] = _jackknife_ratio(square, other, group["cluster"])
        rows.append(row)
    columns = [
        *[
            "experiment",
            "problem",
            "dimension",
            "samples",
            "runs",
            "measured",
            "predicted",
            "ratio",
            "ratio_se",
        ],
        *["own", "own_ratio", "own_ratio_se"],
    ]
    return pd.DataFrame(rows, columns=columns).astype({"samples": "Int64"})


def overall_variance(files: ResultFiles) -> pd.DataFrame:
    """The two ratios of `variance` with all problems and sample sizes pooled; every run counts alike.

    The standard errors are those of `variance`.

    Returns
    -------
    DataFrame
        One row an experiment: ``experiment``, ``runs``, ``ratio``, ``ratio_se``, ``own_ratio``,
        ``own_ratio_se``, ``clusters`` (problems or data sets behind the standard errors).
    """
    rows = []
    for experiment, group in _squared_errors(files).groupby("experiment"):
        square, weight = group["square"].to_numpy(), group["weight"].to_numpy()
        clusters = group["problem"].astype(str) + "/" + group["cluster"].astype(str)
        row: dict[str, float] = {"experiment": experiment, "runs": len(group)}
        row["clusters"] = clusters.nunique()
        for name, variances in (
            ("ratio", group["variance_eq44"]),
            ("own_ratio", group["standard_error"] ** 2),
        ):
            relative = square / variances.to_numpy()
            row |= {
                name: relative.sum() / weight.sum(),
                f"{name}_se": _jackknife_ratio(relative, weight, clusters),
            }
        rows.append(row)
    return pd.DataFrame(
        rows,
        columns=[
            "experiment",
            "runs",
            "ratio",
            "ratio_se",
            "own_ratio",
            "own_ratio_se",
            "clusters",
        ],
    )


def bias(files: ResultFiles) -> pd.DataFrame:
    """Bias of the log estimate over that of Eq. (43), by experiment.

    Each error of log I-hat is regressed on the bias that Eq. (43) predicts, through the origin and with the inverse
    of its variance as its weight; a right formula has the slope one. Prediction and variance are means over the
    runs of one problem with one sample size: those of a single run go with its own error. Half the
    true variance is the bias to be expected, so the slope should be near the ratio of `variance`.

    Returns
    -------
    DataFrame
        One row an experiment: ``experiment``, ``runs``, ``ratio``, ``ratio_se`` (leaving out one problem of
        Experiment 1 or data set of Experiment 2 in turn), ``clusters``.
    """
    rows = []
    for experiment, kind, name in ((1, "experiment1", "instance"), (2, "experiment2", "dataset")):
        frame = paper_scheme(read_long(kind, getattr(files, kind)))
        if frame.empty:
            continue
        error = (frame["estimate"] - frame["truth"]).to_numpy()
        cells = frame.assign(own=frame["standard_error"] ** 2).groupby(["problem", "samples"])
        predicted = cells["bias_eq43"].transform("mean").to_numpy(dtype=float)
        weight = 1.0 / cells["own"].transform("mean").to_numpy(dtype=float)
        above, below = weight * predicted * error, weight * predicted**2
        clusters = frame["problem"].astype(str) + "/" + frame[name].astype(str)
        row: dict[str, float] = {"experiment": experiment, "runs": len(frame)}
        row |= {"ratio": above.sum() / below.sum() if below.sum() > 0 else math.nan}
        row |= {"ratio_se": _jackknife_ratio(above, below, clusters)}
        rows.append(row | {"clusters": clusters.nunique()})
    return pd.DataFrame(rows, columns=["experiment", "runs", "ratio", "ratio_se", "clusters"])


def slopes(registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """Slope of log error against log M, of each column of Tables 1 to 3; independent samples have -1/2.

    Sample sizes have different numbers of problems and runs, so ours is not a line through the
    column: it is the common slope of lines that each problem of Experiment 1, each data set of
    Experiment 2, has for itself, through the logarithms of the errors of single runs, every run
    counting alike. (The logarithm of a mean of runs would depend on their number.)

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        Experiments 1 and 2.

    Returns
    -------
    DataFrame
        One row a (table, problem): ``published``, ``published_se`` (least squares over the sample
        sizes), ``ours``, ``ours_se`` (leaving out one problem or data set in turn); NaN with fewer
        than three sample sizes, and the standard error with one problem or data set; ``clusters``, how many
        of these there are.
    """
    first = paper_scheme(read_long("experiment1", files.experiment1))
    second = paper_scheme(read_long("experiment2", files.experiment2))
    errors = {
        1: first.assign(error=absolute_percentage_error(first), cluster=first["instance"]),
        2: second.assign(error=second["mae"], cluster=second["dataset"]),
        3: second.assign(error=absolute_percentage_error(second), cluster=second["dataset"]),
    }
    rows = []
    for (table, problem), cells in registry[registry["table"] < 4].groupby(["table", "problem"]):
        x = np.log(cells["samples"].to_numpy(dtype=float))
        fit, covariance = np.polyfit(x, np.log(cells["published"].to_numpy()), 1, cov=True)
        frame = errors[table]
        mine = frame[(frame["problem"] == problem) & (frame["error"] > 0)]
        ours, se = _slope_within(mine)
        rows.append(
            {
                "table": table,
                "problem": problem,
                "published": float(fit[0]),
                "published_se": float(np.sqrt(covariance[0, 0])),
                "ours": ours,
                "ours_se": se,
                "clusters": mine["cluster"].nunique(),
            }
        )
    return pd.DataFrame(rows)


def _slope_within(runs: pd.DataFrame) -> tuple[float, float]:
    """Common slope of log error against log M with an intercept a cluster, and its jackknife error."""
    if runs["samples"].nunique() < 3:
        return math.nan, math.nan
    clusters = runs["cluster"]
    x, y = (np.log(runs[name].astype(float)) for name in ("samples", "error"))
    x, y = (value - value.groupby(clusters).transform("mean") for value in (x, y))
    above, below = (x * y).to_numpy(), (x * x).to_numpy()
    if not below.sum() > 0:
        return math.nan, math.nan
    return float(above.sum() / below.sum()), _jackknife_ratio(above, below, clusters)


def _jackknife_ratio(above: np.ndarray, below: np.ndarray, clusters: pd.Series) -> float:
    """Standard error of sum(above)/sum(below) by leaving out each cluster of entries in turn."""
    sums = pd.DataFrame({"above": above, "below": below}).groupby(clusters.to_numpy()).sum()
    left = sums.sum() - sums
    n = len(sums)
    if n < 2 or not (left["below"] > 0).all():
        return math.nan
    values = (left["above"] / left["below"]).to_numpy()
    return float(np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum()))


def data_sets(registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """The spread between data sets in Experiment 2, beside the published cell, which rests on one.

    Returns
    -------
    DataFrame
        One row a (table, problem, samples): ``data_sets``, ``runs`` (rows), ``mean``, ``lowest``,
        ``highest`` (over data sets), ``factor`` (exp of the standard deviation of the log of a data
        set's mean, pooled over sample sizes), ``published``, ``below`` (data sets with a smaller
        error than the published one).
    """
    frame = paper_scheme(read_long("experiment2", files.experiment2))
    rows = []
    for table, metric in ((2, "mae"), (3, "mape")):
        for problem, group in frame.groupby("problem"):
            error = group["mae"] if metric == "mae" else absolute_percentage_error(group)
            spread = data_set_spread(group, error)
            for samples, means in spread.means.groupby("samples"):
                cell = registry[
                    (registry["table"] == table)
                    & (registry["problem"] == problem)
                    & (registry["samples"] == samples)
                ]
                published = float(cell["published"].iloc[0]) if len(cell) else math.nan
                rows.append(
                    {
                        "table": table,
                        "problem": problem,
                        "samples": samples,
                        "data_sets": len(means),
                        "runs": int(means["runs"].sum()),
                        "mean": float(means["mean"].mean()),
                        "lowest": float(means["mean"].min()),
                        "highest": float(means["mean"].max()),
                        "factor": math.exp(math.sqrt(spread.between.variance))
                        if spread.between.df > 0
                        else math.nan,
                        "published": published,
                        "below": int((means["mean"] < published).sum()),
                    }
                )
    columns = [
        *[
            "table",
            "problem",
            "samples",
            "data_sets",
            "runs",
            "mean",
            "lowest",
            "highest",
            "factor",
        ],
        *["published", "below"],
    ]
    return pd.DataFrame(rows, columns=columns)
