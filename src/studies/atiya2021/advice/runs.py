"""One run of the experiment `advice`: hyperparameters fitted by the evidence of EP, or a method at given ones."""

from __future__ import annotations

import time
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import prior
from gpcmc.evidence import Surface, maximize, surface_method
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.methods import Method
from studies.atiya2021.problems import Problem
from studies.atiya2021.runs import attempt, with_own_status
from studies.atiya2021.scaling import columns
from studies.common.rows import Line, Result
from studies.common.seeds import generator
from studies.common.timing import import_late

#: Of log alpha, on either side of the logarithm of the median distance; and of log beta.
_REACH, _LOG_BETA = 3.0, (-3.0, 7.0)
#: Decimals of fitted logarithms, so that another processor sets its methods at the same point.
_DECIMALS = 2
#: Counts of work that are kept of a method with a tolerance.
_WORK = ("samples", "rounds")


class Fit(NamedTuple):
    """An optimum: (log alpha, log beta), evaluations, the evidence, and whether a bound was met."""

    theta: tuple[float, float]
    evaluations: int
    log_evidence: float
    at_bound: bool
    seconds: float


def fitted(problem: Problem) -> Fit:
    """Return the hyperparameters of the paper's RBF kernel that maximise the evidence of EP.

    The search starts at the median distance between patterns, and at beta = 1. It is remembered within the process.
    """
    X, y = problem.X_train, problem.y_train
    return _fitted(X.tobytes(), y.tobytes(), X.shape)


@lru_cache(maxsize=64)
def _fitted(X: bytes, y: bytes, shape: tuple[int, int]) -> Fit:
    patterns, labels = np.frombuffer(X).reshape(shape), np.frombuffer(y)
    median = float(np.median(pdist(patterns)))
    # scikit-learn's length scale is alpha / sqrt(2), see `gpcmc.gp.rbf`
    scale, reach = median / np.sqrt(2.0), np.exp([-_REACH, _REACH])
    kernel = ConstantKernel(1.0, tuple(np.exp(_LOG_BETA))) * RBF(scale, tuple(scale * reach))
    climbed = surface_method(ExpectationPropagation(), searching=True)
    start = time.process_time()
    found = maximize(Surface(climbed, kernel, patterns, labels), 0, np.random.default_rng(0))
    seconds = time.process_time() - start
    log_alpha = found.theta[1] + 0.5 * np.log(2.0)
    theta = (round(float(log_alpha), _DECIMALS), round(float(found.theta[0]), _DECIMALS))
    return Fit(theta, found.evaluations, found.log_evidence, bool(found.at_bound), seconds)


def hyperparameters(problem: Problem) -> tuple[float, float]:
    """Return (alpha, beta) at the optimum."""
    log_alpha, log_beta = fitted(problem).theta
    return float(np.exp(log_alpha)), float(np.exp(log_beta))


def fit(problem: Problem) -> Result:
    """Return the optimum: (alpha, beta), the evidence there, and evaluations."""
    import_late()
    found = fitted(problem)
    alpha, beta = hyperparameters(problem)
    line: Line = {"alpha": alpha, "beta": beta, "status": "ok", "log_evidence": found.log_evidence}
    line |= {"log_evidence_se": 0.0, "evaluations": found.evaluations, "at_bound": found.at_bound}
    return Result([line], timing=[{"cpu_seconds": found.seconds}])


def estimate(
    problem: Problem, kernel: tuple[float, float], method: Method, path: str | None
) -> Result:
    """Run a method once, with its own status, under the RBF kernel with (alpha, beta).

    Returns
    -------
    Result
        A line with (alpha, beta), ``status``, and, unless it failed, the evidence, its standard error and the
        diagnostics; of a method with a tolerance the samples of all rounds, and how many these were; and if there are
        test patterns, ``log_loss`` and ``error_rate`` there. Array ``probability`` (t,), of class +1 at these.
    """
    alpha, beta = kernel
    gp = prior(rbf(alpha, beta), problem.X_train, problem.X_test if len(problem.y_test) else None)
    import_late()
    rng = None if path is None else generator(path)
    made = attempt(partial(with_own_status, method, gp, problem.y_train, rng=rng))
    line: Line = {"alpha": alpha, "beta": beta} | columns(made)
    timing: list[Line] = [{"cpu_seconds": made.seconds}]
    if made.found is None:
        return Result([line], timing=timing)
    if "rounds" in made.found.work:
        line |= {name: made.found.work[name] for name in _WORK}
    if not len(problem.y_test):
        return Result([line], timing=timing)
    probability = made.found.probability
    line["log_loss"] = float(log_loss(problem.y_test > 0, probability, labels=[False, True]))
    line["error_rate"] = float(np.mean((probability >= 0.5) != (problem.y_test > 0)))
    return Result([line], {"probability": probability}, timing)
