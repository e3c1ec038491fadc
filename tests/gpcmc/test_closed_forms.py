import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr
from truths import log_half_plane, log_one_factor, reference

from gpcmc.orthant import truths


def steepness(d):
    return d / np.sqrt((1 - d) * (1 + d))


@pytest.mark.parametrize("n", [2, 5, 50, 200, 500])
def test_one_factor_agrees_with_mpmath(n):
    # five distinct loadings with multiplicities keep mpmath affordable at n = 500
    rng = np.random.default_rng(n)
    d = rng.uniform(-1, 1, min(n, 5))
    counts = np.full(len(d), n // len(d))
    exact = log_one_factor(steepness(d), counts)
    assert abs(float(truths.one_factor_log_probability(np.repeat(d, counts)) - exact)) < 1e-10


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12, 2.0**-53])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_one_factor_near_unit_loadings_in_two_dimensions(gap, signs):
    d = np.array(signs) * (1 - gap)
    with mpmath.workdps(40):
        rho = mpmath.mpf(float(d[0])) * mpmath.mpf(float(d[1]))
    assert abs(float(truths.one_factor_log_probability(d) - log_half_plane(rho))) < 1e-10


@pytest.mark.parametrize("gap", [1e-6, 1e-12])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_one_factor_near_unit_loadings_among_many(gap, signs):
    d = np.array([signs[0] * (1 - gap), signs[1] * (1 - 3 * gap), 0.6, -0.5, 0.1])
    counts = np.array([1, 1, 166, 166, 166])
    exact = log_one_factor(steepness(d), counts)
    assert abs(float(truths.one_factor_log_probability(np.repeat(d, counts)) - exact)) < 1e-10


def test_one_factor_closed_forms():
    for n in (1, 2, 7, 500):
        d = np.full(n, np.sqrt(0.5))
        assert truths.one_factor_log_probability(d) == pytest.approx(
            truths.equicorrelated_half(n), abs=1e-11
        )
    assert truths.one_factor_log_probability(np.zeros(300)) == pytest.approx(-300 * np.log(2))
    d = np.array([0.3, -0.8, 0.9])
    R = np.outer(d, d)
    np.fill_diagonal(R, 1.0)
    assert truths.one_factor_log_probability(d) == pytest.approx(truths.three_dimensional(R))


def test_one_factor_does_not_see_order_or_sign_of_the_factor():
    d = np.random.default_rng(3).uniform(-1, 1, 100)
    value = truths.one_factor_log_probability(d)
    assert truths.one_factor_log_probability(d[::-1]) == pytest.approx(value, abs=1e-11)
    assert truths.one_factor_log_probability(-d) == pytest.approx(value, abs=1e-11)


@pytest.mark.parametrize("case", ["L", "L3"])
def test_linear_kernel_has_the_stored_truth(case):
    X, y, X_star, log_z, probability = reference(case)
    truth = truths.linear_kernel_truth(X[:, 0], y, X_star[:, 0])
    assert truth.log_evidence == pytest.approx(log_z, abs=1e-10)
    np.testing.assert_allclose(truth.probability, probability, atol=1e-12)


def test_linear_kernel_probability_is_a_ratio_of_evidences():
    x, y = np.array([0.3, -2.0, 1e4]), np.array([1.0, -1.0, 1.0])
    truth = truths.linear_kernel_truth(x, y, np.array([0.7, -1e5]))
    for x_star, p in zip((0.7, -1e5), truth.probability, strict=True):
        both = truths.linear_kernel_truth(np.append(x, x_star), np.append(y, 1.0), [0.0])
        assert np.log(p) == pytest.approx(both.log_evidence - truth.log_evidence, abs=1e-10)


def test_constant_kernel_is_the_limit_of_a_long_length_scale():
    truth = truths.constant_kernel_truth(2.0, 3, 5)
    assert truth.probability == pytest.approx(0.39131, abs=5e-6)
    root = np.sqrt(2.0)
    exact = log_one_factor([root, -root], [3, 5])
    assert truth.log_evidence == pytest.approx(float(exact), abs=1e-10)
    exact_plus = log_one_factor([root, -root], [4, 5])
    assert np.log(truth.probability[0]) == pytest.approx(float(exact_plus - exact), abs=1e-10)
    assert truths.constant_kernel_truth(2.0, 4, 4).probability == pytest.approx(0.5, abs=1e-13)


def test_two_and_three_dimensions():
    assert truths.two_dimensional(0.0) == pytest.approx(np.log(0.25))
    assert truths.two_dimensional(0.5) == pytest.approx(np.log(1 / 3))
    rho = -1 + 2.0**-40
    assert abs(float(truths.two_dimensional(rho) - log_half_plane(rho))) < 1e-12
    R = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    assert truths.three_dimensional(R) == pytest.approx(np.log(0.25))
    scale = np.diag([1e-3, 1.0, 1e3])
    assert truths.three_dimensional(scale @ R @ scale) == pytest.approx(np.log(0.25))
    assert truths.three_dimensional(np.eye(3)) == pytest.approx(np.log(0.125))


def test_rectangle_rule_fails_on_a_coarse_grid_and_not_on_a_fine_one():
    d = np.array([*np.full(30, 0.5), 1 - 1e-4, -(1 - 1e-4)])
    truth = truths.one_factor_log_probability(d)
    fine = truths.rectangle_rule_log_probability(d, 1e-4, 10.0)
    coarse = truths.rectangle_rule_log_probability(d, 0.1, 10.0)
    assert fine == pytest.approx(truth, abs=1e-8)
    assert abs(coarse - truth) > 0.1
    # one point, u = 0: phi(0) 2^-n du
    single = truths.rectangle_rule_log_probability(d, 0.1, 0.05)
    assert single == pytest.approx(np.log(0.1 / np.sqrt(2 * np.pi)) - len(d) * np.log(2))


def test_deep_tails_are_finite():
    d = np.random.default_rng(0).uniform(-1, 1, 5000)
    value = truths.one_factor_log_probability(d)
    assert np.isfinite(value) and value < -3000
    # one step far down the tail dominates: P(v > 0) <= Phi of the cheapest coordinate
    far = truths.linear_kernel_truth([1e6] * 500, [1.0, -1.0] * 250, [1.0, -1.0])
    assert np.isfinite(far.log_evidence) and far.log_evidence < 500 * log_ndtr(0.0)
    assert far.probability.sum() == pytest.approx(1.0)
