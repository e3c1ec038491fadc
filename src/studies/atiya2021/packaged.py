"""One run on a binary data set: hyperparameters fitted by the evidence, estimates at the optimum, or the rule followed.

All methods are set at the optimum of expectation propagation (EP). Whether an error changes the choice of
hyperparameters is asked at the points of a grid about it, and at the optimum of Laplace's method.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import Prior, prior
from gpcmc.evidence import Surface, maximize, surface_method
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import ImportanceSampling
from gpcmc.gaussian.laplace import Laplace
from gpcmc.methods import Method
from gpcmc.posterior import OK
from gpcmc.rectangle.classification import Twisted
from studies.atiya2021.problems import Problem
from studies.atiya2021.rule import (
    ALLOWANCE,
    PILOT,
    POINTS,
    RANDOMIZATIONS,
    WIDTH,
    Advice,
    Pilot,
    advise,
    samples_needed,
)
from studies.atiya2021.runs import Answer, attempt, with_own_status
from studies.atiya2021.scaling import columns
from studies.common.rows import Line, Result
from studies.common.seeds import generator
from studies.common.timing import import_late

#: Methods whose evidence is climbed, by name.
CLIMBED = {"ep": ExpectationPropagation(), "laplace": Laplace()}
#: Of log alpha, on either side of the logarithm of the median distance; and of log beta.
_REACH, _LOG_BETA = 3.0, (-3.0, 7.0)
#: Steps of the grid, in log alpha and log beta.
_STEPS = np.array([0.4, 0.8])
#: Decimals of fitted logarithms, so that another processor sets its methods at the same point.
_DECIMALS = 2
#: Most points of a randomisation of twisted EP that the rule asks for.
_MOST_POINTS = 2**16


class Fit(NamedTuple):
    """An optimum: (log alpha, log beta), evaluations, the evidence, and whether a bound was met."""

    theta: tuple[float, float]
    evaluations: int
    log_evidence: float
    at_bound: bool
    seconds: float


def fitted(problem: Problem, method: str) -> Fit:
    """Return the hyperparameters of the paper's RBF kernel that maximise the evidence of `ep` or `laplace`.

    The search starts at the median distance between patterns, and at beta = 1. It is remembered within the process.
    """
    X, y = problem.X_train, problem.y_train
    return _fitted(method, X.tobytes(), y.tobytes(), X.shape)


@lru_cache(maxsize=64)
def _fitted(method: str, X: bytes, y: bytes, shape: tuple[int, int]) -> Fit:
    patterns, labels = np.frombuffer(X).reshape(shape), np.frombuffer(y)
    median = float(np.median(pdist(patterns)))
    # scikit-learn's length scale is alpha / sqrt(2), see `gpcmc.gp.rbf`
    scale, reach = median / np.sqrt(2.0), np.exp([-_REACH, _REACH])
    kernel = ConstantKernel(1.0, tuple(np.exp(_LOG_BETA))) * RBF(scale, tuple(scale * reach))
    climbed = surface_method(CLIMBED[method], searching=True)
    start = time.process_time()
    found = maximize(Surface(climbed, kernel, patterns, labels), 0, np.random.default_rng(0))
    seconds = time.process_time() - start
    log_alpha = found.theta[1] + 0.5 * np.log(2.0)
    theta = (round(float(log_alpha), _DECIMALS), round(float(found.theta[0]), _DECIMALS))
    return Fit(theta, found.evaluations, found.log_evidence, bool(found.at_bound), seconds)


def hyperparameters(problem: Problem, point: str) -> tuple[float, float]:
    """Return (alpha, beta) at a point: ``ep`` or ``laplace``, an optimum; or ``grid0`` to ``grid8``, about EP's."""
    log_alpha, log_beta = fitted(problem, point if point in CLIMBED else "ep").theta
    if point not in CLIMBED:
        right, up = np.divmod(int(point.removeprefix("grid")), 3) - np.ones(2)
        log_alpha, log_beta = log_alpha + right * _STEPS[0], log_beta + up * _STEPS[1]
    return float(np.exp(log_alpha)), float(np.exp(log_beta))


def fit(problem: Problem, method: str) -> Result:
    """Return the optimum of a method: (alpha, beta), the evidence there by the method, and evaluations."""
    import_late()
    found = fitted(problem, method)
    alpha, beta = hyperparameters(problem, method)
    line: Line = {"alpha": alpha, "beta": beta, "status": "ok", "log_evidence": found.log_evidence}
    line |= {"log_evidence_se": 0.0, "evaluations": found.evaluations, "at_bound": found.at_bound}
    return Result([line], timing=[{"cpu_seconds": found.seconds}])


def estimate(problem: Problem, point: str, method: Method, path: str | None) -> Result:
    """Run a method once at a point, with its own status.

    Returns
    -------
    Result
        A line with (alpha, beta), ``status``, and, unless it failed, the evidence, its standard error, the diagnostics,
        and ``log_loss`` and ``error_rate`` at the test patterns. Array ``probability`` (t,), of class +1 at these.
    """
    alpha, beta = hyperparameters(problem, point)
    gp = prior(rbf(alpha, beta), problem.X_train, problem.X_test)
    import_late()
    rng = None if path is None else generator(path)
    made = attempt(partial(with_own_status, method, gp, problem.y_train, rng=rng))
    line: Line = {"alpha": alpha, "beta": beta} | columns(made)
    timing: list[Line] = [{"cpu_seconds": made.seconds}]
    if made.found is None:
        return Result([line], timing=timing)
    probability = made.found.probability
    line["log_loss"] = float(log_loss(problem.y_test > 0, probability, labels=[False, True]))
    line["error_rate"] = float(np.mean((probability >= 0.5) != (problem.y_test > 0)))
    return Result([line], {"probability": probability}, timing)


def follow(problem: Problem, point: str, tolerance: float, path: str) -> Result:
    """Do what the rule says at a point: EP, the pilot, and the estimator that it advises.

    Returns
    -------
    Result
        A line with the estimate that was ``chosen``, its ``samples``, the evidence, its standard error, the
        ``stated_error``, what the pilot said, and the status of the last run. The CPU seconds are of all runs.
    """
    alpha, beta = hyperparameters(problem, point)
    gp = prior(rbf(alpha, beta), problem.X_train)
    import_late()
    made = advised(gp, problem.y_train, tolerance, generator(path))
    timing: list[Line] = [{"cpu_seconds": made.pop("seconds")}]
    return Result([{"alpha": alpha, "beta": beta} | made], timing=timing)


def advised(gp: Prior, y: np.ndarray, tolerance: float, rng: np.random.Generator) -> Line:
    """Follow the rule for a prior and labels; the columns are those of `follow`, and the CPU ``seconds``."""

    def run(method: Method) -> Answer:
        return with_own_status(method, gp, y, rng=rng)

    start = time.process_time()
    ep, first = run(ExpectationPropagation()), run(ImportanceSampling(samples=PILOT))
    pilot = _pilot(ep, first)
    chosen, found, error = _taken(advise(pilot, tolerance), tolerance, ep, first, run)
    seconds = time.process_time() - start
    return {
        **{"status": found.status, "log_evidence": found.log_evidence},
        **{"log_evidence_se": found.log_evidence_se, "chosen": chosen},
        **{
            "samples": found.work.get("samples", 0),
            "stated_error": error,
            "pilot": pilot.log_evidence,
        },
        **{"pilot_se": pilot.se, "effective_samples": pilot.effective_samples},
        **({} if pilot.k_hat is None else {"k_hat": pilot.k_hat}),
        "seconds": seconds,
    }


def _pilot(ep: Answer, first: Answer) -> Pilot:
    said = first.diagnostics
    return Pilot(
        ep=_number(ep.log_evidence),
        log_evidence=_number(first.log_evidence),
        se=_number(first.log_evidence_se),
        effective_samples=said["effective_samples"],
        samples=PILOT,
        k_hat=said.get("k_hat"),
    )


def _taken(
    advice: Advice, tolerance: float, ep: Answer, first: Answer, run: Callable[[Method], Answer]
) -> tuple[str, Answer, float]:
    """The estimate that is taken in the end, the run, and its stated error."""
    if advice.estimate == "ep":
        return "ep", ep, _number(advice.error)
    if advice.estimate == "importance-ep":
        enough = advice.samples <= PILOT
        found = first if enough else run(ImportanceSampling(samples=advice.samples))
        if found.status == OK:
            return "importance-ep", found, WIDTH * _number(found.log_evidence_se)
    method = Twisted(points=POINTS, randomizations=RANDOMIZATIONS)
    found = run(method)
    se = _number(found.log_evidence_se)
    if WIDTH * se > tolerance:
        needed = ALLOWANCE * samples_needed(POINTS, se, tolerance / WIDTH)
        more = min(2 ** math.ceil(math.log2(needed)), _MOST_POINTS)
        found = run(replace(method, points=more))
    return "twisted-ep", found, WIDTH * _number(found.log_evidence_se)


def _number(value: float | None) -> float:
    """The value of methods that all have an estimate."""
    assert value is not None
    return value
