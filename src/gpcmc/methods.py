"""What an inference method is: options with `fit`.

A method is one module with one frozen dataclass of options, a subclass of `Method` that says how the posterior is found
(`_fit`) once the arguments are known to be good. `Method.fit` is the same for all. The names of the methods are in
`gpcmc.inference.METHODS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, Rng, check_labels, check_memory, check_rng
from gpcmc.covariance.prior import Prior
from gpcmc.posterior import OK, Posterior

#: Bytes that Laplace's method needs over n^2: six matrices like the covariance, which is one of them.
LEAST_MEMORY = 6 * 8.0

P = TypeVar("P", bound=Posterior)


class Method(ABC, Generic[P]):
    """Options of an inference method, all of which have the one public method `fit`."""

    __slots__ = ()

    #: Whether `fit` needs no random numbers.
    deterministic: ClassVar[bool] = False
    #: Whether the method works on a covariance of any form; if not, it gets the array.
    any_form: ClassVar[bool] = False
    #: Matrices like the covariance, which is one of them, that `fit` holds at its peak (benchmarks/large.py).
    matrices: ClassVar[float] = 8.0

    def memory(self, n: int) -> float:
        """Return about how many bytes `fit` needs at its peak for n training patterns with a dense covariance."""
        return 8.0 * self.matrices * n**2

    def check_size(self, n: int) -> None:
        """Refuse n training patterns if `fit` would need more memory than this machine has, with a dense covariance.

        Raises
        ------
        MemoryError
            If it would; the message says how much, and what fits.
        """
        check_memory(type(self).__name__, n, self.memory(n), LEAST_MEMORY * n**2)

    def check_labels(self, y: ArrayLike, n: int) -> FloatArray:
        """Return labels as `_fit` takes them: -1/+1 (n,).

        Raises
        ------
        ValueError
            If they are not as the method wants them.
        """
        return check_labels("y", y, n)

    def fit(
        self,
        prior: Prior,
        y: ArrayLike,
        *,
        rng: Rng = None,
        start: Posterior | None = None,
    ) -> P:
        """Find the posterior, the evidence, and the probabilities at the prior's test inputs.

        Parameters
        ----------
        prior : Prior
            Covariances at n training and t test inputs; t may be 0. The covariance may be of any form.
        y : (n,) array
            Labels -1/+1.
        rng : numpy.random.Generator, int or RandomState, optional
            Required by a method that draws, and consumed: equal states give equal bits on one machine. An integer is
            a seed.
            A deterministic method ignores it.
        start : Posterior, optional
            A Gaussian one of near hyperparameters and the same labels, where a method that iterates begins; it ends
            where it would without. Other methods ignore it.

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
        if not isinstance(prior, Prior):
            raise ValueError(
                "prior must be a gpcmc.gp.Prior: Prior(K) for a covariance K, or "
                f"gpcmc.gp.prior(kernel, X, X_star); got {type(prior).__name__}"
            )
        with one_thread():
            random = None if self.deterministic else check_rng("rng", rng)
            if not self.any_form or prior.covariance.memory(len(prior), self.matrices):
                self.check_size(len(prior))
            checked = prior.checked()
            labels = self.check_labels(y, len(prior))
            if not self.any_form:
                checked = checked.densified()
            return self._fit_from(checked, labels, cast(np.random.Generator, random), start)

    @abstractmethod
    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> P:
        """Do what `fit` promises with arguments that are checked, in one thread.

        `rng` is None where a deterministic method was given none.
        """

    def _fit_from(self, prior: Prior, y: FloatArray, rng: np.random.Generator, start: Any) -> P:
        """Do the same from a posterior that is given, or None, if the method iterates."""
        return self._fit(prior, y, rng)


@dataclass(frozen=True, slots=True)
class Inference:
    """The numbers of one run of a method, without the samples that they come from.

    Attributes
    ----------
    probability : (t,) array
        P(y* = +1 | y) at the test inputs. Of no length when the method stopped before it could predict.
    probability_se : (t,) array
        Its Monte Carlo standard errors.
    log_evidence, log_evidence_se, work, diagnostics, status
        As of `PosteriorRecord`.
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
