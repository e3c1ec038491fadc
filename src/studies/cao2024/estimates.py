"""Estimates of one probability: many independent ones, by the proposal of one method.

The proposal is found once, because it is the same for all. What draws from it is what the paper's software does:
random points for minimax tilting (`pmvnorm` of the R package TruncatedNormal), and for separation of variables a
lattice under twenty random shifts (`pmvn` of tlrmvnmvt). Twisted expectation propagation is this library's, with its
Sobol' points. The coordinates are drawn in the order of the library, the least likely first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from gpcmc.rectangle.arguments import check_problem
from gpcmc.rectangle.blocks import reduce
from gpcmc.rectangle.mixture import Mixture
from gpcmc.rectangle.order import ordered
from gpcmc.rectangle.rounds import SCRAMBLES, run_round
from gpcmc.rectangle.solve import guided, separation, tilting
from studies.cao2024.problems import Problem

Array = np.ndarray
#: Random shifts of the lattice.
SHIFTS = 20
_CHUNK = 4096  # points at once


def proposal(given: Problem, method: str) -> Mixture:
    """Return what a method draws from.

    Raises
    ------
    ValueError
        If the covariance falls apart into blocks, or expectation propagation leaves no proposal.
    """
    blocks = reduce(check_problem(-np.inf, given.upper, 0.0, given.cov)).blocks
    if len(blocks) != 1:
        raise ValueError(f"cov must be one block; it has {len(blocks)}")
    (block,) = blocks
    ranked = ordered(block.R, block.lower, block.upper, block.slack)
    if method == "separation":
        return separation(ranked)
    tilted = tilting(ranked)
    if method == "minimax-tilting":
        return tilted
    _, found = guided(ranked, tilted)
    if found is None:
        raise ValueError("cov leaves expectation propagation no proposal")
    return found


def estimates(
    given: Problem, method: str, draws: int, count: int, rng: np.random.Generator
) -> Array:
    """Return independent estimates (count,) of the logarithm of the probability.

    Parameters
    ----------
    given : Problem
    method : {"minimax-tilting", "separation", "twisted-ep"}
    draws : int
        Of each estimate; of separation of variables in `SHIFTS` shifts, of twisted EP in `SCRAMBLES` scrambles and
        beside an eighth as many of its defence.
    count : int
    rng : numpy.random.Generator
    """
    source = proposal(given, method)
    if method == "twisted-ep":
        rounds = (run_round(source, draws // SCRAMBLES, rng) for _ in range(count))
        return np.array([one.log_probability for one in rounds])
    points = _random if method == "minimax-tilting" else _lattice
    n, share = len(source), np.zeros(1)

    def run(U: Array) -> Array:
        return source.weigh(0, U.shape[1], U.__getitem__, share)[0]

    return np.array([_log_mean(run(U) for U in points(n, draws, rng)) for _ in range(count)])


def _log_mean(log_weights: Iterator[Array]) -> float:
    parts = np.concatenate([*log_weights])
    return float(logsumexp(parts) - np.log(len(parts)))


def _random(n: int, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield random points of the unit cube, (n, m) at a time."""
    for first in range(0, draws, _CHUNK):
        yield rng.random((n, min(_CHUNK, draws - first)))


def _lattice(n: int, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield Richtmyer's lattice under random shifts and the baker's transformation, (n, m) at a time."""
    steps = np.sqrt(primes(n))[:, None]
    lattice = steps * np.arange(1, draws // SHIFTS + 1) % 1.0
    for _ in range(SHIFTS):
        yield np.abs(2.0 * ((lattice + rng.random((n, 1))) % 1.0) - 1.0)


def primes(n: int) -> Array:
    """Return the first n primes (n,)."""
    limit = 20 + int(n * (np.log(n + 2) + np.log(np.log(n + 2))))
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for k in range(2, int(limit**0.5) + 1):
        sieve[k * k :: k] = False
    return np.flatnonzero(sieve)[:n]
