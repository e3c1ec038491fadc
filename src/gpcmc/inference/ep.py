"""Expectation propagation for the probit model: Rasmussen and Williams, Algorithms 3.5 and 3.6.

Sites are visited one after another as in Algorithm 3.5, but Sigma is touched only once a block:
inside a block the exact rank-one updates (Eq. 3.70) act on the block's own rows and columns, and at
its end one product brings the sites still to be visited up to date. The iterates are those of the
textbook algorithm up to rounding; the work is in matrix products.

All formulas are in the cavity's mean mu and variance s2, not its precision, so that a latent value
of prior variance zero is a case like any other. With z = y mu / sqrt(1 + s2), and r and w as in
`gpcmc.gp.likelihood.hazard`, moment matching (Eqs. 3.58, 3.59) is

    tau = w / (1 + s2 (1 - w)),      nu = (y r sqrt(1 + s2) + mu w) / (1 + s2 (1 - w)),

in which nothing cancels and tau >= 0 always. A sweep over the sites takes about 3 n^3 flops, in matrix
products.

References
----------
Rasmussen and Williams (2006), Algorithms 3.5 and 3.6, Eqs. (3.56), (3.58), (3.59), (3.65),
(3.68)-(3.75), (5.27).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve, solve_triangular
from scipy.special import log_ndtr

from gpcmc._validation import FloatArray, check_positive, check_positive_int
from gpcmc.gp.likelihood import hazard
from gpcmc.inference.gaussian import (
    GaussianApproximation,
    GaussianPosterior,
    factorize,
    noise_precision,
)
from gpcmc.inference.interface import ConvergenceError

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, slots=True)
class ExpectationPropagation(GaussianApproximation):
    """Options of expectation propagation.

    Attributes
    ----------
    tolerance : float
        Sweeps stop when log Z moves by less than this times ``max(1, |log Z|)`` and no site moves its
        own marginal by more than this (change of precision times variance; of nu times standard
        deviation), or than rounding does: with prior variances near 1e6 that is about 1e-8.
    max_sweeps : int
        Sweeps at most.
    block : int
        Sites updated between two updates of Sigma. It changes the speed, not the result.

    Raises
    ------
    ValueError
        If an option is not positive.
    """

    tolerance: float = 1e-10
    max_sweeps: int = 500
    block: int = 48

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance)
        check_positive_int("max_sweeps", self.max_sweeps)
        check_positive_int("block", self.block)

    def approximate(
        self, K: FloatArray, y: FloatArray, start: GaussianPosterior | None = None
    ) -> GaussianPosterior:
        """Match moments site by site until nothing moves; the result is that of one set of sites.

        Raises
        ------
        ValueError
            If K has variances too large for floating point.
        ConvergenceError
            If the tolerance is not met in `max_sweeps`; carries the last state.
        """
        tau, nu = np.zeros(len(y)), np.zeros(len(y))
        if start is not None:
            tau, nu = start.S.copy(), start.a + start.S * start.mean
        L, Sigma, a, mu = _recompute(K, tau, nu)
        log_z = _log_evidence(y, tau, nu, L, Sigma, mu)
        sweeps, done = 0, False
        while not done and sweeps < self.max_sweeps:
            sweeps += 1
            previous, old_tau, old_nu = log_z, tau.copy(), nu.copy()
            _sweep(y, tau, nu, Sigma, mu, self.block)
            L, Sigma, a, mu = _recompute(K, tau, nu)  # 13-15
            log_z = _log_evidence(y, tau, nu, L, Sigma, mu)
            variance = np.maximum(Sigma.diagonal(), 0.0)
            moved = max(
                float(np.max(np.abs(tau - old_tau) * variance)),
                float(np.max(np.abs(nu - old_nu) * np.sqrt(variance))),
            )
            # line 14 leaves an error of about eps sqrt(n) K_ii in Sigma_ii; the cavity magnifies it
            rounding = _EPS * np.sqrt(len(y)) * np.max(tau * K.diagonal() / (1.0 - tau * variance))
            allowed = self.tolerance + 4.0 * rounding
            done = moved <= allowed and abs(log_z - previous) <= allowed * max(1.0, abs(log_z))

        posterior = GaussianPosterior(
            log_evidence=log_z,
            mean=mu,
            a=a,
            S=tau,
            L=L,
            work={"sweeps": sweeps, "cholesky_factorizations": sweeps + 1},
        )
        if not done:
            raise ConvergenceError(
                f"ep: sites still move by {moved:.3g} after {sweeps} sweeps; raise max_sweeps or "
                "tolerance",
                posterior,
            )
        return posterior

    def gradient_matrix(
        self, K: FloatArray, y: FloatArray, posterior: GaussianPosterior
    ) -> FloatArray:
        """Return M = a a' - R (Rasmussen and Williams, Eq. 5.27): at the fixed point log Z is flat in the sites."""
        return np.outer(posterior.a, posterior.a) - noise_precision(posterior)


def _cavity(
    variance: FloatArray, mean: FloatArray, tau: FloatArray, nu: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the marginals with their own site taken out (Eq. 3.56)."""
    kept = 1.0 - variance * tau
    return (mean - variance * nu) / kept, variance / kept


def _sweep(
    y: FloatArray, tau: FloatArray, nu: FloatArray, Sigma: FloatArray, mu: FloatArray, block: int
) -> None:
    """Visit every site once (lines 4-12); changes tau and nu, and uses up Sigma and mu."""
    n = len(y)
    for start in range(0, n, block):
        stop = min(start + block, n)
        own = slice(start, stop)
        local_Sigma, local_mu = Sigma[own, own].copy(), mu[own].copy()
        old_tau, old_nu = tau[own].copy(), nu[own].copy()
        for j, i in enumerate(range(start, stop)):
            mean, variance = _cavity(local_Sigma[j, j], local_mu[j], tau[i], nu[i])  # 5, 6
            if not -1.0 < variance < np.inf:
                raise ValueError(
                    "K must have smaller variances: with its largest, the sites of expectation "
                    "propagation are lost in rounding; lower the kernel's variance"
                )
            scale = np.sqrt(1.0 + variance)
            r, w = hazard(y[i] * mean / scale)  # 7
            kept = 1.0 + variance * (1.0 - w)
            d_tau = w / kept - tau[i]  # 8
            d_nu = (y[i] * r * scale + mean * w) / kept - nu[i]
            tau[i] += d_tau
            nu[i] += d_nu
            s = local_Sigma[:, j].copy()
            pivot = 1.0 + d_tau * s[j]
            local_mu += s * ((d_nu - d_tau * local_mu[j]) / pivot)  # 11
            local_Sigma -= np.outer(s, s * (d_tau / pivot))  # 10
        if stop < n:
            # all of the block at once: Sigma - P M P', M = (D^-1 + Sigma_II)^-1 where D may be 0
            rest = slice(stop, n)
            P = Sigma[rest, own]
            D, d_nu_block = tau[own] - old_tau, nu[own] - old_nu
            M = solve(np.eye(stop - start) + D[:, None] * Sigma[own, own], np.diag(D))
            mu[rest] += P @ (d_nu_block - M @ (mu[own] + Sigma[own, own] @ d_nu_block))
            Sigma[rest, rest] -= (P @ M) @ P.T


def _recompute(
    K: FloatArray, tau: FloatArray, nu: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return L, Sigma (Eq. 3.68), a = K^-1 mu (Eq. 3.71) and mu from the sites alone (13-15).

    mu = K a has less rounding than Sigma nu when K is large, and agrees with the predictive mean.
    """
    L = factorize(K, tau)
    root = np.sqrt(tau)
    V = solve_triangular(L, root[:, None] * K, lower=True, check_finite=False)
    a = nu - root * cho_solve((L, True), root * (K @ nu), check_finite=False)
    return L, K - V.T @ V, a, K @ a


def _log_evidence(
    y: FloatArray,
    tau: FloatArray,
    nu: FloatArray,
    L: FloatArray,
    Sigma: FloatArray,
    mu: FloatArray,
) -> float:
    """Return log Z of Eq. (3.65), by (3.73)-(3.75) written in cavity variances."""
    mean, variance = _cavity(Sigma.diagonal(), mu, tau, nu)
    joint = 1.0 + tau * variance
    return float(
        0.5 * np.sum(np.log(joint))
        - np.sum(np.log(L.diagonal()))  # 3.73
        + 0.5 * (nu @ mu - np.sum(nu**2 * variance / joint))  # 3.74
        + 0.5 * np.sum(mean * (tau * mean - 2.0 * nu) / joint)  # 3.75
        + np.sum(log_ndtr(y * mean / np.sqrt(1.0 + variance)))
    )
