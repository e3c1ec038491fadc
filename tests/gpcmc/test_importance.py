"""Importance sampling against closed forms, densities written out, and the orthant sampler.

Where a test is statistical its band is 4.9 standard errors or wider, a false alarm in 1e-6 by the
normal law; the weights in those tests are those of a few patterns, or nearly equal. Seeds are fixed.
"""

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from problems import random_problem
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import binom, multivariate_normal
from truths import log_half_plane, two_point_posterior

from gpcmc.covariance import Dense
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.covariance.root import PivotedRoot
from gpcmc.gaussian.importance import ImportanceSampling, Proposal, log_evidence_estimate
from gpcmc.gp import Prior
from gpcmc.inference import ConvergenceError, ExpectationPropagation, Laplace
from gpcmc.orthant import orthant_probability
from gpcmc.orthant.truths import linear_kernel_truth, three_dimensional
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.weights import weight_diagnostics

EACH = pytest.mark.parametrize(
    ("proposal", "points"),
    [(q, p) for q in ("ep", "laplace") for p in ("random", "antithetic", "sobol")],
)
SIGMAS = 4.9


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


# --- evidence without bias


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("labels", [(1.0, 1.0, 1.0), (1.0, -1.0, 1.0)])
def test_the_evidence_is_unbiased(proposal, points, labels):
    K, y = random_problem(n=3, beta=3.0)[0], np.array(labels)
    method = ImportanceSampling(16, proposal, points, replicates=4)
    rng = default_rng(2)
    ratio = np.array([np.exp(method.fit(Prior(K), y, rng=rng).log_evidence) for _ in range(400)])
    ratio /= np.exp(three_dimensional(orthant_covariance(K, y)))
    band = SIGMAS * ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert band < 0.05
    assert abs(ratio.mean() - 1.0) < band


@EACH
@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_patterns(proposal, points, n):
    K, y = np.array([[5.0, -4.0], [-4.0, 5.0]])[:n, :n], np.ones(n)
    posterior = ImportanceSampling(4096, proposal, points).fit(Prior(K), y, rng=default_rng(3))
    truth = float(log_half_plane(-4.0 / 6.0)) if n == 2 else np.log(0.5)
    assert posterior.log_evidence_se < 0.03
    # a t law of 15 degrees of freedom for the randomisations: 7.5 of its units for 1e-6
    band = (7.5 if points == "sobol" else SIGMAS) * posterior.log_evidence_se
    assert abs(posterior.log_evidence - truth) < band + 1e-12


@pytest.mark.parametrize("points", ["random", "antithetic", "sobol"])
def test_all_labellings_share_one(points):
    K, _ = random_problem(n=5, beta=3.0)
    rng = default_rng(4)
    method = ImportanceSampling(2048, "ep", points)
    total, variance = 0.0, 0.0
    for code in range(32):
        y = np.where((code >> np.arange(5)) & 1, 1.0, -1.0)
        posterior = method.fit(Prior(K), y, rng=rng)
        L = np.exp(posterior.log_evidence)
        total += L
        variance += (L * posterior.log_evidence_se) ** 2
    assert variance < 0.003**2
    assert abs(total - 1.0) < SIGMAS * np.sqrt(variance)


# --- rank one: evidence and probabilities


@EACH
def test_rank_one(proposal, points):
    rng = default_rng(5)
    x, x_star = rng.standard_normal(40), np.array([-1.5, 0.2, 2.0])
    y = np.where(x + rng.standard_normal(40) > 0, 1.0, -1.0)
    posterior = ImportanceSampling(4096, proposal, points).fit(Prior(np.outer(x, x)), y, rng=rng)
    truth = linear_kernel_truth(x, y, x_star)
    assert posterior.log_evidence_se < 4e-3
    assert abs(posterior.log_evidence - truth.log_evidence) < 7.5 * posterior.log_evidence_se
    prediction = posterior.predict(np.outer(x, x_star), x_star**2)
    assert (prediction.standard_error < 2e-3).all()
    error = np.abs(prediction.probability - truth.probability)
    assert (error < 7.5 * prediction.standard_error).all()


def test_agrees_with_the_orthant_sampler():
    K, y = random_problem(n=30)
    posterior = ImportanceSampling(8192).fit(Prior(K), y, rng=default_rng(6))
    R = np.eye(30) + y[:, None] * K * y
    other = orthant_probability(R, samples=40_000, scheme="adapted", rng=default_rng(7))
    joint = np.hypot(posterior.log_evidence_se, other.standard_error)
    assert joint < 0.02
    assert abs(posterior.log_evidence - other.log_probability) < SIGMAS * joint


# --- standard errors


@pytest.mark.slow
@EACH
def test_standard_errors_cover(proposal, points):
    """Where the weights have a finite variance. Of 200 intervals of two standard errors as many hold the
    truth as binomial(200, level) has but for 1e-6, the level from 0.93 to 0.96 for random points. For
    the others it is from 0.85: few degrees of freedom, and a law that is the more skew the more they
    have cancelled.
    """
    K, y = random_problem(n=8, beta=1.0, seed=1)
    K_star, k_star_star = 0.8 * K[:, :1], K.diagonal()[:1]
    rng = default_rng(8)
    truth = ImportanceSampling(400_000).fit(Prior(K), y, rng=rng)
    p = truth.predict(K_star, k_star_star).probability[0]
    method = ImportanceSampling(256, proposal, points)
    inside = np.zeros(2, dtype=int)
    for _ in range(200):
        posterior = method.fit(Prior(K), y, rng=rng)
        prediction = posterior.predict(K_star, k_star_star)
        se = posterior.log_evidence_se
        assert truth.log_evidence_se < 0.2 * se
        inside += (
            abs(posterior.log_evidence - truth.log_evidence) < 2 * se,
            abs(prediction.probability[0] - p) < 2 * prediction.standard_error[0],
        )
    level = 0.93 if points == "random" else 0.85
    low, high = binom.ppf(5e-7, 200, level), binom.isf(5e-7, 200, 0.96)
    assert ((low <= inside) & (inside <= high)).all(), inside


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


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_k_hat_is_the_shape_of_the_upper_tail(k):
    """Weights u^-k have tail index k; estimates from 600 weights spread by (1 + k) / sqrt(600)."""
    log_w = -k * np.log(default_rng(17).random(40_000))
    assert abs(weight_diagnostics(log_w)["k_hat"] - k) < 5 * (1 + k) / np.sqrt(600)


def test_predictions_integrate_over_the_conditional():
    K, y = np.array([[4.0, 1.0], [1.0, 4.0]]), np.array([1.0, -1.0])
    k_star = np.array([1.5, -0.5])
    log_z, _, p = two_point_posterior(K, y, k_star, 4.0)
    posterior = ImportanceSampling(16_384).fit(Prior(K), y, rng=default_rng(18))
    prediction = posterior.predict(k_star[:, None], [4.0])
    assert abs(posterior.log_evidence - log_z) < SIGMAS * posterior.log_evidence_se
    assert prediction.standard_error[0] < 2e-3
    assert abs(prediction.probability[0] - p) < SIGMAS * prediction.standard_error[0]


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


@EACH
def test_no_latent_variance(proposal, points):
    method = ImportanceSampling(64, proposal, points)
    posterior = method.fit(Prior(np.zeros((4, 4))), np.ones(4), rng=default_rng(12))
    assert posterior.log_evidence == pytest.approx(-4 * np.log(2), abs=1e-12)
    prediction = posterior.predict(np.zeros((4, 2)), [0.0, 3.0])
    assert_allclose(prediction.probability, 0.5, atol=1e-12)
    assert_allclose(prediction.standard_error, 0.0, atol=1e-12)


@EACH
def test_duplicated_patterns_are_one_latent_value(proposal, points):
    """Twice each of two patterns, a singular covariance: log p is that of Phi squared."""
    K2 = np.array([[3.0, 1.0], [1.0, 3.0]])
    K = np.kron(K2, np.ones((2, 2)))
    y = np.array([1.0, 1.0, -1.0, -1.0])
    posterior = ImportanceSampling(4096, proposal, points).fit(Prior(K), y, rng=default_rng(13))
    node, weight = np.polynomial.hermite_e.hermegauss(80)
    grid = np.stack(np.meshgrid(node, node, indexing="ij")).reshape(2, -1)
    f = np.linalg.cholesky(K2) @ grid
    mass = np.outer(weight, weight).ravel() / (2 * np.pi) * ndtr(f[0]) ** 2 * ndtr(-f[1]) ** 2
    assert posterior.log_evidence_se < 0.02
    assert abs(posterior.log_evidence - np.log(mass.sum())) < 7.5 * posterior.log_evidence_se
    # at a training pattern the conditional variance is zero
    p = mass @ ndtr(f[0]) / mass.sum()
    prediction = posterior.predict(K[:, :1], [3.0])
    assert abs(prediction.probability[0] - p) < 7.5 * prediction.standard_error[0]


def test_a_very_large_prior_variance():
    """Far from each other with variance 1e6: 2^-n, and Laplace's proposal knows nothing of it."""
    posterior = ImportanceSampling().fit(Prior(1e6 * np.eye(3)), np.ones(3), rng=default_rng(14))
    assert abs(posterior.log_evidence + 3 * np.log(2)) < 0.2


@pytest.mark.parametrize("alpha", [0.3, 3.0, 100.0])
def test_the_root_conditions_as_the_inverse_does(alpha):
    K, _ = random_problem(n=25, alpha=alpha)
    root = PivotedRoot.of(K)
    assert_allclose(root.A @ root.A.T, K, atol=1e-12)
    assert root.A.shape[1] == len(root.pivots) <= np.linalg.matrix_rank(K, tol=1e-15) + 1
    b, left = root.coordinates(Dense(K).cross_of(K, K.diagonal()))
    assert_allclose(b @ b.T, K, atol=1e-7)
    assert_allclose(left, 0.0, atol=1e-7)


# --- the posterior as an object


def test_the_weights_belong_to_the_samples_that_predict():
    """At the training inputs, E[f] from the weights; another stream would give the proposal's mean."""
    K, y = np.array([[30.0]]), np.array([1.0])
    posterior = ImportanceSampling(4096, "laplace", "random").fit(Prior(K), y, rng=default_rng(16))
    # p(y* = 1 | y = 1) for the same latent value: 2 P(v1 > 0, v2 > 0)
    truth = 2 * (0.25 + np.arcsin(30.0 / 31.0) / (2 * np.pi))
    prediction = posterior.predict([[30.0]], [30.0])
    assert abs(prediction.probability[0] - truth) < SIGMAS * prediction.standard_error[0]
    laplace = Laplace().fit(Prior(K), y).predict([[30.0]], [30.0]).probability[0]
    assert abs(laplace - truth) > SIGMAS * prediction.standard_error[0]
