"""The toolbox's Markov chains and their four defects.

Statistical tests state their false-alarm rates; unless they say otherwise it is at most 1e-6 each.
"""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from problems import small_problem
from scipy.special import log_ndtr, ndtr, ndtri
from small import run_rows
from truths import log_half_plane, log_one_factor, reference

from gpcmc.gp import Prior, linear, prior
from gpcmc.inference import infer
from gpcmc.posterior import NOT_CONVERGED, OK, chain_status
from studies.atiya2021.config import check
from studies.atiya2021.defects import CASES, _problem, defects, switches
from studies.atiya2021.experiments import defects as defects_experiment
from studies.atiya2021.experiments import defects_reference
from studies.atiya2021.toolbox import annealing as toolbox_annealing
from studies.atiya2021.toolbox import gpml as toolbox
from studies.atiya2021.toolbox.annealing import (
    EllipticalState,
    HamiltonianState,
    adapt,
    annealed_log_weights,
    elliptical_transition,
    hamiltonian_transition,
    temperatures,
)
from studies.atiya2021.toolbox.gpml import DEFECTS, GpmlMonteCarlo
from studies.atiya2021.toolbox.posterior import MOMENTS, ONCE, TWICE
from studies.common.configuration import read_config
from studies.common.seeds import generator

ROOT = Path(__file__).resolve().parents[2]

SHORT = {"samples": 8, "skip": 5, "burn_in": 3, "annealing_runs": 2, "leapfrog_steps": 7}
BOTH = pytest.mark.parametrize("sampler", ["ess", "hmc"])


def without(*names):
    return tuple(d for d in DEFECTS if d not in names)


def slope(y, f):
    return y * np.exp(-0.5 * f * f - log_ndtr(y * f)) / np.sqrt(2 * np.pi)


def hamiltonian_state(alpha, K, y, inverse_temperature, step):
    c = len(alpha)
    f = alpha @ K
    level = log_ndtr(y * f).sum(axis=1)
    return HamiltonianState(
        alpha, f, slope(y, f) @ K, level, np.full(c, float(inverse_temperature)), np.full(c, float(step)),
        np.full(c, 0.5), np.zeros(c, dtype=np.int64),
    )  # fmt: skip


# --- schedules and recursions


def test_temperatures_are_fourth_powers_after_the_burn_in():
    assert_allclose(temperatures(5, 2), [0, 0, 0, 1 / 256, 1 / 16, 81 / 256, 1])


def test_the_step_shrinks_for_230_transitions():
    step, average, path = np.array([0.01]), np.array([0.0]), []
    for _ in range(400):
        step, average = adapt(step, average, np.array([True]))
        path.append(step[0])
    assert (
        1 - 0.99**229 < 0.9 < 1 - 0.99**230
    )  # the average before transition 231 is the first above
    k = np.arange(1, 401)
    closed = 0.01 * 0.98 ** np.minimum(k, 230) * 1.02 ** np.maximum(k - 230, 0)
    assert_allclose(path, closed, rtol=1e-12)
    assert min(path) == pytest.approx(9.6e-5, rel=0.01)
    assert path[-1] == pytest.approx(2.8e-3, rel=0.01)


def test_the_step_stays_in_its_bounds():
    for average, bound in ((0.0, 1e-6), (1.0, 0.9)):
        step, accepted = np.array([0.01]), np.array([average > 0])
        for _ in range(600):
            step, _ = adapt(step, np.array([average]), accepted)
        assert step[0] == bound


@pytest.mark.parametrize(
    ("switched", "path"), [(("shrinking-step",), 0.98**90), ((), 0.98 * 1.02**89)]
)
def test_the_step_of_a_chain_that_accepts_everything(switched, path):
    # frequencies below 0.01: one proposal in a million is rejected
    method = GpmlMonteCarlo("hmc", 8, skip=9, burn_in=2, leapfrog_steps=2, defects=switched)
    found = method.fit(Prior(1e-4 * np.eye(2)), [1.0, -1.0], rng=default_rng(0)).diagnostics
    assert found["acceptance"] == 1.0 and found["annealing_acceptance"] == 1.0
    assert found["step_size"] == pytest.approx(0.01 * path, rel=1e-12)


def test_the_two_ends_of_a_step_of_temperature():
    rng = default_rng(1)
    inverse_temperature, level = temperatures(6, 0), rng.standard_normal((3, 6))
    left, right = np.zeros(3), np.zeros(3)
    for t in range(1, 6):
        left += (inverse_temperature[t] - inverse_temperature[t - 1]) * level[:, t - 1]
        right += (inverse_temperature[t] - inverse_temperature[t - 1]) * level[:, t]
    assert_allclose(annealed_log_weights(inverse_temperature, level, right=False), left)
    assert_allclose(annealed_log_weights(inverse_temperature, level, right=True), right)
    flat = np.repeat(level[:, :1], 6, axis=1)
    for end in (True, False):
        assert_allclose(annealed_log_weights(inverse_temperature, flat, right=end), flat[:, 0])


# --- transitions, one by one


def one_slice_move(f, nu, uniform, inverse_temperature, y):
    """Murray, Adams and MacKay's Figure 2 for one chain, with the limit on shrinkages."""
    height = inverse_temperature * log_ndtr(y * f).sum() + np.log(1 - uniform[0])
    angle = 2 * np.pi * uniform[1]
    low, high = angle - 2 * np.pi, angle
    for k in range(21):
        new = f * np.cos(angle) + nu * np.sin(angle)
        if inverse_temperature * log_ndtr(y * new).sum() > height:
            return new, k + 1
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = low + uniform[2 + k] * (high - low)
    return f * np.cos(angle) + nu * np.sin(angle), 22


def test_slice_moves_side_by_side_are_those_of_single_chains():
    rng = default_rng(2)
    y = np.where(np.arange(30) % 3, 1.0, -1.0)
    f, nu = 2 * rng.standard_normal((2, 50, 30))
    uniform, inverse_temperature = rng.random((50, 23)), rng.uniform(0, 3, 50)
    level = log_ndtr(y * f).sum(axis=1)
    state = elliptical_transition(EllipticalState(f, level), nu, uniform, inverse_temperature, y)
    singles = [
        one_slice_move(*row, y) for row in zip(f, nu, uniform, inverse_temperature, strict=True)
    ]
    assert_allclose(state.f, [move for move, _ in singles], rtol=1e-10, atol=1e-12)
    counts = [count for _, count in singles]
    assert state.evaluations == sum(counts) and max(counts) > 5
    assert state.off_slice == 0
    assert_array_equal(state.log_likelihood, log_ndtr(y * state.f).sum(axis=1))


def test_the_point_after_21_shrinkages_is_accepted_unseen():
    rng = default_rng(3)
    y, f, nu = np.ones(3), rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    unreachable = np.array([1e9, log_ndtr(f[1]).sum()])
    uniform = rng.random((2, 23))
    state = elliptical_transition(EllipticalState(f, unreachable), nu, uniform, np.ones(2), y)
    angle = 2 * np.pi * uniform[0, 1]
    low, high = angle - 2 * np.pi, angle
    for u in uniform[0, 2:]:
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = low + u * (high - low)
    assert_allclose(state.f[0], f[0] * np.cos(angle) + nu[0] * np.sin(angle), rtol=1e-9)
    assert state.off_slice == 1
    other = one_slice_move(f[1], nu[1], uniform[1], 1.0, y)
    assert_allclose(state.f[1], other[0])
    assert state.evaluations == 22 + other[1]
    assert state.log_likelihood[0] == log_ndtr(state.f[0]).sum()


def one_trajectory(alpha, momentum, u, inverse_temperature, at, step, K, y, steps):
    """Leapfrog and Metropolis for one chain whose energy and gradient were computed at inverse_temperature `at`."""

    def energy(alpha, inverse_temperature):
        return 0.5 * alpha @ K @ alpha - inverse_temperature * log_ndtr(y * (K @ alpha)).sum()

    def gradient(alpha, inverse_temperature):
        return K @ alpha - inverse_temperature * K @ slope(y, K @ alpha)

    new, p, g = alpha.copy(), momentum.copy(), gradient(alpha, at)
    for _ in range(steps):
        p = p - 0.5 * step * g
        new = new + step * p
        g = gradient(new, inverse_temperature)
        p = p - 0.5 * step * g
    change = (
        energy(alpha, at)
        + 0.5 * momentum @ momentum
        - energy(new, inverse_temperature)
        - 0.5 * p @ p
    )
    return (new, True) if np.log(1 - u) < change else (alpha, False)


@pytest.mark.parametrize("at", [0.6, 0.7])
def test_trajectories_side_by_side_are_those_of_single_chains(at):
    rng = default_rng(4)
    gp, y = small_problem()
    K, c = gp.K, 40
    start = np.linalg.solve(np.linalg.cholesky(K).T, rng.standard_normal((12, c))).T
    state = hamiltonian_state(start, K, y, at, 0.3)
    momentum, uniform = rng.standard_normal((c, 12)), rng.random(c)
    new = hamiltonian_transition(state, momentum, uniform, np.full(c, 0.7), K, y, 6)
    singles = [
        one_trajectory(a, p, u, 0.7, at, 0.3, K, y, 6)
        for a, p, u in zip(state.alpha, momentum, uniform, strict=True)
    ]
    accepted = np.array([took for _, took in singles])
    assert 5 < accepted.sum() < 35
    assert_allclose(new.alpha, [a for a, _ in singles], rtol=1e-8, atol=1e-10)
    assert_array_equal(new.accepted, accepted)
    # what the state remembers belongs to it; the temperature only changes with the state
    assert_array_equal(new.inverse_temperature, np.where(accepted, 0.7, at))
    assert_allclose(new.f, new.alpha @ K, atol=1e-10)
    assert_allclose(new.gradient, slope(y, new.f) @ K, atol=1e-10)
    assert_allclose(new.log_likelihood, log_ndtr(y * new.f).sum(axis=1), rtol=1e-10)
    assert_allclose(new.average, np.where(accepted, 0.505, 0.495))


def test_a_proposal_that_overflows_is_rejected():
    K, y = 1e8 * np.eye(2), np.array([1.0, -1.0])
    state = hamiltonian_state(np.zeros((1, 2)), K, y, 1.0, 0.9)
    new = hamiltonian_transition(state, np.ones((1, 2)), np.array([0.5]), np.ones(1), K, y, 200)
    assert new.accepted[0] == 0 and (new.alpha == 0).all()
    posterior = GpmlMonteCarlo("hmc", **SHORT).fit(Prior(K), y, rng=default_rng(0))
    assert posterior.status == NOT_CONVERGED and np.isfinite(posterior.log_evidence)


# --- stationarity: exact draws of the tempered posterior stay exact draws

K2 = np.array([[4.0, 2.4], [2.4, 6.0]])
Y2 = np.array([1.0, -1.0])
HEAT = 0.6


def tempered_draws(count, rng):
    """Exact draws of N(f; 0, K2) prod Phi(y f)^HEAT: prior draws, each kept with that probability."""
    f = rng.standard_normal((12 * count, 2)) @ np.linalg.cholesky(K2).T
    return f[rng.random(len(f)) < np.exp(HEAT * log_ndtr(Y2 * f).sum(axis=1))][:count]


def statistics(f):
    z = np.linalg.solve(np.linalg.cholesky(K2), f.T)
    return np.vstack([z, (z**2).sum(axis=0), log_ndtr(Y2 * f).sum(axis=1)])


def largest_gap(f, exact, alpha=1e-6):
    """Largest distance of distribution functions over its band: above 1 with probability <= alpha."""
    ours, theirs = statistics(f), statistics(exact)
    log_term = np.log(4 * len(ours) / alpha)  # DKW for both samples, Bonferroni over the statistics
    band = np.sqrt(log_term / (2 * len(f))) + np.sqrt(log_term / (2 * len(exact)))
    gaps = []
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.sort(a), np.sort(b)
        points = np.concatenate([a, b])
        cdf = [np.searchsorted(s, points, side="right") / len(s) for s in (a, b)]
        gaps.append(np.max(np.abs(cdf[0] - cdf[1])))
    assert band < 0.03, "the test must see gaps of 3 %"
    return max(gaps) / band


def test_slice_moves_leave_the_tempered_posterior_as_it_is():
    """False alarms: 1e-6."""
    rng = default_rng(5)
    c, L = 20_000, np.linalg.cholesky(K2)
    f = tempered_draws(c, rng)
    state = EllipticalState(f, log_ndtr(Y2 * f).sum(axis=1))
    for _ in range(5):
        nu = rng.standard_normal((c, 2)) @ L.T
        state = elliptical_transition(state, nu, rng.random((c, 23)), np.full(c, HEAT), Y2)
    assert len(state.f) == c and np.mean(np.abs(state.f - f) > 0.1) > 0.8
    assert largest_gap(state.f, tempered_draws(300_000, rng)) < 1


@pytest.mark.parametrize("stale", [False, True])
def test_trajectories_leave_the_tempered_posterior_as_it_is_unless_stale(stale):
    """False alarms: 1e-6. A state that comes from temperature 0 without new energies must fail."""
    rng = default_rng(6)
    c = 20_000
    f = tempered_draws(c, rng)
    state = hamiltonian_state(np.linalg.solve(K2, f.T).T, K2, Y2, 0.0 if stale else HEAT, 0.25)
    for _ in range(5):
        momentum, uniform = rng.standard_normal((c, 2)), rng.random(c)
        state = state._replace(step=np.full(c, 0.25))
        state = hamiltonian_transition(state, momentum, uniform, np.full(c, HEAT), K2, Y2, 5)
    assert np.mean(np.abs(state.f - f) > 0.1) > 0.8
    gap = largest_gap(state.f, tempered_draws(300_000, rng))
    assert gap > 2 if stale else gap < 1


# --- the switches


@BOTH
def test_each_switch_changes_what_it_should_and_nothing_else(sampler):
    gp, y = small_problem()

    def run(switched):
        method = GpmlMonteCarlo(sampler, **SHORT, defects=switched)
        posterior = method.fit(Prior(gp.K), y, rng=default_rng(7))
        return posterior, posterior.predict(gp.K_star, gp.k_star_star).probability

    shipped, p = run(DEFECTS)
    one, p_one = run(without("right-end-point"))
    assert_array_equal(one.annealed_log_likelihood, shipped.annealed_log_likelihood)
    assert_array_equal(p_one, p)
    rise = np.diff(shipped.annealed_log_likelihood) @ np.diff(temperatures(SHORT["samples"], 0))
    assert_allclose(shipped.log_weights - one.log_weights, rise, rtol=1e-9)

    one, p_one = run(without("double-variance"))
    assert_array_equal(one.f, shipped.f)
    assert one.log_evidence == shipped.log_evidence
    assert (np.abs(p_one - 0.5) > np.abs(p - 0.5)).all()

    stale, _ = run(without("stale-energy"))
    # the posterior chain never changes its temperature
    assert_array_equal(stale.f, shipped.f)
    step, _ = run(without("shrinking-step"))
    same = sampler == "ess"
    for found in (stale, step):
        assert (
            np.array_equal(found.annealed_log_likelihood, shipped.annealed_log_likelihood) == same
        )
    assert np.array_equal(step.f, shipped.f) == same
    repaired, _ = run(())
    assert repaired.work == shipped.work


@pytest.mark.parametrize("stale", [True, False])
def test_energies_are_those_of_the_temperature_unless_stale(monkeypatch, stale):
    seen = []

    def watched(state, momentum, uniform, inverse_temperature, *rest):
        seen.append(np.array_equal(state.inverse_temperature, inverse_temperature))
        return hamiltonian_transition(state, momentum, uniform, inverse_temperature, *rest)

    monkeypatch.setattr(toolbox_annealing, "hamiltonian_transition", watched)
    gp, y = small_problem()
    switched = ("stale-energy",) if stale else ()
    GpmlMonteCarlo("hmc", **SHORT, defects=switched).fit(Prior(gp.K), y, rng=default_rng(8))
    assert len(seen) == 11 * 5
    assert all(seen) != stale and seen[0]


@BOTH
def test_the_chains_start_at_zero_and_run_at_their_temperatures(monkeypatch, sampler):
    calls = []
    name = "elliptical_transition" if sampler == "ess" else "hamiltonian_transition"
    original = getattr(toolbox_annealing, name)

    def watched(state, draws, uniform, inverse_temperature, *rest):
        calls.append((state.f.copy(), inverse_temperature.copy()))
        return original(state, draws, uniform, inverse_temperature, *rest)

    monkeypatch.setattr(toolbox_annealing, name, watched)
    gp, y = small_problem()
    posterior = GpmlMonteCarlo(sampler, **SHORT).fit(Prior(gp.K), y, rng=default_rng(9))
    assert (calls[0][0] == 0).all()
    inverse_temperatures = np.array([inverse_temperature for _, inverse_temperature in calls])
    assert (inverse_temperatures[:, 0] == 1).all()
    expected = np.repeat(np.concatenate([np.zeros(3), np.linspace(0, 1, 8) ** 4]), 5)
    assert_array_equal(inverse_temperatures[:, 1:], np.column_stack([expected, expected]))
    # the samples are the states before the 5th, 10th, ... transition after the burn-in
    kept = [calls[k][0][0] for k in range(20, 55, 5)]
    assert_array_equal(posterior.f[:-1], kept)
    assert_allclose(posterior.log_likelihood, log_ndtr(y * posterior.f).sum(axis=1))


def test_slice_moves_are_given_draws_from_the_prior(monkeypatch):
    """The second moments of 13,200 draws, to 5 standard errors, whitened: 3 x 6e-7."""
    seen = []

    def watched(state, nu, *rest):
        seen.append(nu)
        return elliptical_transition(state, nu, *rest)

    monkeypatch.setattr(toolbox_annealing, "elliptical_transition", watched)
    method = GpmlMonteCarlo("ess", 100, skip=40, annealing_runs=2)
    method.fit(Prior(K2), Y2, rng=default_rng(19))
    z = np.linalg.solve(np.linalg.cholesky(K2), np.concatenate(seen).T)
    assert z.shape == (2, 13_200)
    bands = 5 * np.sqrt(np.array([[2, 1], [1, 2]]) / 13_200)
    assert (np.abs(z @ z.T / 13_200 - np.eye(2)) < bands).all()


# --- probabilities


def test_probabilities_are_the_stated_averages():
    gp, y = small_problem()
    posterior = GpmlMonteCarlo("ess", **SHORT).fit(Prior(gp.K), y, rng=default_rng(10))
    noisy = gp.K + 1e-6 * 2.0 * np.eye(12)
    assert_allclose(posterior.L @ posterior.L.T, noisy, rtol=1e-12, atol=1e-14)
    weights = np.linalg.solve(noisy, gp.K_star)
    conditional = gp.k_star_star - np.sum(gp.K_star * weights, axis=0)
    mean = posterior.f @ weights
    total = conditional + np.diag(np.cov(mean.T, bias=True))
    for switched, variance in (((), conditional), (("double-variance",), total)):
        found = replace(posterior, defects=switched).predict(gp.K_star, gp.k_star_star)
        expected = np.mean([ndtr(m / np.sqrt(1 + variance)) for m in mean], axis=0)
        assert_allclose(found.probability, expected, rtol=1e-9)
        assert (found.standard_error > 0).all()


def test_readings_of_a_normal_posterior_are_known_in_closed_form():
    """If the means are normal, `once` and `moments` are right, and `twice` adds their spread again.

    The samples are quantiles, so that the averages are integrals to four digits.
    """
    prior = Prior([[4.0]])
    posterior = GpmlMonteCarlo("ess", **SHORT).fit(prior, [1.0], rng=default_rng(0))
    middle, spread = 0.8, 1.5
    quantiles = ndtri((np.arange(20_000) + 0.5) / 20_000)
    posterior = replace(posterior, f=middle + spread * quantiles[:, None])
    share, variance = 0.5, 4.0 - 0.5**2 * 4.0  # a test value with half of the training value in it
    found = posterior.readings([[share * 4.0]], [4.0])
    mean, between = share * middle, (share * spread) ** 2
    right = ndtr(mean / np.sqrt(1 + variance + between))
    again = ndtr(mean / np.sqrt(1 + variance + 2 * between))
    assert found[ONCE].probability[0] == pytest.approx(right, abs=1e-4)
    assert found[MOMENTS].probability[0] == pytest.approx(right, abs=1e-4)
    assert found[TWICE].probability[0] == pytest.approx(again, abs=1e-4)
    assert again < right - 0.004


@pytest.mark.parametrize(
    ("name", "mean", "covariance", "seed"),
    [*((name, 1.0, 3.0, 21) for name in (TWICE, MOMENTS, ONCE)), (TWICE, 4.0, 4.0, 11)],
)
def test_standard_errors_of_readings_are_those_of_independent_chains(name, mean, covariance, seed):
    """Independent draws. The deviation of 500 probabilities is known to 16 % (5 of its errors).

    Without the variance's share the last one would be a third too short. Capping the effective samples at their number
    makes the standard error a few percent too long.
    """
    rng = default_rng(seed)
    posterior = GpmlMonteCarlo("ess", **SHORT).fit(Prior([[4.0]]), [1.0], rng=rng)
    found = []
    for _ in range(500):
        chain = replace(posterior, f=mean + rng.standard_normal((400, 1)))
        reading = chain.readings([[covariance]], [4.0])[name]
        found.append((reading.probability[0], reading.standard_error[0]))
    p, se = np.array(found).T
    assert 0.86 < np.sqrt(np.mean(se**2)) / np.std(p) < 1.22


@pytest.mark.parametrize(("case", "floor"), [("L", 3.685e-3), ("L3", 9.125e-4)])
def test_the_floor_of_counting_the_posterior_variance_twice(case, floor):
    # a sample as good as any can be: u at the 1000 midpoint quantiles of its posterior, f = x u
    X, y, X_star, _, truth = reference(case)
    x, gp = X[:, 0], prior(linear(), X, X_star)
    grid = np.linspace(-12, 12, 60_001)
    log_density = -0.5 * grid**2 + sum(log_ndtr(s * grid) for s in y * x)
    w = np.exp(log_density - log_density.max())
    w /= w.sum()
    u = np.interp((np.arange(1000) + 0.5) / 1000, np.cumsum(w) - 0.5 * w, grid)
    spread = w @ (grid - w @ grid) ** 2
    twice = [w @ ndtr(a * grid / np.sqrt(1 + a * a * spread)) for a in X_star[:, 0]]
    assert np.mean(np.abs(twice - truth)) == pytest.approx(floor, rel=1e-3)
    posterior = GpmlMonteCarlo("ess", **SHORT).fit(Prior(gp.K), y, rng=default_rng(0))
    posterior = replace(posterior, f=np.outer(u, x))

    def error(switched):
        found = replace(posterior, defects=switched).predict(gp.K_star, gp.k_star_star)
        return np.mean(np.abs(found.probability - truth))

    assert error(DEFECTS) == pytest.approx(floor, rel=0.01)
    assert error(without("double-variance")) < 0.005 * floor


def test_standard_errors_know_that_the_samples_are_correlated():
    """An autoregression of coefficient 0.9 has a mean sqrt(19) = 4.4 times as uncertain."""
    rng = default_rng(20)
    posterior = GpmlMonteCarlo("ess", **SHORT).fit(Prior([[4.0]]), [1.0], rng=rng)
    series = 0.2 * rng.standard_normal((4000, 1))  # so narrow that Phi is nearly linear
    for k in range(1, 4000):
        series[k] += 0.9 * series[k - 1]
    result = replace(posterior, f=series, defects=()).predict([[4.0]], [4.0])
    plain = np.std(ndtr(series)) / np.sqrt(4000)
    assert 3.4 < result.standard_error[0] / plain < 5.4


# --- against truths


@pytest.mark.parametrize(("sampler", "runs", "skip"), [("ess", 20_000, 4), ("hmc", 2000, 40)])
def test_the_mean_weight_is_unbiased_only_from_the_left(sampler, runs, skip):
    """Two patterns, eight temperatures; left: 5 standard errors, a false-alarm rate of 6e-7.

    Hybrid Monte Carlo's steps adapt to what was accepted, which is not exact; here that is not seen.
    """
    truth = np.exp(float(log_half_plane(Y2[0] * Y2[1] * K2[0, 1] / np.sqrt(5 * 7))))
    method = GpmlMonteCarlo(
        sampler, 8, skip=skip, annealing_runs=runs, leapfrog_steps=5, defects=()
    )
    posterior = method.fit(Prior(K2), Y2, rng=default_rng(12))
    for switched in ((), ("right-end-point",)):
        w = np.exp(replace(posterior, defects=switched).log_weights)
        z = (w.mean() - truth) / (w.std() / np.sqrt(runs))
        assert z > 10 if switched else abs(z) < 5


@pytest.mark.parametrize(("sampler", "samples"), [("ess", 150), ("hmc", 100)])
def test_repaired_chains_find_the_one_factor_truth(sampler, samples):
    """Case L. Bands of 5 standard errors, 50 patterns: nominally 3e-5, fewer as errors correlate."""
    X, y, X_star, log_z, truth = reference("L")
    gp = prior(linear(), X, X_star)
    method = GpmlMonteCarlo(sampler, samples, annealing_runs=8, defects=())
    found = infer(method, gp, y, rng=default_rng(13))
    assert found.status == (OK if sampler == "ess" else found.status)
    assert abs(found.log_evidence - log_z) < 5 * found.log_evidence_se < 3
    assert (np.abs(found.probability - truth) < 5 * found.probability_se).all()
    assert found.probability_se.max() < 0.03
    assert np.mean(np.abs(found.probability - truth)) < 0.01


def test_standard_errors_cover():
    """150 groups of three annealed runs, and 60 chains. Lower bounds: 5 binomial deviations."""
    X, y, X_star, _, _ = reference("L")
    x, y, x_star = X[:20, 0], y[:20], X_star[3, 0]
    s, ones = y * x, np.ones(20)
    log_z = float(log_one_factor(s, ones))
    truth = np.exp(float(log_one_factor(np.append(s, x_star), np.ones(21))) - log_z)
    K, k_star = np.outer(x, x), (x * x_star)[:, None]

    method = GpmlMonteCarlo("ess", 12, skip=8, annealing_runs=450, defects=())
    posterior = method.fit(Prior(K), y, rng=default_rng(14))
    covered = 0
    for group in posterior.annealed_log_likelihood.reshape(150, 3, -1):
        one = replace(posterior, annealed_log_likelihood=group)
        covered += abs(one.log_evidence - log_z) < 1.96 * one.log_evidence_se
    assert covered >= 150 * 0.93 - 5 * np.sqrt(150 * 0.93 * 0.07)

    method = GpmlMonteCarlo("ess", 60, skip=3, annealing_runs=2, defects=())
    covered = 0
    for child in default_rng(15).spawn(60):
        result = method.fit(Prior(K), y, rng=child).predict(k_star, [x_star**2])
        covered += abs(result.probability[0] - truth) < 1.96 * result.standard_error[0]
    assert covered >= 60 * 0.93 - 5 * np.sqrt(60 * 0.93 * 0.07)


def test_the_standard_error_of_three_runs():
    gp, y = small_problem()
    posterior = GpmlMonteCarlo("ess", **SHORT).fit(Prior(gp.K), y, rng=default_rng(0))
    log_w = np.array([-3.0, -3.2, -2.9])
    level = np.repeat(log_w[:, None], 8, axis=1)  # a flat path: its weight is its level
    three = replace(posterior, annealed_log_likelihood=level)
    assert three.log_evidence == pytest.approx(np.log(np.mean(np.exp(log_w))), rel=1e-12)
    leave = [np.log(np.mean(np.exp(np.delete(log_w, k)))) for k in range(3)]
    jackknife = np.sqrt(2 / 3 * np.sum((leave - np.mean(leave)) ** 2))
    assert three.log_evidence_se == pytest.approx(jackknife * 4.302653 / 1.959964, rel=1e-6)


# --- records, counts, arguments


@BOTH
def test_the_same_seed_gives_the_same_bits_and_the_record_pickles(sampler):
    gp, y = small_problem()
    method = GpmlMonteCarlo(sampler, **SHORT)
    first, again = (method.fit(Prior(gp.K), y, rng=default_rng(16)) for _ in range(2))
    assert first.log_evidence == again.log_evidence
    stored = pickle.loads(pickle.dumps(first))
    assert_array_equal(
        stored.predict(gp.K_star, gp.k_star_star).probability,
        again.predict(gp.K_star, gp.k_star_star).probability,
    )
    transitions = 11 * 5 * 3
    assert first.work["transitions"] == transitions
    assert first.work["samples"] == 8 and first.work["factorizations"] == 1
    if sampler == "hmc":
        assert first.work["likelihood_evaluations"] == transitions * 7
        assert first.work["matrix_vector_products"] == transitions * 7 * 2
        assert set(first.diagnostics) >= {"acceptance", "annealing_acceptance", "step_size"}
    else:
        assert transitions < first.work["likelihood_evaluations"] < 5 * transitions
        assert first.work["matrix_vector_products"] == transitions
        assert first.diagnostics["off_slice"] == 0


def test_status_follows_the_diagnostics():
    gp, y = small_problem()
    few = GpmlMonteCarlo("ess", 90, skip=10).fit(Prior(gp.K), y, rng=default_rng(17))
    many = GpmlMonteCarlo("ess", 300, skip=10).fit(Prior(gp.K), y, rng=default_rng(17))
    assert few.status == NOT_CONVERGED and few.diagnostics["effective_samples"] <= 90
    assert many.status == OK and many.diagnostics["effective_samples"] > 100
    assert chain_status({"effective_samples": 500.0, "r_hat": 1.06}) == NOT_CONVERGED
    assert chain_status({"effective_samples": 100.0, "r_hat": 1.05}) == OK
    # two halves that differ
    drift = np.linspace(0, 5, 200) + default_rng(0).standard_normal(200)
    assert toolbox._diagnostics(drift[:, None], drift)["r_hat"] > 1.05
    # samples that alternate are not more than there are
    alternating = drift[:80] * np.resize([1.0, -1.0], 80)
    assert toolbox._diagnostics(alternating[:, None], alternating)["effective_samples"] <= 80
    # one latent value that hardly moves, as for every other chain
    f = default_rng(1).standard_normal((400, 30))
    level = default_rng(2).standard_normal(400)
    assert chain_status(toolbox._diagnostics(f, level)) == OK
    f[:, 4] = np.repeat(f[::40, 4], 40)
    assert chain_status(toolbox._diagnostics(f, level)) == NOT_CONVERGED


@BOTH
def test_exchanging_the_classes_exchanges_the_probabilities(sampler):
    # only in law: the mean over eight pairs of runs, to 5 of its standard errors (6e-7)
    gp, y = small_problem()
    method = GpmlMonteCarlo(
        sampler, 40, skip=10, leapfrog_steps=10, defects=without("shrinking-step")
    )
    total, variance = 0.0, 0.0
    for k in range(4):
        for sign in (1.0, -1.0):
            found = infer(method, gp, sign * y, rng=default_rng([18, k, int(sign > 0)]))
            total, variance = total + found.probability / 4, variance + found.probability_se**2 / 16
    assert (np.abs(total - 1.0) < 5 * np.sqrt(variance)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "nuts"}, "sampler must be one of hmc, ess"),
        ({"samples": 7}, "samples must be at least 8"),
        ({"samples": 10.0}, "samples must be an integer"),
        ({"annealing_runs": 1}, "annealing_runs must be at least 2"),
        ({"skip": 0}, "skip must be an integer >= 1"),
        ({"burn_in": 0}, "burn_in must be an integer >= 1"),
        ({"leapfrog_steps": 0}, "leapfrog_steps must be an integer >= 1"),
        ({"defects": ("left",)}, "defects must be one of right-end-point"),
        ({"defects": "stale-energy"}, "defects must be a tuple of names"),
        ({"defects": None}, "defects must be a tuple of names"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        GpmlMonteCarlo(**options)


def test_defects_are_put_in_order():
    method = GpmlMonteCarlo(defects=["stale-energy", "right-end-point", "stale-energy"])
    assert method.defects == ("right-end-point", "stale-energy")


@pytest.mark.parametrize(
    ("K", "y", "rng", "message"),
    [
        (np.eye(2), [1, -1], None, "rng must be"),
        (np.eye(2), [0, 1], 0, "y must hold"),
        ([[1.0, 2.0], [2.0, 1.0]], [1, -1], 0, "prior.K must be positive semidefinite"),
        (np.zeros((2, 2)), [1, -1], 0, "K must not be zero"),
    ],
)
def test_bad_arguments_are_named(K, y, rng, message):
    with pytest.raises(ValueError, match=message):
        GpmlMonteCarlo("ess", **SHORT).fit(
            Prior(np.array(K)), y, rng=None if rng is None else default_rng(rng)
        )


def test_test_covariances_are_checked():
    posterior = GpmlMonteCarlo("ess", **SHORT).fit(Prior(np.eye(2)), [1, -1], rng=default_rng(0))
    with pytest.raises(ValueError, match="K_star must have shape"):
        posterior.predict(np.zeros((3, 1)), [1.0])
    nothing = posterior.predict(np.zeros((2, 1)), [1.0])  # a pattern that nothing is known of
    assert nothing.probability[0] == 0.5 and nothing.standard_error[0] == 0.0


# --- the study


def test_what_is_compared():
    assert list(switches("hmc")) == [
        "all", *(f"without {d}" for d in DEFECTS), *(f"only {d}" for d in DEFECTS), "none"
    ]  # fmt: skip
    assert switches("hmc")["without stale-energy"] == without("stale-energy")
    assert switches("hmc")["only stale-energy"] == ("stale-energy",)
    assert len(switches("ess")) == 6 and switches("ess")["all"] == DEFECTS[:2]


def study(case, sampler, replicates):
    """Lines and timing of the rows of one case, and its reference."""
    given = read_config("tiny", ROOT / "config") | {"seed": 1}
    given["atiya2021"]["defects"] |= {
        **{"skip": 40, "burn_in": 10, "reference_points": 32},
        "grid": [{"samples": 8, "replicates": max(replicates, 3)}],
    }
    config = check(given)
    long = run_rows(defects_reference.run, defects_reference.plan(config), {})
    rows = defects_experiment.plan(config)
    rows = [r for r in rows if (r["case"], r["sampler"]) == (case, sampler)][:replicates]
    found = run_rows(defects_experiment.run, rows, {"reference": long.arrays})
    return found.rows.to_dict("records"), found.timing.to_dict("records"), long.arrays


@pytest.mark.parametrize(
    ("sampler", "replicates", "again"),
    [("ess", 2, tuple(switches("ess"))), ("hmc", 1, ("only stale-energy",))],
)
def test_the_study_pairs_the_sets_of_defects(sampler, replicates, again):
    rows, timing, arrays = study("smooth", sampler, replicates)
    place = arrays["log_evidence/rows"].tolist().index("smooth")
    labels, last = switches(sampler), replicates - 1
    assert len(rows) == len(labels) * replicates
    assert len(timing) == replicates * (4 if sampler == "hmc" else 1)
    by = {(row["switched"], row["replicate"]): row for row in rows}
    one = by["all", last]
    assert (one["alpha"], one["beta"], one["problem"], one["samples"]) == (3.0, 2.0, "rbf", 8)
    assert one["reference"] == float(arrays["log_evidence"][place]) and one["reference_se"] > 0
    assert one["log_evidence_error"] == one["log_evidence"] - one["reference"]
    assert one["ape_percent"] == pytest.approx(
        100 * abs(one["log_evidence_error"] / one["reference"])
    )
    # a row is what its seed and its defects give
    gp, y, _ = _problem("smooth", "1/defects/rbf")
    assert gp.K_star.shape == (100, 50)
    for label in again:
        row = by[label, last]
        assert row["seed"] == f"1/defects/smooth/{sampler}/samples8/replicate{last}"
        method = GpmlMonteCarlo(sampler, 8, defects=labels[label])
        found = infer(method, gp, y, rng=generator(row["seed"]))
        assert found.log_evidence == row["log_evidence"]
        error = np.mean(np.abs(found.probability - arrays["probability"][place]))
        assert row["probability_mae"] == error and row["status"] == found.status
        assert row["work_transitions"] == found.work["transitions"]
    assert by["all", 0]["probability_mae"] == by["without right-end-point", 0]["probability_mae"]
    assert by["all", 0]["log_evidence"] == by["without double-variance", 0]["log_evidence"]


def test_the_study_of_the_linear_problem_has_its_closed_truth():
    rows, _, _ = study("linear", "ess", 1)
    assert len(rows) == 6 and all(row["reference_se"] == 0.0 for row in rows)
    assert -250 < rows[0]["reference"] < -100
    assert np.isnan(CASES["linear"].alpha)


@pytest.mark.parametrize(("case", "sampler"), [("linear", "nuts"), ("P3", "ess")])
def test_unknown_cases_are_named(case, sampler):
    with pytest.raises(ValueError, match="must be one of"):
        defects(case, sampler, {}, "1/data", "1/seed", {})
