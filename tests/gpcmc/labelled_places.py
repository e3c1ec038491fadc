"""The posterior of hyperparameters for labels at two places, by quadrature, with one length scale or two.

Shares of chains are compared with it within 5.5 standard errors from their effective sample sizes, which is about 1e-6.
"""

from functools import cache

import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.stats import gamma, norm

from gpcmc.chains.hyperparameters import HyperparameterPrior

PRIOR = HyperparameterPrior((2.0, 3.0), (0.4, 2.0))
LARGEST_ERROR = 0.05

#: Two places, the labels of each, and their differences: the evidence is an integral over two latent values.
PLACES = np.array([[0.0, 0.0], [0.3, 0.3]])
COUNTS = ((7, 1), (1, 7))  # of +1 and -1
X_TWO = np.repeat(PLACES, [sum(counts) for counts in COUNTS], axis=0)
Y_TWO = np.concatenate([np.repeat([1.0, -1.0], counts) for counts in COUNTS])


def evidence_table():
    """p(y) as a function of log sigma and the correlation of both latent values, by Gauss and Legendre's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    z, w = 7.0 * nodes, 7.0 * weights * norm.pdf(7.0 * nodes)

    def likelihood(f, k):
        return norm.cdf(f) ** COUNTS[k][0] * norm.cdf(-f) ** COUNTS[k][1]

    log_sigma, rho = np.linspace(-7.0, 4.5, 70), np.sin(np.linspace(0.0, np.pi / 2, 25))
    table = np.empty((70, 25))
    for i, scale in enumerate(np.exp(0.5 * log_sigma)):
        first = w * likelihood(scale * z, 0)
        for j, r in enumerate(rho):
            second = likelihood(scale * (r * z[:, None] + np.sqrt(1 - r * r) * z), 1) @ w
            table[i, j] = first @ second
    return RectBivariateSpline(log_sigma, np.arcsin(rho), np.log(table))


@cache
def log_evidence(length_scales):
    """log p(y | theta) as a function of theta (..., 1 + length_scales)."""
    squares = (PLACES[1] - PLACES[0]) ** 2
    squares = squares if length_scales > 1 else squares.sum(keepdims=True)
    table = evidence_table()

    def value(theta):
        rho = np.exp(-0.5 * np.exp(-2 * theta[..., 1:]) @ squares)
        return table(theta[..., 0], np.arcsin(rho), grid=False)

    return value


@cache
def quadrature(length_scales):
    """A grid over theta, its weights under the prior, and log p(y | theta) there."""
    axes = [np.linspace(-7.0, 4.5, 116)] + [np.linspace(-4.5, 3.5, 81)] * length_scales
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 1 + length_scales)
    weight = np.exp(
        sum(
            gamma.logpdf(np.exp(theta[..., k]), PRIOR.shape[e], scale=1 / PRIOR.rate[e])
            + theta[..., k]
            for k, e in enumerate([0] + [1] * length_scales)
        )
    )
    return theta, weight / weight.sum(), log_evidence(length_scales)(theta)


def statistics(theta):
    """What is looked at: every hyperparameter, and the log evidence, which prior and posterior differ most in."""
    evidence = log_evidence(theta.shape[-1] - 1)(theta)
    return np.concatenate([theta, evidence[..., None]], axis=-1)


@cache
def quartiles(length_scales):
    """For each statistic and quartile of the posterior: a number near it, and the share that is truly below."""
    grid, weight, evidence = quadrature(length_scales)
    posterior = weight * np.exp(evidence)
    posterior /= posterior.sum()
    found = []
    for known in statistics(grid).T:
        order = np.argsort(known, kind="stable")
        known, below = known[order], np.cumsum(posterior[order])
        for level in (0.25, 0.5, 0.75):
            # between two values of the grid
            at = np.searchsorted(below, level)
            above = at + np.flatnonzero(known[at:] > known[at] + 1e-9)[0]
            found.append((0.5 * (known[at] + known[above]), below[above - 1]))
    return np.reshape(found, (-1, 3, 2))


def assert_quantiles_of_places(theta):
    """The chains' share below each quartile of the posterior is what it ought to be."""
    from arviz_stats.base import array_stats

    drawn = np.moveaxis(statistics(theta), -1, 0)
    for found, known in zip(drawn, quartiles(theta.shape[-1] - 1), strict=True):
        for limit, true in known:
            share = (found < limit).astype(float)
            ess = array_stats.ess(share, chain_axis=0, draw_axis=1, method="mean")
            se = np.sqrt(true * (1 - true) / ess)
            assert se < LARGEST_ERROR
            assert abs(share.mean() - true) < 5.5 * se, (limit, true)
