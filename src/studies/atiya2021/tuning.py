"""Experiment 5, second part: tuning (alpha, beta) by the evidence (paper, section 6.5).

The paper advises a small number of samples M for the search, because "exact evaluation of the marginal
likelihood will not much impact the optimization outcome", a larger M to tell the best few candidates
apart, and a still larger one to classify. Here the same search (Nelder and Mead's, in log alpha and log
beta, from the same start) climbs the evidence of expectation propagation, of Laplace's method, and of
samplers of several sizes, whose random numbers are the same at every step of a search. What each has
chosen is then judged by one estimator far more accurate than all: how much evidence was missed, and
how well the test patterns are predicted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import Kernel

from gpcmc._validation import check_positive_int
from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import Prior, prior
from gpcmc.methods import Method
from studies.atiya2021.experiment5 import scores
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import Problem
from studies.atiya2021.runs import Attempt, attempt, infer
from studies.common.rows import Line, Result
from studies.common.seeds import generator, seed
from studies.common.timing import import_late

#: What the search sees where a method has no answer.
WORST = -1e10
_FIRST_STEPS = 1.0  # of the simplex, in log units: a factor e
_CLOSE = 0.02  # a simplex this small in log units ends the search
_APART = 0.1  # candidates for the second look differ by this in log units, or they are one
_REACH_ALPHA = 5.0  # log units about the start
_LOG_BETA = (-5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Search:
    """What a search saw.

    Attributes
    ----------
    theta : (evaluations, 2) array
        (log alpha, log beta) in the order in which they were tried.
    value : (evaluations,) array
        Log evidence there, nats; `WORST` where there was no answer.
    converged : bool
        Whether the simplex became small within the evaluations allowed.
    """

    theta: np.ndarray
    value: np.ndarray
    converged: bool

    def best(self, few: int) -> np.ndarray:
        """Return the places of the best few points, best first, no two of which are the same optimum."""
        chosen: list[int] = []
        for i in np.argsort(-self.value, kind="stable"):
            gaps = [np.max(np.abs(self.theta[i] - self.theta[j])) for j in chosen]
            if len(chosen) < few and self.value[i] > WORST and min(gaps, default=1.0) >= _APART:
                chosen.append(int(i))
        return np.array(chosen, dtype=int)


def search(evidence: Callable[[np.ndarray], float], X: np.ndarray, *, evaluations: int) -> Search:
    """Climb a log evidence over (log alpha, log beta) by Nelder and Mead's simplex.

    Parameters
    ----------
    evidence : callable
        Log evidence at (log alpha, log beta). It may be noisy if the noise is the same at each call.
    X : (n, d) array
        Training inputs: the search starts at the median of their distances, and at beta = 1.
    evaluations : int
        At most so many, at least four.

    References
    ----------
    Nelder and Mead (1965), Computer Journal 7, 308.
    """
    if check_positive_int("evaluations", evaluations) < 4:
        raise ValueError(f"evaluations must be at least 4; got {evaluations}")
    tried: list[np.ndarray] = []
    values: list[float] = []

    def loss(theta: np.ndarray) -> float:
        tried.append(theta.copy())
        values.append(evidence(theta))
        return -values[-1]

    start, bounds = start_and_bounds(X)
    found = minimize(
        loss,
        start,
        method="Nelder-Mead",
        bounds=bounds,
        options={
            "initial_simplex": start + _FIRST_STEPS * np.array([[0, 0], [1, 0], [0, 1]]),
            "maxfev": evaluations,
            "xatol": _CLOSE,
            # a sampler's surface has jumps, so that values need not agree however close the points
            "fatol": np.inf,
        },
    )
    return Search(np.array(tried), np.array(values), bool(found.success))


def start_and_bounds(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (log alpha, log beta) where a search starts, and between what it stays, (2, 2)."""
    log_alpha = np.log(np.median(pdist(X)))
    reach = (log_alpha - _REACH_ALPHA, log_alpha + _REACH_ALPHA)
    return np.array([log_alpha, 0.0]), np.array([reach, _LOG_BETA])


@dataclass(frozen=True, slots=True)
class Judge:
    """What judges every choice on a problem, with the same random numbers: a method, and the seed of its stream."""

    problem: Problem
    method: Method
    path: str

    def attempt(self, kernel: Kernel, method: Method | None = None) -> Attempt:
        """Return what becomes of the method, or of another one in its place, with a kernel."""
        gp = prior(kernel, self.problem.X_train, self.problem.X_test)
        rng = generator(self.path)
        return attempt(partial(infer, method or self.method, gp, self.problem.y_train, rng=rng))

    def columns(self, kernel: Kernel) -> Line:
        """Return what a line says of a choice: ``status``; ``evidence``, ``log_loss`` and more if it has an answer."""
        made = self.attempt(kernel)
        line: Line = {"status": made.status}
        if made.found is None:
            return line
        line |= {"evidence": made.found.log_evidence, "evidence_se": made.found.log_evidence_se}
        return line | scores(made.found.probability, self.problem.y_test) | made.found.diagnostics


@dataclass(frozen=True, slots=True)
class Climb:
    """How a method climbs: options that are put over its own for a second look, and counts.

    Attributes
    ----------
    method, options : str, mapping
        A name in `studies.atiya2021.methods.METHODS`, and what it climbs with.
    final : mapping
        Options put over these, with which it looks again at the best few points; it looks once if there are none.
    evaluations, few : int
        Of the search, at most; candidates for the second look.
    """

    method: str
    options: Mapping[str, Any]
    final: Mapping[str, Any]
    evaluations: int
    few: int


def tuned(judge: Judge, climb: Climb, path: str | None) -> Result:
    """Tune the hyperparameters of a problem by one search.

    Parameters
    ----------
    judge : Judge
    climb : Climb
    path : str or None
        Seed of the search; None for a method that draws nothing at random.

    Returns
    -------
    Result
        A line a ``stage``: ``search``, the best point by the search's own estimates, and ``final``, by the second look.
        They hold ``log_alpha`` and ``log_beta`` chosen; ``estimate``, the method's own log evidence there, too high as
        the best of many is; ``evidence`` and ``evidence_se`` by the judge, ``log_loss``, ``error_rate`` and ``status``.
        Array ``search`` (evaluations, 3): log alpha, log beta, log evidence; NaN where the search ended before.
    """
    options, problem = dict(climb.options), judge.problem
    climber = _Evidence(problem, METHODS[climb.method](**options), path)
    import_late()
    start = time.process_time()
    found = search(climber, problem.X_train, evaluations=climb.evaluations)
    timing = [{"stage": "search", "cpu_seconds": time.process_time() - start}]
    candidates = found.best(climb.few)
    best = int(np.argmax(found.value))
    line: Line = {"stage": "search"} | options
    line |= {"evaluations": len(found.value), "search_converged": found.converged}
    judged = _judged(judge, found.theta[best], float(found.value[best]))
    lines = [line | climber.columns() | judged]
    if climb.final and len(candidates):
        options |= climb.final
        again = None if path is None else seed(path, "final")
        looker = _Evidence(problem, METHODS[climb.method](**options), again)
        start = time.process_time()
        values = [looker(theta) for theta in found.theta[candidates]]
        timing.append({"stage": "final", "cpu_seconds": time.process_time() - start})
        line = {"stage": "final"} | options | {"evaluations": len(candidates)}
        theta = found.theta[candidates[int(np.argmax(values))]]
        lines.append(line | looker.columns() | _judged(judge, theta, max(values)))
    seen = np.full((climb.evaluations, 3), np.nan)
    seen[: len(found.value)] = np.column_stack([found.theta, found.value])
    return Result(lines, {"search": seen}, timing)


def _judged(judge: Judge, theta: np.ndarray, estimate: float) -> Line:
    bounds = start_and_bounds(judge.problem.X_train)[1]
    line: Line = {
        "log_alpha": float(theta[0]),
        "log_beta": float(theta[1]),
        # of classes that can be separated the evidence may rise without end
        "at_bound": bool(np.isclose(theta[:, None], bounds).any()),
        "estimate": estimate,
    }
    return line | judge.columns(_kernel(theta))


class _Evidence:
    """A method's log evidence as a function of (log alpha, log beta), its random numbers held."""

    def __init__(self, problem: Problem, method: Method, stream: str | None) -> None:
        self._problem, self.method, self._stream = problem, method, stream
        self._work: Counter[str] = Counter()
        self._failures = 0

    def __call__(self, theta: np.ndarray) -> float:
        K, y = _kernel(theta)(self._problem.X_train), self._problem.y_train
        rng = None if self._stream is None else generator(self._stream)
        found = attempt(partial(infer, self.method, Prior(K), y, rng=rng)).found
        if found is None:
            self._failures += 1
            return WORST
        if found.log_evidence is None:
            raise ValueError(f"methods must give an evidence to climb; got {self.method}")
        self._work += Counter(found.work)
        return found.log_evidence

    def columns(self) -> Line:
        """Return the counts of work, and of evaluations without an answer."""
        work = {f"work_{what}": int(count) for what, count in self._work.items()}
        return work | {"failures": self._failures}


def _kernel(theta: np.ndarray) -> Kernel:
    return rbf(*np.exp(theta).tolist())
