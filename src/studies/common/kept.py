"""Finished pieces of a long run, kept with the repository.

``data/reference/<study>/kept/pieces`` has an archive a job. `keep` stores the pieces of a run there. `resume` puts
them back where the jobs look for them, if this tree would make them from the same code and libraries; each job then
takes those that have its parameters, and computes the rest. `studies.common.verify` carries pieces over to changed
code.

An archive is read with suspicion. Whatever is damaged, has no digest or has a name that no piece has is refused by
name, and the rest is used.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from studies.common.pieces import (
    ASIDE,
    DamagedPieceError,
    Piece,
    decode,
    encode,
    key_of,
    outdated,
    refusal,
    text_of,
    unverified,
    write,
)

#: The same bytes on every day: the earliest date that a zip archive can hold.
_DATE = (1980, 1, 1, 0, 0, 0)
_RECORD = re.compile(r"(?P<key>[0-9a-f]{16})\.json")
_PIECE = re.compile(r"(?P<name>[A-Za-z0-9_=,.-]+)-(?P<key>[0-9a-f]{16})\.npz")
#: What a damaged entry raises, by its kind of compression.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of the pieces of one job.

    Attributes
    ----------
    job : str
        As in ``experiment4/problem1_ess``.
    pieces : int
        Pieces that fit this tree, and were kept or put back.
    outdated : tuple of str
        Modules and libraries that have changed since the others were made.
    refused : tuple of str
        Damaged pieces, a line each: job, piece, file, and what is wrong.
    """

    job: str
    pieces: int
    outdated: tuple[str, ...]
    refused: tuple[str, ...] = ()


@dataclass(slots=True)
class Archive:
    """The pieces of one job.

    Attributes
    ----------
    job : str
    records : dict
        Key to what pieces were made from.
    pieces : dict
        (piece, key) to the bytes of its file. Every key is one of `records`.
    refused : list of str
        What was not read, a line each.
    """

    job: str
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    pieces: dict[tuple[str, str], bytes] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


def keep(pieces: str | Path, store: str | Path) -> list[Stored]:
    """Store the finished pieces of a run, of complete and of interrupted jobs alike.

    Parameters
    ----------
    pieces : path
        Where the jobs keep their pieces.
    store : path
        Where the archives are; pieces that are there already and still fit this tree stay.

    Returns
    -------
    list of Stored
        One entry a job that has pieces in either place.
    """
    pieces, store = Path(pieces), Path(store)
    jobs = {archive.job: archive for archive in read_store(store)}
    for folder in sorted({path.parent for path in pieces.rglob("*.json")}):
        name = folder.relative_to(pieces).as_posix().removesuffix(ASIDE)
        _merge(jobs.setdefault(name, Archive(name)), _read_folder(folder, name))
    report = []
    for job, archive in sorted(jobs.items()):
        fitting, changed = _fitting(archive)
        path = store / f"{job}.zip"
        if fitting.pieces:
            write_archive(fitting, path)
        else:
            path.unlink(missing_ok=True)
        report.append(Stored(job, len(fitting.pieces), changed, tuple(archive.refused)))
    return report


def resume(store: str | Path, pieces: str | Path) -> list[Stored]:
    """Put stored pieces that fit this tree back where the jobs look for them.

    Parameters
    ----------
    store, pieces : path
        As for `keep`.

    Returns
    -------
    list of Stored
        One entry a stored job.

    Raises
    ------
    FileNotFoundError
        If nothing is stored.
    """
    archives = read_store(store)
    if not archives:
        raise FileNotFoundError(f"store must hold archives of pieces; there are none in {store}")
    report = []
    for archive in archives:
        fitting, changed = _fitting(archive)
        folder = Path(pieces) / archive.job
        for name, content in _files(fitting).items():
            if not (folder / name).exists():
                folder.mkdir(parents=True, exist_ok=True)
                write(folder / name, content)
        report.append(Stored(archive.job, len(fitting.pieces), changed, tuple(archive.refused)))
    return report


def summary(report: list[Stored], what: str) -> str:
    """Say in a few lines what became of pieces; `what` as in "kept"."""
    lines = [f"{sum(job.pieces for job in report)} pieces of {len(report)} jobs {what}"]
    for job in report:
        if job.outdated:
            lines.append(
                f"{job.job}: {job.pieces} {what}; others are outdated by {', '.join(job.outdated)}"
            )
        lines += job.refused
    return "\n".join(lines)


def read_store(store: str | Path) -> list[Archive]:
    """Read all archives of a store, in the order of the jobs' names."""
    paths = sorted(Path(store).rglob("*.zip"))
    return [read_archive(path, job_of(path, store)) for path in paths]


def job_of(path: Path, store: str | Path) -> str:
    """Return the job that an archive in a store belongs to."""
    return path.with_suffix("").relative_to(store).as_posix()


def read_archive(path: Path, job: str) -> Archive:
    """Read what is whole in an archive, and refuse the rest by name.

    Parameters
    ----------
    path : path
        A zip archive; a damaged one is no error.
    job : str
        The job that it belongs to.

    Returns
    -------
    Archive
        Records that fit their keys and pieces that fit their digests. Pieces of the first edition have no digest;
        they are read as they are, and only `studies.common.verify` takes them.
    """
    found = Archive(job)
    contents: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as stored:
            for entry in stored.infolist():
                name = entry.filename
                if not (_RECORD.fullmatch(name) or _PIECE.fullmatch(name)) or name in contents:
                    found.refused.append(f"{job}, {path}: entry {name!r} refused, no piece has it")
                    continue
                try:
                    contents[name] = stored.read(entry)
                except _DAMAGED as error:
                    found.refused.append(_unread(job, path, name, error))
    except _DAMAGED as error:
        found.refused.append(f"{job}, {path}: the archive refused, it cannot be read ({error})")
    _sort(found, contents, path)
    return found


def write_archive(archive: Archive, path: Path) -> None:
    """Write an archive whose bytes depend on its content alone."""
    files = _files(archive)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as stored:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            stored.writestr(entry, files[name], compress_type=zipfile.ZIP_LZMA)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, buffer.getvalue())


def carried(archive: Archive, record: Mapping[str, Any], pieces: Mapping[str, Piece]) -> Archive:
    """Return an archive of pieces by name under one record, with the digests of their content."""
    key = key_of(record)
    files = {(name, key): encode(archive.job, name, piece) for name, piece in pieces.items()}
    return Archive(archive.job, {key: dict(record)}, files)


def _unread(job: str, path: Path, entry: str, error: Exception) -> str:
    found = _PIECE.fullmatch(entry)
    why = f"it cannot be read ({type(error).__name__}: {error})"
    return refusal(job, found["name"] if found else f"record {entry}", path, why)


def _sort(found: Archive, contents: Mapping[str, bytes], path: Path) -> None:
    """Put files by name into records and pieces, or refuse them."""
    job = found.job
    for name, content in contents.items():
        if match := _RECORD.fullmatch(name):
            try:
                record = json.loads(content)
                if key_of(record) != match["key"]:
                    raise ValueError("it does not fit its key")
                found.records[match["key"]] = record
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                found.refused.append(refusal(job, f"record {name}", path, error))
    for name, content in contents.items():
        if match := _PIECE.fullmatch(name):
            piece, key = match["name"], match["key"]
            try:
                if key not in found.records:
                    raise DamagedPieceError("the record of its key is missing")
                if unverified(content)[1] is not None:
                    decode(job, piece, content)
                found.pieces[piece, key] = content
            except DamagedPieceError as error:
                found.refused.append(refusal(job, piece, path, error))


def _read_folder(folder: Path, job: str) -> Archive:
    found = Archive(job)
    paths = [*sorted(folder.glob("*.json")), *sorted(folder.glob("*.npz"))]
    _sort(found, {path.name: path.read_bytes() for path in paths}, folder)
    return found


def _merge(archive: Archive, other: Archive) -> None:
    """Add what an archive lacks."""
    archive.records = other.records | archive.records
    archive.pieces = other.pieces | archive.pieces
    archive.refused += other.refused


def _fitting(archive: Archive) -> tuple[Archive, tuple[str, ...]]:
    """What this tree would make from the same code and libraries, and what has changed for the rest."""
    fitting = Archive(archive.job)
    changed: set[str] = set()
    for key, record in archive.records.items():
        if names := outdated(record):
            changed |= set(names)
            continue
        own = {piece: content for piece, content in archive.pieces.items() if piece[1] == key}
        if own:
            fitting.records[key] = record
            fitting.pieces |= own
    return fitting, tuple(sorted(changed))


def _files(archive: Archive) -> dict[str, bytes]:
    records = {f"{key}.json": text_of(record).encode() for key, record in archive.records.items()}
    pieces = {f"{name}-{key}.npz": content for (name, key), content in archive.pieces.items()}
    return records | pieces
