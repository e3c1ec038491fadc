"""Separation of variables and the twisted proposal, against truths they did not make.

Statistical tests compare with a truth at 5 standard errors: with 16 randomisations (15 degrees of freedom)
the false-alarm rate of one comparison is 1.6e-4, and all seeds are fixed. Where it is stated, the errors are
pooled so that the rate falls below 1e-6.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from gpcmc.orthant._separation import average_cdf, separate
from problems import classes
from scipy.special import log_ndtr, logsumexp, ndtri_exp
from scipy.stats import norm
from truths import log_one_factor

from gpcmc.gp import Prior
from gpcmc.inference import ExpectationPropagation, Orthant, infer
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.inference.separated import weights_status
from gpcmc.inference.twisted import Twisted
from gpcmc.orthant.separation import DEFENCE, Change, _Mixture, estimate, weight_diagnostics
from gpcmc.orthant.tilting import tilted_proposal
from gpcmc.orthant.truths import equicorrelated_half, three_dimensional
from gpcmc.orthant.twisting import twisted_proposal


def textbook_separate(G, coefficients, U):
    """The same loop one coordinate at a time, on the log scale throughout."""
    E, log_w = np.empty_like(U), np.zeros(U.shape[1])
    for i, (shift, a, b, scale, w0, w1, w2, d) in enumerate(coefficients):
        c = shift + G[i, :i] @ E[:i]
        t = (c + a + b * c) / scale
        log_p = log_ndtr(t)
        E[i] = a + b * c - scale * ndtri_exp(np.minimum(np.log1p(-U[i]) + log_p, -(2.0**-54)))
        log_w += log_p + w0 + c * (w1 + w2 * c) - d * E[i]
    return log_w, E


def random_sites(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n + 2))
    R = A @ A.T / n + 0.5 * np.eye(n)
    return R, rng.uniform(0, 1.5, n), rng.uniform(0, 1.0, n)


@pytest.mark.parametrize("far", [0.0, -12.0])
def test_compiled_loop_equals_its_textbook_twin(far):
    n, M = 37, 700  # neither is a multiple of the loop's blocks
    rng = np.random.default_rng(1)
    G = np.tril(rng.standard_normal((n, n)) / n, -1) + np.eye(n)
    coefficients = 0.3 * rng.standard_normal((n, 8))
    coefficients[:, 3] = rng.uniform(0.5, 1.5, n)
    coefficients[::5, 0] += far  # some coordinates are inside with probability 1e-33
    U = rng.random((n, M))
    log_w, E = textbook_separate(G, coefficients, U)
    found = separate(G, np.ascontiguousarray(coefficients), U)  # U becomes the innovations
    np.testing.assert_allclose(U, E, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found, log_w, rtol=1e-10, atol=1e-9)


def test_average_of_normal_cdf():
    X = np.random.default_rng(0).standard_normal((3, 50)) * 4
    w = np.full(50, 0.02)
    np.testing.assert_allclose(average_cdf(X.copy(), w), norm.cdf(X) @ w, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_weight_times_proposal_is_the_target_density(seed):
    """At every sample, so it holds whatever the sites: this is what makes the estimate unbiased."""
    n = 9
    R, nu, tau = random_sites(n, seed)
    proposal = twisted_proposal(R, nu, tau)
    E = np.random.default_rng(seed).random((n, 40))
    log_w = proposal.log_constant + separate(*proposal.prepare(), E)
    v = proposal.mean[:, None] + proposal.L @ E
    assert (v >= 0).all()
    # the proposal's density by brute force: precision matrices of the coordinates from i on
    log_q = np.zeros(v.shape[1])
    precision = np.linalg.inv(R)
    for i in range(n):
        after = np.arange(i, n)
        P = precision[np.ix_(after, after)] + np.diag(np.where(after > i, tau[after], 0.0))
        rhs = (
            np.where(after > i, nu[after], 0.0)[:, None]
            - precision[np.ix_(after, np.arange(i))] @ v[:i]
        )
        S = np.linalg.inv(P)
        m, s = (S @ rhs)[0], np.sqrt(S[0, 0])
        log_q += norm.logpdf(v[i], m, s) - log_ndtr(m / s)
    log_target = (
        -0.5 * np.einsum("im,im->m", v, precision @ v) - 0.5 * np.linalg.slogdet(2 * np.pi * R)[1]
    )
    np.testing.assert_allclose(log_w + log_q, log_target, rtol=1e-9)


def test_without_sites_it_is_genz_method():
    R, nu, tau = random_sites(6, 0)
    proposal, genz = (
        twisted_proposal(R, 0 * nu, 0 * tau),
        tilted_proposal(np.linalg.cholesky(R), np.zeros(len(R))),
    )
    np.testing.assert_allclose(proposal.L, genz.L, rtol=1e-12)
    assert proposal.log_constant == 0.0 and not proposal.mean.any()
    np.testing.assert_allclose(proposal.coefficients, genz.coefficients, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "defended"),
    [*((10 + k, False) for k in range(4)), *((20 + k, True) for k in range(3))],
)
def test_any_sites_are_unbiased_in_three_dimensions(seed, defended):
    """Mean of 400 estimates of 2 x 32 points, or of 2 x 18 of the mixture with its control variate.

    At 5 standard errors: false-alarm rate 6e-7 each.
    """
    R, nu, tau = random_sites(3, seed)
    defence = tilted_proposal(np.linalg.cholesky(R), np.zeros(len(R))) if defended else None
    proposal, points = twisted_proposal(R, nu, tau), 16 if defended else 32
    z = []
    for k in range(400):
        seeds = np.arange(2 * k, 2 * k + 2)
        found = estimate(proposal, np.empty((0, 3)), points=points, seeds=seeds, defence=defence)
        z.append(np.exp(found.log_probability))
    error = np.mean(z) - np.exp(three_dimensional(R))
    assert abs(error) < 5 * np.std(z) / 20
    assert np.std(z) / 20 < 2e-3, "a bias of one per cent must be seen"


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 20, 60])
@pytest.mark.parametrize("defended", [False, True])
def test_unbiased_in_many_dimensions(n, defended):
    """Mean of 150 estimates of few points at 5 standard errors of theirs: false-alarm rate 6e-7 each."""
    few, count = np.random.default_rng(n).standard_normal(5), n // 5
    x, y = np.repeat(few, count), np.tile([1.0, -1.0, 1.0, 1.0, -1.0], count)
    pairs, counts = np.unique(y * x, return_counts=True)
    truth = float(log_one_factor(pairs, counts))
    sampler = Twisted().prepare(np.outer(x, x), y)
    ratio = np.array([
        np.exp(
            estimate(
                sampler.proposal, np.empty((0, n)), points=8, seeds=np.arange(2 * k, 2 * k + 2),
                defence=sampler.defence if defended else None,
            ).log_probability - truth
        )
        for k in range(150)
    ])  # fmt: skip
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1.0) < 5 * error
    assert error < 0.01, "a bias of five per cent must be seen"


def sites_of(R):
    """Sites of any use for an orthant: each as if v were independent."""
    return np.full(len(R), 0.8) / np.sqrt(np.diag(R)), np.full(len(R), 0.6) / np.diag(R)


@pytest.mark.parametrize("n", [2, 20, 50])
def test_closed_forms_of_the_orthant(n):
    for R, truth in (
        (np.eye(n), -n * np.log(2)),
        (0.5 * (np.eye(n) + 1.0), equicorrelated_half(n)),
    ):
        proposal = twisted_proposal(R, *sites_of(R))
        found = estimate(proposal, np.empty((0, n)), points=4096, seeds=np.arange(16))
        assert abs(found.log_probability - truth) < 5 * found.standard_error + 1e-9
        assert found.standard_error < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 100, 500])
def test_one_class_under_a_constant_kernel(n):
    """Correlation one half everywhere: 1/(n + 1)."""
    found = Twisted().fit(Prior(np.ones((n, n))), np.ones(n), rng=np.random.default_rng(0))
    assert abs(found.log_evidence + np.log(n + 1)) < 5 * found.log_evidence_se < 0.02


@pytest.mark.slow
def test_probabilities_of_all_labellings_sum_to_one():
    P, _ = classes(6, 3, beta=5.0)
    total, variance = 0.0, 0.0
    for signs in itertools.product([-1.0, 1.0], repeat=6):
        found = Twisted(points=256).fit(Prior(P.K), np.array(signs), rng=np.random.default_rng(0))
        total += np.exp(found.log_evidence)
        variance += (np.exp(found.log_evidence) * found.log_evidence_se) ** 2
    # equal seeds correlate the errors, which may add up: 64 of them at most
    assert abs(total - 1.0) < 5 * np.sqrt(64 * variance)
    assert np.sqrt(64 * variance) < 0.01


def test_chunks_do_not_change_the_estimate():
    P, y = classes(10, 9)
    whole = infer(Twisted(points=8192, randomizations=2), P, y, rng=np.random.default_rng(0))
    # 8192 points are two chunks; the first 4096 of them are the run with half as many
    assert whole.log_evidence == pytest.approx(
        infer(Twisted(points=4096), P, y, rng=np.random.default_rng(0)).log_evidence, abs=1e-3
    )


@pytest.mark.parametrize("beta", [1e-6, 1e3, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "duplicates", "linear"])
def test_extreme_covariances(beta, kernel):
    rng = np.random.default_rng(2)
    x = np.repeat(rng.standard_normal(10), 2) if kernel == "duplicates" else rng.standard_normal(20)
    K = beta * (np.outer(x, x) if kernel == "linear" else np.exp(-((x[:, None] - x) ** 2)))
    y = np.where(x > 0, 1.0, -1.0)
    found = Twisted().fit(Prior(K), y, rng=rng)
    other = Orthant(samples=200_000, scheme="adapted").fit(Prior(K), y, rng=rng)
    joint = np.hypot(found.log_evidence_se, other.log_evidence_se)
    assert abs(found.log_evidence - other.log_evidence) < 5 * joint + 1e-4
    assert np.isfinite(found.log_evidence) and found.log_evidence_se < 0.05


@pytest.mark.slow
def test_far_tails_stay_on_the_log_scale():
    n = 1100
    found = Twisted(points=8, randomizations=2).fit(
        Prior(1e-8 * np.eye(n)), np.ones(n), rng=np.random.default_rng(0)
    )
    assert found.log_evidence == pytest.approx(-n * np.log(2), abs=1e-4)
    # one pattern against all others: P is about 1e-20
    K = np.full((30, 30), 200.0)
    y = np.where(np.arange(30) < 15, 1.0, -1.0)
    found = Twisted(points=4096).fit(Prior(K), y, rng=np.random.default_rng(0))
    truth = float(log_one_factor(np.sqrt(200.0) * np.array([1.0, -1.0]), [15, 15]))
    assert abs(found.log_evidence - truth) < 5 * found.log_evidence_se + 1e-4


def test_what_the_weights_say():
    rng = np.random.default_rng(0)
    heavy = weight_diagnostics(-np.log(rng.random(20_000)) / 1.1)  # Pareto weights of shape 1/1.1
    assert heavy["k_hat"] > 0.7
    assert weights_status(heavy) == UNTRUSTED
    assert weight_diagnostics(rng.standard_normal(8))["k_hat"] == np.inf  # too few to tell
    even = weight_diagnostics(np.zeros(50))
    assert even == {"k_hat": -np.inf, "effective_samples": 50.0, "effective_fraction": 1.0}
    assert weights_status(even) == NOT_CONVERGED
    assert weights_status(weight_diagnostics(0.1 * rng.standard_normal(5000))) == OK


def test_weights_are_close_to_equal_where_it_matters():
    """What the sites are for: on a rough kernel Genz's method has a hundred times fewer effective samples."""
    P, y = classes(100, 4, 0.5, 3.0)
    found = Twisted().fit(Prior(P.K), y, rng=np.random.default_rng(0))
    # one draw in nine is the defence's, and many of those count for little
    assert found.diagnostics["effective_fraction"] > 0.8
    R = np.eye(100) + y[:, None] * P.K * y
    genz = tilted_proposal(np.linalg.cholesky(R), np.zeros(len(R)))
    plain = estimate(genz, np.empty((0, 100)), points=1024, seeds=np.arange(16))
    assert plain.diagnostics["effective_fraction"] < 0.01
    ep = ExpectationPropagation().fit(Prior(P.K), y)
    assert found.log_evidence - ep.log_evidence > 10 * found.log_evidence_se, "EP's error is seen"


@pytest.mark.parametrize("n_jobs", [2, 3, 20])
def test_threads_change_no_bit(n_jobs):
    P, y = classes(40, 3, alpha=0.5, beta=3.0)
    one, many = (
        infer(Twisted(points=64, n_jobs=k), P, y, rng=np.random.default_rng(0)) for k in (1, n_jobs)
    )
    assert one.log_evidence == many.log_evidence
    assert one.log_evidence_se == many.log_evidence_se
    assert one.diagnostics == many.diagnostics
    assert one.work["samples"] == 16 * (64 + 8), "an eighth more are the defence's"
    np.testing.assert_array_equal(one.probability, many.probability)
    posterior = Twisted(points=64, n_jobs=n_jobs).fit(Prior(P.K), y, rng=np.random.default_rng(0))
    again = posterior.predict(P.K_star, P.k_star_star)
    np.testing.assert_array_equal(again.probability, one.probability)


@pytest.mark.parametrize("seed", range(3))
def test_innovations_of_one_proposal_in_terms_of_another(seed):
    R, nu, tau = random_sites(7, seed)
    one, other = (
        twisted_proposal(R, nu, tau),
        tilted_proposal(np.linalg.cholesky(R), np.zeros(len(R))),
    )
    E = np.random.default_rng(0).random((7, 5))
    log_w = separate(*other.prepare(), E)
    same = Change.between(other, one)(E)
    np.testing.assert_allclose(one.mean[:, None] + one.L @ same, other.L @ E, rtol=1e-10)
    kept = same.copy()
    separate(*one.prepare(), same, True)
    np.testing.assert_array_equal(kept, same)  # weighed, not drawn
    np.testing.assert_allclose(separate(*other.prepare(), E, True), log_w, rtol=1e-12)


def largest_log_weight(sampler, defence, points=4096, seeds=4):
    """Over all samples, of what the average of the weights is the estimate of."""
    mixture = _Mixture.of(sampler.proposal, points, defence)
    return max(
        float(np.max(-logsumexp(log_q, axis=0)))
        for seed in range(seeds)
        for _, _, _, log_q in mixture.draws(seed)
    )


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 3.0), (1.0, 1e4)])
def test_no_weight_exceeds_the_bound(alpha, beta):
    P, y = classes(40, 11, alpha, beta)
    posterior = Twisted().fit(Prior(P.K), y, rng=np.random.default_rng(0))
    sampler = Twisted().prepare(P.K, y)
    largest = largest_log_weight(sampler, sampler.defence) - posterior.log_evidence
    assert 0.0 < largest <= posterior.diagnostics["log_weight_bound"]


def test_the_bound_is_the_defences_and_is_nearly_reached():
    """Without the defence, weights exceed it; minimax tilting's own come close to theirs."""
    x = np.random.default_rng(2).standard_normal(20)
    y = np.where(x > 0, 1.0, -1.0)
    sampler = Twisted().prepare(1e3 * np.outer(x, x), y)
    bound = sampler.log_bound + np.log(1 + DEFENCE)
    assert largest_log_weight(sampler, sampler.defence) <= bound
    assert largest_log_weight(sampler, None) > bound
    tilted = replace(sampler, proposal=sampler.defence)
    assert sampler.log_bound - 0.5 < largest_log_weight(tilted, None) <= sampler.log_bound


def test_a_tight_bound_overrules_the_tail():
    heavy = {"k_hat": 2.0, "effective_samples": 900.0, "effective_fraction": 0.9}
    assert weights_status(heavy) == UNTRUSTED
    assert weights_status(heavy | {"log_weight_bound": np.log(99)}) == OK
    assert weights_status(heavy | {"log_weight_bound": np.log(101)}) == UNTRUSTED


@pytest.mark.slow
def test_a_separable_problem_needs_its_defence():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(20)
    y = np.where(x > 0, 1.0, -1.0)
    K = 1e3 * np.outer(x, x)  # separable, so that the sites alone leave a heavy tail
    posterior = Twisted().fit(Prior(K), y, rng=rng)
    truth = float(log_one_factor(np.sqrt(1e3) * x * y, np.ones(20)))
    assert abs(posterior.log_evidence - truth) < 5 * posterior.log_evidence_se
    sampler = Twisted().prepare(K, y)
    alone = estimate(sampler.proposal, np.empty((0, 20)), points=1024, seeds=np.arange(16))
    assert alone.diagnostics["k_hat"] > 0.7, "what it is for"
    assert posterior.log_evidence_se < 2e-3 < alone.standard_error
