"""The study of Filippone and Girolami (2014): each part against a truth that it did not make."""

from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal, norm, ttest_ind
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from small import MIRROR, ROOT, SCALES, load, made_classes, modules, needs_data, plan

from gpcmc.chains.hyperparameter_steps import surrogate_noise
from gpcmc.chains.hyperparameters import default_prior
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.covariance.prior import Prior
from gpcmc.evidence import Surface, maximize
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import ImportanceSampling
from gpcmc.posterior import ConvergenceError
from recheck.judge.measures import as_measures, estimate
from recheck.record.files import write_csv
from recheck.report.book import Book
from studies.common.measuring import Rows, measured
from studies.common.rows import run_rows
from studies.filippone2014 import chains, estimates, patterns, prediction, quadrature, weights
from studies.filippone2014.experiments.prediction import METHODS
from studies.filippone2014.figures import FIGURES
from studies.filippone2014.problems import CASES, data_path
from studies.filippone2014.simulated import (
    Simulated,
    median_start,
    model_of,
    simulate,
    standardised,
    truth,
)
from studies.filippone2014.tuned_chains import Chain, Counter

PUBLISHED = ROOT / "data/published/filippone2014"
THETA = np.log([4.0, 0.6])


MODULES = modules("filippone2014", "experiments")


def measure(folder, part, **tables):
    """Measures of a part, from tables of the experiments that it reads; those that are not given are empty."""
    for name in MODULES:
        write_csv(folder / f"{name}.csv", pd.DataFrame(tables.get(name, {"row": []})))
    module = modules("filippone2014", "measures")[part]
    return measured(module, Rows(folder, PUBLISHED, Path(), MODULES))


@cache
def small(n=5):
    """A few cases, for which everything can be had by other means."""
    rng = np.random.default_rng(3)
    X = rng.random((n, 2))
    return Simulated(X, np.where(X[:, 0] > 0.5, 1.0, -1.0), THETA)


@cache
def task(n=24):
    X, y = made_classes(3 * n, 2).values()
    return prediction.Task(X[:n], y[:n], X[n:], y[n:])


# --- Data


def test_simulated_data_are_as_the_text_says():
    data = simulate(30, 3, "1/a", balanced=True)
    assert data.X.shape == (30, 3) and data.y.sum() == 0
    assert (data.X >= 0).all() and (data.X <= 1).all()
    assert np.array_equal(simulate(30, 3, "1/a", balanced=True).X, data.X)
    assert not np.array_equal(simulate(30, 3, "1/b", balanced=True).X, data.X)
    assert np.array_equal(data.theta, truth(3))
    with pytest.raises(ValueError, match="n must be even"):
        simulate(31, 3, "1/a", balanced=True)


@pytest.mark.slow
def test_labels_are_drawn_from_the_model():
    """Two cases agree as often as the arcsine law has it; 4.5 standard errors, one in 10^5."""
    agree, expected, trials = 0, 0.0, 1500
    variance = np.exp(truth(1)[0])
    for k in range(trials):
        data = simulate(2, 1, f"2/{k}", balanced=False)
        agree += data.y[0] == data.y[1]
        squares = float((data.X[0, 0] - data.X[1, 0]) ** 2)
        covariance = variance * np.exp(-0.5 * squares / np.exp(2 * truth(1)[1]))
        expected += 0.5 + np.arcsin(covariance / (1 + variance)) / np.pi
    assert abs(agree - expected) < 4.5 * np.sqrt(trials * 0.25)
    assert 0.55 < expected / trials < 0.95


def test_the_truth_is_the_medians_of_the_priors():
    prior = default_prior(4, 4)
    draws = np.array([prior.draw(np.random.default_rng(k)) for k in range(4000)])
    start = median_start(prior)
    assert np.abs((draws < start).mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(4000)
    assert start[:2] == pytest.approx(truth(4))


def test_real_data_are_standardised_and_shuffled():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 3, 50), np.full(50, 2.0), rng.normal(0, 1, 50)])
    data = {"X": X, "y": np.repeat([1.0, -1.0], 25)}
    Z, y = standardised(data)
    assert Z.shape == (50, 2) and Z.mean(axis=0) == pytest.approx([0, 0], abs=1e-12)
    assert Z.std(axis=0) == pytest.approx([1, 1]) and 0 < y[:25].sum() + 25 < 50
    part, some = standardised(data, 10)
    assert np.array_equal(part, Z[:10]) and np.array_equal(some, y[:10])


@needs_data
def test_abalone_is_males_against_females(monkeypatch):
    monkeypatch.setattr(patterns, "RAW", MIRROR)
    monkeypatch.setattr(patterns, "REGISTRY", ROOT / "data/registry.csv")
    X, y = patterns.patterns("abalone", seed=1, standardise={}).values()
    assert (*X.shape, int((y > 0).sum())) == (2835, 8, 1528)
    assert X[:, -1].max() == 29  # rings


@needs_data
@pytest.mark.parametrize("name", CASES)
def test_seeds_name_the_cases_that_there_are(name, monkeypatch):
    monkeypatch.setattr(patterns, "REGISTRY", str(ROOT / "data/registry.csv"))
    monkeypatch.setattr(patterns, "RAW", str(MIRROR))
    data = patterns.patterns(name, seed=1, standardise={})
    assert len(data["y"]) == len(data["X"]) == CASES[name]


def test_simulated_patterns_are_those_of_their_seed():
    found = patterns.patterns("n10_d3_set2", seed=5, standardise={})
    expected = simulate(10, 3, data_path(5, "table1", 10, 3, 2), balanced=True)
    assert np.array_equal(found["X"], expected.X) and np.array_equal(found["y"], expected.y)


# --- Figures 1 and 2


def exact(data, x):
    """log p(y | tau) as an orthant probability."""
    K = model_of(data.X, data.y, relevance=False).covariance(np.array([data.theta[0], x]))
    law = multivariate_normal(cov=orthant_covariance(K, data.y), abseps=1e-5, releps=1e-5)
    return float(np.log(law.cdf(np.zeros(len(data.y)))))


def test_the_true_curve_is_one_of_orthant_probabilities():
    grid = np.array([-2.0, 0.0, 1.5])
    value, error = estimates.true_curve(small(), grid, np.random.default_rng(0))
    assert value == pytest.approx([exact(small(), x) for x in grid], abs=2e-3)
    assert (error < 1e-2).all()


def test_where_the_twisted_sampler_fails_another_is_taken_and_said(monkeypatch):
    def fit(self, prior, y, rng):
        raise ConvergenceError("no shift", None)

    monkeypatch.setattr(estimates.Twisted, "fit", fit)
    with pytest.warns(UserWarning, match="the orthant sampler instead"):
        value, _ = estimates.true_curve(small(), np.array([0.0]), np.random.default_rng(0))
    assert value == pytest.approx([exact(small(), 0.0)], abs=0.02)


@pytest.mark.parametrize("width", [0.003, 0.5, 2.0])
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_the_variance_of_a_density(width, shift):
    """A normal one, and a narrow one that begins off the centre of the grid."""
    at = 0.3 + shift * width
    found = estimates.variance(lambda x: -0.5 * ((x - 0.3) / width) ** 2, at)
    limits = (at + estimates.LOW - 0.3) / width, (at + estimates.HIGH - 0.3) / width
    a, b = norm.pdf(limits)
    mass = norm.cdf(limits[1]) - norm.cdf(limits[0])
    mean = (a - b) / mass
    cut = 1 + (limits[0] * a - limits[1] * b) / mass - mean**2  # of a normal law cut off there
    assert found == pytest.approx(width**2 * cut, rel=0.03)


def test_conditionals_are_those_of_the_joint_density():
    """SA, AA and SURR on a grid against densities written out with inverses."""
    data, x = small(), -0.4
    model = model_of(data.X, data.y, relevance=False, jitter=estimates.JITTER)
    rng = np.random.default_rng(5)
    state = estimates.draw_latent(model, np.array([data.theta[0], x]), 20, rng)
    L = {
        z: np.linalg.cholesky(model.covariance(np.array([data.theta[0], z])))
        for z in (-0.6, -0.4, 0.2)
    }

    def prior(z):
        return model.prior.log_density(np.array([data.theta[0], z]))

    def likelihood(f):
        return norm.logcdf(data.y * f).sum()

    nu = np.linalg.solve(L[x], state.f)
    known = {
        "sufficient": lambda z: prior(z) + multivariate_normal(cov=L[z] @ L[z].T).logpdf(state.f),
        "ancillary": lambda z: prior(z) + likelihood(L[z] @ nu),
    }
    for name, density in known.items():
        found = estimates._CONDITIONALS[name](model, state, rng)
        differences = [found(z) - density(z) for z in L]
        assert differences == pytest.approx([differences[0]] * 3, abs=1e-6)
    seen = np.random.default_rng(7)
    found = estimates._CONDITIONALS["surrogate"](model, state, seen)
    # the same draw of g = f + N(0, s I), and eta, what makes f of the law of f given g
    s = surrogate_noise(np.exp(data.theta[0]))
    g = state.f + np.sqrt(s) * np.random.default_rng(7).standard_normal(len(data.y))

    def given(z):
        K, total = L[z] @ L[z].T, L[z] @ L[z].T + s * np.eye(len(g))
        gain = K @ np.linalg.inv(total)
        return gain @ g, np.linalg.cholesky(K - gain @ K), multivariate_normal(cov=total)

    mean, root, _ = given(x)
    eta = np.linalg.solve(root, state.f - mean)
    density = {}
    for z in L:
        mean, root, law = given(z)
        density[z] = prior(z) + law.logpdf(g) + likelihood(mean + root @ eta)
    differences = [found(z) - density[z] for z in L]
    assert differences == pytest.approx([differences[0]] * 3, abs=1e-4)


@pytest.mark.slow
def test_the_average_of_conditional_variances_is_below_that_of_the_marginal():
    """It is, whatever is held: the law of total variance. SA holds most."""
    given = {"n": 20, "d": 2, "draws": 12, "sweeps": 60, "values": 40}
    for number in range(2):
        row = estimates.conditionals(data_path(1, "figure1", 20, 2, number), **given)
        assert row["sufficient"] < row["ancillary"] < row["marginal"]
        assert row["sufficient"] < row["surrogate"] < 1.3 * row["marginal"]


def test_estimates_are_unbiased_and_spread_less_with_more_samples_and_with_ep():
    given = {"n": 10, "d": 2, "samples": [1, 16], "repetitions": 800, "values": 5}
    rows = pd.DataFrame(estimates.spread(data_path(1, "figure2", 10, 2, 0), **given))
    assert rows.groupby(["method", "samples"])["weight"].sum().to_numpy() == pytest.approx(1.0)
    rows["width"] = rows["high"] - rows["low"]
    seen = rows[rows["weight"] > 0.02]
    assert ((seen["mean"] - seen["exact"]).abs() < 0.1 + 0.2 * seen["width"]).all()
    width = seen.pivot_table(index="method", columns="samples", values="width")
    assert (width[16] < 0.5 * width[1]).all() and (width.loc["ep"] < width.loc["laplace"]).all()


def test_the_shape_of_weights_is_that_of_the_library_with_other_draws():
    """The k-hat of 4,096 weights varies by about 0.1; means over four data sets by half of that."""
    rows = pd.DataFrame(
        {"set": k, **line}
        for k in range(4)
        for line in weights.shapes(data_path(1, "figure2", 12, 2, k), n=12, d=2)
    )
    assert len(rows) == 4 * 2 * 2
    again = []
    for _, one in rows.iterrows():
        data = simulate(12, 2, data_path(1, "figure2", 12, 2, one["set"]), balanced=False)
        model = model_of(data.X, data.y, relevance=False)
        K = model.covariance(data.theta + np.log([1.0, weights.LENGTHS[one["length"]]]))
        method = ImportanceSampling(samples=4096, proposal=one["method"], points="random")
        fit = method.fit(Prior(K), data.y, rng=np.random.default_rng(0))
        again.append(fit.diagnostics["k_hat"])
    means = rows.assign(again=again).groupby(["method", "length"])[["k_hat", "again"]].mean()
    assert means["k_hat"].to_numpy() == pytest.approx(means["again"].to_numpy(), abs=0.2)
    assert means["k_hat"].max() > means["k_hat"].min() + 0.2


# --- Tables I to III


def test_effective_samples_are_those_of_the_worst_hyperparameter():
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((4, 400, 2))
    theta[:, :, 1] = np.cumsum(theta[:, :, 1], axis=1)
    assert chains.effective_samples(theta) < 50 < 800 < chains.effective_samples(theta[:, :, :1])


def test_mixing_of_independent_and_of_stuck_chains():
    rng = np.random.default_rng(0)
    good = [Chain(rng.standard_normal((400, 3)), 0.3, Counter(surrogate=400)) for _ in range(4)]
    row = chains.mixing(good)
    assert row["draws"] == 1600 and 1000 < row["ess"] < 2400 and row["r_hat_100"] < 1.02
    assert row["operations"] == 3 and row["operations_own"] == 5 and row["acceptance"] == 0.3
    thinned = chains.mixing(good, 20)
    assert thinned["draws"] == 80 and thinned["operations"] == 60
    kept = np.stack([chain.theta[19::20] for chain in good])
    assert thinned["ess"] == chains.effective_samples(kept)
    stuck = [Chain(np.full((400, 3), k), 0.0, Counter(ancillary=400)) for k in range(2)]
    row = chains.mixing([*good, *stuck])
    assert row["ess"] == 1 and row["r_hat_100"] > 1.2
    assert chains.mixing(stuck)["r_hat_100"] > 1e6


def test_chains_of_a_problem_share_its_data_and_its_proposal():
    problem = load("tiny")["filippone2014"]["chains"]["problems"][0]
    problem |= {"schemes": ["laplace", "ancillary"], "kernels": ["ard"]}
    pilot = plan("filippone2014", "pilot", chains__problems=[problem])[0]
    given = {"data": patterns.patterns(pilot["data"], seed=1, standardise={})}
    (root,) = MODULES["pilot"].run(pilot, given).arrays.values()
    assert root.shape == (3, 3)
    rows = plan("filippone2014", "chains", chains__problems=[problem])
    frame = run_rows(MODULES["chains"].run, rows, given | {"pilot": {"a": root[None]}}).rows
    assert len(rows) == len({*frame["seed"]}) == 4 and len(frame) == 6
    assert all(one.startswith(f"{pilot['seed']}/ard/") for one in frame["seed"])
    repeated = frame[frame["scheme"] == "ancillary"].set_index("repeats")
    assert repeated["operations"].to_dict() == {1: 1.0, 4: 4.0}
    pseudo = frame[(frame["scheme"] == "laplace") & (frame["samples"] == 4)].set_index("repeats")
    assert pseudo["operations"][4] == pytest.approx(4 * pseudo["operations"][1])


# --- Predictions


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    p = np.round(rng.random(200), 2)
    y = np.where(rng.random(200) < p, 1.0, -1.0)
    found = prediction.scores(p, y)
    assert found["log_loss"] == pytest.approx(log_loss(y > 0, np.clip(p, 1e-15, 1)), abs=1e-6)
    assert found["brier"] == pytest.approx(brier_score_loss(y > 0, p))
    assert found["auc"] == pytest.approx(roc_auc_score(y > 0, p))
    y = np.where(np.arange(200) % 2, 1.0, -1.0)
    sure = prediction.scores(np.where(y > 0, 0.9, 0.1), y)
    assert sure["error_rate"] == 0 and sure["calibration"] == pytest.approx(0.1)


@pytest.mark.slow
def test_the_fitted_maximum_is_that_of_the_library():
    data = task()
    kernel = ConstantKernel(1.0, (np.exp(-6), np.exp(12))) * RBF(1.0, (np.exp(-5), np.exp(7)))
    surface = Surface(ExpectationPropagation(), kernel, data.X, data.y)
    best = maximize(surface, 2, np.random.default_rng(0))
    theta, bound = prediction.maximum(data, None)
    assert surface.value(theta) == pytest.approx(best.log_evidence, abs=1e-3)
    assert bound == bool(best.at_bound)


@pytest.mark.slow
def test_the_mode_has_the_largest_product_with_the_prior():
    data, prior = task(), default_prior(2)
    kernel = ConstantKernel(1.0) * RBF(1.0)
    surface = Surface(ExpectationPropagation(), kernel, data.X, data.y)
    theta, _ = prediction.maximum(data, prior)

    def product(t):
        return surface.value(t) + prior.log_density(t)

    around = [theta + step for step in 0.05 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])]
    assert product(theta) > max(map(product, around))
    assert product(theta) > product(prediction.maximum(data, None)[0])


def test_training_cases_have_both_classes_and_no_case_is_both():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), np.where(np.arange(60) < 6, 1.0, -1.0)
    found = prediction.drawn(X, y, 20, rng)
    assert (found.y > 0).sum() == 3 and len(found.y) == 20 and len(found.y_star) == 40
    rows = {tuple(x) for x in found.X} | {tuple(x) for x in found.X_star}
    assert len(rows) == 60


def test_integrated_predictions_are_averages_over_evenly_spaced_draws(monkeypatch):
    """Two chains of ten draws, three of each; the mean probability is not that of the mean hyperparameters."""
    theta = np.random.default_rng(3).normal([0.0, 1.0], [3.0, 1.5], (2, 10, 2))
    made = iter([Chain(one, 0.2, Counter()) for one in theta])
    monkeypatch.setattr(prediction, "pilot", lambda *given, **more: np.eye(2))
    monkeypatch.setattr(prediction, "pseudo_marginal_chain", lambda *given, **more: next(made))
    chain = {"chains": 2, "samples": 2, "iterations": 10, "burn_in": 10, "pilot": 30, "draws": 3}
    p, facts = prediction.METHODS["integrated"](task(), chain, np.random.default_rng(0))
    drawn = [prediction.at(task(), one) for one in theta[:, [2, 5, 9]].reshape(-1, 2)]
    np.testing.assert_allclose(p, sum(drawn) / 6)
    plugged_in = prediction.at(task(), theta[:, [2, 5, 9]].mean(axis=(0, 1)))
    assert np.abs(p - plugged_in).max() > 0.01
    assert facts["ess"] == prediction.effective_samples(theta)


@pytest.mark.slow
@pytest.mark.parametrize("method", prediction.METHODS)
def test_every_method_learns(method):
    chain = {"chains": 2, "samples": 2, "iterations": 30, "burn_in": 10, "pilot": 30, "draws": 10}
    p, facts = prediction.METHODS[method](task(), chain, np.random.default_rng(0))
    found = prediction.scores(p, task().y_star)
    assert found["log_loss"] < 0.6 and found["error_rate"] < 0.3 and found["auc"] > 0.8
    assert ("ess" in facts) == (method == "integrated")


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_the_quadrature_of_a_normal_density(correlation):
    """The mean of Phi(c + b' theta) under a bivariate normal law is Phi of the mean over the root of the variance."""
    mean = np.array([0.3, -1.2])
    cov = np.array([[1.0, correlation * 0.6], [correlation * 0.6, 0.36]])
    law, b = multivariate_normal(mean, cov), np.array([[1.0, 0.5], [-2.0, 1.0]])

    def node(theta):
        return law.logpdf(theta) - 700.0, norm.cdf(0.1 + b @ theta)

    found = quadrature.mean_probability(node, np.zeros(2), intervals=8, most=64, tolerance=1e-3)
    exact = norm.cdf((0.1 + b @ mean) / np.sqrt(1.0 + np.einsum("ij,jk,ik->i", b, cov, b)))
    assert found.probability == pytest.approx(exact, abs=1e-4)
    assert np.abs(found.coarse - found.probability).max() <= 1e-3
    # what is left off is the halving
    (crude,) = {
        quadrature.mean_probability(node, np.zeros(2), intervals=4, most=4, tolerance=0.0).intervals
    }
    assert crude == 4 and found.intervals > 4


def test_the_ends_of_an_interval_count_half():
    flat = np.zeros((3, 3))
    assert quadrature._mean(flat, np.eye(3)[:, :, None]) == pytest.approx([(0.25 + 1 + 0.25) / 4])


def test_a_node_is_ep_s_evidence_times_the_prior_and_its_prediction():
    theta = np.array([0.7, 0.2])
    log_p, p = quadrature.at_node(task(), theta)
    kernel = ConstantKernel(1.0) * RBF(1.0)
    surface = Surface(ExpectationPropagation(), kernel, task().X, task().y)
    prior = default_prior(2).log_density(theta)
    assert log_p == pytest.approx(surface.value(theta) + prior, abs=1e-4)
    assert np.array_equal(p, prediction.at(task(), theta))


@pytest.mark.slow
def test_the_quadrature_is_the_weighted_mean_over_draws_from_the_prior():
    """Importance weights; four standard errors of 500 draws."""
    data, prior = task(12), default_prior(2)
    node = partial(quadrature.at_node, data)
    start = median_start(prior)
    found = quadrature.mean_probability(node, start, intervals=16, most=32, tolerance=0.005)
    rng = np.random.default_rng(0)
    theta = [prior.draw(rng) for _ in range(500)]
    level, p = map(np.array, zip(*map(node, theta), strict=True))
    weight = softmax(level - [prior.log_density(one) for one in theta])
    mean = weight @ p
    error = np.sqrt(weight**2 @ (p - mean) ** 2)
    assert error.max() < 0.01
    assert (np.abs(found.probability - mean) < 4 * error + 1e-3).all()


def test_the_quadrature_has_the_splits_of_the_other_methods(monkeypatch):
    monkeypatch.setitem(prediction.METHODS, "fitted", lambda *given: (np.full(60, 0.5), {}))
    monkeypatch.setattr(
        quadrature, "at_node", lambda task, theta: (-(theta @ theta), task.X_star[:, 0])
    )
    drawn, seen = prediction.drawn, []
    monkeypatch.setattr(prediction, "drawn", lambda *given: seen.append(drawn(*given)) or seen[-1])
    rng = np.random.default_rng(0)
    data = {"X": rng.standard_normal((80, 2)), "y": np.where(np.arange(80) % 2, 1.0, -1.0)}
    found = []
    for experiment in ("prediction", "quadrature"):
        row = plan("filippone2014", experiment)[0]
        found += MODULES[experiment].run(row, {"data": data}).lines
    assert np.array_equal(seen[0].X, seen[1].X) and np.array_equal(seen[0].X_star, seen[1].X_star)
    assert found[0]["seed"] == found[1]["seed"] and found[1]["method"] == "quadrature"


@pytest.mark.parametrize("scale", SCALES)
def test_there_is_a_pilot_for_all_chains(scale):
    pilots, chains, real = (
        plan("filippone2014", name, scale=scale) for name in ("pilot", "chains", "real")
    )
    names = {row["row"].rpartition("/")[0] for row in chains}
    assert names | {f"isotropic/{row['name']}" for row in real} == {row["row"] for row in pilots}
    assert {row["block"] for row in pilots} == {0}  # the rules of the chains say so
    for name in MODULES:
        assert all(row["seed"] for row in plan("filippone2014", name, scale=scale))


def test_plans_know_the_methods():
    assert set(METHODS) == set(prediction.METHODS)


# --- Configuration and plans


# --- From rows to verdicts


def value_of(frame, id, reading=""):
    (found,) = frame[(frame["id"] == id) & (frame["reading"] == reading)]["value"]
    return found


def test_claims_on_chains_by_hand(tmp_path):
    """One data set, and numbers of which each ratio is another."""
    numbers = {  # effective samples, R-hat, acceptance, operations, our operations
        ("laplace", 1, 1): (100, 1.5, 0.10, 4, 9),
        ("laplace", 64, 1): (200, 1.4, 0.20, 4, 9),
        ("ep", 1, 1): (300, 1.3, 0.15, 20, 21),
        ("ep", 64, 1): (400, 1.2, 0.25, 20, 21),
        ("ancillary", 0, 1): (50, 1.6, 0.22, 1, 1),
        ("surrogate", 0, 1): (80, 1.7, 0.23, 3, 5),
        ("ep", 64, 20): (90, 1.1, 0.25, 400, 420),
        ("ancillary", 0, 20): (30, 1.1, 0.22, 20, 20),
    }
    rows = []
    for (scheme, samples, repeats), (ess, r_hat, acceptance, text, own) in numbers.items():
        row = {"n": 50, "d": 2, "set": 0, "relevance": False, "scheme": scheme, "samples": samples}
        row |= {"repeats": repeats, "seed": "1/a", "draws": 1000 if repeats == 1 else 100}
        row |= {"ess": ess, "acceptance": acceptance, "operations": text, "operations_own": own}
        rows.append(row | {f"r_hat_{k}": r_hat for k in (10, 20, 50, 100)})
    frame = measure(tmp_path, "chains", chains=rows)
    ratios = {
        "samples/one": 300 / 400,
        "schemes/surr-aa": 80 / 50,
        "schemes/surr-convergence": 0.7 / 0.6,
        "schemes/pm-aa@approximation=ep": 400 / 50,
        "schemes/pm-aa@approximation=laplace": 200 / 50,
        "schemes/convergence@approximation=ep": 0.2 / 0.6,
        "schemes/convergence@approximation=laplace": 0.4 / 0.6,
        "operations/rate-aa@approximation=ep;counts=source": (400 / 20) / 50,
        "operations/rate-aa@approximation=laplace;counts=own": (200 / 9) / 50,
        "operations/rate-surr@approximation=ep;counts=own": (400 / 21) / (80 / 5),
        "operations/rate-surr@approximation=laplace;counts=source": (200 / 4) / (80 / 3),
        "repeats/pm@approximation=ep": 90 / 30,
    }
    for name, ratio in ratios.items():
        found = value_of(frame, *f"claim/{name}".split("@"))
        assert found == pytest.approx(np.log(ratio)), name
    several = frame.groupby(["id", "reading"])["value"].apply(sorted)
    expected = {
        ("claim/samples/ep-laplace", ""): [2, 3],
        ("claim/samples/acceptance", ""): [0.5, 0.6],
        ("claim/operations/ep-laplace", "counts=source"): [5, 5],
        ("claim/operations/pm", "approximation=ep;counts=source"): [20 / 3, 20],
        ("claim/operations/pm", "approximation=laplace;counts=own"): [9 / 5, 9],
    }
    for key, ratio in expected.items():
        assert several[key] == pytest.approx(np.log(ratio)), key
    assert value_of(frame, "table1/isotropic/n50/d2/ep-64/ess") == 40
    assert value_of(frame, "table3/isotropic/n50/d2/ancillary/ess") == 30
    # with one length scale alone there is nothing to compare ARD with
    assert "claim/repeats/ard" not in set(frame["id"])


@pytest.mark.parametrize(
    ("r_hat", "other", "ratio"), [(0.999, 1.2, 0.2), (1.5, float("inf"), 20.0), (0.99, 1.0005, 1.0)]
)
def test_no_chain_is_left_out_for_its_r_hat(tmp_path, r_hat, other, ratio):
    """Below 1.001 R-hat is 1.001, and above 11 it is 11; SURR over AA."""
    rows = []
    for scheme, one in {"ancillary": r_hat, "surrogate": other}.items():
        row = {"n": 50, "d": 2, "set": 0, "relevance": False, "scheme": scheme, "samples": 0}
        row |= {"repeats": 1, "seed": "1/a", "draws": 1000, "ess": 10, "acceptance": 0.2}
        row |= {"operations": 1, "operations_own": 1}
        rows.append(row | {f"r_hat_{k}": one for k in (10, 20, 50, 100)})
    frame = measure(tmp_path, "chains", chains=rows)
    expected = {0.2: 0.2 / 0.001, 20.0: 10.0 / 0.5, 1.0: 1.0}[ratio]
    assert value_of(frame, "claim/schemes/surr-convergence") == pytest.approx(np.log(expected))


def test_claims_on_spreads_by_hand(tmp_path):
    """Two values of log tau, the second of three times the weight; widths by cases, method and samples."""
    widths = {
        (50, "laplace", 1): 4.0, (50, "laplace", 64): 1.0, (50, "ep", 1): 2.0, (50, "ep", 64): 0.2,
        (200, "laplace", 1): 9.0, (200, "laplace", 64): 3.0, (200, "ep", 1): 1.5, (200, "ep", 64): 0.8,
    }  # fmt: skip
    rows = []
    for (n, method, samples), width in widths.items():
        # the mean with the weights is the width above; that without is another
        for log_tau, weight, factor in ((0.0, 1.0, 2.0), (1.0, 3.0, 2.0 / 3.0)):
            key = {"n": n, "set": 0, "method": method, "samples": samples, "log_tau": log_tau}
            ends = {"low": -7.0, "mean": -6.5, "high": -7.0 + factor * width, "weight": weight}
            truth = {"exact": -6.4, "exact_se": 0.01, "log_prior": -0.5, "seed": "1/a"}
            rows.append(key | ends | truth)
    shapes = {"n": 50, "method": "ep", "length": "short", "set": [0, 1], "k_hat": [0.4, np.inf]}
    frame = measure(tmp_path, "evidence", spread=rows, weights=shapes | {"seed": "1/a"})
    found = frame[frame["id"] == "figure2/ep/n50/short/k-hat"]
    assert found["unit"].tolist() == ["figure2/n50/set0", "figure2/n50/set1"]
    assert found["value"].iloc[0] == 0.4
    assert found["status"].tolist() == ["ok", "not defined"]

    def ratios(claim):
        rows = frame[frame["id"] == f"claim/spread/{claim}"]
        return {
            (unit, run): np.exp(v)
            for unit, run, v in zip(rows["unit"], rows["run"], rows["value"], strict=True)
        }

    assert value_of(frame, "figure2/ep/n200/s64/width") == pytest.approx(0.8)
    few, many = "figure2/n50/set0", "figure2/n200/set0"
    assert ratios("ep-laplace") == pytest.approx(
        {(few, "s1"): 0.5, (few, "s64"): 0.2, (many, "s1"): 1.5 / 9, (many, "s64"): 0.8 / 3}
    )
    assert ratios("samples") == pytest.approx(
        {
            (few, "laplace"): 0.25,
            (few, "ep"): 0.1,
            (many, "laplace"): 1 / 3,
            (many, "ep"): 0.8 / 1.5,
        }
    )
    assert ratios("size") == pytest.approx(
        {("", "0"): (9 * 3 * 1.5 * 0.8 / (4 * 1 * 2 * 0.2)) ** (1 / 4)}
    )


def test_spreads_of_two_sizes_are_compared_by_their_means(tmp_path):
    """Three small data sets and two large ones, both methods alike, against Welch's interval of SciPy."""
    widths = {50: [1.0, 2.0, 4.0], 200: [3.0, 5.0]}
    rows = [
        {"n": n, "set": k, "method": method, "samples": 1, "log_tau": 0.0, "low": -width}
        | {"mean": 0.0, "high": 0.0, "weight": 1.0, "exact": 0.0, "exact_se": 0.01}
        | {"log_prior": 0.0, "seed": f"1/n{n}"}
        for n, some in widths.items()
        for k, width in enumerate(some)
        for method in ("ep", "laplace")
    ]
    frame = measure(tmp_path, "evidence", spread=rows)
    (found,) = frame[frame["id"] == "claim/spread/size"].to_dict("records")
    test = ttest_ind(np.log(widths[200]), np.log(widths[50]), equal_var=False)
    assert found["value"] == pytest.approx(np.log(15) / 2 - np.log(8) / 3)
    assert found["value"] / found["se"] == pytest.approx(test.statistic)
    assert found["df"] == pytest.approx(test.df) and found["seed"] == "1/n200"


def test_the_curve_is_of_the_first_data_set_with_the_prior(tmp_path):
    rows = [
        {"n": 50, "set": k, "method": "ep", "samples": 1, "log_tau": -0.25, "low": -9.0 - k}
        | {"mean": -8.0, "high": -7.0, "weight": 1.0, "exact": -7.5, "exact_se": 0.02}
        | {"log_prior": -0.5, "seed": "1/a"}
        for k in range(2)
    ]
    rows += [one | {"method": "laplace"} for one in rows]
    frame = measure(tmp_path, "evidence", spread=rows)
    curve = frame[frame["id"].str.startswith("curve/ep/")].set_index("id")
    base = "curve/ep/n50/s1/x-0.250"
    expected = {"low": -9.5, "mean": -8.5, "high": -7.5, "exact": -8.0}
    assert curve["value"].to_dict() == {f"{base}/{k}": v for k, v in expected.items()}
    # eight randomizations of the twisted sampler; the estimates of the other rows are what was drawn
    assert curve.loc[f"{base}/exact", ["se", "df"]].tolist() == [0.02, 7.0]
    assert (curve["se"].drop(f"{base}/exact") == 0).all()


def test_chains_on_real_data_by_hand(tmp_path):
    """Repeated updates are not shown, and the rate is the share of effective samples over operations."""
    one = {"name": "pima", "cases": 0, "relevance": False, "scheme": "laplace", "samples": 1}
    one |= {"repeats": 1, "draws": 200, "ess": 50.0, "acceptance": 0.25}
    one |= {"r_hat_10": 2.5, "r_hat_20": 1.9, "r_hat_50": 1.4, "r_hat_100": 1.1}
    one |= {"operations": 5.0, "operations_own": 10.0, "seed": "1/a"}
    other = one | {"scheme": "ancillary", "samples": 0, "ess": 10.0}
    rows = [one, other, other | {"repeats": 20, "ess": 99.0}]
    frame = measure(tmp_path, "real", real=rows)
    assert (frame["se"] == 0).all() and len(frame) == 2 * 10
    expected = {"ess": 25.0, "r-hat-10": 2.5, "r-hat-100": 1.1, "acceptance": 25.0}
    for name, value in expected.items():
        assert value_of(frame, f"real/pima/laplace-1/{name}") == pytest.approx(value)
    for level, operations in {"source": 5.0, "own": 10.0}.items():
        reading = f"counts={level}"
        found = value_of(frame, "real/pima/laplace-1/operations", reading)
        assert found == operations
        found = value_of(frame, "real/pima/laplace-1/rate", reading)
        assert found == pytest.approx(25.0 / operations)
    assert value_of(frame, "real/pima/ancillary/ess") == pytest.approx(5.0)


def test_claims_on_predictions_by_hand(tmp_path):
    """A positive number says that the integrated predictions lose less. A chain with 19 effective samples is out."""
    loss = {"fitted": 0.5, "mode": 0.45, "quadrature": 0.4, "integrated": 0.42, "svm": 0.3}
    facts = {
        "fitted": {"at_bound": True},
        "mode": {"at_bound": False},
        "quadrature": {"change": 0.01},
    }
    rows = [
        {"data": data, "n": 25, "split": split, "method": method, "seed": "1/a"}
        | {"log_loss": value + (0.3 if data == "sonar" and method == "quadrature" else 0.0)}
        | {"brier": 0.1, "error_rate": 0.2, "auc": 0.8, "calibration": value / 10}
        | (facts.get(method, {}) if method != "integrated" else {"ess": 21.0 - 2 * split})
        for data in ("pima", "sonar")
        for split in range(2)
        for method, value in loss.items()
    ]
    frame = pd.DataFrame(rows)
    own = frame["method"] == "quadrature"
    tables = {
        "prediction": frame[~own].drop(columns="change"),
        "quadrature": frame[own].drop(columns=["ess", "at_bound"]),
    }
    frame = measure(tmp_path, "prediction", **tables)
    pima = frame[frame["unit"].str.startswith("pima")]
    expected = {"fitted": 0.1, "mode": 0.05, "svm": -0.1, "calibration": 0.01}
    for name, value in expected.items():
        found = pima[pima["id"] == f"claim/prediction/{name}"]["value"]
        assert found.tolist() == pytest.approx([value] * 2)
    # on Sonar the integrated predictions lose more than the fitted ones
    most = frame[frame["id"] == "claim/prediction/most"].set_index("unit")["value"]
    assert most.to_dict() == {"pima": 1.0, "sonar": 0.0}
    wins = frame[frame["id"] == "wins/fitted"].groupby("unit")["value"].apply(list)
    assert wins.to_dict() == {"pima": [100.0] * 2, "sonar": [0.0] * 2}
    chain = pima[pima["id"] == "chain-less-quadrature"]
    assert chain["value"].tolist() == pytest.approx([0.02] * 2)
    assert chain["status"].tolist() == ["ok", "not in equilibrium"]
    scores = pima[pima["id"] == "prediction/pima/n25/integrated/log-loss"]["status"]
    assert scores.tolist() == ["ok", "not in equilibrium"]
    shown = {
        "svm/error-rate": 20, "fitted/at-bound": 100, "mode/at-bound": 0, "quadrature/change": 0.01
    }  # fmt: skip
    for name, value in shown.items():
        found = pima[pima["id"] == f"prediction/pima/n25/{name}"]["value"]
        assert found.tolist() == pytest.approx([value] * 2)
    ess = pima[pima["id"] == "prediction/pima/n25/integrated/effective"]
    assert ess["value"].tolist() == [21, 19] and (ess["status"] == "ok").all()


def test_the_legend_names_schemes_that_were_run_and_markers_of_problems():
    """EP was not run with 200 cases, which come first, and AA not at all."""
    ids = {"n200/d2": ["laplace-1", "surrogate"], "n50/d2": ["laplace-1", "ep-1", "surrogate"]}
    rows = [
        {
            "id": f"table1/isotropic/{where}/{scheme}/{what}",
            "unit": "a",
            "value": 2.0,
            "scale": "linear",
        }
        for where, schemes in ids.items()
        for scheme in schemes
        for what in ("ess", "operations")
    ]
    made = as_measures(rows)
    published = pd.DataFrame(columns=["id"]), pd.DataFrame(columns=["id"])
    drawn = FIGURES["efficiency"](Book(estimate(made), made, *published))
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("Laplace", "EP", "SURR", "$n=50$, $d=2$", "$n=200$, $d=2$")
    ]
    keys = dict(
        zip([text.get_text() for text in legend.get_texts()], legend.get_lines(), strict=True)
    )
    colours = {name: keys[name].get_color() for name in ("Laplace", "EP", "SURR")}
    marks = {name: line.get_marker() for name, line in keys.items() if name not in colours}
    assert len({*colours.values()}) == 3 and len({*marks.values()}) == 2
    ep = [line for line in drawn.axes[0].lines if line.get_color() == colours["EP"]]
    assert [line.get_marker() for line in ep] == [marks["$n=50$, $d=2$"]]


def test_a_problem_may_have_one_kernel_alone():
    """As ten inputs at the standard scale, which were run with ARD."""
    ids = ("isotropic/n50/d2", "ard/n50/d2", "ard/n50/d10")
    made = as_measures(
        {"id": f"table1/{where}/ep-1/{what}", "unit": "a", "value": 2.0, "scale": "linear"}
        for where in ids
        for what in ("ess", "operations")
    )
    published = pd.DataFrame(columns=["id"]), pd.DataFrame(columns=["id"])
    drawn = FIGURES["efficiency"](Book(estimate(made), made, *published))
    markers = [[line.get_marker() for line in axes.lines] for axes in drawn.axes]
    assert [sorted(some) for some in markers] == [["o"], ["o", "s"]]


def test_a_panel_of_estimates_has_the_fewest_and_the_most_samples():
    values = {"low": -2.0, "mean": -1.0, "high": 0.0, "exact": -1.0}
    made = as_measures(
        {"id": f"curve/laplace/n50/s{s}/x{x}/{what}", "unit": "", "value": value, "scale": "linear"}
        for s in (1, 10, 64)
        for x in ("-0.500", "0.500")
        for what, value in values.items()
    )
    published = pd.DataFrame(columns=["id"]), pd.DataFrame(columns=["id"])
    drawn = FIGURES["curves"](Book(estimate(made), made, *published))
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["1 sample", "64 samples", "exact"]
