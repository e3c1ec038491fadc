r"""Log P(v >= 0), v ~ N(0, R), and its gradient in R, by the draws of twisted EP.

The draws and their weights are those of `gpcmc.orthant.separation`: a proposal that Gaussian sites guide, and minimax
tilting as its defence. With points U, sites and tilt held, the average weight is a smooth function of R, and its
derivative is the average of the derivatives: the estimate is unbiased whatever sites and tilt are.

Both proposals have one form. In units d_i of the diagonal of their factor, x_i = v_i / d_i = c_i + e_i,

    T = s (c - u),  x = s (T - z),  Phi(z) = (1 - U) Phi(T),  log w = log Phi(T) + T^2 / 2 + log s - c^2 / 2 - k x

for each coordinate. A site exp(nu v - tau v^2 / 2) has u = nu d, s = (1 - tau d^2)^(-1/2) and k = 0, a tilt mu has
u = -mu, s = 1 and k = mu. One pass back through the coordinates finds the derivatives. With a bar for that of
the log weight, h = phi / Phi and q = dz/dT = (1 - U) phi(T) / phi(z),

    T-bar_i = h(T_i) + T_i + x-bar_i s_i (1 - q_i),    c-bar_i = s_i T-bar_i - c_i - e-bar_i,
    x-bar_i = e-bar_i - k_i,                           e-bar_i = sum_{j>i} G_ji c-bar_j

for the proposal that drew v. Under the other v is given, so that T-bar_i is h(T_i) + T_i, and x-bar is the derivative
in v, which the first has to take on. The log weight under the mixture has the mean of both derivatives under the
draw's share in each. The sites' factor L belongs to S = (R^-1 + diag(tau))^-1, with the mean S nu, and dS = A dR A'
with A = I - S diag(tau) goes on to R.

References
----------
Glasserman (2003), Monte Carlo methods in financial engineering, section 7.2 (pathwise derivatives). Murray (2016),
"Differentiation of the Cholesky decomposition".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.special import erfcx, logsumexp

from gpcmc._threads import one_thread
from gpcmc.orthant._separation import average_cdf, separate
from gpcmc.orthant.separation import DEFENCE, Array, Change, Proposal
from gpcmc.orthant.tilting import minimax_tilt, tilted_proposal
from gpcmc.orthant.twisting import twisted_proposal

_CHUNK = 2048  # points whose way back is held
_LEAF = 32  # coordinates between matrix products
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_FAR = -8.0  # Phi below this is found by its scaled complement


@dataclass(frozen=True, slots=True)
class Guide:
    """What is held while R changes.

    Attributes
    ----------
    nu, tau : (n,) array
        Sites exp(nu v - tau v^2 / 2), tau >= 0.
    mu : (n,) array
        Tilt of the defence.
    """

    nu: Array
    tau: Array
    mu: Array

    @classmethod
    def at(cls, R: Array, nu: Array, tau: Array) -> Guide:
        """Take the minimax tilt of R."""
        return cls(nu, tau, minimax_tilt(cholesky(R, lower=True, check_finite=False)).mu)


@dataclass(frozen=True, slots=True)
class OrthantGradient:
    """An orthant probability, and its gradient.

    Attributes
    ----------
    log_probability : float
        Natural logarithm of an unbiased estimate of P(v >= 0).
    standard_error : float
        Of the logarithm, from the spread between randomisations.
    effective_fraction : float
        Effective samples over samples: low where the guide is not that of R.
    cov : (n, n) array or None
        Symmetric: a symmetric change D of R changes `log_probability` by ``np.sum(cov * D)``, to first order. None if
        it was not asked for.
    """

    log_probability: float
    standard_error: float
    effective_fraction: float
    cov: Array | None


@one_thread()
def orthant_gradient(
    R: Array,
    guide: Guide,
    *,
    points: int,
    seeds: NDArray[np.int64],
    with_gradient: bool = True,
) -> OrthantGradient:
    """Estimate P(v >= 0), and the derivative of that very estimate.

    Parameters
    ----------
    R : (n, n) array
        Covariance of v, positive definite.
    guide : Guide
    points : int
        Sobol' points of a randomisation, a power of two; an eighth as many more are of the defence.
    seeds : (r,) int array
        One of each randomisation, two at least: with the same seeds the estimate is a smooth function of R. The draws
        are those of `gpcmc.orthant.separation.estimate` with these seeds, without its control variate.
    with_gradient : bool
        False leaves `cov` out.

    Raises
    ------
    LinAlgError
        If R, or what the sites make of it, is not positive definite in floating point.
    """
    passes = [_Pass.of_sites(R, guide.nu, guide.tau), _Pass.of_tilt(R, guide.mu)]
    counts = [points, -(-points // DEFENCE)]
    share = np.log(np.array(counts) / sum(counts))
    total, sums = -np.inf, [_Sums.none(len(R)) for _ in passes]
    log_w = np.empty((len(seeds), sum(counts)))
    for k, own in enumerate(passes):
        j = 1 - k
        change = Change.between(own.proposal, passes[j].proposal)
        for rows, columns, E in _draws(len(R), counts[k], seeds, k):
            left, log_q = 1.0 - E, np.empty((2, E.shape[1]))
            log_q[k] = share[k] - own.log_weights(E, drawn=False)
            other = np.ascontiguousarray(change(E))
            log_q[j] = share[j] - passes[j].log_weights(other, drawn=True)
            here = -logsumexp(log_q, axis=0)
            log_w[rows, columns.start + k * points : columns.stop + k * points] = here.reshape(
                rows.stop - rows.start, -1
            )
            if not with_gradient:
                continue
            part, rho = float(logsumexp(here)), np.exp(log_q + here)
            w, new = np.exp(here - part), float(np.logaddexp(total, part))
            X = own.scaled(E)
            of_v = X * (own.d / passes[j].d)[:, None]
            found, by_v = passes[j].given(of_v, other, rho[j], w)
            for p, bars in ((j, found), (k, own.drawn(X, E, rho[k], w, left, by_v))):
                sums[p] = sums[p].plus(np.exp(total - new), bars, np.exp(part - new))
            total = new
    all_w = logsumexp(log_w)
    shares = np.exp(logsumexp(log_w, axis=1) - all_w) * len(seeds)
    return OrthantGradient(
        log_probability=float(all_w - np.log(log_w.size)),
        standard_error=float(np.std(shares, ddof=1) / np.sqrt(len(seeds))),
        effective_fraction=float(np.exp(2.0 * all_w - logsumexp(2.0 * log_w)) / log_w.size),
        cov=_of_sites(passes[0], sums[0]) + _of_factor(passes[1].proposal.L, sums[1].L)
        if with_gradient
        else None,
    )


def _draws(
    n: int, count: int, seeds: NDArray[np.int64], k: int
) -> Iterator[tuple[slice, slice, Array]]:
    """Yield points (n, m) of proposal k, m about `_CHUNK`: of which randomisations, and where they are in each."""
    from scipy.stats import qmc  # costs half a second to import

    group = max(_CHUNK // count, 1)
    for first in range(0, len(seeds), group):
        some = seeds[first : first + group]
        engines = [qmc.Sobol(n, rng=np.random.default_rng([int(seed), k])) for seed in some]
        for start in range(0, count, _CHUNK):
            stop = min(start + _CHUNK, count)
            U = np.concatenate([engine.random(stop - start) for engine in engines])
            yield (
                slice(first, first + len(some)),
                slice(start, stop),
                np.ascontiguousarray(U.T),
            )


@dataclass(frozen=True, slots=True)
class _Sums:
    """Means of derivatives: in the factor (n, n), lower triangular, in the mean (n,), and the share of the proposal."""

    L: Array
    mean: Array
    share: float

    @classmethod
    def none(cls, n: int) -> _Sums:
        return cls(np.zeros((n, n)), np.zeros(n), 0.0)

    def plus(self, scale: float, other: _Sums, weight: float) -> _Sums:
        return _Sums(
            scale * self.L + weight * other.L,
            scale * self.mean + weight * other.mean,
            scale * self.share + weight * other.share,
        )


@dataclass(frozen=True, slots=True)
class _Pass:
    """One proposal, with what its way back needs: arrays (n,) but for G (n, n) and the coefficients."""

    proposal: Proposal
    G: Array
    coefficients: Array
    d: Array
    shift: Array
    nu: Array
    tau: Array
    tilt: Array

    @classmethod
    def of_sites(cls, R: Array, nu: Array, tau: Array) -> _Pass:
        return cls._of(twisted_proposal(R, nu, tau), nu, tau, np.zeros(len(R)))

    @classmethod
    def of_tilt(cls, R: Array, mu: Array) -> _Pass:
        zero = np.zeros(len(R))
        L = cholesky(R, lower=True, check_finite=False)
        return cls._of(tilted_proposal(L, mu), zero, zero, mu)

    @classmethod
    def _of(cls, proposal: Proposal, nu: Array, tau: Array, tilt: Array) -> _Pass:
        d = np.diag(proposal.L).copy()
        return cls(proposal, *proposal.prepare(), d, proposal.mean / d, nu, tau, tilt)

    def log_weights(self, E: Array, *, drawn: bool) -> Array:
        """Weigh samples; points in E (n, m) become innovations unless they are these already."""
        found: Array = separate(self.G, self.coefficients, E, drawn)
        return found + self.proposal.log_constant

    def scaled(self, E: Array) -> Array:
        """Return v in units of d, for innovations (n, m)."""
        found: Array = dtrmm(1.0, self.G.T, E.T, side=1).T
        found += self.shift[:, None]
        return found

    def given(self, X: Array, E: Array, rho: Array, w: Array) -> tuple[_Sums, Array]:
        """Return derivatives of rho times the log weight of given samples.

        Parameters
        ----------
        X, E : (n, m) array
            v in units of d, and innovations.
        rho, w : (m,) array
            The weights w have the sum one.

        Returns
        -------
        sums : _Sums
            Means under w.
        in_v : (n, m) array
        """
        n, (s, u) = len(E), self._slope_and_shift()
        own, G_bar, sums = np.empty(E.shape), np.zeros((n, n)), np.empty((4, n))
        for here in _leaves(n):
            root, c = s[here, None], X[here] - E[here]
            T = root * (c - u[here, None])
            T_bar = rho * (_hazard(T) + T)
            np.subtract(root * T_bar, rho * c, out=own[here])
            T *= T_bar
            sums[:2, here] = T_bar @ w, T @ w
        # c-bar = own - e-bar, e-bar = (G - I)' c-bar
        c_bar = dtrsm(1.0, self.G.T, own.T, side=1, trans_a=1, diag=1).T
        own -= c_bar
        for here in _leaves(n):
            in_v = own[here]
            in_v -= rho * self.tilt[here, None]
            in_v /= self.d[here, None]
            weighted = c_bar[here] * w
            G_bar[here, : here.stop] = weighted @ E[: here.stop].T
            sums[2:, here] = weighted.sum(axis=1), -(in_v * X[here]) @ w
        return self._gathered(sums, G_bar, float(rho @ w)), own

    def drawn(self, X: Array, E: Array, rho: Array, w: Array, left: Array, by_v: Array) -> _Sums:
        """Return the same means for the samples that this proposal drew.

        Parameters
        ----------
        X, E, rho, w : array
            As of `given`.
        left : (n, m) array
            One minus the points.
        by_v : (n, m) array
            What the log weight of the mixture has of the other proposal, as its derivative in v.
        """
        n, (s, u), G = len(E), self._slope_and_shift(), self.G
        c_bar, G_bar = np.empty(E.shape), np.zeros((n, n))
        sums, product = np.empty((4, n)), np.empty(len(w))
        for here in _leaves(n):
            hi, root, x = here.stop, s[here, None], X[here]
            c = x - E[here]
            T = root * (c - u[here, None])
            z = T - x / root
            T_bar = rho * (_hazard(T) + T)
            slope = root * (1.0 - left[here] * np.exp(0.5 * (z - T) * (z + T)))
            by_x = self.d[here, None] * by_v[here]
            sums[3, here] = (by_v[here] * x) @ w
            by_x -= rho * self.tilt[here, None]
            e_bar, own = G[hi:, here].T @ c_bar[hi:], c_bar[here]
            np.add(root * (T_bar + slope * by_x), -rho * c, out=own)
            at_e = root * slope - 1.0
            within = np.ascontiguousarray(G[here, here].T)
            for i in range(len(own) - 1, -1, -1):
                e_bar[i] += within[i, i + 1 :] @ own[i + 1 :]
                own[i] += np.multiply(at_e[i], e_bar[i], out=product)
            by_x += e_bar
            T_bar += slope * by_x
            weighted = own * w
            G_bar[here, :hi] = weighted @ E[:hi].T
            T *= T_bar
            T += by_x * x
            sums[:3, here] = T_bar @ w, T @ w, weighted.sum(axis=1)
        return self._gathered(sums, G_bar, float(rho @ w))

    def _slope_and_shift(self) -> tuple[Array, Array]:
        """Return s and u of all coordinates."""
        return 1.0 / np.sqrt(1.0 - self.tau * self.d**2), self.nu * self.d - self.tilt

    def _gathered(self, sums: Array, G_bar: Array, share: float) -> _Sums:
        """Go from u, s, c, d and the rows of G to the factor and the mean.

        The rows of `sums` are means of T-bar, of what s has in its own units, of c-bar, and of what d has of its own.
        """
        (s, _), d = self._slope_and_shift(), self.d
        of_T, of_s, of_c, of_d = sums
        G_bar = np.tril(G_bar, -1)
        of_d = of_d + (of_s + share) * s**2 * self.tau * d - s * of_T * self.nu
        of_d -= (self.shift * of_c + np.einsum("ij,ij->i", self.G, G_bar)) / d
        G_bar /= d[:, None]
        G_bar.flat[:: len(d) + 1] = of_d
        return _Sums(G_bar, of_c / d, share)


def _leaves(n: int) -> list[slice]:
    """Return coordinates in groups, the last ones first."""
    return [slice(max(hi - _LEAF, 0), hi) for hi in range(n, 0, -_LEAF)]


def _hazard(T: Array) -> Array:
    """Return phi(T) / Phi(T)."""
    P = T.copy()
    average_cdf(
        P, np.zeros(P.shape[1])
    )  # for what it leaves there, Phi: SciPy's takes six times as long
    found: Array = np.exp(-0.5 * T * T - _LOG_ROOT_2PI) / np.maximum(P, 1e-300)
    far = T < _FAR
    if far.any():
        found[far] = np.sqrt(2.0 / np.pi) / erfcx(-np.sqrt(0.5) * T[far])
    return found


def _of_factor(L: Array, L_bar: Array) -> Array:
    """Return the derivative in L L' (n, n), symmetric."""
    Q = np.tril(L.T @ L_bar)
    Q.flat[:: len(Q) + 1] *= 0.5
    half = solve_triangular(L, 0.5 * (Q + Q.T), lower=True, trans="T", check_finite=False)
    found: Array = solve_triangular(L, half.T, lower=True, trans="T", check_finite=False)
    return found


def _of_sites(one: _Pass, sums: _Sums) -> Array:
    """Return the derivative in R (n, n) through the factor, the mean and the constant that the sites make."""
    L, nu, tau = one.proposal.L, one.nu, one.tau
    S_bar = _of_factor(L, sums.L) + 0.5 * (np.outer(sums.mean, nu) + np.outer(nu, sums.mean))
    S_bar += 0.5 * sums.share * np.outer(nu, nu)
    S_tau = (L @ L.T) * tau
    A = -S_tau
    A.flat[:: len(A) + 1] += 1.0
    cov: Array = A.T @ S_bar @ A + 0.5 * sums.share * tau[:, None] * S_tau
    cov.flat[:: len(cov) + 1] -= 0.5 * sums.share * tau
    return cov
