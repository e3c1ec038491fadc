"""A covariance of low rank, K = F F' + diag(D), with Gaussian noise on each value.

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
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray
from gpcmc.covariance.columns import Columns
from gpcmc.covariance.form import Answer, Conditioned, ConditionedFunction
from gpcmc.covariance.induced import LowRankPredictor
from gpcmc.covariance.pivoted import BLOCK, blocks

_MATRICES = 4.0  # matrices of order k r that are held at once


@dataclass(frozen=True, eq=False)
class LowRankConditions(Conditioned):
    """What one function and several share: K, V (k, k, n), and C (k r, k r), the lower Cholesky factor of A."""

    K: Columns
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
            half: list[FloatArray] = []
            for c in range(classes):  # the rows above block c are zeros
                right = np.zeros((len(F[here]), len(self.C) - c * r)).T  # as LAPACK stores it
                right[:r] = F[here].T
                factor = self.C[c * r :, c * r :]
                half.append(
                    solve_triangular(
                        factor, right, lower=True, overwrite_b=True, check_finite=False
                    )
                )
                for d in range(c + 1):
                    both = np.einsum("ki,ki->i", half[d][(c - d) * r :], half[c])
                    found[here, c, d] = found[here, d, c] = both
        return found

    @property
    @abstractmethod
    def noise(self) -> FloatArray:
        """The precisions (n,), or the class probabilities (k, n)."""

    @abstractmethod
    def on(self, K: Columns, noise: FloatArray) -> LowRankConditions:
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

    def on(self, K: Columns, noise: FloatArray) -> LowRankConditioned:
        return K.conditioned(noise)

    def solve(self, x: FloatArray) -> FloatArray:
        return self._solve(x[None])[0]

    def shifted(self, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        s, F = self._shrinkage, self.K.F
        b = cho_solve((self.C, True), F.T @ (s * nu), check_finite=False)
        Fb = F @ b
        return s * nu - self.V[0, 0] * Fb, s * (Fb + self.K.D * nu)


@dataclass(frozen=True, eq=False)
class SoftmaxLowRank(LowRankConditions):
    """Several latent functions; pi (k, n) are the class probabilities."""

    pi: FloatArray

    @classmethod
    def of(cls, K: Columns, pi: FloatArray) -> SoftmaxLowRank:
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

    def on(self, K: Columns, noise: FloatArray) -> SoftmaxLowRank:
        return K.conditioned_softmax(noise)

    def solve(self, x: FloatArray) -> FloatArray:
        return self._solve(x)


def precision_factor(K: Columns, t: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of I + F' diag(t) F, t >= 0 (n,)."""
    A = weighted_gram(K.F, t, np.eye(K.rank, order="F"))
    return cholesky(A, lower=True, overwrite_a=True, check_finite=False)


def weighted_gram(F: FloatArray, t: FloatArray, A: FloatArray) -> FloatArray:
    """Add F' diag(t) F, t >= 0 (n,), to the lower triangle of A (r, r), which is in Fortran's order; return it."""
    for here in blocks(len(t)):
        half = np.sqrt(t[here])[:, None] * F[here]
        A = dsyrk(1.0, half.T, beta=1.0, c=A, lower=1, overwrite_c=1)
    return A


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
