"""The sampler's variance as expectation propagation foretells it: against quadrature, and against the sampler's own.

Statistical tests have fixed seeds. A variance over R runs is compared at five of its standard errors, which are its
share sqrt(2/R) for nearly normal runs, and a tenth for the errors of expectation propagation: two comparisons, with a
false-alarm probability of about 1e-6 together.
"""

import numpy as np
import pytest
from numpy.random import default_rng

from gpcmc.covariance.kernels import orthant_covariance, rbf
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gp import Prior
from gpcmc.orthant.sampler import orthant_probability
from studies.atiya2021 import asymptotic_variance as module
from studies.atiya2021.asymptotic_variance import (
    asymptotic_variance,
    orthant,
    shared_information,
)
from studies.atiya2021.scaling import from_process

SAMPLES, RUNS = 2000, 300


def autoregressive(n, rho):
    return rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def by_quadrature(n, rho, nodes=300):
    """Both terms, the largest log(1 + c_i^2) and the log probability, where h_i depends on v_i alone."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w, s = 4.5 * (x + 1.0), 4.5 * w, np.sqrt(1.0 - rho**2)
    density = w / np.sqrt(2.0 * np.pi)
    step = density / s * np.exp(-0.5 * ((x - rho * x[:, None]) / s) ** 2)
    ahead = [np.ones(nodes)]
    for _ in range(n - 1):
        ahead.insert(0, step @ ahead[0])
    law, found, largest, log_p = density * np.exp(-0.5 * x**2), np.zeros(2), 0.0, 0.0
    for h in ahead:
        P = law.sum()
        law = law / P
        square = law @ h**2 / (law @ h) ** 2 - 1.0
        found += [(1.0 - P) / P, square * (1.0 / P - P)]
        largest, log_p, law = max(largest, np.log1p(square)), log_p + np.log(P), law @ step
    return [*found, largest, log_p]


def rough(n=40):
    X, y = from_process(2, n, "1/asymptotic-variance", alpha=0.5, beta=3.0)
    return X, y, orthant_covariance(rbf(0.5, 3.0)(X), y)


def test_terms_are_those_of_quadrature():
    found = asymptotic_variance(autoregressive(20, 0.5), stages=20)
    np.testing.assert_allclose(found[:3], by_quadrature(20, 0.5)[:3], rtol=0.04)
    assert found.log_probability == pytest.approx(by_quadrature(20, 0.5)[3], abs=0.04)
    assert found.hard == found.independent + found.coupling


@pytest.mark.parametrize("fault", ["one copy", "copies from a coordinate too early"])
def test_a_fault_in_the_copies_is_seen(monkeypatch, fault):
    sound = module.orthant

    def broken(R, i, sites=None, *, tolerance):
        first = len(R) if fault == "one copy" or i == len(R) else max(i - 1, 1)
        return sound(R, first, sites, tolerance=tolerance)

    monkeypatch.setattr(module, "orthant", broken)
    found = asymptotic_variance(autoregressive(20, 0.5), stages=20)
    assert abs(found.coupling / by_quadrature(20, 0.5)[1] - 1.0) > 0.5


def test_copies_are_independent_given_the_first_coordinates():
    """Three coordinates, of which the last two are copies: the orthant of trivariate normals is known."""
    rho = 0.4
    found = orthant(autoregressive(2, rho), 1, tolerance=1e-8).log_probability
    angles = np.arcsin(rho) + np.arcsin(rho) + np.arcsin(rho**2)
    assert np.exp(found) == pytest.approx(0.125 + angles / (4.0 * np.pi), rel=3e-3)
    a, B = 1, np.array([[1.0, 0.3, 0.2], [0.3, 1.0, 0.5], [0.2, 0.5, 1.0]])
    written_out = np.zeros((5, 5))
    shared = np.outer(B[0, 1:], B[0, 1:])
    written_out[0, 0], written_out[0, 1:] = 1.0, np.tile(B[0, 1:], 2)
    written_out[1:, 0] = written_out[0, 1:]
    written_out[1:, 1:] = np.block([[B[1:, 1:], shared], [shared, B[1:, 1:]]])
    one = orthant(B, a, tolerance=1e-9).log_probability
    assert one == pytest.approx(orthant(written_out, 5, tolerance=1e-9).log_probability, abs=1e-8)


def test_an_orthant_is_that_of_expectation_propagation_in_the_library():
    X, y, R = rough()
    of_library = ExpectationPropagation().fit(Prior(rbf(0.5, 3.0)(X)), y)
    found = orthant(R, len(R), tolerance=1e-6)
    assert found.log_probability == pytest.approx(of_library.log_evidence, abs=1e-9)


@pytest.mark.parametrize("count", ["hard", "soft"])
def test_runs_of_the_sampler_vary_as_foretold(count):
    R = rough()[2]
    foretold = asymptotic_variance(R, stages=len(R))
    logs = [
        orthant_probability(
            R, samples=SAMPLES, count=count, rng=default_rng([7, k])
        ).log_probability
        for k in range(RUNS)
    ]
    estimates = np.exp(np.array(logs) - np.mean(logs))
    measured = SAMPLES * estimates.var(ddof=1) / estimates.mean() ** 2
    expected = foretold.hard if count == "hard" else foretold.coupling
    assert abs(measured / expected - 1.0) < 5.0 * np.sqrt(2.0 / RUNS) + 0.1
    # what independent coordinates would have is far from it
    assert measured > 2.0 * foretold.independent or count == "soft"


def test_shared_information_is_that_of_canonical_correlations():
    R = rough(12)[2]
    found = []
    for i in range(1, 12):
        root = np.linalg.cholesky(np.linalg.inv(R[:i, :i])).T
        later = np.linalg.cholesky(np.linalg.inv(R[i:, i:])).T
        correlations = np.linalg.svd(root @ R[:i, i:] @ later.T, compute_uv=False)
        found.append(-0.5 * np.sum(np.log1p(-(correlations**2))))
    assert shared_information(R) == pytest.approx(max(found), rel=1e-10)


def test_few_stages_are_nearly_as_good_as_all():
    R = rough(80)[2]
    few, every = (asymptotic_variance(R, stages=stages) for stages in (12, 80))
    assert few.hard == pytest.approx(every.hard, rel=0.2)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="two rows"):
        asymptotic_variance(np.eye(1))
    with pytest.raises(ValueError, match="stages"):
        asymptotic_variance(np.eye(3), stages=1)
