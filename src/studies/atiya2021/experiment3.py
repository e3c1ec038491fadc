"""Experiment 3: error against CPU seconds where the truth is known (paper, section 6.3, Figures 1 and 2).

Problem 3 of Experiment 2: 400 training and 200 test patterns, the linear kernel, the truth of Eq. (66). Each method
runs at several sizes; a size is whatever costs time and buys accuracy, most often the number of samples. The first data
set gets ten runs at each size, further ones get one, because runs on one data set say nothing about others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcmc.gp.covariance import Prior, linear, prior
from gpcmc.inference.interface import Method
from gpcmc.orthant.truths import LinearKernelTruth, linear_kernel_truth
from studies.atiya2021.methods import METHODS
from studies.atiya2021.problems import EXPERIMENT2, two_class_data
from studies.atiya2021.runs import Answer, attempt, infer
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator, seed
from studies.common.timing import import_late


def tradeoff(
    name: str,
    *,
    root: int,
    method: str,
    options: Mapping[str, Any],
    grid: Sequence[Mapping[str, Any]],
    runs: int | None,
    data_sets: int = 1,
    pieces: Pieces,
) -> Piece:
    """Run one method at every size.

    Parameters
    ----------
    name : str
        The row's name in the configuration: it keys the random streams and names the rows.
    root : int
        Root of the random streams.
    method : str
        A name in `studies.atiya2021.methods.METHODS`.
    options : mapping
        Options of the method that all sizes share.
    grid : sequence of mappings
        The sizes: options that vary, put over `options`. They key the random streams.
    runs : int or None
        Independent runs on the first data set at each size; None for a method that draws nothing at random.
    data_sets : int
        Data sets; those after the first get one run at each size.
    pieces : Pieces
        Finished runs.

    Returns
    -------
    rows, timing : list of dict
        One row a run: ``size`` (place in the grid), ``dataset`` if there are several, the options, ``truth``, errors
        against it (nats, per cent), what the method says of itself; of the toolbox's chains also
        ``probability_mae_<reading>``. A run that failed has its status, and no seconds.

    Raises
    ------
    ValueError
        If the grid is empty or names a size twice, or an option is not as the method needs.
    """
    labels = [",".join(f"{key}={cell[key]}" for key in sorted(cell)) or "only" for cell in grid]
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"grid must hold one or more sizes, each once; got {labels}")
    fitters: list[Method] = [METHODS[method](**{**options, **cell}) for cell in grid]
    import_late()

    def one(dataset: int, size: int, run: int) -> Piece:
        key: Row = {"method": name, "size": size, "run": run}
        if data_sets > 1:
            key["dataset"] = dataset
        further = [f"dataset{dataset}"] if dataset else []
        path = None
        if runs is not None:
            path = seed(root, "experiment3", name, labels[size], *further, f"run{run}")
        return _run(
            key, fitters[size], {**options, **grid[size]}, path, problem3(root, dataset=dataset)
        )

    first = [(0, size, run) for size in range(len(grid)) for run in range(runs or 1)]
    others = [(k, size, 0) for k in range(1, data_sets) for size in range(len(grid))]
    return join(
        pieces.get(
            f"dataset{dataset}-size{size}-run{run}" if dataset else f"size{size}-run{run}",
            partial(one, dataset, size, run),
        )
        for dataset, size, run in first + others
    )


def _run(
    key: Row,
    fitter: Method,
    options: Mapping[str, Any],
    path: str | None,
    known: tuple[Prior, np.ndarray, LinearKernelTruth],
) -> Piece:
    """One run; `path` is its seed, None for a method that draws nothing at random."""
    gp, y, truth = known
    row = key | {option: _plain(value) for option, value in options.items()}
    row["truth"] = truth.log_evidence
    rng = None
    if path is not None:
        row["seed"], rng = path, generator(path)
    made = attempt(partial(infer, fitter, gp, y, rng=rng))
    if made.found is None:
        return [row | {"status": made.status}], [], {}
    columns = _columns(made.found, truth)
    if taken := row.keys() & columns.keys():
        raise ValueError(f"options must not be named as results are; got {sorted(taken)}")
    return [row | columns], [key | {"cpu_seconds": made.seconds}], {}


def problem3(root: int, *, dataset: int = 0) -> tuple[Prior, np.ndarray, LinearKernelTruth]:
    """Return covariances, labels and truth of a data set of Experiment 2's Problem 3."""
    path = seed(root, "experiment2", "problem3", f"dataset{dataset}")
    x, y, x_star = two_class_data(EXPERIMENT2[3], generator(path))
    truth = linear_kernel_truth(x, y, x_star)
    return prior(linear(), x[:, None], x_star[:, None]), y, truth


def _columns(found: Answer, truth: LinearKernelTruth) -> Row:
    columns: Row = {
        "status": found.status,
        "log_evidence": found.log_evidence,
        "log_evidence_se": found.log_evidence_se,
    }
    if found.log_evidence is not None:
        error = found.log_evidence - truth.log_evidence
        columns |= {
            "log_evidence_error": float(error),
            "ape_percent": float(100.0 * abs(error / truth.log_evidence)),
        }
    if len(found.probability):
        predictions = {"": found.probability} | {
            f"_{reading}": prediction.probability for reading, prediction in found.readings.items()
        }
        for reading, probability in predictions.items():
            mae = np.mean(np.abs(probability - truth.probability))  # Eq. 67
            columns[f"probability_mae{reading}"] = float(mae)
    columns |= {f"work_{what}": int(count) for what, count in found.work.items()}
    return columns | {what: float(value) for what, value in found.diagnostics.items()}


def _plain(value: Any) -> Any:
    """A list, such as names of defects, as one cell of a table."""
    return "+".join(map(str, value)) if isinstance(value, (list, tuple)) else value
