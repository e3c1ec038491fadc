"""Fitted hyperparameters beside scikit-learn and GPy: CPU seconds, evaluations and optimum, in one run on one core.

Every fit starts from unit hyperparameters: an RBF kernel with one length scale, and one with a length scale for each of
eight inputs, of which three matter. scikit-learn has Laplace's method with the logistic likelihood, so that our row
"Laplace, logistic" does the same task: it is the like-for-like row, and must be no slower and reach an optimum at least
as high. GPy has the probit, as our other rows; it takes part where `make peer-gpy` has set it up, else its rows say so.
The row "from EP" climbs Laplace's evidence once more, from the optimum of expectation propagation.

An evaluation is one value of the log marginal likelihood with its gradient. `time_ratio` is CPU seconds over those of
scikit-learn; `gap` is our optimum less that of a peer with the same method and likelihood, in nats. Seconds are the
least of up to five fits if these are short, and include the kernel, and an inference at the optimum. Each row is a
process of its own, and one that takes more than `--seconds` of CPU time is listed as longer than that; larger N of that
method are left out.

`python benchmarks/fit.py` takes N = 100, 200, 500 and 767, in half an hour where GPy is there. Writes docs/fit.csv,
where rows of other sizes stay, and docs/fit.png. It ends with a statement, and with an error if the claim is not met.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks/peers"))
from fitting import counted, patterns, repeated  # noqa: E402

from studies.common.figures import look_of  # noqa: E402

SIZES = (100, 200, 500, 767)
#: Length scales of the kernels.
KERNELS = (1, 8)
GPY = [ROOT / "build/peers/gpy/bin/python", ROOT / "benchmarks/peers/gpy_fit.py"]
#: Ours are named after method and likelihood, and those of peers with the same begin with the same.
METHODS = {
    "scikit-learn": ("Laplace, logistic",),
    "gpcmc": ("Laplace, logistic", "Laplace, probit", "EP, probit", "Laplace, probit, from EP"),
    "GPy": ("Laplace, probit", "EP, probit, alternated", "EP, probit, nested"),
}
ROWS = [(package, method) for package, methods in METHODS.items() for method in methods]
PEER, LIKE = ("scikit-learn", "Laplace, logistic"), ("gpcmc", "Laplace, logistic")
#: Nats that are no difference: length scales of inputs that do not matter leave the evidence so flat.
LOWER = 1e-5
KEYS = ["N", "length_scales", "package", "method"]
FOUND = ["status", "cpu_seconds", "evaluations", "log_evidence"]
COLUMNS = [*KEYS, *FOUND, "seconds_per_evaluation", "time_ratio", "gap"]
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def fits(package, method, length_scales):
    """A function of patterns that fits a model of scikit-learn or of this library."""
    from sklearn.gaussian_process import GaussianProcessClassifier as Peer
    from sklearn.gaussian_process import _gpc
    from sklearn.gaussian_process.kernels import RBF

    from gpcmc import GaussianProcessClassifier
    from gpcmc.evidence import Surface
    from gpcmc.inference import Laplace

    kernel, counts = 1.0 * RBF(np.ones(length_scales) if length_scales > 1 else 1.0), [0]
    if package == "scikit-learn":
        owner = _gpc._BinaryGaussianProcessClassifierLaplace
        counted(owner, "log_marginal_likelihood", counts, by_default=False)
    else:
        counted(Surface, "value_and_gradient", counts)

    def evidence(X, y):
        if package == "scikit-learn":
            return Peer(kernel).fit(X, y).log_marginal_likelihood_value_
        start, likelihood = kernel, "logistic" if "logistic" in method else "probit"
        if "EP" in method:
            found = GaussianProcessClassifier(kernel, "ep").fit(X, y)
            if method.startswith("EP"):
                return found.log_marginal_likelihood_
            start = found.kernel_
        found = GaussianProcessClassifier(start, Laplace(likelihood=likelihood)).fit(X, y)
        return found.log_marginal_likelihood_

    def fit(X, y):
        counts[0] = 0
        return {"log_evidence": float(evidence(X, y)), "evaluations": int(counts[0])}

    return fit


def run(n, length_scales, package, method, seconds):
    """A row of a fit in a process of its own."""
    given = [method, str(n), str(length_scales)]
    command = [sys.executable, __file__, "--one", package, *given]
    if package == "GPy":
        command = [*map(str, GPY), *given]
    key = dict(zip(KEYS, (n, length_scales, package, method), strict=True))

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))

    try:
        done = subprocess.run(
            command, env=os.environ | ONE_CORE, capture_output=True, text=True, preexec_fn=limit
        )
    except FileNotFoundError:
        return key | {"status": "not installed"}
    if done.returncode == -signal.SIGXCPU:
        return key | {"status": f"longer than {seconds} s"}
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"signal {-done.returncode}"])[-1]
        return key | {"status": f"failed: {said[:150]}"}
    return key | json.loads(done.stdout.splitlines()[-1])


def compared(rows):
    """The table of rows, with what is derived from them."""
    table = pd.DataFrame(rows, columns=[*KEYS, *FOUND])
    table["seconds_per_evaluation"] = table["cpu_seconds"] / table["evaluations"]
    cell = pd.MultiIndex.from_frame(table[["N", "length_scales"]])
    peer = table[(table["package"] == PEER[0]) & (table["method"] == PEER[1])]
    peer = peer.set_index(["N", "length_scales"])["cpu_seconds"].reindex(cell)
    table["time_ratio"] = table["cpu_seconds"] / peer.to_numpy()
    task = table["method"].str.split(", ").str[:2].str.join(", ")
    ours = table[table["package"] == "gpcmc"].set_index(["N", "length_scales", "method"])
    same = pd.MultiIndex.from_arrays([table["N"], table["length_scales"], task])
    gap = ours["log_evidence"].reindex(same).to_numpy() - table["log_evidence"]
    table["gap"] = gap.where(table["package"] != "gpcmc")
    return table[COLUMNS]


def written(table):
    """The table with as many digits as its columns have meaning."""
    digits = {"evaluations": ".0f", "log_evidence": ".9f", "gap": ".1e"}
    digits |= dict.fromkeys(("cpu_seconds", "seconds_per_evaluation", "time_ratio"), ".3g")
    return table.assign(
        **{
            name: ["" if pd.isna(value) else format(value, digit) for value in table[name]]
            for name, digit in digits.items()
        }
    )


def statement(table):
    """Lines that say whether the claim holds, and whether it does: a size that was not compared is none that holds."""
    lines, holds = [], len(table) > 0
    for (n, length_scales), rows in table.groupby(["N", "length_scales"]):
        of = rows.set_index(["package", "method"])
        there = [key for key in (PEER, LIKE) if key in of.index and of.loc[key, "status"] == "ok"]
        said = "not compared"
        if len(there) == 2:
            ratio, gap = of.loc[LIKE, "time_ratio"], of.loc[PEER, "gap"]
            said = f"{ratio:.2f} of scikit-learn's CPU seconds, optimum {gap:+.1e} nats"
        fine = len(there) == 2 and bool(ratio <= 1.0 and gap >= -LOWER)
        holds &= fine
        verdict = "ok" if fine else "NOT AS CLAIMED"
        lines.append(f"N = {n}, length scales {length_scales}: {said}: {verdict}")
    others = {
        "Laplace's method with the probit": "Laplace, probit",
        "The default, EP,": "EP, probit",
    }
    for name, method in others.items():
        ratios = table[(table["package"] == "gpcmc") & (table["method"] == method)]["time_ratio"]
        least, most = ratios.min(), ratios.max()
        lines.append(f"{name} takes {least:.2f} to {most:.2f} of scikit-learn's CPU seconds")
    found = "at every size no slower than scikit-learn's, and its optimum at least as high"
    lines.append(
        f"With the same method and likelihood our fit is {found}."
        if holds
        else f"It is NOT shown that our fit is {found}."
    )
    return lines, holds


def picture(table, path):
    """CPU seconds over N for each kernel, and of an evaluation; an arrow where a fit took longer than allowed."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, NullLocator

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.6), layout="constrained")
    panels = (
        ("cpu_seconds", 1, "CPU seconds of a fit: one length scale"),
        ("cpu_seconds", 8, "CPU seconds of a fit: eight"),
        ("seconds_per_evaluation", 8, "CPU seconds of an evaluation: eight"),
    )
    sizes = sorted(set(table["N"]))
    dashes = {"logistic": "-", "probit": "--", "probit, from EP": "-."}
    dashes |= {"probit, alternated": "--", "probit, nested": ":"}
    for place, (column, length_scales, label) in zip(axes, panels, strict=True):
        for package, method in ROWS:
            rows = table[(table["package"] == package) & (table["method"] == method)]
            rows = rows[rows["length_scales"] == length_scales].sort_values("N")
            seen = rows[rows[column].notna()]
            base, _, variant = method.partition(", ")
            look = look_of(package, base.lower())
            width = 2.2 if package == "gpcmc" else 0.9
            line = look.points | {
                "markersize": 6.0,
                "linestyle": dashes[variant],
                "linewidth": width,
            }
            place.loglog(seen["N"], seen[column], label=f"{look.label}, {variant}", **line)
            late = rows[rows["status"].str.startswith("longer")]
            if column == "cpu_seconds":
                limits = late["status"].str.extract(r"(\d+)")[0].astype(float)
                place.loglog(late["N"], limits, **look.hollow)
                for x, y in zip(late["N"], limits, strict=True):
                    place.annotate("", (x, 2.5 * y), (x, y), arrowprops={"arrowstyle": "->"})
        place.set(xlabel="number of patterns N", ylabel=label)
        place.set_xticks(sizes, [f"{n:,}" for n in sizes])
        place.xaxis.set_minor_locator(NullLocator())
        place.xaxis.set_minor_formatter(NullFormatter())
        place.grid(alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, handlelength=4, frameon=False
    )
    figure.savefig(path, dpi=130, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", help="numbers of patterns")
    parser.add_argument("--seconds", type=int, default=900, help="CPU seconds allowed for a row")
    parser.add_argument("--packages", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--one", nargs=4, metavar=("PACKAGE", "METHOD", "N", "LENGTH_SCALES"))
    parser.add_argument("--draw", action="store_true", help="draw the picture of docs/fit.csv")
    given = parser.parse_args()
    if given.one:
        package, method, n, length_scales = given.one
        fit = fits(package, method, int(length_scales))
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a length scale at its bound is what is meant to happen
            print(json.dumps(repeated(fit, *patterns(int(n)))))
        return
    file = ROOT / "docs/fit.csv"
    if given.draw:
        picture(pd.read_csv(file), file.with_suffix(".png"))
        return
    old = pd.read_csv(file).to_dict("records") if file.exists() else []
    rows = {tuple(row[key] for key in KEYS): row for row in old}
    late = {}
    for n in sorted(given.sizes or SIZES):
        for package, method in ROWS:
            for length_scales in KERNELS:
                if package not in given.packages:
                    continue
                key, at = (n, length_scales, package, method), late.get((package, method))
                row = dict(zip(KEYS, key, strict=True)) | {"status": f"longer at N = {at} already"}
                if at in (None, n):
                    row = run(*key, given.seconds)
                if row["status"].startswith("longer than"):
                    late[package, method] = n
                rows[key] = row
                print(json.dumps(row), flush=True)
                order = sorted(rows, key=lambda key: (key[0], key[1], ROWS.index(key[2:])))
                table = compared([rows[key] for key in order])
                written(table).to_csv(file, index=False)
    picture(table, file.with_suffix(".png"))
    of_run = table[table["N"].isin(given.sizes or SIZES)]
    lines, holds = statement(of_run)
    print("\n".join(lines))
    sys.exit(not holds)


if __name__ == "__main__":
    main()
