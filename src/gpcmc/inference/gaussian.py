"""The Gaussian posterior that Laplace's method and expectation propagation share.

Both replace each likelihood term by a Gaussian one of precision S_ii (called W in Laplace's method,
tau in expectation propagation), so both end with the same three things: a = K^-1 E[f], S, and the
Cholesky factor L of B = I + S^(1/2) K S^(1/2). Evidence apart, Algorithms 3.2 and 3.6 are one.

References
----------
Rasmussen and Williams (2006), Algorithms 3.2 and 3.6, Eqs. (3.29), (3.60)-(3.63), (3.71)-(3.72).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_cross_covariance
from gpcmc.gp.covariance import Prior
from gpcmc.gp.likelihood import PROBIT, Likelihood
from gpcmc.inference.interface import Method, PosteriorRecord, Prediction, with_prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPosterior(PosteriorRecord):
    """A Gaussian approximation of p(f | y); all fields belong to the same iterate.

    A method that does not converge raises, so that there are no diagnostics. It draws nothing: the standard error is
    0.0. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    mean : (n,) array
        E[f] = K a.
    a : (n,) array
        The weights of the predictive mean.
    S : (n,) array
        Precisions of the Gaussian likelihood terms, >= 0.
    L : (n, n) array
        Lower Cholesky factor of I + S^(1/2) K S^(1/2).
    likelihood : Likelihood
        Whose posterior it is; predictions average it (Eqs. 3.25, 3.63).
    """

    log_evidence: float
    log_evidence_se: float = 0.0
    mean: FloatArray
    a: FloatArray
    S: FloatArray
    L: FloatArray
    likelihood: Likelihood = field(default=PROBIT, repr=False)

    @property
    def _patterns(self) -> int:
        return len(self.a)

    @one_thread()
    def latent(self, K_star: ArrayLike, k_star_star: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the means and variances (t,) of the latent values at the test inputs.

        Parameters
        ----------
        K_star : (n, t) array
            Covariances between training and test latent values.
        k_star_star : (t,) array
            Prior variances at the test inputs.

        Raises
        ------
        ValueError
            If shapes do not agree, an entry is not finite, or the three covariances cannot belong
            to one Gaussian process (a posterior variance would be negative).
        """
        K_star, k_star_star = check_cross_covariance(
            "K_star", K_star, "k_star_star", k_star_star, len(self.a)
        )
        v = solve_triangular(
            self.L, np.sqrt(self.S)[:, None] * K_star, lower=True, check_finite=False
        )
        variance = k_star_star - np.einsum("ij,ij->j", v, v)
        slack = len(self.a) * 1e-13 * np.maximum(k_star_star, 1.0)
        if (variance < -slack).any():
            raise ValueError(
                "K_star and k_star_star do not belong to K: a posterior variance would be "
                f"{variance.min():.3g}"
            )
        return K_star.T @ self.a, np.maximum(variance, 0.0)

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        probability = self.likelihood.predictive_probability(*self.latent(K_star, k_star_star))
        return Prediction(probability, np.zeros_like(probability))


@dataclass(frozen=True, slots=True)
class GaussianApproximation(Method[GaussianPosterior]):
    """A method that approximates the posterior by a Gaussian; it draws nothing."""

    deterministic: ClassVar[bool] = True

    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> GaussianPosterior:
        return with_prediction(self.approximate(prior.K, y), prior)

    @abstractmethod
    def approximate(
        self, K: FloatArray, y: FloatArray, start: GaussianPosterior | None = None
    ) -> GaussianPosterior:
        """Return the Gaussian for arguments that are checked already, without a prediction.

        Parameters
        ----------
        K : (n, n) array
            Prior covariance, positive semidefinite.
        y : (n,) array
            Labels -1/+1.
        start : GaussianPosterior, optional
            Of another K and the same labels: the iteration starts there, and ends where it would without it.

        Raises
        ------
        ConvergenceError
            If the iteration meets its limit; it carries the last iterate.
        """

    @abstractmethod
    def gradient_matrix(
        self, K: FloatArray, y: FloatArray, posterior: GaussianPosterior
    ) -> FloatArray:
        """Return the symmetric M (n, n) with d log Z = tr(M dK) / 2, for what `approximate` returned.

        Parameters
        ----------
        K, y
            As of `approximate`.
        posterior : GaussianPosterior
            At the fixed point, for K and y.
        """


def noise_precision(posterior: GaussianPosterior) -> FloatArray:
    """Return R = S^(1/2) B^-1 S^(1/2) (n, n), which is (K + S^-1)^-1 where S is not singular."""
    root = np.sqrt(posterior.S)
    return root[:, None] * inverse_from_factor(posterior.L) * root


def inverse_from_factor(L: FloatArray) -> FloatArray:
    """Return (L L')^-1 (n, n), L lower triangular."""
    lower = np.tril(dpotri(L, lower=1)[0])
    lower += np.tril(lower, -1).T
    return lower


def factorize(K: FloatArray, S: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of B = I + S^(1/2) K S^(1/2) (Eq. 3.26).

    Raises
    ------
    ValueError
        If B is not positive definite in floating point.
    """
    root = np.sqrt(S)
    B = root[:, None] * K * root
    B.flat[:: len(S) + 1] += 1.0
    try:
        return cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise ValueError(
            f"K must be positive semidefinite and have smaller variances than {K.diagonal().max():.3g}: "
            "I + S^(1/2) K S^(1/2) is not positive definite in floating point; lower the kernel's variance"
        ) from error
