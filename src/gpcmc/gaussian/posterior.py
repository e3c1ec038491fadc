"""The Gaussian posterior that Laplace's method and expectation propagation end with, under a covariance of any form.

Each replaces the likelihood's terms by Gaussian ones. With one latent function these are exp(nu_i f_i - S_i f_i^2 / 2),
the sites; S is called W in Laplace's method, tau in expectation propagation. Several functions have the softmax's W at
the mode. Evidence apart, the Algorithms 3.2, 3.4 and 3.6 of Rasmussen and Williams are one.

References
----------
Rasmussen and Williams (2006), Algorithms 3.2, 3.4, 3.6, Eqs. (3.29), (3.60)-(3.63), (3.71)-(3.72).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_cross_covariance
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.form import Covariance, GradientMatrix, Latent, Predictor
from gpcmc.covariance.prior import Prior
from gpcmc.methods import Method
from gpcmc.posterior import (
    MAX_PROBABILITY_ERROR,
    MAX_REST,
    OK,
    TOO_ROUGH,
    ConvergenceError,
    FormPosterior,
    Prediction,
    with_prediction,
)

_SAFETY = 2.0  # times the distance between two corrections is the error that is told
_JUDGED = 64  # training inputs at which probabilities are judged


class Averaged(Protocol):
    """A likelihood as predictions need it."""

    def average(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return class probabilities, averaged over the latent Gaussian, and their standard errors."""
        ...

    def roughly(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return about the same probabilities quickly; good for differences."""
        ...


@dataclass(frozen=True, kw_only=True)
class GaussianPosterior(FormPosterior):
    """A Gaussian approximation of p(f | y); all fields belong to the same iterate.

    A method that does not converge raises. It draws nothing: the standard error of the evidence is 0.0. Under a form of
    covariance that leaves something out, the evidence of `Method.fit` has its correction, and the diagnostics say how
    large that was (`gpcmc.covariance.correction`); ``probability_rest`` is how far what is left out after the
    correction of probabilities moves them at the training inputs, or at the prior's test inputs, at most. A rest above
    `gpcmc.posterior.MAX_REST` nats, or above `MAX_PROBABILITY_ERROR`, makes an ``"ok"`` the status ``"covariance too
    rough"``. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    covariance : Covariance
        K.
    mean : (n,) or (C, n) array
        Of the latent values: E[f] = K a.
    a : array of the same shape
        The weights of the predictive mean.
    conditioned : Conditioned
        K with the Gaussian terms.
    likelihood : Likelihood or Softmax
        Whose posterior it is; predictions average it (Eqs. 3.25, 3.63).
    y : array
        The labels, as the method has them.
    method : GaussianApproximation
    """

    log_evidence: float
    log_evidence_se: float = 0.0
    mean: FloatArray
    a: FloatArray
    conditioned: Any = field(repr=False)
    likelihood: Averaged = field(repr=False)
    y: FloatArray = field(repr=False)
    method: GaussianApproximation

    @property
    def S(self) -> FloatArray:
        """Precisions (n,) of the Gaussian terms, >= 0; of one latent function."""
        return self.conditioned.S

    @property
    def sites(self) -> FloatArray:
        """The Gaussian terms (2, n): precisions, and nu = a + S mean; of one latent function."""
        return np.array([self.S, self.a + self.S * self.mean])

    @property
    def variance(self) -> FloatArray:
        """Of the latent values (n,), or the covariances (n, C, C) of each pattern's."""
        return self.conditioned.variance

    @cached_property
    def predictor(self) -> Predictor:
        """What predictions come from."""
        return self.conditioned.predictor(self.a, partial(self.method.answer, self.y))

    @one_thread()
    def latent(self, K_star: ArrayLike, k_star_star: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the means and variances of the latent values at the test inputs.

        Parameters
        ----------
        K_star, k_star_star
            As of `predict`.

        Returns
        -------
        mean, variance : (t,) arrays
            Of several classes (t, C), and the covariances (t, C, C).

        Raises
        ------
        ValueError
            If shapes do not agree, an entry is not finite, or the three covariances cannot belong
            to one Gaussian process (a posterior variance would be negative).
        """
        found = self.predictor.latent(
            self.covariance.cross_of(
                *check_cross_covariance(
                    "K_star", K_star, "k_star_star", k_star_star, self._patterns
                )
            )
        )
        return found.mean, found.variance

    def _predict_at(self, cross: Cross) -> Prediction:
        latent = self.predictor.latent(cross)
        probability, error = self.likelihood.average(latent.mean, latent.variance)
        return Prediction(probability, error, self._form_error(latent))

    def form_change(self, cross: Cross) -> tuple[FloatArray | float, FloatArray | float]:
        """Return what the correction for the covariance's form adds to probabilities, and how far off it leaves them.

        Both are 0.0 under an exact form.
        """
        latent = self.predictor.latent(cross)
        own = latent.own
        if own is None:
            return 0.0, 0.0
        change = self.likelihood.roughly(latent.mean, latent.variance)
        change = change - self.likelihood.roughly(own.mean, own.variance)
        return change, self._form_error(latent)

    def _form_error(self, latent: Latent) -> FloatArray | float:
        """Twice the largest distance of probabilities from those with less of the correction."""
        if not latent.others:
            return 0.0
        probability = self.likelihood.roughly(latent.mean, latent.variance)
        gaps = [
            np.abs(self.likelihood.roughly(other.mean, other.variance) - probability)
            for other in latent.others
        ]
        return _SAFETY * np.maximum.reduce(gaps)


@dataclass(frozen=True, slots=True)
class GaussianApproximation(Method[GaussianPosterior]):
    """A method that approximates the posterior by a Gaussian; it draws nothing."""

    deterministic: ClassVar[bool] = True
    any_form: ClassVar[bool] = True

    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> GaussianPosterior:
        return self._fit_from(prior, y, rng, None)

    def _fit_from(
        self, prior: Prior, y: FloatArray, rng: np.random.Generator, start: Any
    ) -> GaussianPosterior:
        found = self.approximate(prior.covariance, y, start)
        return self.corrected(with_prediction(found, prior))

    @abstractmethod
    def approximate(
        self, covariance: Covariance, y: FloatArray, start: GaussianPosterior | None = None
    ) -> GaussianPosterior:
        """Return the Gaussian for arguments that are checked already, without a correction or a prediction.

        Parameters
        ----------
        covariance : Covariance
            Prior covariance of each latent function.
        y : (n,) or (C, n) array
            Labels -1/+1, or of several classes ones and zeros.
        start : GaussianPosterior, optional
            Of another covariance, of any form, and the same labels: the iteration starts from its sites or its mode,
            and ends where it would without.

        Raises
        ------
        ValueError
            If the covariance has variances too large for floating point.
        ConvergenceError
            If the iteration meets its limit; it carries the last iterate.
        """

    def last(self, covariance: Covariance, y: FloatArray) -> GaussianPosterior:
        """Return what `approximate` does, or the last iterate: for a sampler, which is right with any Gaussian."""
        try:
            return self.approximate(covariance, y)
        except ConvergenceError as error:
            return cast(GaussianPosterior, error.posterior)

    @abstractmethod
    def gradient(
        self, covariance: Covariance, y: FloatArray, posterior: GaussianPosterior
    ) -> GradientMatrix:
        """Return M with d log Z = tr(M dK) / 2, which ``covariance.contract`` takes.

        Parameters
        ----------
        covariance, y
            As of `approximate`.
        posterior : GaussianPosterior
            At the fixed point, for these.
        """

    @abstractmethod
    def answer(
        self, y: FloatArray, conditioned: Any, a: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the noise of the Gaussian terms that match the posterior that others make, and nu - S mean - a.

        The noise is what conditions a covariance, precisions S (n,) or class probabilities (C, n). The second is zero
        at the fixed point. A form of covariance that corrects its predictions takes a step with it.

        Parameters
        ----------
        y : array
            Labels as `approximate` takes them.
        conditioned : Conditioned
            With those others.
        a, mean : arrays
            K^-1 mean, and the mean.
        """

    def corrected(self, posterior: GaussianPosterior) -> GaussianPosterior:
        """Return a posterior with its evidence corrected for what the covariance leaves out, and judged for the rest.

        Of probabilities the largest error is judged, at the prior's test inputs and at training inputs.
        """
        K = posterior.covariance
        if K.exact:
            return posterior
        found = K.correction(self.gradient(K, posterior.y, posterior))
        error = float(np.max(posterior.prediction.form_error, initial=0.0))
        if K.X is not None:
            some = np.linspace(0, len(K) - 1, min(len(K), _JUDGED)).astype(int)
            there = posterior._predict_at(K.cross(K.X[some]))
            error = max(error, float(np.max(there.form_error)))
        rough = abs(found.rest) > MAX_REST or error > MAX_PROBABILITY_ERROR
        judged = replace(
            posterior,
            log_evidence=posterior.log_evidence + found.change,
            diagnostics=posterior.diagnostics | found.diagnostics | {"probability_rest": error},
            status=TOO_ROUGH if rough and posterior.status == OK else posterior.status,
        )
        judged.__dict__["predictor"] = posterior.predictor  # which takes as long as a sweep or two
        return judged
