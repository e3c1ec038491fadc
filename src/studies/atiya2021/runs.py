"""One run of a method, and what it says where it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpcmc.gp.covariance import Prior
from gpcmc.inference.interface import (
    NOT_CONVERGED,
    OK,
    ConvergenceError,
    Inference,
    Method,
    Prediction,
)
from gpcmc.inference.orthant import Orthant
from gpcmc.orthant.sampler import ExtinctionError

#: What a row says where a run has no answer: the raw data could not be had; all samples were lost.
NO_DATA, EXTINCT = "data not available", "extinct"


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
    posterior = method.fit(gp, y, rng=rng)
    readings = getattr(posterior, "readings", None)
    status, diagnostics = posterior.status, posterior.diagnostics
    if isinstance(method, Orthant) and method.scheme == "bootstrap":
        # the paper's algorithm counts no eves: its runs enter the comparison whatever their genealogy says
        status, _ = OK, diagnostics.pop("effective_eves")
    return Answer(
        log_evidence=posterior.log_evidence,
        log_evidence_se=posterior.log_evidence_se,
        probability=posterior.prediction.probability,
        probability_se=posterior.prediction.standard_error,
        work=posterior.work,
        diagnostics=diagnostics,
        status=status,
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
