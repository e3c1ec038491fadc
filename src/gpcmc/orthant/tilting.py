r"""Minimax exponential tilting (Botev 2017) for the orthant, as one convex minimisation.

P(v >= 0), v = L e ~ N(0, R), is sampled one coordinate after the other with e_i from N(mu_i, 1) truncated to
e_i >= -c_i, where c = (G - I) e and G is L with its rows divided by its diagonal. A sample weighs exp psi(e, mu),

    psi(x, mu) = sum_i [mu_i^2 / 2 - x_i mu_i + log Phi(c_i(x) + mu_i)].

Botev takes the saddle point, the least mu of the largest x, from 2n equations. For an orthant they
reduce to n. Both gradients vanish where mu = (G - I)'s and x = G's with s_i = phi(t_i) / Phi(t_i), t = c + mu, and then

    t = (A - I) s,      A = G G'.

These are the stationarity conditions of E(s) = s'(A - I)s / 2 + sum_i [log Phi(t_i) - t_i s_i], t_i the function of
s_i above. E is strictly convex on s > 0 (its Hessian is A + diag(1/w - 1), w = s (t + s) in (0, 1)), its
slope is minus infinity at s_i = 0, and it grows without bound: the saddle point exists, is unique, and E there
is psi. It is inside the orthant, for its v_i is proportional to (A s)_i = t_i + s_i > 0.

The weights are bounded *whether or not the minimum is found*: for every s > 0 and mu = (G - I)'s, the tangents
log Phi(c + mu) <= log Phi(t) + s (c + mu - t) make all terms in x cancel, which leaves

    psi(x, mu) <= E(s)      for all x.

Minimax tilting is therefore the choice of the least such bound, and each step of the minimisation improves it.

References
----------
Botev (2017), Journal of the Royal Statistical Society B 79, 125. Gibson, Glasbey and Elston (1994), in
Advances in Numerical Methods and Applications, 120 (order). Genz and Bretz (2009), Computation of
Multivariate Normal and t Probabilities, section 4.1.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import log_ndtr

from gpcmc._threads import one_thread
from gpcmc.likelihood.probit import hazard
from gpcmc.orthant.separation import Proposal

Array = NDArray[np.float64]

#: Nats above the least bound, as Newton's method predicts them, at which the tilt counts as found.
TOLERANCE = 1e-10
#: Newton steps at most. Ten do on the covariances of Gaussian process classification.
MAX_STEPS = 100
_MAX_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Tilt:
    """A tilt, and what it guarantees.

    Attributes
    ----------
    mu : (n,) array
        Mean of each innovation before it is truncated.
    log_bound : float
        No log weight is larger, converged or not.
    converged : bool
        `log_bound` is within `TOLERANCE` of the least one.
    steps : int
        Newton steps taken, one factorization each.
    """

    mu: Array
    log_bound: float
    converged: bool
    steps: int


@one_thread()
def gibson_order(R: Array) -> tuple[NDArray[np.intp], Array]:
    """Order coordinates greedily, and factorize.

    Next comes the coordinate least likely to be inside when those before it are held at their
    truncated means. The variance of the weights is that of the later factors, so the hard ones come first.

    Parameters
    ----------
    R : (n, n) array
        Covariance, positive definite.

    Returns
    -------
    order : (n,) int array
    L : (n, n) array
        Lower Cholesky factor of ``R[order][:, order]``.

    Raises
    ------
    ValueError
        If R is not positive definite.
    """
    n = len(R)
    order = np.arange(n)
    L = np.zeros((n, n), order="F")
    variance, mean = np.diag(R).copy(), np.zeros(n)  # given the coordinates chosen so far
    for j in range(n):
        if variance[j:].min() <= 0:
            raise ValueError(
                "R must be positive definite; a coordinate would have conditional variance "
                f"{variance[j:].min():.3g}"
            )
        # P(inside) = Phi(mean / sd): the least
        p = j + int(np.argmin(mean[j:] / np.sqrt(variance[j:])))
        for array in (order, variance, mean, L):
            array[[j, p]] = array[[p, j]]
        L[j, j] = sd = np.sqrt(variance[j])
        rest = slice(j + 1, n)
        L[rest, j] = (R[order[rest], order[j]] - L[rest, :j] @ L[j, :j]) / sd
        t = mean[j] / sd
        variance[rest] -= L[rest, j] ** 2
        mean[rest] += L[rest, j] * hazard(t)[0]  # E[e | e >= -t] for e ~ N(0, 1)
    return order, np.ascontiguousarray(L)


@one_thread()
def minimax_tilt(L: Array, *, max_steps: int = MAX_STEPS) -> Tilt:
    """Minimise the bound on the weights by Newton's method with step halving.

    Parameters
    ----------
    L : (n, n) array
        Lower Cholesky factor, in the order in which coordinates are drawn.
    max_steps : int
        Newton steps at most, each one Cholesky factorization of order n.

    Returns
    -------
    Tilt
        The best found. It has converged when half the squared Newton decrement, which estimates the
        nats above the least bound, is below `TOLERANCE`, or below rounding of the bound.
    """
    G = L / np.diag(L)[:, None]
    A = G @ G.T
    t = np.zeros(len(L))
    s, w = hazard(t)
    As, bound = _bound(A, s, t)
    converged, steps = False, 0
    while not converged and steps < max_steps:
        # in t, for 1/w is infinite where an orthant is met anyway: (I - W + A W) dt = -F, symmetrized
        F = t + s - As
        root = np.sqrt(w)
        H = root[:, None] * A * root
        H.flat[:: len(H) + 1] += 1.0 - w
        try:
            C = cholesky(H, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:  # only rounding can do this
            break
        half = solve_triangular(C, -root * F, lower=True, check_finite=False)
        u = root * solve_triangular(C, half, lower=True, trans="T", check_finite=False)
        dt = u - F - A @ u
        steps += 1
        gap = 0.5 * half @ half
        rounding = 1e-15 * np.sum(np.abs(t) * s + np.abs(As) * s)
        converged = gap < TOLERANCE + rounding
        for halving in range(_MAX_HALVINGS):
            new = t + 0.5**halving * dt
            s_new, w_new = hazard(new)
            As_new, bound_new = _bound(A, s_new, new)
            if bound_new < bound - 1e-4 * 0.5**halving * gap:
                t, s, w, As, bound = new, s_new, w_new, As_new, bound_new
                break
        else:
            break  # rounding hides any further decrease
    return Tilt((G - np.eye(len(G))).T @ s, bound, bool(converged), steps)


def _bound(A: Array, s: Array, t: Array) -> tuple[Array, float]:
    """Return A s and E(s)."""
    As = A @ s
    return As, float(0.5 * s @ (As - s) + np.sum(log_ndtr(t) - t * s))


def tilted_proposal(L: Array, mu: Array) -> Proposal:
    """Return the proposal that draws e_i from N(mu_i, 1) inside its half-line; mu = 0 is Genz's method.

    Parameters
    ----------
    L : (n, n) array
        Lower Cholesky factor: v = L e.
    mu : (n,) array
        Any values: the estimate stays unbiased.
    """
    zero, one = np.zeros(len(L)), np.ones(len(L))
    # a, b, scale, w0, w1, w2, d
    coefficients = np.column_stack([mu, zero, one, 0.5 * mu**2, zero, zero, mu])
    return Proposal(zero, L, coefficients)
