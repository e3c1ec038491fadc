"""CPU seconds and memory of one fit of the classifier at fixed hyperparameters, by method and number of patterns.

The patterns are those of benchmarks/large.py: the law of Problem 6, with the rough kernel. Each fit is a process of its
own, on one thread, with one prediction. Methods have the options of the classifier, but for "twisted-ep, 512 draws",
eight randomisations of 64 points. "ep, low rank" has ``covariance="low-rank"``. The memory is the largest of all
methods.

`python benchmarks/choose.py` takes N = 500 to 5000, in ten minutes; sizes may be named. Writes docs/choose.csv, where
rows of other sizes stay.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
from large import problem_patterns

FILE = Path(__file__).resolve().parents[1] / "docs/choose.csv"
SIZES = (500, 1000, 2000, 5000)
METHODS = ("laplace", "ep", "ep, low rank", "twisted-ep, 512 draws", "twisted-ep")


def measure(method, n):
    """One fit: a line of JSON."""
    from gpcmc.classifier import GaussianProcessClassifier
    from gpcmc.gp import rbf
    from gpcmc.inference import Twisted

    name, _, rest = method.partition(", ")
    inference = Twisted(points=64, randomizations=8) if rest == "512 draws" else name
    covariance = "low-rank" if rest == "low rank" else "dense"
    X, y = problem_patterns(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    model = GaussianProcessClassifier(
        rbf(0.5, 3.0), inference, covariance=covariance, optimizer=None, random_state=1
    ).fit(X, y)
    model.predict_proba(X[:1])
    seconds = time.process_time() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    found = {"seconds": seconds, "gib": peak, "status": model.status_}
    print(json.dumps(found | {"log_evidence": model.log_marginal_likelihood_}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", help="numbers of patterns")
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "N"))
    given = parser.parse_args()
    if given.one:
        measure(given.one[0], int(given.one[1]))
        return
    table = pd.read_csv(FILE, dtype=str).set_index("N") if FILE.exists() else pd.DataFrame()
    table.index = table.index.astype(int)
    one_core = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    for n in given.sizes or SIZES:
        memory = 0.0
        for method in METHODS:
            command = [sys.executable, __file__, "--one", method, str(n)]
            done = subprocess.run(
                command, env=os.environ | one_core, stdout=subprocess.PIPE, text=True, check=True
            )
            found = json.loads(done.stdout)
            print(n, method, found, flush=True)
            table.loc[n, method] = f"{float(format(found['seconds'], '.2g')):g}"
            memory = max(memory, found["gib"])
        table.loc[n, "memory, GiB"] = f"{memory:.1g}"
        table.sort_index().to_csv(FILE, index_label="N")


if __name__ == "__main__":
    main()
