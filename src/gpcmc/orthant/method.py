"""Exact inference by the orthant sampler: Algorithm GPC-MC (paper, section 5.6) and the adapted scheme.

With C = diag(y), p(y | X) = P(v >= 0) for v ~ N(0, I + C K C), and a test pattern's probability of
class +1 is P(v* >= 0 | v >= 0), where v* has variance 1 + k** and covariance C k* with v (paper,
Eqs 25 to 30; the coordinate of a test pattern carries no sign).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gpcmc import _validation as validation
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.covariance.prior import Prior
from gpcmc.methods import Method
from gpcmc.orthant.populations import Array, Count, OrthantEstimate, Scheme, population_sizes
from gpcmc.orthant.sampler import (
    Particles,
    conditional_probability,
    orthant_ratio,
    sample_orthant,
)
from gpcmc.posterior import PosteriorRecord, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class OrthantPosterior(PosteriorRecord):
    """The evidence, and either probabilities at the prior's test inputs or samples to predict with (Eqs 59 to 62).

    The work counts samples and populations drawn. The diagnostics are ``extinct_populations``,
    ``least_stage_probability`` and ``effective_eves``. The status is ``NOT_CONVERGED`` with fewer than `MIN_EFFECTIVE`
    effective eves, else ``OK``: with fewer, the standard errors are too small more often than they say, and of a lone
    eve they are infinite. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    estimate : OrthantEstimate
        The training pass.
    """

    log_evidence: float
    log_evidence_se: float
    estimate: OrthantEstimate
    _particles: Particles | None  # kept if there are no test inputs
    _signs: Array  # y in the order of the coordinates
    _order: NDArray[np.intp]
    _count: Count
    _rng: np.random.Generator

    @property
    def _patterns(self) -> int:
        return len(self._signs)

    def _predict(self, K_star: Array, k_star_star: Array) -> Prediction:
        if self._particles is None:
            raise ValueError(
                "orthant: the fit made its test pass at the prior's test inputs and kept no samples; "
                "read `prediction`, or fit to a prior without test inputs to predict later"
            )
        K_star, variance = self._signs[:, None] * K_star[self._order], 1.0 + k_star_star
        # the hard count draws: the same for every test input, so that nothing depends on which come together
        single = self._count == "hard" and len(variance)
        each = range(len(variance)) if single else [slice(None)]
        found = [
            conditional_probability(
                self._particles,
                np.ascontiguousarray(K_star[:, at].reshape(len(K_star), -1)),
                np.atleast_1d(variance[at]),
                count=self._count,
                rng=copy.deepcopy(self._rng),
            )
            for at in each
        ]
        return Prediction(*(np.concatenate(one) for one in zip(*found, strict=True)))


@dataclass(frozen=True, slots=True)
class Orthant(Method[OrthantPosterior]):
    """Options of the orthant sampler.

    With test inputs in the prior, `fit` makes the test pass with the training pass, in the memory of one
    population, and keeps no samples. Without, it keeps all samples, and the posterior can predict at any
    test inputs; a hard-count `predict` draws from a copy of the generator that `fit` was given, the same for each of
    them, so that calls, batches and copies agree.

    Attributes
    ----------
    samples : int
        Monte Carlo samples in all.
    count : {"soft", "hard"}
        How the bootstrap scheme counts, and how test patterns are counted in either scheme.
    scheme : {"bootstrap", "adapted"}
        The paper's algorithm, or truncated draws with weights.
    runs : int, optional
        Independent populations; by default as few as keep each within 200,000 samples.
    order : {"shuffle", "given"}
        Order of the training patterns. The paper holds shuffling the classes "imperative" (section 6.5).

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    matrices: ClassVar[float] = 6.0

    samples: int = 100_000
    count: Count = "soft"
    scheme: Scheme = "bootstrap"
    runs: int | None = None
    order: Literal["shuffle", "given"] = "shuffle"

    def __post_init__(self) -> None:
        population_sizes(self.samples, self.runs)
        validation.check_option("count", self.count, ("hard", "soft"))
        validation.check_option("scheme", self.scheme, ("bootstrap", "adapted"))
        validation.check_option("order", self.order, ("shuffle", "given"))

    def memory(self, n: int) -> float:
        """As `Method.memory`; the samples of one population count too."""
        a_sample = 600.0 if self.scheme == "bootstrap" else 2000.0 + 8.0 * n  # measured
        return Method.memory(self, n) + a_sample * max(population_sizes(self.samples, self.runs))

    def _fit(self, prior: Prior, y: Array, rng: np.random.Generator) -> OrthantPosterior:
        order = rng.permutation(len(y)) if self.order == "shuffle" else np.arange(len(y))
        signs = y[order]
        R = orthant_covariance(prior.K[np.ix_(order, order)], signs)
        prediction, particles = Prediction.none(), None
        given = {name: getattr(self, name) for name in ("samples", "count", "scheme", "runs")}
        if len(prior.k_star_star):
            K_star, variance = signs[:, None] * prior.K_star[order], 1.0 + prior.k_star_star
            estimate, *found = orthant_ratio(R, K_star, variance, rng=rng, **given)
            prediction = Prediction(*found)
        else:
            estimate, particles = sample_orthant(R, rng=rng, **given)
        return OrthantPosterior(
            log_evidence=estimate.log_probability,
            log_evidence_se=estimate.standard_error,
            work={"samples": estimate.samples, "populations": estimate.populations},
            diagnostics={
                "extinct_populations": float(estimate.extinct),
                "least_stage_probability": float(np.exp(np.min(estimate.log_stage_probabilities))),
                "effective_eves": estimate.effective_eves,
            },
            status=estimate.status,
            prediction=prediction,
            estimate=estimate,
            _particles=particles,
            _signs=signs,
            _order=order,
            _count=self.count,
            _rng=copy.deepcopy(rng),
        )
