r"""Exact inference along a Markov chain of latent values, by quadrature in place of draws.

The sites of expectation propagation make of the prior a Gaussian chain q. With g_i the likelihood of a pattern over its
site, the evidence is Z_q E_q[prod_i g_i], and is found from one end of the chain to the other:

    h_i(z) = E_q[h_i-1(z_i-1) g_i-1(z_i-1) | z_i = z],

z_i the standardised value. For two standard normals of correlation r, E[He_k(z) | z'] = r^k He_k(z') (Mehler), so that
in Hermite polynomials a step is a diagonal matrix, whatever the distance of two patterns. The coefficients of h_i g_i
are by Gauss and Hermite's nodes. Where the sites are good g_i is nearly constant over q, and few polynomials do. Their
number grows until the evidence settles. Where it does not, as with variances of 1000 and values that jump from one
pattern to the next, the draws of `gpcmc.rectangle.classification` are what is left.

A test value parts the chain: given it, the two ends are independent under q, and its own law is the product of
what both ways bring there.

References
----------
Mehler (1866), Journal fuer die reine und angewandte Mathematik 66, 161. Whiteley and Lee (2014), Annals of Statistics
42, 115 (the twist).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import log_ndtr

from gpcmc._validation import FloatArray
from gpcmc.covariance.chain import Chain, SitedChain
from gpcmc.covariance.cross import Cross
from gpcmc.posterior import FormPosterior, Prediction
from gpcmc.rectangle.limits import log_mass

#: Polynomials that are tried.
_DEGREES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_SETTLED = 1e-6  # nats
_LARGEST = 1e-2  # error, in nats, with which quadrature is still better than draws
_SAFETY = 4.0  # times the last change is the error that is told
_ROUNDING = 1e-12  # share of the evidence
# Standard deviations of q beyond which g counts as constant. There it may outgrow what polynomials can follow in
# floating point, and the posterior has about e^-20 of its mass even where q is much narrower.
_FAR = 10.0
_ROWS = 2**20  # numbers worked on at once
_TESTED = 4096  # test values at once


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal Hermite polynomials, as many as Gauss and Hermite's nodes.

    Attributes
    ----------
    node, weight : (Q,) arrays
        For the standard normal.
    values : (Q, Q) array
        Polynomial k at node q.
    """

    node: FloatArray
    weight: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, size: int) -> Basis:
        """Make so many."""
        node, weight = hermegauss(size)
        values = np.ones((size, size))
        for k in range(1, size):
            values[k] = node * values[k - 1]
            if k > 1:
                values[k] -= np.sqrt(k - 1.0) * values[k - 2]
            values[k] /= np.sqrt(k)
        return cls(node, weight / weight.sum(), values)

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True, eq=False)
class Twist:
    """The chain with sites, and the likelihood over them.

    Attributes
    ----------
    chain : Chain
    sited : SitedChain
    signs, lower, upper : (n,) arrays
        p(y_i | f_i) = P(lower < sign f + noise < upper), along the chain.
    nu, tau : (n,) arrays
        The sites, along the chain.
    """

    chain: Chain
    sited: SitedChain
    signs: FloatArray
    lower: FloatArray
    upper: FloatArray
    nu: FloatArray
    tau: FloatArray

    @classmethod
    def of(
        cls, chain: Chain, sites: FloatArray, rectangle: tuple[FloatArray, FloatArray, FloatArray]
    ) -> Twist:
        """Take sites (2, n), precisions first, and signs and limits (n,), all in the order of the patterns."""
        tau, nu = sites
        each = [one[chain.order] for one in (*rectangle, nu, tau)]
        return cls(chain, chain.sited(nu, tau), *each)

    def quotients(self, basis: Basis, here: slice) -> tuple[FloatArray, FloatArray]:
        """Return logarithms (m,), and g over their exponentials (m, Q), of some patterns at the nodes."""
        of, lower, upper = self.sited, self.lower[here, None], self.upper[here, None]
        near = np.clip(basis.node, -_FAR, _FAR)
        f = of.mean[here, None] + np.sqrt(of.variance[here])[:, None] * near
        mean = self.signs[here, None] * f
        if np.isposinf(upper).all():
            log_g = log_ndtr(mean - lower)
        else:
            low, high = (
                np.broadcast_to(one, f.shape).ravel() for one in (lower - mean, upper - mean)
            )
            log_g = log_mass(low, high).reshape(f.shape)
        log_g += f * (0.5 * self.tau[here, None] * f - self.nu[here, None])
        centre = log_g[:, len(basis) // 2].copy()
        return centre, np.exp(log_g - centre[:, None])

    def way(self, basis: Basis, back: bool = False, keep: bool = False) -> tuple[float, Any]:
        """Go along the chain, or `back`: return log E_q[prod g], and coefficients of h_i g_i (n, Q) if it is to `keep`.

        Raises
        ------
        FloatingPointError
            If the polynomials lose it.
        """
        n, Q = len(self.nu), len(basis)
        to, fro = basis.values * basis.weight, np.ascontiguousarray(basis.values.T)
        kept = np.empty((n, Q)) if keep else None
        r = np.concatenate([[0.0], self.sited.correlation])
        h, total, means = np.ones(Q), 0.0, np.empty(n)
        size = max(_ROWS // Q, 1)
        starts = range(0, n, size)
        for start in reversed(starts) if back else starts:
            here = slice(start, min(start + size, n))
            log_g, g = self.quotients(basis, here)
            # of the step that follows on each pattern
            last = here.stop + (0 if back else 1)
            step = r[here] if back else np.append(r, 0.0)[start + 1 : last]
            powers, total = step[:, None] ** np.arange(Q), total + float(log_g.sum())
            rows = range(len(g))
            for i in reversed(rows) if back else rows:
                c = to @ (h * g[i])
                means[start + i] = mean = c[0]
                if not mean > 0.0:
                    raise FloatingPointError("the mean of a likelihood must be positive")
                c /= mean
                if kept is not None:
                    kept[start + i] = c
                h = fro @ (c * powers[i])
        if not np.isfinite(h).all():
            raise FloatingPointError("polynomials must not outgrow floating point")
        return total + float(np.log(means).sum()), kept


@dataclass(frozen=True, kw_only=True)
class QuadraturePosterior(FormPosterior):
    """The evidence and class probabilities of a Markov chain, by quadrature.

    Nothing is drawn. `log_evidence_se` is no Monte Carlo error: four times what the last polynomials changed, which is
    what the quadrature may be off by. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    basis : Basis
    twist : Twist
    """

    log_evidence: float
    log_evidence_se: float
    basis: Basis = field(repr=False)
    twist: Twist = field(repr=False)
    likelihood: Any = field(repr=False)

    @cached_property
    def _ways(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients (n, Q) of what the patterns to the left of a value, and to the right, say of it."""
        ahead, back = (self.twist.way(self.basis, one, keep=True)[1] for one in (False, True))
        return ahead, back

    def _predict_at(self, cross: Cross) -> Prediction:
        places = cross.places(self.twist.chain)
        found = [self._at(places[k : k + _TESTED]) for k in range(0, max(len(places), 1), _TESTED)]
        probability = np.concatenate(found)
        return Prediction(probability, np.zeros_like(probability))

    def _at(self, places: FloatArray) -> FloatArray:
        """Return class probabilities at some places along the chain."""
        chain, q, basis = self.twist.chain, self.twist.sited, self.basis
        left, last = np.searchsorted(chain.at, places, side="right") - 1, len(chain.at) - 1
        i, j = np.maximum(left, 0), np.minimum(left + 1, last)
        mean, variance, of_left, of_right = bridged(chain, q, places, left)
        powers = np.arange(len(basis))
        law = np.broadcast_to(basis.weight, (len(places), len(basis)))
        for way, at, r, there in zip(
            self._ways, (i, j), (of_left, of_right), (left >= 0, left < last), strict=True
        ):
            seen = (way[at] * r[:, None] ** powers) @ basis.values
            law = law * np.where(there[:, None], seen, 1.0)
        law = np.maximum(law, 0.0)
        law = law / law.sum(axis=1, keepdims=True)
        f = mean[:, None] + np.sqrt(variance)[:, None] * basis.node
        p = self.likelihood.predictive_probability(f, np.zeros_like(f))
        return np.einsum("tq,tq...->t...", law, p)


def bridged(
    chain: Chain, q: SitedChain, places: FloatArray, left: Any
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the law under q of values at some places, each to the right of the pattern `left` (-1: of none).

    Mean, variance, and the correlations with the patterns to the left and to the right, (t,) each; those with
    patterns that are not there are zero.
    """
    last = len(chain.at) - 1
    i, j = np.maximum(left, 0), np.minimum(left + 1, last)
    a = np.where(left >= 0, np.abs(places - chain.at[i]), np.inf)
    b = np.where(left < last, np.abs(chain.at[j] - places), np.inf)
    # the bridge between both: what each value counts for, and what is left
    both = -np.expm1(-2.0 * (a + b))
    with np.errstate(invalid="ignore", divide="ignore"):
        by_left = np.where(both > 0.0, np.exp(-a) * -np.expm1(-2.0 * b) / both, 1.0)
        by_right = np.where(both > 0.0, np.exp(-b) * -np.expm1(-2.0 * a) / both, 0.0)
        rest = np.where(both > 0.0, np.expm1(-2.0 * a) * np.expm1(-2.0 * b) / both, 0.0)
    inside = (left >= 0) & (left < last)
    v, w = q.variance[i], q.variance[j]
    covariance = np.append(q.correlation, 0.0)[i] * np.sqrt(v * w) * inside
    mean = by_left * q.mean[i] + by_right * q.mean[j]
    variance = chain.variance * rest + by_left**2 * v + by_right**2 * w
    variance = variance + 2.0 * by_left * by_right * covariance
    with_left = (by_left * v + by_right * covariance) / np.sqrt(v * variance)
    with_right = (by_right * w + by_left * covariance) / np.sqrt(w * variance)
    return mean, variance, np.clip(with_left, -1.0, 1.0), np.clip(with_right, -1.0, 1.0)


def settled(twist: Twist) -> tuple[float, float, Basis] | None:
    """Return the log evidence, about how far it may be off, and the polynomials; None where they do not settle."""
    best, before = None, np.inf
    for size in _DEGREES:
        basis = Basis.of(size)
        try:
            with np.errstate(over="raise", invalid="raise"):
                found = twist.sited.log_constant + twist.way(basis)[0]
        except FloatingPointError:
            break
        error = _SAFETY * abs(found - before)
        if best is None or error <= best[1]:
            best = found, error, basis
        if error < _SETTLED:
            break
        before = found
    if best is None or best[1] > _LARGEST:
        return None
    found, error, basis = best
    return found, error + _ROUNDING * (1.0 + abs(found)), basis
