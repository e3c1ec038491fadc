"""Tables as declared in ``layout.yaml``: each as a tidy CSV and as LaTeX.

An id that this run does not have is a dash or a short status; a table never fails because a scale is small.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise, takewhile
from operator import eq, itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.judge.format import Format, is_number
from recheck.judge.measures import BOUNDS, pattern
from recheck.record.files import write_csv, write_text
from recheck.report.book import Book
from recheck.report.latex import escape, latex, missing, printed
from recheck.report.layout import LINES, Block, Layout

#: Verdicts in the line ``verdict`` of a table.
_READING = "depends on a reading"
_LETTERS = {
    **{"agrees": "A", "undecided": "U", "differs": "D"},
    **{_READING: "R", "not comparable": "N"},
}
_MISSING: dict[str, Any] = {"value": math.nan, "se": math.nan, "status": "", "units": 0, "runs": 0}
_Key = tuple[str, ...]


def write_tables(
    layout: Layout, book: Book, names: Iterable[str] | None, out_folder: str | Path
) -> None:
    """Write ``<name>.csv`` and ``<name>.tex`` of tables; None writes all of them.

    ValueError if a table is not in the layout, or if an id has several readings and the layout names none of them.
    """
    for name in layout.tables if names is None else names:
        if name not in layout.tables:
            raise ValueError(
                f"names: {name!r} is no table of the layout; these are {list(layout.tables)}"
            )
        frames, parts = [], []
        for number, block in enumerate(layout.tables[name].blocks, 1):
            drawn = _Drawn(block, layout)
            frame = drawn.tidy(book, f"table {name}, block {number}")
            frames.append(frame.assign(block=number))
            parts.append(drawn.latex(frame))
        write_csv(Path(out_folder) / f"{name}.csv", pd.concat(frames, ignore_index=True))
        write_text(Path(out_folder) / f"{name}.tex", "\\par\\bigskip\n".join(parts))


@dataclass(frozen=True)
class _Drawn:
    """A block, and the layout that names and orders the values of its fields."""

    block: Block
    layout: Layout

    def tidy(self, book: Book, where: str) -> pd.DataFrame:
        """All that the block shows, one row an id and reading, in the order of its rows and columns."""
        block, expression = self.block, pattern(self.block.cell)
        ids = [*book.ids, *(book.cells.index if "published" in block.show else [])]
        if book.kept is not None and "kept" in block.show:
            ids += book.kept.ids
        rows = []
        for id in dict.fromkeys(ids):
            if not (match := expression.fullmatch(id)):
                continue
            for label, reading in (block.readings or {"": ""}).items():
                fields = match.groupdict() | {"reading": label}
                if all(fields[name] in values for name, values in block.where.items()):
                    fields["reading"] = label or reading
                    rows.append(fields | self._numbers(id, reading, book, where))
        columns = [*block.fields, "reading", "id", "unit_of_value", *_MISSING]
        columns += ["kept", "kept_se", "kept_status", "published", "bracket", "verdict", "fitting"]
        indices = [*block.rows, *block.columns]
        rows.sort(key=lambda row: [self._rank(f, row[f]) for f in indices])
        return pd.DataFrame(rows, columns=columns)

    def _numbers(self, id: str, reading: str, book: Book, where: str) -> dict[str, Any]:
        """The number of this run, the kept and the published number of an id, and the verdict."""
        found = book.pick(id, reading, where) or _MISSING
        kept = (book.kept.pick(id, reading, where) if book.kept else None) or _MISSING
        cell = book.cells.loc[id] if id in book.cells.index else {"printed": "", "bracket": ""}
        # the verdict on the numbers that the text prints
        judged = book.kept if book.kept and len(book.kept.verdicts) else book
        verdict, fitting = "", math.nan
        if id in judged.verdicts.index:
            verdict = judged.verdicts.loc[id, "verdict"]
            # the table's reading is not one that agrees: the list of verdicts has another
            if verdict == _READING and not self.block.readings and not judged.agrees(id, reading):
                fitting = judged.verdicts.loc[id, "ours"]
        return {
            "id": id,
            "unit_of_value": self.layout.unit(id),
            **{name: found[name] for name in _MISSING},
            **{"kept": kept["value"], "kept_se": kept["se"], "kept_status": kept["status"]},
            **{"published": cell["printed"], "bracket": cell["bracket"]},
            **{"verdict": verdict, "fitting": fitting},
        }

    def _rank(self, field: str, value: str) -> tuple[Any, ...]:
        """Place of a value: by the layout's order, then by the block's choice, then naturally."""
        given = [*self.layout.order.get(field, ()), *self.block.where.get(field, ())]
        given = [*self.block.readings] if field == "reading" else given
        if value in given:
            return (0, given.index(value))
        parts = re.split(r"(\d+(?:\.\d+)?)", value)  # the numbers are every second one
        return (
            1,
            *[(0, float(part), "") if k % 2 else (1, 0, part) for k, part in enumerate(parts)],
        )

    def latex(self, frame: pd.DataFrame) -> str:
        """The block's tabular."""
        block, several = self.block, len(self.block.show) > 1
        if frame.empty:
            return tabular("l", [[block.head or "--"]], [["not run at this scale"]])
        cells = {
            (tuple(row[f] for f in block.rows), tuple(row[f] for f in block.columns)): row
            for row in frame.to_dict("records")
        }
        rows = list(dict.fromkeys(key for key, _ in cells))
        columns = sorted(
            dict.fromkeys(key for _, key in cells),
            key=lambda key: [*map(self._rank, block.columns, key)],
        )
        body: list[Sequence[str]] = []
        for above, key in pairwise([(), *rows]):
            # groups are set apart: every row of several lines, else every value of the first of several fields
            if above and (several or (len(key) > 1 and above[0] != key[0])):
                body.append(r"\addlinespace")
            body += self._lines([cells.get((key, column)) for column in columns], key, above)
        left = max(len(block.rows) + several, 1)
        return tabular("l" * left + "r" * len(columns), self._head(columns, left), body)

    def _label(self, field: str, value: str) -> str:
        return self.layout.labels.get(field, {}).get(value, escape(value))

    def _lines(
        self, cells: Sequence[Mapping[str, Any] | None], key: _Key, above: _Key
    ) -> list[list[str]]:
        """Lines of one row key; the published line stands once above the readings of a cell."""
        show, fields = self.block.show, self.block.rows
        names = [*map(self._label, fields, key)]
        changed = {f for f, old, new in zip(fields, above, key, strict=False) if old != new}
        words = {**LINES, "run": LINES["run" if "kept" in show else "kept"]}
        several = len(show) > 1
        if not several:  # a label that repeats the one above it is left out
            shared = len(list(takewhile(bool, map(eq, above, key[:-1]))))
            names[:shared] = [""] * shared
        lines: list[list[str]] = []
        texts: list[str] = []
        for name in show:
            if name == "published" and above and changed <= {"reading"}:
                continue
            last, texts = texts, [self._show(name, row) for row in cells]
            here = any(row and is_number(row["value"]) for row in cells)
            if name == "run" and "kept" in show and (texts == last or not here):
                continue  # a run that measured nothing or the same has no line
            left = names if not lines else [""] * len(names)
            left = [*left, words[name]] if several else left
            lines.append([*(left or [""]), *texts])
        return lines

    def _show(self, name: str, row: Mapping[str, Any] | None) -> str:
        """One entry of a table."""
        if row is None:
            return "--"
        last = row[self.block.columns[-1]] if self.block.columns else ""
        form = self.block.formats.get(last, self.block.format)
        if name == "published":
            return printed(row["published"], row["bracket"], form) if row["published"] else "--"
        if name == "verdict":
            letter, fitting = _LETTERS.get(row["verdict"], "--"), row["fitting"]
            bare = form.model_copy(update={"se": False})
            return f"{letter}: {latex(fitting, form=bare)}" if is_number(fitting) else letter
        keys = ("kept", "kept_se", "kept_status") if name == "kept" else ("value", "se", "status")
        value, se, status = (row[key] for key in keys)
        return shown(value, se, self.layout.labels.get("status", {}).get(status, status), form)

    def _head(self, columns: Sequence[_Key], left: int) -> list[Sequence[str]]:
        """Rows of the head, one a column field, and the rules below all but the last."""
        fields = self.block.columns
        head: list[Sequence[str]] = []
        for depth, field in enumerate(fields[:-1], 1):
            groups = groupby(columns, itemgetter(slice(depth)))
            spans = [(self._label(field, key[-1]), len(list(some))) for key, some in groups]
            wide = [rf"\multicolumn{{{width}}}{{c}}{{{label}}}" for label, width in spans]
            head.append([*[""] * left, *wide])
            ends = accumulate((width for _, width in spans), initial=left)
            head += [rf"\cmidrule(lr){{{first + 1}-{last}}}" for first, last in pairwise(ends)]
        labels = [self._label(fields[-1], key[-1]) for key in columns] if fields else [""]
        return [*head, [self.block.head, *[""] * (left - 1), *labels]]


def shown(value: float, se: float, status: str, form: Format) -> str:
    """A number with its status: a bound has its sign in front, a missing value is a word."""
    if value is None or not math.isfinite(value):
        return missing(status)
    sign = {"at least": r"$\ge$", "at most": r"$\le$"}[status] if status in BOUNDS else ""
    return sign + latex(float(value), float(se), form)


def tabular(
    columns: str,
    head: Iterable[Sequence[str]],
    body: Iterable[Sequence[str]],
    *,
    breaks: bool = False,
) -> str:
    """A booktabs table, which `breaks` between pages or not; `columns` is LaTeX's specification.

    A row is a sequence of cells that are LaTeX already, or a whole line, such as a rule, as one text.
    """
    above, below = (
        [row if isinstance(row, str) else " & ".join(row) + r" \\" for row in part]
        for part in (head, body)
    )
    name, last = ("longtable" if breaks else "tabular"), [r"\bottomrule"]
    below = [r"\endhead", *last, r"\endfoot", *below] if breaks else [*below, *last]
    top = [rf"\begin{{{name}}}{{{columns}}}", r"\toprule", *above, r"\midrule"]
    return "\n".join([*top, *below, rf"\end{{{name}}}", ""])
