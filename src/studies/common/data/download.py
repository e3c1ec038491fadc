"""Fetching raw files: a file that is there, then mirrors, then addresses.

pooch moves the bytes (redirects, proxies, certificates), but only its downloader is used. ``pooch.retrieve``
overwrites a wrong file that somebody placed by hand, knows neither a size limit nor a deadline, and takes one address;
so the order of the sources, the limits and the renaming are here.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import pooch
from urllib3.exceptions import HTTPError

from studies.common.data import registry
from studies.common.data.registry import DamagedFileError, DataUnavailableError, Entry

MIRRORS_VARIABLE = "GPCMC_DATA_MIRRORS"
#: How often an address is tried again after a failure that may pass, and the pause before that, which doubles; the
#: longest wait for a connection and for the next bytes; the longest time for one download.
LIMITS = {"retries": 2, "backoff_seconds": 1, "timeout_seconds": 15, "deadline_seconds": 300}

_Limits = dict[str, float]
_Attempts = list[tuple[str, str]]
_log = logging.getLogger(__name__)


def fetch(
    entry: Entry,
    destination_folder: str | PathLike[str],
    mirrors: Iterable[str | PathLike[str]] = (),
    *,
    root: str | PathLike[str],
    **limits: float,
) -> Path:
    """Put one registered file into a folder, from the first source that has it.

    A file that is already there is verified and kept. Otherwise the sources are tried in order: the folders in
    `mirrors`, those in the variable ``GPCMC_DATA_MIRRORS`` (relative ones start at `root`, absent ones are skipped),
    the addresses of the registry. A source that fails is logged as a warning. `limits` change those of `LIMITS`.

    Raises
    ------
    DamagedFileError
        If a wrong file has the final name already: it is neither used nor overwritten.
    DataUnavailableError
        If no source has the file; lists every source with its reason, and what to do by hand.
    ValueError
        If a limit is out of range.
    """
    for name, value in limits.items():
        zero = name in ("retries", "backoff_seconds")
        if name not in LIMITS or not (value > 0 or (zero and value == 0)):
            bound = "at least" if zero else "more than"
            raise ValueError(f"{name}={value!r}, need a limit of {list(LIMITS)}, {bound} 0")
    target = Path(destination_folder, entry.file)
    if os.path.lexists(target):
        registry.read_verified(entry, target)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, so that renaming is atomic; with the process's number for two runs at once.
    partial = target.with_name(f".{entry.file}.{os.getpid()}.part")
    variable = filter(None, os.environ.get(MIRRORS_VARIABLE, "").split(os.pathsep))
    folders = [Path(root) / _home(mirror) for mirror in (*mirrors, *variable)]
    attempts: _Attempts = []
    sources: list[Path | str] = [*folders, *entry.sources]
    try:
        for source in sources:
            if _from_source(entry, source, partial, LIMITS | limits, attempts):
                os.replace(partial, target)
                return target
    finally:
        partial.unlink(missing_ok=True)
    raise DataUnavailableError(entry, target, tuple(attempts))


def _from_source(
    entry: Entry, source: Path | str, partial: Path, limits: _Limits, attempts: _Attempts
) -> bool:
    """Write the file from a mirror, tried once, or from an address; say whether that succeeded."""
    for attempt in range(1 if isinstance(source, Path) else int(limits["retries"]) + 1):
        if attempt:
            time.sleep(limits["backoff_seconds"] * 2 ** (attempt - 1))
        try:
            if isinstance(source, Path):
                partial.write_bytes(registry.read_verified(entry, _place(source, entry.file)))
            else:
                _download(entry, source, partial, limits)
            return True
        except DataUnavailableError:
            folder = Path(source).is_dir()
            attempts.append(
                (str(source), "has no file of that name" if folder else "no such folder")
            )
        except (OSError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, DamagedFileError):
                reason = f"not the registered file: found {error.found}"
            attempts.append((str(source), reason))
            _log.warning("%s from %s failed: %s", entry.file, source, reason)
            if not _may_pass(error):
                break
    return False


def _home(mirror: str | PathLike[str]) -> Path:
    """A folder, with the home of a user in the place of ``~``; that of nobody stands for itself, and is not there."""
    try:
        return Path(mirror).expanduser()
    except RuntimeError:
        return Path(mirror)


def _place(mirror: Path, name: str) -> Path:
    """Where a mirror has a file: under its name or, as releases are unpacked, ``<folder>-<name>`` in ``<folder>``."""
    inside = (
        folder / name.removeprefix(f"{folder.name}-")
        for folder in mirror.glob("*")
        if name.startswith(f"{folder.name}-")
    )
    return next((path for path in (mirror / name, *inside) if path.is_file()), mirror / name)


def _download(entry: Entry, address: str, partial: Path, limits: _Limits) -> None:
    # The file as it is stored: a .gz must not arrive unpacked.
    stored = {"Accept-Encoding": "identity"}
    hooks = {"response": _as_it_arrives}
    download = pooch.HTTPDownloader(timeout=limits["timeout_seconds"], headers=stored, hooks=hooks)
    with open(partial, "wb") as stream:
        download(address, _Sink(stream, entry.size, limits["deadline_seconds"]), None)
    registry.read_verified(entry, partial)


def _as_it_arrives(response: Any, *given: Any, **options: Any) -> None:
    """Let a response give what has arrived, and not wait for whole chunks: a slow one must not outlive the deadline."""

    def chunks(chunk_size: int = 1, decode_unicode: bool = False) -> Iterator[bytes]:
        try:
            while part := response.raw.read1(chunk_size):
                yield part
        except HTTPError as error:
            raise ConnectionError(str(error)) from error
        finally:
            response.close()
        if response.raw.length_remaining:
            raise ConnectionError(f"{response.raw.length_remaining} bytes did not arrive")

    if response.ok:
        response.iter_content = chunks


def _may_pass(error: Exception) -> bool:
    """Whether the same address may succeed a moment later."""
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return False  # too many bytes, other bytes, or an answer that makes no sense
    response = getattr(error, "response", None)
    return response is None or response.status_code >= 500 or response.status_code in (408, 429)


class _Sink:
    """A stream that takes no more than the registered bytes, and none after the deadline."""

    def __init__(self, stream: BinaryIO, size: int, deadline_seconds: float) -> None:
        self.stream, self.size, self.deadline_seconds = stream, size, deadline_seconds
        self.end = time.monotonic() + deadline_seconds
        self.flush = stream.flush

    def write(self, chunk: bytes) -> None:
        if self.stream.tell() + len(chunk) > self.size:
            raise ValueError(f"sends more than the registered {self.size} bytes")
        if time.monotonic() > self.end:
            raise TimeoutError(f"not finished after {self.deadline_seconds:g} seconds")
        self.stream.write(chunk)
