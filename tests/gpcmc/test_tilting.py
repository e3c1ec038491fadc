"""Minimax exponential tilting, against closed forms, quadrature, and the equations in 2n unknowns.

Comparisons of an estimate with a truth allow 7 standard errors: with 16 randomisations (15 degrees of freedom) the
false-alarm rate of one is 4e-6, and all seeds are fixed. Other bands are stated where they are used.
"""

import numpy as np
import pytest
from gpcmc.orthant._separation import separate
from problems import classes
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal, norm
from truths import log_half_plane

from gpcmc.gp import Prior
from gpcmc.inference import Inference, Method, infer
from gpcmc.posterior import NOT_CONVERGED, OK
from gpcmc.inference.tilting import MinimaxTilting
from gpcmc.orthant.separation import estimate
from gpcmc.orthant.tilting import gibson_order, minimax_tilt, tilted_proposal
from gpcmc.orthant.truths import (
    equicorrelated_half,
    linear_kernel_truth,
    one_factor_log_probability,
    three_dimensional,
)


def random_covariance(n, seed, spread=0.5):
    A = np.random.default_rng(seed).standard_normal((n, n + 2))
    return A @ A.T / n + spread * np.eye(n)


def orthant(R, points=1024, seeds=16):
    L = gibson_order(R)[1]
    proposal = tilted_proposal(L, minimax_tilt(L).mu)
    return estimate(proposal, np.empty((0, len(R))), points=points, seeds=np.arange(seeds))


def assert_close(found, truth, se, largest_se):
    assert abs(found - truth) < 7 * se + 1e-9
    assert se < largest_se


def draw(L, mu, U):
    """Log weights; U becomes the innovations."""
    return separate(*tilted_proposal(L, mu).prepare(), U)


def psi(L, x, mu):
    """Botev's exponent; x and mu (n,) or (n, m)."""
    c = (np.tril(L, -1).T / np.diag(L)).T @ x
    return np.sum(0.5 * mu**2 - x * mu + log_ndtr(c + mu), axis=0)


def saddle(L, mu):
    """The x at which psi's derivatives in mu vanish: x_i = mu_i + phi / Phi."""
    x = np.zeros(len(mu))
    for i in range(len(mu)):
        t = L[i, :i] @ x[:i] / L[i, i] + mu[i]
        x[i] = mu[i] + np.exp(norm.logpdf(t) - norm.logcdf(t))
    return x


# --- order


@pytest.mark.parametrize("n", [1, 2, 30])
def test_order_is_the_greedy_one_and_the_factor_belongs_to_it(n):
    R = random_covariance(n, n, 0.05)
    order, L = gibson_order(R)
    np.testing.assert_allclose(L @ L.T, R[np.ix_(order, order)], rtol=1e-10, atol=1e-12)
    assert (np.triu(L, 1) == 0).all() and (np.diag(L) > 0).all()
    assert sorted(order) == list(range(n))
    chosen, mean_of = [], np.zeros(0)  # the same with inverses: E[v] of those chosen
    for following in order:
        left = [i for i in range(n) if i not in chosen]
        W = R[np.ix_(left, chosen)] @ np.linalg.inv(R[np.ix_(chosen, chosen)])
        mean = W @ mean_of
        sd = np.sqrt(R[left, left] - np.sum(W * R[np.ix_(left, chosen)], axis=1))
        inside = norm.cdf(mean / sd)
        k = left.index(following)
        assert inside[k] <= inside.min() * (1 + 1e-9)
        t = mean[k] / sd[k]
        chosen.append(following)
        mean_of = np.append(mean_of, mean[k] + sd[k] * norm.pdf(t) / norm.cdf(t))


def test_a_singular_covariance_has_no_order():
    with pytest.raises(ValueError, match="positive definite.*variance"):
        gibson_order(np.diag([1.0, 0.0]))


# --- tilt


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("n", [1, 2, 12])
def test_tilt_is_the_saddle_point(n, scale):
    rng = np.random.default_rng(n)
    L = np.linalg.cholesky(np.eye(n) + scale * random_covariance(n, n))
    tilt = minimax_tilt(L)
    assert tilt.converged and tilt.steps <= 20
    mu, x = tilt.mu, saddle(L, tilt.mu)
    assert psi(L, x, mu) == pytest.approx(tilt.log_bound, abs=1e-8)
    assert mu[-1] == 0.0
    assert (L @ x >= 0).all()
    h = 1e-5
    steps = h * np.eye(n)
    at_x, at_mu = x[:, None], mu[:, None] + 0 * steps
    slope_x = (psi(L, at_x + steps, at_mu) - psi(L, at_x - steps, at_mu)) / (2 * h)
    slope_mu = (psi(L, at_x + 0 * steps, at_mu + steps) - psi(L, at_x, at_mu - steps)) / (2 * h)
    np.testing.assert_allclose(slope_x, 0.0, atol=1e-6 * max(1.0, scale))
    np.testing.assert_allclose(slope_mu, 0.0, atol=1e-6 * max(1.0, scale))
    # highest in x, lowest in mu, near and far
    away = rng.standard_normal((n, 500)) * 10.0 ** rng.uniform(-2, 1, 500)
    assert (psi(L, at_x + away, mu[:, None]) <= tilt.log_bound + 1e-9).all()
    assert (psi(L, at_x, mu[:, None] + away) >= tilt.log_bound - 1e-9).all()


@pytest.mark.parametrize("steps", [0, 1, 100])
@pytest.mark.parametrize("seed", range(3))
def test_no_weight_exceeds_the_bound_also_before_convergence(seed, steps):
    n = 15
    L = np.linalg.cholesky(np.eye(n) + 5.0 * random_covariance(n, seed))
    tilt = minimax_tilt(L, max_steps=steps)
    assert tilt.steps <= steps and tilt.converged == (steps == 100)
    rng = np.random.default_rng(seed)
    log_w = draw(L, tilt.mu, rng.random((n, 20_000)))
    assert log_w.max() <= tilt.log_bound
    # and at any x at all: near the x at which the bound is met, far, and outside the orthant
    x = rng.standard_normal((n, 20_000)) * 10.0 ** rng.uniform(-1, 2, 20_000)
    x[:, ::2] = 0.1 * x[:, ::2] + saddle(L, tilt.mu)[:, None]
    assert psi(L, x, tilt.mu[:, None]).max() <= tilt.log_bound + 1e-9
    if steps == 100:
        assert log_w.max() > tilt.log_bound - 2.0, "the bound is of use"


def test_each_step_lowers_the_bound():
    L = np.linalg.cholesky(np.eye(30) + 20.0 * random_covariance(30, 1))
    bounds = [minimax_tilt(L, max_steps=k).log_bound for k in range(8)]
    assert (np.diff(bounds[:5]) < 0).all() and (np.diff(bounds) <= 0).all()


@pytest.mark.parametrize("beta", [1e-8, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "duplicates", "linear", "constant"])
def test_the_tilt_is_found_for_extreme_covariances(kernel, beta):
    rng = np.random.default_rng(2)
    x = np.repeat(rng.standard_normal(10), 2) if kernel == "duplicates" else rng.standard_normal(20)
    K = np.exp(-((x[:, None] - x) ** 2))
    K = {"linear": np.outer(x, x), "constant": np.ones((20, 20))}.get(kernel, K)
    for y in (np.where(x > 0, 1.0, -1.0), rng.choice([-1.0, 1.0], 20)):
        L = gibson_order(np.eye(20) + beta * y[:, None] * K * y)[1]
        tilt = minimax_tilt(L)
        assert tilt.converged and tilt.steps <= 50
        assert psi(L, saddle(L, tilt.mu), tilt.mu) == pytest.approx(tilt.log_bound, abs=1e-4)


# --- probability


def test_weight_times_proposal_is_the_target_density():
    n = 6
    R = random_covariance(n, 0)
    L = np.linalg.cholesky(R)
    mu = np.random.default_rng(1).standard_normal(n)  # any tilt
    E = np.random.default_rng(0).random((n, 50))
    log_w = draw(L, mu, E)
    v = L @ E
    assert (v > 0).all()
    log_q = -np.sum(np.log(np.diag(L))) * np.ones(50)
    for i in range(n):
        low = -L[i, :i] @ E[:i] / L[i, i]
        log_q += norm.logpdf(E[i], mu[i]) - norm.logsf(low, mu[i])
    log_target = multivariate_normal.logpdf(v.T, np.zeros(n), R)
    np.testing.assert_allclose(log_w + log_q, log_target, rtol=1e-10)


@pytest.mark.parametrize(
    ("case", "steps"), [("three", 0), ("three", 1), ("three", 100), ("equal", 2), ("equal", 100)]
)
def test_unbiased(case, steps):
    """Independent draws with weights in [0, B]: Hoeffding's band at a false-alarm rate of 1e-6."""
    R = random_covariance(3, 5) if case == "three" else 0.5 * (np.eye(20) + 1.0)
    truth = three_dimensional(R) if case == "three" else equicorrelated_half(20)
    L = np.linalg.cholesky(R)
    tilt = minimax_tilt(L, max_steps=steps)
    count = 200_000
    log_w = draw(L, tilt.mu, np.random.default_rng(steps).random((len(R), count)))
    band = np.exp(tilt.log_bound - truth) * np.sqrt(np.log(2e6) / (2 * count))
    assert abs(np.mean(np.exp(log_w - truth)) - 1.0) < band
    assert band < (0.012 if steps == 100 else 0.1)


@pytest.mark.parametrize("n", [1, 2, 20, 300])
def test_independent_coordinates_are_exact(n):
    found = orthant(np.diag(np.linspace(0.5, 3.0, n)), points=32)
    assert found.log_probability == pytest.approx(-n * np.log(2), abs=1e-9)


@pytest.mark.parametrize("rho", [-0.99, -0.3, 0.6, 0.999])
def test_two_coordinates(rho):
    found = orthant(np.array([[4.0, 2 * rho], [2 * rho, 1.0]]))
    truth = float(log_half_plane(rho))
    assert_close(found.log_probability, truth, found.standard_error, 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_three_coordinates(seed):
    R = random_covariance(3, seed, 0.05)
    found = orthant(R)
    assert_close(found.log_probability, three_dimensional(R), found.standard_error, 1e-3)


@pytest.mark.parametrize("n", [3, 10, 50, 100, 500])
def test_correlation_one_half_everywhere(n):
    found = orthant(0.5 * (np.eye(n) + 1.0))
    assert_close(found.log_probability, equicorrelated_half(n), found.standard_error, 6e-3)


@pytest.mark.parametrize("seed", range(3))
def test_one_factor(seed):
    d = np.random.default_rng(seed).uniform(-0.9, 0.95, 60)
    R = np.outer(d, d)
    np.fill_diagonal(R, 1.0)
    found = orthant(R)
    assert_close(found.log_probability, one_factor_log_probability(d), found.standard_error, 0.01)


def test_genz_method_of_another_library_agrees():
    """Scipy's error is asked to be 1e-4 of the probability; its own estimate is three standard errors."""
    R = random_covariance(7, 3, 0.1)
    theirs = multivariate_normal.cdf(
        np.zeros(7), cov=R, abseps=1e-12, releps=1e-4, maxpts=10**6, rng=np.random.default_rng(0)
    )
    found = orthant(R)
    assert abs(found.log_probability - np.log(theirs)) < 7 * found.standard_error + 2e-4
    assert found.standard_error < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("n", [1200, 600])
def test_far_tails_stay_on_the_log_scale(n):
    """log P of about -800 and, with correlations that pull apart, -500."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(n) * (0.05 if n == 1200 else 1.0), rng.choice([-1.0, 1.0], n)
    truth = linear_kernel_truth(x, y, np.zeros(1)).log_evidence
    found = MinimaxTilting(points=128).fit(Prior(np.outer(x, x)), y, rng=rng)
    assert truth < -400
    assert_close(found.log_evidence, truth, found.log_evidence_se, 0.1)


def test_coordinates_that_all_but_exclude_each_other():
    """P is about 2e-6. Newton's method gives up, and the estimate is right with what it has."""
    rho = -1.0 + 1e-10
    R = np.array([[1.0, rho], [rho, 1.0]])
    found = orthant(R)
    truth = float(log_half_plane(rho))
    assert_close(found.log_probability, truth, found.standard_error, 1e-3)


# --- the method


def test_it_is_a_method():
    P, y = classes(10, 0)
    assert isinstance(MinimaxTilting(), Method)
    found = infer(MinimaxTilting(points=64), P, y, rng=np.random.default_rng(0))
    assert isinstance(found, Inference) and found.status == OK
    assert found.work["samples"] == 64 * 16
    assert 2 < found.work["factorizations"] < 12
    assert set(found.diagnostics) >= {
        "k_hat",
        "effective_samples",
        "effective_fraction",
        "log_weight_bound",
    }
    # mean weight below the bound; and the share of effective samples is at least mean over bound
    assert 0 < found.diagnostics["log_weight_bound"] < 1
    assert found.diagnostics["effective_fraction"] >= np.exp(-found.diagnostics["log_weight_bound"])


def test_reordering_pays():
    P, y = classes(100, 4, 0.5, 3.0)
    fraction = [
        MinimaxTilting(points=256, order=order)
        .fit(Prior(P.K), y, rng=np.random.default_rng(0))
        .diagnostics["effective_fraction"]
        for order in ("given", "gibson")
    ]
    assert fraction[1] > 1.1 * fraction[0] > 0.3


def test_too_few_effective_samples_are_not_converged():
    P, y = classes(40, 7)
    found = MinimaxTilting(points=4).fit(Prior(P.K), y, rng=np.random.default_rng(0))
    assert found.diagnostics["effective_samples"] < 100
    assert found.status == NOT_CONVERGED
