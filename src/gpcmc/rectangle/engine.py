"""Draws inside a rectangle, one coordinate after the other, and their weights.

Where every coordinate has one limit and none is tied, the compiled loop of the orthant does it; elsewhere this one, in
NumPy over the samples of a coordinate. A proposal is that of `gpcmc.orthant.separation.Proposal`; its coefficients mean
the same, and the rectangle's limits are beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from gpcmc._validation import FloatArray
from gpcmc.orthant._separation import separate
from gpcmc.orthant.separation import Proposal
from gpcmc.orthant.tilting import tilted_proposal
from gpcmc.rectangle.factor import Factor, Tie
from gpcmc.rectangle.intervals import draw, log_mass

_LEAF = 32  # coordinates between matrix products


@dataclass(frozen=True, slots=True)
class Sampler:
    """A proposal, ready to draw and to weigh.

    Attributes
    ----------
    proposal : Proposal
        Of v - lower: the lower limits are zero, and the upper ones `width`.
    lower : (r,) array
    G, coefficients : (r, r), (r, 8) array
        As `gpcmc.orthant._separation.separate` has them.
    width : (r,) array
        Upper limits of c + e.
    ties : dict of int to (rows, offset, lower, upper)
        Further limits ``lower < rows @ e[:k + 1] + offset < upper`` of innovation k.
    compiled : bool
        One limit each, and no ties.
    """

    proposal: Proposal
    lower: FloatArray
    G: FloatArray
    coefficients: FloatArray
    width: FloatArray
    ties: dict[int, tuple[FloatArray, FloatArray, FloatArray, FloatArray]]
    compiled: bool

    @classmethod
    def of(cls, proposal: Proposal, factor: Factor, origin: FloatArray | None = None) -> Sampler:
        """Prepare a proposal of v - origin (zero if None) for a rectangle."""
        at = np.zeros(factor.rank) if origin is None else origin
        moved = _moved(proposal, factor.lower - at)
        width = (factor.upper - factor.lower) / np.diag(proposal.L)
        ties = {
            k: _seen(tie, k, factor.L, proposal, proposal.mean + at)
            for k, tie in factor.ties.items()
        }
        compiled = not factor.ties and bool(np.isposinf(factor.upper).all())
        return cls(moved, factor.lower, *moved.prepare(), width, ties, compiled)

    def run(self, U: FloatArray, drawn: bool = False) -> FloatArray:
        """Turn points of the unit cube into innovations, in place, and return the log weights (m,).

        With `drawn` `U` holds innovations of points inside the rectangle already, and is kept.
        """
        if self.compiled:
            return separate(self.G, self.coefficients, U, drawn) + self.proposal.log_constant
        return _separate(self, U, drawn) + self.proposal.log_constant

    def values(self, E: FloatArray) -> FloatArray:
        """Return the coordinates (r, m) that innovations belong to."""
        V: FloatArray = self.proposal.L @ E + (self.proposal.mean + self.lower)[:, None]
        return V


def plain_sampler(factor: Factor, mu: FloatArray) -> Sampler:
    """Return the sampler that draws innovations from N(mu, 1) inside the limits."""
    return Sampler.of(tilted_proposal(factor.L, mu), factor)


def _moved(proposal: Proposal, by: FloatArray) -> Proposal:
    """Return the same proposal for coordinates that are less by some."""
    a, b, scale, w0, w1, w2, d = proposal.coefficients.T
    c = by / np.diag(proposal.L)
    moved = np.column_stack([a + b * c, b, scale, w0 + c * (w1 + w2 * c), w1 + 2.0 * w2 * c, w2, d])
    return Proposal(proposal.mean - by, proposal.L, moved, proposal.log_constant)


def _seen(
    tie: Tie, k: int, L: FloatArray, proposal: Proposal, mean: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a tie in the innovations of a proposal; `L` is the factor whose innovations it is given in."""
    own = slice(k + 1)
    if proposal.L is L:
        return tie.rows, np.zeros(len(tie.rows)), tie.lower, tie.upper
    of_v = solve_triangular(L[own, own], tie.rows.T, lower=True, trans="T", check_finite=False).T
    rows = np.ascontiguousarray(of_v @ proposal.L[own, own])
    return rows, of_v @ mean[own], tie.lower, tie.upper


def _separate(sampler: Sampler, U: FloatArray, drawn: bool) -> FloatArray:
    n, m = U.shape
    log_w = np.zeros(m)
    for first in range(0, n, _LEAF):
        last = min(first + _LEAF, n)
        C = sampler.G[first:last, :first] @ U[:first]
        for i in range(first, last):
            shift, a, b, scale, w0, w1, w2, d = sampler.coefficients[i]
            c = C[i - first] + sampler.G[i, first:i] @ U[first:i]
            c += shift
            low, high = -c, sampler.width[i] - c
            if i in sampler.ties:
                low, high = _tied(sampler.ties[i], U[: i + 1], low, high)
            centre = a + b * c
            if scale == 1.0 and b == 0.0:
                low, high = low - a, high - a
            else:
                low, high = (low - centre) / scale, (high - centre) / scale
            if drawn:
                log_p = log_mass(low, high)
            else:
                log_p, z = draw(low, high, U[i])
                U[i] = centre + scale * z
            log_w += log_p
            if d:
                log_w -= d * U[i]
            log_w += w0 + c * (w1 + w2 * c) if w2 or w1 else w0
    return log_w


def _tied(
    tie: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    E: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the limits of an innovation, the last row of `E`, with those of a tie."""
    rows, offset, lower, upper = tie
    before = rows[:, :-1] @ E[:-1] + offset[:, None]
    slope = rows[:, -1:]
    one, other = (lower[:, None] - before) / slope, (upper[:, None] - before) / slope
    return (
        np.maximum(low, np.minimum(one, other).max(axis=0)),
        np.minimum(high, np.maximum(one, other).min(axis=0)),
    )
