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

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import DenseFactor
from gpcmc.rectangle import proposals, rounds, small
from gpcmc.rectangle.backward import Back, Way
from gpcmc.rectangle.blocks import Block, Reduced
from gpcmc.rectangle.mixture import Average, Means, Mixture, Samples, deviation, draw
from gpcmc.rectangle.order import Ordered, ordered
from gpcmc.rectangle.sites import held, propagate
from gpcmc.rectangle.tilt import minimax_tilt


@dataclass(frozen=True, slots=True)
class Guide:
    """What is held while R and the limits change."""

    nu: FloatArray  # (n,) sites exp(nu v - tau v^2 / 2), tau >= 0
    tau: FloatArray  # (n,)
    mu: FloatArray  # (n,) tilt of the defence

    @classmethod
    def at(cls, R: FloatArray, nu: FloatArray, tau: FloatArray) -> Guide:
        """Take the minimax tilt of the orthant of R."""
        low, high = np.zeros(len(R)), np.full(len(R), np.inf)
        return cls(nu, tau, minimax_tilt(DenseFactor.of(R.copy()), low, high).mu)


@dataclass(frozen=True, slots=True)
class OrthantGradient:
    """An orthant probability, and its gradient."""

    log_probability: float  # natural logarithm of an unbiased estimate of P(v >= 0)
    standard_error: float  # of the logarithm, from the spread between randomisations
    effective_fraction: float  # effective samples over all: low where the guide is not that of R
    # (n, n) symmetric: a symmetric change D of R changes `log_probability` by ``np.sum(cov * D)``, to first
    # order. None if it was not asked for.
    cov: FloatArray | None


@dataclass(frozen=True, slots=True)
class RectangleGradient:
    """Derivatives of log P(lower < v < upper), and their standard errors.

    Of many rectangles at once all arrays have the leading axes of these.

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
        Standard errors, from the spread between 16 scrambles; zero where one to three coordinates depend on each
        other, whose derivatives are exact.
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
    """Estimate P(v >= 0) for v ~ N(0, R), and the derivative of that very estimate, unless it is left out.

    A randomisation has so many Sobol' points, a power of two, and an eighth as many more of the defence. There are two
    at least: with the same seeds (r,) the estimate is a smooth function of R. The draws are those of
    `gpcmc.rectangle.mixture.draw` with these seeds, without its control variate.

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
    """Return the gradient of a problem in standard form, by so many Sobol' points of each of 16 scrambles.

    `guided` says of each block whether sites pay. Where the probability is zero or the covariance singular, log P has
    no derivative: ValueError.
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
    if len(block.R) <= small.LARGEST:
        return _exact_block(block)
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


def _exact_block(block: Block) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Return the same of one to three coordinates, whose derivatives are exact: their errors are zeros."""
    _, low, high, cov = small.slopes(block.lower[None], block.upper[None], block.R[None])
    unit, none = block.sign * block.sd, np.zeros(len(block.R))
    low, high = low[0] / unit, high[0] / unit
    flipped = unit < 0
    ends = np.where(flipped, high, low), np.where(flipped, low, high)
    of_cov = cov[0] / unit / unit[:, None]
    return (
        1.0,
        np.stack([ends[0], none, none]),
        np.stack([ends[1], none, none]),
        np.stack([of_cov, np.zeros_like(of_cov)]),
    )


def _guide(given: Ordered, mu: FloatArray) -> Guide | FloatArray:
    """Return sites and a tilt; the tilt alone where rounding leaves no proposal of sites."""
    try:
        nu, tau, _ = propagate(given.factor, given.lower, given.upper)
        nu, tau = held(given.factor, nu, tau)
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
) -> tuple[Average, Means, Back]:
    """Draw, and sum derivatives up, over all randomisations together or in each; without sites by a tilt alone."""
    n = len(factor)
    mu = guide.mu if isinstance(guide, Guide) else guide
    ways = [Way(proposals.tilted(factor, mu, lower, upper), lower, upper, mu, *np.zeros((2, n)))]
    sited = None
    if isinstance(guide, Guide):
        sited, tau = factor.sited(guide.nu, guide.tau), guide.tau
        proposal, m = proposals.twisted(sited, tau, lower, upper), sited.mean
        ways.insert(0, Way(proposal, lower - m, upper - m, np.zeros(n), sited.slope, tau))
    back = Back(ways, sited)
    sums = Means(1 if together else len(seeds))

    def visit(some: Samples) -> None:
        whole = replace(some, randomizations=range(1)) if together else some
        sums.add(whole, lambda share: back.bars(some, share))

    mixture = Mixture(tuple(way.proposal for way in ways), np.inf)
    found = draw(mixture, points, seeds, visit=visit if with_gradient else None, keep=True)
    return found, sums, back
