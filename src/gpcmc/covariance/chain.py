"""A Markov chain of latent values along one input, and what Gaussian sites make of it: filter and smoother.

The Ornstein-Uhlenbeck process at sorted inputs: in units of its length scale, values at distance s have the correlation
exp(-s). With sites exp(nu_i f_i - tau_i f_i^2 / 2) it stays a chain, and all of it takes one way along it and one back.

References
----------
Rauch, Tung and Striebel (1965), AIAA Journal 3, 1445. Rasmussen and Williams (2006), appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray

_ROUNDING = 1e-12  # share of a variance


@dataclass(frozen=True, eq=False)
class SitedChain:
    """A chain with sites: still a Gaussian chain.

    Attributes
    ----------
    log_constant : float
        Of the integral of the prior's density times the sites.
    mean, variance : (n,) arrays
        Along the chain.
    correlation : (n - 1,) array
        Of neighbours.
    """

    log_constant: float
    mean: FloatArray
    variance: FloatArray
    correlation: FloatArray


@dataclass(frozen=True, eq=False)
class Chain:
    """An Ornstein-Uhlenbeck process at n inputs.

    Attributes
    ----------
    order : (n,) int array
        The patterns along the chain.
    at : (n,) array
        Where they are, in units of the length scale.
    variance : float
        Of each value.
    scale : float
        The length scale.
    """

    order: NDArray[np.intp]
    at: FloatArray
    variance: float
    scale: float

    @cached_property
    def steps(self) -> FloatArray:
        """Correlations of neighbours (n - 1,)."""
        return np.exp(-np.diff(self.at))

    def sited(self, nu: FloatArray, tau: FloatArray) -> SitedChain:
        """Return what sites (n,) of the patterns make of the chain."""
        nu, tau, n = nu[self.order], tau[self.order], len(nu)
        # by numbers of Python: each is used once, and arrays would take longer
        rho, own, weight = self.steps.tolist(), nu.tolist(), tau.tolist()
        left = (self.variance * -np.expm1(-2.0 * np.diff(self.at))).tolist()
        # mean and variance without and with the own site
        before, ahead = np.empty((2, n)), np.empty((2, n))
        m, p = 0.0, self.variance
        for i in range(n):
            if i:
                m, p = rho[i - 1] * m, rho[i - 1] ** 2 * p + left[i - 1]
            before[0, i], before[1, i] = m, p
            spread = 1.0 + weight[i] * p
            m, p = (m + p * own[i]) / spread, p / spread
            ahead[0, i], ahead[1, i] = m, p
        m0, p0 = before
        spreads = 1.0 + tau * p0
        log_constant = float(
            np.sum((nu * m0 - 0.5 * tau * m0**2 + 0.5 * nu**2 * p0) / spreads)
            - 0.5 * np.sum(np.log(spreads))
        )
        gain = self.steps * ahead[1, :-1] / before[1, 1:]
        back, mean, variance = gain.tolist(), ahead[0].copy(), ahead[1].copy()
        for i in range(n - 2, -1, -1):
            mean[i] += back[i] * (mean[i + 1] - before[0, i + 1])
            variance[i] += back[i] ** 2 * (variance[i + 1] - before[1, i + 1])
        correlation = np.minimum(gain * np.sqrt(variance[1:] / variance[:-1]), 1.0)
        return SitedChain(log_constant, mean, variance, correlation)

    def places(self, K_star: FloatArray) -> FloatArray:
        """Return where test values (t,) are, given their covariances with all patterns (n, t).

        The nearest pattern says how far it is from there, and its neighbours on which side.
        """
        K, t = K_star[self.order] / self.variance, np.arange(K_star.shape[1])
        near = np.argmax(K, axis=0)
        most = np.clip(K[near, t], 1e-300, 1.0)
        last = len(K) - 1
        # of values at one place, all are passed
        right = np.minimum(np.searchsorted(self.at, self.at[near], side="right"), last)
        left = np.maximum(np.searchsorted(self.at, self.at[near]) - 1, 0)
        # beyond the nearest one, what a neighbour has more than through it
        gain = [
            K[side, t] - most * np.exp(-np.abs(self.at[side] - self.at[near]))
            for side in (left, right)
        ]
        unclear = np.maximum(*gain) < _ROUNDING
        sign = np.where(
            np.where(unclear, self.at[near] == self.at[-1], gain[1] > gain[0]), 1.0, -1.0
        )
        return self.at[near] - sign * np.log(most)
