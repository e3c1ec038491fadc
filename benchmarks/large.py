"""The evidence of large problems: CPU seconds, peak memory and error over N, each run a process of its own.

The patterns are drawn from the law of Problem 6 (two overlapping classes in the plane), with the rough kernel of
Experiment 4 (alpha = 0.5, beta = 3). Every method runs on one core with the same options at every N. A run that takes
more than `--seconds`, or more memory than the machine has, is listed with the reason, and larger N of that method are
left out. Memory is what a run needs beside the imported libraries, K included. The growth exponent of a method is the
slope of log seconds, or of log memory, over log N, between its two largest N.

`python benchmarks/large.py` takes N = 500 to 5000; `python benchmarks/large.py 10000` adds a size. Writes
docs/large.csv, where rows of other sizes stay, and docs/large.png.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from studies.common.figures import METHODS as LOOKS

ROOT = Path(__file__).resolve().parents[1]
SIZES = (500, 1000, 2000, 5000)
METHODS = {
    "laplace": ("laplace", {}),
    "ep": ("ep", {"tolerance": 1e-6}),
    "orthant": ("orthant", {"samples": 100_000}),
    "orthant, adapted": ("orthant", {"samples": 10_000, "scheme": "adapted"}),
    "twisted-ep": ("twisted-ep", {"points": 64, "randomizations": 8}),
}
#: What the others are compared with.
BEST = "twisted-ep"
COLUMNS = ["N", "method", "status", "cpu_seconds", "peak_mib", "log_evidence", "standard_error"]


def problem_patterns(n):
    """The first n patterns of one stream, and their labels."""
    from studies.atiya2021.problems import SYNTHETIC

    law, rng = SYNTHETIC[6], np.random.default_rng(20210308)
    second = rng.random(n) < 0.5
    X = rng.standard_normal((n, 2))
    X[second] = law.mean + X[second] @ np.linalg.cholesky(law.cov).T
    return X, np.where(second, -1.0, 1.0)


def problem(n):
    """Their covariance and labels."""
    from gpcmc.gp import rbf

    X, y = problem_patterns(n)
    return rbf(0.5, 3.0)(X), y


def measure(method, n):
    """One run: a line of JSON."""
    from gpcmc.gp import Prior
    from gpcmc.inference import METHODS as CLASSES

    name, options = METHODS[method]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    K, y = problem(n)
    prior, rng = Prior(K), np.random.default_rng(1)
    start = time.process_time()
    fit = CLASSES[name](**options).fit(prior, y, rng=rng)
    seconds = time.process_time() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    found = {"status": fit.status, "cpu_seconds": seconds, "peak_mib": peak}
    found |= {"log_evidence": fit.log_evidence, "standard_error": fit.log_evidence_se}
    print(json.dumps(found))


def run(method, n, seconds):
    """A row of a run in a process of its own."""
    command = [sys.executable, __file__, "--one", method, str(n)]
    key = {"N": n, "method": method}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return key | {"status": f"not done after {seconds} s"}
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"signal {-done.returncode}"])[-1]
        # the error's name without its module, and what it says before the remedy
        return key | {"status": "failed: " + said.rpartition("Error: ")[2].partition(";")[0]}
    return key | json.loads(done.stdout)


def exponents(table):
    """Slopes of log seconds and log memory between the two largest N of each method."""
    for method, rows in table[table["cpu_seconds"].notna()].groupby("method", sort=False):
        last = rows.sort_values("N").tail(2)
        if len(last) == 2:
            slopes = [np.diff(np.log(last[c]))[0] for c in ("cpu_seconds", "peak_mib")]
            yield method, *(slopes / np.diff(np.log(last["N"]))[0])


def picture(table, path):
    """Seconds, memory, and the distance from twisted EP over N."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, NullLocator

    truth = table[table["method"] == BEST].set_index("N")
    table = table.assign(
        distance=(table["log_evidence"] - table["N"].map(truth["log_evidence"])).abs()
    )
    own = table["method"] == BEST
    table.loc[own, "distance"] = table.loc[own, "standard_error"]
    slopes = {method: rest for method, *rest in exponents(table)}
    figure, axes = plt.subplots(1, 3, figsize=(10.0, 4.2), layout="constrained")
    panels = {
        "cpu_seconds": "CPU seconds, one core",
        "peak_mib": "peak memory, MiB",
        "distance": "error of log evidence, nats",
    }
    sizes = sorted(table["N"].unique())
    for k, (place, (column, label)) in enumerate(zip(axes, panels.items(), strict=True)):
        for method, rows in table.groupby("method", sort=False):
            seen = rows[rows[column].notna()].sort_values("N")
            look = LOOKS["adapted" if method == "orthant, adapted" else method]
            name = look.label
            if column != "distance" and method in slopes:
                name += f": $N^{{{slopes[method][k]:.1f}}}$"
            elif column == "distance" and method == BEST:
                name += ": its standard error"
            place.loglog(seen["N"], seen[column], label=name, **look.points | {"linestyle": "-"})
        place.set(xlabel="number of patterns N", ylabel=label)
        place.set_xticks(sizes, [f"{n:,}" for n in sizes])
        place.xaxis.set_minor_locator(NullLocator())
        place.xaxis.set_minor_formatter(NullFormatter())
        place.grid(alpha=0.3)
        place.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=1, frameon=False)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", help="numbers of patterns")
    parser.add_argument("--seconds", type=int, default=3600, help="time limit of a run")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "N"), help="one run, in this process")
    given = parser.parse_args()
    if given.one:
        measure(given.one[0], int(given.one[1]))
        return
    file = ROOT / "docs/large.csv"
    old = pd.read_csv(file).to_dict("records") if file.exists() else []
    rows = {(row["method"], row["N"]): row for row in old}
    for method in given.methods:
        for n in sorted(given.sizes or SIZES):
            row = rows[method, n] = run(method, n, given.seconds)
            print(json.dumps(row), flush=True)
            ordered = sorted(rows, key=lambda key: ([*METHODS].index(key[0]), key[1]))
            table = pd.DataFrame([rows[key] for key in ordered], columns=COLUMNS)
            table.to_csv(file, index=False, float_format="%.8g")
            if "cpu_seconds" not in row:
                break
    picture(table, ROOT / "docs/large.png")
    for method, seconds, memory in exponents(table):
        print(f"{method}: seconds grow as N^{seconds:.2f}, memory as N^{memory:.2f}")


if __name__ == "__main__":
    main()
