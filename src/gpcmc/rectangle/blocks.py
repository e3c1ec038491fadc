"""A rectangle in standard form: free and certain coordinates set aside, scaled, and cut into independent blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gpcmc._validation import FloatArray
from gpcmc.rectangle.arguments import Problem


@dataclass(frozen=True, slots=True)
class Block:
    """Correlated coordinates x = sign (v - mean) / sd with limits lower < x < upper.

    Signs are such that a coordinate with one limit has a lower one.
    """

    index: NDArray[np.intp]  # (m,) their places in the problem
    sign: FloatArray  # (m,)
    sd: FloatArray  # (m,)
    lower: FloatArray  # (m,)
    upper: FloatArray  # (m,)
    R: FloatArray  # (m, m) correlations of x
    slack: float  # a conditional variance below it is zero to rounding


@dataclass(frozen=True, slots=True)
class Reduced:
    """A problem in standard form."""

    size: int  # coordinates of the problem
    # Independent of each other; the probability is the product of theirs, if `possible`
    blocks: tuple[Block, ...]
    possible: bool  # false if a coordinate without variance is outside its limits, or two limits are equal
    free: NDArray[np.intp]  # (k,) coordinates without limits that do have a variance


def reduce(problem: Problem) -> Reduced:
    """Bring a problem into standard form."""
    sd = np.sqrt(problem.cov.diagonal())
    certain = sd == 0.0
    inside = (problem.lower < problem.mean) & (problem.mean < problem.upper)
    possible = bool(inside[certain].all() and (problem.lower < problem.upper).all())
    unlimited = np.isneginf(problem.lower) & np.isposinf(problem.upper)
    kept = np.flatnonzero(~certain & ~unlimited)
    blocks: list[Block] = []
    if len(kept):
        C = problem.cov[np.ix_(kept, kept)]
        for part in _components(C):
            blocks.append(_standard(problem, kept[part], C[np.ix_(part, part)]))
    # an interval that is not empty may be so in standard units, or infinitely far out
    possible &= all(bool((b.lower < b.upper).all()) for b in blocks)
    return Reduced(len(sd), tuple(blocks), possible, np.flatnonzero(~certain & unlimited))


def _components(C: FloatArray) -> list[NDArray[np.intp]]:
    """Return the coordinates of each connected component of the covariances that are not zero."""
    if len(C) <= 2 or C.all():  # the search below costs a tenth of a millisecond
        together = len(C) == 1 or C[0, 1] != 0.0
        return [np.arange(len(C))] if together else [np.array([0]), np.array([1])]
    count, label = connected_components(csr_array(C != 0.0), directed=False)
    if count == 1:
        return [np.arange(len(C))]
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label))[:-1])


def _standard(problem: Problem, index: NDArray[np.intp], C: FloatArray) -> Block:
    sd = np.sqrt(C.diagonal())
    with np.errstate(over="ignore"):
        lower = (problem.lower[index] - problem.mean[index]) / sd
        upper = (problem.upper[index] - problem.mean[index]) / sd
    flip = np.isneginf(lower)
    sign = np.where(flip, -1.0, 1.0)
    R = C / (sign * sd)[:, None] / (sign * sd)  # one after the other: a product may underflow
    R.flat[:: len(R) + 1] = 1.0
    np.clip(R, -1.0, 1.0, out=R)
    return Block(
        index,
        sign,
        sd,
        np.where(flip, -upper, lower),
        np.where(flip, np.inf, upper),
        R,
        problem.slack,
    )
