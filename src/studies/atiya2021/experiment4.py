"""One run of Experiment 4: a method on a problem at a hyperparameter setting (paper, section 6.4, Table 4)."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import prior
from gpcmc.methods import Method
from studies.atiya2021.problems import Problem, trivial
from studies.atiya2021.runs import Answer, attempt, infer
from studies.common.rows import Line, Result
from studies.common.seeds import generator
from studies.common.timing import import_late

#: The reading of a chain of the toolbox that is its prediction, too.
_PREDICTED = "twice"


def one_run(
    problem: Problem, method: Method, alpha: float, beta: float, path: str | None
) -> Result:
    """Run a method once.

    Parameters
    ----------
    problem : Problem
    method : Method
    alpha, beta : float
        Length scale and variance of the kernel.
    path : str or None
        Seed of the run; None for a method that draws nothing at random.

    Returns
    -------
    Result
        A line, also where the run failed: ``trivial``, ``status``, and what was found. Arrays of a run that predicted:
        ``probability`` (t,) of class 1 at the test patterns, and of the toolbox's chains ``probability_<reading>``; the
        columns ``mae_post_<reading>`` belong to them. The timing has the CPU seconds around the method alone.
    """
    gp = prior(rbf(alpha, beta), problem.X_train, problem.X_test)
    import_late()
    rng = None if path is None else generator(path)
    run = attempt(partial(infer, method, gp, problem.y_train, rng=rng))
    line: Line = {"trivial": trivial(gp.K, beta), "status": run.status}
    timing: list[Line] = [{"cpu_seconds": run.seconds}]
    if run.found is None:
        return Result([line], timing=timing)
    return Result([line | _columns(run.found, problem)], _arrays(run.found), timing)


def _arrays(found: Answer) -> dict[str, np.ndarray]:
    if not len(found.probability):
        return {}
    others = {name: one.probability for name, one in found.readings.items() if name != _PREDICTED}
    return {"probability": found.probability} | {
        f"probability_{name}": probability for name, probability in others.items()
    }


def _columns(result: Answer, problem: Problem) -> Line:
    columns: Line = {
        "log_evidence": result.log_evidence,
        "log_evidence_se": result.log_evidence_se,
    }
    if len(result.probability):
        decided = np.where(result.probability >= 0.5, 1.0, -1.0)
        columns |= {
            "mae_post": mae_post(result.probability, problem),
            "error_rate": float(np.mean(decided != problem.y_test)),
        }
        for reading, prediction in result.readings.items():
            columns[f"mae_post_{reading}"] = mae_post(prediction.probability, problem)
    columns |= {f"work_{what}": count for what, count in result.work.items()}
    return columns | result.diagnostics


def mae_post(probability: np.ndarray, problem: Problem) -> float:
    """Return the mean absolute error against the class probabilities of the law of the data; NaN for real data."""
    return float(np.mean(np.abs(probability - problem.bayes_posterior)))
