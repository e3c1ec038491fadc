"""What the measures of all studies share: reading rows, and estimates that are functions of known data."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from recheck.judge.declared import read_yaml

from recheck.judge.measures import OK, as_measures, join_sources
from recheck.judge.published import read_cells
from recheck.record.files import read_arrays, read_csv
from studies.common.rows import NO_DATA

Row = dict[str, Any]


class NoDataError(RuntimeError):
    """A line says that the data could not be had; the message names it."""


@dataclass(frozen=True)
class Rows:
    """What a part of a study's measures reads.

    Attributes
    ----------
    folder : path
        The study's results: ``<experiment>.csv``, ``<experiment>_timing.csv`` and ``<experiment>.npz``.
    published, reference : path
        Folders of what was printed and of what is kept.
    experiments : collection of str
        Those that the part reads; the workflow makes them, so that no other may be read.
    """

    folder: Path
    published: Path
    reference: Path
    experiments: Collection[str]

    def table(self, experiment: str, **options: Any) -> pd.DataFrame:
        """Return the lines of an experiment, with their ``source``.

        Raises
        ------
        NoDataError
            If one says that the data could not be had.
        """
        lines, lost = self.available(experiment, **options)
        if lost:
            raise NoDataError(lost[0])
        return lines

    def lines(self, experiment: str, **options: Any) -> pd.DataFrame:
        """Return all lines of an experiment, with their ``source``."""
        frame = read_csv(self._path(experiment, ".csv"), **options)
        frame["source"] = [f"{experiment}.csv:{line + 2}" for line in range(len(frame))]
        return frame

    def available(self, experiment: str, **options: Any) -> tuple[pd.DataFrame, list[str]]:
        """Return the lines that have data, and the sources of the others."""
        frame = self.lines(experiment, **options)
        lost = frame["status"] == NO_DATA if "status" in frame else pd.Series(False, frame.index)
        found = frame[~lost].dropna(axis="columns", how="all") if lost.any() else frame
        return found.reset_index(drop=True), frame.loc[lost, "source"].tolist()

    def timing(self, experiment: str) -> pd.DataFrame:
        """Return the timing of an experiment, by ``row``."""
        return read_csv(self._path(experiment, "_timing.csv"))

    def arrays(self, experiment: str) -> dict[str, np.ndarray]:
        """Return the arrays of an experiment, stacked by row; ``<name>/rows`` are the names of the rows."""
        return read_arrays(self._path(experiment, ".npz"))

    def patterns(self, path: str) -> dict[str, np.ndarray]:
        """Return arrays of data, ``{}`` where they could not be had."""
        return read_arrays(self.folder / path)

    def _path(self, experiment: str, end: str) -> Path:
        if experiment not in self.experiments:
            raise ValueError(
                f"experiment: this part of the measures reads {sorted(self.experiments)}; asked for was {experiment!r}"
            )
        return self.folder / f"{experiment}{end}"


def measured(module: ModuleType, rows: Rows) -> pd.DataFrame:
    """Return the measures of a part: what the module's ``measure`` makes of the rows.

    If data are missing, the rows say so of all cells and claims that fit the module's ``IDS``.
    """
    try:
        found: pd.DataFrame = module.measure(rows)
    except NoDataError as error:
        return unavailable(rows.published, module.IDS, str(error))
    return found


def exact(id: str, value: float, source: str | Iterable[str], **more: Any) -> Row:
    """An estimate that chance has no part in; `more` has ``reading``, ``status``, ``se`` with ``df``, and so on."""
    source = source if isinstance(source, str) else join_sources(source)
    row: Row = {"id": id, "value": float(value), "scale": "linear", "se": 0.0, "source": source}
    row |= more
    if not math.isfinite(row["value"]) and row.get("status", OK) == OK:
        row["status"] = "not defined"
    return row


def nearest(values: pd.Series, printed: float) -> float:
    """The value that is nearest to the printed one: what a number is at some point that rounds to the printed point."""
    return float(values[(values - printed).abs().idxmin()])


def unavailable(published: Path, ids: Sequence[str], source: str) -> pd.DataFrame:
    """Rows that say of all cells and claims whose ids fit globs that the data could not be had."""
    cells = read_cells(Path(published) / "cells.csv").index
    claims = read_yaml(Path(published) / "claims.yaml", list)
    known = [*cells, *(f"claim/{claim['id']}" for claim in claims)]
    lost = [id for id in known if any(fnmatchcase(id, glob) for glob in ids)]
    row = {"scale": "linear", "value": math.nan, "status": NO_DATA, "source": source}
    return as_measures([{"id": id, **row} for id in lost])
