"""Methods that estimate the marginal likelihood and predict nothing: annealed runs, and SciPy's normal integral.

`Annealed` spends all of its time on annealed importance sampling, where the chains of the library
(`gpcmc.chains.chain`) draw from the posterior as well. `AnnealedLatent` is that of the certifier, which starts from a
Gaussian and uses no orthant. `GenzBretz` is what a user of SciPy has at hand.

SciPy's `multivariate_normal.cdf` translates Genz's program: a pivoted Cholesky factor, separation of variables,
and lattice points. What matters here (SciPy 1.17):

- There is no limit of dimension; the Fortran program, up to SciPy 1.15, had one of 500. But the loop that pivots is in
  Python, and takes seconds for 500 variables before any point is drawn.
- It refines until an *absolute* error of 1e-5 is met, whatever ``releps`` says. Our probabilities are far smaller than
  that, so that the defaults stop after the first pass. Both tolerances are therefore zero here, and ``maxpts`` says
  where it stops.
- It returns the probability and no error, so that several randomisations are drawn.
- It works on the scale of probabilities, in ``logcdf`` too: below exp(-708) it loses digits, and then returns zero.
  With log L at half a nat a pattern that is near N = 1,400; for independent patterns, it is near N = 1,020.

References
----------
Genz (1992), Journal of Computational and Graphical Statistics 1, 141. Genz and Bretz (2009), Computation of
Multivariate Normal and t Probabilities. Neal (2001), Statistics and Computing 11, 125.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpcmc import _validation as validation
from gpcmc.chains.annealing import annealed_importance_sampling
from gpcmc.chains.chain import ChainMethod
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.covariance.prior import Prior
from gpcmc.inference import EllipticalSlice, HamiltonianMonteCarlo
from gpcmc.methods import Method
from gpcmc.orthant.populations import Array
from gpcmc.posterior import PosteriorRecord, Prediction
from gpcmc.weights import MIN_TAIL, weights_status
from studies.atiya2021.reference.latent import Model, annealed

#: What a run says whose probability is too small for a number of double precision.
UNDERFLOW = "underflow"
_SAMPLERS: dict[str, Callable[[], ChainMethod]] = {
    "ess": EllipticalSlice,
    "hmc": HamiltonianMonteCarlo,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceAlone(PosteriorRecord):
    """The marginal likelihood, without samples to predict with."""

    n: int

    @property
    def _patterns(self) -> int:
        return self.n

    def _predict(self, K_star: Array, k_star_star: Array) -> Prediction:
        raise ValueError("this method estimates the marginal likelihood alone; predict by another")


class _Alone(Method[EvidenceAlone]):
    """Refuses test inputs."""

    __slots__ = ()

    def _check(self, prior: Prior) -> None:
        if len(prior.k_star_star):
            raise ValueError(
                f"prior must have no test inputs, for {type(self).__name__} predicts nothing; "
                f"got {len(prior.k_star_star)}"
            )


@dataclass(frozen=True, slots=True)
class Annealed(_Alone):
    """Options of annealed importance sampling.

    Attributes
    ----------
    sampler : {"ess", "hmc"}
        What moves at each temperature: elliptical slice sampling, or Hamiltonian Monte Carlo as the library tunes it.
    temperatures : int
        Steps of temperature.
    runs : int
        Annealed runs side by side, at least 2; from 25 on the tail of their weights is judged, too.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    sampler: Literal["ess", "hmc"] = "hmc"
    temperatures: int = 200
    runs: int = 32

    def __post_init__(self) -> None:
        validation.check_option("sampler", self.sampler, tuple(_SAMPLERS))
        validation.check_positive_int("temperatures", self.temperatures)
        if validation.check_positive_int("runs", self.runs) < 2:
            raise ValueError(f"runs must be at least 2, for a standard error; got {self.runs}")

    def _fit(self, prior: Prior, y: Array, rng: np.random.Generator) -> EvidenceAlone:
        self._check(prior)
        found = annealed_importance_sampling(
            prior.K,
            y,
            transition=_SAMPLERS[self.sampler](),
            temperatures=self.temperatures,
            runs=self.runs,
            rng=rng,
        )
        return EvidenceAlone(
            log_evidence=found.log_evidence,
            log_evidence_se=found.log_evidence_se,
            work=found.work,
            diagnostics=found.diagnostics,
            status=found.status,
            n=len(y),
        )


@dataclass(frozen=True, slots=True)
class AnnealedLatent(_Alone):
    """Options of the certifier (`studies.atiya2021.reference.latent`), here with the covariance that it is given.

    Attributes
    ----------
    chains : int
        At least 25, so that the tail of their weights is judged.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    chains: int = 1000

    def __post_init__(self) -> None:
        if validation.check_positive_int("chains", self.chains) < MIN_TAIL:
            raise ValueError(
                f"chains must be at least {MIN_TAIL}, for the tail of their weights; got {self.chains}"
            )

    def _fit(self, prior: Prior, y: Array, rng: np.random.Generator) -> EvidenceAlone:
        self._check(prior)
        no_test = np.empty((len(y), 0)), np.empty(0)
        found = annealed(Model(np.array(prior.K), *no_test, y), self.chains, rng=rng)
        return EvidenceAlone(
            log_evidence=found.log_evidence,
            log_evidence_se=found.log_evidence_se,
            work=found.work,
            diagnostics=found.diagnostics,
            status=weights_status(found.diagnostics),
            n=len(y),
        )


@dataclass(frozen=True, slots=True)
class GenzBretz(_Alone):
    """Options of SciPy's multivariate normal integral.

    Attributes
    ----------
    points : int
        Lattice points of a randomisation, about; SciPy takes 1.4 times as many.
    randomizations : int
        Independent randomisations, at least 2: their spread is the standard error.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    points: int = 10_000
    randomizations: int = 8

    def __post_init__(self) -> None:
        # SciPy divides the points between ten batches, and has no lattice of fewer than three points
        if validation.check_positive_int("points", self.points) < 100:
            raise ValueError(f"points must be at least 100; got {self.points}")
        if validation.check_positive_int("randomizations", self.randomizations) < 2:
            raise ValueError(
                f"randomizations must be at least 2, for a standard error; got {self.randomizations}"
            )

    def _fit(self, prior: Prior, y: Array, rng: np.random.Generator) -> EvidenceAlone:
        from scipy.stats import multivariate_normal  # costs half a second to import

        self._check(prior)
        # P(v >= 0) = P(v <= 0) by symmetry, and a lower limit of minus infinity costs SciPy no digits
        limits = np.zeros((self.randomizations, len(y)))
        found = np.atleast_1d(
            multivariate_normal.cdf(
                limits,
                cov=orthant_covariance(prior.K, y),
                maxpts=self.points,
                abseps=0.0,
                releps=0.0,
                rng=rng,
            )
        )
        given: dict[str, Any] = {"work": {"randomizations": self.randomizations}, "n": len(y)}
        if found.min() < np.finfo(float).tiny:
            return EvidenceAlone(status=UNDERFLOW, **given)
        # by the largest, so that squares of small numbers do not underflow
        scaled = found / found.max()
        error = scaled.std(ddof=1) / scaled.mean() / np.sqrt(len(found))
        return EvidenceAlone(
            log_evidence=float(np.log(found.max()) + np.log(scaled.mean())),
            log_evidence_se=float(error),
            **given,
        )
