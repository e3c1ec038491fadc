"""Random streams, and the problems that are drawn from them."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from studies.atiya2021 import problems
from studies.atiya2021.problems import (
    EXPERIMENT2,
    Problem,
    further_data_set,
    synthetic_problem,
    two_class_data,
)
from studies.common import data
from studies.common.seeds import generator, seed


def test_seeds_name_streams():
    path = seed(1, "experiment1", "N50")
    assert path == "1/experiment1/N50"
    assert generator(path).random() == generator("1/experiment1/N50").random()
    others = ["1", "2/experiment1/N50", "1/experiment1/N5", "1/experiment1", "1/experiment1/N50/0"]
    assert len({generator(p).random() for p in [path, *others]}) == 6
    with pytest.raises(ValueError, match="path must begin with the root"):
        generator("experiment1/N50")


def test_two_class_data_have_the_stated_law():
    problem = EXPERIMENT2[3]
    xs, ys = [], []
    for k in range(200):
        x, y, x_star = two_class_data(problem, np.random.default_rng(k))
        assert (len(x), len(x_star)) == (400, 200)
        assert y.sum() == 0
        xs.append(x)
        ys.append(y)
    x, y = np.concatenate(xs), np.concatenate(ys)
    # 40,000 draws a class: means to 5 standard errors
    for label, mean, deviation in zip((1, -1), problem.means, problem.deviations, strict=True):
        assert abs(x[y == label].mean() - mean) < 5 * deviation / 200
        assert x[y == label].std() == pytest.approx(deviation, rel=0.02)
    assert abs(np.corrcoef(y[:-1], y[1:])[0, 1]) < 0.02, "classes must be shuffled"


@pytest.mark.parametrize("number", sorted(problems.SYNTHETIC))
def test_synthetic_problems(number):
    law = problems.SYNTHETIC[number]
    problem = synthetic_problem(number, np.random.default_rng(0))
    assert problem.X_train.shape == (law.n_train, len(law.mean))
    assert problem.X_test.shape == (law.n_test, len(law.mean))
    assert problem.y_train.sum() == 0
    x = problem.X_test[0]
    one = multivariate_normal.pdf(x, np.zeros(len(x)), np.eye(len(x)))
    two = multivariate_normal.pdf(x, law.mean, law.cov)
    assert problem.bayes_posterior[0] == pytest.approx(one / (one + two))
    # the posterior is calibrated: it agrees with the labels on average, to 5 standard errors
    many = [synthetic_problem(number, np.random.default_rng(k)) for k in range(40)]
    p = np.concatenate([m.bayes_posterior for m in many])
    y = np.concatenate([m.y_test for m in many]) > 0
    assert abs(p.mean() - y.mean()) < 5 * np.sqrt(np.mean(p * (1 - p)) / len(p))


def test_covariance_of_ten_dimensions_is_the_papers():
    cov = problems.SYNTHETIC[5].cov
    assert cov[0, 0] == 0.5 and cov[0, 1] == cov[1, 0] == 0.2 and cov[0, 2] == 0.0
    assert np.linalg.eigvalsh(cov)[0] == pytest.approx(0.116, abs=1e-3)


@pytest.mark.parametrize("standardise", [True, False])
def test_further_data_sets_of_real_data_are_other_splits(standardise):
    rng = np.random.default_rng(3)
    X, y = rng.normal(2.0, 3.0, (90, 2)), np.repeat([1.0, -1.0], [30, 60])
    raw = data.RawData("made", X, y)
    parts = data.split(raw, 40, 50, standardise=standardise, rng=rng)
    first = Problem(parts.X_train, parts.y_train, parts.X_test, parts.y_test, np.full(50, np.nan))
    one, two = (further_data_set(7, first, f"5/{k}", standardise=standardise) for k in (1, 2))
    for other in (one, two):
        assert other.X_train.shape == (40, 2) and other.X_test.shape == (50, 2)
        assert abs(np.sum(other.y_train > 0) - 40 / 3) < 1, "stratified"
        if standardise:
            np.testing.assert_allclose(other.X_train.mean(axis=0), 0.0, atol=1e-12)
            np.testing.assert_allclose(other.X_train.std(axis=0), 1.0)
        # the same patterns, up to the shift and scale of each split
        pooled = np.concatenate([other.X_train, other.X_test])
        standard = (pooled - pooled.mean(axis=0)) / pooled.std(axis=0)
        expected = (X - X.mean(axis=0)) / X.std(axis=0)
        np.testing.assert_allclose(np.sort(standard, axis=0), np.sort(expected, axis=0))
    assert not np.array_equal(one.y_train, two.y_train)
    again = further_data_set(7, first, "5/1", standardise=standardise)
    np.testing.assert_array_equal(again.X_train, one.X_train)
