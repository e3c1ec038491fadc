"""One run of a method, and what it says where it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.importance import ImportanceSampling
from gpcmc.methods import Inference, Method
from gpcmc.orthant import ExtinctionError
from gpcmc.orthant.method import Orthant, OrthantPosterior
from gpcmc.posterior import NOT_CONVERGED, OK, ConvergenceError, Prediction

#: What a row says where a run has no answer because all samples were lost.
EXTINCT = "extinct"


@dataclass(frozen=True, slots=True)
class Answer(Inference):
    """The numbers of one run.

    Attributes
    ----------
    readings : mapping of str to Prediction
        Of a chain of the toolbox, its predictions in each way that the authors may have made them; else empty.
    """

    readings: Mapping[str, Prediction] = field(default_factory=dict)


class Attempt(NamedTuple):
    """What became of a run.

    Attributes
    ----------
    found : Answer or None
        The method's answer; None where it has none.
    status : str
        The answer's own, or why there is none.
    seconds : float
        CPU seconds of this process, around the method alone.
    """

    found: Answer | None
    status: str
    seconds: float


def infer(method: Method, gp: Prior, y: np.ndarray, *, rng: np.random.Generator | None) -> Answer:
    """Return a method's evidence and test probabilities, without the samples that they come from."""
    found = with_own_status(method, gp, y, rng=rng)
    if isinstance(method, Orthant) and method.scheme == "bootstrap":
        # the paper's algorithm counts no eves: its runs enter the comparison whatever their genealogy says
        others = {k: v for k, v in found.diagnostics.items() if k != "effective_eves"}
        return replace(found, status=OK, diagnostics=others)
    if isinstance(method, ImportanceSampling) and found.status == NOT_CONVERGED:
        return replace(found, status=OK)  # its weights are judged by their tail alone
    return found


def with_own_status(
    method: Method, gp: Prior, y: np.ndarray, *, rng: np.random.Generator | None
) -> Answer:
    """As `infer`, with the status that the library gives.

    Both have the standard error that the formula gives for a lone eve, too, which the study judges; the library says
    infinity there.
    """
    posterior = method.fit(gp, y, rng=rng)
    readings = getattr(posterior, "readings", None)
    log_evidence_se = posterior.log_evidence_se
    if isinstance(posterior, OrthantPosterior):
        log_evidence_se = posterior.estimate.formula_error
    return Answer(
        log_evidence=posterior.log_evidence,
        log_evidence_se=log_evidence_se,
        probability=posterior.prediction.probability,
        probability_se=posterior.prediction.standard_error,
        work=posterior.work,
        diagnostics=posterior.diagnostics,
        status=posterior.status,
        readings=readings(gp.K_star, gp.k_star_star) if readings and len(gp.k_star_star) else {},
    )


def attempt(compute: Callable[[], Answer]) -> Attempt:
    """Run a method, and time it; an iteration or a population that failed is an answer too."""
    start = time.process_time()
    found = None
    try:
        found = compute()
        status = found.status
    except ConvergenceError:
        status = NOT_CONVERGED
    except ExtinctionError:
        status = EXTINCT
    return Attempt(found, status, time.process_time() - start)
