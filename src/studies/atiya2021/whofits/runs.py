"""One fit: hyperparameters by Laplace's method and by expectation propagation (EP), judged by twisted EP.

The judge's estimate of the evidence is unbiased, has a standard error, and a gradient. The optimum of the judge is
searched for from EP's optimum. A search on the judge itself would cost an estimate a step; in its place EP's evidence
is climbed, plus the linear term that gives it the judge's gradient where it starts (Alexandrov, Lewis, Gumbert, Green
and Newman 2001, Journal of Aircraft 38, 1093). EP's curvature is near the judge's, so that few such climbs are enough.
Other points then say which place is higher.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from gpcmc.covariance.prior import prior
from gpcmc.evidence import (
    DENSE,
    CommonPoints,
    Search,
    Surface,
    climb,
    exact_surface,
    surface_method,
)
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from gpcmc.posterior import NOT_CONVERGED, ConvergenceError
from gpcmc.rectangle.classification import SampledPosterior, Twisted
from studies.atiya2021.problems import Problem
from studies.atiya2021.whofits.scores import losses, scores
from studies.common.rows import Line, Result
from studies.common.seeds import generator, seed
from studies.common.timing import import_late

_FloatArray = NDArray[np.float64]

#: Methods whose evidence is climbed, by name: each climb has a point, and the judge's own the third.
CLIMBED = {"ep": ExpectationPropagation(), "laplace": Laplace()}
#: The point that the judge's gradient leads to.
JUDGED = "twisted-ep"
#: Bounds of the variance, and of a length scale over the median distance. They are wide: no variance is at one.
_VARIANCE, _REACH = (1e-4, 1e8), (1e-3, 1e4)
#: Most that a logarithm moves in a climb with the judge's gradient.
_STEP = 1.0
#: Of the way to the end of a climb, what is tried. A third gains if no more than five sixths of the promise is noise.
_SHARES = (1.0, 1.0 / 3.0)


class Judged(NamedTuple):
    """What the judge says of hyperparameters."""

    theta: _FloatArray  # (p,)
    posterior: SampledPosterior
    status: str


@dataclass(slots=True)
class Judge:
    """Twisted EP with one stream for all hyperparameters, so that differences have small errors.

    Attributes
    ----------
    kernel : Kernel
    problem : Problem
    method : Twisted
    path : str
        The seed of its random stream.
    """

    kernel: Kernel
    problem: Problem
    method: Twisted
    path: str
    _seen: dict[bytes, Judged] = field(default_factory=dict, repr=False)

    def at(self, theta: _FloatArray) -> Judged:
        """Return evidence and predictions at hyperparameters (p,)."""
        if theta.tobytes() not in self._seen:
            X, X_test = self.problem.X_train, self.problem.X_test
            gp = prior(self.kernel.clone_with_theta(theta), X, X_test)
            found = self.method.fit(gp, self.problem.y_train, rng=generator(self.path))
            self._seen[theta.tobytes()] = Judged(theta, cast(SampledPosterior, found), found.status)
        return self._seen[theta.tobytes()]


def above(one: Judged, other: Judged) -> tuple[float, float]:
    """Return by how many nats the first has more evidence, and the standard error.

    Both have the same random numbers, so that their randomisations are pairs.
    """
    a, b = one.posterior.samples, other.posterior.samples
    error = float(np.std(a.share - b.share, ddof=1) / np.sqrt(len(a.share)))
    return float(a.log_plain - b.log_plain), error


def kernel_at_start(X: _FloatArray, relevance: bool) -> Kernel:
    """Return the RBF kernel where searches start: variance one, length scales of the median distance over root two.

    Parameters
    ----------
    X : (n, d) array
        Training inputs.
    relevance : bool
        Whether each input has a length scale.
    """
    scale = float(np.median(pdist(X))) / np.sqrt(2.0)
    low, high = (scale * reach for reach in _REACH)
    length_scale = np.full(X.shape[1], scale) if relevance else scale
    return ConstantKernel(1.0, _VARIANCE) * RBF(length_scale, (low, high))


class Climb(NamedTuple):
    """The end of a search: theta (p,), the evidence there by the method that was climbed, and how it went."""

    theta: _FloatArray
    log_evidence: float
    evaluations: int
    converged: bool
    seconds: float


def fitted(method: str, kernel: Kernel, X: _FloatArray, y: _FloatArray) -> Climb:
    """Return the optimum of ``ep`` or ``laplace`` by the search of the library."""
    climbed = surface_method(CLIMBED[method], searching=True)
    start = time.process_time()
    rng = np.random.default_rng(0)  # no restarts, so nothing is drawn
    found, _ = Search("lbfgs").run(climbed, kernel, X, y, rng, form_at=lambda _: DENSE)
    seconds = time.process_time() - start
    return Climb(found.theta, found.log_evidence, found.evaluations, found.converged, seconds)


def corrected(
    kernel: Kernel, X: _FloatArray, y: _FloatArray, start: _FloatArray, common: CommonPoints
) -> tuple[_FloatArray, float]:
    """Return where EP's evidence with the judge's gradient at the start is highest, near it, and by how many nats.

    Parameters
    ----------
    kernel, X, y
        As of `gpcmc.evidence.Surface`.
    start : (p,) array
    common : CommonPoints
        Of the judge's gradient.

    Raises
    ------
    ValueError, ConvergenceError
        If either evidence cannot be evaluated at the start.
    """
    approximate = Surface(surface_method(CLIMBED["ep"], searching=True), kernel, X, y)
    _, slope = exact_surface(kernel, X, y, common).value_and_gradient(start)
    more = slope - approximate.value_and_gradient(start)[1]

    def tilted(theta: _FloatArray) -> tuple[float, _FloatArray]:
        value, gradient = approximate.value_and_gradient(theta)
        return value + float(more @ (theta - start)), gradient + more

    near = np.column_stack([start - _STEP, start + _STEP])
    bounds = np.clip(near, *kernel.bounds.T[:, :, None])
    found = climb(tilted, [start], bounds, poor=approximate.poor)
    return found.theta, found.value - tilted(start)[0]


def own_optimum(
    judge: Judge, start: _FloatArray, points: int, steps: int
) -> tuple[Judged, int, float]:
    """Return the highest place that the judge's gradient leads to, the climbs made, and what the first one promised.

    Gradients have points of their own, and noise. The judge's points say whether the end of a climb, or else a place a
    third of the way, is higher than where it began; the search ends where neither is.
    """
    best, made, promised = judge.at(start), 0, float("nan")
    rng = generator(seed(judge.path, "climb"))
    common = CommonPoints(points, rng.integers(2**63, size=judge.method.randomizations))
    X, y = judge.problem.X_train, judge.problem.y_train
    for _ in range(steps):
        before = best
        try:
            theta, rise = corrected(judge.kernel, X, y, before.theta, common)
            promised = rise if made == 0 else promised
            way, made = theta - before.theta, made + 1
            for share in _SHARES:
                found = judge.at(before.theta + share * way)
                if above(found, before)[0] > 0.0:
                    best = found
                    break
        except (ValueError, ConvergenceError):
            break
        if best is before:
            break
    return best, made, promised


def bounds_met(kernel: Kernel, theta: _FloatArray) -> tuple[bool, int]:
    """Return whether the variance is at a bound, and how many length scales are."""
    low, high = kernel.bounds.T
    met = (theta <= low + 1e-3) | (theta >= high - 1e-3)
    return bool(met[0]), int(met[1:].sum())


def fit(
    problem: Problem, relevance: bool, method: Twisted, climbs: Sequence[int], path: str
) -> Result:
    """Fit by both methods, and judge.

    Parameters
    ----------
    problem : Problem
    relevance : bool
        Whether each input has a length scale.
    method : Twisted
        The judge.
    climbs : (int, int)
        Points of a randomisation of the judge's gradient, and how many climbs there are at most.
    path : str
        Seed of the judge.

    Returns
    -------
    Result
        A line a ``point``: the optima of `CLIMBED`, and the highest place that the judge's gradient leads to. Each has
        the judge's ``log_evidence`` with its error and diagnostics, ``above_ep`` and ``above_ep_se``, the evidence more
        than at EP's optimum, and the scores of the judge's predictions with ``judge_`` in front. The first two also
        have ``own``, the evidence by the method that was climbed, and the scores of its predictions; ``loss_more``
        with its standard error over test patterns is their log loss less that of EP at its own optimum; ``distance``
        is the mean distance of their probabilities of class +1 from the judge's there, with its standard error, and
        ``other_class`` at how many test patterns the two decide otherwise. The third
        has ``promised``, the nats that the first climb gains on the surface that is climbed. CPU seconds are of the
        search; in the third, of the climbs. Array ``theta`` (3, 1 + length scales): logarithms of variance
        and length scales.
    """
    X, y = problem.X_train, problem.y_train
    kernel = kernel_at_start(X, relevance)
    import_late()
    judge = Judge(kernel, problem, method, path)
    ends = {name: fitted(name, kernel, X, y) for name in CLIMBED}
    start = time.process_time()
    best, made, promised = own_optimum(judge, ends["ep"].theta, *climbs)
    spent = time.process_time() - start
    ep, first = judge.at(ends["ep"].theta), np.empty(0)
    lines: list[Line] = []
    for name, end in ends.items():
        line: Line = {"own": end.log_evidence, "evaluations": end.evaluations}
        line |= {"search_converged": end.converged}
        gp = prior(kernel.clone_with_theta(end.theta), X, problem.X_test)
        probability = CLIMBED[name].fit(gp, y).prediction.probability
        own = losses(probability, problem.y_test)
        first = own if name == "ep" else first
        line |= scores(probability, problem.y_test) | _mean("loss_more", own - first)
        judged = judge.at(end.theta)
        line |= _apart(probability, judged.posterior.prediction.probability)
        lines.append({"point": name} | _judged(judge, judged, ep) | line)
    line = {"evaluations": made, "promised": promised}
    lines.append({"point": JUDGED} | _judged(judge, best, ep) | line)
    seconds = [*(end.seconds for end in ends.values()), spent]
    theta = np.stack([*(end.theta for end in ends.values()), best.theta])
    timing: list[Line] = [{"cpu_seconds": one} for one in seconds]
    return Result(lines, {"theta": theta}, timing)


def _judged(judge: Judge, found: Judged, ep: Judged) -> Line:
    """What the judge says at a point, and how that differs from EP's optimum."""
    posterior, y = found.posterior, judge.problem.y_test
    probability = posterior.prediction.probability
    difference, error = above(found, ep)
    at_bound, scales_at_bound = bounds_met(judge.kernel, found.theta)
    status = found.status if np.isfinite(posterior.log_evidence_se) else NOT_CONVERGED
    line: Line = {"status": status, "log_evidence": posterior.log_evidence}
    line |= {"log_evidence_se": float(posterior.log_evidence_se)}
    line |= {name: posterior.diagnostics[name] for name in ("k_hat", "effective_samples")}
    line |= {"above_ep": difference, "above_ep_se": error}
    line |= {"log_variance": float(found.theta[0]), "variance_at_bound": at_bound}
    line |= {"log_length_scale": float(np.median(found.theta[1:]))}
    line |= {"scales_at_bound": scales_at_bound}
    line |= {f"judge_{name}": value for name, value in scores(probability, y).items()}
    before = losses(ep.posterior.prediction.probability, y)
    return line | _mean("judge_loss_more", losses(probability, y) - before)


def _apart(probability: _FloatArray, judged: _FloatArray) -> Line:
    """How far probabilities are from the judge's at the same hyperparameters, and how many classes differ."""
    decided = (probability >= 0.5) != (judged >= 0.5)
    return _mean("distance", np.abs(probability - judged)) | {"other_class": int(decided.sum())}


def _mean(name: str, values: _FloatArray) -> dict[str, Any]:
    """A mean over test patterns, and its standard error."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return {name: float(values.mean()), f"{name}_se": error}
