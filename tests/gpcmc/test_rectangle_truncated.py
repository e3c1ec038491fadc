"""Truncated normal distributions: laws of draws and moments, against one-dimensional truths. Seeds are fixed."""

import numpy as np
import pytest
from scipy.stats import norm, truncnorm
from truths import band, distance

from gpcmc.rectangle import AcceptanceError
from gpcmc.rectangle.truncated import TruncatedNormal

INF = np.inf


def factor_moments(d, lower, upper):
    """Mean and covariance of one-factor coordinates d_i u + sqrt(1 - d_i^2) e_i inside, by quadrature over u."""
    u = np.linspace(-8, 8, 201)[:, None]  # the trapezoidal rule converges geometrically
    s = np.sqrt(1 - d**2)
    each = truncnorm((lower - d * u) / s, (upper - d * u) / s, loc=d * u, scale=s)
    p = norm.cdf((upper - d * u) / s) - norm.cdf((lower - d * u) / s)
    w = norm.pdf(u[:, 0]) * p.prod(axis=1)
    w /= w.sum()
    m, v = each.mean(), each.var()
    mean = w @ m
    return mean, (m - mean).T @ ((m - mean) * w[:, None]) + np.diag(w @ v)


def problem():
    d = np.array([0.9, -0.7, 0.5, 0.6])
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    return d, np.array([-0.5, 0.2, -INF, 1.0]), np.array([INF, 1.0, 0.5, 2.0]), cov


@pytest.mark.parametrize(("lower", "upper"), [(-1, 2), (3, INF), (-INF, -30), (40, 40.01)])
def test_one_dimension(lower, upper):
    one = TruncatedNormal(lower, upper, cov=1.0)
    known = truncnorm(lower, upper)
    R = 4000
    v = one.rvs(R, rng=0)
    assert v.shape == (R, 1)
    assert distance(v[:, 0], known.cdf) < band(R)
    assert one.mean().value[0] == pytest.approx(known.mean(), rel=1e-9)
    assert one.cov().value[0, 0] == pytest.approx(known.var(), rel=1e-3)  # SciPy's cancels far out
    assert one.mean().standard_error[0] == 0.0


@pytest.mark.parametrize("method", ["exact", "gibbs"])
def test_marginals_of_draws(method):
    """Each coordinate against quadrature over the factor; Kolmogorov's band at 1e-6."""
    d, lower, upper, cov = problem()
    R = 4000
    scale, mean = np.array([1e-3, 1.0, 50.0, 2.0]), np.array([0.0, 5.0, -1.0, 2.0])
    dist = TruncatedNormal(
        mean + scale * lower, mean + scale * upper, mean, cov * np.outer(scale, scale)
    )
    v = (dist.rvs(R, rng=1, method=method, sweeps=30) - mean) / scale
    assert ((v > lower) & (v < upper)).all()
    u = np.linspace(-8, 8, 201)[:, None]
    s = np.sqrt(1 - d**2)
    p = norm.cdf((upper - d * u) / s) - norm.cdf((lower - d * u) / s)
    w = norm.pdf(u[:, 0]) * p.prod(axis=1)
    w /= w.sum()
    for i in range(4):
        grid = np.linspace(max(lower[i], -5), min(upper[i], 5), 100)
        below = norm.cdf((lower[i] - d[i] * u) / s[i])
        cdf = w @ ((norm.cdf((grid - d[i] * u) / s[i]) - below) / np.maximum(p[:, [i]], 1e-300))
        assert distance(v[:, i], lambda x, g=grid, c=cdf: np.interp(x, g, c)) < band(R) + 1e-3


def test_moments():
    """7 standard errors."""
    d, lower, upper, cov = problem()
    dist = TruncatedNormal(lower, upper, cov=cov)
    mean, covariance = factor_moments(d, lower, upper)
    m, c = dist.mean(rng=0), dist.cov(rng=0)
    assert (np.abs(m.value - mean) < 7 * m.standard_error + 1e-8).all()
    assert (np.abs(c.value - covariance) < 7 * c.standard_error + 1e-7).all()
    assert m.standard_error.max() < 1e-3 and c.standard_error.max() < 1e-3
    assert m.effective_fraction > 0.5
    v = dist.rvs(20_000, rng=0)
    assert (np.abs(v.mean(axis=0) - mean) < 5.5 * np.sqrt(np.diag(covariance) / 20_000)).all()


def test_draws_of_which_a_third_is_refused():
    """Means of 20,000 draws at 5.5 standard errors of theirs; if all were kept they would be 30 off."""
    d = np.where(np.arange(10) % 3 == 0, -1.0, 1.0) * np.sqrt(0.9)
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    mean, covariance = factor_moments(d, np.zeros(10), np.full(10, INF))
    v = TruncatedNormal(0, INF, cov=cov).rvs(20_000, rng=0)
    assert (np.abs(v.mean(axis=0) - mean) < 5.5 * np.sqrt(np.diag(covariance) / 20_000)).all()


def test_variables_that_nearly_cancel():
    """Two of very different scale: draws, moments and the guaranteed interval have the sites' start for their tilt."""
    B = np.array([[10.0, 1e-3], [-1.0, 1e-3]])
    dist = TruncatedNormal(0.1, INF, cov=B @ B.T)
    v = dist.rvs(2000, rng=0)
    m = dist.mean(rng=0)
    assert (v > 0.1).all() and m.status == dist.cov(rng=0).status == "ok"
    assert m.effective_fraction > 0.5
    assert (np.abs(v.mean(axis=0) - m.value) < 5.5 * v.std(axis=0) / np.sqrt(2000)).all()
    exact = dist.log_probability(rng=0)
    assert exact.method == "closed form" and exact.log_probability < -5000
    for method in ("twisted-ep", "minimax-tilting"):
        found = dist.log_probability(method=method, tolerance=0.02, rng=0)
        low, high = found.interval(kind="guaranteed")
        assert found.status == "ok" and low < exact.log_probability < high < low + 1.0


def test_moments_far_from_the_origin():
    """Variances of 1e-6 at a mean of 1e3: no cancellation."""
    dist = TruncatedNormal(1000.0, INF, cov=[[1.0, 0.5], [0.5, 1.0]])
    rate = 1000.0 / 1.5  # the gradient of the density's exponent at the corner: nearly exponential
    np.testing.assert_allclose(dist.mean(rng=0).value, 1000.0 + 1 / rate, rtol=1e-6)
    np.testing.assert_allclose(np.diag(dist.cov(rng=0).value), rate**-2, rtol=0.01)
    assert (np.diag(dist.cov(rng=0).standard_error) < 0.01 * rate**-2).all()


def test_free_certain_and_dependent_coordinates():
    """x, its double, a free one that depends on x, a constant, and an independent free one."""
    B = np.array([[1.0, 0, 0], [2.0, 0, 0], [0.5, 1.0, 0], [0, 0, 0], [0, 0, 3.0]])
    lower, upper = [0, -INF, -INF, 0, -INF], [INF, 2.0, INF, 2, INF]
    dist = TruncatedNormal(lower, upper, [0, 0, 0, 1, 7], B @ B.T)
    x = truncnorm(0, 1)
    R = 4000
    v = dist.rvs(R, rng=2)
    assert distance(v[:, 0], x.cdf) < band(R)
    np.testing.assert_allclose(v[:, 1], 2 * v[:, 0], atol=1e-12)
    assert (v[:, 3] == 1.0).all()
    assert distance(v[:, 2] - 0.5 * v[:, 0], norm.cdf) < band(R)
    assert distance((v[:, 4] - 7) / 3, norm.cdf) < band(R)
    m, c = dist.mean(rng=0), dist.cov(rng=0)
    np.testing.assert_allclose(
        m.value, np.array([1, 2, 0.5, 0, 0]) * x.mean() + [0, 0, 0, 1, 7], atol=1e-5
    )
    known = np.outer([1, 2, 0.5, 0, 0], [1, 2, 0.5, 0, 0]) * x.var() + np.diag([0, 0, 1, 0, 9.0])
    np.testing.assert_allclose(c.value, known, atol=1e-5)
    assert dist.log_probability().log_probability == pytest.approx(np.log(norm.cdf(1) - 0.5))


def test_no_limits_at_all():
    dist = TruncatedNormal(-INF, INF, 1.0, 4.0 * np.eye(2))
    assert (dist.mean().value == 1.0).all() and (dist.cov().value == 4.0 * np.eye(2)).all()
    assert distance((dist.rvs(2000, rng=0)[:, 1] - 1) / 2, norm.cdf) < band(2000)


def test_draws_out_of_reach_are_refused_and_a_chain_is_not():
    n = 200
    cov = 0.9 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    dist = TruncatedNormal(0, INF, cov=cov)
    with pytest.raises(AcceptanceError, match="use method='gibbs'"):
        dist.rvs(1000, rng=0, max_draws=5000)
    assert (dist.rvs(5, rng=0, method="gibbs", sweeps=2) > 0).all()


def test_equal_seeds_give_equal_draws():
    dist = TruncatedNormal(-1, 1, cov=0.5 + 0.5 * np.eye(4))
    assert (dist.rvs(10, rng=1) == dist.rvs(10, rng=np.random.default_rng(1))).all()
    assert "4 coordinates" in repr(dist)
