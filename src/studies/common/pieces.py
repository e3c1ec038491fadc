"""Finished pieces of a long job, kept so that no finished work is done twice.

A piece is a few runs of a hyperparameter setting, a data set or an instance: whatever a job does one after the other.
Its file has a key in its name, the digest of a record that stands beside it and says what the piece was made from:

- the parameters: the root of the random streams, the grid, the options, and the digest of the patterns, if any, but
  no `studies.common.counts.Count`, which says how many pieces there are;
- the code: every module that the named ones import, directly or not (`studies.common.code`);
- the libraries whose code makes or moves numbers (`LIBRARIES`), by version.

A job takes a piece only where its own key is the same. So an edit of one method's module leaves the pieces of the
other methods valid. The file also carries the digest and the number of rows of its content, with the names of job and
piece. A piece that was altered, cut off or exchanged for another is refused by name and computed again.

Three things are trusted: that the compiled extension was built from the sources beside it; that processor, compiler,
BLAS and the minor version of Python change results by rounding at most; and that the modules reach others through
import statements alone. Markov chains make large differences of small ones, so on another processor a piece may
differ from what would be computed there, as any result may.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import sys
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from studies.common.code import code_digests
from studies.common.counts import Count
from studies.common.machine import processor

Row = dict[str, Any]
#: Rows of the results table, rows of the timing table, arrays by name.
Piece = tuple[list[Row], list[Row], dict[str, np.ndarray]]
#: What a piece was made from: `modules` (as named), `code`, `libraries`, `parameters`. Its file also names the
#: `processor`, which is no part of the key, and how pieces were `carried` over to changed code, if they were.
Record = dict[str, Any]

#: Random streams (NumPy), special functions and linear algebra, kernels, effective sample sizes.
LIBRARIES = ("arviz-stats", "numpy", "scikit-learn", "scipy")

#: In a job's folder: all its pieces are there, and its results have been written.
DONE = "done"
#: Behind the folder's name, once the run has ended well: the workflow sets the pieces aside, so that a job that runs
#: again computes anew. Not before, for a run that is killed while it takes note of the job starts that job again.
ASIDE = ".finished"

#: Parts of a record that make its key. What else a record holds says how its pieces came here.
_KEYED = ("code", "libraries", "modules", "parameters")
#: Names in a piece's file that no array may have.
_RESERVED = ("rows", "about")


class DamagedPieceError(ValueError):
    """A piece whose content is not what was written, or with nothing that says what was written."""


class Check(Protocol):
    """What stands between a job and its pieces while kept pieces are verified."""

    def begin(self, record: Record) -> None:
        """Take note of what the pieces would be made from now."""
        ...

    def get(self, name: str, compute: Callable[[], Piece]) -> Piece:
        """Return the kept piece of that name; compute it as well if it was drawn, and compare."""
        ...


class Pieces:
    """A folder of finished pieces that belong to one job.

    Parameters
    ----------
    folder : path
        Where the pieces wait until the job is complete.
    modules : iterable of str
        Modules that the results come from; what they import is found.
    parameters : object
        What else the results depend on; anything that JSON can hold.
    job : str, optional
        The job's name, part of every digest; the folder's name by default.
    check : Check, optional
        Where pieces come from while kept ones are verified; the folder is then not touched.
    """

    def __init__(
        self,
        folder: str | Path,
        modules: Iterable[str],
        parameters: object,
        *,
        job: str | None = None,
        check: Check | None = None,
    ) -> None:
        self._folder = Path(folder)
        self._job = job or self._folder.name
        self._check = check
        self._asked: set[str] = set()
        self.record = record(modules, parameters)
        self.key = key_of(self.record)
        if check is not None:
            check.begin(self.record)
        else:
            (self._folder / DONE).unlink(missing_ok=True)

    def get(self, name: str, compute: Callable[[], Piece]) -> Piece:
        """Return the piece of that name, from disk where it is finished and whole, else by `compute()`."""
        if self._check is not None:
            return self._check.get(name, compute)
        self._asked.add(name)
        path = self._folder / f"{name}-{self.key}.npz"
        if path.exists():
            try:
                return decode(self._job, name, path.read_bytes())
            except DamagedPieceError as error:
                print(
                    f"{refusal(self._job, name, path, error)}; it is computed again",
                    file=sys.stderr,
                )
        made = compute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._note()
        write(path, encode(self._job, name, made))
        return made

    def has(self, name: str) -> bool:
        """Whether a file of that piece is there, which may still be refused."""
        return (self._folder / f"{name}-{self.key}.npz").exists()

    def _note(self) -> None:
        """Write the record, unless pieces that were put back brought theirs, which says how they came here."""
        path = self._folder / f"{self.key}.json"
        try:
            written = key_of(json.loads(path.read_bytes())) == self.key
        except (OSError, ValueError, KeyError, TypeError):
            written = False
        if not written:
            write(path, text_of({**self.record, "processor": processor()}).encode())

    def finish(self) -> None:
        """Note that the job's results have been written, and drop the pieces of other inputs and of larger counts."""
        if self._check is None and self._folder.exists():
            wanted = {f"{name}-{self.key}.npz" for name in self._asked} | {f"{self.key}.json"}
            for path in self._folder.iterdir():
                if path.name not in wanted:
                    path.unlink()
            (self._folder / DONE).touch()


def refusal(job: str, name: str, path: str | Path, error: object) -> str:
    """Return the words for a piece that is not used."""
    return f"{job}, piece {name}, {path}: refused, {error}"


def encode(job: str, name: str, piece: Piece) -> bytes:
    """Return a piece as the bytes of an npz file with its digest.

    Raises
    ------
    ValueError
        If an array has one of the names ``rows`` and ``about``.
    """
    rows, timing, arrays = piece
    if taken := sorted(set(_RESERVED) & arrays.keys()):
        raise ValueError(f"arrays must not be named {' or '.join(_RESERVED)}; got {taken}")
    about = {"job": job, "piece": name, "rows": len(rows), "sha256": digest(job, name, piece)}
    named: Any = {
        "rows": np.array(json.dumps([rows, timing])),
        "about": np.array(json.dumps(about)),
        **arrays,
    }
    buffer = io.BytesIO()
    np.savez(buffer, **named)
    return buffer.getvalue()


def decode(job: str, name: str, content: bytes) -> Piece:
    """Return the piece that `encode` made, after a look at its digest.

    Raises
    ------
    DamagedPieceError
        If the bytes are no piece, are not of this job and name, or do not fit their digest.
    """
    piece, about = unverified(content)
    if about is None:
        raise DamagedPieceError("it has no digest of its content")
    if (about.get("job"), about.get("piece")) != (job, name):
        raise DamagedPieceError(f"it is piece {about.get('piece')} of {about.get('job')}")
    if about.get("rows") != len(piece[0]):
        raise DamagedPieceError(f"it has {len(piece[0])} rows, its digest says {about.get('rows')}")
    if about.get("sha256") != digest(job, name, piece):
        raise DamagedPieceError("its content does not fit its digest")
    return piece


def unverified(content: bytes) -> tuple[Piece, dict[str, Any] | None]:
    """Return a piece as it is, and what its file says about it; None for a file of the first edition.

    Raises
    ------
    DamagedPieceError
        If the bytes are no piece.
    """
    try:
        with np.load(io.BytesIO(content)) as stored:
            found = {name: stored[name] for name in stored.files}
        rows, timing = json.loads(str(found.pop("rows")))
        about = json.loads(str(found.pop("about"))) if "about" in found else None
    except (
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        KeyError,
        OSError,
        EOFError,
        TypeError,
    ) as error:
        raise DamagedPieceError(f"it cannot be read ({type(error).__name__}: {error})") from None
    except (
        NotImplementedError
    ) as error:  # a damaged header asks for a compression that there is not
        raise DamagedPieceError(f"it cannot be read ({error})") from None
    return (rows, timing, found), about


def digest(job: str, name: str, piece: Piece) -> str:
    """Return the SHA-256 checksum of a piece's content, with the names of job and piece."""
    rows, timing, arrays = piece
    found = hashlib.sha256(json.dumps([job, name, rows, timing]).encode())
    for which in sorted(arrays):
        array = np.ascontiguousarray(arrays[which])
        found.update(json.dumps([which, array.dtype.str, list(array.shape)]).encode())
        found.update(array.tobytes())
    return found.hexdigest()


def cpu_seconds(piece: Piece) -> float:
    """Return the CPU seconds that a piece took, by its timing rows; zero where it has none."""
    return sum(
        float(value)
        for row in piece[1]
        for key, value in row.items()
        if key.endswith("cpu_seconds") and value is not None
    )


def write(path: Path, content: bytes) -> None:
    """Write a file that never has its final name while it is half-written; several processes may write it."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


def join(pieces: Iterable[Piece]) -> Piece:
    """Put pieces one after the other, and so the parts of an array that more than one has."""
    rows: list[Row] = []
    timing: list[Row] = []
    arrays: dict[str, np.ndarray] = {}
    for more_rows, more_timing, more_arrays in pieces:
        rows += more_rows
        timing += more_timing
        for name, part in more_arrays.items():
            arrays[name] = np.concatenate([arrays[name], part]) if name in arrays else part
    return rows, timing, arrays


def record(modules: Iterable[str], parameters: object) -> Record:
    """Return what pieces of these modules with these parameters are made from, now and here."""
    named = sorted(set(modules))
    return {
        "modules": named,
        "code": code_digests(named),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "parameters": _without_counts(parameters),
    }


def _without_counts(parameters: object) -> object:
    if isinstance(parameters, Mapping):
        found = parameters.items()
        return {name: _without_counts(v) for name, v in found if not isinstance(v, Count)}
    if isinstance(parameters, list | tuple):
        return [_without_counts(one) for one in parameters]
    return parameters


def key_of(made_from: Mapping[str, Any]) -> str:
    """Return the key of a record, 16 hexadecimal digits."""
    keyed = {part: made_from[part] for part in _KEYED}
    return hashlib.sha256(text_of(keyed).encode()).hexdigest()[:16]


def text_of(made_from: Mapping[str, Any]) -> str:
    """Return a record as the text of its file."""
    return json.dumps(made_from, indent=1, sort_keys=True) + "\n"


def outdated(made_from: Mapping[str, Any]) -> list[str]:
    """Return which modules and libraries are no longer those of a record; none where it fits.

    Parameters
    ----------
    made_from : mapping
        As `record` returned it. Its parameters are not looked at: only the job knows them.
    """
    try:
        here = record(made_from["modules"], None)
    except ValueError:  # a module has gone
        return sorted(made_from["modules"])
    return sorted(
        name
        for part in ("code", "libraries")
        for name in made_from[part].keys() | here[part].keys()
        if made_from[part].get(name) != here[part].get(name)
    )
