"""The command ``recheck``: start a study from a table of printed numbers, judge it, plan it, explain a verdict.

Exit status: 2 of bad input. That of ``judge`` is 1 if a cell, contrast, column or claim differs, 3 if nothing was
compared, and otherwise 0, which is also that of the other commands.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.explaining import explained
from recheck.files import write_text
from recheck.format import effect, is_number, plain, short
from recheck.judge import judge
from recheck.measures import UNSEEN, estimate
from recheck.planning import plan
from recheck.published import Published
from recheck.rounding import RULES
from recheck.starting import init, protocol_of, read_ours, read_study

SAME, DIFFERS, WRONG, NOTHING = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    given = _parser().parse_args(arguments)
    try:
        return int(given.do(given))
    except (ValueError, OSError) as error:
        print(f"recheck: {error}", file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="recheck", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(do: Any, *paths: str, text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(do.__name__.strip("_"), help=text, description=text)
        one.set_defaults(do=do)
        for name in paths:
            one.add_argument(name, type=Path, help=_HELP[name])
        return one

    one = command(_init, "printed", "folder", text="write a study from a table of printed numbers")
    one.add_argument("--margin", type=float, default=2.0, help="factor within which a ratio agrees")
    one.add_argument("--difference", type=float, help="difference within which others agree")
    one.add_argument("--rounding", choices=RULES, default="", help="how numbers were rounded")
    one = command(_judge, "study", "ours", text="judge all printed numbers; prints a table")
    one.add_argument("--json", type=Path, help="a file for all columns of the verdicts")
    one.add_argument("--seed", type=int, default=1, help="of the draws of uncertain variances")
    one = command(_plan, "study", "ours", text="how many units and runs find a discrepancy")
    one.add_argument("--factor", type=float, default=2.0, help="the discrepancy")
    one = command(_explain, "study", "ours", text="explain one verdict")
    one.add_argument("id")
    one.add_argument("--seed", type=int, default=1, help="of the draws of uncertain variances")
    return parser


_HELP = {
    "printed": "CSV: id, printed, and what is known of bracket, scale, units, runs, rounded",
    "folder": "a new folder for the files of the study",
    "study": "that folder, or the CSV of printed numbers",
    "ours": "CSV: id, value, and what is known of unit, run, reading, se, df, status",
}


def _init(given: argparse.Namespace) -> int:
    protocol = protocol_of(given.margin, given.difference)
    names = init(given.printed, given.folder, protocol, given.rounding)
    print("\n".join(f"wrote {given.folder / name}" for name in names))
    return SAME


def _judged(given: argparse.Namespace) -> tuple[Published, pd.DataFrame]:
    """The study and its verdicts."""
    study = read_study(given.study)
    measures = read_ours(given.ours, study)
    cells, differences = study.cells, study.protocol.margins.difference
    own = set(measures["id"][measures["se"].notna()])
    open_ = [name for name in cells.index[cells["scale"] == "linear"] if name not in own]
    if open_ and differences is None:
        needed = "margins: {difference: ...} in protocol.yaml, or recheck init --difference"
        raise ValueError(
            f"{given.study}: {open_[0]} is compared as a difference: needed is {needed}"
        )
    return study, judge(measures, estimate(measures, study.regions), study, given.seed).frame


def _judge(given: argparse.Namespace) -> int:
    _, frame = _judged(given)
    print(table([_line(row) for row in frame.to_dict("records")]))
    if given.json:
        rows = [
            {name: _plain(value) for name, value in (row | {"effect": effect(row)}).items()}
            for row in frame.to_dict("records")
        ]
        write_text(given.json, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    if frame["verdict"].isin(UNSEEN).all():
        return NOTHING
    return DIFFERS if (frame["verdict"] == "differs").any() else SAME


def _plan(given: argparse.Namespace) -> int:
    study = read_study(given.study)
    frame = plan(read_ours(given.ours, study), study, given.factor)
    numbers, whole = ["between", "run_sd", "detectable", "limit"], ["units", "runs"]
    frame[numbers] = frame[numbers].map(
        lambda value: short(value) if value < math.inf else "none" if value > 0 else ""
    )
    frame[whole] = frame[whole].map(lambda value: f"{value:.0f}" if is_number(value) else "")
    print(table(frame.to_dict("records")))
    return SAME


def _explain(given: argparse.Namespace) -> int:
    study, frame = _judged(given)
    rows = frame[frame["id"].isin([given.id, f"claim/{given.id}"])]
    if rows.empty:
        raise ValueError(
            f"{given.id}: there is no verdict of this id; there are {list(frame['id'])}"
        )
    row = rows.iloc[0].to_dict()
    print(explained(row, study), end="")
    return SAME


def _line(row: dict[str, Any]) -> dict[str, str]:
    """What the table shows of a verdict."""
    ours = plain(row["ours"], row["ours_se"]) if is_number(row["ours"]) else ""
    ends = f"{short(row['low'])} to {short(row['high'])}" if is_number(row["effect"]) else ""
    shown = {"id": row["id"], "printed": row["printed"], "ours": ours, "effect": short(effect(row))}
    return {
        **shown,
        "interval": ends,
        "verdict": row["verdict"],
        "detectable": short(row["detectable"]),
    }


def _plain(value: Any) -> Any:
    """A value that JSON can hold: what is absent is null, infinity a word."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of text as aligned columns under their names."""
    lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)
