"""Spatial fields of a benchmark: their covariance, log loss beside the true probabilities, and missing peers."""

import sys

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF, Matern


@pytest.fixture(scope="module")
def spatial(script):
    return script("spatial.py")


@pytest.mark.parametrize(
    ("kind", "kernel"), [("gaussian", RBF(0.1)), ("exponential", Matern(0.1, nu=0.5))]
)
def test_a_field_has_the_covariance_of_its_kernel(spatial, kind, kernel):
    """Products of two values, over 2000 draws; beyond 4.5 standard errors in one of 10,000 runs of all ten."""
    rng = np.random.default_rng(0)
    draws = np.array([spatial.drawn(kind, 3.0, 0.1, 16, rng) for _ in range(2000)])
    for i, j in ((0, 0), (0, 1), (2, 1), (0, 15), (15, 15)):
        products = draws[:, 0, 0] * draws[:, i, j]
        truth = 3.0 * kernel([[0.0, 0.0]], [[i / 16, j / 16]])[0, 0]
        assert abs(products.mean() - truth) < 4.5 * products.std() / np.sqrt(2000)
    with pytest.raises(ValueError, match="length_scale must be shorter"):
        spatial.drawn("gaussian", 1.0, 5.0, 16, rng)


def test_log_loss_is_the_expected_one(spatial):
    """Half a million labels; within 4.5 standard errors but for one of 100,000 runs."""
    given, p = spatial.problem("gaussian", patterns=50, tested=200, cells=32)
    assert given["X"].shape == (50, 2) and len(np.unique(given["X"], axis=0)) == 50
    q = ndtr(np.random.default_rng(1).standard_normal(200))
    row = spatial.judged({"probability": q.tolist()}, p)
    labels = np.random.default_rng(2).random((2500, 200)) < p
    losses = -np.where(labels, np.log(q), np.log1p(-q)).mean(axis=1)
    assert abs(losses.mean() - row["log_loss"]) < 4.5 * losses.std() / 50.0
    assert row["log_loss"] == pytest.approx(spatial.least_loss(p) + row["excess"])
    assert spatial.judged({"probability": p.tolist()}, p)["excess"] == 0.0


def test_a_run_that_prints_nothing_says_why(spatial):
    assert spatial.run(["/no/such/python"]) == {"status": "not installed"}
    refused = [sys.executable, "-c", "raise ValueError('rank of about 7; max_rank=5 leaves 1')"]
    assert spatial.run(refused) == {"status": "rank of about 7"}
