"""Expectation propagation with all sites at once, for any covariance and likelihood with one latent value a pattern.

A sweep conditions the covariance on the sites and matches all moments: with the posterior's mean mu and variance, and
kept_i = 1 - tau_i variance_i, the cavities have

    variance s2 = variance / kept,      mean m = mu - s2 a,      a = K^-1 mu,

and the sites that match the moments of the tilted Gaussians follow from the first two derivatives of log Z_i in m
(`gpcmc.likelihood.tilted`). All formulas are in the cavity's variance, not its precision, so that a latent value of
prior variance zero is a case like any other, and tau >= 0 always.

The fixed points are those of Algorithm 3.5, which visits one site after the other. All sites at once count many times
what neighbours tell together: precisions jump between far too large and far too small, over orders of magnitude. So
they move in their logarithms, and beside them the slopes nu - tau mu at the posterior's mean, whose step is Newton's
whatever the precision. Anderson's extrapolation in these coordinates takes the place of damping: six to twelve sweeps
are usual, of one factorisation each. Far from the fixed point, and after a setback of the evidence, precisions go part
of the way, falls less of it than rises, for a precision that is too large is safe for the mean. A setback is taken
back. The work says how many sweeps were damped. Sites to start from are those of another posterior, or of the
covariance's own coarser forms, where a sweep costs little, or none.

References
----------
Rasmussen and Williams (2006), Algorithms 3.5 and 3.6, Eqs. (3.56)-(3.59), (3.65), (3.68)-(3.75), (5.27). Walker and Ni
(2011), SIAM Journal on Numerical Analysis 49, 1715 (Anderson). Van Gerven, Cseke, de Lange and Heskes (2010),
NeuroImage 50, 150 (parallel updates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._validation import FloatArray, check_option, check_positive, check_positive_int
from gpcmc.covariance.form import ConditionedFunction, Covariance, GradientMatrix
from gpcmc.gaussian.posterior import GaussianApproximation, GaussianPosterior
from gpcmc.likelihood import LIKELIHOODS, Likelihood
from gpcmc.posterior import ConvergenceError

_EPS = float(np.finfo(float).eps)
_ROUGH = 0.25  # the power of the tolerance that sites to start from are good to
_DEPTH = 8  # updates that the extrapolation looks back on
_RIDGE = 1e-14
_FLOOR = 1e-9  # of a precision in units of the prior's, below which its size does not matter
_FAR = 1.0  # mean change of log precisions from which the last updates say little of the next
_NEAR = 0.05  # below which the evidence is too flat to judge a step
_SETBACK = 0.1  # nats
_RETURNS = 3  # to the best point in a row
_LEAST = 0.2  # share of the way that a precision goes, at least
_LEAST_UP = 0.5  # the same where it rises
_FALL = 10.0  # by which a precision falls at most in a sweep
_ROUNDED = (
    1e-4  # most that rounding is taken to move a site: where it seems to be more, sites are far off
)
_MARGIN = 1.0 - 1e-12  # of the largest precision that a site may have


@dataclass(frozen=True, slots=True)
class ExpectationPropagation(GaussianApproximation):
    """Options of expectation propagation.

    Attributes
    ----------
    tolerance : float
        Sweeps stop when no site moves its own marginal by more than this (change of precision times variance; of nu
        times standard deviation), or than rounding does, or than the covariance's form lets it settle: 1e-4 with one of
        low rank or a sparse one. The evidence is flat in the sites, and good to about the square of it.
    max_sweeps : int
        Sweeps at most.
    likelihood : {"probit", "logistic"} or Likelihood
        p(y | f): Phi(y f), or 1 / (1 + exp(-y f)), whose moments are by quadrature; or an object, such as
        `gpcmc.likelihood.Ordinal`, which says what labels are.
    nested : bool
        Whether sweeps without a start begin with the covariance's coarser forms, where it has some: of a kernel's dense
        covariance of 500 patterns and more one of low rank, of one of low rank a quarter and a half of the rank, of a
        sparse one of 500 patterns and more a third of the neighbours. It changes the speed, and the result by less than
        the tolerance.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    tolerance: float = 1e-8
    max_sweeps: int = 500
    likelihood: Literal["probit", "logistic"] | Likelihood = "probit"
    nested: bool = True

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance)
        check_positive_int("max_sweeps", self.max_sweeps)
        if not isinstance(self.likelihood, Likelihood):
            check_option("likelihood", self.likelihood, tuple(LIKELIHOODS))

    @property
    def record(self) -> Likelihood:
        """The likelihood that the options name, or are."""
        known = self.likelihood
        return known if isinstance(known, Likelihood) else LIKELIHOODS[known]

    def check_labels(self, y: ArrayLike, n: int) -> FloatArray:
        """Return labels as the likelihood has them."""
        return self.record.check_labels(y, n)

    def approximate(
        self, covariance: Covariance, y: FloatArray, start: GaussianPosterior | None = None
    ) -> GaussianPosterior:
        """Match all moments until nothing moves; the result is that of one set of sites.

        Its work counts ``sweeps``, and those on coarser forms and those with shortened steps where there were any.
        """
        likelihood = self.record
        sites = np.zeros((2, len(y))) if start is None else start.sites
        coarse_sweeps = 0
        tolerance = max(self.tolerance, covariance.resolution)
        if start is None and self.nested:
            for coarser in covariance.coarser():
                rough = _iterate(coarser, likelihood, y, sites, tolerance**_ROUGH, self.max_sweeps)
                sites, coarse_sweeps = rough.sites, coarse_sweeps + rough.sweeps
        found = _iterate(covariance, likelihood, y, sites, tolerance, self.max_sweeps)
        counts = {"coarse_sweeps": coarse_sweeps, "damped_sweeps": found.damped}
        posterior = GaussianPosterior(
            covariance=covariance,
            log_evidence=found.log_evidence,
            mean=found.mean,
            a=found.a,
            conditioned=found.conditioned,
            likelihood=likelihood,
            y=y,
            method=self,
            work={"sweeps": found.sweeps} | {name: n for name, n in counts.items() if n},
        )
        if not found.settled:
            raise ConvergenceError(
                f"ep: sites still move by {found.moved:.3g} after {posterior.work['sweeps']} sweeps; raise max_sweeps "
                "or tolerance",
                posterior,
            )
        return posterior

    def gradient(
        self, covariance: Covariance, y: FloatArray, posterior: GaussianPosterior
    ) -> GradientMatrix:
        """Return a a' - R (Rasmussen and Williams, Eq. 5.27): at the fixed point log Z is flat in the sites."""
        return GradientMatrix.of(posterior.a, 0.0, posterior.conditioned)

    def answer(
        self, y: FloatArray, conditioned: Any, a: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The terms that match a posterior that has moved; see `GaussianApproximation.answer`."""
        m, cavity = cavities(conditioned, a, mean)
        tau, nu = self.record.tilted(y, m, cavity).sites(m)
        return tau, nu - tau * mean - a


@dataclass(frozen=True, slots=True)
class _State:
    """Where an iteration stopped: sites (2, n) of tau and nu, and the Gaussian that they make."""

    sites: FloatArray
    conditioned: ConditionedFunction
    a: FloatArray
    mean: FloatArray
    log_evidence: float
    moved: float
    settled: bool
    sweeps: int
    damped: int


@dataclass(frozen=True, slots=True)
class _Point:
    """Sites (2, n), those that match the moments there, the posterior's mean and evidence, and how far apart they are.

    `change` (n,) is that of log precisions, `share` (n,) what a site tells of its own marginal, `deviation` (n,) that
    marginal's, and `gap` the mean change.
    """

    sites: FloatArray
    target: FloatArray
    mean: FloatArray
    deviation: FloatArray
    log_evidence: float
    change: FloatArray
    share: FloatArray
    gap: float

    def slope(self, at: FloatArray) -> FloatArray:
        """The sites' slopes (n,) at latent values (n,)."""
        return self.sites[1] - self.sites[0] * at

    def slope_residual(self, at: FloatArray) -> FloatArray:
        """By how much the sites that match have other slopes."""
        return self.target[1] - self.target[0] * at - self.slope(at)


def _iterate(
    K: Covariance,
    likelihood: Likelihood,
    y: FloatArray,
    sites: FloatArray,
    tolerance: float,
    max_sweeps: int,
) -> _State:
    """Sweep from sites (2, n) until no marginal moves by more than the tolerance."""
    prior, largest = K.diagonal, _MARGIN * likelihood.largest_curvature
    floor = _FLOOR / np.maximum(prior, _FLOOR)
    past: list[_Point] = []
    best: _Point | None = None
    step, returns, damped = 1.0, 0, 0
    for sweep in range(1, max_sweeps + 1):
        tau, nu = sites
        conditioned = K.conditioned(tau)
        a, mean = conditioned.shifted(nu)
        variance = conditioned.variance
        m, cavity = cavities(conditioned, a, mean)
        tilted = likelihood.tilted(y, m, cavity)
        target = tilted.sites(m)
        joint = 1.0 + tau * cavity
        # Eqs. (3.73)-(3.75), in cavity variances
        squares = (m * (tau * m - 2.0 * nu) - nu**2 * cavity) / joint
        terms = tilted.log_z + 0.5 * (np.log(joint) + squares + nu * mean)
        log_evidence = float(terms.sum()) - 0.5 * conditioned.log_determinant
        deviation = np.sqrt(variance)
        moved = float(np.max(np.abs(target - sites) * np.array([variance, deviation])))
        # rounding of K leaves about eps sqrt(n) K_ii in a variance; the cavity magnifies it
        rounding = _EPS * np.sqrt(len(y)) * np.max(tau * prior / conditioned.kept)
        settled = moved <= tolerance + min(4.0 * rounding, _ROUNDED)
        if settled or sweep == max_sweeps:
            break
        change = np.log((target[0] + floor) / (tau + floor))
        share = np.maximum(target[0], tau) * variance
        gap = float(share @ np.abs(change)) / max(float(share.sum()), 1e-300)
        here = _Point(sites, target, mean, deviation, log_evidence, change, share, gap)
        if best is None or log_evidence >= best.log_evidence:
            best, returns, step = here, 0, min(1.5 * step, 1.0)
        elif log_evidence < best.log_evidence - _SETBACK and gap > max(best.gap, _NEAR):
            step, past = max(0.5 * step, _LEAST), []
            if returns < _RETURNS:
                here, returns = best, returns + 1
            else:
                best, returns = here, 0
        else:
            returns = 0
        damped += step < 1.0
        past = [] if here.gap > _FAR else [*past[-_DEPTH:], here]
        sites = _next(past or [here], floor, step, largest)
    return _State(sites, conditioned, a, mean, log_evidence, moved, settled, sweep, damped)


def _next(past: Sequence[_Point], floor: FloatArray, step: float, largest: float) -> FloatArray:
    """Return the sites (2, n) that follow on the last point, extrapolated from it and those before."""
    here = past[-1]
    points = np.array([[np.log(one.sites[0] + floor), one.slope(here.mean)] for one in past])
    moves = np.array([[one.change, one.slope_residual(here.mean)] for one in past])
    point, move = points[-1], moves[-1]
    if len(past) > 1:
        gamma = _least(moves * np.array([here.share, here.deviation]))
        point = point - np.einsum("k,kij->ij", gamma, points[1:] - points[:-1])
        move = move - np.einsum("k,kij->ij", gamma, moves[1:] - moves[:-1])
    rise = move[0]
    fall = np.maximum(
        (min(step, _LEAST) if here.gap > _FAR else step) * rise, -step * np.log(_FALL)
    )
    taken = np.where(rise > 0.0, max(step, _LEAST_UP) * rise, fall)
    tau = np.exp(np.minimum(point[0] + taken, np.log(largest + floor))) - floor
    tau = np.clip(tau, 0.0, largest)
    # with less than the precision that belongs to it a slope would carry the mean too far
    slope = point[1] + np.exp(np.minimum(taken - rise, 0.0)) * move[1]
    return np.array([tau, slope + tau * here.mean])


def cavities(
    conditioned: ConditionedFunction, a: FloatArray, mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return means and variances (n,) of the marginals with their own site taken out (Eq. 3.56)."""
    kept = conditioned.kept
    if not (kept > 0.0).all():
        raise ValueError(
            "K must have smaller variances: with its largest, the sites of expectation "
            "propagation are lost in rounding; lower the kernel's variance"
        )
    cavity = conditioned.variance / kept
    return mean - cavity * a, cavity


def _least(residuals: FloatArray) -> FloatArray:
    """Return the weights (k - 1,) of successive differences that make the last of k residuals least."""
    residuals = residuals.reshape(len(residuals), -1)
    change = residuals[1:] - residuals[:-1]
    gram = change @ change.T
    gram.flat[:: len(gram) + 1] += _RIDGE * np.trace(
        gram
    )  # near the end updates are nearly parallel
    found: FloatArray = np.linalg.solve(gram, change @ residuals[-1])
    return found
