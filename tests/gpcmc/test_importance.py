"""Importance sampling: its weights are ratios of densities, and what they say. Its answers are in test_truths.py."""

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from problems import random_problem
from scipy.special import log_ndtr, logsumexp
from scipy.stats import multivariate_normal

from gpcmc.covariance import Dense
from gpcmc.covariance.root import PivotedRoot
from gpcmc.gaussian.importance import ImportanceSampling, Proposal, log_evidence_estimate
from gpcmc.gp import Prior
from gpcmc.inference import ConvergenceError, ExpectationPropagation, Laplace
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED

# --- the weight is the ratio of densities, for any Gaussian of the form


def unconverged(K, y, **limit):
    with pytest.raises(ConvergenceError) as stopped:
        (Laplace if "max_iterations" in limit else ExpectationPropagation)(**limit).fit(Prior(K), y)
    return stopped.value.posterior


@pytest.mark.parametrize(
    "fit",
    [
        lambda K, y: Laplace().fit(Prior(K), y),
        lambda K, y: ExpectationPropagation().fit(Prior(K), y),
        lambda K, y: unconverged(K, y, max_iterations=1),
        lambda K, y: unconverged(K, y, max_sweeps=1),
    ],
)
def test_the_weight_is_the_ratio_of_the_densities(fit):
    K, y = random_problem(n=7)
    posterior = fit(K, y)
    proposal = Proposal.of(posterior)
    root = proposal.root.A @ proposal.T
    Sigma = np.linalg.inv(np.linalg.inv(K) + np.diag(posterior.S))
    assert_allclose(root @ root.T, Sigma, rtol=1e-9, atol=1e-10)
    normals = default_rng(1).standard_normal((20, 7))
    f = posterior.mean + normals @ root.T
    expected = (
        log_ndtr(y * f).sum(axis=1)
        + multivariate_normal(np.zeros(7), K).logpdf(f)
        - multivariate_normal(posterior.mean, Sigma).logpdf(f)
    )
    assert_allclose(proposal.log_weights(y, normals), expected, atol=1e-9)
    estimate = log_evidence_estimate(posterior, y, normals)
    assert estimate == pytest.approx(logsumexp(expected) - np.log(20), abs=1e-9)


def test_antithetic_pairs_pay_on_a_smooth_kernel():
    K, y = random_problem(n=60, alpha=3.0, beta=2.0)
    errors = {
        points: np.mean(
            [
                ImportanceSampling(2048, "ep", points)
                .fit(Prior(K), y, rng=default_rng(seed))
                .log_evidence_se
                for seed in range(4)
            ]
        )
        for points in ("random", "antithetic")
    }
    assert errors["antithetic"] < 0.7 * errors["random"]


# --- diagnostics


def test_k_hat_warns_where_the_weights_have_a_heavy_tail():
    rough, y = random_problem(n=60, alpha=0.5, beta=10.0)
    posterior = ImportanceSampling(proposal="laplace").fit(Prior(rough), y, rng=default_rng(9))
    assert posterior.diagnostics["k_hat"] > 0.9
    assert posterior.status == UNTRUSTED
    calm, y = random_problem(n=10, beta=0.3)
    posterior = ImportanceSampling().fit(Prior(calm), y, rng=default_rng(9))
    assert posterior.diagnostics["k_hat"] < 0.6
    assert posterior.status == OK
    assert 0.9 < posterior.diagnostics["effective_fraction"] <= 1.0
    assert posterior.diagnostics["effective_samples"] == pytest.approx(
        4096 * posterior.diagnostics["effective_fraction"]
    )


def test_k_hat_is_left_out_where_it_is_not_defined():
    K, y = random_problem(n=5)
    few = ImportanceSampling(24).fit(Prior(K), y, rng=default_rng(10))
    assert "k_hat" not in few.diagnostics
    equal = ImportanceSampling().fit(Prior(np.zeros((5, 5))), y, rng=default_rng(10))
    assert equal.diagnostics["k_hat"] == -np.inf
    assert few.status == NOT_CONVERGED and equal.status == OK


def test_work_is_counted():
    K, y = random_problem(n=12)
    posterior = ImportanceSampling(64).fit(Prior(K), y, rng=default_rng(11))
    assert posterior.work["samples"] == 64
    assert posterior.work["likelihood_evaluations"] == 64 * 12
    assert posterior.work["sweeps"] >= 2


# --- covariances at the edge


@pytest.mark.parametrize("alpha", [0.3, 3.0, 100.0])
def test_the_root_conditions_as_the_inverse_does(alpha):
    K, _ = random_problem(n=25, alpha=alpha)
    root = PivotedRoot.of(K)
    assert_allclose(root.A @ root.A.T, K, atol=1e-12)
    assert root.A.shape[1] == len(root.pivots) <= np.linalg.matrix_rank(K, tol=1e-15) + 1
    b, left = root.coordinates(Dense(K).cross_of(K, K.diagonal()))
    assert_allclose(b @ b.T, K, atol=1e-7)
    assert_allclose(left, 0.0, atol=1e-7)
