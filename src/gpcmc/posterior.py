"""What an inference method returns: evidence, counts of work, diagnostics, a status, and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_cross_covariance
from gpcmc.covariance.cross import Cross
from gpcmc.covariance.form import Covariance
from gpcmc.covariance.prior import Prior, check_inputs

#: What a run may say of itself. Only `OK` enters a comparison.
OK = "ok"
#: A chain with fewer than `MIN_EFFECTIVE` effective samples.
NOT_CONVERGED = "not converged"
#: The tail of the weights is too heavy for their average (Pareto k-hat).
UNTRUSTED = "weights not trusted"
#: A limit in counts was met before the method could begin to sample.
STOPPED = "stopped at its limit"
#: What the covariance leaves out may move the evidence by `MAX_REST` nats, or a probability by `MAX_PROBABILITY_ERROR`.
TOO_ROUGH = "covariance too rough"
#: The points are spent, and the error is above the tolerance.
NOT_MET = "tolerance not met"

#: Fewer effective samples than this, and a chain has not converged.
MIN_EFFECTIVE = 100.0
#: A chain whose R-hat is above this has not converged.
MAX_R_HAT = 1.05
#: Above this Pareto k-hat an average of weights cannot be trusted at any feasible number of samples.
MAX_K_HAT = 0.7
#: Nats that a covariance may leave out of the evidence, after its correction.
MAX_REST = 1.0
#: By how much a covariance may move a class probability, after its correction.
MAX_PROBABILITY_ERROR = 0.01


@dataclass(frozen=True, slots=True)
class Prediction:
    """Class probabilities at the test inputs.

    Attributes
    ----------
    probability : (t,) or (t, C) array
        P(y* = +1 | y); of several classes one column each.
    standard_error : array of the same shape
        Monte Carlo standard errors; zeros for a deterministic method.
    form_error : array of the same shape, or 0.0
        About how far what the form of the covariance leaves out may move a probability; zero under an exact form.
    """

    probability: FloatArray
    standard_error: FloatArray
    form_error: FloatArray | float = 0.0

    @classmethod
    def none(cls) -> Prediction:
        """Return the prediction at no test inputs."""
        return cls(np.empty(0), np.empty(0))


class Posterior(Protocol):
    """What `Method.fit` returns. `PosteriorRecord`, the base of the library's own, says what each of these is."""

    @property
    def log_evidence(self) -> float | None:
        """Log marginal likelihood, in nats, if the method gives one."""
        ...

    @property
    def log_evidence_se(self) -> float | None:
        """Its Monte Carlo standard error, in nats."""
        ...

    @property
    def work(self) -> dict[str, int]:
        """Counts of what was done."""
        ...

    @property
    def diagnostics(self) -> dict[str, float]:
        """Whether to believe the run."""
        ...

    @property
    def status(self) -> str:
        """The same in a word."""
        ...

    @property
    def prediction(self) -> Prediction:
        """At the prior's test inputs."""
        ...

    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """Return class probabilities at other test inputs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorRecord(ABC):
    """The base of the library's posteriors: what all of them hold, and the check of test covariances.

    A subclass says how it predicts (`_predict`) and for how many patterns (`_patterns`).

    Attributes
    ----------
    log_evidence : float or None
        Log marginal likelihood, in nats; None for a method that gives none.
    log_evidence_se : float or None
        Its Monte Carlo standard error, in nats; 0.0 for a deterministic method. The errors of annealed runs, and of
        chains' probabilities, allow for the few runs behind them (Student's t over the normal's 97.5 % point); the
        others are plain.
    work : dict of str to int
        Counts of what was done; never seconds.
    diagnostics : dict of str to float
        Whether to believe the run: ``effective_samples``, ``r_hat``, ``acceptance``, ``k_hat`` and others, as the
        method has them; empty for a deterministic method on an exact form of covariance.
    status : str
        ``OK``, ``NOT_CONVERGED``, ``UNTRUSTED``, ``STOPPED``, ``TOO_ROUGH`` or ``NOT_MET``.
    prediction : Prediction
        At the test inputs of the prior; of no length if there are none, or if the method stopped.
    """

    log_evidence: float | None = None
    log_evidence_se: float | None = None
    work: dict[str, int]
    diagnostics: dict[str, float] = field(default_factory=dict)
    status: str = OK
    prediction: Prediction = field(default_factory=Prediction.none)

    @property
    @abstractmethod
    def _patterns(self) -> int:
        """The number n of training patterns."""

    @abstractmethod
    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        """Do what `predict` promises with arguments that are checked, in one thread."""

    @one_thread()
    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """Return class probabilities at other test inputs, after the fit.

        Parameters
        ----------
        K_star : (n, t) array
            Covariances between training and test latent values.
        k_star_star : (t,) array
            Prior variances at the test inputs.

        Raises
        ------
        ValueError
            If shapes do not agree, an entry is not finite, the covariances cannot belong to one Gaussian
            process, or the method cannot predict later: the message then says what to do.
        """
        return self._predict(
            *check_cross_covariance("K_star", K_star, "k_star_star", k_star_star, self._patterns)
        )


@dataclass(frozen=True, kw_only=True)
class FormPosterior(PosteriorRecord):
    """The base of posteriors under a covariance of any form, which they hold; a subclass says `_predict_at`.

    Attributes
    ----------
    covariance : Covariance
    """

    covariance: Covariance = field(repr=False)

    @property
    def _patterns(self) -> int:
        return len(self.covariance)

    @abstractmethod
    def _predict_at(self, cross: Cross) -> Prediction:
        """Predict, in one thread."""

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        return self._predict_at(self.covariance.cross_of(K_star, k_star_star))

    @one_thread()
    def predict_inputs(self, X: ArrayLike) -> Prediction:
        """Return class probabilities at test inputs X (t, d).

        Raises
        ------
        ValueError
            If X is not a finite array of the training inputs' width, or the covariance was given without a kernel.
        """
        return self._predict_at(self.covariance.cross(check_inputs("X", X)))


P = TypeVar("P", bound=Posterior)


def with_prediction(posterior: P, prior: Prior) -> P:
    """Return a posterior, a dataclass, with its own prediction at the prior's test inputs as `prediction`."""
    cross = prior.cross()
    if cross is None:
        return posterior
    if isinstance(posterior, FormPosterior):
        prediction = posterior._predict_at(cross)
    else:
        prediction = posterior.predict(prior.K_star, prior.k_star_star)
    return cast(P, replace(cast(Any, posterior), prediction=prediction))


def chain_status(diagnostics: Mapping[str, float]) -> str:
    """Return whether chains with these ``effective_samples`` and ``r_hat`` may be believed."""
    enough = diagnostics["effective_samples"] >= MIN_EFFECTIVE
    return OK if enough and diagnostics["r_hat"] <= MAX_R_HAT else NOT_CONVERGED


class ConvergenceError(RuntimeError):
    """An iteration met its limit.

    Attributes
    ----------
    posterior : Posterior
        The last self-consistent record, without a prediction; whether it is good enough is for the
        caller to decide.
    """

    def __init__(self, message: str, posterior: Posterior) -> None:
        super().__init__(message)
        self.posterior = posterior
