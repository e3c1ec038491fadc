"""Expectation propagation on a dense covariance with all sites at once.

A sweep takes one Cholesky factorisation and the inverse of the factor: 2 n^3 / 3 flops, two factorisations' worth. The
fixed points are those of `gpcmc.inference.ep`, whose sweeps are sequential: they cost more than twice as much, and most
of it in Python where there are few patterns. Sites to start from are those of the last point of a search, or those that
a covariance of low rank has found; the latter are so near that two or three sweeps do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dtrtri

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_covariance, check_labels
from gpcmc.gp.covariance import Prior
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.gaussian import GaussianPosterior, factorize
from gpcmc.inference.interface import with_prediction
from gpcmc.lowrank.covariance import LowRank
from gpcmc.lowrank.ep import TOLERANCE, iterate
from gpcmc.lowrank.gaussian import LowRankPosterior
from gpcmc.lowrank.methods import proposal
from gpcmc.lowrank.prior import low_rank_prior

# Mean variance that the covariance of low rank may leave out, beside the unit variance of the noise. A hundred times as
# much costs twisted EP most of its samples where the variance is a thousand.
_LEFT = 3e-3
_PLAIN = 1e-4  # a site below it: its marginal would cancel


@dataclass(frozen=True, slots=True)
class _Update:
    """The Gaussian posterior that sites make: a = K^-1 mean, and L L' = I + S^(1/2) K S^(1/2)."""

    L: FloatArray
    a: FloatArray
    log_det: float
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, K: FloatArray, S: FloatArray, nu: FloatArray) -> _Update:
        L, root = factorize(K, S), np.sqrt(S)
        a = nu - root * cho_solve((L, True), root * (K @ nu), check_finite=False)
        # Sigma = S^(-1/2) (I - B^-1) S^(-1/2), but where S is small K - V'V
        inverse = dtrtri(L, lower=1)[0]
        variance = (1.0 - np.einsum("ij,ij->j", inverse, inverse)) / np.maximum(S, _PLAIN)
        del inverse
        plain = np.flatnonzero(S < _PLAIN)
        V = solve_triangular(L, root[:, None] * K[:, plain], lower=True, check_finite=False)
        variance[plain] = K.diagonal()[plain] - np.einsum("ij,ij->j", V, V)
        log_det = 2.0 * float(np.sum(np.log(np.diag(L))))
        return cls(L, a, log_det, K @ a, np.maximum(variance, 0.0))


@dataclass(frozen=True, slots=True)
class AllSitesAtOnce:
    """Expectation propagation for a search, an `Approximation`, at the tolerance of `sequential`.

    It is two to four times as fast as the sequential algorithm, which does the work where this one does not settle
    within `max_sweeps`, or loses its covariance in rounding.
    """

    sequential: ExpectationPropagation
    max_sweeps: int = 100

    def approximate(
        self,
        K: FloatArray,
        y: FloatArray,
        start: GaussianPosterior | LowRankPosterior | None = None,
    ) -> GaussianPosterior:
        """Match all moments, from the sites of `start`.

        Raises
        ------
        ValueError, ConvergenceError
            As the sequential algorithm.
        """
        sites, tolerance = np.zeros((2, len(y))), self.sequential.tolerance
        if start is not None:
            sites = np.array([start.S, start.a + start.S * start.mean])
        try:
            found = iterate(partial(_Update.of, K), y, sites, tolerance, self.max_sweeps)
        except ValueError:  # the sequential algorithm knows the words for it, if it fails as well
            settled = False
        else:
            settled = found.moved <= tolerance and np.isfinite(found.log_evidence)
        if not settled:
            dense = start if isinstance(start, GaussianPosterior) else None
            return self.sequential.approximate(K, y, dense)
        return GaussianPosterior(
            log_evidence=found.log_evidence,
            mean=found.update.mean,
            a=found.update.a,
            S=found.sites[0],
            L=found.update.L,
            work={"sweeps": found.sweeps},
        )

    def gradient_matrix(
        self, K: FloatArray, y: FloatArray, posterior: GaussianPosterior
    ) -> FloatArray:
        """Return M with d log Z = tr(M dK) / 2, as the sequential algorithm does."""
        return self.sequential.gradient_matrix(K, y, posterior)


def with_low_rank(prior: Prior, y: FloatArray) -> tuple[FloatArray, FloatArray, LowRank]:
    """Check a dense prior and labels; return K (n, n), y (n,), and a covariance of low rank to take sites from.

    Raises
    ------
    ValueError
        If the prior has no kernel or inputs, or an argument is not as `parallel_ep` says.
    """
    if prior.kernel is None or prior.X is None:
        raise ValueError("prior must be made by gpcmc.gp.prior(kernel, X): it has no kernel")
    K = check_covariance("prior.K", prior.K)
    y = check_labels("y", y, len(K))
    tolerance = min(_LEFT / max(float(np.mean(K.diagonal())), 1e-300), 0.3)
    rough = low_rank_prior(prior.kernel, prior.X, tolerance=tolerance, max_rank=len(K))
    return K, y, rough.covariance


@one_thread()
def parallel_ep(
    prior: Prior, y: FloatArray, *, method: ExpectationPropagation | None = None
) -> GaussianPosterior:
    """Find expectation propagation's posterior for a prior with its kernel and inputs.

    Parameters
    ----------
    prior : Prior
        As of `gpcmc.gp.prior`.
    y : (n,) array
        Labels -1/+1.
    method : ExpectationPropagation, optional
        Its tolerance is that of the sites' marginals: precision times variance, nu times standard deviation. The
        sequential algorithm does the work where this one does not settle. By default a tolerance of 1e-4.

    Raises
    ------
    ValueError
        If the prior has no kernel or inputs, or the labels are not as above.
    ConvergenceError
        If the sequential algorithm does not converge either; it carries the last state.
    """
    K, y, rough = with_low_rank(prior, y)
    options = ExpectationPropagation(tolerance=TOLERANCE) if method is None else method
    start = proposal(options, rough, y)
    found = AllSitesAtOnce(options).approximate(K, y, start)
    work = found.work | {"low_rank_sweeps": start.work["sweeps"]}
    return with_prediction(replace(found, work=work), prior)
