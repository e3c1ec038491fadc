"""Control variables. Each statistical assertion fails a right program with probability below 1e-6."""

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi2, norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from truths import band, distance

from gpcmc.chains import control_variables
from gpcmc.chains import controls as controls_module
from gpcmc.chains.controls import init, make_controls, run, step
from gpcmc.chains.coordinates import whiten
from gpcmc.chains.placement import Placement, controls_needed, trace_and_gradient
from gpcmc.covariance.kernels import rbf_parameters
from gpcmc.gp import Prior, linear, prior, rbf
from gpcmc.inference import ControlVariables, ConvergenceError, infer
from gpcmc.posterior import OK, STOPPED


def problem(n=20, d=2, alpha=1.0, beta=3.0, seed=0, test=5):
    """Return a prior with its kernel and inputs, and labels drawn from the model."""
    rng = default_rng(seed)
    X, X_star = rng.standard_normal((n, d)), rng.standard_normal((test, d))
    blocks = prior(rbf(alpha, beta), X, X_star)
    f = np.linalg.cholesky(blocks.K + 1e-10 * np.eye(n)) @ rng.standard_normal(n)
    return blocks, np.where(f + rng.standard_normal(n) > 0, 1.0, -1.0)


def place(blocks, m, free=True):
    placement = Placement(
        blocks.K, blocks.kernel, blocks.X if free else None, line_searches=50, evaluations=1000
    )
    while len(placement) < m and placement.add():
        placement.settle()
    return placement


def fixed(K):
    return Placement(K, None, None, line_searches=1, evaluations=1)


# --- placement


@pytest.mark.parametrize("length_scale", [np.array(0.8), np.array([0.5, 1.0, 2.0])])
def test_the_trace_and_its_gradient(length_scale):
    rng = default_rng(1)
    X, U = rng.standard_normal((12, 3)), rng.standard_normal((4, 3))
    kernel = RBF(length_scale if length_scale.ndim else float(length_scale))
    x, u = X / length_scale, U / length_scale
    share, gradient = trace_and_gradient(u, x)
    K_xu = kernel(X, U)
    left = kernel(X) - K_xu @ np.linalg.solve(kernel(U), K_xu.T)
    assert share == pytest.approx(np.trace(left) / len(X), abs=1e-12)
    for j in np.ndindex(U.shape):
        h = np.zeros_like(U)
        h[j] = 1e-5
        ahead, behind = (trace_and_gradient(u + e, x)[0] for e in (h, -h))
        assert gradient[j] == pytest.approx((ahead - behind) / 2e-5, abs=1e-8)


def test_control_inputs_that_coincide_leave_all_open():
    X = default_rng(2).standard_normal((6, 2))
    share, gradient = trace_and_gradient(X[[0, 0]] + [[0.0, 0.0], [1e-5, 0.0]], X)
    assert share == 1.0 and not gradient.any()


@pytest.mark.parametrize("free", [True, False])
def test_placement_covariances_are_the_kernels(free):
    blocks, _ = problem(n=30)
    placement = place(blocks, 4, free)
    K_ux, K_uu = placement.blocks()
    left = blocks.K - K_ux.T @ np.linalg.solve(K_uu, K_ux)
    assert_allclose(placement.remainder(), left, atol=1e-10)
    assert placement.share() == pytest.approx(np.trace(left) / np.trace(blocks.K), abs=1e-12)
    if free:
        U = placement.inputs * blocks.kernel.k2.length_scale
        assert_allclose(K_ux, blocks.kernel(U, blocks.X), atol=1e-13)
        assert_allclose(K_uu, blocks.kernel(U), atol=1e-13)
    else:
        assert placement.evaluations == 0


def test_free_inputs_leave_less_open_than_training_inputs():
    blocks, _ = problem(n=60, alpha=1.0)
    free, among = place(blocks, 6), place(blocks, 6, free=False)
    assert free.share() < 0.95 * among.share()
    before = free.share()
    free.settle()
    assert free.share() <= before + 1e-12


def test_the_least_number_of_controls_is_a_bound():
    for alpha in (0.3, 1.0, 3.0):
        blocks, _ = problem(n=40, alpha=alpha)
        placement = place(blocks, 1)
        while placement.share() > 0.1:
            placement.add()
            placement.settle()
        assert controls_needed(blocks.K, 0.1) <= len(placement)


def test_the_input_that_is_added_lowers_the_trace_most():
    blocks, _ = problem(n=25, alpha=0.7)
    placement = place(blocks, 3, free=False)
    K_ux, K_uu = placement.blocks()
    left = blocks.K - K_ux.T @ np.linalg.solve(K_uu, K_ux)
    assert_allclose(placement.remainder(), left, atol=1e-10)
    assert placement.share() == pytest.approx(np.trace(left) / np.trace(blocks.K), abs=1e-12)
    chosen = list(placement.chosen)
    shares = []
    for j in range(25):
        placement.chosen = [*chosen, j]
        shares.append(np.inf if j in chosen else placement.share())
    placement.chosen = chosen.copy()
    placement.add()
    assert placement.chosen == [*chosen, int(np.argmin(shares))]


def test_nothing_is_added_where_the_controls_already_know_the_function():
    rng = default_rng(3)
    X = rng.standard_normal((8, 2))[[0, 1, 2, 0, 1, 2, 0, 0]]
    blocks = prior(rbf(1, 1), X, X[:1])
    for order in (None, rng):
        placement = fixed(blocks.K)
        assert [placement.add(order) for _ in range(4)] == [True, True, True, False]
        assert len({tuple(X[j]) for j in placement.chosen}) == 3
    assert not fixed(np.zeros((3, 3))).add()


def test_the_least_number_of_controls():
    assert controls_needed(np.eye(10), 0.1) == 9
    assert controls_needed(np.ones((5, 5)), 0.1) == 1
    assert controls_needed(np.zeros((3, 3)), 0.1) == 0
    assert controls_needed(np.diag([6.0, 3.0, 1.0]), 0.101) == 2


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (RBF(0.5), (1.0, 0.5)),
        (ConstantKernel(3.0) * RBF(0.5), (3.0, 0.5)),
        (RBF([0.5, 2.0]) * ConstantKernel(3.0), (3.0, [0.5, 2.0])),
        (Matern(1.0), None),
        (ConstantKernel(3.0) * Matern(1.0), None),
        (RBF(1.0) * RBF(1.0), None),
        (RBF(1.0) + WhiteKernel(), None),
        (linear(), None),
        (None, None),
    ],
)
def test_which_kernels_are_an_rbf(kernel, expected):
    found = rbf_parameters(kernel)
    assert (found is None) == (expected is None)
    if expected:
        assert found[0] == pytest.approx(expected[0])
        assert_allclose(found[1], expected[1])


# --- the conditionals

CASES = pytest.mark.parametrize(
    ("n", "m", "free"), [(6, 3, True), (6, 3, False), (2, 4, True), (5, 5, False), (6, 1, True)]
)


def controls_of(n, m, free=True):
    blocks, y = problem(n=n, alpha=1.5, seed=4)
    if n < m:  # more controls than latent values
        U = default_rng(5).standard_normal((m, 2))
        K_ux, K_uu = blocks.kernel(U, blocks.X), blocks.kernel(U)
    else:
        K_ux, K_uu = place(blocks, m, free).blocks()
    coordinates = whiten(blocks.K, y)
    return blocks.K, y, K_ux, K_uu, coordinates, make_controls(K_ux, K_uu, coordinates)


@CASES
def test_conditionals_against_brute_force(n, m, free):
    K, y, K_ux, K_uu, coordinates, controls = controls_of(n, m, free)
    L, Q = np.linalg.cholesky(K_uu), np.linalg.inv(K_uu)
    f_c = default_rng(6).standard_normal(m)
    u = np.linalg.solve(L, f_c)
    # f given f_c
    assert_allclose(u @ controls.mean_map, y * (K_ux.T @ Q @ f_c), atol=1e-8)
    left = y[:, None] * (K - K_ux.T @ Q @ K_ux) * y
    assert_allclose(controls.noise_map.T @ controls.noise_map, left, atol=2e-8)
    for i in range(m):
        # f_c,i given the others: moving along d_i moves nothing else, by the conditional deviation
        deviation = 1 / np.sqrt(Q[i, i])
        assert_allclose(L @ controls.directions[i], deviation * np.eye(m)[i], atol=1e-10)
        others = np.delete(np.arange(m), i)
        mean = -Q[i, others] @ f_c[others] / Q[i, i]
        assert f_c[i] - deviation * (controls.directions[i] @ u) == pytest.approx(mean, abs=1e-9)
        moved = (u + controls.directions[i]) @ controls.mean_map - u @ controls.mean_map
        assert_allclose(controls.shifts[i], moved, atol=1e-10)
    # f_c given f
    P = controls.projection
    assert_allclose(P.T @ coordinates.margin_map, np.linalg.solve(L, K_ux) * y, atol=1e-8)
    assert_allclose(
        controls.control_noise @ controls.control_noise.T, np.eye(m) - P.T @ P, atol=2e-8
    )


def test_conditionals_of_a_singular_covariance():
    X = default_rng(7).standard_normal((9, 3))
    K, y = X @ X.T, np.where(X[:, 0] > 0, 1.0, -1.0)
    placement = fixed(K)
    assert [placement.add() for _ in range(4)] == [True, True, True, False]
    controls = make_controls(*placement.blocks(), whiten(K, y))
    assert np.abs(controls.noise_map).max() < 1e-6
    assert_allclose(controls.mean_map.T @ controls.mean_map, y[:, None] * K * y)


# --- the chain


def fresh(state, controls):
    """What the caches of a state must be."""
    assert_allclose(state.mean, state.u @ controls.mean_map, atol=1e-11)
    assert_allclose(
        state.log_likelihood, log_ndtr(state.margin).sum(axis=1), rtol=1e-12, atol=1e-13
    )


@CASES
def test_a_step_line_by_line(n, m, free):
    _, _, _, _, coordinates, controls = controls_of(n, m, free)
    rng = default_rng(8)
    state = init(coordinates.draw_prior(50, rng=rng), controls, coordinates, rng=rng)
    fresh(state, controls)
    taken = 0
    for k in range(3 * m):
        i = k % m
        xi, log_uniform = rng.standard_normal(50), np.log(rng.random(50))
        noise = rng.standard_normal((50, len(controls.noise_map))) @ controls.noise_map
        new, accepted = step(state, i, xi, noise, log_uniform, controls)
        d = controls.directions[i]
        u = state.u + np.outer(xi - state.u @ d, d)  # the component along d_i becomes xi
        assert_allclose(u @ d, xi, atol=1e-12)
        margin = u @ controls.mean_map + noise
        ratio = log_ndtr(margin).sum(axis=1) - log_ndtr(state.margin).sum(axis=1)
        assert_array_equal(accepted, log_uniform < ratio)
        rows = accepted[:, None]
        assert_allclose(new.u, np.where(rows, u, state.u), atol=1e-12)
        assert_allclose(new.margin, np.where(rows, margin, state.margin), atol=1e-11)
        fresh(new, controls)
        taken += accepted.sum()
        state = new
    assert 0 < taken < 150 * m


def test_a_refused_proposal_changes_nothing():
    _, _, _, _, coordinates, controls = controls_of(6, 3)
    rng = default_rng(9)
    state = init(coordinates.draw_prior(4, rng=rng), controls, coordinates, rng=rng)
    copies = [a.copy() for a in state]
    new, accepted = step(state, 1, np.zeros(4), np.full((4, 6), -40.0), np.zeros(4), controls)
    assert not accepted.any()
    new, accepted = step(new, 1, np.ones(4), np.zeros((4, 6)), np.full(4, 50.0), controls)
    assert not accepted.any()
    for a, b in zip(new, copies, strict=True):
        assert_array_equal(a, b)
    new, accepted = step(
        state, 1, np.ones(4), np.zeros((4, 6)), np.array([-1e9, 1e9, 1e9, 1e9]), controls
    )
    assert accepted.tolist() == [True, False, False, False]
    for a, b in zip(new, copies, strict=True):  # the others stay
        assert_array_equal(a[1:], b[1:])
        assert (a[0] != b[0]).any()


def test_caches_hold_over_a_run_and_every_proposal_has_its_own_noise():
    _, _, _, _, coordinates, controls = controls_of(6, 3)
    rng = default_rng(10)
    state = init(coordinates.draw_prior(8, rng=rng), controls, coordinates, rng=rng)
    noises = []
    for new, hits in run(state, controls, 400, rng=rng):
        assert hits.shape == (3,) and (hits <= 8).all()
        noises.append(new.margin - new.mean)
    assert len(noises) == 400
    fresh(new, controls)
    # accepted noise is never met again after the chain has left it
    noise = np.round(np.stack(noises), 9)[:, :, 0]
    for chain in noise.T:
        changes = 1 + np.count_nonzero(np.diff(chain))
        assert len(np.unique(chain)) == changes > 20


@pytest.mark.parametrize(
    ("n", "m", "free"), [(2, 1, True), (2, 2, True), (2, 3, True), (3, 2, False)]
)
def test_the_posterior_is_stationary(monkeypatch, n, m, free):
    """Draw f and f_c from the prior and y given f; after sweeps given y, the prior must still hold.

    Band of Dvoretzky, Kiefer and Wolfowitz for each statistic; gap in distribution seen: 0.03.
    """
    monkeypatch.setattr(
        controls_module, "BLOCK", 10**6
    )  # many proposals in a block, as other runs have
    R, sweeps, beta = 60_000, 4, 6.0
    rng = default_rng([11, n, m])
    X, U = rng.standard_normal((n, 2)), rng.standard_normal((m, 2))
    U = U if free else X[:m]
    kernel = rbf(1.2, beta)
    K, K_ux, K_uu = kernel(X), kernel(U, X), kernel(U)
    f = rng.standard_normal((R, n)) @ np.linalg.cholesky(K).T
    y = np.where(rng.random((R, n)) < ndtr(f), 1.0, -1.0)
    white_f, white_u, residual, moved = [], [], [], 0
    inverse, L = np.linalg.inv(np.linalg.cholesky(K)), np.linalg.cholesky(K_uu)
    # whitened f, where f_c leaves it open at all
    left = K - K_ux.T @ np.linalg.solve(K_uu, K_ux)
    values, vectors = np.linalg.eigh(left)
    open_ = values > 1e-9
    for pattern in np.unique(y, axis=0):
        mine = f[(y == pattern).all(axis=1)]
        coordinates = whiten(K, pattern)
        controls = make_controls(K_ux, K_uu, coordinates)
        start = init(mine @ coordinates.back, controls, coordinates, rng=rng)
        *_, (state, hits) = run(start, controls, sweeps, rng=rng)
        moved += hits.sum()
        white_f.append((state.margin * pattern) @ inverse.T)
        white_u.append(state.u)
        mean = (state.u @ L.T) @ np.linalg.solve(K_uu, K_ux)
        residual.append(
            ((state.margin * pattern) - mean) @ vectors[:, open_] / np.sqrt(values[open_])
        )
    white_f, white_u, residual = map(np.concatenate, (white_f, white_u, residual))
    assert moved > 0.1 * R * m
    assert 2 * band(R) < 0.03
    for values in (white_f, white_u, residual):
        for column in values.T:
            assert distance(column, norm.cdf) < band(R)
        if values.shape[1]:
            assert distance(np.sum(values**2, axis=1), chi2(values.shape[1]).cdf) < band(R)
    joint = np.hstack([white_u, residual])
    assert distance(np.sum(joint**2, axis=1), chi2(joint.shape[1]).cdf) < band(R)
    assert distance(joint.sum(axis=1) / np.sqrt(joint.shape[1]), norm.cdf) < band(R)


# --- adaptation, limits, records


def test_adaptation_adds_an_input_every_second_round(monkeypatch):
    blocks, y = problem(n=40)
    method = ControlVariables(iterations=40, burn_in=0, adaptation_rounds=6, chains=2)
    placed = ControlVariables(iterations=40, burn_in=0, adaptation_rounds=0, chains=2)
    base = infer(placed, blocks, y, rng=default_rng(17))
    assert base.work.get("adaptation_rounds", 0) == 0 and base.diagnostics["adapted"] == 0.0
    monkeypatch.setattr(control_variables, "LEAST_ACCEPTANCE", 1e9)
    never = infer(method, blocks, y, rng=default_rng(17))
    assert never.work["adaptation_rounds"] == 6 and never.diagnostics["adapted"] == 0.0
    assert never.diagnostics["controls"] == base.diagnostics["controls"] + 3
    assert never.diagnostics["trace_share"] < base.diagnostics["trace_share"]
    capped = ControlVariables(
        iterations=40,
        burn_in=0,
        adaptation_rounds=6,
        chains=2,
        max_controls=base.work["controls"] + 1,
    )
    result = infer(capped, blocks, y, rng=default_rng(17))
    assert result.work["controls"] == capped.max_controls and result.status != STOPPED
    monkeypatch.setattr(control_variables, "LEAST_ACCEPTANCE", -1.0)
    always = infer(method, blocks, y, rng=default_rng(17))
    assert always.work["adaptation_rounds"] == 2 and always.diagnostics["adapted"] == 1.0
    assert always.diagnostics["controls"] == base.diagnostics["controls"]
    assert always.work["controls"] == always.diagnostics["controls"]


def test_adaptation_ends_when_every_control_is_accepted_often_enough():
    # a likelihood that hardly speaks accepts all
    blocks, y = problem(n=30, beta=1e-3)
    result = infer(ControlVariables(iterations=400), blocks, y, rng=default_rng(18))
    assert result.work["adaptation_rounds"] == 2 and result.diagnostics["adapted"] == 1.0
    assert result.diagnostics["least_acceptance"] > 0.8
    assert result.diagnostics["trace_share"] <= 0.1


@pytest.mark.parametrize(("factor", "adapted"), [(0.5, 1.0), (2.0, 0.0)])
def test_the_threshold_of_acceptance_is_over_the_number_of_controls(monkeypatch, factor, adapted):
    blocks, y = problem(n=30)
    method = ControlVariables(iterations=3000, adaptation_rounds=3, adaptation_iterations=1500)
    monkeypatch.setattr(control_variables, "LEAST_ACCEPTANCE", -1.0)
    found = infer(method, blocks, y, rng=default_rng(27)).diagnostics
    assert found["controls"] >= 4
    threshold = factor * found["least_acceptance"] * found["controls"]
    monkeypatch.setattr(control_variables, "LEAST_ACCEPTANCE", threshold)
    again = infer(method, blocks, y, rng=default_rng(27))
    assert again.diagnostics["adapted"] == adapted
    assert again.work["adaptation_rounds"] == (2 if adapted else 3)


def test_work_is_counted_and_nothing_is_factorized_in_a_sweep():
    blocks, y = problem(n=30)
    work = [
        infer(
            ControlVariables(iterations=k, burn_in=7, thin=2, chains=3, adaptation_rounds=0),
            blocks,
            y,
            rng=default_rng(19),
        ).work
        for k in (60, 120)
    ]
    m = work[0]["controls"]
    for k, one in zip((60, 120), work, strict=True):
        assert one["transitions"] == k + 3 * 7
        assert one["proposals"] == one["likelihood_evaluations"] == m * (k + 3 * 7)
        assert one["samples"] == k / 2
    assert work[0]["factorizations"] == work[1]["factorizations"]


def assert_stopped(result):
    assert result.status == STOPPED
    assert result.probability.shape == result.probability_se.shape == (0,)
    assert result.log_evidence is None and result.log_evidence_se is None
    assert "proposals" not in result.work


def test_a_problem_that_needs_too_many_controls_stops_before_it_begins():
    blocks, y = problem(n=300, d=256, alpha=5.0, beta=1.0)
    result = infer(ControlVariables(), blocks, y, rng=default_rng(20))
    assert_stopped(result)
    assert result.diagnostics["controls_needed"] > 250
    assert result.work["placement_evaluations"] == result.work["controls"] == 0
    posterior = ControlVariables().fit(Prior(blocks.K), y, rng=default_rng(20))
    assert posterior.status == STOPPED and posterior.log_evidence is None
    with pytest.raises(ConvergenceError, match="needs at least 2.. control inputs.* is 200"):
        posterior.predict(blocks.K_star, blocks.k_star_star)


def test_the_limit_of_controls_stops_it():
    blocks, y = problem(n=60, alpha=0.5)
    few = controls_needed(blocks.K, 0.1)
    posterior = ControlVariables(max_controls=few).fit(blocks, y, rng=default_rng(21))
    assert posterior.status == STOPPED and posterior.prediction.probability.shape == (0,)
    assert posterior.work["controls"] == posterior.diagnostics["controls_needed"] == few
    assert 0.1 < posterior.diagnostics["trace_share"] < 0.2
    with pytest.raises(ConvergenceError, match=rf"{few} control inputs leave open 0.1") as stop:
        posterior.predict(blocks.K_star, blocks.k_star_star)
    assert stop.value.posterior is posterior


def test_the_evaluations_of_placement_stop_it():
    blocks, y = problem(n=60, alpha=0.5)
    few = controls_needed(blocks.K, 0.1)
    result = infer(ControlVariables(max_evaluations=30), blocks, y, rng=default_rng(21))
    assert result.status == STOPPED and result.probability.shape == (0,)
    assert 30 <= result.work["placement_evaluations"] <= 60
    assert 3 <= result.work["controls"] < few
    posterior = ControlVariables(max_evaluations=30).fit(blocks, y, rng=default_rng(21))
    with pytest.raises(ConvergenceError, match="leave open .* needs a higher max_evaluations"):
        posterior.predict(blocks.K_star, blocks.k_star_star)


def test_free_controls_are_fewer_and_the_probabilities_the_same():
    """Within 6 standard errors of those where the control inputs are training inputs."""
    blocks, y = problem(n=30, alpha=1.0)
    given = {"iterations": 4000, "adaptation_rounds": 2}
    free = infer(ControlVariables(**given), blocks, y, rng=default_rng(1))
    fixed = infer(
        ControlVariables(**given),
        Prior(blocks.K, blocks.K_star, blocks.k_star_star),
        y,
        rng=default_rng(2),
    )
    assert free.status == fixed.status == OK
    assert free.work["placement_evaluations"] > 0 == fixed.work["placement_evaluations"]
    assert free.diagnostics["trace_share"] <= 0.1 >= fixed.diagnostics["trace_share"]
    assert free.work["controls"] <= fixed.work["controls"]
    joint = np.hypot(free.probability_se, fixed.probability_se)
    assert (np.abs(free.probability - fixed.probability) < 6 * joint).all()


@pytest.mark.parametrize("K", [np.zeros((3, 3)), np.ones((3, 3)), np.diag([4.0, 0.0, 1.0])])
def test_degenerate_covariances(K):
    posterior = ControlVariables(iterations=2000).fit(
        Prior(K), [1.0, -1.0, 1.0], rng=default_rng(24)
    )
    p = posterior.predict(np.zeros((3, 1)), [1.0])
    assert p.probability[0] == 0.5 and p.standard_error[0] == 0.0
    if not K.any():
        assert posterior.status == OK and posterior.work["controls"] == 0
    else:
        assert posterior.work["controls"] == np.linalg.matrix_rank(K)
