"""Orthant probabilities by separation of variables and randomised quasi-Monte Carlo.

P(v >= 0), v ~ N(0, R), is an integral over the unit cube once each coordinate is drawn by inversion
inside its half-line (Genz 1992). The points are Sobol' points, scrambled anew for each of several
independent randomisations, so that the estimate of the *probability* is unbiased and its standard
error is the spread between randomisations.

References
----------
Genz (1992), Journal of Computational and Graphical Statistics 1, 141. Owen (1998), ACM Transactions
on Modeling and Computer Simulation 8, 71. Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of
Machine Learning Research 25(72) (Pareto k-hat).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from gpcmc import _validation as validation
from gpcmc.orthant._separation import average_cdf, separate

Array = NDArray[np.float64]

#: Points that are worked on at once: 32 MB at 1000 coordinates.
CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Proposal:
    """How coordinates are drawn; see `_separation.separate`.

    Attributes
    ----------
    G : (n, n) array
        Lower triangular, unit diagonal.
    coefficients : (n, 8) array
        shift, a, b, scale, w0, w1, w2, d of each coordinate.
    log_constant : float
        Logarithm of the factor that the average weight is to be multiplied with.
    """

    G: Array
    coefficients: Array
    log_constant: float


@dataclass(frozen=True, slots=True)
class SeparationEstimate:
    """An orthant probability, and probabilities of test coordinates given the orthant.

    Attributes
    ----------
    log_probability : float
        Natural logarithm of the estimate.
    standard_error : float
        Its standard error, from the spread between randomisations.
    conditional, conditional_se : (t,) array
        P(v* >= 0 | v >= 0), a ratio of two estimates, and its standard errors.
    diagnostics : dict of str to float
        ``k_hat``, the Pareto shape of the largest weights: above 0.7 their average is not to be trusted;
        ``effective_samples`` and ``effective_fraction``, the effective samples over the samples:
        1/(1 + squared coefficient of variation of the weights).
    """

    log_probability: float
    standard_error: float
    conditional: Array
    conditional_se: Array
    diagnostics: dict[str, float]


def check_points(points: int, randomizations: int) -> None:
    """Refuse sizes that Sobol' points or a standard error cannot have.

    Raises
    ------
    ValueError
        If `points` is not a power of two, or there are fewer than two randomisations.
    """
    validation.check_positive_int("points", points)
    validation.check_positive_int("randomizations", randomizations)
    if points & (points - 1):
        raise ValueError(
            f"points must be a power of two, for the balance of Sobol' points; got {points}"
        )
    if randomizations < 2:
        raise ValueError(
            f"randomizations must be at least 2, for a standard error; got {randomizations}"
        )


@threadpool_limits.wrap(limits=1)
def estimate(
    proposal: Proposal, rows: Array, offset: Array, *, points: int, seeds: NDArray[np.int64]
) -> SeparationEstimate:
    """Average the weights, and the test coordinates' probabilities under them.

    Parameters
    ----------
    proposal : Proposal
    rows, offset : (t, n), (t,) array
        ``offset + rows e`` are the conditional means of the test coordinates over their conditional
        standard deviations. t may be 0.
    points : int
        Sobol' points of a randomisation, a power of two.
    seeds : (r,) int array
        One of each randomisation: equal seeds give equal bits on one machine.
    """
    n = len(proposal.G)
    log_weights = np.empty((len(seeds), points))
    log_Z = np.empty(len(seeds))  # of each randomisation: log average weight
    log_top = np.full(len(seeds), -np.inf)
    scores = np.zeros((len(seeds), len(offset)))  # sums of weights exp(. - top) times probability
    for r, seed in enumerate(seeds):
        engine = qmc.Sobol(n, rng=np.random.default_rng(seed))
        for start in range(0, points, CHUNK):
            count = min(CHUNK, points - start)
            E = np.ascontiguousarray(engine.random(count).T)
            log_w = separate(proposal.G, proposal.coefficients, E)
            log_weights[r, start : start + count] = log_w
            if len(offset):
                top = max(log_top[r], log_w.max())
                scores[r] *= np.exp(log_top[r] - top)
                log_top[r] = top
                means = rows @ E
                means += offset[:, None]
                scores[r] += average_cdf(means, np.exp(log_w - top))
        log_Z[r] = logsumexp(log_weights[r]) - np.log(points)
    log_mean = logsumexp(log_Z) - np.log(len(seeds))
    share = np.exp(log_Z - log_mean)  # each randomisation's estimate over their average
    scores *= np.exp(log_top - log_mean)[:, None] / points
    conditional = scores.mean(axis=0)
    return SeparationEstimate(
        log_probability=float(proposal.log_constant + log_mean),
        standard_error=float(np.std(share, ddof=1) / np.sqrt(len(seeds))),
        conditional=np.clip(conditional, 0.0, 1.0),
        conditional_se=np.std(scores - share[:, None] * conditional, axis=0, ddof=1)
        / np.sqrt(len(seeds)),
        diagnostics=weight_diagnostics(log_weights.ravel()),
    )


def weight_diagnostics(log_weights: Array) -> dict[str, float]:
    """Return Pareto k-hat (minus infinity where all weights are equal) and effective samples."""
    from arviz_stats.base import array_stats  # a second to import

    w = np.exp(log_weights - log_weights.max())
    effective = float(w.sum() ** 2 / np.sum(w**2))
    equal = np.ptp(log_weights) < 1e-9
    return {
        "k_hat": -np.inf if equal else float(array_stats.psislw(log_weights)[1]),
        "effective_samples": effective,
        "effective_fraction": effective / len(w),
    }
