"""Fetching raw files: a file that is there, then mirrors, then addresses.

pooch moves the bytes (redirects, proxies, certificates), but only its downloader is used.
``pooch.retrieve`` overwrites a wrong file that somebody placed by hand, knows neither a size limit
nor a deadline, and takes one address; so the order of the sources, the limits and the renaming are
here.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import pooch

from studies.common.data.registry import (
    DamagedFileError,
    DataUnavailableError,
    Entry,
    read_verified,
    verify,
)

MIRRORS_VARIABLE = "GPCMC_DATA_MIRRORS"

_log = logging.getLogger(__name__)


def fetch(
    entry: Entry,
    destination_folder: str | PathLike[str],
    mirrors: Iterable[str | PathLike[str]] = (),
    *,
    root: str | PathLike[str],
    retries: int = 2,
    timeout_seconds: float = 15.0,
    deadline_seconds: float = 300.0,
    backoff_seconds: float = 1.0,
) -> Path:
    """Put one registered file into a folder, from the first source that has it.

    A file that is already there is verified and kept. Otherwise the sources are tried in order: the folders in
    `mirrors`, those in the variable ``GPCMC_DATA_MIRRORS``, the addresses of the registry. A source that fails is
    logged as a warning.

    Parameters
    ----------
    entry : Entry
        The file that is wanted.
    destination_folder, root : path-like
        Folder of the raw files, made if absent; folder against which relative mirrors resolve, the repository's root.
    mirrors : iterable of path-like, optional
        Folders that may hold the file under its registered name; absent ones are skipped.
    retries, backoff_seconds : int, float, optional
        How often an address is tried again after a failure that may pass; the pause before the first retry doubles.
    timeout_seconds, deadline_seconds : float, optional
        Longest wait for a connection and for the next bytes; longest time for one download.

    Raises
    ------
    DamagedFileError
        If a wrong file has the final name already: it is neither used nor overwritten.
    DataUnavailableError
        If no source has the file; lists every source with its reason, and what to do by hand.
    ValueError
        If a limit is out of range.
    """
    _check_limits(retries, timeout_seconds, deadline_seconds, backoff_seconds)
    folder = Path(destination_folder)
    target = folder / entry.file
    if os.path.lexists(target):
        verify(entry, target)
        return target
    folder.mkdir(parents=True, exist_ok=True)
    # In the same folder, so that renaming is atomic; with the process's number for two runs at once.
    partial = folder / f".{entry.file}.{os.getpid()}.part"
    attempts: list[tuple[str, str]] = []
    limits = timeout_seconds, deadline_seconds
    pauses = [0.0, *(backoff_seconds * 2**k for k in range(retries))]
    try:
        found = _copy(entry, partial, _mirror_folders(mirrors, Path(root)), attempts)
        if found or _transfer(entry, partial, limits, pauses, attempts):
            os.replace(partial, target)
            return target
    finally:
        partial.unlink(missing_ok=True)
    raise DataUnavailableError(entry, target, tuple(attempts))


def _check_limits(
    retries: int, timeout_seconds: float, deadline_seconds: float, backoff_seconds: float
) -> None:
    if retries < 0:
        raise ValueError(f"retries={retries!r}, need a number of retries, at least 0")
    for name, value in (
        ("timeout_seconds", timeout_seconds),
        ("deadline_seconds", deadline_seconds),
    ):
        if not value > 0:
            raise ValueError(f"{name}={value!r}, need a positive number of seconds")
    if not backoff_seconds >= 0:
        raise ValueError(f"backoff_seconds={backoff_seconds!r}, need at least 0 seconds")


def _copy(
    entry: Entry, partial: Path, mirrors: list[Path], attempts: list[tuple[str, str]]
) -> bool:
    """Write the file from the first mirror that has it; say whether one had."""
    for mirror in mirrors:
        if not mirror.is_dir():
            attempts.append((str(mirror), "no such folder"))
            continue
        try:
            partial.write_bytes(read_verified(entry, _place(mirror, entry.file)))
        except DataUnavailableError:
            attempts.append((str(mirror), "has no file of that name"))
        except (DamagedFileError, OSError) as error:
            _report(attempts, entry, str(mirror), error)
        else:
            return True
    return False


def _place(mirror: Path, name: str) -> Path:
    """Where a mirror has a file: under its name or, as releases are unpacked, ``<folder>-<name>`` in ``<folder>``."""
    inside = (
        folder / name.removeprefix(f"{folder.name}-")
        for folder in mirror.iterdir()
        if name.startswith(f"{folder.name}-")
    )
    return next((path for path in (mirror / name, *inside) if path.is_file()), mirror / name)


def _transfer(
    entry: Entry,
    partial: Path,
    limits: tuple[float, float],
    pauses: list[float],
    attempts: list[tuple[str, str]],
) -> bool:
    """Write the file from the first address that sends it; say whether one did."""
    for address in entry.sources:
        for pause in pauses:
            if pause:
                time.sleep(pause)
            try:
                with open(partial, "wb") as stream:
                    _download(entry, address, stream, *limits)
                verify(entry, partial)
            except (OSError, ValueError) as error:
                _report(attempts, entry, address, error)
                if not _may_pass(error):
                    break
            else:
                return True
    return False


def _mirror_folders(mirrors: Iterable[str | PathLike[str]], root: Path) -> list[Path]:
    variable = os.environ.get(MIRRORS_VARIABLE, "").split(os.pathsep)
    return [root / Path(mirror).expanduser() for mirror in (*mirrors, *filter(None, variable))]


def _report(attempts: list[tuple[str, str]], entry: Entry, source: str, error: Exception) -> None:
    if isinstance(error, DamagedFileError):
        reason = f"not the registered file: found {error.found}"
    else:
        reason = f"{type(error).__name__}: {error}"
    attempts.append((source, reason))
    _log.warning("%s from %s failed: %s", entry.file, source, reason)


class _OversizeError(ValueError):
    """An address sends more than the registered bytes."""


class _Sink:
    """A stream that takes no more than the registered bytes, and none after the deadline."""

    def __init__(self, stream: BinaryIO, limit: int, deadline_seconds: float) -> None:
        self.stream, self.room = stream, limit
        self.deadline_seconds, self.end = deadline_seconds, time.monotonic() + deadline_seconds
        self.limit = limit

    def write(self, chunk: bytes) -> None:
        self.room -= len(chunk)
        if self.room < 0:
            raise _OversizeError(f"sends more than the registered {self.limit} bytes")
        if time.monotonic() > self.end:
            raise TimeoutError(f"not finished after {self.deadline_seconds:g} seconds")
        self.stream.write(chunk)

    def flush(self) -> None:
        self.stream.flush()


def _download(
    entry: Entry, address: str, stream: BinaryIO, timeout_seconds: float, deadline_seconds: float
) -> None:
    download = pooch.HTTPDownloader(
        timeout=timeout_seconds,
        # The file as it is stored: a .gz must not arrive unpacked.
        headers={"Accept-Encoding": "identity"},
    )
    download(address, _Sink(stream, entry.size, deadline_seconds), None)


def _may_pass(error: Exception) -> bool:
    """Whether the same address may succeed a moment later."""
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return False  # too many bytes, other bytes, or an answer that makes no sense
    response = getattr(error, "response", None)
    return response is None or response.status_code >= 500 or response.status_code in (408, 429)
