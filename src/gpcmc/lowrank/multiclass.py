"""Laplace's approximation with the softmax likelihood under a covariance of low rank.

Each of k classes has its own latent function f_c = F u_c + e_c. At one pattern let pi be the class probabilities,
t_c = pi_c / (1 + pi_c D) and T = sum_c t_c. The precision that this pattern gives to F u is the (k, k) matrix

    V = (D + W^-1)^-1 = diag(t) - t t' / T,      W = diag(pi) - pi pi'.

Its rows sum to zero, and W^-1 is never needed. The k r numbers in all u have a posterior precision A with the blocks

    A_cd = -P_cd,   A_cc = I + sum_(d /= c) P_cd,      P_cd = F' diag(t_c t_d / T) F,

which are sums of terms that are not negative. The determinant is |I + K W| = |A| prod_i T_i prod_c (1 + pi_ci D_i). To
form A takes k (k - 1) / 2 products of n r^2 flops each; its Cholesky factor C takes (k r)^3 / 3 flops.

The mode, the evidence and its gradient are those of `gpcmc.inference.multiclass`.

References
----------
Rasmussen and Williams (2006), Algorithms 3.3, 3.4, Eqs. (3.34)-(3.44), (5.22)-(5.24).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import softmax

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray
from gpcmc.inference.interface import ConvergenceError, Prediction
from gpcmc.inference.multiclass import MulticlassLaplace
from gpcmc.inference.softmax_average import softmax_average
from gpcmc.inference.softmax_mode import find_mode, half_slope_of_log_det
from gpcmc.lowrank.covariance import BLOCK, LowRank, blocks
from gpcmc.lowrank.gaussian import InducedRecord, LowRankPosterior, weighted_gram

_MATRICES = 4.0  # matrices of order k r that are held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRankMulticlassPosterior(InducedRecord):
    """The Gaussian at the mode of k latent functions under a covariance of low rank.

    Probabilities (t, k) are as in `gpcmc.inference.multiclass.MulticlassPosterior`, the evidence and its diagnostics as
    in `gpcmc.lowrank.gaussian.LowRankPosterior`. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    mean : (k, n) array
        The mode.
    covariance : (n, k, k) array
        Posterior covariance of the classes' latent values at each pattern.
    a : (k, n) array
        K^-1 mean.
    b : (k, r) array
        Posterior mean of u.
    C : (k r, k r) array
        Lower Cholesky factor of A, the posterior precision of u.
    v : (k, n) array
        The part of the evidence's gradient from the moving mode: M = sum over classes of a a' + v a' + a v' - R.
    points : int
        Sobol' points of one randomisation.
    randomizations : int
        The number of randomisations.
    """

    log_evidence: float
    log_evidence_se: float = 0.0
    mean: FloatArray
    covariance: FloatArray
    a: FloatArray
    b: FloatArray
    C: FloatArray
    v: FloatArray
    points: int
    randomizations: int

    @property
    def _patterns(self) -> int:
        return self.a.shape[1]

    def noise_precision(self, K: LowRank) -> tuple[FloatArray, FloatArray]:
        """Return V (k, k, n), and the diagonal (n,) of the sum over classes of R."""
        pi = softmax(self.mean, axis=0)
        V, _ = _noise_precision(pi, K.D)
        # R = W - W Sigma W. The part of Sigma that does not come from F u turns W into V
        W = np.einsum("cd,ci->icd", np.eye(len(pi)), pi) - np.einsum("ci,di->icd", pi, pi)
        left = self.covariance - K.D[:, None, None] * _shrinkage(V, K.D)
        return V, np.einsum("cci->i", V) - np.einsum("icd,ide,iec->i", W, left, W)

    def latent_rows(self, F: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means (t, k) and covariances (t, k, k) of the latent values F u + e* for rows F (t, r) and D (t,)."""
        covariance = _spread(self.C, F, len(self.b))
        each = np.arange(len(self.b))
        covariance[:, each, each] += D[:, None]
        return F @ self.b.T, covariance

    def _predict_rows(self, F: FloatArray, D: FloatArray) -> Prediction:
        averages = softmax_average(
            *self.latent_rows(F, D), points=self.points, randomizations=self.randomizations
        )
        return Prediction(*averages)


#: A Gaussian approximation under a covariance of low rank.
Gaussian = LowRankPosterior | LowRankMulticlassPosterior


@dataclass(frozen=True, slots=True)
class SoftmaxPrecision:
    """The operator R = (K + W^-1)^-1 = V - V F A^-1 F' V of all classes.

    Attributes
    ----------
    F : (n, r) array
    V : (k, k, n) array
    C : (k r, k r) array
        Lower Cholesky factor of A.
    """

    F: FloatArray
    V: FloatArray
    C: FloatArray

    @classmethod
    def of(cls, K: LowRank, pi: FloatArray) -> tuple[SoftmaxPrecision, float]:
        """Return R at the probabilities pi (k, n), and log |I + K W| / 2."""
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
        return cls(K.F, V, C), 0.5 * log_det + float(np.sum(np.log(C.diagonal())))

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Return the product of R with latent values (k, n)."""
        Vx = np.einsum("cdi,di->ci", self.V, x)
        u = cho_solve((self.C, True), (Vx @ self.F).ravel(), check_finite=False)
        return Vx - np.einsum("cdi,di->ci", self.V, u.reshape(len(x), -1) @ self.F.T)


def multiclass_laplace(
    K: LowRank,
    y: FloatArray,
    method: MulticlassLaplace,
    start: LowRankMulticlassPosterior | None = None,
) -> LowRankMulticlassPosterior:
    """Find the mode of p(f | y) and the Gaussian there, with the steps of the dense method.

    Parameters
    ----------
    K : LowRank
        Prior covariance of each latent function.
    y : (k, n) array
        1 for the class of each pattern, else 0.
    method : MulticlassLaplace
    start : LowRankMulticlassPosterior, optional
        The posterior under another covariance, with the same labels.

    Raises
    ------
    ConvergenceError
        If Newton's iteration meets its limit, or climbs no higher. The error carries the last iterate.
    MemoryError
        If matrices of order rank times classes need more memory than this process may have.
    """
    _check_order(len(y), K.rank)
    size = np.sqrt(np.einsum("ij,ij->i", K.F, K.F) + K.D)  # |K_ij| <= size_i size_j
    mode = find_mode(
        y,
        None if start is None else start.a,
        multiply=K.__rmatmul__,
        magnitude=lambda a: np.outer(a @ size, size),
        precision=lambda pi: SoftmaxPrecision.of(K, pi),
        tolerance=method.tolerance,
        max_iterations=method.max_iterations,
    )
    R = mode.R
    B = _shrinkage(R.V, K.D)
    covariance = K.D[:, None, None] * B + B @ _spread(R.C, K.F, len(y)) @ B
    s = half_slope_of_log_det(mode.pi, covariance)
    posterior = LowRankMulticlassPosterior(
        log_evidence=mode.log_evidence,
        mean=mode.f,
        covariance=covariance,
        a=mode.a,
        b=mode.a @ K.F,
        C=R.C,
        v=s - R @ K.__rmatmul__(s),
        work={"newton_steps": mode.steps},
        points=method.points,
        randomizations=method.randomizations,
    )
    if mode.failure:
        raise ConvergenceError(mode.failure, posterior)
    return posterior


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


def _spread(C: FloatArray, F: FloatArray, classes: int) -> FloatArray:
    """Return the covariances (t, k, k) of F u for rows F (t, r): the blocks F_i (A^-1)_cd F_i'."""
    r = F.shape[1]
    found = np.empty((len(F), classes, classes))
    for here in blocks(len(F), max(BLOCK // classes, 1)):
        half = np.zeros((classes, len(C), len(F[here])))
        for c in range(classes):  # the rows above block c are zeros
            right = np.zeros((len(C) - c * r, len(F[here])))
            right[:r] = F[here].T
            half[c, c * r :] = solve_triangular(
                C[c * r :, c * r :], right, lower=True, check_finite=False
            )
        found[here] = np.einsum("cki,dki->icd", half, half)
    return found


def _check_order(classes: int, rank: int) -> None:
    """Refuse a rank whose matrices of order k r would not fit."""
    needed, limit = 8.0 * _MATRICES * (classes * rank) ** 2, available_memory()
    if needed > limit.bytes:
        GiB = 2.0**30
        raise MemoryError(
            f"tolerance: the softmax with {classes} classes and a rank of {rank} needs about {needed / GiB:.1f} GiB; "
            f"{limit.source} {limit.bytes / GiB:.1f} GiB: raise tolerance, or use multi_class='one_vs_rest'"
        )
