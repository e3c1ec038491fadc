"""The probability of one block of correlated coordinates: closed forms, the choice of a method, and its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError

from gpcmc._validation import FloatArray
from gpcmc.posterior import MAX_K_HAT, OK, UNTRUSTED
from gpcmc.rectangle import rounds
from gpcmc.rectangle.blocks import Block
from gpcmc.rectangle.closed import one_dimension, two_dimensions
from gpcmc.rectangle.engine import Sampler, plain_sampler
from gpcmc.rectangle.factor import Factor, factorize, has_interior
from gpcmc.rectangle.intervals import moments
from gpcmc.rectangle.rounds import Mixture, Round
from gpcmc.rectangle.sites import propagate, twisted_proposal
from gpcmc.rectangle.tilt import rectangle_tilt

Method = Literal["auto", "minimax-tilting", "twisted-ep", "separation"]
METHODS = ("auto", "minimax-tilting", "twisted-ep", "separation")
#: The method of a result that took no samples.
CLOSED = "closed form"
#: The samples are spent, and the error is above the tolerance.
NOT_MET = "tolerance not met"
#: No sample was inside: nothing is known but the guaranteed upper bound.
NOTHING = "no sample inside"

# Points of a scramble in the rounds that `auto` compares methods by.
_PILOT = 128
# It does not look for another method where the first is expected to need no more samples than this.
_CHEAP = 2**15


@dataclass(frozen=True, slots=True)
class Solution:
    """What is known of a block.

    Attributes
    ----------
    log_probability, standard_error : float
    samples : int
        Of all rounds.
    status, method : str
    diagnostics : dict of str to float
    mixture : Mixture or None
        What drew the samples; None for a closed form.
    last : int
        Samples of the last round.
    """

    log_probability: float
    standard_error: float
    samples: int
    status: str
    method: str
    diagnostics: dict[str, float]
    mixture: Mixture | None = None
    last: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller wants of a block.

    Attributes
    ----------
    method : str
    largest_se : float
        Standard error to go on to.
    budget : int
        Samples at most.
    n_jobs : int
    """

    method: str
    largest_se: float
    budget: int
    n_jobs: int


def solve(block: Block, request: Request, rng: np.random.Generator) -> Solution:
    """Find the probability of a block."""
    exact = closed_form(block) if request.method == "auto" else None
    if exact is not None:
        return exact
    factor = factorize(block)
    if factor.rank == 1:
        return _exact(*_one_innovation(factor), factor)
    name, mixture, first, before = choose(factor, request, rng)
    if factor.ties and first is None:
        first = rounds.run_round(
            mixture, rounds.FIRST, rng.integers(2**63, size=rounds.SCRAMBLES), request.n_jobs
        )
        before += first.samples
    if first is not None and np.isneginf(first.log_probability) and not has_interior(factor):
        return _exact(-np.inf, 0.0, factor)
    last, spent, number = rounds.run_rounds(
        mixture, request.largest_se, request.budget - before, rng, request.n_jobs, first
    )
    bound = mixture.log_bound - last.log_probability
    diagnostics = last.diagnostics | {
        "log_weight_bound": float(bound),
        "rank": float(factor.rank),
        "rounds": float(number + (first is not None)),
    }
    return Solution(
        last.log_probability,
        last.standard_error,
        spent + before,
        _status(last, bound, request),
        name,
        diagnostics,
        mixture,
        last.samples,
    )


def closed_form(block: Block) -> Solution | None:
    """Return the exact probability of a block of one or two coordinates; None of others."""
    if len(block.R) == 1:
        return _exact(*one_dimension(block.lower[0], block.upper[0]))
    if len(block.R) == 2 and abs(rho := float(block.R[0, 1])) < 1.0 - block.slack:
        return _exact(*two_dimensions(block.lower, block.upper, rho))
    return None


def _one_innovation(factor: Factor) -> tuple[float, float]:
    """Return the probability where all coordinates are multiples of one: the interval that all leave."""
    low, high = float(factor.lower[0]), float(factor.upper[0])
    for tie in factor.ties.values():
        one, other = tie.lower / tie.rows[:, 0], tie.upper / tie.rows[:, 0]
        low, high = max(low, *np.minimum(one, other)), min(high, *np.maximum(one, other))
    return one_dimension(low, high) if low < high else (-np.inf, 0.0)


def _exact(log_p: float, error: float, factor: Factor | None = None) -> Solution:
    rank = {} if factor is None else {"rank": float(factor.rank)}
    return Solution(log_p, error, 0, OK, CLOSED, rank)


def _status(last: Round, bound: float, request: Request) -> str:
    if np.isneginf(last.log_probability):
        return NOTHING
    # where the bound leaves to no single sample a tenth of the sum, nothing can hide in the tail
    hidden = bound > np.log(0.1 * last.samples)
    if hidden and last.diagnostics["k_hat"] > MAX_K_HAT:
        return UNTRUSTED
    return OK if last.good(request.largest_se) else NOT_MET


def choose(
    factor: Factor, request: Request, rng: np.random.Generator
) -> tuple[str, Mixture, Round | None, int]:
    """Return a method, what it draws from, its pilot round if there was one, and the samples of all pilots.

    Pilots are compared by squared error times work, the work that one sample is in each method: a choice by the
    clock would make the result depend on the machine's load.
    """
    rounds.check_dimension(factor.rank)
    if request.method == "separation":
        return "separation", separation(factor), None, 0
    mixture, sampler = tilting(factor)
    if request.method == "minimax-tilting":
        return "minimax-tilting", mixture, None, 0
    if request.method == "twisted-ep":
        other = twisted(factor, sampler, mixture.log_bound)
        if other is None:
            raise ValueError(
                "cov and the limits leave expectation propagation no proposal that floating point can hold; "
                "use method='auto' or method='minimax-tilting'"
            )
        return "twisted-ep", other, None, 0
    seeds = rng.integers(2**63, size=(2, rounds.SCRAMBLES))
    pilot = rounds.run_round(mixture, _PILOT, seeds[0], request.n_jobs)
    expected = pilot.samples * (pilot.standard_error / request.largest_se) ** 2
    tilt = "minimax-tilting", mixture, pilot, pilot.samples
    if expected < _CHEAP and pilot.diagnostics["k_hat"] < MAX_K_HAT:
        return tilt
    if (other := twisted(factor, sampler, mixture.log_bound)) is None:
        return tilt
    rival = rounds.run_round(other, _PILOT, seeds[1], request.n_jobs)
    spent = pilot.samples + rival.samples
    if _work(rival, other) < _work(pilot, mixture):
        return "twisted-ep", other, rival, spent
    return "minimax-tilting", mixture, pilot, spent


def _work(pilot: Round, mixture: Mixture) -> float:
    # a heavy tail hides its error from a pilot
    heavy = 10.0 if pilot.diagnostics["k_hat"] > MAX_K_HAT else 1.0
    return heavy * pilot.standard_error**2 * pilot.samples * mixture.cost


def separation(factor: Factor) -> Mixture:
    """Return Genz's method: innovations from N(0, 1) inside the limits."""
    sampler = plain_sampler(factor, np.zeros(factor.rank))
    d = factor.L[0, 0]
    first = moments(factor.lower[:1] / d, factor.upper[:1] / d)[0]
    return Mixture.of(sampler, float(first[0]))  # all other factors are probabilities


def tilting(factor: Factor) -> tuple[Mixture, Sampler]:
    """Return minimax tilting."""
    tilt = rectangle_tilt(factor.L, factor.lower, factor.upper)
    sampler = plain_sampler(factor, tilt.mu)
    return Mixture.of(sampler, tilt.log_bound), sampler


def twisted(factor: Factor, defence: Sampler, log_bound: float) -> Mixture | None:
    """Return the proposal of EP's sites, defended; None where rounding leaves none."""
    try:
        nu, tau, _ = propagate(factor.L, factor.lower, factor.upper)
        proposal, origin = twisted_proposal(factor.L, nu, tau)
    except (LinAlgError, ValueError):
        return None
    return Mixture.of(Sampler.of(proposal, factor, origin), log_bound, defence)


def combine(solutions: list[Solution]) -> tuple[float, float]:
    """Return log probability and standard error of a product of independent estimates."""
    total: FloatArray = np.array([[s.log_probability, s.standard_error] for s in solutions])
    return float(total[:, 0].sum()), float(np.sqrt(np.sum(total[:, 1] ** 2)))
