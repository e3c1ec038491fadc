"""What an inference method is: options that can `fit`, and a posterior that can `predict`.

A method is one module with one frozen dataclass of options. `infer` runs any of them on a `Prior`;
a method that can make its test pass while it makes its training pass defines `infer` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from gpcmc._validation import FloatArray
from gpcmc.gp.covariance import Prior

#: What a run may say of itself. Only `OK` enters a comparison.
OK = "ok"
NOT_CONVERGED = "not converged"  # a chain with fewer than MIN_EFFECTIVE effective samples
UNTRUSTED = "weights not trusted"  # the weights' tail is too heavy for their average (Pareto k-hat)
STOPPED = (
    "stopped at its limit"  # a limit in counts was met before the method could begin to sample
)

#: Fewer effective samples than this, and a chain has not converged.
MIN_EFFECTIVE = 100.0
#: A chain whose R-hat is above this has not converged.
MAX_R_HAT = 1.05
#: Above this Pareto k-hat an average of weights cannot be trusted at any feasible number of samples.
MAX_K_HAT = 0.7


@dataclass(frozen=True, slots=True)
class Prediction:
    """Class probabilities at the test inputs.

    Attributes
    ----------
    probability : (t,) array
        P(y* = +1 | y).
    standard_error : (t,) array
        Monte Carlo standard errors; zeros for a deterministic method.
    """

    probability: FloatArray
    standard_error: FloatArray


@dataclass(frozen=True, slots=True)
class Inference:
    """What one run of a method yields.

    Attributes
    ----------
    log_evidence : float or None
        Log marginal likelihood, in nats; None for a method that gives none.
    log_evidence_se : float or None
        Its Monte Carlo standard error, in nats; 0.0 for a deterministic method. Chains' annealed runs and
        their probabilities allow for the few runs it is found from (Student's t over the normal's 97.5 %
        point); the others are plain, with the degrees of freedom that their posteriors tell.
    probability, probability_se : (t,) array
        P(y* = +1 | y) at the test inputs, and the Monte Carlo standard errors. Of no length when the
        method stopped before it could predict.
    work : dict of str to int
        Counts of what was done; never seconds.
    diagnostics : dict of str to float
        What tells whether to believe the run: ``effective_samples``, ``r_hat``, ``acceptance``,
        ``k_hat``, as the method has them.
    status : str
        ``OK``, ``NOT_CONVERGED``, ``UNTRUSTED`` or ``STOPPED``.
    """

    log_evidence: float | None
    log_evidence_se: float | None
    probability: FloatArray
    probability_se: FloatArray
    work: dict[str, int]
    diagnostics: dict[str, float] = field(default_factory=dict)
    status: str = OK


class Posterior(Protocol):
    """A fitted method: evidence, counts of work, predictions on demand."""

    @property
    def log_evidence(self) -> float | None:
        """Log marginal likelihood, in nats; None for a method that gives none."""
        ...

    @property
    def log_evidence_se(self) -> float | None:
        """Its Monte Carlo standard error, in nats; 0.0 for a deterministic method."""
        ...

    @property
    def work(self) -> dict[str, int]:
        """Counts of what was done; never seconds."""
        ...

    @property
    def diagnostics(self) -> dict[str, float]:
        """What tells whether to believe the run; empty for a deterministic method."""
        ...

    @property
    def status(self) -> str:
        """``OK``, ``NOT_CONVERGED``, ``UNTRUSTED`` or ``STOPPED``."""
        ...

    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """Return P(y* = +1 | y) from (n, t) cross-covariances and (t,) prior variances."""
        ...


@runtime_checkable
class Method(Protocol):
    """Options of a method."""

    def fit(
        self, K: ArrayLike, y: ArrayLike, *, rng: np.random.Generator | None = None
    ) -> Posterior:
        """Fit to an (n, n) prior covariance and (n,) labels -1/+1."""
        ...


def chain_status(diagnostics: Mapping[str, float]) -> str:
    """Return whether chains with these ``effective_samples`` and ``r_hat`` may be believed."""
    enough = diagnostics["effective_samples"] >= MIN_EFFECTIVE
    return OK if enough and diagnostics["r_hat"] <= MAX_R_HAT else NOT_CONVERGED


class ConvergenceError(RuntimeError):
    """An iteration met its limit.

    Attributes
    ----------
    posterior : Posterior
        The last self-consistent record; whether it is good enough is for the caller to decide.
    """

    def __init__(self, message: str, posterior: Posterior) -> None:
        super().__init__(message)
        self.posterior = posterior


@threadpool_limits.wrap(limits=1)
def infer(
    method: Method, prior: Prior, y: ArrayLike, *, rng: np.random.Generator | None
) -> Inference:
    """Run `method` on a prior and labels: evidence and test probabilities together.

    Parameters
    ----------
    method : Method
        Options of a method, e.g. ``ExpectationPropagation()``.
    prior : Prior
        Covariances at the training and test inputs.
    y : (n,) array
        Labels -1/+1.
    rng : Generator or None
        Consumed by methods that draw; the others ignore it.

    Returns
    -------
    Inference

    Raises
    ------
    ValueError
        If an argument is not as needed.
    ConvergenceError
        If the method iterates and does not converge.
    ExtinctionError
        If the method is the orthant sampler, and all its samples are lost.
    """
    if hasattr(method, "infer"):
        return method.infer(prior, y, rng=rng)
    posterior = method.fit(prior.K, y, rng=rng)
    prediction = posterior.predict(prior.K_star, prior.k_star_star)
    return Inference(
        log_evidence=posterior.log_evidence,
        log_evidence_se=posterior.log_evidence_se,
        probability=prediction.probability,
        probability_se=prediction.standard_error,
        work=posterior.work,
        diagnostics=posterior.diagnostics,
        status=posterior.status,
    )
