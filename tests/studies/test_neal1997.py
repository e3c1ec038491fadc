"""The study of Neal (1997): data and Bayes rule against simulation, chains on made data, and the way to verdicts."""

import inspect
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, multivariate_normal, norm
from small import MIRROR, ROOT, SCALES, load, neal_classes, neal_outliers, needs_data, plan

from gpcmc._threads import one_thread
from recheck.judge.measures import as_measures, estimate
from recheck.judge.published import read_published
from recheck.judge.verdicts import judge
from studies.common.code import code_digests
from studies.common.data import DamagedFileError, parse
from studies.common.plan import Plan
from studies.common.seeds import generator
from studies.neal1997 import chains, exact, laplace, patterns, priors, runs
from studies.neal1997.bayes import BayesRule, class_of, made, on_new_sets, on_releases
from studies.neal1997.measures.outliers import is_astray
from studies.neal1997.model.classification import Classification
from studies.neal1997.model.priors import Gamma, Hierarchy
from studies.neal1997.model.regression import Regression
from studies.neal1997.runs import CLASSES, OUTLIERS, ClassesRun, OutliersRun, used

PUBLISHED = read_published(ROOT / "data/published/neal1997")


@pytest.fixture
def real(tmp_path, monkeypatch):
    """What makes the arrays of an example, from the author's files under their registered names."""
    for release, kind in product(("fbm-1997-01-18", "fbm-2022"), ("cdata", "odata")):
        (tmp_path / f"{release}-{kind}").write_bytes((MIRROR / release / kind).read_bytes())
    monkeypatch.setattr(parse, "RAW", tmp_path)
    monkeypatch.setattr(parse, "REGISTRY", ROOT / "data/registry.csv")
    return lambda name: patterns.patterns(name, seed=1, standardise={})


@needs_data
def test_the_files_are_those_of_the_author(real, tmp_path):
    facts = {"classes_1997": (1000, 400, 4), "outliers_1997": (200, 100, 1),
             "classes_2022": (1400, 400, 4), "outliers_2022": (1100, 100, 1)}  # fmt: skip
    for name, expected in facts.items():
        data = real(name)
        assert (len(data["t"]), data["training"], data["X"].shape[1]) == expected
    data = real("classes_1997")  # the case that the paper quotes
    assert data["X"][1, :2].tolist() == [0.20626, 0.56059] and data["t"][1] == 0
    file = tmp_path / "fbm-1997-01-18-odata"
    file.write_bytes(file.read_bytes().replace(b"1.10456", b"1.10457"))
    with pytest.raises(DamagedFileError, match="fbm-1997-01-18-odata"):
        real("outliers_1997")


def test_classes_follow_the_recipe():
    x, y = np.array([0.4, 0.1, 0.9, 0.4]), np.array([0.5, 0.1, 0.9, 0.151])
    assert class_of(x, y).tolist() == [0, 1, 2, 0]


def test_the_rule_is_that_of_simulation():
    """Bands of 5 standard errors: a false alarm in 6e-7 for each of two."""
    rule, cases = BayesRule(150), 20_000
    X, t = made(cases, np.random.default_rng(2))
    rate = rule.error_rate()
    wrong = rule.guess(X) != t
    assert abs(wrong.mean() - rate) < 5 * math.sqrt(rate * (1 - rate) / cases)
    density = rule.densities(X)
    right = (density / density.sum(axis=1, keepdims=True)).max(axis=1)
    assert abs(right.mean() - (1 - rate)) < 5 * right.std() / math.sqrt(cases)
    # no rule is better: another guess in each case errs more
    assert (density.argsort(axis=1)[:, 1] != t).mean() > rate
    # the whole probability is in the three densities
    assert BayesRule(300).error_rate() == pytest.approx(rate, abs=5e-4)


@needs_data
def test_the_test_cases_of_1997_are_lucky(real):
    old = real("classes_1997")
    lines = on_releases(400, old, real("classes_2022")) + on_new_sets(400, 20, "1/bayes/anew", old)
    found = pd.DataFrame(lines).groupby(["data", "quantity"])["value"].mean()
    assert found["1997", "error-rate"] == 80 / 600
    rate = found["population", "error-rate"]
    assert rate == pytest.approx(0.1836, abs=5e-4)
    assert found["population", "luck"] == pytest.approx(binom.cdf(80, 600, rate))
    # 20 sets of 600: 5 standard errors
    assert found["anew", "error-rate"] == pytest.approx(rate, abs=5 * math.sqrt(rate / 12_000))


def test_settings_are_those_of_the_paper_and_of_the_software():
    """Sections 6 and 7; persistence, factors, starts and the files of 2022 are in the software's command files."""
    assert {
        "1997-400": ClassesRun("1997", 400, 10.0, 10.0, 0.4, 0.99, 55),
        "1997-100": ClassesRun("1997", 100, 10.0, 10.0, 0.4, 0.99, 55),
        "2022-400": ClassesRun("2022", 400, 10.0, 10.0, 0.3, 0.98, 21),
        "2022-100": ClassesRun("2022", 100, 10.0, 10.0, 0.5, 0.98, 21),
        "2022-logistic": ClassesRun("2022", 400, 1.0, 0.1, 0.15, 0.98, 21),
    } == CLASSES
    assert {
        "1997-t": OutliersRun("1997", 4.0, 1.0),
        "1997-gaussian": OutliersRun("1997", None, 1.0),
        "1997-gaussian-100": OutliersRun("1997", None, 100.0),
        "2022-t": OutliersRun("2022", 4.0, 1.0),
        "2022-gaussian": OutliersRun("2022", None, 100.0),
    } == OUTLIERS
    assert (runs.CLASSES_ITERATIONS, runs.OUTLIERS_ITERATIONS) == (100, 200)
    assert (runs.OUTLIERS_FIRST, runs.JITTER, runs.MINOR, runs.EVERY) == (101, 0.001, 0.05, 5)
    assert Gamma(0.05, 0.5) == chains.VAGUE
    starts = chains.MAGNITUDE, chains.RELEVANCE, chains.SINGLE_RELEVANCE, chains.NOISE
    assert starts == (0.5, 1.0, 0.1, 0.5)
    # x0.2:0.5:1 for four inputs: the top level has the mean precision 4^2 / 0.2^2 = 400
    assert Hierarchy(Gamma(0.05, 0.5), 1.0) == chains.RELEVANCES


def test_predictions_are_from_the_iterations_of_the_paper():
    assert used(100, 55, 100) == [55, 60, 65, 70, 75, 80, 85, 90, 95, 100]
    assert used(100, 21, 100) == list(range(25, 101, 5))
    assert used(200, 101, 200) == list(range(105, 201, 5))
    assert used(3, 55, 100) == [3]


def record(monkeypatch, model, **instead):
    """Every argument of the calls of a model's `iterate`, defaults too; some are replaced in the call itself."""
    calls, original = [], model.iterate

    def iterate(self, state, **given):
        bound = inspect.signature(original).bind(self, state, **given)
        bound.apply_defaults()
        names = bound.arguments.keys() - {"self", "state", "rng"}
        calls.append({name: bound.arguments[name] for name in names})
        return original(self, state, **{**given, **instead})

    monkeypatch.setattr(model, "iterate", iterate)
    return calls


def test_chains_are_made_with_these_settings(monkeypatch):
    calls = record(monkeypatch, Classification, scans=1)
    chains.classes(CLASSES["1997-100"], 7, neal_classes(), np.random.default_rng(1))
    always = {"updates": 5, "scans": 100, "factor": 0.4}
    assert calls == [always | {"persistence": p} for p in [0.9] * 5 + [0.99] * 2]
    calls = record(monkeypatch, Regression, leapfrogs=4, window=1)
    chains.outliers(OUTLIERS["1997-t"], 2, neal_outliers(), np.random.default_rng(1))
    assert calls == 2 * [{"leapfrogs": 20, "window": 4, "factor": 0.5}]


def test_the_software_draws_the_noise_variance_and_integrates_over_the_latent_value():
    """Over many draws its density is the integral over both; without noise there is nothing to draw."""
    data, rng, vague = neal_outliers(), np.random.default_rng(5), chains.VAGUE
    X, t, test = data["X"], data["t"], slice(10, 14)
    kernel = chains.covariance(1.0, 1.0, 0.01)
    model = Regression(kernel, [vague, vague], vague, X[:10], t[:10], degrees=4.0)
    state = model.state(np.log([0.5, 1.0, 0.3]), np.full(10, 0.1))
    density = np.exp(model.log_predictive(state, X[test], t[test]))
    draws = [np.exp(chains._software(model, state, X[test], t[test], rng)) for _ in range(200)]
    error = np.std(draws, axis=0) / math.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - density) < 5 * error).all()
    quiet = model.state(np.log([0.5, 1.0, 1e-9]), np.full(10, 0.1))
    cases = zip(t[test], *model.predict(quiet, X[test]), strict=True)
    found = chains._software(model, quiet, X[test], t[test], rng)
    np.testing.assert_allclose(found, [multivariate_normal.logpdf(*one) for one in cases])


def test_the_covariance_adds_the_squares_of_its_parts():
    X = np.array([[0.0, 0.0], [0.3, 5.0]])
    K = chains.covariance(np.array([1.0, 1e-9]), 10.0, 10.0)(X)
    expected = 100 + 0.25 * np.exp(-(np.array([[0.0, 0.3], [0.3, 0.0]]) ** 2))
    np.testing.assert_allclose(K, expected + 100 * np.eye(2))


def test_functions_of_figure_1_have_the_covariances_below_it():
    X, d = np.array([[0.5], [2.0]]), 1.5
    expected = {
        "long": math.exp(-(d**2)),
        "short": math.exp(-25 * d**2),
        "linear": 1 + 0.5 * 2.0 + 0.01 * math.exp(-9 * d**2),
        "two": math.exp(-(d**2)) + 0.01 * math.exp(-25 * d**2),
    }
    found = priors.covariances()
    assert {name: kernel(X)[0, 1] for name, kernel in found.items()} == pytest.approx(expected)
    rows = pd.DataFrame(line for name in found for line in priors.draws(name, f"1/priors/{name}"))
    assert len(rows) == 4 * 2 * len(priors.GRID) and rows["value"].abs().max() < 15
    # neighbours, 0.05 apart, are as close as their covariance says: within 5 standard errors of 240 differences
    step = rows[rows["prior"] == "short"].groupby("draw")["value"].diff().dropna()
    assert step.std() == pytest.approx(math.sqrt(2 - 2 * math.exp(-(0.25**2))), rel=0.4)


def test_a_chain_finds_which_inputs_matter(monkeypatch):
    """On made data, from a magnitude that is not lost in the jitter; thresholds are far from the values."""
    monkeypatch.setattr(chains, "SCANS", 10)
    monkeypatch.setattr(chains, "MAGNITUDE", 20.0)
    data, test = neal_classes(cases=320, training=120, seed=3), slice(120, None)
    rng = generator("1/classes/2022-100/chain0")
    table = pd.DataFrame(chains.classes(CLASSES["2022-100"], 60, data, rng))
    late = np.log(table.loc[39:, ["rho1", "rho2", "rho3", "rho4"]]).mean()
    assert late["rho1"] + late["rho2"] > late["rho3"] + late["rho4"] + 2 * math.log(2)
    least = (BayesRule(100).guess(data["X"][test, :2]) != data["t"][test]).mean()
    assert table["error-rate"].iloc[-1] < least + 0.2


def test_t_noise_is_not_moved_by_an_outlier():
    data, errors = neal_outliers(cases=70, training=40), {}
    data["t"][5] += 6.0
    for run in ("1997-t", "1997-gaussian"):
        rng = generator(f"1/outliers/{run}/chain0")
        lines, (x, curve) = chains.outliers(OUTLIERS[run], 30, data, rng)
        errors[run] = lines[-1]["function-error"]
        assert len(lines) == 30 and np.array_equal(x, chains.GRID) and np.isfinite(curve).all()
    assert errors["1997-t"] < 0.5 * errors["1997-gaussian"]


def test_laplaces_method_stands_beside():
    found = {line["quantity"]: line["value"] for line in laplace.fitted(40, neal_classes())}
    assert 0 <= found["error-rate"] < 0.7 and found["log-probability"] < 0
    assert {f"rho{u}" for u in range(1, 5)} < found.keys()


@pytest.mark.parametrize("constant", [1.0, 100.0])
def test_quadrature_is_a_sum_over_dense_covariances(constant):
    """Each point of a small grid by SciPy's normal density and by the textbook's formulas, without eigenvectors."""
    data = neal_outliers(cases=9, training=6)
    X, t, X_star, t_star = data["X"][:6], data["t"][:6], data["X"][6:], data["t"][6:]
    grid = {"eta": np.log([0.5, 1.5]), "rho": np.log([0.4, 2.0, 9.0]), "sigma": np.log([0.1, 0.3])}
    found = exact.Quadrature(X[:, 0], t, constant, **grid)
    mean, log_density = found.predict(X_star[:, 0], t_star)
    points = []
    for rho, eta, sigma in product(grid["rho"], grid["eta"], grid["sigma"]):
        kernel = chains.covariance(math.exp(rho), constant, 0.0)
        kernel.k2.k1.constant_value = math.exp(2 * eta)
        C = kernel(X) + math.exp(2 * sigma) * np.eye(6)
        level = multivariate_normal.logpdf(t, np.zeros(6), C)
        level += sum(chains.VAGUE.log_density(x)[0] for x in (rho, eta, sigma))
        cross = kernel(X_star, X) @ np.linalg.inv(C)
        variance = np.diag(kernel(X_star) - cross @ kernel(X, X_star)) + math.exp(2 * sigma)
        means = cross @ t
        points.append((level, means, norm.pdf(t_star, means, np.sqrt(variance))))
    level, means, densities = zip(*points, strict=True)
    weight = np.exp(level) / np.exp(level).sum()
    np.testing.assert_allclose(np.exp(found.log_weight).ravel(), weight, rtol=1e-6)
    np.testing.assert_allclose(mean, weight @ means, rtol=1e-6)
    np.testing.assert_allclose(np.exp(log_density), weight @ densities, rtol=1e-6)
    np.testing.assert_allclose(found.marginal("rho"), weight.reshape(3, 4).sum(axis=1), rtol=1e-6)


def test_the_valley_is_between_the_two_highest_modes():
    assert exact.valley(np.array([0, 1, 0, 5, 3, 2, 4, 1, 2, 0.0])) == 5
    assert exact.valley(np.array([0, 1, 2, 1, 0.0])) is None
    assert exact.valley(np.array([3, 2, 1.0])) is None  # an end is no mode


@needs_data
def test_the_posterior_of_2022_has_a_minor_mode(real):
    with one_thread():
        lines = exact.integrated("2022-gaussian", real("outliers_2022"))
    found = {line["quantity"]: line["value"] for line in lines}
    assert 0.01 < found["above"] < 0.025 and 2 < found["divide"] < 6
    assert found["squared-error"] == pytest.approx(0.0569, abs=3e-4)


@pytest.mark.parametrize("scale", SCALES)
def test_every_chain_is_planned_and_no_job_is_long(scale):
    for name in ("classes", "outliers"):
        rows = pd.DataFrame(plan("neal1997", name, scale=scale))
        runs = load(scale)["neal1997"][name]["runs"]
        chains_of = rows.groupby("run")["chain"].agg(sorted).to_dict()
        assert chains_of == {run: list(range(count)) for run, count in runs.items()}
    # the slowest of each took so many seconds at the published scale
    seconds = {run: 39 if CLASSES[run].training == 400 else 8 for run in CLASSES}
    seconds |= dict.fromkeys(OUTLIERS, 5.5)
    for block in Plan(load(scale)).blocks("neal1997").values():
        chains_in = [row["run"] for name, row in block.rows if name in ("classes", "outliers")]
        assert sum(seconds[run] for run in chains_in) < 600, block.name


def test_chains_rest_on_the_compiled_scans():
    assert "studies.neal1997.model._gibbs" in code_digests(["studies.neal1997.experiments.classes"])


def test_more_test_sets_leave_the_others_as_they_are():
    few, many = (on_new_sets(60, sets, "1/a", neal_classes()) for sets in (3, 6))
    assert many[:3] == few


def test_a_mode_is_minor_on_either_side_of_the_valley():
    posterior = {"divide": 2.0, "above": 0.97}
    assert is_astray(1.0, posterior) and not is_astray(3.0, posterior)
    assert not is_astray(1.0, posterior | {"above": 0.94}) and not is_astray(1.0, {})


def judged(frame):
    return judge(frame, estimate(frame), PUBLISHED, 1).frame.set_index("id")


@pytest.mark.parametrize(("center", "verdict"), [(13.5, "agrees"), (19.0, "differs")])
def test_regenerated_data_would_be_called_a_failure(center, verdict):
    """Data made anew have an error rate of 19 % and more."""
    frame = pd.DataFrame({"value": center + 0.3 * np.random.default_rng(4).standard_normal(10)})
    frame["unit"] = [f"chain{k}" for k in range(10)]
    id = "section6/1997-400/error-percent"
    found = judged(as_measures(frame.assign(id=id, scale="log").to_dict("records")))
    assert found.loc[id, "verdict"] == verdict
