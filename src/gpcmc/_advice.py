"""What a user should know of a fit: one sentence a thing, from facts that the fit left."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpcmc._problem import UNCORRELATED, Fitted
from gpcmc._search import distances, knowing_shares
from gpcmc._validation import FloatArray
from gpcmc.inference.evidence import bounded
from gpcmc.posterior import MIN_EFFECTIVE, NOT_CONVERGED, OK, TOO_ROUGH, UNTRUSTED

_SHOWN = (
    "effective_eves", "effective_samples", "r_hat", "k_hat", "effective_runs", "correction", "correction_rest",
)  # fmt: skip


def advice(fitted: Fitted, X: Any) -> list[str]:
    """Return what to warn of, most important first; nothing of a fit that is as it should be.

    Parameters
    ----------
    fitted : Fitted
    X : (n, d) array, or n things that the kernel takes
    """
    found = [_of_nothing(fitted, X)]
    if found == [""] and fitted.found is not None:
        found = [_of_bounds(bounded(fitted.kernel))]
        if not fitted.found.converged:
            found.append(
                "the optimizer stopped where the marginal likelihood still rises; try n_restarts, or a "
                "kernel with other starting values"
            )
    return [text for text in [*found, _of_status(fitted)] if text]


def _of_nothing(fitted: Fitted, X: Any) -> str:
    """Say why the kernel tells nothing of the classes, where a search ended so."""
    if fitted.found is None:
        return ""
    if fitted.correlation >= UNCORRELATED and not _knows_nothing(fitted):
        return ""
    where = f"{fitted.kernel} tells nothing of the classes, whose probabilities are about the same everywhere"
    scale = _length_scale(fitted.kernel)
    if scale is None or not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return f"{where}: no two patterns are correlated, or all are alike. Try n_restarts, or another kernel"
    middle, _ = distances(X)
    if fitted.correlation < UNCORRELATED:
        how = "no two patterns are correlated: the length scale is far below all distances"
    elif scale.min() > 10 * middle:
        how = "all patterns are alike to it: the length scale is far above all distances"
    else:
        return f"{where}: the inputs do not tell the classes apart, or not by this kernel"
    return (
        f"{where}, for {how} (their median is {middle:.3g}). Scale the inputs, or widen the bounds of the length scale "
        "so that they hold that distance"
    )


def _knows_nothing(fitted: Fitted) -> bool:
    """Return whether the evidence is no more than that of the shares of the classes."""
    assert fitted.found is not None
    return bool(fitted.found.log_evidence < knowing_shares(fitted.y) + 0.1)


def _length_scale(kernel: Kernel) -> FloatArray | None:
    """Return all length scales of a kernel; None if it has none."""
    scales = [
        np.atleast_1d(value)
        for name, value in kernel.get_params().items()
        if name.endswith("length_scale")
    ]
    return np.concatenate(scales).astype(float) if scales else None


def _of_bounds(found: list[tuple[str, float, str]]) -> str:
    """Say what ended at which bound, and what that may mean."""
    if not found:
        return ""
    ends = ", ".join(f"{name} = {value:.3g} ({side})" for name, value, side in found)
    reasons = []
    if any("length_scale" in name and side == "upper" for name, _, side in found):
        reasons.append("a length scale at its upper bound says that an input does not matter")
    if any("length_scale" in name and side == "lower" for name, _, side in found):
        reasons.append("a length scale at its lower bound, that the labels look like noise")
    if any("constant_value" in name and side == "upper" for name, _, side in found):
        reasons.append("a variance at its upper bound, that the classes are separable")
    if any("constant_value" in name and side == "lower" for name, _, side in found):
        reasons.append("a variance at its lower bound, that this part of the kernel is not needed")
    text = f"{ends} ended at a bound of the kernel: the marginal likelihood has its maximum there or beyond"
    means = f" ({'; '.join(reasons)})" if reasons else ""
    return f"{text}{means}. Widen the bounds, or fix the value"


def _of_status(fitted: Fitted) -> str:
    """Say that the method's own status is not ok, by which numbers, and what helps."""
    status, told = fitted.posterior.status, fitted.posterior.diagnostics
    if status == OK:
        return ""
    numbers = ", ".join(f"{name} {told[name]:.3g}" for name in _SHOWN if name in told)
    remedy = {
        NOT_CONVERGED: f"more samples help (at least {MIN_EFFECTIVE:.0f} effective ones are needed), or "
        "inference='twisted-ep' or 'ep'",
        UNTRUSTED: "a few weights make the average: more samples seldom help; use inference='twisted-ep' or 'ep'",
        TOO_ROUGH: "lower tolerance, or use the dense covariance",
    }.get(status, "raise the limits of the method, or use inference='ep'")
    return (
        f"{type(fitted.method).__name__}: {status} ({numbers or 'no diagnostics'}), so that its probabilities, its "
        f"marginal likelihood and their errors should not be used: {remedy}"
    )
