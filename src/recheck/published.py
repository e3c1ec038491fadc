"""The published side of a study: its cells, claims, readings and the protocol of the comparison.

A folder ``data/published/<study>`` holds four files. ``cells.csv`` has one row a printed number, ``claims.yaml`` one
entry a statement, ``readings.yaml`` what the paper leaves unsaid or misprints, and ``protocol.yaml`` margins, error
rates, families, contrasts and the history of all of these. Only ``cells.csv`` is needed. It may have a column
``rounded``, the rule that a number was rounded by (`recheck.rounding.RULES`); empty is to the nearest, ties included.
"""

import fnmatch
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pandas as pd
import yaml
from pydantic import Field, FiniteFloat, model_validator

from recheck.format import Declared, checked, decimal
from recheck.measures import pattern, with_fields
from recheck.rounding import RULES, region

#: Columns of ``cells.csv``.
CELLS = [
    *["id", "table", "column", "printed", "bracket", "bracket_kind", "scale", "units", "runs"],
    "section",
]
#: The kind of a bracket that is a standard error over the published units.
STANDARD_ERROR = "standard error"
#: Why a standard error needs several units, and what to do.
ALONE = (
    "a bracket needs units of 2 or more, for it is a standard error over them; "
    "say how many data sets are behind it, or leave the bracket out"
)
_BRACKETS = [STANDARD_ERROR, "value/sqrt(n)", ""]


class Claim(Declared):
    """A statement of the prose as a region for a quantity, which is the measure ``claim/<id>``.

    A claim without a region is shown and not judged.
    """

    id: str
    section: str
    statement: str
    unit: str = ""
    above: FiniteFloat | None = None
    below: FiniteFloat | None = None
    between: tuple[float, float] | None = None

    @property
    def region(self) -> tuple[float, float]:
        """Both ends of the region: infinite where it is open, NaN without a region."""
        if self.above is not None:
            return self.above, math.inf
        if self.below is not None:
            return -math.inf, self.below
        return self.between or (math.nan, math.nan)

    @property
    def text(self) -> str:
        """The region in words."""
        if self.between:
            return f"{self.between[0]:g} to {self.between[1]:g}"
        ends = {"above": self.above, "below": self.below}
        return "".join(f"{word} {end:g}" for word, end in ends.items() if end is not None)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(one is not None for one in (self.above, self.below, self.between)) > 1:
            raise ValueError("one region is needed at most")
        if self.between and not self.between[0] < self.between[1]:
            raise ValueError("between: needed is [low, high] with low < high")
        return self


class Choice(Declared):
    """Something that the paper does not say or misprints, with a description of each level that it may have been.

    ``kind`` is ``runs`` (each level was run) or ``design`` (each level replays the same runs otherwise). ``applies``
    has globs of ids of cells and claims. ``default`` is the level that tables show.
    """

    name: str = ""
    statement: str
    levels: dict[str, str] = Field(min_length=2)
    kind: Literal["runs", "design"]
    applies: tuple[str, ...]
    default: str = ""

    @model_validator(mode="after")
    def _default(self) -> Self:
        if self.default and self.default not in self.levels:
            raise ValueError(f"default: needed is one of {list(self.levels)}")
        return self


class Contrast(Declared):
    """A difference of two cells on the same units, ``first`` minus ``second``, or of their logarithms.

    ``id``, ``first`` and ``second`` are templates of ids with the same fields. Within ``margin``, a difference or a
    factor, a contrast agrees.
    """

    id: str
    first: str
    second: str
    scale: Literal["log", "linear"]
    margin: float

    @model_validator(mode="after")
    def _fields(self) -> Self:
        fields = pattern(self.first).groupindex.keys()
        for name in (self.id, self.second):
            if not pattern(name).groupindex.keys() <= fields:
                raise ValueError(f"{name}: needed are fields of {self.first!r} alone")
        least = 1 if self.scale == "log" else 0
        if not self.margin > least:
            raise ValueError(f"margin: needed is a number above {least} on the scale {self.scale}")
        return self


_Share = Annotated[float, Field(gt=0, lt=1)]
_Factor = Annotated[float, Field(gt=1, lt=1e9)]
_Kind = Literal["cell", "contrast", "column", "claim"]
_Change = dict[Literal["date", "change", "after_results", "why"], Any]


class Margins(Declared):
    """Factors within which a ratio has to be proved for "agrees", and that an "informative" cell would show.

    Of cells on the scale ``linear`` both are the `difference` if there is one, in the unit of the cells.
    """

    agree: _Factor = 2.0
    informative: _Factor = 2.0
    difference: Annotated[float, Field(gt=0)] | None = None


class Protocol(Declared):
    """Rules of the comparison: margins, error rate of a family, power of detectable factors, coverage of intervals.

    ``families`` has kinds of rows by the name of their family, ``history`` the changes.
    """

    margins: Margins = Margins()
    family_error: _Share = 0.05
    power: _Share = 0.8
    interval: _Share = 0.9
    families: Mapping[str, tuple[_Kind, ...]] = {
        "numbers": ("cell", "contrast", "column"),
        "claims": ("claim",),
    }
    contrasts: tuple[Contrast, ...] = ()
    history: tuple[Annotated[_Change, Field(min_length=4)], ...] = ()

    @model_validator(mode="after")
    def _kinds(self) -> Self:
        kinds = sorted(kind for some in self.families.values() for kind in some)
        if kinds != ["cell", "claim", "column", "contrast"]:
            raise ValueError("families: needed are cell, contrast, column and claim, each once")
        return self


@dataclass(frozen=True, slots=True)
class Published:
    """All that a paper printed and said, and the rules under which it is compared.

    `cells` has the columns `CELLS` with ``value``, ``bracket_value`` and ``rounding`` (half a unit in the last place),
    and ``low`` and ``high``, the ends of what rounds to the value; it is indexed by id. Where a rule of rounding is
    given, the value is the middle between these ends, and the rounding half their distance.
    """

    cells: pd.DataFrame
    claims: tuple[Claim, ...] = ()
    readings: Mapping[str, Choice] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)

    @property
    def regions(self) -> dict[str, tuple[float, float]]:
        """Regions of claims by the id of their measure; NaN of a claim without one."""
        return {f"claim/{claim.id}": claim.region for claim in self.claims}

    def pairs(self) -> list[tuple[str, str, str, Contrast]]:
        """Contrasts of the protocol with their cells: id, first cell, second cell, rule."""
        found, frame = [], pd.DataFrame({"id": list(self.cells.index)})
        for rule in self.protocol.contrasts:
            for row in with_fields(frame, rule.first).to_dict("records"):
                first = row.pop("id")
                second = rule.second.format(**row)
                if second in self.cells.index and second != first:
                    found.append((rule.id.format(**row), first, second, rule))
        return found

    def combinations(self, ids: Sequence[str], *kinds: str) -> list[dict[str, str]]:
        """All combinations of levels of the choices (of these kinds) that apply to cells; one empty of none."""
        applying = {
            choice.name: choice.levels
            for choice in self.readings.values()
            if choice.kind in (kinds or (choice.kind,))
            and any(fnmatch.fnmatchcase(name, glob) for name in ids for glob in choice.applies)
        }
        product = itertools.product(*applying.values())
        return [dict(zip(applying, levels, strict=True)) for levels in product]


def read_cells(path: str | Path) -> pd.DataFrame:
    """Read ``cells.csv`` as `Published.cells`; ValueError names a column that is absent, or a cell that is wrong."""
    return as_cells(read_text(path), str(path))


def read_text(path: str | Path, **options: Any) -> pd.DataFrame:
    """Read a CSV file as text, an empty field as the empty text; ValueError names a file that is no table."""
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except ValueError as error:  # pandas does not name the file
        needed = "needed is a CSV file whose first line has the names of its columns"
        raise ValueError(f"{path}: {needed}: {str(error).strip()}") from None


def as_cells(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Rows with the columns `CELLS`, all text, as `Published.cells`; `where` begins the message of a ValueError."""
    if missing := [name for name in CELLS if name not in frame.columns]:
        raise ValueError(f"{where}: columns {missing} are missing; needed are {CELLS}")
    if twice := sorted(frame["id"][frame["id"].duplicated()]):
        raise ValueError(f"{where}: cells {twice} occur more than once")
    rules = frame.get("rounded", pd.Series("", frame.index))
    value = pd.Series(values(frame, "printed", where), frame.index, dtype=float)
    brackets = frame.assign(bracket=frame["bracket"].str.strip("()[] "))
    bracket = pd.Series(values(brackets, "bracket", where), frame.index, dtype=float)
    errors = frame["bracket_kind"] == STANDARD_ERROR
    fine = {
        "bracket_kind": (f"one of {_BRACKETS}", frame["bracket_kind"].isin(_BRACKETS)),
        "scale": ("log or linear", frame["scale"].isin(["log", "linear"])),
        "units": ("a positive integer", frame["units"].str.fullmatch("[1-9][0-9]*")),
        "runs": ("a positive integer", frame["runs"].str.fullmatch("[1-9][0-9]*")),
        "printed": ("a positive number", (frame["scale"] == "linear") | (value > 0)),
        "bracket": (
            "a standard error, which is not negative",
            (bracket >= 0) | (bracket.isna() & ~errors),
        ),
        "rounded": (f"one of {list(RULES)}, or nothing", rules.isin([*RULES, ""])),
    }
    for name, (needed, mask) in fine.items():
        for row in frame[~mask.astype(bool)].to_dict("records"):
            given = f"needed is {needed}, given was {row[name]!r}"
            raise ValueError(f"{where}: cell {row['id']}: {name}: {given}")
    for row in frame[errors & (frame["units"] == "1")].to_dict("records"):
        raise ValueError(f"{where}: cell {row['id']}: units: {ALONE}; given was {row['units']!r}")
    half = frame["printed"].map(half_unit)
    cells = frame.assign(
        units=frame["units"].astype(int),
        runs=frame["runs"].astype(int),
        value=value,
        rounding=half,
        bracket_value=bracket,
        low=value - half,
        high=value + half,
    )
    for place in rules.index[rules != ""]:
        low, high = region(str(frame["printed"][place]), rules[place])
        ends = [(low + high) / 2, (high - low) / 2, low, high]
        cells.loc[place, ["value", "rounding", "low", "high"]] = ends
    return cells.set_index("id", drop=False)


def values(frame: pd.DataFrame, name: str, where: str) -> list[float]:
    """The values of a column of printed numbers, NaN of an empty bracket; ValueError names the cell and the remedy."""
    found = []
    for cell, text in zip(frame["id"], frame[name], strict=True):
        try:
            found.append(number(text) if text or name != "bracket" else math.nan)
        except ValueError:
            needed = "a number such as 0.029 or 1.4e-3"
            if "%" in text:
                needed = "the share, or ours in percent and no percent sign here"
            raise ValueError(
                f"{where}: cell {cell}: {name}: needed is {needed}; given was {text!r}"
            ) from None
    return found


def number(text: str) -> float:
    """The value of a printed number (see `recheck.format.decimal`)."""
    return float(decimal(text))


def half_unit(text: str) -> float:
    """Half a unit in the last place of a printed number."""
    return 0.5 * 10.0 ** int(decimal(text).as_tuple().exponent)


def read_published(folder: str | Path) -> Published:
    """Read and check a folder of published values; ValueError names the file, the entry and what is wrong."""
    folder = Path(folder)
    paths = [folder / f"{name}.yaml" for name in ("claims", "readings", "protocol")]
    rows, choices, rules = map(_yaml, paths, (list, dict, dict))
    claims = [checked(Claim, row, f"{paths[0]}: entry {n}") for n, row in enumerate(rows, 1)]
    ids = pd.Series([claim.id for claim in claims], dtype=str)
    if twice := sorted(ids[ids.duplicated()]):
        raise ValueError(f"{paths[0]}: claims {twice} occur more than once")
    readings = {
        name: checked(Choice, row, f"{paths[1]}: {name}").model_copy(update={"name": name})
        for name, row in choices.items()
    }
    protocol = checked(Protocol, rules, str(paths[2]))
    return Published(read_cells(folder / "cells.csv"), tuple(claims), readings, protocol)


def _yaml(path: Path, kind: type) -> Any:
    """Content of a YAML file, of one kind; empty without the file."""
    content = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else kind()
    if not isinstance(content, kind):
        needed = f"needed is a {kind.__name__}, given was a {type(content).__name__}"
        raise ValueError(f"{path}: {needed}")
    return content
