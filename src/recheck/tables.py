"""Tables as declared in ``layout.yaml``: each as a tidy CSV and as LaTeX.

An id that this run does not have is a dash or a short status; a table never fails because a scale is small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.book import Book
from recheck.files import write_csv, write_text
from recheck.format import Format, escape, latex, missing, printed
from recheck.layout import LINES, Block, Layout
from recheck.measures import BOUNDS, levels_of, pattern

__all__ = ["LETTERS", "pick", "tabular", "tidy", "write_tables"]

#: Verdicts in the line ``verdict`` of a table.
LETTERS = {
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


def pick(
    book: Book, id: str, reading: str = "", where: str = "look-up"
) -> Mapping[str, Any] | None:
    """The estimate of an id under a reading, as a mapping with ``place``, its row in the estimates.

    Where the id has no such reading, a single one that contradicts none of its levels is meant: the choice does not
    apply to the id, or was not named because only one level was run.

    Raises
    ------
    ValueError
        Several readings fit.
    """
    there = _readings(book).get(id, {})
    if reading not in there:
        wanted = levels_of(reading)
        fits = [
            one
            for one in there
            if all(wanted.get(choice, level) == level for choice, level in levels_of(one).items())
        ]
        if len(fits) > 1:
            raise ValueError(f"{where}: {id} has the readings {fits}; name one of them")
        if not fits:
            return None
        reading = fits[0]
    place = there[reading]
    return {**book.estimates.iloc[place].to_dict(), "place": place}


def _readings(book: Book) -> dict[str, dict[str, int]]:
    """Places of the estimates, by id and reading; made once a book."""
    known: dict[str, dict[str, int]] | None = getattr(book, "_recheck_places", None)
    if known is None:
        known = {}
        for place, (id, reading) in enumerate(book.estimates.index):
            known.setdefault(id, {})[reading] = place
        book._recheck_places = known  # type: ignore[attr-defined]
    return known


# ---------------------------------------------------------------------------------------------------------------------
# Tidy


def tidy(block: Block, layout: Layout, book: Book, where: str = "block") -> pd.DataFrame:
    """All that a block shows, one row an id and reading, in the order of its rows and columns.

    Parameters
    ----------
    block : Block
        Of a table.
    layout : Layout
        Order and units.
    book : Book
        Its kept results are columns ``kept`` and ``kept_se``.
    where : str
        What messages begin with.

    Returns
    -------
    DataFrame
        The fields of the template, ``reading``, ``id``, ``unit_of_value``, ``value``, ``se``, ``status``, ``units``,
        ``runs``, ``kept``, ``kept_se``, ``kept_status``, ``published``, ``bracket``, ``verdict``.
    """
    expression = pattern(block.cell)
    ids = list(book.estimates["id"].unique())
    ids += list(book.cells.index) if "published" in block.show else []
    if book.kept is not None and "kept" in block.show:
        ids += list(book.kept.estimates["id"].unique())
    rows = []
    for id in dict.fromkeys(ids):
        fields = (match := expression.fullmatch(id)) and match.groupdict()
        if fields is None or not _wanted(fields, block):
            continue
        for label, reading in block.readings.items():
            if _wanted({"reading": label}, block):
                rows.append(_row(id, fields, label, reading, layout, book, where))
    columns = [*block.fields, "reading", "id", "unit_of_value", *_MISSING]
    columns += ["kept", "kept_se", "kept_status", "published", "bracket", "verdict"]
    indices = [*block.rows, *block.columns]
    rows.sort(key=lambda row: [_rank(block, layout, f, row[f]) for f in indices])
    return pd.DataFrame(rows, columns=columns)


def _wanted(fields: Mapping[str, str], block: Block) -> bool:
    return all(value in block.where.get(name, (value,)) for name, value in fields.items())


def _row(
    id: str,
    fields: Mapping[str, str],
    label: str,
    reading: str,
    layout: Layout,
    book: Book,
    where: str,
) -> dict[str, Any]:
    found = pick(book, id, reading, where) or _MISSING
    kept = (pick(book.kept, id, reading, where) if book.kept else None) or _MISSING
    cell = book.cells.loc[id] if id in book.cells.index else {"printed": "", "bracket": ""}
    # the verdict on the numbers that the text prints
    verdicts = book.kept.verdicts if book.kept else book.verdicts
    verdicts = verdicts if len(verdicts) else book.verdicts
    verdict = verdicts.loc[id, "verdict"] if id in verdicts.index else ""
    return {
        **fields,
        "reading": label or reading,
        "id": id,
        "unit_of_value": layout.unit(id),
        **{name: found[name] for name in _MISSING},
        **{"kept": kept["value"], "kept_se": kept["se"], "kept_status": kept["status"]},
        **{"published": cell["printed"], "bracket": cell["bracket"], "verdict": verdict},
    }


def _rank(block: Block, layout: Layout, field: str, value: str) -> tuple[Any, ...]:
    """Place of a value: by the layout's order, then by the block's choice, then naturally."""
    given = [*layout.order.get(field, ()), *block.where.get(field, ())]
    if field == "reading":
        given = list(block.readings)
    if value in given:
        return (0, given.index(value))
    return (1, *[(0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.split(r"(\d+)", value)])


# ---------------------------------------------------------------------------------------------------------------------
# LaTeX


def _latex(block: Block, layout: Layout, frame: pd.DataFrame) -> str:
    if frame.empty:
        return tabular("l", [[block.head or "--"]], [[["not run at this scale"]]])
    cells: dict[tuple[_Key, _Key], Mapping[str, Any]] = {}
    for row in frame.to_dict("records"):
        keys = tuple(row[f] for f in block.rows), tuple(row[f] for f in block.columns)
        cells[keys] = row
    rows, columns = _ordered(frame, block.rows), _ordered(frame, block.columns)
    columns.sort(
        key=lambda key: [
            _rank(block, layout, f, v) for f, v in zip(block.columns, key, strict=True)
        ]
    )
    body: list[list[list[str]]] = []
    group: list[list[str]] = []
    several = len(block.show) > 1
    for above, key in pairwise([(), *rows]):
        # groups are set apart: every row of several lines, else every value of the first of several fields
        if above and (several or (len(key) > 1 and above[0] != key[0])):
            body.append(group)
            group = []
        group += _lines(block, layout, cells, columns, key, above)
    body.append(group)
    left = max(len(block.rows) + several, 1)
    head, rules = _head(block, layout, columns, left)
    return tabular("l" * left + "r" * len(columns), head, body, rules)


def _ordered(frame: pd.DataFrame, fields: Sequence[str]) -> list[_Key]:
    if not fields:
        return [()]
    return list(dict.fromkeys(frame[list(fields)].itertuples(index=False, name=None)))


def _label(layout: Layout, field: str, value: str) -> str:
    return layout.labels.get(field, {}).get(value, escape(value))


def _lines(
    block: Block,
    layout: Layout,
    cells: Mapping[tuple[_Key, _Key], Mapping[str, Any]],
    columns: Sequence[_Key],
    key: _Key,
    above: _Key,
) -> list[list[str]]:
    """Lines of one row key; the published line stands once above the readings of a cell."""
    names = [_label(layout, f, v) for f, v in zip(block.rows, key, strict=True)]
    if len(block.show) == 1:  # a label that repeats the one above it is left out
        shared = 0
        while shared < len(key) - 1 and above[: shared + 1] == key[: shared + 1]:
            shared += 1
        names[:shared] = [""] * shared
    lines: list[list[str]] = []
    for name in block.show:
        if name == "published" and above and _cell_key(block, above) == _cell_key(block, key):
            continue
        shown = [_show(name, cells.get((key, column)), block, column, layout) for column in columns]
        line = [*(names if not lines else [""] * len(names))]
        if len(block.show) > 1:
            line.append(layout.labels.get("show", {}).get(name, _line_name(name, block)))
        lines.append([*(line or [""]), *shown])
    return lines


def _line_name(name: str, block: Block) -> str:
    return "ours" if name == "run" and "kept" not in block.show else LINES[name]


def _cell_key(block: Block, key: _Key) -> list[str]:
    return [value for field, value in zip(block.rows, key, strict=True) if field != "reading"]


def _show(
    name: str, row: Mapping[str, Any] | None, block: Block, column: _Key, layout: Layout
) -> str:
    """One entry of a table."""
    if row is None:
        return "--"
    form = block.formats.get(column[-1], block.format) if column else block.format
    if name == "published":
        return printed(row["published"], row["bracket"], form) if row["published"] else "--"
    if name == "verdict":
        return LETTERS.get(row["verdict"], "--")
    kept = name == "kept"
    value, se = (row["kept"], row["kept_se"]) if kept else (row["value"], row["se"])
    status = row["kept_status" if kept else "status"]
    return shown(value, se, layout.labels.get("status", {}).get(status, status), form)


def shown(value: float, se: float, status: str, form: Format) -> str:
    """A number with its status: a bound has its sign in front, a missing value is a word."""
    if value is None or not math.isfinite(value):
        return missing(status)
    sign = {"at least": r"$\ge$", "at most": r"$\le$"}[status] if status in BOUNDS else ""
    return sign + latex(float(value), float(se), form)


def _head(
    block: Block, layout: Layout, columns: Sequence[_Key], left: int
) -> tuple[list[list[str]], list[list[str]]]:
    """Rows of the head, one a column field, and the rules below each of them."""
    head, rules = [], []
    depth = len(block.columns)
    if not depth:
        return [[block.head, *[""] * (left - 1), ""]], []
    for level, field in enumerate(block.columns):
        corner = block.head if level == depth - 1 else ""
        row, below, place = [corner, *[""] * (left - 1)], [], left
        last = level == depth - 1
        for key, group in groupby(columns, itemgetter(slice(level + 1))):
            width, label = len(list(group)), _label(layout, field, key[-1])
            row.append(label if last else rf"\multicolumn{{{width}}}{{c}}{{{label}}}")
            below.append(rf"\cmidrule(lr){{{place + 1}-{place + width}}}")
            place += width
        head.append(row)
        rules.append([] if last else below)
    return head, rules


def tabular(
    columns: str,
    head: Sequence[Sequence[str]],
    body: Sequence[Sequence[Sequence[str]]],
    rules: Sequence[Sequence[str]] = (),
) -> str:
    r"""A booktabs table.

    Parameters
    ----------
    columns : str
        LaTeX column specification.
    head : sequence of rows
        Rows of cells, LaTeX already, above the middle rule.
    body : sequence of groups of rows
        Groups are set apart by ``\addlinespace``.
    rules : sequence of sequence of str
        LaTeX below each row of the head.
    """
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    for place, row in enumerate(head):
        lines.append(" & ".join(row) + r" \\")
        lines.extend(rules[place] if place < len(rules) else [])
    lines.append(r"\midrule")
    for place, group in enumerate(body):
        if place:
            lines.append(r"\addlinespace")
        lines.extend(" & ".join(row) + r" \\" for row in group)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
