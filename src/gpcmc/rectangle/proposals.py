r"""Proposals for a rectangle: coordinates drawn in turn, each from a Gaussian inside its limits.

With v = m + L e and rows in units of L's diagonal d, a coordinate above its lower limit is x_i = (v_i - lower_i) /
d_i = c_i + e_i, c_i linear in the innovations before. Its innovation is drawn from N(a_i + b_i c_i, scale_i^2)
between the limits, and the sample's weight grows by the mass between them and by what corrects for the proposal.

*Tilted* (Botev 2017; mu = 0 is Genz's method): e_i from N(mu_i, 1), and the weight has the factor exp(mu_i^2 / 2 -
mu_i e_i).

*Twisted*: let q(v) be proportional to N(v; 0, R) prod_j s_j(v_j) with Gaussian sites s_j(v) = exp(nu_j v - tau_j
v^2/2) that stand for the limits. Coordinate i is drawn from its law under N(v; 0, R), the coordinates before it, its
own limits and the sites of the coordinates *after* it. Under q, v_i given v_1 .. v_{i-1} is N(mu_i, sigma_i^2) with
mu_i linear in what was drawn; without its own site it is N(m_i, s_i^2), the cavity; and the weight of a sample grows
by

    P(limits of v_i) / integral of s_i,    both under N(m_i, s_i^2).

The product of all is unbiased for P(rectangle) / integral of N(v; 0, R) prod_j s_j, whatever the sites. With the
sites of expectation propagation each quotient is near one wherever the earlier coordinates lie. It may grow without
bound, so that `mixture` mixes a defensive proposal in. This is the twisted particle filter of Whiteley and Lee (2014)
with the twisting functions of expectation propagation, and separation of variables in place of a filter's random
draws. Far out nu and tau are so large that terms would cancel to nothing; with the origin at the mean m that the
sites make, they are exp(nu' x - tau x^2 / 2) in x = v - m with nu' = R^-1 m, and their integral is exp(-m'R^-1 m / 2)
over the determinant's root.

References
----------
Genz (1992), Journal of Computational and Graphical Statistics 1, 141. Botev (2017), Journal of
the Royal Statistical Society B 79, 125. Whiteley and Lee (2014), Annals of Statistics 42, 115. Guarniero, Johansen
and Lee (2017), Journal of the American Statistical Association 112, 1636.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import Factor, Sited
from gpcmc.rectangle import limits
from gpcmc.rectangle._pass import advance

#: Returns uniform numbers for some coordinates of the samples of a pass.
Points = Callable[[slice], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """How coordinates are drawn."""

    factor: Factor
    coefficients: FloatArray  # (n, 10) as `_pass.advance` has them
    log_constant: float = 0.0  # log of the factor that the average weight is multiplied with

    def __len__(self) -> int:
        return len(self.factor)


def tilted(factor: Factor, mu: FloatArray, lower: FloatArray, upper: FloatArray) -> Proposal:
    """Return the proposal that draws innovations from N(mu, 1) inside the limits (n,)."""
    zero, one = np.zeros(len(mu)), np.ones(len(mu))
    law = np.column_stack([mu, zero, one, 0.5 * mu**2, zero, zero, mu])
    return _from(factor, law, lower, upper, 0.0)


def twisted(sited: Sited, tau: FloatArray, lower: FloatArray, upper: FloatArray) -> Proposal:
    """Return the proposal that Gaussian sites make, for limits (n,); LinAlgError if a site leaves no variance."""
    d = sited.factor.d
    t, u = tau * d**2, sited.slope * d
    if not (t < 1.0).all():
        raise np.linalg.LinAlgError("a site leaves its coordinate no variance of its own")
    variance = 1.0 / (1.0 - t)  # of the cavity; its mean is a + (1 + b) c
    a, b = -u * variance, variance - 1.0
    spread = 1.0 + t * variance
    # log of the site's integral, negated: a quadratic in c
    w0 = 0.5 * np.log(spread) + (0.5 * t * a**2 - u * a - 0.5 * u**2 * variance) / spread
    w1 = (t * a - u) * variance / spread
    w2 = 0.5 * t * variance**2 / spread
    law = np.column_stack([a, b, np.sqrt(variance), w0, w1, w2, np.zeros(len(t))])
    m = sited.mean
    return _from(sited.factor, law, lower - m, upper - m, sited.log_constant)


def _from(
    factor: Factor, law: FloatArray, lower: FloatArray, upper: FloatArray, log_constant: float
) -> Proposal:
    """Move a proposal for L e to coordinates above their lower limits."""
    a, b, scale, w0, w1, w2, k = law.T
    by = lower / factor.d
    moved = [-by, a + b * by, b, scale, w0 + by * (w1 + w2 * by), w1 + 2.0 * w2 * by, w2, k]
    with np.errstate(over="ignore"):
        width = (upper - lower) / factor.d
    return Proposal(factor, np.column_stack([*moved, factor.d, width]), log_constant)


@dataclass(slots=True)
class Pass:
    """One pass over the coordinates of some samples."""

    proposal: Proposal
    state: FloatArray  # what the factor knows of the innovations so far
    log_weights: FloatArray  # (m,) target over proposal, so far

    @classmethod
    def start(cls, proposal: Proposal, samples: int) -> Pass:
        """Begin with nothing drawn."""
        weights = np.full(samples, proposal.log_constant)
        return cls(proposal, proposal.factor.begin(samples), weights)

    def ahead(self, k: int) -> FloatArray:
        """Return what earlier blocks contribute to c in block k (rows, m)."""
        return self.proposal.factor.ahead(k, self.state)

    def draw(self, k: int, C: FloatArray, X: FloatArray, points: Points) -> None:
        """Draw block k into X (rows, m)."""
        factor = self.proposal.factor
        here, E = factor.parts[k], factor.place(k, self.state)
        E[...] = points(here)
        own = self.proposal.coefficients[here]
        advance(factor.within(k), own, C, E, X, self.log_weights, False, _hard)
        factor.follow(k, self.state, E)

    def weigh(self, k: int, C: FloatArray, X: FloatArray) -> None:
        """Weigh the coordinates X (rows, m) of block k, which another proposal drew."""
        factor = self.proposal.factor
        E, own = factor.place(k, self.state), self.proposal.coefficients[factor.parts[k]]
        advance(factor.within(k), own, C, E, X, self.log_weights, True, _hard)
        factor.follow(k, self.state, E)

    def between(
        self, k: int, C: FloatArray, X: FloatArray, ends: FloatArray, points: Points | None
    ) -> None:
        """Draw (or weigh, without points) a block of one coordinate between ends (2, m) of x, a sample each."""
        factor = self.proposal.factor
        here, E = factor.parts[k], factor.place(k, self.state)
        shift, a, b, scale, w0, w1, w2, slope, d, _ = self.proposal.coefficients[here.start]
        c = C[0] + shift
        centre = c + a + b * c
        low, high = (ends / d - centre) / scale
        if points is None:
            log_p = limits.log_mass(low, high)
            E[0] = X[0] / d - c
        else:
            log_p, z = limits.draw(low, high, points(here)[0])
            E[0] = centre - c + scale * z
            X[0] = d * (c + E[0])
        self.log_weights += log_p + w0 + c * (w1 + w2 * c) - slope * E[0]
        factor.follow(k, self.state, E)


def _hard(
    low: FloatArray, high: FloatArray, points: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return log masses and draws of intervals that are far out or narrow."""
    if points is None:
        return limits.log_mass(low, high), low
    return limits.draw(low, high, points)
