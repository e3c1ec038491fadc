"""The exact evidence as a surface over the hyperparameters: twisted EP's estimate with common points.

The evidence is the orthant probability P(v >= 0), v ~ N(0, I + C K C) with C = diag(y), so that with G the gradient of
its logarithm in that covariance d log Z = tr(M dK) / 2 for M = 2 C G C. Value and gradient come from the same draws.

While a search climbs, the points are held, by their seeds, and so are the sites of expectation propagation and the tilt
of the defence. The surface is then deterministic and smooth, and its gradient is its own. Far from where sites and tilt
were found a few weights make the average, which a search must not climb: there the surface refuses. A search finds them
again where it ends, and goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gpcmc._progress import Progress
from gpcmc._validation import FloatArray
from gpcmc.covariance import Covariance, GradientMatrix
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.evidence.ascent import Ascent, Optimum, at_bound
from gpcmc.evidence.surface import Surface
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.posterior import ConvergenceError
from gpcmc.rectangle.classification import Twisted, orthant_sites
from gpcmc.rectangle.gradient import Guide, orthant_gradient

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Effective share of the samples below which a search turns back, over that where the sites were found.
_LEAST = 0.2
_GAIN = 0.01  # nats; a climb that gained less is the last one
_CLIMBS = 8


@dataclass(frozen=True, slots=True)
class CommonPoints:
    """The points of a surface.

    Attributes
    ----------
    points : int
        Sobol' points of a randomisation, a power of two.
    seeds : (r,) int array
        One of each randomisation.
    """

    points: int
    seeds: NDArray[np.int64]

    @classmethod
    def of(cls, method: object, rng: np.random.Generator) -> CommonPoints:
        """Draw seeds; numbers are those of a `Twisted` method without a tolerance, for any other its defaults."""
        options = method if isinstance(method, Twisted) else Twisted()
        # where points are a limit, a search holds no more than the default
        points = (
            options.points if options.tolerance is None else min(options.points, Twisted().points)
        )
        return cls(points, rng.integers(2**63, size=options.randomizations))

    def others(self, rng: np.random.Generator) -> CommonPoints:
        """Return as many points of other seeds."""
        return CommonPoints(self.points, rng.integers(2**63, size=len(self.seeds)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """An unbiased estimate of the evidence, and the gradient matrix M (n, n) of the same draws.

    It stands in a `GradientMatrix` in the place of what Gaussian terms make.
    """

    log_evidence: float
    M: FloatArray

    def noise_precision(self) -> FloatArray:
        """Return minus M."""
        return -self.M

    @property
    def noise_diagonal(self) -> FloatArray:
        """Minus the diagonal of M (n,)."""
        return -self.M.diagonal()


@dataclass(slots=True)
class HeldPoints:
    """Twisted EP's estimate as a method whose evidence has a gradient: probit, two classes.

    Attributes
    ----------
    common : CommonPoints
    """

    common: CommonPoints
    _guide: Guide | None = field(default=None, repr=False)
    _least: float = field(default=0.0, repr=False)

    def let_go(self) -> None:
        """Let the next evaluation find sites and tilt again."""
        self._guide = None

    def approximate(self, covariance: Covariance, y: FloatArray, start: Any = None) -> Estimate:
        """Return the estimate for labels -1/+1 (n,); `start` is not looked at.

        Raises
        ------
        ValueError
            If the covariance is one that floating point cannot hold, or too far from where the sites were found.
        """
        R, new = orthant_covariance(covariance.dense(), y), self._guide is None
        if self._guide is None:
            self._guide = Guide.at(R, *sites(covariance, y))
        found = orthant_gradient(R, self._guide, points=self.common.points, seeds=self.common.seeds)
        assert found.cov is not None
        if new:
            self._least = _LEAST * found.effective_fraction
        elif found.effective_fraction < self._least:
            raise ValueError(
                "theta must be nearer to where the sites were found: a few weights make the average, "
                f"{found.effective_fraction:.2g} of the samples"
            )
        if not (np.isfinite(found.log_probability) and np.isfinite(found.cov).all()):
            raise ValueError(
                "theta must make smaller variances: the log marginal likelihood is lost in rounding, "
                f"at {found.log_probability:.3g}"
            )
        return Estimate(found.log_probability, 2.0 * np.outer(y, y) * found.cov)

    def gradient(
        self, covariance: Covariance, y: FloatArray, posterior: Estimate
    ) -> GradientMatrix:
        """Return M with d log Z = tr(M dK) / 2."""
        nothing = np.zeros((1, len(y)))
        return GradientMatrix(nothing, nothing, posterior)


def exact_surface(kernel: Kernel, X: Any, y: FloatArray, common: CommonPoints) -> Surface:
    """Return the surface of twisted EP's estimate, whose sites are those of its first evaluation."""
    return Surface(HeldPoints(common), kernel, X, y)


def climb_exact(
    kernel: Kernel,
    X: Any,
    y: FloatArray,
    common: CommonPoints,
    before: Optimum,
    rng: np.random.Generator,
    verbose: int = 0,
) -> Optimum:
    """Climb the exact surface from where the search on the approximate one ended.

    A climb holds the sites of its start. They are found again at its end, and another climb follows until one
    gains less than 0.01 nats, by values that have their own sites. A maximum over noise is drawn to where the
    noise is high, so that in the end other points decide: where these do not find it higher, the start is kept.

    Parameters
    ----------
    kernel, X, y, common
        As of `exact_surface`.
    before : Optimum
        Of the approximate surface.
    rng : Generator
        Draws the other points.
    verbose : int
        As of `gpcmc.evidence.Search`.

    Raises
    ------
    ValueError
        If the surface cannot be evaluated at the start.
    """
    progress = Progress(verbose)

    def fresh(theta: FloatArray, points: CommonPoints) -> float:
        progress.evaluations += 1
        return exact_surface(kernel, X, y, points).value(theta)

    surface = exact_surface(kernel, X, y, common)
    start = found = replace(before, log_evidence=fresh(before.theta, common))
    for _ in range(_CLIMBS):
        cast(HeldPoints, surface.method).let_go()
        try:
            again = Ascent(surface, progress).from_starts([found.theta])[0]
            value = fresh(again.theta, common)
        except (ValueError, ConvergenceError):
            break
        gain = value - found.log_evidence
        if gain > 0.0:
            found = replace(again, log_evidence=value)
        if gain < _GAIN:
            break
    other = common.others(rng)
    if found is not start and fresh(found.theta, other) <= fresh(start.theta, other):
        found = start
    # the posterior of a search is that of expectation propagation, where the estimate ended
    return replace(
        found,
        at_bound=at_bound(kernel, found.theta),
        evaluations=before.evaluations + progress.evaluations,
        posterior=before.posterior,
    )


def sites(covariance: Covariance, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sites nu and tau (n,) on v that expectation propagation leaves, converged or not: any will do."""
    return orthant_sites(ExpectationPropagation().last(covariance, y), y)
