"""Experiment 4: nine problems, six hyperparameter settings, every method (paper, section 6.4, Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from gpcmc.gp.covariance import prior, rbf
from gpcmc.inference.interface import OK, Method
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import Problem, further_data_set, trivial
from studies.atiya2021.runs import NO_DATA, Answer, attempt, infer
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator, seed
from studies.common.timing import import_late

#: Of a finished piece: the longest take minutes each.
RUNS = 5


def experiment4(
    number: int,
    name: str,
    problem: Problem | None,
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    method: str,
    options: Mapping[str, Any],
    replicates: int | None,
    data_sets: int,
    standardise: bool = False,
    pieces: Pieces,
) -> Piece:
    """Run one method on one problem at every hyperparameter setting.

    Parameters
    ----------
    number, name : int, str
        Problem, 1 to 9; the row's name in the configuration, which keys the random streams.
    problem, root : Problem or None, int
        The first data set, None where the data could not be had; root of the random streams.
    hyperparameters : sequence of {"set": int, "alpha": float, "beta": float}
    method, options : str, mapping
        A name in `studies.atiya2021.methods.METHODS`, and the method's options.
    replicates, data_sets : int or None, int
        Runs on the first data set, None for a method that draws nothing at random; data sets, of which those after
        the first get one run each. Further data sets of real data are other splits.
    standardise : bool
        Whether the features of further splits are scaled by their training patterns.
    pieces : Pieces
        Finished runs, five a piece.

    Returns
    -------
    rows, timing, arrays : list of dict, list of dict, dict
        One row a run, also where it failed. Arrays by setting k: `probability_set<k>` and
        `probability_se_set<k>`, (runs, t), of the runs that predicted;
        `dataset_set<k>`, `replicate_set<k>` and `ok_set<k>`, (runs,), say which they are. Of the toolbox's chains,
        `probability_<reading>_set<k>` and the column ``mae_post_<reading>`` too.

    Raises
    ------
    ValueError
        If an option is not as the method needs it.
    """
    fitter = METHODS[method](**options)
    if problem is None:
        some = partial(_without_data, number, name)
    else:
        columns = dict(options) if replicates else None
        some = partial(_some_runs, number, name, problem, standardise, root, fitter, columns)
    import_late()
    runs = [(0, replicate) for replicate in range(replicates or 1)]
    runs += [(dataset, 0) for dataset in range(1, data_sets)]
    return join(
        pieces.get(
            f"set{hyper['set']}_run{first}", partial(some, hyper, runs[first : first + RUNS])
        )
        for hyper in hyperparameters
        for first in range(0, len(runs), RUNS)
    )


def _without_data(
    number: int, name: str, hyper: Mapping[str, float], runs: Sequence[tuple[int, int]]
) -> Piece:
    """One row that says that the data are missing."""
    only = {"problem": number, "method": name} | dict(hyper) | {"dataset": 0, "replicate": 0}
    return [only | {"status": NO_DATA}], [only | {"cpu_seconds": None}], {}


def _some_runs(
    number: int,
    name: str,
    problem: Problem,
    standardise: bool,
    root: int,
    fitter: Method,
    options: Mapping[str, Any] | None,
    hyper: Mapping[str, float],
    runs: Sequence[tuple[int, int]],
) -> Piece:
    """Runs (data set, replicate) at one setting; `options` are columns of a method that draws at random."""
    key: Row = {"problem": number, "method": name} | dict(hyper)
    setting = f"set{int(hyper['set'])}"
    rows: list[Row] = []
    timing: list[Row] = []
    kept: list[tuple[int, int, Answer]] = []
    for dataset, of_it in groupby(runs, key=itemgetter(0)):
        data = problem
        if dataset:
            data = further_data_set(number, problem, dataset, root=root, standardise=standardise)
        gp = prior(rbf(hyper["alpha"], hyper["beta"]), data.X_train, data.X_test)
        alone = trivial(gp.K, hyper["beta"])
        for _, replicate in of_it:
            further = [f"dataset{dataset}"] if dataset else []
            path = seed(
                root,
                "experiment4",
                f"problem{number}",
                setting,
                name,
                *further,
                f"replicate{replicate}",
            )
            row: Row = key | {"dataset": dataset, "replicate": replicate, "trivial": alone}
            if options is not None:
                row |= {"seed": path, **options}
            run = attempt(partial(infer, fitter, gp, data.y_train, rng=generator(path)))
            timing.append(row | {"cpu_seconds": run.seconds})
            if run.found is None:
                rows.append(row | {"status": run.status})
                continue
            rows.append(row | _result_columns(run.found, data))
            if len(run.found.probability):
                kept.append((dataset, replicate, run.found))
    return rows, timing, _arrays(setting, kept)


def _arrays(setting: str, kept: Sequence[tuple[int, int, Answer]]) -> dict[str, np.ndarray]:
    """Test probabilities of the runs (data set, replicate, answer) that predicted; {} if none did."""
    if not kept:
        return {}
    arrays = {
        "probability": [found.probability for _, _, found in kept],
        "probability_se": [found.probability_se for _, _, found in kept],
        "dataset": [dataset for dataset, _, _ in kept],
        "replicate": [replicate for _, replicate, _ in kept],
        "ok": [found.status == OK for _, _, found in kept],
    }
    for reading in kept[0][2].readings:
        arrays[f"probability_{reading}"] = [
            found.readings[reading].probability for _, _, found in kept
        ]
    return {f"{name}_{setting}": np.array(values) for name, values in arrays.items()}


def _result_columns(result: Answer, problem: Problem) -> Row:
    columns: Row = {
        "status": result.status,
        "log_evidence": result.log_evidence,
        "log_evidence_se": result.log_evidence_se,
    }
    if len(result.probability):
        decided = np.where(result.probability >= 0.5, 1.0, -1.0)
        columns |= {
            "mae_post": _mae_post(result.probability, problem),
            "error_rate": float(np.mean(decided != problem.y_test)),
        }
        for reading, prediction in result.readings.items():
            columns[f"mae_post_{reading}"] = _mae_post(prediction.probability, problem)
    columns |= {f"work_{what}": count for what, count in result.work.items()}
    return columns | result.diagnostics


def _mae_post(probability: np.ndarray, problem: Problem) -> float:
    """Mean absolute error against the class probabilities of the law that drew the data; NaN for real data."""
    return float(np.mean(np.abs(probability - problem.bayes_posterior)))
