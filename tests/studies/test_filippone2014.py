"""The study of Filippone and Girolami (2014): each part against a truth that it did not make."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from blocks import load, refusal
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from gpcmc.gp.covariance import orthant_covariance
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.evidence import EvidenceSurface, maximize
from gpcmc.inference.relevance import relevance_prior
from gpcmc.inference.tuned_chains import Chain, Counter
from recheck.book import Book
from recheck.files import write_arrays, write_csv
from recheck.judge import judge
from recheck.layout import read_layout
from recheck.measures import estimate
from recheck.published import read_published
from recheck.tables import write_tables
from studies.common.data import read_registry
from studies.filippone2014 import chains, estimates, patterns, prediction
from studies.filippone2014.config import check
from studies.filippone2014.figures import FIGURES
from studies.filippone2014.jobs import FUNCTIONS, jobs, run_job, schemes
from studies.filippone2014.measures import PARTS, inputs
from studies.filippone2014.simulated import (
    Simulated,
    median_start,
    model_of,
    simulate,
    standardised,
    truth,
)

ROOT = Path(__file__).resolve().parents[2]
MIRROR = ROOT.parent / "shared" / "data"
PUBLISHED = ROOT / "data/published/filippone2014"
needs_data = pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")
THETA = np.log([4.0, 0.6])


def keep(name, compute):
    rows, arrays = compute()
    return rows, [], arrays


@cache
def small(n=5):
    """A few cases, for which everything can be had by other means."""
    rng = np.random.default_rng(3)
    X = rng.random((n, 2))
    return Simulated(X, np.where(X[:, 0] > 0.5, 1.0, -1.0), THETA)


@cache
def task(n=24):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3 * n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(3 * n) > 0, 1.0, -1.0)
    return prediction.Task(X[:n], y[:n], X[n:], y[n:])


# ---------------------------------------------------------------------------------------------------------------------
# Data


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
    prior = relevance_prior(4, relevance=True)
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
    monkeypatch.setattr(patterns, "REGISTRY", str(ROOT / "data/registry.csv"))
    X, y = patterns.abalone(MIRROR)
    assert (*X.shape, int((y > 0).sum())) == patterns.ABALONE
    assert X[:, -1].max() == 29  # rings


# ---------------------------------------------------------------------------------------------------------------------
# Figures 1 and 2


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
    surrogate = estimates._CONDITIONALS["surrogate"](model, state, rng)
    # at its own value f is the one that it began with, so that only the law of g differs from AA there
    assert np.isfinite([surrogate(z) for z in L]).all()


@pytest.mark.slow
def test_the_average_of_conditional_variances_is_below_that_of_the_marginal():
    """It is, whatever is held: the law of total variance. SA holds most."""
    given = {"n": 20, "d": 2, "sets": 2, "draws": 12, "sweeps": 60, "values": 40}
    for row in estimates.conditionals(**given, root=1, keep=keep)[0]:
        assert row["sufficient"] < row["ancillary"] < row["marginal"]
        assert row["sufficient"] < row["surrogate"] < 1.3 * row["marginal"]


def test_estimates_are_unbiased_and_spread_less_with_more_samples_and_with_ep():
    given = {"n": 10, "d": 2, "sets": 1, "samples": [1, 16], "repetitions": 800, "values": 5}
    rows = pd.DataFrame(estimates.spread(**given, root=1, keep=keep)[0])
    assert rows.groupby(["method", "samples"])["weight"].sum().to_numpy() == pytest.approx(1.0)
    rows["width"] = rows["high"] - rows["low"]
    seen = rows[rows["weight"] > 0.02]
    assert ((seen["mean"] - seen["exact"]).abs() < 0.1 + 0.2 * seen["width"]).all()
    width = seen.pivot_table(index="method", columns="samples", values="width")
    assert (width[16] < 0.5 * width[1]).all() and (width.loc["ep"] < width.loc["laplace"]).all()


# ---------------------------------------------------------------------------------------------------------------------
# Tables I to III


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


def test_the_schemes_of_a_problem_share_data_and_proposal():
    problem = {"n": 10, "d": 2, "set": 0, "relevance": True}
    given = {"problem": problem, "root": 1, "keep": keep}
    tuned = chains.tune(**given, method="laplace", burn_in=20, iterations=20)[2]
    assert tuned["root"].shape == (3, 3)
    some = schemes({"schemes": ["laplace", "ancillary"], "samples": [1, 4], "repeats": [1, 3]})
    assert {name: len(one) for name, one in some.items()} == {
        "laplace-1": 1, "laplace-4": 1, "latent": 2
    }  # fmt: skip
    lengths = {"chains": 2, "iterations": 30, "burn_in": 10, "tuned": tuned}
    rows = [row for one in some.values() for row in chains.mix(**given, **lengths, schemes=one)[0]]
    frame = pd.DataFrame(rows)
    assert len({*frame["seed"]}) == 4 and len(frame) == 6
    repeated = frame[frame["scheme"] == "ancillary"].set_index("repeats")
    assert repeated["operations"].to_dict() == {1: 1.0, 3: 3.0}
    pseudo = frame[(frame["scheme"] == "laplace") & (frame["samples"] == 4)].set_index("repeats")
    assert pseudo["operations"][3] == pytest.approx(3 * pseudo["operations"][1])


# ---------------------------------------------------------------------------------------------------------------------
# Predictions


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
    surface = EvidenceSurface(ExpectationPropagation(), kernel, data.X, data.y)
    best = maximize(surface, 2, np.random.default_rng(0))
    theta, bound = prediction.maximum(data, None)
    assert surface.value(theta) == pytest.approx(best.log_evidence, abs=1e-3)
    assert bound == bool(best.at_bound)


@pytest.mark.slow
def test_the_mode_has_the_largest_product_with_the_prior():
    data, prior = task(), relevance_prior(2, relevance=False)
    kernel = ConstantKernel(1.0) * RBF(1.0)
    surface = EvidenceSurface(ExpectationPropagation(), kernel, data.X, data.y)
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


# ---------------------------------------------------------------------------------------------------------------------
# Configuration and jobs


@pytest.mark.parametrize("scale", ["tiny", "smoke", "standard", "published"])
def test_every_scale_has_jobs_with_functions_and_parts(scale):
    config = load("filippone2014", scale)
    found = jobs(check(config))
    assert {job.kind for job in found.values()} <= FUNCTIONS.keys()
    files = [file for job in found.values() for file in job.outputs.values()]
    assert len(files) == len(set(files))
    made = {f for f in files if not f.startswith(("data/", "pilot/"))}
    assert made == {f for part in PARTS for f in inputs(part, config)} | {
        f for f in made if f.endswith(("_timing.csv", ".npz"))
    }
    raw = {f"../data/{entry.file}.json" for entry in read_registry(ROOT / "data/registry.csv")}
    assert {path for job in found.values() for path in job.inputs.values()} <= {*files, *raw}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("conditionals/n", 51, "allowed is an even number from 10 to 1000"),
        ("spread/samples", [0], "allowed is a list of one or more whole numbers"),
        ("chains/problems/0/schemes", ["hmc"], "allowed is a list of one or more of"),
        ("chains/problems/0/chains", 1, "allowed is a whole number from 2 to 100"),
        ("real/0/data", ["iris"], "allowed is a list of one or more of"),
        ("real/0/data", ["pima", "pima"], "allowed is each data set once"),
        ("prediction/chain/draws", 10**5, "allowed is at most iterations"),
        ("prediction", None, "filippone2014.prediction: given None"),
    ],
)
def test_a_wrong_configuration_is_refused(path, value, message):
    assert message in refusal(check, "filippone2014", path, value)


# ---------------------------------------------------------------------------------------------------------------------
# From jobs to verdicts


def run_all(folder, *, available):
    """All jobs of the tiny scale, on made data, or without any."""
    rng = np.random.default_rng(0)
    for job in jobs(load("filippone2014", "tiny")).values():
        if job.kind == "problem":
            X = rng.standard_normal((60, 3))
            y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
            (folder / "data").mkdir(parents=True, exist_ok=True)
            write_arrays(folder / job.outputs["arrays"], {"X": X, "y": y} if available else {})
        elif available or job.name.startswith(("prediction", "real", "pilot/real")):
            run_job(job, folder, folder / "pieces")
    parts = PARTS if available else ("real", "prediction")
    return pd.concat([PARTS[part](folder, PUBLISHED, Path()) for part in parts], ignore_index=True)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return run_all(tmp_path_factory.mktemp("made"), available=True)


@pytest.fixture(scope="module")
def published():
    return read_published(PUBLISHED)


@pytest.mark.slow
def test_every_claim_is_judged(measured, published):
    found = judge(measured, estimate(measured), published, 1).frame.set_index("id")
    assert not (found["verdict"] == "not run").any(), list(
        found.index[found["verdict"] == "not run"]
    )
    known = {f"claim/{claim.id}" for claim in published.claims}
    assert {id for id in measured["id"] if id.startswith("claim/")} == known
    assert (measured["seed"] != "").all() and (measured["source"] != "").all()


def test_without_raw_data_claims_on_them_say_so(tmp_path, published):
    frame = run_all(tmp_path, available=False)
    assert set(frame["status"]) == {"data not available"}
    found = judge(frame, estimate(frame), published, 1).frame.set_index("id")
    own = found.index.str.startswith("claim/prediction")
    assert own.sum() == 4 and set(found.loc[own, "verdict"]) == {"data not available"}


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
    (tmp_path / "chains").mkdir()
    write_csv(tmp_path / "chains/made.csv", pd.DataFrame(rows))
    frame = PARTS["chains"](tmp_path, PUBLISHED, Path())
    ratios = {
        "samples/one": 300 / 400,
        "schemes/pm-aa": 400 / 50,
        "schemes/surr-aa": 80 / 50,
        "schemes/convergence": 0.2 / 0.6,
        "repeats/pm": 90 / 30,
    }
    for name, ratio in ratios.items():
        assert value_of(frame, f"claim/{name}") == pytest.approx(np.log(ratio)), name
    several = frame.groupby(["id", "reading"])["value"].apply(sorted)
    expected = {
        ("claim/samples/ep-laplace", ""): [2, 3],
        ("claim/samples/acceptance", ""): [0.5, 0.6],
        ("claim/operations/ep-laplace", "counts=source"): [5, 5],
        ("claim/operations/pm", "counts=source"): [20 / 3, 20],
        ("claim/operations/pm", "counts=own"): [21 / 5, 21],
        ("claim/operations/rate", "counts=source"): [(400 / 20) / 50, (400 / 20) / (80 / 3)],
        ("claim/operations/rate", "counts=own"): [(400 / 21) / 50, (400 / 21) / (80 / 5)],
    }
    for key, ratio in expected.items():
        assert several[key] == pytest.approx(np.log(ratio)), key
    assert value_of(frame, "table1/isotropic/n50/d2/ep-64/ess") == 40
    assert value_of(frame, "table3/isotropic/n50/d2/ancillary/ess") == 30
    # with one length scale alone there is nothing to compare ARD with
    assert "claim/repeats/ard" not in set(frame["id"])


def test_claims_on_spreads_by_hand(tmp_path):
    """Two values of log tau, the second of three times the weight; widths by cases, method and samples."""
    widths = {
        (50, "laplace", 1): 4.0, (50, "laplace", 64): 1.0, (50, "ep", 1): 2.0, (50, "ep", 64): 0.2,
        (200, "laplace", 1): 9.0, (200, "laplace", 64): 3.0, (200, "ep", 1): 1.5, (200, "ep", 64): 0.8,
    }  # fmt: skip
    (tmp_path / "evidence").mkdir()
    for n in (50, 200):
        rows = []
        for (cases, method, samples), width in widths.items():
            # the mean with the weights is the width above; that without is another
            for log_tau, weight, factor in ((0.0, 1.0, 2.0), (1.0, 3.0, 2.0 / 3.0)):
                key = {"n": n, "set": 0, "method": method, "samples": samples, "log_tau": log_tau}
                ends = {"low": -7.0, "mean": -6.5, "high": -7.0 + factor * width, "weight": weight}
                truth = {"exact": -6.4, "exact_se": 0.01, "log_prior": -0.5, "seed": "1/a"}
                rows += [key | ends | truth] if cases == n else []
        write_csv(tmp_path / f"evidence/spread_n{n}.csv", pd.DataFrame(rows))
    frame = PARTS["evidence"](tmp_path, PUBLISHED, Path())

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
        {
            ("figure2/set0", f"{method}-s{samples}"): widths[200, method, samples]
            / widths[50, method, samples]
            for method in ("laplace", "ep")
            for samples in (1, 64)
        }
    )


def test_claims_on_predictions_by_hand(tmp_path):
    """A positive number says that the integrated predictions lose less."""
    loss = {"fitted": 0.5, "mode": 0.45, "integrated": 0.4, "svm": 0.3}
    rows = [
        {"data": "pima", "n": 25, "split": 0, "method": method, "log_loss": value, "seed": "1/a"}
        | {"brier": 0.1, "error_rate": 0.2, "auc": 0.8, "calibration": value / 10}
        for method, value in loss.items()
    ]
    (tmp_path / "prediction").mkdir()
    write_csv(tmp_path / "prediction/made.csv", pd.DataFrame(rows))
    frame = PARTS["prediction"](tmp_path, PUBLISHED, Path())
    expected = {"fitted": 0.1, "mode": 0.05, "svm": -0.1, "calibration": 0.01}
    for name, value in expected.items():
        assert value_of(frame, f"claim/prediction/{name}") == pytest.approx(value)
    assert value_of(frame, "prediction/pima/n25/svm/error-rate") == pytest.approx(20)


@pytest.mark.slow
def test_tables_and_figures_are_drawn(measured, published, tmp_path):
    verdicts = judge(measured, estimate(measured), published, 1).frame
    defaults = {choice.name: choice.default for choice in published.readings.values()}
    book = Book(estimate(measured), measured, published.cells, verdicts, defaults=defaults)
    layout = read_layout(ROOT / "src/studies/filippone2014/layout.yaml")
    assert set(layout.figures) == set(FIGURES)
    assert {part for entry in layout.figures.values() for part in entry.reads} <= set(PARTS)
    write_tables(layout, book, None, tmp_path)
    for name in layout.tables:
        assert "not run at this scale" not in (tmp_path / f"{name}.tex").read_text(), name
    for draw in FIGURES.values():
        assert draw(book).axes
