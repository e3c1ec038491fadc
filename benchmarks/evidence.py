"""Variance of the log evidence times CPU seconds: our best estimator beside its peers, in one run on one core.

Gaussian process classification at N = 200, 400, 1000 (the law of Problems 2 and 6 of Experiment 4), a smooth kernel
(alpha = 3, beta = 2) and a rough one (alpha = 0.5, beta = 3). Every method gets about the same time; variance is that
of `REPLICATES` runs (its own relative standard error is 1/3), seconds are CPU seconds of all of a run: factors,
sites and tilts included. Smaller is better; `gain` is minimax tilting's product over the method's.
Run with ``make bench``; writes results/benchmark_evidence.csv.
"""

import time
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from gpcmc.gp import Prior, rbf
from gpcmc.inference import METHODS
from studies.atiya2021.problems import SYNTHETIC, synthetic_problem

REPLICATES = 16
KERNELS = {"smooth": (3.0, 2.0), "rough": (0.5, 3.0)}
METHOD = {
    "minimax tilting": ("minimax-tilting", {"points": 256}),
    "EP importance": ("importance", {"proposal": "ep", "samples": 8192}),
    "adapted orthant": ("orthant", {"scheme": "adapted", "samples": 8192}),
    "twisted EP": ("twisted-ep", {"points": 256}),
}


def main():
    problem = synthetic_problem(6, np.random.default_rng(0))
    rows = []
    for n in (200, 400, SYNTHETIC[6].n_train):
        for kernel, theta in KERNELS.items():
            K, y = rbf(*theta)(problem.X_train[:n]), problem.y_train[:n]
            for name, (method, options) in METHOD.items():
                start, found = time.process_time(), []
                for k in range(REPLICATES):
                    rng = np.random.default_rng(k)
                    found.append(METHODS[method](**options).fit(Prior(K), y, rng=rng).log_evidence)
                seconds = (time.process_time() - start) / REPLICATES
                variance = np.var(found, ddof=1)
                rows.append((n, kernel, name, np.mean(found), np.sqrt(variance), seconds))
    table = pd.DataFrame(rows, columns=["N", "kernel", "method", "log_evidence", "sd", "seconds"])
    table["variance_seconds"] = table["sd"] ** 2 * table["seconds"]
    peer = table[table["method"] == "minimax tilting"].set_index(["N", "kernel"])
    cells = pd.MultiIndex.from_frame(table[["N", "kernel"]])
    table["gain"] = peer["variance_seconds"].loc[cells].to_numpy() / table["variance_seconds"]
    print(table.to_string(index=False, float_format="%.4g"))
    Path("results").mkdir(exist_ok=True)
    table.to_csv("results/benchmark_evidence.csv", index=False)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
