"""Jobs of a study from arguments to files: reading inputs, keeping pieces, writing results.

A study lists its jobs (`Job`) and names a function for each kind. A function takes the job's arguments, its inputs as
mappings of arrays, and `keep`, which finishes one piece of the work at a time (`Keep`). It returns rows, timing and
arrays (`studies.common.pieces.Piece`).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from studies.common.pieces import Check, Piece, Pieces, Row

#: Returns a piece by its name, computed where it is not kept, with its CPU seconds in a row of timing.
Keep = Callable[[str, Callable[[], tuple["list[Row]", "dict[str, np.ndarray]"]]], "Piece"]

#: What a row says where the raw data could not be had.
NO_DATA = "data not available"
#: The kind of the jobs that make patterns from raw files.
PATTERNS = "problem"


@dataclass(frozen=True)
class Job:
    """One job of the workflow: a process that computes a few files.

    Attributes
    ----------
    name : str
        Unique in the study; also the folder of its pieces.
    kind : str
        Which function runs it.
    outputs : dict
        ``rows``, ``timing``, ``arrays``, ``counts``, as far as there are any: files relative to the study's results.
    inputs : dict
        Arrays by argument, or the status of raw files (``.json``); relative to the study's results.
    arguments : dict
        What the function needs; anything that JSON can hold.
    modules : tuple of str
        Modules that the numbers come from (`studies.common.code`).
    mem_mb : int
        Upper bound of its memory, in megabytes.
    files : tuple of str
        Further files that it reads, relative to the root of the repository.
    """

    name: str
    kind: str
    outputs: dict[str, str]
    inputs: dict[str, str]
    arguments: dict[str, Any]
    modules: tuple[str, ...]
    mem_mb: int = 800
    files: tuple[str, ...] = field(default=())


def outputs(stem: str, *, arrays: bool = False) -> dict[str, str]:
    """Return the files of a job that writes rows, timing and perhaps arrays."""
    found = {"rows": f"{stem}.csv", "timing": f"{stem}_timing.csv"}
    return found | ({"arrays": f"{stem}.npz"} if arrays else {})


def run_job(
    job: Job,
    functions: Mapping[str, str],
    root: Path,
    pieces: Path,
    *,
    verify: Check | None = None,
) -> None:
    """Run a job in this process, with one thread, and write its outputs with their digests.

    Where an input has no arrays, because raw data could not be had, the one row that is written says so.

    Parameters
    ----------
    job : Job
    functions : mapping
        ``module:name`` by kind.
    root : path
        The study's results, ``results/<scale>/<study>``. The current folder is the root of the repository.
    pieces : path
        Where finished pieces wait, in a folder a job.
    verify : Check, optional
        Compare drawn pieces with kept ones (`studies.common.verify`), compute nothing else, and write no output.
    """
    from gpcmc._threads import one_thread
    from recheck.files import read_arrays
    from studies.common.pieces import Pieces

    module, name = functions[job.kind].split(":")
    function = getattr(importlib.import_module(module), name)
    # beside the study's results, which may not exist yet
    paths = {key: Path(os.path.normpath(root / path)) for key, path in job.inputs.items()}
    with one_thread():
        if job.kind == PATTERNS:
            states = [json.loads(path.read_text())["available"] for path in paths.values()]
            _write(job, root, ([], [], function(**job.arguments) if all(states) else {}))
            return
        inputs = {key: read_arrays(path) for key, path in paths.items()}
        if not all(inputs.values()):
            _write(job, root, ([{"status": NO_DATA}], [], {}))
            return
        given = [job.arguments, {key: _digest(arrays) for key, arrays in inputs.items()}]
        kept = Pieces(pieces / job.name, job.modules, given, job=job.name, check=verify)
        found = function(**job.arguments, **inputs, keep=partial(_timed, kept))
    if verify is None:
        _write(job, root, found)
        kept.finish()


def _timed(
    pieces: Pieces, name: str, compute: Callable[[], tuple[list[Row], dict[str, np.ndarray]]]
) -> Piece:
    def one() -> Piece:
        start = time.process_time()
        rows, arrays = compute()
        return rows, [{"piece": name, "cpu_seconds": time.process_time() - start}], arrays

    return pieces.get(name, one)


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """A digest of input arrays, rounded to 8 decimals: another processor may round the last bits otherwise."""
    import numpy as np

    found = hashlib.sha256()
    for name in sorted(arrays):
        rounded = np.ascontiguousarray(np.round(arrays[name], 8) + 0.0, dtype="<f8")
        found.update(f"{name}{rounded.shape}".encode() + rounded.tobytes())
    return found.hexdigest()[:16]


def _write(job: Job, root: Path, found: Piece) -> None:
    import pandas as pd

    from recheck.files import write_arrays, write_csv

    for path in job.outputs.values():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
    rows, timing, arrays = found
    if "rows" in job.outputs:
        write_csv(root / job.outputs["rows"], pd.DataFrame(rows), job=job.name)
    if "timing" in job.outputs:
        frame = pd.DataFrame(timing or None, columns=None if timing else ["cpu_seconds"])
        write_csv(root / job.outputs["timing"], frame, job=job.name)
    if "arrays" in job.outputs:
        write_arrays(root / job.outputs["arrays"], arrays, job=job.name)
