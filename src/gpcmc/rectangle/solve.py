"""The probability of one block of correlated coordinates: closed forms, the choice of a method, and its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import Sited
from gpcmc.posterior import MAX_K_HAT, NOT_MET, OK, UNTRUSTED
from gpcmc.rectangle import proposals, rounds, small
from gpcmc.rectangle.blocks import Block
from gpcmc.rectangle.limits import moments
from gpcmc.rectangle.mixture import Average, Mixture
from gpcmc.rectangle.order import Ordered, has_interior, ordered
from gpcmc.rectangle.proposals import Proposal
from gpcmc.rectangle.sites import held, propagate
from gpcmc.rectangle.tilt import Tilt, minimax_tilt
from gpcmc.weights import hidden_tail

Method = Literal["auto", "minimax-tilting", "twisted-ep", "separation"]
METHODS = ("auto", "minimax-tilting", "twisted-ep", "separation")
#: The method of a result that took no samples.
CLOSED = "closed form"
#: No sample was inside: nothing is known but the guaranteed upper bound.
NOTHING = "no sample inside"

# Standard deviations: the rounding of x^2 / 2 is then a hundredth of what panels are halved for.
_REACH = 1e4
#: Points of a scramble in the rounds that `auto` compares methods by.
PILOT = 128
# It does not look for another method where the first is expected to need no more samples than this.
_CHEAP = 2**15


@dataclass(frozen=True, slots=True)
class Solution:
    """What is known of a block."""

    log_probability: float
    standard_error: float
    samples: int  # of all rounds
    status: str
    method: str
    diagnostics: dict[str, float]
    mixture: Mixture | None = None  # what drew the samples; None for a closed form
    last: int = 0  # samples of the last round


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller wants of a block."""

    method: str
    largest_se: float  # standard error to go on to
    budget: int  # samples at most
    n_jobs: int


def solve(block: Block, request: Request, rng: np.random.Generator) -> Solution:
    """Find the probability of a block."""
    exact = closed_form(block) if request.method == "auto" else None
    if exact is not None:
        return exact
    given = ordered(block.R, block.lower, block.upper, block.slack)
    if given.rank == 1:
        return _exact(*_one_innovation(given), given.rank)
    name, mixture, first, before = choose(given, request, rng)
    if given.ties and first is None:
        first = rounds.run_round(mixture, rounds.FIRST, rng, request.n_jobs)
        before += first.samples
    if first is not None and np.isneginf(first.log_probability) and not has_interior(given):
        return _exact(-np.inf, 0.0, given.rank)
    budget = request.budget - before
    last, spent, number = rounds.run_rounds(
        partial(rounds.run_round, mixture, rng=rng, n_jobs=request.n_jobs),
        request.largest_se,
        lambda points, so_far: so_far + rounds.round_size(mixture, points) <= budget,
        first=first,
        futile=rounds.beyond(mixture, budget),
    )
    bound = mixture.log_bound - last.log_probability
    diagnostics = last.diagnostics | {
        "log_weight_bound": float(bound),
        "rank": float(given.rank),
        "rounds": float(number + (first is not None)),
    }
    return Solution(
        last.log_probability,
        last.standard_error,
        spent + before,
        _status(last, diagnostics, request),
        name,
        diagnostics,
        mixture,
        last.samples,
    )


def out_of_reach(lower: FloatArray, upper: FloatArray) -> NDArray[np.bool_]:
    """Say which rectangles (m, n) are so far out that quadrature in three dimensions follows nothing but rounding."""
    if lower.shape[1] < small.LARGEST:
        return np.zeros(len(lower), bool)
    found: NDArray[np.bool_] = np.maximum(lower, -upper).max(axis=1) > _REACH
    return found


def closed_form(block: Block) -> Solution | None:
    """Return the probability of a block of up to three coordinates, by quadrature; None of others.

    None, too, where floating point holds nothing of the probability: whether it is zero another way has to say.
    """
    if len(block.R) > small.LARGEST or out_of_reach(block.lower[None], block.upper[None])[0]:
        return None
    log_p, error = small.log_probabilities(
        block.lower[None], block.upper[None], block.R[None], block.slack
    )
    return None if np.isinf(error[0]) else _exact(float(log_p[0]), float(error[0]))


def _one_innovation(given: Ordered) -> tuple[float, float]:
    """Return the probability where all coordinates are multiples of one: the interval that all leave."""
    low, high = float(given.lower[0]), float(given.upper[0])
    for tie in given.ties.values():
        one, other = tie.lower / tie.rows[:, 0], tie.upper / tie.rows[:, 0]
        low, high = max(low, *np.minimum(one, other)), min(high, *np.maximum(one, other))
    return small.one_dimension(low, high) if low < high else (-np.inf, 0.0)


def _exact(log_p: float, error: float, rank: int | None = None) -> Solution:
    told = {} if rank is None else {"rank": float(rank)}
    return Solution(log_p, error, 0, OK, CLOSED, told)


def _status(last: Average, diagnostics: dict[str, float], request: Request) -> str:
    if np.isneginf(last.log_probability):
        return NOTHING
    if hidden_tail(diagnostics):
        return UNTRUSTED
    return OK if rounds.good(last, request.largest_se) else NOT_MET


def choose(
    given: Ordered,
    request: Request,
    rng: np.random.Generator,
    tilted: Mixture | None = None,
) -> tuple[str, Mixture, Average | None, int]:
    """Return a method, what it draws from, its pilot round if there was one, and the samples of all pilots.

    Pilots are compared by squared error times work, the work that one sample is in each method: a choice by the
    clock would make the result depend on the machine's load.
    """
    if request.method == "separation":
        return "separation", separation(given), None, 0
    mixture = tilting(given) if tilted is None else tilted
    if request.method == "minimax-tilting":
        return "minimax-tilting", mixture, None, 0
    if request.method == "twisted-ep":
        _, other = guided(given, mixture)
        if other is None:
            raise ValueError(
                "cov and the limits leave expectation propagation no proposal that floating point can hold; "
                "use method='auto' or method='minimax-tilting'"
            )
        return "twisted-ep", other, None, 0
    pilot = rounds.run_round(mixture, PILOT, rng, request.n_jobs)
    spent = pilot.samples
    if cheap(pilot, request):
        return "minimax-tilting", mixture, pilot, spent
    better, other = guided(given, mixture)
    if better is not mixture:
        mixture, pilot = better, rounds.run_round(better, PILOT, rng, request.n_jobs)
        spent += pilot.samples
    if other is None or cheap(pilot, request):
        return "minimax-tilting", mixture, pilot, spent
    rival = rounds.run_round(other, PILOT, rng, request.n_jobs)
    spent += rival.samples
    if _work(rival, other) < _work(pilot, mixture):
        return "twisted-ep", other, rival, spent
    return "minimax-tilting", mixture, pilot, spent


def cheap(pilot: Average, request: Request) -> bool:
    """Say whether a method whose pilot this is will need few samples."""
    expected = pilot.samples * (pilot.standard_error / request.largest_se) ** 2
    return bool(expected < _CHEAP and pilot.diagnostics["k_hat"] < MAX_K_HAT)


def _work(pilot: Average, mixture: Mixture) -> float:
    # a heavy tail hides its error from a pilot
    heavy = 10.0 if pilot.diagnostics["k_hat"] > MAX_K_HAT else 1.0
    return heavy * pilot.standard_error**2 * pilot.samples * mixture.cost


def separation(given: Ordered) -> Mixture:
    """Return Genz's method: innovations from N(0, 1) inside the limits."""
    d = given.factor.d[0]
    first = moments(given.lower[:1] / d, given.upper[:1] / d)[
        0
    ]  # all other factors are probabilities
    plain = proposals.tilted(given.factor, np.zeros(given.rank), given.lower, given.upper)
    return Mixture((plain,), float(first[0]), given.ties)


def tilting(given: Ordered) -> Mixture:
    """Return minimax tilting."""
    tilt = minimax_tilt(given.factor, given.lower, given.upper, starts=[given.start])
    if not tilt.converged and (found := _sites(given)) is not None:
        tilt = _better(given, tilt.log_bound, found[0]) or tilt
    return _tilted(given, tilt)


def guided(given: Ordered, tilted: Mixture) -> tuple[Mixture, Mixture | None]:
    """Return what expectation propagation makes: a better tilt, or the same; and the proposal of its sites, defended.

    The second is None where rounding leaves none.
    """
    if (found := _sites(given)) is None:
        return tilted, None
    sited, proposal = found
    if (better := _better(given, tilted.log_bound, sited)) is not None:
        tilted = _tilted(given, better)
    return tilted, Mixture.defended(proposal, tilted)


def _tilted(given: Ordered, tilt: Tilt) -> Mixture:
    proposal = proposals.tilted(given.factor, tilt.mu, given.lower, given.upper)
    return Mixture((proposal,), tilt.log_bound, given.ties)


def _sites(given: Ordered) -> tuple[Sited, Proposal] | None:
    """Return what the sites of expectation propagation make of the factor, and their proposal."""
    try:
        nu, tau, _ = propagate(given.factor, given.lower, given.upper)
        sited = given.factor.sited(nu, tau)
        nu, wider = held(given.factor, nu, tau)
        own = sited if wider is tau else given.factor.sited(nu, wider)
        return sited, proposals.twisted(own, wider, given.lower, given.upper)
    except (LinAlgError, ValueError):
        return None


def _better(given: Ordered, log_bound: float, sited: Sited) -> Tilt | None:
    """Return a tilt whose search began at the sites' mean, if there the bound is less than one that is known.

    At the saddle point s = diag(d) R^-1 v and t = v / d - s: the mean that the sites make for v is where it may be.
    """
    d = given.factor.d
    limits = given.factor, given.lower, given.upper
    start = sited.mean / d - d * sited.slope
    if minimax_tilt(*limits, starts=[start], max_steps=0).log_bound >= log_bound:
        return None
    return minimax_tilt(*limits, starts=[start])


def combine(solutions: list[Solution]) -> tuple[float, float]:
    """Return log probability and standard error of a product of independent estimates."""
    total: FloatArray = np.array([[s.log_probability, s.standard_error] for s in solutions])
    return float(total[:, 0].sum()), float(np.sqrt(np.sum(total[:, 1] ** 2)))
