"""The book: all that tables, figures and look-ups read, and the only thing that they read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from recheck.measures import COLUMNS, ESTIMATES, with_fields
from recheck.published import read_cells

__all__ = ["Book", "Entry"]

_TEXT = ["id", "reading", "unit", "run", "scale", "status", "source", "seed"]
_NUMBERS = {"value", "se", "df", "units", "runs"}


class Entry(NamedTuple):
    """An estimate: its value, standard error and degrees of freedom, and where it comes from."""

    value: float
    se: float
    df: float
    status: str
    units: int
    runs: int
    source: str
    seed: str


class Book:
    """Estimates, measures, published cells and verdicts of a study.

    Parameters
    ----------
    estimates : DataFrame
        `recheck.measures.ESTIMATES`.
    measures : DataFrame
        `recheck.measures.COLUMNS`.
    cells : DataFrame
        `recheck.published.read_cells`.
    verdicts : DataFrame or None
        Rows of ``verdicts.csv``; None where there are none yet.
    kept : Book or None
        The kept results of the published scale.

    Attributes
    ----------
    estimates : DataFrame
        Indexed by (id, reading).
    measures : DataFrame
    cells, verdicts : DataFrame
        Indexed by id.
    kept : Book or None

    Raises
    ------
    ValueError
        An estimate, a cell or a verdict comes twice.
    """

    def __init__(
        self,
        estimates: pd.DataFrame,
        measures: pd.DataFrame,
        cells: pd.DataFrame,
        verdicts: pd.DataFrame | None = None,
        kept: Book | None = None,
    ) -> None:
        verdicts = pd.DataFrame({"id": []}, dtype=str) if verdicts is None else verdicts
        self.estimates = _indexed(estimates, ["id", "reading"], "estimates")
        self._places = {key: place for place, key in enumerate(self.estimates.index)}
        self.measures = measures.reset_index(drop=True)
        self.cells = _indexed(cells, ["id"], "cells")
        self.verdicts = _indexed(verdicts, ["id"], "verdicts")
        self.kept = kept

    @classmethod
    def read(
        cls,
        study_folder: Path,
        cells_folder: Path,
        parts: Sequence[str] | None = None,
        kept: Path | None = None,
    ) -> Book:
        """Read the book of a run.

        Parameters
        ----------
        study_folder : Path
            ``results/<scale>/<study>``. ``verdicts.csv`` may be absent.
        cells_folder : Path
            ``data/published/<study>``.
        parts : sequence of str or None
            Parts of the measures; None reads all of them, from ``measures.csv`` and ``estimates.csv``.
        kept : Path or None
            The folder of kept results, with ``estimates.csv.gz``, ``measures.csv.gz`` and ``verdicts.csv``.

        Raises
        ------
        ValueError
            A file is damaged (`recheck.files.DamagedFileError`).
        FileNotFoundError
            A file is absent.
        """
        study_folder, cells = Path(study_folder), read_cells(Path(cells_folder) / "cells.csv")
        names = [""] if parts is None else [f"/{part}" for part in parts]
        estimates, measures = (
            pd.concat([_read(study_folder / f"{kind}{name}.csv") for name in names])
            if names
            else pd.DataFrame(columns=columns)
            for kind, columns in (("estimates", ESTIMATES), ("measures", COLUMNS))
        )
        verdicts = study_folder / "verdicts.csv"
        old = None
        if kept is not None:
            kept = Path(kept)
            names = ["estimates.csv.gz", "measures.csv.gz", "verdicts.csv"]
            frames = [_read(kept / name, kept=True) for name in names]
            old = cls(frames[0], frames[1], cells, frames[2])
        found = _read(verdicts) if verdicts.exists() else None
        return cls(estimates, measures, cells, found, old)

    def get(self, id: str, reading: str = "") -> Entry:
        """The estimate of one id.

        Raises
        ------
        KeyError
            There is none; the message names the id, and the readings that there are.
        """
        place = self._places.get((id, reading))
        if place is None:
            readings = self.estimates.loc[self.estimates["id"] == id, "reading"].tolist()
            there = f"readings there are {readings}" if readings else "the id is unknown"
            raise KeyError(f"no estimate of {id!r} with the reading {reading!r}: {there}")
        row = self.estimates.iloc[place]
        return Entry(*[row[name] for name in Entry._fields])

    def select(self, template: str) -> pd.DataFrame:
        """Estimates whose id fits a template.

        Parameters
        ----------
        template : str
            ``experiment4/{problem}/{setting}/{method}/mae-reference``.

        Returns
        -------
        DataFrame
            One column a field (text), then ``value``, ``se``, ``status``, ``units``, ``runs``, ``reading``, ``id``,
            ``df``, ``scale``, ``source``, ``seed``. Empty if no id fits.
        """
        names = ["value", "se", "status", "units", "runs", "reading", "id", "df"]
        rows = self.estimates.reset_index(drop=True)[[*names, "scale", "source", "seed"]]
        return with_fields(rows, template).reset_index(drop=True)

    def rows(self, template: str) -> pd.DataFrame:
        """Rows of the measures whose id fits a template: one column a field, then those of the measures."""
        return with_fields(self.measures, template).reset_index(drop=True)


def _indexed(frame: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    """The same frame, indexed by columns that stay in it."""
    frame = frame.reset_index(drop=True)
    twice = frame[frame.duplicated(keys)]
    if len(twice):
        raise ValueError(f"{name}: {twice.iloc[0][keys].tolist()} occurs more than once")
    return frame.set_index(keys, drop=False).rename_axis([None] * len(keys))


def _read(path: Path, kept: bool = False) -> pd.DataFrame:
    """Read a table and check its digest, which kept results may be without: they have a manifest."""
    import recheck.files

    text = dict.fromkeys([*_TEXT, *_VERDICT_TEXT], str)
    if not kept or path.with_name(f"{path.name}.digest").exists():
        frame = recheck.files.read_csv(path, dtype=text)
    else:
        frame = pd.read_csv(path, dtype=text)
    return frame.fillna({name: "" for name in text if name in frame})


#: Columns of text in ``verdicts.csv`` beside those of measures.
_VERDICT_TEXT = ["kind", "table", "family", "printed", "readings", "verdict", "note"]
