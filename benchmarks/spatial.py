"""Classification of spatial fields beside GPBoost and GPflow: log loss, evidence and CPU seconds, on one core.

Two fields on the unit square, each with 20,000 patterns and 5000 test inputs: one of a Gaussian kernel, smooth, and one
of an exponential kernel, rough. They are drawn exactly, by circulant embedding on a grid of 512 x 512 points, of which
the inputs are some. A label is +1 with probability Phi(f), so that the class probabilities are known. The log loss is
the expected one at the test inputs, -p log q - (1 - p) log(1 - q), and its excess over the best one, of q = p, has no
noise of labels. Each method searches for both hyperparameters, and is also run at the true ones.

Every run is a process of its own, with one thread. GPBoost and GPflow are in environments of their own, which ``make
peer-gpboost peer-gpflow`` set up; one that is not there is shown as missing.

``python benchmarks/spatial.py [gpcmc GPBoost GPflow]`` writes docs/spatial.csv, where other rows stay, and
docs/spatial.png; ``--draw`` draws the picture again.
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

import numpy as np
import pandas as pd
from scipy.special import ndtr, rel_entr

from studies.common.figures import look_of

ROOT = Path(__file__).resolve().parents[1]
HERE, BUILD = ROOT / "benchmarks/peers", ROOT / "build/peers"
SEED, CELLS, PATTERNS, TESTED = 20210308, 512, 20_000, 5000
VARIANCE, LENGTH_SCALE = 3.0, 0.1
LONGEST = 300  # CPU seconds that a run may take
FIELDS = ("gaussian", "exponential")
PYTHONS = {
    "gpcmc": sys.executable,
    "GPBoost": BUILD / "gpboost/bin/python",
    "GPflow": BUILD / "gpflow/bin/python",
}
SCRIPTS = {"GPBoost": HERE / "gpboost_peer.py", "GPflow": HERE / "gpflow_peer.py"}
#: Package, method, its options, and the fields that it runs on.
RUNS = [
    ("gpcmc", "ep", ["ep", "1e-4"], FIELDS),
    ("gpcmc", "laplace", ["laplace", "1e-4"], FIELDS[:1]),
    ("gpcmc", "twisted-ep", ["twisted-ep", "1e-4"], FIELDS[:1]),
    ("gpcmc", "ep, sparse", ["ep", "sparse"], FIELDS[1:]),
    ("gpcmc", "twisted-ep, sparse", ["twisted-ep", "sparse"], FIELDS[1:]),
    ("GPBoost", "Vecchia-Laplace", ["vecchia"], FIELDS),
    ("GPBoost", "full scale, Laplace", ["full_scale_vecchia"], FIELDS),
    ("GPflow", "SVGP", [], FIELDS),
]
COLUMNS = [
    "field", "package", "version", "method", "hyperparameters", "status", "log_loss", "excess",
    "log_evidence", "standard_error", "correction_rest", "rank", "variance", "length_scale", "cpu_seconds",
]  # fmt: skip


def drawn(kind, variance, length_scale, cells, rng):
    """A Gaussian field (cells, cells) on the unit square, drawn exactly; the kernel has died out at distance 1."""
    lag = np.minimum(np.arange(2 * cells), 2 * cells - np.arange(2 * cells)) / cells
    distance = np.hypot(lag[:, None], lag) / length_scale
    of_torus = np.exp(-distance if kind == "exponential" else -0.5 * distance**2)
    spectrum = variance * np.fft.fft2(of_torus).real
    if spectrum.min() < -1e-10 * spectrum.max():
        raise ValueError(f"length_scale must be shorter on the unit square; got {length_scale}")
    white = rng.standard_normal((2, 2 * cells, 2 * cells))
    root = np.sqrt(np.maximum(spectrum, 0.0)) / (2 * cells)
    return np.fft.fft2(root * (white[0] + 1j * white[1])).real[:cells, :cells]


def problem(kind, patterns=PATTERNS, tested=TESTED, cells=CELLS):
    """Inputs, labels and test inputs of a field, and the probabilities of class +1 at these."""
    rng = np.random.default_rng([SEED, FIELDS.index(kind)])
    f = drawn(kind, VARIANCE, LENGTH_SCALE, cells, rng).ravel()
    chosen = rng.choice(len(f), patterns + tested, replace=False)
    X, p = np.stack(np.divmod(chosen, cells), axis=1) / cells, ndtr(f[chosen])
    y = np.where(rng.random(patterns) < p[:patterns], 1.0, -1.0)
    given = {"kind": kind, "variance": VARIANCE, "length_scale": LENGTH_SCALE}
    return given | {"X": X[:patterns], "y": y, "X_star": X[patterns:]}, p[patterns:]


def ours(method, tolerance):
    """A function of a field that fits this library's classifier."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

    from gpcmc.classifier import GaussianProcessClassifier
    from gpcmc.inference import Twisted

    sparse = tolerance == "sparse"
    points = 256 if sparse else 64
    inference = Twisted(points=points, randomizations=8) if method == "twisted-ep" else method

    def fit(given, searched):
        start = (1.0, 0.3) if searched else (given["variance"], given["length_scale"])
        shape = RBF(start[1]) if str(given["kind"]) == "gaussian" else Matern(start[1], nu=0.5)
        classifier = GaussianProcessClassifier(
            ConstantKernel(start[0]) * shape,
            inference,
            optimizer="lbfgs" if searched else None,
            covariance="sparse" if sparse else "low-rank",
            **({} if sparse else {"tolerance": float(tolerance)}),
            random_state=0,
        ).fit(given["X"], given["y"])
        told = classifier.diagnostics_
        return {
            "probability": classifier.predict_proba(given["X_star"])[:, 1],
            "status": classifier.status_,
            "log_evidence": classifier.log_marginal_likelihood_,
            "standard_error": classifier.log_marginal_likelihood_se_ or np.nan,
            "variance": classifier.kernel_.k1.constant_value,
            "length_scale": classifier.kernel_.k2.length_scale,
            **{name: told[name] for name in ("rank", "correction_rest") if name in told},
        }

    return fit


def limited():
    """Let this process take no more CPU seconds than it may."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))


def run(command):
    """What a run in a process of its own prints, or why it prints nothing."""
    one_core = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    env = os.environ | dict.fromkeys(one_core, "1")
    how = {"env": env, "capture_output": True, "text": True, "preexec_fn": limited}
    try:
        done = subprocess.run([*map(str, command)], **how)
    except FileNotFoundError:
        return {"status": "not installed"}
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"status": f"not done after {LONGEST} s", "cpu_seconds": LONGEST}
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"signal {-done.returncode}"])[-1]
        return {"status": said.partition("Error: ")[2].partition("; max_rank")[0] or said[:150]}
    return json.loads(done.stdout.splitlines()[-1])


def judged(row, truth):
    """The row with its expected log loss at probabilities (t,), and the excess over theirs, instead of its own."""
    if (q := row.pop("probability", None)) is None:
        return row
    q = np.array(q)
    excess = float(np.mean(rel_entr(truth, q) + rel_entr(1 - truth, 1 - q)))
    return {"status": "ok"} | row | {"excess": excess, "log_loss": least_loss(truth) + excess}


def least_loss(truth):
    """The log loss of the true probabilities (t,)."""
    return float(-np.mean(truth * np.log(truth) + (1 - truth) * np.log1p(-truth)))


def measure(packages, fields, word):
    """A row a field, method and choice of hyperparameters."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in fields:
            given, truth = problem(kind)
            file = Path(folder, f"{kind}.npz")
            np.savez(file, **given)
            yield {"field": kind, "package": "truth", "method": "best possible"} | {
                "log_loss": least_loss(truth), "excess": 0.0, "variance": VARIANCE, "length_scale": LENGTH_SCALE,
            }  # fmt: skip
            for package, method, options, where in RUNS:
                if package not in packages or kind not in where or word not in method:
                    continue
                script, row = SCRIPTS.get(package, Path(__file__).resolve()), {}
                for hyperparameters in ("true", "fitted"):
                    command = [PYTHONS[package], script, file, hyperparameters, *options]
                    key = {"field": kind, "package": package, "method": method}
                    key["hyperparameters"] = hyperparameters
                    if hyperparameters == "true" or "log_loss" in row:
                        row = judged(run(command), truth)
                    yield (
                        key | row
                    )  # what cannot be done at known hyperparameters is not searched for


def picture(table, path):
    """Excess of the log loss against CPU seconds, a panel a field; hollow where a status is not ok."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.4), sharex=True, layout="constrained")
    table = table[(table["package"] != "truth") & table["excess"].notna()]
    apart = {
        ("exponential", "ep"): "low rank",
        ("exponential", "full scale, Laplace"): "full scale",
    }
    sizes, handles = {"fitted": 1.8, "true": 1.0}, {}
    for place, kind in zip(axes, FIELDS, strict=True):
        own = table[table["field"] == kind]
        for row in own.to_dict("records"):
            bases = ("twisted-ep", "ep", "laplace", "svgp")
            look = look_of(row["package"], next(b for b in bases if b in row["method"].lower()))
            how = look.points if row["status"] == "ok" else look.hollow
            how = how | {"markersize": how["markersize"] * sizes[row["hyperparameters"]]}
            point = row["cpu_seconds"], row["excess"]
            place.plot(*point, **how)
            if (name := apart.get((kind, row["method"]))) is not None:
                at = {"textcoords": "offset points", "ha": "right", "fontsize": "small"}
                place.annotate(name, point, (6, 8), **at)
            handles[look.label] = plt.Line2D([], [], **look.points)
        place.set(
            xscale="log", xlabel="CPU seconds, one thread", title=f"{kind.capitalize()} kernel"
        )
        place.set_ylim(0.0, 1.15 * own["excess"].max())
        place.grid(alpha=0.3)
    axes[0].set_ylabel("excess of the log loss over the best, nats")
    for which, size in sizes.items():
        how = {"color": "k", "marker": "o", "markersize": 4.0 * size, "linestyle": "none"}
        handles[f"{which} hyperparameters"] = plt.Line2D([], [], **how)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=160, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", default=list(PYTHONS), help="all by default")
    parser.add_argument("--fields", nargs="+", default=FIELDS, choices=FIELDS)
    parser.add_argument("--word", default="", help="of the methods that run")
    parser.add_argument("--draw", action="store_true", help="draw the picture of docs/spatial.csv")
    given = parser.parse_args()
    if not set(given.packages) <= PYTHONS.keys():  # with choices, argparse refuses the default
        parser.error(f"packages: {given.packages} must be among {', '.join(PYTHONS)}")
    file = ROOT / "docs/spatial.csv"
    if given.draw:
        picture(pd.read_csv(file), file.with_suffix(".png"))
        return
    key = ["field", "package", "method", "hyperparameters"]
    table = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=COLUMNS)
    order = ["best possible", *(method for _, method, *_ in RUNS), *FIELDS, "fitted", "true"]
    for row in measure(given.packages, given.fields, given.word):
        print({name: row[name] for name in COLUMNS if name in row}, flush=True)
        table = pd.concat([table, pd.DataFrame([row], columns=COLUMNS)])
        table = table.drop_duplicates(key, keep="last").sort_values(
            ["field", "method", "hyperparameters"],
            key=lambda of: of.map({name: k for k, name in enumerate(order)}),
        )
        table.to_csv(file, index=False, float_format="%.7g")
    picture(pd.read_csv(file), file.with_suffix(".png"))


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].endswith(".npz"):
        sys.path.insert(0, str(HERE))
        from importlib.metadata import version

        from work import field

        field(ours(sys.argv[3], sys.argv[4]), version("gpcmc"))
    else:
        main()
