"""Cholesky factors of sparse matrices, in an order that fills in little.

The pattern is analysed once (`Symbolic`); each matrix with it is then factorised by supernodes, and has the entries of
its inverse where the pattern has some (`gpcmc.covariance._sparse`). Rows are counted in the order of elimination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray
from gpcmc.covariance._sparse import (
    column_counts,
    elimination_tree,
    factorized,
    postorder,
    selected,
    solve_lower,
    solve_upper,
    structures,
)

Index = NDArray[np.int32]

# Supernodes of so many columns in all become one, if no more than a share of the panel is then zeros.
_RELAXED = ((4, 1.0), (16, 0.8), (48, 0.1), (1 << 30, 0.05))


@dataclass(frozen=True, eq=False)
class Symbolic:
    """How the factor of a pattern fills in.

    Attributes
    ----------
    order : (n,) array of int
        The value that is eliminated at each place.
    pointers, rows : arrays of int32
        Of the pattern's lower triangle, by columns; the diagonal comes first.
    cuts : (s + 1,) array of int32
        First columns of the supernodes, and n.
    above : (s,) array of int32
        Parents of the supernodes.
    fronts : array of int32
        The rows of each supernode, its own columns first.
    begin, panels : (s + 1,) arrays of int64
        Where the rows and the panel of each supernode begin.
    """

    order: NDArray[np.intp]
    pointers: Index
    rows: Index
    cuts: Index
    above: Index
    fronts: Index
    begin: NDArray[np.int64]
    panels: NDArray[np.int64]

    @classmethod
    def of(cls, pattern: Any, order: NDArray[np.intp]) -> Symbolic:
        """Analyse a symmetric pattern (n, n), a sparse matrix, which is to be eliminated about in this order."""
        lower = _lower(pattern, order)
        by_rows = lower.tocsr()
        parent = elimination_tree(by_rows.indptr, by_rows.indices)
        count = column_counts(by_rows.indptr, by_rows.indices, parent)
        later = postorder(parent, count)
        place = np.empty(len(later), dtype=np.int32)
        place[later] = np.arange(len(later), dtype=np.int32)
        parent = np.where(parent >= 0, place[parent], -1)[later]
        order, count = order[later], count[later]
        lower = _lower(pattern, order)
        cuts = _supernodes(parent, count)
        node = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        last = parent[cuts[1:] - 1]
        above = np.where(last >= 0, node[last], -1).astype(np.int32)
        fronts, begin = structures(lower.indptr, lower.indices, cuts, above)
        return cls(
            order, lower.indptr, lower.indices, cuts, above, fronts, begin, _panels(begin, cuts)
        )

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def place(self) -> Index:
        """Where each value is eliminated (n,)."""
        found = np.empty(len(self), dtype=np.int32)
        found[self.order] = np.arange(len(self), dtype=np.int32)
        return found

    @cached_property
    def diagonal(self) -> NDArray[np.int64]:
        """Where the factor's diagonal is among the panels (n,)."""
        width = np.diff(self.cuts)
        own = np.arange(len(self)) - np.repeat(self.cuts[:-1], width)
        return np.repeat(self.panels[:-1], width) + own * (
            np.repeat(np.diff(self.begin), width) + 1
        )

    def several(self, number: int) -> Symbolic:
        """Return the same for groups of so many values in the place of each; it has no pattern of its own."""
        if number == 1:
            return self
        each = np.arange(number)
        cuts, begin = number * self.cuts, number * self.begin
        return Symbolic(
            (number * self.order[:, None] + each).ravel(),
            self.pointers,
            self.rows,
            cuts,
            self.above,
            (number * self.fronts[:, None] + each.astype(np.int32)).ravel(),
            begin,
            _panels(begin, cuts),
        )

    def with_pattern(self, pointers: Index, rows: Index) -> Symbolic:
        """Return the same with another pattern that does not fill in further."""
        return replace(self, pointers=pointers, rows=rows)

    def factorize(self, data: FloatArray) -> SparseCholesky:
        """Factorise the matrix with these entries at the pattern.

        Raises
        ------
        ValueError
            If it is not positive definite in floating point.
        """
        L = np.empty(int(self.panels[-1]))
        if not factorized(
            self.cuts,
            self.above,
            self.fronts,
            self.begin,
            self.panels,
            self.pointers,
            self.rows,
            data,
            L,
        ):
            raise ValueError(
                "K must have smaller variances, or its inputs stand further apart: a sparse precision is not positive "
                "definite in floating point"
            )
        return SparseCholesky(self, L)


@dataclass(frozen=True, eq=False)
class SparseCholesky:
    """A lower factor L in the order of elimination, by panels of its supernodes."""

    symbolic: Symbolic
    L: FloatArray

    @property
    def diagonal(self) -> FloatArray:
        """Of L (n,)."""
        return self.L[self.symbolic.diagonal]

    @cached_property
    def log_determinant(self) -> float:
        """Of the matrix."""
        return 2.0 * float(np.sum(np.log(self.diagonal)))

    def blocks(self, most: int) -> Iterator[tuple[int, int, FloatArray, Index]]:
        """Yield blocks of at most so many columns of a supernode, from the last column of L to the first.

        Of each: where it begins and ends, its rows of L from its first on, and which these are beyond its own.
        """
        s = self.symbolic
        for k in range(len(s.above) - 1, -1, -1):
            start, stop = int(s.cuts[k]), int(s.cuts[k + 1])
            front = s.fronts[s.begin[k] : s.begin[k + 1]]
            panel = self.L[s.panels[k] : s.panels[k + 1]].reshape(stop - start, len(front)).T
            for high in range(stop, start, -most):
                low = max(high - most, start)
                columns = slice(low - start, high - start)
                yield low, high, panel[low - start :, columns], front[high - start :]

    def inverse(self) -> FloatArray:
        """Return the entries of the inverse at the pattern."""
        s = self.symbolic
        found = np.empty(len(s.rows))
        selected(s.cuts, s.above, s.fronts, s.begin, s.panels, s.pointers, s.rows, self.L, found)
        return found

    def forward(self, x: FloatArray) -> FloatArray:
        """Return L^-1 x, x (n,) or (n, k) in the order of elimination."""
        return self._solved(solve_lower, x)

    def back(self, x: FloatArray) -> FloatArray:
        """Return L'^-1 x."""
        return self._solved(solve_upper, x)

    def solve(self, x: FloatArray) -> FloatArray:
        """Return the inverse times x, (n,) or (n, k) in the order of the values."""
        order, found = self.symbolic.order, np.empty_like(x)
        found[order] = self.back(self.forward(x[order]))
        return found

    def _solved(self, solver: Callable[..., None], x: FloatArray) -> FloatArray:
        s = self.symbolic
        X = np.array(x.reshape(len(x), -1), dtype=np.float64, order="C")
        if X.size:
            solver(s.cuts, s.fronts, s.begin, s.panels, self.L, X)
        return X.reshape(x.shape)


def fill_reducing(B: Any) -> NDArray[np.intp]:
    """Return an order in which to eliminate B'B, B sparse, square and with a full diagonal: SuperLU's COLAMD of B."""
    from scipy.sparse.linalg import spilu

    # only its order is wanted: nothing but the diagonal is kept
    made = spilu(B.tocsc(), drop_tol=1.0, fill_factor=1.0, permc_spec="COLAMD")
    return np.argsort(made.perm_c)


def _lower(pattern: Any, order: NDArray[np.intp]) -> Any:
    from scipy import sparse

    found = sparse.tril(pattern.tocsc()[order][:, order], format="csc")
    found.sort_indices()
    found.indptr, found.indices = found.indptr.astype(np.int32), found.indices.astype(np.int32)
    return found


def _panels(begin: NDArray[np.int64], cuts: Index) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.diff(begin) * np.diff(cuts))]).astype(np.int64)


def _supernodes(parent: NDArray[Any], count: NDArray[np.int64]) -> Index:
    """Return where supernodes begin, and n; neighbours become one where that costs few zeros."""
    n = len(parent)
    same = (parent[:-1] == np.arange(1, n)) & (count[:-1] == count[1:] + 1)
    edges = np.concatenate([[0], np.flatnonzero(~same) + 1, [n]])
    groups: list[tuple[int, int, int, float]] = []  # first column, columns, rows, zeros
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        width, rows, zeros = stop - start, int(count[start]), 0.0
        while groups and parent[start - 1] == start:
            first, w, r, z = groups[-1]
            more = zeros + z + w * (w + rows - r)
            share = more / ((w + width) * (w + rows))
            if share > next(most for columns, most in _RELAXED if w + width <= columns):
                break
            groups.pop()
            start, width, rows, zeros = first, w + width, w + rows, more
        groups.append((start, width, rows, zeros))
    return np.array([one[0] for one in groups] + [n], dtype=np.int32)
