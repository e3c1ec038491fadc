"""Studies from tables of numbers: what was printed and what was measured, each as one CSV file with few columns."""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from recheck.files import write_text
from recheck.format import checked
from recheck.measures import COLUMNS, as_measures
from recheck.published import (
    CELLS,
    STANDARD_ERROR,
    Margins,
    Protocol,
    Published,
    as_cells,
    read_published,
    read_text,
    values,
)
from recheck.rounding import RULES

#: Columns of a table of printed numbers: the first two are needed.
PRINTED = ["id", "printed", *(name for name in CELLS if name not in ("id", "printed")), "rounded"]
_CLAIMS = (
    "# Statements that can be checked: id, section, statement, and above, below or between.\n[]\n"
)
_READINGS = "# What the paper leaves unsaid: name, then statement, levels, kind (runs, design), applies.\n{}\n"


def completed(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Rows with some of the columns `PRINTED`, all text, with what is usual in the others.

    A number above zero is compared as a ratio, any other one as a difference; a bracket is a standard error; one unit
    with one run is behind a number. ValueError names a column that is unknown or missing.
    """
    if strange := sorted(set(frame.columns) - set(PRINTED)):
        raise ValueError(f"{where}: columns {strange} are unknown; known are {PRINTED}")
    if missing := sorted({"id", "printed"} - set(frame.columns)):
        raise ValueError(f"{where}: columns {missing} are missing; needed are id and printed")
    if frame.empty:
        raise ValueError(f"{where}: it has no rows; needed is one for each printed number")
    frame = frame.reindex(columns=PRINTED, fill_value="")
    positive = [value > 0 for value in values(frame, "printed", where)]
    usual = {
        "column": frame["id"],
        "bracket_kind": frame["bracket"].map(lambda text: STANDARD_ERROR if text else ""),
        "scale": pd.Series(positive, frame.index).map({True: "log", False: "linear"}),
        "units": "1",
        "runs": "1",
    }
    for name, value in usual.items():
        frame[name] = frame[name].where(frame[name] != "", value)
    return frame


def read_study(path: Path) -> Published:
    """A folder of published values, or one table of printed numbers, which has the usual protocol."""
    if path.is_dir():
        return read_published(path)
    return Published(as_cells(completed(_text(path), str(path)), str(path)))


def read_ours(path: Path, study: Published) -> pd.DataFrame:
    """Measures of a study from a CSV file with some columns of `recheck.measures.COLUMNS`.

    Only ``id`` and ``value`` are needed. Without units each row is one. The scale is that of the cell. ValueError says
    what is wrong with which column or row.
    """
    frame = _text(path)
    if missing := sorted({"id", "value"} - set(frame.columns)):
        raise ValueError(f"{path}: columns {missing} are missing; needed are id and value")
    if strange := sorted(set(frame.columns) - set(COLUMNS)):
        raise ValueError(f"{path}: columns {strange} are unknown; known are {COLUMNS}")
    for name in {"value", "se", "df"} & set(frame.columns):
        numbers = pd.to_numeric(frame[name].where(frame[name] != "", "nan"), errors="coerce")
        if (wrong := numbers.isna() & ~frame[name].isin(["", "nan"])).any():
            line = int(wrong.to_numpy().argmax())
            given = f"given was {frame[name].iloc[line]!r}"
            raise ValueError(f"{path}: line {line + 2}: {name}: needed is a number, {given}")
        frame[name] = numbers
    known = [*study.cells.index, *study.regions]
    strange = sorted({one for one in frame["id"] if one not in known and "between/" not in one})
    if strange:
        raise ValueError(f"{path}: ids {strange} are not printed; printed are {known}")
    lines = pd.Series([f"{path.name}:{line + 2}" for line in range(len(frame))], frame.index)
    usual = {
        "unit": lines if "run" not in frame else "",
        "scale": frame["id"].map(study.cells["scale"]).fillna("log"),
        "source": lines,
        "run": "0",
        "status": "ok",
    }
    for name, value in usual.items():
        if name not in frame:
            frame[name] = value
    return as_measures(frame)


def init(printed: Path, folder: Path, protocol: Protocol, rounded: str) -> list[str]:
    """Write the files of a study, and return their names; no file is overwritten.

    `rounded` is the rule of numbers that have none of their own, or empty. ValueError if a file is wrong, or there.
    """
    frame = completed(_text(printed), str(printed))
    if rounded not in (*RULES, ""):
        raise ValueError(f"rounding: needed is one of {list(RULES)}, given was {rounded!r}")
    frame["rounded"] = frame["rounded"].where(frame["rounded"] != "", rounded)
    as_cells(frame, str(printed))
    rules = protocol.model_dump(mode="json", include={"margins", "family_error", "power"})
    rules["history"] = []
    texts = {
        "cells.csv": frame.to_csv(index=False, lineterminator="\n"),
        "claims.yaml": _CLAIMS,
        "readings.yaml": _READINGS,
        "protocol.yaml": "# Settle these rules before the first run; list later changes under `history`.\n"
        + yaml.safe_dump(rules, sort_keys=False),
        "ours.csv": "id,unit,run,value\n",
    }
    if there := [name for name in texts if (folder / name).exists()]:
        raise ValueError(f"{folder}: {there} are there already; needed is a new folder")
    for name, text in texts.items():
        write_text(folder / name, text)
    return list(texts)


def protocol_of(margin: float, difference: float | None) -> Protocol:
    """The usual protocol with these margins."""
    given: dict[str, Any] = {"agree": margin, "informative": margin, "difference": difference}
    return Protocol(margins=checked(Margins, given, "margins"))


def _text(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    return read_text(path, comment="#")
