"""Error against CPU seconds: rows of Experiment 4 with parts of their counts, where the reference is certified.

A method has one point for each part, and one for the whole counts, which are those of Experiment 4. Between them its
error is interpolated, so that two methods are compared at equal CPU seconds on every problem and setting.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from recheck.judge.measures import join_sources
from studies.atiya2021.measures.common import Row, combine, estimate, measured
from studies.atiya2021.measures.experiment4_runs import read_runs
from studies.common.measuring import Rows

#: What is measured of a run, and its column.
_QUANTITIES = {"seconds": "cpu_seconds", "nats": "nats", "mae": "mae_reference"}
#: Where one error of a method is measured.
_PLACE = ["problem", "set"]
SAMPLER = "orthant"


def measure(given: Rows) -> pd.DataFrame:
    """All measures of the benchmark: on first data sets, where the prior is not trivial; the part 1 is the whole."""
    rows = [read_runs(given, experiment).first for experiment in ("benchmark", "experiment4")]
    every = pd.concat([of[of["certified"] & ~of["trivial"]] for of in rows], ignore_index=True)
    named = every["method"].str.extract(r"(?P<method>.*?)(?:-part(?P<part>\d+))?$")
    every = every.assign(method=named["method"], part=named["part"].fillna("1"))
    keys = ["problem", "method"]
    every = every[(every["part"] != "1").groupby([every[key] for key in keys]).transform("any")]
    common = {"unit": "experiment4/P{problem}/dataset0", "run": "replicate", "status": "status"}
    path = "benchmark/P{problem}/S{set}/{method}/part{part}/"
    points = [
        measured(every.dropna(subset=column), path + quantity, column, **common)
        for quantity, column in _QUANTITIES.items()
    ]
    return combine(points, _equal(every, "nats"), _equal(every, "mae"))


def _equal(runs: pd.DataFrame, quantity: str) -> Iterator[Row]:
    """Errors of a method over those of the sampler at the same CPU seconds, problem and setting.

    They are compared at the whole counts' seconds of whichever takes less time, whatever the diagnostics of the runs
    say: there both have an error between two points of their own, or at one. ``closer`` counts the problems and
    settings on which the method has the smaller mean absolute error, ``ratio`` is the geometric mean over them; both
    counts are given for each problem, too.
    """
    column = _QUANTITIES[quantity]
    there = runs.dropna(subset=[column, "cpu_seconds"])
    means = there.groupby([*_PLACE, "method", "part"])[["cpu_seconds", column]].mean()
    logs = np.log(means.where(means > 0)).dropna()
    curves = {
        key: line.sort_values("cpu_seconds") for key, line in logs.groupby([*_PLACE, "method"])
    }
    for method in dict.fromkeys(there["method"]):
        if method == SAMPLER:
            continue
        places = [
            key[:-1] for key in curves if key[-1] == method and (*key[:-1], SAMPLER) in curves
        ]
        pairs = {place: (curves[*place, method], curves[*place, SAMPLER]) for place in places}
        found = {
            place: _log_ratio(own, other)
            for place, (own, other) in pairs.items()
            if min(len(own), len(other)) > 1
        }
        ratios = pd.Series(found, dtype=float).dropna()
        if ratios.empty:
            continue
        source = join_sources(there.loc[there["method"].isin([method, SAMPLER]), "source"])
        path = f"equal/{method}/{quantity}/"
        yield estimate(f"{path}common", len(ratios), source)
        yield estimate(f"{path}closer", (ratios < 0).sum(), source)
        yield estimate(f"{path}ratio", float(np.exp(ratios.mean())), source, scale="log")
        for problem, own in ratios.groupby(level=0):
            yield estimate(f"{path}P{problem}/common", len(own), source)
            yield estimate(f"{path}P{problem}/closer", (own < 0).sum(), source)


def _log_ratio(own: pd.DataFrame, other: pd.DataFrame) -> float:
    """Log of the ratio of errors where the shorter of two curves ends; NaN where the longer begins later."""
    end = min(own["cpu_seconds"].iloc[-1], other["cpu_seconds"].iloc[-1])
    if end < max(own["cpu_seconds"].iloc[0], other["cpu_seconds"].iloc[0]):
        return np.nan
    one, two = (np.interp(end, *line.to_numpy().T) for line in (own, other))
    return float(one - two)
