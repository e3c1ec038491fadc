"""Suspects for the floor of Table 1: inexact truths, and the sampler's recursion in single precision.

AFA do not say which quadrature gave the truth of Eq. (63). `RULES` has fixed grids, and adaptive rules as mathematical
software offers them. The integrand is either the product as it is, about 10^-150 for N = 500, or scaled so that its
peak is one, as AFA say that they did. An adaptive rule with an absolute tolerance stops where its panels agree to
within the tolerance. A narrow peak between its nodes can then go unseen.

The conditional moments of the sampler (Eqs. 48 to 51) are another suspect. Rounding gives slightly wrong moments. They
belong to another covariance, whose orthant has another probability, and the sampler converges to that one.

References
----------
Atiya, Fayed, Abdel-Gawad (2021), section 6.1, Eqs. (48)-(51), (63). Gander and Gautschi (2000), Adaptive quadrature
revisited, BIT 40, for the rules of Simpson and Lobatto. Shampine (2008), Vectorized adaptive quadrature in MATLAB, J.
Comput. Appl. Math. 211, for that of Gauss and Kronrod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.orthant.truths import one_factor_log_probability
from studies.atiya2021.problems import one_factor
from studies.common.rows import Line
from studies.common.seeds import generator

Integrand = Callable[[FloatArray], FloatArray]


class Rule(NamedTuple):
    """How a truth is computed."""

    method: Literal["grid", "simpson", "lobatto", "kronrod"]
    fineness: float  # absolute tolerance; of a grid its step
    limit: float = 10.0  # the range is [-limit, limit]
    scaled: bool = True  # so that the peak is one
    precision: DTypeLike = np.float64  # of a grid


#: Rules by name.
RULES = {
    "grid-0.1": Rule("grid", 0.1),
    "grid-0.07": Rule("grid", 0.07),
    "grid-single": Rule("grid", 0.01, precision=np.float32),
    "grid-range-3": Rule("grid", 0.01, 3.0),
    "kronrod-as-is": Rule("kronrod", 1e-10, scaled=False),
    "kronrod-1e-10": Rule("kronrod", 1e-10),
    "lobatto-as-is": Rule("lobatto", 1e-6, scaled=False),
    "lobatto-1e-3": Rule("lobatto", 1e-3),
    "lobatto-1e-6": Rule("lobatto", 1e-6),
    "simpson-as-is": Rule("simpson", 1e-6, scaled=False),
    "simpson-1e-3": Rule("simpson", 1e-3),
    "simpson-1e-4": Rule("simpson", 1e-4),
    "simpson-1e-4-range-8": Rule("simpson", 1e-4, 8.0),
    "simpson-1e-4-range-3": Rule("simpson", 1e-4, 3.0),
    "simpson-1e-5": Rule("simpson", 1e-5),
    "simpson-1e-6": Rule("simpson", 1e-6),
}
#: Precisions of the recursion, by name.
RECURSIONS = {"recursion-single": np.float32, "recursion-double": np.float64}

_DRAWS = 400  # of the orthant, for the effect of a recursion
_MESH = np.linspace(-1.5, 1.5, 6001)  # has the peak, and the law of u
_RELATIVE = 1e-6  # tolerance of Gauss-Kronrod
_MOST = 60  # halvings of a panel

_ALPHA, _BETA = (2.0 / 3.0) ** 0.5, 0.2**0.5
_LOBATTO = np.array([-1.0, -_ALPHA, -_BETA, 0.0, _BETA, _ALPHA, 1.0])
_LOBATTO4 = np.array([1.0, 0.0, 5.0, 0.0, 5.0, 0.0, 1.0]) / 6.0
_LOBATTO7 = np.array([77.0, 432.0, 625.0, 672.0, 625.0, 432.0, 77.0]) / 1470.0
_HALF_NODES = [0.9914553711208126, 0.9491079123427585, 0.8648644233597691, 0.7415311855993944]
_HALF_NODES += [0.5860872354676911, 0.4058451513773972, 0.2077849550078985]
_HALF_WEIGHTS = [0.0229353220105292, 0.0630920926299786, 0.1047900103222502, 0.1406532597155259]
_HALF_WEIGHTS += [0.1690047266392679, 0.1903505780647854, 0.2044329400752989]
_KRONROD = np.array([*(-x for x in _HALF_NODES), 0.0, *_HALF_NODES[::-1]])
_KRONROD15 = np.array([*_HALF_WEIGHTS, 0.2094821410847278, *_HALF_WEIGHTS[::-1]])
_GAUSS7 = np.zeros(15)
_GAUSS7[1::2] = np.polynomial.legendre.leggauss(7)[1]


def adaptive_simpson(f: Integrand, low: float, high: float, tolerance: float) -> float:
    """Integrate by Simpson's rule; a panel is halved until its estimate moves by no more than the tolerance.

    The first seven nodes are uneven, as in MATLAB's ``quad``: the ends, the middle, and .13579 and .27158 of the range
    from each end.
    """
    h = 0.13579 * (high - low)
    x = np.array([low, low + h, low + 2 * h, (low + high) / 2, high - 2 * h, high - h, high])
    y = f(x)
    ends, values = (
        np.stack([x[0:5:2], x[1:6:2], x[2:7:2]]),
        np.stack([y[0:5:2], y[1:6:2], y[2:7:2]]),
    )
    total = 0.0
    for _ in range(_MOST):
        width = ends[2] - ends[0]
        new = (ends[:2] + ends[1:]) / 2
        inner = f(new.ravel()).reshape(new.shape)
        coarse = width / 6 * (values[0] + 4 * values[1] + values[2])
        fine = width / 12 * (values[0] + 4 * inner[0] + 2 * values[1] + 4 * inner[1] + values[2])
        again = np.abs(fine - coarse) / 15 > tolerance
        total += float(np.sum((fine + (fine - coarse) / 15)[~again]))
        if not again.any():
            break
        ends, values, new, inner = (of[:, again] for of in (ends, values, new, inner))
        ends, values = (
            np.hstack([[old[0], mid[0], old[1]], [old[1], mid[1], old[2]]])
            for old, mid in ((ends, new), (values, inner))
        )
    return total


def adaptive_lobatto(f: Integrand, low: float, high: float, tolerance: float) -> float:
    """Integrate by Lobatto's rule of four nodes and its extension of seven; panels are divided at these."""
    edges = (low + high) / 2 + (high - low) / 2 * _LOBATTO
    left, right, total = edges[:-1], edges[1:], 0.0
    for _ in range(_MOST):
        half = (right - left) / 2
        x = ((left + right) / 2)[:, None] + half[:, None] * _LOBATTO
        y = f(x.ravel()).reshape(x.shape)
        fine = half * (y @ _LOBATTO7)
        again = np.abs(fine - half * (y @ _LOBATTO4)) > tolerance
        total += float(fine[~again].sum())
        if not again.any():
            break
        left, right = x[again, :-1].ravel(), x[again, 1:].ravel()
    return total


def adaptive_kronrod(f: Integrand, low: float, high: float, tolerance: float) -> float:
    """Integrate by Gauss and Kronrod's 7 and 15 nodes, with ten panels at first, as MATLAB's ``quadgk`` does.

    Its relative tolerance of 1e-6 counts where it is the larger one.
    """
    edges = np.linspace(low, high, 11)
    left, right, done, doubt = edges[:-1], edges[1:], 0.0, 0.0
    for _ in range(_MOST):
        half = (right - left) / 2
        x = ((left + right) / 2)[:, None] + half[:, None] * _KRONROD
        y = f(x.ravel()).reshape(x.shape)
        fine = half * (y @ _KRONROD15)
        error = np.abs(fine - half * (y @ _GAUSS7))
        value = done + float(fine.sum())
        allowed = max(tolerance, _RELATIVE * abs(value))
        again = error > 2 * allowed / (high - low) * half
        if doubt + error.sum() <= allowed or not again.any():
            return value
        done, doubt = done + float(fine[~again].sum()), doubt + float(error[~again].sum())
        middle = ((left + right) / 2)[again]
        left, right = np.r_[left[again], middle], np.r_[middle, right[again]]
    return value


ADAPTIVE = {
    "simpson": adaptive_simpson,
    "lobatto": adaptive_lobatto,
    "kronrod": adaptive_kronrod,
}


def log_integrand(u: FloatArray, d: FloatArray, precision: DTypeLike = np.float64) -> FloatArray:
    """Return log of phi(u) prod_i Phi(s_i u), s_i = d_i / sqrt(1 - d_i^2), shape (u,), all of it in a precision."""
    u, d = u.astype(precision), d.astype(precision)
    s = d / np.sqrt((1 - d) * (1 + d))
    half = np.asarray(0.5, dtype=precision)
    return log_ndtr(np.outer(u, s)).sum(axis=1) - half * (
        u * u + np.log(2 * np.pi).astype(precision)
    )


@one_thread()
def log_truth(d: FloatArray, rule: Rule, peak: float) -> float:
    """Return log of Eq. (63) by a rule, nats; -inf if the rule found nothing. `peak` is that of `log_integrand`."""
    if rule.method == "grid":
        half = int(np.floor(rule.limit / rule.fineness + 1e-9))
        logs = log_integrand(rule.fineness * np.arange(-half, half + 1.0), d, rule.precision)
        top = logs.max()
        return float(top + np.log(np.exp(logs - top).sum() * logs.dtype.type(rule.fineness)))
    top = peak if rule.scaled else 0.0
    value = ADAPTIVE[rule.method](
        lambda u: np.exp(log_integrand(u, d) - top), -rule.limit, rule.limit, rule.fineness
    )
    return top + float(np.log(value)) if value > 0 else -np.inf


def recursive_moments(cov: FloatArray, precision: DTypeLike) -> tuple[FloatArray, FloatArray]:
    """Return the conditional moments of Eqs. (48) to (51): b_i in the rows of an (n, n) array, and sigma_i^2 (n,)."""
    R = cov.astype(precision)
    n = len(R)
    Q, b, variance = np.zeros_like(R), np.zeros_like(R), np.empty_like(R[0])
    Q[0, 0], variance[0] = 1 / R[0, 0], R[0, 0]
    for i in range(1, n):
        b[i, :i] = Q[:i, :i] @ R[:i, i]
        variance[i] = R[i, i] - R[:i, i] @ b[i, :i]
        Q[:i, :i] += np.outer(b[i, :i], b[i, :i]) / variance[i]
        Q[:i, i] = Q[i, :i] = -b[i, :i] / variance[i]
        Q[i, i] = 1 / variance[i]
    return b.astype(np.float64), variance.astype(np.float64)


def one_factor_moments(d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the same moments in closed form: the inverse of R is a diagonal less a matrix of rank one."""
    weight = d / ((1 - d) * (1 + d))
    before = np.concatenate([[0.0], np.cumsum(d * weight)[:-1]])
    b = np.tril(np.outer(d / (1 + before), weight), -1)
    return b, 1 - d * d * before / (1 + before)


def orthant_draws(d: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return independent draws (draws, n) of v ~ N(0, R) given v > 0, by its factor u."""
    logs = log_integrand(_MESH, d)
    law = np.cumsum(np.exp(logs - logs.max()))
    u = np.interp(rng.random(draws), law / law[-1], _MESH)
    root = np.sqrt((1 - d) * (1 + d))
    mean = np.outer(u, d) / root
    below = ndtri_exp(np.log1p(-rng.random(mean.shape)) + log_ndtr(mean))
    return (mean - below) * root


@one_thread()
def recursion_shift(d: FloatArray, precision: DTypeLike, rng: np.random.Generator) -> float:
    """Return by how many nats log P(v > 0) moves when the moments come from the recursion.

    It is the log of the mean ratio of both densities, over draws from the orthant; NaN if a variance is negative.
    """
    exact = one_factor_moments(d)
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)
    found = recursive_moments(cov, precision)
    if (found[1] <= 0).any():
        return np.nan
    v = orthant_draws(d, _DRAWS, rng)
    logs = [
        -0.5 * (((v - v @ b.T) ** 2 / variance).sum(axis=1) + np.log(variance).sum())
        for b, variance in (found, exact)
    ]
    return float(logsumexp(logs[0] - logs[1]) - np.log(_DRAWS))


def inexact(data: str, dimension: int) -> list[Line]:
    """Return what every rule and recursion makes of one problem of Experiment 1.

    Parameters
    ----------
    data : str
        Seed of the problem.
    dimension : int
        N.

    Returns
    -------
    list of dict
        A line each: ``rule``, ``truth`` (nats), and ``off``, by how many nats the rule misses it; for a recursion, by
        how many nats the estimates converge to a wrong value.
    """
    d = one_factor(data, dimension)
    truth = one_factor_log_probability(d)
    peak = float(log_integrand(_MESH, d).max())
    off = {name: log_truth(d, rule, peak) - truth for name, rule in RULES.items()}
    for name, precision in RECURSIONS.items():
        off[name] = recursion_shift(d, precision, generator(f"{data}/draws"))
    return [{"rule": name, "truth": truth, "off": value} for name, value in off.items()]
