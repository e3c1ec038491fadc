"""Experiment 5, small.

Of two statistical checks, each compares with a bound more than six standard errors away (false alarms
below 1e-8); the seeds are fixed.
"""

import numpy as np
import pytest

from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import ConvergenceError, ExpectationPropagation, Laplace, Twisted
from gpcmc.orthant import ExtinctionError
from studies.atiya2021 import experiment5 as hyperparameters
from studies.atiya2021 import tuning
from studies.atiya2021.experiment5 import hyperparameter_posterior, scores
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import Problem, synthetic_problem
from studies.atiya2021.tuning import WORST, Search, search
from studies.common.pieces import Pieces

QUICK = {
    "root": 1,
    "method": "laplace",
    "options": {"samples": 2},
    "chains": 4,
    "iterations": 30,
    "burn_in": 40,
    "kept": 5,
    "predictive": 2,
}


@pytest.fixture(scope="module")
def problem():
    whole = synthetic_problem(3, np.random.default_rng(0))
    return Problem(
        whole.X_train[:16], whole.y_train[:16], whole.X_test, whole.y_test, whole.bayes_posterior
    )


# --- the posterior over hyperparameters


def test_posterior_rows_and_draws(problem, tmp_path):
    rows, timing, arrays = hyperparameter_posterior(
        3, "row", problem, **QUICK, pieces=Pieces(tmp_path, [], 0)
    )
    (row,), (times,) = rows, timing
    assert (row["problem"], row["method"], row["seed"]) == (3, "row", "1/experiment5/problem3/row")
    assert row["status"] == "not converged", "120 draws have fewer than 100 effective samples"
    assert arrays["log_alpha"].shape == arrays["log_beta"].shape == (4, 5)
    assert arrays["probability"].shape == (50,)
    for which in ("log_alpha", "log_beta"):
        assert row[f"{which}_q025"] <= row[f"{which}_median"] <= row[f"{which}_q975"]
        assert row[f"{which}_mean_se"] == pytest.approx(
            row[f"{which}_sd"] / np.sqrt(row[f"{which}_effective_samples"])
        )
        assert times[f"{which}_effective_per_second"] == pytest.approx(
            row[f"{which}_effective_samples"] / times["cpu_seconds"]
        )
    assert 0 < row["acceptance"] < 1
    assert row["work_evidence_estimates"] <= 4 * 31
    assert 0 < row["log_loss"] < 1 and row["log_loss_se"] > 0
    assert row["log_loss"] == scores(arrays["probability"], problem.y_test)["log_loss"]
    # the chains' own draws, the last of each among those kept, in the paper's hyperparameters
    pair = hyperparameters.run_chains(
        problem.X_train, problem.y_train, method="laplace", samples=2, iterations=30, burn_in=40,
        chains=2, rng=hyperparameters.generator(row["seed"] + "/pair0"),
    )  # fmt: skip
    np.testing.assert_allclose(np.exp(arrays["log_alpha"][:2]), pair.alpha[:, 5::6])
    np.testing.assert_allclose(np.exp(arrays["log_beta"][:2]), pair.beta[:, 5::6])
    assert not any("seconds" in column for column in row), "seconds are in the timing table"


@pytest.mark.slow
def test_posterior_restarts_and_has_its_own_seeds(problem, tmp_path, monkeypatch):
    whole = hyperparameter_posterior(
        3, "row", problem, **QUICK, pieces=Pieces(tmp_path / "a", [], 0)
    )
    original, calls = hyperparameters.run_chains, []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(hyperparameters, "run_chains", interrupted)
    pieces = Pieces(tmp_path / "b", [], 0)
    with pytest.raises(KeyboardInterrupt):
        hyperparameter_posterior(3, "row", problem, **QUICK, pieces=pieces)
    resumed = hyperparameter_posterior(3, "row", problem, **QUICK, pieces=pieces)
    assert len(calls) == 3, "the first pair was finished, the second ran twice"
    assert resumed[0] == whole[0]
    for name, array in whole[2].items():
        np.testing.assert_array_equal(resumed[2][name], array)
    draws = whole[2]["log_alpha"]
    assert len(np.unique(draws[:, -1])) == 4, "no two chains may share their random numbers"
    other = hyperparameter_posterior(
        3, "other", problem, **QUICK, pieces=Pieces(tmp_path / "c", [], 0)
    )
    assert not np.isin(other[2]["log_alpha"], draws).any()


@pytest.mark.slow
def test_posteriors_by_different_chains_agree(problem, tmp_path):
    given = QUICK | {"burn_in": 200, "predictive": 10}
    found = {}
    for method, options, iterations in (
        ("laplace", {"samples": 4}, 600),
        ("ancillary", {"latent_updates": 5}, 2000),
    ):
        found[method] = hyperparameter_posterior(
            3,
            method,
            problem,
            **given | {"method": method, "options": options, "iterations": iterations},
            pieces=Pieces(tmp_path / method, [], 0),
        )[0][0]
    one, two = found.values()
    for which in ("log_alpha", "log_beta"):
        error = np.hypot(one[f"{which}_mean_se"], two[f"{which}_mean_se"])
        assert abs(one[f"{which}_mean"] - two[f"{which}_mean"]) < 6 * error
    assert one["log_loss"] == pytest.approx(two["log_loss"], abs=0.02)


def test_our_best_estimator_in_chains(problem, tmp_path, monkeypatch):
    given = QUICK | {"method": "twisted-ep", "options": {"points": 16, "randomizations": 2}}
    given |= {"iterations": 4, "burn_in": 4, "chains": 2, "kept": 2}
    (row,), _, _ = hyperparameter_posterior(
        3, "b", problem, **given, pieces=Pieces(tmp_path, [], 0)
    )
    assert row["points"] == 16 and row["work_evidence_estimates"] <= 10
    # where it cannot be prepared, the sampler underneath estimates the same evidence
    K, y = rbf(2.0, 1.0)(problem.X_train), problem.y_train
    estimator = hyperparameters._twisted_estimator({"points": 256, "randomizations": 4})
    truth = estimator(K, y, np.random.default_rng(0))

    def fail(self, prior, y, *, rng=None):
        raise ConvergenceError("no", None)

    monkeypatch.setattr(Twisted, "fit", fail)
    fallen = estimator(K, y, np.random.default_rng(0))
    assert fallen != truth
    again = np.random.default_rng(0)
    assert fallen == hyperparameters.orthant_estimator(K, y, again, samples=1024)
    # 1024 samples of 16 coordinates: the logarithm's standard error is about 0.03
    assert fallen == pytest.approx(truth, abs=0.25)


def test_predictions_average_probabilities_over_the_draws(problem):
    log_alpha, log_beta = np.log([[1.0, 2.0], [3.0, 4.0]]), np.log([[1.0, 5.0], [2.0, 0.5]])
    (row,), _, arrays = hyperparameters._predict(problem, log_alpha, log_beta)
    expected = []
    for alpha, beta in zip(np.exp(log_alpha.flat), np.exp(log_beta.flat), strict=True):
        kernel = rbf(alpha, beta)
        gp = prior(kernel, problem.X_train, problem.X_test)
        expected.append(ExpectationPropagation().fit(gp, problem.y_train).prediction.probability)
    np.testing.assert_allclose(arrays["probability"], np.mean(expected, axis=0), atol=1e-6)
    # of two chains the jackknife is half the difference of what each says alone
    alone = [scores(np.mean(expected[k : k + 2], axis=0), problem.y_test) for k in (0, 2)]
    spread = abs(alone[0]["log_loss"] - alone[1]["log_loss"]) / 2
    assert row["log_loss_se"] == pytest.approx(spread, rel=1e-3)


def test_scores():
    found = scores(np.array([0.9, 0.2, 0.6, 0.5]), np.array([1.0, -1.0, -1.0, 1.0]))
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.8, 0.4, 0.5]).mean())
    assert found["error_rate"] == 0.25
    assert np.isfinite(scores(np.array([0.0]), np.array([1.0]))["log_loss"])


def test_posterior_bad_input_and_missing_data(problem, tmp_path):
    pieces = Pieces(tmp_path, [], 0)
    rows, timing, arrays = hyperparameter_posterior(9, "row", None, **QUICK, pieces=pieces)
    assert rows == [{"problem": 9, "method": "row", "status": "data not available"}]
    assert [row["cpu_seconds"] for row in timing] == [None] * len(rows) and not arrays
    for wrong, message in (
        ({"chains": 3}, "chains must be even"),
        ({"kept": 31}, "kept must not exceed iterations = 30"),
        ({"predictive": 0}, "predictive must be an integer >= 1"),
        ({"method": "no"}, "method must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            hyperparameter_posterior(3, "row", problem, **QUICK | wrong, pieces=pieces)


# --- tuning


def test_search_finds_the_top_of_a_hill():
    X = np.array([[0.0], [1.0], [2.0]])  # median distance 1
    found = search(lambda t: -((t[0] - 0.7) ** 2) - 2 * (t[1] + 1.2) ** 2, X, evaluations=100)
    assert found.converged and len(found.value) < 100
    np.testing.assert_array_equal(found.theta[:3], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(found.theta[np.argmax(found.value)], [0.7, -1.2], atol=0.03)
    few = search(lambda t: t[0], X, evaluations=6)
    assert len(few.value) == 6 and not few.converged
    # the search stays between the bounds, here where the hill has no top
    outside = search(lambda t: t[0] + t[1], X, evaluations=200).theta
    assert outside[:, 0].max() <= 5.0 and outside[:, 1].max() <= 10.0
    with pytest.raises(ValueError, match="evaluations must be at least 4"):
        search(lambda t: 0.0, X, evaluations=3)


def test_the_best_few_are_apart():
    theta = np.array([[0.0, 0.0], [0.05, 0.0], [0.2, 0.0], [1.0, 1.0], [2.0, 2.0]])
    found = Search(theta, np.array([3.0, 4.0, 1.0, 2.0, WORST]), True)
    assert found.best(3).tolist() == [1, 3, 2]
    assert found.best(9).tolist() == [1, 3, 2], "no answer is no candidate"
    assert found.best(1).tolist() == [1]


def test_common_random_numbers_make_the_surface_deterministic(problem):
    method = METHODS["orthant"](samples=50)
    theta = np.array([0.3, 0.2])
    one = tuning._Evidence(problem, method, "1/a")
    assert one(theta) == one(theta) == tuning._Evidence(problem, method, "1/a")(theta)
    assert one(theta) != tuning._Evidence(problem, method, "1/b")(theta)
    assert one.columns() == {"work_samples": 150, "work_populations": 3, "failures": 0}


METHODS_OF_TUNING = {
    "ep": {"method": "ep"},
    "laplace": {"method": "laplace"},
    "orthant-100": {
        "method": "orthant",
        "options": {"samples": 100},
        "final": {"samples": 1000},
        "replicates": 2,
    },
}
TUNING = {
    "root": 1,
    "methods": METHODS_OF_TUNING,
    "evaluations": 40,
    "few": 2,
    "judge": {"method": "twisted-ep", "options": {"points": 64, "randomizations": 4}},
}


@pytest.mark.slow
def test_tuning(problem, tmp_path, monkeypatch):
    rows, timing, arrays = tuning.tuning(3, problem, **TUNING, pieces=Pieces(tmp_path / "a", [], 0))
    keys = [(row["method"], row["replicate"], row["stage"]) for row in rows]
    assert keys == [
        ("ep", 0, "search"),
        ("laplace", 0, "search"),
        *[("orthant-100", r, stage) for r in (0, 1) for stage in ("search", "final")],
    ]
    assert [(t["method"], t["replicate"], t["stage"]) for t in timing] == keys
    ep, laplace, orthant, final = rows[:4]
    # expectation propagation's optimum, against a fine grid about it
    a, b = np.meshgrid(*(np.linspace(-0.1, 0.1, 5),) * 2)
    around = [
        ExpectationPropagation().fit(
            Prior(rbf(np.exp(ep["log_alpha"] + i), np.exp(ep["log_beta"] + j))(problem.X_train)),
            problem.y_train,
        )
        for i, j in zip(a.flat, b.flat, strict=True)
    ]
    assert ep["estimate"] > max(posterior.log_evidence for posterior in around) - 1e-3
    K = rbf(np.exp(laplace["log_alpha"]), np.exp(laplace["log_beta"]))(problem.X_train)
    assert laplace["estimate"] == pytest.approx(
        Laplace().fit(Prior(K), problem.y_train).log_evidence, abs=1e-9
    )
    # judged by an estimator whose standard error is 1e-3 or less, all on the same random numbers
    assert abs(ep["evidence"] - ep["estimate"]) < 0.05
    assert ep["evidence_shortfall"] < 0.02
    best = max(row["evidence"] for row in rows)
    assert [row["evidence_shortfall"] for row in rows] == [best - row["evidence"] for row in rows]
    assert "seed" not in ep and orthant["seed"].endswith("tuning/orthant-100/replicate0")
    assert (orthant["samples"], final["samples"], final["evaluations"]) == (100, 1000, 2)
    assert orthant["work_samples"] == 100 * orthant["evaluations"]
    assert orthant["evaluations"] == len(arrays["search_orthant-100_0"]) <= 40
    assert rows[2]["estimate"] != rows[4]["estimate"], "replicates have their own random numbers"
    assert not any("seconds" in column for row in rows for column in row)

    # a job that was interrupted
    original, calls = tuning.search, []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(tuning, "search", interrupted)
    pieces = Pieces(tmp_path / "b", [], 0)
    with pytest.raises(KeyboardInterrupt):
        tuning.tuning(3, problem, **TUNING, pieces=pieces)
    resumed = tuning.tuning(3, problem, **TUNING, pieces=pieces)
    assert len(calls) == 5
    assert resumed[0] == rows
    assert all(np.array_equal(resumed[2][name], array) for name, array in arrays.items())


def test_tuning_counts_what_has_no_answer_and_says_what_cannot_be_judged(
    problem, tmp_path, monkeypatch
):
    original, calls = tuning.infer, []

    def sometimes(method, *args, **kwargs):
        if isinstance(method, METHODS["twisted-ep"]):
            raise ConvergenceError("no", None)
        calls.append(1)
        if len(calls) in (2, 3):
            raise ExtinctionError("none left")
        return original(method, *args, **kwargs)

    monkeypatch.setattr(tuning, "infer", sometimes)
    given = TUNING | {"methods": {"laplace": {"method": "laplace"}}, "evaluations": 10}
    (row,), _, arrays = tuning.tuning(3, problem, **given, pieces=Pieces(tmp_path, [], 0))
    assert row["failures"] == 2
    assert np.sum(arrays["search_laplace_0"][:, 2] == WORST) == 2
    assert row["status"] == "not converged"
    assert "evidence" not in row and "evidence_shortfall" not in row


def test_tuning_bad_input_and_missing_data(problem, tmp_path):
    pieces = Pieces(tmp_path, [], 0)
    rows, timing, arrays = tuning.tuning(9, None, **TUNING, pieces=pieces)
    assert [row["status"] for row in rows] == ["data not available"] * 4
    assert [row["cpu_seconds"] for row in timing] == [None] * len(rows) and not arrays
    for wrong, message in (
        ({"few": 0}, "few must be an integer >= 1"),
        ({"evaluations": 3}, "evaluations must be at least 4"),
        (
            {"methods": {"orthant": {"method": "orthant"}}},
            "rng must be a numpy.random.Generator",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            tuning.tuning(3, problem, **TUNING | wrong, pieces=Pieces(tmp_path / "b", [], 0))
