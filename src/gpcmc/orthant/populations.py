"""Populations of the orthant sampler: their sizes, the runs one after the other, and the average of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gpcmc import _validation as validation
from gpcmc.orthant._sampler import Population, Segment
from gpcmc.posterior import MIN_EFFECTIVE, NOT_CONVERGED, OK
from gpcmc.weights import student_factor

Array = NDArray[np.float64]
T = TypeVar("T")
Count = Literal["hard", "soft"]
Scheme = Literal["bootstrap", "adapted"]
Samples = tuple[list[Segment], np.ndarray, np.ndarray, np.ndarray]

#: Populations at most: their estimates are kept, and a run of so many takes weeks.
MAX_RUNS = 1_000_000
#: Samples of one population at most: their indices have 32 bits.
MAX_SAMPLES = 2**31 - 8
#: Samples of one population unless `runs` says otherwise (paper, section 6.1).
MAX_POPULATION = 200_000
#: The adapted scheme resamples below this fraction of the population.
ESS_THRESHOLD = 0.5
#: From so many populations on, the adapted scheme takes its standard errors from their spread.
MIN_POPULATIONS = 10
#: With fewer effective eves all samples descend from one, and nothing tells how far off they are.
LONE = 2.0


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
        Standard error of `log_probability` (the relative one of the probability); infinite with fewer than `LONE`
        effective eves, for nothing then shows the error. Read `status` with it.
    formula_error : float
        What the formula gives whatever the number of eves. With the adapted scheme: from the spread between
        populations, if there are `MIN_POPULATIONS` or more, otherwise from the genealogy, and in either case widened
        by Student's t for the few contributions that it is estimated from. With the bootstrap scheme: the larger of
        the two, as it is. Of a lone eve the formula gives anything, zero too.
    log_stage_probabilities : (n,) array
        log P(v_i inside | v_1 .. v_{i-1} inside), estimated; their sum is `log_probability`.
    samples : int
        Samples in all.
    populations : int
        The number of populations they were divided into.
    extinct : int
        Populations that lost all their samples; each counted as probability zero.
    effective_eves : float
        (sum w)^2 / sum w^2 over the eves, the samples at the first coordinate, w being the weight of an eve's
        descendants. Its inverse is about the relative variance of the estimated probability. Below 100 the
        standard error is too small more often than it says, and below 10 it means nothing: what a run has never
        seen is not in its genealogy.
    status : str
        "ok", or "not converged" with fewer than 100 effective eves.
    """

    log_probability: float
    formula_error: float
    log_stage_probabilities: Array
    samples: int
    populations: int
    extinct: int
    effective_eves: float

    @property
    def standard_error(self) -> float:
        """Of `log_probability`; infinite where it is not known."""
        return np.inf if self.effective_eves < LONE else self.formula_error

    @property
    def status(self) -> str:
        """Whether to believe the estimate and its error."""
        return NOT_CONVERGED if self.effective_eves < MIN_EFFECTIVE else OK


def population_sizes(samples: int, runs: int | None) -> list[int]:
    """Divide samples evenly between so many runs; None is for as few as keep each within `MAX_POPULATION` samples.

    A run has two samples at least and fewer than `MAX_SAMPLES`; there are `MAX_RUNS` at most.
    """
    samples = validation.check_positive_int("samples", samples)
    if runs is None:
        runs = -(-samples // MAX_POPULATION)
        if runs > MAX_RUNS:
            raise ValueError(
                f"samples must be at most {MAX_RUNS * MAX_POPULATION:.3g} ({MAX_RUNS:,} populations of "
                f"{MAX_POPULATION:,}); got {samples:.3g}"
            )
    runs = validation.check_positive_int("runs", runs)
    if runs > MAX_RUNS:
        raise ValueError(f"runs must be at most {MAX_RUNS:,}; got {runs:.3g}")
    if samples // runs < 2:
        raise ValueError(
            f"samples must be at least 2 for each of the runs ({runs}), for a standard error; "
            f"got {samples}"
        )
    if samples // runs >= MAX_SAMPLES:
        raise ValueError(
            f"samples must be fewer than {MAX_SAMPLES:,} for each of the runs ({runs}); got {samples:.3g}: "
            "more runs, or none given, divide them"
        )
    return [samples // runs + (k < samples % runs) for k in range(runs)]


def train(
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

    With `reuse` they share their arrays, for touching fresh memory costs time: what is harvested must not refer to
    them. Returns the estimate, the shares in the average of the populations that live, and what was harvested.
    """
    diagonal = np.diag(L)
    G, shift = np.ascontiguousarray(L / diagonal[:, None]), np.ascontiguousarray(offset / diagonal)
    threshold = ESS_THRESHOLD if scheme == "adapted" else 0.0
    log_stages, genealogies = [], []
    alive: list[int] = []
    harvested: list[T] = []
    population = None
    for k, size in enumerate(sizes):
        if population is None or size != population.M or not reuse:
            population = Population(G, shift, size, count == "soft", threshold)
        failed = population.run(rng)
        log_stages.append(_stages(population, failed))
        genealogies.append(_genealogy(population))
        if not failed:
            alive.append(k)
            harvested.append(harvest(population))
    estimate, weights = _combine(sizes, log_stages, genealogies, scheme)
    return estimate, weights[alive], harvested


def samples_of(population: Population) -> Samples:
    """Return the arguments of `_sampler.predict` that name the samples of a population."""
    return population.segments, population.link, population.eves, population.weights


def _stages(population: Population, failed: int) -> Array:
    """Log stage probabilities; minus infinity from the stage on at which the population died."""
    log_stages = np.array(population.log_stages)
    if failed:
        log_stages[failed - 1 :] = -np.inf
    return log_stages


class Genealogy(NamedTuple):
    """What the eves of a population say of the error of its probability estimate."""

    variance: float  # relative; the sum of squares of the eves' contributions
    fourth: float  # sum of the fourth powers of these contributions
    shares: float  # sum of squares of the eves' shares in the weight


def _genealogy(population: Population) -> Genealogy:
    M = population.M
    squares, pairs = population.influence**2, M * max(M - 1, 1)
    weights = np.bincount(population.eves, weights=population.weights)
    shares = np.sum(weights**2) / np.sum(weights) ** 2
    variance, fourth = np.sum(squares) / pairs, np.sum(squares**2) / pairs**2
    return Genealogy(float(variance), float(fourth), float(shares))


def _combine(
    sizes: list[int], log_stages: list[Array], genealogies: list[Genealogy], scheme: Scheme
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
    variance, fourth, shares = np.array(genealogies)[alive].T
    genealogy = np.sum(weights[alive] ** 2 * variance)
    runs = len(sizes)
    between = np.sum((weights - weights.mean()) ** 2) * runs / (runs - 1) if runs > 1 else 0.0
    if scheme == "bootstrap":
        error = np.sqrt(max(genealogy, between))
    elif runs >= MIN_POPULATIONS:
        error = _log_error(between, runs - 1.0, runs)
    else:
        quartic = np.sum(weights[alive] ** 4 * fourth)
        degrees = 2.0 * genealogy**2 / quartic if quartic > 0 else np.inf
        error = _log_error(genealogy, degrees, int(np.sum(sizes)))
    estimate = OrthantEstimate(
        log_probability=float(averaged[-1]),
        formula_error=float(error),
        log_stage_probabilities=np.diff(averaged, prepend=0.0),
        samples=int(np.sum(sizes)),
        populations=len(sizes),
        extinct=extinct,
        effective_eves=float(np.sum(weights) ** 2 / np.sum(weights[alive] ** 2 * shares)),
    )
    return estimate, weights


def _log_error(variance: float, degrees: float, contributions: int) -> float:
    """Return the standard error of a logarithm from an estimated relative variance.

    The variance is estimated by shares in a whole, so it stops at one however large it is: a pair of samples has one
    eve with a probability p, and different ones with 1 - p, p growing with each stage's variance as
    1 - exp(-variance) does (Lee and Whiteley 2018). `degrees` are those of the variance: its squared coefficient of
    variation is 2 / degrees.
    """
    error = float(np.sqrt(-np.log1p(-min(variance, 1.0 - 1.0 / contributions))))
    return error * student_factor(max(degrees, 1.0))


def average_predictions(
    weights: Array, passes: list[tuple[Array, Array]], scheme: Scheme, eves: float
) -> tuple[Array, Array]:
    """Return probabilities and standard errors (t,) from those of the populations, by their weights.

    The errors are as those of `OrthantEstimate`, infinite too where it has a lone eve; `eves` are the effective ones.
    """
    each = np.array([p for p, _ in passes])
    probability = weights @ each
    runs = len(passes)
    if scheme == "adapted" and runs >= MIN_POPULATIONS:
        variance = weights**2 @ (each - probability) ** 2 * runs / (runs - 1)
        factor = student_factor(runs - 1.0)
    else:
        variance = weights**2 @ np.array([v for _, v in passes])
        factor = student_factor(max(eves - 1.0, 1.0)) if scheme == "adapted" else 1.0
    error = np.sqrt(variance) * factor if eves >= LONE else np.full(len(probability), np.inf)
    # the weights sum to one up to rounding: a probability of 1 must not print as 1.0000000000000002
    return np.clip(probability, 0.0, 1.0), error
