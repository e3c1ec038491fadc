"""The sparse form: each latent value is regressed on few neighbours (Vecchia), so that K^-1 = B' D^-1 B is sparse.

K is the covariance of that process, exactly: products, sites, draws and evidence all belong to it. How far it is from
the kernel's own covariance is estimated (`gpcmc.covariance.sparse_correction`). With noise of precision W at each
pattern the posterior's precision is P = K^-1 + W, and R = W - W P^-1 W. One sparse factorisation has the determinant,
solves, and, by selected inversion, the marginal variances and all entries of P^-1 that the gradient needs.

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

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray
from gpcmc.covariance._sparse import grouped, multiplied, precision
from gpcmc.covariance.chain import Chain
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
from gpcmc.covariance.kernels import diagonal
from gpcmc.covariance.neighbours import Neighbours, Regressions, contracted, variances
from gpcmc.covariance.sparse_cholesky import Index, SparseCholesky
from gpcmc.covariance.sparse_correction import correction_of
from gpcmc.covariance.sparse_factor import SparseFactor

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Neighbours at most, unless another number is asked for.
NEIGHBOURS = 20
_RESOLUTION = 1e-4  # as of low rank: what the form leaves out moves sites by more
_COARSE = 500  # patterns from which on sites are looked for with a third of the neighbours first
_FEWEST = 4
_COLUMNS = 64  # solved for at once
# From calibration: times the way to twice the neighbours is that to all, about; and of the way back to half of them
_BEYOND, _BEHIND = 1.25, 0.25


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
        return self.near.most >= len(self) - 1 or self.chain() is not None

    def chain(self) -> Chain | None:
        scale = _markov(self.kernel) if self.X.shape[1] == 1 else None
        if scale is None:
            return None
        order = np.argsort(self.X[:, 0], kind="stable")
        variance = float(diagonal(self.kernel, self.X[:1])[0])
        return Chain(order, self.X[order, 0] / scale, variance, scale)

    @property
    def resolution(self) -> float:  # type: ignore[override]
        return 0.0 if self.exact else _RESOLUTION

    @cached_property
    def diagonal(self) -> FloatArray:
        return self._of_diagonal(self.prior.inverse())

    def __matmul__(self, x: FloatArray) -> FloatArray:
        X = np.array(x.reshape(len(x), -1), dtype=np.float64, order="C")
        near = self.near
        multiplied(near.order, near.index, near.counts, self.by.beta, self.by.D, X)
        return X.reshape(x.shape)

    @cached_property
    def precision(self) -> FloatArray:
        """The entries of K^-1 at the pattern of `near.symbolic`."""
        near = self.near
        data = np.zeros(len(near.symbolic.rows))
        precision(near.places, near.counts, self.by.beta, self.by.D, data)
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
        others = self.near.others
        nearest = np.argsort(-relevance[others], axis=0, kind="stable")[: self.near.predicting].T
        index = np.ascontiguousarray(self.near.about(others[nearest]))
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
        grouped(near.places, near.counts, beta, M.conditioned.own_entries(), group)
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
        return correction_of(self, M)

    def draws(self, z: FloatArray) -> FloatArray:
        """Return draws from N(0, K), (n, k), made of standard normals z (n, k)."""
        found = np.empty_like(z)
        found[self.near.symbolic.order] = self.prior.back(z)
        return found

    def coarser(self) -> Sequence[Covariance]:
        """Return the process with a third of the neighbours, where there are 500 patterns or more."""
        fewer = self.near.near // 3
        if len(self) < _COARSE or fewer < _FEWEST:
            return ()
        return (on_neighbours(self.kernel, self.X, self.near.fewer(fewer)),)

    @cached_property
    def finer(self) -> Sparse:
        """The process with twice the neighbours, which says how far off this one is."""
        return sparse(self.kernel, self.X, neighbours=2 * self.near.near, front=self.near.front)

    def left_by_half(self) -> FloatArray:
        """Return the variances (n,) that half of the neighbours leave."""
        half = self.near.fewer(max(self.near.near // 2, 1))
        return on_neighbours(self.kernel, self.X, half).by.D

    def _of_diagonal(self, data: FloatArray) -> FloatArray:
        symbolic = self.near.symbolic
        found = np.empty(len(self))
        found[symbolic.order] = data[symbolic.pointers[:-1]]
        return found


def sparse(
    kernel: Kernel, X: FloatArray, *, neighbours: int = NEIGHBOURS, front: int | None = None
) -> Sparse:
    """Approximate a stationary kernel's covariance at inputs X (n, d) by conditionals on so many neighbours at most.

    So many stand in front: by default as many as neighbours, where the kernel is a sum, and none elsewhere.

    Raises
    ------
    ValueError
        If the kernel is not stationary, or neighbours are so near that they cannot be told apart in floating point.
    """
    if not kernel.is_stationary():
        raise ValueError(
            f"kernel {kernel} must be stationary for a sparse covariance; use covariance='low-rank' or 'dense'"
        )
    if front is None:
        front = neighbours if len(_parts(kernel)) > 1 else 0
    return on_neighbours(kernel, X, Neighbours.of(kernel, X, neighbours, front))


def on_neighbours(kernel: Kernel, X: FloatArray, near: Neighbours) -> Sparse:
    """Return the covariance with neighbours that are chosen already."""
    variance = variances(kernel, X, near.most)
    return Sparse(kernel, X, near, Regressions.of(kernel, X, X, variance, near.index, near.counts))


def _parts(kernel: Kernel) -> list[Kernel]:
    """Return the terms of a sum of kernels, but for white noise."""
    from sklearn.gaussian_process.kernels import Sum, WhiteKernel

    if isinstance(kernel, Sum):
        return _parts(kernel.k1) + _parts(kernel.k2)
    return [] if isinstance(kernel, WhiteKernel) else [kernel]


def _markov(kernel: Kernel) -> float | None:
    """Return the length scale of an Ornstein-Uhlenbeck kernel, alone or times constants; None of others."""
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, Product

    if isinstance(kernel, Product):
        pair = (kernel.k1, kernel.k2)
        shapes = [one for one in pair if not isinstance(one, ConstantKernel)]
        return _markov(shapes[0]) if len(shapes) == 1 else None
    if type(kernel) is not Matern or kernel.nu != 0.5:
        return None
    return float(np.ravel(kernel.length_scale)[0])


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

    def places(self, chain: Chain) -> FloatArray:
        if self.X_star is not None:
            found: FloatArray = self.X_star[:, 0] / chain.scale
            return found
        assert self.K_star is not None
        return chain.places(self.K_star)

    def fewer(self) -> SparseCross:
        """Return the same with half of the nearest patterns."""
        K, front = self.of, self.of.near.front
        half = front + max((self.index.shape[1] - front) // 2, 1)
        index = np.ascontiguousarray(self.index[:, :half])
        if self.X_star is None:
            assert self.K_star is not None and self.k_star_star is not None
            by = Regressions.on(self.K_star, self.k_star_star, K.kernel, K.X, index)
        else:
            counts = np.full(len(index), half, dtype=np.int32)
            variance = variances(K.kernel, self.X_star, half)
            by = Regressions.of(K.kernel, K.X, self.X_star, variance, index, counts)
        return SparseCross(K, index, by)

    def finer(self) -> SparseCross:
        """Return the same inputs under the process with twice the neighbours."""
        K = self.of.finer
        if self.X_star is not None:
            return K.cross(self.X_star)
        assert self.K_star is not None and self.k_star_star is not None
        return K.cross_of(self.K_star, self.k_star_star)


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
            # of one pattern the nearest are different ones
            right[rows, c, np.arange(len(some))[:, None], c] = cross.by.beta[some]
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
    def on(self, K: Covariance) -> Conditioned:
        """Return another covariance with the same noise."""

    @property
    @abstractmethod
    def precisions(self) -> FloatArray:
        """The diagonals (C, n) of W."""

    @abstractmethod
    def times_noise(self, f: FloatArray) -> FloatArray:
        """Return W f of each pattern for f (C, n) or (C, n, k)."""

    @abstractmethod
    def noise(self, z: FloatArray) -> FloatArray:
        """Return draws from N(0, W) made of standard normals z, both (C, n, k)."""

    @abstractmethod
    def lifted(self, nu: FloatArray) -> FloatArray:
        """Return P^-1 nu for nu (C, n) or (C, n, k)."""

    def predictor(self, a: FloatArray, answer: Answer | None = None) -> SparsePredictor:
        mean = (self.K @ a.T).T
        if self.K.exact:
            return SparsePredictor(self, mean)
        # to first order, with the terms held: E a - K R E a
        left_out = (self.K.finer @ a.T).T - mean
        return SparsePredictor(self, mean, left_out - (self.K @ self.solve(left_out).T).T)


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
        Sx = self.S * x
        return Sx - self.S * self.made.solve(Sx)

    def shifted(self, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = self.made.solve(nu)
        return nu - self.S * mean, mean

    def on(self, K: Covariance) -> Conditioned:
        return K.conditioned(self.S)

    @property
    def precisions(self) -> FloatArray:
        return self.S[None]

    def times_noise(self, f: FloatArray) -> FloatArray:
        return (self.S * f.swapaxes(1, -1)).swapaxes(1, -1)

    def noise(self, z: FloatArray) -> FloatArray:
        return np.sqrt(self.S)[:, None] * z

    def lifted(self, nu: FloatArray) -> FloatArray:
        return self.made.solve(nu[0])[None]

    def own_entries(self) -> FloatArray:
        return self._entries


@dataclass(frozen=True, eq=False)
class SoftmaxSparse(SparseConditions):
    """Several latent functions; W (n, C, C) are the precisions of the noise at class probabilities pi (C, n)."""

    K: Sparse
    made: SparseCholesky
    log_determinant: float
    W: FloatArray
    pi: FloatArray

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
        return cls(K, made, made.log_determinant + C * K.log_determinant, W, pi)

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

    def on(self, K: Covariance) -> Conditioned:
        return K.conditioned_softmax(self.pi)

    @property
    def precisions(self) -> FloatArray:
        return self.pi * (1.0 - self.pi)

    def times_noise(self, f: FloatArray) -> FloatArray:
        return np.einsum("icd,di...->ci...", self.W, f)

    def noise(self, z: FloatArray) -> FloatArray:
        half, pi = np.sqrt(self.pi)[..., None] * z, self.pi[..., None]
        return half - pi * half.sum(axis=0)

    def lifted(self, nu: FloatArray) -> FloatArray:
        together = nu.swapaxes(0, 1)
        solved = self.made.solve(together.reshape(-1, *nu.shape[2:]))
        return solved.reshape(together.shape).swapaxes(0, 1)

    def solve(self, x: FloatArray) -> FloatArray:
        Wx = self.times_noise(x)
        return Wx - self.times_noise(self.lifted(Wx))

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


@dataclass(frozen=True, slots=True)
class SparsePredictor(Predictor):
    """A conditioned covariance with the posterior mean, (n,) or (C, n), and how more neighbours would move it.

    How far off a prediction may be is told by its distance from one with twice the neighbours, of patterns and of the
    test inputs. A small share of its distance from a regression on half of the patterns is for inputs where the former
    vanishes by chance. The variances hardly matter for these distances.
    """

    conditioned: SparseConditions
    mean: FloatArray
    move: FloatArray | None = None

    def latent(self, cross: Any) -> Latent:
        own = self._through(cross)
        if self.move is None:
            return own
        ahead = cross.finer().rows() @ (self.mean + self.move).T - own.mean
        back = cross.fewer().rows() @ self.mean.T - own.mean
        others = (_BEYOND * ahead, _BEHIND * back)
        return Latent(
            own.mean, own.variance, own, tuple(Latent(own.mean + by, own.variance) for by in others)
        )

    def _through(self, cross: SparseCross) -> Latent:
        C = self.conditioned.classes
        mean = cross.rows() @ self.mean.T
        variance = _quadratic(self.conditioned.made, cross, C)
        each = np.arange(C)
        variance[:, each, each] += cross.by.D[:, None]
        return Latent(mean, variance if self.mean.ndim > 1 else variance[:, 0, 0])
