"""One run of a method, and what it says where it fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpcmc.gp.covariance import Prior
from gpcmc.inference.interface import NOT_CONVERGED, ConvergenceError, Inference, Method
from gpcmc.inference.interface import infer as _infer
from gpcmc.orthant.sampler import ExtinctionError

#: What a row says where a run has no answer: the raw data could not be had; all samples were lost.
NO_DATA, EXTINCT = "data not available", "extinct"


class Attempt(NamedTuple):
    """What became of a run.

    Attributes
    ----------
    found : Inference or None
        The method's answer; None where it has none.
    status : str
        The answer's own, or why there is none.
    seconds : float
        CPU seconds of this process, around the method alone.
    """

    found: Inference | None
    status: str
    seconds: float


def infer(
    method: Method, gp: Prior, y: np.ndarray, *, rng: np.random.Generator | None
) -> Inference:
    """Return a method's evidence and test probabilities."""
    return _infer(method, gp, y, rng=rng)


def attempt(compute: Callable[[], Inference]) -> Attempt:
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
