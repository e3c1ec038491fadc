"""Rows of measures: reading raw files, naming rows after their ids, and estimates that have an error of their own.

A row of measures says one thing about one unit and run, or is itself an estimate (`estimate`). Raw files are read here
and nowhere else; every row knows the file and the line that it came from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd

from recheck.files import read_csv
from recheck.measures import COLUMNS, OK, as_measures
from recheck.published import read_cells

__all__ = [
    "PRINTED",
    "combine",
    "estimate",
    "mean_and_error",
    "measure",
    "named",
    "published_cells",
    "raw_rows",
    "whole",
]

#: Source of what follows from the printed numbers alone.
PRINTED = "data/published/atiya2021/cells.csv"
#: Columns of raw files that hold text even where every entry looks like a number.
_TEXT = ("seed", "status", "method", "count", "scheme", "equation", "verdict", "order", "switched")


def raw_rows(
    root: Path, pattern: str, columns: Sequence[str], *, finite: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows of all raw files whose name fits a pattern, below one another.

    Parameters
    ----------
    root : path
        Folder of the study's results.
    pattern : str
        Files below it, such as ``experiment1/N*.csv``. Timing files fit only a pattern that names them.
    columns : sequence of str
        Columns that each file must have.
    finite : sequence of str
        Columns whose entries must all be finite: a mean would pass over a gap in silence.

    Returns
    -------
    DataFrame
        The columns of the files, and ``source`` (file and line). Without files: no rows, and those columns.

    Raises
    ------
    ValueError
        A file lacks a column, or an entry of `finite` is missing or infinite.
    DamagedFileError
        A file is not as it was written (`recheck.files`).
    """
    frames = []
    for path in sorted(Path(root).glob(pattern)):
        if path.match("*_timing.csv") and not fnmatch(pattern, "*_timing.csv"):
            continue
        frame = read_csv(path, dtype=dict.fromkeys(_TEXT, str))
        if missing := [name for name in columns if name not in frame]:
            raise ValueError(f"{path}: columns {missing} are missing; needed are {list(columns)}")
        _refuse_gaps(path, frame, finite)
        name = path.relative_to(root).as_posix()
        frames.append(frame.assign(source=[f"{name}:{line + 2}" for line in range(len(frame))]))
    if not frames:
        return pd.DataFrame(columns=[*columns, "source"])
    return pd.concat(frames, ignore_index=True)


def _refuse_gaps(path: Path, frame: pd.DataFrame, finite: Sequence[str]) -> None:
    for name in finite:
        values = frame[name].astype(float)
        gaps = values.index[~np.isfinite(values)]
        if len(gaps):
            raise ValueError(
                f"{path}: line {gaps[0] + 2}: {name} is {values[gaps[0]]}; needed is a finite number "
                f"({len(gaps)} such rows)"
            )


def published_cells(published: Path, pattern: str) -> pd.DataFrame:
    """The published cells whose id fits a pattern such as ``table1/*``.

    Returns
    -------
    DataFrame
        As `recheck.published.read_cells`, without an index, and taken from the id: ``block`` (its second component,
        ``N50`` or ``P1``) and ``samples``.
    """
    cells = read_cells(Path(published) / "cells.csv").reset_index(drop=True)
    cells = cells[[fnmatch(name, pattern) for name in cells["id"]]].reset_index(drop=True)
    samples = pd.to_numeric(cells["id"].str.extract(r"/M(\d+)$")[0])
    return cells.assign(block=cells["id"].str.split("/").str[1], samples=samples)


def named(frame: pd.DataFrame, template: str) -> pd.Series:
    """A text for every row: a template such as ``table1/N{dimension}/M{samples}`` filled from its columns."""
    text = pd.Series("", index=frame.index, dtype=object)
    for literal, name, _, _ in Formatter().parse(template):
        text = text + literal
        if name is not None:
            text = text + frame[name].astype(str)
    return text


def measure(
    frame: pd.DataFrame,
    template: str,
    value: pd.Series,
    *,
    unit: str,
    run: pd.Series | int = 0,
    scale: str = "log",
    status: pd.Series | str = OK,
    reading: str = "",
) -> pd.DataFrame:
    """One row of measures for each row of a frame.

    Parameters
    ----------
    frame : DataFrame
        Raw rows, with ``source`` and, of random runs, ``seed``.
    template, unit : str
        The id and the unit, with columns of the frame in braces.
    value : Series
        What was measured.
    run : Series or int
        The replicate within a unit.
    scale : str
        ``log`` if the quantity is compared as a ratio, ``linear`` if as a difference.
    status : Series or str
        ``ok``, or why a row does not count. A row without a finite value never counts.
    reading : str
        Levels of unstated choices under which the rows were made.

    Returns
    -------
    DataFrame
        The columns `COLUMNS`.
    """
    status = pd.Series(status, index=frame.index, dtype=object)
    value = value.astype(float)
    table = {
        "id": named(frame, template),
        "reading": reading,
        "unit": named(frame, unit),
        "run": run,
        "value": value,
        "scale": scale,
        "status": status.mask((status == OK) & ~np.isfinite(value), "no value"),
        "source": frame["source"],
        "seed": frame.get("seed", ""),
        "se": math.nan,
        "df": math.nan,
    }
    return pd.DataFrame(table, index=frame.index)[COLUMNS]


def estimate(
    name: str,
    value: float,
    source: str,
    *,
    se: float = math.nan,
    df: float = math.nan,
    scale: str = "linear",
    status: str = OK,
    reading: str = "",
) -> dict[str, Any]:
    """A row that is itself an estimate, with a standard error; of an exact number the error is zero."""
    if status == OK and not math.isfinite(value):
        status = "not defined"
    texts = {"id": name, "reading": reading, "unit": "", "run": 0, "scale": scale, "seed": ""}
    return texts | {"value": value, "status": status, "source": source, "se": se, "df": df}


def whole(name: str, value: float, source: str) -> dict[str, Any]:
    """A count, or another number that has no error."""
    return estimate(name, float(value), source, se=0.0)


def combine(*parts: pd.DataFrame | Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Tables and lists of rows below one another, as `recheck.measures.as_measures` checks them."""
    frames = [p if isinstance(p, pd.DataFrame) else pd.DataFrame(list(p)) for p in parts]
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    numbers = {"value": float, "se": float, "df": float}
    return as_measures(pd.concat([f.astype(numbers) for f in frames], ignore_index=True)[COLUMNS])


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Mean and standard error of the mean; the latter is NaN of a single value."""
    values = values.astype(float)
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return float(values.mean()) if len(values) else math.nan, se
