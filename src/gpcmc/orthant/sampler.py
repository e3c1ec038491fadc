"""Gaussian orthant probabilities by sequential Monte Carlo.

P(v >= lower), v ~ N(mean, cov), is estimated as a product of one conditional probability a coordinate
(paper, Eqs 33 to 35), with a population of samples that is resampled so that it stays inside.

Two schemes:

``bootstrap``
    The paper's Algorithm GPC-MC (section 5.6): draw each coordinate, keep the samples inside, refill
    the others from them. The *hard* count (Eq. 57) estimates the probability without bias; the *soft*
    count (Eq. 62) replaces the indicator by its conditional expectation, at the price of a bias of
    order 1/samples.
``adapted``
    Draw each coordinate inside its half-line, weight by the probability of that half-line, and resample
    systematically when the effective sample size falls below half. Unbiased, and its variance is
    ten to a hundred times smaller on the covariances of Gaussian process classification.

Everything is on the log scale. Standard errors come from the genealogy: samples that descend from
different first-stage samples (eves) interact only through averages, so the relative error of the
estimate is a sum over eves of what their descendants added to each factor (after Lee and Whiteley,
2018, Biometrika 105, 609). With ten populations or more, those of the adapted scheme come from the
spread between populations: independent runs are the better judges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc._validation import Rng
from gpcmc.orthant._sampler import predict
from gpcmc.orthant.populations import (
    Array,
    Count,
    OrthantEstimate,
    Samples,
    Scheme,
    average_predictions,
    population_sizes,
    samples_of,
    train,
)


@dataclass(frozen=True, slots=True)
class Particles:
    """The samples of a finished training pass: draws from the posterior, ready for test patterns."""

    L: Array  # (n, n) lower Cholesky factor of the covariance
    # Of each population that is not extinct: the arguments of `_sampler.predict` that name its samples
    populations: tuple[Samples, ...]
    # Share of each population in the average: proportional to its estimated probability
    weights: Array
    scheme: Scheme  # one of "bootstrap", "adapted"
    eves: float  # effective number of eves


@one_thread()
def orthant_probability(
    cov: ArrayLike,
    *,
    samples: int = 100_000,
    count: Count = "soft",
    scheme: Scheme = "bootstrap",
    mean: ArrayLike = 0.0,
    lower: ArrayLike = 0.0,
    runs: int | None = None,
    rng: Rng = None,
) -> OrthantEstimate:
    r"""Estimate log P(v >= lower) for v ~ N(mean, cov).

    The estimate of the *probability* is unbiased with ``scheme="adapted"`` and with ``count="hard"``;
    its logarithm is not, by about half the squared standard error (paper, Eq. 43).

    Parameters
    ----------
    cov : (n, n) array
        Symmetric positive definite covariance.
    samples : int
        Monte Carlo samples in all.
    count : {"soft", "hard"}
        How the bootstrap scheme counts. The adapted scheme has no count of its own.
    scheme : {"bootstrap", "adapted"}
        The paper's algorithm, or truncated draws with weights.
    mean, lower : float or (n,) array
        Mean of v and lower limits (paper, Eq. 36).
    runs : int, optional
        Independent populations whose probability estimates are averaged; by default as few as keep
        each within `MAX_POPULATION` samples. Runs of some ten thousand samples stay in the processor's
        cache, and take about two thirds of the seconds.
    rng : numpy.random.Generator, int or RandomState, optional
        Consumed: equal states give equal bits on one machine. An integer is a seed; without one every run differs.

    Raises
    ------
    ValueError
        If an argument is not as above; the message names it. An indefinite `cov` is refused with the
        order of the leading minor that fails.
    ExtinctionError
        If every population lost all its samples; the message names the stage and the remedy.

    Notes
    -----
    Time O(n^3 + samples n log n), memory O(n^2 + samples log(n) / runs): only ancestors that have descendants
    are kept; where the adapted scheme resamples little, up to samples n^2 and samples n.

    References
    ----------
    Atiya, Fayed and Abdel-Gawad (2021), sections 5.1 to 5.7.

    Examples
    --------
    Three variables with correlations of one half are all positive with probability 1/4:

    >>> import numpy as np
    >>> from gpcmc import orthant_probability
    >>> cov = 0.5 + 0.5 * np.eye(3)
    >>> found = orthant_probability(cov, samples=10_000, scheme="adapted", rng=0)
    >>> bool(abs(found.log_probability - np.log(0.25)) < 4 * found.standard_error)
    True
    """
    rng = validation.check_rng("rng", rng, optional=True)
    sizes, L = _prepared(cov, samples, count, scheme, runs)
    offset = _check_limits("mean", mean, len(L)) - _check_limits("lower", lower, len(L))
    estimate, _, _ = train(L, offset, sizes, count, scheme, rng, lambda _: None)
    return estimate


@one_thread()
def sample_orthant(
    cov: Array,
    *,
    samples: int,
    count: Count,
    scheme: Scheme,
    runs: int | None,
    rng: np.random.Generator,
) -> tuple[OrthantEstimate, Particles]:
    """As `orthant_probability` with zero mean and limits, and keep the samples of all populations."""
    sizes, L = _prepared(cov, samples, count, scheme, runs)
    estimate, weights, kept = train(
        L, np.zeros(len(L)), sizes, count, scheme, rng, samples_of, reuse=False
    )
    return estimate, Particles(L, tuple(kept), weights, scheme, estimate.effective_eves)


@one_thread()
def conditional_probability(
    particles: Particles,
    cross_cov: Array,
    variance: Array,
    *,
    count: Count,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return P(v* >= 0 | v >= 0) and standard errors (t,) of test coordinates, from the samples of the training pass.

    `cross_cov` (n, t) are the covariances of v with them, `variance` (t,) their own. The count is that of Eq. 62 or Eq.
    61; the hard one alone consumes `rng`.
    """
    A = test_rows(particles.L, cross_cov, variance)
    passes = [predict(*samples, A, count == "soft", rng) for samples in particles.populations]
    return average_predictions(particles.weights, passes, particles.scheme, particles.eves)


@one_thread()
def orthant_ratio(
    cov: Array,
    cross_cov: Array,
    variance: Array,
    *,
    samples: int,
    count: Count,
    scheme: Scheme,
    runs: int | None,
    rng: np.random.Generator,
) -> tuple[OrthantEstimate, Array, Array]:
    """Make training and test pass: the estimate of P(v >= 0), and P(v* >= 0 | v >= 0) with its standard errors (t,).

    As `sample_orthant` followed by `conditional_probability`, but one population after the other, in the memory of one.
    """
    sizes, L = _prepared(cov, samples, count, scheme, runs)
    A = test_rows(L, cross_cov, variance)
    estimate, weights, passes = train(
        L,
        np.zeros(len(L)),
        sizes,
        count,
        scheme,
        rng,
        lambda population: predict(*samples_of(population), A, count == "soft", rng),
    )
    return estimate, *average_predictions(weights, passes, scheme, estimate.effective_eves)


def _prepared(
    cov: ArrayLike, samples: int, count: str, scheme: str, runs: int | None
) -> tuple[list[int], Array]:
    """Return the sizes of populations and the Cholesky factor, once all options are known to be good."""
    sizes = population_sizes(samples, runs)
    validation.check_option("count", count, ("hard", "soft"))
    validation.check_option("scheme", scheme, ("bootstrap", "adapted"))
    cov = validation.check_covariance("cov", cov)
    try:
        return sizes, cholesky(cov, lower=True)
    except LinAlgError as error:
        raise ValueError(f"cov must be positive definite: {error}") from None


def _check_limits(name: str, value: ArrayLike, n: int) -> Array:
    ndim = min(validation.as_real(name, value).ndim, 1)
    array = validation.check_array(name, value, ndim=ndim)
    if ndim == 1 and array.shape != (n,):
        raise ValueError(f"{name} must be a number or of shape ({n},); got shape {array.shape}")
    return np.broadcast_to(array, (n,))


def test_rows(L: Array, cross_cov: Array, variance: Array) -> Array:
    """Return the rows (t, n) that map innovations to (conditional mean)/(conditional sd) of the test coordinates.

    Their covariances (n, t) with v, whose lower Cholesky factor is L, and their variances (t,) must leave each a
    variance above zero.
    """
    A = solve_triangular(L, cross_cov, lower=True)
    conditional = variance - np.sum(A * A, axis=0)  # Eq. 60
    if np.any(conditional <= 0):
        worst = int(np.argmin(conditional))
        raise ValueError(
            "cross_cov and variance (K_star and k_star_star) must be covariances with the training "
            f"patterns; test pattern {worst} would have variance {conditional[worst]:.3g} given them"
        )
    return np.ascontiguousarray((A / np.sqrt(conditional)).T)
