"""Chains with a length scale for each input, against quadrature and exact stationarity.

Stationarity is tested by starting from exact draws of hyperparameters, latent values and labels: the hyperparameters
are then one by one those of the prior, and a band of Dvoretzky, Kiefer and Wolfowitz at 1e-6 holds for any number of
transitions. Shares of chains are compared with quadrature within 5.5 standard errors, which is about 1e-6 too. Seeds
are fixed.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline
from scipy.special import logsumexp
from scipy.stats import chi2, gamma, multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from truths import band, distance

from gpcmc.gp import Prior
from gpcmc.inference import hyperparameter_steps as steps
from gpcmc.inference import tuned_chains
from gpcmc.inference.evidence_estimators import estimator_named
from gpcmc.inference.hyperparameter_chains import ChainOptions, run_chains
from gpcmc.inference.hyperparameters import Model, default_prior, squared_distances
from gpcmc.gaussian.importance import Proposal, log_evidence_estimate
from gpcmc.gaussian.laplace import Laplace
from gpcmc.inference.relevance import (
    RelevanceModel,
    RelevancePrior,
    relevance_model,
    relevance_prior,
)
from gpcmc.inference.tuned_chains import (
    LATENT,
    PSEUDO_MARGINAL,
    UPDATES,
    CountedEstimator,
    latent_chain,
    pilot,
    pseudo_marginal_chain,
)

PRIOR = RelevancePrior((2.0, 3.0), (0.4, 2.0), 3)
JITTER = 1e-6
LARGEST_ERROR = 0.05


def model(n=5, seed=0, prior=PRIOR, d=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return relevance_model(X, y, prior, jitter=JITTER)


def cdfs(prior=PRIOR):
    each = [0] + [1] * prior.length_scales
    return [gamma(prior.shape[k], scale=1 / prior.rate[k]).cdf for k in each]


def with_labels(m, y):
    return RelevanceModel(m.squared_distances, y, m.prior, m.jitter)


# --- prior and covariance


def test_the_prior_is_a_gamma_in_each_logarithm():
    theta = np.random.default_rng(0).standard_normal((50, 4))
    each = [0, 1, 1, 1]
    expected = sum(
        gamma.logpdf(np.exp(theta[:, k]), PRIOR.shape[e], scale=1 / PRIOR.rate[e]) + theta[:, k]
        for k, e in enumerate(each)
    )
    found = np.array([PRIOR.log_density(t) for t in theta])
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-12)
    assert PRIOR.log_density(np.array([0.0, 0.0, 400.0, 0.0])) == -np.inf
    rng = np.random.default_rng(1)
    draws = np.exp([PRIOR.draw(rng) for _ in range(3000)])
    for k, cdf in enumerate(cdfs()):
        assert distance(draws[:, k], cdf) < band(3000)


def test_one_length_scale_is_the_isotropic_model():
    m = model(6, prior=relevance_prior(3, relevance=False))
    rng = np.random.default_rng(2)
    X = np.random.default_rng(0).standard_normal((6, 3))
    known, theta = default_prior(3), rng.standard_normal(2)
    former = Model(squared_distances(X, X), m.y, known)
    np.testing.assert_allclose(
        with_labels(m, m.y).covariance(theta) - JITTER * np.exp(theta[0]) * np.eye(6),
        former.covariance(theta),
        rtol=1e-12,
    )
    differences = [p.log_density(theta) - p.log_density(np.zeros(2)) for p in (m.prior, known)]
    assert differences[0] == pytest.approx(differences[1])


def test_each_input_has_its_length_scale():
    X = np.random.default_rng(0).standard_normal((5, 3))
    theta = np.log([2.5, 0.7, 1.3, 4.0])
    kernel = ConstantKernel(2.5) * RBF([0.7, 1.3, 4.0])
    found = model(5).covariance(theta)
    np.testing.assert_allclose(found, kernel(X) + 2.5 * JITTER * np.eye(5), rtol=1e-12)


# --- posteriors


#: Two places, the labels of each, and their differences: the evidence is an integral over two latent values.
PLACES = np.array([[0.0, 0.0], [0.3, 0.3]])
COUNTS = ((7, 1), (1, 7))  # of +1 and -1
X_TWO = np.repeat(PLACES, [sum(counts) for counts in COUNTS], axis=0)
Y_TWO = np.concatenate([np.repeat([1.0, -1.0], counts) for counts in COUNTS])


def evidence_table():
    """p(y) as a function of log sigma and the correlation of both latent values, by Gauss and Legendre's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    z, w = 7.0 * nodes, 7.0 * weights * norm.pdf(7.0 * nodes)

    def likelihood(f, k):
        return norm.cdf(f) ** COUNTS[k][0] * norm.cdf(-f) ** COUNTS[k][1]

    log_sigma, rho = np.linspace(-7.0, 4.5, 70), np.sin(np.linspace(0.0, np.pi / 2, 25))
    table = np.empty((70, 25))
    for i, scale in enumerate(np.exp(0.5 * log_sigma)):
        first = w * likelihood(scale * z, 0)
        for j, r in enumerate(rho):
            second = likelihood(scale * (r * z[:, None] + np.sqrt(1 - r * r) * z), 1) @ w
            table[i, j] = first @ second
    return RectBivariateSpline(log_sigma, np.arcsin(rho), np.log(table))


@cache
def log_evidence(length_scales):
    """log p(y | theta) as a function of theta (..., 1 + length_scales)."""
    squares = (PLACES[1] - PLACES[0]) ** 2
    squares = squares if length_scales > 1 else squares.sum(keepdims=True)
    table = evidence_table()

    def value(theta):
        rho = np.exp(-0.5 * np.exp(-2 * theta[..., 1:]) @ squares)
        return table(theta[..., 0], np.arcsin(rho), grid=False)

    return value


@cache
def quadrature(length_scales):
    """A grid over theta, its weights under the prior, and log p(y | theta) there."""
    axes = [np.linspace(-7.0, 4.5, 116)] + [np.linspace(-4.5, 3.5, 81)] * length_scales
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 1 + length_scales)
    weight = np.exp(
        sum(
            gamma.logpdf(np.exp(theta[..., k]), PRIOR.shape[e], scale=1 / PRIOR.rate[e])
            + theta[..., k]
            for k, e in enumerate([0] + [1] * length_scales)
        )
    )
    return theta, weight / weight.sum(), log_evidence(length_scales)(theta)


def statistics(theta):
    """What is looked at: every hyperparameter, and the log evidence, which prior and posterior differ most in."""
    evidence = log_evidence(theta.shape[-1] - 1)(theta)
    return np.concatenate([theta, evidence[..., None]], axis=-1)


@cache
def quartiles(length_scales):
    """For each statistic and quartile of the posterior: a number near it, and the share that is truly below."""
    grid, weight, evidence = quadrature(length_scales)
    posterior = weight * np.exp(evidence)
    posterior /= posterior.sum()
    found = []
    for known in statistics(grid).T:
        order = np.argsort(known, kind="stable")
        known, below = known[order], np.cumsum(posterior[order])
        for level in (0.25, 0.5, 0.75):
            # between two values of the grid
            at = np.searchsorted(below, level)
            above = at + np.flatnonzero(known[at:] > known[at] + 1e-9)[0]
            found.append((0.5 * (known[at] + known[above]), below[above - 1]))
    return np.reshape(found, (-1, 3, 2))


def assert_quantiles(theta):
    """The chains' share below each quartile of the posterior is what it ought to be."""
    from arviz_stats.base import array_stats

    drawn = np.moveaxis(statistics(theta), -1, 0)
    for found, known in zip(drawn, quartiles(theta.shape[-1] - 1), strict=True):
        for limit, true in known:
            share = (found < limit).astype(float)
            ess = array_stats.ess(share, chain_axis=0, draw_axis=1, method="mean")
            se = np.sqrt(true * (1 - true) / ess)
            assert se < LARGEST_ERROR
            assert abs(share.mean() - true) < 5.5 * se, (limit, true)


@pytest.mark.slow
@pytest.mark.parametrize("relevance", [False, True])
@pytest.mark.parametrize("scheme", [*PSEUDO_MARGINAL, *LATENT])
def test_chains_have_the_posterior(scheme, relevance):
    prior = RelevancePrior(PRIOR.shape, PRIOR.rate, 2 if relevance else 1)
    m = relevance_model(X_TWO, Y_TWO, prior, jitter=JITTER)
    root = 1.2 * np.eye(1 + prior.length_scales)
    chains = []
    for k in range(8):
        rng = np.random.default_rng([11, k])
        if scheme in PSEUDO_MARGINAL:
            given = {"samples": 4, "iterations": 350 if relevance else 180, "burn_in": 30}
            chains.append(pseudo_marginal_chain(m, scheme, root, rng=rng, **given))
        else:
            given = {"iterations": 4000 if scheme == "sufficient" else 700, "burn_in": 200}
            chains.append(latent_chain(m, scheme, root, rng=rng, **given))
    assert_quantiles(np.stack([chain.theta for chain in chains]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "iterations"), [("laplace", 400), ("ancillary", 8000), ("surrogate", 1500)]
)
def test_chains_of_the_library_have_the_posterior_of_each_length_scale(method, iterations):
    """Those that a user starts, which tune one step for all hyperparameters."""
    found = run_chains(
        X_TWO, Y_TWO, ChainOptions(method, 4, iterations, burn_in=200, chains=8),
        prior=RelevancePrior(PRIOR.shape, PRIOR.rate, 2), rng=np.random.default_rng(12),
    )  # fmt: skip
    assert found.theta.shape == (8, iterations, 3) and found.alpha.shape == (8, iterations, 2)
    assert_quantiles(found.theta)


@pytest.mark.slow
@pytest.mark.parametrize("length_scales", [1, 2])
def test_the_truth_moves_when_the_likelihood_does(length_scales):
    """Prior and posterior differ by more than the test above lets pass."""
    _, weight, evidence = quadrature(length_scales)
    posterior = weight * np.exp(evidence)
    order = np.argsort(evidence)
    before, after = (np.cumsum(w[order]) / w.sum() for w in (weight, posterior))
    assert np.max(np.abs(before - after)) > 5.5 * LARGEST_ERROR


# --- stationarity, from exact draws


@pytest.mark.slow
@pytest.mark.parametrize("slices", [0, 1])
@pytest.mark.parametrize(
    "update", [*UPDATES.values(), steps.surrogate_step], ids=[*LATENT, "data first"]
)
def test_latent_chains_keep_the_joint_law(update, slices):
    """Theta, nu, y from the model with three length scales; theta then has the prior for good, and nu is normal.

    Slices make up for some faults of a transition, which are seen without them.
    """
    n, R, transitions = 8, 1500, 4
    m, rng = model(n), np.random.default_rng(21)
    root = np.diag([1.2, 0.5, 0.5, 0.5]) + 0.2 * np.tri(4, k=-1)
    theta, nu, moved = np.empty((R, 4)), np.empty((R, n)), 0
    for r in range(R):
        state = steps.whitened_state(m, m.prior.draw(rng), rng.standard_normal(n))
        here = with_labels(m, np.where(state.f + rng.standard_normal(n) > 0, 1.0, -1.0))
        state = state._replace(log_likelihood=here.log_likelihood(state.f))
        for _ in range(transitions):
            state, info = update(here, state, root, rng)
            moved += info.accepted
            if slices:
                state, _ = steps.elliptical_slice(here, state, rng)
        np.testing.assert_allclose(state.f, state.L @ state.nu, atol=1e-6)
        theta[r], nu[r] = state.theta, state.nu
    assert moved > 0.05 * transitions * R
    for k, cdf in enumerate(cdfs()):
        assert distance(np.exp(theta[:, k]), cdf) < band(R)
    assert distance(nu.ravel()[:: n // 2], norm.cdf) < band(2 * R)
    assert distance((nu**2).sum(axis=1), chi2(n).cdf) < band(R)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "tolerance"),
    [(CountedEstimator("laplace", 2), 1e-4), (estimator_named("laplace", 2), 1e-6)],
    ids=["tuned", "run_chains"],
)
def test_the_pseudo_marginal_chain_keeps_the_joint_law(estimator, tolerance):
    """Theta, f, y from the model; f is then one of the weighted samples, the other from the proposal."""
    m, rng, R = model(4), np.random.default_rng(22), 800
    m = relevance_model(np.random.default_rng(0).standard_normal((4, 3)), m.y, m.prior)
    root, theta = 0.6 * np.eye(4), np.empty((R, 4))
    for r in range(R):
        start = m.prior.draw(rng)
        state = steps.whitened_state(m, start, rng.standard_normal(4))
        here = with_labels(m, np.where(state.f + rng.standard_normal(4) > 0, 1.0, -1.0))
        K = here.covariance(start)
        posterior = Laplace(tolerance=tolerance).fit(Prior(K), here.y)
        other = log_evidence_estimate(posterior, here.y, rng.standard_normal((1, 4)))
        proposal = Proposal.of(posterior)
        z = np.linalg.solve(proposal.root.A @ proposal.T, state.f - posterior.mean)
        own = proposal.log_weights(here.y, z[None])[0]
        estimate = logsumexp([own, other]) - np.log(2)
        chain = steps.PseudoMarginalState(start, here.prior.log_density(start), estimate)
        for _ in range(3):
            chain, _ = steps.pseudo_marginal_step(here, estimator, chain, root, rng)
        theta[r] = chain.theta
    for k, cdf in enumerate(cdfs()):
        assert distance(np.exp(theta[:, k]), cdf) < band(R)


# --- deterministic invariants


def test_the_density_of_f_written_out():
    m, rng = model(5), np.random.default_rng(3)
    f, values = rng.standard_normal(5), []
    for theta in np.log([[2.0, 0.5, 1.0, 2.0], [1.0, 1.0, 1.0, 0.3]]):
        K = m.covariance(theta)
        known = multivariate_normal(np.zeros(5), K).logpdf(f)
        values.append(steps.latent_density(steps.lower_root(K), f) - known)
    assert values[0] == pytest.approx(values[1], abs=1e-7)
    assert steps.latent_density(np.zeros((5, 5)), f) == -np.inf


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
    m, root = model(n), 0.2 * np.eye(4)
    state = steps.whitened_state(m, np.log([2.0, 0.8, 1.2, 1.0]), rng.standard_normal(n))
    normals = [rng.standard_normal(4), rng.standard_normal(n)]
    g = state.f + np.sqrt(steps.surrogate_noise(np.exp(state.theta[0]))) * normals[1]

    def log_joint(one):
        K, nothing = m.covariance(one.theta), np.zeros(n)
        value = m.prior.log_density(one.theta) + multivariate_normal(nothing, K).logpdf(one.f)
        value += norm.logcdf(m.y * one.f).sum()
        if scheme == "sufficient":
            return value
        if scheme == "ancillary":
            return value + 0.5 * np.linalg.slogdet(K)[1]
        S = steps.surrogate_noise(np.exp(one.theta[0])) * np.eye(n)
        R = np.linalg.inv(np.linalg.inv(K) + np.linalg.inv(S))
        return value + multivariate_normal(one.f, S).logpdf(g) + 0.5 * np.linalg.slogdet(R)[1]

    def update(uniform):
        return UPDATES[scheme](m, state, root, Scripted(normals, uniform))

    proposal, info = update(1e-300)
    assert info.accepted and not np.array_equal(proposal.theta, state.theta)
    assert np.array_equal(proposal.f, state.f) == (scheme == "sufficient")
    ratio = np.exp(log_joint(proposal) - log_joint(state))
    assert update(0.9999 * ratio)[1].accepted and not update(1.0001 * ratio)[1].accepted


def test_a_state_that_does_not_move_keeps_its_estimate():
    m, rng, made = model(3), np.random.default_rng(4), []

    def estimator(K, y, rng):
        made.append(rng.standard_normal())
        return made[-1]

    state = steps.PseudoMarginalState(np.zeros(4), m.prior.log_density(np.zeros(4)), 0.5)
    for _ in range(200):
        old = state
        state, info = steps.pseudo_marginal_step(m, estimator, state, 0.3 * np.eye(4), rng)
        assert state is old if not info.accepted else state.log_evidence == made[-1]
    assert len(made) == 200


@pytest.mark.parametrize("scheme", LATENT)
def test_updates_of_latent_chains_are_repeated_with_the_tuned_proposal(scheme, monkeypatch):
    """Before the draws both updates are made once an iteration, with the scale on trial; then so often as was asked."""
    seen, slices, own, slice_ = [], [], UPDATES[scheme], tuned_chains.elliptical_slice

    def update(m, state, root, rng):
        seen.append(root)
        return own(m, state, root, rng)

    def sliced(*given):
        slices.append(len(seen))
        return slice_(*given)

    def trial(transition, burn_in):
        for _ in range(burn_in):
            transition(0.5)
        return 0.3

    monkeypatch.setitem(UPDATES, scheme, update)
    monkeypatch.setattr(tuned_chains, "elliptical_slice", sliced)
    monkeypatch.setattr(tuned_chains, "adapt", trial)
    root, rng = np.diag([1.0, 0.5, 0.25, 0.5]), np.random.default_rng(6)
    found = latent_chain(model(5), scheme, root, repeats=3, iterations=4, burn_in=7, rng=rng)
    assert len(seen) == len(slices) == 7 + 3 * 4
    assert found.work == {scheme: 12}, "without those of burn-in"
    np.testing.assert_array_equal(seen, [0.5 * root] * 7 + [0.3 * root] * 12)
    # three updates of theta, then three of f
    assert slices == [*range(1, 8), *np.repeat([10, 13, 16, 19], 3)]


def test_the_pilots_proposal_has_the_posteriors_shape_and_is_accepted_as_it_should_be(monkeypatch):
    """The posterior is a known Gaussian; the draws of a chain know its covariance to a third."""
    covariance = np.diag([4.0, 0.01, 1.0])
    covariance[0, 2] = covariance[2, 0] = 1.6
    law = multivariate_normal(np.zeros(3), covariance)
    monkeypatch.setattr(
        tuned_chains, "CountedEstimator", lambda *given: lambda K, y, rng: law.logpdf(K)
    )
    flat = SimpleNamespace(draw=lambda rng: np.zeros(3), log_density=lambda theta: 0.0)
    m = SimpleNamespace(prior=flat, covariance=lambda theta: theta, y=None)
    root = pilot(m, burn_in=600, iterations=3000, rng=np.random.default_rng(8))
    assert np.array_equal(root, np.tril(root)) and (root.diagonal() > 0).all()
    found = root @ root.T
    spread = np.sqrt(np.diag(found) / np.diag(covariance))
    assert spread.max() / spread.min() < 1.5
    correlation = found / np.sqrt(np.outer(np.diag(found), np.diag(found)))
    assert correlation[0, 2] == pytest.approx(0.9 * 0.8, abs=0.15)
    state, moved = steps.PseudoMarginalState(np.zeros(3), 0.0, law.logpdf(np.zeros(3))), 0
    rng = np.random.default_rng(9)
    for _ in range(2000):
        state, info = steps.pseudo_marginal_step(
            m, lambda K, y, rng: law.logpdf(K), state, root, rng
        )
        moved += info.accepted
    assert 0.1 < moved / 2000 < 0.4


def test_the_same_seed_the_same_chains():
    m = model(6)
    for make in (
        lambda rng: pseudo_marginal_chain(
            m, "ep", 0.5 * np.eye(4), samples=2, iterations=8, burn_in=2, rng=rng
        ),
        lambda rng: latent_chain(m, "surrogate", np.eye(4), iterations=8, burn_in=20, rng=rng),
    ):
        one, two, other = (make(np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert np.array_equal(one.theta, two.theta) and one.work == two.work
        assert not np.array_equal(one.theta, other.theta)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "orthant"}, "method must be one of"),
        ({"samples": 0}, "samples must be an integer >= 1"),
        ({"burn_in": -1}, "burn_in must be an integer >= 1"),
        ({"root": np.eye(2)}, "root must have shape \\(4, 4\\)"),
    ],
)
def test_arguments_are_checked(change, message):
    given = {"method": "ep", "root": np.eye(4), "samples": 1, "iterations": 4, "burn_in": 0}
    with pytest.raises(ValueError, match=message):
        pseudo_marginal_chain(model(3), rng=np.random.default_rng(0), **given | change)


def test_models_are_checked():
    X, y = np.zeros((3, 4)), np.ones(3)
    with pytest.raises(ValueError, match="prior must have one length scale, or 4"):
        relevance_model(X, y, PRIOR)
    with pytest.raises(ValueError, match="jitter must be at least 0"):
        relevance_model(X, y, relevance_prior(4), jitter=1.0)
    with pytest.raises(ValueError, match="length_scales must be an integer >= 1"):
        RelevancePrior((1.0, 1.0), (1.0, 1.0), 0)
    with pytest.raises(ValueError, match="scheme must be one of"):
        latent_chain(model(3), "ep", np.eye(4), iterations=4, burn_in=0, rng=None)
