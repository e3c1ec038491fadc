"""Proposals for a rectangle that look ahead, from expectation propagation.

`gpcmc.orthant.twisting` says how Gaussian sites exp(nu v - tau v^2/2), one for each pair of limits, make a proposal,
and what its coefficients are; limits enter these nowhere. Here the sites are those of truncations to intervals, and
the factor of the tilted covariance comes from v's own factor without subtraction, so that it does not lose its
digits where an interval is narrow.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.orthant.separation import Proposal
from gpcmc.orthant.twisting import site_coefficients
from gpcmc.rectangle.intervals import all_moments

_MAX_SWEEPS = 60
_SETTLED = 1e-3  # change of a site, in standard deviations of its coordinate, that is of no matter to a proposal


@one_thread()
def propagate(
    L: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, int]:
    """Return sites nu and tau (n,) by parallel expectation propagation, and the number of sweeps.

    Any sites make a valid proposal. They need not have converged, and the iteration is stopped where a
    further change would not be noticed. Steps are damped when they begin to grow.

    Parameters
    ----------
    L : (n, n) array
        Lower Cholesky factor of the covariance.
    lower, upper : (n,) array
        Limits, lower < upper.
    """
    n = len(L)
    nu, tau = np.zeros(n), np.zeros(n)
    damping, last = 1.0, np.inf
    for sweep in range(1, _MAX_SWEEPS + 1):  # noqa: B007
        mean, variance = _marginals(L, nu, tau)
        kept = 1.0 - tau * variance
        if not (kept > 0).all():  # lost in rounding
            break
        s2, m = variance / kept, (mean - nu * variance) / kept
        s = np.sqrt(s2)
        _, psi, w, ratio = all_moments((lower - m) / s, (upper - m) / s)
        rest = s2 * np.maximum(ratio, 1e-20)
        new_tau, new_nu = w / rest, (m * w + s * psi) / rest
        change = max(
            float(np.max(np.abs(new_tau - tau) * variance)),
            float(np.max(np.abs(new_nu - nu - (new_tau - tau) * mean) * np.sqrt(variance))),
        )
        if not np.isfinite(change):
            break
        if change > last:
            damping = max(0.5 * damping, 0.1)
        last = change
        tau += damping * (new_tau - tau)
        nu += damping * (new_nu - nu)
        if change < _SETTLED:
            break
    return nu, tau, sweep


def _inner(L: FloatArray, tau: FloatArray) -> FloatArray:
    """Return the lower K with K'K = I + L' diag(tau) L; then L K^-1 is the factor of the tilted covariance."""
    root = np.sqrt(tau)[:, None] * L
    M = root.T @ root
    M.flat[:: len(M) + 1] += 1.0
    # with both axes reversed the upper factor is a lower one
    U: FloatArray = cholesky(M[::-1, ::-1], lower=True, overwrite_a=True, check_finite=False)
    return np.ascontiguousarray(U[::-1, ::-1].T)


def _marginals(L: FloatArray, nu: FloatArray, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
    K = _inner(L, tau)
    factor = solve_triangular(K, L.T, lower=True, trans="T", check_finite=False).T
    return factor @ (factor.T @ nu), np.einsum("ij,ij->i", factor, factor)


@one_thread()
def twisted_proposal(L: FloatArray, nu: FloatArray, tau: FloatArray) -> tuple[Proposal, FloatArray]:
    """Return the proposal that sites make, about an origin; see `gpcmc.orthant.twisting.twisted_proposal`.

    Far out nu and tau are so large that the terms of the weights would cancel to nothing. With the origin at the mean
    m that the sites make, they are exp(nu' x - tau x^2 / 2) in x = v - m with nu' = R^-1 m: then x has mean zero, and
    the sites' integral is exp(-m'R^-1 m / 2) over the determinant's root.

    Parameters
    ----------
    L : (n, n) array
        Lower Cholesky factor of the covariance.
    nu, tau : (n,) array
        Sites, tau >= 0.

    Returns
    -------
    proposal : Proposal
        Of v - origin.
    origin : (n,) array

    Raises
    ------
    LinAlgError
        If what the sites make of the covariance is lost in rounding.
    """
    K = _inner(L, tau)
    factor = np.tril(solve_triangular(K, L.T, lower=True, trans="T", check_finite=False).T)
    mean = factor @ (factor.T @ nu)
    e = solve_triangular(L, mean, lower=True, check_finite=False)
    log_constant = -0.5 * e @ e - np.sum(np.log(np.diag(K)))
    d = np.diag(factor)
    u = solve_triangular(L, e, lower=True, trans="T", check_finite=False) * d
    t = tau * d**2
    if not (t < 1.0).all():
        raise np.linalg.LinAlgError("a site leaves its coordinate no variance of its own")
    zero = np.zeros(len(L))
    factor = np.ascontiguousarray(factor)
    return Proposal(zero, factor, site_coefficients(t, u), float(log_constant)), mean
