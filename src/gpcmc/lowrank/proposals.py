"""Proposals for the orthant P(v >= 0), v ~ N(0, I + D + C F F' C), C = diag(y): twisted by sites, and minimax tilting.

The formulas are those of `gpcmc.orthant.twisting` and `gpcmc.orthant.tilting`; products with the covariance's Cholesky
factor go through its generators, and systems through order r.

References
----------
Whiteley and Lee (2014), Annals of Statistics 42, 115. Botev (2017), Journal of the Royal Statistical Society B 79, 125.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import log_ndtr

from gpcmc._validation import FloatArray
from gpcmc.likelihood.probit import hazard
from gpcmc.covariance.lowrank import LowRank, precision_factor
from gpcmc.lowrank.filter import Filter, FilteredProposal
from gpcmc.orthant.tilting import MAX_STEPS, TOLERANCE
from gpcmc.orthant.twisting import site_coefficients

_MAX_HALVINGS = 40


def twisted(R: LowRank, nu: FloatArray, tau: FloatArray) -> FilteredProposal:
    """Return the proposal that Gaussian sites on v make.

    Parameters
    ----------
    R : LowRank
        Covariance of v, with D > 0.
    nu, tau : (n,) array
        Sites exp(nu v - tau v^2 / 2), tau >= 0.
    """
    s = 1.0 / (1.0 + tau * R.D)
    C = precision_factor(R, s * tau)
    centre = cho_solve((C, True), R.F.T @ (s * nu), check_finite=False)
    mean = s * (R.F @ centre + R.D * nu)
    half_log_det = np.sum(np.log(np.diag(C))) + 0.5 * np.sum(np.log1p(tau * R.D))
    P = cho_solve((C, True), np.eye(len(C)), check_finite=False)
    found = Filter.of(s[:, None] * R.F, R.D * s, P)
    t, u = tau * found.d**2, nu * found.d
    log_constant = float(0.5 * nu @ mean - half_log_det)
    return FilteredProposal(found, mean, site_coefficients(t, u), log_constant, centre)


@dataclass(frozen=True, slots=True)
class LeastBound:
    """The minimum of the bound on the weights of minimax tilting.

    Attributes
    ----------
    filter : Filter
        The Cholesky factor of R.
    s, t : (n,) array
        Where it is; see `gpcmc.orthant.tilting`.
    log_bound : float
        No log weight is larger.
    steps : int
        Newton steps taken.
    """

    filter: Filter
    s: FloatArray
    t: FloatArray
    log_bound: float
    steps: int


def tilted(R: LowRank) -> tuple[FilteredProposal, float, int]:
    """Return minimax tilting, the proposal whose weights have the least bound that is known.

    Parameters
    ----------
    R : LowRank
        Covariance of v, with D > 0.

    Returns
    -------
    proposal : FilteredProposal
    log_bound : float
        No log weight is larger.
    steps : int
        Newton steps taken.
    """
    n, found = len(R), least_bound(R)
    mu = found.filter.transposed(found.s / found.filter.d) - found.s
    zero, one = np.zeros(n), np.ones(n)
    coefficients = np.column_stack([mu, zero, one, 0.5 * mu**2, zero, zero, mu])
    proposal = FilteredProposal(found.filter, zero, coefficients, 0.0, np.zeros(R.rank))
    return proposal, found.log_bound, found.steps


def least_bound(R: LowRank) -> LeastBound:
    """Find the least bound by Newton's method with step halving.

    Parameters
    ----------
    R : LowRank
        Covariance of v, with D > 0.
    """
    n = len(R)
    found = Filter.of(R.F, R.D, np.eye(R.rank))
    A = LowRank(R.F / found.d[:, None], R.D / found.d**2)
    t = np.zeros(n)
    s, w = hazard(t)
    As = A @ s
    bound, steps, done = _bound(s, t, As), 0, False
    while not done and steps < MAX_STEPS:
        # (I - W + A W) dt = -F, symmetrised as I - W + W^(1/2) A W^(1/2) = N + W^(1/2) J J' W^(1/2)
        slope = t + s - As
        root, N = np.sqrt(w), 1.0 - w + w * A.D
        J = LowRank(root[:, None] * A.F, N)
        right = root * slope / N
        inner = cho_solve((precision_factor(J, 1.0 / N), True), J.F.T @ right, check_finite=False)
        solved = right - (J.F @ inner) / N
        gap = 0.5 * float((root * slope) @ solved)
        u = -root * solved
        dt = u - slope - A @ u
        steps += 1
        done = bool(gap < TOLERANCE + 1e-15 * np.sum(np.abs(t) * s + np.abs(As) * s))
        for halving in range(_MAX_HALVINGS):
            new = t + 0.5**halving * dt
            s_new, w_new = hazard(new)
            As_new = A @ s_new
            bound_new = _bound(s_new, new, As_new)
            if bound_new < bound - 1e-4 * 0.5**halving * gap:
                t, s, w, As, bound = new, s_new, w_new, As_new, bound_new
                break
        else:
            break  # rounding hides any further decrease
    return LeastBound(found, s, t, bound, steps)


def _bound(s: FloatArray, t: FloatArray, As: FloatArray) -> float:
    """Return E(s) of `gpcmc.orthant.tilting`."""
    return float(0.5 * s @ (As - s) + np.sum(log_ndtr(t) - t * s))
