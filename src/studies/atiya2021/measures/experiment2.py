"""Experiment 2: class probabilities and marginal likelihoods of a linear kernel with a known truth (Tables 2 and 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import (
    combine,
    estimate,
    measure,
    published_cells,
    raw_rows,
    whole,
)
from studies.atiya2021.measures.convergence import biases, slopes, variances
from studies.atiya2021.measures.experiment1 import absolute_percentage_error, paper_scheme

__all__ = ["measure_experiment2"]

_COLUMNS = ["problem", "dataset", "samples", "run", "dimension", "count", "scheme", "seed"]
_FINITE = ["truth", "estimate", "standard_error", "variance_eq44", "mae"]
_UNIT = "experiment2/P{problem}/dataset{dataset}"


def measure_experiment2(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of Experiment 2.

    Parameters
    ----------
    root : path
        Folder of the study's results.
    published : path
        Folder with ``cells.csv``.
    reference : path
        Folder of the certified reference; not needed here.
    """
    columns = [*_COLUMNS, *_FINITE, "bias_eq43"]
    every = raw_rows(root, "experiment2/problem*.csv", columns, finite=_FINITE)
    status, every["ape"] = paper_scheme(every), absolute_percentage_error(every)
    every["nats"] = (every["estimate"] - every["truth"]).abs()
    cell = "P{problem}/M{samples}"
    measures = [
        measure(every, template, every[column], unit=_UNIT, run=every["run"], status=status)
        for template, column in (
            (f"table2/{cell}", "mae"),
            (f"table3/{cell}", "ape"),
            (f"experiment2/{cell}/nats", "nats"),
        )
    ]
    runs = every[status == OK].assign(cluster=every["dataset"])
    found: list[Any] = []
    for table, column in (("table2", "mae"), ("table3", "ape")):
        cells = published_cells(published, f"{table}/*")
        cells["problem"] = cells["block"].str[1:].astype(int)
        scored = runs.assign(error=runs[column])
        found += [slopes(scored, cells, table), _spread(scored, cells, table)]
    formula = list(variances(_squares(runs), "experiment2"))
    return combine(*measures, *found, formula, biases(runs, "experiment2"), _counts(runs))


def _counts(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Data sets behind each cell, and the fewest and the most runs on one of them."""
    for (problem, samples), group in runs.groupby(["problem", "samples"]):
        sizes, source = group.groupby("dataset").size(), join_sources(group["source"])
        name = f"experiment2/P{problem}/M{samples}"
        yield whole(f"{name}/data-sets", len(sizes), source)
        yield whole(f"{name}/runs-least", int(sizes.min()), source)
        yield whole(f"{name}/runs-most", int(sizes.max()), source)


def _squares(runs: pd.DataFrame) -> pd.DataFrame:
    """Squared deviations of the log estimate from the mean of the runs on one data set, where there are several."""
    groups = runs.groupby(["problem", "samples", "dataset"])["estimate"]
    size = groups.transform("size")
    # a deviation from the mean of k runs has the variance (k - 1)/k of a run's
    squares = runs.assign(
        square=(runs["estimate"] - groups.transform("mean")) ** 2, weight=(size - 1) / size
    )
    return squares[size > 1]


def _spread(runs: pd.DataFrame, cells: pd.DataFrame, table: str) -> Iterator[dict[str, Any]]:
    """How much data sets differ: extremes of their means, and the factor of one standard deviation.

    A data set is easy or hard by much the same factor at every number of samples, so the factor pools them. The weights
    are the squares of the runs a data set, which is best where run noise is all that there is. Run noise is not
    taken off.
    """
    for problem, group in runs.groupby("problem"):
        variances_, weights, source = [], [], join_sources(group["source"])
        for samples, rows in group.groupby("samples"):
            means = rows.groupby("dataset")["error"].agg(["mean", "size"])
            name, where = f"spread/{table}/P{problem}/M{samples}", join_sources(rows["source"])
            yield whole(f"{name}/lowest", float(means["mean"].min()), where)
            yield whole(f"{name}/highest", float(means["mean"].max()), where)
            printed = cells[(cells["problem"] == problem) & (cells["samples"] == samples)]["value"]
            if len(printed):
                below = int((means["mean"] < printed.iloc[0]).sum())
                yield whole(f"{name}/data-sets-below-published", below, where)
            if len(means) > 1:
                variances_.append(float(np.log(means["mean"]).var()))
                weights.append((len(means) - 1) * float(means["size"].mean()) ** 2)
        if variances_:
            pooled = float(np.average(variances_, weights=weights))
            factor = math.exp(math.sqrt(pooled))
            yield estimate(f"spread/{table}/P{problem}/factor", factor, source, scale="log")
