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
from small import MIRROR, ROOT, load, made_classes, modules, needs_data, plan, run_rows

from gpcmc.chains.hyperparameter_steps import surrogate_noise
from gpcmc.chains.hyperparameters import default_prior
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.covariance.prior import Prior
from gpcmc.evidence import Surface, maximize
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import ImportanceSampling
from gpcmc.posterior import ConvergenceError
from recheck.judge.measures import as_measures, estimate
from recheck.record.files import read_csv, write_csv
from recheck.report.book import Book
from studies.common.data import parse
from studies.common.measuring import Rows, measured
from studies.filippone2014 import chains, estimates, patterns, prediction, quadrature, weights
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
@pytest.mark.parametrize("name", CASES)
def test_seeds_name_the_cases_that_there_are(name, monkeypatch):
    monkeypatch.setattr(parse, "RAW", MIRROR)
    monkeypatch.setattr(parse, "REGISTRY", ROOT / "data/registry.csv")
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


def test_the_fitted_maximum_is_that_of_the_library():
    data = task()
    kernel = ConstantKernel(1.0, (np.exp(-6), np.exp(12))) * RBF(1.0, (np.exp(-5), np.exp(7)))
    surface = Surface(ExpectationPropagation(), kernel, data.X, data.y)
    best = maximize(surface, 2, np.random.default_rng(0))
    theta, bound = prediction.maximum(data, None)
    assert surface.value(theta) == pytest.approx(best.log_evidence, abs=1e-3)
    assert bound == bool(best.at_bound)


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


# --- Measures and figures; those of all kept rows are in test_studies.py


def test_no_chain_is_left_out_for_its_r_hat(tmp_path):
    """Of chains that stand still it is infinite, and taken for 11: here those of SURR, beside AA's of 1.5."""
    rows = read_csv(ROOT / "data/reference/filippone2014/chains.csv")
    rows = rows[(rows["row"].str.startswith("ard/n50_d2_set0/")) & (rows["repeats"] == 1)]
    rows = rows.assign(r_hat_20=rows["scheme"].map({"ancillary": 1.5, "surrogate": np.inf}))
    frame = measure(tmp_path, "chains", chains=rows).set_index("id")
    assert frame.loc["claim/schemes/surr-convergence", "value"] == pytest.approx(np.log(10 / 0.5))


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
