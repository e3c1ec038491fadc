"""Cao and Katzfuss's problems: our estimates beside the thirty replicates that they published of each of theirs.

The problems are theirs (src/studies/cao2024/problems.py): a Matern 3/2 field in the unit square, range .1, with a
nugget of .01 at N = 900 and .03 at N = 6400. Scenario 1 is the orthant below zero on their grid, 2 lies below limits
uniform on (-2, 0) at a Latin hypercube, whose random numbers are ours, and 3 is the box (-1, 1) on the grid. At N = 900
ours is ``rectangle_probability`` with the standard deviation of their m = 30 as tolerance. At N = 6400 it is twisted EP
under the sparse covariance with 30 neighbours: the field over the nugget's deviation, with noise of variance one.

Theirs are the logarithms of thirty estimates each, with their seconds on their machine: mean, standard deviation and
the logarithm of the mean probability (data/published/cao2024/replicates.csv, with its source). ``cost`` is squared
standard error, or deviation, times seconds, in nats^2 s.

``python benchmarks/vecchia.py [size ...]`` writes docs/vecchia.csv, where other sizes stay.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from threadpoolctl import threadpool_limits

from gpcmc import rectangle_probability
from gpcmc.gp import prior
from gpcmc.likelihood import Ordinal
from gpcmc.rectangle import rounds
from gpcmc.rectangle.classification import OrdinalTwisted
from studies.cao2024.problems import RANGE, covariance, grid, latin_hypercube

ROOT = Path(__file__).resolve().parents[1]
NUGGETS = {900: 0.01, 6400: 0.03}
LIMITS = {1: "orthant", 2: "shifted limits", 3: "box"}
NEIGHBOURS, POINTS, GROUPS = 30, 1024, 9
#: Of theirs: the method, and its neighbours or samples; the most samples are fewer at N = 900.
MOST = (90_000, 100_000)
THEIRS = {
    "Vecchia, m = 30": ("vecchia", (30,)),
    "Vecchia, m = 70": ("vecchia", (70,)),
    "Botev": ("minimax-tilting", (10_000,)),
    "separation": ("separation", MOST),
    "tile low rank": ("tile-low-rank", MOST),
}


@dataclass(frozen=True, slots=True)
class Between(Ordinal):
    """A likelihood whose label i says that value i, with its noise, is between limits of its own."""

    limits_of_each: tuple = ()

    def limits(self, y):
        lower, upper = self.limits_of_each
        i = np.asarray(y, dtype=int)
        return lower[i], upper[i]

    def check_labels(self, y, n):
        return np.arange(n, dtype=float)


def problem(scenario, n):
    """Locations, and limits."""
    if scenario == 2:
        rng = np.random.default_rng(0)
        return latin_hypercube(n, rng), np.full(n, -np.inf), -2.0 * rng.random(n)
    lower, upper = (-1.0, 1.0) if scenario == 3 else (-np.inf, 0.0)
    return grid(n), np.full(n, lower), np.full(n, upper)


def dense(n, X, lower, upper, deviation):
    """As a user calls it."""
    options = {"tolerance": rounds.student(0.95) * deviation, "max_samples": 2**17, "rng": 0}
    found = rectangle_probability(lower, upper, cov=covariance(X, NUGGETS[n]), **options)
    return found.log_probability, found.standard_error, f"{found.status} ({found.method})"


def sparse(n, X, lower, upper, deviation):
    """As an evidence: the field over the nugget's deviation, with noise of variance one."""
    kernel = ConstantKernel(1.0 / NUGGETS[n]) * Matern(RANGE * 3**0.5, nu=1.5)
    K = prior(kernel, X, covariance="sparse", neighbours=NEIGHBOURS)
    noise = NUGGETS[n] ** 0.5
    each = Between((0.0,), limits_of_each=(lower / noise, upper / noise))
    method = OrdinalTwisted(POINTS, GROUPS, likelihood=each)
    found = method.fit(K, np.arange(n), rng=np.random.default_rng(0))
    told = found.diagnostics
    rest = f"correction {told['correction']:.2g}, rest {told['correction_rest']:.2g}"
    return found.log_evidence, found.log_evidence_se, f"{found.status} (twisted-ep, sparse, {rest})"


def theirs():
    """A row for each method: scenario, n, mean, deviation, seconds, log of the mean."""
    table = pd.read_csv(ROOT / "data/published/cao2024/replicates.csv")
    table["log_p"] = np.log(table["probability"])
    for (n, scenario), part in table.groupby(["n", "scenario"]):
        for name, (method, settings) in THEIRS.items():
            own = part[(part["method"] == method) & part["value"].isin(settings)]
            if len(own):
                note = f"30 replicates; log of their mean {np.log(own['probability'].mean()):.4g}"
                logs, seconds = own["log_p"], own["seconds"].mean()
                yield n, scenario, name, logs.mean(), logs.std(), seconds, note


def main():
    sizes = [int(n) for n in sys.argv[1:]] or list(NUGGETS)
    published = list(theirs())
    first = {(n, s): sd for n, s, name, _, sd, *_ in published if name == "Vecchia, m = 30"}
    file = ROOT / "docs/vecchia.csv"
    old = pd.read_csv(file) if file.exists() else pd.DataFrame({"n": []})
    rows = []
    with threadpool_limits(1):
        for n in sizes:
            for scenario in LIMITS:
                given, begun = problem(scenario, n), time.process_time()
                by = dense if n == 900 else sparse
                value, error, note = by(n, *given, first[n, scenario])
                seconds = time.process_time() - begun
                rows.append((n, scenario, "ours", value, error, seconds, note))
                print(*rows[-1], sep="  ", flush=True)
    rows += [row for row in published if row[0] in sizes]
    names = ["n", "limits", "method", "log_probability", "standard_error", "seconds", "note"]
    table = pd.DataFrame(rows, columns=names)
    table["limits"] = table["limits"].map(LIMITS)
    table.insert(6, "cost", table["standard_error"] ** 2 * table["seconds"])
    table = pd.concat([table, old[~old["n"].isin(sizes)]]).astype({"n": int})
    order = [table["n"], table["limits"].map(list(LIMITS.values()).index)]
    table = table.iloc[np.lexsort(order[::-1])]
    for column, digits in zip([*names[3:6], "cost"], (".5g", ".2g", ".3g", ".2g"), strict=True):
        table[column] = [format(float(x), digits) for x in table[column]]
    table.to_csv(file, index=False)


if __name__ == "__main__":
    main()
