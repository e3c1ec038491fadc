"""Blocks: the rows that one job ran, in a file, each with a digest of what it was made from.

A job that runs again takes over those rows that would be made from the same settings, code and inputs, whichever job
made them (`Spares`). Snakemake deletes a job's outputs before it starts. So each block stays under a second
name, in a hidden folder beside it (`remember`), until nothing wants it.

This module imports nothing heavy at its start, because every job starts with it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recheck.record.files import DamagedFileError, digest_path, read_arrays, read_json, write_arrays
from studies.common.code import digest_of_rows
from studies.common.rows import (
    MECHANICS,
    Record,
    Row,
    Table,
    records_of,
    run_row,
    stacked,
    table_of,
    unstacked,
)

if TYPE_CHECKING:
    import numpy as np

#: Records by experiment and name of the row.
Records = dict[str, dict[str, Record]]
#: Beside the blocks of a study: what they were before.
BEFORE = ".before"
#: What the names of parts of a block begin with there.
_PART = "resumed-"
#: The array of a block that has its lines, as text.
_LINES = "lines"


class Input(NamedTuple):
    """Where the arrays of an input of a row are.

    Attributes
    ----------
    files : list of str
        A file of patterns; or the blocks that have the rows of another experiment, or its table of kept rows.
    experiment : str
        That other experiment; empty for patterns.
    names : sequence of str
        Its rows.
    """

    files: list[str]
    experiment: str = ""
    names: Sequence[str] = ()


def write_block(path: str | Path, records: Records) -> None:
    """Write the records of a job, and the digest of the file, which names what each row was made from."""
    import numpy as np

    lines, made, arrays = [], [], dict[str, "np.ndarray"]()
    for experiment, own in records.items():
        for record in own.values():
            made.append(record.made)
            one = {"experiment": experiment, **record._asdict()}
            del one["arrays"]
            lines.append(json.dumps(one, ensure_ascii=False))
        stacks: dict[str, list[tuple[str, np.ndarray]]] = {}
        for record in own.values():
            for name, array in record.arrays.items():
                stacks.setdefault(name, []).append((record.row, array))
        arrays |= {f"{experiment}:{name}": array for name, array in stacked(stacks).items()}
    text = "\n".join(lines).encode()
    write_arrays(path, arrays | {_LINES: np.frombuffer(text, dtype=np.uint8)}, made=made)


def read_block(path: str | Path) -> Records:
    """Read what `write_block` wrote; DamagedFileError names a file that is not what was written."""
    stored = read_arrays(path)
    lines = stored.pop(_LINES, None)
    if lines is None:
        raise DamagedFileError(f"{path}: it has no rows; delete it and run snakemake again")
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for key, array in stored.items():
        experiment, _, name = key.partition(":")
        arrays.setdefault(experiment, {})[name] = array
    by_row = {experiment: unstacked(own) for experiment, own in arrays.items()}
    found: Records = {}
    for text in lines.tobytes().decode().splitlines():
        one = json.loads(text)
        experiment, row = one.pop("experiment"), one["row"]
        own_arrays = by_row.get(experiment, {}).get(row, {})
        found.setdefault(experiment, {})[row] = Record(**one, arrays=own_arrays)
    return found


def table(paths: Iterable[str | Path], experiment: str, order: Collection[str]) -> Table:
    """Return the rows of an experiment in the order that a plan gives to their names.

    Raises
    ------
    ValueError
        If a row is in none of the blocks.
    """
    found: dict[str, Record] = {}
    for path in paths:
        found |= read_block(path).get(experiment, {})
    if missing := [name for name in order if name not in found]:
        raise ValueError(
            f"{experiment}: {len(missing)} rows are in no block, {missing[0]} among them"
        )
    return table_of(found[name] for name in order)


def made_from(
    study: str, experiment: str, row: Row, code: str, inputs: Mapping[str, str | list[str]]
) -> str:
    """Return a digest of what a row is made from: its settings, its code and what its inputs have (`content`)."""
    settings = {key: value for key, value in row.items() if key not in MECHANICS}
    text = json.dumps([study, experiment, settings, code, dict(inputs)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Reader:
    """The inputs of rows, each file read once; rows that this job has run come first."""

    def __init__(self, own: Records) -> None:
        self._own = own
        self._patterns: dict[str, dict[str, np.ndarray]] = {}
        self._blocks: dict[str, Records] = {}

    def content(self, given: Input) -> str | list[str]:
        """What an input has: the digest of a file, or of what each of the rows was made from."""
        if not given.experiment:
            return str(read_json(digest_path(given.files[0]))["sha256"])
        return [record.made for record in self._records(given)]

    def made(self, study: str, experiment: str, row: Row, inputs: Mapping[str, Input]) -> str:
        """The digest (`made_from`) of a row under today's code, with its inputs as they are."""
        contents = {name: self.content(one) for name, one in inputs.items()}
        return made_from(study, experiment, row, digest_of_rows(study, experiment, [row]), contents)

    def arrays(self, given: Input) -> Mapping[str, np.ndarray]:
        """The arrays of a file, or those of rows, stacked."""
        if given.experiment:
            return table_of(self._records(given)).arrays
        (path,) = given.files
        if path not in self._patterns:
            self._patterns = {path: read_arrays(path)}  # the last one alone: some are large
        return self._patterns[path]

    def lost(self, inputs: Mapping[str, Input]) -> str:
        """The first file of inputs that has no arrays, because its raw data could not be had; or nothing."""
        return next(
            (one.files[0] for one in inputs.values() if _asked(one) and not self.arrays(one)), ""
        )

    def run(
        self, study: str, experiment: str, row: Row, inputs: Mapping[str, Input], made: str = ""
    ) -> Record:
        """Run a row on its inputs."""
        module = import_module(f"studies.{study}.experiments.{experiment}")
        arrays = {name: self.arrays(one) for name, one in inputs.items()}
        lost = any(_asked(one) and not arrays[name] for name, one in inputs.items())
        return run_row(module.run, row, arrays, made, lost)

    def _records(self, given: Input) -> list[Record]:
        known = dict(self._own.get(given.experiment, {}))
        for path in given.files if set(given.names) - known.keys() else ():
            if path not in self._blocks:
                self._blocks[path] = (
                    _kept(path, given) if path.endswith(".csv") else read_block(path)
                )
            known |= self._blocks[path].get(given.experiment, {})
        return [known[name] for name in given.names]


def _asked(given: Input) -> bool:
    """Whether an input is of anything: of the rows of another experiment a row may read none."""
    return bool(given.names) or not given.experiment


def _kept(path: str, given: Input) -> Records:
    """Kept rows, where a kept row that reads them is run again."""
    from studies.common.kept import Kept

    table = Kept(Path(path).parent).table(given.experiment)
    records = records_of(table, dict.fromkeys(table.rows["row"], "kept"))
    return {given.experiment: {record.row: record for record in records}}


def remember(path: str | Path) -> None:
    """Let a block stay under a second name, which is that of its content."""
    path = Path(path)
    name = read_json(digest_path(path))["sha256"][:16]
    for one, end in ((path, ".npz"), (digest_path(path), ".npz.digest")):
        with suppress(OSError):  # it is there, or the file system has no second names
            (path.parent / BEFORE).mkdir(exist_ok=True)
            os.link(one, path.parent / BEFORE / f"{name}{end}")


def put_part(folder: str | Path, name: str, records: Records) -> None:
    """Write the rows of a block that are there, which its job takes over."""
    write_block(Path(folder, BEFORE, f"{_PART}{name}.npz"), records)


def forget(folder: str | Path) -> None:
    """Delete those blocks of before that no job has as its output now, and parts of a block once it is whole."""
    for path in Path(folder, BEFORE).glob("*.npz"):
        part = path.name.startswith(_PART)
        whole = Path(folder, path.name.removeprefix(_PART)).exists()
        if whole if part else path.stat().st_nlink == 1:
            path.unlink()
            digest_path(path).unlink(missing_ok=True)


class Spares:
    """The rows of blocks of before, by what they were made from."""

    def __init__(self, folder: str | Path) -> None:
        self._places: dict[str, Path] = {}
        self._read: dict[Path, dict[str, Record]] = {}
        for path in sorted(Path(folder, BEFORE).glob("*.npz")):
            with suppress(DamagedFileError, OSError, KeyError, TypeError):
                made = read_json(digest_path(path))["about"]["made"]
                self._places |= dict.fromkeys(made, path)

    def get(self, made: str) -> Record | None:
        """The record of a row that was made from this, if there is one."""
        path = self._places.get(made)
        if path is None:
            return None
        if path not in self._read:
            try:
                every = list(read_block(path).values())
            except (DamagedFileError, OSError):  # it is a spare: the row is run
                every = []
            self._read[path] = {one.made: one for own in every for one in own.values()}
        return self._read[path].get(made)


def put(path: str | Path, records: Records, age: float) -> None:
    """Write a block where there is none; all are of one age, so that none seems older than what it was made from."""
    if not Path(path).exists():
        write_block(path, records)
        remember(path)
        os.utime(path, (age, age))
        os.utime(digest_path(path), (age, age))
