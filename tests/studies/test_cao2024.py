"""Cao and Katzfuss: problems and points as the authors' scripts make them, estimates against closed forms, the seal."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
import small
import yaml
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import Matern

from gpcmc.covariance.factor import DenseFactor
from gpcmc.rectangle.tilt import minimax_tilt
from recheck.judge.published import read_published
from recheck.report.audit import audit_lines, audit_tables
from recheck.report.book import Book, read
from recheck.report.layout import read_layout
from studies.cao2024 import estimates, problems
from studies.cao2024.measures import probabilities
from studies.cao2024.problems import NUGGETS, SCENARIOS, Problem
from studies.cao2024.twisted import twisted
from studies.cao2024.vecchia import factor_of
from studies.common.kept import settings

FOLDER = small.ROOT / "data/published/cao2024"
KEPT = small.ROOT / "data/reference/cao2024"


def sealed():
    """Digests of what was printed and said, and of the rules and the rows of the published scale."""
    printed = b"".join((FOLDER / name).read_bytes() for name in ("cells.csv", "claims.yaml"))
    rules = yaml.safe_load((FOLDER / "protocol.yaml").read_text(encoding="utf-8"))
    rules.pop("history", None)
    seed = small.read_config("published", small.ROOT / "config")["seed"]
    rows = [
        settings(small.plan("cao2024", name, scale="published", seed=seed))
        for name in ("spread", "reference")
    ]
    planned = json.dumps([rules, *rows], sort_keys=True).encode()
    return [hashlib.sha256(content).hexdigest() for content in (printed, planned)]


def test_the_study_is_the_one_that_was_sealed():
    history = yaml.safe_load((FOLDER / "protocol.yaml").read_text(encoding="utf-8"))["history"]
    assert all(digest in history[-1]["change"] for digest in sealed())
    # the first protocol, and its cut
    assert [entry["after_results"] for entry in history[:2]] == [False, True]


def replicates():
    """The authors' replicates, with logarithms."""
    frame = pd.read_csv(FOLDER / "replicates.csv", dtype={"value": str})
    return frame.assign(log_p=np.log(frame["probability"]))


def test_cells_are_means_and_deviations_of_the_replicates():
    frame, cells = replicates(), read_published(FOLDER).cells
    assert len(cells) == 15 and set(cells["units"]) == {30}
    for id, cell in cells.iterrows():
        scenario, dimension, method = id.removeprefix("log-p/").replace("/", "-", 1).split("-", 2)
        setting = probabilities.DRAWS[method, int(dimension)] if method != "vecchia" else 30
        own = frame[(frame["method"] == method) & (frame["value"] == str(setting))]
        own = own[own["n"] == int(dimension)]
        own = own[own["scenario"] == SCENARIOS.index(scenario) + 1]["log_p"]
        assert len(own) == 30, id
        assert cell["printed"] == f"{own.mean():.4f}"
        assert cell["bracket"] == f"{own.std(ddof=1):.4f}"


def test_claims_have_the_numbers_of_the_replicates():
    frame = replicates()
    means = frame.groupby(["n", "scenario", "method", "value"])["probability"].mean().map(np.log)
    claims = {claim.id: claim for claim in read_published(FOLDER).claims}
    for k, (scenario, digits) in enumerate(zip(SCENARIOS, (4, 4, 3), strict=True), start=1):
        truth = means[900, k, "benchmark (minimax tilting)", "100000"]
        claim = claims[f"reference/{scenario}"]
        assert f"{truth:.{digits}f}" in claim.statement
        assert np.mean(claim.region) == pytest.approx(truth, abs=0.5 * 10**-digits)
    few, many = (means[6400, 1, "vecchia", m] for m in ("30", "70"))
    assert f"{few:.3f} to {many:.3f}" in claims["neighbours"].statement
    assert claims["neighbours"].below == pytest.approx((few + many) / 2, abs=1e-3)
    assert np.mean(claims["mean"].region) == pytest.approx(many, abs=1e-3)


def test_numbers_of_the_generator_are_those_of_r():
    draw = problems.runif(123)
    np.testing.assert_allclose(draw(3), [0.2875775, 0.7883051, 0.4089769], atol=5e-8)
    assert draw(1)[0] == pytest.approx(0.8830174, abs=5e-8)


def test_a_grid_is_that_of_the_authors_function():
    grid = problems.grid(900)
    # the first 900 of 31 x 31: the first coordinate moves first
    assert grid.shape == (900, 2) and len(np.unique(grid, axis=0)) == 900
    assert grid[:31, 1].tolist() == [1 / 31] * 31 and grid[30, 0] == 1.0
    assert grid[-1].tolist() == [1 / 31, 30 / 31]
    assert problems.grid(6400)[-1].tolist() == [1 / 81, 80 / 81]


def test_a_latin_hypercube_has_one_location_a_strip():
    places = problems.latin_hypercube(50, problems.runif(1))
    assert (np.sort(np.floor(50 * places), axis=0) == np.arange(50)[:, None]).all()


@pytest.mark.parametrize("nugget", NUGGETS.values())
def test_the_covariance_is_a_matern_with_another_length_scale(nugget):
    places = np.random.default_rng(2).random((40, 2))
    expected = Matern(0.1 * np.sqrt(3), nu=1.5)(places) + nugget * np.eye(40)
    np.testing.assert_allclose(problems.covariance(places, nugget), expected, rtol=1e-12)


def test_limits_of_the_scenarios():
    orthant, shifted, box = (problems.problem(name, 30, 0.03) for name in SCENARIOS)
    assert np.isneginf(orthant.lower).all() and (orthant.upper == 0).all()
    assert np.isneginf(shifted.lower).all()
    assert ((shifted.upper > -2) & (shifted.upper < 0)).all()
    assert (box.lower == -1).all() and (box.upper == 1).all()
    # a data set is what the seed says, however often it is made
    assert (problems.problem("shifted", 30, 0.03).locations == shifted.locations).all()


def test_primes():
    assert estimates.primes(6).tolist() == [2, 3, 5, 7, 11, 13]
    assert len(estimates.primes(900)) == 900 and estimates.primes(900)[-1] == 6997


def few(scenario, n=60):
    """A small problem in some order, and its factor on all earlier coordinates with limits as they are drawn."""
    given = problems.problem(scenario, n, 0.02)
    order = np.random.default_rng(1).permutation(n)
    lower, upper = given.lower[order], given.upper[order]
    if np.isneginf(lower).all():
        lower, upper = -upper, -lower
    return given, order, factor_of(given, order, n - 1), lower, upper


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_with_all_earlier_neighbours_the_factor_is_the_dense_one(scenario):
    given, order, factor, lower, upper = few(scenario)
    dense = DenseFactor.of(given.cov[np.ix_(order, order)])
    x, w = np.random.default_rng(2).random((2, 60))
    pairs = [
        (factor @ x, dense @ x),
        (factor.transposed(x), dense.transposed(x)),
        (factor.gram() @ x, dense.gram() @ x),
        (factor.gram().solve(w, x), dense.gram().solve(w, x)),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    ours, theirs = (minimax_tilt(one, lower, upper) for one in (factor, dense))
    assert ours.converged and ours.log_bound == pytest.approx(theirs.log_bound, abs=1e-6)
    np.testing.assert_allclose(ours.mu, theirs.mu, atol=1e-6)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_with_all_earlier_neighbours_estimates_are_those_of_minimax_tilting(scenario):
    given = problems.problem(scenario, 60, 0.02)
    found = {
        method: estimates.estimates(given, method, 400, 30, np.random.default_rng(3), 59)[0]
        for method in ("minimax-tilting", "vecchia")
    }
    means = {name: logsumexp(values) - np.log(30) for name, values in found.items()}
    errors = {name: values.std(ddof=1) / np.sqrt(30) for name, values in found.items()}
    gap = means["vecchia"] - means["minimax-tilting"]
    assert abs(gap) < 6 * np.hypot(errors["vecchia"], errors["minimax-tilting"])


def test_few_neighbours_leave_an_error_that_more_of_them_take_away():
    given, order, *_ = few("orthant", 200)
    truth = given.cov[np.ix_(order, order)]
    errors = []
    for neighbours in (3, 12, 50):
        factor = factor_of(given, order, neighbours)
        errors.append(np.abs(factor.K @ np.eye(200) - truth).max())
    assert errors[0] > 0.01 and errors[1] < errors[0] / 2 and errors[2] < 0.01 * errors[0]


def test_earlier_neighbours_are_the_nearest():
    X = np.random.default_rng(5).random((300, 2))
    given = Problem(X, 0.1, np.zeros(300), np.ones(300))
    near = factor_of(given, np.arange(300), 7).K.near
    for i in (0, 1, 5, 8, 299):
        nearest = np.argsort(np.linalg.norm(X[:i] - X[i], axis=1))[:7]
        assert near.index[i, : near.counts[i]].tolist() == nearest.tolist()


@pytest.mark.parametrize("method", estimates.METHODS)
def test_estimates_are_unbiased_and_vary_as_they_should(method):
    """P(v < 0) = 1/21 with equal correlations of one half. Thirty means: false alarms in 1 of 10^5 runs."""
    n = 20
    # nearly in one place, where the field has correlations of one, and the nugget halves them
    places = np.column_stack([1e-6 * np.arange(n), np.zeros(n)])
    given = Problem(places, 1.0, np.full(n, -np.inf), np.zeros(n))
    found, before, each = estimates.estimates(given, method, 400, 30, np.random.default_rng(3), n)
    ratio = (n + 1) * np.exp(found)
    assert len(set(found.tolist())) == 30 and min(before, each) > 0
    assert abs(ratio.mean() - 1) < 6 * ratio.std(ddof=1) / np.sqrt(30)
    assert ratio.std(ddof=1) < 0.5


def test_points_are_ten_lattices_with_antithetic_points():
    parts = list(estimates._lattice(5, 20 * 400, np.random.default_rng(4)))
    assert [part.shape[1] for part in parts] == [500, 300] * estimates.SHIFTS
    for part in parts:
        half = part.shape[1] // 2
        np.testing.assert_allclose(part[:, :half] + part[:, half:], 1.0, atol=1e-12)
    whole = np.concatenate(parts, axis=1)
    assert (whole >= 0).all() and (whole <= 1).all()
    # a squared coordinate's mean: that of 8000 random points has a deviation of .003
    np.testing.assert_allclose((whole**2).mean(axis=1), 1 / 3, atol=0.002)


def test_twisted_ep_of_the_sparse_form_has_the_probability():
    given = problems.problem("shifted", 80, 0.03)
    truth, _, _ = estimates.estimates(given, "minimax-tilting", 4000, 8, np.random.default_rng(9))
    found = twisted(given, 79, 256, 8, np.random.default_rng(10))
    assert found.status == "ok"
    error = np.hypot(found.log_evidence_se, truth.std(ddof=1) / np.sqrt(8))
    assert abs(found.log_evidence - truth.mean()) < 6 * error


def test_the_error_of_a_deviation():
    """That of normal values is about the deviation over the root of twice their number."""
    values = np.random.default_rng(11).standard_normal((200, 30))
    stated = np.array([probabilities.deviation_error(one) for one in values])
    assert stated.mean() == pytest.approx(values.std(axis=1, ddof=1).std(), rel=0.2)


def test_the_public_function_is_set_beside_the_reference():
    """By hand: means 0.05 apart with errors 0.03 and 0.04, and calls 1 and -5 joint errors off."""
    found = [
        {"id": f"mean/{scenario}-900/{name}", "value": value, "se": se, "source": "x", "seed": "1"}
        | {"status": "ok"}
        for scenario in SCENARIOS
        for name, value, se in (("library", -9.95, 0.03), ("theirs", -10.0, 0.04))
    ]
    pairs = [
        (pd.DataFrame([{"scenario": one, "value": value, "se": 0.03}]), 1.0)
        for one in SCENARIOS
        for value in (-9.95, -10.25)
    ]
    rows = {row["id"]: row for row in probabilities._apart(found, pairs)}
    path = "apart/shifted-900/library"
    assert (rows[path]["value"], rows[path]["se"]) == pytest.approx((0.05, 0.05))
    assert rows[f"{path}/z"]["value"] == pytest.approx(1.0)
    assert rows[f"{path}/largest-z"]["value"] == pytest.approx(-5.0)
    assert len(rows) == 3 * len(SCENARIOS)


def test_fewer_draws_than_the_papers_are_not_compared(tmp_path):
    for name in ("spread", "reference"):
        small.write("cao2024", name, [small.rows_of("cao2024", name)], tmp_path)
    found = small.measures("cao2024", tmp_path)
    theirs = found["id"].str.contains("theirs")
    statuses = {probabilities.FEWER, probabilities.TOO_LONG}
    assert set(found.loc[~theirs, "status"]) == statuses
    assert set(found.loc[theirs, "status"]) == {"ok"}


def test_deviations_have_verdicts_that_are_listed_and_counted():
    verdicts = read(KEPT / "verdicts.csv")
    layout = read_layout(small.ROOT / "src/studies/cao2024/layout.yaml")
    listed = audit_tables(verdicts, layout, read_published(FOLDER))
    spreads = verdicts[verdicts["kind"] == "spread"]
    assert len(spreads) == 12
    assert all(f"audit:{id}}}" in listed["audit_spreads"] for id in spreads["id"])
    assert "12 spreads: 8 agree, 1 differs, 3 are undecided." in audit_lines(verdicts)


def test_the_published_seconds_and_ours_are_side_by_side():
    """Of every cell that was run there are both, and only theirs of those that were not."""
    book = Book.read(KEPT, FOLDER)
    for name in ("sd", "seconds", "cost"):
        found = book.select(name + "/{problem}/{method}/{whose}")
        pairs = found.groupby(["problem", "method"])["whose"].agg(set)
        for id in book.cells.index:
            own = pairs[tuple(id.split("/")[1:])]
            only = {"theirs"} if id.endswith("6400/separation") else {"ours", "theirs"}
            assert own == only
