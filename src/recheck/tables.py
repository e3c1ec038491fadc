"""Tables as declared in ``layout.yaml``: each as a tidy CSV and as LaTeX.

An id that this run does not have is a dash or a short status; a table never fails because a scale is small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise, takewhile
from operator import eq, itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.book import Book
from recheck.files import write_csv, write_text
from recheck.format import Format, escape, latex, missing, printed
from recheck.layout import LINES, Block, Layout
from recheck.measures import BOUNDS, pattern

__all__ = ["shown", "tabular", "tidy", "write_tables"]

#: Verdicts in the line ``verdict`` of a table.
_LETTERS = {
    "agrees": "A",
    "undecided": "U",
    "differs": "D",
    "depends on a reading": "R",
    "not comparable": "N",
}
_MISSING: dict[str, Any] = {"value": math.nan, "se": math.nan, "status": "", "units": 0, "runs": 0}
_Key = tuple[str, ...]


def write_tables(
    layout: Layout, book: Book, names: Iterable[str] | None, out_folder: str | Path
) -> None:
    """Write ``<name>.csv`` and ``<name>.tex`` of tables.

    Parameters
    ----------
    layout : Layout
        Of the study.
    book : Book
        What the tables read.
    names : iterable of str or None
        Tables; None writes all of them.
    out_folder : path
        Where the files go.

    Raises
    ------
    ValueError
        A table is not in the layout, or an id has several readings and the layout names none of them.
    """
    for name in layout.tables if names is None else names:
        if name not in layout.tables:
            raise ValueError(
                f"names: {name!r} is no table of the layout; these are {list(layout.tables)}"
            )
        frames, parts = [], []
        for number, block in enumerate(layout.tables[name].blocks, 1):
            frame = tidy(block, layout, book, f"table {name}, block {number}")
            frames.append(frame.assign(block=number))
            parts.append(_latex(block, layout, frame))
        write_csv(Path(out_folder) / f"{name}.csv", pd.concat(frames, ignore_index=True))
        write_text(Path(out_folder) / f"{name}.tex", "\\par\\bigskip\n".join(parts))


def tidy(block: Block, layout: Layout, book: Book, where: str = "block") -> pd.DataFrame:
    """All that a block shows, one row an id and reading, in the order of its rows and columns."""
    expression = pattern(block.cell)
    ids = [*book.estimates["id"], *(book.cells.index if "published" in block.show else [])]
    if book.kept is not None and "kept" in block.show:
        ids += [*book.kept.estimates["id"]]
    rows = []
    for id in dict.fromkeys(ids):
        if not (match := expression.fullmatch(id)):
            continue
        for label, reading in block.levels.items():
            fields = match.groupdict() | {"reading": label}
            if all(fields[name] in values for name, values in block.where.items()):
                fields["reading"] = label or reading
                rows.append(fields | _numbers(id, reading, layout, book, where))
    columns = [*block.fields, "reading", "id", "unit_of_value", *_MISSING]
    columns += ["kept", "kept_se", "kept_status", "published", "bracket", "verdict"]
    indices = [*block.rows, *block.columns]
    rows.sort(key=lambda row: [_rank(block, layout, f, row[f]) for f in indices])
    return pd.DataFrame(rows, columns=columns)


def _numbers(id: str, reading: str, layout: Layout, book: Book, where: str) -> dict[str, Any]:
    """The number of this run, the kept and the published number of an id, and the verdict."""
    found = book.pick(id, reading, where) or _MISSING
    kept = (book.kept.pick(id, reading, where) if book.kept else None) or _MISSING
    cell = book.cells.loc[id] if id in book.cells.index else {"printed": "", "bracket": ""}
    # the verdict on the numbers that the text prints
    verdicts = book.kept.verdicts if book.kept and len(book.kept.verdicts) else book.verdicts
    return {
        "id": id,
        "unit_of_value": layout.unit(id),
        **{name: found[name] for name in _MISSING},
        **{"kept": kept["value"], "kept_se": kept["se"], "kept_status": kept["status"]},
        **{"published": cell["printed"], "bracket": cell["bracket"]},
        "verdict": verdicts.loc[id, "verdict"] if id in verdicts.index else "",
    }


def _rank(block: Block, layout: Layout, field: str, value: str) -> tuple[Any, ...]:
    """Place of a value: by the layout's order, then by the block's choice, then naturally."""
    given = [*layout.order.get(field, ()), *block.where.get(field, ())]
    given = [*block.levels] if field == "reading" else given
    if value in given:
        return (0, given.index(value))
    return (1, *[(0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.split(r"(\d+)", value)])


def _latex(block: Block, layout: Layout, frame: pd.DataFrame) -> str:
    if frame.empty:
        return tabular("l", [[block.head or "--"]], [["not run at this scale"]])
    cells = {
        (tuple(row[f] for f in block.rows), tuple(row[f] for f in block.columns)): row
        for row in frame.to_dict("records")
    }
    rows = list(dict.fromkeys(key for key, _ in cells))
    columns = sorted(
        dict.fromkeys(key for _, key in cells),
        key=lambda key: [_rank(block, layout, *at) for at in zip(block.columns, key, strict=True)],
    )
    body: list[Sequence[str]] = []
    several = len(block.show) > 1
    for above, key in pairwise([(), *rows]):
        # groups are set apart: every row of several lines, else every value of the first of several fields
        if above and (several or (len(key) > 1 and above[0] != key[0])):
            body.append(r"\addlinespace")
        body += _lines(block, layout, [cells.get((key, column)) for column in columns], key, above)
    left = max(len(block.rows) + several, 1)
    return tabular("l" * left + "r" * len(columns), _head(block, layout, columns, left), body)


def _label(layout: Layout, field: str, value: str) -> str:
    return layout.labels.get(field, {}).get(value, escape(value))


def _lines(
    block: Block,
    layout: Layout,
    cells: Sequence[Mapping[str, Any] | None],
    key: _Key,
    above: _Key,
) -> list[list[str]]:
    """Lines of one row key; the published line stands once above the readings of a cell."""
    names = [_label(layout, f, v) for f, v in zip(block.rows, key, strict=True)]
    same = [f for f, old, new in zip(block.rows, above, key, strict=False) if old == new]
    words = {**LINES, "run": LINES["run" if "kept" in block.show else "kept"]}
    words |= layout.labels.get("show", {})
    several = len(block.show) > 1
    if not several:  # a label that repeats the one above it is left out
        shared = len(list(takewhile(bool, map(eq, above, key[:-1]))))
        names[:shared] = [""] * shared
    lines: list[list[str]] = []
    for name in block.show:
        if name == "published" and above and {*block.rows} - {*same} <= {"reading"}:
            continue
        left = names if not lines else [""] * len(names)
        left = [*left, words[name]] if several else left
        lines.append([*(left or [""]), *(_show(name, row, block, layout) for row in cells)])
    return lines


def _show(name: str, row: Mapping[str, Any] | None, block: Block, layout: Layout) -> str:
    """One entry of a table."""
    if row is None:
        return "--"
    last = row[block.columns[-1]] if block.columns else ""
    form = block.formats.get(last, block.format)
    if name == "published":
        return printed(row["published"], row["bracket"], form) if row["published"] else "--"
    if name == "verdict":
        return _LETTERS.get(row["verdict"], "--")
    keys = ("kept", "kept_se", "kept_status") if name == "kept" else ("value", "se", "status")
    value, se, status = (row[key] for key in keys)
    return shown(value, se, layout.labels.get("status", {}).get(status, status), form)


def shown(value: float, se: float, status: str, form: Format) -> str:
    """A number with its status: a bound has its sign in front, a missing value is a word."""
    if value is None or not math.isfinite(value):
        return missing(status)
    sign = {"at least": r"$\ge$", "at most": r"$\le$"}[status] if status in BOUNDS else ""
    return sign + latex(float(value), float(se), form)


def _head(block: Block, layout: Layout, columns: Sequence[_Key], left: int) -> list[Sequence[str]]:
    """Rows of the head, one a column field, and the rules below all but the last."""
    if not block.columns:
        return [[block.head, *[""] * left]]
    head: list[Sequence[str]] = []
    for depth, field in enumerate(block.columns, 1):
        groups = [
            (key, len(list(some))) for key, some in groupby(columns, itemgetter(slice(depth)))
        ]
        labels = [_label(layout, field, key[-1]) for key, _ in groups]
        if depth == len(block.columns):
            head.append([block.head, *[""] * (left - 1), *labels])
            break
        ends = accumulate((width for _, width in groups), initial=left)
        spans = [
            rf"\multicolumn{{{width}}}{{c}}{{{label}}}"
            for (_, width), label in zip(groups, labels, strict=True)
        ]
        head.append([*[""] * left, *spans])
        head += [rf"\cmidrule(lr){{{first + 1}-{last}}}" for first, last in pairwise(ends)]
    return head


def tabular(
    columns: str,
    head: Iterable[Sequence[str]],
    body: Iterable[Sequence[str]],
    *,
    breaks: bool = False,
) -> str:
    """A booktabs table, which `breaks` between pages or not.

    Parameters
    ----------
    columns : str
        LaTeX column specification.
    head, body : iterable
        Rows: cells that are LaTeX already; or a whole line, such as a rule, as one text.
    """
    above, below = (
        [row if isinstance(row, str) else " & ".join(row) + r" \\" for row in part]
        for part in (head, body)
    )
    name = "longtable" if breaks else "tabular"
    lines = [rf"\begin{{{name}}}{{{columns}}}", r"\toprule", *above, r"\midrule"]
    if breaks:
        lines += [r"\endhead", r"\bottomrule", r"\endlastfoot", *below]
    else:
        lines += [*below, r"\bottomrule"]
    return "\n".join([*lines, rf"\end{{{name}}}", ""])
