"""Experiment 5, second part: the same tuning with gradients.

L-BFGS-B climbs the log evidence of Laplace's method or of expectation propagation by its gradient, from where the
simplex of `studies.atiya2021.tuning` starts and within the same bounds. With one length scale both climb one surface,
so that they should end at one optimum; with a length scale for each input the surface contains the other. The same
judge, with the same random numbers, says how much evidence each choice has.

The evidence of the logistic likelihood is that of another model. Its row is not judged: it has evaluations, and the
scores of its own predictions.

References
----------
Rasmussen and Williams (2006), sections 5.1, 5.5.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from gpcmc.evidence import Surface, maximize, surface_method
from gpcmc.gaussian.posterior import GaussianApproximation
from gpcmc.methods import Method
from studies.atiya2021.experiment5 import scores
from studies.atiya2021.methods import METHODS
from studies.atiya2021.tuning import Judge, start_and_bounds
from studies.common.rows import Line, Result
from studies.common.timing import import_late


def kernel_at_start(X: np.ndarray, relevance: bool) -> Kernel:
    """Return the paper's RBF kernel where a search starts, with the bounds of the simplex.

    Parameters
    ----------
    X : (n, d) array
        Training inputs.
    relevance : bool
        Whether each input has a length scale; all start at the one that they would share.
    """
    start, bounds = start_and_bounds(X)
    # scikit-learn's length scale is alpha / sqrt(2), see `gpcmc.gp.rbf`
    scale, scale_bounds = np.exp(start[0]) / np.sqrt(2.0), np.exp(bounds[0]) / np.sqrt(2.0)
    length_scale = np.full(X.shape[1], scale) if relevance else float(scale)
    variance = ConstantKernel(float(np.exp(start[1])), tuple(np.exp(bounds[1])))
    return variance * RBF(length_scale, tuple(scale_bounds))


def tuned_by_gradient(
    judge: Judge, method: str, options: Mapping[str, Any], relevance: bool
) -> Result:
    """Tune the hyperparameters of a problem by the gradients of a method's log evidence.

    Parameters
    ----------
    judge : Judge
        That of the simplex.
    method, options : str, mapping
        ``laplace`` or ``ep``, which is climbed with these options.
    relevance : bool
        Whether each input has a length scale.

    Returns
    -------
    Result
        A line with the columns of `studies.atiya2021.tuning` where they mean the same; ``log_alpha`` is missing where
        there are several. ``climbed`` is the method whose evidence was climbed, and ``relevance`` is as given. A
        likelihood that is not the judge's has no ``evidence``, and the scores of the method itself. Array ``theta``
        (1 + length scales,): log beta, then each log alpha.

    Raises
    ------
    ValueError
        If the method's evidence has no gradient, or an option is not as the method needs it.
    """
    climbed = METHODS[method](**options)
    if not isinstance(climbed, GaussianApproximation):
        raise ValueError(
            f"method must be laplace or ep, whose evidence has a gradient; got {method!r}"
        )
    X, y = judge.problem.X_train, judge.problem.y_train
    kernel = kernel_at_start(X, relevance)
    surface = Surface(surface_method(climbed, searching=True), kernel, X, y)
    import_late()
    start = time.process_time()
    found = maximize(surface, 0, np.random.default_rng(0))  # one start, so nothing is drawn
    timing = [{"cpu_seconds": time.process_time() - start}]
    theta = found.theta + np.array([0.0, *[0.5 * np.log(2.0)] * (len(found.theta) - 1)])
    line: Line = {"climbed": method, "relevance": relevance} | dict(options)
    line |= {"evaluations": found.evaluations, "search_converged": found.converged}
    if not relevance:
        line["log_alpha"] = float(theta[1])
    line |= {"log_beta": float(theta[0]), "at_bound": bool(found.at_bound)}
    line["estimate"] = found.log_evidence
    chosen = kernel.clone_with_theta(found.theta)
    own = getattr(climbed, "likelihood", "probit") != "probit"
    line |= _of_itself(judge, chosen, climbed) if own else judge.columns(chosen)
    return Result([line], {"theta": theta}, timing)


def _of_itself(judge: Judge, kernel: Kernel, method: Method) -> Line:
    """What the method says of a choice in a model that is not the judge's."""
    made = judge.attempt(kernel, method)
    line: Line = {"status": made.status}
    if made.found is None:
        return line
    probability = made.found.probability
    return line | scores(probability, judge.problem.y_test) | made.found.diagnostics
