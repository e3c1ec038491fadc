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
2018, Biometrika 105, 609).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from gpcmc import _validation as validation
from gpcmc.orthant._sampler import Population, Segment, predict

Array = NDArray[np.float64]
T = TypeVar("T")
Count = Literal["hard", "soft"]
Scheme = Literal["bootstrap", "adapted"]
Samples = tuple[list[Segment], np.ndarray, np.ndarray, np.ndarray]

#: Samples of one population unless `runs` says otherwise (paper, section 6.1).
MAX_POPULATION = 200_000
#: The adapted scheme resamples below this fraction of the population.
ESS_THRESHOLD = 0.5


class ExtinctionError(RuntimeError):
    """Every population lost all its samples."""


@dataclass(frozen=True, slots=True)
class OrthantEstimate:
    """An estimated orthant probability.

    Attributes
    ----------
    log_probability : float
        Natural logarithm of the estimate.
    standard_error : float
        Standard error of `log_probability` (the relative one of the probability), from the genealogy,
        or from the spread between populations where that is larger. It is too small where a handful of
        eves have descendants left: then no run knows how wrong it is, and only more samples tell.
    log_stage_probabilities : (n,) array
        log P(v_i inside | v_1 .. v_{i-1} inside), estimated; their sum is `log_probability`.
    samples, populations : int
        Samples in all, and the number of populations they were divided into.
    extinct : int
        Populations that lost all their samples; each counted as probability zero.
    """

    log_probability: float
    standard_error: float
    log_stage_probabilities: Array
    samples: int
    populations: int
    extinct: int


@dataclass(frozen=True, slots=True)
class Particles:
    """The samples of a finished training pass: draws from the posterior, ready for test patterns.

    Attributes
    ----------
    L : (n, n) array
        Lower Cholesky factor of the covariance.
    populations : tuple of tuples
        Of each population that is not extinct: the arguments of `_sampler.predict` that name its
        samples.
    weights : (len(populations),) array
        Share of each population in the average: proportional to its estimated probability.
    """

    L: Array
    populations: tuple[Samples, ...]
    weights: Array


@threadpool_limits.wrap(limits=1)
def orthant_probability(
    cov: ArrayLike,
    *,
    samples: int = 100_000,
    count: Count = "soft",
    scheme: Scheme = "bootstrap",
    mean: ArrayLike = 0.0,
    lower: ArrayLike = 0.0,
    runs: int | None = None,
    rng: np.random.Generator,
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
        Number of independent populations whose probability estimates are averaged; by default as few
        as keep each within `MAX_POPULATION` samples.
    rng : numpy.random.Generator
        Consumed: equal states give equal bits on one machine.

    Returns
    -------
    OrthantEstimate

    Raises
    ------
    ValueError
        If an argument is not as above; the message names it. An indefinite `cov` is refused with the
        order of the leading minor that fails.
    ExtinctionError
        If every population lost all its samples; the message names the stage and the remedy.

    Notes
    -----
    Time O(n^3 + samples n log n) and memory O(n^2 + samples log(n) / runs), for only ancestors that have
    descendants are kept; where the adapted scheme resamples little, up to samples n^2 and samples n.

    References
    ----------
    Atiya, Fayed and Abdel-Gawad (2021), sections 5.1 to 5.7.
    """
    sizes = _population_sizes(samples, runs)
    _check_options(count, scheme, rng)
    cov = validation.check_covariance("cov", cov)
    offset = _check_limits("mean", mean, len(cov)) - _check_limits("lower", lower, len(cov))
    estimate, _, _ = _train(_factor(cov), offset, sizes, count, scheme, rng, lambda _: None)
    return estimate


@threadpool_limits.wrap(limits=1)
def sample_orthant(
    cov: Array,
    *,
    samples: int,
    count: Count,
    scheme: Scheme,
    runs: int | None,
    rng: np.random.Generator,
) -> tuple[OrthantEstimate, Particles]:
    """As `orthant_probability` with zero mean and limits, and keep the samples of all populations.

    Parameters
    ----------
    cov : (n, n) array
    samples, count, scheme, runs, rng
        As there.

    Returns
    -------
    estimate : OrthantEstimate
    particles : Particles

    Raises
    ------
    ValueError, ExtinctionError
        As there.
    """
    sizes = _population_sizes(samples, runs)
    _check_options(count, scheme, rng)
    cov = validation.check_covariance("cov", cov)
    L = _factor(cov)
    estimate, weights, kept = _train(
        L, np.zeros(len(L)), sizes, count, scheme, rng, _samples, reuse=False
    )
    return estimate, Particles(L, tuple(kept), weights)


@threadpool_limits.wrap(limits=1)
def conditional_probability(
    particles: Particles,
    cross_cov: Array,
    variance: Array,
    *,
    count: Count,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """P(v* >= 0 | v >= 0) for each test coordinate, from the samples of the training pass.

    Parameters
    ----------
    particles : Particles
    cross_cov : (n, t) array
        Covariances of v with the test coordinates.
    variance : (t,) array
        Variances of the test coordinates.
    count : {"soft", "hard"}
        Eq. 62 or Eq. 61.
    rng : numpy.random.Generator
        Consumed by the hard count only.

    Returns
    -------
    probability, standard_error : (t,) arrays

    Raises
    ------
    ValueError
        If the test coordinates cannot belong to the covariance of v.
    """
    A = test_rows(particles.L, cross_cov, variance)
    passes = [predict(*samples, A, count == "soft", rng) for samples in particles.populations]
    return _average_predictions(particles.weights, passes)


@threadpool_limits.wrap(limits=1)
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
    """Training and test pass, one population after the other: P(v >= 0) and P(v* >= 0 | v >= 0).

    As `sample_orthant` followed by `conditional_probability`, whose parameters these are, but memory is
    that of one population.

    Returns
    -------
    estimate : OrthantEstimate
    probability, standard_error : (t,) arrays

    Raises
    ------
    ValueError, ExtinctionError
        As these.
    """
    sizes = _population_sizes(samples, runs)
    _check_options(count, scheme, rng)
    cov = validation.check_covariance("cov", cov)
    L = _factor(cov)
    A = test_rows(L, cross_cov, variance)
    estimate, weights, passes = _train(
        L,
        np.zeros(len(L)),
        sizes,
        count,
        scheme,
        rng,
        lambda population: predict(*_samples(population), A, count == "soft", rng),
    )
    return estimate, *_average_predictions(weights, passes)


def _population_sizes(samples: int, runs: int | None) -> list[int]:
    samples = validation.check_positive_int("samples", samples)
    if runs is None:
        runs = -(-samples // MAX_POPULATION)
    runs = validation.check_positive_int("runs", runs)
    if samples // runs < 2:
        raise ValueError(
            f"samples must be at least 2 for each of the runs ({runs}), for a standard error; "
            f"got {samples}"
        )
    return [samples // runs + (k < samples % runs) for k in range(runs)]


def _check_options(count: str, scheme: str, rng: np.random.Generator) -> None:
    validation.check_option("count", count, ("hard", "soft"))
    validation.check_option("scheme", scheme, ("bootstrap", "adapted"))
    validation.check_rng("rng", rng)


def _check_limits(name: str, value: ArrayLike, n: int) -> Array:
    array = validation.check_array(name, value, ndim=min(np.ndim(value), 1))
    if np.ndim(value) == 1 and array.shape != (n,):
        raise ValueError(f"{name} must be a number or of shape ({n},); got shape {array.shape}")
    return np.broadcast_to(array, (n,))


def _factor(cov: Array) -> Array:
    try:
        return cholesky(cov, lower=True)
    except LinAlgError as error:
        raise ValueError(f"cov must be positive definite: {error}") from None


def _train(
    L: Array,
    offset: Array,
    sizes: list[int],
    count: Count,
    scheme: Scheme,
    rng: np.random.Generator,
    harvest: Callable[[Population], T],
    *,
    reuse: bool = True,
) -> tuple[OrthantEstimate, Array, list[T]]:
    """Run the populations one after the other; take from each that lives what `harvest` makes of it.

    With `reuse` they share their arrays, for touching fresh memory costs time: what is harvested must
    not refer to them.

    Returns
    -------
    estimate : OrthantEstimate
    weights : array
        Share in the average, of the populations that live.
    harvested : list
    """
    diagonal = np.diag(L)
    G, shift = np.ascontiguousarray(L / diagonal[:, None]), np.ascontiguousarray(offset / diagonal)
    threshold = ESS_THRESHOLD if scheme == "adapted" else 0.0
    log_stages, errors = [], []
    alive: list[int] = []
    harvested: list[T] = []
    population = None
    for k, size in enumerate(sizes):
        if population is None or size != population.M or not reuse:
            population = Population(G, shift, size, count == "soft", threshold)
        failed = population.run(rng)
        log_stages.append(_stages(population, failed))
        errors.append(_relative_variance(population))
        if not failed:
            alive.append(k)
            harvested.append(harvest(population))
    estimate, weights = _combine(sizes, log_stages, errors)
    return estimate, weights[alive], harvested


def _samples(population: Population) -> Samples:
    return population.segments, population.link, population.eves, population.weights


def _stages(population: Population, failed: int) -> Array:
    """Log stage probabilities; minus infinity from the stage on at which the population died."""
    log_stages = np.array(population.log_stages)
    if failed:
        log_stages[failed - 1 :] = -np.inf
    return log_stages


def _relative_variance(population: Population) -> float:
    """Of the probability estimate, from the eves' influence on it."""
    M = population.M
    return float(np.sum(population.influence**2) / (M * max(M - 1, 1)))


def _combine(
    sizes: list[int], log_stages: list[Array], errors: list[float]
) -> tuple[OrthantEstimate, Array]:
    """Average the populations' estimates on the probability scale (paper, section 6.1)."""
    paths = np.cumsum(log_stages, axis=1)  # log probability of the first i coordinates
    log_size = np.log(np.asarray(sizes) / np.sum(sizes))
    averaged = logsumexp(paths + log_size[:, None], axis=0)
    extinct = int(np.sum(np.isneginf(paths[:, -1])))
    if np.isneginf(averaged[-1]):
        stage = int(np.argmax(np.isneginf(averaged))) + 1
        raise ExtinctionError(
            f"no sample of any population was inside at stage {stage} of {paths.shape[1]}; "
            "use scheme='adapted', which draws inside the limits, or more samples, "
            "or another order of the coordinates (interleave the classes)"
        )
    weights = np.exp(paths[:, -1] + log_size - averaged[-1])
    alive = weights > 0
    genealogy = np.sum(weights[alive] ** 2 * np.asarray(errors)[alive])
    runs = len(sizes)
    between = np.sum((weights - weights.mean()) ** 2) * runs / (runs - 1) if runs > 1 else 0.0
    estimate = OrthantEstimate(
        log_probability=float(averaged[-1]),
        standard_error=float(np.sqrt(max(genealogy, between))),
        log_stage_probabilities=np.diff(averaged, prepend=0.0),
        samples=int(np.sum(sizes)),
        populations=len(sizes),
        extinct=extinct,
    )
    return estimate, weights


def test_rows(L: Array, cross_cov: Array, variance: Array) -> Array:
    """Rows (t, n) that map innovations to (conditional mean)/(conditional sd) of the test coordinates.

    Parameters
    ----------
    L : (n, n) array
        Lower Cholesky factor of the covariance of v.
    cross_cov : (n, t) array
        Covariances of v with the test coordinates.
    variance : (t,) array
        Variances of the test coordinates.

    Raises
    ------
    ValueError
        If a conditional variance is not positive.
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


def _average_predictions(weights: Array, passes: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    probability = weights @ np.array([p for p, _ in passes])
    variance = weights**2 @ np.array([v for _, v in passes])
    # the weights sum to one up to rounding: a probability of 1 must not print as 1.0000000000000002
    return np.clip(probability, 0.0, 1.0), np.sqrt(variance)
