r"""Minimax tilting under Vecchia's approximation, the method of the paper.

The coordinates of v ~ N(0, K) stand in the order in which they are drawn, the least likely first, and each is regressed
on at most m nearest of those before it: v_i = beta_i v_N(i) + d_i e_i. With B = I - beta, L = B^-1 diag(d) is a
Cholesky factor of which a row takes m products, and K^-1 = B' diag(d)^-2 B is sparse. Minimax tilting
(`gpcmc.rectangle.tilt`) needs no more of a factor than that, and its Newton steps one sparse factorisation each.

The authors regress v with its nugget, as here; `gpcmc.covariance.sparse` regresses the field without it.

References
----------
Cao and Katzfuss (2024), "Linear-cost Vecchia approximation of multivariate normal probabilities". Vecchia (1988),
Journal of the Royal Statistical Society B 50, 297. Botev (2017), Journal of the Royal Statistical Society B 79, 125.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, solve_triangular
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from gpcmc.covariance.factor import Factor, Gram, Sited, parts
from gpcmc.covariance.neighbours import Neighbours
from gpcmc.covariance.sparse import Sparse, on_neighbours
from studies.cao2024.problems import RANGE, Problem

Array = np.ndarray
_BLOCK = 16  # coordinates of a block
_ROWS = 256  # of distances at once


@dataclass(frozen=True, slots=True)
class _VecchiaGram(Gram):
    of: VecchiaFactor

    def __matmul__(self, x: Array) -> Array:
        one = self.of
        found: Array = (one.K @ (x / one.d)) / one.d
        return found

    def solve(self, w: Array, x: Array) -> Array:
        # with N = I - W and J = W^(1/2) / d: (N + J K J)^-1 x, where K^-1 is sparse
        one = self.of
        N, J = 1.0 - w, np.sqrt(w) / one.d
        try:
            conditioned = one.K.conditioned(J**2 / N)
        except ValueError as error:
            raise LinAlgError(str(error)) from error
        found: Array = (x - J * conditioned.made.solve(J * x / N)) / N
        return found


@dataclass(frozen=True, eq=False)
class VecchiaFactor(Factor):
    """A factor by regressions on earlier neighbours; the state of a draw is v (n, draws).

    Attributes
    ----------
    K : Sparse
        The covariance, of coordinates in the order in which they are drawn.
    beta : (n, n) sparse matrix
        The regressions.
    d : (n,) array
    parts : list of slice
    """

    K: Sparse
    beta: Any
    d: Array
    parts: list[slice]

    @classmethod
    def of(cls, given: Problem, order: Array, neighbours: int) -> VecchiaFactor:
        """Regress each coordinate of a problem, in this order (n,), on so many earlier ones at most."""
        X = given.locations[order]
        n, most = len(X), min(neighbours, len(X) - 1)
        index, counts = _earlier(X, most)
        near = Neighbours(X, np.ones(X.shape[1]), np.arange(n, dtype=np.int32), index, counts)
        K = on_neighbours(Matern(RANGE * 3**0.5, nu=1.5) + WhiteKernel(given.nugget), X, near)
        there, starts = np.arange(most) < counts[:, None], np.concatenate([[0], np.cumsum(counts)])
        beta = sparse.csr_matrix((K.by.beta[there], index[there], starts), shape=(n, n))
        return cls(K, beta, np.sqrt(K.by.D), parts(n, _BLOCK))

    def __matmul__(self, x: Array) -> Array:
        scaled = x / self.d
        return self.K @ (scaled - self.beta.T @ scaled)

    def transposed(self, x: Array) -> Array:
        """Return L' x (n,)."""
        lifted = self.K @ x
        found: Array = (lifted - self.beta @ lifted) / self.d
        return found

    def gram(self) -> Gram:
        """Return A = G G'."""
        return _VecchiaGram(self)

    def begin(self, draws: int) -> Array:
        """As of `Factor`."""
        return np.empty((len(self), draws))

    @cached_property
    def _blocks(self) -> list[tuple[Array, Array, Any]]:
        """Of each block: G_BB, the inverse of B_BB, and the regressions on coordinates before the block."""
        found = []
        for here in self.parts:
            rows = self.beta[here]
            own = np.eye(here.stop - here.start) - rows[:, here].toarray()
            inverse = solve_triangular(own, np.eye(len(own)), lower=True, unit_diagonal=True)
            d = self.d[here]
            found.append((np.tril(inverse * d) / d[:, None], inverse, rows[:, : here.start]))
        return found

    def within(self, k: int) -> Array:
        """As of `Factor`."""
        return self._blocks[k][0]

    def ahead(self, k: int, state: Array) -> Array:
        """As of `Factor`."""
        here, (_, inverse, before) = self.parts[k], self._blocks[k]
        # kept where the block's coordinates will be, for `follow`
        state[here] = inverse @ (before @ state[: here.start])
        found: Array = state[here] / self.d[here, None]
        return found

    def place(self, k: int, state: Array) -> Array:
        """As of `Factor`."""
        here = self.parts[k]
        return np.empty((here.stop - here.start, state.shape[1]))

    def follow(self, k: int, state: Array, E: Array) -> None:
        """As of `Factor`."""
        here = self.parts[k]
        state[here] += self.d[here, None] * (self._blocks[k][0] @ E)

    def sited(self, nu: Array, tau: Array) -> Sited:
        """Refuse: nothing here has sites."""
        raise NotImplementedError("minimax tilting has no sites")

    def test_rows(self, cross: Any, signs: Array, order: Any = slice(None)) -> Array:
        """Refuse: a rectangle has no test inputs."""
        raise NotImplementedError("a rectangle's probability has no test inputs")


def _earlier(X: Array, most: int) -> tuple[Array, Array]:
    """Return at most so many nearest earlier rows of each (n, most), zero beyond their numbers (n,)."""
    # that of `gpcmc.covariance.neighbours` breaks the ties of a grid otherwise: kept rows would be others
    n = len(X)
    index, counts = np.zeros((n, most), dtype=np.int32), np.minimum(np.arange(n), most)
    for first in range(0, n, _ROWS):
        rows = np.arange(first, min(first + _ROWS, n))
        distance = cdist(X[rows], X[: rows[-1]])
        distance[np.arange(distance.shape[1]) >= rows[:, None]] = np.inf
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :most]
        there = np.arange(nearest.shape[1]) < counts[rows, None]
        index[rows, : nearest.shape[1]] = np.where(there, nearest, 0)
    return index, counts.astype(np.int32)
