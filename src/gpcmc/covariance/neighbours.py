"""Gaussian processes by conditionals on nearest earlier neighbours (Vecchia's approximation).

Values stand in an order from coarse to fine, and each is regressed on at most m nearest of those before it:
f_i = beta_i f_N(i) + e_i with e_i ~ N(0, D_i). With one input the order is that along the line, so that a Markov
process is exact. The first of the order may stand in front: every later value is regressed on them too, whatever the
distance. They are the inducing inputs of a full-scale form, whose rest the neighbours follow.

References
----------
Vecchia (1988), Journal of the Royal Statistical Society B 50, 297. Guinness (2018), Technometrics 60, 415 (the order).
Katzfuss and Guinness (2021), Statistical Science 36, 124. Sang and Huang (2012), Journal of the Royal Statistical
Society B 74, 111 (full scale).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray
from gpcmc.covariance._sparse import conditionals, entries, regressed
from gpcmc.covariance.kernels import diagonal, evaluate
from gpcmc.covariance.sparse_cholesky import Index, Symbolic, fill_reducing

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

# Share of a variance that is added to it, for neighbours that a smooth kernel makes nearly equal.
_JITTER = 1e-9
_SPREAD = 2000  # values that are chosen one after the other, each the farthest from those before
_CROWD = 4096  # of which those are chosen
_ENTRIES = 2**20  # of covariances at once
_BRUTE = 512  # values whose neighbours are found without a tree
_STEP = 1e-5  # of central differences, in logarithms of hyperparameters


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Who is regressed on whom.

    Attributes
    ----------
    Z : (n, d) array
        Inputs in units of the kernel's length scales, in which distances are taken.
    scale : (d,) array
        Those units.
    order : (n,) array of int32
        Each value comes after its neighbours.
    index : (n, front + m) array of int32
        The neighbours of each value: those in front, then the others, the nearest first.
    counts : (n,) array of int32
        How many there are.
    front : int
        The first so many in the order are neighbours of all later ones.
    """

    Z: FloatArray
    scale: FloatArray
    order: Index
    index: Index
    counts: Index
    front: int = 0

    @classmethod
    def of(cls, kernel: Kernel, X: FloatArray, most: int, front: int = 0) -> Neighbours:
        """Choose at most so many neighbours of each input (n, d), besides those in front."""
        scale = _length_scales(kernel, X.shape[1])
        Z = X / scale
        order = _from_coarse_to_fine(Z)
        front = min(front, len(X) - 1) if X.shape[1] > 1 else 0
        index, counts = _with_front(Z[order], most, front)
        by_value, how_many = np.empty_like(index), np.empty_like(counts)
        by_value[order], how_many[order] = order[index], counts
        return cls(Z, scale, order, by_value, how_many, front)

    @property
    def most(self) -> int:
        """The number front + m of neighbours at most."""
        return self.index.shape[1]

    @property
    def near(self) -> int:
        """The number m of neighbours at most that are chosen for being near."""
        return self.most - self.front

    @property
    def predicting(self) -> int:
        """How many near ones a test value is regressed on: twice as many, for it has neighbours on all sides."""
        return min(2 * self.near + 1, len(self.others))

    def fewer(self, near: int) -> Neighbours:
        """Return those in front, and the nearest of the others."""
        most = self.front + near
        index = np.ascontiguousarray(self.index[:, :most])
        counts = np.minimum(self.counts, np.int32(most))
        return Neighbours(self.Z, self.scale, self.order, index, counts, self.front)

    @cached_property
    def symbolic(self) -> Symbolic:
        """How the factor of a precision B' D^-1 B fills in."""
        from scipy import sparse

        n = len(self.order)
        there = np.arange(self.most) < self.counts[:, None]
        rows = np.repeat(np.arange(n), self.counts)
        beta = sparse.csr_matrix(
            (np.full(len(rows), 1e-3), (rows, self.index[there])), shape=(n, n)
        )
        B = (beta + sparse.eye(n, format="csr")).tocsr()
        along = self.Z.shape[1] == 1 or self.most >= n - 1
        return Symbolic.of(B.T @ B, self.order.astype(np.intp) if along else fill_reducing(B))

    @cached_property
    def places(self) -> Index:
        """Where each value's pairs with and of its neighbours are in the precision's pattern; see `_sparse.entries`."""
        s = self.symbolic
        return entries(s.place, self.index, self.counts, s.pointers, s.rows)

    @property
    def others(self) -> Index:
        """The values that are not in front."""
        return self.order[self.front :]

    def nearest(self, X: FloatArray) -> Index:
        """Return the values (t, k) that those at inputs X (t, d) are regressed on: in front, then the nearest first."""
        found = _nearest(self.Z[self.others], X / self.scale, self.predicting)
        return self.about(self.others[found])

    def about(self, found: Index) -> Index:
        """Return those in front and the nearest (t, 2 m + 1); with one input, those at most m places away."""
        if self.Z.shape[1] > 1:
            front = np.broadcast_to(self.order[: self.front], (len(found), self.front))
            return np.concatenate([front, found], axis=1)
        n, size = len(self.order), min(2 * self.most + 1, len(self.order))
        place = np.empty(n, dtype=np.intp)
        place[self.order] = np.arange(n)
        at = place[found[:, 0]]
        window = np.clip(at - self.most, 0, n - size)[:, None] + np.arange(size)
        nearest = np.argsort(np.abs(window - at[:, None]), axis=1, kind="stable")
        return self.order[np.take_along_axis(window, nearest, axis=1)]


def left_by(kernel: Kernel, X: FloatArray, some: NDArray[np.intp], most: int) -> FloatArray:
    """Return the variances that half, and all, of so many nearest others leave of some values, (2, k)."""
    scale = _length_scales(kernel, X.shape[1])
    index = _nearest(X / scale, X[some] / scale, most + 1)[:, 1:]  # each is the nearest to itself
    found = []
    for many in (most // 2, most):
        counts = np.full(len(some), many, dtype=np.int32)
        own = variances(kernel, X[some], many)
        few = np.ascontiguousarray(index[:, :many])
        found.append(Regressions.of(kernel, X, X[some], own, few, counts).D)
    return np.array(found)


def _nearest(Z: FloatArray, to: FloatArray, most: int) -> Index:
    from scipy.spatial import cKDTree

    _, found = cKDTree(Z).query(to, k=np.arange(1, min(most, len(Z)) + 1))
    return np.asarray(found, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Regressions:
    """Values regressed on their neighbours: beta (n, m), zero beyond the counts, and the variances D (n,) left."""

    beta: FloatArray
    D: FloatArray

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: FloatArray,
        targets: FloatArray,
        variance: FloatArray,
        index: Index,
        counts: Index,
    ) -> Regressions:
        """Regress values at targets (t, d) of prior variances (t,) on those at X, by neighbours (t, m).

        Raises
        ------
        ValueError
            If neighbours have covariances that are not positive definite in floating point.
        """
        own = variances(kernel, X, index.shape[1])
        beta, D = np.empty(index.shape), np.array(variance)
        for here in _chunks(*index.shape):
            A, beta[here] = _covariances(kernel, X, targets[here], own, index[here])
            _solved(A, beta[here], counts[here], D[here], kernel)
        return cls(beta, np.maximum(D, 0.5 * _JITTER * variance))

    @classmethod
    def on(
        cls, K_star: FloatArray, variance: FloatArray, kernel: Kernel, X: FloatArray, index: Index
    ) -> Regressions:
        """The same from given covariances (n, t)."""
        own = variances(kernel, X, index.shape[1])
        beta = np.ascontiguousarray(np.take_along_axis(K_star.T, index, axis=1))
        counts, D = np.full(len(index), index.shape[1], dtype=np.int32), np.array(variance)
        for here in _chunks(*index.shape):
            A, _ = _covariances(kernel, X, X[index[here, 0]], own, index[here])
            _solved(A, beta[here], counts[here], D[here], kernel)
        return cls(beta, D)


def variances(kernel: Kernel, X: Any, most: int) -> FloatArray:
    """Return prior variances (n,), a billionth larger where several neighbours are regressed on."""
    return (1.0 + _JITTER * (most > 1)) * diagonal(kernel, X)


def contracted(
    kernel: Kernel,
    X: FloatArray,
    near: Neighbours,
    beta: FloatArray,
    of_beta: FloatArray,
    of_D: FloatArray,
) -> FloatArray:
    """Return sum of_beta dbeta + of_D dD for each hyperparameter (p,).

    With A the covariances of the neighbours, k those with the value, and h = A^-1 of_beta,

        dbeta = A^-1 (dk - dA beta),      dD = dk_ii - 2 beta' dk + beta' dA beta.

    The derivatives of the kernel are central differences, which any kernel has, good to ten digits.
    """
    theta = kernel.theta
    found = np.zeros(len(theta))
    steps = [
        (kernel.clone_with_theta(theta + s), kernel.clone_with_theta(theta - s))
        for s in _STEP * np.eye(len(theta))
    ]
    m = near.most
    moved = [np.array([variances(one, X, m) for one in pair]) for pair in steps]
    own = variances(kernel, X, m)
    for here in _chunks(*near.index.shape):
        index, counts, b = near.index[here], near.counts[here], beta[here]
        A, k = _covariances(kernel, X, X[here], own, index)
        _solved(A, k, counts, np.ones(len(k)), kernel)
        h = np.array(of_beta[here])
        regressed(A, h, counts)
        there = np.arange(m) < counts[:, None]
        g = of_D[here, None]
        on_k = np.where(there, h - 2.0 * g * b, 0.0)
        # of the lower triangle, whose entries stand for two; the diagonal's are halved where it is taken
        on_A = (
            -h[:, :, None] * b[:, None, :]
            - b[:, :, None] * h[:, None, :]
            + 2.0 * g[:, :, None] * b[:, :, None] * b[:, None, :]
        )
        on_A *= there[:, :, None] & there[:, None, :]
        on_A *= np.tri(m) - 0.5 * np.eye(m)
        for p, ((above, below), (more, less)) in enumerate(zip(steps, moved, strict=True)):
            A_1, k_1 = _covariances(above, X, X[here], more, index)
            A_0, k_0 = _covariances(below, X, X[here], less, index)
            total = (
                np.vdot(on_k, k_1 - k_0)
                + np.vdot(on_A, A_1 - A_0)
                + of_D[here] @ (more - less)[here]
            )
            found[p] += total / (2.0 * _STEP)
    return found


def _covariances(
    kernel: Kernel, X: FloatArray, targets: FloatArray, own: FloatArray, index: Index
) -> tuple[FloatArray, FloatArray]:
    """Return covariances of neighbours (c, m, m), the lower triangle, and with the targets (c, m): k(x - x', 0)."""
    c, m = index.shape
    near = X[index]
    rows, columns = np.tril_indices(m, -1)
    origin = np.zeros((1, X.shape[1]))
    with_targets = (near - targets[:, None]).reshape(c * m, X.shape[1])
    between = (near[:, rows] - near[:, columns]).reshape(c * len(rows), X.shape[1])
    values = evaluate(kernel, np.concatenate([with_targets, between]), origin)[:, 0]
    A = np.zeros((c, m, m))
    A[:, rows, columns] = values[c * m :].reshape(c, -1)
    A[:, np.arange(m), np.arange(m)] = own[index]
    return A, np.ascontiguousarray(values[: c * m].reshape(c, m))


def _solved(A: FloatArray, k: FloatArray, counts: Index, left: FloatArray, kernel: Kernel) -> None:
    if not conditionals(A, k, counts, left):
        raise ValueError(
            f"kernel {kernel}: covariances of neighbours are not positive definite in floating point; use a covariance "
            "of low rank, or add a WhiteKernel"
        )


def _chunks(n: int, m: int) -> Iterator[slice]:
    size = max(_ENTRIES // (m * m), 1)
    return (slice(k, min(k + size, n)) for k in range(0, n, size))


def _length_scales(kernel: Kernel, d: int) -> FloatArray:
    """Return the length scales (d,) of the first part of a kernel that has one for each input; else ones."""
    for name, value in sorted(kernel.get_params().items()):
        if name.endswith("length_scale") and np.shape(value) == (d,):
            return np.asarray(value, dtype=np.float64)
    return np.ones(d)


def _from_coarse_to_fine(Z: FloatArray) -> Index:
    """Return an order in which the first inputs are far apart: each the farthest from those before, then at random."""
    n = len(Z)
    if Z.shape[1] == 1:
        return np.argsort(Z[:, 0], kind="stable").astype(np.int32)
    order = np.random.default_rng(0).permutation(n)
    some = order[:_CROWD]
    crowd, chosen = Z[some], []
    at = int(np.argmin(np.sum((crowd - crowd.mean(axis=0)) ** 2, axis=1)))
    distance = np.full(len(some), np.inf)
    for _ in range(min(len(some), _SPREAD)):
        chosen.append(at)
        distance = np.minimum(distance, np.einsum("ij,ij->i", crowd - crowd[at], crowd - crowd[at]))
        distance[at] = -1.0
        at = int(np.argmax(distance))
    rest = np.ones(n, dtype=bool)
    rest[some[chosen]] = False
    return np.concatenate([some[chosen], order[rest[order]]]).astype(np.int32)


def _with_front(Z: FloatArray, most: int, front: int) -> tuple[Index, Index]:
    """Return the first rows and at most so many nearest earlier others of each (n, front + most), and how many."""
    others = len(Z) - front
    index, counts = _earlier(Z[front:], min(most, max(others - 1, 1)))
    if front == 0:
        return index, counts
    found = np.zeros((len(Z), front + index.shape[1]), dtype=np.int32)
    found[:, :front] = np.arange(front)
    found[front:, front:] = front + index
    return found, np.concatenate([np.arange(front, dtype=np.int32), front + counts])


def _earlier(Z: FloatArray, most: int) -> tuple[Index, Index]:
    """Return at most so many nearest earlier rows of each (n, most), and how many there are (n,)."""
    n = len(Z)
    counts = np.minimum(np.arange(n), most).astype(np.int32)
    index = np.zeros((n, most), dtype=np.int32)
    if Z.shape[1] == 1:
        before = np.arange(n)[:, None] - np.arange(1, most + 1)
        return np.maximum(before, 0).astype(np.int32), counts
    from scipy.spatial import cKDTree

    first = min(n, max(_BRUTE, 2 * most))
    compare_earlier(Z, np.arange(first), index, most)
    while first < n:
        stop = min(2 * first, n)
        rows, k = np.arange(first, stop), min(3 * most, stop)
        _, found = cKDTree(Z[:stop]).query(Z[first:stop], k=k)
        earlier = found < rows[:, None]
        enough = earlier.sum(axis=1) >= most
        best = np.argsort(~earlier[enough], axis=1, kind="stable")[:, :most]
        index[rows[enough]] = np.take_along_axis(found[enough], best, axis=1)
        compare_earlier(Z, rows[~enough], index, most)
        first = stop
    return index, counts


def compare_earlier(Z: FloatArray, rows: NDArray[Any], index: Index, most: int) -> None:
    """Put into an index (n, most) the earlier rows that are nearest to these; of equally near ones the first."""
    from scipy.spatial.distance import cdist  # whose package is heavy

    size = max(_ENTRIES // max(len(Z), 1), 1)
    for k in range(0, len(rows), size):
        some = rows[k : k + size]
        distance = cdist(Z[some], Z[: some[-1] + 1])
        distance[np.arange(distance.shape[1]) >= some[:, None]] = np.inf
        kept = np.argsort(distance, axis=1, kind="stable")[:, :most]
        index[some, : kept.shape[1]] = kept
        later = index[some] >= some[:, None]
        index[some] = np.where(later, 0, index[some])
