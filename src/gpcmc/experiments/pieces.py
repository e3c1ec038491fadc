"""Finished pieces of a long job, kept so that an interrupted job redoes only what was unfinished."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
#: Rows of the results table, rows of the timing table, arrays by name.
Piece = tuple[list[Row], list[Row], dict[str, np.ndarray]]


class Pieces:
    """A folder of finished pieces that belong to one job with one set of inputs.

    Parameters
    ----------
    folder : path
        Where the pieces wait until the job is complete.
    inputs : iterable of paths
        Files that the results depend on: pieces made from other contents are not used.
    parameters : object
        What else the results depend on; anything that JSON can hold.
    """

    def __init__(
        self, folder: str | Path, inputs: Iterable[str | Path], parameters: object
    ) -> None:
        digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode())
        for path in sorted(map(str, inputs)):
            digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
        self._folder = Path(folder)
        self._key = digest.hexdigest()[:16]

    def get(self, name: str, compute: Callable[[], Piece]) -> Piece:
        """Return the piece of that name, from disk where it is finished, else by `compute()`."""
        path = self._folder / f"{name}-{self._key}.npz"
        if path.exists():
            with np.load(path) as stored:
                rows, timing = json.loads(str(stored["rows"]))
                return rows, timing, {k: stored[k] for k in stored.files if k != "rows"}
        rows, timing, arrays = compute()
        buffer = io.BytesIO()
        named: Any = {"rows": np.array(json.dumps([rows, timing])), **arrays}
        np.savez(buffer, **named)
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(buffer.getvalue())
        os.replace(partial, path)  # a half-written piece never has the final name
        return rows, timing, arrays

    def discard(self) -> None:
        """Remove the folder: the job's results have been written."""
        shutil.rmtree(self._folder, ignore_errors=True)


def join(pieces: Iterable[Piece]) -> Piece:
    """Put pieces one after the other."""
    rows: list[Row] = []
    timing: list[Row] = []
    arrays: dict[str, np.ndarray] = {}
    for more_rows, more_timing, more_arrays in pieces:
        rows += more_rows
        timing += more_timing
        arrays |= more_arrays
    return rows, timing, arrays
