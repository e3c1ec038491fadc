"""The book: all that tables, figures and look-ups read, and the only thing that they read."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.judge.measures import levels_of, with_fields
from recheck.judge.published import read_published
from recheck.record.files import read_csv

#: Columns of text in measures, estimates and verdicts: a printed ``0.020`` keeps its digits, and table 1 is no number.
_TEXT = [
    *("id", "reading", "unit", "run", "scale", "status", "source", "seed", "kind", "table"),
    *("family", "printed", "readings", "verdict", "note"),
]


class Book:
    """Estimates, indexed by (id, reading), measures, published cells and verdicts, indexed by id; and those kept.

    `outcomes` has what was judged under each reading.

    `defaults` has the level of each choice that is meant where a reading does not name one.
    ValueError says which estimate, cell or verdict comes twice.
    """

    def __init__(
        self,
        estimates: pd.DataFrame,
        measures: pd.DataFrame,
        cells: pd.DataFrame,
        verdicts: pd.DataFrame | None = None,
        kept: "Book | None" = None,
        defaults: Mapping[str, str] | None = None,
        outcomes: pd.DataFrame | None = None,
    ) -> None:
        none = pd.DataFrame({"id": []}, dtype=str)
        verdicts, self.outcomes = (none if one is None else one for one in (verdicts, outcomes))
        self.estimates = _indexed(estimates, ["id", "reading"], "estimates")
        self.measures = measures.reset_index(drop=True)
        self.cells = _indexed(cells, ["id"], "cells")
        self.verdicts = _indexed(verdicts, ["id"], "verdicts")
        self.kept, self.defaults = kept, defaults or {}
        self._places: dict[str, dict[str, int]] = {}
        for place, (id, reading) in enumerate(self.estimates.index):
            self._places.setdefault(id, {})[reading] = place

    @classmethod
    def read(
        cls,
        study_folder: Path,
        cells_folder: Path,
        kept: Path | None = None,
    ) -> "Book":
        """Read a folder of results, one of published values and, if given, one of kept results.

        ``verdicts.csv`` and ``outcomes.csv`` may be absent. A damaged file is a `DamagedFileError`.
        """
        published = read_published(cells_folder)
        defaults = {
            name: choice.default for name, choice in published.readings.items() if choice.default
        }

        def one(folder: Path, kept: Book | None = None) -> Book:
            estimates, measures = (
                read(_there(folder / f"{kind}.csv")) for kind in ("estimates", "measures")
            )
            paths = folder / "verdicts.csv", folder / "outcomes.csv"
            judged, by_reading = (read(path) if path.exists() else None for path in paths)
            return cls(estimates, measures, published.cells, judged, kept, defaults, by_reading)

        return one(Path(study_folder), None if kept is None else one(Path(kept)))

    @property
    def ids(self) -> Iterable[str]:
        """Ids of all estimates, each once, in their order."""
        return self._places.keys()

    def get(self, id: str, reading: str = "") -> pd.Series:
        """The estimate of an id under a reading; KeyError names the id, and the readings that there are."""
        there = self._places.get(id, {})
        if reading not in there:
            known = f"readings there are {list(there)}" if there else "the id is unknown"
            raise KeyError(f"no estimate of {id!r} with the reading {reading!r}: {known}")
        return self.estimates.iloc[there[reading]]

    def pick(self, id: str, reading: str = "", where: str = "look-up") -> Mapping[str, Any] | None:
        """The estimate of an id under a reading, or else under the single one that contradicts none of its levels.

        A choice that the reading does not name has its default, if there is a choice; one that it names need not apply
        to the id. ValueError if several readings fit; it begins with `where`.
        """
        there, wanted = self._places.get(id, {}), levels_of(reading)
        fits = [reading] if reading in there else _consistent(there, wanted)
        if len(fits) > 1:
            fits = _consistent(fits, {**self.defaults, **wanted}) or fits
        if len(fits) > 1:
            raise ValueError(f"{where}: {id} has the readings {fits}; name one of them")
        return self.get(id, fits[0]).to_dict() if fits else None

    def agrees(self, id: str, reading: str = "") -> bool:
        """Whether a number agrees under a reading, by its verdict; a choice that is not named has its default."""
        listed = str(self.verdicts.loc[id, "readings"]).split("; ")
        return bool(_consistent(listed, {**self.defaults, **levels_of(reading)}))

    def select(self, template: str) -> pd.DataFrame:
        """Estimates whose id fits a template: one column a field (text), then those of the estimates."""
        return with_fields(self.estimates, template).reset_index(drop=True)

    def rows(self, template: str) -> pd.DataFrame:
        """Rows of the measures whose id fits a template: one column a field, then those of the measures."""
        return with_fields(self.measures, template).reset_index(drop=True)


def _consistent(readings: Iterable[str], wanted: Mapping[str, str]) -> list[str]:
    """The readings none of whose levels is another than wanted."""
    return [
        one
        for one in readings
        if all(wanted.get(choice, level) == level for choice, level in levels_of(one).items())
    ]


def _indexed(frame: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    """The same frame, indexed by columns that stay in it."""
    frame = frame.reset_index(drop=True)
    twice = frame[frame.duplicated(keys)]
    if len(twice):
        raise ValueError(f"{name}: {twice.iloc[0][keys].tolist()} occurs more than once")
    return frame.set_index(keys, drop=False).rename_axis([None] * len(keys))


def _there(path: Path) -> Path:
    """A table, or the same compressed, as kept results have it."""
    packed = Path(f"{path}.gz")
    return packed if packed.exists() and not path.exists() else path


def read(path: Path) -> pd.DataFrame:
    """Read measures, estimates or verdicts, texts as texts."""
    frame = read_csv(path, dtype=dict.fromkeys(_TEXT, str))
    return frame.fillna({name: "" for name in _TEXT if name in frame})
