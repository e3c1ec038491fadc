r"""Minimax tilting with resampling: the tilt is what twists a particle filter.

With v / d = G e, a tilt pays exp(-mu_i e_i) for each innovation e_i, where mu_i = sum_{j > i} s_j G_ji and s_j is the
slope of a tangent of the log mass of coordinate j. What is paid for is the tangent's gain, exp(s_j c_j), when j is
drawn. So after i coordinates a draw is expected to weigh

    W_i exp(sum_{j > i} s_j c_j),      c_j the mean of v_j / d_j given the first i when later innovations are zero,

W_i its weight so far: tangents bound what is left. Draws are resampled in proportion to that wherever it has made half
of them worthless, and begin again with what W_i is of it. The product of the averages is unbiased for the probability
(Del Moral 2004), as one average of all weights is, and varies far less where many coordinates share in the variance.
Under Vecchia's approximation c_j is linear in v: B' a = s / d gives the coefficients, from the last coordinate to the
first.

References
----------
Del Moral (2004), Feynman-Kac Formulae. Botev (2017), Journal of the Royal Statistical Society B 79, 125. Whiteley and
Lee (2014), Annals of Statistics 42, 115 (twisted filters). Kitagawa (1996), Journal of Computational and Graphical
Statistics 5, 1 (systematic resampling).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from gpcmc.rectangle import proposals
from gpcmc.rectangle.limits import moments
from gpcmc.rectangle.proposals import Pass, Proposal
from gpcmc.rectangle.tilt import minimax_tilt
from studies.cao2024.vecchia import VecchiaFactor

Array = np.ndarray
#: Share of effective draws below which they are resampled.
LEAST = 0.5


@dataclass(frozen=True, slots=True)
class Filter:
    """A tilted proposal and what it expects of the coordinates to come.

    Attributes
    ----------
    proposal : Proposal
    ahead : list of array
        After each block, the coefficients (i,) of the i coordinates so far in the log weight that is expected.
    """

    proposal: Proposal
    ahead: list[Array]

    @classmethod
    def of(cls, factor: VecchiaFactor, lower: Array, upper: Array, start: Array) -> Filter:
        """Tilt for limits (n,); `start` (n,) is where the search for the tilt may begin."""
        tilt = minimax_tilt(factor, lower, upper, starts=[start])
        slopes = moments(lower / factor.d - tilt.t, upper / factor.d - tilt.t)[1]
        gain, beta, ahead = slopes / factor.d, factor.beta, []
        a = np.zeros(len(factor))
        for here in reversed(factor.parts):
            ahead.append(a[: here.stop].copy())
            for j in range(here.stop - 1, here.start - 1, -1):
                own = slice(beta.indptr[j], beta.indptr[j + 1])
                a[beta.indices[own]] += (a[j] + gain[j]) * beta.data[own]
        return cls(proposals.tilted(factor, tilt.mu, lower, upper), ahead[::-1])

    def log_probability(self, draws: int, rng: np.random.Generator) -> float:
        """Estimate the logarithm with so many draws."""
        some, total = Pass.start(self.proposal, draws), 0.0
        blocks = self.proposal.factor.parts
        for k, here in enumerate(blocks):
            X = np.empty((here.stop - here.start, draws))
            some.draw(k, some.ahead(k), X, lambda own: rng.random((own.stop - own.start, draws)))
            if k == len(blocks) - 1:
                break
            state = some.state[: here.stop]
            expected = some.log_weights + self.ahead[k] @ state
            weights = np.exp(expected - expected.max())
            if weights.sum() ** 2 < LEAST * draws * (weights @ weights):
                total += float(expected.max() + np.log(weights.mean()))
                kept = systematic(weights, rng)
                # of the state in place: the pass goes on with it
                state[...] = state[:, kept]
                some.log_weights[:] = (some.log_weights - expected)[kept]
        return total + float(logsumexp(some.log_weights) - np.log(draws))


def systematic(weights: Array, rng: np.random.Generator) -> Array:
    """Return m indices, each as often as its share of the weights (m,) says, rounded up or down at random."""
    m, sums = len(weights), np.cumsum(weights)
    found: Array = np.searchsorted(sums, sums[-1] * (np.arange(m) + rng.random()) / m)
    return np.minimum(found, m - 1)
