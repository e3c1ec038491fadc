"""The study of Neal (1997): data and Bayes rule against simulation, chains on made data, and the way to verdicts."""

import inspect
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from blocks import load, refusal
from scipy.stats import binom, multivariate_normal

from gpcmc._threads import one_thread
from gpcmc.neal import Classification, Gamma, Hierarchy, Regression
from recheck.book import Book
from recheck.files import write_arrays, write_csv
from recheck.judge import judge
from recheck.layout import read_layout
from recheck.measures import as_measures, estimate
from recheck.published import read_published
from recheck.tables import write_tables
from studies.common.data import DamagedFileError, read_registry
from studies.common.data.fbm import FACTS, load_example
from studies.common.data.registry import files_of
from studies.neal1997 import chains, laplace, priors, runs
from studies.neal1997.bayes import BayesRule, bayes, class_of, made
from studies.neal1997.config import check
from studies.neal1997.exact import Quadrature, exact, valley
from studies.neal1997.figures import FIGURES
from studies.neal1997.jobs import FILES, FUNCTIONS, jobs, run_job
from studies.neal1997.measures import PARTS, classes, inputs
from studies.neal1997.measures import outliers as regressions
from studies.neal1997.runs import CLASSES, OUTLIERS, ClassesRun, OutliersRun, used

ROOT = Path(__file__).resolve().parents[2]
MIRROR = ROOT.parent / "shared" / "data"
PUBLISHED = ROOT / "data/published/neal1997"
needs_data = pytest.mark.skipif(not MIRROR.exists(), reason="the real data are not here")


def keep(name, compute):
    rows, arrays = compute()
    return rows, [], arrays


def made_classes(cases=60, training=40, seed=0):
    rng = np.random.default_rng(seed)
    X, t = made(cases, rng)
    noise = rng.random((cases, 2))
    return {"X": np.hstack([X, noise]), "t": t.astype(float), "training": np.array(training)}


def made_outliers(cases=40, training=25, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(cases)
    sd = np.where(rng.random(cases) < 0.05, 1.0, 0.1)
    t = chains.true_function(x) + sd * rng.standard_normal(cases)
    return {"X": x[:, None], "t": t, "training": np.array(training)}


# ---------------------------------------------------------------------------------------------------------------------
# Data


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """The author's files under their registered names."""
    folder = tmp_path_factory.mktemp("raw")
    for file in FILES.values():
        release, _, name = file.rpartition("-")
        (folder / file).write_bytes((MIRROR / release / name).read_bytes())
    return folder


@needs_data
@pytest.mark.parametrize("name", FACTS)
def test_the_files_are_those_of_the_author(name, raw):
    X, t, training = load_example(name, raw, read_registry(ROOT / "data/registry.csv"))
    assert (*X.shape[:1], training, X.shape[1]) == FACTS[name] and len(t) == len(X)
    if name == "neal_classes_1997":  # the case that the paper quotes
        assert X[1, :2].tolist() == [0.20626, 0.56059] and t[1] == 0


@needs_data
def test_another_file_is_refused(raw, tmp_path):
    registry = read_registry(ROOT / "data/registry.csv")
    (entry,) = files_of("neal_outliers_1997", registry)
    content = (raw / entry.file).read_bytes()
    (tmp_path / entry.file).write_bytes(content.replace(b"1.10456", b"1.10457"))
    with pytest.raises(DamagedFileError, match="fbm-1997-01-18-odata"):
        load_example("neal_outliers_1997", tmp_path, registry)
    with pytest.raises(ValueError, match="need one of"):
        load_example("iris", tmp_path, registry)


# ---------------------------------------------------------------------------------------------------------------------
# The Bayes rule


def test_classes_follow_the_recipe():
    x, y = np.array([0.4, 0.1, 0.9, 0.4]), np.array([0.5, 0.1, 0.9, 0.151])
    assert class_of(x, y).tolist() == [0, 1, 2, 0]


@pytest.mark.slow
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
    other = density.argsort(axis=1)[:, 1]
    assert (other != t).mean() > rate
    # the whole probability is in the three densities
    assert BayesRule(300).error_rate() == pytest.approx(rate, abs=5e-4)


@pytest.mark.slow
@needs_data
def test_the_test_cases_of_1997_are_lucky(raw):
    registry = read_registry(ROOT / "data/registry.csv")
    sets = {}
    for key, name in (("old", "neal_classes_1997"), ("new", "neal_classes_2022")):
        X, t, training = load_example(name, raw, registry)
        sets[key] = {"X": X, "t": t, "training": np.array(training)}
    rows = bayes(points=400, sets=20, root=1, keep=keep, **sets)[0]
    frame = pd.DataFrame(rows)
    found = frame.groupby(["data", "quantity"])["value"].mean()
    assert found["1997", "error-rate"] == 80 / 600
    assert found["population", "error-rate"] == pytest.approx(0.1836, abs=5e-4)
    rate = found["population", "error-rate"]
    assert found["population", "luck"] == pytest.approx(binom.cdf(80, 600, rate))
    # 20 sets of 600: 5 standard errors
    assert found["anew", "error-rate"] == pytest.approx(rate, abs=5 * math.sqrt(rate / 12_000))


# ---------------------------------------------------------------------------------------------------------------------
# Chains


def test_predictions_are_from_the_iterations_of_the_paper():
    assert used(100, 55, 100) == [55, 60, 65, 70, 75, 80, 85, 90, 95, 100]
    assert used(100, 21, 100) == list(range(25, 101, 5))
    assert used(200, 101, 200) == list(range(105, 201, 5))
    assert used(3, 55, 100) == [3]


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
    assert (runs.CLASSES_ITERATIONS, runs.OUTLIERS_ITERATIONS, runs.OUTLIERS_FIRST) == (
        100,
        200,
        101,
    )
    assert (runs.JITTER, runs.MINOR, runs.EVERY) == (0.001, 0.05, 5)
    assert Gamma(0.05, 0.5) == chains.VAGUE
    starts = (chains.MAGNITUDE, chains.RELEVANCE, chains.SINGLE_RELEVANCE, chains.NOISE)
    assert starts == (0.5, 1.0, 0.1, 0.5)


def record(monkeypatch, model, **instead):
    """Every argument of the calls of a model's `iterate`, defaults too; some are replaced in the call itself."""
    calls, original = [], model.iterate

    def iterate(self, state, **given):
        bound = inspect.signature(original).bind(self, state, **given)
        bound.apply_defaults()
        calls.append(
            {k: v for k, v in bound.arguments.items() if k not in ("self", "state", "rng")}
        )
        return original(self, state, **{**given, **instead})

    monkeypatch.setattr(model, "iterate", iterate)
    return calls


def test_chains_of_classes_are_made_with_these_settings(monkeypatch):
    calls = record(monkeypatch, Classification, scans=1)
    data = made_classes(cases=60, training=40)
    chains.classes(run="1997-100", chains=[0], iterations=7, root=1, data=data, keep=keep)
    always = {"updates": 5, "scans": 100, "factor": 0.4}
    assert calls == [always | {"persistence": p} for p in [0.9] * 5 + [0.99] * 2]


def test_regressions_are_made_with_these_settings(monkeypatch):
    calls = record(monkeypatch, Regression, leapfrogs=4, window=1)
    data = made_outliers()
    chains.outliers(run="1997-t", chains=[0], iterations=2, root=1, data=data, keep=keep)
    assert calls == 2 * [{"leapfrogs": 20, "window": 4, "factor": 0.5}]


def test_the_software_draws_the_noise_variance_and_integrates_over_the_latent_value():
    """Over many draws its density is the integral over both; without noise there is nothing to draw."""
    data, rng = made_outliers(), np.random.default_rng(5)
    X, t = data["X"], data["t"]
    kernel = chains.covariance(1.0, 1.0, 0.01)
    model = Regression(
        kernel, [chains.VAGUE, chains.VAGUE], chains.VAGUE, X[:10], t[:10], degrees=4.0
    )
    state, test = model.state(np.log([0.5, 1.0, 0.3]), np.full(10, 0.1)), slice(10, 14)
    density = np.exp(model.log_predictive(state, X[test], t[test]))
    draws = [np.exp(chains._software(model, state, X[test], t[test], rng)) for _ in range(200)]
    error = np.std(draws, axis=0) / math.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - density) < 5 * error).all()
    quiet = model.state(np.log([0.5, 1.0, 1e-9]), np.full(10, 0.1))
    mean, variance = model.predict(quiet, X[test])
    expected = [
        multivariate_normal.logpdf(*one) for one in zip(t[test], mean, variance, strict=True)
    ]
    found = chains._software(model, quiet, X[test], t[test], rng)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


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
    rows = pd.DataFrame(priors.priors(root=1, keep=keep)[0])
    assert len(rows) == 4 * 2 * len(priors.GRID) and rows["value"].abs().max() < 15
    # neighbours, 0.05 apart, are as close as their covariance says: within 5 standard errors of 240 differences
    step = rows[rows["prior"] == "short"].groupby("draw")["value"].diff().dropna()
    assert step.std() == pytest.approx(math.sqrt(2 - 2 * math.exp(-(0.25**2))), rel=0.4)


# ---------------------------------------------------------------------------------------------------------------------
# The regressions by quadrature


@pytest.mark.parametrize("constant", [1.0, 100.0])
def test_quadrature_is_a_sum_over_dense_covariances(constant):
    """Each point of a small grid by SciPy's normal density and by the textbook's formulas, without eigenvectors."""
    data = made_outliers(cases=9, training=6)
    X, t = data["X"][:6], data["t"][:6]
    grid = {"eta": np.log([0.5, 1.5]), "rho": np.log([0.4, 2.0, 9.0]), "sigma": np.log([0.1, 0.3])}
    found = Quadrature(X[:, 0], t, constant, **grid)
    mean, log_density = found.predict(data["X"][6:, 0], data["t"][6:])
    points = []
    for rho in grid["rho"]:
        for eta in grid["eta"]:
            for sigma in grid["sigma"]:
                kernel = chains.covariance(math.exp(rho), constant, 0.0)
                kernel.k2.k1.constant_value = math.exp(2 * eta)
                C = kernel(X) + math.exp(2 * sigma) * np.eye(6)
                level = multivariate_normal.logpdf(t, np.zeros(6), C)
                level += sum(chains.VAGUE.log_density(x)[0] for x in (rho, eta, sigma))
                cross = kernel(data["X"][6:], X) @ np.linalg.inv(C)
                means = cross @ t
                variance = np.diag(kernel(data["X"][6:]) - cross @ kernel(X, data["X"][6:]))
                deviation = np.sqrt(variance + math.exp(2 * sigma))
                points.append((level, means, np.exp(-0.5 * ((data["t"][6:] - means) / deviation) ** 2)
                               / deviation / math.sqrt(2 * math.pi)))  # fmt: skip
    weight = np.exp([one[0] for one in points])
    weight /= weight.sum()
    np.testing.assert_allclose(np.exp(found.log_weight).ravel(), weight, rtol=1e-6)
    np.testing.assert_allclose(mean, weight @ [one[1] for one in points], rtol=1e-6)
    np.testing.assert_allclose(np.exp(log_density), weight @ [one[2] for one in points], rtol=1e-6)
    np.testing.assert_allclose(found.marginal("rho"), weight.reshape(3, 4).sum(axis=1), rtol=1e-6)


def test_the_valley_is_between_the_two_highest_modes():
    assert valley(np.array([0, 1, 0, 5, 3, 2, 4, 1, 2, 0.0])) == 5
    assert valley(np.array([0, 1, 2, 1, 0.0])) is None
    assert valley(np.array([3, 2, 1.0])) is None  # an end is no mode


@pytest.mark.slow
@needs_data
def test_the_posterior_of_2022_has_a_minor_mode(raw):
    registry = read_registry(ROOT / "data/registry.csv")
    X, t, training = load_example("neal_outliers_2022", raw, registry)
    data = {"X": X, "t": t, "training": np.array(training)}
    with one_thread():
        rows = exact(run="2022-gaussian", data=data, keep=keep)[0]
    found = {row["quantity"]: row["value"] for row in rows}
    assert 0.01 < found["above"] < 0.025 and 2 < found["divide"] < 6
    assert found["squared-error"] == pytest.approx(0.0569, abs=3e-4)


def test_the_prior_of_the_relevances_is_that_of_the_software():
    """x0.2:0.5:1 for four inputs: the top level has the mean precision 4^2 / 0.2^2 = 400."""
    assert chains.RELEVANCES.top.width**-2 == pytest.approx(400.0)
    assert Hierarchy(Gamma(0.2 / 4.0, 0.5), 1.0) == chains.RELEVANCES  # bit by bit


def test_the_covariance_adds_the_squares_of_its_parts():
    X = np.array([[0.0, 0.0], [0.3, 5.0]])
    K = chains.covariance(np.array([1.0, 1e-9]), 10.0, 10.0)(X)
    expected = 100 + 0.25 * np.exp(-(np.array([[0.0, 0.3], [0.3, 0.0]]) ** 2))
    np.testing.assert_allclose(K, expected + 100 * np.eye(2))


@pytest.mark.slow
def test_a_chain_finds_which_inputs_matter(monkeypatch):
    """On made data, from a magnitude that is not lost in the jitter; thresholds are far from the values."""
    monkeypatch.setattr(chains, "SCANS", 10)
    monkeypatch.setattr(chains, "MAGNITUDE", 20.0)
    data = made_classes(cases=320, training=120, seed=3)
    given = {"iterations": 60, "root": 1, "data": data, "keep": keep}
    rows = chains.classes(run="2022-100", chains=[0], **given)[0]
    table = pd.DataFrame(rows).pivot_table(index="place", columns="quantity", values="value")
    late = np.log(table.loc[40:, ["rho1", "rho2", "rho3", "rho4"]]).mean()
    assert late["rho1"] + late["rho2"] > late["rho3"] + late["rho4"] + 2 * math.log(2)
    test = slice(120, None)
    least = (BayesRule(100).guess(data["X"][test, :2]) != data["t"][test]).mean()
    assert table["error-rate"].dropna().iloc[-1] < least + 0.2


@pytest.mark.slow
def test_t_noise_is_not_moved_by_an_outlier():
    data = made_outliers(cases=70, training=40)
    data["t"][5] += 6.0
    errors = {}
    for run in ("1997-t", "1997-gaussian"):
        rows = chains.outliers(run=run, chains=[0], iterations=30, root=1, data=data, keep=keep)[0]
        frame = pd.DataFrame(rows).set_index("quantity")["value"]
        errors[run] = frame["function-error"]
        assert len(frame["mean"]) == len(chains.GRID)
    assert errors["1997-t"] < 0.5 * errors["1997-gaussian"]


def test_laplaces_method_stands_beside():
    rows = laplace.laplace(training=40, data=made_classes(), keep=keep)[0]
    found = {row["quantity"]: row["value"] for row in rows}
    assert 0 <= found["error-rate"] < 0.7 and found["log-probability"] < 0
    assert {f"rho{u}" for u in range(1, 5)} < found.keys()


# ---------------------------------------------------------------------------------------------------------------------
# Configuration and jobs


@pytest.mark.parametrize("scale", ["tiny", "smoke", "standard", "published"])
def test_every_scale_has_jobs_with_functions_and_parts(scale):
    config = load("neal1997", scale)
    found = jobs(check(config))
    assert {job.kind for job in found.values()} <= FUNCTIONS.keys()
    files = [file for job in found.values() for file in job.outputs.values()]
    assert len(files) == len(set(files))
    assert {f for f in files if not f.startswith("data/")} == {
        file for part in PARTS for file in inputs(part, config)
    }
    for run, count in config["neal1997"]["classes"]["runs"].items():
        numbers = [
            n
            for job in found.values()
            if job.arguments.get("run") == run
            for n in job.arguments["chains"]
        ]
        assert numbers == list(range(count))  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("classes/runs", {"1996-400": 1}, "a whole number of chains from 1 to 1000 for some of"),
        ("outliers/iterations", 500, "allowed is a whole number from 2 to 200"),
        ("bayes/points", 3, "allowed is a whole number from 50 to 4000"),
        ("laplace", None, "neal1997.laplace: given None"),
    ],
)
def test_a_wrong_configuration_is_refused(path, value, message):
    assert message in refusal(check, "neal1997", path, value)


# ---------------------------------------------------------------------------------------------------------------------
# From jobs to verdicts

SMALL = {
    "classes": {"runs": {"1997-400": 2, "1997-100": 1, "2022-logistic": 1}, "iterations": 8},
    "outliers": {
        "runs": {"1997-t": 2, "1997-gaussian": 2, "1997-gaussian-100": 1, "2022-t": 1},
        "iterations": 6,
    },
    "bayes": {"points": 60, "sets": 5},
    "laplace": {"training": [100]},
}


def run_all(folder, *, available):
    """All jobs of a small configuration, on made data, or without any."""
    for job in jobs({"seed": 1, "neal1997": SMALL}).values():
        if job.kind == "problem":
            arrays = made_classes(70, 50) if "classes" in job.name else made_outliers()
            (folder / "data").mkdir(parents=True, exist_ok=True)
            write_arrays(folder / job.outputs["arrays"], arrays if available else {})
        else:
            run_job(job, folder, folder / "pieces")
    return folder


def measures_of(folder):
    return pd.concat([PARTS[part](folder, PUBLISHED, Path()) for part in PARTS], ignore_index=True)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "SCANS", 3)
        return run_all(tmp_path_factory.mktemp("made"), available=True)


@pytest.fixture(scope="module")
def measured(results):
    """Measures of few iterations, as if they were those of the paper."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studies.neal1997.measures.classes.CLASSES_ITERATIONS", 8)
        patch.setattr("studies.neal1997.measures.outliers.OUTLIERS_ITERATIONS", 6)
        return measures_of(results)


@pytest.fixture(scope="module")
def published():
    return read_published(PUBLISHED)


@pytest.mark.slow
def test_every_cell_and_claim_has_a_measure(measured, published):
    found = judge(measured, estimate(measured), published, 1).frame.set_index("id")
    known = {*published.cells.index, *(f"claim/{claim.id}" for claim in published.claims)}
    front = ("claim/", "section6", "documentation", "software2022")
    ids = {id for id in measured["id"] if id.startswith(front)}
    assert ids <= known, sorted(ids - known)
    # the runs that are not in the small configuration
    absent = known - ids
    assert all("2022-400" in id or "2022-100" in id or "2022-gaussian" in id for id in absent)
    assert set(found.loc[list(absent), "verdict"]) == {"not run"}


def test_fewer_iterations_than_the_papers_do_not_count(results, published):
    frame = measures_of(results)
    found = judge(frame, estimate(frame), published, 1).frame.set_index("id")
    assert found.loc["section6/1997-400/error-percent", "verdict"] == "not comparable"
    assert found.loc["claim/outliers", "verdict"] == "not comparable"
    assert not frame["id"].str.endswith("astray").any()


def test_without_raw_data_every_verdict_says_so(tmp_path, published):
    frame = measures_of(run_all(tmp_path, available=False))
    found = judge(frame, estimate(frame), published, 1).frame
    cells = found[found["kind"].isin(["cell", "claim"])]
    assert set(cells["verdict"]) == {"data not available"}


def test_a_chain_that_is_nothing_but_jitter_does_not_count():
    iterations = np.arange(1, 101)
    far = {"place": iterations, "eta": 30.0, "rho1": 1.0}
    for eta, expected in ((30.0, "ok"), (0.05, classes.ASTRAY)):
        table = pd.DataFrame(far | {"eta": eta}).set_index("place")
        assert classes._status("1997-100", table) == (expected, eta < 1)
    assert CLASSES["2022-logistic"].jitter == 0.1  # there 0.05 is not nothing


def test_claims_on_the_chain_by_hand():
    """The first half is another world; in the second the log relevances have these means, and so on."""
    half, k = 50, np.arange(50)
    logs = {"rho1": 3.0, "rho2": 1.0, "rho3": -1.0, "rho4": 0.0}
    columns = {name: np.exp(np.r_[np.full(half, -9.0), value + 0.1 * (-1.0) ** k])
               for name, value in logs.items()}  # fmt: skip
    columns["eta"] = np.exp(np.r_[np.full(half, 9.0), np.full(25, 1.0), np.full(25, 1.3)])
    columns["latent0"] = np.r_[np.zeros(half), (-1.0) ** k]  # successive values are opposite
    columns["latent1"] = columns["latent2"] = np.r_[np.zeros(half), k]  # and here on a line
    columns |= {"accepted": 4.0, "error-rate": 0.25, "log-probability": -0.7}
    table = pd.DataFrame(columns, index=pd.Index(np.arange(1, 101), name="place"))
    common = {"unit": "u", "run": 0, "seed": "s", "source": "f:2", "status": "ok"}
    found = {row["id"]: row["value"] for row in classes._chain("1997-400", table, common)}
    assert found["claim/relevance"] == pytest.approx((3 + 1 + 1 - 0) / 2)
    assert found["claim/equilibrium"] == pytest.approx(1.3 - 1.0)
    assert found["claim/latent"] == pytest.approx((-1 + 1 + 1) / 3)
    assert found["chains/1997-400/rho1"] == pytest.approx(math.exp(3))
    assert found["chains/1997-400/accepted"] == pytest.approx(0.8)
    assert found["section6/1997-400/error-percent"] == pytest.approx(25)


def regression_rows(run, chain, *, rho, error):
    """Raw rows of a chain of 200 iterations with given log relevances and errors."""
    traces = {"eta": np.ones(200), "rho": np.exp(rho), "sigma": np.full(200, 0.2)}
    rows = [(name, place, value) for name, trace in traces.items()
            for place, value in enumerate(trace, 1)]  # fmt: skip
    scores = ["squared-error", "function-error", "log-probability", "log-probability-software"]
    rows += [(name, 200, value) for name, value in zip(scores, error, strict=True)]
    frame = pd.DataFrame(rows, columns=["quantity", "place", "value"])
    return frame.assign(run=run, chain=chain, seed="s")


def measured_regressions(folder, frames, posteriors):
    (folder / "outliers").mkdir(parents=True)
    (folder / "exact").mkdir()
    write_csv(folder / "outliers/all.csv", pd.concat(frames))
    for run, values in posteriors.items():
        rows = [{"run": run, "quantity": k, "value": v} for k, v in values.items()]
        write_csv(folder / f"exact/{run}.csv", pd.DataFrame(rows))
    return regressions.measure(folder)


POSTERIOR = {"squared-error": 0.1, "function-error": 0.01, "log-probability": 0.3, "eta": 1.0,
             "rho": 1.0, "sigma": 0.2}  # fmt: skip


def test_a_chain_in_a_minor_mode_does_not_count(tmp_path):
    """Two of five predict from the side with 3 %; where it begins, and a short visit, are no matter."""
    main, minor = np.zeros(200), np.full(200, 2.0)
    late, visit = minor.copy(), main.copy()
    late[100:], visit[120:160] = 0.0, 2.0
    given = [main, minor, late, minor, visit]
    error = (0.2, 0.05, 0.1, 0.0)
    frames = [
        regression_rows("2022-gaussian", k, rho=rho, error=error) for k, rho in enumerate(given)
    ]
    known = {"2022-gaussian": POSTERIOR | {"divide": math.exp(1.0), "above": 0.03}}
    found = measured_regressions(tmp_path, frames, known).set_index("id")
    shares = found.loc["chains/2022-gaussian/astray"]
    assert shares["value"].tolist() == [0, 1, 0, 1, 0] and set(shares["status"]) == {"ok"}
    expected = ["ok", classes.ASTRAY, "ok", classes.ASTRAY, "ok"]
    for name in ("software2022/2022-gaussian/squared-error", "chains/2022-gaussian/rho"):
        assert found.loc[name, "status"].tolist() == expected
    assert found.loc["exact/2022-gaussian/minor", "value"] == 0.03
    assert found.loc["exact/2022-gaussian/squared-error", "value"] == 0.1


def test_a_mode_is_minor_on_either_side():
    posterior = {"divide": 2.0, "above": 0.97}
    assert regressions.is_astray(1.0, posterior) and not regressions.is_astray(3.0, posterior)
    assert not regressions.is_astray(1.0, posterior | {"above": 0.94})
    assert not regressions.is_astray(1.0, {})  # one mode


def test_outliers_are_compared_chain_by_chain(tmp_path):
    """The error with t noise over that with Gaussian noise, squared distances from the function."""
    flat = {"1997-t": 0.01, "1997-gaussian": 0.04, "1997-gaussian-100": 0.05}
    frames = [
        regression_rows(run, k, rho=np.zeros(200), error=(9.0, error * (1 + k), 0.0, 0.0))
        for run, error in flat.items()
        for k in range(2)
    ]
    known = dict.fromkeys(("1997-gaussian", "1997-gaussian-100"), POSTERIOR)
    found = measured_regressions(tmp_path, frames, known)
    claim = found[found["id"] == "claim/outliers"].set_index(["reading", "unit"])["value"]
    for k in range(2):
        assert claim["constant=paper", f"outliers/chain{k}"] == pytest.approx(0.25)
        assert claim["constant=release", f"outliers/chain{k}"] == pytest.approx(0.2)


@pytest.mark.slow
def test_tables_and_figures_are_drawn(measured, published, tmp_path):
    verdicts = judge(measured, estimate(measured), published, 1).frame
    defaults = {choice.name: choice.default for choice in published.readings.values()}
    book = Book(estimate(measured), measured, published.cells, verdicts, defaults=defaults)
    layout = read_layout(ROOT / "src/studies/neal1997/layout.yaml")
    assert set(layout.figures) == set(FIGURES)
    assert {part for entry in layout.figures.values() for part in entry.reads} <= set(PARTS)
    write_tables(layout, book, None, tmp_path)
    assert "0.1333" in (tmp_path / "printed.tex").read_text()
    for draw in FIGURES.values():
        (axes, *_) = draw(book).axes
        assert axes.lines
    nothing = as_measures([{"id": "a/b", "value": 1.0, "scale": "linear"}])
    empty = Book(estimate(nothing), nothing, published.cells, None, defaults=defaults)
    for draw in FIGURES.values():
        assert "not run" in draw(empty).axes[0].texts[0].get_text()


def chains_of(id, values):
    """Measures of one id, a unit a value."""
    rows = [
        {"id": id, "value": v, "unit": f"chain{k}", "scale": "log"} for k, v in enumerate(values)
    ]
    return as_measures(rows)


@pytest.mark.parametrize(
    ("center", "verdict"),
    [(13.5, "agrees"), (19.0, "differs")],  # data made anew have 19 % and more
)
def test_regenerated_data_would_be_called_a_failure(center, verdict, published):
    values = center + 0.3 * np.random.default_rng(4).standard_normal(10)
    frame = chains_of("section6/1997-400/error-percent", values)
    found = judge(frame, estimate(frame), published, 1).frame.set_index("id")
    assert found.loc["section6/1997-400/error-percent", "verdict"] == verdict
