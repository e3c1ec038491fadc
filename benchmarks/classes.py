"""Several classes: one against the rest by expectation propagation, the softmax by Laplace's method, and scikit-learn.

Iris, wine, 400 digits, and labels drawn from the softmax of smooth functions, which overlap. Half of the patterns are
for training, in two splits (of digits one); inputs are standardised by them. All start from ``1.0 * RBF(1.0)``.
`log_loss` is a mean over test patterns, in nats; `calibration` the mean distance, weighted by numbers, of confidence
and accuracy in ten bins of confidence; `error` the share of wrong classes. `log_loss_odds` is what one against the rest
would get by combining odds. Seconds are CPU seconds of a fit. All numbers are means over the splits.

Run with ``make bench``, or with names of data as arguments; writes docs/classes.csv, where rows of other data stay.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier as TheirClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gpcmc.classifier import GaussianProcessClassifier

ROOT = Path(__file__).resolve().parents[1]
BINS = 10
SPLITS = {"iris": 2, "wine": 2, "digits": 1, "simulated": 2}
COLUMNS = ["data", "method", "N", "log_loss", "calibration", "error", "log_loss_odds", "seconds"]
METHODS = {
    "one against the rest, EP": GaussianProcessClassifier,
    "softmax, Laplace": lambda kernel: GaussianProcessClassifier(kernel, "laplace"),
    "scikit-learn": TheirClassifier,
}


def loaded(name):
    """Inputs (n, d) and labels 0 to C - 1."""
    if name == "simulated":
        rng = np.random.default_rng(1)
        X = rng.normal(size=(300, 2))
        f = np.stack([3 * np.sin(1.5 * X[:, 0]), 3 * np.cos(1.5 * X[:, 1]), X[:, 0] * X[:, 1]])
        return X, np.argmax(f + rng.gumbel(size=f.shape), axis=0)
    X, y = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name](return_X_y=True)
    first = np.random.default_rng(0).permutation(len(y))[:400]
    return X[first], y[first]


def log_loss(p, y):
    return float(-np.mean(np.log(np.maximum(p[np.arange(len(y)), y], 1e-15))))


def calibration(p, y):
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((BINS * confidence).astype(int), BINS - 1)
    gaps = [abs(np.sum(right[bins == k]) - np.sum(confidence[bins == k])) for k in range(BINS)]
    return float(np.sum(gaps) / len(y))


def odds(model, X):
    """Probabilities (t, C) from the odds of the problems of one against the rest."""
    q = np.column_stack([one.predict(model._X_train, X).probability for one in model._fits])
    ratio = q / np.maximum(1.0 - q, 1e-12)
    return ratio / ratio.sum(axis=1, keepdims=True)


def measure(name, method, split):
    """One row."""
    X, y = loaded(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    start = time.process_time()
    model = METHODS[method](1.0 * RBF(1.0)).fit(X, y)
    row = {"data": name, "method": method, "N": len(y), "seconds": time.process_time() - start}
    p = model.predict_proba(X_test)
    row |= {"log_loss": log_loss(p, y_test), "calibration": calibration(p, y_test)}
    row |= {"error": float((p.argmax(axis=1) != y_test).mean())}
    if method.startswith("one"):
        row["log_loss_odds"] = log_loss(odds(model, X_test), y_test)
    return row


if __name__ == "__main__":
    names, path = sys.argv[1:] or list(SPLITS), ROOT / "docs/classes.csv"
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        rows = [measure(n, m, s) for n in names for m in METHODS for s in range(SPLITS[n])]
    table = pd.DataFrame(rows).groupby(["data", "method", "N"], sort=False).mean().reset_index()
    if path.exists():
        others = pd.read_csv(path)
        table = pd.concat([others[~others["data"].isin(names)], table])
    table["data"] = pd.Categorical(table["data"], list(SPLITS))
    table = table.sort_values("data", kind="stable")[COLUMNS]
    table.to_csv(path, index=False, float_format="%.3g")
    print(table.to_string())
