"""Studies from tables of numbers: what was printed and what was measured, as people have them."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from recheck.judge.declared import check_ids, checked
from recheck.judge.measures import COLUMNS, as_measures
from recheck.judge.printed import ABSENT, RULES, Printed, decimal, read, refuse, shortly
from recheck.judge.published import (
    BRACKETS,
    CELLS,
    Margins,
    Protocol,
    Published,
    as_cells,
    error_of,
    is_kind,
    read_published,
)
from recheck.judge.replay import LARGEST
from recheck.judge.sheets import Sheet, long, read_sheet

#: Columns of a long table of printed numbers: the first two are needed.
PRINTED = ["id", "printed", *(name for name in CELLS if name not in ("id", "printed")), "rounded"]
#: Columns of ours; ``sd`` between so many units, ``n``, stands for these units.
OURS = [*COLUMNS, "sd", "n"]
_CLAIMS = (
    "# Statements that can be checked: id, section, statement, and above, below or between.\n[]\n"
)
_READINGS = "# What the paper leaves unsaid: name, then statement, levels, kind (runs, design), applies.\n{}\n"
_LINES = 20  # of a message


@dataclass(frozen=True)
class Said:
    """What somebody says of a table that it does not say itself.

    `brackets` is the kind of what stands behind ± or in brackets, `units` and `runs` are behind every number that has
    none of its own, `rounded` is the rule of all numbers, `comma` stands before decimals, and the rest is for wide
    tables (`recheck.judge.sheets.long`).
    """

    brackets: str = ""
    units: int | None = None
    runs: int | None = None
    rounded: str = ""
    scale: str = ""
    comma: bool = False
    headers: int | None = None
    labels: int | None = None
    skip: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse what is no kind, no rule or no number; the message has the remedy."""
        if not is_kind(self.brackets):
            needed = f"{[one for one in BRACKETS if one]} or 'interval 95%'"
            raise ValueError(f"brackets: needed is one of {needed}, given was {self.brackets!r}")
        if self.rounded not in (*RULES, ""):
            raise ValueError(
                f"rounding: needed is one of {list(RULES)}, given was {self.rounded!r}"
            )
        for name in ("units", "runs"):
            if (given := getattr(self, name)) is not None and not 0 < given < 10**9:
                raise ValueError(f"{name}: needed is a positive integer, given was {given}")

    def long(self, sheet: Sheet) -> tuple[list[dict[str, str]], int]:
        """A wide table as rows with ids."""
        return long(
            sheet, headers=self.headers, labels=self.labels, skip=self.skip, comma=self.comma
        )


def table_of(path: str | Path, said: Said, value: str) -> tuple[pd.DataFrame, Sheet, int]:
    """A table with the columns ``id`` and `value`, all text, which is long in the file or made so.

    Beside it are the sheet and how many cells hold no number.
    """
    sheet = read_sheet(path, said.comma)
    head = [one.strip() for one in sheet.rows[0]]
    known = PRINTED if value == "printed" else OURS
    if "id" in head or value in head or len({*head} & {*known}) > 1:
        width = len(head)
        twice = sorted({one for one in head if head.count(one) > 1})
        if twice:
            raise ValueError(f"{sheet.name}: columns {twice} are there twice")
        for row, line in zip(sheet.rows[1:], sheet.lines[1:], strict=True):
            if len(row) > width:
                raise ValueError(
                    f"{sheet.name}: line {line}: {len(row)} fields, its first line has {width}; "
                    "quote a field that has the separator in it"
                )
        rows = [row + [""] * (width - len(row)) for row in sheet.rows[1:]]
        frame = pd.DataFrame(rows, columns=head, dtype=str)
        if missing := sorted({"id", value} - set(head)):
            raise ValueError(
                f"{sheet.name}: columns {missing} are missing; needed are id and {value}"
            )
        if strange := sorted(set(head) - set(known)):
            raise ValueError(f"{sheet.name}: columns {strange} are unknown; known are {known}")
        if frame.empty and value == "printed":
            raise ValueError(f"{sheet.name}: it has no rows; needed is one for each printed number")
        frame["line"] = [str(line) for line in sheet.lines[1:]]
        absent = frame[value].str.lower().isin(ABSENT - {""} if value == "printed" else ABSENT)
        if "status" in frame:
            absent &= frame["status"].isin(["", "ok"])
        return frame[~absent].reset_index(drop=True), sheet, int(absent.sum())
    found, absent = said.long(sheet)
    frame = pd.DataFrame(found).rename(columns={"printed": value})
    return frame, sheet, absent


def completed(frame: pd.DataFrame, where: str, said: Said) -> pd.DataFrame:
    """Rows with some of the columns `PRINTED`, all text, with what is usual in the others.

    A number above zero is compared as a ratio; any other one, and what is printed with a percent sign, as a difference.
    One unit with one run is behind a number. ValueError has a line for every number that is wrong, and asks what a
    bracket is, for there is no usual answer.
    """
    frame, wrong, numbers = frame.reindex(columns=PRINTED, fill_value=""), [], []
    for row in frame.to_dict("records"):
        try:
            numbers.append(read(row["printed"], said.comma) or Printed("nan"))
            if numbers[-1].digits == "nan":
                raise ValueError("needed is a number such as 0.029 or 1.4e-3; given was ''")
        except ValueError as error:
            numbers.append(Printed("1"))
            wrong.append(f"{where}: cell {row['id']}: printed: {error}")
    refuse(wrong)
    inside = [bool(one.bracket) for one in numbers]
    frame["bracket_kind"] = frame["bracket_kind"].where(
        (frame["bracket_kind"] != "") | ((frame["bracket"] == "") & ~np.array(inside)),
        said.brackets,
    )
    unsaid = ((frame["bracket"] != "") | np.array(inside)) & (frame["bracket_kind"] == "")
    if unsaid.any():
        row = frame[unsaid].iloc[0]
        shown = f"{row['printed']} {row['bracket']}".strip()
        raise ValueError(
            f"{where}: {int(unsaid.sum())} numbers have a bracket, the first is {shortly(shown)} ({row['id']}). "
            "What is it? Type --brackets 'standard deviation' (between data sets or seeds; most brackets are that), "
            "--brackets 'standard error' or --brackets 'interval 95%', and over how many: --units 5"
        )
    shares = ["percent" in one.notes for one in numbers]
    positive = [
        decimal(one.digits) > 0 and not share for one, share in zip(numbers, shares, strict=True)
    ]
    usual: dict[str, Any] = {
        "column": frame["id"],
        "scale": said.scale or pd.Series(positive, frame.index).map({True: "log", False: "linear"}),
        "units": str(said.units or 1),
        "runs": str(said.runs or 1),
        "rounded": said.rounded,
    }
    for name, value in usual.items():
        frame[name] = frame[name].where(frame[name] != "", value)
    return frame


def read_study(path: str | Path, said: Said | None = None) -> Published:
    """A folder of published values, or one table of printed numbers, which has the usual protocol and its spreads."""
    said = said or Said()
    if str(path) != "-" and Path(path).is_dir():
        return read_published(path)
    frame, sheet, _ = table_of(path, said, "printed")
    cells = as_cells(completed(frame, sheet.name, said), sheet.name, said.comma)
    return Published(cells, protocol=Protocol(spreads=True))


def read_ours(
    paths: str | Path | Sequence[str | Path], study: Published, said: Said | None = None
) -> tuple[pd.DataFrame, Published, list[str]]:
    """Measures of a study from tables, the study as they are to be compared, and what was left out or understood.

    A long table needs the columns ``id`` and ``value``; of several tables each is a run. Without data sets (``unit``)
    each row or run is a unit, and so is each published run. The scale is that of the cell. ValueError has a line for
    every row that is wrong.
    """
    said = said or Said()
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    frames, notes, named = [], list[str](), False
    for place, path in enumerate(given, 1):
        frame, sheet, absent = table_of(path, said, "value")
        named |= "id" in sheet.rows[0]
        if absent:
            notes.append(f"{sheet.name}: {absent} cells hold no number, and are left out")
        short = Path(sheet.name).name
        frame["source"] = (
            [f"{short}:{line}" for line in frame.pop("line")]
            if "source" not in frame
            else frame["source"]
        )
        frame = frame.drop(columns=[name for name in ("line",) if name in frame])
        if len(given) > 1:
            frame["unit"] = frame.get("unit", f"table {place}")
        frames.append(_numbers(frame, sheet.name, said))
    frame = pd.concat(frames, ignore_index=True)
    known = {*study.cells.index, *study.regions}
    check_ids(frame["id"], str(given[0]))
    strange = [
        one for one in dict.fromkeys(frame["id"]) if one not in known and "between/" not in one
    ]
    if strange and (named or len(strange) == frame["id"].nunique()):
        printed = [*study.cells.index, *study.regions]
        near = difflib.get_close_matches(strange[0], printed, 1)
        close = f"; close to the first is {near[0]!r}" if near else ""
        raise ValueError(
            f"{given[0]}: ids {strange[:_LINES]} are not printed; printed are {printed[:_LINES]}{close}"
        )
    if strange:
        notes.append(
            f"{len(strange)} ids of ours are not printed, and are left out: {', '.join(strange[:5])}"
        )
        frame = frame[~frame["id"].isin(strange)]
    frame = _summaries(frame, study)
    if "unit" not in frame and len(frame):
        frame["unit"] = frame["run"].map("run {}".format) if "run" in frame else frame["source"]
        if "run" in frame:
            frame["run"] = "0"
            notes.append("no data sets are named (unit): each run is a unit, on both sides")
        study = _runs_as_units(study)
    usual = {
        "unit": "",
        "scale": frame["id"].map(study.cells["scale"]).fillna("log"),
        "run": "0",
        "status": "ok",
    }
    for name, value in usual.items():
        if name not in frame:
            frame[name] = value
    return as_measures(frame), study, notes


def _runs_as_units(study: Published) -> Published:
    """The study with runs on one data set as units: where ours name no data sets, the runs are what varies."""
    cells = study.cells.copy()
    several = (cells["units"] == 1) & (cells["runs"] > 1)
    cells.loc[several, "units"] = cells.loc[several, "runs"]
    cells.loc[several, "runs"] = 1
    return replace(study, cells=cells)


def _numbers(frame: pd.DataFrame, name: str, said: Said) -> pd.DataFrame:
    """Text of numbers read: value, and what stands behind ±, with a line for each that is wrong."""
    wrong: list[str] = []
    frame = frame.copy()
    inside: dict[int, float] = {}
    for column in ("value", "se", "df", "sd", "n"):
        if column not in frame:
            continue
        values = []
        for place, text in enumerate(frame[column]):
            values.append(np.nan)
            low = text.strip().lower()
            if low in ABSENT or (column == "df" and low == "inf"):
                values[-1] = np.inf if low == "inf" else np.nan
                continue
            try:
                found = read(text, said.comma)
                if found is None or found.relation or (found.bracket and column != "value"):
                    raise ValueError(f"needed is a number, given was {shortly(text)}")
                values[-1] = _float(found.digits, text)
                if found.bracket:
                    inside[place] = _float(found.bracket, text)
            except ValueError as error:
                where = (
                    frame["source"].iloc[place] if "source" in frame else f"{name}: row {place + 1}"
                )
                line = str(where).rpartition(":")[2]
                wrong.append(f"{name}: line {line}: {column}: {error}")
        frame[column] = pd.Series(values, frame.index, dtype=float)
    refuse(wrong)
    if inside:
        if not said.brackets or not said.units:
            raise ValueError(
                f"{name}: {len(inside)} values of ours have a bracket: what is it, and over how many? Type "
                "--our-brackets 'standard deviation' --our-units 5"
            )
        errors = np.array([inside.get(place, np.nan) for place in range(len(frame))])
        frame["sd"] = error_of(errors, said.brackets, said.units) * said.units**0.5
        frame["n"] = float(said.units)
    return frame


def _float(digits: str, text: str) -> float:
    value = float(digits)
    if not abs(value) <= LARGEST:
        raise ValueError(f"needed is a number of at most {LARGEST:g}, given was {shortly(text)}")
    return value


def _summaries(frame: pd.DataFrame, study: Published) -> pd.DataFrame:
    """Rows that are means, with ``sd`` between ``n`` units, as so many units with that mean and that deviation."""
    if not {"sd", "n"} & set(frame.columns):
        return frame
    if not {"sd", "n"} <= set(frame.columns):
        raise ValueError(
            "ours: sd and n: needed are both, the deviation between units and their number"
        )
    rows = []
    for row in frame.to_dict("records"):
        n, sd = row.pop("n"), row.pop("sd")
        if not sd >= 0:
            rows.append(row)
            continue
        if not (2 <= n < 10_000 and n == int(n)):
            raise ValueError(f"ours: {row['id']}: n: needed are 2 to 9999 units, given was {n:g}")
        places = (np.arange(int(n)) + 0.5) / n
        shape = np.log(places / (1 - places))
        shape = (shape - shape.mean()) / shape.std(ddof=1)
        logs = study.cells["scale"].get(row["id"]) == "log" and row["value"] > 0
        values = row["value"] + sd * shape
        if logs and (values <= 0).any():
            values = np.exp(shape * np.sqrt(np.log1p((sd / row["value"]) ** 2)))
            values *= row["value"] / values.mean()
        rows += [row | {"value": value, "unit": f"unit {k}"} for k, value in enumerate(values, 1)]
    return pd.DataFrame(rows)


def init(printed: str | Path, folder: Path, protocol: Protocol, said: Said) -> list[str]:
    """Write the files of a study, and return their names; no file is overwritten.

    ValueError if a table is wrong, or a file is there.
    """
    raw, sheet, _ = table_of(printed, said, "printed")
    frame = completed(raw, sheet.name, said)
    as_cells(frame, sheet.name, said.comma)
    if said.comma:  # the files have a point
        for name in ("printed", "bracket"):
            frame[name] = [str(read(one, True) or "") if one else "" for one in frame[name]]
    rules = protocol.model_dump(
        mode="json", include={"margins", "family_error", "power", "spreads"}
    )
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
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return list(texts)


def protocol_of(margin: float, difference: float | None, **more: Any) -> Protocol:
    """The usual protocol with these margins."""
    given: dict[str, Any] = {"agree": margin, "informative": margin, "difference": difference}
    return Protocol(margins=checked(Margins, given, "margins"), **more)


def with_rules(study: Published, given: Mapping[str, Any]) -> Published:
    """A study with margins, or a distribution, that the command was given."""
    margins = {
        name: value for name, value in given.items() if name in Margins.model_fields and value
    }
    if "agree" in margins:
        margins["informative"] = margins["agree"]
    rules = {**study.protocol.margins.model_dump(exclude_unset=True), **margins}
    update: dict[str, Any] = {"margins": checked(Margins, rules, "margins")}
    if given.get("distribution"):
        update["distribution"] = given["distribution"]
    return replace(study, protocol=study.protocol.model_copy(update=update))
