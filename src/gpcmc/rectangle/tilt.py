r"""Minimax exponential tilting (Botev 2017) for a rectangle, as one convex minimisation in n unknowns.

With v = L e, e_i is drawn from N(mu_i, 1) inside l_i - c_i < e_i < u_i - c_i, where c = (G - I) e, G is L with its
rows divided by its diagonal, and l and u are the limits divided likewise. With t = c + mu and P_i(t) = P(l_i - t < Z
< u_i - t) a sample weighs exp psi(e, mu),

    psi(x, mu) = sum_i [mu_i^2 / 2 - x_i mu_i + log P_i(c_i(x) + mu_i)].

The slope of log P_i is Psi_i(t) = E[Z | l_i - t < Z < u_i - t], and that of Psi_i is -w_i with
w_i = 1 - Var[Z | ...] in (0, 1): a normal variable that is truncated to an interval varies less, so log P_i is concave.

Botev takes the saddle point, the least mu of the largest x, from 2n equations. Both gradients vanish where
mu = (G - I)'s and x = mu + s = G's with s = Psi(t), and then c = (G - I) x gives

    t = (A - I) s,      A = G G'.

These are the stationarity conditions of E(s) = s'(A - I)s / 2 + sum_i [log P_i(t_i) - t_i s_i], t_i the function of s_i
that inverts Psi_i: the gradient of E in s is (A - I)s - t and its Hessian A - I + diag(1/w), positive definite as A and
1/w - 1 are. Newton's method with step halving finds the minimum.

The weights are bounded *whether or not the minimum is found*: let s = Psi(t) for any t, and mu = (G - I)'s. The
tangents log P(c + mu) <= log P(t) + s (c + mu - t) of a concave function make the terms in x cancel, as s'c = s'(G -
I)x = mu'x:

    psi(x, mu) <= sum_i [mu_i^2 / 2 + log P_i(t_i) + s_i (mu_i - t_i)] = E(s)      for all x,

because mu'mu / 2 + s'mu = s'[(G - I)(G - I)' + (G - I) + (G - I)'] s / 2 = s'(A - I)s / 2. A tie (`factor.Tie`) only
takes away from an interval, so that the bound of the limits without ties holds for those with them.

References
----------
Botev (2017), Journal of the Royal Statistical Society B 79, 125.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.orthant.tilting import MAX_STEPS, TOLERANCE, Tilt
from gpcmc.rectangle.intervals import moments

_MAX_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class _Point:
    """Where the minimisation stands."""

    t: FloatArray
    s: FloatArray
    w: FloatArray
    As: FloatArray
    bound: float

    @classmethod
    def at(cls, t: FloatArray, A: FloatArray, lower: FloatArray, upper: FloatArray) -> _Point:
        log_p, s, w = moments(lower - t, upper - t)
        As = A @ s
        return cls(t, s, w, As, float(0.5 * s @ (As - s) + np.sum(log_p - t * s)))


@one_thread()
def rectangle_tilt(
    L: FloatArray, lower: FloatArray, upper: FloatArray, *, max_steps: int = MAX_STEPS
) -> Tilt:
    """Minimise the bound on the log weights.

    Parameters
    ----------
    L : (n, n) array
        Lower Cholesky factor, in the order in which coordinates are drawn.
    lower, upper : (n,) array
        Limits of v, lower < upper.
    max_steps : int
        Newton steps at most, each one Cholesky factorization of order n.

    Returns
    -------
    gpcmc.orthant.tilting.Tilt
        The best found; it has converged when the next step would gain less than `TOLERANCE`, or than rounding.
    """
    d = np.diag(L)
    G = L / d[:, None]
    A = G @ G.T
    low, high = lower / d, upper / d
    point = _Point.at(np.zeros(len(L)), A, low, high)
    converged, steps = False, 0
    while not converged and steps < max_steps:
        # in t, for 1/w is infinite where a limit does not matter: (I - W + A W) dt = -F, symmetrized
        F = point.t + point.s - point.As
        root = np.sqrt(point.w)
        H = root[:, None] * A * root
        H.flat[:: len(H) + 1] += 1.0 - point.w
        try:
            C = cholesky(H, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:  # only rounding can do this
            break
        half = solve_triangular(C, -root * F, lower=True, check_finite=False)
        u = root * solve_triangular(C, half, lower=True, trans="T", check_finite=False)
        dt = u - F - A @ u
        steps += 1
        gap = 0.5 * float(half @ half)
        rounding = 1e-15 * float(np.abs(point.s) @ (np.abs(point.t) + np.abs(point.As)))
        converged = gap < TOLERANCE + rounding
        new = _halved(point, dt, gap, (A, low, high))
        if new is None:
            break  # rounding hides any further decrease
        point = new
    mu = (G - np.eye(len(G))).T @ point.s
    return Tilt(mu, point.bound, bool(converged), steps)


def _halved(
    point: _Point, dt: FloatArray, gap: float, problem: tuple[FloatArray, FloatArray, FloatArray]
) -> _Point | None:
    """Return the first of t + dt, t + dt/2, ... that lowers the bound by enough, or None."""
    A, low, high = problem
    for halving in range(_MAX_HALVINGS):
        share = 0.5**halving
        with np.errstate(all="ignore"):  # far from the minimum a mass may underflow
            new = _Point.at(point.t + share * dt, A, low, high)
        if new.bound < point.bound - 1e-4 * share * gap:
            return new
    return None
