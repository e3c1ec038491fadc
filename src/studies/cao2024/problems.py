"""The problems of the paper's Table 1: locations, covariance and limits, as the authors' scripts make them.

The covariance is that of the R package GpGp, (1 + d/r) exp(-d/r) with r = 0.1, and a nugget on the diagonal: 0.01 in
the script for 900 dimensions and 0.03 in that for 6,400. A grid is what the authors' function `grid_gen` returns: of
the lines at i/m, i = 1 to m, in both directions, where m is one more than the root of n, the first n points. For
n = 900 these are 29 whole lines of 31 points and one point more.

Shifted limits, and their locations, are the authors' own to the last digit: their scripts seed R's generator, and what
`randomLHS` of the R package lhs and `runif` take from it is known. R's default generator is the Mersenne Twister of
NumPy with a state of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
#: Of the covariance.
RANGE = 0.1
#: Variance of the nugget by the paper's dimension.
NUGGETS = {900: 0.01, 6400: 0.03}
#: Scenarios 1, 2 and 3: the orthant below zero, below shifted limits at random locations, and the box (-1, 1).
SCENARIOS = ("orthant", "shifted", "box")
#: Of the authors' scripts.
SEED = 123


class Problem(NamedTuple):
    """The probability that v ~ N(0, K) is between limits, K the covariance of the locations with a nugget.

    Attributes
    ----------
    locations : (n, 2) array
    nugget : float
    lower, upper : (n,) arrays
    """

    locations: Array
    nugget: float
    lower: Array
    upper: Array

    @property
    def cov(self) -> Array:
        """The covariance (n, n)."""
        return covariance(self.locations, self.nugget)


def grid(n: int) -> Array:
    """Return the first n locations (n, 2) of a grid in the unit square."""
    m = math.isqrt(n) + 1
    line = np.arange(1, m + 1) / m
    first, second = np.meshgrid(line, line)
    return np.column_stack([first.ravel(), second.ravel()])[:n]


def runif(seed: int) -> Callable[[int], Array]:
    """Return R's `runif` after `set.seed(seed)`, of which each call takes the next numbers."""

    def following(state: int) -> int:
        return (69069 * state + 1) % 2**32

    state, words = seed, []
    for _ in range(50):
        state = following(state)
    for _ in range(625):
        words.append(state := following(state))
    generator = np.random.MT19937()
    # the first word is R's place in the state, which it sets to the end
    known: Any = generator.state
    known["state"] |= {"key": np.array(words[1:], dtype=np.uint32), "pos": 624}
    generator.state = known

    def draw(n: int) -> Array:
        found: Array = generator.random_raw(n) * 2.3283064365386963e-10
        return found

    return draw


def latin_hypercube(n: int, draw: Callable[[int], Array]) -> Array:
    """Return n locations (n, 2), one in each of n strips of equal width in both directions, as `randomLHS` does."""
    strips = np.column_stack([np.argsort(draw(n)) for _ in range(2)])
    places: Array = (strips + draw(2 * n).reshape(n, 2)) / n
    return places


def covariance(locations: Array, nugget: float) -> Array:
    """Return the covariance (n, n) of locations (n, 2)."""
    from scipy.spatial.distance import cdist

    scaled = cdist(locations, locations) / RANGE
    found: Array = (1.0 + scaled) * np.exp(-scaled)
    found[np.diag_indices_from(found)] += nugget
    return found


def problem(scenario: str, n: int, nugget: float) -> Problem:
    """Return the problem of a scenario in n dimensions."""
    if scenario == "shifted":
        draw = runif(SEED)
        locations = latin_hypercube(n, draw)
        return Problem(locations, nugget, np.full(n, -np.inf), -2.0 * draw(n))
    lower, upper = (-1.0, 1.0) if scenario == "box" else (-np.inf, 0.0)
    return Problem(grid(n), nugget, np.full(n, lower), np.full(n, upper))
