"""The published side of a study: its cells, claims, readings and the protocol of the comparison.

A folder holds four files. ``cells.csv`` has one row a printed number, ``claims.yaml`` one
entry a statement, ``readings.yaml`` what the paper leaves unsaid or misprints, and ``protocol.yaml`` margins, error
rates, families, contrasts and the history of all of these. Only ``cells.csv`` is needed. It may have a column
``rounded``, the rule that a number was rounded by (`recheck.judge.printed.RULES`); empty is to the nearest, ties
included.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, FiniteFloat, model_validator

from recheck.judge.declared import Declared, check_ids, checked, read_yaml
from recheck.judge.measures import pattern, with_fields
from recheck.judge.printed import RULES, Printed, decimal, half_unit, read, refuse, region, shortly

if TYPE_CHECKING:
    import pandas as pd

#: Columns of ``cells.csv``, and what `as_cell` adds to them.
CELLS = [
    *["id", "table", "column", "printed", "bracket", "bracket_kind", "scale", "units", "runs"],
    "section",
]
NUMBERS = ["value", "rounding", "bracket_value", "error", "low", "high", "relation"]
#: Kinds of brackets whose error over the published units is known; beside them is ``interval 95%``, of any level.
STANDARD_ERROR, STANDARD_DEVIATION = "standard error", "standard deviation"
BRACKETS = (STANDARD_ERROR, STANDARD_DEVIATION, "value/sqrt(n)", "")
_LEVEL = re.compile(r"interval (\d{2}(?:\.\d+)?) ?%")
#: Why an error needs several units, and what to do.
ALONE = (
    "a bracket needs units of 2 or more, for it is a standard error over them (or a deviation between them); "
    "say how many data sets are behind it, or leave the bracket out"
)
UNSAID = (
    "what is the number behind ± or in brackets? Write bracket_kind: standard error, standard deviation or "
    "interval 95%"
)
#: The factor within which a deviation between units agrees.
SPREAD = 2.0
#: Combinations of levels that one hypothesis may have: each is compared.
_COMBINATIONS = 4096


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
    between: tuple[FiniteFloat, FiniteFloat] | None = None

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
        check_ids(self.levels, "levels")
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
    margin: Annotated[float, Field(lt=1e9)]

    @model_validator(mode="after")
    def _fields(self) -> Self:
        templates = (self.id, self.first, self.second)
        check_ids((re.sub(r"\{\w+\}", "x", one) for one in templates), "contrast")
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
_Kind = Literal["cell", "contrast", "column", "claim", "spread"]
_Change = dict[Literal["date", "change", "after_results", "why"], Any]


class Margins(Declared):
    """Factors within which a ratio has to be proved for "agrees", and that an "informative" cell would show.

    Of cells on the scale ``linear`` both are the `difference` if there is one, in the unit of the cells.
    """

    agree: _Factor = 2.0
    informative: _Factor = 2.0
    difference: Annotated[float, Field(gt=0, lt=1e300)] | None = None

    def on(self, scale: str) -> tuple[float, float]:
        """The margin of an agreement and the informative one of cells and columns on a scale."""
        if scale == "log":
            return self.agree, self.informative
        return self.difference or self.agree, self.difference or self.informative


class Protocol(Declared):
    """Rules of the comparison: margins, error rate of a family, power of detectable factors, coverage of intervals.

    ``families`` has kinds of rows by the name of their family, ``history`` the changes. ``distribution`` is ``smooth``
    (our values say how runs vary) or ``any``: no number differs then that the order of our values does not show to.
    With ``spreads``, printed deviations between units are judged beside ours.
    """

    margins: Margins = Margins()
    family_error: _Share = 0.05
    power: _Share = 0.8
    interval: _Share = 0.9
    distribution: Literal["smooth", "any"] = "smooth"
    families: Mapping[str, tuple[_Kind, ...]] = {
        "numbers": ("cell", "contrast", "column"),
        "claims": ("claim",),
        "spreads": ("spread",),
    }
    spreads: bool = False
    contrasts: tuple[Contrast, ...] = ()
    history: tuple[Annotated[_Change, Field(min_length=4)], ...] = ()

    @model_validator(mode="after")
    def _kinds(self) -> Self:
        kinds = sorted(kind for some in self.families.values() for kind in some if kind != "spread")
        if kinds != ["cell", "claim", "column", "contrast"]:
            raise ValueError("families: needed are cell, contrast, column and claim, each once")
        if self.spreads and not any("spread" in some for some in self.families.values()):
            raise ValueError("families: needed is spread, too, where spreads are judged")
        return self


@dataclass(frozen=True, slots=True)
class Published:
    """All that a paper printed and said, and the rules under which it is compared.

    `cells` has the columns `CELLS` with ``value``, ``bracket_value``, ``error`` (the standard error over the published
    units, where one is known) and ``rounding`` (half a unit in the last place), ``low`` and ``high``, the ends of what
    rounds to the value, and ``relation`` (``<`` and the like); it is indexed by id. Where a rule of rounding is
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

    def margin(self, row: Mapping[str, Any]) -> float:
        """Within what factor, or on the scale ``linear`` what difference, a row of verdicts agrees; not of a claim."""
        if row["kind"] == "spread":
            return SPREAD
        if row["kind"] == "contrast":
            rules = self.protocol.contrasts
            return next(one.margin for one in rules if pattern(one.id).fullmatch(row["id"]))
        return self.protocol.margins.on(row["scale"])[0]

    def pairs(self) -> list[tuple[str, str, str, Contrast]]:
        """Contrasts of the protocol with their cells: id, first cell, second cell, rule."""
        import pandas as pd

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
        if (many := math.prod(map(len, applying.values()))) > _COMBINATIONS:
            raise ValueError(
                f"readings.yaml: {many} combinations of levels apply to {ids[0]}, those of {list(applying)[:20]}; "
                f"needed are at most {_COMBINATIONS}: let each choice apply to fewer ids"
            )
        product = itertools.product(*applying.values())
        return [dict(zip(applying, levels, strict=True)) for levels in product]


def read_cells(path: str | Path) -> pd.DataFrame:
    """Read ``cells.csv`` as `Published.cells`; ValueError names a column that is absent, or a cell that is wrong."""
    return as_cells(read_text(path), str(path))


def read_text(path: Any, **options: Any) -> pd.DataFrame:
    """Read a CSV file as text, an empty field as the empty text; ValueError names a file that is no table."""
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except (ValueError, OverflowError) as error:  # pandas does not name the file
        needed = "needed is a CSV file whose first line has the names of its columns"
        raise ValueError(f"{path}: {needed}: {str(error).strip()}") from None


def as_cells(frame: pd.DataFrame, where: str, comma: bool = False) -> pd.DataFrame:
    """Rows with the columns `CELLS`, all text, as `Published.cells`; `where` begins the message of a ValueError.

    The message has a line for each cell that is wrong: its id, the column, what was given and the remedy. `comma` says
    that decimals stand behind a comma.
    """
    import pandas as pd

    if missing := [name for name in CELLS if name not in frame.columns]:
        raise ValueError(f"{where}: columns {missing} are missing; needed are {CELLS}")
    if twice := sorted(frame["id"][frame["id"].duplicated()]):
        raise ValueError(f"{where}: cells {twice} occur more than once")
    check_ids(frame["id"], where)
    rows, wrong = [], []
    for row in frame.to_dict("records"):
        try:
            rows.append(row | as_cell(row, comma))
        except ValueError as error:
            wrong.append(f"{where}: cell {row['id']}: {error}")
    refuse(wrong)
    names = [*frame.columns, *(name for name in NUMBERS if name not in frame.columns)]
    return pd.DataFrame(rows, columns=names).set_index("id", drop=False)


def as_cell(row: Mapping[str, Any], comma: bool = False) -> dict[str, Any]:
    """What is known of one printed number, with the keys `NUMBERS`; ValueError names the column and the remedy."""

    def fails(name: str, needed: str) -> ValueError:
        return ValueError(f"{name}: needed is {needed}, given was {shortly(row[name])}")

    kind, scale, rule = row["bracket_kind"], row["scale"], row.get("rounded", "")
    if not is_kind(kind):
        raise fails("bracket_kind", f"one of {[*BRACKETS, 'interval 95%']}")
    if scale not in ("log", "linear"):
        raise fails("scale", "log or linear")
    design = {}
    for name in ("units", "runs"):
        if not re.fullmatch("[1-9][0-9]{0,8}", row[name]):
            raise fails(name, "a positive integer")
        design[name] = int(row[name])
    if rule and rule not in RULES:
        raise fails("rounded", f"one of {list(RULES)}, or nothing")
    number = _read(row, "printed", comma)
    bracket = (
        _read({"bracket": row["bracket"].strip("()[] ")}, "bracket", comma)
        if row["bracket"]
        else None
    )
    if number is None:
        raise fails("printed", "a number")
    half = half_unit(number.digits)
    value, low, high = (
        float(number.digits),
        float(number.digits) - half,
        float(number.digits) + half,
    )
    if rule or number.relation == "~":
        low, high = region(number.digits, rule or "unknown")
        value, half = (low + high) / 2, (high - low) / 2
    if scale == "log" and not value > 0:
        raise fails("printed", "a positive number")
    text = bracket.digits if bracket else number.bracket
    if text and bracket and bracket.notes.count("percent") != number.notes.count("percent"):
        raise fails("bracket", "a percent sign at both or none of number and bracket")
    error = math.nan
    if text and float(text) < 0:
        raise fails("bracket", "a standard error, which is not negative")
    if kind in (STANDARD_ERROR, STANDARD_DEVIATION) or _LEVEL.fullmatch(kind):
        if not text:
            raise fails(
                "bracket",
                "a standard error, which is not negative"
                if kind == STANDARD_ERROR
                else f"a {kind}",
            )
        if design["units"] < 2:
            raise ValueError(f"units: {ALONE}; given was {row['units']!r}")
        # a bracket that prints as zero is below half a unit of its last place
        error = error_of(max(float(text), half_unit(text)), kind, design["units"])
    elif text and not kind and not row["bracket"]:
        raise ValueError(f"bracket_kind: {UNSAID}; given was {shortly(row['printed'])}")
    found: dict[str, Any] = {
        "value": value,
        "rounding": half,
        "low": low,
        "high": high,
        "error": error,
    }
    found |= {"bracket_value": float(text) if text else math.nan, "relation": number.relation}
    if not (row["bracket"] or number.bracket) and _plain(row["printed"]):
        return found | design
    if not row["bracket"]:
        found |= {"printed": number.relation + number.digits, "bracket": number.bracket}
    return found | design


def is_kind(text: str) -> bool:
    """Whether a text says what a bracket is: one of `BRACKETS`, or an interval of some level."""
    return text in BRACKETS or bool(_LEVEL.fullmatch(text))


def error_of(bracket: Any, kind: str, units: int) -> Any:
    """The standard error over so many units that a bracket of this kind says."""
    if kind == STANDARD_DEVIATION:
        return bracket / math.sqrt(units)
    if level := _LEVEL.fullmatch(kind):
        from scipy.special import stdtrit

        return bracket / float(stdtrit(units - 1.0, 0.5 + float(level[1]) / 200))
    return bracket


def inside(cell: Mapping[str, Any]) -> tuple[float, float]:
    """What a number without chance has to lie in: what prints as the cell, or the side of a bound."""
    low, high, value, relation = (cell[name] for name in ("low", "high", "value", "relation"))
    if "<" in relation:
        return -math.inf, math.nextafter(value, -math.inf) if relation == "<" else value
    if ">" in relation:
        return math.nextafter(value, math.inf) if relation == ">" else value, math.inf
    return low, high


def _plain(text: str) -> bool:
    """Whether a text is a number and nothing else."""
    try:
        decimal(text)
    except ValueError:
        return False
    return True


def _read(row: Mapping[str, str], name: str, comma: bool) -> Printed | None:
    try:
        return read(row[name], comma)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def number(text: str) -> float:
    """The value of a printed number (see `recheck.judge.printed.read`)."""
    return float(decimal(text))


def read_published(folder: str | Path) -> Published:
    """Read and check a folder of published values; ValueError names the file, the entry and what is wrong."""
    folder = Path(folder)
    paths = [folder / f"{name}.yaml" for name in ("claims", "readings", "protocol")]
    rows, choices, rules = map(read_yaml, paths, (list, dict, dict))
    claims = [checked(Claim, row, f"{paths[0]}: entry {n}") for n, row in enumerate(rows, 1)]
    ids = [claim.id for claim in claims]
    check_ids(ids, str(paths[0]))
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ValueError(f"{paths[0]}: claims {twice} occur more than once")
    readings = {
        name: checked(Choice, row, f"{paths[1]}: {name}").model_copy(update={"name": name})
        for name, row in choices.items()
    }
    check_ids(readings, str(paths[1]))
    protocol = checked(Protocol, rules, str(paths[2]))
    return Published(read_cells(folder / "cells.csv"), tuple(claims), readings, protocol)
