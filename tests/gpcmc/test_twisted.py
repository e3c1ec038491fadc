"""Separation of variables and the twisted proposal, against truths they did not make.

Statistical tests compare with a truth at 5 standard errors: with 16 randomisations (15 degrees of freedom)
the false-alarm rate of one comparison is 1.6e-4, and all seeds are fixed. Where it is stated, the errors are
pooled so that the rate falls below 1e-6.
"""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from gpcmc.orthant._separation import average_cdf, separate
from scipy.special import log_ndtr, logsumexp, ndtri_exp
from scipy.stats import binom, norm
from truths import log_half_plane, log_one_factor, two_point_posterior

from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import ExpectationPropagation, Orthant, infer
from gpcmc.inference.interface import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.inference.separated import weights_status
from gpcmc.inference.twisted import Twisted
from gpcmc.orthant.separation import DEFENCE, Change, _Mixture, estimate, weight_diagnostics
from gpcmc.orthant.tilting import tilted_proposal
from gpcmc.orthant.truths import (
    equicorrelated_half,
    linear_kernel_truth,
    three_dimensional,
)
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


def classes(n, seed, alpha=1.0, beta=2.0, tests=5):
    rng = np.random.default_rng(seed)
    X, X_star = rng.standard_normal((n, 2)), rng.standard_normal((tests, 2))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return prior(rbf(alpha, beta), X, X_star), y


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
@pytest.mark.parametrize("seed", range(4))
def test_any_sites_are_unbiased_in_three_dimensions(seed):
    """Mean of 400 estimates of 64 points at 5 standard errors: false-alarm rate 6e-7 each."""
    R, nu, tau = random_sites(3, 10 + seed)
    proposal = twisted_proposal(R, nu, tau)
    z = [
        np.exp(
            estimate(
                proposal, np.empty((0, 3)), points=32, seeds=np.arange(2 * k, 2 * k + 2)
            ).log_probability
        )
        for k in range(400)
    ]
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


def test_one_and_two_patterns():
    P, y = classes(1, 0)
    found = infer(Twisted(), P, y, rng=np.random.default_rng(0))
    assert found.log_evidence == pytest.approx(np.log(0.5), abs=1e-6)
    P, y = classes(2, 1)
    rho = y[0] * y[1] * P.K[0, 1] / (1 + P.K[0, 0])
    found = infer(Twisted(), P, y, rng=np.random.default_rng(0))
    assert abs(found.log_evidence - float(log_half_plane(rho))) < 5 * found.log_evidence_se
    assert found.log_evidence_se < 1e-3
    _, _, p = two_point_posterior(P.K, y, P.K_star[:, 0], P.k_star_star[0])
    assert abs(found.probability[0] - p) < 5 * found.probability_se[0]
    assert found.probability_se[0] < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 300])
def test_linear_kernel_truth(n):
    rng = np.random.default_rng(n)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    x, x_star = rng.standard_normal(n) + 0.8 * y, rng.standard_normal(20)
    truth = linear_kernel_truth(x, y, x_star)
    P = prior(linear(), x[:, None], x_star[:, None])
    found = infer(Twisted(), P, y, rng=rng)
    assert found.status == OK
    assert abs(found.log_evidence - truth.log_evidence) < 5 * found.log_evidence_se
    z = (found.probability - truth.probability) / found.probability_se
    assert np.abs(z).max() < 6 and found.probability_se.max() < 2e-3
    if n == 30:  # independent of the package's quadrature
        assert truth.log_evidence == pytest.approx(
            float(log_one_factor(y * x, np.ones(n))), abs=1e-9
        )


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


@pytest.mark.slow
def test_standard_errors_cover():
    """200 problems with a known truth; 95 % intervals of 15 degrees of freedom (t = 2.131).

    The number covered is binomial(200, .95) if the errors are right: bounds with a false-alarm rate of 1e-6.
    """
    inside = inside_p = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = 15
        y = rng.permutation(np.repeat([1.0, -1.0], [8, 7]))
        x = rng.standard_normal(n) * 1.5 + 0.5 * y
        truth = linear_kernel_truth(x, y, np.array([0.4]))
        P = prior(linear(), x[:, None], np.array([[0.4]]))
        found = infer(Twisted(points=32), P, y, rng=rng)
        inside += abs(found.log_evidence - truth.log_evidence) < 2.131 * found.log_evidence_se
        inside_p += (
            abs(found.probability[0] - truth.probability[0]) < 2.131 * found.probability_se[0]
        )
    low, high = binom.ppf([5e-7, 1 - 5e-7], 200, 0.95)
    assert low <= inside <= high and low <= inside_p <= high


@pytest.mark.parametrize(("alpha", "beta"), [(3.0, 2.0), (0.5, 3.0)])
def test_agreement_with_the_adapted_scheme(alpha, beta):
    P, y = classes(60, 5, alpha, beta)
    ours = infer(Twisted(), P, y, rng=np.random.default_rng(0))
    other = infer(Orthant(samples=100_000, scheme="adapted"), P, y, rng=np.random.default_rng(1))
    joint = np.hypot(ours.log_evidence_se, other.log_evidence_se)
    assert abs(ours.log_evidence - other.log_evidence) < 5 * joint
    z = (ours.probability - other.probability) / np.hypot(ours.probability_se, other.probability_se)
    assert np.abs(z).max() < 5
    assert ours.log_evidence_se < other.log_evidence_se / 3, "with a sixth of the samples"


def test_it_does_not_matter_in_which_order_patterns_come():
    P, y = classes(40, 6)
    order = np.random.default_rng(0).permutation(40)
    a = Twisted().fit(Prior(P.K), y, rng=np.random.default_rng(0))
    b = Twisted().fit(Prior(P.K[np.ix_(order, order)]), y[order], rng=np.random.default_rng(1))
    joint = np.hypot(a.log_evidence_se, b.log_evidence_se)
    assert abs(a.log_evidence - b.log_evidence) < 5 * joint < 5e-3


def test_swapping_the_classes_swaps_the_probabilities():
    P, y = classes(40, 7)
    a = infer(Twisted(), P, y, rng=np.random.default_rng(0))
    b = infer(Twisted(), P, -y, rng=np.random.default_rng(0))
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-8)
    np.testing.assert_allclose(a.probability + b.probability, 1.0, atol=5e-4)


def test_predictions_draw_the_same_samples_again():
    P, y = classes(30, 8)
    at_once = infer(Twisted(), P, y, rng=np.random.default_rng(3))
    posterior = pickle.loads(
        pickle.dumps(Twisted().fit(Prior(P.K), y, rng=np.random.default_rng(3)))
    )
    later = posterior.predict(P.K_star, P.k_star_star)
    assert posterior.log_evidence == at_once.log_evidence
    np.testing.assert_array_equal(later.probability, at_once.probability)
    np.testing.assert_array_equal(later.standard_error, at_once.probability_se)
    assert posterior.diagnostics == at_once.diagnostics and posterior.status == at_once.status
    assert at_once.work == posterior.work
    assert posterior.work["samples"] == 16 * (1024 + 128)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": 1000}, "points must be a power of two.*got 1000"),
        ({"points": 0}, "points"),
        ({"randomizations": 1}, "randomizations must be at least 2.*got 1"),
        ({"n_jobs": 0}, "n_jobs must be an integer >= 1; got 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Twisted(**options)


def test_bad_input():
    P, y = classes(5, 0)
    with pytest.raises(ValueError, match="rng"):
        Twisted().fit(Prior(P.K), y)
    with pytest.raises(ValueError, match="K"):
        Twisted().fit(Prior(P.K[:, :4]), y, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="y"):
        Twisted().fit(Prior(P.K), y[:4], rng=np.random.default_rng(0))
    posterior = Twisted(points=2).fit(Prior(P.K), y, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="K_star"):
        posterior.predict(P.K_star[:3], P.k_star_star)


@pytest.mark.parametrize("n_jobs", [2, 3, 20])
def test_threads_change_no_bit(n_jobs):
    P, y = classes(40, 3, alpha=0.5, beta=3.0)
    one, many = (
        infer(Twisted(points=64, n_jobs=k), P, y, rng=np.random.default_rng(0)) for k in (1, n_jobs)
    )
    assert one.log_evidence == many.log_evidence
    assert one.log_evidence_se == many.log_evidence_se
    assert one.diagnostics == many.diagnostics
    np.testing.assert_array_equal(one.probability, many.probability)
    posterior = Twisted(points=64, n_jobs=n_jobs).fit(Prior(P.K), y, rng=np.random.default_rng(0))
    again = posterior.predict(P.K_star, P.k_star_star)
    np.testing.assert_array_equal(again.probability, one.probability)


def test_seeds_reproduce():
    P, y = classes(12, 0)
    first, again = (Twisted().fit(Prior(P.K), y, rng=np.random.default_rng(5)) for _ in range(2))
    assert first.log_evidence == again.log_evidence
    other = Twisted().fit(Prior(P.K), y, rng=np.random.default_rng(6))
    assert first.log_evidence != other.log_evidence


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_mixture_with_its_control_variate_is_unbiased(seed):
    """Mean of 400 estimates of 2 x 18 points at 5 standard errors: false-alarm rate 6e-7 each."""
    R, nu, tau = random_sites(3, 20 + seed)
    parts = twisted_proposal(R, nu, tau), tilted_proposal(np.linalg.cholesky(R), np.zeros(len(R)))
    z = []
    for k in range(400):
        seeds = np.arange(2 * k, 2 * k + 2)
        found = estimate(parts[0], np.empty((0, 3)), points=16, seeds=seeds, defence=parts[1])
        z.append(np.exp(found.log_probability))
    error = np.mean(z) - np.exp(three_dimensional(R))
    assert abs(error) < 5 * np.std(z) / 20
    assert np.std(z) / 20 < 2e-3, "a bias of one per cent must be seen"
