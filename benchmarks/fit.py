"""CPU seconds and optimum of fitted hyperparameters, beside scikit-learn's classifier, in one run on one core.

One start from unit hyperparameters; an RBF kernel with one length scale, and one with a length scale for each of eight
inputs, of which three matter. scikit-learn's likelihood is the logistic one, so its optimum compares with the row
"logistic"; the marginal likelihoods of the others are of the probit. `seconds` includes the kernel.
Run with ``make bench``, or with sizes as arguments; writes results/benchmark_fit.csv.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as ScikitLearn
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from gpcmc import GaussianProcessClassifier
from gpcmc.inference import Laplace

INFERENCE = {"logistic": Laplace(likelihood="logistic"), "laplace": "laplace", "ep": "ep"}
KERNELS = {"one length scale": 1.0 * RBF(1.0), "eight": 1.0 * RBF(np.ones(8))}


def patterns(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 8))
    f = 2.0 * np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, f + rng.standard_normal(n) > 0.0


def main(sizes):
    rows = []
    for n in sizes:
        X, y = patterns(n)
        for name, kernel in KERNELS.items():
            start = time.process_time()
            peer = ScikitLearn(kernel).fit(X, y)
            seconds = time.process_time() - start
            rows.append((n, name, "scikit-learn", peer.log_marginal_likelihood_value_, seconds))
            for method, inference in INFERENCE.items():
                start = time.process_time()
                found = GaussianProcessClassifier(kernel, inference).fit(X, y)
                used = time.process_time() - start
                rows.append((n, name, method, found.log_marginal_likelihood_, used))
            print(pd.DataFrame(rows[-4:]).to_string(header=False, index=False), flush=True)
    columns = ["N", "length_scales", "method", "log_evidence", "seconds"]
    Path("results").mkdir(exist_ok=True)
    pd.DataFrame(rows, columns=columns).to_csv("results/benchmark_fit.csv", index=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        main([int(size) for size in sys.argv[1:]] or [200, 767, 2000])
