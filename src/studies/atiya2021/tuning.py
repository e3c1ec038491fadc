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
from gpcmc.gp.covariance import Prior, prior, rbf
from gpcmc.inference.interface import OK, Method
from studies.atiya2021.experiment5 import scores
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import Problem
from studies.atiya2021.runs import NO_DATA, attempt, infer
from studies.common.pieces import Piece, Pieces, Row, join
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
    number, problem, root : int, Problem or None, int
        Problem of Experiment 4; None where the data could not be had; root of the random streams.
    methods : mapping of name to {"method", "options", "final", "replicates"}
        `method`, a name in `studies.atiya2021.methods.METHODS`, climbs with its `options`; `final`, options put over
        these, looks again at the best few; `replicates` is the number of searches of one that draws at random.
    evaluations, few : int
        Of a search, at most; candidates for the second look.
    judge : {"method", "options"}
        What judges every choice, with the same random numbers.
    pieces : Pieces
        Finished searches.

    Returns
    -------
    rows, timing, arrays : list of dict, list of dict, dict
        One row a method, replicate and ``stage``: ``search``, the best point by the search's own estimates, and
        ``final``, by the second look. `_Tuner` says what the columns are. Arrays
        ``search_<method>_<replicate>`` (evaluations, 3): log alpha, log beta, log evidence.

    Raises
    ------
    ValueError
        If a count or an option is not as above.
    """
    check_positive_int("few", few)
    tuner = None
    path = seed(root, "experiment5", f"problem{number}", "tuning")
    if problem is not None:
        judging = METHODS[judge["method"]](**judge.get("options", {}))
        tuner = _Tuner(problem, judging, path, evaluations, few)

    def one(name: str, replicate: int) -> Piece:
        row: Row = {"problem": number, "method": name, "replicate": replicate}
        if tuner is None:
            row["stage"] = "search"
            return [row | {"status": NO_DATA}], [row | {"cpu_seconds": None}], {}
        return tuner.run(row, methods[name])

    rows, timing, arrays = join(
        pieces.get(f"{name}-replicate{replicate}", partial(one, name, replicate))
        for name, given in methods.items()
        for replicate in range(given.get("replicates") or 1)
    )
    _add_shortfalls(rows)
    return rows, timing, arrays


def _add_shortfalls(rows: list[Row]) -> None:
    compared = [row["evidence"] for row in rows if row["status"] == OK]
    for row in rows:
        if row["status"] == OK:
            row["evidence_shortfall"] = max(compared) - row["evidence"]


@dataclass(frozen=True, slots=True)
class _Tuner:
    """What all searches on a problem share: the judge, the seed's path, and the counts.

    The rows hold ``log_alpha`` and ``log_beta`` chosen; ``estimate``, the method's own log evidence there, too high as
    the best of many is; ``evidence`` and ``evidence_se`` by the judge, ``log_loss``, ``error_rate`` and ``status``.
    `tuning` adds ``evidence_shortfall``: nats below the best that any method found, of rows that may be compared.
    """

    problem: Problem
    judge: Method
    path: str
    evaluations: int
    few: int

    def run(self, row: Row, given: Mapping[str, Any]) -> Piece:
        """One search, and the second look at its best few points if the method has one."""
        name, replicate = row["method"], row["replicate"]
        options = dict(given.get("options", {}))
        stream = None
        if given.get("replicates"):
            stream = row["seed"] = seed(self.path, name, f"replicate{replicate}")
        climber = _Evidence(self.problem, METHODS[given["method"]](**options), stream)
        import_late()
        start = time.process_time()
        found = search(climber, self.problem.X_train, evaluations=self.evaluations)
        seconds = time.process_time() - start
        candidates = found.best(self.few)
        stage = row | {"stage": "search"}
        timing = [stage | {"cpu_seconds": seconds}]
        stage |= options | {"evaluations": len(found.value), "search_converged": found.converged}
        best = int(np.argmax(found.value))
        judged = self._judged(found.theta[best], float(found.value[best]))
        rows = [stage | climber.columns() | judged]
        if "final" in given and len(candidates):
            options |= given["final"]
            again = None if stream is None else seed(stream, "final")
            looker = _Evidence(self.problem, METHODS[given["method"]](**options), again)
            start = time.process_time()
            values = [looker(theta) for theta in found.theta[candidates]]
            stage = row | {"stage": "final"}
            timing.append(stage | {"cpu_seconds": time.process_time() - start})
            stage |= options | {"evaluations": len(candidates)}
            theta = found.theta[candidates[int(np.argmax(values))]]
            rows.append(stage | looker.columns() | self._judged(theta, max(values)))
        seen = np.column_stack([found.theta, found.value])
        return rows, timing, {f"search_{name}_{replicate}": seen}

    def _judged(self, theta: np.ndarray, estimate: float) -> Row:
        """What the judge says of a choice, with the same random numbers for every choice."""
        problem = self.problem
        bounds = start_and_bounds(problem.X_train)[1]
        columns: Row = {
            "log_alpha": float(theta[0]),
            "log_beta": float(theta[1]),
            # of classes that can be separated the evidence may rise without end
            "at_bound": bool(np.isclose(theta[:, None], bounds).any()),
            "estimate": estimate,
        }
        gp = prior(_kernel(theta), problem.X_train, problem.X_test)
        rng = generator(seed(self.path, "judge"))
        made = attempt(partial(infer, self.judge, gp, problem.y_train, rng=rng))
        columns["status"] = made.status
        if made.found is None:
            return columns
        columns |= {
            "evidence": made.found.log_evidence,
            "evidence_se": made.found.log_evidence_se,
        }
        return columns | scores(made.found.probability, problem.y_test) | made.found.diagnostics


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

    def columns(self) -> Row:
        """Return the counts of work, and of evaluations without an answer."""
        work = {f"work_{what}": int(count) for what, count in self._work.items()}
        return work | {"failures": self._failures}


def _kernel(theta: np.ndarray) -> Kernel:
    return rbf(*np.exp(theta).tolist())
