"""Twisted EP on a dense covariance, with sites and tilt from a covariance of low rank.

Any sites make unbiased weights, and any tilt bounds them, so that both may come from where they are cheapest. What is
left to do at n^3 flops is the factor L of R, and the factor of the covariance that sites of precision T make of R:

    (R^-1 + T)^-1 = L (I + L'TL)^-1 L' = (L P^-1) (L P^-1)',    P'P = I + L'TL,    P lower triangular.

Both are six Cholesky factorisations' worth; `gpcmc.inference.twisted` takes several times as much for its sites alone.
Nothing is subtracted, so that no digits are lost. Draws of one proposal are weighed under the other by a triangular
system for each, and not by the matrix that maps the innovations of one to those of the other.

References
----------
Whiteley and Lee (2014), Annals of Statistics 42, 115. Botev (2017), Journal of the Royal Statistical Society B 79, 125.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace

import numpy as np
from threadpoolctl import ThreadpoolController
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dlauum
from scipy.special import log_ndtr, logsumexp, ndtr

from gpcmc._threads import one_thread
from gpcmc._validation import (
    FloatArray,
    check_covariance,
    check_cross_covariance,
    check_labels,
    check_memory,
    check_rng,
)
from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import gaussian_proposal
from gpcmc.methods import LEAST_MEMORY
from gpcmc.inference.separated import Separated, SeparatedPosterior, SeparatedSampler
from gpcmc.inference.twisted import Twisted
from gpcmc.covariance.lowrank import LowRank, low_rank
from gpcmc.lowrank.proposals import least_bound
from gpcmc.lowrank.sampling import controlled_mean
from gpcmc.orthant._separation import separate
from gpcmc.orthant.sampler import test_rows
from gpcmc.orthant.separation import DEFENCE, Proposal, SeparationEstimate, weight_diagnostics
from gpcmc.orthant.tilting import tilted_proposal
from gpcmc.orthant.twisting import site_coefficients
from gpcmc.rectangle.rounds import sobol

# Mean variance that the covariance of low rank may leave out, beside the unit variance of the noise. A hundred times as
# much costs twisted EP most of its samples where the variance is a thousand.
_LEFT = 3e-3
_MATRICES = 6.0  # like the covariance, which is one of them, that are held at the peak


def dense_twisted_ep(
    prior: Prior, y: FloatArray, *, method: Twisted | None = None, rng: np.random.Generator
) -> SeparatedPosterior:
    """Estimate the evidence and the class probabilities of a dense prior with its kernel and inputs.

    The estimates are those of `Twisted` at a fraction of its seconds where n is large: the same two proposals from
    sites and a tilt that are nearly the same.

    Parameters
    ----------
    prior : Prior
        As of `gpcmc.gp.prior`.
    y : (n,) array
        Labels -1/+1.
    method : Twisted, optional
        Points, randomisations and threads; the factorisations take `n_jobs` threads too, and their number may change
        the last bits. By default ``Twisted()``.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If the prior has no kernel or inputs, or another argument is not as above.
    MemoryError
        If the machine has too little memory; the message says what fits.
    """
    check_rng("rng", rng)
    options = Twisted() if method is None else method
    given = {one.name: getattr(options, one.name) for one in fields(Twisted)}
    n = len(prior.K)
    check_memory("dense_twisted_ep", n, 8.0 * _MATRICES * n**2, LEAST_MEMORY * n**2)
    K, y, rough = with_low_rank(prior, y)
    K_star, k_star_star = check_cross_covariance(
        "prior.K_star", prior.K_star, "prior.k_star_star", prior.k_star_star, n
    )
    checked = replace(prior, K=K, K_star=K_star, k_star_star=k_star_star)
    with one_thread():
        return Separated._fit(_FromLowRank(**given, rough=rough), checked, y, rng)


def with_low_rank(prior: Prior, y: FloatArray) -> tuple[FloatArray, FloatArray, LowRank]:
    """Check a dense prior and labels; return K (n, n), y (n,), and a covariance of low rank to take sites from.

    Raises
    ------
    ValueError
        If the prior has no kernel or inputs, or an argument is not as `dense_twisted_ep` says.
    """
    if prior.kernel is None or prior.X is None:
        raise ValueError("prior must be made by gpcmc.gp.prior(kernel, X): it has no kernel")
    K = check_covariance("prior.K", prior.K)
    y = check_labels("y", y, len(K))
    tolerance = min(_LEFT / max(float(np.mean(K.diagonal())), 1e-300), 0.3)
    return K, y, low_rank(prior.kernel, prior.X, tolerance=tolerance, max_rank=len(K))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FromLowRank(Twisted):
    """The method with the covariance that its sites and its tilt come from."""

    rough: LowRank

    def prepare(self, K: FloatArray, y: FloatArray) -> SeparatedSampler:
        ep = gaussian_proposal(ExpectationPropagation(), self.rough, y)
        tilt = least_bound(LowRank(y[:, None] * self.rough.F, 1.0 + self.rough.D))
        # the site on v = y f + noise which, convolved with that noise, is EP's on f
        nu = y * (ep.S * ep.mean + ep.a) / (1.0 - ep.S)
        with ThreadpoolController().limit(limits=self.n_jobs):
            R = y[:, None] * K * y
            R.flat[:: len(y) + 1] += 1.0
            L = cholesky(R, lower=True, overwrite_a=True, check_finite=False)
            del R
            L = np.ascontiguousarray(L)
            twisted = _twisted(L, nu, ep.S / (1.0 - ep.S))
        s, d = tilt.s, L.diagonal()
        scaled = L.T @ (s / d)  # G's
        As = (L @ scaled) / d
        bound = 0.5 * s @ (As - s) + np.sum(log_ndtr(tilt.t) - tilt.t * s)
        return _Sampler(
            proposal=twisted,
            defence=tilted_proposal(L, scaled - s),
            log_bound=float(bound),
            L=L,
            order=np.arange(len(y)),
            signs=y,
            work={"ep_sweeps": ep.work["sweeps"], "tilt_steps": tilt.steps},
        )


def _twisted(L: FloatArray, nu: FloatArray, tau: FloatArray) -> Proposal:
    """Return `gpcmc.orthant.twisting.twisted_proposal` from R's factor."""
    # in LAPACK's column-major reading the transpose of the scaled factor is upper triangular, and U U' = L'TL
    M = dlauum((np.sqrt(tau)[:, None] * L).T, lower=0, overwrite_c=1)[0]
    M.T.flat[:: len(L) + 1] += 1.0
    # with both axes reversed the upper triangle is the lower one, and P' becomes the factor C
    C = cholesky(M[::-1, ::-1], lower=True, check_finite=False)
    del M
    half_log_det = np.sum(np.log(C.diagonal()))
    factor = solve_triangular(C, L.T[::-1], lower=True, check_finite=False)[::-1].T
    del C
    factor = np.tril(factor)
    mean = factor @ (factor.T @ nu)
    d = factor.diagonal()
    log_constant = float(0.5 * nu @ mean - half_log_det)
    return Proposal(mean, factor, site_coefficients(tau * d**2, nu * d), log_constant)


@dataclass(frozen=True, slots=True)
class _Sampler(SeparatedSampler):
    """Both proposals, and R's factor, which is the defence's."""

    def run(
        self,
        K_star: FloatArray,
        k_star_star: FloatArray,
        *,
        points: int,
        seeds: NDArray[np.int64],
        n_jobs: int,
    ) -> SeparationEstimate:
        assert self.defence is not None
        A = test_rows(self.L, self.signs[:, None] * K_star, 1.0 + k_star_star)
        rows = solve_triangular(self.L, A.T, lower=True, trans=1, check_finite=False).T
        both = (self.proposal, self.defence)
        ready = [one.prepare() for one in both]
        counts = (points, -(-points // DEFENCE))
        samples = sum(counts)
        log_share = np.log(np.array(counts) / samples)
        log_w, ratio = np.empty((2, len(seeds), samples))
        scores = np.zeros((len(seeds), len(rows)))

        scale: float | None = None

        def run(r: int) -> None:
            nonlocal scale
            first = 0
            for k, count in enumerate(counts):
                own, other = both[k], both[1 - k]
                for E in sobol(len(self.L), count, np.random.default_rng([int(seeds[r]), k])):
                    here = slice(first, first := first + E.shape[1])
                    log_q = np.empty((2, E.shape[1]))
                    log_q[k] = log_share[k] - own.log_constant - separate(*ready[k], E)
                    V = dtrmm(1.0, own.L.T, E.T, side=1).T + own.mean[:, None]
                    there = V - other.mean[:, None]
                    there = solve_triangular(other.L, there, lower=True, check_finite=False)
                    weighed = separate(*ready[1 - k], np.ascontiguousarray(there), True)
                    log_q[1 - k] = log_share[1 - k] - other.log_constant - weighed
                    log_w[r, here] = -logsumexp(log_q, axis=0)
                    ratio[r, here] = np.exp(log_q[0] + log_w[r, here] - log_share[0])
                    if len(rows):
                        scale = float(log_w[r, here].max()) if scale is None else scale
                        scores[r] += ndtr(rows @ V) @ np.exp(log_w[r, here] - scale) / samples

        run(0)  # it sets the scale, which the others share
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(run, range(1, len(seeds))))
        mean = controlled_mean(log_w, ratio.mean(axis=1))
        scores *= np.exp(0.0 if scale is None else scale - mean.log_plain)
        conditional = scores.mean(axis=0)
        errors = scores - mean.share[:, None] * conditional
        diagnostics = weight_diagnostics(log_w.ravel())
        bound = self.log_bound + np.log(1 + DEFENCE) - mean.log_mean
        return SeparationEstimate(
            log_probability=mean.log_mean,
            standard_error=mean.standard_error,
            conditional=np.clip(conditional, 0.0, 1.0),
            conditional_se=np.std(errors, axis=0, ddof=1) / np.sqrt(len(seeds)),
            samples=log_w.size,
            diagnostics=diagnostics | {"log_weight_bound": float(bound)},
        )
