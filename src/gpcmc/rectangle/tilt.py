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

because mu'mu / 2 + s'mu = s'[(G - I)(G - I)' + (G - I) + (G - I)'] s / 2 = s'(A - I)s / 2. A tie (`order.Tie`) only
takes away from an interval, so that the bound of the limits without ties holds for those with them.

References
----------
Botev (2017), Journal of the Royal Statistical Society B 79, 125.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import Factor, Gram
from gpcmc.rectangle.limits import moments

#: Nats above the least bound, as Newton's method predicts them, at which the tilt counts as found.
TOLERANCE = 1e-10
#: Newton steps at most. Ten do on the covariances of Gaussian process classification.
MAX_STEPS = 100
_MAX_HALVINGS = 40
_RESIDUAL = (
    0.5  # of the equations for the saddle point, over their terms: above, the minimum is elsewhere
)


@dataclass(frozen=True, slots=True)
class Tilt:
    """A tilt, and what it guarantees."""

    mu: FloatArray  # (n,) mean of each innovation before it is truncated
    t: FloatArray  # (n,) where the tangents touch
    log_bound: float  # no log weight is larger, converged or not; rounding is allowed for
    converged: bool  # `log_bound` is within `TOLERANCE` of the least one
    steps: int  # Newton steps taken, one factorisation each


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits of v / d, and how A is multiplied with."""

    factor: Factor
    lower: FloatArray
    upper: FloatArray
    gram: Gram | None = None

    def at(self, t: FloatArray) -> _Point:
        """Return the bound of tangents that touch at t."""
        with np.errstate(all="ignore"):  # far from the minimum a mass may underflow
            log_p, s, w = moments(self.lower - t, self.upper - t)
            As = self.gram @ s if self.gram is not None else self._product(s)
            bound = float(0.5 * s @ (As - s) + np.sum(log_p - t * s))
        return _Point(t, s, w, As, bound if np.isfinite(bound) else np.inf)

    def _product(self, s: FloatArray) -> FloatArray:
        d = self.factor.d
        return (self.factor @ self.factor.transposed(s / d)) / d


@dataclass(frozen=True, slots=True)
class _Point:
    """Where the minimisation stands."""

    t: FloatArray
    s: FloatArray
    w: FloatArray
    As: FloatArray
    bound: float

    @property
    def rounding(self) -> float:
        """What rounding may have taken from the bound."""
        return 1e-15 * float(np.abs(self.s) @ (np.abs(self.t) + np.abs(self.As)))

    @property
    def residual(self) -> float:
        """The largest of t + s - A s, over its terms."""
        terms = 1.0 + np.abs(self.t) + np.abs(self.s) + np.abs(self.As)
        return float(np.max(np.abs(self.t + self.s - self.As) / terms))


@one_thread()
def minimax_tilt(
    factor: Factor,
    lower: FloatArray,
    upper: FloatArray,
    *,
    starts: Sequence[FloatArray] = (),
    max_steps: int = MAX_STEPS,
) -> Tilt:
    """Minimise the bound on the log weights.

    Returns the best tilt found. It has converged when the next step would gain less than `TOLERANCE`, or than rounding.

    Parameters
    ----------
    factor : Factor
        In the order in which coordinates are drawn.
    lower, upper : (n,) array
        Limits of v, lower < upper.
    starts : sequence of (n,) array
        Of t, beside zero; the minimisation begins at the one of least bound.
    max_steps : int
        Newton steps at most, each one factorisation of order n, or of the rank.
    """
    n, d = len(factor), factor.d
    gram = factor.gram() if max_steps else None
    with np.errstate(over="ignore"):
        given = _Limits(factor, lower / d, upper / d, gram)
    points = [given.at(np.zeros(n)), *(given.at(t) for t in starts)]
    point = min(points, key=lambda one: one.bound)
    converged, steps = False, 0
    while gram is not None and not converged and steps < max_steps:
        # in t, for 1/w is infinite where a limit does not matter: (I - W + A W) dt = -F, symmetrised
        F = point.t + point.s - point.As
        root = np.sqrt(point.w)
        try:
            solved = gram.solve(point.w, root * F)
        except LinAlgError:  # only rounding can do this
            break
        steps += 1
        gap = 0.5 * float((root * F) @ solved)
        u = -root * solved
        dt = u - F - gram @ u
        rounding = point.rounding
        small = gap < TOLERANCE + rounding
        new = _halved(given, point, dt, gap)
        if new is not None:
            small &= point.bound - new.bound < TOLERANCE + rounding
            point = new
        # where a limit's slope has underflowed, Newton's prediction does not see it, but the equations do
        converged = small and point.residual < _RESIDUAL
        if new is None:
            break  # rounding hides any further decrease
    mu = factor.transposed(point.s / d) - point.s
    return Tilt(mu, point.t, point.bound + point.rounding, bool(converged), steps)


def _halved(given: _Limits, point: _Point, dt: FloatArray, gap: float) -> _Point | None:
    """Return the first of t + dt, t + dt/2, ... that lowers the bound by enough, or None."""
    for halving in range(_MAX_HALVINGS):
        share = 0.5**halving
        new = given.at(point.t + share * dt)
        if new.bound < point.bound - 1e-4 * share * gap:
            return new
    return None
