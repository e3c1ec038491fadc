"""Chains whose proposals a pilot shaped, and the sufficient update, against quadrature and exact stationarity.

The transitions that are the library's are tested there (tests/gpcmc/test_hyperparameter_chains.py). A band of
Dvoretzky, Kiefer and Wolfowitz at 1e-6 holds for any number of transitions from exact draws. Shares of chains are
compared with quadrature within 5.5 standard errors, which is about 1e-6 too. Seeds are fixed.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from labelled_places import (
    LARGEST_ERROR,
    PRIOR,
    X_TWO,
    Y_TWO,
    assert_quantiles_of_places,
    quadrature,
)
from planted import Mutant, turns_red
from scipy.stats import chi2, gamma, multivariate_normal, norm
from truths import band, distance

from gpcmc.chains import hyperparameter_steps as steps
from gpcmc.chains.hyperparameters import model_of
from studies.filippone2014 import tuned_chains
from studies.filippone2014.problems import LATENT, PSEUDO_MARGINAL
from studies.filippone2014.tuned_chains import (
    UPDATES,
    CountedEstimator,
    latent_chain,
    latent_density,
    pilot,
    pseudo_marginal_chain,
    sufficient_step,
)

EACH = replace(PRIOR, length_scales=3)
JITTER = 1e-6


def model(n=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return model_of(X, np.where(rng.random(n) < 0.5, 1.0, -1.0), EACH, jitter=JITTER)


# --- posteriors


@pytest.mark.parametrize("relevance", [False, True])
@pytest.mark.parametrize("scheme", [*PSEUDO_MARGINAL, *LATENT])
def test_chains_have_the_posterior(scheme, relevance):
    prior = replace(PRIOR, length_scales=2 if relevance else 1)
    m = model_of(X_TWO, Y_TWO, prior, jitter=JITTER)
    root = 1.2 * np.eye(1 + prior.length_scales)
    chains = []
    for k in range(8):
        rng = np.random.default_rng([11, k])
        if scheme in PSEUDO_MARGINAL:
            given = {"samples": 4, "iterations": 220 if relevance else 110, "burn_in": 30}
            chains.append(pseudo_marginal_chain(m, scheme, root, rng=rng, **given))
        else:
            given = {"iterations": 2200 if scheme == "sufficient" else 700, "burn_in": 200}
            chains.append(latent_chain(m, scheme, root, rng=rng, **given))
    assert_quantiles_of_places(np.stack([chain.theta for chain in chains]))


@pytest.mark.parametrize("length_scales", [1, 2])
def test_the_truth_moves_when_the_likelihood_does(length_scales):
    """Prior and posterior differ by more than the test above lets pass."""
    _, weight, evidence = quadrature(length_scales)
    posterior = weight * np.exp(evidence)
    order = np.argsort(evidence)
    before, after = (np.cumsum(w[order]) / w.sum() for w in (weight, posterior))
    assert np.max(np.abs(before - after)) > 5.5 * LARGEST_ERROR


# --- the sufficient update


def test_the_sufficient_update_keeps_the_joint_law():
    """Theta and nu from the model; theta then has the prior for good, and nu is normal."""
    n, R, transitions = 8, 1500, 4
    m, rng = model(n), np.random.default_rng(21)
    root = np.diag([1.2, 0.5, 0.5, 0.5]) + 0.2 * np.tri(4, k=-1)
    theta, nu, moved = np.empty((R, 4)), np.empty((R, n)), 0
    for r in range(R):
        state = steps.whitened_state(m, m.prior.draw(rng), rng.standard_normal(n))
        f = state.f
        for _ in range(transitions):
            state, info = sufficient_step(m, state, root, rng)
            moved += info.accepted
        assert state.f is f
        np.testing.assert_allclose(f, state.L @ state.nu, atol=1e-6)
        theta[r], nu[r] = state.theta, state.nu
    assert moved > 0.05 * transitions * R
    for k in range(4):
        cdf = gamma(PRIOR.shape[min(k, 1)], scale=1 / PRIOR.rate[min(k, 1)]).cdf
        assert distance(np.exp(theta[:, k]), cdf) < band(R)
    assert distance(nu.ravel()[:: n // 2], norm.cdf) < band(2 * R)
    assert distance((nu**2).sum(axis=1), chi2(n).cdf) < band(R)


def test_the_density_of_f_written_out():
    m, rng = model(5), np.random.default_rng(3)
    f, values = rng.standard_normal(5), []
    for theta in np.log([[2.0, 0.5, 1.0, 2.0], [1.0, 1.0, 1.0, 0.3]]):
        K = m.covariance(theta)
        known = multivariate_normal(np.zeros(5), K).logpdf(f)
        values.append(latent_density(steps.lower_root(K), f) - known)
    assert values[0] == pytest.approx(values[1], abs=1e-7)
    assert latent_density(np.zeros((5, 5)), f) == -np.inf


def test_the_sufficient_acceptance_is_the_ratio_of_joint_densities():
    """The density of theta and f, written out with inverses; that of y is the same."""
    m, rng, root = model(5), np.random.default_rng(31), 0.2 * np.eye(4)
    state = steps.whitened_state(m, np.log([2.0, 0.8, 1.2, 1.0]), rng.standard_normal(5))
    normals = rng.standard_normal(4)

    def log_joint(one):
        law = multivariate_normal(np.zeros(5), m.covariance(one.theta))
        return m.prior.log_density(one.theta) + law.logpdf(one.f)

    def update(uniform):
        scripted = SimpleNamespace(standard_normal=lambda size: normals, random=lambda: uniform)
        return sufficient_step(m, state, root, scripted)

    proposal, info = update(1e-300)
    assert info.accepted and np.array_equal(proposal.f, state.f)
    ratio = np.exp(log_joint(proposal) - log_joint(state))
    assert update(0.9999 * ratio)[1].accepted and not update(1.0001 * ratio)[1].accepted


def test_estimates_are_counted():
    m, work = model(4), CountedEstimator("ep", 3)
    K = m.covariance(np.zeros(4))
    values = [work(K, m.y, np.random.default_rng(k)) for k in (0, 0, 1)]
    assert values[0] == values[1] != values[2]
    assert work.work["ep_estimates"] == 3 and work.work["sweeps"] > 3


@pytest.mark.parametrize("scheme", LATENT)
def test_updates_of_latent_chains_are_repeated_with_the_tuned_proposal(scheme, monkeypatch):
    """Before the draws both updates are made once an iteration, with the scale on trial; then so often as was asked."""
    seen, slices, own, slice_ = [], [], UPDATES[scheme], tuned_chains.slice_latent

    def update(m, state, root, rng):
        seen.append(root)
        return own(m, state, root, rng)

    def sliced(m, state, rng, updates=1):
        slices.append((len(seen), updates))
        return slice_(m, state, rng, updates)

    def trial(transition, burn_in):
        for _ in range(burn_in):
            transition(0.5)
        return 0.3

    monkeypatch.setitem(UPDATES, scheme, update)
    monkeypatch.setattr(tuned_chains, "slice_latent", sliced)
    monkeypatch.setattr(tuned_chains, "adapt", trial)
    root, rng = np.diag([1.0, 0.5, 0.25, 0.5]), np.random.default_rng(6)
    found = latent_chain(model(5), scheme, root, repeats=3, iterations=4, burn_in=7, rng=rng)
    assert found.work == {scheme: 12}, "without those of burn-in"
    np.testing.assert_array_equal(seen, [0.5 * root] * 7 + [0.3 * root] * 12)
    # three updates of theta, then three of f
    assert slices == [*((k, 1) for k in range(1, 8)), *((k, 3) for k in (10, 13, 16, 19))]


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
    "test",
    [
        test_the_sufficient_acceptance_is_the_ratio_of_joint_densities,
        test_the_density_of_f_written_out,
    ],
)
def test_the_sufficient_update_without_the_determinant_turns_tests_red(test, monkeypatch):
    text = "- np.sum(np.log(L.diagonal()))"
    turns_red(Mutant(latent_density, text, "", test), monkeypatch)
