"""Experiment 2: class probabilities and marginal likelihoods of a linear kernel with a known truth (Tables 2 and 3)."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import EVES, OFF, Known, Row, each, measured
from studies.atiya2021.measures.convergence import biases, slopes, variances
from studies.atiya2021.measures.experiment1 import absolute_percentage_error, paper_scheme
from studies.common.measuring import Rows

_COLUMNS = ["problem", "dataset", "samples", "run", "count", "scheme", "seed", "bias_eq43"]
_FINITE = ["truth", "estimate", "standard_error", "variance_eq44", "mae"]


def measure(given: Rows) -> pd.DataFrame:
    """All measures of Experiment 2."""
    every = common.table(given, "experiment2", [*_COLUMNS, *_FINITE], finite=_FINITE)
    nats, status = (every["estimate"] - every["truth"]).abs(), paper_scheme(every)
    every = every.assign(ape=absolute_percentage_error(every), nats=nats, cluster=every["dataset"])
    cell, runs = "P{problem}/M{samples}", every[status == OK]
    about = {"unit": "experiment2/P{problem}/dataset{dataset}", "run": "run", "status": status}
    found: list[Any] = [measured(every, f"experiment2/{cell}/nats", "nats", **about)]
    for table, column in (("table2", "mae"), ("table3", "ape")):
        scored = runs.assign(error=runs[column])
        cells = common.published_cells(given.published, f"{table}/P{{problem}}/M{{samples}}")
        found += [measured(every, f"{table}/{cell}", column, **about)]
        found += [slopes(scored, cells, table)]
        factor, template = {"factor": _spread}, f"spread/{table}/P{{problem}}/{{quantity}}"
        found += [each(scored, "problem", template, factor, scale="log")]
    found += [variances(_squares(runs), "experiment2"), biases(runs, "experiment2")]
    return common.combine(found, _evidence_error(runs), _off(runs))


def _evidence_error(runs: pd.DataFrame) -> Iterator[Row]:
    """Relative error of log L over the error of a probability: geometric mean over problems, all M counting alike."""
    means = np.log(runs.groupby(["problem", "samples"])[["ape", "mae"]].mean())
    ratios = (means["ape"] - math.log(100) - means["mae"]).groupby("problem").mean()
    found, source = common.geometric_mean(ratios), join_sources(runs["source"])
    yield common.estimate("claim/tuning/evidence-error", found, source, scale="log")


def _off(runs: pd.DataFrame) -> Iterator[Row]:
    """How many runs are off by more than a nat, how many right, and their effective eves by their standard error."""
    told = runs.assign(log_evidence_se=runs["standard_error"], **{EVES: np.nan})
    kinds = {"off": told["nats"] > OFF, "right": told["nats"] <= OFF}
    yield from common.by_eves("experiment2/eves/", told, kinds)


def _squares(runs: pd.DataFrame) -> pd.DataFrame:
    """Squared deviations of the log estimate from the mean of the runs on one data set, where there are several."""
    groups = runs.groupby(["problem", "samples", "dataset"])["estimate"]
    size, square = groups.transform("size"), (runs["estimate"] - groups.transform("mean")) ** 2
    # a deviation from the mean of k runs has the variance (k - 1)/k of a run's
    return runs.assign(square=square, weight=(size - 1) / size)[size > 1]


def _spread(runs: pd.DataFrame) -> Known:
    """How much data sets differ: the factor of one standard deviation of their means.

    A data set is easy or hard by much the same factor at every number of samples, so the factor pools them. The weights
    are the squares of the runs a data set, which is best where run noise is all that there is. Run noise is not
    taken off.
    """
    means = runs.groupby(["samples", "dataset"])["error"].agg(["mean", "size"])
    by_size = means.assign(mean=np.log(means["mean"])).groupby("samples")
    variance, n = by_size["mean"].var().dropna(), by_size.size()
    weight = ((n - 1) * by_size["size"].mean() ** 2).reindex(variance.index)
    if variance.empty:
        return Known()
    return Known(math.exp(math.sqrt(np.average(variance, weights=weight))), math.nan)
