"""Figures 1 and 2: widths of conditionals, the spread of estimates, and the shape of their weights."""

from __future__ import annotations

import numpy as np
import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Row, Rows
from studies.filippone2014.estimates import RANDOMIZATIONS
from studies.filippone2014.measures.common import log_ratio, row

#: Pairs of variances of log tau whose logarithms of ratios are claims: above the bar, and below it.
_CONDITIONALS = {
    "aa-sa": ("ancillary", "sufficient"),
    "surr-aa": ("surrogate", "ancillary"),
    "marginal": ("marginal", "surrogate"),
}


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part: a unit is a simulated data set."""
    return as_measures(
        [
            *_conditionals(given.table("conditionals")),
            *_spread(given.table("spread")),
            *_weights(given.table("weights")),
        ]
    )


def _conditionals(rows: pd.DataFrame) -> list[Row]:
    found = []
    for _, one in rows.iterrows():
        unit = f"figure1/set{one['set']}"
        for name in ("marginal", "sufficient", "ancillary", "surrogate"):
            found.append(row(f"figure1/{name}/variance", unit, one[name], one, scale="log"))
        for name, (above, below) in _CONDITIONALS.items():
            value = log_ratio(one[above], one[below])
            found.append(row(f"claim/conditional/{name}", unit, value, one))
    return found


def _spread(rows: pd.DataFrame) -> list[Row]:
    rows["width"] = rows["high"] - rows["low"]
    found = [*_curves(rows)]
    widths: dict[tuple[int, int, str, int], float] = {}
    sources: dict[tuple[int, int], pd.DataFrame] = {}
    for (n, number, method, samples), own in rows.groupby(["n", "set", "method", "samples"]):
        width = float(np.average(own["width"], weights=own["weight"]))
        widths[n, number, method, samples] = width
        unit = f"figure2/n{n}/set{number}"
        found.append(row(f"figure2/{method}/n{n}/s{samples}/width", unit, width, own, scale="log"))
    for (n, number), own in rows.groupby(["n", "set"]):
        sources[n, number] = own
    few, many = rows["samples"].min(), rows["samples"].max()
    for (n, number), own in sources.items():
        unit = f"figure2/n{n}/set{number}"
        for samples in sorted(rows["samples"].unique()):
            value = log_ratio(*(widths[n, number, m, samples] for m in ("ep", "laplace")))
            found.append(row("claim/spread/ep-laplace", unit, value, own, run=f"s{samples}"))
        for method in sorted(rows["method"].unique()):
            value = log_ratio(widths[n, number, method, many], widths[n, number, method, few])
            if many > few:
                found.append(row("claim/spread/samples", unit, value, own, run=method))
    return [*found, *_sizes(rows, widths)]


def _weights(rows: pd.DataFrame) -> list[Row]:
    found = []
    for _, one in rows.iterrows():
        unit = f"figure2/n{one['n']}/set{one['set']}"
        id = f"figure2/{one['method']}/n{one['n']}/{one['length']}/k-hat"
        found.append(row(id, unit, one["k_hat"], one))
    return found


def _sizes(rows: pd.DataFrame, widths: dict[tuple[int, int, str, int], float]) -> list[Row]:
    """The width with most cases over that with fewest: data sets of different sizes are not pairs.

    Of each data set the mean logarithm over methods and samples; then the difference of the means over data sets, with
    the standard error and the degrees of freedom of Welch's test.
    """
    logs = pd.Series(widths).map(np.log).groupby(level=[0, 1]).mean().groupby(level=0)
    mean, square = logs.mean(), logs.var() / logs.size()
    ends = [mean.index[-1], mean.index[0]]
    if ends[0] == ends[1]:
        return []
    value, error = mean[ends[0]] - mean[ends[1]], np.sqrt(square[ends].sum(skipna=False))
    below = (square[ends] ** 2 / (logs.size()[ends] - 1)).sum(skipna=False)
    own = pd.concat([rows[rows["n"] == n] for n in ends])
    more = {"se": float(error), "df": float(square[ends].sum(skipna=False) ** 2 / below)}
    return [row("claim/spread/size", "", float(value), own, **more)]


def _curves(rows: pd.DataFrame) -> list[Row]:
    """The curves of Figure 2 for the first data set: log estimates with the log density of the prior."""
    found = []
    for _, one in rows[rows["set"] == 0].iterrows():
        base = f"curve/{one['method']}/n{one['n']}/s{one['samples']}/x{one['log_tau']:.3f}"
        for name in ("low", "mean", "high", "exact"):
            value = one[name] + one["log_prior"]
            exact = {"se": one["exact_se"], "df": RANDOMIZATIONS - 1.0}
            error = exact if name == "exact" else {"se": 0.0}
            found.append(row(f"{base}/{name}", "", value, one, **error))
    return found
