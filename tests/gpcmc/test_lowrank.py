"""Covariances of low rank, against the dense methods, closed forms, brute densities and finite differences.

Statistical tests have fixed seeds; their false-alarm rates are stated.
"""

import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from problems import noisy_problem
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel
from truths import central_differences, log_one_factor

import gpcmc.lowrank.methods as door
import gpcmc.lowrank.surface as climbing
from gpcmc import GaussianProcessClassifier
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import (
    EllipticalSlice,
    ExpectationPropagation,
    ImportanceSampling,
    Laplace,
    Twisted,
)
from gpcmc.inference.evidence import EvidenceSurface, maximize
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.lowrank import (
    LowRank,
    LowRankPrior,
    LowRankSurface,
    covariance,
    fit,
    low_rank_prior,
    maximize_low_rank,
    random_columns,
)
from gpcmc.lowrank.correction import TOO_ROUGH, GradientMatrix
from gpcmc.lowrank.dense import AllSitesAtOnce, parallel_ep
from gpcmc.lowrank.ep import expectation_propagation
from gpcmc.lowrank.filter import BLOCK, Filter, Pass, parts
from gpcmc.lowrank.proposals import tilted, twisted
from gpcmc.orthant.tilting import minimax_tilt
from gpcmc.orthant.truths import equicorrelated_half

ROUGH = rbf(0.5, 3.0)
GAUSSIANS = [
    ExpectationPropagation(tolerance=1e-9),
    Laplace(),
    Laplace(likelihood="logistic"),
]


def dense(K):
    return K.F @ K.F.T + np.diag(K.D)


def random_covariance(n, r, seed):
    rng = np.random.default_rng(seed)
    D = rng.uniform(0.0, 1.0, n)
    D[::4] = 0.0
    return LowRank(rng.standard_normal((n, r)) / np.sqrt(r), D), rng


# --- the covariance


@pytest.mark.parametrize(
    "kernel", [ROUGH, 2.0 * Matern(0.7, nu=1.5) + WhiteKernel(0.3), DotProduct(0.5)]
)
def test_pivots_meet_the_tolerance_and_keep_variances(kernel):
    X, _ = noisy_problem(0, 200)
    K = kernel(X)
    noise = 0.3 if "White" in str(kernel) else 0.0
    for tolerance in (1e-1, 1e-3):
        P = low_rank_prior(kernel, X, tolerance=tolerance)
        A = dense(P.covariance)
        np.testing.assert_allclose(A.diagonal(), K.diagonal(), rtol=1e-9)
        left = np.mean(P.covariance.D - noise) / (np.trace(K) / 200 - noise)
        assert left <= 1.1 * tolerance + 1e-12
        G = P.finer.F
        finer = A + G @ G.T - np.diag(np.einsum("ij,ij->i", G, G))
        largest = [np.abs(K - B).max() for B in (A, finer)]
        assert largest[1] <= largest[0] <= 40 * tolerance * K.max()
    P = low_rank_prior(kernel, X, tolerance=1e-13)
    np.testing.assert_allclose(dense(P.covariance), K, atol=1e-9 * K.max())


def test_no_pattern_is_chosen_twice_where_nothing_but_rounding_is_left():
    X, _ = noisy_problem(0, 80)
    inducing, K, _ = covariance.pivoted(rbf(1.0, 2.0), X, 1e-14)
    assert len(set(inducing.pivots)) == K.rank <= 80
    np.testing.assert_allclose(dense(K), rbf(1.0, 2.0)(X), atol=1e-9)


def test_more_patterns_than_candidates(monkeypatch):
    monkeypatch.setattr(covariance, "CANDIDATES", 300)
    X = np.random.default_rng(0).standard_normal((2000, 2))
    P = low_rank_prior(rbf(1.0, 3.0), X, tolerance=1e-3)
    assert 5e-4 < P.covariance.D.mean() / 3.0 <= 1.1e-3
    again = low_rank_prior(rbf(1.0, 3.0), X, tolerance=1e-3)
    np.testing.assert_array_equal(P.covariance.F, again.covariance.F)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, 1.5, np.nan, "1e-4"])
def test_a_tolerance_is_a_share_of_the_variance(tolerance):
    """Above 1 nothing has to be explained, and there would be no column."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    with pytest.raises(ValueError, match="tolerance"):
        low_rank_prior(ROUGH, X, tolerance=tolerance)
    for optimizer in (None, "lbfgs"):
        model = GaussianProcessClassifier(
            ROUGH, optimizer=optimizer, n_restarts=1, approximation="low-rank", tolerance=tolerance
        )
        with pytest.raises(ValueError, match="tolerance"):
            model.fit(X, X[:, 0] > 0)
    assert low_rank_prior(ROUGH, X, tolerance=0.999).covariance.rank == 1


@pytest.mark.parametrize("d", [2, 6])
def test_the_message_says_which_rank_is_needed(d):
    X = np.random.default_rng(0).standard_normal((800, d))
    kernel = rbf(np.sqrt(d), 3.0)
    rank = low_rank_prior(kernel, X, tolerance=1e-2).covariance.rank
    with pytest.raises(ValueError, match="needs a rank of about") as error:
        low_rank_prior(kernel, X, tolerance=1e-2, max_rank=rank // 2)
    said = int(str(error.value).split("about ")[1].split(";")[0])
    assert 0.6 * rank < said < 1.7 * rank


# --- Laplace's method and expectation propagation


@pytest.mark.parametrize("method", GAUSSIANS)
def test_equals_the_dense_method_on_the_same_covariance(method, monkeypatch):
    monkeypatch.setattr(door, "TOLERANCE", 1e-9)
    K, rng = random_covariance(60, 7, 1)
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    found, truth = fit(method, LowRankPrior(K), y), method.fit(Prior(dense(K)), y)
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-7)
    for name in ("mean", "a", "S"):
        np.testing.assert_allclose(getattr(found, name), getattr(truth, name), atol=1e-6)


@pytest.mark.parametrize("method", GAUSSIANS)
def test_correction_leaves_a_third_of_the_error_and_says_how_much(method):
    X, y = noisy_problem(3, 300)
    X_star = noisy_problem(4, 30)[0]
    truth = method.fit(blocks := prior(ROUGH, X, X_star), y)
    found = method.fit(P := low_rank_prior(ROUGH, X, X_star, tolerance=2e-3), y)
    correction = found.diagnostics["correction"]
    error = found.log_evidence - truth.log_evidence
    assert abs(error) < 0.35 * abs(error - correction)
    rough = replace(P, finer=None)
    assert fit(method, rough, y).log_evidence == found.log_evidence - correction
    np.testing.assert_allclose(
        found.prediction.probability, truth.prediction.probability, atol=0.02
    )
    later = found.predict(blocks.K_star, blocks.k_star_star).probability
    np.testing.assert_allclose(later, found.prediction.probability, atol=1e-9)
    exact = method.fit(low_rank_prior(ROUGH, X, X_star, tolerance=1e-13), y)
    assert exact.log_evidence == pytest.approx(truth.log_evidence, abs=1e-5)
    np.testing.assert_allclose(
        exact.prediction.probability, truth.prediction.probability, atol=1e-4
    )


def test_shares_of_further_columns_are_exact_at_fixed_likelihood_terms():
    """Against the determinant and the quadratic form of dense matrices; the diagonal is subtracted to first order."""
    K, rng = random_covariance(40, 3, 5)
    y = np.where(rng.random(40) < 0.5, -1.0, 1.0)
    M = GradientMatrix.of(K, found := fit(ExpectationPropagation(), LowRankPrior(K), y))
    G = 3.0 * rng.standard_normal((40, 4))
    pseudo = (found.a + found.S * found.mean) / found.S

    def log_marginal(A):
        return multivariate_normal.logpdf(pseudo, cov=A + np.diag(1.0 / found.S))

    shares, whole = M.shares(G), dense(K)
    for k in range(4):
        more = whole + np.outer(G[:, k], G[:, k])
        gain = log_marginal(more) - log_marginal(whole) - 0.5 * M.diagonal @ G[:, k] ** 2
        assert shares[k] == pytest.approx(gain, abs=1e-6)
        whole = more


@pytest.mark.parametrize("method", GAUSSIANS)
def test_correction_where_a_large_variance_is_left(method):
    """To first order it would leave all of the error at the second tolerance, 0.25 of 0.21 nats."""
    X, y = noisy_problem(3, 600)
    kernel = 50.0 * Matern(10.0, nu=1.5)
    truth = method.fit(Prior(kernel(X)), y).log_evidence
    for tolerance in (1e-2, 1e-3):
        found = method.fit(low_rank_prior(kernel, X, tolerance=tolerance), y)
        error, told = found.log_evidence - truth, found.diagnostics
        assert abs(error) < 1.6 * abs(told["correction_rest"])
    assert abs(error) < 0.4 * abs(error - told["correction"])


def test_random_columns_are_unbiased():
    """Mean of 200 estimates at 5 standard errors: false-alarm rate 6e-7."""
    X, y = noisy_problem(3, 200)
    P = low_rank_prior(ROUGH, X, tolerance=1e-2)
    posterior = fit(ExpectationPropagation(), P, y)
    truth, none = random_columns(P, posterior, 200, np.random.default_rng(0))
    assert none == 0.0
    found = np.array(
        [random_columns(P, posterior, 20, np.random.default_rng(seed)) for seed in range(200)]
    )
    spread = found[:, 0].std(ddof=1)
    assert abs(found[:, 0].mean() - truth) < 5 * spread / np.sqrt(200)
    assert np.sqrt(np.mean(found[:, 1] ** 2)) == pytest.approx(spread, rel=0.25)


def test_hard_covariances_converge():
    X, y = noisy_problem(5, 150)
    for kernel in (rbf(1.0, 1e4), rbf(0.2, 1e3)):
        K = low_rank_prior(kernel, X).covariance
        found = expectation_propagation(K, y, tolerance=1e-6)
        truth = ExpectationPropagation().fit(Prior(dense(K)), y)
        assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-4)


def test_rounding_does_not_keep_newton_from_the_mode():
    """A step from the whole gradient, instead of what is left of it, meets 3e-9 here and no less in 200 steps."""
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 2))
    f = np.sin(9.0 * X[:, 0]) + X[:, 1] - 0.5
    y = np.where(f + rng.standard_normal(20_000) > 0.0, 1.0, -1.0)
    found = fit(Laplace(), low_rank_prior(1.0 * RBF(0.3), X, tolerance=1e-3), y)
    assert found.work["newton_steps"] < 15


def test_dense_sweeps_start_near_their_end():
    X, y = noisy_problem(5, 200)
    blocks = prior(ROUGH, X, X[:5] + 0.1)
    found = parallel_ep(blocks, y, method=ExpectationPropagation(tolerance=1e-6))
    truth = ExpectationPropagation().fit(blocks, y)
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-8)
    np.testing.assert_allclose(
        found.prediction.probability, truth.prediction.probability, atol=1e-5
    )
    assert parallel_ep(blocks, y).work["sweeps"] <= 4
    with pytest.raises(ValueError, match="it has no kernel"):
        parallel_ep(Prior(blocks.K), y)


@pytest.mark.parametrize("kernel", [ROUGH, rbf(0.3, 1e5), rbf(1.0, 1e-4)])
def test_all_sites_at_once_have_the_sequential_fixed_point(kernel):
    """From nothing and from the sites of another kernel; the variance 1e5 is that of classes that separate."""
    X, y = noisy_problem(5, 150)
    K, sequential = prior(kernel, X).K, ExpectationPropagation(tolerance=1e-8)
    truth = sequential.approximate(K, y)
    method = AllSitesAtOnce(sequential)
    for start in (None, sequential.approximate(prior(rbf(0.5, 3.0), X).K, y)):
        found = method.approximate(K, y, start)
        assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-7)
        assert "cholesky_factorizations" not in found.work  # it needed no help
        gradient = method.gradient_matrix(K, y, found)
        expected = sequential.gradient_matrix(K, y, truth)
        np.testing.assert_allclose(gradient, expected, atol=1e-5 * np.abs(expected).max())


def test_all_sites_at_once_fall_back_on_one_after_another():
    X, y = noisy_problem(5, 60)
    K, sequential = prior(ROUGH, X).K, ExpectationPropagation(tolerance=1e-8)
    found = AllSitesAtOnce(sequential, max_sweeps=1).approximate(K, y)
    assert found.log_evidence == sequential.approximate(K, y).log_evidence


# --- gradients


@pytest.mark.parametrize("method", GAUSSIANS)
@pytest.mark.parametrize(
    "kernel", [2.0 * RBF([0.7, 1.0]), 1.5 * Matern(1.0, nu=1.5) + WhiteKernel(0.3)]
)
def test_gradient(method, kernel, monkeypatch):
    monkeypatch.setattr(door, "TOLERANCE", 1e-9)
    X, y = noisy_problem(6, 80)
    for tolerance in (3e-2, 1e-14):  # the second: exact
        Z = low_rank_prior(kernel, X, tolerance=tolerance).inducing.Z
        surface = LowRankSurface(method, kernel, X, y, Z)
        value, gradient = surface.value_and_gradient(kernel.theta)
        slopes = central_differences(lambda t, s=surface: s.value_and_gradient(t)[0], kernel.theta)
        np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    truth, exact = EvidenceSurface(method, kernel, X, y).value_and_gradient(kernel.theta)
    assert value == pytest.approx(truth, abs=1e-6)
    np.testing.assert_allclose(gradient, exact, atol=1e-5)


def test_maximum_is_that_of_the_dense_surface():
    X, y = noisy_problem(7, 250)
    kernel, method = 1.0 * RBF(1.0), ExpectationPropagation(tolerance=1e-6)
    found = maximize_low_rank(method, kernel, X, y, tolerance=1e-5)
    truth = maximize(EvidenceSurface(method, kernel, X, y), 0, np.random.default_rng(0))
    np.testing.assert_allclose(found.theta, truth.theta, atol=0.02)
    assert found.converged


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-1, 1e-2])
def test_a_search_ends_where_the_dense_one_does_from_a_rough_start(tolerance):
    """Few inducing inputs do for the smooth kernel at the maximum, by their share of its large variance.

    They would not do for the evidence: a search that took these alone ended 78 nats below the maximum.
    """
    X, y = noisy_problem(7, 250)
    kernel, method = 1.0 * Matern(0.3, nu=1.5), ExpectationPropagation(tolerance=1e-6)
    found = maximize_low_rank(method, kernel, X, y, tolerance=tolerance)
    surface = EvidenceSurface(method, kernel, X, y)
    truth = maximize(surface, 0, np.random.default_rng(0))
    assert truth.log_evidence - 0.3 < surface.value(found.theta) <= truth.log_evidence + 1e-6


def test_a_covariance_too_rough_says_so():
    X, y = noisy_problem(7, 250)
    kernel, rng = 50.0 * Matern(2.0, nu=1.5), np.random.default_rng(0)
    for tolerance, status in ((0.1, TOO_ROUGH), (1e-4, OK)):
        P = low_rank_prior(kernel, X, tolerance=tolerance)
        for method in (Laplace(), ExpectationPropagation(), Twisted(points=64)):
            found = fit(method, P, y, rng=rng)
            assert found.status == status
            assert (abs(found.diagnostics["correction_rest"]) > 1.0) == (status == TOO_ROUGH)
    options = {"approximation": "low-rank", "optimizer": None, "tolerance": 0.1}
    with pytest.warns(ConvergenceWarning, match="covariance too rough.*lower tolerance"):
        GaussianProcessClassifier(kernel, **options).fit(X, y)


# --- draws


def test_filter_is_a_cholesky_factor():
    K, rng = random_covariance(2 * BLOCK + 5, 6, 2)
    g, A = K.D + 0.5, rng.standard_normal((6, 6))
    P = A @ A.T
    R = K.F @ P @ K.F.T + np.diag(g)
    L = np.linalg.cholesky(R)
    found = Filter.of(K.F, g, P)
    x = rng.standard_normal(len(K))
    np.testing.assert_allclose(found.d, L.diagonal(), rtol=1e-10)
    np.testing.assert_allclose(found.transposed(x), L.T @ x, rtol=1e-9, atol=1e-9)
    left = np.linalg.inv(np.linalg.inv(P) + K.F.T @ (K.F / g[:, None]))
    np.testing.assert_allclose(found.left, left, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_weight_times_proposal_is_the_target_density(seed):
    """At every draw, so it holds whatever the sites: this is what makes the estimate unbiased."""
    n = BLOCK + 3
    K, rng = random_covariance(n, 3, seed)
    R = LowRank(K.F, 1.0 + K.D)
    nu, tau = rng.uniform(0, 1.5, n), rng.uniform(0, 1.0, n)
    sources = twisted(R, nu, tau), tilted(R)[0]
    passes = [Pass.start(source, 20) for source in sources]
    V = np.empty((n, 20))
    for k, here in enumerate(parts(n)):
        V[here] = passes[0].draw(k, here, rng.random((here.stop - here.start, 20)))
        passes[1].given(k, here, V[here])
    assert (V >= -1e-12).all()
    precision = np.linalg.inv(dense(R))
    log_target = (
        -0.5 * np.einsum("im,im->m", V, precision @ V) + 0.5 * np.linalg.slogdet(precision)[1]
    ) - 0.5 * n * np.log(2 * np.pi)
    log_q = np.zeros((2, 20))
    L = np.linalg.cholesky(dense(R))
    mu = sources[1].coefficients[:, 0]
    E = np.linalg.solve(L, V)
    for i in range(n):  # by brute force: precisions of the coordinates from i on
        after = np.arange(i, n)
        own = np.diag(np.where(after > i, tau[after], 0.0))
        S = np.linalg.inv(precision[np.ix_(after, after)] + own)
        shift = np.where(after > i, nu[after], 0.0)[:, None]
        m = (S @ (shift - precision[np.ix_(after, np.arange(i))] @ V[:i]))[0]
        s = np.sqrt(S[0, 0])
        log_q[0] += norm.logpdf(V[i], m, s) - log_ndtr(m / s)
        c = V[i] / L[i, i] - E[i]
        log_q[1] += norm.logpdf(E[i] - mu[i]) - log_ndtr(c + mu[i]) - np.log(L[i, i])
    for one, log_density in zip(passes, log_q, strict=True):
        np.testing.assert_allclose(one.log_weights + log_density, log_target, rtol=1e-8)
    for one, source in zip(passes, sources, strict=True):  # both leave E[u | v]
        mean = R.F.T @ precision @ V
        np.testing.assert_allclose(source.centre[:, None] + one.state, mean, atol=1e-8)


def test_tilt_is_the_dense_one():
    K, _ = random_covariance(50, 5, 3)
    R = LowRank(K.F, 1.0 + K.D)
    truth = minimax_tilt(np.linalg.cholesky(dense(R)))
    proposal, log_bound, _ = tilted(R)
    assert log_bound == pytest.approx(truth.log_bound, abs=1e-8)
    np.testing.assert_allclose(proposal.coefficients[:, 0], truth.mu, atol=1e-5)


@pytest.mark.parametrize("n", [40, 1000])
@pytest.mark.parametrize("method", [Twisted(points=256), ImportanceSampling(samples=4096)])
def test_closed_form_of_the_orthant(method, n):
    """Correlation one half everywhere: 1 / (n + 1); at 5 standard errors, false-alarm rate 1.6e-4 each."""
    P = LowRankPrior(LowRank(np.ones((n, 1)), np.zeros(n)))
    found = method.fit(P, np.ones(n), rng=np.random.default_rng(0))
    assert equicorrelated_half(n) == pytest.approx(-np.log(n + 1))
    assert abs(found.log_evidence + np.log(n + 1)) < 5 * found.log_evidence_se < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("defended", [False, True])
def test_unbiased(defended):
    """Mean of 150 estimates of few draws at 5 standard errors: false-alarm rate 6e-7."""
    few = np.random.default_rng(4).standard_normal(5)
    x, y = np.repeat(few, 6), np.tile([1.0, -1.0, 1.0], 10)
    pairs, counts = np.unique(y * x, return_counts=True)
    truth = float(log_one_factor(pairs, counts))
    P = LowRankPrior(LowRank(x[:, None], np.zeros(30)))
    method = Twisted(points=16, randomizations=2) if defended else ImportanceSampling(samples=64)
    ratio = np.exp(
        [
            fit(method, P, y, rng=np.random.default_rng(seed)).log_evidence - truth
            for seed in range(150)
        ]
    )
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1.0) < 5 * error
    assert error < 0.01, "a bias of five per cent must be seen"


@pytest.mark.slow
def test_draws_agree_with_the_dense_method():
    """At 5 joint standard errors: false-alarm rate below 1e-4, over evidence and 10 test patterns below 1e-3."""
    X, y = noisy_problem(8, 150)
    X_star = noisy_problem(9, 10)[0]
    truth = Twisted(points=1024).fit(prior(ROUGH, X, X_star), y, rng=np.random.default_rng(0))
    P = low_rank_prior(ROUGH, X, X_star, tolerance=1e-6)
    for method in (Twisted(points=512), ImportanceSampling(samples=16384, points="antithetic")):
        found = method.fit(P, y, rng=np.random.default_rng(1))
        joint = np.hypot(found.log_evidence_se, truth.log_evidence_se)
        assert abs(found.log_evidence - truth.log_evidence) < 5 * joint + 1e-3
        gap = np.abs(found.prediction.probability - truth.prediction.probability)
        assert (
            gap
            < 5 * np.hypot(found.prediction.standard_error, truth.prediction.standard_error) + 1e-3
        ).all()
    assert found.diagnostics["k_hat"] < 0.7


@pytest.mark.parametrize(
    ("rank", "slope", "status"), [(6, 1.0, OK), (3, 0.7, UNTRUSTED), (50, 10.0, NOT_CONVERGED)]
)
def test_importance_needs_a_hundred_effective_samples(rank, slope, status):
    """As the dense method does: in the last case k-hat reads 0.6, and 42 of 4096 samples are effective."""
    rng = np.random.default_rng(1)
    K = LowRank(slope * rng.standard_normal((60, rank)) / rank**0.5, np.zeros(60))
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    for samples, expected in ((4096, status), (20, NOT_CONVERGED)):
        method = ImportanceSampling(samples=samples)
        found = fit(method, LowRankPrior(K), y, rng=np.random.default_rng(0))
        assert found.status == expected
        assert (found.diagnostics["effective_samples"] < 100) == (expected == NOT_CONVERGED)
        truth = method.fit(Prior(dense(K)), y, rng=np.random.default_rng(0))
        assert truth.diagnostics.keys() <= found.diagnostics.keys()


def test_threads_change_no_bit():
    X, y = noisy_problem(8, 60)
    P = low_rank_prior(ROUGH, X)
    one, two = (
        fit(Twisted(points=64, n_jobs=k), P, y, rng=np.random.default_rng(0)) for k in (1, 2)
    )
    assert one.log_evidence == two.log_evidence and one.status == "ok"
    assert one.diagnostics["log_weight_bound"] > 0.0


# --- arguments


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be a finite number > 0"),
        ({"max_rank": 0}, "max_rank must be an integer >= 1"),
        ({"X_star": np.ones((2, 3))}, "X_star must have 2 columns"),
        ({"inducing": np.ones((2, 1))}, "inducing must have 2 columns"),
        ({"X": np.empty((0, 2))}, "X must not be empty"),
    ],
)
def test_bad_arguments_of_the_prior(change, message):
    X, _ = noisy_problem(0, 20)
    with pytest.raises(ValueError, match=message):
        low_rank_prior(**{"kernel": ROUGH, "X": X} | change)


def test_bad_arguments_of_a_fit():
    X, y = noisy_problem(0, 20)
    P, rng = low_rank_prior(ROUGH, X), np.random.default_rng(0)
    given = low_rank_prior(ROUGH, X, inducing=X[:7])
    assert given.covariance.rank == 7 and given.finer is None
    posterior = fit(Laplace(), given, y)
    bare = fit(Laplace(), LowRankPrior(P.covariance), y)
    for call, message in (
        (lambda: LowRank(np.ones((3, 1)), -np.ones(3)), "D must not be negative"),
        (lambda: LowRank(np.ones((3, 1)), np.ones(2)), "one row a pattern"),
        (lambda: LowRankPrior(LowRank(np.ones((3, 0)), np.ones(3))), "F must have a column"),
        (lambda: fit(Laplace(), P, y[:3]), "y must have shape"),
        (lambda: fit(Twisted(), P, y), "rng must be"),
        (lambda: fit(ImportanceSampling(points="sobol"), P, y, rng=rng), "points must be"),
        (lambda: EllipticalSlice().fit(P, y, rng=rng), "with a covariance of low rank"),
        (lambda: posterior.predict_inputs(np.ones((2, 3))), "X must have 2 columns"),
        (lambda: posterior.predict(np.ones((20, 1)), [1.0]), "use predict_inputs"),
        (lambda: bare.predict_inputs(X), "must have inducing inputs"),
        (lambda: random_columns(P, bare, 1, rng), "columns must be between 2 and n"),
        (lambda: random_columns(given, posterior, 5, rng), "prior must be made by"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# --- the classifier


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_classifier(inference):
    X, y = noisy_problem(1, 120)
    X_star = noisy_problem(2, 20)[0]
    dense, low = (
        GaussianProcessClassifier(1.0 * RBF(1.0), inference, approximation=a).fit(X, y)
        for a in (None, "low-rank")
    )
    gap = low.log_marginal_likelihood_ - dense.log_marginal_likelihood_
    assert abs(gap) < 0.01 and low.log_marginal_likelihood_se_ == 0.0
    values = [one.log_marginal_likelihood(np.zeros(2)) for one in (low, dense)]
    assert abs(values[0] - values[1]) < 0.1
    assert low.log_marginal_likelihood(np.zeros(2), eval_gradient=True)[0] == values[0]
    np.testing.assert_allclose(low.predict_proba(X_star), dense.predict_proba(X_star), atol=0.02)
    theta = dense.kernel_.theta + 0.1
    assert low.log_marginal_likelihood(theta) == pytest.approx(
        dense.log_marginal_likelihood(theta), abs=0.02
    )
    auto = GaussianProcessClassifier(1.0 * RBF(1.0), inference, approximation="auto").fit(X, y)
    assert auto.log_marginal_likelihood_ == dense.log_marginal_likelihood_


def test_the_search_is_rougher_than_the_posterior():
    X, y = noisy_problem(1, 150)
    method, kernel = ExpectationPropagation(tolerance=1e-6), 1.0 * RBF(1.0)
    for asked, searched in ((1e-6, 1e-3), (1e-2, 1e-2)):
        found = GaussianProcessClassifier(
            kernel, method, approximation="low-rank", tolerance=asked
        ).fit(X, y)
        top = maximize_low_rank(method, kernel, X, y, tolerance=searched)
        np.testing.assert_array_equal(found.kernel_.theta, top.theta)
        assert found.diagnostics_["residual"] <= 1.1 * asked
        posterior = method.fit(low_rank_prior(found.kernel_, X, tolerance=asked), y)
        assert found.log_marginal_likelihood_ == posterior.log_evidence


@pytest.mark.parametrize(("away", "slope"), [(0.001, 0.02), (0.3, 5.0)])
def test_an_end_is_steep_by_the_number_of_patterns(away, slope, monkeypatch):
    """Of 250, a slope of .158 nats is a hundredth of a standard deviation from the maximum."""
    X, y = noisy_problem(7, 250)
    kernel, method = 1.0 * RBF(1.0), ExpectationPropagation(tolerance=1e-6)
    top = maximize_low_rank(method, kernel, X, y)
    end = replace(top, theta=top.theta + np.array([0.0, away]), converged=False)
    monkeypatch.setattr(climbing, "maximize", lambda *_: end)
    found = maximize_low_rank(method, kernel, X, y)
    Z = low_rank_prior(kernel.clone_with_theta(end.theta), X, tolerance=1e-3).inducing.Z
    steep = np.abs(LowRankSurface(method, kernel, X, y, Z).value_and_gradient(end.theta)[1]).max()
    assert (steep > 0.158) == (slope > 0.158) and found.converged == (slope < 0.158), steep


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_the_search_says_where_it_is(verbose, capsys):
    X, y = noisy_problem(1, 150)
    found = GaussianProcessClassifier(1.0 * RBF(1.0), approximation="low-rank", verbose=verbose)
    found.fit(X, y)
    said = capsys.readouterr().out.splitlines()
    evaluations = [
        int(line.split("evaluation ")[1].split(":")[0]) for line in said if " s, " in line
    ]
    last = found._fits[0].found.evaluations
    assert evaluations == [[], list(range(1, last + 1, 10)), list(range(1, last + 1))][verbose]
    if verbose:
        assert said[0].startswith("[gpcmc] 150 patterns, ") and "posterior by" in said[-1]


def test_an_interrupt_ends_a_search_at_once():
    code = (
        "import numpy as np; from gpcmc import GaussianProcessClassifier as C; "
        "X = np.random.default_rng(0).random((5000, 2)); y = np.sin(9 * X).sum(axis=1) > 0; "
        "C(approximation='low-rank', verbose=2).fit(X, y)"
    )
    # what a shell starts in the background ignores the signal, and so would its children
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code], text=True, preexec_fn=heed, **pipes)
    while "evaluation 3" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert said.splitlines()[-1] == "KeyboardInterrupt" and process.returncode != 0


def test_restarts_find_a_maximum_that_the_start_does_not():
    X, y = noisy_problem(1, 150)
    kernel = ConstantKernel(1e-4, (1e-4, 1e2)) * RBF(0.011, (0.01, 10.0))
    options = {"kernel": kernel, "approximation": "low-rank", "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="tells nothing of the classes"):
        lost = GaussianProcessClassifier(**options).fit(X, y)
    found = GaussianProcessClassifier(n_restarts=4, **options).fit(X, y)
    truth = GaussianProcessClassifier(kernel.clone_with_theta([0.0, 0.0])).fit(X, y)
    assert lost.log_marginal_likelihood_ < truth.log_marginal_likelihood_ - 5
    gap = found.log_marginal_likelihood_ - truth.log_marginal_likelihood_
    assert abs(gap) < 0.01


def test_restarts_leave_out_starts_that_need_too_large_a_rank():
    X, y = noisy_problem(1, 150)
    rough = ConstantKernel(1.0, (0.5, 2.0)) * RBF(0.011, (0.01, 10.0))
    method, options = Laplace(), {"max_rank": 60, "tolerance": 1e-3}
    with pytest.raises(ValueError, match="needs a rank of about"):
        maximize_low_rank(method, rough, X, y, **options)
    found = maximize_low_rank(
        method, rough, X, y, n_restarts=4, rng=np.random.default_rng(0), **options
    )
    assert found.theta[1] > np.log(0.3)
    free = 1.0 * RBF(1.0, (0.01, np.inf))
    with pytest.raises(ValueError, match="finite bounds"):
        maximize_low_rank(method, free, X, y, n_restarts=1, rng=np.random.default_rng(0))


def test_three_classes_one_against_the_rest():
    X, y = noisy_problem(1, 60)
    three = np.where(X[:, 0] > 0.5, 2, y)
    options = {"inference": "laplace", "approximation": "low-rank", "optimizer": None}
    found = GaussianProcessClassifier(multi_class="one_vs_rest", **options).fit(X, three)
    assert found.predict_proba(X).shape == (60, 3)


def test_bad_options_of_the_classifier():
    X, y = noisy_problem(1, 30)
    for options, message in (
        ({"approximation": "sparse"}, "approximation must be one of"),
        ({"approximation": "low-rank", "inference": "hmc"}, "approximation must be None with"),
        (
            {
                "approximation": "low-rank",
                "optimizer": lambda f, start, bounds: (start, f(start)[0]),
            },
            "optimizer must be 'lbfgs' or None",
        ),
        ({"approximation": "low-rank", "tolerance": -1.0}, "tolerance must be"),
    ):
        with pytest.raises(ValueError, match=message):
            GaussianProcessClassifier(**{"optimizer": None} | options).fit(X, y)


def test_an_error_of_a_method_makes_no_dense_covariance(monkeypatch):
    monkeypatch.setattr("gpcmc._problem.check_kernel_matrix", lambda *_: pytest.fail("n x n"))
    X, y = noisy_problem(1, 30)
    method = ImportanceSampling(points="sobol", samples=64)
    classifier = GaussianProcessClassifier(
        1.0 * RBF(1.0), method, optimizer=None, approximation="low-rank", random_state=0
    )
    with pytest.raises(ValueError, match="points must be 'random' or 'antithetic'"):
        classifier.fit(X, y)
