"""Experiment 5's tuning with gradients, beside the simplex."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from gpcmc.gp import rbf
from gpcmc.inference import ConvergenceError
from studies.atiya2021 import tuning, tuning_gradient
from studies.atiya2021.config import check
from studies.atiya2021.jobs import jobs
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import real_problem, synthetic_problem
from studies.atiya2021.tuning_gradient import kernel_at_start
from studies.common.data import DataUnavailableError, fetch, files_of, read_registry
from studies.common.pieces import Pieces
from studies.common.seeds import generator

ROOT = Path(__file__).resolve().parents[2]
ROWS = {
    "laplace-gradient": {"method": "laplace"},
    "ep-gradient": {"method": "ep"},
    "logistic": {"method": "laplace", "options": {"likelihood": "logistic"}},
    "ep-ard": {"method": "ep", "relevance": True},
}
SIMPLEX = {"laplace": {"method": "laplace"}, "ep": {"method": "ep"}}
JUDGE = {"method": "twisted-ep", "options": {"points": 64, "randomizations": 4}}


@pytest.fixture(scope="module")
def problem():
    return synthetic_problem(1, np.random.default_rng(1))


def both(number, problem, folder, rows, searches, evaluations):
    """Rows by name, of gradients and of the simplex, and arrays of the former."""
    given = {"root": 1, "judge": JUDGE}
    found, timing, arrays = tuning_gradient.tuning_gradient(
        number, problem, methods=rows, pieces=Pieces(folder / "gradient", [], 0), **given
    )
    assert [t["method"] for t in timing] == list(rows)
    assert all(t["cpu_seconds"] > 0 for t in timing)
    assert not any("seconds" in column for row in found for column in row)
    searched, _, _ = tuning.tuning(
        number, problem, methods=searches, evaluations=evaluations, few=1,
        pieces=Pieces(folder / "simplex", [], 0), **given,
    )  # fmt: skip
    return {row["method"]: row for row in (*found, *searched)}, arrays


@pytest.mark.slow
def test_gradients_end_where_the_simplex_ends(problem, tmp_path):
    rows, arrays = both(1, problem, tmp_path, ROWS, SIMPLEX, 60)
    for simplex in ("ep", "laplace"):
        found = rows[f"{simplex}-gradient"]
        assert rows[simplex]["search_converged"] and found["search_converged"]
        assert 0 < found["estimate"] - rows[simplex]["estimate"] < 0.01
        assert abs(found["evidence"] - rows[simplex]["evidence"]) < 0.01
        assert found["log_alpha"] == pytest.approx(rows[simplex]["log_alpha"], abs=0.05)
        assert found["log_beta"] == pytest.approx(rows[simplex]["log_beta"], abs=0.05)
        assert found["evaluations"] < rows[simplex]["evaluations"] / 2
    # the judge is that of the simplex, random numbers included
    theta = np.array([rows["ep-gradient"][name] for name in ("log_alpha", "log_beta")])
    np.testing.assert_allclose(arrays["theta_ep-gradient"], theta[::-1])
    judge = tuning._Tuner(problem, METHODS["twisted-ep"](**JUDGE["options"]),
                          "1/experiment5/problem1/tuning", 60, 1)  # fmt: skip
    again = judge._judged(theta, 0.0)
    for name in ("evidence", "evidence_se", "log_loss"):
        assert rows["ep-gradient"][name] == pytest.approx(again[name], rel=1e-9)
    # two length scales contain one; the logistic model is another, and is not judged
    assert rows["ep-ard"]["estimate"] >= rows["ep-gradient"]["estimate"]
    assert arrays["theta_ep-ard"].shape == (3,) and "log_alpha" not in rows["ep-ard"]
    assert "evidence" not in rows["logistic"] and 0 < rows["logistic"]["log_loss"] < 1


@pytest.mark.slow
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
    rows, _ = both(7, crabs, tmp_path, of_ep, {"ep": SIMPLEX["ep"]}, 25)
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


def test_what_cannot_be_judged_says_so(problem, tmp_path, monkeypatch):
    def fail(method, *args, **kwargs):
        raise ConvergenceError("no", None)

    monkeypatch.setattr(tuning_gradient, "infer", fail)
    (row,), _, _ = tuning_gradient.tuning_gradient(
        3, problem, root=1, methods={"laplace-gradient": {"method": "laplace"}}, judge=JUDGE,
        pieces=Pieces(tmp_path, [], 0),
    )  # fmt: skip
    assert row["status"] == "not converged" and "evidence" not in row and row["estimate"] < 0


def test_bad_input_and_missing_data(problem, tmp_path):
    given = {"root": 1, "judge": JUDGE, "pieces": Pieces(tmp_path, [], 0)}
    rows, timing, arrays = tuning_gradient.tuning_gradient(9, None, methods=ROWS, **given)
    assert [row["status"] for row in rows] == ["data not available"] * len(ROWS)
    assert [row["cpu_seconds"] for row in timing] == [None] * len(ROWS) and not arrays
    wrong = {"orthant": {"method": "orthant"}}
    with pytest.raises(ValueError, match="method must be laplace or ep.*; got 'orthant'"):
        tuning_gradient.tuning_gradient(3, problem, methods=wrong, **given)


@pytest.mark.parametrize("scale", ["tiny", "smoke", "standard", "published"])
def test_kept_searches_know_nothing_of_gradients(scale):
    """Their pieces have the arguments of the job in their keys."""
    config = yaml.safe_load((ROOT / f"config/{scale}.yaml").read_text("utf-8")) | {"scale": scale}
    found = jobs(check(config))
    problems = config["atiya2021"]["experiment5"]["tuning"]["problems"]
    for number in problems:
        job = found[f"experiment5/problem{number}_tuning"]
        names = {"number", "root", "evaluations", "few", "judge", "methods"}
        assert job.arguments.keys() == names
        assert not any("gradient" in module for module in job.modules)
        other = found[f"experiment5/problem{number}_gradient"]
        assert other.arguments["judge"] == job.arguments["judge"]
