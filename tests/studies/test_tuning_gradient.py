"""Experiment 5's tuning with gradients, beside the simplex."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpcmc.gp import rbf
from gpcmc.inference import ConvergenceError
from studies.atiya2021 import tuning
from studies.atiya2021.config import check
from studies.atiya2021.experiments import tuning as of_simplex
from studies.atiya2021.experiments import tuning_gradient as of_gradient
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import real_problem, synthetic_problem
from studies.atiya2021.tuning import Climb, Judge, tuned
from studies.atiya2021.tuning_gradient import kernel_at_start, tuned_by_gradient
from studies.common.configuration import read_config
from studies.common.data import DataUnavailableError, fetch, files_of, read_registry
from studies.common.seeds import generator

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {"options": {}, "relevance": False}
ROWS = {
    "laplace-gradient": PLAIN | {"method": "laplace"},
    "ep-gradient": PLAIN | {"method": "ep"},
    "logistic": PLAIN | {"method": "laplace", "options": {"likelihood": "logistic"}},
    "ep-ard": PLAIN | {"method": "ep", "relevance": True},
}


@pytest.fixture(scope="module")
def problem():
    return synthetic_problem(1, np.random.default_rng(1))


def judge_of(problem, number):
    method = METHODS["twisted-ep"](points=64, randomizations=4)
    return Judge(problem, method, f"1/experiment5/problem{number}/tuning/judge")


def both(number, problem, rows, searches, evaluations):
    """Lines by name, of gradients and of the simplex, and arrays of the former."""
    judge = judge_of(problem, number)
    found = {name: tuned_by_gradient(judge, **row) for name, row in rows.items()}
    for one in found.values():
        assert one.timing[0]["cpu_seconds"] > 0
        assert not any("seconds" in column for column in one.lines[0])
    climbs = {name: Climb(name, {}, {}, evaluations, 1) for name in searches}
    searched = {name: tuned(judge, climb, None) for name, climb in climbs.items()}
    lines = {name: one.lines[0] for name, one in (found | searched).items()}
    return lines, {name: one.arrays["theta"] for name, one in found.items()}


def test_gradients_end_where_the_simplex_ends(problem):
    rows, arrays = both(1, problem, ROWS, ["laplace", "ep"], 60)
    for climbed in ("ep", "laplace"):
        found = rows[f"{climbed}-gradient"]
        assert rows[climbed]["search_converged"] and found["search_converged"]
        assert 0 < found["estimate"] - rows[climbed]["estimate"] < 0.01
        assert abs(found["evidence"] - rows[climbed]["evidence"]) < 0.01
        assert found["log_alpha"] == pytest.approx(rows[climbed]["log_alpha"], abs=0.05)
        assert found["log_beta"] == pytest.approx(rows[climbed]["log_beta"], abs=0.05)
        assert found["evaluations"] < rows[climbed]["evaluations"] / 2
    # the judge is that of the simplex, random numbers included
    theta = np.array([rows["ep-gradient"][name] for name in ("log_alpha", "log_beta")])
    np.testing.assert_allclose(arrays["ep-gradient"], theta[::-1])
    again = judge_of(problem, 1).columns(rbf(*np.exp(theta)))
    for name in ("evidence", "evidence_se", "log_loss"):
        assert rows["ep-gradient"][name] == pytest.approx(again[name], rel=1e-9)
    # two length scales contain one; the logistic model is another, and is not judged
    assert rows["ep-ard"]["estimate"] >= rows["ep-gradient"]["estimate"]
    assert arrays["ep-ard"].shape == (3,) and "log_alpha" not in rows["ep-ard"]
    assert "evidence" not in rows["logistic"] and 0 < rows["logistic"]["log_loss"] < 1


def test_gradients_reach_the_optimum_of_crabs(tmp_path):
    registry = read_registry(ROOT / "data/registry.csv")
    (entry,) = files_of("crabs", registry)
    mirrors = ["data/raw", "../shared/data"]
    try:
        fetch(replace(entry, sources=()), tmp_path, mirrors, root=ROOT)
    except DataUnavailableError:
        pytest.skip(f"{entry.file} is in no mirror; see data/README.md")
    crabs = real_problem("crabs", tmp_path, registry, standardise=True, rng=generator("1/crabs"))
    of_ep = {"ep-gradient": ROWS["ep-gradient"]}
    rows, _ = both(7, crabs, of_ep, ["ep"], 25)
    found, simplex = rows["ep-gradient"], rows["ep"]
    assert found["status"] == "ok" and found["evaluations"] < simplex["evaluations"] == 25
    for what in ("estimate", "evidence"):
        assert found[what] >= simplex[what] - 0.01


def test_the_search_starts_where_the_simplex_starts(problem):
    (log_alpha, log_beta), bounds = tuning.start_and_bounds(problem.X_train)
    same = rbf(np.exp(log_alpha), np.exp(log_beta))
    for relevance, scales in ((False, 1), (True, 2)):
        kernel = kernel_at_start(problem.X_train, relevance)
        np.testing.assert_allclose(kernel(problem.X_train), same(problem.X_train))
        half = 0.5 * np.log(2.0)
        expected = [bounds[1], *[bounds[0] - half] * scales]
        np.testing.assert_allclose(kernel.bounds, expected)


def test_what_cannot_be_judged_says_so(problem, monkeypatch):
    def fail(method, *args, **kwargs):
        raise ConvergenceError("no", None)

    monkeypatch.setattr(tuning, "infer", fail)
    for name in ("laplace-gradient", "logistic"):
        (line,) = tuned_by_gradient(judge_of(problem, 3), **ROWS[name]).lines
        assert line["status"] == "not converged" and "evidence" not in line
        assert line["estimate"] < 0


def test_a_method_without_a_gradient_is_refused(problem):
    with pytest.raises(ValueError, match="method must be laplace or ep.*; got 'orthant'"):
        tuned_by_gradient(judge_of(problem, 3), **PLAIN | {"method": "orthant"})


@pytest.mark.parametrize("scale", ["tiny", "smoke", "standard", "published"])
def test_both_ways_of_tuning_have_one_judge(scale):
    config = read_config(scale, ROOT / "config")
    judges = [
        {row["problem"]: row["judge"] for row in module.plan(check(config))}
        for module in (of_simplex, of_gradient)
    ]
    assert judges[0] == judges[1]
