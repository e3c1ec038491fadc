"""Figures 1 and 2: widths of conditionals, and the spread of estimates."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.measures import as_measures
from studies.common.raw import Row, read_some
from studies.filippone2014.measures.common import log_ratio, row

#: Pairs of variances of log tau whose logarithms of ratios are claims: above the bar, and below it.
_CONDITIONALS = {
    "aa-sa": ("ancillary", "sufficient"),
    "surr-aa": ("surrogate", "ancillary"),
    "marginal": ("marginal", "surrogate"),
}


def measure(root: Path) -> pd.DataFrame:
    """All measures of this part: a unit is a simulated data set."""
    return as_measures([*_conditionals(root), *_spread(root)])


def _conditionals(root: Path) -> list[Row]:
    rows, _ = read_some(root, "evidence/conditionals.csv")
    found = []
    for _, one in rows.iterrows():
        unit = f"figure1/set{one['set']}"
        for name in ("marginal", "sufficient", "ancillary", "surrogate"):
            found.append(row(f"figure1/{name}/variance", unit, one[name], one, scale="log"))
        for name, (above, below) in _CONDITIONALS.items():
            value = log_ratio(one[above], one[below])
            found.append(row(f"claim/conditional/{name}", unit, value, one))
    return found


def _spread(root: Path) -> list[Row]:
    rows, _ = read_some(root, "evidence/spread_n*.csv")
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
    sizes = sorted(rows["n"].unique())
    if len(sizes) > 1:
        found += _sizes(rows, widths, sizes)
    return found


def _sizes(
    rows: pd.DataFrame, widths: dict[tuple[int, int, str, int], float], sizes: list[int]
) -> list[Row]:
    """The width with many cases over that with few: means of logarithms over data sets, which differ between sizes."""
    found = []
    for method, samples in product(rows["method"].unique(), rows["samples"].unique()):
        logs = {
            n: np.log(
                [w for (m, _, *rest), w in widths.items() if m == n and rest == [method, samples]]
            )
            for n in (sizes[0], sizes[-1])
        }
        for k in range(min(map(len, logs.values()))):
            own = rows[(rows["set"] == k) & (rows["method"] == method)]
            value = float(logs[sizes[-1]][k] - logs[sizes[0]][k])
            found.append(
                row("claim/spread/size", f"figure2/set{k}", value, own, run=f"{method}-s{samples}")
            )
    return found


def _curves(rows: pd.DataFrame) -> list[Row]:
    """The curves of Figure 2 for the first data set: log estimates with the log density of the prior."""
    found = []
    for _, one in rows[rows["set"] == 0].iterrows():
        base = f"curve/{one['method']}/n{one['n']}/s{one['samples']}/x{one['log_tau']:.3f}"
        for name in ("low", "mean", "high", "exact"):
            value = one[name] + one["log_prior"]
            error = {"se": one["exact_se"], "df": 7.0} if name == "exact" else {"se": 0.0}
            found.append(row(f"{base}/{name}", "", value, one, **error))
    return found
