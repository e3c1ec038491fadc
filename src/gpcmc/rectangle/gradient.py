r"""Log P(lower < v < upper), v ~ N(0, R), with its gradient in R and the limits, by the draws of a mixture.

With points U, sites and tilt held, the average weight is a smooth function of R and the limits, and its derivative is
the average of the derivatives: the estimate is unbiased whatever sites and tilt are.

Both proposals have one form. In units d_i of the diagonal of their factor, about an origin m that is held,
x_i = (v_i - m_i) / d_i = c_i + e_i, and with l and h the limits in these units

    T = s (c - u),   x = s (T + z),   zl = l / s - T < z < zh = h / s - T,   Phi(z) = q Phi(zl) + (1 - q) Phi(zh),
    log w = log P(zl < Z < zh) + T^2 / 2 + log s - c^2 / 2 - k x

for each coordinate, q a uniform number. A site exp(nu v - tau v^2 / 2) has s = (1 - tau d^2)^(-1/2), u = nu' d, where
nu' = nu - tau m, and k = 0; a tilt mu has s = 1, u = -mu, k = mu and m = 0. One pass back through the coordinates finds
the derivatives. With a bar for that of the log weight, pl = phi(zl) / P, ql = dz/dzl = q phi(zl) / phi(z), and ph, qh
of the upper limit likewise,

    T-bar_i = pl - ph + T_i + x-bar_i s_i (1 - ql - qh),      c-bar_i = s_i T-bar_i - c_i - e-bar_i,
    x-bar_i = e-bar_i - k_i,   e-bar_i = sum_{j>i} G_ji c-bar_j,   l-bar_i = x-bar_i ql - pl / s_i,   h-bar_i likewise

for the proposal that drew v. Under the other v is given, so that T-bar_i is pl - ph + T_i, and x-bar is the derivative
in v, which the first has to take on. The log weight under the mixture has the mean of both derivatives under the
draw's share in each. The sites' factor belongs to S = (R^-1 + diag(tau))^-1 with the mean S nu, and dS = A dR A' with
A = I - S diag(tau) goes on to R. As a shift of all is a shift of the limits, the gradient in the mean of v is minus the
sum of those in the limits; between independent blocks d2 P / dm_i dm_j = dP / dc_ij (Plackett 1954).

References
----------
Glasserman (2003), Monte Carlo methods in financial engineering, section 7.2 (pathwise derivatives). Murray (2016),
"Differentiation of the Cholesky decomposition". Plackett (1954), Biometrika 41, 351.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.special import erfcx

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import DenseFactor, Sited
from gpcmc.rectangle import proposals, rounds
from gpcmc.rectangle._pass import normal_cdf
from gpcmc.rectangle.blocks import Block, Reduced
from gpcmc.rectangle.limits import log_mass
from gpcmc.rectangle.mixture import Average, Means, Mixture, Samples, deviation, draw
from gpcmc.rectangle.order import Ordered, ordered
from gpcmc.rectangle.proposals import Proposal
from gpcmc.rectangle.sites import propagate
from gpcmc.rectangle.tilt import minimax_tilt

_LEAF = 32  # coordinates between matrix products
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_FAR = -8.0  # Phi below this is found by its scaled complement


@dataclass(frozen=True, slots=True)
class Guide:
    """What is held while R and the limits change.

    Attributes
    ----------
    nu, tau : (n,) array
        Sites exp(nu v - tau v^2 / 2), tau >= 0.
    mu : (n,) array
        Tilt of the defence.
    """

    nu: FloatArray
    tau: FloatArray
    mu: FloatArray

    @classmethod
    def at(cls, R: FloatArray, nu: FloatArray, tau: FloatArray) -> Guide:
        """Take the minimax tilt of the orthant of R."""
        low, high = np.zeros(len(R)), np.full(len(R), np.inf)
        return cls(nu, tau, minimax_tilt(DenseFactor.of(R.copy()), low, high).mu)


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
    cov: FloatArray | None


@dataclass(frozen=True, slots=True)
class RectangleGradient:
    """Derivatives of log P(lower < v < upper), and their standard errors.

    Attributes
    ----------
    lower : (n,) array
        In the lower limits; zero for an infinite one.
    upper : (n,) array
        In the upper limits; zero for an infinite one.
    mean : (n,) array
        In the mean.
    cov : (n, n) array
        Symmetric: a symmetric change D of the covariance changes log P by ``np.sum(cov * D)``, to first order.
    lower_se : (n,) array
        Standard errors, from the spread between 16 scrambles.
    upper_se : (n,) array
        The same, of `upper`.
    mean_se : (n,) array
        The same, of `mean`.
    cov_se : (n, n) array
        The same, of `cov`.
    effective_fraction : float
        The least over the blocks of effective samples over samples; errors mean little where it is below 0.01.
    """

    lower: FloatArray
    upper: FloatArray
    mean: FloatArray
    cov: FloatArray
    lower_se: FloatArray
    upper_se: FloatArray
    mean_se: FloatArray
    cov_se: FloatArray
    effective_fraction: float


@one_thread()
def orthant_gradient(
    R: FloatArray,
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
        are those of `gpcmc.rectangle.mixture.draw` with these seeds, without its control variate.
    with_gradient : bool
        False leaves `cov` out.

    Raises
    ------
    LinAlgError
        If R, or what the sites make of it, is not positive definite in floating point.
    """
    low, high = np.zeros(len(R)), np.full(len(R), np.inf)
    found, sums, back = _estimate(
        DenseFactor.of(R.copy()), low, high, guide, points, seeds, with_gradient, together=True
    )
    cov = None
    if with_gradient:
        assert sums.values is not None
        cov = back.covariance(sums.values[0])
    return OrthantGradient(
        found.log_plain,
        float(deviation(found.share)),
        found.diagnostics["effective_fraction"],
        cov,
    )


def gradient(
    reduced: Reduced, guided: Sequence[bool], points: int, rng: np.random.Generator
) -> RectangleGradient:
    """Return the gradient of a problem in standard form.

    Parameters
    ----------
    reduced : Reduced
    guided : sequence of bool
        Of each block, whether sites pay.
    points : int
        Sobol' points of each of 16 scrambles, a power of two.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If the probability is zero or the covariance singular, where log P has no derivative.
    """
    if not reduced.possible:
        raise ValueError(
            "lower and upper must leave a probability above zero, for its logarithm's gradient"
        )
    n = reduced.size
    low, high, mean = (np.zeros((2, n)) for _ in range(3))
    cov = np.zeros((2, n, n))
    effective = 1.0
    for block, sites_pay in zip(reduced.blocks, guided, strict=True):
        fraction, own_low, own_high, own_cov = _block(block, sites_pay, points, rng)
        effective = min(effective, fraction)
        at = block.index
        low[:, at], high[:, at], cov[:, at[:, None], at] = own_low[:2], own_high[:2], own_cov
        mean[:, at] = -(own_low[0] + own_high[0]), own_low[2]
    _between_blocks(reduced, mean, cov)
    return RectangleGradient(
        low[0], high[0], mean[0], cov[0], low[1], high[1], mean[1], cov[1], effective
    )


def _between_blocks(reduced: Reduced, mean: FloatArray, cov: FloatArray) -> None:
    for block in reduced.blocks:
        others = np.setdiff1d(np.concatenate([b.index for b in reduced.blocks]), block.index)
        if len(others):
            place = (block.index[:, None], others)
            cov[0][place] = 0.5 * np.outer(mean[0, block.index], mean[0, others])
            cov[1][place] = 0.5 * np.hypot(
                np.outer(mean[0, block.index], mean[1, others]),
                np.outer(mean[1, block.index], mean[0, others]),
            )


def _block(
    block: Block, guided: bool, points: int, rng: np.random.Generator
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Return the effective fraction, gradients in the limits and errors (3, m), and those in the covariance.

    The third row of the first is the error of the gradient in the mean.
    """
    given = ordered(block.R, block.lower, block.upper, block.slack)
    if given.ties:
        raise ValueError(
            f"cov must be regular, for a gradient; {len(block.R)} correlated coordinates have rank {given.rank}"
        )
    mu = minimax_tilt(given.factor, given.lower, given.upper, starts=[given.start]).mu
    guide = _guide(given, mu) if guided else mu
    seeds = rng.integers(2**63, size=rounds.SCRAMBLES)
    found, sums, back = _estimate(
        given.factor, given.lower, given.upper, guide, points, seeds, True, together=False
    )
    mean, errors = sums.contributions(found.share)
    unit = (block.sign * block.sd)[given.order]
    place, scale = np.argsort(given.order), np.outer(unit, unit)

    def in_limits(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = (one / unit for one in back.limits(x))
        flipped = unit < 0
        return (
            np.where(flipped, high, low)[:, place],
            np.where(flipped, low, high)[:, place],
        )

    low, high = in_limits(mean[None])
    low_errors, high_errors = in_limits(errors)
    of_mean = deviation(low_errors + high_errors)
    each = np.stack([back.covariance(one) for one in (mean, *errors)]) / scale
    each = each[:, place[:, None], place]
    return (
        found.diagnostics["effective_fraction"],
        np.stack([low[0], deviation(low_errors), of_mean]),
        np.stack([high[0], deviation(high_errors), of_mean]),
        np.stack([each[0], deviation(each[1:])]),
    )


def _guide(given: Ordered, mu: FloatArray) -> Guide | FloatArray:
    """Return sites and a tilt; the tilt alone where rounding leaves no proposal of sites."""
    try:
        nu, tau, _ = propagate(given.factor, given.lower, given.upper)
        proposals.twisted(given.factor.sited(nu, tau), tau, given.lower, given.upper)
    except (LinAlgError, ValueError):
        return mu
    return Guide(nu, tau, mu)


def _estimate(
    factor: DenseFactor,
    lower: FloatArray,
    upper: FloatArray,
    guide: Guide | FloatArray,
    points: int,
    seeds: NDArray[np.int64],
    with_gradient: bool,
    *,
    together: bool,
) -> tuple[Average, Means, _Back]:
    """Draw, and sum derivatives up, over all randomisations together or in each; without sites by a tilt alone."""
    n = len(factor)
    mu = guide.mu if isinstance(guide, Guide) else guide
    ways = [_Way(proposals.tilted(factor, mu, lower, upper), lower, upper, mu, *np.zeros((2, n)))]
    sited = None
    if isinstance(guide, Guide):
        sited, tau = factor.sited(guide.nu, guide.tau), guide.tau
        proposal, m = proposals.twisted(sited, tau, lower, upper), sited.mean
        ways.insert(0, _Way(proposal, lower - m, upper - m, np.zeros(n), sited.slope, tau))
    back = _Back(ways, sited)
    sums = Means(1 if together else len(seeds))

    def visit(some: Samples) -> None:
        whole = replace(some, randomizations=range(1)) if together else some
        sums.add(whole, lambda share: back.bars(some, share))

    mixture = Mixture(tuple(way.proposal for way in ways), np.inf)
    found = draw(mixture, points, seeds, visit=visit if with_gradient else None, keep=True)
    return found, sums, back


@dataclass(frozen=True, slots=True)
class _Way:
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
class _Back:
    """All proposals of a mixture, and what sites made of the covariance."""

    ways: list[_Way]
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
