"""Rows: one run of one method on one unit, settings and a seed in, results out.

An experiment is a module with two public functions. ``plan(config)`` returns a list with a line a row: its name, its
settings and its seed. ``run(row, inputs)`` returns the `Result` of one row; it depends on its arguments alone. A job of
the workflow runs some rows (`studies.common.blocks`), of one experiment or of several. So neither the number of jobs
nor their order changes a byte, and more data sets are more lines of a plan, which leave the others as they are.

This module and all plans import nothing heavy: the workflow reads them before any job starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

#: A line of a plan: ``row``, its name, unique in the experiment; ``seconds``, about how many CPU seconds it takes;
#: ``megabytes``, if it takes more than most; ``modules``, what its numbers come from beside the experiment's own module
#: (`studies.common.code`); and whatever else `run` needs.
Row = Mapping[str, Any]
#: Arrays by the name of the input that they come from.
Inputs = Mapping[str, Mapping[str, "np.ndarray"]]
#: A line of a table of results.
Line = dict[str, Any]

#: What a line says where the raw data could not be had.
NO_DATA = "data not available"
#: Entries of a plan that say how a row runs and not what it is.
MECHANICS = ("seconds", "megabytes", "modules")
#: CPU seconds of a row whose plan does not say: most of them take less.
SECONDS = 0.5
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


class Record(NamedTuple):
    """What a row found, as it is kept: lines of texts, as a CSV file has them, and arrays.

    Attributes
    ----------
    row : str
        Its name.
    made : str
        A digest of what it was made from: settings, code, inputs.
    lines, timing : list of dict
    arrays : mapping
    """

    row: str
    made: str
    lines: list[dict[str, str]]
    timing: list[dict[str, str]]
    arrays: Mapping[str, np.ndarray]


class Table(NamedTuple):
    """Results of several rows. Arrays are stacked by row; ``<name>/rows`` are the names of these rows."""

    rows: pd.DataFrame
    timing: pd.DataFrame
    arrays: dict[str, np.ndarray]


def planned(lines: Iterable[Line]) -> list[Line]:
    """Return a plan of lines.

    Raises
    ------
    ValueError
        If two rows have one name.
    """
    plan, known, twice = list(lines), set(), []
    for line in plan:
        if line["row"] in known:
            twice.append(line["row"])
        known.add(line["row"])
    if twice:
        raise ValueError(
            f"row must be another name in each line of a plan; twice are {sorted(twice)[:3]}"
        )
    return plan


def settings(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return what makes each row of a plan what it is, by its name: seed and options, but not how it is run."""
    return {
        row["row"]: {key: value for key, value in row.items() if key not in MECHANICS}
        for row in rows
    }


def run_row(
    run: Callable[[Row, Inputs], Result],
    row: Row,
    inputs: Inputs,
    made: str = "",
    lost: bool | None = None,
) -> Record:
    """Run a row with one thread.

    Where raw data could not be had, which is what ``lost`` says, or else that an input has no arrays, its one line says
    so.
    """
    from gpcmc._threads import one_thread

    with one_thread():
        start = time.process_time()
        lost = any(not arrays for arrays in inputs.values()) if lost is None else lost
        found = Result([_without_data(row)]) if lost else run(row, inputs)
        seconds = time.process_time() - start
    timing = [{"cpu_seconds": seconds}] if found.timing is None else found.timing
    name = {"row": row["row"]}
    lines, timing = ([texts(name | line) for line in some] for some in (found.lines, timing))
    return Record(row["row"], made, lines, timing, dict(found.arrays))


def _without_data(row: Row) -> Line:
    kept = {
        key: value
        for key, value in row.items()
        if key not in ("row", *MECHANICS) and isinstance(value, str | int | float)
    }
    return kept | {"status": NO_DATA}


def texts(line: Line) -> dict[str, str]:
    """Return a line as a CSV file has it: floats in full precision, nothing for None and for what is not a number."""
    # only a number that is none differs from itself
    return {
        key: "" if value is None or value != value else str(value) for key, value in line.items()
    }


def table_of(records: Iterable[Record]) -> Table:
    """Put records together, in their order; every entry is a text."""
    records = list(records)
    stacks: dict[str, list[tuple[str, np.ndarray]]] = {}
    for record in records:
        for name, array in record.arrays.items():
            stacks.setdefault(name, []).append((record.row, array))
    lines, timing = (
        _frame([line for record in records for line in getattr(record, kind)])
        for kind in ("lines", "timing")
    )
    return Table(lines, timing, stacked(stacks))


def _frame(lines: list[dict[str, str]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(lines or None, columns=None if lines else ["row"], dtype=object).fillna("")


def stacked(stacks: Mapping[str, Sequence[tuple[str, np.ndarray]]]) -> dict[str, np.ndarray]:
    """Return arrays stacked by row, with the names of their rows."""
    import numpy as np

    found = {}
    for name, own in sorted(stacks.items()):
        found[name] = np.stack([array for _, array in own])
        found[f"{name}/rows"] = np.array([row for row, _ in own])
    return found


def unstacked(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Return the arrays of each row, which `stacked` put together."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in (name for name in arrays if f"{name}/rows" in arrays):
        for row, array in zip(arrays[f"{name}/rows"].tolist(), arrays[name], strict=True):
            found.setdefault(row, {})[name] = array
    return found


def records_of(table: Table, made: Mapping[str, str]) -> list[Record]:
    """Return the records of those rows of a table that have a digest of what they were made from.

    The table has texts. Each line has all columns of the table, as it had among the others.
    """
    arrays = unstacked(table.arrays)
    found = {name: Record(name, made[name], [], [], arrays.get(name, {})) for name in made}
    for frame, kind in ((table.rows, "lines"), (table.timing, "timing")):
        names = list(frame)
        for values in frame.itertuples(index=False, name=None):
            line = dict(zip(names, values, strict=True))
            if line["row"] in found:
                getattr(found[line["row"]], kind).append(line)
    return list(found.values())


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
