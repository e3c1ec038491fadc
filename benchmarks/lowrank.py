"""Covariances of low rank: CPU seconds, memory and error of the log evidence over N, each run a process of its own.

The patterns in the plane are those of benchmarks/large.py, the law of Problem 6 with the rough kernel, so that
docs/large.csv has the dense evidence of the same patterns at N = 500 to 10,000. In 6 and 8 inputs the patterns are
standard normal, the labels follow the first input with noise, and the length scale is the root of the number of inputs.
All seconds are CPU seconds of one thread: other work on the machine makes them larger, and nothing makes them smaller.

Methods "softmax" and "softmax, dense" are Laplace's with three classes, at standard normal patterns in the plane and
labels drawn from the softmax of smooth functions, with the same kernel: `--methods "softmax, dense" softmax`. Methods
"dense, parallel" and "dense, twisted" are expectation propagation and twisted EP on the dense covariance of a kernel:
no approximation, but sites from one. Their column `factorizations` has their seconds over those of one Cholesky
factorisation in the same run.

`python benchmarks/lowrank.py` takes the plane, with `--tolerance 3e-5` for the finer line of the picture, and `--wide`
6 and 8 inputs; sizes may be named. All write docs/lowrank.csv, where other rows stay, and docs/lowrank.png;
`--draw` draws the picture again.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from large import problem_patterns

from studies.common.figures import METHODS as LOOKS

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
#: Inputs, N and tolerance of the other runs.
WIDE = [
    (d, n, tolerance) for d in (6, 8) for n in (1000, 2000, 10_000) for tolerance in (3e-2, 1e-2)
]
#: In the plane, where no other is asked for.
TOLERANCE = 1e-4
#: The finer one of the picture.
FINE = 3e-5
#: Groups of draws of twisted EP, and draws in a group.
GROUPS, POINTS = 8, 64
#: Methods on the dense covariance that start from one of low rank, and what docs/large.csv calls the plain ones.
DENSE = {"dense, parallel": "ep", "dense, twisted": "twisted-ep"}
DIAGNOSTICS = ("rank", "correction", "correction_rest")
COLUMNS = [
    "inputs", "N", "method", "tolerance", "status", "rank", "seconds_prior", "seconds", "peak_mib", "log_evidence",
    "standard_error", "correction", "correction_rest", "dense", "factorizations",
]  # fmt: skip


def problem(inputs, n, method):
    """Kernel, patterns and labels."""
    from gpcmc.gp import rbf

    if method.startswith("softmax"):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((n, 2))
        f = np.stack([3 * np.sin(1.5 * X[:, 0]), 3 * np.cos(1.5 * X[:, 1]), X[:, 0] * X[:, 1]])
        return rbf(0.5, 3.0), X, np.argmax(f + rng.gumbel(size=f.shape), axis=0)
    if inputs > 2:
        X = np.random.default_rng(20210308).standard_normal((n, inputs))
        noise = np.random.default_rng(1).standard_normal(n)
        return rbf(np.sqrt(2.0 * inputs), 3.0), X, np.where(X[:, 0] + 0.5 * noise > 0, 1.0, -1.0)
    return rbf(0.5, 3.0), *problem_patterns(n)


def measure(method, inputs, n, tolerance):
    """One run: a line of JSON."""
    from scipy.linalg import cholesky

    from gpcmc.evidence import Search, surface_method
    from gpcmc.evidence.forms import LowRankForm
    from gpcmc.gaussian.softmax_mode import MulticlassLaplace
    from gpcmc.gp import prior as dense_prior
    from gpcmc.gp import rbf
    from gpcmc.inference import ExpectationPropagation, Twisted

    def low_rank_prior(kernel, X, tolerance=1e-4):
        return dense_prior(kernel, X, covariance="low-rank", tolerance=tolerance)

    kernel, X, y = problem(inputs, n, method)
    low_rank_prior(kernel, X[:200])  # imports
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    if method == "fitted":
        method = surface_method(ExpectationPropagation(), searching=True)
        found, _ = Search("lbfgs").run(
            method, rbf(1.0, 1.0), X, y, None, form_at=lambda kernel: LowRankForm(tolerance)
        )
        row = {"seconds": time.process_time() - start}
        prior = low_rank_prior(kernel.clone_with_theta(found.theta), X, tolerance=tolerance)
        posterior = ExpectationPropagation().fit(prior, y)
        row |= {"log_evidence": posterior.log_evidence}
        row["status"] = f"{found.evaluations} evaluations, {posterior.status}"
        row |= {name: posterior.diagnostics[name] for name in DIAGNOSTICS}
    elif method in DENSE:
        blocks = dense_prior(kernel, X)
        row = {"seconds_prior": time.process_time() - start}
        if method == "dense, parallel":
            found = ExpectationPropagation(tolerance=1e-4).fit(blocks, y)
        else:
            twisted, rng = Twisted(points=POINTS, randomizations=GROUPS), np.random.default_rng(1)
            found = twisted.fit(blocks, y, rng=rng)
        row["seconds"] = time.process_time() - start
        row |= {"status": found.status, "log_evidence": found.log_evidence}
        row["standard_error"] = found.log_evidence_se
        row["peak_mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        del found
        A = np.asfortranarray(blocks.K)
        del blocks
        A.flat[:: n + 1] += 1.0
        start = time.process_time()
        cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        one = time.process_time() - start
        row["factorizations"] = (row["seconds"] - row["seconds_prior"]) / one
    elif method == "softmax, dense":
        blocks = dense_prior(kernel, X)
        row = {"seconds_prior": time.process_time() - start}
        found = MulticlassLaplace().fit(blocks, y)
        row["seconds"] = time.process_time() - start
        row |= {"status": found.status, "log_evidence": found.log_evidence}
    else:
        prior = low_rank_prior(kernel, X, tolerance=tolerance)
        row = {"seconds_prior": time.process_time() - start}
        options = {
            "ep": ExpectationPropagation(),
            "twisted-ep": Twisted(points=POINTS, randomizations=GROUPS),
            "softmax": MulticlassLaplace(),
        }[method]
        posterior = options.fit(prior, y, rng=np.random.default_rng(1))
        row["seconds"] = time.process_time() - start
        row |= {"status": posterior.status, "log_evidence": posterior.log_evidence}
        row["standard_error"] = posterior.log_evidence_se
        row |= {name: posterior.diagnostics[name] for name in DIAGNOSTICS}
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    row.setdefault("peak_mib", peak)
    if inputs > 2 and n <= 2000:
        dense = ExpectationPropagation(tolerance=1e-6).fit(dense_prior(kernel, X), y)
        row["dense"] = dense.log_evidence
    print(json.dumps(row))


def run(method, inputs, n, tolerance):
    """A row of a run in a process of its own."""
    key = {"inputs": inputs, "N": n, "method": method, "tolerance": tolerance}
    command = [sys.executable, __file__, "--one", method, str(inputs), str(n), str(tolerance)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"signal {-done.returncode}"])[-1]
        return key | {"status": said.rpartition("Error: ")[2].partition(":")[0]}
    return key | json.loads(done.stdout)


def picture(table, path):
    """Seconds, memory and errors over N, in the plane."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    dense = pd.read_csv(ROOT / "docs/large.csv")
    plane = table[(table["inputs"] == 2) & table["seconds"].notna()]
    fine = plane[(plane["method"] == "ep") & (plane["tolerance"] == FINE)].sort_values("N")
    plane = plane[plane["tolerance"] == TOLERANCE]
    figure, axes = plt.subplots(1, 3, figsize=(10.0, 4.4), layout="constrained")
    of_ep, of_twisted, searched = (LOOKS[name] for name in ("ep", "twisted-ep", "fitted"))
    solid, dashed, dotted = ({"linestyle": one} for one in ("-", "--", ":"))
    for method, look in (("ep", of_ep), ("twisted-ep", of_twisted)):
        rows = plane[plane["method"] == method].sort_values("N")
        old = dense[(dense["method"] == method) & dense["cpu_seconds"].notna()]
        for place, column, theirs in (
            (axes[0], "seconds", "cpu_seconds"),
            (axes[1], "peak_mib", "peak_mib"),
        ):
            name = f"{look.label}, low rank"
            place.loglog(rows["N"], rows[column], label=name, **look.points | solid)
            if method == "ep":
                name = f"{look.label}, low rank, tolerance {FINE:g}"
                place.loglog(fine["N"], fine[column], label=name, **look.points | dashed)
            name = f"{look.label}, dense"
            place.loglog(old["N"], old[theirs], label=name, **look.points | dotted)
    rows = plane[plane["method"] == "fitted"].sort_values("N")
    name = "search of hyperparameters, low rank"
    axes[0].loglog(rows["N"], rows["seconds"], label=name, **searched.points | solid)
    rows = plane[plane["method"] == "ep"].sort_values("N")
    seen = rows[rows["dense"].notna()]
    error = (seen["log_evidence"] - seen["dense"]).abs().clip(lower=1e-3)
    of_n = {
        "EP, corrected: error, at least 0.001": (seen["N"], error, of_ep.points | solid),
        "its correction": (rows["N"], rows["correction"], of_ep.points | dashed | {"marker": "^"}),
        "its reported rest": (
            rows["N"], rows["correction_rest"], of_ep.points | dotted | {"marker": "v"}
        ),
        f"the same, tolerance {FINE:g}": (
            fine["N"], fine["correction_rest"], of_ep.hollow | dotted | {"marker": "v"}
        ),
    }  # fmt: skip
    rows = plane[plane["method"] == "twisted-ep"].sort_values("N")
    name = f"{of_twisted.label}: standard error"
    of_n[name] = rows["N"], rows["standard_error"], of_twisted.points | solid
    for name, (n, nats, look) in of_n.items():
        axes[2].loglog(n, nats.abs(), label=name, **look)
    for place, label in zip(
        axes, ("CPU seconds, one thread", "peak memory, MiB", "nats"), strict=True
    ):
        place.set(xlabel="number of patterns N", ylabel=label)
        place.grid(alpha=0.3)
        place.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", help="numbers of patterns")
    parser.add_argument("--methods", nargs="*", default=["ep", "twisted-ep", "fitted"])
    parser.add_argument("--wide", action="store_true", help="6 and 8 inputs in place of two")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="in the plane")
    parser.add_argument("--one", nargs=4, help="one run, in this process")
    parser.add_argument("--draw", action="store_true", help="draw the picture of docs/lowrank.csv")
    given = parser.parse_args()
    if given.one:
        method, inputs, n, tolerance = given.one
        measure(method, int(inputs), int(n), float(tolerance))
        return
    file = ROOT / "docs/lowrank.csv"
    if given.draw:
        picture(pd.read_csv(file), file.with_suffix(".png"))
        return
    old = pd.read_csv(file).to_dict("records") if file.exists() else []
    rows = {(r["inputs"], r["N"], r["method"], r["tolerance"]): r for r in old}
    wanted = given.sizes or SIZES
    if given.wide:
        plans = [("ep", *wide) for wide in WIDE if wide[1] in wanted]
    else:
        plans = [(m, 2, n, given.tolerance) for n in wanted for m in given.methods]
    dense = pd.read_csv(ROOT / "docs/large.csv").set_index(["N", "method"])["log_evidence"]
    for plan in plans:
        row = run(*plan)
        if plan[1] == 2:
            row["dense"] = dense.get((plan[2], DENSE.get(plan[0], plan[0])), np.nan)
        if plan[0] == "softmax":
            other = rows.get((*plan[1:3], "softmax, dense", plan[3]), {})
            row["dense"] = other.get("log_evidence", np.nan)
        rows[*plan[1:3], plan[0], plan[3]] = row
        print(json.dumps(row), flush=True)
        table = pd.DataFrame([rows[key] for key in sorted(rows)], columns=COLUMNS)
        table.to_csv(file, index=False, float_format="%.10g")
    picture(pd.read_csv(file), file.with_suffix(".png"))


if __name__ == "__main__":
    main()
