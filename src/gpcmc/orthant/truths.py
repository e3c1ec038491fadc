"""Orthant probabilities and classification problems whose answer is known, on the log scale.

When the covariance has one factor, R_ij = d_i d_j off a unit diagonal, the orthant probability is
the one-dimensional integral of Eq. (63),

    I = integral of phi(u) prod_i Phi(s_i u) du,      s_i = d_i / sqrt(1 - d_i^2),

and a linear kernel of one feature is the same with s_i = y_i x_i (Eq. 66). The integrand is
log-concave, and its only sharp features are the steps of Phi(s_i u) at u = 0, of width 1 / |s_i|: see
`gpcmc.rectangle.closed` for the quadrature.

The denominator of Eq. (66) as printed is sqrt(2 pi) times the evidence; here phi(u) has the factor.

References
----------
Atiya, Fayed, Abdel-Gawad (2021), Eqs. (31), (63), (66). Das (1956). Dunnett and Sobel (1955).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtr

from gpcmc._threads import one_thread
from gpcmc._validation import (
    FloatArray,
    check_array,
    check_covariance,
    check_labels,
    check_positive,
    check_positive_int,
)
from gpcmc.likelihood.probit import hazard
from gpcmc.rectangle.closed import nodes, panels, refined

_AGREEMENT = 1e-11  # nats, between one set of panels and its halves
_FAR = 1e18  # beyond it nothing of a standard normal is left
_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class LinearKernelTruth:
    """The exact answer of a classification problem with one latent factor."""

    log_evidence: float  # log p(y | x), in nats
    probability: FloatArray  # (t,) P(y* = +1 | y) at the test inputs


@one_thread()
def one_factor_log_probability(d: ArrayLike) -> float:
    """Return log P(v > 0), in nats, for v ~ N(0, R), R_ij = d_i d_j off a unit diagonal (Eq. 63).

    The loadings d (n,) lie strictly between -1 and 1. The absolute error is below 1e-10, also when some |d_i| is within
    1e-12 of 1.
    """
    return _integrate(_steepness(d), np.empty(0))[0]


@one_thread()
def linear_kernel_truth(x: ArrayLike, y: ArrayLike, x_star: ArrayLike) -> LinearKernelTruth:
    """Return evidence and test probabilities for the kernel K = x x' and one feature (Eq. 66).

    x (n,) are training inputs, y (n,) labels -1/+1, x_star (t,) test inputs.
    """
    x = check_array("x", x, ndim=1)
    y = check_labels("y", y, len(x))
    if len(x) == 0:
        raise ValueError("x must hold at least one training input; got none")
    return LinearKernelTruth(*_integrate(y * x, check_array("x_star", x_star, ndim=1)))


def constant_kernel_truth(beta: float, n1: int, n2: int) -> LinearKernelTruth:
    """Return the limit of an endless length scale, K = beta everywhere (Eq. 31), and one probability for every input.

    A constant kernel is a linear one with every input at sqrt(beta); n1 patterns are labelled +1 and n2 -1, one of each
    at least.
    """
    root = np.sqrt(check_positive("beta", beta))
    n1, n2 = check_positive_int("n1", n1), check_positive_int("n2", n2)
    y = np.repeat([1.0, -1.0], [n1, n2])
    return linear_kernel_truth(np.full(n1 + n2, root), y, np.array([root]))


def two_dimensional(rho: float) -> float:
    """Return log P(v > 0) in two dimensions of correlation -1 < rho < 1, 1/4 + arcsin(rho) / (2 pi)."""
    if not -1.0 < rho < 1.0:
        raise ValueError(f"rho must lie strictly between -1 and 1; got {rho!r}")
    return float(np.log(np.arccos(-rho)) - _LOG_2PI)  # arccos keeps its digits for rho near -1


def three_dimensional(R: ArrayLike) -> float:
    """Return log P(v > 0) for a positive definite R (3, 3), 1/8 + (sum of the three arcsin(rho_ij)) / (4 pi)."""
    R = check_covariance("R", R, semidefinite=True)
    if R.shape != (3, 3) or np.linalg.eigvalsh(R)[0] <= 0:
        raise ValueError(f"R must be a 3 x 3 positive definite matrix; got shape {R.shape}")
    sd = np.sqrt(R.diagonal())
    rho = np.clip((R / np.outer(sd, sd))[np.triu_indices(3, 1)], -1.0, 1.0)
    return float(np.log(0.125 + np.arcsin(rho).sum() / (4.0 * np.pi)))


def equicorrelated_half(n: int) -> float:
    """Return log P(v > 0) = -log(n + 1) in n dimensions with every correlation 1/2."""
    return float(-np.log1p(check_positive_int("n", n)))


@one_thread()
def rectangle_rule_log_probability(d: ArrayLike, du: float, limit: float) -> float:
    """Return Eq. (63) for loadings d (n,) by the rectangle rule, errors and all: on a grid of step du up to limit.

    The grid begins at -limit. The published column N = 500 of Table 1 has a floor that does not fall with the number of
    samples; a truth computed on too coarse a grid would make one. This is that computation.
    """
    s = _steepness(d)
    du, limit = check_positive("du", du), check_positive("limit", limit)
    half = int(np.floor(limit / du + 1e-9))
    u = du * np.arange(-half, half + 1, dtype=np.float64)
    return float(logsumexp(_log_integrand(u, s)) + np.log(du))


def _steepness(d: ArrayLike) -> FloatArray:
    """Return s = d / sqrt(1 - d^2) from checked loadings."""
    d = check_array("d", d, ndim=1)
    if len(d) == 0 or (np.abs(d) >= 1.0).any():
        largest = np.max(np.abs(d), initial=0.0)
        raise ValueError(
            f"d must hold loadings strictly between -1 and 1; got {len(d)} with largest {largest!r}"
        )
    return d / np.sqrt((1.0 - d) * (1.0 + d))  # 1 - |d| is exact near 1, 1 - d^2 is not


def _log_integrand(u: FloatArray, s: FloatArray) -> FloatArray:
    """Return log of phi(u) prod_i Phi(s_i u) at every u, in pieces that bound the memory."""
    pieces = max(1, u.size * s.size // 2**20)
    steps = [log_ndtr(np.outer(part, s)).sum(axis=1) for part in np.array_split(u, pieces)]
    return np.concatenate(steps) - 0.5 * (u * u + _LOG_2PI)


def _integrate(s: FloatArray, s_star: FloatArray) -> tuple[float, FloatArray]:
    """Return log of the integral, and the means of Phi(s*_j u) under the normalised integrand."""

    def slope(u: float) -> float:
        return float(s @ hazard(s * u)[0]) - u

    def rule(edges: FloatArray) -> FloatArray:
        u, weight = nodes(edges)
        log_f = _log_integrand(u, s)
        value = logsumexp(log_f, b=weight)
        return np.append(value, (weight * np.exp(log_f - value)) @ ndtr(np.outer(u, s_star)))

    sharpest = 1.0 / max(1.0, np.max(np.abs(s)), np.max(np.abs(s_star), initial=0.0))
    edges, _ = panels(lambda u: _log_integrand(u, s), slope, (-_FAR, _FAR), [0.0], sharpest)
    found, gap = refined(rule, edges, _AGREEMENT)
    if gap > _AGREEMENT + 4e-15 * abs(found[0]):
        raise ArithmeticError(
            f"the quadrature of Eq. (63) has not settled: successive gap {gap:.3g}"
        )
    return float(found[0]), found[1:]
