"""What a user should know of a fit: one sentence a thing, from facts that the fit left, and only where it matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpcmc._fitting import Fitted
from gpcmc._validation import FloatArray
from gpcmc.evidence import Optimum, Surface, bounded, surface_method
from gpcmc.evidence.scale import distances, knowing_shares, scaled_starts, some_of, vectors
from gpcmc.posterior import (
    MIN_EFFECTIVE,
    NOT_CONVERGED,
    NOT_MET,
    OK,
    TOO_ROUGH,
    UNTRUSTED,
    ConvergenceError,
)

_SHOWN = (
    "effective_eves", "effective_samples", "r_hat", "k_hat", "effective_runs", "correction", "correction_rest", "rank",
    "residual",
)  # fmt: skip
_UNCORRELATED = 1e-3  # largest correlation of a kernel that tells nothing of other inputs
_FLAT = 0.25  # probabilities that differ by less tell little
_GAIN = 0.1  # nats; less is not worth a word
_AHEAD = 3.0  # units of a logarithm over which a slope at a bound may be believed
_SPREAD = 10.0  # ratio of standard deviations of columns that are not in one scale
_LOOKED_AT = 250  # patterns
_BETTER = 2.0  # nats


def advice(labels: Sequence[str], fits: Sequence[Fitted], X: Any) -> list[str]:
    """Return what to warn of, most important first; nothing of fits that are as they should be.

    Parameters
    ----------
    labels : sequence of str
        Of the classes, one against the rest; one empty string for a fit of all.
    fits : sequence of Fitted
    X : (n, d) array, or n things that the kernel takes
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for label, fitted in zip(labels, fits, strict=True):
        for kind, text in _of_one(fitted, X):
            found.setdefault(kind, []).append((label, text))
    lines = []
    for told in found.values():
        (label, text), others = told[0], [other for other, _ in told[1:]]
        also = f" (and likewise {', '.join(others)})" if others else ""
        lines.append(f"{label}: {text}{also}" if label else text)
    return lines


def _of_one(fitted: Fitted, X: Any) -> list[tuple[str, str]]:
    """Return kinds and texts of what there is to say of one fit."""
    found = []
    if fitted.found is not None:
        found.append(("scale", _of_scales(fitted, X)))
        if not found[0][1]:
            found.append(("nothing", _of_nothing(fitted, X)))
        found.append(("bounds", _of_bounds(fitted.kernel, fitted.found, X)))
        if not fitted.found.converged:
            text = (
                "the optimizer stopped where the marginal likelihood still rises; try n_restarts_optimizer, or a "
                "kernel with other starting values"
            )
            found.append(("converged", text))
    return [(kind, text) for kind, text in [*found, ("status", _of_status(fitted))] if text]


def _of_scales(fitted: Fitted, X: Any) -> str:
    """Say that columns should be in one scale, where some of the patterns are then much more probable."""
    scale = _length_scale(fitted.kernel)
    if scale is None or not vectors(X) or len(scale) > 1 or X.shape[1] < 2:
        return ""
    spread = X.std(axis=0)
    some = spread[spread > 0]
    if len(some) < 2 or some.max() < _SPREAD * some.min():
        return ""
    here = some_of(fitted.y, _LOOKED_AT)
    y, method = fitted.y[..., here], surface_method(fitted.method, searching=True)
    Z = (X[here] - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    try:
        now = Surface(method, fitted.kernel, X[here], y).value(fitted.kernel.theta)
        scaled = Surface(method, fitted.kernel, Z, y)
        better = max(scaled.value(theta) for theta in scaled_starts(fitted.kernel, Z))
    except (ValueError, ConvergenceError):
        return ""
    if better < now + _BETTER:
        return ""
    return (
        f"the columns of X are not in one scale (standard deviations from {some.min():.3g} to {some.max():.3g}), and "
        "with a common length scale the labels are more probable where they are: standardise the inputs, as "
        "make_pipeline(StandardScaler(), ...) does, or give each column a length scale, RBF(np.ones(d))"
    )


def _of_nothing(fitted: Fitted, X: Any) -> str:
    """Say why the kernel tells nothing of the classes, where a search ended so."""
    assert fitted.found is not None
    correlation = 1.0 if fitted.form.held else _correlation(fitted, X)
    if correlation >= _UNCORRELATED and not _knows_nothing(fitted):
        return ""
    where = (
        f"{fitted.kernel} tells nothing of the classes: the marginal likelihood is that of their shares, and "
        f"probabilities differ by {fitted.spread:.2g} between patterns at most"
    )
    scale = _length_scale(fitted.kernel)
    if scale is None or not vectors(X):
        return f"{where}. Try n_restarts_optimizer, or another kernel"
    middle, _ = distances(X)
    if correlation < _UNCORRELATED:
        how = "no two patterns are correlated: the length scale is far below all distances"
    elif scale.min() > 10 * middle:
        how = "all patterns are alike to it: the length scale is far above all distances"
    else:
        return f"{where}. The inputs do not tell the classes apart, or not by this kernel"
    low, high = np.exp(fitted.kernel.bounds.T)
    inside = bool(((low <= middle) & (middle <= high)).any())
    remedy = (
        "" if inside else ". Widen the bounds of the length scale so that they hold that distance"
    )
    return f"{where}, and {how} (their median is {middle:.3g}){remedy}"


def _correlation(fitted: Fitted, X: Any) -> float:
    """Return the largest correlation between two patterns, of as many as are looked at."""
    K = fitted.form.prior(fitted.kernel, X[some_of(fitted.y, _LOOKED_AT)]).covariance.dense()
    return float(np.abs(np.triu(K, 1)).max() / max(K.diagonal().max(), 1e-300))


def _knows_nothing(fitted: Fitted) -> bool:
    """Return whether probabilities differ little between patterns, and the evidence is that of the classes' shares."""
    assert fitted.found is not None
    shares = knowing_shares(fitted.y)
    return fitted.spread < _FLAT and fitted.found.log_evidence < shares + _GAIN


def _length_scale(kernel: Kernel) -> FloatArray | None:
    """Return all length scales of a kernel; None if it has none."""
    scales = [
        np.atleast_1d(value)
        for name, value in kernel.get_params().items()
        if name.endswith("length_scale")
    ]
    return np.concatenate(scales).astype(float) if scales else None


def _of_bounds(kernel: Kernel, found: Optimum, X: Any) -> str:
    """Say what ended at which bound, and what that may mean, where the marginal likelihood rises beyond it."""
    if not found.at_bound or found.gradient is None:
        return ""
    at = bounded(kernel)
    low, high = kernel.bounds.T
    outward = np.where(np.abs(kernel.theta - high) < np.abs(kernel.theta - low), 1.0, -1.0)
    if max(outward * found.gradient) * _AHEAD < _GAIN:
        return ""
    ends = ", ".join(f"{name} = {value:.3g} ({side})" for name, value, side in at)
    reasons = [text for name, value, side in at for text in _meanings(name, value, side, X)]
    text = f"{ends} ended at a bound of the kernel, and the marginal likelihood still rises there"
    means = f" ({'; '.join(dict.fromkeys(reasons))})" if reasons else ""
    return f"{text}{means}. Widen the bounds, or fix the value"


def _meanings(name: str, value: float, side: str, X: Any) -> list[str]:
    """Return what a hyperparameter at this side of its bounds says."""
    if "constant_value" in name:
        if side == "upper":
            return ["a variance at its upper bound says that the classes are separable"]
        return ["a variance at its lower bound says that this part of the kernel is not needed"]
    if "length_scale" not in name:
        return []
    middle = distances(X)[0] if vectors(X) else value
    if value > 10 * middle and side == "lower":
        return [f"the length scale is far above all distances, whose median is {middle:.3g}"]
    if value < 0.1 * middle and side == "upper":
        return [f"the length scale is far below all distances, whose median is {middle:.3g}"]
    if side == "upper":
        return ["a length scale at its upper bound says that an input does not matter"]
    return ["a length scale at its lower bound says that the labels look like noise"]


def _of_status(fitted: Fitted) -> str:
    """Say that the method's own status is not ok, by which numbers, and what helps."""
    status, told = fitted.posterior.status, fitted.posterior.diagnostics
    if status == OK:
        return ""
    if status == NOT_MET:
        error = fitted.posterior.log_evidence_se
        return (
            f"{type(fitted.method).__name__}: {status}, the standard error of the marginal likelihood is {error:.3g} "
            "nats: raise points, or tolerance if that is small enough"
        )
    numbers = ", ".join(f"{name} {told[name]:.3g}" for name in _SHOWN if name in told)
    remedy = {
        NOT_CONVERGED: f"more samples help (at least {MIN_EFFECTIVE:.0f} effective ones are needed), or "
        "inference='twisted-ep' or 'ep'",
        UNTRUSTED: "a few weights make the average: more samples seldom help; use inference='twisted-ep' or 'ep'",
        TOO_ROUGH: "lower tolerance, or use covariance='dense'"
        if fitted.form.name == "low-rank"
        else "use covariance='dense', or the numbers as an approximation",
    }.get(status, "raise the limits of the method, or use inference='ep'")
    return (
        f"{type(fitted.method).__name__}: {status} ({numbers or 'no diagnostics'}), so that its probabilities, its "
        f"marginal likelihood and their errors should not be used: {remedy}"
    )
