"""The published side of a study: its cells, claims, readings and the protocol of the comparison.

A folder ``data/published/<study>`` holds four files. ``cells.csv`` has one row a printed number, ``claims.yaml`` one
entry a statement, ``readings.yaml`` what the paper leaves unsaid, and ``protocol.yaml`` margins, error rates, families,
contrasts and the history of all of these. Only ``cells.csv`` is needed.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from recheck.measures import pattern, with_fields
from recheck.printed import half_unit, number

__all__ = [
    "CELLS",
    "STANDARD_ERROR",
    "Choice",
    "Claim",
    "Contrast",
    "Protocol",
    "Published",
    "read_cells",
    "read_published",
]

#: Columns of ``cells.csv``.
CELLS = [
    *["id", "table", "column", "printed", "bracket", "bracket_kind", "scale", "units", "runs"],
    "section",
]
#: The kind of a bracket that is a standard error over the published units.
STANDARD_ERROR = "standard error"


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the prose as a region for a quantity.

    Attributes
    ----------
    id, section, statement : str
        The quantity is the measure ``claim/<id>``.
    low, high : float
        The region, infinite where it is open; both NaN if the statement is shown and not judged.
    unit : str
    """

    id: str
    section: str
    statement: str
    low: float
    high: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that the paper does not say.

    Attributes
    ----------
    name, statement : str
    levels : mapping of str to str
        What it may have been, with a description of each.
    kind : str
        ``runs``: each level was run. ``design``: each level replays the same runs otherwise.
    applies : tuple of str
        Globs of ids of cells and claims.
    default : str
        The level that tables show, or empty.
    """

    name: str
    statement: str
    levels: Mapping[str, str]
    kind: str
    applies: tuple[str, ...]
    default: str = ""

    def applies_to(self, ids: Iterable[str]) -> bool:
        """Whether one of these ids is under the choice."""
        return any(fnmatch.fnmatchcase(name, glob) for name in ids for glob in self.applies)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A difference of two cells on the same units.

    Attributes
    ----------
    id, first, second : str
        Templates of ids with the same fields; the contrast is ``first`` minus ``second``.
    scale : str
        ``linear`` (difference of the values) or ``log`` (of their logarithms).
    margin : float
        Difference, or factor if the scale is ``log``, within which a contrast agrees.
    unit : str
        What a difference is in; for display.
    """

    id: str
    first: str
    second: str
    scale: str
    margin: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Rules of the comparison.

    Attributes
    ----------
    agree, informative : float
        Factor within which a ratio has to be proved for "agrees", and that has to be detectable for "informative".
    family_error, power, interval : float
        Error rate of a family, probability for which detectable factors are given, coverage of intervals.
    families : mapping of str to tuple of str
        Kinds of rows (cell, contrast, column, claim) by the name of their family.
    contrasts : tuple of Contrast
    history : tuple of mapping
        Changes: ``date``, ``change``, ``after_results``, ``why``.
    """

    agree: float = 2.0
    informative: float = 2.0
    family_error: float = 0.05
    power: float = 0.8
    interval: float = 0.9
    families: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"numbers": ("cell", "contrast", "column"), "claims": ("claim",)}
    )
    contrasts: tuple[Contrast, ...] = ()
    history: tuple[Mapping[str, Any], ...] = ()

    def family(self, kind: str) -> str:
        """Name of the family of a kind of rows."""
        return next(name for name, kinds in self.families.items() if kind in kinds)


@dataclass(frozen=True, slots=True)
class Published:
    """All that a paper printed and said, and the rules under which it is compared.

    Attributes
    ----------
    cells : DataFrame
        `CELLS` with ``value``, ``bracket_value`` and ``rounding`` (half a unit in the last place), indexed by id.
    claims : tuple of Claim
    readings : mapping of str to Choice
    protocol : Protocol
    """

    cells: pd.DataFrame
    claims: tuple[Claim, ...] = ()
    readings: Mapping[str, Choice] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)

    def pairs(self) -> list[tuple[str, str, str, Contrast]]:
        """Contrasts of the protocol with their cells: id, first cell, second cell, rule."""
        found, ids = [], set(self.cells.index)
        frame = pd.DataFrame({"id": list(self.cells.index)})
        for rule in self.protocol.contrasts:
            for row in with_fields(frame, rule.first).to_dict("records"):
                fields = {name: row[name] for name in pattern(rule.first).groupindex}
                second = rule.second.format(**fields)
                if second in ids and second != row["id"]:
                    found.append((rule.id.format(**fields), row["id"], second, rule))
        return found

    def combinations(self, ids: Sequence[str], kind: str) -> list[dict[str, str]]:
        """All combinations of levels of the choices of one kind that apply to these cells; one empty of none."""
        choices = [c for c in self.readings.values() if c.kind == kind and c.applies_to(ids)]
        names = [choice.name for choice in choices]
        product = itertools.product(*[list(choice.levels) for choice in choices])
        return [dict(zip(names, levels, strict=True)) for levels in product]


def read_cells(path: str | Path) -> pd.DataFrame:
    """Read and check ``cells.csv``.

    Returns
    -------
    DataFrame
        See `Published.cells`.

    Raises
    ------
    ValueError
        A column is absent, an id comes twice, or an entry is not allowed; the message names the id.
    """
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    if missing := [name for name in CELLS if name not in frame.columns]:
        raise ValueError(f"{path}: columns {missing} are missing; needed are {CELLS}")
    if twice := sorted(frame["id"][frame["id"].duplicated()]):
        raise ValueError(f"{path}: cells {twice} occur more than once")
    for row in frame.to_dict("records"):
        _check_cell(row, f"{path}: cell {row['id']}")
    brackets = frame["bracket"].str.strip("()[] ")
    return frame.assign(
        units=frame["units"].astype(int),
        runs=frame["runs"].astype(int),
        value=frame["printed"].map(number),
        rounding=frame["printed"].map(half_unit),
        bracket_value=[number(text) if text else math.nan for text in brackets],
    ).set_index("id", drop=False)


def _check_cell(row: Mapping[str, str], where: str) -> None:
    allowed = {
        "bracket_kind": (STANDARD_ERROR, "value/sqrt(n)", ""),
        "scale": ("log", "linear"),
    }
    for name, values in allowed.items():
        if row[name] not in values:
            raise ValueError(
                f"{where}: {name}: needed is one of {list(values)}, given was {row[name]!r}"
            )
    for name in ("units", "runs"):
        if not re.fullmatch("[1-9][0-9]*", row[name]):
            raise ValueError(
                f"{where}: {name}: needed is a positive integer, given was {row[name]!r}"
            )
    if row["scale"] == "log" and not number(row["printed"]) > 0:
        raise ValueError(
            f"{where}: printed: needed is a positive number, given was {row['printed']!r}"
        )
    if row["bracket_kind"] == STANDARD_ERROR and not row["bracket"]:
        raise ValueError(f"{where}: bracket: needed is a standard error, given was nothing")


def read_published(folder: str | Path) -> Published:
    """Read and check a folder of published values.

    Parameters
    ----------
    folder : path
        With ``cells.csv``, and ``claims.yaml``, ``readings.yaml``, ``protocol.yaml`` where there are any.

    Raises
    ------
    ValueError
        A file has unknown or missing keys, or an entry that is not allowed; the message names file and entry.
    """
    folder = Path(folder)
    claims = _yaml(folder / "claims.yaml", list)
    readings = _yaml(folder / "readings.yaml", dict)
    protocol = _yaml(folder / "protocol.yaml", dict)
    found = [
        _claim(row, f"{folder / 'claims.yaml'}: entry {n + 1}") for n, row in enumerate(claims)
    ]
    counts = Counter(claim.id for claim in found)
    if twice := sorted(name for name, count in counts.items() if count > 1):
        raise ValueError(f"{folder / 'claims.yaml'}: claims {twice} occur more than once")
    return Published(
        cells=read_cells(folder / "cells.csv"),
        claims=tuple(found),
        readings={
            name: _choice(name, row, f"{folder / 'readings.yaml'}: {name}")
            for name, row in readings.items()
        },
        protocol=_protocol(protocol, str(folder / "protocol.yaml")),
    )


def _yaml(path: Path, kind: type) -> Any:
    """Content of a YAML file, of one kind; empty without the file."""
    if not path.exists():
        return kind()
    with path.open(encoding="utf-8") as stream:
        content = yaml.safe_load(stream)
    if not isinstance(content, kind):
        raise ValueError(
            f"{path}: needed is a {kind.__name__}, given was a {type(content).__name__}"
        )
    return content


def _keys(row: Any, needed: set[str], optional: set[str], where: str) -> None:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: needed is a mapping with {sorted(needed)}, given was {row!r}")
    if missing := sorted(needed - row.keys()):
        raise ValueError(f"{where}: {missing} are missing")
    if strange := sorted(row.keys() - needed - optional):
        raise ValueError(f"{where}: {strange} are unknown; known are {sorted(needed | optional)}")


def _claim(row: Any, where: str) -> Claim:
    _keys(row, {"id", "section", "statement"}, {"above", "below", "between", "unit"}, where)
    where = f"{where} ({row['id']})"
    regions = [name for name in ("above", "below", "between") if name in row]
    if len(regions) > 1:
        raise ValueError(f"{where}: one region is needed at most, given were {regions}")
    low, high = (-math.inf, math.inf) if regions else (math.nan, math.nan)
    try:
        if "between" in row:
            low, high = (float(end) for end in row["between"])
        low = float(row.get("above", low))
        high = float(row.get("below", high))
    except (TypeError, ValueError):
        low = high = math.inf
    if regions and (not low < high or (math.isinf(low) and math.isinf(high))):
        needed = "[low, high] with low < high" if "between" in row else "a finite number"
        raise ValueError(
            f"{where}: {regions[0]}: needed is {needed}, given was {row[regions[0]]!r}"
        )
    names = [str(row[name]) for name in ("id", "section", "statement")]
    return Claim(names[0], names[1], names[2], low, high, str(row.get("unit", "")))


def _choice(name: str, row: Any, where: str) -> Choice:
    _keys(row, {"statement", "levels", "kind", "applies"}, {"default"}, where)
    if row["kind"] not in ("runs", "design"):
        raise ValueError(f"{where}: kind: needed is runs or design, given was {row['kind']!r}")
    levels = row["levels"]
    if not isinstance(levels, dict) or len(levels) < 2:
        raise ValueError(f"{where}: levels: needed are two levels or more, given was {levels!r}")
    default = str(row.get("default", ""))
    if default and default not in levels:
        raise ValueError(
            f"{where}: default: needed is one of {list(levels)}, given was {default!r}"
        )
    described = {str(level): str(text) for level, text in levels.items()}
    return Choice(
        name, str(row["statement"]), described, row["kind"], tuple(row["applies"]), default
    )


def _protocol(row: dict[str, Any], where: str) -> Protocol:
    rates = {"family_error", "power", "interval"}
    _keys(row, set(), rates | {"margins", "families", "contrasts", "history"}, where)
    margins, families = row.get("margins", {}), row.get("families", {})
    _keys(margins, set(), {"agree", "informative"}, f"{where}: margins")
    given = {name: row[name] for name in rates & row.keys()}
    for name, value in {**margins, **given}.items():
        needed, low, high = ("a factor", 1, 1e9) if name in margins else ("a number", 0, 1)
        if not (isinstance(value, int | float) and low < value < high):
            raise ValueError(
                f"{where}: {name}: needed is {needed} above {low}, below {high:g}, given was {value!r}"
            )
    kinds = [kind for some in families.values() for kind in some]
    if families and sorted(kinds) != ["cell", "claim", "column", "contrast"]:
        raise ValueError(
            f"{where}: families: needed are cell, contrast, column and claim, each once; given were {kinds}"
        )
    if families:
        given["families"] = {name: tuple(some) for name, some in families.items()}
    history = row.get("history", [])
    for one in history:
        _keys(one, {"date", "change", "after_results", "why"}, set(), f"{where}: history")
    return Protocol(
        **margins,
        **given,
        contrasts=tuple(_contrast(one, where) for one in row.get("contrasts", [])),
        history=tuple({**one, "date": str(one["date"])} for one in history),
    )


def _contrast(row: Any, where: str) -> Contrast:
    _keys(row, {"id", "first", "second", "scale", "margin"}, {"unit"}, f"{where}: contrasts")
    where, fields = f"{where}: contrast {row['id']}", set(pattern(row["first"]).groupindex)
    for name in ("id", "second"):
        if not set(pattern(row[name]).groupindex) <= fields:
            raise ValueError(f"{where}: {name}: needed are fields of {row['first']!r} alone")
    least = 1 if row["scale"] == "log" else 0
    if row["scale"] not in ("log", "linear") or not row["margin"] > least:
        raise ValueError(
            f"{where}: needed are scale log or linear and a margin above {least}, given were "
            f"{row['scale']!r} and {row['margin']!r}"
        )
    return Contrast(**row)
