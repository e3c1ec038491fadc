"""The form of low rank: K = F F' + diag(D), F (n, r).

With f = F u + e, u ~ N(0, I_r) and e ~ N(0, D), and noise of precision S, u has a posterior of precision A:

    s = 1 / (1 + S D),   t = S s,   A = I + F' diag(t) F,   R = diag(t) - diag(t) F A^-1 F' diag(t).

D may be zero. One conditioning is n r^2 flops.

For k latent functions under the softmax let, at one pattern, pi be the class probabilities, t_c = pi_c / (1 + pi_c D)
and T = sum_c t_c. The precision that this pattern gives to F u is the (k, k) matrix

    V = (D + W^-1)^-1 = diag(t) - t t' / T,      W = diag(pi) - pi pi'.

Its rows sum to zero, and W^-1 is never needed. The k r numbers in all u have a posterior precision A with the blocks

    A_cd = -P_cd,   A_cc = I + sum_(d /= c) P_cd,      P_cd = F' diag(t_c t_d / T) F,

which are sums of terms that are not negative, and R = V - V F A^-1 F' V. The determinant is |I + K W| =
|A| prod_i T_i prod_c (1 + pi_ci D_i). To form A takes k (k - 1) / 2 products of n r^2 flops each; its Cholesky factor C
takes (k r)^3 / 3 flops. One function is the case V = t.

References
----------
Rasmussen and Williams (2006), sections 3.4, 3.6. Naish-Guzman and Holden (2008), NIPS 20, 1057.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray, as_real, check_array
from gpcmc.covariance.correction import correction_of
from gpcmc.covariance.factor import Factor
from gpcmc.covariance.form import (
    Conditioned,
    ConditionedFunction,
    Correction,
    Covariance,
    GradientMatrix,
)
from gpcmc.covariance.generators import GeneratorFactor
from gpcmc.covariance.induced import Answer, LowRankCross, LowRankPredictor
from gpcmc.covariance.kernels import diagonal
from gpcmc.covariance.pivoted import (
    BLOCK,
    MAX_RANK,
    TOLERANCE,
    Inducing,
    blocks,
    inducing_at,
    pivoted,
)
from gpcmc.covariance.root import Root

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel


_STEP = 1e-5  # of central differences, in logarithms of hyperparameters
_NESTED = 160  # ranks below have no coarser form
_RESOLUTION = 1e-4  # sites that move a marginal by less change the evidence by less than 1e-9 of it
_MATRICES = 4.0  # matrices of order k r that are held at once


@dataclass(frozen=True, slots=True, eq=False)
class LowRank(Covariance):
    """The covariance F F' + diag(D).

    Attributes
    ----------
    F : (n, r) array
    D : (n,) array
        At least zero.
    inducing : Inducing, optional
        The inputs that the columns of F belong to, which predictions at inputs and gradients need.
    finer : LowRank, optional
        One that has further columns after those of F, and stands nearer to the kernel's covariance.
    X : (n, d) array, optional
        The inputs.

    Raises
    ------
    ValueError
        If the shapes do not agree, F has no column, an entry is not finite, or D has a negative one.
    """

    F: FloatArray
    D: FloatArray
    inducing: Inducing | None = None
    finer: LowRank | None = None
    X: Any = None

    def __post_init__(self) -> None:
        F, D = as_real("F", self.F), check_array("D", self.D, ndim=1)
        if F.ndim != 2 or len(F) != len(D) or not len(D):
            raise ValueError(
                f"F and D must have one row a pattern, and at least one; got {F.shape} and {D.shape}"
            )
        if not F.shape[1]:
            raise ValueError("F must have a column; of independent patterns, zeros")
        if not np.isfinite(F).all():
            raise ValueError("F must be finite")
        if D.min() < 0:
            raise ValueError(f"D must not be negative; got {D.min():.3g}")
        object.__setattr__(self, "F", F)
        object.__setattr__(self, "D", D)

    def __len__(self) -> int:
        return len(self.D)

    @property
    def rank(self) -> int:
        """The number r of columns of F."""
        return self.F.shape[1]

    @property
    def kernel(self) -> Kernel | None:  # type: ignore[override]
        """What K approximates."""
        return None if self.inducing is None else self.inducing.kernel

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return False

    @property
    def resolution(self) -> float:  # type: ignore[override]
        return 0.0 if self.inducing is None else _RESOLUTION

    @property
    def diagonal(self) -> FloatArray:
        return np.einsum("ij,ij->i", self.F, self.F) + self.D

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return self.F @ (self.F.T @ x) + (self.D * x.T).T

    def conditioned(self, S: FloatArray) -> LowRankConditioned:
        t = S / (1.0 + S * self.D)
        C = precision_factor(self, t)
        log_determinant = 2.0 * np.sum(np.log(C.diagonal())) + np.sum(np.log1p(S * self.D))
        return LowRankConditioned(self, t[None, None], C, float(log_determinant), S)

    def conditioned_softmax(self, pi: FloatArray) -> SoftmaxLowRank:
        return SoftmaxLowRank.of(self, pi)

    def factor(self, signs: FloatArray, noise: float = 1.0) -> Factor:
        H = signs[:, None] * self.F
        return GeneratorFactor.of(H, noise + signs**2 * self.D)

    def cross(self, X_star: FloatArray) -> LowRankCross:
        inducing = self._inducing()
        if X_star.shape[1] != inducing.Z.shape[1]:
            raise ValueError(f"X must have {inducing.Z.shape[1]} columns; got {X_star.shape[1]}")
        return LowRankCross(self, diagonal(inducing.kernel, X_star), X_star=X_star)

    def cross_of(self, K_star: FloatArray, k_star_star: FloatArray) -> LowRankCross:
        if self._inducing().pivots is None:
            raise ValueError(
                "K_star says nothing of the inducing inputs, which were given: use predict_inputs(X)"
            )
        return LowRankCross(self, k_star_star, K_star=K_star)

    def _inducing(self) -> Inducing:
        if self.inducing is None:
            raise ValueError(
                "the covariance must have inducing inputs for predictions, as that of gpcmc.gp.prior(kernel, X, "
                "covariance='low-rank') has; got F and D alone"
            )
        return self.inducing

    def contract(self, M: GradientMatrix) -> FloatArray:
        """Differentiate at inducing inputs that stay where they are.

        With Q = k(X, Z), W = k(Z, Z) = L L', F = Q L^-T and the exact diagonal,

            tr(M dK) / 2 = tr(G' dQ) - tr(L^-T F' G dW) / 2 + sum_i M_ii dk_ii / 2,   G = (M - diag(M)) F L^-1.

        The derivatives of the kernel's blocks are central differences, which any kernel has, good to ten digits.
        """
        inducing = self._inducing()
        kernel, L, Z = inducing.kernel, inducing.L, inducing.Z
        m, theta = M.diagonal, inducing.kernel.theta
        G = solve_triangular(L, _times_factor(M, m).T, lower=True, trans="T", check_finite=False).T
        BG = solve_triangular(L, self.F.T @ G, lower=True, trans="T", check_finite=False)
        gradient = np.empty(len(theta))
        for k in range(len(theta)):
            step = np.zeros(len(theta))
            step[k] = _STEP
            above, below = (kernel.clone_with_theta(theta + s) for s in (step, -step))
            total = -0.5 * np.sum(BG * (above(Z, Z) - below(Z, Z)))
            for here in blocks(len(self)):
                part = self.X[here]
                total += np.sum(G[here] * (above(part, Z) - below(part, Z)))
                total += 0.5 * m[here] @ (above.diag(part) - below.diag(part))
            gradient[k] = total / (2.0 * _STEP)
        return gradient

    def root(self) -> LowRankRoot:
        return LowRankRoot(self.F, self.D)

    def dense(self) -> FloatArray:
        K = self.F @ self.F.T
        K.flat[:: len(K) + 1] += self.D
        return K

    @classmethod
    def memory(cls, n: int, matrices: float) -> float:
        return 0.0

    def correction(self, M: GradientMatrix) -> Correction:
        return correction_of(self, M)

    def coarser(self) -> Sequence[LowRank]:
        """Return those of a quarter and a half of the rank, on which a sweep costs a sixteenth and a fourth."""
        if self.rank < _NESTED:
            return ()
        return self.truncated(self.rank // 4), self.truncated(self.rank // 2)

    def truncated(self, rank: int) -> LowRank:
        """Return the covariance with the first columns of F alone, and the variances of the others in D."""
        rest = self.F[:, rank:]
        inducing = None if self.inducing is None else self.inducing.first(rank)
        D = self.D + np.einsum("ij,ij->i", rest, rest)
        return LowRank(self.F[:, :rank], D, inducing, X=self.X)


def low_rank(
    kernel: Kernel,
    X: FloatArray,
    *,
    tolerance: float = TOLERANCE,
    max_rank: int = MAX_RANK,
    inducing: FloatArray | None = None,
    strict: bool = True,
) -> LowRank:
    """Approximate a kernel's covariance at inputs X (n, d); no (n, n) array is made.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : (n, d) array
    tolerance, max_rank, inducing
        As of `gpcmc.gp.prior`.
    strict : bool
        Whether a tolerance that needs a rank above `max_rank` is an error. Else the covariance has about that rank.

    Raises
    ------
    ValueError
        If the tolerance needs more inducing inputs than `max_rank` and that is an error, or the kernel is singular at those given.
    """
    if inducing is not None:
        given = inducing_at(kernel, inducing)
        return LowRank(*given.rows(X), given, X=X)
    found, F, D, rank = pivoted(kernel, X, tolerance, max_rank, strict=strict)
    finest = LowRank(F, D, found, X=X)
    coarse = finest.truncated(rank)
    return LowRank(coarse.F, coarse.D, coarse.inducing, finest, X)


@dataclass(frozen=True, slots=True)
class LowRankRoot(Root):
    """F and D themselves."""

    A: FloatArray
    D: FloatArray

    def coordinates(self, cross: Any) -> tuple[FloatArray, FloatArray]:
        return cross.rows()


@dataclass(frozen=True, eq=False)
class LowRankConditions(Conditioned):
    """What one function and several share: K, V (k, k, n), and C (k r, k r), the lower Cholesky factor of A."""

    K: LowRank
    V: FloatArray
    C: FloatArray
    log_determinant: float

    @cached_property
    def spread(self) -> FloatArray:
        """The covariances (n, k, k) of F u."""
        return self.spread_of(self.K.F)

    def spread_of(self, F: FloatArray) -> FloatArray:
        """The covariances (t, k, k) of F u for rows F (t, r): the blocks F_i (A^-1)_cd F_i'."""
        classes, r = len(self.V), F.shape[1]
        found = np.empty((len(F), classes, classes))
        for here in blocks(len(F), max(BLOCK // classes, 1)):
            half = np.zeros((classes, len(self.C), len(F[here])))
            for c in range(classes):  # the rows above block c are zeros
                right = np.zeros((len(self.C) - c * r, len(F[here])))
                right[:r] = F[here].T
                half[c, c * r :] = solve_triangular(
                    self.C[c * r :, c * r :], right, lower=True, check_finite=False
                )
            found[here] = np.einsum("cki,dki->icd", half, half)
        return found

    @property
    @abstractmethod
    def noise(self) -> FloatArray:
        """The precisions (n,), or the class probabilities (k, n)."""

    @abstractmethod
    def on(self, K: LowRank, noise: FloatArray) -> LowRankConditions:
        """Another covariance with other noise of the same kind."""

    def _solve(self, x: FloatArray) -> FloatArray:
        """R x for x (k, n)."""
        Vx = np.einsum("cdi,di->ci", self.V, x)
        u = cho_solve((self.C, True), (Vx @ self.K.F).ravel(), check_finite=False)
        return Vx - np.einsum("cdi,di->ci", self.V, u.reshape(len(x), -1) @ self.K.F.T)

    def predictor(self, a: FloatArray, answer: Answer | None = None) -> LowRankPredictor:
        return LowRankPredictor.of(self, a, answer)


@dataclass(frozen=True, eq=False)
class LowRankConditioned(LowRankConditions, ConditionedFunction):
    """One latent function; S (n,) are the precisions of the noise."""

    S: FloatArray

    @cached_property
    def _shrinkage(self) -> FloatArray:
        return 1.0 / (1.0 + self.S * self.K.D)

    @property
    def variance(self) -> FloatArray:
        s = self._shrinkage
        return s * (self.K.D + s * self.spread[:, 0, 0])

    @property
    def noise_diagonal(self) -> FloatArray:
        t = self.V[0, 0]
        return t * (1.0 - t * self.spread[:, 0, 0])

    @property
    def kept(self) -> FloatArray:
        return self._shrinkage * (1.0 - self.V[0, 0] * self.spread[:, 0, 0])

    @property
    def noise(self) -> FloatArray:
        return self.S

    def on(self, K: LowRank, noise: FloatArray) -> LowRankConditioned:
        return K.conditioned(noise)

    def solve(self, x: FloatArray) -> FloatArray:
        return self._solve(x[None])[0]

    def weights(self, nu: FloatArray) -> FloatArray:
        s, F = self._shrinkage, self.K.F
        b = cho_solve((self.C, True), F.T @ (s * nu), check_finite=False)
        return s * nu - self.V[0, 0] * (F @ b)


@dataclass(frozen=True, eq=False)
class SoftmaxLowRank(LowRankConditions):
    """Several latent functions; pi (k, n) are the class probabilities."""

    pi: FloatArray

    @classmethod
    def of(cls, K: LowRank, pi: FloatArray) -> SoftmaxLowRank:
        """Factorise A at the class probabilities pi (k, n)."""
        _check_order(len(pi), K.rank)
        r, (V, log_det) = K.rank, _noise_precision(pi, K.D)
        A = np.eye(len(pi) * r, order="F")
        parts = [slice(c * r, (c + 1) * r) for c in range(len(pi))]
        for c, row in enumerate(parts):
            for d, column in enumerate(parts[:c]):
                P = weighted_gram(K.F, -V[c, d], np.zeros((r, r), order="F"))
                P += np.tril(P, -1).T
                A[row, column] = -P
                A[row, row] += P
                A[column, column] += P
        C = cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        return cls(K, V, C, log_det + 2.0 * float(np.sum(np.log(C.diagonal()))), pi)

    @cached_property
    def variance(self) -> FloatArray:
        B = _shrinkage(self.V, self.K.D)
        return self.K.D[:, None, None] * B + B @ self.spread @ B

    @property
    def noise_diagonal(self) -> FloatArray:
        V = np.transpose(self.V, (2, 0, 1))
        return np.einsum("icc->i", V - V @ self.spread @ V)

    @property
    def noise(self) -> FloatArray:
        return self.pi

    def on(self, K: LowRank, noise: FloatArray) -> SoftmaxLowRank:
        return K.conditioned_softmax(noise)

    def solve(self, x: FloatArray) -> FloatArray:
        return self._solve(x)


def precision_factor(K: LowRank, t: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of I + F' diag(t) F, t >= 0 (n,)."""
    A = weighted_gram(K.F, t, np.eye(K.rank, order="F"))
    return cholesky(A, lower=True, overwrite_a=True, check_finite=False)


def weighted_gram(F: FloatArray, t: FloatArray, A: FloatArray) -> FloatArray:
    """Add F' diag(t) F, t >= 0 (n,), to the lower triangle of A (r, r), which is in Fortran's order; return it."""
    for here in blocks(len(t)):
        half = np.sqrt(t[here])[:, None] * F[here]
        A = dsyrk(1.0, half.T, beta=1.0, c=A, lower=1, overwrite_c=1)
    return A


def _times_factor(M: GradientMatrix, diagonal: FloatArray) -> FloatArray:
    """Return (M - diag(M)) F (n, r)."""
    K, V, C = M.conditioned.K, M.conditioned.V, M.conditioned.C
    k, r = len(V), K.rank
    inverse = cho_solve((C, True), np.eye(k * r), check_finite=False).reshape(k, r, k, r)
    found = M.p.T @ (M.q @ K.F) + M.q.T @ (M.p @ K.F) - diagonal[:, None] * K.F
    for c in range(k):
        for d in range(c + 1):  # (R F)_c is the sum over d of V_cd F (A^-1)_dc
            both = inverse[c, :, d] + (inverse[d, :, c] if d < c else 0.0)
            found -= V[c, d][:, None] * (K.F @ both)
    return found


def _noise_precision(pi: FloatArray, D: FloatArray) -> tuple[FloatArray, float]:
    """Return V (k, k, n), and log |I + D W| of all patterns."""
    t = pi / (1.0 + pi * D)
    T = t.sum(axis=0)
    V = -t[:, None] * (t / T)
    each = np.arange(len(pi))
    V[each, each] = 0.0
    V[each, each] = -V.sum(axis=1)  # t - t^2 / T would cancel
    return V, float(np.sum(np.log(T)) + np.sum(np.log1p(pi * D)))


def _shrinkage(V: FloatArray, D: FloatArray) -> FloatArray:
    """Return B = (I + D W)^-1 = I - D V (n, k, k): given u, the mean of f = F u + e is B F u plus a constant."""
    return np.eye(len(V)) - np.transpose(D * V, (2, 0, 1))


def _check_order(classes: int, rank: int) -> None:
    """Refuse a rank whose matrices of order k r would not fit."""
    needed, limit = 8.0 * _MATRICES * (classes * rank) ** 2, available_memory()
    if needed > limit.bytes:
        GiB = 2.0**30
        raise MemoryError(
            f"tolerance: the softmax with {classes} classes and a rank of {rank} needs about {needed / GiB:.1f} GiB; "
            f"{limit.source} {limit.bytes / GiB:.1f} GiB: raise tolerance, or use multi_class='one_vs_rest'"
        )
