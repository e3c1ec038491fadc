"""What an inference method is: options with `fit`, and what `fit` returns.

A method is one module with one frozen dataclass of options, a subclass of `Method` that says how the
posterior is found (`_fit`) once the arguments are known to be good. `Method.fit` is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import (
    FloatArray,
    Rng,
    check_covariance,
    check_cross_covariance,
    check_labels,
    check_memory,
    check_rng,
)
from gpcmc.gp.covariance import Prior

#: What a run may say of itself. Only `OK` enters a comparison.
OK = "ok"
#: A chain with fewer than `MIN_EFFECTIVE` effective samples.
NOT_CONVERGED = "not converged"
#: The tail of the weights is too heavy for their average (Pareto k-hat).
UNTRUSTED = "weights not trusted"
#: A limit in counts was met before the method could begin to sample.
STOPPED = "stopped at its limit"

#: Fewer effective samples than this, and a chain has not converged.
MIN_EFFECTIVE = 100.0
#: Bytes that Laplace's method needs over n^2: six matrices like the covariance, which is one of them.
LEAST_MEMORY = 6 * 8.0
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

    @classmethod
    def none(cls) -> Prediction:
        """Return the prediction at no test inputs."""
        return cls(np.empty(0), np.empty(0))


class Posterior(Protocol):
    """What `Method.fit` returns: evidence, counts of work, predictions."""

    @property
    def log_evidence(self) -> float | None:
        """Log marginal likelihood, in nats; None for a method that gives none."""
        ...

    @property
    def log_evidence_se(self) -> float | None:
        """Its Monte Carlo standard error, in nats; 0.0 for a deterministic method.

        The errors of annealed runs, and of chains' probabilities, allow for the few runs behind them
        (Student's t over the normal's 97.5 % point); the others are plain.
        """
        ...

    @property
    def work(self) -> dict[str, int]:
        """Counts of what was done; never seconds."""
        ...

    @property
    def diagnostics(self) -> dict[str, float]:
        """Whether to believe the run; empty for a deterministic method.

        ``effective_samples``, ``r_hat``, ``acceptance``, ``k_hat`` and others, as the method has them.
        """
        ...

    @property
    def status(self) -> str:
        """``OK``, ``NOT_CONVERGED``, ``UNTRUSTED`` or ``STOPPED``."""
        ...

    @property
    def prediction(self) -> Prediction:
        """Class probabilities (t,) at the prior's test inputs; of no length if the method stopped."""
        ...

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
        Its standard error, in nats.
    work : dict of str to int
        Counts of what was done; never seconds.
    diagnostics : dict of str to float
        Whether to believe the run; empty for a deterministic method.
    status : str
        ``OK``, ``NOT_CONVERGED``, ``UNTRUSTED`` or ``STOPPED``.
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
        """Return class probabilities at other test inputs, as `Posterior.predict` says.

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
            process, or the method cannot predict later.
        """
        return self._predict(
            *check_cross_covariance("K_star", K_star, "k_star_star", k_star_star, self._patterns)
        )


P = TypeVar("P", bound=Posterior)


class StructuredPrior(ABC):
    """A prior without an array of covariances. It knows which methods have a form for it."""

    __slots__ = ()

    @abstractmethod
    def fit_by(self, method: Method[Any], y: ArrayLike, rng: np.random.Generator | None) -> Any:
        """Return the posterior of a method, for labels y (n,); what `Method.fit` hands over."""


def with_prediction(posterior: P, prior: Prior) -> P:
    """Return a posterior, a dataclass, with its own `predict` at the prior's test inputs as `prediction`."""
    if len(prior.k_star_star) == 0:
        return posterior
    prediction = posterior.predict(prior.K_star, prior.k_star_star)
    return cast(P, replace(cast(Any, posterior), prediction=prediction))


class Method(ABC, Generic[P]):
    """Options of an inference method, all of which have the one public method `fit`."""

    __slots__ = ()

    #: Whether `fit` needs no random numbers.
    deterministic: ClassVar[bool] = False
    #: Matrices like the covariance, which is one of them, that `fit` holds at its peak (benchmarks/large.py).
    matrices: ClassVar[float] = 8.0

    def memory(self, n: int) -> float:
        """Return about how many bytes `fit` needs at its peak for n training patterns."""
        return 8.0 * self.matrices * n**2

    def check_size(self, n: int) -> None:
        """Refuse n training patterns if `fit` would need more memory than this machine has.

        Raises
        ------
        MemoryError
            If it would; the message says how much, and what fits.
        """
        check_memory(type(self).__name__, n, self.memory(n), LEAST_MEMORY * n**2)

    def fit(
        self,
        prior: Prior | StructuredPrior,
        y: ArrayLike,
        *,
        rng: Rng = None,
    ) -> P:
        """Find the posterior, the evidence, and the probabilities at the prior's test inputs.

        Parameters
        ----------
        prior : Prior or StructuredPrior
            Covariances at n training and t test inputs; t may be 0. For one of low rank see `gpcmc.lowrank.fit`.
        y : (n,) array
            Labels -1/+1.
        rng : numpy.random.Generator, int or RandomState, optional
            Required by a method that draws, and consumed: equal states give equal bits on one machine. An integer is
            a seed.
            A deterministic method ignores it.

        Returns
        -------
        Posterior
            Of the method's own type.

        Raises
        ------
        ValueError
            If an argument is not as above; the message names it, what was given and what is needed.
        ConvergenceError
            If the method iterates and does not converge.
        ExtinctionError
            If the method is the orthant sampler and no sample of it survives.
        MemoryError
            If the method needs more memory than this machine has; the message says what fits.
        """
        if isinstance(prior, StructuredPrior):
            return cast(P, prior.fit_by(self, y, rng))
        if not isinstance(prior, Prior):
            raise ValueError(
                "prior must be a gpcmc.gp.Prior: Prior(K) for a covariance K, or "
                f"gpcmc.gp.prior(kernel, X, X_star); got {type(prior).__name__}"
            )
        with one_thread():
            random = None if self.deterministic else check_rng("rng", rng)
            self.check_size(len(prior.K))
            K = check_covariance("prior.K", prior.K, semidefinite=True)
            labels = check_labels("y", y, len(K))
            K_star, k_star_star = check_cross_covariance(
                "prior.K_star", prior.K_star, "prior.k_star_star", prior.k_star_star, len(K)
            )
            checked = replace(prior, K=K, K_star=K_star, k_star_star=k_star_star)
            return self._fit(checked, labels, cast(np.random.Generator, random))

    @abstractmethod
    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> P:
        """Do what `fit` promises with arguments that are checked, in one thread.

        `rng` is None where a deterministic method was given none.
        """


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


@dataclass(frozen=True, slots=True)
class Inference:
    """The numbers of one run of a method, without the samples that they come from.

    Attributes
    ----------
    log_evidence : float or None
        Log marginal likelihood, in nats; None for a method that gives none.
    log_evidence_se : float or None
        Its Monte Carlo standard error, in nats.
    probability : (t,) array
        P(y* = +1 | y) at the test inputs. Of no length when the method stopped before it could predict.
    probability_se : (t,) array
        Its Monte Carlo standard errors.
    work : dict of str to int
        Counts of what was done; never seconds.
    diagnostics : dict of str to float
        As of the posterior.
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


def infer(method: Method, prior: Prior, y: ArrayLike, *, rng: Rng) -> Inference:
    """Fit `method` and keep the numbers alone: a posterior may hold gigabytes of samples.

    Parameters
    ----------
    method : Method
        Options of a method, e.g. ``ExpectationPropagation()``.
    prior, y, rng
        As of `Method.fit`.

    Raises
    ------
    ValueError, ConvergenceError, ExtinctionError, MemoryError
        As `Method.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpcmc.gp import prior, rbf
    >>> from gpcmc.inference import Laplace, infer
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> found = infer(Laplace(), prior(rbf(alpha=1.0, beta=1.0), X, [[2.0]]), y, rng=None)
    >>> bool(found.probability[0] > 0.5), found.status
    (True, 'ok')
    """
    posterior = method.fit(prior, y, rng=rng)
    return Inference(
        log_evidence=posterior.log_evidence,
        log_evidence_se=posterior.log_evidence_se,
        probability=posterior.prediction.probability,
        probability_se=posterior.prediction.standard_error,
        work=posterior.work,
        diagnostics=posterior.diagnostics,
        status=posterior.status,
    )
