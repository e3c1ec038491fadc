"""The Gaussian posterior under a covariance of low rank, which Laplace's method and expectation propagation share.

With f = F u + e, u ~ N(0, I_r) and e ~ N(0, D), and Gaussian likelihood terms exp(nu_i f_i - S_i f_i^2 / 2), u has the
posterior N(b, A^-1):

    s = 1 / (1 + S D),   A = I + F' diag(s S) F,   A b = F' (s nu),

and f_i the mean s_i (F_i b + D_i nu_i) and the variance D_i s_i + s_i^2 F_i A^-1 F_i'. D may be zero. One such update
is 2 n r^2 flops.

References
----------
Rasmussen and Williams (2006), sections 3.4, 3.6. Naish-Guzman and Holden (2008), NIPS 20, 1057.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_array
from gpcmc.gp.likelihood import PROBIT, Likelihood
from gpcmc.inference.interface import PosteriorRecord, Prediction
from gpcmc.lowrank.covariance import Inducing, LowRank, blocks


@dataclass(frozen=True, slots=True)
class Update:
    """The Gaussian posterior that sites make; for the notation see the module.

    Attributes
    ----------
    C : (r, r) array
        Lower Cholesky factor of A.
    b : (r,) array
    log_det : float
        log |I + S^(1/2) (F F' + D) S^(1/2)|.
    mean : (n,) array
        Of the latent values.
    variance : (n,) array
        The same.
    """

    C: FloatArray
    b: FloatArray
    log_det: float
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, K: LowRank, S: FloatArray, nu: FloatArray) -> Update:
        """Condition on sites of precision S >= 0 and shift nu (n,)."""
        s = 1.0 / (1.0 + S * K.D)
        C = precision_factor(K, s * S)
        b = cho_solve((C, True), K.F.T @ (s * nu), check_finite=False)
        spread = np.empty(len(S))
        for here in blocks(len(S)):
            half = solve_triangular(C, K.F[here].T, lower=True, check_finite=False)
            spread[here] = np.einsum("ij,ij->j", half, half)
        mean = s * (K.F @ b + K.D * nu)
        log_det = 2.0 * np.sum(np.log(np.diag(C))) + np.sum(np.log1p(S * K.D))
        return cls(C, b, float(log_det), mean, s * (K.D + s * spread))


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


@dataclass(frozen=True, slots=True)
class NoisePrecision:
    """R = (F F' + D + S^-1)^-1 = diag(t) - diag(t) F A^-1 F' diag(t), t = S / (1 + S D), as an operator."""

    F: FloatArray
    t: FloatArray
    C: FloatArray

    @classmethod
    def of(cls, K: LowRank, S: FloatArray) -> NoisePrecision:
        """Return R of a covariance and sites of precision S (n,)."""
        t = S / (1.0 + S * K.D)
        return cls(K.F, t, precision_factor(K, t))

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Return the product with a vector (n,)."""
        tx = self.t * x
        return tx - self.t * (self.F @ cho_solve((self.C, True), self.F.T @ tx, check_finite=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class InducedRecord(PosteriorRecord):
    """A posterior that predicts through inducing inputs: f* = F* u + e*, with e* of its own variance.

    Attributes
    ----------
    inducing : Inducing or None
        None if the covariance was given without a kernel; there are no predictions then.
    """

    inducing: Inducing | None = field(default=None, repr=False)

    @abstractmethod
    def _predict_rows(self, F: FloatArray, D: FloatArray) -> Prediction:
        """Predict at inputs of which the inducing ones know F (t, r), and leave the variances D (t,)."""

    @one_thread()
    def predict_inputs(self, X: ArrayLike) -> Prediction:
        """Return class probabilities at test inputs X (t, d), at the cost of O(r^2) each.

        Raises
        ------
        ValueError
            If X is not a finite array of the training inputs' width, or the covariance was given without a kernel.
        """
        inducing = self._inducing()
        X = check_array("X", X, ndim=2)
        if X.shape[1] != inducing.Z.shape[1]:
            raise ValueError(f"X must have {inducing.Z.shape[1]} columns; got {X.shape[1]}")
        return self._predict_rows(*inducing.rows(X))

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        inducing = self._inducing()
        if inducing.pivots is None:
            raise ValueError(
                "K_star says nothing of the inducing inputs, which were given: use predict_inputs(X)"
            )
        F = inducing.coordinates(K_star[inducing.pivots])
        left = k_star_star - np.einsum("ij,ij->i", F, F)
        if (left < -1e-6 * np.maximum(k_star_star, 1.0)).any():
            raise ValueError(
                "K_star and k_star_star do not belong to the prior: a variance would be "
                f"{left.min():.3g}"
            )
        return self._predict_rows(F, np.maximum(left, 0.0))

    def _inducing(self) -> Inducing:
        if self.inducing is None:
            raise ValueError(
                "the prior must have inducing inputs for predictions, as that of "
                "gpcmc.lowrank.low_rank_prior(kernel, X) has; got a covariance alone"
            )
        return self.inducing


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRankPosterior(InducedRecord):
    """A Gaussian approximation of p(f | y) under a covariance of low rank.

    The evidence has the correction for what the covariance leaves out; see `gpcmc.lowrank.correction` for
    the diagnostics that say how large it is. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    mean, variance : (n,) array
        Of the latent values.
    a : (n,) array
        K^-1 mean.
    S : (n,) array
        Precisions of the Gaussian likelihood terms, >= 0.
    b, C : (r,), (r, r) array
        Posterior mean of u, f = F u + e, and the lower Cholesky factor of its precision.
    v : (n,) array or 0.0
        What the evidence's gradient owes to a mode that moves: M = a a' + v a' + a v' - R. Zero for expectation
        propagation.
    likelihood : Likelihood
        Whose posterior it is.
    """

    log_evidence: float
    log_evidence_se: float = 0.0
    mean: FloatArray
    variance: FloatArray
    a: FloatArray
    S: FloatArray
    b: FloatArray
    C: FloatArray
    v: FloatArray | float = 0.0
    likelihood: Likelihood = field(default=PROBIT, repr=False)

    @property
    def _patterns(self) -> int:
        return len(self.a)

    def noise_precision(self, K: LowRank) -> tuple[FloatArray, FloatArray]:
        """Return t (1, 1, n), the precisions that the patterns have for F u, and the diagonal (n,) of R."""
        s = 1.0 / (1.0 + self.S * K.D)
        t = self.S * s
        # R_ii = t_i - t_i^2 F_i A^-1 F_i', and the variance is D s + s^2 F_i A^-1 F_i'
        return t[None, None], t - self.S**2 * (self.variance - K.D * s)

    def latent_rows(self, F: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances (t,) of latent values F u + e*, of rows F (t, r) and variances D (t,)."""
        half = solve_triangular(self.C, F.T, lower=True, check_finite=False)
        return F @ self.b, D + np.einsum("ij,ij->j", half, half)

    def _predict_rows(self, F: FloatArray, D: FloatArray) -> Prediction:
        probability = self.likelihood.predictive_probability(*self.latent_rows(F, D))
        return Prediction(probability, np.zeros_like(probability))
