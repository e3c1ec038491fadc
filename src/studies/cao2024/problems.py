"""The problems of the paper's Table 1: locations, covariance and limits, as the authors' scripts make them.

The covariance is that of the R package GpGp, (1 + d/r) exp(-d/r) with r = 0.1, and a nugget on the diagonal. A grid is
what their function `grid_gen` returns: of the lines at i/m, i = 1 to m, in both directions, where m is one more than
the root of n, the first n points. For n = 900 these are 29 whole lines of 31 points and one point more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

Array = np.ndarray
#: Of the covariance.
RANGE = 0.1
#: Variance of the nugget by level of the reading: what is printed, and what the script for N = 900 has.
NUGGETS = {"paper": 0.03, "code": 0.01}
#: Limits: the orthant below zero, or below shifted limits at locations of a Latin hypercube.
LIMITS = ("orthant", "shifted")


class Problem(NamedTuple):
    """The probability that v ~ N(0, cov) is below `upper`.

    Attributes
    ----------
    locations : (n, 2) array
    cov : (n, n) array
    upper : (n,) array
    """

    locations: Array
    cov: Array
    upper: Array


def grid(n: int) -> Array:
    """Return the first n locations (n, 2) of a grid in the unit square."""
    m = math.isqrt(n) + 1
    line = np.arange(1, m + 1) / m
    first, second = np.meshgrid(line, line)
    return np.column_stack([first.ravel(), second.ravel()])[:n]


def latin_hypercube(n: int, rng: np.random.Generator) -> Array:
    """Return n random locations (n, 2), one in each of n strips of equal width in both directions."""
    strips = np.column_stack([rng.permutation(n), rng.permutation(n)])
    places: Array = (strips + rng.random((n, 2))) / n
    return places


def covariance(locations: Array, nugget: float) -> Array:
    """Return the covariance (n, n) of locations (n, 2)."""
    scaled = np.linalg.norm(locations[:, None] - locations, axis=-1) / RANGE
    found: Array = (1.0 + scaled) * np.exp(-scaled)
    found[np.diag_indices_from(found)] += nugget
    return found


def problem(limits: str, n: int, nugget: float, rng: np.random.Generator) -> Problem:
    """Return a problem in n dimensions; only shifted limits, uniform on (-2, 0), and their locations are random."""
    if limits == "orthant":
        locations, upper = grid(n), np.zeros(n)
    else:
        locations, upper = latin_hypercube(n, rng), -2.0 * rng.random(n)
    return Problem(locations, covariance(locations, nugget), upper)
