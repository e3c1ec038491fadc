"""How the jobs of each kind run: which function, from what inputs, and how its results are written."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.files import read_arrays, write_arrays, write_csv, write_text
from studies.atiya2021.problems import Problem, patterns_digest
from studies.common.pieces import Check, Pieces
from studies.common.running import Job


@dataclass(frozen=True, slots=True)
class Runner:
    """How jobs of one kind run.

    Attributes
    ----------
    function : str
        ``module:name`` within this package. It takes the job's arguments and what the flags below say.
    pieces : bool
        Whether it keeps finished pieces, which it then takes as ``pieces``.
    columns : tuple of str
        Columns of the results where there may be no rows.
    """

    function: str
    pieces: bool = True
    columns: tuple[str, ...] = ()


RUNNERS = {
    "problem": Runner("problems:patterns", pieces=False),
    "experiment1": Runner("experiment1:experiment1"),
    "quadrature": Runner("experiment1:quadrature_errors", pieces=False),
    "experiment2": Runner("experiment2:experiment2"),
    "experiment3": Runner("experiment3:tradeoff"),
    "experiment4": Runner("experiment4:experiment4"),
    "benchmark": Runner("experiment4:experiment4"),
    "spread": Runner(
        "spread:mae_post_of_data_sets",
        columns=("problem", "dataset", "seed", "set", "method", "mae_post"),
    ),
    "experiment5": Runner("experiment5:hyperparameter_posterior"),
    "tuning": Runner("tuning:tuning"),
    "tuning_gradient": Runner("tuning_gradient:tuning_gradient"),
    "defects": Runner("defects:defects"),
    "ordering": Runner("ordering:ordering"),
    "equations": Runner("equations:equations", pieces=False),
    "reference": Runner("reference:reference_problem"),
    "reference_truths": Runner("truths:certify_truths"),
    "reference_check": Runner("reference_check:check_reference", pieces=False),
    "calibrate": Runner("calibration:calibrate_all", pieces=False),
}


def run(job: Job, root: Path, pieces: Path, verify: Check | None) -> None:
    """Run a job; `studies.atiya2021.jobs.run_job` describes the arguments."""
    runner = RUNNERS[job.kind]
    arguments = dict(job.arguments)
    arguments |= _inputs(job, root)
    kept = None
    if runner.pieces:
        problem = arguments["problem"] if "problem" in job.inputs else None
        parameters = [job.arguments, patterns_digest(problem)]
        folder = pieces / job.name
        kept = Pieces(folder, job.modules, parameters, job=job.name, check=verify)
        arguments["pieces"] = kept
    elif verify is not None:
        raise ValueError(f"job must keep pieces to be verified; {job.name} keeps none")
    found = _function(runner)(**arguments)
    if verify is None:
        _write(job, root, found)
        if kept is not None:
            kept.finish()


def load_problem(path: Path) -> Problem | None:
    """Read the patterns of a problem; None where the raw data could not be had."""
    arrays = read_arrays(path)
    return Problem(**arrays) if arrays else None


def _function(runner: Runner) -> Callable[..., Any]:
    module, name = runner.function.split(":")
    return getattr(importlib.import_module(f"studies.atiya2021.{module}"), name)


def _inputs(job: Job, root: Path) -> dict[str, Any]:
    """The inputs of a job as arguments: `problem`, or `problems` by number, or `statuses`."""
    if job.kind == "problem":
        # beside the study's results, which may not exist yet
        return {"statuses": [Path(os.path.normpath(root / path)) for path in job.inputs.values()]}
    if "problem" in job.inputs:
        return {"problem": load_problem(root / job.inputs["problem"])}
    if job.inputs:
        found = {
            int(name.removeprefix("problem")): load_problem(root / path)
            for name, path in job.inputs.items()
        }
        return {"problems": found}
    return {}


def _write(job: Job, root: Path, found: Any) -> None:
    """Write what a function returned: a text, or rows, timing and arrays."""
    for path in job.outputs.values():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
    if "counts" in job.outputs:
        write_text(root / job.outputs["counts"], found)
        return
    rows, timing, arrays = found
    about = {"job": job.name}
    if "rows" in job.outputs:
        frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=RUNNERS[job.kind].columns)
        write_csv(root / job.outputs["rows"], frame, **about)
    if "timing" in job.outputs:
        write_csv(root / job.outputs["timing"], pd.DataFrame(timing), **about)
    if "arrays" in job.outputs:
        write_arrays(root / job.outputs["arrays"], arrays, **about)
