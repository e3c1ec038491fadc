"""The benchmark of fitted classifiers: scores, differences to EP by data set, and packages that fail or are missing."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from studies.atiya2021.problems import Problem
from studies.atiya2021.whofits.runs import kernel_at_start
from studies.atiya2021.whofits.scores import scores

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "benchmarks/peers"


@pytest.fixture(scope="module")
def heldout(script):
    return script("peers/heldout.py")


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    return Problem(X[:40], y[:40], X[40:], y[40:], np.full(20, np.nan))


def row(data, kernel, package, method, loss, status="ok", seconds=1.0):
    known = {"data": data, "kernel": kernel, "package": package, "method": method}
    numbers = dict.fromkeys(("error_rate", "binned_error", "intercept"), 0.1)
    return known | numbers | {
        "version": "1", "status": status, "log_loss": loss, "slope": 1.0, "cpu_seconds": seconds,
    }  # fmt: skip


def test_data_sets_are_the_units_and_failures_are_counted(heldout):
    """Two kernels of a data set are one unit; a kernel that failed is compared on the other one alone."""
    other = ("GPBoost", "Laplace")
    rows = [
        *(row(d, k, *heldout.OURS, 0.3) for d in ("a", "b", "c") for k in heldout.KERNELS),
        row("a", "isotropic", *other, 0.4, seconds=4.0),
        row("a", "ard", *other, 0.6, "not converged", seconds=4.0),
        row("b", "isotropic", *other, 0.25),
        row("b", "ard", *other, np.nan, "not done after 9 CPU s"),
        row("c", "isotropic", *other, 0.35),
        row("c", "ard", *other, 0.35),
    ]
    table = pd.DataFrame(rows, columns=heldout.COLUMNS)
    found = heldout.summary(table).set_index(["kernel", "package", "method"])
    both = found.loc[("both", *other)]
    units = np.array([0.2, -0.05, 0.05])
    assert both["log_loss_more"] == pytest.approx(units.mean())
    assert both["log_loss_more_se"] == pytest.approx(units.std(ddof=1) / np.sqrt(3))
    assert both["log_loss_more_median"] == pytest.approx(0.05)
    assert (both["lower"], both["higher"], both["data_sets"]) == (1, 2, 3)
    assert (both["fits"], both["failed"], both["not_converged"]) == (5, 1, 1)
    assert both["why"] == "not done after 9 CPU s"
    assert both["seconds_ratio"] == pytest.approx(1.0)
    assert found.loc[("ard", *other), "data_sets"] == 2
    assert found.loc[("both", *heldout.OURS), "log_loss_more"] == 0.0


def test_a_missing_package_has_rows_that_say_so(heldout, problem, monkeypatch):
    monkeypatch.setattr(heldout, "split_problem", lambda *_: problem)
    monkeypatch.setitem(heldout.PACKAGES, "GPBoost", (["/no/such/python"], {"Laplace": "laplace"}))
    rows = list(heldout.fits("sea-land", ["GPBoost"], 5))
    assert [one["kernel"] for one in rows] == ["isotropic", "ard"]
    assert {one["status"] for one in rows} == {"not installed"}
    table = pd.DataFrame(rows, columns=heldout.COLUMNS)
    assert heldout.summary(table)["failed"].tolist() == [2, 1, 1]


def test_the_judge_takes_probabilities_alone(heldout, problem):
    y = problem.y_test
    p = np.linspace(0.1, 0.9, len(y))
    scored = heldout.judged({"probability": p.tolist(), "status": "ok"}, y)
    assert scored["log_loss"] == pytest.approx(np.mean(-np.log(np.where(y > 0, p, 1.0 - p))))
    assert "probability" not in scored
    for wrong in (1.2, np.nan):
        bad = heldout.judged({"probability": [wrong, *p[1:]], "status": "ok"}, y)
        assert bad["status"].startswith("failed") and "log_loss" not in bad


def test_our_classifier_and_scikit_learns_are_run_on_the_same_patterns(heldout, problem, tmp_path):
    """Both kernels are fitted, and scikit-learn's own classifier has the probabilities that its script prints."""
    from sklearn.gaussian_process import GaussianProcessClassifier

    np.savez(file := tmp_path / "patterns.npz", **heldout.arrays(problem))
    for script, method in (("gpcmc", "EP"), ("sklearn", "Laplace, logistic")):
        command = [sys.executable, PEERS / f"{script}_peer.py", "fitted", file]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(one["method"], one["kernel"]) for one in rows] == [
            (method, "isotropic"), (method, "ard"),
        ]  # fmt: skip
        assert all(one["version"] and one["cpu_seconds"] > 0.0 for one in rows)
    kernel = kernel_at_start(problem.X_train, relevance=True)
    known = GaussianProcessClassifier(kernel).fit(problem.X_train, problem.y_train)
    expected = scores(known.predict_proba(problem.X_test)[:, 1], problem.y_test)
    found = heldout.judged(rows[1], problem.y_test)
    assert found["log_loss"] == pytest.approx(expected["log_loss"], abs=1e-4)


def test_a_peer_is_stopped_by_cpu_time_and_keeps_what_it_printed(heldout):
    spin = 'print(\'{"method": "first"}\', flush=True)\nwhile True: pass'
    rows = heldout.results("peer", [sys.executable, "-c", spin], "file", None, 1)
    assert rows == [{"method": "first"}, {"method": "the rest", "status": "not done after 1 CPU s"}]
