"""Truths for the tests: closed forms and brute quadrature, none of it from the package."""

from functools import cache
from pathlib import Path

import mpmath
import numpy as np
from scipy.special import ndtr
from scipy.stats import kstest, norm

REFERENCE = Path(__file__).parent / "reference"


_gauss_legendre = cache(np.polynomial.legendre.leggauss)


def reference(case, truth=None):
    """Return X, y, X_star, log Z and test probabilities of a stored case (L, L3 or R)."""
    train, test, answer = (
        np.loadtxt(REFERENCE / f"{name}.csv", delimiter=",")
        for name in (f"{case}_train", f"{case}_test", truth or f"{case}_truth")
    )
    return train[:, :-1], train[:, -1], test[:, :-1], answer[0], answer[1:]


def log_half_plane(rho):
    """Return log P(v1 > 0, v2 > 0) at correlation rho, 40 digits."""
    with mpmath.workdps(40):
        return mpmath.log(mpmath.acos(-rho) / (2 * mpmath.pi))


def log_one_factor(s, counts):
    """Return log of the integral of phi(u) prod_i Phi(s_i u)^counts_i, 25 digits, by tanh-sinh."""
    with mpmath.workdps(25):
        s = [mpmath.mpf(float(v)) for v in s]

        def log_f(u):
            steps = (
                int(c) * mpmath.log(mpmath.ncdf(v * u)) for v, c in zip(s, counts, strict=True)
            )
            return -u * u / 2 + mpmath.fsum(steps)

        # breakpoints: every decade towards the steps at zero, each halved once
        scale = [10.0**k for k in range(-int(mpmath.log10(max(abs(v) for v in s))) - 2, 1)]
        half = sorted({*scale, *(3 * v for v in scale), 1.5, 2, 4, 6, 9, 14})
        grid = [-v for v in reversed(half)] + [0] + half
        peak = max(log_f(mpmath.mpf(u)) for u in grid)
        # only where the integrand is within 80 nats of the best grid point, and one interval around
        near = [k for k, u in enumerate(grid) if log_f(mpmath.mpf(u)) > peak - 80]
        points = grid[max(near[0] - 1, 0) : near[-1] + 2]
        total = mpmath.quad(lambda u: mpmath.exp(log_f(u) - peak), points)
        return mpmath.log(total / mpmath.sqrt(2 * mpmath.pi)) + peak


def tilted_moments(y, mean, variance):
    """Return log mass, mean and variance of N(f; mean, variance) Phi(y f), by Gauss-Legendre on 40 panels."""
    node, weight = _gauss_legendre(50)
    z = (0.3 * node + np.linspace(-11.7, 11.7, 40)[:, None]).ravel()
    f = mean + np.sqrt(variance) * z
    mass = np.tile(0.3 * weight, 40) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) * ndtr(y * f)
    total = mass.sum()
    centre = mass @ f / total
    return np.log(total), centre, mass @ (f - centre) ** 2 / total


def two_point_posterior(K, y, k_star, k_star_star, at=(0, 1)):
    """Return log Z, E[f] and P(y* = +1 | y) for patterns at two inputs, by a dense grid over f; `at` is whose input."""
    node, weight = _gauss_legendre(300)
    z = 10.0 * node
    density = 10.0 * weight * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    f = np.linalg.cholesky(K) @ np.stack(np.meshgrid(z, z, indexing="ij")).reshape(2, -1)
    mass = np.outer(density, density).ravel() * np.prod(ndtr(y[:, None] * f[list(at)]), axis=0)
    weights = np.linalg.solve(K, k_star)
    spread = k_star_star - k_star @ weights
    p = mass @ ndtr(weights @ f / np.sqrt(1.0 + spread)) / mass.sum()
    return np.log(mass.sum()), f @ mass / mass.sum(), p


def chain_log_evidence(v, correlations, y):
    """Return log p(y) of a stationary Gaussian chain of variance v, one latent value integrated after the other."""
    node, weight = _gauss_legendre(200)
    f = 9.0 * np.sqrt(v) * node
    weight = 9.0 * np.sqrt(v) * weight
    mass, log_p = norm.pdf(f, 0.0, np.sqrt(v)) * weight * ndtr(y[0] * f), 0.0
    for rho, label in zip(correlations, y[1:], strict=True):
        step = norm.pdf(f[:, None], rho * f, np.sqrt(v * (1.0 - rho**2)))
        log_p += np.log(mass.sum())
        mass = (step @ (mass / mass.sum())) * weight * ndtr(label * f)
    return log_p + np.log(mass.sum())


def chain_truth(v, scale, x, y, x_star):
    """Return log Z and P(y* = +1 | y) for the covariance v exp(-|x - x'| / scale) at sorted inputs x."""

    def log_evidence(x, y):
        return chain_log_evidence(v, np.exp(-np.diff(x) / scale), y)

    log_z, p = log_evidence(x, y), []
    for one in x_star:
        k = int(np.searchsorted(x, one))
        p.append(np.exp(log_evidence(np.insert(x, k, one), np.insert(y, k, 1.0)) - log_z))
    return log_z, np.array(p)


def central_differences(function, x, h=1e-4):
    """Return the gradient of a function at x, by differences over 2 h."""
    return np.array([(function(x + e) - function(x - e)) / (2 * h) for e in h * np.eye(len(x))])


def band(R, level=1e-6):
    """Return how far an empirical distribution function of R draws is from its own with probability `level`."""
    return np.sqrt(np.log(2 / level) / (2 * R))


def distance(sample, cdf):
    """Return the largest distance between a sample's distribution function and `cdf`."""
    return kstest(sample, cdf).statistic
