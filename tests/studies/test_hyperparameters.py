"""Experiment 5, small.

Of two statistical checks, each compares with a bound more than six standard errors away (false alarms
below 1e-8); the seeds are fixed.
"""

import dataclasses

import numpy as np
import pytest
from small import run_rows

from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import ConvergenceError, ExpectationPropagation, Laplace, Twisted
from gpcmc.orthant import ExtinctionError
from studies.atiya2021 import experiment5 as hyperparameters
from studies.atiya2021 import tuning
from studies.atiya2021.experiment5 import moves, of_moves, pair, posterior, scores
from studies.atiya2021.experiments import experiment5, posterior_chains
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import Problem, synthetic_problem
from studies.atiya2021.tuning import WORST, Climb, Judge, Search, search, tuned
from studies.common.seeds import generator

SETTINGS = {"samples": 2, "iterations": 30, "burn_in": 40}


@pytest.fixture(scope="module")
def problem():
    whole = synthetic_problem(3, np.random.default_rng(0))
    return Problem(
        whole.X_train[:16], whole.y_train[:16], whole.X_test, whole.y_test, whole.bayes_posterior
    )


# --- the posterior over hyperparameters


def test_draws_are_those_of_their_moves(problem):
    """Chains refuse most proposals, so that the draws of a pair are kept as their moves."""
    draws, work, seconds = pair(problem, "laplace", SETTINGS, "1/pair0")
    chains = hyperparameters.run_chains(
        problem.X_train, problem.y_train,
        hyperparameters.ChainOptions("laplace", chains=2, **SETTINGS), rng=generator("1/pair0"),
    )  # fmt: skip
    np.testing.assert_allclose(np.exp(draws.log_alpha), chains.alpha)
    np.testing.assert_allclose(np.exp(draws.log_beta), chains.beta)
    assert work == {f"work_{what}": count for what, count in chains.work.items()} and seconds > 0
    kept = moves(draws)
    assert len(kept["log_alpha"]) < draws.log_alpha.size
    for one, same in zip(draws, of_moves(kept, SETTINGS["iterations"]), strict=True):
        np.testing.assert_array_equal(one, same)
    other, _, _ = pair(problem, "laplace", SETTINGS, "1/pair1")
    assert not np.isin(other.log_alpha, draws.log_alpha).any(), "each pair has its own stream"
    assert len(np.unique(draws.log_alpha[:, -1])) == 2, "and each of its chains other draws"
    with pytest.raises(ValueError, match="method must be one of"):
        pair(problem, "no", SETTINGS, "1/pair0")


def test_posterior_of_pairs(problem):
    pairs = [pair(problem, "laplace", SETTINGS, f"1/pair{k}")[0] for k in range(2)]
    line, arrays = posterior(problem, pairs, kept=5, predictive=2)
    assert line["status"] == "not converged", "120 draws have fewer than 100 effective samples"
    assert arrays["log_alpha"].shape == arrays["log_beta"].shape == (4, 5)
    assert arrays["probability"].shape == (50,)
    for which in ("log_alpha", "log_beta"):
        assert line[f"{which}_q025"] <= line[f"{which}_median"] <= line[f"{which}_q975"]
        assert line[f"{which}_mean_se"] == pytest.approx(
            line[f"{which}_sd"] / np.sqrt(line[f"{which}_effective_samples"])
        )
        # the last draw of each chain is among those kept
        expected = np.concatenate([getattr(one, which)[:, 5::6] for one in pairs])
        np.testing.assert_array_equal(arrays[which], expected)
    assert 0 < line["acceptance"] < 1
    assert 0 < line["log_loss"] < 1 and line["log_loss_se"] > 0
    assert line["log_loss"] == scores(arrays["probability"], problem.y_test)["log_loss"]


def test_posteriors_by_different_chains_agree(problem):
    found = []
    for method, options in (
        ("laplace", {"samples": 4, "iterations": 300}),
        ("ancillary", {"latent_updates": 5, "iterations": 1000}),
    ):
        settings = {"burn_in": 200, **options}
        path = f"1/experiment5/problem3/{method}"
        pairs = [pair(problem, method, settings, f"{path}/pair{k}")[0] for k in range(2)]
        found.append(posterior(problem, pairs, kept=5, predictive=10)[0])
    one, two = found
    for which in ("log_alpha", "log_beta"):
        error = np.hypot(one[f"{which}_mean_se"], two[f"{which}_mean_se"])
        assert abs(one[f"{which}_mean"] - two[f"{which}_mean"]) < 6 * error
    assert one["log_loss"] == pytest.approx(two["log_loss"], abs=0.02)


def test_a_row_reads_the_chains_of_its_pairs(problem):
    given = {"latent_updates": 1, "iterations": 4, "burn_in": 4}
    row = {"problem": 3, "method": "quick", "seed": "1/quick", "block": 0}
    pairs = [
        row | {"row": f"problem3/quick/pair{k}", "pair": k, "seed": f"1/quick/pair{k}",
               "chain": {"method": "ancillary", **given}}
        for k in range(2)
    ]  # fmt: skip
    inputs = {"problem": dataclasses.asdict(problem)}
    chains = run_rows(posterior_chains.run, pairs, inputs)
    assert chains.rows["work_covariance_factorizations"].gt(0).all()
    assert chains.timing["cpu_seconds"].gt(0).all()
    row |= {"row": "problem3/quick", "pairs": [one["row"] for one in pairs]}
    row |= {"options": {"latent_updates": 1}, "draws": {"kept": 2, "predictive": 1}}
    row |= {"lengths": {"chains": 4, "iterations": 4, "burn_in": 4}}
    found = experiment5.run(row, inputs | {"chains": chains.arrays})
    draws = [pair(problem, "ancillary", given, one["seed"])[0] for one in pairs]
    line, arrays = posterior(problem, draws, kept=2, predictive=1)
    assert found.lines[0].items() >= line.items()
    np.testing.assert_array_equal(found.arrays["problem3/log_beta"], arrays["log_beta"])


def test_our_best_estimator_in_chains(problem, monkeypatch):
    settings = {"points": 16, "randomizations": 2, "iterations": 4, "burn_in": 4}
    _, work, _ = pair(problem, "twisted-ep", settings, "1/b")
    assert work["work_evidence_estimates"] <= 10
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
    row, probability = hyperparameters.predict(problem, log_alpha, log_beta)
    expected = []
    for alpha, beta in zip(np.exp(log_alpha.flat), np.exp(log_beta.flat), strict=True):
        kernel = rbf(alpha, beta)
        gp = prior(kernel, problem.X_train, problem.X_test)
        expected.append(ExpectationPropagation().fit(gp, problem.y_train).prediction.probability)
    np.testing.assert_allclose(probability, np.mean(expected, axis=0), atol=1e-6)
    # of two chains the jackknife is half the difference of what each says alone
    alone = [scores(np.mean(expected[k : k + 2], axis=0), problem.y_test) for k in (0, 2)]
    spread = abs(alone[0]["log_loss"] - alone[1]["log_loss"]) / 2
    assert row["log_loss_se"] == pytest.approx(spread, rel=1e-3)


def test_scores():
    found = scores(np.array([0.9, 0.2, 0.6, 0.5]), np.array([1.0, -1.0, -1.0, 1.0]))
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.8, 0.4, 0.5]).mean())
    assert found["error_rate"] == 0.25
    assert np.isfinite(scores(np.array([0.0]), np.array([1.0]))["log_loss"])


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


@pytest.fixture
def judge(problem):
    method = METHODS["twisted-ep"](points=64, randomizations=4)
    return Judge(problem, method, "1/experiment5/problem3/tuning/judge")


def climb(method, options=None, final=None, evaluations=40):
    return Climb(method, options or {}, final or {}, evaluations, 2)


def test_tuning(problem, judge):
    (ep,), (laplace,) = (tuned(judge, climb(name), None).lines for name in ("ep", "laplace"))
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
    assert laplace["evidence"] - ep["evidence"] < 0.02
    orthant = climb("orthant", {"samples": 100}, {"samples": 1000})
    one, two = (tuned(judge, orthant, f"1/orthant-100/replicate{k}") for k in range(2))
    search, final = one.lines
    assert [line["stage"] for line in one.lines] == ["search", "final"]
    assert [line["stage"] for line in one.timing] == ["search", "final"]
    assert (search["samples"], final["samples"], final["evaluations"]) == (100, 1000, 2)
    assert search["work_samples"] == 100 * search["evaluations"]
    seen = one.arrays["search"]
    assert seen.shape == (40, 3) and np.isfinite(seen).all(axis=1).sum() == search["evaluations"]
    assert search["estimate"] != two.lines[0]["estimate"], "each has its own random numbers"
    assert not any("seconds" in column for line in one.lines for column in line)


def test_tuning_counts_what_has_no_answer_and_says_what_cannot_be_judged(judge, monkeypatch):
    original, calls = tuning.infer, []

    def sometimes(method, *args, **kwargs):
        if isinstance(method, METHODS["twisted-ep"]):
            raise ConvergenceError("no", None)
        calls.append(1)
        if len(calls) in (2, 3):
            raise ExtinctionError("none left")
        return original(method, *args, **kwargs)

    monkeypatch.setattr(tuning, "infer", sometimes)
    found = tuned(judge, climb("laplace", evaluations=10), None)
    (line,) = found.lines
    assert line["failures"] == 2
    assert np.sum(found.arrays["search"][:, 2] == WORST) == 2
    assert line["status"] == "not converged" and "evidence" not in line


def test_tuning_refuses_bad_input(judge):
    with pytest.raises(ValueError, match="evaluations must be at least 4"):
        tuned(judge, climb("laplace", evaluations=3), None)
    with pytest.raises(ValueError, match="rng must be a numpy.random.Generator"):
        tuned(judge, climb("orthant"), None)
