"""Expectation propagation with all sites at once, for any covariance and likelihood with one latent value a pattern.

A sweep conditions the covariance on the sites and matches all moments: with the posterior's mean mu and variance, and
kept_i = 1 - tau_i variance_i, the cavities have

    variance s2 = variance / kept,      mean m = mu - s2 a,      a = K^-1 mu,

and the sites that match the moments of the tilted Gaussians follow from the first two derivatives of log Z_i in m
(`gpcmc.likelihood.tilted`). All formulas are in the cavity's variance, not its precision, so that a latent value of
prior variance zero is a case like any other, and tau >= 0 always.

The fixed points are those of Algorithm 3.5, which visits one site after the other. Anderson's extrapolation takes the
place of damping: six to twelve sweeps, of one factorisation each. Where sites circle, the steps get shorter; where that
does not help in 150 sweeps, the iteration begins again and moves an eighth of the sites at a time, which is nearly
sequential. The work says how many sweeps were damped, or partial. Sites to start from are those of another posterior,
or of the covariance's own coarser forms, where a sweep costs little, or none.

References
----------
Rasmussen and Williams (2006), Algorithms 3.5 and 3.6, Eqs. (3.56)-(3.59), (3.65), (3.68)-(3.75), (5.27). Walker and Ni
(2011), SIAM Journal on Numerical Analysis 49, 1715 (Anderson). Van Gerven, Cseke, de Lange and Heskes (2010),
NeuroImage 50, 150 (parallel updates).
"""

from __future__ import annotations

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
_DEPTH = 4  # updates that the extrapolation looks back on
_RIDGE = 1e-14
_FAR = 2.0  # where sites move so much, the last updates say little of the next
_PATIENCE = 8  # sweeps without a record before the steps get shorter
_FIRST = 150  # sweeps before another beginning, from nothing and with few sites at a time
_GROUPS = 8  # a sweep then moves every eighth site
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
        first, partial = min(self.max_sweeps, _FIRST), 0
        found = _iterate(covariance, likelihood, y, sites, tolerance, first)
        if not found.settled and first < self.max_sweeps:
            nothing, left = np.zeros((2, len(y))), self.max_sweeps - first
            found = _iterate(covariance, likelihood, y, nothing, tolerance, left, _GROUPS)
            partial = found.sweeps
        counts = {
            "coarse_sweeps": coarse_sweeps,
            "damped_sweeps": found.damped,
            "partial_sweeps": partial,
        }
        posterior = GaussianPosterior(
            covariance=covariance,
            log_evidence=found.log_evidence,
            mean=found.mean,
            a=found.a,
            conditioned=found.conditioned,
            likelihood=likelihood,
            y=y,
            method=self,
            work={"sweeps": found.sweeps + (first if partial else 0)}
            | {name: n for name, n in counts.items() if n},
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


def _iterate(
    K: Covariance,
    likelihood: Likelihood,
    y: FloatArray,
    sites: FloatArray,
    tolerance: float,
    max_sweeps: int,
    groups: int = 1,
) -> _State:
    """Sweep from sites (2, n) until no marginal moves by more than the tolerance; a sweep moves one group of sites."""
    tried: list[FloatArray] = []
    matched: list[FloatArray] = []
    prior, largest = K.diagonal, _MARGIN * likelihood.largest_curvature
    best, since, step, damped = np.inf, 0, 1.0, 0
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
        scale = np.array([variance, np.sqrt(variance)])
        moved = float(np.max(np.abs(target - sites) * scale))
        # rounding of K leaves about eps sqrt(n) K_ii in a variance; the cavity magnifies it
        rounding = _EPS * np.sqrt(len(y)) * np.max(tau * prior / conditioned.kept)
        settled = moved <= tolerance + 4.0 * rounding
        if settled or sweep == max_sweeps:
            break
        if groups > 1:
            own = slice(sweep % groups, None, groups)
            sites = sites.copy()
            sites[:, own] = target[:, own]
            continue
        since = 0 if moved < best else since + 1
        best = min(best, moved)
        if since >= _PATIENCE:  # it circles: shorter steps, and a fresh start of the extrapolation
            step, since, best, tried, matched = 0.5 * step, 0, moved, [], []
        damped += step < 1.0
        tried, matched = [*tried[-_DEPTH:], sites], [*matched[-_DEPTH:], target]
        sites = sites + step * (target - sites)
        if moved > _FAR:
            tried, matched = [], []
        elif len(tried) > 1:
            sites = _extrapolated(tried, matched, scale, step)
        sites[0] = np.clip(sites[0], 0.0, largest)
    return _State(sites, conditioned, a, mean, log_evidence, moved, settled, sweep, damped)


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


def _extrapolated(
    tried: list[FloatArray], matched: list[FloatArray], scale: FloatArray, step: float
) -> FloatArray:
    """Return the combination of the last updates whose residual is least, in units of the marginals."""
    sites = np.array(tried)
    moves = np.array(matched) - sites
    residual = (moves * scale).reshape(len(sites), -1)
    change = residual[1:] - residual[:-1]
    gram = change @ change.T
    gram.flat[:: len(gram) + 1] += _RIDGE * np.trace(
        gram
    )  # updates near the end are nearly parallel
    gamma = np.linalg.solve(gram, change @ residual[-1])
    moved = sites + step * moves
    found: FloatArray = moved[-1] - np.einsum("k,kij->ij", gamma, moved[1:] - moved[:-1])
    return found
