"""Rows of measures: reading tables of results, naming rows after their ids, and estimates with an error of their own.

Every row knows the file and the line that it came from.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpcmc.posterior import MIN_EFFECTIVE, NOT_CONVERGED
from recheck.judge.measures import OK, as_measures, join_sources, with_fields
from recheck.judge.published import read_cells
from recheck.record.files import read_csv
from studies.atiya2021.names import REFERENCE
from studies.common.measuring import Rows

Row = dict[str, Any]

#: Effective eves of a run of the sampler, and the numbers below which runs are counted.
EVES, FEW = "effective_eves", (10, 20, 100)
#: Nats from which on a run counts as off; the paper's claim that the method works "all the time" is judged by it.
OFF = 1.0

#: Source of what follows from the printed numbers alone.
PRINTED = "data/published/atiya2021/cells.csv"
#: Ways to read a prediction from a chain of the toolbox (`studies.atiya2021.toolbox.posterior`).
READINGS = ("twice", "moments", "once")
#: Columns that hold text even where every entry looks like a number.
TEXT = dict.fromkeys(
    ("seed", "status", "method", "count", "scheme", "equation", "verdict", "order", "switched"), str
)


class Known(NamedTuple):
    """A value with its standard error (0: exact, NaN: unknown), the degrees of freedom of that, and a status."""

    value: float = math.nan
    se: float = math.nan
    df: float = math.nan
    status: str = OK


def table(
    given: Rows,
    experiment: str,
    columns: Sequence[str],
    *,
    finite: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> pd.DataFrame:
    """The lines of an experiment that have data, as `needed` wants them."""
    lines, _ = given.available(experiment, dtype=TEXT)
    return needed(lines, columns, finite=finite, optional=optional)


def timed(
    given: Rows,
    experiment: str,
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    seconds: Sequence[str] = ("cpu_seconds",),
) -> pd.DataFrame:
    """The lines of an experiment whose rows have one line each, with columns of the timing beside them."""
    lines = table(given, experiment, columns, optional=optional)
    timing = given.timing(experiment).reindex(columns=["row", *seconds])
    return lines.merge(timing, on="row", how="left", validate="one_to_one")


def needed(
    lines: pd.DataFrame,
    columns: Sequence[str],
    *,
    finite: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> pd.DataFrame:
    """Lines with all of these columns; `optional` ones may be absent, and then have no entries.

    The entries of the columns `finite` must be finite, because a mean would pass over a gap in silence. A table without
    lines has all columns.
    """
    wanted = list(dict.fromkeys([*lines.columns, *columns, *optional]))
    if lines.empty:
        return lines.reindex(columns=wanted).astype(object)
    if missing := [name for name in columns if name not in lines]:
        file = lines["source"].iloc[0].rpartition(":")[0]
        raise ValueError(f"{file}: columns {missing} are missing; needed are {list(columns)}")
    for column in finite:
        refuse(lines[~np.isfinite(lines[column].astype(float))], column)
    return lines.reindex(columns=wanted)


def certified(reference: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The entries of the certified reference, as `needed` wants them."""
    entries = read_csv(Path(reference) / "certified" / "evidence.csv", dtype=TEXT)
    entries["source"] = [f"{REFERENCE}/evidence.csv:{line + 2}" for line in range(len(entries))]
    return needed(entries, columns)


def statuses(rows: pd.DataFrame) -> pd.Series:
    """Statuses of runs by one rule for all methods: a run of the proposed sampler needs `MIN_EFFECTIVE` effective eves.

    Rows that were kept before runs of that sampler told their eves have the status "ok" whatever these were; `eves_of`
    has what stands for them.
    """
    few = (rows["scheme"] == "bootstrap") & (rows["status"] == OK) & (eves_of(rows) < MIN_EFFECTIVE)
    return rows["status"].mask(few, NOT_CONVERGED)


def eves_of(rows: pd.DataFrame) -> pd.Series:
    """Effective eves of runs of the sampler; one over the squared standard error, where a run does not tell them.

    The genealogy gives both.
    """
    told = rows[EVES].astype(float)
    return told.fillna(rows["log_evidence_se"].astype(float) ** -2.0)


def by_eves(path: str, runs: pd.DataFrame, counted: Mapping[str, pd.Series]) -> Iterator[Row]:
    """How many runs there are of each kind, with fewer effective eves than each number of `FEW` and at all.

    ``largest`` is the largest number of eves of a run of the kind. A run without eves counts in none.
    """
    eves = eves_of(runs)
    source = join_sources(runs["source"])
    for kind, chosen in counted.items():
        own = eves[chosen & eves.notna()]
        yield estimate(f"{path}{kind}/all", len(own), source)
        for few in FEW:
            yield estimate(f"{path}{kind}/below-{few}", (own < few).sum(), source)
        if len(own):
            yield estimate(f"{path}{kind}/largest", own.max(), source)


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
    """One row of measures for each line; id and unit are templates. A line without a finite value never counts.

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


def estimates(
    path: str, found: Mapping[str, Known | float], source: str, *, scale: str = "linear"
) -> Iterator[Row]:
    """An estimate of every quantity that was found; the path stands before its name."""
    for quantity, value in found.items():
        yield estimate(f"{path}{quantity}", value, source, scale=scale)


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

    The name of a column alone is its entry in a group of one row. The template has the columns of `by` in braces, and
    ``{quantity}``. Without a source it is that of the rows.
    """
    by = [by] if isinstance(by, str) else by
    for key, group in frame.groupby(by, sort=False):
        where = source or join_sources(group["source"])
        for quantity, find in quantities.items():
            if isinstance(find, str):
                found = group[find].item()
            else:
                found = find(group) if callable(find) else group[find[0]].agg(find[1])
            name = template.format(**dict(zip(by, key, strict=True)), quantity=quantity)
            yield estimate(name, found, where, scale=scale)


def combine(*parts: Any) -> pd.DataFrame:
    """Tables, rows, and iterables of either below one another, as `recheck.judge.measures.as_measures` checks them."""
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
