"""The command ``recheck``: judge a table beside ours, start a study, plan it, explain a verdict.

Exit status: 2 of bad input, and of anything unexpected. That of ``judge`` is 1 if a cell, contrast, column, claim or
spread differs, 3 if nothing was compared, and otherwise 0, which is also that of the other commands.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recheck.judge.printed import RULES, shortly

if TYPE_CHECKING:
    import pandas as pd

    from recheck.judge.published import Published
    from recheck.judge.starting import Said

SAME, DIFFERS, WRONG, NOTHING = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    given = _parser().parse_args(arguments)
    try:
        status = int(given.do(given))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # who reads has seen enough: what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SAME
    except (ValueError, OSError) as error:
        print(f"recheck: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("recheck: interrupted", file=sys.stderr)
    except Exception as error:  # nothing unexpected may look like a verdict
        said = shortly(str(error).strip().splitlines()[0] if str(error).strip() else "")
        kind = type(error).__name__
        print(
            f"recheck: unexpected {kind} {said}: please report it with its input", file=sys.stderr
        )
    return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="recheck", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--version", action=_Version, help="print the version")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(do: Any, *paths: str, text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(do.__name__.strip("_"), help=text, description=text)
        one.set_defaults(do=do)
        for name in paths:
            several = "+" if name == "ours" and do is _judge else None
            one.add_argument(name, help=_HELP[name], nargs=several)
        return one

    one = command(_judge, "printed", "ours", text="judge all printed numbers; prints a table")
    _table(one)
    _margins(one)
    one.add_argument("--json", type=Path, help="a file for all columns of the verdicts")
    one.add_argument("--html", type=Path, help="a file for a page with pictures of the intervals")
    one.add_argument("--notes", action="store_true", help="show how each number was compared")
    one = command(_init, "printed", "folder", text="write a study from a table of printed numbers")
    _table(one)
    _margins(one, 2.0)
    one = command(_plan, "study", "ours", text="how many units and runs find a discrepancy")
    one.add_argument("--factor", type=float, default=2.0, help="the discrepancy")
    _table(one)
    one = command(_explain, "study", "ours", text="explain one verdict")
    one.add_argument("id")
    _table(one)
    _margins(one)
    command(_schema, text="print the JSON schema of judge --json")
    return parser


class _Version(argparse.Action):
    """Print the version and leave; it is looked up when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"recheck {version('recheck')}")
        except PackageNotFoundError:
            print("recheck, not installed as a package")
        parser.exit()


def _table(one: argparse.ArgumentParser) -> None:
    """Options that say what a table does not say itself."""
    one.add_argument("--brackets", default="", help="what stands in brackets or behind ±: 'standard deviation', "
                     "'standard error' or 'interval 95%%' (half of it)")  # fmt: skip
    one.add_argument("--units", type=int, help="data sets (or seeds) behind every printed number")
    one.add_argument("--runs", type=int, help="runs on each of them")
    one.add_argument("--our-brackets", default="", help="the same of ours")
    one.add_argument("--our-units", type=int, help="how many are behind a mean of ours")
    one.add_argument("--exact", action="store_true", help="there is no chance in ours")
    one.add_argument("--rounding", choices=RULES, default="", help="how numbers were rounded")
    one.add_argument(
        "--scale", choices=["log", "linear"], default="", help="compare as ratios or as differences"
    )
    one.add_argument("--comma", action="store_true", help="printed decimals stand behind a comma")
    one.add_argument("--our-comma", action="store_true", help="the same of ours")
    one.add_argument("--headers", type=int, help="rows of names above a wide table")
    one.add_argument("--labels", type=int, help="columns of names in front of it")
    one.add_argument(
        "--skip", action="append", default=[], metavar="NAME", help="a column to leave out"
    )
    one.add_argument("--seed", type=int, default=1, help="of the draws of uncertain variances")


def _margins(one: argparse.ArgumentParser, usual: float | None = None) -> None:
    one.add_argument(
        "--margin", type=float, default=usual, help="factor within which a ratio agrees (2)"
    )
    one.add_argument("--difference", type=float, help="difference within which others agree")
    one.add_argument(
        "--distribution", choices=["smooth", "any"], help="'any': runs may fail now and then"
    )


_HELP = {
    "printed": "a study's folder, or a table: CSV, Excel, Markdown, LaTeX; long (id, printed) or wide; - is stdin",
    "folder": "a new folder for the files of the study",
    "study": "that folder, or the table of printed numbers",
    "ours": "a table: id, value, and what is known of unit, run, sd and n, se, df, status; or wide as the printed one",
}


def _said(given: argparse.Namespace, ours: bool = False) -> "Said":
    from recheck.judge.starting import Said

    tables = {name: getattr(given, name) for name in ("headers", "labels", "skip")}
    if ours:
        own = {"brackets": given.our_brackets, "units": given.our_units, "comma": given.our_comma}
        return Said(**own, **tables)
    design = {"units": given.units, "runs": given.runs, "rounded": given.rounding}
    design |= {"brackets": given.brackets, "scale": given.scale, "comma": given.comma}
    return Said(**design, **tables)


def _init(given: argparse.Namespace) -> int:
    from recheck.judge.starting import init, protocol_of

    protocol = protocol_of(
        given.margin, given.difference, distribution=given.distribution or "smooth", spreads=True
    )
    folder = Path(given.folder)
    names = init(given.printed, folder, protocol, _said(given))
    print("\n".join(f"wrote {folder / name}" for name in names))
    return SAME


def _read(given: argparse.Namespace, printed: str) -> tuple["Published", "pd.DataFrame", list[str]]:
    """The study, our measures, and what was left out or understood."""
    from recheck.judge.starting import read_ours, read_study, with_rules

    study = read_study(printed, _said(given))
    if hasattr(given, "margin"):
        rules = {
            "agree": given.margin,
            "difference": given.difference,
            "distribution": given.distribution,
        }
        study = with_rules(study, rules)
    measures, study, notes = read_ours(given.ours, study, _said(given, ours=True))
    if given.exact:
        measures["se"], measures["df"] = 0.0, math.inf
        measures["scale"] = study.cells["scale"] = "linear"
    return study, measures, notes


def _judged(
    given: argparse.Namespace, printed: str
) -> tuple["Published", "pd.DataFrame", list[str]]:
    """The study, its verdicts, and what was left out or understood."""
    from recheck.judge.measures import estimate
    from recheck.judge.verdicts import judge

    study, measures, notes = _read(given, printed)
    cells, differences = study.cells, study.protocol.margins.difference
    own = set(measures["id"][measures["se"].notna()])
    open_ = [name for name in cells.index[cells["scale"] == "linear"] if name not in own]
    if open_ and differences is None:
        needed = "margins: {difference: ...} in protocol.yaml, or --difference on the command line"
        raise ValueError(f"{printed}: {open_[0]} is compared as a difference: needed is {needed}")
    frame = judge(measures, estimate(measures, study.regions), study, given.seed).frame
    return study, frame, notes


def _judge(given: argparse.Namespace) -> int:
    from recheck.judge.measures import UNSEEN
    from recheck.judge.output import line, page, records, summary, table

    inputs = [given.printed, *given.ours]
    for out, end in ((given.json, ".json"), (given.html, ".html")):
        if out and (
            out.suffix != end or any(one != "-" and _same(out, Path(one)) for one in inputs)
        ):
            raise ValueError(
                f"{out}: needed is a new file that ends in {end}, and none of the inputs"
            )
    study, frame, notes = _judged(given, given.printed)
    rows = [line(row, study, given.notes) for row in frame.to_dict("records")]
    if not any(row["note"] for row in rows):
        rows = [{name: text for name, text in row.items() if name != "note"} for row in rows]
    print(table(rows))
    print("\n".join(["", summary(frame, study), *notes]))
    ratios = frame[frame["kind"].isin(["cell", "column"]) & (frame["scale"] == "log")]
    chosen = "agree" in study.protocol.margins.model_fields_set
    if not chosen and (ratios["verdict"] == "agrees").any():
        print(
            "Nobody chose the margin of a factor of 2: "
            "for shares and accuracies say what is close (--margin, --difference)."
        )
    if given.json:
        _write(
            given.json,
            json.dumps(records(frame), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        )
    if given.html:
        _write(given.html, page(frame, study, f"{Path(given.printed).name} judged"))
    if frame["verdict"].isin(UNSEEN).all():
        return NOTHING
    return DIFFERS if (frame["verdict"] == "differs").any() else SAME


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _write(path: Path, text: str) -> None:
    """Write a file under another name first, so that it is whole or not there."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    os.replace(partial, path)


def _schema(_: argparse.Namespace) -> int:
    from recheck.judge.output import schema

    print(json.dumps(schema(), indent=1))
    return SAME


def _plan(given: argparse.Namespace) -> int:
    from recheck.judge.format import is_number, short
    from recheck.judge.output import table
    from recheck.judge.planning import plan

    study, pilot, _ = _read(given, given.study)
    frame = plan(pilot, study, given.factor)
    numbers, whole = ["between", "run_sd", "detectable", "limit"], ["units", "runs"]
    frame[numbers] = frame[numbers].map(
        lambda value: short(value) if value < math.inf else "none" if value > 0 else ""
    )
    frame[whole] = frame[whole].map(lambda value: f"{value:.0f}" if is_number(value) else "")
    print(table(frame.to_dict("records")))
    return SAME


def _explain(given: argparse.Namespace) -> int:
    from recheck.judge.explaining import explained

    study, frame, _ = _judged(given, given.study)
    rows = frame[frame["id"].isin([given.id, f"claim/{given.id}"])]
    if rows.empty:
        raise ValueError(
            f"{given.id}: there is no verdict of this id; there are {list(frame['id'])[:50]}"
        )
    print(explained(rows.iloc[0].to_dict(), study), end="")
    return SAME
