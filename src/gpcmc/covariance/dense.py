"""The dense form: K as an array (n, n).

With B = I + S^(1/2) K S^(1/2) = L L', R = S^(1/2) B^-1 S^(1/2) and the posterior covariance is K - K R K, of diagonal
(1 - B^-1_ii) / S_i. For several classes, with D_c = diag(pi_c),

    E_c = D_c^(1/2) (I + D_c^(1/2) K D_c^(1/2))^-1 D_c^(1/2),      M M' = sum_c E_c,

R has blocks delta_cd E_c - E_c (M M')^-1 E_d: C + 1 Cholesky factorisations, and no matrix of order C n.

References
----------
Rasmussen and Williams (2006), Algorithms 3.2, 3.4, 3.6, Eqs. (3.26), (3.39)-(3.44), (5.27).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dlauum, dpotrf, dpotri, dpotrs, dtrtri

from gpcmc._validation import FloatArray, check_cross_covariance
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.factor import DenseFactor, Factor
from gpcmc.covariance.form import (
    Answer,
    Conditioned,
    ConditionedFunction,
    Covariance,
    GradientMatrix,
    Latent,
    Predictor,
)
from gpcmc.covariance.gradient import Contraction, covariance_with_gradient
from gpcmc.covariance.kernels import diagonal, evaluate
from gpcmc.covariance.lowrank import LowRank, low_rank

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel


# Patterns from which on sites are cheaper to find under a covariance of low rank, which may leave out so much mean
# variance beside the unit variance of the noise. A hundred times as much costs twisted EP most of its samples where the
# variance is a thousand.
_MANY = 500
_LEFT = 3e-3
_KEPT = 2000  # patterns up to which an inverse is kept for the gradient
_PLAIN = 1e-4  # a precision below it: 1 - B^-1_ii would cancel


@dataclass(frozen=True, slots=True, eq=False)
class Dense(Covariance):
    """A covariance as an array; nothing is checked.

    Attributes
    ----------
    K : (n, n) array
        Symmetric and positive semidefinite.
    kernel, X
        As of `Covariance`.
    contraction : callable, optional
        What a kernel's evaluation left for gradients, where they are asked for.
    """

    K: FloatArray
    kernel: Kernel | None = None
    X: Any = None
    contraction: Contraction | None = None

    def __len__(self) -> int:
        return len(self.K)

    @property
    def diagonal(self) -> FloatArray:
        return self.K.diagonal()

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return self.K @ x

    def conditioned(self, S: FloatArray) -> DenseConditioned:
        return DenseConditioned(self.K, S, cholesky_factor(self.K, S))

    def conditioned_softmax(self, pi: FloatArray) -> SoftmaxConditioned:
        return SoftmaxConditioned.of(self.K, pi)

    def factor(self, signs: FloatArray, noise: float = 1.0) -> Factor:
        return DenseFactor.of(self.signed(signs, noise))

    def signed(self, signs: FloatArray, noise: float = 1.0) -> FloatArray:
        R = signs[:, None] * self.K
        R *= signs
        R.flat[:: len(R) + 1] += noise
        return R

    def cross(self, X_star: FloatArray) -> DenseCross:
        if self.kernel is None or self.X is None:
            raise ValueError(
                "the prior must be made from a kernel and inputs, as gpcmc.gp.prior(kernel, X) does, for predictions "
                "at inputs; with a covariance alone use predict(K_star, k_star_star)"
            )
        return DenseCross(evaluate(self.kernel, self.X, X_star), diagonal(self.kernel, X_star))

    def cross_of(self, K_star: FloatArray, k_star_star: FloatArray) -> DenseCross:
        return DenseCross(
            *check_cross_covariance("K_star", K_star, "k_star_star", k_star_star, len(self))
        )

    def contract(self, M: GradientMatrix) -> FloatArray:
        contract = self.contraction
        if contract is None:
            if self.kernel is None or self.X is None:
                raise ValueError(
                    "the covariance has no hyperparameters: it was given without a kernel"
                )
            _, contract = covariance_with_gradient(self.kernel, self.X)
        return contract(gradient_array(M))

    def dense(self) -> FloatArray:
        return self.K

    def coarser(self) -> Sequence[Covariance]:
        """Return a kernel's covariances of low rank, where there are 500 patterns or more and the rank is a quarter."""
        found = self._near() if len(self) >= _MANY else None
        return () if found is None else (*found.coarser(), found)

    def stand_in(self) -> Covariance:
        """Return a kernel's covariance of low rank, if a quarter of the rank leaves little beside the noise."""
        found = self._near()
        return self if found is None else found

    def _near(self) -> LowRank | None:
        vectors = isinstance(self.X, np.ndarray) and self.X.ndim == 2 and self.X.dtype.kind == "f"
        if self.kernel is None or not vectors or len(self) < 4:
            return None
        tolerance = min(_LEFT / max(float(np.mean(self.diagonal)), 1e-300), 0.3)
        try:
            return low_rank(self.kernel, self.X, tolerance=tolerance, max_rank=len(self) // 4)
        except ValueError:  # it needs a larger rank, or the kernel is singular
            return None

    @classmethod
    def memory(cls, n: int, matrices: float) -> float:
        return 8.0 * matrices * n**2


@dataclass(frozen=True, slots=True)
class DenseCross(Cross):
    """Covariances K_star (n, t) of training and test latent values, and test variances k_star_star (t,)."""

    K_star: FloatArray
    k_star_star: FloatArray

    def __len__(self) -> int:
        return len(self.k_star_star)

    @property
    def variance(self) -> FloatArray:
        return self.k_star_star

    def covariances(self) -> FloatArray:
        return self.K_star


@dataclass(frozen=True, eq=False)
class DenseConditioned(ConditionedFunction):
    """One latent function: L (n, n) is the lower Cholesky factor of B."""

    K: FloatArray
    S: FloatArray
    L: FloatArray

    @property
    def log_determinant(self) -> float:  # type: ignore[override]
        return 2.0 * float(np.sum(np.log(self.L.diagonal())))

    @cached_property
    def _inverse(self) -> FloatArray:
        """L^-1 (n, n)."""
        found: FloatArray = dtrtri(self.L, lower=1)[0]
        return found

    @cached_property
    def _inverse_diagonal(self) -> FloatArray:
        """Diagonal of B^-1."""
        if not self.S.any():
            return np.ones(len(self.S))
        inverse = self._inverse
        if len(inverse) > _KEPT:
            self.__dict__.pop("_inverse")
        return np.einsum("ij,ij->j", inverse, inverse)

    @cached_property
    def variance(self) -> FloatArray:
        if not self.S.any():
            return self.K.diagonal()
        found = (1.0 - self._inverse_diagonal) / np.maximum(self.S, _PLAIN)
        plain = np.flatnonzero(self.S < _PLAIN)
        if len(plain):
            V = solve_triangular(
                self.L, np.sqrt(self.S)[:, None] * self.K[:, plain], lower=True, check_finite=False
            )
            found[plain] = self.K.diagonal()[plain] - np.einsum("ij,ij->j", V, V)
        return np.maximum(found, 0.0)

    @property
    def noise_diagonal(self) -> FloatArray:
        return self.S * self._inverse_diagonal

    @property
    def kept(self) -> FloatArray:
        return self._inverse_diagonal

    def solve(self, x: FloatArray) -> FloatArray:
        root = np.sqrt(self.S)
        found: FloatArray = root * dpotrs(self.L, root * x, lower=1)[0]
        return found

    def shifted(self, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        a = nu - self.solve(self.K @ nu)
        return a, self.K @ a

    def noise_precision(self) -> FloatArray:
        """Return R (n, n)."""
        root = np.sqrt(self.S)
        R = _symmetric(dlauum(self._inverse, lower=1)[0])
        R *= root[:, None]
        R *= root
        return R

    def predictor(self, a: FloatArray, answer: Answer | None = None) -> DensePredictor:
        return DensePredictor(self, a)

    def latent(self, cross: DenseCross, a: FloatArray) -> Latent:
        """As of the predictor."""
        right = np.sqrt(self.S)[:, None] * cross.K_star
        V = solve_triangular(self.L, right, lower=True, check_finite=False)
        variance = cross.k_star_star - np.einsum("ij,ij->j", V, V)
        slack = len(a) * 1e-13 * np.maximum(cross.k_star_star, 1.0)
        if (variance < -slack).any():
            raise ValueError(
                "K_star and k_star_star do not belong to K: a posterior variance would be "
                f"{variance.min():.3g}"
            )
        return Latent(cross.K_star.T @ a, np.maximum(variance, 0.0))


@dataclass(frozen=True, eq=False)
class SoftmaxConditioned(Conditioned):
    """C latent functions under the softmax's precision: E (C, n, n), and M (n, n), the lower factor of their sum."""

    K: FloatArray
    E: FloatArray
    M: FloatArray
    log_determinant: float

    @classmethod
    def of(cls, K: FloatArray, pi: FloatArray) -> SoftmaxConditioned:
        """Factorise at the class probabilities pi (C, n) (Algorithm 3.3, lines 4-7; Eq. 3.44)."""
        E = np.empty((len(pi), *K.shape))
        half = 0.0
        for E_c, pi_c in zip(E, pi, strict=True):
            L = cholesky_factor(K, pi_c)
            half += float(np.sum(np.log(L.diagonal())))
            root = np.sqrt(pi_c)
            np.multiply(root[:, None] * inverse_from_factor(L), root, out=E_c)
        M = cholesky(E.sum(axis=0), lower=True, overwrite_a=True, check_finite=False)
        return cls(K, E, M, 2.0 * (half + float(np.sum(np.log(M.diagonal())))))

    @cached_property
    def variance(self) -> FloatArray:
        return self.latent(
            DenseCross(self.K, self.K.diagonal()), np.zeros(self.E.shape[:2])
        ).variance

    @cached_property
    def noise_diagonal(self) -> FloatArray:
        return self.noise_precision().diagonal()

    def solve(self, x: FloatArray) -> FloatArray:
        c = np.einsum("cij,cj->ci", self.E, x)
        return c - self.E @ cho_solve((self.M, True), c.sum(axis=0), check_finite=False)

    def noise_precision(self) -> FloatArray:
        """Return the sum over classes of their own blocks of R (n, n)."""
        total = self.E.sum(axis=0)
        for E_c in self.E:
            u = solve_triangular(self.M, E_c, lower=True, check_finite=False)
            total -= u.T @ u
        return total

    def predictor(self, a: FloatArray, answer: Answer | None = None) -> DensePredictor:
        return DensePredictor(self, a)

    def latent(self, cross: DenseCross, a: FloatArray) -> Latent:
        """As of the predictor (Algorithm 3.4)."""
        b = self.E @ cross.K_star  # (C, n, t)
        u = np.stack([solve_triangular(self.M, one, lower=True, check_finite=False) for one in b])
        covariance = np.einsum("cnt,dnt->tcd", u, u)  # line 11, with every E_c
        each = np.arange(len(b))
        covariance[:, each, each] += cross.k_star_star[:, None] - np.einsum(
            "nt,cnt->tc", cross.K_star, b
        )
        return Latent(cross.K_star.T @ a.T, covariance)


@dataclass(frozen=True, slots=True)
class DensePredictor(Predictor):
    """The conditioned covariance and the weights a."""

    conditioned: DenseConditioned | SoftmaxConditioned
    a: FloatArray

    def latent(self, cross: Any) -> Latent:
        return self.conditioned.latent(cross, self.a)


def gradient_array(M: GradientMatrix) -> FloatArray:
    """Return the matrix M (n, n) of a dense covariance."""
    return M.outer() - M.conditioned.noise_precision()


def inverse_from_factor(L: FloatArray) -> FloatArray:
    """Return (L L')^-1 (n, n), L lower triangular."""
    return _symmetric(dpotri(L, lower=1)[0])


def _symmetric(lower: FloatArray) -> FloatArray:
    """Return the matrix (n, n) of which a lower triangle is given; what stands above it does not matter."""
    lower = np.tril(lower)
    lower += np.tril(lower, -1).T
    return lower


def cholesky_factor(K: FloatArray, S: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of B = I + S^(1/2) K S^(1/2) (Eq. 3.26).

    Raises
    ------
    ValueError
        If B is not positive definite in floating point.
    """
    if not S.any():
        return np.eye(len(S))
    root = np.sqrt(S)
    B = root * K
    B *= root[:, None]
    B.flat[:: len(S) + 1] += 1.0
    # B is symmetric: its transpose has the order of columns that LAPACK wants, and needs no copy
    L, failed = dpotrf(B.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise ValueError(
            f"K must be positive semidefinite and have smaller variances than {K.diagonal().max():.3g}: "
            "I + S^(1/2) K S^(1/2) is not positive definite in floating point; lower the kernel's variance"
        )
    return np.asarray(L)
