"""Estimates of p(y | K) for pseudo-marginal chains, unbiased and quickly made.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, Eq. (25).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import gaussian_proposal, log_evidence_estimate
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.posterior import GaussianApproximation
from gpcmc.orthant import ExtinctionError, orthant_probability

#: An unbiased estimate of p(y | K), its logarithm returned: estimator(K, y, rng).
Estimator = Callable[[FloatArray, FloatArray, np.random.Generator], float]

_LAPLACE = Laplace(tolerance=1e-6)
_EP = ExpectationPropagation(tolerance=1e-4)


def estimator_named(method: str | Estimator, samples: int) -> Estimator:
    """Return the estimator that a name stands for, with so many samples for each estimate, or the given one."""
    if method == "orthant":
        return partial(orthant_estimator, samples=samples)
    if method in ("laplace", "ep"):
        gaussian = _LAPLACE if method == "laplace" else _EP
        return partial(importance_estimator, method=gaussian, samples=samples)
    assert callable(method)
    return method


def laplace_log_evidence(K: FloatArray, y: FloatArray, rng: np.random.Generator) -> float:
    """Return Laplace's approximation; deterministic and not unbiased, so for burn-in only."""
    return gaussian_proposal(_LAPLACE, K, y).log_evidence


def importance_estimator(
    K: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    method: GaussianApproximation,
    samples: int,
) -> float:
    """Return log of Eq. (25) with `samples` draws from the Gaussian of `method`."""
    proposal = gaussian_proposal(method, K, y)
    return log_evidence_estimate(proposal, y, rng.standard_normal((samples, len(y))))


def orthant_estimator(
    K: FloatArray, y: FloatArray, rng: np.random.Generator, *, samples: int
) -> float:
    """Return log of the adapted orthant sampler's estimate of P(v >= 0), v ~ N(0, I + C K C)."""
    R = orthant_covariance(K, y)
    try:
        return orthant_probability(R, samples=samples, scheme="adapted", rng=rng).log_probability
    except ExtinctionError:
        return -np.inf  # an unbiased estimate may be zero
