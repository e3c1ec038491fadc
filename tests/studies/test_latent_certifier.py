"""The latent certifier against densities written out, closed forms, and its own standard errors.

Fixed seeds. A comparison with a closed form is at five standard errors (6e-7 for a normal variable; a few times more
for averages of skew weights).
"""

import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal, norm

from gpcmc.orthant.truths import linear_kernel_truth
from studies.atiya2021.problems import Problem
from studies.atiya2021.reference.latent import (
    PRIOR_SHARE,
    Model,
    annealed,
    gaussian,
    model,
    temperatures,
)


def linear_case(n, seed, tests=6):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) % 2 == 0, 1.0, -1.0))
    x, x_star = rng.standard_normal(n) * 1.5 + 0.5 * y, rng.standard_normal(tests)
    given = Model(np.outer(x, x), np.outer(x, x_star), x_star**2, y)
    return given, linear_kernel_truth(x, y, x_star)


def plane(n=30, t=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + t, 2))
    y = np.where(X[:n, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return Problem(X[:n], y, X[n:], np.ones(t), np.full(t, np.nan))


def test_log_ratios_are_those_of_the_densities():
    given = model(plane(n=7), 1.0, 2.0)
    q = gaussian(given)
    u = np.random.default_rng(1).standard_normal((20, 7)) * 2.0
    f = q.m + u @ q.root
    prior = multivariate_normal.logpdf(f, np.zeros(7), given.K)
    approximation = multivariate_normal.logpdf(f, q.m, q.root.T @ q.root)
    target, start = q.log_ratios(u @ q.root)
    expected = norm.logcdf(given.y * f).sum(axis=1) + prior - approximation
    np.testing.assert_allclose(target, expected, atol=1e-8)
    mixture = np.logaddexp(np.log(1 - PRIOR_SHARE) + approximation, np.log(PRIOR_SHARE) + prior)
    np.testing.assert_allclose(start, mixture - approximation, atol=1e-8)
    # a draw of the prior in u has the prior's covariance
    np.testing.assert_allclose(q.root.T @ q.to_u.T @ q.to_u @ q.root, given.K, atol=1e-9)


def test_no_weight_exceeds_the_inverse_of_the_prior_share():
    q = gaussian(model(plane(), 0.5, 3.0))
    for scale in (1.0, 10.0, 100.0):
        z = scale * np.random.default_rng(0).standard_normal((2000, len(q.root))) @ q.root
        target, start = q.log_ratios(z)
        assert np.max(target - start) <= -np.log(PRIOR_SHARE)
    assert np.max(target) > -np.log(PRIOR_SHARE), "q alone has no such bound"


def test_the_iteration_is_expectation_propagation():
    """At its fixed point q has the moments of every tilted marginal, by quadrature."""
    given = model(plane(), 1.0, 2.0)
    q = gaussian(given)
    variance = np.sum(q.root**2, axis=0)
    nu = q.a + q.S * q.m
    left = 1.0 - variance * q.S
    grid = np.linspace(-12.0, 12.0, 4001)
    for i in range(len(q.y)):
        cavity, mean = variance[i] / left[i], (q.m[i] - variance[i] * nu[i]) / left[i]
        f = mean + np.sqrt(cavity) * grid
        mass = norm.pdf(grid) * norm.cdf(q.y[i] * f)
        mass /= mass.sum()
        assert mass @ f == pytest.approx(q.m[i], abs=1e-5)
        assert mass @ (f - mass @ f) ** 2 == pytest.approx(variance[i], abs=1e-5)


@pytest.mark.parametrize("n", [1, 5, 20])
def test_closed_forms(n):
    given, truth = linear_case(n, n)
    found = annealed(given, 20_000, rng=np.random.default_rng(0))
    assert abs(found.log_evidence - truth.log_evidence) < 5 * found.log_evidence_se < 0.1
    assert np.all(np.abs(found.probability - truth.probability) < 5 * found.probability_se)
    assert np.max(found.probability_se) < 4e-3 and found.diagnostics["k_hat"] < 0.7


def test_a_wrong_kernel_is_refused():
    given, truth = linear_case(20, 3)
    wrong = Model(1.1 * given.K, 1.1 * given.K_star, 1.1 * given.k_star_star, given.y)
    found = annealed(wrong, 20_000, rng=np.random.default_rng(0))
    assert abs(found.log_evidence - truth.log_evidence) > 5 * found.log_evidence_se


def test_any_gaussian_will_do():
    """One sweep leaves q far from expectation propagation; only the errors grow."""
    given, truth = linear_case(12, 4)
    rough = gaussian(given, sweeps=1)
    found = annealed(given, 8000, rng=np.random.default_rng(0), q=rough)
    assert abs(found.log_evidence - truth.log_evidence) < 5 * found.log_evidence_se
    assert np.all(np.abs(found.probability - truth.probability) < 5 * found.probability_se)


def test_the_white_part_is_averaged_out_exactly():
    problem = plane(n=20)
    with_it = np.concatenate([problem.X_train, problem.X_test])
    distance = ((with_it[:, None] - with_it) ** 2).sum(axis=2)
    K = 3.0 * np.exp(-distance / 0.25)
    whole = Model(K[:20, :20], K[:20, 20:], np.diag(K)[20:], problem.y_train)
    collapsed = model(problem, 0.5, 3.0)
    one, other = (
        annealed(m, 6000, rng=np.random.default_rng(k)) for k, m in enumerate((whole, collapsed))
    )
    joint = np.hypot(one.log_evidence_se, other.log_evidence_se)
    assert abs(one.log_evidence - other.log_evidence) < 5 * joint
    joint = np.hypot(one.probability_se, other.probability_se)
    assert np.all(np.abs(one.probability - other.probability) < 5 * joint)
    apart = Problem(1e3 * problem.X_train, problem.y_train, 1e3 * problem.X_test + 7.0, None, None)
    found = annealed(model(apart, 0.5, 3.0), 100, rng=np.random.default_rng(0))
    assert found.log_evidence == pytest.approx(-20 * np.log(2), abs=1e-12)
    np.testing.assert_allclose(found.probability, 0.5, atol=1e-12)


def test_standard_errors_cover():
    """95 % intervals on 120 problems. Were coverage 95 %, as many misses, or as few, would have probability 1e-6."""
    inside, inside_p, count = 0, 0, 120
    for k in range(count):
        given, truth = linear_case(5 + k % 16, 100 + k, tests=1)
        found = annealed(given, 500, rng=np.random.default_rng(k))
        inside += abs(found.log_evidence - truth.log_evidence) < 1.96 * found.log_evidence_se
        inside_p += abs(found.probability - truth.probability)[0] < 1.96 * found.probability_se[0]
    low, high = binom.ppf([5e-7, 1 - 5e-7], count, 0.95)
    assert low <= inside <= high and low <= inside_p <= high


def test_seeds_reproduce_and_temperatures_follow_the_spread():
    given = model(plane(), 1.0, 2.0)
    first, again = (annealed(given, 700, rng=np.random.default_rng(5)) for _ in range(2))
    assert first.log_evidence == again.log_evidence
    np.testing.assert_array_equal(first.probability, again.probability)
    smooth, rough = (
        temperatures(gaussian(model(plane(n=150), *hyper)), np.random.default_rng(0))
        for hyper in ((3.0, 1.0), (0.3, 20.0))
    )
    assert smooth == 16 < rough <= 256
