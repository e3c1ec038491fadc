"""The way back through the coordinates of samples, for derivatives of log weights; the formulas are `gradient`'s.

References
----------
Glasserman (2003), Monte Carlo methods in financial engineering, section 7.2 (pathwise derivatives). Murray (2016),
"Differentiation of the Cholesky decomposition".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.special import erfcx

from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import DenseFactor, Sited
from gpcmc.rectangle._pass import normal_cdf
from gpcmc.rectangle.limits import log_mass
from gpcmc.rectangle.mixture import Samples
from gpcmc.rectangle.proposals import Proposal

_LEAF = 32  # coordinates between matrix products
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_FAR = -8.0  # Phi below this is found by its scaled complement


@dataclass(frozen=True, slots=True)
class Way:
    """One proposal, with what its way back needs: limits about its origin, its tilt k, and its sites, (n,) each."""

    proposal: Proposal
    lower: FloatArray
    upper: FloatArray
    k: FloatArray
    nu: FloatArray
    tau: FloatArray

    @property
    def factor(self) -> DenseFactor:
        """The proposal's factor."""
        return cast(DenseFactor, self.proposal.factor)

    def terms(self, here: slice, X: FloatArray, E: FloatArray) -> _Terms:
        """Return what the weights of some coordinates are made of."""
        d = self.factor.d[here, None]
        s = 1.0 / np.sqrt(1.0 - self.tau[here, None] * d**2)
        low, high = self.lower[here, None] / d, self.upper[here, None] / d
        x = X[here] / d + low
        c = x - E[here]
        T = s * (c - self.nu[here, None] * d + self.k[here, None])
        at_low, at_high = low / s - T, high / s - T
        by_low, by_high = _edges(at_low, at_high, np.isfinite(high[:, 0]))
        return _Terms(s, x, c, T, low, high, at_low, at_high, by_low, by_high)

    def given(
        self, X: FloatArray, E: FloatArray, rho: FloatArray, w: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return means under w of derivatives of rho times the log weight of given samples, and those in v (n, m)."""
        n, G = len(E), self.factor.G
        own, G_bar, sums = np.empty(E.shape), np.zeros((n, n)), np.zeros((6, n))
        for here in _leaves(n):
            one = self.terms(here, X, E)
            T_bar = rho * (one.by_low - one.by_high + one.T)
            np.subtract(one.s * T_bar, rho * one.c, out=own[here])
            one.add_limits(sums[:, here], rho, w)
            sums[0, here] = T_bar @ w
            sums[1, here] += (one.T * T_bar) @ w
        # c-bar = own - e-bar, e-bar = (G - I)' c-bar
        c_bar = dtrsm(1.0, G.T, own.T, side=1, trans_a=1, diag=1).T
        own -= c_bar
        d = self.factor.d[:, None]
        for here in _leaves(n):
            in_v = own[here]
            in_v -= rho * self.k[here, None]
            in_v /= d[here]
            weighted = c_bar[here] * w
            G_bar[here, : here.stop] = weighted @ E[: here.stop].T
            x = X[here] + self.lower[here, None]
            sums[2, here] = weighted.sum(axis=1)
            sums[3, here] = -(in_v * x / d[here]) @ w
        return self._gathered(sums, G_bar, float(rho @ w)), own

    def drawn(
        self,
        X: FloatArray,
        E: FloatArray,
        rho: FloatArray,
        w: FloatArray,
        points: FloatArray,
        by_v: FloatArray | float,
    ) -> FloatArray:
        """Return the same means for the samples that this proposal drew from `points`.

        `by_v` (n, m) is what the log weight of the mixture has of the other proposal, as its derivative in v.
        """
        n, G = len(E), self.factor.G
        by_v = np.broadcast_to(by_v, E.shape)
        c_bar, G_bar = np.empty(E.shape), np.zeros((n, n))
        sums, product = np.zeros((6, n)), np.empty(len(w))
        for here in _leaves(n):
            hi, one = here.stop, self.terms(here, X, E)
            s = one.s
            boxed = np.isfinite(one.high)
            z = one.x / s - one.T
            left = np.where(boxed, points[here], 1.0 - points[here])
            q_low = left * np.exp(0.5 * (z - one.at_low) * (z + one.at_low))
            q_high = np.zeros_like(q_low)
            if boxed.any():
                at = boxed[:, 0]
                high = one.at_high[at]
                q_high[at] = (1.0 - left[at]) * np.exp(0.5 * (z[at] - high) * (z[at] + high))
            T_bar = rho * (one.by_low - one.by_high + one.T)
            slope = s * (1.0 - q_low - q_high)
            by_x = self.factor.d[here, None] * by_v[here]
            sums[3, here] = (by_v[here] * one.x) @ w
            by_x -= rho * self.k[here, None]
            e_bar, own = G[hi:, here].T @ c_bar[hi:], c_bar[here]
            np.add(s * (T_bar + slope * by_x), -rho * one.c, out=own)
            at_e = s * slope - 1.0
            within = np.ascontiguousarray(G[here, here].T)
            for i in range(len(own) - 1, -1, -1):
                e_bar[i] += within[i, i + 1 :] @ own[i + 1 :]
                own[i] += np.multiply(at_e[i], e_bar[i], out=product)
            by_x += e_bar
            T_bar += slope * by_x
            weighted = own * w
            G_bar[here, :hi] = weighted @ E[:hi].T
            one.add_limits(sums[:, here], rho, w, by_x * q_low, by_x * q_high)
            sums[0, here], sums[2, here] = T_bar @ w, weighted.sum(axis=1)
            sums[1, here] += (one.T * T_bar + by_x * one.x) @ w
        return self._gathered(sums, G_bar, float(rho @ w))

    def _gathered(self, sums: FloatArray, G_bar: FloatArray, share: float) -> FloatArray:
        """Go from T, s, c, d, limits and the rows of G to the factor, the mean and the limits: a flat array.

        The rows of `sums` are means of T-bar, of what s has in its own units, of c-bar, of what d has of its own, and
        of l-bar and h-bar. The last entry is the share of the proposal.
        """
        d, G = self.factor.d, self.factor.G
        s2 = 1.0 / (1.0 - self.tau * d**2)
        of_T, of_s, of_c, of_d, of_low, of_high = sums
        low, high = (np.where(np.isfinite(x), x, 0.0) / d for x in (self.lower, self.upper))
        G_bar = np.tril(G_bar, -1)
        of_d = of_d + (of_s + share) * s2 * self.tau * d - np.sqrt(s2) * of_T * self.nu
        of_d -= (of_low * low + of_high * high + np.einsum("ij,ij->i", G, G_bar)) / d
        G_bar /= d[:, None]
        G_bar.flat[:: len(d) + 1] = of_d
        return np.concatenate([G_bar.ravel(), of_c / d, of_low / d, of_high / d, [share]])


@dataclass(frozen=True, slots=True)
class _Terms:
    """Of some coordinates (m, samples), or (m, 1): see the module; `by_low` and `by_high` are pl and ph."""

    s: FloatArray
    x: FloatArray
    c: FloatArray
    T: FloatArray
    low: FloatArray
    high: FloatArray
    at_low: FloatArray
    at_high: FloatArray
    by_low: FloatArray
    by_high: FloatArray

    def add_limits(
        self,
        sums: FloatArray,
        rho: FloatArray,
        w: FloatArray,
        drawn_low: FloatArray | float = 0.0,
        drawn_high: FloatArray | float = 0.0,
    ) -> None:
        """Add means of l-bar and h-bar, and what s has of them, to rows 4, 5 and 1."""
        high = np.where(np.isfinite(self.high[:, 0]), self.high[:, 0], 0.0)
        low_bar = (drawn_low - rho * self.by_low / self.s) @ w
        high_bar = (drawn_high + rho * self.by_high / self.s) @ w
        sums[4], sums[5] = low_bar, high_bar
        sums[1] -= low_bar * self.low[:, 0] + high_bar * high


@dataclass(frozen=True, slots=True)
class Back:
    """All proposals of a mixture, and what sites made of the covariance."""

    ways: list[Way]
    sited: Sited | None

    def bars(self, some: Samples, share: FloatArray) -> FloatArray:
        """Return sums (g, ...) of derivatives under shares (g, m) of weights."""
        columns = np.arange(len(some.log_weights)).reshape(len(share), -1)
        return np.stack([self._bars(some, at, w) for at, w in zip(columns, share, strict=True)])

    def _bars(self, some: Samples, at: NDArray[np.intp], w: FloatArray) -> FloatArray:
        here = slice(int(at[0]), int(at[-1]) + 1)
        assert some.X is not None and some.points is not None
        X, rho = some.X[:, here], np.exp(some.log_share[:, here])
        E = [one.state[:, here] for one in some.passes]
        found = [np.empty(0)] * len(self.ways)
        by_v: FloatArray | float = 0.0
        for j, way in enumerate(self.ways):
            if j != some.k:
                found[j], by_v = way.given(X, E[j], rho[j], w)
        own = self.ways[some.k]
        found[some.k] = own.drawn(X, E[some.k], rho[some.k], w, some.points[:, here], by_v)
        return np.concatenate(found)

    def limits(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives (g, n) in both limits, of sums (g, ...)."""
        n = len(self.ways[0].proposal)
        each = sums.reshape(len(sums), len(self.ways), -1)[:, :, n * n + n : -1].sum(axis=1)
        return each[:, :n], each[:, n:]

    def covariance(self, sums: FloatArray) -> FloatArray:
        """Return the derivative in R (n, n), of sums (...)."""
        n = len(self.ways[0].proposal)
        cov = np.zeros((n, n))
        for way, own in zip(self.ways, sums.reshape(len(self.ways), -1), strict=True):
            factor = way.factor
            bar = _of_factor(factor, own[: n * n].reshape(n, n))
            if self.sited is None or way is not self.ways[0]:
                cov += bar
                continue
            # through the factor, the mean and the constant that the sites make
            slope, tau, share = self.sited.slope, way.tau, own[-1]
            L = factor.d[:, None] * factor.G
            S_tau = (L @ L.T) * tau
            A = -S_tau
            A.flat[:: n + 1] += 1.0
            of_mean = A.T @ own[n * n : n * n + n] + 0.5 * share * slope
            half = 0.5 * np.outer(of_mean, slope)
            cov += A.T @ bar @ A + half + half.T + 0.5 * share * tau[:, None] * S_tau
            cov.flat[:: n + 1] -= 0.5 * share * tau
        return cov


def _leaves(n: int) -> list[slice]:
    """Return coordinates in groups, the last ones first."""
    return [slice(max(hi - _LEAF, 0), hi) for hi in range(n, 0, -_LEAF)]


def _edges(
    low: FloatArray, high: FloatArray, boxed: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return phi(low) / P and phi(high) / P, P = P(low < Z < high); only rows `boxed` have an upper limit."""
    P = -low
    normal_cdf(P)
    by_low, by_high = np.exp(-0.5 * low * low - _LOG_ROOT_2PI), np.zeros_like(low)
    by_low /= np.maximum(P, 1e-300)
    far = -low < _FAR
    if far.any():
        by_low[far] = np.sqrt(2.0 / np.pi) / erfcx(np.sqrt(0.5) * low[far])
    if boxed.any():
        a, b = low[boxed], high[boxed]
        log_p = log_mass(a.ravel(), b.ravel()).reshape(a.shape)
        by_low[boxed], by_high[boxed] = (
            np.exp(-0.5 * x * x - _LOG_ROOT_2PI - log_p) for x in (a, b)
        )
    return by_low, by_high


def _of_factor(factor: DenseFactor, L_bar: FloatArray) -> FloatArray:
    """Return the derivative in L L' (n, n), symmetric."""
    L = factor.d[:, None] * factor.G
    Q = np.tril(L.T @ L_bar)
    Q.flat[:: len(Q) + 1] *= 0.5
    half = solve_triangular(L, 0.5 * (Q + Q.T), lower=True, trans="T", check_finite=False)
    found: FloatArray = solve_triangular(L, half.T, lower=True, trans="T", check_finite=False)
    return found
