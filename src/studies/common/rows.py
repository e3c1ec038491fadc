"""Rows: one run of one method on one unit, settings and a seed in, results out.

An experiment is a module with two public functions. ``plan(config)`` returns a table with a line a row: its name, the
wildcards of the job that runs it, its settings and its seed. ``run(row, inputs)`` returns the `Result` of one row; it
depends on its arguments alone. A job of the workflow runs some rows of a plan (`run_rows`) and writes a block of them;
`gather` puts the blocks of an experiment together in the order of the plan. So neither the number of jobs nor their
order changes a byte, and more data sets are more lines of a plan, which leave the others as they are.

This module and all plans import nothing heavy: the workflow reads them before any job starts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

if TYPE_CHECKING:
    import numpy as np

#: A line of a plan: ``row``, its name, unique in the experiment; ``block``, the job that runs it, among those with its
#: other wildcards; ``modules``, what its numbers come from beside the experiment's own module (`studies.common.code`);
#: and whatever else `run` needs.
Row = Mapping[str, Any]
#: Arrays by the name of the input that they come from.
Inputs = Mapping[str, Mapping[str, "np.ndarray"]]
#: A line of a table of results.
Line = dict[str, Any]

#: What a line says where the raw data could not be had.
NO_DATA = "data not available"
#: CPU seconds of a job, about: long beside its start-up, and short beside the ten minutes that no job exceeds.
_LIMIT = 240.0
#: Entries of a plan that say how a row runs and not what it is.
MECHANICS = ("block", "modules")
#: Options of `recheck.record.files.read_csv` with which every entry is the text that it is.
TEXT: dict[str, Any] = {"dtype": str, "keep_default_na": False}


class Result(NamedTuple):
    """What a row found.

    Attributes
    ----------
    lines : list of dict
        Lines of the table of results; the name of the row is put in front of each.
    arrays : mapping of str to array
        Arrays of one name have one shape and type in all rows of an experiment.
    timing : list of dict or None
        Lines with ``cpu_seconds``, where a part of the row's time is the method's; None: all of it is.
    """

    lines: list[Line]
    arrays: Mapping[str, np.ndarray] = {}
    timing: list[Line] | None = None


class Table(NamedTuple):
    """Results of several rows. Arrays are stacked by row; ``<name>/rows`` are the names of these rows."""

    rows: pd.DataFrame
    timing: pd.DataFrame
    arrays: dict[str, np.ndarray]


def planned(lines: Iterable[Line]) -> pd.DataFrame:
    """Return a plan of lines; ``block`` is 0 where they do not say.

    Raises
    ------
    ValueError
        If two rows have one name.
    """
    frame = pd.DataFrame([{"block": 0, **line} for line in lines], dtype=object)
    if frame.empty:
        return pd.DataFrame(columns=["row", "block"], dtype=object)
    if twice := sorted(frame.loc[frame["row"].duplicated(), "row"]):
        raise ValueError(f"row must be another name in each line of a plan; twice are {twice[:3]}")
    return frame


def block(index: int, seconds: float) -> int:
    """Return the job of the index-th of runs that take about so many CPU seconds each.

    It depends on nothing else, so that more runs leave the jobs of the others as they are, but for the last one.
    """
    return index // max(1, int(_LIMIT // seconds))


def records(plan: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the lines of a plan as dictionaries, without entries that a line does not have."""
    return [
        {key: value for key, value in line.items() if not _absent(value)}
        for line in plan.to_dict("records")
    ]


def _absent(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def run_rows(run: Callable[[Row, Inputs], Result], rows: Iterable[Row], inputs: Inputs) -> Table:
    """Run rows one after the other, with one thread, and put their results together.

    Where an input has no arrays, because raw data could not be had, the one line of each row says so.
    """
    from gpcmc._threads import one_thread

    lost = [name for name, arrays in inputs.items() if not arrays]
    lines, timing = [], []
    arrays: dict[str, list[tuple[str, np.ndarray]]] = {}
    with one_thread():
        for row in rows:
            start = time.process_time()
            found = Result([_without_data(row)]) if lost else run(row, inputs)
            seconds = time.process_time() - start
            name = {"row": row["row"]}
            lines += [name | line for line in found.lines]
            own = [{"cpu_seconds": seconds}] if found.timing is None else found.timing
            timing += [name | line for line in own]
            for key, array in found.arrays.items():
                arrays.setdefault(key, []).append((row["row"], array))
    return Table(_table(lines), _table(timing), _stacked(arrays))


def _without_data(row: Row) -> Line:
    kept = {
        key: value
        for key, value in row.items()
        if key not in ("row", *MECHANICS) and isinstance(value, str | int | float)
    }
    return kept | {"status": NO_DATA}


def _table(lines: list[Line]) -> pd.DataFrame:
    # as objects, so that a number is written the same whatever stands in the lines above and below it
    return pd.DataFrame(lines or None, columns=None if lines else ["row"], dtype=object)


def _stacked(arrays: Mapping[str, list[tuple[str, np.ndarray]]]) -> dict[str, np.ndarray]:
    import numpy as np

    found = {}
    for key, own in arrays.items():
        found[key] = np.stack([array for _, array in own])
        found[f"{key}/rows"] = np.array([row for row, _ in own])
    return found


def write_table(stem: str | Path, table: Table) -> None:
    """Write ``<stem>.csv``, ``<stem>_timing.csv`` and ``<stem>.npz``, with their digests."""
    from recheck.record.files import write_arrays, write_csv

    write_csv(f"{stem}.csv", table.rows)
    write_csv(f"{stem}_timing.csv", table.timing)
    write_arrays(f"{stem}.npz", table.arrays)


def read_table(stem: str | Path) -> Table:
    """Read what `write_table` wrote, every entry as the text that it is."""
    from recheck.record.files import read_arrays, read_csv

    rows, timing = (read_csv(f"{stem}{end}.csv", **TEXT) for end in ("", "_timing"))
    return Table(rows, timing, read_arrays(f"{stem}.npz"))


def gather(tables: Sequence[Table], order: Sequence[str]) -> Table:
    """Put blocks of an experiment together, rows in the order that a plan gives to their names."""
    places = {name: k for k, name in enumerate(order)}
    rows, timing = (
        _in_order([frame.replace("", pd.NA) for frame in frames], places)
        for frames in ([table.rows for table in tables], [table.timing for table in tables])
    )
    stacks: dict[str, list[tuple[str, np.ndarray]]] = {}
    for table in tables:
        for key in (key for key in table.arrays if f"{key}/rows" in table.arrays):
            names = table.arrays[f"{key}/rows"]
            stacks.setdefault(key, []).extend(zip(names, table.arrays[key], strict=True))
    ordered = {key: sorted(own, key=lambda one: places[one[0]]) for key, own in stacks.items()}
    return Table(rows, timing, _stacked(dict(sorted(ordered.items()))))


def _in_order(frames: list[pd.DataFrame], places: Mapping[str, int]) -> pd.DataFrame:
    # the order of the columns is that of the blocks
    frames = sorted(frames, key=lambda one: min(map(places.__getitem__, one["row"]), default=0))
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"row": []})
    place = frame["row"].map(places)
    return frame.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def part_of(table: Table, names: Sequence[str]) -> Table:
    """Return the results of some rows of a table, all columns kept."""
    import numpy as np

    rows, timing = (frame[frame["row"].isin(names)] for frame in (table.rows, table.timing))
    arrays = {}
    for key in (key for key in table.arrays if f"{key}/rows" in table.arrays):
        mine = np.isin(table.arrays[f"{key}/rows"], list(names))
        if mine.any():
            arrays[key] = table.arrays[key][mine]
            arrays[f"{key}/rows"] = table.arrays[f"{key}/rows"][mine]
    return Table(rows, timing, arrays)
