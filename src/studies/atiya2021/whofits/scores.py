"""How good held-out predictions are: log loss, errors, calibration in bins, and the recalibration that they need.

The binned error of calibration jumps with the bins. Recalibration has two numbers and no bins: labels are regressed on
the score z = Phi^-1(p) of the predictions, P(y = +1) = Phi(a + b z). Calibrated predictions have a = 0 and b = 1; where
b is below one they are too sure of themselves.

References
----------
Cox (1958), Biometrika 45, 562. Naeini, Cooper and Hauskrecht (2015), AAAI, for the bins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

#: Bins with equally many patterns each.
BINS = 10
#: A rounded zero would make an infinite loss.
_LEAST = np.finfo(float).eps
_STEPS, _SMALL = 100, 1e-10
#: A slope above it: predictions that tell all patterns apart have none, and it grows without end.
_ENDLESS = 1e3


class Recalibration(NamedTuple):
    """Intercept a and slope b with their standard errors; NaN where predictions tell the classes apart."""

    intercept: float
    slope: float
    intercept_se: float
    slope_se: float


def losses(probability: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log loss in nats (t,) of each of the probabilities (t,) of class +1, of labels -1/+1 (t,)."""
    of_truth = np.where(y > 0, probability, 1.0 - probability)
    return -np.log(np.maximum(of_truth, _LEAST))


def binned_error(probability: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the mean gap between probability and share of class +1 in bins of equally many patterns."""
    order = np.argsort(probability, kind="stable")
    gaps = (probability - (y > 0))[order]
    return float(sum(abs(part.sum()) for part in np.array_split(gaps, BINS)) / len(y))


def recalibration(probability: NDArray[np.float64], y: NDArray[np.float64]) -> Recalibration:
    """Return the probit regression of labels -1/+1 (t,) on the scores of probabilities (t,), by Newton's method."""
    none = Recalibration(*[float("nan")] * 4)
    z = ndtri(np.clip(probability, _LEAST, 1.0 - _LEAST))
    if len(np.unique(y)) < 2 or np.ptp(z) == 0.0 or _apart(z, y):
        return none
    A = np.column_stack([np.ones(len(z)), z])
    at, value = np.array([0.0, 1.0]), -np.inf
    for _ in range(_STEPS):
        found, gradient, information = _regression(A, y, at)
        step = np.linalg.solve(information, gradient)
        # the log likelihood is concave; a whole step may still go too far
        while _regression(A, y, at + step)[0] < found and np.abs(step).max() > _SMALL:
            step = 0.5 * step
        at = at + step
        if abs(at[1]) > _ENDLESS:
            return none
        if np.abs(step).max() <= _SMALL or found == value:
            break
        value = found
    error = np.sqrt(np.diag(np.linalg.inv(_regression(A, y, at)[2])))
    return Recalibration(*map(float, (*at, *error)))


def _regression(
    A: NDArray[np.float64], y: NDArray[np.float64], at: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Log likelihood of a probit regression, its gradient (2,) and minus its Hessian (2, 2)."""
    eta = y * (A @ at)
    log_right = log_ndtr(eta)
    ratio = np.exp(-0.5 * eta**2 - 0.5 * np.log(2.0 * np.pi) - log_right)
    return float(log_right.sum()), A.T @ (y * ratio), (A.T * (ratio * (ratio + eta))) @ A


def _apart(z: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
    """Whether a threshold tells the classes apart, in either direction."""
    above, below = z[y > 0], z[y < 0]
    return bool(above.min() >= below.max() or above.max() <= below.min())


def scores(probability: NDArray[np.float64], y: NDArray[np.float64]) -> dict[str, float]:
    """Return ``log_loss`` in nats, ``error_rate``, ``binned_error`` and the entries of `Recalibration`."""
    decided = np.where(probability >= 0.5, 1.0, -1.0)
    return {
        "log_loss": float(losses(probability, y).mean()),
        "error_rate": float(np.mean(decided != y)),
        "binned_error": binned_error(probability, y),
        **recalibration(probability, y)._asdict(),
    }
