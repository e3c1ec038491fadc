"""Suspects for the floor of Table 1: rules of quadrature, the recursion, and what looks as printed."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from gpcmc.orthant.truths import one_factor_log_probability, three_dimensional
from studies.atiya2021 import inexact
from studies.atiya2021.measures.inexact import PROBLEMS, looks_printed


@pytest.mark.parametrize("rule", inexact.ADAPTIVE)
def test_adaptive_rules_integrate_what_they_see(rule):
    integrate = inexact.ADAPTIVE[rule]
    assert integrate(norm.pdf, -10.0, 10.0, 1e-9) == pytest.approx(1.0, abs=1e-7)
    assert integrate(lambda u: norm.pdf(u, 0.0, 0.03), -10.0, 10.0, 1e-9) == pytest.approx(
        1.0, abs=1e-7
    )
    # a narrow peak between the nodes goes unseen
    assert integrate(lambda u: norm.pdf(u, 3.3, 0.01), -10.0, 10.0, 1e-6) < 1e-3


def test_rules_that_are_fine_enough_find_the_truth():
    d = np.random.default_rng(3).uniform(-1, 1, 40)
    truth, peak = (
        one_factor_log_probability(d),
        inexact.log_integrand(np.linspace(-2, 2, 4001), d).max(),
    )
    for name in ("grid-single", "grid-range-3", "kronrod-1e-10", "lobatto-1e-6", "simpson-1e-6"):
        found = inexact.log_truth(d, inexact.RULES[name], peak)
        assert found == pytest.approx(truth, abs=2e-4), name
    # each of 1e-12: the first estimates agree to within the tolerance
    assert abs(inexact.log_truth(d, inexact.RULES["simpson-as-is"], peak) - truth) > 0.1


def test_recursion_gives_the_conditional_moments():
    d = np.random.default_rng(4).uniform(-1, 1, 12)
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    b, variance = inexact.recursive_moments(cov, np.float64)
    for i in range(1, 12):
        expected = np.linalg.solve(cov[:i, :i], cov[:i, i])
        np.testing.assert_allclose(b[i, :i], expected, atol=1e-9)
        assert variance[i] == pytest.approx(1 - cov[:i, i] @ expected)
    for found, closed in zip((b, variance), inexact.one_factor_moments(d), strict=True):
        np.testing.assert_allclose(found, closed, atol=1e-9)


def test_a_rounded_recursion_samples_another_covariance():
    """The closed form in three dimensions of the covariance whose moments the rounded recursion has."""
    d = np.array([0.9, -0.7, 0.8])
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    b, variance = inexact.recursive_moments(cov, np.float16)
    root = np.linalg.inv(np.eye(3) - b)
    expected = three_dimensional(root @ np.diag(variance) @ root.T) - three_dimensional(cov)
    found = [inexact.recursion_shift(d, np.float16, np.random.default_rng(k)) for k in range(20)]
    assert abs(expected) > 1e-4
    # 4.9 standard errors on 19 degrees of freedom: one false alarm in 10,000
    assert abs(np.mean(found) - expected) < 4.9 * np.std(found, ddof=1) / math.sqrt(20)


def test_only_errors_like_the_printed_ones_look_so():
    noise = 0.01
    mean, se = noise * math.sqrt(2 / math.pi), noise * math.sqrt((1 - 2 / math.pi) / PROBLEMS)
    assert looks_printed(np.zeros(100), noise, mean, se) > 0.99
    assert looks_printed(np.zeros(100), noise, 3 * mean, se) == 0.0
    assert looks_printed(np.full(100, 5 * noise), noise, 5 * noise, 10 * se) == 0.0
    assert looks_printed(np.full(100, -np.inf), noise, mean, se) == 0.0
