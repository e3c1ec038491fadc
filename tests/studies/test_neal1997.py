"""The study of Neal (1997): data and Bayes rule against simulation, chains on made data, and the way to verdicts."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from blocks import load, refusal
from scipy.stats import binom

from gpcmc.neal import Gamma, Hierarchy
from recheck.book import Book
from recheck.files import write_arrays
from recheck.judge import judge
from recheck.layout import read_layout
from recheck.measures import as_measures, estimate
from recheck.published import read_published
from recheck.tables import write_tables
from studies.common.data import DamagedFileError, read_registry
from studies.common.data.fbm import FACTS, load_example
from studies.common.data.registry import files_of
from studies.neal1997 import chains, laplace
from studies.neal1997.bayes import BayesRule, bayes, class_of, made
from studies.neal1997.config import check
from studies.neal1997.figures import FIGURES
from studies.neal1997.jobs import FILES, FUNCTIONS, jobs, run_job
from studies.neal1997.measures import PARTS, classes, inputs
from studies.neal1997.runs import CLASSES, used

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
