"""The registry of raw files, and the proof that a file is the registered one.

``data/registry.csv`` has one row a raw file. Its size and SHA-256 decide what the file is; a
name, a folder or an address never does.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

COLUMNS = ("name", "file", "sha256", "bytes", "licence", "citation", "sources", "homepage")


@dataclass(frozen=True, slots=True)
class Entry:
    """One raw file, as registered.

    Attributes
    ----------
    name : str
        Data set that the file belongs to; a data set may have several files.
    file : str
        Bare file name, the same in every folder.
    sha256 : str
        SHA-256 of the file, 64 lower-case hexadecimal digits.
    size : int
        Size of the file in bytes (column ``bytes``).
    licence, citation : str
        Terms under which the file is published, and whom to cite.
    sources : tuple of str
        Addresses that serve exactly the registered bytes, in the order in which they are tried.
    homepage : str
        Official page, or the official file in another format. Never downloaded.
    """

    name: str
    file: str
    sha256: str
    size: int
    licence: str
    citation: str
    sources: tuple[str, ...]
    homepage: str

    def __post_init__(self) -> None:
        def need(valid: object, field: str, given: object, needed: str) -> None:
            if not valid:
                raise ValueError(f"registry entry {self.file!r}: {field}={given!r}, need {needed}")

        need(re.fullmatch(r"[a-z][a-z0-9_]*", self.name), "name", self.name, "a lower-case word")
        # A bare name: a registry must not be able to write outside the folder of raw files.
        need(re.fullmatch(r"[A-Za-z0-9][\w.-]*", self.file), "file", self.file, "a bare file name")
        need(
            re.fullmatch(r"[0-9a-f]{64}", self.sha256),
            "sha256",
            self.sha256,
            "64 lower-case hexadecimal digits",
        )
        need(self.size > 0, "bytes", self.size, "a positive number of bytes")
        for field in ("licence", "citation", "homepage"):
            need(getattr(self, field), field, "", "a text")
        for source in self.sources:
            need(re.match(r"https?://\S+$", source), "sources", source, "http(s) addresses")


class DamagedFileError(ValueError):
    """A file under a registered name that is not the registered file.

    Attributes
    ----------
    entry : Entry
        What the file should be.
    path : Path
        Where it is; it is left untouched.
    found : str
        What it is instead: its size and SHA-256.
    """

    def __init__(self, entry: Entry, path: Path, found: str) -> None:
        super().__init__(entry, path, found)
        self.entry, self.path, self.found = entry, path, found

    def __str__(self) -> str:
        return (
            f"{self.path} is not the registered file {self.entry.file}: "
            f"expected {describe(self.entry)}; found {self.found}. "
            "It was neither used nor changed. Delete it, and the next run fetches it, "
            "or replace it by the registered file."
        )


class DataUnavailableError(RuntimeError):
    """A raw file that no source could give.

    Attributes
    ----------
    entry : Entry
        The file that is wanted.
    target : Path
        Where it belongs.
    attempts : tuple of (str, str)
        Every source that was tried, in order, and why it failed; empty if none was to be tried.
    """

    def __init__(
        self, entry: Entry, target: Path, attempts: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(entry, target, attempts)
        self.entry, self.target, self.attempts = entry, target, attempts

    @property
    def instructions(self) -> str:
        """How to place the file by hand."""
        addresses = ", ".join(self.entry.sources) or "(no address is registered)"
        return (
            f"To place {self.entry.file} by hand: save it as {self.target} "
            f"({describe(self.entry)}), or in a folder named in the configuration (data.mirrors) "
            "or in the environment variable GPCMC_DATA_MIRRORS, and run again. "
            f"Addresses of these bytes: {addresses}. "
            f"Official page, perhaps in another format: {self.entry.homepage}"
        )

    def __str__(self) -> str:
        lines = [f"{self.entry.file} (data set {self.entry.name}) is not available."]
        lines += [f"  tried {source}: {reason}" for source, reason in self.attempts]
        return "\n".join([*lines, self.instructions])


def read_registry(path: str | PathLike[str]) -> tuple[Entry, ...]:
    """Read and validate the registry of raw files.

    Parameters
    ----------
    path : path-like
        CSV file with the columns ``name, file, sha256, bytes, licence, citation, sources,
        homepage``; several sources are separated by blanks.

    Returns
    -------
    tuple of Entry
        One entry a row, in the order of the file.

    Raises
    ------
    ValueError
        If a column or a value is missing or wrong, or if two rows have the same file name.
    """
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream, strict=True)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path}: columns {reader.fieldnames}, need {list(COLUMNS)}")
        entries = tuple(_entry(row, f"{path}, line {reader.line_num}") for row in reader)
    files = [entry.file for entry in entries]
    if twice := sorted({file for file in files if files.count(file) > 1}):
        raise ValueError(f"{path}: file names {twice} occur twice, need one row a file")
    return entries


def _entry(row: dict[str, str], where: str) -> Entry:
    if None in row or None in row.values():
        raise ValueError(f"{where}: given {row}, need one value for each of {list(COLUMNS)}")
    if not re.fullmatch(r"[0-9]+", row["bytes"]):
        raise ValueError(f"{where}: bytes={row['bytes']!r}, need a positive number of bytes")
    size, sources = int(row.pop("bytes")), tuple(row.pop("sources").split())
    return Entry(**row, size=size, sources=sources)


def files_of(dataset: str, registry: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the registered files of one data set.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    registry : sequence of Entry
        The registry, from `read_registry`.

    Returns
    -------
    tuple of Entry
        At least one entry, in the registry's order.

    Raises
    ------
    ValueError
        If the registry has no file of that data set.
    """
    if files := tuple(entry for entry in registry if entry.name == dataset):
        return files
    names = sorted({entry.name for entry in registry})
    raise ValueError(f"dataset={dataset!r}, need one that the registry has: {names}")


def describe(entry: Entry) -> str:
    """Say what identifies a file: its size and SHA-256."""
    return f"{entry.size} bytes, sha256 {entry.sha256}"


def read_verified(entry: Entry, path: str | PathLike[str]) -> bytes:
    """Read a raw file and verify what was read.

    Verifying and parsing the same bytes leaves no moment at which the file could change in between.

    Parameters
    ----------
    entry : Entry
        What the file should be.
    path : path-like
        Where it is.

    Returns
    -------
    bytes
        Content of the file, the registered bytes.

    Raises
    ------
    DamagedFileError
        If size or SHA-256 differ from the registered ones.
    DataUnavailableError
        If there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        if path.exists():
            raise DamagedFileError(entry, path, "something that is no file")
        raise DataUnavailableError(entry, path)
    with open(path, "rb") as stream:
        content = stream.read(entry.size + 1)  # however large a wrong file is, it is not read whole
    if len(content) > entry.size:
        raise DamagedFileError(entry, path, f"{path.stat().st_size} bytes")
    if (sha256 := hashlib.sha256(content).hexdigest()) != entry.sha256:
        raise DamagedFileError(entry, path, f"{len(content)} bytes, sha256 {sha256}")
    return content


def verify(entry: Entry, path: str | PathLike[str]) -> None:
    """Recompute size and SHA-256 of a file and compare them with the registered ones.

    Parameters
    ----------
    entry : Entry
        What the file should be.
    path : path-like
        Where it is.

    Raises
    ------
    DamagedFileError
        If they differ; names the file, what was expected, what was found, and the remedy.
    DataUnavailableError
        If there is no such file.
    """
    read_verified(entry, path)
