"""The registry of raw files, and the proof that a file is the registered one.

``data/registry.csv`` has one row a raw file. Its size and SHA-256 decide what the file is; a name, a folder or an
address never does. ``data/facts.yaml`` beside it says what is known about the files and the arrays made of them.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from recheck.judge.declared import read_yaml

COLUMNS = ("name", "file", "sha256", "bytes", "licence", "citation", "sources", "homepage")


@dataclass(frozen=True, slots=True)
class Entry:
    """One raw file, as registered."""

    name: str  # of the data set, which may have several files
    file: str  # bare name, the same in every folder
    sha256: str
    size: int  # in bytes
    licence: str
    citation: str
    sources: tuple[str, ...]  # addresses that serve exactly these bytes, in the order of trial
    homepage: str  # the official page, or file in another format; never downloaded
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        def need(valid: object, name: str, given: object, needed: str) -> None:
            if not valid:
                raise ValueError(f"registry entry {self.file!r}: {name}={given!r}, need {needed}")

        need(re.fullmatch(r"[a-z][a-z0-9_]*", self.name), "name", self.name, "a lower-case word")
        # A bare name: a registry must not be able to write outside the folder of raw files.
        need(re.fullmatch(r"[A-Za-z0-9][\w.-]*", self.file), "file", self.file, "a bare file name")
        digits = re.fullmatch(r"[0-9a-f]{64}", self.sha256)
        need(digits, "sha256", self.sha256, "64 lower-case hexadecimal digits")
        need(self.size > 0, "bytes", self.size, "a positive number of bytes")
        for name in ("licence", "citation", "homepage"):
            need(getattr(self, name), name, "", "a text")
        for source in self.sources:
            need(re.match(r"https?://\S+$", source), "sources", source, "http(s) addresses")


class DamagedFileError(ValueError):
    """A file under a registered name that is not the registered file: the entry, where it is, and what was found."""

    def __init__(self, entry: Entry, path: Path, found: str) -> None:
        super().__init__(entry, path, found)
        self.entry, self.path, self.found = entry, path, found

    def __str__(self) -> str:
        return (
            f"{self.path} is not the registered file {self.entry.file}: expected {describe(self.entry)}; "
            f"found {self.found}. It was neither used nor changed. Delete it, and the next run fetches it, or replace "
            "it by the registered file."
        )


class DataUnavailableError(RuntimeError):
    """A raw file that no source could give: the entry, where it belongs, and each attempt's source and reason."""

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
            f"To place {self.entry.file} by hand: save it as {self.target} ({describe(self.entry)}), or in a folder "
            "named in the configuration (data.mirrors) or in the environment variable GPCMC_DATA_MIRRORS, and run "
            f"again. Addresses of these bytes: {addresses}. Official page, perhaps in another format: "
            f"{self.entry.homepage}"
        )

    def __str__(self) -> str:
        lines = [f"{self.entry.file} (data set {self.entry.name}) is not available."]
        lines += [f"  tried {source}: {reason}" for source, reason in self.attempts]
        return "\n".join([*lines, self.instructions])


def read_registry(path: str | PathLike[str]) -> tuple[Entry, ...]:
    """Read and validate the registry of raw files, one entry a row, and ``facts.yaml`` beside it.

    Raises
    ------
    ValueError
        If a column or a value is missing or wrong, if two rows have the same file name, or if facts are about a data
        set that has no row.
    """
    beside = Path(path).with_name("facts.yaml")
    facts = read_yaml(beside)
    if not isinstance(facts, dict):
        raise ValueError(f"{beside}: given {facts!r}, need a mapping of data sets to their facts")
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream, strict=True)
        try:
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise ValueError(f"{path}: columns {reader.fieldnames}, need {list(COLUMNS)}")
            entries = tuple(_entry(row, facts, f"{path}, line {reader.line_num}") for row in reader)
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: no CSV file ({error})") from None
    files = [entry.file for entry in entries]
    if twice := sorted({file for file in files if files.count(file) > 1}):
        raise ValueError(f"{path}: file names {twice} occur twice, need one row a file")
    if unknown := sorted(facts.keys() - {entry.name for entry in entries}):
        raise ValueError(f"{beside}: facts of {unknown}, need data sets that {path} has")
    return entries


def _entry(row: dict[str, str], facts: Mapping[str, Any], where: str) -> Entry:
    if None in row or None in row.values():
        raise ValueError(f"{where}: given {row}, need one value for each of {list(COLUMNS)}")
    if not re.fullmatch(r"[0-9]+", row["bytes"]):
        raise ValueError(f"{where}: bytes={row['bytes']!r}, need a positive number of bytes")
    size, sources = int(row.pop("bytes")), tuple(row.pop("sources").split())
    return Entry(**row, size=size, sources=sources, facts=facts.get(row["name"], {}))


def files_of(dataset: str, registry: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the registered files of one data set, in the registry's order.

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
    """Read a raw file, whose size and SHA-256 must be the registered ones.

    Verifying and parsing the same bytes leaves no moment at which the file could change in between.

    Raises
    ------
    DamagedFileError
        If they differ; names the file, what was expected, what was found, and the remedy.
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
