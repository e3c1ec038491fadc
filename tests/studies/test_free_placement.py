"""Control inputs that move freely. Each statistical assertion fails a right program with probability below 1e-6."""

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from gpcmc.chains.controls import controls_needed
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import ConvergenceError, infer
from gpcmc.posterior import OK, STOPPED
from studies.atiya2021.control_variables import (
    FreeControlVariables,
    Placement,
    trace_and_gradient,
)


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


@pytest.mark.slow
def test_free_inputs_leave_less_open_than_training_inputs():
    blocks, _ = problem(n=60, alpha=1.0)
    free, among = place(blocks, 6), place(blocks, 6, free=False)
    assert free.share() < 0.95 * among.share()
    before = free.share()
    free.settle()
    assert free.share() <= before + 1e-12


@pytest.mark.slow
def test_the_least_number_of_controls_is_a_bound():
    for alpha in (0.3, 1.0, 3.0):
        blocks, _ = problem(n=40, alpha=alpha)
        placement = place(blocks, 1)
        while placement.share() > 0.1:
            placement.add()
            placement.settle()
        assert controls_needed(blocks.K, 0.1) <= len(placement)


def test_the_limits_of_placement_stop_it():
    blocks, y = problem(n=60, alpha=0.5)
    few = controls_needed(blocks.K, 0.1)
    result = infer(FreeControlVariables(max_evaluations=30), blocks, y, rng=default_rng(21))
    assert result.status == STOPPED and result.probability.shape == (0,)
    assert 30 <= result.work["placement_evaluations"] <= 60
    assert 3 <= result.work["controls"] < few
    posterior = FreeControlVariables(max_evaluations=30).fit(blocks, y, rng=default_rng(21))
    with pytest.raises(ConvergenceError, match="leave open .* needs more evaluations"):
        posterior.predict(blocks.K_star, blocks.k_star_star)


@pytest.mark.parametrize("options", [{"line_searches": 0}, {"max_evaluations": 1.5}, {"chains": 0}])
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be an integer >= 1"):
        FreeControlVariables(**options)


def test_free_controls_are_fewer_and_the_probabilities_the_same():
    """Within 6 standard errors of the library's, whose control inputs are training inputs."""
    blocks, y = problem(n=30, alpha=1.0)
    given = {"iterations": 4000, "adaptation_rounds": 2}
    free = infer(FreeControlVariables(**given), blocks, y, rng=default_rng(1))
    fixed = infer(
        FreeControlVariables(**given),
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
