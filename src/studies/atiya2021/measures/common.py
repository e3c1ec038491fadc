"""Rows of measures: reading raw files, naming rows after their ids, and estimates that have an error of their own.

Every row knows the file and the line that it came from.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recheck.files import read_csv
from recheck.measures import OK, as_measures, join_sources, with_fields
from recheck.published import read_cells

Row = dict[str, Any]

#: Source of what follows from the printed numbers alone.
PRINTED = "data/published/atiya2021/cells.csv"
#: Columns of raw files that hold text even where every entry looks like a number.
_TEXT = ("seed", "status", "method", "count", "scheme", "equation", "verdict", "order", "switched")


class Known(NamedTuple):
    """A value with its standard error (0: exact, NaN: unknown), the degrees of freedom of that, and a status."""

    value: float = math.nan
    se: float = math.nan
    df: float = math.nan
    status: str = OK


def raw_rows(
    root: Path,
    pattern: str,
    columns: Sequence[str],
    *,
    finite: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> pd.DataFrame:
    """The rows of all raw files whose name fits a pattern, below one another, with their ``source``.

    Timing files fit only a pattern that names them. The entries of the columns `finite` must be finite, because a mean
    would pass over a gap in silence; `optional` columns may be absent. Without files there are no rows.
    """
    frames = []
    for path in sorted(Path(root).glob(pattern)):
        if path.match("*_timing.csv") and not fnmatch(pattern, "*_timing.csv"):
            continue
        frame = read_csv(path, dtype=dict.fromkeys(_TEXT, str))
        if missing := [name for name in columns if name not in frame]:
            raise ValueError(f"{path}: columns {missing} are missing; needed are {list(columns)}")
        name = path.relative_to(root).as_posix()
        frame["source"] = [f"{name}:{line + 2}" for line in range(len(frame))]
        for column in finite:
            refuse(frame[~np.isfinite(frame[column].astype(float))], column)
        frames.append(frame)
    if not frames:
        frames = [pd.DataFrame(columns=list(dict.fromkeys([*columns, *optional, "source"])))]
    rows = pd.concat(frames, ignore_index=True)
    return rows.reindex(columns=list(dict.fromkeys([*rows.columns, *optional])))


def timed_rows(
    root: Path,
    pattern: str,
    keys: list[str],
    optional: Sequence[str],
    seconds: Sequence[str] = ("cpu_seconds",),
) -> pd.DataFrame:
    """The rows of raw files, by the beginning of their pattern, with columns of the timing files beside them.

    Where files do not name the data set, it is the first.
    """
    needed = [key for key in keys if key != "dataset"]
    rows = raw_rows(root, f"{pattern}.csv", [*needed, "status"], optional=["dataset", *optional])
    timing = raw_rows(root, f"{pattern}_timing.csv", needed, optional=["dataset", *seconds])
    rows, timing = (
        frame.assign(dataset=frame["dataset"].fillna(0).astype(int)) for frame in (rows, timing)
    )
    return rows.merge(timing[[*keys, *seconds]], on=keys, how="left")


def refuse(rows: pd.DataFrame, column: str) -> None:
    """Refuse rows whose entry of a column is no finite number, by file and line of the first."""
    for row in rows.head(1).to_dict("records"):
        file, _, line = row["source"].rpartition(":")
        raise ValueError(
            f"{file}: line {line}: {column} is {row[column]}; needed is a finite number ({len(rows)} such rows)"
        )


def published_cells(published: Path, template: str) -> pd.DataFrame:
    """The published cells whose id fits a template, with its fields as columns; those of digits are numbers."""
    cells = read_cells(Path(published) / "cells.csv").reset_index(drop=True)
    cells = with_fields(cells, template).reset_index(drop=True)
    for name in cells.columns[: template.count("{")]:
        if len(cells) and cells[name].str.isdigit().all():
            cells[name] = cells[name].astype(int)
    return cells


def named(frame: pd.DataFrame, template: str) -> pd.Series:
    """A text for every row: a template such as ``table1/N{dimension}/M{samples}`` filled from its columns."""
    texts = [template.format_map(row) for row in frame.to_dict("records")]
    return pd.Series(texts, index=frame.index, dtype=object)


def measured(
    frame: pd.DataFrame,
    template: str,
    value: pd.Series | str,
    *,
    unit: str,
    run: str = "",
    scale: str = "log",
    status: pd.Series | str = OK,
    reading: pd.Series | str = "",
) -> pd.DataFrame:
    """One row of measures for each raw row; id and unit are templates. A row without a finite value never counts.

    Value, run and status may be names of columns. Without a run it is 0.
    """
    value = (frame[value] if isinstance(value, str) else value).astype(float)
    given = frame[status] if isinstance(status, str) and status in frame else status
    status = pd.Series(given, index=frame.index, dtype=object)
    table = {
        "id": named(frame, template),
        "reading": reading,
        "unit": named(frame, unit),
        "run": frame[run] if run else 0,
        "value": value,
        "scale": scale,
        "status": status.mask((status == OK) & ~np.isfinite(value), "no value"),
        "source": frame["source"],
        "seed": frame.get("seed", ""),
        "se": math.nan,
        "df": math.nan,
    }
    return pd.DataFrame(table, index=frame.index)


def estimate(name: str, found: Known | float, source: str, **more: Any) -> Row:
    """A row that is itself an estimate, linear unless `more` says otherwise. A plain number is exact."""
    known = found if isinstance(found, Known) else Known(float(found), 0.0)
    row = {"id": name, "reading": "", "unit": "", "run": 0, "scale": "linear", "seed": ""}
    row |= known._asdict() | {"source": source} | more
    undefined = row["status"] == OK and not math.isfinite(known.value)
    return row | {"status": "not defined"} if undefined else row


def each(
    frame: pd.DataFrame,
    by: str | list[str],
    template: str,
    quantities: Mapping[str, Any],
    *,
    scale: str = "linear",
    source: str = "",
) -> Iterator[Row]:
    """An estimate of every quantity for every group of rows: a function of them, or a column and how to aggregate it.

    The template has the columns of `by` in braces, and ``{quantity}``. Without a source it is that of the rows.
    """
    by = [by] if isinstance(by, str) else by
    for key, group in frame.groupby(by, sort=False):
        where = source or join_sources(group["source"])
        for quantity, find in quantities.items():
            found = find(group) if callable(find) else group[find[0]].agg(find[1])
            name = template.format(**dict(zip(by, key, strict=True)), quantity=quantity)
            yield estimate(name, found, where, scale=scale)


def combine(*parts: Any) -> pd.DataFrame:
    """Tables, rows, and iterables of either below one another, as `recheck.measures.as_measures` checks them."""
    flat = list(_flat(parts))
    rows = pd.DataFrame([part for part in flat if isinstance(part, dict)])
    frames = [part for part in (*flat, rows) if isinstance(part, pd.DataFrame) and len(part)]
    return as_measures(pd.concat(frames, ignore_index=True) if frames else pd.DataFrame())


def _flat(parts: Iterable[Any]) -> Iterator[pd.DataFrame | Row]:
    for part in parts:
        if isinstance(part, pd.DataFrame | dict):
            yield part
        else:
            yield from _flat(part)


def geometric_mean(logs: pd.Series) -> Known:
    """Geometric mean of units, from their logarithms. With fewer than two it has no error, and is not compared."""
    if len(logs) < 2:
        return Known(status="not comparable")
    mean = math.exp(logs.mean())
    return Known(mean, mean * logs.sem(), len(logs) - 1.0)
