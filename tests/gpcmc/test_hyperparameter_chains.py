"""Chains over hyperparameters against quadrature, exact stationarity, and densities written out.

Stationarity is tested by starting from exact draws: the hyperparameters are then one by one those of
the prior, and a band of Dvoretzky, Kiefer and Wolfowitz at 1e-6 holds for any number of transitions.
Where the mean of a chain is compared with quadrature the band is 5.5 standard errors from its effective
sample size: about 1e-6 with that size known to 10 percent. Seeds are fixed.
"""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2, gamma, multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from truths import band, distance, tilted_moments

from gpcmc.chains import estimators
from gpcmc.chains import hyperparameter_chains as chains_module
from gpcmc.chains import hyperparameter_steps as steps
from gpcmc.chains.convergence import hyperparameter_convergence
from gpcmc.chains.estimators import estimator_named, orthant_estimator
from gpcmc.chains.hyperparameter_chains import ChainOptions, adapt, run_chains
from gpcmc.chains.hyperparameters import HyperparameterPrior, default_prior, model_of
from gpcmc.gaussian.importance import Proposal
from gpcmc.gp import Prior, derivatives, prior, rbf
from gpcmc.inference import Laplace, Method, Prediction, PseudoMarginal
from gpcmc.orthant import ExtinctionError
from gpcmc.posterior import NOT_CONVERGED, OK

PRIOR = HyperparameterPrior(shape=(2.0, 3.0), rate=(0.4, 2.0))
EACH = replace(PRIOR, length_scales=3)
LATENT = {"ancillary": steps.ancillary_step, "surrogate": steps.surrogate_step}
X3 = np.array([[0.0], [0.7], [1.2]])
Y3 = np.array([1.0, -1.0, 1.0])


def model(n=5, seed=0, prior=PRIOR, jitter=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3 if prior is EACH else 2))
    return model_of(X, np.where(rng.random(n) < 0.5, 1.0, -1.0), prior, jitter=jitter)


def orthant(K, y):
    """p(y | K) of two or three patterns (K may be a stack of matrices): the arcsine law."""
    n = len(y)
    scale = 1.0 + K[..., 0, 0]
    i, j = np.triu_indices(n, 1)
    angles = np.arcsin(y[i] * y[j] * K[..., i, j] / scale[..., None]).sum(axis=-1)
    return 0.25 + angles / (2 * np.pi) if n == 2 else 0.125 + angles / (4 * np.pi)


def run(method, seed, prior=None, **options):
    """Chains on the three patterns."""
    given = ChainOptions(method, **{"samples": 4, "chains": 2} | options)
    return run_chains(X3, Y3, given, prior=prior, rng=np.random.default_rng(seed))


def exact(K, y, rng):
    return float(np.log(orthant(K, y)))


def quadrature(X, y, prior):
    """A grid over theta, its weights under the prior, and p(y | theta) there."""
    axes = np.linspace(-9.0, 5.0, 281), np.linspace(-6.0, 4.0, 281)
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    weight = np.exp(
        sum(
            gamma.logpdf(np.exp(theta[..., k]), prior.shape[k], scale=1 / prior.rate[k])
            + theta[..., k]
            for k in range(2)
        )
    )
    sigma, tau = np.exp(np.moveaxis(theta, -1, 0))[..., None, None]
    d2 = ((X[:, None] - X) ** 2).sum(axis=-1)
    likelihood = orthant(sigma * np.exp(-d2 / (2 * tau**2)), y)
    return theta, weight / weight.sum(), likelihood


def assert_quantiles(theta, X, y, prior):
    """The chains' share below each marginal quartile of the posterior is what it ought to be."""
    from arviz_stats.base import array_stats

    grid, weight, likelihood = quadrature(X, y, prior)
    posterior = weight * likelihood / np.sum(weight * likelihood)
    for k in range(2):
        axis = grid[:, 0, 0] if k == 0 else grid[0, :, 1]
        # the density is smooth: the distribution function at midpoints of the grid
        below = np.cumsum(posterior.sum(axis=1 - k))
        middle = axis + 0.5 * (axis[1] - axis[0])
        for level in (0.25, 0.5, 0.75):
            at = np.searchsorted(below, level)
            share = (theta[..., k] < middle[at]).astype(float)
            ess = array_stats.ess(share, chain_axis=0, draw_axis=1, method="mean")
            se = np.sqrt(below[at] * (1 - below[at]) / ess)
            assert se < 0.03
            assert abs(share.mean() - below[at]) < 5.5 * se, (k, level)


def prior_cdfs(prior):
    each = [0] + [1] * prior.length_scales
    return [gamma(prior.shape[k], scale=1 / prior.rate[k]).cdf for k in each]


# --- the prior and the covariance


@pytest.mark.parametrize("prior", [PRIOR, EACH], ids=["isotropic", "each input"])
def test_the_prior_is_a_gamma_in_the_logarithms(prior):
    each = [0] + [1] * prior.length_scales
    theta = np.random.default_rng(0).standard_normal((50, len(each)))
    expected = sum(
        gamma.logpdf(np.exp(theta[:, k]), PRIOR.shape[e], scale=1 / PRIOR.rate[e]) + theta[:, k]
        for k, e in enumerate(each)
    )
    found = np.array([prior.log_density(t) for t in theta])
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-12)
    assert prior.log_density(np.eye(len(each))[1] * 400.0) == -np.inf
    rng = np.random.default_rng(1)
    draws = np.exp([prior.draw(rng) for _ in range(3000)])
    for k, cdf in enumerate(prior_cdfs(prior)):
        assert distance(draws[:, k], cdf) < band(3000)


def test_the_default_prior_and_kernel_are_those_of_the_source():
    assert default_prior(4) == HyperparameterPrior((1.1, 1.0), (0.1, 0.5))
    assert default_prior(4, 4) == HyperparameterPrior((1.1, 1.0), (0.1, 0.5), 4)
    X = np.random.default_rng(0).standard_normal((5, 3))
    one = model_of(X, np.ones(5), PRIOR).covariance(np.log([2.5, 0.8]))
    np.testing.assert_allclose(one, rbf(0.8 * np.sqrt(2), 2.5)(X), rtol=1e-13)
    each = model_of(X, np.ones(5), EACH, jitter=1e-6).covariance(np.log([2.5, 0.7, 1.3, 4.0]))
    kernel = ConstantKernel(2.5) * RBF([0.7, 1.3, 4.0])
    np.testing.assert_allclose(each, kernel(X) + 2.5e-6 * np.eye(5), rtol=1e-12)


# --- estimates


@pytest.mark.parametrize("method", ["laplace", "ep", "orthant"])
def test_estimates_are_unbiased(method):
    """400 estimates, 5 standard errors of their mean: 1e-6."""
    K = np.exp(-0.5 * (X3 - X3.T) ** 2) * 2.0
    y = np.array([1.0, -1.0, 1.0])
    estimator = estimator_named(method, 4)
    rng = np.random.default_rng(3)
    ratio = np.exp([estimator(K, y, rng) for _ in range(400)]) / orthant(K, y)
    se = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert se < 0.02
    assert abs(ratio.mean() - 1.0) < 5 * se


def test_an_extinct_population_is_an_estimate_of_zero(monkeypatch):
    def extinct(*args, **kwargs):
        raise ExtinctionError("none")

    monkeypatch.setattr(estimators, "orthant_probability", extinct)
    rng = np.random.default_rng(4)
    assert orthant_estimator(np.eye(2), np.ones(2), rng, samples=4) == -np.inf
    # two zeros: the chain stays, and says so without a warning
    state = steps.PseudoMarginalState(np.zeros(2), PRIOR.log_density(np.zeros(2)), -np.inf)
    zero = estimator_named("orthant", 4)
    _, info = steps.pseudo_marginal_step(model(), zero, state, 0.1, rng)
    assert not info.accepted


# --- posteriors over the hyperparameters, by run_chains


@pytest.mark.parametrize(
    ("method", "iterations"), [("ancillary", 1000), ("surrogate", 1500), (exact, 2000)]
)
def test_chains_have_the_posterior(method, iterations):
    """With estimates, too: those above have no bias, and that is enough for the law, which is tested below."""
    chains = run(method, 5, iterations=iterations, burn_in=100, chains=10, prior=PRIOR)
    assert chains.status == OK
    assert_quantiles(chains.theta, X3, Y3, PRIOR)


def test_the_truth_moves_when_the_likelihood_does():
    """Prior and posterior differ by more than the test above lets pass."""
    _, weight, likelihood = quadrature(X3, Y3, PRIOR)
    posterior = weight * likelihood / np.sum(weight * likelihood)
    before, after = (np.cumsum(w.sum(axis=1)) for w in (weight, posterior))
    assert np.max(np.abs(before - after)) > 0.1


# --- stationarity, from exact draws


def noise(theta):
    """Standard deviation of an estimate's log, large where the length scale is small."""
    return 2.0 if theta[1] < 0.0 else 0.2


def test_an_estimate_that_is_kept_keeps_the_law():
    """The likelihood is 1 and its estimate exp(e), e ~ N(-s^2/2, s^2), so in the chain N(+s^2/2, s^2)."""
    m, rng, R = model(2), np.random.default_rng(6), 4000

    def noisy(K, y, rng):
        with np.errstate(divide="ignore"):  # a wrong chain goes to where the correlation is zero
            tau = np.sqrt(-0.5 * m.squares[0, 0, 1] / np.log(K[0, 1] / K[0, 0]))
            s = noise(np.log([1.0, tau]))
        return -0.5 * s * s + s * rng.standard_normal()

    theta, levels = np.empty((R, 2)), np.empty(R)
    for r in range(R):
        start = PRIOR.draw(rng)
        s = noise(start)
        estimate = 0.5 * s * s + s * rng.standard_normal()
        state = steps.PseudoMarginalState(start, PRIOR.log_density(start), estimate)
        for _ in range(4):
            state, _ = steps.pseudo_marginal_step(m, noisy, state, 0.7, rng)
        assert state.log_prior == PRIOR.log_density(state.theta)
        theta[r] = state.theta
        s = noise(state.theta)
        levels[r] = (state.log_evidence - 0.5 * s * s) / s
    for k, cdf in enumerate(prior_cdfs(PRIOR)):
        assert distance(np.exp(theta[:, k]), cdf) < band(R)
    assert distance(levels, norm.cdf) < band(R)


@pytest.mark.parametrize(
    ("scheme", "slices"), [("ancillary", 0), ("surrogate", 0), ("surrogate", 1)]
)
def test_latent_chains_keep_the_joint_law(scheme, slices):
    """Theta, nu, y from the model with three length scales; theta then has the prior for good, and nu is normal.

    Slices make up for some faults of a transition, which are seen without them.
    """
    n, R, transitions = 8, 1000, 3
    m, rng = model(n, prior=EACH, jitter=1e-6), np.random.default_rng(21)
    root = np.diag([1.2, 0.5, 0.5, 0.5]) + 0.2 * np.tri(4, k=-1)
    theta, nu, moved = np.empty((R, 4)), np.empty((R, n)), 0
    for r in range(R):
        start, nu_start = m.prior.draw(rng), rng.standard_normal(n)
        f = steps.whitened_state(m, start, nu_start).f
        here = replace(m, y=np.where(f + rng.standard_normal(n) > 0, 1.0, -1.0))
        state = steps.whitened_state(here, start, nu_start)
        for _ in range(transitions):
            state, info = LATENT[scheme](here, state, root, rng)
            moved += info.accepted
            if slices:
                state, _ = steps.slice_latent(here, state, rng)
        np.testing.assert_allclose(state.f, state.L @ state.nu, atol=1e-6)
        theta[r], nu[r] = state.theta, state.nu
    assert moved > 0.05 * transitions * R
    for k, cdf in enumerate(prior_cdfs(EACH)):
        assert distance(np.exp(theta[:, k]), cdf) < band(R)
    assert distance(nu.ravel()[:: n // 2], norm.cdf) < band(2 * R)
    assert distance((nu**2).sum(axis=1), chi2(n).cdf) < band(R)


def test_the_pseudo_marginal_chain_keeps_the_joint_law():
    """Theta, f, y from the model; f is then one of the weighted samples, the other from the proposal."""
    m, rng, R = model(4, prior=EACH), np.random.default_rng(22), 500
    estimator = estimator_named("laplace", 2)
    root, theta = 0.6 * np.eye(4), np.empty((R, 4))
    for r in range(R):
        start = m.prior.draw(rng)
        state = steps.whitened_state(m, start, rng.standard_normal(4))
        here = replace(m, y=np.where(state.f + rng.standard_normal(4) > 0, 1.0, -1.0))
        K = here.covariance(start)
        posterior = Laplace(tolerance=1e-6).fit(Prior(K), here.y)
        proposal = Proposal.of(posterior)
        u = np.linalg.lstsq(proposal.root.A, state.f, rcond=None)[0]
        own = np.linalg.solve(proposal.T, u - proposal.centre)
        normals = np.stack([own, rng.standard_normal(4)])
        estimate = logsumexp(proposal.log_weights(here.y, normals)) - np.log(2)
        chain = steps.PseudoMarginalState(start, here.prior.log_density(start), estimate)
        for _ in range(2):
            chain, _ = steps.pseudo_marginal_step(here, estimator, chain, root, rng)
        theta[r] = chain.theta
    for k, cdf in enumerate(prior_cdfs(EACH)):
        assert distance(np.exp(theta[:, k]), cdf) < band(R)


# --- deterministic invariants of the transitions


@pytest.mark.parametrize("seed", range(3))
def test_a_state_is_what_it_says(seed):
    m, rng = model(8, seed), np.random.default_rng(seed)
    state = steps.whitened_state(m, PRIOR.draw(rng), rng.standard_normal(8))
    for update in (steps.ancillary_step, steps.surrogate_step) * 10:
        old = state
        state, info = update(m, state, 0.5, rng)
        assert info.accepted == (state is not old)
        state, evaluations = steps.slice_latent(m, state, rng, 2)
        assert evaluations >= 2
        np.testing.assert_allclose(state.f, state.L @ state.nu, atol=1e-10)
        np.testing.assert_allclose(state.L @ state.L.T, m.covariance(state.theta), atol=1e-10)
        level = norm.logcdf(m.y * state.f).sum()
        assert state.log_likelihood == pytest.approx(level, abs=1e-9)
        np.testing.assert_allclose(state.slope, derivatives(1.0, m.y * state.f)[0], rtol=1e-7)
        assert state.log_prior == PRIOR.log_density(state.theta)


class Scripted:
    """A generator whose normals are given, and whose uniform is a number."""

    def __init__(self, normals, uniform):
        self.normals, self.uniform = iter(normals), uniform

    def standard_normal(self, size):
        return next(self.normals)

    def random(self):
        return self.uniform


@pytest.mark.parametrize("scheme", LATENT)
def test_acceptance_is_the_ratio_of_joint_densities(scheme):
    """The density of theta, f, y (and g) times the Jacobian of f in what is held, written out with inverses."""
    n, rng = 5, np.random.default_rng(31)
    m, root = model(n, prior=EACH, jitter=1e-6), 0.2 * np.eye(4)
    state = steps.whitened_state(m, np.log([2.0, 0.8, 1.2, 1.0]), rng.standard_normal(n))
    normals = [rng.standard_normal(4), rng.standard_normal(n)]
    g = state.f + np.sqrt(steps.surrogate_noise(np.exp(state.theta[0]))) * normals[1]

    def log_joint(one):
        K, nothing = m.covariance(one.theta), np.zeros(n)
        value = m.prior.log_density(one.theta) + multivariate_normal(nothing, K).logpdf(one.f)
        value += norm.logcdf(m.y * one.f).sum()
        if scheme == "ancillary":
            return value + 0.5 * np.linalg.slogdet(K)[1]
        S = steps.surrogate_noise(np.exp(one.theta[0])) * np.eye(n)
        R = np.linalg.inv(np.linalg.inv(K) + np.linalg.inv(S))
        return value + multivariate_normal(one.f, S).logpdf(g) + 0.5 * np.linalg.slogdet(R)[1]

    def update(uniform):
        return LATENT[scheme](m, state, root, Scripted(normals, uniform))

    proposal, info = update(1e-300)
    assert info.accepted and not np.array_equal(proposal.theta, state.theta)
    ratio = np.exp(log_joint(proposal) - log_joint(state))
    assert update(0.9999 * ratio)[1].accepted and not update(1.0001 * ratio)[1].accepted


def test_a_state_that_does_not_move_keeps_its_estimate():
    m, rng, made = model(3, prior=EACH), np.random.default_rng(4), []

    def estimator(K, y, rng):
        made.append(rng.standard_normal())
        return made[-1]

    state = steps.PseudoMarginalState(np.zeros(4), m.prior.log_density(np.zeros(4)), 0.5)
    for _ in range(200):
        old = state
        state, info = steps.pseudo_marginal_step(m, estimator, state, 0.3 * np.eye(4), rng)
        assert state is old if not info.accepted else state.log_evidence == made[-1]
    assert len(made) == 200


def test_surrogate_data_written_out_with_inverses():
    m, rng = model(7), np.random.default_rng(9)
    theta = np.log([3.0, 0.9])
    K, s = m.covariance(theta), 1.7
    L, g = steps.lower_root(K), rng.standard_normal(7)
    found = steps.surrogate(L, s, g)
    R = np.linalg.inv(np.linalg.inv(K) + np.eye(7) / s)
    np.testing.assert_allclose(L @ found.mean, R @ g / s, atol=1e-9)
    root = L @ np.linalg.inv(found.U).T
    np.testing.assert_allclose(root, np.linalg.cholesky(R), atol=1e-9)
    expected = multivariate_normal(np.zeros(7), K + s * np.eye(7)).logpdf(g)
    assert found.log_density == pytest.approx(expected, abs=1e-10)


def test_surrogate_noise_is_that_of_either_theta(monkeypatch):
    m, rng, calls = model(5), np.random.default_rng(15), []

    def spy(L, s, g):
        calls.append((L @ L.T, s))
        return surrogate(L, s, g)

    surrogate = steps.surrogate
    monkeypatch.setattr(steps, "surrogate", spy)
    state = steps.whitened_state(m, np.zeros(2), rng.standard_normal(5))
    steps.surrogate_step(m, state, 1.0, rng)
    assert len(calls) == 2
    assert calls[0][0][0, 0] != calls[1][0][0, 0]
    for K, s in calls:
        assert s == pytest.approx(steps.surrogate_noise(K[0, 0]))


@pytest.mark.parametrize("sigma", [0.1, 1.0, 20.0])
def test_surrogate_noise_leaves_a_value_as_its_label_does(sigma):
    _, _, v = tilted_moments(1.0, 0.0, sigma)
    assert steps.surrogate_noise(sigma) == pytest.approx(1 / (1 / v - 1 / sigma), rel=1e-8)


@pytest.mark.parametrize("tau", [0.05, 1.0, 30.0, 1e6])
def test_the_root_is_lower_triangular_also_of_singular_covariances(tau):
    m = model(30)
    K = m.covariance(np.log([2.0, tau]))
    L = steps.lower_root(K)
    assert np.array_equal(L, np.tril(L))
    assert (L.diagonal() >= 0).all()
    np.testing.assert_allclose(L @ L.T, K, atol=1e-13)
    nearby = steps.lower_root(m.covariance(np.log([2.0, tau]) + 1e-9))
    # eigenvalues in the rounding of K have roots of 1e-8: seen are 3e-6 (kernels for SkylakeX) and 5e-6 (for Zen)
    np.testing.assert_allclose(L, nearby, atol=1e-5)


# --- adaptation


def test_the_step_adapts_as_published():
    calls = []

    def transition(accept):
        return lambda step: calls.append(step) or accept(len(calls))

    factors = [5.0 - 3.9 * min(b / 4, 1) for b in range(1, 21)]
    assert adapt(transition(lambda i: True), 2000) == pytest.approx(0.5 * np.prod(factors))
    assert len(calls) == 2000
    np.testing.assert_allclose(calls[::100], 0.5 * np.cumprod([1.0, *factors[:-1]]))
    assert adapt(transition(lambda i: False), 2000) == pytest.approx(0.5 / np.prod(factors))
    assert adapt(transition(lambda i: i % 5 == 0), 2000) == 0.5
    calls.clear()
    adapt(transition(lambda i: False), 33)
    assert len(calls) == 33
    assert adapt(transition(lambda i: False), 0) == 0.5
    calls.clear()
    assert adapt(transition(lambda i: True), 9) == 0.5, "a rate of nine says nothing"
    assert calls == [0.5] * 9
    calls.clear()
    assert adapt(transition(lambda i: True), 45) == pytest.approx(0.5 * np.prod(factors[:4]))
    assert len(calls) == 45


def test_chains_do_not_go_where_the_prior_is_zero(monkeypatch):
    """Where it is below the least number above zero, the covariance is no matrix to factorise."""
    density = default_prior(2)
    assert density.log_density(np.array([18.0, 0.0])) == -np.inf
    assert np.isfinite(density.log_density(np.array([8.0, 3.0])))
    monkeypatch.setattr(chains_module, "FIRST_STEP", 12.0)
    rng = np.random.default_rng(19)
    X = rng.standard_normal((30, 2))
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    options = ChainOptions("ep", samples=1, iterations=100, burn_in=0, chains=2)
    chains = run_chains(X, y, options, rng=rng)
    assert np.isfinite([density.log_density(theta) for theta in chains.theta.reshape(-1, 2)]).all()


def test_after_burn_in_the_step_is_frozen():
    """With a flat likelihood and a wide prior nearly all is accepted: a step that went on adapting grows.

    The largest of 4000 normals exceeds 6 of its standard deviations once in 1e5.
    """
    wide = HyperparameterPrior((1.0, 1.0), (0.1, 0.1))
    chains = run(lambda K, y, rng: 0.0, 10, iterations=1000, burn_in=0, prior=wide)
    assert chains.step == pytest.approx([0.5, 0.5])
    assert (chains.acceptance > 0.5).all()
    assert np.abs(np.diff(chains.theta, axis=1)).max() < 6 * 0.5


def test_every_estimate_after_burn_in_is_the_estimators():
    chains = run(lambda K, y, rng: -9.0, 16, iterations=4, burn_in=40, chains=10)
    assert (chains.log_evidence == -9.0).all()


def test_burn_in_moves_towards_the_band():
    chains = run(exact, 11, iterations=400, burn_in=600, prior=PRIOR)
    assert (chains.step > 0.5).all()
    assert (chains.acceptance > 0.08).all()
    assert (chains.acceptance < 0.45).all()


# --- records


@pytest.mark.parametrize("method", ["laplace", "orthant", "ancillary", "surrogate"])
def test_the_same_seed_the_same_chains(method):
    first, second, third = (run(method, seed, iterations=10, burn_in=20) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.theta, second.theta)
    assert first.work == second.work
    assert (first.theta != third.theta).any()
    assert first.theta.shape == (2, 10, 2)
    assert first.status == NOT_CONVERGED
    assert first.diagnostics["acceptance"] == pytest.approx(first.acceptance.mean())
    np.testing.assert_allclose(first.beta, np.exp(first.theta[..., 0]))
    np.testing.assert_allclose(first.alpha, np.sqrt(2) * np.exp(first.theta[..., 1]))
    if method in ("ancillary", "surrogate"):
        assert first.log_evidence is None
        assert first.work["likelihood_evaluations"] > 60
    else:
        assert first.log_evidence.shape == (2, 10)
        assert first.work["evidence_estimates"] == 22  # two starts, and each iteration


def test_a_chain_that_does_not_move_has_not_converged():
    theta = np.random.default_rng(12).standard_normal((3, 100, 2))
    assert hyperparameter_convergence(theta)["r_hat"] < 1.1
    theta[1, :, 0] = 1.0
    assert hyperparameter_convergence(theta) == {"effective_samples": 0.0, "r_hat": np.inf}


# --- as a method


KERNEL = ConstantKernel(1.0) * RBF(1.0)


def test_predictions_are_averaged_over_the_posterior():
    """Two patterns and a test pattern: ratios of arcsine laws, averaged over theta by quadrature."""
    X, y, X_star = X3[:2], np.array([1.0, -1.0]), np.array([[0.9], [-0.5]])
    method = PseudoMarginal(
        method=exact, iterations=1000, burn_in=200, prior=PRIOR, draws=400, predictor=Exact()
    )
    posterior = method.fit(prior(KERNEL, X, X_star), y, rng=np.random.default_rng(13))
    assert posterior.status == OK
    prediction = pickle.loads(pickle.dumps(posterior)).predict_inputs(X_star)
    _, weight, below = quadrature(X, y, PRIOR)
    for t in range(2):
        _, _, above = quadrature(np.vstack([X, X_star[t]]), np.append(y, 1.0), PRIOR)
        p = np.sum(weight * above) / np.sum(weight * below)
        se = prediction.standard_error[t]
        assert 1e-4 < se < 0.02
        assert abs(prediction.probability[t] - p) < 5.5 * se
    np.testing.assert_array_equal(prediction.probability, posterior.prediction.probability)


class Exact(Method):
    """A predictor that knows the arcsine law."""

    deterministic = True

    def _fit(self, prior, y, rng):
        p = [
            orthant(np.block([[prior.K, k[:, None]], [k, v]]), np.append(y, 1.0))
            for k, v in zip(prior.K_star.T, prior.k_star_star, strict=True)
        ]
        return SimpleNamespace(
            prediction=Prediction(np.array(p) / orthant(prior.K, y), np.zeros(len(p)))
        )


def test_the_defaults_predict():
    rng = np.random.default_rng(14)
    X = rng.standard_normal((12, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    method = PseudoMarginal(iterations=20, burn_in=20, draws=16)
    assert isinstance(method, Method)
    posterior = method.fit(prior(KERNEL, X), y, rng=rng)
    assert posterior.log_evidence is None and posterior.prediction.probability.shape == (0,)
    assert posterior.status == NOT_CONVERGED
    prediction = posterior.predict_inputs([[2.0, 0.0], [-2.0, 0.0]])
    assert prediction.probability[0] > 0.6 > 0.4 > prediction.probability[1]
    assert (prediction.standard_error > 0).all()


def test_a_covariance_is_not_enough():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"prior must hold the inputs.*gpcmc.gp.prior\("):
        PseudoMarginal().fit(Prior(np.eye(2)), np.ones(2), rng=rng)
    small = PseudoMarginal(method=exact, iterations=16, burn_in=0, draws=16, prior=PRIOR)
    posterior = small.fit(prior(KERNEL, X3), Y3, rng=rng)
    with pytest.raises(ValueError, match="predict_inputs"):
        posterior.predict(np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match="X_star must have rows, and 1 columns"):
        posterior.predict_inputs(np.zeros((2, 2)))


def test_each_input_may_have_its_length_scale():
    """Predictions are means over draws, by scikit-learn's kernels; an input that tells nothing has the longer scale."""
    rng = np.random.default_rng(15)
    X, X_star = rng.standard_normal((40, 2)), rng.standard_normal((5, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    method = PseudoMarginal(
        "laplace", samples=4, iterations=150, burn_in=100, chains=2, draws=8, predictor=Laplace()
    )
    posterior = method.fit(prior(ConstantKernel() * RBF([1.0, 1.0]), X, X_star), y, rng=rng)
    theta = posterior.chains.theta
    assert theta.shape == (2, 150, 3)
    kept = theta[:, [0, 50, 99, 149]].reshape(-1, 3)
    kernels = [ConstantKernel(np.exp(t[0])) * RBF(np.exp(t[1:])) for t in kept]
    each = [Laplace().fit(prior(k, X, X_star), y).prediction.probability for k in kernels]
    np.testing.assert_allclose(posterior.prediction.probability, np.mean(each, axis=0), rtol=1e-6)
    first, second = np.median(theta[..., 1]), np.median(theta[..., 2])
    assert second > first + 0.5
