"""The published cells: Tables 1 to 4 of Atiya, Fayed and Abdel-Gawad (2021).

The registry is the four CSV files of ``data/published``; each row with a value is one cell with a
stable id.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pandas as pd

__all__ = [
    "CELLS",
    "METHODS",
    "PUBLISHED_ITERATIONS",
    "PUBLISHED_PROBLEMS",
    "PUBLISHED_RUNS",
    "PUBLISHED_SETS",
    "half_width",
    "read_registry",
]

#: Cells of each published table. The registry is counted against these numbers, so that no cell can
#: vanish.
CELLS: dict[int, int] = {1: 18, 2: 24, 3: 24, 4: 59}

#: The paper's name of a method, and ours: its Markov chains are those of the toolbox that it used.
METHODS: dict[str, str] = {
    "new": "orthant",
    "titsias": "control-variables",
    "ess": "ess-gpml",
    "hmc": "hmc-gpml",
}

#: Runs behind a published cell of Tables 2 and 3, by problem: what their brackets imply (see
#: ``findings.brackets``).
PUBLISHED_RUNS: dict[int, int] = {1: 20, 2: 20, 3: 20, 4: 15}

#: Problems that a published cell of Table 1 is an average over.
PUBLISHED_PROBLEMS = 50

#: Hyperparameter sets that a published cell of Table 4 is an average over: (alpha, beta) by number.
PUBLISHED_SETS: dict[int, tuple[float, float]] = {
    1: (5.0, 1.0),
    2: (5.0, 5.0),
    3: (3.0, 2.0),
    4: (0.5, 0.5),
    5: (3.0, 1.0),
    6: (0.5, 3.0),
}

#: Iterations of control variables in Experiment 4 (section 6.4), whose CPU time every method had.
PUBLISHED_ITERATIONS = 50_000

_COLUMNS = {
    1: ["problem", "dimension", "samples", "metric", "value", "bracket"],
    2: ["problem", "dimension", "samples", "metric", "value", "bracket"],
    3: ["problem", "dimension", "samples", "metric", "value", "bracket"],
    4: ["problem", "method", "metric", "value"],
}


def half_width(printed: str) -> float:
    """Half a unit in the last printed place.

    Parameters
    ----------
    printed : str
        A number as printed, such as ``"0.245"`` or ``"1.4e-3"``.

    Returns
    -------
    float
        The largest error that rounding to that place can have made.
    """
    exponent = Decimal(printed).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


def _identifier(table: int, row: pd.Series) -> str:
    if table == 1:
        return f"table1/N{row.dimension}/M{row.samples}"
    if table in (2, 3):
        return f"table{table}/problem{row.problem}/M{row.samples}"
    return f"table4/problem{row.problem}/{row.method}/{row.metric}"


def read_registry(folder: str | Path) -> pd.DataFrame:
    """All published cells, one row each, in the order of the files.

    Parameters
    ----------
    folder : path
        Folder that holds ``table1.csv`` to ``table4.csv``.

    Returns
    -------
    DataFrame
        Columns ``id``, ``table``, ``problem``, ``dimension`` (missing in Table 4), ``samples``
        (missing in Table 4), ``method`` (the paper's name), ``metric``, ``printed`` (text),
        ``published``, ``printed_bracket`` (text), ``published_bracket``, ``rounding`` (half a unit
        in the last printed place).

    Raises
    ------
    ValueError
        A file lacks a column, an id occurs twice, or a table does not have its number of cells.
    """
    frames = []
    for table, columns in _COLUMNS.items():
        path = Path(folder) / f"table{table}.csv"
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        missing = [name for name in columns if name not in frame]
        if missing:
            raise ValueError(f"{path}: columns {missing} are missing; needed are {columns}")
        frame = frame[frame["value"] != ""]
        if len(frame) != CELLS[table]:
            raise ValueError(
                f"{path} has {len(frame)} cells with a value; the published table has {CELLS[table]}"
            )
        absent = {"dimension": pd.NA, "samples": pd.NA, "bracket": "", "method": "new"}
        frame = frame.assign(**{k: v for k, v in absent.items() if k not in frame})
        frames.append(
            pd.DataFrame(
                {
                    "id": [_identifier(table, row) for _, row in frame.iterrows()],
                    "table": table,
                    "problem": frame["problem"].astype(int),
                    "dimension": frame["dimension"].astype("Int64"),
                    "samples": frame["samples"].astype("Int64"),
                    "method": frame["method"],
                    "metric": frame["metric"],
                    "printed": frame["value"],
                    "published": frame["value"].astype(float),
                    "printed_bracket": frame["bracket"],
                    "published_bracket": pd.to_numeric(frame["bracket"], errors="coerce"),
                    "rounding": frame["value"].map(half_width),
                }
            )
        )
    registry = pd.concat(frames, ignore_index=True)
    twice = registry["id"][registry["id"].duplicated()].tolist()
    if twice:
        raise ValueError(f"{folder}: cells {twice} occur more than once")
    return registry
