"""Laplace's approximation for more than two classes, with the softmax likelihood: Algorithms 3.3 and 3.4.

Every class has a latent function of its own, and all have the same prior covariance K. p(y_i = c | f) is the softmax of
the C latent values at x_i. The covariance of all latent values is never formed: with the probabilities
D_c = diag(pi_c),

    E_c = D_c^(1/2) (I + D_c^(1/2) K D_c^(1/2))^-1 D_c^(1/2),      M = chol(sum_c E_c),

hold all that is needed. A Newton step takes C + 1 Cholesky factorizations.

Three lines of the printed algorithms are corrected. In lines 15 and 16 of Algorithm 3.3 the log-sum-exp is subtracted.
Line 16 also lacks - sum_i log M_ii, without which it is not Eq. (3.44). In line 11 of Algorithm 3.4 the product is
with every E_c.

References
----------
Rasmussen and Williams (2006), Algorithms 3.3, 3.4, 5.1, Eqs. (3.34)-(3.44), (5.22)-(5.24).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import softmax

from gpcmc._threads import one_thread
from gpcmc._validation import (
    FloatArray,
    check_covariance,
    check_cross_covariance,
    check_memory,
    check_positive,
    check_positive_int,
)
from gpcmc.gp.covariance import Prior
from gpcmc.inference.gaussian import factorize, inverse_from_factor
from gpcmc.inference.interface import ConvergenceError, PosteriorRecord, Prediction, with_prediction
from gpcmc.inference.normal_points import PointSet
from gpcmc.inference.softmax_average import softmax_average
from gpcmc.inference.softmax_mode import check_classes, find_mode, half_slope_of_log_det

_CHUNK = 64  # test inputs at a time
_SEED = (3, 4)  # of the points: predictions repeat to the bit


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticlassPosterior(PosteriorRecord):
    """The Gaussian at the mode of C latent functions; all fields belong to the same iterate.

    Probabilities are (t, C): the softmax averaged over the latent Gaussian, by Sobol' points, whose randomisations give
    their standard errors. They do not depend on the labels' order (`softmax_average`). For the other attributes see
    `PosteriorRecord`.

    Attributes
    ----------
    mean : (C, n) array
        The mode f = K a.
    a : (C, n) array
        The weights of the predictive means.
    E : (C, n, n) array
        As above.
    M : (n, n) array
        Lower Cholesky factor of the sum of E.
    points : int
        Sobol' points of one randomisation.
    randomizations : int
        The number of randomisations.
    """

    log_evidence: float
    log_evidence_se: float = 0.0
    mean: FloatArray
    a: FloatArray
    E: FloatArray
    M: FloatArray
    points: int
    randomizations: int

    @property
    def _patterns(self) -> int:
        return self.a.shape[1]

    @one_thread()
    def latent(self, K_star: ArrayLike, k_star_star: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return means (t, C) and covariances (t, C, C) of the latent values at the test inputs.

        Parameters
        ----------
        K_star : (n, t) array
            Covariances between training and test latent values.
        k_star_star : (t,) array
            Prior variances at the test inputs.

        Raises
        ------
        ValueError
            If shapes do not agree, or an entry is not finite.
        """
        K_star, k_star_star = check_cross_covariance(
            "K_star", K_star, "k_star_star", k_star_star, self.a.shape[1]
        )
        b = self.E @ K_star  # (C, n, t)
        u = np.stack([solve_triangular(self.M, one, lower=True, check_finite=False) for one in b])
        covariance = np.einsum("cnt,dnt->tcd", u, u)
        each = np.arange(len(b))
        covariance[:, each, each] += k_star_star[:, None] - np.einsum("nt,cnt->tc", K_star, b)
        return K_star.T @ self.a.T, covariance

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        averages = softmax_average(
            *self.latent(K_star, k_star_star),
            points=self.points,
            randomizations=self.randomizations,
        )
        return Prediction(*averages)

    @one_thread()
    def predict_in_order(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        """As `predict`, by points that take the classes in the order of their labels.

        The probabilities depend on that order, within their standard errors. The kept results of the studies were made
        so; arguments are not checked.

        Parameters
        ----------
        K_star : (n, t) array
        k_star_star : (t,) array
        """
        total, classes = self.points * self.randomizations, len(self.a)
        draws = list(PointSet("sobol", total, self.points, classes, _SEED).blocks())
        averages = np.empty((self.randomizations, len(k_star_star), classes))
        for start in range(0, len(k_star_star), _CHUNK):
            part = slice(start, start + _CHUNK)
            mean, covariance = self.latent(K_star[:, part], k_star_star[part])
            variance, V = np.linalg.eigh(covariance)
            root = V * np.sqrt(np.maximum(variance, 0.0))[:, None, :]
            for average, normals in zip(averages, draws, strict=True):
                f = mean[:, None] + normals @ root.transpose(0, 2, 1)
                average[part] = softmax(f, axis=2).mean(axis=1)
        spread = averages.std(axis=0, ddof=1) if self.randomizations > 1 else 0.0 * averages[0]
        return Prediction(averages.mean(axis=0), spread / np.sqrt(self.randomizations))


@dataclass(frozen=True, slots=True)
class MulticlassLaplace:
    """Options of Laplace's method for two or more classes.

    Attributes
    ----------
    tolerance : float
        Newton stops when Psi rises by less than this times ``|Psi|`` and no entry of its gradient exceeds this, or
        what rounding leaves of either.
    max_iterations : int
        Newton steps at most. Where Psi cannot rise by more than its rounding, five more, which are not halved.
    points : int
        Sobol' points of a randomisation, a power of two.
    randomizations : int
        Independent randomisations: their spread is the standard error of the probabilities.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    tolerance: float = 1e-12
    max_iterations: int = 200
    points: int = 512
    randomizations: int = 4

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance)
        check_positive_int("max_iterations", self.max_iterations)
        check_positive_int("randomizations", self.randomizations)
        if check_positive_int("points", self.points) & (self.points - 1):
            raise ValueError(f"points must be a power of two; got {self.points}")

    def check_size(self, n: int, classes: int) -> None:
        """Refuse n training patterns of so many classes if `fit` would need more memory than this machine has.

        Raises
        ------
        MemoryError
            If it would; the message says how much, and what fits.
        """
        needed = 8.0 * (2 * classes + 4) * n**2  # E of two iterates, and what makes one
        check_memory(f"Laplace's method with {classes} classes", n, needed, needed)

    def fit(self, prior: Prior, y: ArrayLike) -> MulticlassPosterior:
        """Find the posterior, the evidence, and the probabilities (t, C) at the prior's test inputs.

        Parameters
        ----------
        prior : Prior
            Covariances at n training and t test inputs; t may be 0. All classes share them.
        y : (n,) array of int
            Labels 0 to C - 1, each of which occurs.

        Raises
        ------
        ValueError
            If an argument is not as above.
        ConvergenceError
            If Newton's iteration meets its limit.
        MemoryError
            If it needs more memory than this machine has.
        """
        with one_thread():
            K = check_covariance("prior.K", prior.K, semidefinite=True)
            indicators = check_classes("y", y, len(K))
            self.check_size(len(K), len(indicators))
            return with_prediction(self.approximate(K, indicators), prior)

    def approximate(
        self, K: FloatArray, y: FloatArray, start: MulticlassPosterior | None = None
    ) -> MulticlassPosterior:
        """Find the mode of p(f | y) and the Gaussian there, for arguments that are checked already.

        Parameters
        ----------
        K : (n, n) array
            Prior covariance of each latent function, positive semidefinite.
        y : (C, n) array
            1 for the class of each pattern, else 0.
        start : MulticlassPosterior, optional
            Of another K and the same labels.

        Raises
        ------
        ConvergenceError
            If Newton's iteration meets its limit, or climbs no higher; it carries the last iterate.
        """
        magnitude = np.abs(K)
        mode = find_mode(
            y,
            None if start is None else start.a,
            multiply=lambda a: a @ K,
            magnitude=lambda a: a @ magnitude,
            precision=lambda pi: DensePrecision.of(K, pi),
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        posterior = MulticlassPosterior(
            log_evidence=mode.log_evidence,
            mean=mode.f,
            a=mode.a,
            E=mode.R.E,
            M=mode.R.M,
            work={
                "newton_steps": mode.steps,
                "cholesky_factorizations": (mode.steps + 1) * (len(y) + 1),
            },
            points=self.points,
            randomizations=self.randomizations,
        )
        if mode.failure:
            raise ConvergenceError(mode.failure, posterior)
        return posterior

    def gradient_matrix(
        self, K: FloatArray, y: FloatArray, posterior: MulticlassPosterior
    ) -> FloatArray:
        """Return M (n, n) with d log Z = tr(M dK) / 2: the sum over classes of a a' - R_cc + v a' + a v'.

        v = (I - R K) s, with s of `half_slope_of_log_det`.
        """
        a, E = posterior.a, posterior.E
        _, S = posterior.latent(K, K.diagonal())
        s = half_slope_of_log_det(softmax(posterior.mean, axis=0), S)
        v = s - DensePrecision(E, posterior.M) @ (s @ K)
        across = (v + 0.5 * a).T @ a
        total = across + across.T
        for E_c in E:
            u = solve_triangular(posterior.M, E_c, lower=True, check_finite=False)
            total -= E_c - u.T @ u
        return total


@dataclass(frozen=True, slots=True)
class DensePrecision:
    """The operator R = (K + W^-1)^-1, with blocks delta_cd E_c - E_c (M M')^-1 E_d.

    Attributes
    ----------
    E : (C, n, n) array
    M : (n, n) array
    """

    E: FloatArray
    M: FloatArray

    @classmethod
    def of(cls, K: FloatArray, pi: FloatArray) -> tuple[DensePrecision, float]:
        """Return R at the probabilities pi (C, n), and log |I + K W| / 2 (lines 4-7, Eq. 3.44)."""
        E = np.empty((len(pi), *K.shape))
        half_log_det = 0.0
        for E_c, pi_c in zip(E, pi, strict=True):
            L = factorize(K, pi_c)
            half_log_det += float(np.sum(np.log(L.diagonal())))
            root = np.sqrt(pi_c)
            np.multiply(root[:, None] * inverse_from_factor(L), root, out=E_c)
        M = cholesky(E.sum(axis=0), lower=True, overwrite_a=True, check_finite=False)
        return cls(E, M), half_log_det + float(np.sum(np.log(M.diagonal())))

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Return the product of R with latent values (C, n)."""
        c = np.einsum("cij,cj->ci", self.E, x)
        return c - self.E @ cho_solve((self.M, True), c.sum(axis=0), check_finite=False)
