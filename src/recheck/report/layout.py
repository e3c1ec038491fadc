"""``layout.yaml`` of a study: units, labels, and what its tables and figures show.

A table is an entry of this file and no code. Unknown keys are refused by name.
"""

import fnmatch
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from recheck.judge.declared import Declared, checked, read_yaml
from recheck.judge.format import Format
from recheck.judge.measures import pattern

#: Lines of a row group, and what they are called in the table.
LINES = {"published": "published", "kept": "ours", "run": "this run", "verdict": "verdict"}
Names = tuple[str, ...]


class Block(Declared):
    """One tabular of a table; the attributes are the keys of the file."""

    cell: str  # template of ids, with fields in braces
    rows: Names  # fields that index rows
    columns: Names
    show: Annotated[Names, Field(min_length=1)] = ("run",)  # lines of a row group, of `LINES`
    where: Mapping[str, Names] = {}  # values of a field that are shown; other ids are left out
    readings: Mapping[str, str] = {}  # by label, for the field ``reading``; else the default
    head: str = ""  # LaTeX of the top left corner
    format: Format = Format()
    formats: Mapping[str, Format] = {}  # by value of the last column field

    @property
    def fields(self) -> Names:
        """Fields of the template."""
        return tuple(pattern(self.cell).groupindex)

    @field_validator("formats", mode="before")
    @classmethod
    def _differ(cls, given: Any, info: ValidationInfo) -> Any:
        """Options of one column are in addition to those of all."""
        common = info.data.get("format", Format()).model_dump()
        return {name: {**common, **options} for name, options in given.items()}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Every field indexes a row or a column, or has one value."""
        used = [*self.rows, *self.columns]
        known = [*self.fields, *(["reading"] if self.readings else [])]
        fixed = [name for name, values in self.where.items() if len(values) == 1]
        problems = {
            f"show: needed are lines of {list(LINES)}": {*self.show} - {*LINES},
            f"rows and columns: needed are fields of {known}": {*used} - {*known},
            f"where: needed are fields of {known}": {*self.where} - {*known},
            "needed in rows or columns, or with one value in where": {*known} - {*used, *fixed},
            "needed once in rows and columns": {name for name, n in Counter(used).items() if n > 1},
        }
        for what, names in problems.items():
            if names:
                raise ValueError(f"{what}; wrong are {sorted(names)}")
        return self


class Entry(Declared):
    """A figure, or what a table has too: title, caption (LaTeX) and the parts of the measures that it reads."""

    title: str
    caption: Annotated[str, BeforeValidator(str.strip)] = ""
    reads: Names


class Table(Entry):
    """A table: an entry with blocks."""

    blocks: list[Block] = Field(min_length=1)


class Layout(Declared):
    """The whole file.

    Units by glob of ids; ids that rest on CPU seconds, and ids whose expectation depends on numbers of samples; labels
    and order by field; what is shown.
    """

    units: Mapping[str, str] = {}
    timing: Names = ()
    sized: Names = ()
    labels: Mapping[str, Mapping[str, str]] = {}
    order: Mapping[str, Names] = {}
    tables: Mapping[str, Table] = {}
    figures: Mapping[str, Entry] = {}

    def unit(self, id: str) -> str:
        """Unit of an id: that of the first glob that fits."""
        return next((u for glob, u in self.units.items() if fnmatch.fnmatchcase(id, glob)), "")


def read_layout(path: str | Path) -> Layout:
    """Read and check a ``layout.yaml``; ValueError has a line for each thing that is wrong, `path` in front."""
    return checked(Layout, read_yaml(path), str(path))
