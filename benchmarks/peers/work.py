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
    with np.load(sys.argv[1]) as stored:
        given = {name: stored[name][()] for name in stored.files}
    small = {"X": given["X"][:10], "y": given["y"][:10], "K": given["K"][:10, :10]}
    small = given | small | {"K_star": given["K_star"][:10]}
    for name, method in methods.items():
        with contextlib.suppress(Exception):
            method(small)  # what is loaded or compiled at the first call is not counted
        start, row = time.process_time(), {"method": name, "status": "ok"}
        try:
            evidence, probability, said = method(given)
        except Exception as error:  # a peer that fails is shown failing
            row["status"] = f"{type(error).__name__}: {error}"[:200]
        else:
            row |= said
            row["log_evidence"] = None if evidence is None else float(evidence)
            row["probability"] = None if probability is None else np.asarray(probability).tolist()
        row["cpu_seconds"] = time.process_time() - start
        print(json.dumps(row), flush=True)


def field(fit, version):
    """Fit a field of benchmarks/spatial.py (a file of arrays, the first argument), and print a line of JSON.

    The second argument is "fitted" or "true", which tells whether the hyperparameters are searched for. ``fit`` takes
    the arrays and that, and returns a row: test probabilities, log evidence, and hyperparameters. Seconds are CPU
    seconds of all threads, without imports.
    """
    with np.load(sys.argv[1]) as stored:
        given = {name: stored[name][()] for name in stored.files}
    start = time.process_time()
    row = fit(given, sys.argv[2] == "fitted")
    row["cpu_seconds"] = time.process_time() - start
    row |= {"version": version, "probability": np.asarray(row["probability"]).tolist()}
    print(json.dumps(row, default=float), flush=True)
