"""Negative controls: faults that are planted, which the audit has to find where it has the power to.

Each control is tried in every place that it can be put. A trial is killed if the audit goes red on it: if a
cell or column that it touches is called discrepant, which was not so before, or if the audit refuses the fault
by name. ``expected`` is the mean probability of that, by the simulation of `gpcmc.audit.compare.Power`. A
trial whose probability is above `SURE` is ``required``, unless it touches a cell or column that is
discrepant without it: what such a fault adds, or takes away, the simulation does not know. ``missed`` are those that
are required and survive.

Few trials are that sure. So the last row, ``all``, counts the kills of every planted fault whose chance the simulation
knows, and ``p_few`` is the share of simulated audits that kill as few of them or fewer: below `TOO_FEW` the audit
finds less than it should, whichever faults these are.

raised by 30 %, lowered by 30 %
    of one published cell, one column, or a whole table.
columns swapped
    two columns of one published table, in every pair.
wrong tail, biased truth
    runs that are wrong on purpose (`gpcmc.experiments.broken`) in the place of ours.
sound
    runs of the same kind without a fault, which have to survive: red is a false alarm and no kill.
dropped
    one published cell, or one statement, in turn; these are counted apart (`dropped`).

Beside the kill rate of a table stand the smallest alterations that the audit finds with a probability of 80 %:
of its typical cell (median), of its typical column, and of all of its cells at once.
"""

from __future__ import annotations

import itertools
import math
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpcmc.audit.claims import Claim, check_claims_complete
from gpcmc.audit.compare import DRAWS, POWER, Audit, Comparisons, Power, audit
from gpcmc.audit.explanations import STRICT_SCALE
from gpcmc.audit.published import CELLS, read_registry
from gpcmc.audit.results import ResultFiles
from gpcmc.experiments.broken import DIMENSION, KINDS, PROBLEM, SAMPLES

__all__ = [
    "COLUMNS",
    "ControlError",
    "check_controls",
    "controls",
    "dropped",
    "false_alarms",
    "line",
    "missed_faults",
    "of_known_chance",
    "planted",
]

#: A trial that the audit finds with this probability has to be found.
SURE = 0.999
#: Probability at which the number of faults that are found is called too small.
TOO_FEW = 0.01
ALTERATION = 1.3

#: The smallest alterations that are found, of each kind.
_SMALLEST = ["smallest_cell", "smallest_column", "smallest_table"]

COLUMNS = [
    "control",
    "table",
    "place",
    "trials",
    "killed",
    "kill_rate",
    "expected",
    "required",
    "missed",
    "p_few",
    *_SMALLEST,
    "verdict",
]


_SOUND = "sound"
_DROPPED = "dropped"
_ALL = "all"
_FALSE_ALARM = "false alarm"


class ControlError(RuntimeError):
    """A planted fault that should have been found was not, or sound runs were called discrepant."""


class _Trial(NamedTuple):
    """Whether a fault was found, in which simulated audits it is, and whether nothing it touches was red before."""

    killed: bool
    found: np.ndarray = np.ones(1, dtype=bool)
    clean: bool = True

    @property
    def chance(self) -> float:
        return float(self.found.mean())


class _Control(NamedTuple):
    """All trials of one control in one kind of place of a table."""

    control: str
    table: int | str
    place: str
    trials: list[_Trial]


def controls(
    registry: pd.DataFrame,
    files: ResultFiles,
    published: str | Path,
    claims: list[Claim],
    judged: pd.DataFrame,
) -> pd.DataFrame:
    """Try every control.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        What was run, ``broken`` among them.
    published : path
        The folder of the published tables.
    claims : list of Claim
        `read_claims`.
    judged : DataFrame
        `judge_claims`.

    Returns
    -------
    DataFrame
        One row a control, table and place, with the columns `COLUMNS`; smallest alterations are factors, infinite
        where nothing is compared. ``verdict``: "killed", "killed in part", "no power" if none was killed and none had a
        chance of `POWER`, "survived" if one had, "missed", "not run"; of sound runs "survives" or "false alarm"; of the
        last row, of all faults, "as expected" or "too few".
    """
    whole = audit(registry, files)
    compared = whole.compared
    power = Power(compared)
    red = _red(compared)
    faults = [
        _Control(
            control,
            table,
            place,
            [
                _Trial(
                    _killed(compared, red, shift),
                    power.found(shift),
                    red.isdisjoint(_touched(compared, shift)),
                )
                for shift in shifts
            ],
        )
        for table in CELLS
        for control, place, shifts in _alterations(compared, table)
    ]
    faults += _broken(registry, files)
    left_out = [_Control(_DROPPED, t, "one cell", _dropped(published, t)) for t in CELLS]
    lost = [_Trial(_lost(claims, judged, place)) for place in range(len(claims))]
    left_out.append(_Control(_DROPPED, "claims", "one statement", lost))
    smallest: dict[int | str, dict[str, float]] = {
        table: _smallest(whole, power, table) for table in CELLS
    }
    rows = [_row(*one) | smallest.get(one.table, {}) for one in faults + left_out]
    return pd.DataFrame([*rows, _all(faults)], columns=COLUMNS)


def _all(faults: Sequence[_Control]) -> dict[str, object]:
    """The row of all planted faults whose chances the simulation knows, with the test on how many are killed."""
    tried = itertools.chain(*(one.trials for one in faults if one.control != _SOUND))
    trials = [trial for trial in tried if trial.clean]
    row = _row(_ALL, _ALL, "what is not discrepant", trials)
    if not trials:
        return row
    drawn = np.sum([trial.found for trial in trials], axis=0)
    p_few = float((1 + (drawn <= row["killed"]).sum()) / (DRAWS + 1))
    return row | {"p_few": p_few, "verdict": "too few" if p_few < TOO_FEW else "as expected"}


def _row(control: str, table: int | str, place: str, trials: Sequence[_Trial]) -> dict[str, Any]:
    killed = sum(trial.killed for trial in trials)
    required = [trial.killed for trial in trials if trial.clean and trial.chance >= SURE]
    missed = len(required) - sum(required)
    n = len(trials)
    if not n:
        verdict = "not run"
    elif control == _SOUND:  # there is no fault to kill
        verdict = "survives" if all(trial.clean for trial in trials) else _FALSE_ALARM
    elif missed:
        verdict = "missed"
    elif killed:
        verdict = "killed" if killed == n else "killed in part"
    else:
        verdict = "survived" if any(trial.chance >= POWER for trial in trials) else "no power"
    return {
        "control": control,
        "table": table,
        "place": place,
        "trials": n,
        "killed": killed,
        "kill_rate": killed / n if n and control != _SOUND else math.nan,
        "expected": float(np.mean([trial.chance for trial in trials])) if n else math.nan,
        "required": len(required),
        "missed": missed,
        "p_few": math.nan,
        **dict.fromkeys(_SMALLEST, math.nan),
        "verdict": verdict,
    }


def _smallest(whole: Audit, power: Power, table: int) -> dict[str, float]:
    cells = whole.cells[whole.cells["table"] == table]["detectable"].dropna()
    columns = whole.columns[whole.columns["table"] == table]["detectable"].dropna()
    inside = (whole.compared.cells["table"] == table).to_numpy(dtype=bool)
    return {
        "smallest_cell": float(cells.median()) if len(cells) else math.inf,
        "smallest_column": float(columns.median()) if len(columns) else math.inf,
        "smallest_table": power.smallest(inside),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Published values altered


def _alterations(compared: Comparisons, table: int) -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """Controls of one table as changes of the logarithms of its published values."""
    cells = compared.cells
    inside = (cells["table"] == table).to_numpy(dtype=bool)
    columns = list(dict.fromkeys(cells["column"][inside]))
    masks = {
        "one cell": [np.arange(len(cells)) == place for place in np.flatnonzero(inside)],
        "one column": [(cells["column"] == name).to_numpy(dtype=bool) for name in columns],
        "whole table": [inside] if inside.any() else [],
    }
    for control, factor in (("raised by 30 %", ALTERATION), ("lowered by 30 %", 1 / ALTERATION)):
        for place, chosen in masks.items():
            yield control, place, [np.where(mask, math.log(factor), 0.0) for mask in chosen]
    pairs = itertools.combinations(columns, 2)
    yield "columns swapped", "two columns", [_swapped(cells, *pair) for pair in pairs]


def _swapped(cells: pd.DataFrame, first: str, second: str) -> np.ndarray:
    """Each compared value of two columns changed for the other's of the same row, where both are compared."""
    rows = cells["id"].map(_row_of)
    values = {
        name: pd.Series(
            cells["published"][cells["column"] == name].to_numpy(), rows[cells["column"] == name]
        )
        for name in (first, second)
    }
    shift = np.zeros(len(cells))
    for name, other in ((first, second), (second, first)):
        mine = (cells["column"] == name).to_numpy(dtype=bool)
        theirs = rows[mine].map(values[other]).to_numpy(dtype=float)
        change = np.log(theirs / cells["published"][mine].to_numpy(dtype=float))
        shift[mine] = np.nan_to_num(change)
    return shift


def _row_of(name: str) -> str:
    """The row of its table that a cell is in: a sample size, or a problem of Table 4."""
    found = re.search(r"problem\d+" if name.startswith("table4") else r"M\d+", name)
    return found.group() if found else name


def _red(compared: Comparisons) -> set[str]:
    judged = compared.judged()
    return set(judged["id"][judged["verdict"] == "discrepant"])


def _touched(compared: Comparisons, shift: np.ndarray) -> set[str]:
    """The cells that a shift alters, and their columns."""
    return set(compared.cells["id"][shift != 0]) | set(compared.cells["column"][shift != 0])


def _killed(compared: Comparisons, before: set[str], shift: np.ndarray) -> bool:
    """Whether something that a shift touches is discrepant now and was not before."""
    return bool((_red(compared.shifted(shift)) - before) & _touched(compared, shift))


# ---------------------------------------------------------------------------------------------------------------------
# Cells and statements dropped


def _dropped(published: str | Path, table: int) -> list[_Trial]:
    """Whether the registry refuses a table without one of its cells, each in turn."""
    source = Path(published) / f"table{table}.csv"
    lines = source.read_text(encoding="utf-8").splitlines()
    filled = [place for place, line in enumerate(lines) if place and not line.endswith(",")]
    trials = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in sorted(Path(published).glob("table*.csv")):
            shutil.copy(path, folder)
        for place in filled:
            kept = [line for other, line in enumerate(lines) if other != place]
            (folder / source.name).write_text("\n".join(kept) + "\n", encoding="utf-8")
            try:
                read_registry(folder)
                trials.append(_Trial(False))
            except ValueError:
                trials.append(_Trial(True))
    return trials


def _lost(claims: list[Claim], judged: pd.DataFrame, place: int) -> bool:
    try:
        check_claims_complete(judged.drop(index=judged.index[place]), claims)
    except ValueError:
        return True
    return False


# ---------------------------------------------------------------------------------------------------------------------
# Broken runs


def _broken(registry: pd.DataFrame, files: ResultFiles) -> list[_Control]:
    """Broken runs in the place of ours; how far they are off is measured against the sound ones."""
    cells = {
        1: f"table1/N{DIMENSION}/M{SAMPLES}",
        2: f"table2/problem{PROBLEM}/M{SAMPLES}",
        3: f"table3/problem{PROBLEM}/M{SAMPLES}",
    }
    audits = {kind: audit(registry, _with(files, kind)) for kind in KINDS if files.broken}
    found = []
    for kind, (table, name) in itertools.product(KINDS, cells.items()):
        trials = []
        if kind in audits:
            sound, one = (audits[which].cells.set_index("id") for which in (_SOUND, kind))
            before, red = (cells.loc[name, "verdict"] == "discrepant" for cells in (sound, one))
            compared = audits[_SOUND].compared
            inside = (compared.cells["id"] == name).to_numpy(dtype=bool)
            if inside.any():  # ours off by so much is as theirs off the other way
                off = math.log(one.loc[name, "ours"] / sound.loc[name, "ours"])
                draws = Power(compared).found(np.where(inside, -off, 0.0))
                trials = [_Trial(bool(red and not before), draws, bool(not before))]
        found.append(_Control(kind.replace("-", " "), table, f"runs of {name}", trials))
    return found


def _with(files: ResultFiles, kind: str) -> ResultFiles:
    """The run with its rows of the smallest problems replaced by those of a control."""
    mine = {
        path.stem.rpartition("_")[2]: path for path in files.broken if path.stem.startswith(kind)
    }
    return replace(
        files,
        experiment1=(
            *(path for path in files.experiment1 if path.stem != f"N{DIMENSION}"),
            mine["experiment1"],
        ),
        experiment2=(
            *(path for path in files.experiment2 if path.stem != f"problem{PROBLEM}"),
            mine["experiment2"],
        ),
    )


def planted(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of faults in values or runs; sound runs are none."""
    return frame[~frame["control"].isin([_SOUND, _DROPPED, _ALL])]


def dropped(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of what was left out: that takes no power to find, only a count, and is counted apart."""
    return frame[frame["control"] == _DROPPED]


def false_alarms(frame: pd.DataFrame) -> list[str]:
    """Where sound runs were called discrepant."""
    return [str(place) for place in frame["place"][frame["verdict"] == _FALSE_ALARM]]


def missed_faults(frame: pd.DataFrame) -> list[str]:
    """Controls of which a trial should have been killed and was not."""
    lost = frame[frame["verdict"] == "missed"]
    return [f"{row['control']} in {row['place']}, {row['table']}" for _, row in lost.iterrows()]


def of_known_chance(frame: pd.DataFrame) -> pd.Series:
    """The row of all planted faults that touch nothing discrepant."""
    return frame[frame["control"] == _ALL].iloc[0]


def line(frame: pd.DataFrame) -> str:
    """The controls in one sentence, for the summary and the text."""
    faults, left_out, known = planted(frame), dropped(frame), of_known_chance(frame)
    required, missed = int(faults["required"].sum()), int(faults["missed"].sum())
    text = f"{int(faults['killed'].sum())} of {int(faults['trials'].sum())} planted faults found"
    if known["trials"]:
        text += (
            f", of {known['trials']} that touch nothing discrepant {known['killed']} where "
            f"{known['trials'] * known['expected']:.1f} are expected"
        )
    text += (
        f", {required - missed} of {required} that are sure to be; "
        f"{int(left_out['killed'].sum())} of {int(left_out['trials'].sum())} rows that were dropped"
    )
    if known["p_few"] < TOO_FEW:
        text += f" (TOO FEW FAULTS FOUND, p = {known['p_few']:.2g})"
    if lost := missed_faults(frame):
        text += f" (MISSED: {'; '.join(lost)})"
    if alarms := false_alarms(frame):
        text += f" (FALSE ALARM: sound {'; '.join(alarms)})"
    return text


def check_controls(frame: pd.DataFrame, scale: str) -> None:
    """Refuse to go on at the published scale where the controls show that the audit does not work.

    Raises
    ------
    ControlError
        A fault that should have been found was not, fewer were than simulation says, or sound runs are called
        discrepant; the message names them.
    """
    failed = frame["verdict"].isin(["missed", "too few", _FALSE_ALARM])
    if scale == STRICT_SCALE and failed.any():
        raise ControlError(
            f"the audit does not find what it should at scale {scale}, or more: {line(frame)}"
        )
