"""Estimates of one probability: many independent ones, by the proposal of one method.

The proposal is found once, because it is the same for all. What draws from it is what the authors' software does: for
minimax tilting random points (`pmvnorm` of the R package TruncatedNormal); under Vecchia's approximation (`pmvn` of
VeccTMVN), and for separation of variables (`pmvn` of tlrmvnmvt), ten random shifts of a lattice with the antithetic
points. Coordinates are drawn in the order of these packages, which is the library's: the least likely first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import logsumexp

from gpcmc.rectangle import proposals
from gpcmc.rectangle.arguments import slack_of
from gpcmc.rectangle.mixture import Mixture
from gpcmc.rectangle.order import Ordered, ordered
from gpcmc.rectangle.solve import separation, tilting
from gpcmc.rectangle.tilt import minimax_tilt
from studies.cao2024.problems import Problem
from studies.cao2024.vecchia import factor_of

Array = np.ndarray
#: Methods; the last is under Vecchia's approximation.
METHODS = ("minimax-tilting", "separation", "vecchia")
#: Random shifts of the lattice.
SHIFTS = 10
_POINTS = 250  # of the lattice at once


def estimates(
    given: Problem,
    method: str,
    draws: int,
    count: int,
    rng: np.random.Generator,
    neighbours: int = 0,
) -> tuple[Array, float, float]:
    """Estimate the logarithm of a probability again and again.

    Parameters
    ----------
    given : Problem
    method : str
        One of `METHODS`.
    draws : int
        Of each estimate; for a lattice a multiple of twice `SHIFTS`.
    count : int
    rng : numpy.random.Generator
    neighbours : int
        Of each coordinate at most, under Vecchia's approximation.

    Returns
    -------
    array, float, float
        The estimates (count,), the CPU seconds of what comes before the draws, and those of an estimate's draws.
    """
    begun = time.process_time()
    one = _prepared(given, method, draws, neighbours)
    before = time.process_time()
    found = np.array([one(rng) for _ in range(count)])
    return found, before - begun, (time.process_time() - before) / count


def _prepared(
    given: Problem, method: str, draws: int, neighbours: int
) -> Callable[[np.random.Generator], float]:
    """Return what makes one estimate."""
    ranked = in_order(given)
    if method in ("minimax-tilting", "separation"):
        mixture = tilting(ranked) if method == "minimax-tilting" else separation(ranked)
        points = _random if method == "minimax-tilting" else _lattice
        return lambda rng: _log_mean(mixture, points(len(mixture), draws, rng))
    factor = factor_of(given, ranked.order, neighbours)
    sd = (1.0 + given.nugget) ** 0.5
    lower, upper = sd * ranked.lower, sd * ranked.upper
    tilt = minimax_tilt(factor, lower, upper, starts=[ranked.start])
    tilted = Mixture((proposals.tilted(factor, tilt.mu, lower, upper),), tilt.log_bound)
    return lambda rng: _log_mean(tilted, _lattice(len(tilted), draws, rng))


def in_order(given: Problem) -> Ordered:
    """Return a problem in standard units, its coordinates as they are drawn; a limit that is alone is a lower one."""
    cov, sd = given.cov, (1.0 + given.nugget) ** 0.5
    slack = slack_of(cov, len(cov))
    cov /= sd**2
    lower, upper = given.lower / sd, given.upper / sd
    if np.isneginf(lower).all():
        lower, upper = -upper, -lower
    return ordered(cov, lower, upper, slack)


def _log_mean(mixture: Mixture, points: Iterator[Array]) -> float:
    share = np.zeros(1)
    parts = [mixture.weigh(0, U.shape[1], U.__getitem__, share)[0] for U in points]
    return float(logsumexp(np.concatenate(parts)) - np.log(sum(map(len, parts))))


def _random(n: int, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield random points of the unit cube, (n, m) at a time."""
    for first in range(0, draws, 2 * _POINTS):
        yield rng.random((n, min(2 * _POINTS, draws - first)))


def _lattice(n: int, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield Richtmyer's lattice under random shifts and the baker's transformation, and its antithetic points.

    They come (n, m) at a time, the two halves beside each other.
    """
    steps, count = np.sqrt(primes(n))[:, None], draws // (2 * SHIFTS)
    for _ in range(SHIFTS):
        shift = rng.random((n, 1))
        for first in range(1, count + 1, _POINTS):
            U = steps * np.arange(first, min(first + _POINTS, count + 1)) + shift
            U -= np.floor(U)
            U = np.abs(2.0 * U - 1.0)
            yield np.concatenate([U, 1.0 - U], axis=1)


def primes(n: int) -> Array:
    """Return the first n primes (n,)."""
    limit = 20 + int(n * (np.log(n + 2) + np.log(np.log(n + 2))))
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for k in range(2, int(limit**0.5) + 1):
        sieve[k * k :: k] = False
    return np.flatnonzero(sieve)[:n]
