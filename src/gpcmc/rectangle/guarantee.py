"""Intervals for a mean of bounded variables that hold at any number of them, without a normal approximation.

The wealth of a gambler who bets on a mean above m, K(m) = prod_i (1 + l_i (x_i - m)), each stake l_i in [0, 1/m)
chosen before x_i is seen, has expectation at most one where m is the mean or above it. By Markov's inequality K(m)
reaches 1 / a with probability at most a, so the m at which it does are left out. The stakes are those of
Waudby-Smith and Ramdas (2023), whose interval is never much wider than the empirical Bernstein's (Maurer and Pontil
2009), and narrower where the bound is far above the mean.

What is assumed: the x_i are independent, each in [0, 1], each with that mean. Here they are weights over their proven
bound, from independent draws; that a pseudo-random generator's draws are independent is the only belief.

References
----------
Maurer and Pontil (2009), Conference on Learning Theory. Waudby-Smith and Ramdas (2023), Journal of the Royal
Statistical Society B 86, 1.
"""

from __future__ import annotations

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.rectangle.mixture import Mixture

_BISECTIONS = 60
_CHUNK = 4096  # draws at once
_MOST = 0.5  # of the largest stake that could ruin the gambler in one step
# The bound on the weights is proven for real numbers; this is what rounding may add, in nats.
_ROUNDING = 1e-9


def mean_interval(x: FloatArray, confidence: float) -> tuple[float, float]:
    """Return an interval for the mean of independent variables x (m,), each in [0, 1].

    It covers the mean with at least the probability `confidence`, each side missing with at most half of the rest.
    """
    alpha = 0.5 * (1.0 - confidence)
    stakes = _stakes(x, alpha)
    low = _limit(x, stakes, alpha)
    high = 1.0 - _limit(1.0 - x, stakes, alpha)
    return low, high


def _stakes(x: FloatArray, alpha: float) -> FloatArray:
    """Return stakes, each by the variables before."""
    m = len(x)
    k = np.arange(1, m + 1)
    mean = (0.5 + np.cumsum(x)) / (k + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (k + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.sqrt(2.0 * np.log(1.0 / alpha) / (m * before))


def _limit(x: FloatArray, stakes: FloatArray, alpha: float) -> float:
    """Return the least mean that the gambler on a larger one cannot rule out."""
    target = -np.log(alpha)

    def ruled_out(m: float) -> bool:
        bet = np.minimum(stakes, _MOST / m)
        return float(np.sum(np.log1p(bet * (x - m)))) >= target

    # wealth falls with m; the search is in log m, for a mean may be far below the bound
    low, high = -700.0, 0.0
    if not ruled_out(np.exp(low)):
        return 0.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if ruled_out(np.exp(middle)) else (low, middle)
    return float(np.exp(low))


def log_interval(
    mixture: Mixture, draws: int, confidence: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return an interval for the log of the probability, from so many new and independent draws."""
    counts = np.array(mixture.counts(8))
    share = counts / counts.sum()
    parts = []
    for start in range(0, draws, _CHUNK):
        count = min(_CHUNK, draws - start)
        # which sampler draws is random too: the weights are identically distributed
        mine = rng.random(count) < share[0]
        block = np.empty(count)
        for k in range(len(counts)):
            here = mine if k == 0 else ~mine
            if here.any():
                U = rng.random((len(mixture), int(here.sum())))
                block[here] = mixture.weigh(k, U.shape[1], U.__getitem__, np.log(share))[0]
        parts.append(block)
    bound = mixture.log_bound + _ROUNDING
    x = np.minimum(np.exp(np.concatenate(parts) - bound), 1.0)
    low, high = mean_interval(x, confidence)
    with np.errstate(divide="ignore"):
        return bound + float(np.log(low)), bound + float(np.log(high))
