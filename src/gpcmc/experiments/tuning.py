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

from gpcmc._validation import check_positive_int
from gpcmc.experiments.classification import EXTINCT, NO_DATA, Problem
from gpcmc.experiments.hyperparameters import scores
from gpcmc.experiments.pieces import Piece, Pieces, Row, join
from gpcmc.experiments.seeds import generator, seed
from gpcmc.experiments.timing import import_late
from gpcmc.gp import Prior, prior, rbf
from gpcmc.inference import METHODS, ConvergenceError, Method, infer
from gpcmc.inference.interface import NOT_CONVERGED, OK
from gpcmc.orthant import ExtinctionError

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


def tuning(
    number: int,
    problem: Problem | None,
    *,
    root: int,
    methods: Mapping[str, Mapping[str, Any]],
    evaluations: int,
    few: int,
    judge: Mapping[str, Any],
    pieces: Pieces,
) -> Piece:
    """Tune the hyperparameters of one problem by each method.

    Parameters
    ----------
    number : int
        Problem of Experiment 4, 1 to 9.
    problem : Problem or None
        None where the data could not be had: the rows then say so.
    root : int
        Root of the random streams.
    methods : mapping of name to {"method", "options", "final", "replicates"}
        `method`, a name in `gpcmc.inference.METHODS`, and its `options` climb; `final`, options put over
        these, looks again at the best few; `replicates` is the number of searches by a method that
        draws at random. The last two are left out for one that does not.
    evaluations : int
        Of a search, at most.
    few : int
        Candidates for the second look.
    judge : {"method", "options"}
        What judges every choice, with the same random numbers.
    pieces : Pieces
        Finished searches.

    Returns
    -------
    rows : list of dict
        One row a method, replicate and ``stage``: ``search``, the best point by the search's own
        estimates, and ``final``, by the second look. ``log_alpha`` and ``log_beta`` chosen; ``estimate``,
        the method's own log evidence there, too high as the best of many is; ``evidence`` and
        ``evidence_se`` by the judge, ``log_loss``, ``error_rate`` and ``status`` too; and
        ``evidence_shortfall``, nats below the best found by any method, of rows that may be compared.
    timing : list of dict
        ``cpu_seconds`` of each stage's evaluations.
    arrays : dict
        ``search_<method>_<replicate>`` (evaluations, 3): log alpha, log beta, log evidence.

    Raises
    ------
    ValueError
        If a count or an option is not as above.
    """
    check_positive_int("few", few)
    judging = METHODS[judge["method"]](**judge.get("options", {}))
    path = seed(root, "experiment5", f"problem{number}", "tuning")

    def one(name: str, replicate: int) -> Piece:
        row: Row = {"problem": number, "method": name, "replicate": replicate}
        if problem is None:
            row["stage"] = "search"
            return [row | {"status": NO_DATA}], [row | {"cpu_seconds": None}], {}
        given = methods[name]
        options = dict(given.get("options", {}))
        stream = None
        if given.get("replicates"):
            stream = row["seed"] = seed(path, name, f"replicate{replicate}")
        climber = _Evidence(problem, METHODS[given["method"]](**options), stream)
        import_late()
        start = time.process_time()
        found = search(climber, problem.X_train, evaluations=evaluations)
        seconds = time.process_time() - start
        candidates = found.best(few)
        stage = row | {"stage": "search"}
        timing = [stage | {"cpu_seconds": seconds}]
        stage |= options | {"evaluations": len(found.value), "search_converged": found.converged}
        best = int(np.argmax(found.value))
        rows = [stage | climber.columns() | judged(found.theta[best], float(found.value[best]))]
        if "final" in given and len(candidates):
            options |= given["final"]
            again = None if stream is None else seed(stream, "final")
            looker = _Evidence(problem, METHODS[given["method"]](**options), again)
            start = time.process_time()
            values = [looker(theta) for theta in found.theta[candidates]]
            stage = row | {"stage": "final"}
            timing.append(stage | {"cpu_seconds": time.process_time() - start})
            stage |= options | {"evaluations": len(candidates)}
            theta = found.theta[candidates[int(np.argmax(values))]]
            rows.append(stage | looker.columns() | judged(theta, max(values)))
        seen = np.column_stack([found.theta, found.value])
        return rows, timing, {f"search_{name}_{replicate}": seen}

    def judged(theta: np.ndarray, estimate: float) -> Row:
        assert problem is not None
        columns: Row = {
            "log_alpha": float(theta[0]),
            "log_beta": float(theta[1]),
            # of classes that can be separated the evidence may rise without end
            "at_bound": bool(
                np.isclose(theta[:, None], start_and_bounds(problem.X_train)[1]).any()
            ),
            "estimate": estimate,
        }
        gp = prior(_kernel(theta), problem.X_train, problem.X_test)
        try:
            found = infer(judging, gp, problem.y_train, rng=generator(seed(path, "judge")))
        except (ConvergenceError, ExtinctionError) as error:
            status = NOT_CONVERGED if isinstance(error, ConvergenceError) else EXTINCT
            return columns | {"status": status}
        columns |= {
            "status": found.status,
            "evidence": found.log_evidence,
            "evidence_se": found.log_evidence_se,
        }
        return columns | scores(found.probability, problem.y_test) | found.diagnostics

    rows, timing, arrays = join(
        pieces.get(f"{name}-replicate{replicate}", partial(one, name, replicate))
        for name, given in methods.items()
        for replicate in range(given.get("replicates") or 1)
    )
    compared = [row["evidence"] for row in rows if row["status"] == OK]
    for row in rows:
        if row["status"] == OK:
            row["evidence_shortfall"] = max(compared) - row["evidence"]
    return rows, timing, arrays


class _Evidence:
    """A method's log evidence as a function of (log alpha, log beta), its random numbers held."""

    def __init__(self, problem: Problem, method: Method, stream: str | None) -> None:
        self._problem, self.method, self._stream = problem, method, stream
        self._work: Counter[str] = Counter()
        self._failures = 0

    def __call__(self, theta: np.ndarray) -> float:
        K, y = _kernel(theta)(self._problem.X_train), self._problem.y_train
        rng = None if self._stream is None else generator(self._stream)
        nothing = np.empty((len(y), 0)), np.empty(0)
        try:
            found = infer(self.method, Prior(K, *nothing), y, rng=rng)
        except (ConvergenceError, ExtinctionError):
            self._failures += 1
            return WORST
        if found.log_evidence is None:
            raise ValueError(f"methods must give an evidence to climb; got {self.method}")
        self._work += Counter(found.work)
        return found.log_evidence

    def columns(self) -> Row:
        """Return the counts of work, and of evaluations without an answer."""
        work = {f"work_{what}": int(count) for what, count in self._work.items()}
        return work | {"failures": self._failures}


def _kernel(theta: np.ndarray) -> Any:
    return rbf(*np.exp(theta).tolist())
