"""What the classifier's default choice, expectation propagation, costs beside an exact method and Laplace's.

Moons and Pima, with 100, 200 and 500 training patterns, three splits each; all other patterns of Pima, and 1000 further
ones of moons, are test patterns. One length scale, fitted. `apart` is the mean distance of the test probabilities of
expectation propagation from those of twisted EP with many points, at the same hyperparameters, and `apart_se` what of
it the latter's own error makes up. Log losses are means over test patterns, in nats; Laplace's method has its own
hyperparameters. Seconds are CPU seconds of a whole fit. All numbers are means over splits.

Run with ``make bench``, or with sizes as arguments, which takes a few minutes; writes docs/default.csv, where rows of
other sizes stay. Pima is left out where `snakemake` has not fetched it.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_limits

from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.gp import prior
from gpcmc.inference import Twisted
from studies.common.data import DataUnavailableError, load, read_registry

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks/peers"))
from fitting import repeated  # noqa: E402

SIZES, SPLITS, TESTED = (100, 200, 500), 3, 1000
DATA = ("moons", "pima")
COLUMNS = ["data", "N", "apart", "apart_se", "log_loss_ep", "log_loss_exact", "log_loss_laplace"]
COLUMNS += ["seconds_ep", "seconds_laplace", "laplace_share"]


def drawn(name, n, split):
    """Training inputs (n, d) and labels, test inputs and labels; inputs are scaled by the training patterns."""
    rng = np.random.default_rng([n, split])
    if name == "moons":
        X, y = make_moons(n + TESTED, noise=0.3, random_state=int(rng.integers(2**31)))
    else:
        raw = load(name, ROOT / "data/raw", read_registry(ROOT / "data/registry.csv"))
        X, y = raw.X, raw.y
    order = rng.permutation(len(y))
    X, y = X[order], y[order] > 0
    X = (X - X[:n].mean(axis=0)) / X[:n].std(axis=0)
    return X[:n], y[:n], X[n:], y[n:]


def log_loss(p, y):
    return float(-np.mean(np.log(np.where(y, p, 1.0 - p))))


def measure(name, n, split):
    """One row."""
    X, y, X_test, y_test = drawn(name, n, split)
    row, probability, kernel = {"data": name, "N": n}, {}, None
    for inference in ("laplace", "ep"):
        model = GaussianProcessClassifier(inference=inference)
        row[f"seconds_{inference}"] = repeated(lambda X, y, m=model: m.fit(X, y) and {}, X, y)[
            "cpu_seconds"
        ]
        probability[inference], kernel = model.predict_proba(X_test)[:, 1], model.kernel_
    exact = Twisted(points=1024).fit(
        prior(kernel, X, X_test), np.where(y, 1.0, -1.0), rng=np.random.default_rng(split)
    )
    found = exact.prediction
    probability["exact"] = found.probability
    row["apart"] = np.mean(np.abs(probability["ep"] - found.probability))
    row["apart_se"] = np.mean(found.standard_error)
    return row | {f"log_loss_{key}": log_loss(p, y_test) for key, p in probability.items()}


def main(sizes):
    file, rows = ROOT / "docs/default.csv", []
    old = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=COLUMNS)
    for name in DATA:
        for n in sizes:
            try:
                of_splits = pd.DataFrame([measure(name, n, split) for split in range(SPLITS)])
            except DataUnavailableError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            row = of_splits.drop(columns="data").mean().to_dict() | {"data": name, "N": n}
            row["laplace_share"] = row["seconds_laplace"] / row["seconds_ep"]
            rows.append(row)
            print({key: row[key] for key in COLUMNS}, flush=True)
    new = pd.DataFrame(rows, columns=COLUMNS)
    keys = pd.MultiIndex.from_frame(new[["data", "N"]])
    old = old[~pd.MultiIndex.from_frame(old[["data", "N"]]).isin(keys)]
    table = pd.concat([old, new]) if len(old) else new
    table = table.sort_values(["data", "N"]).reset_index(drop=True)
    table.to_csv(file, index=False, float_format="%.5g")
    loss = (new["log_loss_ep"] - new["log_loss_exact"]).abs()
    print(
        f"Expectation propagation is at most {new['apart'].max():.1g} from exact probabilities on average, its log "
        f"loss at most {loss.max():.1g} nats; Laplace's method takes {new['laplace_share'].min():.2f} to "
        f"{new['laplace_share'].max():.2f} of its time."
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a variance at its bound is no matter here
    with threadpool_limits(1):
        main([int(size) for size in sys.argv[1:]] or SIZES)
