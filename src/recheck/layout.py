"""``layout.yaml`` of a study: units, labels, and what its tables and figures show.

A table is an entry of this file and no code. Unknown keys are refused by name.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recheck.format import Format
from recheck.measures import pattern

__all__ = ["LINES", "Block", "Entry", "Layout", "check_layout", "read_layout"]

#: Lines of a row group, and what they are called in the table.
LINES = {"published": "published", "kept": "ours", "run": "this run", "verdict": "verdict"}

_TOP = {"units", "labels", "order", "tables", "figures"}
_ENTRY = {"title", "caption", "reads", "blocks"}
_BLOCK = {"cell", "rows", "columns", "show", "where", "reading", "readings", "head", "format"}


@dataclass(frozen=True, slots=True)
class Block:
    """One tabular of a table; the attributes are the keys of the file.

    Attributes
    ----------
    cell : str
        Template of ids, with fields in braces.
    rows, columns : tuple of str
        Fields that index rows and columns.
    show : tuple of str
        Lines of a row group, of `LINES`.
    where : mapping of str to tuple of str
        Values of a field that are shown; other ids are left out.
    readings : mapping of str to str
        Readings by label, for the field ``reading``; without that field one reading with the empty label.
    head : str
        LaTeX of the top left corner.
    format : Format
    formats : mapping of str to Format
        By value of the last column field.
    """

    cell: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    show: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    readings: Mapping[str, str]
    head: str
    format: Format
    formats: Mapping[str, Format]

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of the template."""
        return tuple(pattern(self.cell).groupindex)


@dataclass(frozen=True, slots=True)
class Entry:
    """A table or, without blocks, a figure: title, caption (LaTeX) and the parts of the measures that it reads."""

    title: str
    caption: str
    reads: tuple[str, ...]
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole file: units by glob of ids, labels and order by field, tables and figures by name."""

    units: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tables: Mapping[str, Entry] = field(default_factory=dict)
    figures: Mapping[str, Entry] = field(default_factory=dict)

    def unit(self, id: str) -> str:
        """Unit of an id: that of the first glob that fits."""
        return next((u for glob, u in self.units.items() if fnmatch.fnmatchcase(id, glob)), "")


def read_layout(path: str | Path, *more: str | Path) -> Layout:
    """Read and check a ``layout.yaml``; see `check_layout`. Further files add entries to it.

    Raises
    ------
    ValueError
        Two files differ in an entry; also as `check_layout`.
    """
    import yaml

    content: Any = {}
    for one in (path, *more):
        with Path(one).open(encoding="utf-8") as stream:
            content = _merged(content, yaml.safe_load(stream), str(one))
    return check_layout(content, str(path))


def _merged(first: Any, second: Any, where: str) -> Any:
    """Both of two mappings, one inside another; elsewhere they have to be equal."""
    if isinstance(first, dict) and isinstance(second, dict):
        both = {
            name: _merged(first[name], second[name], f"{where}: {name}")
            for name in first.keys() & second.keys()
        }
        return {**first, **second, **both}
    if first != second:
        raise ValueError(f"{where}: {second!r} is {first!r} in another file")
    return first


def check_layout(content: Any, where: str = "layout") -> Layout:
    """Check the content of a layout file.

    Parameters
    ----------
    content : mapping
        As YAML gives it.
    where : str
        What messages begin with.

    Raises
    ------
    ValueError
        A key is unknown or missing, or an entry is not allowed; the message names it.
    """
    top = _mapping(content, where, _TOP)
    return Layout(
        units=_texts(top.get("units"), f"{where}: units"),
        labels={
            str(name): _texts(values, f"{where}: labels: {name}")
            for name, values in _mapping(top.get("labels"), f"{where}: labels").items()
        },
        order={
            str(name): _names(values, f"{where}: order: {name}")
            for name, values in _mapping(top.get("order"), f"{where}: order").items()
        },
        tables={
            str(name): _entry(entry, f"{where}: tables: {name}", blocks=True)
            for name, entry in _mapping(top.get("tables"), f"{where}: tables").items()
        },
        figures={
            str(name): _entry(entry, f"{where}: figures: {name}", blocks=False)
            for name, entry in _mapping(top.get("figures"), f"{where}: figures").items()
        },
    )


def _mapping(
    value: Any, where: str, known: Iterable[str] = (), needed: Iterable[str] = ()
) -> Mapping[Any, Any]:
    value = {} if value is None else value
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: needed is a mapping, given was {value!r}")
    if known and (strange := sorted(map(str, set(value) - set(known)))):
        raise ValueError(f"{where}: {strange} are unknown; known are {sorted(known)}")
    if absent := sorted(set(needed) - set(value)):
        raise ValueError(f"{where}: {absent} are missing")
    return value


def _texts(value: Any, where: str) -> dict[str, str]:
    return {str(name): str(text) for name, text in _mapping(value, where).items()}


def _names(value: Any, where: str) -> tuple[str, ...]:
    """A list of names; a single name is a list of one."""
    value = [] if value is None else [value] if isinstance(value, str | int) else value
    if not isinstance(value, list) or any(isinstance(one, list | dict) for one in value):
        raise ValueError(f"{where}: needed is a list of names, given was {value!r}")
    return tuple(map(str, value))


def _entry(value: Any, where: str, *, blocks: bool) -> Entry:
    known = _ENTRY if blocks else _ENTRY - {"blocks"}
    entry = _mapping(value, where, known, known - {"caption"})
    found = entry.get("blocks", [])
    if blocks and not (isinstance(found, list) and found):
        raise ValueError(f"{where}: blocks: needed is a list of blocks, given was {found!r}")
    return Entry(
        str(entry["title"]),
        str(entry.get("caption", "")).strip(),
        _names(entry["reads"], f"{where}: reads"),
        tuple(_block(one, f"{where}: block {n}") for n, one in enumerate(found, 1)),
    )


def _block(value: Any, where: str) -> Block:
    given = _mapping(value, where, {*_BLOCK, "formats"}, {"cell", "rows", "columns"})
    if "reading" in given and "readings" in given:
        raise ValueError(f"{where}: needed is reading or readings, given were both")
    form = Format().but(_mapping(given.get("format"), f"{where}: format"), f"{where}: format")
    block = Block(
        cell=str(given["cell"]),
        rows=_names(given["rows"], f"{where}: rows"),
        columns=_names(given["columns"], f"{where}: columns"),
        show=_names(given.get("show", ["run"]), f"{where}: show"),
        where={
            str(name): _names(values, f"{where}: where: {name}")
            for name, values in _mapping(given.get("where"), f"{where}: where").items()
        },
        readings=_texts(given.get("readings"), f"{where}: readings")
        or {"": str(given.get("reading", ""))},
        head=str(given.get("head", "")),
        format=form,
        formats={
            str(name): form.but(_mapping(options, where), f"{where}: formats: {name}")
            for name, options in _mapping(given.get("formats"), f"{where}: formats").items()
        },
    )
    _check_fields(block, "readings" in given, where)
    return block


def _check_fields(block: Block, several: bool, where: str) -> None:
    """Every field indexes a row or a column, or has one value."""
    used = [*block.rows, *block.columns]
    known = [*block.fields, *(["reading"] if several else [])]
    fixed = [name for name, values in block.where.items() if len(values) == 1]
    problems = {
        f"show: needed are lines of {list(LINES)}": set(block.show) - set(LINES),
        f"rows and columns: needed are fields of {known}": set(used) - set(known),
        f"where: needed are fields of {known}": set(block.where) - set(known),
        "needed in rows or columns, or with one value in where": set(known) - {*used, *fixed},
        "needed once in rows and columns": {name for name in used if used.count(name) > 1},
    }
    for what, names in problems.items():
        if names:
            raise ValueError(f"{where}: {what}; given was {sorted(names)}")
    if not block.show:
        raise ValueError(f"{where}: show: needed is one line or more")
