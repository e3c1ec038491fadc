"""Elliptical slice sampling, Hamiltonian Monte Carlo and annealed importance sampling.

Statistical tests raise a false alarm with probability 1e-6 at most, unless they say otherwise.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from gpcmc.chains._probit import first_on_slice, log_likelihood_and_slope
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from problems import small_problem
from scipy.special import log_ndtr, logsumexp
from scipy.stats import binom, kstest
from truths import log_half_plane, log_one_factor

from gpcmc.chains import elliptical, hamiltonian
from gpcmc.chains.annealing import anneal, annealed_importance_sampling, jackknife, ladder
from gpcmc.chains.convergence import convergence
from gpcmc.chains.coordinates import whiten
from gpcmc.chains.elliptical import Draws, EllipticalKernel
from gpcmc.chains.hamiltonian import HamiltonianKernel, leapfrog
from gpcmc.chains.kernel import Effort, standard_error
from gpcmc.gp import Prior, derivatives, linear, prior, rbf
from gpcmc.inference import EllipticalSlice, HamiltonianMonteCarlo
from gpcmc.posterior import NOT_CONVERGED, UNTRUSTED

ESS = EllipticalSlice(samples=16_000, burn_in=100, thin=2, temperatures=0)
HMC = HamiltonianMonteCarlo(samples=4000, temperatures=0)
SHORT = {"samples": 160, "burn_in": 3, "thin": 2, "temperatures": 6, "annealing_runs": 5}


def kernels(K, y, size=0.4, steps=4):
    coordinates = whiten(K, y)
    return EllipticalKernel(coordinates), HamiltonianKernel(coordinates, size, steps)


# --- what all share


@pytest.mark.parametrize("singular", [False, True])
def test_coordinates_are_white_and_predict_exactly(singular):
    rng = default_rng(0)
    X, X_star = rng.standard_normal((30, 2)), rng.standard_normal((4, 2))
    kernel = linear() if singular else rbf(0.5, 3.0)
    gp, y = prior(kernel, X, X_star), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    c = whiten(gp.K, y)
    assert len(c.mode) == (2 if singular else 30)
    root = y[:, None] * c.gradient_map
    assert_allclose(root @ root.T, gp.K, atol=1e-10)
    assert_array_equal(c.margin_map, c.gradient_map.T)
    P = c.back.T @ gp.K_star
    assert_allclose(root @ P, gp.K_star, atol=1e-8)
    assert_allclose(P.T @ P, gp.K_star.T @ np.linalg.pinv(gp.K) @ gp.K_star, atol=1e-8)
    # the mode is stationary, and the precision is the curvature there
    f = root @ c.mode
    gradient, W = derivatives(y, f)
    assert_allclose(root.T @ gradient, c.mode, atol=1e-8)
    assert_allclose(root.T @ (W[:, None] * root), np.diag(c.precision), atol=1e-8)


def test_likelihood_and_slope_are_those_of_the_model_in_both_tails():
    z = np.concatenate([np.linspace(-60, 60, 241), [-1e8, -1e4, -36.5, -37.7, 1e8]])
    for batch in (z[:, None], z[None], np.tile(z, (3, 1))):
        level, slope = log_likelihood_and_slope(batch)
        assert_allclose(level, log_ndtr(batch).sum(axis=1), rtol=1e-13, atol=1e-15)
        assert_allclose(slope, derivatives(1.0, batch)[0], rtol=1e-11, atol=1e-300)
    level, slope = log_likelihood_and_slope(np.array([[np.nan, 1.0], [1.0, 1.0]]))
    assert np.isnan(level[0]) and np.isfinite(level[1]) and np.isfinite(slope[1]).all()


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("which", [0, 1])
def test_the_state_is_that_of_its_coordinates_after_every_step(which, temperature):
    gp, y = small_problem(40)
    kernel = kernels(gp.K, y)[which]
    rng = default_rng(1)
    state = kernel.init(kernel.coordinates.draw_prior(7, rng=rng))
    start = state.w
    for moved, effort in kernel.run(state, np.full(30, temperature), rng=rng):
        f = y * (moved.w @ kernel.coordinates.margin_map)
        assert_allclose(moved.log_likelihood, log_ndtr(y * f).sum(axis=1), rtol=1e-10)
        slope = derivatives(y, f)[0] * y
        if which:
            assert_allclose(moved.gradient, slope @ kernel.coordinates.gradient_map, atol=1e-8)
        else:
            assert_allclose(moved.margin, y * f, atol=1e-10)
            assert_allclose(moved.slope, slope, rtol=1e-8)
        assert 0 <= effort.acceptance <= 1
    assert (np.abs(moved.w - start).max(axis=1) > 0.1).all()


# --- elliptical slice sampling


def textbook_slice_move(f, nu, log_uniform, uniform, temperature):
    """Murray, Adams and MacKay (2010), Figure 2, for one chain; the angles tried, of which the last is accepted."""
    log_height = temperature * log_ndtr(f).sum() + log_uniform
    angle = 2 * np.pi * uniform[0]
    low, high = angle - 2 * np.pi, angle
    tried = []
    for u in uniform[1:]:
        tried.append(angle)
        new = f * np.cos(angle) + nu * np.sin(angle)
        if temperature * log_ndtr(new).sum() >= log_height:
            return new, tried
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = low + u * (high - low)
    raise AssertionError("not found")


def drawn(c, chains, rng, log_uniform):
    z = c.draw_prior(chains, rng=rng)
    return Draws(z, z @ c.margin_map, log_uniform, rng.random((chains, elliptical.MAX_POINTS)))


@pytest.mark.parametrize("temperature", [0.2, 1.0])
@pytest.mark.parametrize(("n", "chains"), [(60, 200), (2, 3000)])
def test_slice_moves_are_those_of_the_textbook(temperature, n, chains):
    # of two patterns the likelihood is nearly its tangent plane, and a bound too low would be seen
    gp, y = small_problem(n, alpha=0.7, beta=5.0)
    c = whiten(gp.K, y)
    rng = default_rng(2)
    state = EllipticalKernel(c).init(c.draw_laplace(chains, rng=rng))
    draws = drawn(c, chains, rng, np.log(rng.random(chains)))
    new, info = elliptical.step(state, draws, temperature)
    rows = zip(state.margin, draws.nu, draws.log_uniform, draws.uniform, strict=True)
    moves = [textbook_slice_move(*row, temperature) for row in rows]
    assert_allclose(new.margin, [m for m, _ in moves], rtol=1e-9, atol=1e-10)
    assert_allclose(info.angle, [tried[-1] for _, tried in moves], rtol=1e-9)
    # the tangent plane saves evaluations, and never decides wrongly
    slope = derivatives(1.0, state.margin)[0]
    along_f, along_nu = (np.sum(slope * one, axis=1) for one in (state.margin, draws.nu))
    looked, all_ = 0, 0
    for i, (_, tried) in enumerate(moves):
        plane = (np.cos(tried) - 1) * along_f[i] + np.sin(tried) * along_nu[i]
        level = temperature * (state.log_likelihood[i] + plane)
        above = level >= temperature * state.log_likelihood[i] + draws.log_uniform[i]
        assert info.evaluations[i] == np.count_nonzero(above)
        looked, all_ = looked + info.evaluations[i], all_ + len(tried)
    assert temperature < 1 or n == 2 or looked < 0.75 * all_


def test_a_chain_without_a_point_stays_and_at_temperature_zero_the_first_is_taken():
    gp, y = small_problem()
    c = whiten(gp.K, y)
    rng = default_rng(4)
    state = EllipticalKernel(c).init(c.draw_laplace(3, rng=rng))
    hopeless = drawn(c, 3, rng, np.array([1e9, -0.1, 1e9]))
    new, info = elliptical.step(state, hopeless, 1.0)
    for field in state._fields:
        assert_array_equal(getattr(new, field)[[0, 2]], getattr(state, field)[[0, 2]])
    assert info.angle[0] == 0 and info.angle[1] != 0
    draws = drawn(c, 3, rng, np.zeros(3))
    _, info = elliptical.step(state, draws, 0.0)
    assert_array_equal(info.angle, 2 * np.pi * draws.uniform[:, 0])
    assert (info.evaluations == 1).all()


# --- Hamiltonian Monte Carlo


def test_leapfrog_is_reversible_and_keeps_the_energy_to_second_order():
    gp, y = small_problem(40)
    c = whiten(gp.K, y)
    rng = default_rng(6)
    state = hamiltonian.init(c.draw_laplace(20, rng=rng), c)
    v = rng.standard_normal(state.w.shape)
    end, arrival = leapfrog(state, v, 0.7, np.full((20, 1), 0.3), 5, c)
    back, departure = leapfrog(end, -arrival, 0.7, np.full((20, 1), 0.3), 5, c)
    assert_allclose(back.w, state.w, atol=1e-11)
    assert_allclose(-departure, v, atol=1e-11)
    errors = []
    for halvings in range(3):
        size = np.full((20, 1), 0.1 / 2**halvings)
        far, velocity = leapfrog(state, v, 0.7, size, 10 * 2**halvings, c)
        change = hamiltonian.energy(far, velocity, 0.7) - hamiltonian.energy(state, v, 0.7)
        errors.append(np.abs(change).max())
    ratio = np.array(errors[:-1]) / errors[1:]
    assert_allclose(ratio, 4.0, atol=0.3)


def test_the_gradient_is_that_of_the_likelihood():
    gp, y = small_problem()
    c = whiten(gp.K, y)
    w = c.draw_prior(1, rng=default_rng(7))
    h = 1e-5 * np.eye(len(c.mode))
    up, down = (hamiltonian.init(w + sign * h, c).log_likelihood for sign in (1, -1))
    assert_allclose(hamiltonian.init(w, c).gradient[0], (up - down) / 2e-5, atol=1e-8)


def test_a_trajectory_that_diverges_is_rejected():
    gp, y = small_problem(beta=1e6)
    c = whiten(gp.K, y)
    rng = default_rng(8)
    state = hamiltonian.init(c.draw_laplace(5, rng=rng), c)
    new, info = hamiltonian.step(state, 1.0, 50.0, 300, c, rng=rng)
    assert not info.accepted.any() and (info.acceptance == 0).all()
    assert_array_equal(new.w, state.w)


def test_the_pilot_meets_its_target_or_the_quarter_period():
    rng = default_rng(9)
    gp, y = small_problem(150, alpha=0.5, beta=3.0)
    c = whiten(gp.K, y)
    size = hamiltonian.tune_step_size(c, 2, transitions=200, chains=16, rng=rng)
    assert size < np.pi / 4
    kernel = HamiltonianKernel(c, size, 2)
    start = kernel.init(c.draw_laplace(16, rng=rng))
    moves = [effort.acceptance for _, effort in kernel.run(start, np.ones(200), rng=rng)]
    assert 0.74 < np.mean(moves) < 0.88
    few = whiten(gp.K[:3, :3], y[:3])
    size = hamiltonian.tune_step_size(few, 4, transitions=50, chains=4, rng=rng)
    assert size == pytest.approx(np.pi / 8)


# --- stationarity: f from the prior and y from f, then moves: f remains a draw from the prior


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("temperature", [0.4, 1.0])
def test_moves_leave_the_tempered_posterior_as_it_is(which, temperature):
    """Three patterns; chains start from exact draws of the target, by rejection from the prior.

    Kolmogorov-Smirnov against 80,000 exact draws, for the margins of w, its squared length and the log
    likelihood, at 1e-7 each. With 20,000 chains this sees gaps of 2.5 %.
    """
    X = np.array([[0.0, 0.0], [0.7, 0.1], [-0.4, 1.2]])
    K, y = rbf(1.0, 6.0)(X), np.array([1.0, -1.0, 1.0])
    kernel = kernels(K, y, 0.7, 2)[which]
    c, rng = kernel.coordinates, default_rng(10)

    def exact(count):
        w = c.draw_prior(40 * count, rng=rng)
        odds = np.exp(temperature * log_ndtr(w @ c.margin_map).sum(axis=1))
        return w[rng.random(len(w)) < odds][:count]

    w = exact(20_000)
    assert len(w) == 20_000
    state = kernel.init(w)
    for moved, _ in kernel.run(state, np.full(4, temperature), rng=rng):
        state = moved
    assert np.mean(np.abs(state.w - w).max(axis=1) > 0.3) > 0.8
    ours, theirs = state.w, np.concatenate([exact(20_000) for _ in range(4)])
    for q in (*np.eye(3), None):
        a, b = ((x**2).sum(axis=1) if q is None else x @ q for x in (ours, theirs))
        assert kstest(a, b).pvalue > 1e-7
    levels = [log_ndtr(x @ c.margin_map).sum(axis=1) for x in (ours, theirs)]
    assert kstest(*levels).pvalue > 1e-7


# --- probabilities


def test_standard_errors_see_chains_that_disagree():
    posterior = HMC.fit(Prior([[4.0]]), [1.0], rng=default_rng(15))
    moved = posterior.w.copy()
    moved[0] += 3.0
    before, after = (
        replace(posterior, w=w).predict([[4.0]], [4.0]).standard_error[0]
        for w in (posterior.w, moved)
    )
    assert after > 2 * before
    assert convergence(posterior.log_likelihood, moved)["r_hat"] > 1.05
    # the mean of 16 normal values: Student's t for 15 degrees of freedom
    values = default_rng(16).standard_normal((16, 20_000))
    covered = np.mean(np.abs(values.mean(axis=0)) < 1.96 * standard_error(values))
    assert abs(covered - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 20_000)


def autoregressive(rho, shape, rng):
    """Stationary series along the second axis, of variance one."""
    noise = rng.standard_normal(shape)
    series = noise.copy()
    for k in range(1, shape[1]):
        series[:, k] = rho * series[:, k - 1] + np.sqrt(1 - rho**2) * noise[:, k]
    return series


def test_effective_samples_are_those_of_the_worst_series_from_all_of_its_draws():
    """Autoregressive series have s (1 - rho) / (1 + rho); 15 percent is five times what seeds differ by."""
    rng = default_rng(17)
    level = autoregressive(0.0, (16, 4000), rng)
    latent = autoregressive(0.1, (16, 4000, 51), rng)
    latent[:, :, 33] = autoregressive(0.8, (16, 4000), rng)
    found = convergence(level, latent)
    assert found["effective_samples"] == pytest.approx(64_000 / 9, rel=0.15)
    assert found["r_hat"] < 1.01
    assert (
        found["effective_samples"] == convergence(level, latent[:, :, 33:34])["effective_samples"]
    )
    latent[3, :, 7] += 1.0
    assert convergence(level, latent)["r_hat"] > 1.02


def test_one_chain_is_judged_by_its_halves():
    rng = default_rng(18)
    level, latent = rng.standard_normal((1, 2000)), rng.standard_normal((1, 2000, 3))
    found = convergence(level, latent)
    assert found["r_hat"] < 1.01 and found["effective_samples"] > 1000
    latent[0, :, 1] += np.linspace(-2, 2, 2000)
    assert convergence(level, latent)["r_hat"] > 1.05


# --- annealed importance sampling


def test_the_ladder_and_the_end_of_each_step():
    assert_allclose(ladder(4), [0, 1 / 256, 1 / 16, 81 / 256, 1])

    class Script:
        """A kernel that shows what it was asked for."""

        asked = ()

        def run(self, state, temperatures, *, rng):
            self.asked = temperatures
            for t in temperatures:
                state = state._replace(log_likelihood=np.array([-1.0, -2.0]) * (1 + t))
                yield state, Effort(2, 2, 0.5)

    script = Script()
    start = hamiltonian.HamiltonianState(None, np.array([-5.0, -7.0]), None)
    work = Counter()
    log_w, acceptance = anneal(script, start, np.array([0, 0.2, 0.5, 1.0]), work, rng=None)
    expected = 0.2 * np.array([-5, -7.0]) + np.array([-1, -2.0]) * (0.3 * 1.2 + 0.5 * 1.5)
    assert_allclose(log_w, expected)
    assert_array_equal(script.asked, [0.2, 0.5])
    assert work["transitions"] == 4 and acceptance == 0.5


CLOSED = {
    "half plane": (np.array([[3.0, 1.2], [1.2, 2.0]]), float(log_half_plane(1.2 / np.sqrt(12)))),
    "one factor": (
        np.outer([1.0, -0.5, 2.0, 1.5], [1.0, -0.5, 2.0, 1.5]),
        float(log_one_factor([1.0, -0.5, 2.0, 1.5], [1, 1, 1, 1])),
    ),
}


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("case", list(CLOSED))
@pytest.mark.parametrize("temperatures", [1, 4])
def test_the_mean_weight_is_the_evidence_however_few_temperatures(which, case, temperatures):
    """20,000 runs. The weights lie in [0, 1]; within 5 standard errors (6e-7, normal), of 2 % at most."""
    K, truth = CLOSED[case]
    kernel = kernels(K, np.ones(len(K)), 0.9, 2)[which]
    rng = default_rng(17)
    state = kernel.init(kernel.coordinates.draw_prior(20_000, rng=rng))
    log_w, _ = anneal(kernel, state, ladder(temperatures), Counter(), rng=rng)
    ratio = np.exp(log_w - truth)
    error = ratio.std() / np.sqrt(len(ratio))
    assert error < 0.02 and abs(ratio.mean() - 1) < 5 * error


def test_errors_of_the_evidence_cover_and_dominance_shows():
    """400 estimates by 16 runs: the binomial at 95 %, with 1e-6 on the low side."""
    K, truth = CLOSED["one factor"]
    kernel = kernels(K, np.ones(4))[0]
    rng = default_rng(20)
    state = kernel.init(kernel.coordinates.draw_prior(400 * 16, rng=rng))
    log_w, _ = anneal(kernel, state, ladder(15), Counter(), rng=rng)
    groups = log_w.reshape(400, 16)
    estimate = logsumexp(groups, axis=1) - np.log(16)
    error = np.array([jackknife(g) for g in groups])
    inside = np.count_nonzero(np.abs(estimate - truth) < 1.96 * error)
    assert inside >= binom(400, 0.95).ppf(1e-6)
    # one run outweighs the others by 20 nats: the error is nearly that
    assert 15 < jackknife(np.array([0.0] + [-20.0] * 15)) < 25
    gp, y = small_problem(60, beta=1e4)
    found = annealed_importance_sampling(
        gp.K, y, transition=ESS, temperatures=2, runs=32, rng=default_rng(21)
    )
    assert found.status == UNTRUSTED and found.log_evidence_se > 0.5


# --- bookkeeping


def test_work_is_what_was_done(monkeypatch):
    counted = Counter()

    def rows(margin):
        counted["rows"] += len(margin)
        return log_likelihood_and_slope(margin)

    def points(*given):
        found = first_on_slice(*given)
        counted["rows"] += int(found[1].sum())
        return found

    for module in (elliptical, hamiltonian):
        monkeypatch.setattr(module, "log_likelihood_and_slope", rows)
    monkeypatch.setattr(elliptical, "first_on_slice", points)
    gp, y = small_problem()
    for method in (EllipticalSlice(**SHORT), HamiltonianMonteCarlo(**SHORT, tuning=4)):
        counted.clear()
        work = method.fit(Prior(gp.K), y, rng=default_rng(25)).work
        pilot = 4 * 16 if isinstance(method, HamiltonianMonteCarlo) else 0
        assert work["transitions"] == pilot + 16 * (3 + 10) + 5 * 5
        assert work["samples"] == 16 * 5
        assert work["likelihood_evaluations"] == counted["rows"]
        steps = work["transitions"]
        starts = 16 + 5
        expected = 2 * work["likelihood_evaluations"] - starts if pilot else steps + starts
        assert work["matrix_vector_products"] == expected
        assert all(type(v) is int for v in work.values()) and work["factorizations"] > 2


@pytest.mark.parametrize("cls", [EllipticalSlice, HamiltonianMonteCarlo])
def test_annealed_runs_come_after_the_chains(cls):
    method = cls(**SHORT)
    gp, y = small_problem()
    a = method.fit(Prior(gp.K), y, rng=default_rng(26))
    assert a.w.shape == (16, 5, 12) and a.status == NOT_CONVERGED
    assert a.log_evidence == pytest.approx(logsumexp(a.log_weights) - np.log(5))
    without = replace(method, temperatures=0).fit(Prior(gp.K), y, rng=default_rng(26))
    assert without.log_evidence is None and without.log_evidence_se is None
    assert_array_equal(without.w, a.w)
