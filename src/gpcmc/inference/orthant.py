"""Exact inference by the orthant sampler: Algorithm GPC-MC (paper, section 5.6) and the adapted scheme.

With C = diag(y), p(y | X) = P(v >= 0) for v ~ N(0, I + C K C), and a test pattern's probability of
class +1 is P(v* >= 0 | v >= 0), where v* has variance 1 + k** and covariance C k* with v (paper,
Eqs 25 to 30; the coordinate of a test pattern carries no sign).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcmc import _validation as validation
from gpcmc.gp.covariance import Prior, orthant_covariance
from gpcmc.inference.interface import OK, Inference, Prediction
from gpcmc.orthant.sampler import (
    Array,
    Count,
    OrthantEstimate,
    Particles,
    Scheme,
    conditional_probability,
    orthant_ratio,
    sample_orthant,
)


@dataclass(frozen=True, slots=True)
class OrthantPosterior:
    """Samples from the posterior, with the evidence they came with.

    Attributes
    ----------
    estimate : OrthantEstimate
        The training pass.
    """

    estimate: OrthantEstimate
    _particles: Particles
    _signs: Array  # y in the order of the coordinates
    _order: NDArray[np.intp]
    _count: Count
    _rng: np.random.Generator

    @property
    def log_evidence(self) -> float:
        """Log p(y | X), nats."""
        return self.estimate.log_probability

    @property
    def log_evidence_se(self) -> float:
        """Its Monte Carlo standard error, nats."""
        return self.estimate.standard_error

    @property
    def work(self) -> dict[str, int]:
        """Samples and populations drawn."""
        return {"samples": self.estimate.samples, "populations": self.estimate.populations}

    @property
    def diagnostics(self) -> dict[str, float]:
        """None: the standard errors say it."""
        return {}

    @property
    def status(self) -> str:
        """``OK``: a population without samples raises."""
        return OK

    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """P(y* = +1 | y) from the training pass's samples (Eqs 59 to 62).

        Parameters
        ----------
        K_star : (n, t) array
        k_star_star : (t,) array

        Raises
        ------
        ValueError
            If shapes do not agree or an entry is not finite.
        """
        cross, variance = validation.check_cross_covariance(
            "K_star", K_star, "k_star_star", k_star_star, len(self._signs)
        )
        probability, standard_error = conditional_probability(
            self._particles,
            self._signs[:, None] * cross[self._order],
            1.0 + variance,
            count=self._count,
            rng=self._rng,
        )
        return Prediction(probability, standard_error)


@dataclass(frozen=True, slots=True)
class Orthant:
    """Options of the orthant sampler.

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
    """

    samples: int = 100_000
    count: Count = "soft"
    scheme: Scheme = "bootstrap"
    runs: int | None = None
    order: Literal["shuffle", "given"] = "shuffle"

    def __post_init__(self) -> None:
        validation.check_positive_int("samples", self.samples)
        validation.check_option("count", self.count, ("hard", "soft"))
        validation.check_option("scheme", self.scheme, ("bootstrap", "adapted"))
        validation.check_option("order", self.order, ("shuffle", "given"))
        if self.runs is not None:
            validation.check_positive_int("runs", self.runs)

    def fit(
        self, K: ArrayLike, y: ArrayLike, *, rng: np.random.Generator | None = None
    ) -> OrthantPosterior:
        """Draw from the posterior and keep the samples.

        Parameters
        ----------
        K : (n, n) array
        y : (n,) array
            Labels -1/+1.
        rng : numpy.random.Generator
            Required. Consumed, also by a hard-count `predict` of the result.

        Raises
        ------
        ValueError
            If an argument is not as needed.
        ExtinctionError
            If every population lost all its samples.
        """
        R, signs, order, rng = self._problem(K, y, rng)
        estimate, particles = sample_orthant(
            R, samples=self.samples, count=self.count, scheme=self.scheme, runs=self.runs, rng=rng
        )
        return OrthantPosterior(estimate, particles, signs, order, self.count, rng)

    def infer(self, prior: Prior, y: ArrayLike, *, rng: np.random.Generator | None) -> Inference:
        """Evidence and test probabilities in one pass, in the memory of one population.

        Raises
        ------
        ValueError, ExtinctionError
            As `fit`.
        """
        R, signs, order, rng = self._problem(prior.K, y, rng)
        cross, variance = validation.check_cross_covariance(
            "prior.K_star", prior.K_star, "prior.k_star_star", prior.k_star_star, len(signs)
        )
        estimate, probability, standard_error = orthant_ratio(
            R,
            signs[:, None] * cross[order],
            1.0 + variance,
            samples=self.samples,
            count=self.count,
            scheme=self.scheme,
            runs=self.runs,
            rng=rng,
        )
        return Inference(
            log_evidence=estimate.log_probability,
            log_evidence_se=estimate.standard_error,
            probability=probability,
            probability_se=standard_error,
            work={"samples": estimate.samples, "populations": estimate.populations},
            diagnostics={
                "extinct_populations": float(estimate.extinct),
                "least_stage_probability": float(np.exp(np.min(estimate.log_stage_probabilities))),
            },
        )

    def _problem(
        self, K: ArrayLike, y: ArrayLike, rng: np.random.Generator | None
    ) -> tuple[Array, Array, NDArray[np.intp], np.random.Generator]:
        """Covariance of v (Eq. 30), the labels and the order of its coordinates."""
        rng = validation.check_rng("rng", rng)
        K = validation.check_covariance("K", K, semidefinite=True)
        y = validation.check_labels("y", y, len(K))
        order = rng.permutation(len(y)) if self.order == "shuffle" else np.arange(len(y))
        signs = y[order]
        R = orthant_covariance(K[np.ix_(order, order)], signs)
        return R, signs, order, rng
