"""This library beside its peers: error against CPU seconds, on one core, on three problems of Experiment 4.

The problems are Crabs (N = 100), the first 400 patterns of Problem 6, and Problem 6 (N = 1000), with a smooth kernel
(setting 3) and a rough one (setting 6). The truth is the certified reference; where there is none (N = 400), twisted
EP with many points. Probabilities are those of the first `TESTED` test patterns.
Every peer runs in an environment of its own; one that is not there, fails, takes too long, says that it has not
converged, or is further from the truth than `FAR` of its own standard errors, is listed with the reason.

`make peers` runs N = 100 and 400, in minutes; `make peers SIZES=1000` takes the longest problem. Writes docs/peers.csv,
where rows of other sizes and peers stay, docs/peers.png and docs/front.png.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import front
import numpy as np
import pandas as pd

from gpcmc.gp import orthant_covariance, prior, rbf
from gpcmc.inference import Twisted, infer
from studies.atiya2021.names import data_set_seed
from studies.atiya2021.problems import real_problem, synthetic_problem
from studies.atiya2021.reference.cells import digest, load_reference
from studies.common.data import DataUnavailableError, read_registry
from studies.common.figures import look_of
from studies.common.seeds import generator

ROOT = Path(__file__).resolve().parents[2]
HERE, BUILD = ROOT / "benchmarks/peers", ROOT / "build/peers"
SEED, TESTED = 20210308, 20
#: Standard errors from the truth beyond which an error bar is wrong.
FAR = 4.0
KERNELS = {"smooth": (3, 3.0, 2.0), "rough": (6, 0.5, 3.0)}
PEERS = {
    "gpcmc": [sys.executable, HERE / "gpcmc_peer.py"],
    "scikit-learn": [sys.executable, HERE / "sklearn_peer.py"],
    "GPy": [BUILD / "gpy/bin/python", HERE / "gpy_peer.py"],
    "NumPyro": [BUILD / "numpyro/bin/python", HERE / "numpyro_peer.py"],
    "mvtnorm": ["Rscript", HERE / "orthant_peer.R", "mvtnorm"],
    "TruncatedNormal": ["Rscript", HERE / "orthant_peer.R", "TruncatedNormal"],
}
ONE_CORE = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def patterns(size):
    """The number of the problem of a size in the reference, if it is there, and the problem."""
    if size == 100:
        entries = read_registry(ROOT / "data/registry.csv")
        rng = generator(data_set_seed(7, 0, SEED))
        return 7, real_problem("crabs", ROOT / "data/raw", entries, standardise=True, rng=rng)
    return 6 if size == 1000 else None, synthetic_problem(6, generator(data_set_seed(6, 0, SEED)))


def truth(number, setting, problem, given):
    """Log evidence, its standard error, probabilities, and whether they are certified."""
    if number is not None:
        reference = load_reference(ROOT / "data/reference/atiya2021/certified")
        cell = reference.cell(number, setting, digest(problem, given["alpha"], given["beta"]))
        if cell is not None and cell.certified:
            return cell.log_evidence, cell.log_evidence_se, cell.probability[:TESTED], True
    gp = prior(rbf(given["alpha"], given["beta"]), given["X"], given["X_star"])
    found = infer(Twisted(points=4096), gp, given["y"], rng=np.random.default_rng(1))
    return found.log_evidence, found.log_evidence_se, found.probability, False


def judged(row, evidence, evidence_se):
    """The status of a row, or that its error bar is wrong."""
    bar = row.get("standard_error")
    if row["status"] != "ok" or bar is None:
        return row["status"]
    far = abs(row["log_evidence"] - evidence) / np.hypot(bar, evidence_se)
    if far <= FAR:
        return "ok"
    return f"off by {far:.0f} standard errors" if bar > 0 else "states an error of zero"


def results(peer, command, problem, covariance, seconds):
    """What a peer prints of a problem, or why it prints nothing; it may take so many CPU seconds."""
    file = covariance if command[0] == "Rscript" else problem

    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))

    how = {"capture_output": True, "text": True, "preexec_fn": limited}
    try:
        done = subprocess.run([*map(str, command), str(file)], env=os.environ | ONE_CORE, **how)
    except FileNotFoundError:
        return [{"method": peer, "status": "not installed"}]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return [*rows, {"method": "the rest", "status": f"not done after {seconds} CPU s"}]
    failed = {"method": peer, "status": f"failed: {done.stderr.strip()[-150:]}"}
    return rows if done.returncode == 0 else [*rows, failed]


def compare(size, kernel, peers, seconds):
    """A row a method."""
    setting, alpha, beta = KERNELS[kernel]
    number, problem = patterns(size)
    X, y, X_star = problem.X_train[:size], problem.y_train[:size], problem.X_test[:TESTED]
    gp = prior(rbf(alpha, beta), X, X_star)
    given = {
        **{"X": X, "y": y, "X_star": X_star, "alpha": alpha, "beta": beta},
        **{"K": gp.K, "K_star": gp.K_star, "k_star_star": gp.k_star_star},
    }
    evidence, evidence_se, probability, certified = truth(number, setting, problem, given)
    key = {"N": size, "kernel": kernel, "certified": certified}
    with tempfile.TemporaryDirectory() as folder:
        file, covariance = Path(folder, "problem.npz"), Path(folder, "covariance.csv")
        np.savez(file, **given)
        np.savetxt(covariance, orthant_covariance(gp.K, y), delimiter=",", fmt="%.17g")
        for peer in peers:
            for row in results(peer, PEERS[peer], file, covariance, seconds):
                found, p = row.get("log_evidence"), row.get("probability")
                yield key | {
                    "peer": peer,
                    "method": row["method"],
                    "status": judged(row, evidence, evidence_se),
                    "cpu_seconds": row.get("cpu_seconds"),
                    "standard_error": row.get("standard_error"),
                    "error_log_evidence": None if found is None else abs(found - evidence),
                    "error_probability": None
                    if p is None
                    else float(np.sqrt(np.mean((np.array(p) - probability) ** 2))),
                }


def picture(table, path):
    """Error against seconds: log evidence above, probabilities below; hollow where a peer or its error bar failed."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    count = len(table.groupby(["N", "kernel"]))
    size = (2.2 * count, 5.6)
    figure, axes = plt.subplots(2, count, figsize=size, squeeze=False, layout="constrained")
    # of these there is nothing to draw
    numbers = ["error_log_evidence", "error_probability"]
    never = {peer for peer, of in table.groupby("peer") if of[numbers].isna().all(axis=None)}
    table = table.assign(kind=table["method"].str.split(",").str[0])
    cells = list(table.groupby(["N", "kernel"], sort=False))
    for column, ((n, kernel), rows) in enumerate(cells):
        for place, what in zip(axes[:, column], numbers, strict=True):
            for (peer, kind), of in rows.groupby(["peer", "kind"], sort=False):
                seen, look = of[of[what].notna()], look_of(peer, kind.lower().replace(" ", "-"))
                x, y = seen["cpu_seconds"].clip(lower=1e-3), seen[what].clip(lower=1e-7)
                # hollow where the peer itself, or its error bar, failed
                ok = seen["status"] == "ok"
                place.plot(x[ok], y[ok], **look.points)
                place.plot(x[~ok], y[~ok], **look.hollow)
                if peer not in never:
                    place.plot([], [], label=look.label, **look.points)
            place.set(xscale="log", yscale="log")
            place.set(xlabel="CPU seconds")
        axes[0, column].set_title(f"N = {n}, {kernel}")
    axes[0, 0].set_ylabel("error of log evidence, nats")
    axes[1, 0].set_ylabel("error of probabilities, rms")
    handles = {
        label: handle
        for place in axes.flat
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    for peer in sorted(never):
        handles[f"{peer}: fails"] = plt.Line2D([], [], linestyle="none")
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=160, metadata={"Software": None})


def pictures(table):
    """That of the page, and that of the front page."""
    picture(table, ROOT / "docs/peers.png")
    front.picture(table, ROOT / "docs/front.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sizes", type=int, nargs="*", help="100, 400 or 1000; 100 and 400 unless given"
    )
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--seconds", type=int, default=3600, help="CPU limit of a peer and problem")
    parser.add_argument("--draw", action="store_true", help="draw the pictures of docs/peers.csv")
    given = parser.parse_args()
    path = ROOT / "docs/peers.csv"
    if given.draw:
        pictures(pd.read_csv(path))
        return
    if not set(given.sizes) <= {100, 400, 1000}:
        parser.error(f"sizes: {given.sizes} must be among 100, 400, 1000")
    given.sizes = given.sizes or [100, 400]  # with choices, argparse refuses a list as a default
    rows = []
    for size in given.sizes:
        for kernel in KERNELS:
            try:
                for row in compare(size, kernel, given.peers, given.seconds):
                    print({k: v for k, v in row.items() if k != "certified"}, flush=True)
                    rows.append(row)
            except DataUnavailableError as error:
                print(f"N = {size} is left out: {error}", file=sys.stderr)
    table = pd.DataFrame(rows)
    if path.exists():
        old = pd.read_csv(path)
        again = old["N"].isin(given.sizes) & old["peer"].isin(given.peers)
        table = pd.concat([old[~again], table.dropna(axis=1, how="all")])
    kernels, peers = list(KERNELS), list(PEERS)
    order = {"kernel": kernels.index, "peer": peers.index}
    table = table.sort_values(
        ["N", "kernel", "peer"], key=lambda of: of.map(order.get(of.name)) if of.name in order else of,
        kind="stable",
    )  # fmt: skip
    table.to_csv(path, index=False, float_format="%.4g")
    pictures(table)


if __name__ == "__main__":
    main()
