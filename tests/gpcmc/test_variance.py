"""The variance of the orthant sampler against its asymptotic formula (paper, Eq. 2; supplement for the soft count).

Statistical tests have fixed seeds. A variance over R runs is compared at five of its standard errors, which are its
share sqrt(2/R) for nearly normal runs: two comparisons, with a false-alarm probability of about 1e-6 together.
"""

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import ndtr

from gpcmc.orthant.sampler import orthant_probability

N, RHO, SAMPLES, RUNS = 8, 0.5, 2000, 800
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(30)


def look_ahead(total, given, power):
    """P(all of `power` further coordinates > 0), given the sum of `given` equicorrelated ones, by quadrature."""
    mean = np.sqrt(RHO) * total / (1 - RHO + given * RHO)
    deviation = np.sqrt((1 - RHO) / (1 - RHO + given * RHO))
    factors = mean[:, None] + deviation * _NODES
    return ndtr(np.sqrt(RHO / (1 - RHO)) * factors) ** power @ _WEIGHTS / _WEIGHTS.sum()


def formula(draws=150_000):
    """Terms over stages: those of Eq. 44, all of the hard count, all of the soft count; by plain rejection."""
    rng = default_rng(1)
    common = np.sqrt(RHO) * rng.standard_normal((draws, 1))
    v = common + np.sqrt(1 - RHO) * rng.standard_normal((draws, N))
    total, alone, hard, soft = np.zeros(draws), 0.0, 0.0, 0.0
    for i in range(1, N + 1):
        ahead, own = look_ahead(total, i - 1, N - i + 1), look_ahead(total, i - 1, 1)
        drift = np.mean((ahead / ahead.mean() - own / own.mean()) ** 2)
        inside = v[:, i - 1] > 0
        p, total, v = inside.mean(), (total + v[:, i - 1])[inside], v[inside]
        later = look_ahead(total, i, N - i)
        spread = later.var() / later.mean() ** 2
        alone += (1 - p) / p
        hard += (1 - p) / p + spread * (1 / p - p)
        soft += spread * (1 / p + 1 - p) - drift
    return alone, hard, soft


@pytest.fixture(scope="module")
def terms():
    return formula()


@pytest.mark.parametrize(("count", "place"), [("hard", 1), ("soft", 2)])
def test_variance_is_that_of_the_formula(terms, count, place):
    cov = (1 - RHO) * np.eye(N) + RHO
    logs = [
        orthant_probability(
            cov, samples=SAMPLES, count=count, rng=default_rng([3, k])
        ).log_probability
        for k in range(RUNS)
    ]
    estimates = np.exp(np.array(logs) - np.mean(logs))
    measured = SAMPLES * estimates.var(ddof=1) / estimates.mean() ** 2
    assert abs(measured / terms[place] - 1) < 5 * np.sqrt(2 / RUNS)
    assert measured / terms[0] > 1.2 or count == "soft"  # dependence adds two fifths
