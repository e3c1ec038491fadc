"""The order of the coordinates, and the factor of a covariance that need not have full rank.

Coordinates are drawn one after the other, v = L e, hardest first: next comes the coordinate least likely to be inside
when those before it are held at their truncated means (Gibson, Glasbey and Elston 1994; Genz and Bretz 2009, section
4.1.3). A coordinate that the chosen ones determine, so that its conditional variance is zero to rounding, is never
chosen. It is *tied*: its limits, seen from the last innovation that it depends on, are two more limits of that
innovation (Genz and Kwong 2000). Nothing is divided by a variance that rounding made.

Where the coordinate stands that is chosen says where the innovations are likely to be: `Ordered.start` has it, for the
search for a tilt.

The factorisation is LAPACK's `dpstrf` with this choice of pivots: inside a panel of columns only the columns needed are
brought up to date, the rest after the panel by one matrix product.

References
----------
Genz and Bretz (2009), Computation of Multivariate Normal and t Probabilities. Genz and Kwong (2000), Journal of
Statistical Computation and Simulation 68, 1. Gibson, Glasbey and Elston (1994), in Advances in Numerical Methods and
Applications, 120.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import BLOCK, DenseFactor, parts
from gpcmc.rectangle.limits import log_mass, moments

_PANEL = 32


@dataclass(frozen=True, slots=True)
class Tie:
    """Limits that coordinates without variance of their own put on one innovation."""

    index: NDArray[np.intp]  # (m,) places of the coordinates in the block
    rows: FloatArray  # (m, k + 1) the coordinates are ``rows @ e[:k + 1]``; the last column is not zero
    lower: FloatArray  # (m,)
    upper: FloatArray  # (m,)


@dataclass(frozen=True, slots=True)
class Ordered:
    """A rectangle with its coordinates in the order in which they are drawn."""

    order: NDArray[np.intp]  # (r,) places in the block of the coordinates that are drawn
    factor: DenseFactor  # of their covariance in this order
    lower: FloatArray  # (r,) their limits
    upper: FloatArray  # (r,)
    ties: dict[int, Tie]  # by innovation; empty where the covariance has full rank
    # (r,) means of the coordinates, over the factor's diagonal, when those before are at their truncated means
    start: FloatArray

    @property
    def rank(self) -> int:
        """Number of innovations."""
        return len(self.factor)

    def coordinates(self, size: int, X: FloatArray) -> FloatArray:
        """Return all coordinates (size, m), tied ones too, from those drawn (r, m), above their lower limits."""
        V = np.empty((size, X.shape[1]))
        drawn = X + self.lower[:, None]
        V[self.order] = drawn
        if self.ties:
            E = self.factor.solve(drawn)
            for k, tie in self.ties.items():
                V[tie.index] = tie.rows @ E[: k + 1]
        return V


@one_thread()
def ordered(R: FloatArray, lower: FloatArray, upper: FloatArray, slack: float) -> Ordered:
    """Choose the order, and factorise a covariance (n, n).

    A conditional variance of at most `slack` times the largest variance is zero to rounding.
    """
    n = len(R)
    S = R.copy()  # what the columns of finished panels leave
    L = np.zeros((n, n))
    order = np.arange(n)
    variance, mean = R.diagonal().copy(), np.zeros(n)  # given the coordinates chosen so far
    low, high, start = lower.copy(), upper.copy(), np.zeros(n)
    slack *= variance.max()
    rank, left, first = (
        0,
        n,
        0,
    )  # coordinates chosen; neither chosen nor tied end here; of the panel
    while rank < left:
        tied = rank + np.flatnonzero(variance[rank:left] <= slack)
        for p in tied[::-1]:
            left -= 1
            _swap(p, left, (order, variance, mean, low, high, L), S)
        if rank == left:
            break
        sd = np.sqrt(variance[rank:left])
        inside = log_mass(
            (low[rank:left] - mean[rank:left]) / sd, (high[rank:left] - mean[rank:left]) / sd
        )
        _swap(rank, rank + int(np.argmin(inside)), (order, variance, mean, low, high, L), S)
        j, rest = rank, slice(rank + 1, n)
        L[j, j] = root = np.sqrt(variance[j])
        L[rest, j] = (S[rest, j] - L[rest, first:j] @ L[j, first:j]) / root
        t = (np.array([limit[j] - mean[j]]) / root for limit in (low, high))
        start[j] = mean[j] / root
        variance[rest] -= L[rest, j] ** 2
        mean[rest] += L[rest, j] * moments(*t)[1]
        rank += 1
        if rank - first == _PANEL:
            own = L[rank:, first:rank]
            S[rank:, rank:] -= own @ own.T
            first = rank
    ties = _ties(order, L, low, high, rank, slack)
    kept = np.ascontiguousarray(np.tril(L[:rank, :rank]))
    factor = DenseFactor.lower(kept, parts(rank, BLOCK, tuple(ties)))
    return Ordered(
        order[:rank].copy(), factor, low[:rank].copy(), high[:rank].copy(), ties, start[:rank]
    )


def _swap(i: int, j: int, vectors: tuple[np.ndarray, ...], S: FloatArray) -> None:
    if i == j:
        return
    for array in vectors:
        array[[i, j]] = array[[j, i]]
    S[[i, j]] = S[[j, i]]
    S[:, [i, j]] = S[:, [j, i]]


def _ties(
    order: NDArray[np.intp],
    L: FloatArray,
    low: FloatArray,
    high: FloatArray,
    rank: int,
    slack: float,
) -> dict[int, Tie]:
    """Tie each row beyond the rank to the last innovation that it depends on.

    A loading below the root of the slack cannot be told from one that is zero: the variance that decides is its square.
    """
    rows = L[rank:, :rank]
    last = np.array([np.flatnonzero(np.abs(row) > np.sqrt(slack))[-1] for row in rows], np.intp)
    ties = {}
    for k in sorted(set(last.tolist())):
        mine = np.flatnonzero(last == k)
        ties[k] = Tie(
            order[rank:][mine],
            np.ascontiguousarray(rows[mine, : k + 1]),
            low[rank:][mine],
            high[rank:][mine],
        )
    return ties


def has_interior(given: Ordered) -> bool:
    """Say whether any innovations satisfy all limits, those of ties included, with something to spare.

    A linear program finds the largest margin; below 1e-9 standard deviations it is rounding.
    """
    from scipy.optimize import linprog

    r = given.rank
    L = given.factor.d[:, None] * given.factor.G
    rows, low, high = [L], [given.lower], [given.upper]
    for k, tie in given.ties.items():
        rows.append(np.pad(tie.rows, ((0, 0), (0, r - k - 1))))
        low.append(tie.lower)
        high.append(tie.upper)
    B, lower, upper = np.concatenate(rows), np.concatenate(low), np.concatenate(high)
    A = np.concatenate([B, -B])
    limit = np.concatenate([upper, -lower])
    there = np.isfinite(limit)
    found = linprog(
        np.append(np.zeros(r), -1.0),
        A_ub=np.column_stack([A, np.ones(len(A))])[there],
        b_ub=limit[there],
        bounds=[(None, None)] * r + [(None, 1.0)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    # where the program was not solved, nothing is claimed
    return found.status != 0 or bool(-found.fun > 1e-9)
