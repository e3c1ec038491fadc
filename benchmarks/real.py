"""The default fit on real data sets that packages ship: beside scikit-learn's, and beside twenty random starts.

Up to 300 rows of a data set are for training, drawn with a seed, and up to 1000 others for testing; the inputs are as
they are, or standardised by the training rows. All fits start from ``1.0 * RBF(1.0)``, and more than two classes are
fitted one against the rest. A row has log losses (means over test rows, in nats, probabilities no less than 1e-15) and
CPU seconds of our default fit and of scikit-learn's. For each class the evidence is also climbed from twenty starts
that are drawn log-uniformly within the bounds, each to its end, by L-BFGS-B alone. `below` is how many nats the
default's evidence is below the best of them, in the class where this is most, and `problems_below` in how many of the
`problems` (one a class) it is by more than .1.

Run with names of data sets as arguments, or without for all, which takes about an hour; writes docs/real.csv, where
rows of other data sets stay. Needs the packages of benchmarks/peers/real.txt; a data set without its package is left
out by name. ``--keep-starts`` takes the numbers of the twenty starts from the file.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from real_data import NAMES, loaded
from sklearn.gaussian_process import GaussianProcessClassifier as TheirClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gpcmc.classifier import GaussianProcessClassifier
from gpcmc.evidence import Surface, climb, surface_method
from gpcmc.inference import ExpectationPropagation

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs/real.csv"
TRAINING, TEST, STARTS = 300, 1000, 20
SCALINGS = ("raw", "standardised")
KEYS = ["data", "inputs"]
LOSSES = ["log_loss", "log_loss_sklearn"]
SECONDS = ["seconds", "seconds_sklearn"]
COLUMNS = [*KEYS, "N", "d", "classes", *LOSSES, "problems", "problems_below", "below", *SECONDS]
NEAR, WORSE, SHARE = 0.1, 0.01, 0.95


def drawn(name, inputs):
    """Training inputs and labels, test inputs and labels. Classes of fewer than eight rows are left out."""
    X, y = loaded(name)
    classes, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, classes[counts >= 8])
    X, y = X[kept], y[kept]
    order = np.random.default_rng(1).permutation(len(y))
    n = min(TRAINING, len(y) // 2)
    first, second = order[:n], order[n : n + TEST]
    second = second[np.isin(y[second], y[first])]
    X, X_test = X[first], X[second]
    if inputs == "standardised":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X, y[first], X_test, y[second]


def log_loss(model, X, y):
    p = model.predict_proba(X)
    own = p[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.mean(np.log(np.maximum(own, 1e-15))))


def fitted(model, X, y):
    """CPU seconds of a fit."""
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def evidences(model):
    """Log marginal likelihoods (nats) of the problems, one a class or one of two."""
    return np.array(
        [one.log_evidence for one in getattr(model.posterior_, "posteriors", [model.posterior_])]
    )


def best_of_starts(X, y):
    """Log marginal likelihoods (nats) of the problems, the best of the random starts of each."""
    classes, kernel, found = np.unique(y), 1.0 * RBF(1.0), []
    for c in classes[1:] if len(classes) == 2 else classes:
        method = surface_method(ExpectationPropagation(), searching=True)
        surface = Surface(method, kernel, X, np.where(y == c, 1.0, -1.0))
        rng, low, high = np.random.default_rng(0), *kernel.bounds.T
        starts = rng.uniform(low, high, (STARTS, len(low)))
        found.append(climb(surface.value_and_gradient, starts, kernel.bounds, poor=-1e4).value)
    return np.array(found)


def measure(name, inputs, best):
    """One row; `best` has the evidences of the random starts, or is None."""
    X, y, X_test, y_test = drawn(name, inputs)
    ours, theirs = GaussianProcessClassifier(), TheirClassifier(1.0 * RBF(1.0))
    row = {"data": name, "inputs": inputs, "N": len(y), "d": X.shape[1]}
    row |= {"classes": len(np.unique(y)), "seconds": fitted(ours, X, y)}
    row |= {"seconds_sklearn": fitted(theirs, X, y)}
    row |= {"log_loss": log_loss(ours, X_test, y_test)}
    row |= {"log_loss_sklearn": log_loss(theirs, X_test, y_test)}
    best = best_of_starts(X, y) if best is None else best
    below = best - evidences(ours)
    row |= {"problems": len(below), "problems_below": int(np.sum(below > NEAR))}
    return row | {"below": float(below.max()), "best": " ".join(f"{value:.6f}" for value in best)}


def kept_starts(table):
    """The evidences of the random starts that a file has, by data set and inputs."""
    return {
        (row["data"], row["inputs"]): np.array([float(value) for value in str(row["best"]).split()])
        for row in table.to_dict("records")
    }


def statement(table):
    """Lines that say how far the goals are reached."""
    worse = table[table["log_loss"] > table["log_loss_sklearn"] + WORSE]
    better = int(np.sum(table["log_loss"] < table["log_loss_sklearn"] - WORSE))
    problems, below = int(table["problems"].sum()), int(table["problems_below"].sum())
    ratio = table["seconds"] / table["seconds_sklearn"]
    return [
        f"{table['data'].nunique()} data sets, {len(table)} runs",
        f"log loss more than {WORSE:g} above scikit-learn's: {len(worse)} "
        f"({', '.join(worse['data'] + ' ' + worse['inputs']) or 'none'}); more than {WORSE:g} below: {better}",
        f"evidence within {NEAR:g} nats of the best of {STARTS} random starts: {problems - below} of {problems} "
        f"problems ({100 * (1 - below / problems):.1f} %; the goal is {100 * SHARE:.0f} %)",
        f"CPU seconds over scikit-learn's: median {ratio.median():.2f}, "
        f"sum over sum {table['seconds'].sum() / table['seconds_sklearn'].sum():.2f}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="data sets; all by default")
    parser.add_argument("--keep-starts", action="store_true")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    old = (
        pd.read_csv(given.file) if given.file.exists() else pd.DataFrame(columns=[*COLUMNS, "best"])
    )
    kept = kept_starts(old) if given.keep_starts else {}
    rows = {(row["data"], row["inputs"]): row for row in old.to_dict("records")}
    for name in given.names or NAMES:
        for inputs in SCALINGS:
            try:
                rows[name, inputs] = measure(name, inputs, kept.get((name, inputs)))
            except ModuleNotFoundError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                break
            print({key: rows[name, inputs][key] for key in COLUMNS}, flush=True)
            table = pd.DataFrame(rows.values())[[*COLUMNS, "best"]].sort_values(KEYS)
            table.to_csv(given.file, index=False, float_format="%.5g")
    print("\n".join(statement(table)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # bounds that end a search are no matter here
    with threadpool_limits(1):
        main()
