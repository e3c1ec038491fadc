"""Experiment 3: error against CPU seconds where the truth is known (paper, section 6.3, Figures 1 and 2).

Problem 3 of Experiment 2: 400 training and 200 test patterns, the linear kernel, the truth of Eq. (66).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from gpcmc.methods import Method
from gpcmc.orthant.truths import LinearKernelTruth
from studies.atiya2021.experiment2 import data_set
from studies.atiya2021.methods import METHODS
from studies.atiya2021.runs import Answer, attempt, infer
from studies.common.rows import Line
from studies.common.seeds import generator
from studies.common.timing import import_late


def tradeoff_run(
    method: str, options: Mapping[str, Any], data: str, seed: str | None
) -> tuple[Line, float | None]:
    """Run a method on one data set.

    Parameters
    ----------
    method : str
        A name in `studies.atiya2021.methods.METHODS`.
    options : mapping
        Options of the method.
    data, seed : str
        Seeds of the data set and of the run; no seed for a method that draws nothing at random.

    Returns
    -------
    line : dict
        The options, ``truth``, errors against it (nats, per cent), what the method says of itself; of the toolbox's
        chains also ``probability_mae_<reading>``. A run that failed has its status.
    seconds : float or None
        CPU seconds of the method; None if it failed.

    Raises
    ------
    ValueError
        If an option is not as the method needs.
    """
    fitter: Method = METHODS[method](**options)
    import_late()
    gp, y, truth = data_set(3, data)
    line: Line = {option: _plain(value) for option, value in options.items()}
    line["truth"] = truth.log_evidence
    rng = None
    if seed is not None:
        line["seed"], rng = seed, generator(seed)
    made = attempt(partial(infer, fitter, gp, y, rng=rng))
    if made.found is None:
        return line | {"status": made.status}, None
    columns = _columns(made.found, truth)
    if taken := line.keys() & columns.keys():
        raise ValueError(f"options must not be named as results are; got {sorted(taken)}")
    return line | columns, made.seconds


def _columns(found: Answer, truth: LinearKernelTruth) -> Line:
    columns: Line = {
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
