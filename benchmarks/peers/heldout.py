"""Classifiers of packages, fitted to the real data of the study and judged on the same held-out patterns.

Patterns are those of the experiment ``whofits``: a split of each of its 15 data sets, a kernel with one length scale
(isotropic) and one with a length scale for each input (ard). All packages start from the same hyperparameters, and have
the same wide bounds where they can be set. `studies.atiya2021.whofits.scores` judges: the log loss in nats, the share
of errors, the binned error of calibration, and the slope of a recalibration, which is one of calibrated predictions.

Every package runs in an environment of its own, on one thread, a data set after the other. One that is not there is
shown as missing. A fit that fails, or takes too long, is counted as failed and has no scores; one that says that it has
not converged is counted as such, and is scored.

``python benchmarks/peers/heldout.py [data set ...]`` writes docs/heldout_fits.csv, a row a fit, where rows of other
data sets and packages stay; docs/heldout.csv, a row a method; and docs/heldout.png. ``--packages`` runs some of them,
and ``--missing`` goes on where a run was stopped. ``make peers`` runs it.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from run import BUILD, HERE, ROOT, results

from studies.atiya2021.whofits.data import split_problem
from studies.atiya2021.whofits.names import DATA_SETS
from studies.atiya2021.whofits.runs import kernel_at_start
from studies.atiya2021.whofits.scores import scores
from studies.common.data import DataUnavailableError
from studies.common.figures import METHODS

SEED, SPLIT = 20210308, 0
KERNELS = ("isotropic", "ard")
#: Command of a package, and its methods: in rows, in our dictionary of looks, and how they are called here.
PACKAGES = {
    "gpcmc": ([sys.executable, HERE / "gpcmc_peer.py"], {"EP": "ep"}),
    "scikit-learn": ([sys.executable, HERE / "sklearn_peer.py"], {"Laplace, logistic": "laplace"}),
    "GPBoost": ([BUILD / "gpboost/bin/python", HERE / "gpboost_peer.py"], {"Laplace": "laplace"}),
    "GPyTorch": (
        [BUILD / "botorch/bin/python", HERE / "gpytorch_peer.py"],
        {"variational": "variational"},
    ),
}
ROWS = [(package, method) for package, (_, methods) in PACKAGES.items() for method in methods]
LONGEST = 60  # CPU seconds of a fit, on average over those of a process
#: What all others are compared with.
OURS = ("gpcmc", "EP")
KEY = ["data", "kernel", "package", "method"]
FOUND = ["version", "status", "log_evidence", "variance", "length_scale", "cpu_seconds"]
SCORES = ["log_loss", "error_rate", "binned_error", "intercept", "slope"]
COLUMNS = [*KEY, "N", "inputs", "test", *FOUND, *SCORES]


def arrays(problem):
    """What a package is given: patterns, and where the search starts and ends."""
    kernel = kernel_at_start(problem.X_train, relevance=False)
    return {
        **{"X": problem.X_train, "y": problem.y_train, "X_star": problem.X_test},
        **{"variance_bounds": kernel.k1.constant_value_bounds},
        **{"length_scale": kernel.k2.length_scale},
        **{"length_scale_bounds": kernel.k2.length_scale_bounds},
    }


def fits(name, packages, seconds):
    """A row a package, method and kernel; one that printed nothing says why."""
    problem = split_problem(name, SPLIT, SEED)
    n, inputs = problem.X_train.shape
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "patterns.npz")
        np.savez(file, **arrays(problem))
        for package in packages:
            command, methods = PACKAGES[package]
            limit = seconds * len(KERNELS) * len(methods)
            printed = results(package, [*command, "fitted"], file, None, limit)
            said = {(row.get("kernel"), row["method"]): row for row in printed}
            why = next((row["status"] for row in printed if "kernel" not in row), "printed nothing")
            for kernel in KERNELS:
                for method in methods:
                    row = {"data": name, "N": n, "inputs": inputs, "test": len(problem.y_test)}
                    row |= {"package": package}
                    row |= said.get(
                        (kernel, method), {"kernel": kernel, "method": method, "status": why}
                    )
                    yield judged(row, problem.y_test)


def judged(row, y):
    """The row with the scores of its probabilities (t,) in their place; labels -1/+1 (t,)."""
    row = dict(row)
    if (probability := row.pop("probability", None)) is None:
        return row
    probability = np.array(probability, dtype=float)
    if not np.all((probability >= 0.0) & (probability <= 1.0)):
        return row | {"status": "failed: predictions are no probabilities"}
    return row | {name: value for name, value in scores(probability, y).items() if name in SCORES}


def summary(table):
    """A row a kernel, package and method; data sets are the units, and a unit of both kernels is their mean.

    ``more`` is a difference to our EP on the same patterns and kernel, ``seconds_ratio`` the median of the quotients.
    Errors are standard errors over data sets.
    """
    found, key = [], ["data", "kernel"]
    base = table[(table["package"] == OURS[0]) & (table["method"] == OURS[1])].set_index(key)
    for kernel in ("both", *KERNELS):
        for package, method in ROWS:
            rows = table[(table["package"] == package) & (table["method"] == method)]
            rows = rows if kernel == "both" else rows[rows["kernel"] == kernel]
            if rows.empty:
                continue
            scored = rows[rows["log_loss"].notna()].set_index(key)
            ep = base.reindex(scored.index)
            units = scored[["log_loss", "binned_error"]] - ep[["log_loss", "binned_error"]]
            units["slope"] = scored["slope"]
            units["ratio"] = np.log(scored["cpu_seconds"] / ep["cpu_seconds"])
            units = units.groupby("data").mean()
            loss = units["log_loss"]
            reasons = rows.loc[rows["log_loss"].isna(), "status"].drop_duplicates()
            found.append(
                {
                    **{"kernel": kernel, "package": package, "method": method},
                    "version": " ".join(rows["version"].dropna().unique()),
                    **{"data_sets": len(units), "fits": len(scored)},
                    "failed": len(rows) - len(scored),
                    "not_converged": int((scored["status"] != "ok").sum()),
                    "log_loss_more_median": loss.median(),
                    **{"log_loss_more": loss.mean(), "log_loss_more_se": loss.sem()},
                    **{"lower": int((loss < 0.0).sum()), "higher": int((loss > 0.0).sum())},
                    "binned_error_more": units["binned_error"].mean(),
                    **{"slope": units["slope"].mean(), "slope_se": units["slope"].sem()},
                    "seconds_ratio": np.exp(units["ratio"].median()),
                    "why": "; ".join(reasons),
                }
            )
    return pd.DataFrame(found)


def picture(table, path):
    """Log loss more than EP's, and slope of a recalibration: a point a data set, the mean and two standard errors."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    base = table[(table["package"] == OURS[0]) & (table["method"] == OURS[1])]
    base = base.set_index(["data", "kernel"])["log_loss"]
    overall = summary(table).set_index(["kernel", "package", "method"]).loc["both"]
    seen = [key for key in ROWS if overall["data_sets"].get(key, 0) > 0]
    size = (9.0, 0.55 * len(seen) + 1.0)
    figure, axes = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained")
    names = []
    for place, (package, method) in enumerate(seen):
        look = METHODS[PACKAGES[package][1][method]]
        rows = table[(table["package"] == package) & (table["method"] == method)]
        rows = rows[rows["log_loss"].notna()].set_index(["data", "kernel"])
        rows = rows.assign(log_loss_more=rows["log_loss"] - base.reindex(rows.index))
        for panel, column in zip(axes, ("log_loss_more", "slope"), strict=True):
            units = rows[column].groupby("data").mean()
            panel.plot(units, np.full(len(units), place), **look.points)
            mean, error = overall.loc[(package, method), [column, f"{column}_se"]]
            panel.errorbar(mean, place + 0.25, xerr=2.0 * error, fmt="|", color="k", capsize=3)
        _, comma, variant = method.partition(",")
        names.append(f"{package}: {look.label}{comma}{variant}")
    for panel, neutral in zip(axes, (0.0, 1.0), strict=True):
        panel.locator_params(axis="x", nbins=5)
        panel.axvline(neutral, color="0.5", linewidth=0.8)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(seen)), names)
    axes[0].set_ylim(len(seen) - 0.5, -0.5)
    axes[0].set_xlabel("held-out log loss more than that of EP (nats)")
    axes[1].set_xlabel("slope of a recalibration (above 1: too cautious)")
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)


def ordered(rows):
    """The table of rows by key, in the order of data sets, kernels and methods."""
    places = [list(DATA_SETS), list(KERNELS)]

    def place(key):
        data, kernel, *method = key
        return places[0].index(data), places[1].index(kernel), ROWS.index(tuple(method))

    return pd.DataFrame([rows[key] for key in sorted(rows, key=place)], columns=COLUMNS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="data sets; all by default")
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), choices=list(PACKAGES))
    parser.add_argument(
        "--seconds", type=int, default=LONGEST, help="CPU limit of a fit, on average"
    )
    parser.add_argument("--missing", action="store_true", help="leave out what has scores")
    given = parser.parse_args()
    file = ROOT / "docs/heldout_fits.csv"
    old = pd.read_csv(file).to_dict("records") if file.exists() else []
    kept = {tuple(row[name] for name in KEY): row for row in old}
    done = {key[0::2] for key, row in kept.items() if not pd.isna(row["log_loss"])}
    for name in given.names or DATA_SETS:
        packages = [p for p in given.packages if not (given.missing and (name, p) in done)]
        try:
            for row in fits(name, packages, given.seconds):
                kept[tuple(row[name] for name in KEY)] = row
                print({name: row[name] for name in COLUMNS if name in row}, flush=True)
        except DataUnavailableError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
        ordered(kept).to_csv(file, index=False, float_format="%.6g")
    table = pd.read_csv(file)
    summary(table).to_csv(ROOT / "docs/heldout.csv", index=False, float_format="%.3g")
    picture(table, ROOT / "docs/heldout.png")


if __name__ == "__main__":
    main()
