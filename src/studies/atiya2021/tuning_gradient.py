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
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from gpcmc.gp.covariance import prior
from gpcmc.inference.evidence import EvidenceSurface, maximize, surface_method
from gpcmc.inference.gaussian import GaussianApproximation
from gpcmc.inference.interface import Method
from studies.atiya2021.experiment5 import scores
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import Problem
from studies.atiya2021.runs import NO_DATA, Attempt, attempt, infer
from studies.atiya2021.tuning import start_and_bounds
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator, seed
from studies.common.timing import import_late


def tuning_gradient(
    number: int,
    problem: Problem | None,
    *,
    root: int,
    methods: Mapping[str, Mapping[str, Any]],
    judge: Mapping[str, Any],
    pieces: Pieces,
) -> Piece:
    """Tune the hyperparameters of one problem by the gradients of each method's log evidence.

    Parameters
    ----------
    number, problem, root : int, Problem or None, int
        As of `studies.atiya2021.tuning.tuning`.
    methods : mapping of name to {"method", "options", "relevance"}
        `method`, ``laplace`` or ``ep``, is climbed with its `options`; with `relevance`, each input has a length scale.
    judge : {"method", "options"}
        As of `studies.atiya2021.tuning.tuning`, and to be the same.
    pieces : Pieces
        Finished searches.

    Returns
    -------
    rows, timing, arrays : list of dict, list of dict, dict
        One row a method, with the columns of `studies.atiya2021.tuning` where they mean the same; ``log_alpha`` is
        missing where there are several. ``climbed`` is the method whose evidence was climbed, and ``relevance`` is as
        given. A likelihood that is not the judge's has no ``evidence``, and the scores of the method itself. Arrays
        ``theta_<method>`` (1 + length scales,): log beta, then each log alpha.

    Raises
    ------
    ValueError
        If a method's evidence has no gradient, or an option is not as the method needs it.
    """
    tuner = None
    if problem is not None:
        path = seed(root, "experiment5", f"problem{number}", "tuning")
        judging = METHODS[judge["method"]](**judge.get("options", {}))
        tuner = _Tuner(problem, judging, seed(path, "judge"))

    def one(name: str) -> Piece:
        row: Row = {"problem": number, "method": name, "replicate": 0, "stage": "gradient"}
        if tuner is None:
            return [row | {"status": NO_DATA}], [row | {"cpu_seconds": None}], {}
        return tuner.run(row, methods[name])

    return join(pieces.get(name, partial(one, name)) for name in methods)


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


@dataclass(frozen=True, slots=True)
class _Tuner:
    """What all searches on a problem share: the judge, and the seed of its random numbers."""

    problem: Problem
    judge: Method
    stream: str

    def run(self, row: Row, given: Mapping[str, Any]) -> Piece:
        """One search, judged."""
        options, relevance = dict(given.get("options", {})), bool(given.get("relevance", False))
        method = METHODS[given["method"]](**options)
        if not isinstance(method, GaussianApproximation):
            raise ValueError(
                f"method must be laplace or ep, whose evidence has a gradient; got {given['method']!r}"
            )
        X, y = self.problem.X_train, self.problem.y_train
        kernel = kernel_at_start(X, relevance)
        surface = EvidenceSurface(surface_method(method, searching=True), kernel, X, y)
        import_late()
        start = time.process_time()
        found = maximize(surface, 0, np.random.default_rng(0))  # one start, so nothing is drawn
        timing = [row | {"cpu_seconds": time.process_time() - start}]
        theta = found.theta + np.array([0.0, *[0.5 * np.log(2.0)] * (len(found.theta) - 1)])
        row = row | {"climbed": given["method"], "relevance": relevance} | options
        row |= {"evaluations": found.evaluations, "search_converged": found.converged}
        if not relevance:
            row["log_alpha"] = float(theta[1])
        row |= {"log_beta": float(theta[0]), "at_bound": bool(found.at_bound)}
        row["estimate"] = found.log_evidence
        chosen = kernel.clone_with_theta(found.theta)
        return [row | self._judged(chosen, method)], timing, {f"theta_{row['method']}": theta}

    def _judged(self, kernel: Kernel, method: GaussianApproximation) -> Row:
        """What the judge says of a choice; of a model that is not its own, what the method says itself."""
        own = getattr(method, "likelihood", "probit") != "probit"
        made = self._attempt(kernel, method if own else self.judge)
        columns: Row = {"status": made.status}
        if made.found is None:
            return columns
        if not own:
            columns |= {
                "evidence": made.found.log_evidence,
                "evidence_se": made.found.log_evidence_se,
            }
        return (
            columns | scores(made.found.probability, self.problem.y_test) | made.found.diagnostics
        )

    def _attempt(self, kernel: Kernel, method: Method) -> Attempt:
        gp = prior(kernel, self.problem.X_train, self.problem.X_test)
        rng = generator(self.stream)
        return attempt(partial(infer, method, gp, self.problem.y_train, rng=rng))
