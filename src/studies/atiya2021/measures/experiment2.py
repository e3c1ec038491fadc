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
    Known,
    Row,
    combine,
    each,
    estimate,
    geometric_mean,
    measured,
    published_cells,
    raw_rows,
)
from studies.atiya2021.measures.convergence import biases, slopes, variances
from studies.atiya2021.measures.experiment1 import absolute_percentage_error, paper_scheme

_COLUMNS = ["problem", "dataset", "samples", "run", "count", "scheme", "seed", "bias_eq43"]
_FINITE = ["truth", "estimate", "standard_error", "variance_eq44", "mae"]
_UNIT = "experiment2/P{problem}/dataset{dataset}"


def measure(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of Experiment 2."""
    every = raw_rows(root, "experiment2/problem*.csv", [*_COLUMNS, *_FINITE], finite=_FINITE)
    status = paper_scheme(every)
    every["ape"], every["cluster"] = absolute_percentage_error(every), every["dataset"]
    every["nats"] = (every["estimate"] - every["truth"]).abs()
    cell = "P{problem}/M{samples}"
    ids = {"mae": f"table2/{cell}", "ape": f"table3/{cell}", "nats": f"experiment2/{cell}/nats"}
    found: list[Any] = [
        measured(every, template, every[column], unit=_UNIT, run=every["run"], status=status)
        for column, template in ids.items()
    ]
    runs = every[status == OK]
    for table, column in (("table2", "mae"), ("table3", "ape")):
        scored = runs.assign(error=runs[column])
        cells = published_cells(published, f"{table}/P{{problem}}/M{{samples}}")
        found += [slopes(scored, cells, table), _spread(scored, table)]
    found += [variances(_squares(runs), "experiment2"), biases(runs, "experiment2")]
    return combine(*found, _evidence_error(runs))


def _evidence_error(runs: pd.DataFrame) -> list[Row]:
    """Relative error of log L over the error of a probability: geometric mean over problems, all M counting alike."""
    means = np.log(runs.groupby(["problem", "samples"])[["ape", "mae"]].mean())
    ratios = (means["ape"] - math.log(100) - means["mae"]).groupby("problem").mean()
    found, source = geometric_mean(ratios), join_sources(runs["source"])
    return [estimate("claim/tuning/evidence-error", found, source, scale="log")]


def _squares(runs: pd.DataFrame) -> pd.DataFrame:
    """Squared deviations of the log estimate from the mean of the runs on one data set, where there are several."""
    groups = runs.groupby(["problem", "samples", "dataset"])["estimate"]
    size, square = groups.transform("size"), (runs["estimate"] - groups.transform("mean")) ** 2
    # a deviation from the mean of k runs has the variance (k - 1)/k of a run's
    return runs.assign(square=square, weight=(size - 1) / size)[size > 1]


def _spread(runs: pd.DataFrame, table: str) -> Iterator[Row]:
    """How much data sets differ: extremes of their means, and the factor of one standard deviation.

    A data set is easy or hard by much the same factor at every number of samples, so the factor pools them. The weights
    are the squares of the runs a data set, which is best where run noise is all that there is. Run noise is not
    taken off.
    """
    ends = {
        "lowest": lambda rows: rows.groupby("dataset")["error"].mean().min(),
        "highest": lambda rows: rows.groupby("dataset")["error"].mean().max(),
    }
    template = f"spread/{table}/P{{problem}}/M{{samples}}/{{quantity}}"
    yield from each(runs, ["problem", "samples"], template, ends)
    factor = {"factor": _spread_factor}
    yield from each(
        runs, "problem", f"spread/{table}/P{{problem}}/{{quantity}}", factor, scale="log"
    )


def _spread_factor(runs: pd.DataFrame) -> Known:
    by_size = []
    for _, rows in runs.groupby("samples"):
        means = rows.groupby("dataset")["error"].agg(["mean", "size"])
        if len(means) > 1:
            weight = (len(means) - 1) * means["size"].mean() ** 2
            by_size.append((np.log(means["mean"]).var(), weight))
    if not by_size:
        return Known(math.nan, math.nan)
    values, weights = zip(*by_size, strict=True)
    return Known(math.exp(math.sqrt(np.average(values, weights=weights))), math.nan)
