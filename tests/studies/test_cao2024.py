"""Cao and Katzfuss: problems as the authors' scripts make them, estimates against closed forms, and the seal."""

import hashlib
import json

import numpy as np
import pytest
import small
import yaml
from sklearn.gaussian_process.kernels import Matern

from studies.cao2024 import estimates, problems
from studies.cao2024.problems import NUGGETS, Problem
from studies.common.kept import settings

FOLDER = small.ROOT / "data/published/cao2024"


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


def test_a_grid_is_that_of_the_authors_function():
    grid = problems.grid(900)
    # the first 900 of 31 x 31: the first coordinate moves first
    assert grid.shape == (900, 2) and len(np.unique(grid, axis=0)) == 900
    assert grid[:31, 1].tolist() == [1 / 31] * 31 and grid[30, 0] == 1.0
    assert grid[-1].tolist() == [1 / 31, 30 / 31]
    assert problems.grid(6400)[-1].tolist() == [1 / 81, 80 / 81]


def test_a_latin_hypercube_has_one_location_a_strip():
    places = problems.latin_hypercube(50, np.random.default_rng(1))
    assert (np.sort(np.floor(50 * places), axis=0) == np.arange(50)[:, None]).all()


@pytest.mark.parametrize("nugget", NUGGETS.values())
def test_the_covariance_is_a_matern_with_another_length_scale(nugget):
    places = np.random.default_rng(2).random((40, 2))
    expected = Matern(0.1 * np.sqrt(3), nu=1.5)(places) + nugget * np.eye(40)
    np.testing.assert_allclose(problems.covariance(places, nugget), expected, rtol=1e-12)


def test_only_shifted_limits_are_random():
    one, two = (
        {name: problems.problem(name, 30, 0.03, np.random.default_rng(k)) for name in LIMITS}
        for k in (1, 2)
    )
    assert (one["orthant"].cov == two["orthant"].cov).all() and (one["orthant"].upper == 0).all()
    shifted = one["shifted"].upper
    assert ((shifted > -2) & (shifted < 0)).all() and (shifted != two["shifted"].upper).all()


def test_primes():
    assert estimates.primes(6).tolist() == [2, 3, 5, 7, 11, 13]
    assert len(estimates.primes(900)) == 900 and estimates.primes(900)[-1] == 6997


@pytest.mark.parametrize("method", ["minimax-tilting", "separation", "twisted-ep"])
def test_estimates_are_unbiased_and_vary_as_they_should(method):
    """P(v < 0) = 1/21 with equal correlations of one half. Thirty means: false alarms in 1 of 10^5 runs."""
    n, draws = 20, 256 if method == "twisted-ep" else 400
    given = Problem(np.zeros((n, 2)), 0.5 * (np.eye(n) + 1.0), np.zeros(n))
    found = estimates.estimates(given, method, draws, 30, np.random.default_rng(3))
    ratio = (n + 1) * np.exp(found)
    assert len(set(found.tolist())) == 30
    assert abs(ratio.mean() - 1) < 6 * ratio.std(ddof=1) / np.sqrt(30)
    assert ratio.std(ddof=1) < 0.5


def test_a_lattice_is_even_in_each_coordinate():
    parts = list(estimates._lattice(5, 20 * 50, np.random.default_rng(4)))
    assert len(parts) == estimates.SHIFTS and all(part.shape == (5, 50) for part in parts)
    whole = np.concatenate(parts, axis=1)
    assert (whole > 0).all() and (whole < 1).all()
    # the mean of 1000 random points has a deviation of .009; that of a lattice is far closer
    np.testing.assert_allclose(whole.mean(axis=1), 0.5, atol=0.009)
