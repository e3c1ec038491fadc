"""The exact log marginal likelihood as a surface over the hyperparameters: twisted EP's estimate with common points.

The evidence is the orthant probability P(v >= 0), v ~ N(0, I + C K C) with C = diag(y), so that with G the gradient of
its logarithm in that covariance d log Z / d theta_j = sum_ab G_ab (C dK/dtheta_j C)_ab. Value and gradient come from
the same draws (`gpcmc.rectangle.gradient`).

While a search climbs, the points are held, by their seeds, and so are the sites of expectation propagation and the tilt
of the defence. The surface is then deterministic and smooth, and its gradient is its own. Far from where sites and tilt
were found a few weights make the average, which a search must not climb: there the surface refuses. A search finds them
again where it ends, and goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance.dense import Dense
from gpcmc.covariance.kernels import Contraction, covariance_with_gradient, orthant_covariance
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.posterior import ConvergenceError
from gpcmc.rectangle.classification import Twisted
from gpcmc.rectangle.gradient import Guide, OrthantGradient, orthant_gradient

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Effective share of the samples below which a search turns back, over that where the sites were found.
_LEAST = 0.2


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
        """Draw seeds; numbers are those of a `Twisted` method, for any other its defaults."""
        options = method if isinstance(method, Twisted) else Twisted()
        return cls(options.points, rng.integers(2**63, size=options.randomizations))

    def others(self, rng: np.random.Generator) -> CommonPoints:
        """Return as many points of other seeds."""
        return CommonPoints(self.points, rng.integers(2**63, size=len(self.seeds)))


@dataclass(slots=True)
class ExactSurface:
    """Unbiased estimate of the marginal likelihood of a kernel's hyperparameters: probit, two classes.

    Attributes
    ----------
    kernel : Kernel
        Its hyperparameters that are not fixed are the arguments.
    X : (n, d) array
    y : (n,) array
        Labels -1/+1.
    common : CommonPoints
    found : OrthantGradient or None
        The last estimate: its standard error, and the effective share of the samples.
    """

    kernel: Kernel
    X: FloatArray
    y: FloatArray
    common: CommonPoints
    found: OrthantGradient | None = None
    _guide: Guide | None = field(default=None, repr=False)
    _least: float = field(default=0.0, repr=False)

    def move(self, theta: FloatArray) -> None:
        """Let searches start from theta, and the next evaluation find sites and tilt again."""
        self.kernel, self._guide = self.kernel.clone_with_theta(theta), None

    def value(self, theta: FloatArray) -> float:
        """Return log Z (nats) at theta, the logarithms of the hyperparameters.

        Raises
        ------
        ValueError
            If theta makes a covariance that floating point cannot hold, or is too far from where the sites were found.
        """
        return self._estimate(theta, with_gradient=False)[0].log_probability

    def fresh(self, theta: FloatArray) -> float:
        """Return log Z (nats) at theta, by the sites found there."""
        self.move(theta)
        return self.value(theta)

    @one_thread()
    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z (nats) and its gradient (p,) at theta.

        Raises
        ------
        ValueError
            As `value`.
        """
        found, contract = self._estimate(theta, with_gradient=True)
        assert found.cov is not None
        return found.log_probability, contract(2.0 * np.outer(self.y, self.y) * found.cov)

    @one_thread()
    def _estimate(
        self, theta: FloatArray, *, with_gradient: bool
    ) -> tuple[OrthantGradient, Contraction]:
        K, contract = covariance_with_gradient(self.kernel.clone_with_theta(theta), self.X)
        R, new = orthant_covariance(K, self.y), self._guide is None
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self._guide is None:
                self._guide = Guide.at(R, *sites(K, self.y))
            found = orthant_gradient(
                R,
                self._guide,
                points=self.common.points,
                seeds=self.common.seeds,
                with_gradient=with_gradient,
            )
        if new:
            self._least = _LEAST * found.effective_fraction
        elif found.effective_fraction < self._least:
            raise ValueError(
                "theta must be nearer to where the sites were found: a few weights make the average, "
                f"{found.effective_fraction:.2g} of the samples"
            )
        gradient = np.zeros(1) if found.cov is None else found.cov
        if not (np.isfinite(found.log_probability) and np.isfinite(gradient).all()):
            raise ValueError(
                "theta must make smaller variances: the log marginal likelihood is lost in rounding, "
                f"at {found.log_probability:.3g}"
            )
        self.found = found
        return found, contract


def sites(K: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sites nu and tau (n,) on v that expectation propagation leaves, as `gpcmc.rectangle.classification` has them.

    Any sites will do, so those of an iteration that meets its limit do too.

    Raises
    ------
    ValueError
        If K is too large for floating point.
    """
    try:
        ep = ExpectationPropagation().approximate(Dense(K), y)
    except ConvergenceError as error:
        ep = cast(GaussianPosterior, error.posterior)
    return y * (ep.S * ep.mean + ep.a) / (1.0 - ep.S), ep.S / (1.0 - ep.S)
