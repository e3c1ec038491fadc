"""Proposals for the orthant that look ahead: twisted by Gaussian sites.

Let q(v) be proportional to N(v; 0, R) prod_j s_j(v_j) with Gaussian sites s_j(v) = exp(nu_j v - tau_j v^2/2)
that stand for the conditions v_j >= 0. Coordinate i is drawn from its law under N(v; 0, R), the
coordinates before it, the exact condition v_i >= 0 and the sites of the coordinates *after* it. Under q
v_i given v_1 .. v_{i-1} is N(mu_i, sigma_i^2) with mu_i linear in what was drawn; without its own site it
is N(m_i, s_i^2), the cavity; and the weight of a sample grows by

    P(v_i >= 0) / integral of s_i,    both under N(m_i, s_i^2).

The product of all is unbiased for P(v >= 0) / integral of N(v; 0, R) prod_j s_j, whatever the sites. With the
sites of expectation propagation each quotient is near one wherever the earlier coordinates lie, so nothing
is left to resampling. The quotient grows where m_i is large, so these weights are not bounded by
themselves: `separation.estimate` mixes a defensive proposal in.

This is the twisted particle filter of Whiteley and Lee (2014) with the twisting functions taken from
expectation propagation, and separation of variables in place of a filter's random draws.

References
----------
Whiteley and Lee (2014), Annals of Statistics 42, 115. Guarniero, Johansen and Lee (2017), Journal of
the American Statistical Association 112, 1636. Cunningham, Hennig and Lacoste-Julien (2011), "Gaussian
probabilities and expectation propagation".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from gpcmc.orthant.separation import Proposal

Array = NDArray[np.float64]


def twisted_proposal(R: Array, nu: Array, tau: Array) -> Proposal:
    """Return the proposal that Gaussian sites on v make.

    Parameters
    ----------
    R : (n, n) array
        Covariance of v, positive definite.
    nu, tau : (n,) array
        Sites exp(nu v - tau v^2/2), tau >= 0.

    Raises
    ------
    LinAlgError
        If R, or what the sites make of it, is not positive definite in floating point.
    """
    root = np.sqrt(tau)
    B = root[:, None] * R * root
    B.flat[:: len(R) + 1] += 1.0
    L_B = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    V = solve_triangular(L_B, root[:, None] * R, lower=True, check_finite=False)
    covariance = R - V.T @ V
    mean = covariance @ nu
    log_constant = 0.5 * nu @ mean - np.sum(np.log(np.diag(L_B)))
    L = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
    # from here in units of d_i = L_ii, as `separate` has it: v_i / d_i = c_i + e_i under q
    d = np.diag(L)
    t, u = tau * d**2, nu * d
    return Proposal(mean, L, site_coefficients(t, u), float(log_constant))


def site_coefficients(t: Array, u: Array) -> Array:
    """Return what a site makes of each coordinate, as `gpcmc.orthant.separation.Proposal` has it.

    Parameters
    ----------
    t, u : (n,) array
        Sites exp(u x - t x^2/2), 0 <= t < 1, in units of the diagonal of the factor.

    Returns
    -------
    (n, 7) array
        a, b, scale, w0, w1, w2, d.
    """
    variance = 1.0 / (1.0 - t)  # of the cavity; its mean is a + (1 + b) c
    a, b = -u * variance, variance - 1.0
    spread = 1.0 + t * variance
    # log of the site's integral, negated: a quadratic in c
    w0 = 0.5 * np.log(spread) + (0.5 * t * a**2 - u * a - 0.5 * u**2 * variance) / spread
    w1 = (t * a - u) * variance / spread
    w2 = 0.5 * t * variance**2 / spread
    return np.column_stack([a, b, np.sqrt(variance), w0, w1, w2, np.zeros(len(t))])
