"""Experiment 3: error against CPU seconds where the truth is known (paper, section 6.3, Figures 1 and 2).

Problem 3 of Experiment 2, its first data set: 400 training and 200 test patterns, the linear kernel, the
truth of Eq. (66). Each method runs at several sizes, ten times at each; a size is whatever costs time
and buys accuracy, most often the number of samples.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcmc.experiments.classification import EXTINCT
from gpcmc.experiments.orthant_accuracy import EXPERIMENT2, two_class_data
from gpcmc.experiments.pieces import Piece, Pieces, Row, join
from gpcmc.experiments.seeds import generator, seed
from gpcmc.experiments.timing import import_late
from gpcmc.gp import Prior, linear, prior
from gpcmc.inference import METHODS, ConvergenceError, Inference, Method, infer
from gpcmc.inference.interface import NOT_CONVERGED
from gpcmc.orthant import ExtinctionError
from gpcmc.orthant.truths import LinearKernelTruth, linear_kernel_truth


def tradeoff(
    name: str,
    *,
    root: int,
    method: str,
    options: Mapping[str, Any],
    grid: Sequence[Mapping[str, Any]],
    runs: int | None,
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
        A name in `gpcmc.inference.METHODS`.
    options : mapping
        Options of the method that all sizes share.
    grid : sequence of mappings
        The sizes: options that vary, e.g. ``{"samples": 1000, "burn_in": 100}``, put over `options`.
        They key the random streams, so that a size keeps its numbers when others come or go.
    runs : int or None
        Independent runs at each size by a method that draws at random; None for one that does not,
        which runs once.
    pieces : Pieces
        Finished runs.

    Returns
    -------
    rows : list of dict
        One row a run: ``method`` (the row's name), ``size`` (place in the grid), ``run``, the options,
        ``truth``, ``log_evidence_error`` (nats, with its sign), ``ape_percent``, ``probability_mae``,
        and what the method says of itself. A run without an answer has its status only.
    timing : list of dict
        ``cpu_seconds`` of each run that gave an answer, around the method alone.
    arrays : dict
        Empty.

    Raises
    ------
    ValueError
        If the grid is empty or names a size twice, or an option is not as the method needs.
    """
    labels = [",".join(f"{key}={cell[key]}" for key in sorted(cell)) or "only" for cell in grid]
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"grid must hold one or more sizes, each once; got {labels}")
    fitters: list[Method] = [METHODS[method](**{**options, **cell}) for cell in grid]
    gp, y, truth = problem3(root)

    def one(size: int, run: int) -> Piece:
        key: Row = {"method": name, "size": size, "run": run}
        given = {option: _plain(value) for option, value in {**options, **grid[size]}.items()}
        row = key | given | {"truth": truth.log_evidence}
        rng = None
        if runs is not None:
            row["seed"] = seed(root, "experiment3", name, labels[size], f"run{run}")
            rng = generator(row["seed"])
        start = time.process_time()
        try:
            found = infer(fitters[size], gp, y, rng=rng)
        except ConvergenceError:
            return [row | {"status": NOT_CONVERGED}], [], {}
        except ExtinctionError:
            return [row | {"status": EXTINCT}], [], {}
        timing = [key | {"cpu_seconds": time.process_time() - start}]
        columns = _columns(found, truth)
        if taken := row.keys() & columns.keys():
            raise ValueError(f"options must not be named as results are; got {sorted(taken)}")
        return [row | columns], timing, {}

    import_late()
    return join(
        pieces.get(f"size{size}-run{run}", partial(one, size, run))
        for size in range(len(grid))
        for run in range(1 if runs is None else runs)
    )


def problem3(root: int) -> tuple[Prior, np.ndarray, LinearKernelTruth]:
    """Return covariances, labels and truth of Experiment 2's Problem 3, its first data set."""
    path = seed(root, "experiment2", "problem3", "dataset0")
    x, y, x_star = two_class_data(EXPERIMENT2[3], generator(path))
    truth = linear_kernel_truth(x, y, x_star)
    return prior(linear(), x[:, None], x_star[:, None]), y, truth


def _columns(found: Inference, truth: LinearKernelTruth) -> Row:
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
        mae = np.mean(np.abs(found.probability - truth.probability))  # Eq. 67
        columns["probability_mae"] = float(mae)
    columns |= {f"work_{what}": int(count) for what, count in found.work.items()}
    return columns | {what: float(value) for what, value in found.diagnostics.items()}


def _plain(value: Any) -> Any:
    """A list, such as names of defects, as one cell of a table."""
    return "+".join(map(str, value)) if isinstance(value, (list, tuple)) else value
