"""What the scripts of all Python peers do: read a problem, run methods, and print what they found."""

import contextlib
import json
import sys
import time

import numpy as np


def run(methods):
    """Run methods of a problem (a file of arrays, the first argument), and print a line of JSON for each.

    A method returns the log evidence or None, the test probabilities or None, and what it says of itself: ``status``,
    ``standard_error`` of the log evidence. Seconds are CPU seconds of all threads, without imports.
    """
    given = _arrays(sys.argv[1])
    small = {"X": given["X"][:10], "y": given["y"][:10], "K": given["K"][:10, :10]}
    small = given | small | {"K_star": given["K_star"][:10]}
    for name, method in methods.items():

        def row(given, method=method):
            evidence, probability, said = method(given)
            evidence = None if evidence is None else float(evidence)
            return {"probability": probability, "log_evidence": evidence} | said

        _printed(row, given, small, {"method": name})


def classify(fits, version):
    """Fit classifiers to patterns (a file of arrays, the last argument), and print a line of JSON for each.

    ``fits`` are methods by name. A method takes patterns ``X`` (n, d) and labels ``y`` -1/+1 (n,), test inputs
    ``X_star`` (t, d), ``length_scale``, () or (d,), where the search of an RBF kernel starts (with a variance of one),
    and ``variance_bounds`` and ``length_scale_bounds`` (2,). It returns a row: test ``probability`` (t,),
    ``log_evidence``, ``variance``, and what it says of itself. Seconds are those of the fit and the predictions: CPU
    seconds of all threads, without imports.
    """
    given = _arrays(sys.argv[-1])
    few = np.concatenate([np.flatnonzero(given["y"] == label)[:5] for label in (-1.0, 1.0)])
    for kernel in ("isotropic", "ard"):
        each = given["X"].shape[1] if kernel == "ard" else ()
        own = given | {"length_scale": np.full(each, given["length_scale"])}
        small = own | {name: given[name][few] for name in ("X", "y")}
        for name, fit in fits.items():
            _printed(fit, own, small, {"method": name, "kernel": kernel, "version": version})


def field(fit, version):
    """Fit a field of benchmarks/spatial.py (a file of arrays, the first argument), and print a line of JSON.

    The second argument is "fitted" or "true", which tells whether the hyperparameters are searched for. ``fit`` takes
    the arrays and that, and returns a row: test probabilities, log evidence, and hyperparameters. Seconds are CPU
    seconds of all threads, without imports.
    """
    given = _arrays(sys.argv[1])
    start = time.process_time()
    row = fit(given, sys.argv[2] == "fitted")
    row["cpu_seconds"] = time.process_time() - start
    row |= {"version": version, "probability": np.asarray(row["probability"]).tolist()}
    print(json.dumps(row, default=float), flush=True)


#: Steps of a variational search: at most, and those over which its bound must have risen by so many nats to go on.
STEPS, WINDOW, LITTLE = 300, 20, 0.05
#: Inducing inputs, and the step lengths of the natural gradient and of Adam (of logarithms of hyperparameters).
INDUCING, GAMMA, RATE = 256, 0.5, 0.1


def gamma(k):
    """The length of step k of the natural gradient, which grows to the full one."""
    return GAMMA * min(1.0, 10.0 ** (k / 5 - 2))


def ascended(step):
    """The status of a variational search whose ``step``, given its number, returns the bound, in nats."""
    bounds = []
    for k in range(STEPS):
        bounds.append(float(step(k)))
        if k >= 2 * WINDOW and max(bounds[-WINDOW:]) < max(bounds[:-WINDOW]) + LITTLE:
            return "ok"
    return f"not converged after {STEPS} steps"


def _arrays(file):
    with np.load(file) as stored:
        return {name: stored[name][()] for name in stored.files}


def _printed(method, given, small, row):
    """Print the row that a method returns, or how it fails, with its CPU seconds; first it runs on few patterns."""
    with contextlib.suppress(Exception):
        method(small)  # what is loaded or compiled at the first call is not counted
    row, start = row | {"status": "ok"}, time.process_time()
    try:
        row |= method(given)
    except Exception as error:  # a peer that fails is shown failing
        row["status"] = f"{type(error).__name__}: {error}"[:200]
    row["cpu_seconds"] = time.process_time() - start
    if row.get("probability") is not None:
        row["probability"] = np.asarray(row["probability"]).tolist()
    print(json.dumps(row, default=float), flush=True)
