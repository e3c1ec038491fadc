"""How far the sparse form (Vecchia) is from the dense one: error of EP's log evidence, a row a kernel, inputs and m.

Labels are drawn from the process itself, of variance 3, at uniform inputs in the unit cube of 2, 4 and 8 dimensions;
the length scale grows as the root of the dimension. Each row has the error of the log evidence before and after its
correction, what the correction says of its own rest, and the largest error of a class probability at 200 test inputs.

``python benchmarks/sparse.py [N]`` writes docs/sparse.csv, row by row, and docs/sparse.png of what is there with 2000
and 5000 patterns; rows that are there stay. ``N INPUTS KERNEL ...`` writes the rows of these alone, and no picture.
``python benchmarks/sparse.py --field N m [POINTS]`` prints what a rough field of N patterns costs at given
hyperparameters, in CPU seconds and memory at its peak, and ``--chain N`` an autoregressive chain. ``--fit N`` prints
what it costs to search for the hyperparameters of that field and to predict, and the log loss beside the best one.
``--front N`` writes docs/sparse_front.csv: the error of the corrected evidence with neighbours alone, and with half of
them in front.
``--told N [SEEDS]`` writes docs/sparse_told.csv: what is told of errors over what they are, with 20 neighbours, for
seeds 101 and on.
"""

import itertools
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from gpcmc.covariance import sparse_correction
from gpcmc.gp import prior
from gpcmc.inference import ExpectationPropagation, Twisted
from gpcmc.posterior import MAX_PROBABILITY_ERROR
from recheck.report.style import LINES

ROOT = Path(__file__).resolve().parents[1]
FILE, PICTURE = ROOT / "docs/sparse.csv", ROOT / "docs/sparse.png"
N, TESTED, NEIGHBOURS, DIMENSIONS = 2000, 200, (10, 20, 30), (2, 4, 8)
SHOWN = (2000, 5000)  # numbers of patterns in the picture
VARIANCE, LENGTH_SCALE = 3.0, 0.1
FRONTS, DRAWS = ((24, 0), (12, 12), (40, 0), (20, 20)), 4  # neighbours and values in front
SHAPES = {
    "exponential": lambda scale: Matern(scale, nu=0.5),
    "Matern 3/2": lambda scale: Matern(scale, nu=1.5),
    "Matern 5/2": lambda scale: Matern(scale, nu=2.5),
    "RBF": RBF,
}
KEY = ["N", "kernel", "inputs", "neighbours"]
COLUMNS = [
    *KEY,
    "error",
    "error_corrected",
    "rest",
    "probability_error",
    "status",
    "cpu_seconds",
    "dense_cpu_seconds",
]


def problem(name, d, n, seed=20261127):
    """Inputs, labels of a draw from the process, test inputs and the kernel."""
    rng = np.random.default_rng([seed, d, n])
    kernel = ConstantKernel(VARIANCE) * SHAPES[name](LENGTH_SCALE * np.sqrt(d))
    X = rng.random((n + TESTED, d))
    K = kernel(X[:n])
    K.flat[:: n + 1] += 1e-8
    f = np.linalg.cholesky(K) @ rng.standard_normal(n)
    y = np.where(f + rng.standard_normal(n) > 0, 1.0, -1.0)
    return X[:n], y, X[n:], kernel


def fitted(y, X, X_star, kernel, **how):
    """EP's posterior, and its CPU seconds with those of the prior."""
    start = time.process_time()
    found = ExpectationPropagation().fit(
        prior(kernel, X, X_star, **how), y, rng=np.random.default_rng(0)
    )
    return found, time.process_time() - start


def rows(n, done, dimensions=DIMENSIONS, names=tuple(SHAPES)):
    """A row a kernel, number of inputs and of neighbours that is not done."""
    for d in dimensions:
        for name in names:
            left = [m for m in NEIGHBOURS if (n, name, d, m) not in done]
            if not left:
                continue
            X, y, X_star, kernel = problem(name, d, n)
            truth, of_dense = fitted(y, X, X_star, kernel)
            for m in left:
                found, seconds = fitted(y, X, X_star, kernel, covariance="sparse", neighbours=m)
                error = found.log_evidence - truth.log_evidence
                gap = np.abs(found.prediction.probability - truth.prediction.probability)
                told = found.diagnostics
                yield [
                    n, name, d, m, error - told["correction"], error, told["correction_rest"], gap.max(), found.status,
                    seconds, of_dense,
                ]  # fmt: skip


def picture(table, path):
    """Error of the log evidence over the neighbours, a row a number of patterns, a column a number of inputs."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shape = {"nrows": len(SHOWN), "ncols": len(DIMENSIONS), "figsize": (9.0, 6.4)}
    figure, axes = plt.subplots(**shape, sharex=True, sharey=True, layout="constrained")
    for place, (n, d) in zip(axes.flat, itertools.product(SHOWN, DIMENSIONS), strict=True):
        for k, name in enumerate(SHAPES):
            one = (table["N"] == n) & (table["inputs"] == d) & (table["kernel"] == name)
            seen = table[one].sort_values("neighbours")
            how = {"color": LINES[k]["color"], "marker": "o"}
            place.plot(seen["neighbours"], seen["error"].abs(), label=name, **how)
            how |= {"linestyle": ":", "fillstyle": "none"}
            place.plot(seen["neighbours"], seen["error_corrected"].abs(), **how)
        place.axhline(1.0, color="0.6", linewidth=0.8)
        place.set(yscale="log", title=f"{n} patterns, {d} inputs", xticks=NEIGHBOURS)
        place.grid(alpha=0.3)
    for place in axes[-1]:
        place.set_xlabel("neighbours")
    figure.supylabel("error of EP's log evidence, nats", fontsize="medium")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    handles += [plt.Line2D([], [], color="k", linestyle=style) for style in ("-", ":")]
    labels += ["as it is", "corrected"]
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def peak():
    """The most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def costs(X, y, kernel, m, points):
    """Print evidence, CPU seconds and the process's peak memory so far of EP and twisted EP."""
    for method in (ExpectationPropagation(), Twisted(points=points, randomizations=8)):
        start = time.process_time()
        given = prior(kernel, X, covariance="sparse", neighbours=m)
        found = method.fit(given, y, rng=np.random.default_rng(0))
        spent = time.process_time() - start
        print(
            f"{type(method).__name__}: {found.log_evidence:.3f} (se {found.log_evidence_se:.3g}), {found.status}, "
            f"{spent:.1f} CPU s, {peak():.2f} GiB, {found.work},",
            {name: round(value, 3) for name, value in found.diagnostics.items()},
            flush=True,
        )


def field(n, m, points=256):
    """The rough field of benchmarks/spatial.py at its true hyperparameters."""
    import spatial

    given, _ = spatial.problem("exponential", n) if n > 20_000 else spatial.problem("exponential")
    kernel = ConstantKernel(spatial.VARIANCE) * Matern(spatial.LENGTH_SCALE, nu=0.5)
    costs(given["X"][:n], given["y"][:n], kernel, m, points)


def fit(n):
    """Print what EP finds for that field: its hyperparameters searched for as in benchmarks/spatial.py, then known."""
    import spatial

    given, truth = spatial.problem("exponential", n)
    for searched in (True, False):
        start = time.process_time()
        found = spatial.ours("ep", "sparse")(given, searched)
        spent = time.process_time() - start
        row = spatial.judged(found, truth) | {"best": spatial.least_loss(truth)}
        print(row, f"{spent:.1f} CPU s, {peak():.2f} GiB", flush=True)


def chain(n):
    """Labels of an AR(.9) process of variance one: a Markov field, exact with one neighbour."""
    rng = np.random.default_rng(0)
    e, f = rng.standard_normal(n), np.empty(n)
    f[0] = e[0]
    for i in range(1, n):
        f[i] = 0.9 * f[i - 1] + np.sqrt(1.0 - 0.81) * e[i]
    y = np.where(f + rng.standard_normal(n) > 0, 1.0, -1.0)
    costs(np.arange(float(n))[:, None], y, 1.0 * Matern(-1.0 / np.log(0.9), nu=0.5), 1, 256)


def fronts(n):
    """The mean error of EP's corrected evidence over draws, by kernel, number of inputs, neighbours and front.

    It is corrected by twice the neighbours, as it is with many patterns.
    """
    long, found = 0.4, []
    sparse_correction._EXACT = 0
    sums = {
        "RBF + exponential": lambda q: 3.0 * RBF(long * q) + 1.0 * Matern(0.05 * q, nu=0.5),
        "RBF + Matern 3/2": lambda q: 3.0 * RBF(long * q) + 1.0 * Matern(0.1 * q, nu=1.5),
    }
    single = {
        name: (lambda q, shape=shape: VARIANCE * shape(LENGTH_SCALE * q))
        for name, shape in SHAPES.items()
    }
    single["RBF, long"] = lambda q: VARIANCE * RBF(long * q)
    for name, made in (sums | single).items():
        for d in DIMENSIONS:
            kernel, errors = made(np.sqrt(d)), []
            for seed in range(DRAWS):
                rng = np.random.default_rng(seed)
                X = rng.random((n, d))
                K = kernel(X)
                K.flat[:: n + 1] += 1e-8
                f = np.linalg.cholesky(K) @ rng.standard_normal(n)
                y = np.where(f + rng.standard_normal(n) > 0, 1.0, -1.0)
                truth, _ = fitted(y, X, None, kernel)
                each = (
                    fitted(y, X, None, kernel, covariance="sparse", neighbours=m, front=r)[0]
                    for m, r in FRONTS
                )
                errors.append([abs(one.log_evidence - truth.log_evidence) for one in each])
            found.append([name, d, *np.mean(errors, axis=0)])
            print(found[-1], flush=True)
    names = [f"{m} neighbours" + f", {r} in front" * (r > 0) for m, r in FRONTS]
    table = pd.DataFrame(found, columns=["kernel", "inputs", *names])
    table.to_csv(ROOT / "docs/sparse_front.csv", index=False, float_format="%.2g")


def told(n, seeds):
    """What is told of errors over what they are, by number of inputs: a line a problem, and the table of all.

    The evidence is corrected by twice the neighbours, as it is above 2000 patterns; and, to 2000, by the kernel itself.
    """
    found = []
    for seed in range(101, 101 + seeds):
        for d in DIMENSIONS:
            for name in SHAPES:
                X, y, X_star, kernel = problem(name, d, n, seed)
                truth, _ = fitted(y, X, X_star, kernel)
                one, _ = fitted(y, X, X_star, kernel, covariance="sparse")
                method, K = ExpectationPropagation(), one.covariance
                at_once = one.log_evidence
                sparse_correction._EXACT, usual = 0, sparse_correction._EXACT
                other = K.correction(method.gradient(K, one.y, one))
                sparse_correction._EXACT = usual
                gap = np.abs(one.prediction.probability - truth.prediction.probability)
                said = one.prediction.form_error
                row = {
                    "N": n, "inputs": d, "kernel": name, "seed": seed,
                    "error": at_once - truth.log_evidence, "rest": one.diagnostics["correction_rest"],
                    "error_2m": at_once - one.diagnostics["correction"] + other.change - truth.log_evidence,
                    "rest_2m": other.rest, "gap": gap.max(), "said": said.max(), "missed": np.mean(gap > said + 1e-4),
                }  # fmt: skip
                found.append(row)
                print(
                    *(f"{k} {v:.4g}" if isinstance(v, float) else v for k, v in row.items()),
                    flush=True,
                )
    rows = []
    for d, some in pd.DataFrame(found).groupby("inputs"):
        ratio, limit = some["said"] / some["gap"], MAX_PROBABILITY_ERROR
        rows.append({
            "N": n, "inputs": d, "problems": len(some),
            "error, by the kernel": some["error"].abs().max(), "over rest": (some["error"].abs() / some["rest"]).max(),
            "error, by twice the neighbours": np.sqrt(np.mean(some["error_2m"] ** 2)),
            "over its rest": np.sqrt(np.mean((some["error_2m"] / some["rest_2m"]) ** 2)),
            "at most": (some["error_2m"].abs() / some["rest_2m"]).max(),
            "told of probabilities over true, least": ratio.min(), "median": ratio.median(), "most": ratio.max(),
            "inputs whose error is larger": some["missed"].mean(),
            "told above .01 where true below": ((some["said"] > limit) & (some["gap"] < limit)).sum(),
        })  # fmt: skip
    table, path = pd.DataFrame(rows), ROOT / "docs/sparse_told.csv"
    if path.exists():
        kept = pd.read_csv(path)
        table = pd.concat([kept[kept["N"] != n], table]).sort_values(["N", "inputs"])
    table.to_csv(path, index=False, float_format="%.2g")


def main():
    n = int(sys.argv[1]) if sys.argv[1:] else N
    table = pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=COLUMNS)
    done = set(map(tuple, table[KEY].to_numpy().tolist()))
    some = ((int(sys.argv[2]),), sys.argv[3:]) if sys.argv[3:] else ()
    for row in rows(n, done, *some):
        print(row, flush=True)
        table = pd.concat([table, pd.DataFrame([row], columns=COLUMNS)])
        table.to_csv(FILE, index=False, float_format="%.4g")
    if not some:
        picture(table, PICTURE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--field"]:
        field(*map(int, sys.argv[2:5]))
    elif sys.argv[1:2] == ["--fit"]:
        fit(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--chain"]:
        chain(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--told"]:
        told(int(sys.argv[2]), int(*sys.argv[3:4] or [5]))
    elif sys.argv[1:2] == ["--front"]:
        fronts(int(sys.argv[2]))
    else:
        main()
