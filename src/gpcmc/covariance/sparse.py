"""The sparse form: each latent value is regressed on few neighbours (Vecchia), so that K^-1 = B' D^-1 B is sparse.

K is the covariance of that process, exactly: products, sites, draws and evidence all belong to it. How far it is from
the kernel's own covariance is estimated to first order (`Sparse.correction`). With noise of precision W at each pattern
the posterior's precision is P = K^-1 + W, and R = W - W P^-1 W. One sparse factorisation has the determinant, solves,
and, by selected inversion, the marginal variances and all entries of P^-1 that the gradient needs.

References
----------
Vecchia (1988), Journal of the Royal Statistical Society B 50, 297. Katzfuss and Guinness (2021), Statistical Science
36, 124. Rasmussen and Williams (2006), Eqs. (3.27), (5.27), (A.9).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray
from gpcmc.covariance import _sparse
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.factor import Factor
from gpcmc.covariance.form import (
    Answer,
    Conditioned,
    ConditionedFunction,
    Correction,
    Covariance,
    GradientMatrix,
    Latent,
    Predictor,
)
from gpcmc.covariance.kernels import diagonal, evaluate
from gpcmc.covariance.neighbours import Neighbours, Regressions, contracted, variances
from gpcmc.covariance.sparse_cholesky import Index, SparseCholesky
from gpcmc.covariance.sparse_factor import SparseFactor

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Neighbours at most, unless another number is asked for.
NEIGHBOURS = 20
_RESOLUTION = 1e-4  # as of low rank: what the form leaves out moves sites by more
_COARSE = 500  # patterns from which on sites are looked for with a third of the neighbours first
_FEWEST = 4
_COLUMNS = 64  # solved for at once
_EXACT = 2000  # patterns up to which every column of the error is evaluated
_DRAWN = 256  # columns of it beyond


@dataclass(frozen=True, eq=False)
class Sparse(Covariance):
    """The covariance of a process of conditionals on neighbours.

    Attributes
    ----------
    kernel : Kernel
        Stationary; what K approximates.
    X : (n, d) array
        The inputs.
    near : Neighbours
    by : Regressions
        Of each value on its neighbours.
    """

    kernel: Kernel
    X: FloatArray
    near: Neighbours
    by: Regressions

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether K is the kernel's own: all earlier values are neighbours, or the process is Markov."""
        return self.near.most >= len(self) - 1 or (self.X.shape[1] == 1 and _markov(self.kernel))

    @property
    def resolution(self) -> float:  # type: ignore[override]
        return 0.0 if self.exact else _RESOLUTION

    @cached_property
    def diagonal(self) -> FloatArray:  # type: ignore[override]
        return self._of_diagonal(self.prior.inverse())

    def __matmul__(self, x: FloatArray) -> FloatArray:
        X = np.array(x.reshape(len(x), -1), dtype=np.float64, order="C")
        near = self.near
        _sparse.multiplied(near.order, near.index, near.counts, self.by.beta, self.by.D, X)
        return X.reshape(x.shape)

    @cached_property
    def precision(self) -> FloatArray:
        """The entries of K^-1 at the pattern of `near.symbolic`."""
        near = self.near
        data = np.zeros(len(near.symbolic.rows))
        _sparse.precision(near.places, near.counts, self.by.beta, self.by.D, data)
        return data

    @cached_property
    def prior(self) -> SparseCholesky:
        """The factor of K^-1."""
        return self.near.symbolic.factorize(self.precision)

    @property
    def log_determinant(self) -> float:
        """Of K."""
        return float(np.sum(np.log(self.by.D)))

    def conditioned(self, S: FloatArray) -> SparseConditioned:
        symbolic = self.near.symbolic
        data = self.precision.copy()
        data[symbolic.pointers[:-1]] += S[symbolic.order]
        made = symbolic.factorize(data)
        return SparseConditioned(self, made, made.log_determinant + self.log_determinant, S)

    def conditioned_softmax(self, pi: FloatArray) -> SoftmaxSparse:
        return SoftmaxSparse.of(self, pi)

    def factor(self, signs: FloatArray, noise: float = 1.0) -> Factor:
        c, s = signs[self.near.symbolic.order], np.full(len(self), float(noise))
        largest = float(np.sqrt(diagonal(self.kernel, self.X).max()))
        return SparseFactor.of(self.prior, self.precision, c, s, largest)

    def cross(self, X_star: FloatArray) -> SparseCross:
        if X_star.shape[1] != self.X.shape[1]:
            raise ValueError(f"X must have {self.X.shape[1]} columns; got {X_star.shape[1]}")
        index = self.near.nearest(X_star)
        counts = np.full(len(index), index.shape[1], dtype=np.int32)
        variance = variances(self.kernel, X_star, index.shape[1])
        by = Regressions.of(self.kernel, self.X, X_star, variance, index, counts)
        return SparseCross(self, index, by, X_star)

    def cross_of(self, K_star: FloatArray, k_star_star: FloatArray) -> SparseCross:
        relevance = K_star**2 / diagonal(self.kernel, self.X)[:, None]
        most = min(self.near.most + 1, len(self))
        nearest = np.argsort(-relevance, axis=0, kind="stable")[:most].T
        index = np.ascontiguousarray(self.near.about(nearest.astype(np.int32)))
        by = Regressions.on(K_star, k_star_star, self.kernel, self.X, index)
        if (by.D + 1e-6 * np.maximum(k_star_star, 1.0) < 0.0).any():
            raise ValueError(
                f"K_star and k_star_star do not belong to the prior: a variance would be {by.D.min():.3g}"
            )
        return SparseCross(
            self, index, Regressions(by.beta, np.maximum(by.D, 0.0)), None, K_star, k_star_star
        )

    def contract(self, M: GradientMatrix) -> FloatArray:
        """Differentiate with neighbours that stay as they are.

        With Q = K^-1, Sigma = P^-1 and K R K = K - Sigma,

            tr(M dK) / 2 = -sum (K p)' dQ (K q) + sum_c [tr(K dQ) - tr(Sigma_cc dQ)] / 2,
            tr(K dQ) = -sum_i dD_i / D_i,

        and dQ is that of B and D, which have Sigma's entries at neighbours alone.
        """
        near, (beta, D) = self.near, (self.by.beta, self.by.D)
        u, w = (self @ M.p.T).T, (self @ M.q.T).T
        there = np.arange(near.most) < near.counts[:, None]
        group = np.zeros((len(self), near.most + 1))
        _sparse.grouped(near.places, near.counts, beta, M.conditioned.own_entries(), group)
        bu, bw = self._rest(u), self._rest(w)
        # -beta_j stands at the neighbours in each row of B
        of_row = (
            group[:, 1:]
            + np.einsum("cij,ci->ij", u[:, near.index], bw)
            + np.einsum("cij,ci->ij", w[:, near.index], bu)
        )
        of_beta = np.where(there, of_row / D[:, None], 0.0)
        own = group[:, 0] - np.sum(np.where(there, beta, 0.0) * group[:, 1:], axis=1)
        of_D = (0.5 * own + np.sum(bu * bw, axis=0)) / D**2 - 0.5 * len(M.p) / D
        return contracted(self.kernel, self.X, near, beta, of_beta, of_D)

    def _rest(self, f: FloatArray) -> FloatArray:
        """Return B f for f (C, n)."""
        return f - np.einsum("cij,ij->ci", f[:, self.near.index], self.by.beta)

    def dense(self) -> FloatArray:
        needed, limit = 24.0 * len(self) ** 2, available_memory()
        if needed > limit.bytes:
            raise MemoryError(
                f"the covariance as an array needs about {needed / 2**30:.1f} GiB; {limit.source} "
                f"{limit.bytes / 2**30:.1f} GiB: use 'ep', 'laplace' or 'twisted-ep', which need no array"
            )
        found = self @ np.eye(len(self))
        return 0.5 * (found + found.T)

    @classmethod
    def memory(cls, n: int, matrices: float) -> float:
        return 0.0

    def correction(self, M: GradientMatrix) -> Correction:
        """Return sum_ij M_ij E_ij / 2, E what the kernel has beyond K, and how far off that may be.

        With up to 2000 patterns all columns are evaluated, and first order leaves about half of the correction at most
        (docs/sparse). With more, 256 columns are drawn: the change is taken where it exceeds two standard errors of its
        own.
        """
        if self.exact:
            return Correction()
        n, drawn = len(self), len(self) > _EXACT
        J = np.random.default_rng(0).choice(n, _DRAWN, replace=False) if drawn else np.arange(n)
        sums = np.concatenate(
            [self._error_columns(M, J[k : k + _COLUMNS]) for k in range(0, len(J), _COLUMNS)]
        )
        change = float(n * sums.mean())
        se = (
            float(n * np.std(sums, ddof=1) * np.sqrt((1.0 - len(J) / n) / len(J))) if drawn else 0.0
        )
        taken = change if abs(change) > 2.0 * se else 0.0
        rest = 0.5 * abs(taken) + abs(change - taken) + 2.0 * se
        told = {"neighbours": float(self.near.most), "correction": taken, "correction_rest": rest}
        return Correction(taken, rest, told)

    def _error_columns(self, M: GradientMatrix, J: NDArray[np.intp]) -> FloatArray:
        """Return sum_i M_ij E_ij / 2 (m,) for columns j."""
        unit = np.zeros((len(self), len(J)))
        unit[J, np.arange(len(J))] = 1.0
        of_M = M.p.T @ M.q[:, J] + M.q.T @ M.p[:, J] - M.conditioned.own_columns(unit)
        E = evaluate(self.kernel, self.X, self.X[J])
        E[J, np.arange(len(J))] = variances(self.kernel, self.X[J], self.near.most)
        E -= self @ unit
        return 0.5 * np.einsum("ij,ij->j", of_M, E)

    def coarser(self) -> Sequence[Covariance]:
        """Return the process with a third of the neighbours, where there are 500 patterns or more."""
        fewer = self.near.most // 3
        if len(self) < _COARSE or fewer < _FEWEST:
            return ()
        return (on_neighbours(self.kernel, self.X, self.near.fewer(fewer)),)

    def _of_diagonal(self, data: FloatArray) -> FloatArray:
        symbolic = self.near.symbolic
        found = np.empty(len(self))
        found[symbolic.order] = data[symbolic.pointers[:-1]]
        return found


def sparse(kernel: Kernel, X: FloatArray, *, neighbours: int = NEIGHBOURS) -> Sparse:
    """Approximate a stationary kernel's covariance at inputs X (n, d) by conditionals on so many neighbours at most.

    Raises
    ------
    ValueError
        If the kernel is not stationary, or neighbours are so near that they cannot be told apart in floating point.
    """
    if not kernel.is_stationary():
        raise ValueError(
            f"kernel {kernel} must be stationary for a sparse covariance; use covariance='low-rank' or 'dense'"
        )
    return on_neighbours(kernel, X, Neighbours.of(kernel, X, neighbours))


def on_neighbours(kernel: Kernel, X: FloatArray, near: Neighbours) -> Sparse:
    """Return the covariance with neighbours that are chosen already."""
    variance = variances(kernel, X, near.most)
    return Sparse(kernel, X, near, Regressions.of(kernel, X, X, variance, near.index, near.counts))


def _markov(kernel: Kernel) -> bool:
    """Return whether a kernel of one input is that of an Ornstein-Uhlenbeck process, alone or times a constant."""
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, Product

    if isinstance(kernel, Product):
        pair = (kernel.k1, kernel.k2)
        shapes = [one for one in pair if not isinstance(one, ConstantKernel)]
        return len(shapes) == 1 and _markov(shapes[0])
    return type(kernel) is Matern and kernel.nu == 0.5


@dataclass(frozen=True, slots=True, eq=False)
class SparseCross(Cross):
    """Test inputs, each regressed on its nearest patterns.

    Attributes
    ----------
    of : Sparse
    index : (t, m) array of int32
        Those patterns.
    by : Regressions
    X_star : (t, d) array or None
    K_star, k_star_star
        What they were made from, where that was not inputs.
    """

    of: Sparse
    index: Index
    by: Regressions
    X_star: FloatArray | None = None
    K_star: FloatArray | None = None
    k_star_star: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def variance(self) -> FloatArray:
        return self.by.D + _quadratic(self.of.prior, self, 1)[:, 0, 0]

    def covariances(self) -> FloatArray:
        return self.of @ self.rows().toarray().T

    def rows(self) -> Any:
        """Return the regressions as a sparse matrix (t, n)."""
        from scipy import sparse

        t, m = self.index.shape
        places = (self.by.beta.ravel(), self.index.ravel(), np.arange(t + 1) * m)
        return sparse.csr_matrix(places, shape=(t, len(self.of)))

    def fewer(self) -> SparseCross:
        """Return the same with half of the patterns."""
        K, half = self.of, max(self.index.shape[1] // 2, 1)
        index = np.ascontiguousarray(self.index[:, :half])
        if self.X_star is None:
            assert self.K_star is not None and self.k_star_star is not None
            by = Regressions.on(self.K_star, self.k_star_star, K.kernel, K.X, index)
        else:
            counts = np.full(len(index), half, dtype=np.int32)
            variance = variances(K.kernel, self.X_star, half)
            by = Regressions.of(K.kernel, K.X, self.X_star, variance, index, counts)
        return SparseCross(K, index, by)


def _quadratic(made: SparseCholesky, cross: SparseCross, classes: int) -> FloatArray:
    """Return the regressions' quadratic forms (t, C, C) in the inverse of what was factorised."""
    t, place = len(cross), cross.of.near.symbolic.place
    found = np.empty((t, classes, classes))
    # those whose patterns are eliminated late, or near each other, leave most of the factor alone
    order = np.argsort(place[cross.index].min(axis=1), kind="stable")
    size = max(_COLUMNS // classes, 1)
    for k in range(0, t, size):
        some = order[k : k + size]
        right = np.zeros((len(place), classes, len(some), classes))
        for c in range(classes):
            rows = place[cross.index[some]]
            np.add.at(right, (rows, c, np.arange(len(some))[:, None], c), cross.by.beta[some])
        half = made.forward(right.reshape(len(place) * classes, -1))
        half = half.reshape(-1, len(some), classes)
        found[some] = np.einsum("ktc,ktd->tcd", half, half)
    return found


class SparseConditions(Conditioned):
    """What one function and several share: K, and the factor of P."""

    K: Sparse
    made: SparseCholesky

    @property
    @abstractmethod
    def classes(self) -> int:
        """The number of latent functions."""

    @abstractmethod
    def own_entries(self) -> FloatArray:
        """Return the sum over functions of their own entries of P^-1, at the pattern of K^-1."""

    @abstractmethod
    def own_columns(self, X: FloatArray) -> FloatArray:
        """Return the sum over functions of R_cc X, X (n, m)."""

    def predictor(self, a: FloatArray, answer: Answer | None = None) -> SparsePredictor:
        return SparsePredictor(self, a)


@dataclass(frozen=True, eq=False)
class SparseConditioned(SparseConditions, ConditionedFunction):
    """One latent function; S (n,) are the precisions of the noise."""

    K: Sparse
    made: SparseCholesky
    log_determinant: float
    S: FloatArray

    classes = 1

    @cached_property
    def _entries(self) -> FloatArray:
        return self.made.inverse()

    @property
    def variance(self) -> FloatArray:
        return self.K._of_diagonal(self._entries)

    @property
    def noise_diagonal(self) -> FloatArray:
        return self.S * self.kept

    @property
    def kept(self) -> FloatArray:
        return 1.0 - self.S * self.variance

    def solve(self, x: FloatArray) -> FloatArray:
        return self.weights(self.S * x)

    def weights(self, nu: FloatArray) -> FloatArray:
        return nu - self.S * self.made.solve(nu)

    def own_entries(self) -> FloatArray:
        return self._entries

    def own_columns(self, X: FloatArray) -> FloatArray:
        SX = self.S[:, None] * X
        return SX - self.S[:, None] * self.made.solve(SX)


@dataclass(frozen=True, eq=False)
class SoftmaxSparse(SparseConditions):
    """Several latent functions; W (n, C, C) are the precisions of the noise."""

    K: Sparse
    made: SparseCholesky
    log_determinant: float
    W: FloatArray

    @classmethod
    def of(cls, K: Sparse, pi: FloatArray) -> SoftmaxSparse:
        """Factorise P = K^-1 for each function + W at the class probabilities pi (C, n)."""
        from scipy import sparse

        base, (C, n) = K.near.symbolic, pi.shape
        W = np.einsum("ci,cd->icd", pi, np.eye(C)) - np.einsum("ci,di->icd", pi, pi)
        places = np.arange(n)
        noise = sparse.bsr_matrix((W[base.order], places, np.arange(n + 1)), shape=(C * n, C * n))
        data = np.where(
            K.precision == 0.0, 1e-300, K.precision
        )  # a sum would drop them from the pattern
        of_K = sparse.csc_matrix((data, base.rows, base.pointers), shape=(n, n))
        whole = sparse.tril(sparse.kron(of_K, sparse.eye(C)) + noise, format="csc")
        whole.sort_indices()
        symbolic = base.several(C).with_pattern(
            whole.indptr.astype(np.int32), whole.indices.astype(np.int32)
        )
        made = symbolic.factorize(whole.data)
        return cls(K, made, made.log_determinant + C * K.log_determinant, W)

    @property
    def classes(self) -> int:
        return self.W.shape[1]

    @cached_property
    def _entries(self) -> Any:
        """Entries of P^-1, as a sparse lower triangle in the order of elimination."""
        from scipy import sparse

        s = self.made.symbolic
        return sparse.csc_matrix((self.made.inverse(), s.rows, s.pointers), shape=(len(s), len(s)))

    @cached_property
    def variance(self) -> FloatArray:
        C, order = self.classes, self.K.near.symbolic.order
        found = np.empty((len(order), C, C))
        for c in range(C):
            for d in range(c + 1):
                entry = (
                    self._entries.diagonal(d - c)[d::C] if c > d else self._entries.diagonal()[c::C]
                )
                found[order, c, d] = found[order, d, c] = entry
        return found

    @property
    def noise_diagonal(self) -> FloatArray:
        return np.einsum("icc->i", self.W - self.W @ self.variance @ self.W)

    def solve(self, x: FloatArray) -> FloatArray:
        Wx = np.einsum("icd,di->ic", self.W, x)
        solved = self.made.solve(Wx.ravel()).reshape(Wx.shape)
        return (Wx - np.einsum("icd,id->ic", self.W, solved)).T

    def own_entries(self) -> FloatArray:
        from scipy import sparse

        C, entries = self.classes, self._entries.tocoo()
        own = entries.row % C == entries.col % C
        base = self.K.near.symbolic
        found = sparse.coo_matrix(
            (entries.data[own], (entries.row[own] // C, entries.col[own] // C)),
            shape=(len(base), len(base)),
        ).tocsc()
        found.sort_indices()
        return found.data

    def own_columns(self, X: FloatArray) -> FloatArray:
        n, C = len(self.W), self.classes
        found = np.zeros_like(X)
        for c in range(C):
            WX = self.W[:, :, c, None] * X[:, None]  # (n, C, m)
            solved = self.made.solve(WX.reshape(n * C, -1)).reshape(WX.shape)
            found += WX[:, c] - np.einsum("id,idm->im", self.W[:, c], solved)
        return found


@dataclass(frozen=True, slots=True)
class SparsePredictor(Predictor):
    """A conditioned covariance with its weights a, (n,) or (C, n)."""

    conditioned: SparseConditions
    a: FloatArray

    def latent(self, cross: Any) -> Latent:
        own = self._through(cross)
        if self.conditioned.K.exact:
            return own
        # probabilities with half of the patterns say how far off they may be with all
        return Latent(own.mean, own.variance, own, (self._through(cross.fewer()),))

    def _through(self, cross: SparseCross) -> Latent:
        K, C = self.conditioned.K, self.conditioned.classes
        mean = cross.rows() @ (K @ self.a.T)
        variance = _quadratic(self.conditioned.made, cross, C)
        each = np.arange(C)
        variance[:, each, each] += cross.by.D[:, None]
        return Latent(mean, variance if self.a.ndim > 1 else variance[:, 0, 0])
