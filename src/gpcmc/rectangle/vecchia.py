r"""Factors of a process of conditionals on neighbours (Vecchia's approximation), of values that have limits themselves.

Each value is regressed on at most m nearest earlier ones: v_i = beta_i v_N(i) + d_i e_i. With B = I - beta, L = B^-1
diag(d) is a Cholesky factor of which a row takes m products, and K^-1 = B' diag(d)^-2 B is sparse. There are two
orders to draw in.

*That of the regressions* (`VecchiaFactor`). It may be any, and minimax tilting draws the least likely values first
(Cao and Katzfuss 2024). Its Newton steps take one sparse factorisation each.

*The reverse of an elimination* of K^-1 (`PrecisionFactor`). Sites of v add their precisions to the diagonal of K^-1,
and its factor, filled in, has the regressions of each value on those that are eliminated after it. A proposal that
sites twist draws in this order.

`gpcmc.covariance.sparse_factor` is for v = C f + noise, whose f is regressed without the noise.

References
----------
Cao and Katzfuss (2024), "Linear-cost Vecchia approximation of multivariate normal probabilities". Vecchia (1988),
Journal of the Royal Statistical Society B 50, 297. Botev (2017), Journal of the Royal Statistical Society B 79, 125.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular

from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import Factor, Gram, Sited, parts
from gpcmc.covariance.neighbours import Regressions, compare_earlier
from gpcmc.covariance.sparse import Sparse
from gpcmc.covariance.sparse_cholesky import Index, SparseCholesky

_BLOCK = 16  # coordinates of a block
_STATES = 1024  # rows of states at once


class _SparseFactor(Factor):
    """What both have in common: they are of the values themselves, and nothing predicts from a rectangle."""

    def place(self, k: int, state: FloatArray) -> FloatArray:
        """As of `Factor`."""
        here = self.parts[k]
        return np.empty((here.stop - here.start, state.shape[1]))

    def test_rows(
        self, cross: Any, signs: FloatArray, order: NDArray[np.intp] | slice = slice(None)
    ) -> FloatArray:
        """Refuse: a rectangle has no test inputs."""
        raise NotImplementedError("a rectangle's probability has no test inputs")


@dataclass(frozen=True, slots=True)
class _VecchiaGram(Gram):
    of: VecchiaFactor

    def __matmul__(self, x: FloatArray) -> FloatArray:
        one = self.of
        return (one.K @ (x / one.d)) / one.d

    def solve(self, w: FloatArray, x: FloatArray) -> FloatArray:
        # with N = I - W and J = W^(1/2) / d: (N + J K J)^-1 x, where K^-1 is sparse
        one = self.of
        N, J = 1.0 - w, np.sqrt(w) / one.d
        try:
            conditioned = one.K.conditioned(J**2 / N)
        except ValueError as error:
            raise LinAlgError(str(error)) from error
        return (x - J * conditioned.made.solve(J * x / N)) / N


@dataclass(frozen=True, eq=False)
class VecchiaFactor(_SparseFactor):
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
    d: FloatArray
    parts: list[slice]

    @classmethod
    def of(cls, K: Sparse) -> VecchiaFactor:
        """Take a covariance of which each value comes after its neighbours."""
        from scipy import sparse

        near, n = K.near, len(K)
        there = np.arange(near.most) < near.counts[:, None]
        starts = np.concatenate([[0], np.cumsum(near.counts)])
        beta = sparse.csr_matrix((K.by.beta[there], near.index[there], starts), shape=(n, n))
        return cls(K, beta, np.sqrt(K.by.D), parts(n, _BLOCK))

    def __matmul__(self, x: FloatArray) -> FloatArray:
        scaled = (x.T / self.d).T
        return self.K @ (scaled - self.beta.T @ scaled)

    def transposed(self, x: FloatArray) -> FloatArray:
        """Return L' x (n,)."""
        lifted = self.K @ x
        return (lifted - self.beta @ lifted) / self.d

    def gram(self) -> Gram:
        """As of `Factor`."""
        return _VecchiaGram(self)

    def sited(self, nu: FloatArray, tau: FloatArray) -> Sited:
        """Refuse: sites fill in, in this order nearly everywhere."""
        raise NotImplementedError("sites are for the order of an elimination: use PrecisionFactor")

    def begin(self, draws: int) -> FloatArray:
        """As of `Factor`."""
        return np.empty((len(self), draws))

    @cached_property
    def _blocks(self) -> list[tuple[FloatArray, FloatArray, Any]]:
        """Of each block: G_BB, the inverse of B_BB, and the regressions on coordinates before the block."""
        found = []
        for here in self.parts:
            rows = self.beta[here]
            own = np.eye(here.stop - here.start) - rows[:, here].toarray()
            inverse = solve_triangular(own, np.eye(len(own)), lower=True, unit_diagonal=True)
            d = self.d[here]
            found.append((np.tril(inverse * d) / d[:, None], inverse, rows[:, : here.start]))
        return found

    def within(self, k: int) -> FloatArray:
        """As of `Factor`."""
        return self._blocks[k][0]

    def ahead(self, k: int, state: FloatArray) -> FloatArray:
        """As of `Factor`."""
        here, (_, inverse, before) = self.parts[k], self._blocks[k]
        # kept where the block's coordinates will be, for `follow`
        state[here] = inverse @ (before @ state[: here.start])
        return state[here] / self.d[here, None]

    def follow(self, k: int, state: FloatArray, E: FloatArray) -> None:
        """As of `Factor`."""
        here = self.parts[k]
        state[here] += self.d[here, None] * (self._blocks[k][0] @ E)


@dataclass(frozen=True, eq=False)
class PrecisionFactor(_SparseFactor):
    """A factor by the reverse of an elimination of the precision P = C C'; the state of a draw is v (n, draws).

    The coordinates of the factor are the values from the last that is eliminated to the first: `order`. States are in
    the order of elimination.

    Attributes
    ----------
    made : SparseCholesky
        Of P.
    precision : array
        P's entries at its pattern.
    d : (n,) array
    parts : list of slice
    blocks : list of (int, int, array, array)
        Of each part: where it begins and ends in the order of elimination, the rows of C, and whose they are beyond it.
    """

    made: SparseCholesky
    precision: FloatArray
    d: FloatArray
    parts: list[slice]
    blocks: list[tuple[int, int, FloatArray, Index]]
    resamples: ClassVar[bool] = True

    @classmethod
    def of(cls, made: SparseCholesky, precision: FloatArray) -> PrecisionFactor:
        """Take a factor of P, and P's entries."""
        n, blocks = len(made.symbolic), list(made.blocks(_BLOCK))
        parts = [slice(n - high, n - low) for low, high, *_ in blocks]
        return cls(made, precision, 1.0 / made.diagonal[::-1], parts, blocks)

    @property
    def order(self) -> NDArray[np.intp]:
        """The value that each coordinate is (n,)."""
        return self.made.symbolic.order[::-1]

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return self.made.back(x[::-1])[::-1]

    def transposed(self, x: FloatArray) -> FloatArray:
        """Return L' x (n,)."""
        return self.made.forward(x[::-1])[::-1]

    def gram(self) -> Gram:
        """Refuse: in this order a tilt is of little use."""
        raise NotImplementedError("minimax tilting draws in another order: use VecchiaFactor")

    def sited(self, nu: FloatArray, tau: FloatArray) -> Sited:
        """As of `Factor`."""
        s, data = self.made.symbolic, self.precision.copy()
        data[s.pointers[:-1]] += tau[::-1]
        try:
            made = s.factorize(data)
        except ValueError as error:
            raise LinAlgError(str(error)) from error
        mean = made.back(made.forward(nu[::-1]))[::-1]
        slope = nu - tau * mean
        grown = made.log_determinant - self.made.log_determinant  # that of I + L'TL
        constant = -0.5 * (float(mean @ slope) + grown)
        return Sited(PrecisionFactor.of(made, data), mean, slope, constant)

    def begin(self, draws: int) -> FloatArray:
        """As of `Factor`."""
        return np.empty((len(self), draws))

    @cached_property
    def _inside(self) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Of each block: G_BB, which is in the order of the draws, C_BB'^-1, and the regressions on values beyond."""
        found = []
        for low, high, rows, _ in self.blocks:
            size = high - low
            upper = solve_triangular(rows[:size], np.eye(size), lower=True, trans="T")
            G = np.tril((upper / self.d[::-1][low:high, None])[::-1, ::-1])
            found.append((np.ascontiguousarray(G), upper, -upper @ rows[size:].T))
        return found

    def within(self, k: int) -> FloatArray:
        """As of `Factor`."""
        return self._inside[k][0]

    def ahead(self, k: int, state: FloatArray) -> FloatArray:
        """As of `Factor`."""
        low, high, _, beyond = self.blocks[k]
        # kept where the block's values will be, for `follow`
        state[low:high] = self._inside[k][2] @ state[beyond]
        return state[low:high][::-1] / self.d[self.parts[k], None]

    def follow(self, k: int, state: FloatArray, E: FloatArray) -> None:
        """As of `Factor`."""
        low, high, *_ = self.blocks[k]
        state[low:high] += self._inside[k][1] @ E[::-1]

    def choose(self, k: int, state: FloatArray, draws: NDArray[np.intp]) -> None:
        """As of `Factor`."""
        # those before are not drawn yet; a few rows at a time, for the state is long
        for low in range(self.blocks[k][0], len(state), _STATES):
            rows = state[low : low + _STATES]
            rows[...] = np.take(rows, draws, axis=1)


def earlier(Z: FloatArray, most: int) -> tuple[Index, Index]:
    """Return at most so many nearest earlier rows of each (n, most), zero beyond their numbers (n,).

    Of equally near ones, as a grid has many, those that come first are taken. (`Neighbours.of`, by a tree, takes any.)
    """
    n, most = len(Z), min(most, len(Z) - 1)
    index = np.zeros((n, most), dtype=np.int32)
    compare_earlier(Z, np.arange(n), index, most)
    return index, np.minimum(np.arange(n), most).astype(np.int32)


def reflected(K: Sparse, signs: FloatArray) -> Sparse:
    """Return the covariance of signs (n,) times the values: its draws and products, and not its kernel."""
    if (signs == signs[0]).all():
        return K
    by = Regressions(K.by.beta * signs[K.near.index] * signs[:, None], K.by.D)
    return replace(K, by=by)
