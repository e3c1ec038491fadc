"""Predictions that integrate over the hyperparameters by quadrature, without a chain.

With one length scale there are two hyperparameters, so that no chain is needed, and none has to mix. The posterior of
(log sigma, log tau) is taken to be EP's evidence times the prior. EP's evidence stands for the exact one, which the
chains of `studies.filippone2014.prediction` have: how far the two predictions are apart is a measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpcmc.chains.hyperparameters import covariance_at, default_prior, squared_differences
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import gaussian_proposal
from studies.common.rows import Line
from studies.filippone2014.prediction import Task, scores
from studies.filippone2014.simulated import median_start

Array = np.ndarray
_EP = ExpectationPropagation(tolerance=1e-6)
#: The log density but for a constant, and the probabilities (t,) of the test cases, at (log sigma, log tau).
Node = Callable[[Array], tuple[float, Array]]
#: The first grid about the medians of the prior: farthest values of (log sigma, log tau), and its step.
_LOW, _HIGH, _STEP = np.array([-12.0, -9.0]), np.array([6.0, 5.0]), 1.5
#: A grid ends where the density is so many nats below its largest value.
_DEPTH = 12.0


class Integral(NamedTuple):
    """Mean probabilities (t,), those of every other value of each axis, and the numbers of intervals and of nodes."""

    probability: Array
    coarse: Array
    intervals: int
    nodes: int


def integrated(task: Task, *, intervals: int, most: int, tolerance: float) -> Line:
    """Predict the test cases by quadrature.

    Parameters
    ----------
    task : Task
        The training set is that of the other methods.
    intervals, most, tolerance
        As of `mean_probability`.

    Returns
    -------
    dict
        The scores; ``change`` of the log loss against every other value of each axis; ``intervals`` and ``nodes``.
    """
    start = median_start(default_prior(task.X.shape[1]))
    given: dict[str, Any] = {"intervals": intervals, "most": most, "tolerance": tolerance}
    found = mean_probability(partial(at_node, task), start, **given)
    line: Line = {**scores(found.probability, task.y_star)}
    line["change"] = abs(scores(found.coarse, task.y_star)["log_loss"] - line["log_loss"])
    return line | {"intervals": found.intervals, "nodes": found.nodes}


def at_node(task: Task, theta: Array) -> tuple[float, Array]:
    """Return EP's log evidence and the prior's log density, and EP's probabilities of the test cases."""
    K = covariance_at(squared_differences(task.X, task.X, 1), theta)
    posterior = gaussian_proposal(_EP, K, task.y)
    K_star = covariance_at(squared_differences(task.X, task.X_star, 1), theta)
    p = posterior.predict(K_star, np.full(len(task.y_star), np.exp(theta[0]))).probability
    prior = default_prior(task.X.shape[1])
    return posterior.log_evidence + prior.log_density(theta), p


def mean_probability(
    node: Node, start: Array, *, intervals: int, most: int, tolerance: float
) -> Integral:
    """Return the mean of probabilities under a density in the plane, by the trapezoidal rule.

    A wide grid about `start` finds the rectangle outside of which the density is 12 nats below its largest value. The
    grid of this rectangle is halved until no mean probability differs by more than `tolerance` from that of every
    other value of each axis, or there are `most` intervals. For smooth densities that vanish at the edge the error
    falls faster than any power of the step, so that this difference is far above the error.
    """
    known: dict[tuple[float, float], tuple[float, Array]] = {}

    def values(axes: Sequence[Array]) -> tuple[Array, Array]:
        found = []
        for x in axes[0]:
            for z in axes[1]:
                if (key := (float(x), float(z))) not in known:
                    known[key] = node(np.array(key))
                found.append(known[key])
        shape = len(axes[0]), len(axes[1])
        return np.reshape([one[0] for one in found], shape), np.reshape(
            [one[1] for one in found], (*shape, -1)
        )

    wide = [
        middle + np.arange(low, high + _STEP / 2, _STEP)
        for middle, low, high in zip(start, _LOW, _HIGH, strict=True)
    ]
    log_p, _ = values(wide)
    ends = []
    for k, axis in enumerate(wide):
        inside = np.flatnonzero(log_p.max(axis=1 - k) > log_p.max() - _DEPTH)
        ends.append((axis[max(inside[0] - 1, 0)], axis[min(inside[-1] + 1, len(axis) - 1)]))
    while True:
        axes = [np.linspace(*end, intervals + 1) for end in ends]
        log_p, p = values(axes)
        fine, coarse = _mean(log_p, p), _mean(log_p[::2, ::2], p[::2, ::2])
        if np.abs(fine - coarse).max() <= tolerance or 2 * intervals > most:
            return Integral(fine, coarse, intervals, len(known))
        intervals *= 2


def _mean(log_p: Array, p: Array) -> Array:
    """The mean of p (a, b, t) with the weights exp(log_p) (a, b): ends count half."""
    weight = np.exp(log_p - log_p.max())
    weight[[0, -1]] *= 0.5
    weight[:, [0, -1]] *= 0.5
    return np.einsum("ab,abt->t", weight, p) / weight.sum()
