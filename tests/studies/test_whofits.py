"""Real data sets that are fitted: their patterns, the judge, its optimum, scores, and rows."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from small import ROOT, load, needs_data, plan, put

from gpcmc.evidence import CommonPoints
from gpcmc.rectangle.classification import Twisted
from studies.atiya2021.config import check
from studies.atiya2021.problems import Problem
from studies.atiya2021.whofits import runs
from studies.atiya2021.whofits.data import places, split_problem, squares, two_classes
from studies.atiya2021.whofits.names import DATA_SETS, DataSet, split_of
from studies.atiya2021.whofits.scores import binned_error, losses, recalibration, scores

RAW = [name for name, given in DATA_SETS.items() if given.registered]
SHIPPED = [name for name in DATA_SETS if name not in RAW]


# --- data sets


@pytest.mark.parametrize(
    "name", [*SHIPPED, *(pytest.param(name, marks=needs_data) for name in RAW)]
)
def test_a_split_is_what_the_table_says(name, monkeypatch):
    monkeypatch.setattr("studies.atiya2021.whofits.data.RAW", ROOT.parent / "shared/data")
    given, found = DATA_SETS[name], split_problem(name, 0, 1)
    assert (len(found.y_train), len(found.y_test)) == (given.training, given.test)
    assert given.training <= 1000 and 500 <= given.training + given.test <= 5000
    assert found.X_train.shape[1] == given.inputs
    assert {*found.y_train} == {*found.y_test} == {-1.0, 1.0}
    assert abs(np.mean(found.y_train) - np.mean(found.y_test)) < 4.0 / given.test
    spread = found.X_train.std(axis=0)
    assert not given.scaled or ((abs(spread - 1.0) < 1e-9) | (spread < 1e-9)).all()
    other = split_problem(name, 1, 1)
    assert not np.array_equal(other.X_train, found.X_train)
    assert np.array_equal(split_problem(name, 0, 1).X_test, found.X_test)


def test_targets_become_two_classes():
    X, target = np.arange(8.0).reshape(4, 2), np.array([3, 7, 5, 3])
    pair = two_classes("a", DataSet("x", 1, 1, 2, classes=((5, 7), (3,))), X, target)
    assert pair.y.tolist() == [-1.0, 1.0, 1.0, -1.0]
    some = two_classes("a", DataSet("x", 1, 1, 2, classes=((5,), (3,))), X, target)
    assert some.y.tolist() == [-1.0, 1.0, -1.0] and some.X[:, 0].tolist() == [0.0, 4.0, 6.0]
    above = two_classes("a", DataSet("x", 1, 1, 2), X, target)
    assert above.y.tolist() == [-1.0, 1.0, 1.0, -1.0]
    for labels in ([0, 1, 1, 0], [-1, 1, 1, -1]):
        assert two_classes("a", DataSet("x", 1, 1, 2), X, np.array(labels)).y.tolist() == [*above.y]
    own = two_classes("a", DataSet("x", 1, 1, 1, target=1), X, target)
    assert own.X[:, 0].tolist() == [0.0, 2.0, 4.0, 6.0] and own.y.tolist() == [-1, -1, 1, 1]


def test_pictures_become_patterns():
    image = np.kron(np.arange(16.0).reshape(4, 4), np.ones((4, 4)))
    assert squares(image.reshape(1, -1)).tolist() == [[*np.arange(16.0)]]
    X, value = places(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert X.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert value.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_split_has_a_name():
    assert split_of("usps-3-5-split2") == ("usps-3-5", 2)
    assert [split_of(name) for name in ("usps-3-5", "crabs-split0", "problem1")] == [None] * 3


# --- the judge, where the evidence is known

#: Patterns at two places far apart, of which so many are of class +1: the evidence is a product of two integrals.
COUNTS = ((9, 12), (2, 11))


def known(log_variance):
    """The log evidence of the patterns at both places."""

    def at(positive, all_):
        def integrand(f):
            height = positive * log_ndtr(f) + (all_ - positive) * log_ndtr(-f)
            return math.exp(height) * norm.pdf(f, scale=math.exp(0.5 * log_variance))

        return math.log(quad(integrand, -12.0, 12.0, epsabs=0.0, epsrel=1e-11, limit=200)[0])

    return sum(at(*counts) for counts in COUNTS)


def two_places():
    """The patterns, and a kernel with the variance alone to be fitted."""
    X = np.repeat([[0.0], [100.0]], [all_ for _, all_ in COUNTS], axis=0)
    y = np.concatenate([np.where(np.arange(n) < k, 1.0, -1.0) for k, n in COUNTS])
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, "fixed")
    return Problem(X, y, X[[0, -1]], y[[0, -1]], np.full(2, np.nan)), kernel


def judge_of(points=64):
    problem, kernel = two_places()
    return runs.Judge(kernel, problem, Twisted(points=points, randomizations=16), "1/judge")


def test_the_judge_is_right_where_the_evidence_is_known():
    """Five standard errors of sixteen randomisations: a false alarm in about 6,000 draws, for each of three."""
    judge = judge_of()
    for log_variance in (-1.0, 0.0, 2.0):
        found = judge.at(np.array([log_variance])).posterior
        error = max(found.log_evidence_se, 1e-9)
        assert abs(found.log_evidence - known(log_variance)) < 5.0 * error < 0.05


def test_a_difference_is_right_and_has_a_smaller_error_than_two_judgements():
    judge = judge_of()
    one, other = (judge.at(np.array([at])) for at in (0.5, 0.4))
    difference, error = runs.above(one, other)
    assert abs(difference - (known(0.5) - known(0.4))) < 5.0 * error
    assert error < 0.3 * math.hypot(*(each.posterior.log_evidence_se for each in (one, other)))
    assert runs.above(one, one) == (0.0, 0.0)


def test_the_judges_gradient_leads_from_eps_optimum_to_the_true_one():
    judge = judge_of()
    X, y = judge.problem.X_train, judge.problem.y_train
    top = minimize_scalar(lambda at: -known(at), bounds=(-2.0, 4.0), method="bounded").x
    # from far away the first climb is as long as is allowed
    common = CommonPoints(64, np.arange(16))
    theta, rise = runs.corrected(judge.kernel, X, y, np.array([-2.0]), common)
    assert theta == pytest.approx(-1.0) and rise == pytest.approx(
        known(-1.0) - known(-2.0), abs=0.1
    )
    start = np.array([top + 0.4])
    found, climbs, promised = runs.own_optimum(judge, start, 64, 3)
    assert promised == pytest.approx(known(top) - known(start[0]), rel=0.3)
    assert known(top) - known(found.theta[0]) < 1e-4 < known(top) - known(start[0])
    assert 1 <= climbs <= 3
    ends = {name: runs.fitted(name, judge.kernel, X, y) for name in runs.CLIMBED}
    lost = {name: known(top) - known(end.theta[0]) for name, end in ends.items()}
    assert 0.0 <= lost["ep"] < 1e-3 and lost["ep"] < lost["laplace"] < 0.1


def test_where_no_climb_gains_the_start_stays(monkeypatch):
    judge = judge_of(16)
    start = np.array([0.7])
    monkeypatch.setattr(runs, "corrected", lambda *given: (np.array([-60.0]), 1.0))
    found, climbs, _ = runs.own_optimum(judge, start, 16, 3)
    assert found.theta[0] == 0.7 and climbs == 1


def test_bounds_that_are_met_are_told():
    _, kernel = two_places()
    kernel = kernel.set_params(k2=RBF([1.0, 2.0, 3.0], (0.1, 10.0)))
    at = np.log([1e3, 10.0, 5.0, 0.1])
    assert runs.bounds_met(kernel, at) == (True, 2)
    assert runs.bounds_met(kernel, np.zeros(4)) == (False, 0)


# --- scores


def drawn(intercept, slope, n, seed):
    """Probabilities whose recalibration is known, and labels."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.standard_normal(n)
    return ndtr(z), np.where(rng.random(n) < ndtr(intercept + slope * z), 1.0, -1.0)


@pytest.mark.parametrize(("intercept", "slope"), [(0.0, 1.0), (0.3, 0.5), (-0.2, 2.0)])
def test_recalibration_finds_what_labels_were_drawn_with(intercept, slope):
    """Over 200 data sets z of both has the mean 0 and the variance 1: limits of four standard errors, one in 4,000."""
    z = []
    for seed in range(200):
        found = recalibration(*drawn(intercept, slope, 1000, seed))
        z.append([(found.intercept - intercept) / found.intercept_se])
        z[-1].append((found.slope - slope) / found.slope_se)
    assert (abs(np.mean(z, axis=0)) < 4.0 / np.sqrt(200) + 0.1).all()
    assert (abs(np.var(z, axis=0) - 1.0) < 4.0 * np.sqrt(2.0 / 200)).all()


def test_predictions_that_tell_classes_apart_have_no_recalibration():
    p, y = np.array([0.1, 0.2, 0.7, 0.9]), np.array([-1.0, -1.0, 1.0, 1.0])
    for labels in (y, -y):
        assert all(math.isnan(one) for one in recalibration(p, labels))
    assert math.isnan(recalibration(p, np.ones(4)).slope), "one class"
    assert math.isnan(recalibration(np.full(4, 0.5), y).slope), "one score"
    # zeros and ones are rounded, and no reason to fail
    found = recalibration(
        np.array([0.0, 0.0, 1.0, 1.0, 1.0]), np.array([-1.0, 1.0, 1.0, 1.0, -1.0])
    )
    assert math.isfinite(found.slope) and math.isfinite(found.slope_se)


def test_losses_and_bins_are_those_by_hand():
    p, y = np.array([0.2, 0.4, 0.9, 0.0]), np.array([-1.0, 1.0, 1.0, -1.0])
    assert losses(p, y).tolist() == pytest.approx(
        [-math.log(0.8), -math.log(0.4), -math.log(0.9), 0.0]
    )
    found = scores(p, y)
    assert found["error_rate"] == 0.25 and found["log_loss"] == pytest.approx(losses(p, y).mean())
    # two patterns a bin
    p, y = np.repeat([0.1, 0.9], 10), np.where(np.arange(20) % 2, 1.0, -1.0)
    assert binned_error(p, y) == pytest.approx(0.4)
    assert np.isfinite(losses(np.array([0.0]), np.array([1.0]))).all()


# --- rows


def test_a_split_more_leaves_the_rows_of_the_others():
    few, more = (plan("atiya2021", "whofits", whofits__splits=n) for n in (1, 2))
    assert few == [row for row in more if row["split"] == 0]
    seeds = [row["seed"] for row in more]
    assert len({*seeds}) == len(seeds) == 4


def test_a_configuration_without_the_experiment_has_no_rows():
    from studies.atiya2021.experiments import whofits

    config = load("tiny")
    del config["atiya2021"]["whofits"]
    assert whofits.plan(check(config)) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("data_sets", ["iris"], "whofits.data_sets"),
        ("splits", 11, "whofits.splits"),
        ("judge/points", 100, "whofits.judge.points"),
        ("climb/steps", 0, "whofits.climb.steps"),
    ],
)
def test_what_is_wrong_is_refused(path, value, said):
    config = load("tiny")
    put(config, f"atiya2021/whofits/{path}", value)
    with pytest.raises(ValueError, match=said):
        check(config)
