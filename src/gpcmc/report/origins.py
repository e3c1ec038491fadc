r"""From a number back to its origin: file, line, replicates, seed, verdict; and links to all of them.

A value names the file that it was read or computed from (`Value.source`). Its key names the rows:
``variance/experiment1/problem2/ratio`` is the row of ``tables/variance.csv`` whose columns
``experiment`` and ``problem`` are 1 and 2, and ``claims/evidence-ten/shipped/phrase`` that with this
``claim`` and ``form``. Where several rows remain and the number itself stands in just one, it is that one.
A value that rests on rows which its key does not name says so (`Source.rows`). Rows that are too many to
list are said by what selects them.
From a row of a table the same names lead on to the result rows that the table summarises, with their
seeds. No line is guessed: what names no row keeps its file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from os.path import commonprefix, relpath
from pathlib import Path
from posixpath import commonpath
from typing import NamedTuple
from urllib.parse import quote

import pandas as pd

from gpcmc.audit import ResultFiles
from gpcmc.report.audit import appendix, claims_table, controls_table
from gpcmc.report.latex import escape
from gpcmc.report.registry import FIGURES, TABLES
from gpcmc.report.value import Value, code_of

__all__ = ["trace", "web_link", "write_origins"]

#: Columns that a key can name as ``<column><number>``, or by one letter as the paper does.
_NUMBERED = {
    **{name: name for name in ("experiment", "table", "problem", "set", "dataset")},
    "N": "dimension",
    "M": "samples",
}
#: Columns of which a key can have an entry (blanks as hyphens).
_NAMED = (
    *("method", "series", "measure", "claim", "form"),
    *("case", "sampler", "switched", "defect", "setting"),
)
#: Columns of a row of a table by which the result rows behind it are found.
_FOLLOWED = ("problem", "dimension", "samples", "set", "dataset", "method", "sampler", "switched")
#: So many stretches of lines are listed.
_MOST = 20
#: Folders that are under version control.
_TRACKED = ("config/", "data/published/", "data/reference/", "paper/", "src/", "workflow/")


def _plain(text: str) -> str:
    """A name or a number in one spelling, so that 50, 50.0 and 5e1 are equal."""
    try:
        return repr(float(text))
    except ValueError:
        return text.replace(" ", "-")


class _File:
    """A CSV file as text, its rows by their lines.

    Attributes
    ----------
    frame : DataFrame
        Without rows where an entry spans lines.
    written : DataFrame
        The same with the entries as they stand in the file.
    names : dict of str to set of str
        Entries of the columns that a key can name.
    """

    def __init__(self, path: Path) -> None:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        with path.open("rb") as stream:
            lines = sum(1 for _ in stream)
        if lines != len(frame) + 1:
            frame = frame.iloc[:0]
        frame.index = pd.RangeIndex(2, len(frame) + 2)
        self.written = frame.copy()
        self._spelt: dict[str, pd.Series] = {}
        columns = [name for name in (*_NAMED, *_NUMBERED.values()) if name in frame]
        for name in columns:
            frame[name] = frame[name].map(_plain)
        self.frame = frame
        self.names = {name: set(frame[name]) for name in columns}
        if "id" in frame:
            self.names["id"] = set(frame["id"])

    def named_by(self, key: str) -> dict[str, set[str]]:
        """Columns that a key names, and the entries that it wants there."""
        if (row := _row_id(key, self.names.get("id", ()))) is not None:
            return {"id": {row}}
        wanted: dict[str, set[str]] = {}
        for part in key.split("/"):
            numbered = re.fullmatch(r"([A-Za-z]+?)(\d+)", part)
            column = _NUMBERED.get(numbered.group(1), "") if numbered else ""
            if numbered and column in self.names:
                wanted.setdefault(column, set()).add(_plain(numbered.group(2)))
            for name in _NAMED:
                if part in self.names.get(name, ()):
                    wanted.setdefault(name, set()).add(part)
        return wanted

    def rows(self, wanted: Mapping[str, set[str]]) -> pd.DataFrame:
        """The rows that have one of the wanted entries in each of these columns."""
        frame = self.frame
        for column, entries in wanted.items():
            if not self.names[column] <= entries:
                frame = frame[frame[column].isin(entries)]
        return frame

    def selected(self, entries: Mapping[str, str]) -> pd.DataFrame:
        """The rows with these entries (several with ``|`` between), none where a column is missing."""
        if not set(entries) <= set(self.frame):
            return self.frame.iloc[:0]
        here = pd.Series(True, index=self.frame.index)
        for column, entry in entries.items():
            if column not in self._spelt:
                self._spelt[column] = self.frame[column].map(_plain)
            here &= self._spelt[column].isin({_plain(one) for one in entry.split("|")})
        return self.frame[here]

    def filter(self, key: str, rows: pd.DataFrame) -> dict[str, str]:
        """What tells the rows that a key names from the others, as `selected` takes it."""
        written = self.written.loc[rows.index]
        return {
            name: "|".join(written[name].unique())
            for name, entries in self.named_by(key).items()
            if not self.names[name] <= entries
        }

    def with_number(self, rows: pd.DataFrame, value: object) -> pd.DataFrame:
        """The one row in which this number stands, or all; counts are no one's fingerprint."""
        if not isinstance(value, float) or value == round(value, 3) or len(rows) < 2:
            return rows
        # files have eight digits, the audit's six
        here = (self._numbers.loc[rows.index] - value).abs() <= 6e-6 * abs(value)
        found = rows[here.any(axis=1)]
        return found if len(found) == 1 else rows

    @cached_property
    def _numbers(self) -> pd.DataFrame:
        return self.frame.apply(pd.to_numeric, errors="coerce")


def _row_id(key: str, ids: Container[str]) -> str | None:
    """The id that a key has but for its last part; of a statement also without ``claim/`` in front of it."""
    row = key.rpartition("/")[0].removeprefix("claim/")
    return row if row in ids else None


@cache
def _opened(path: Path, stamp: int) -> _File:
    return _File(path)


def _open(path: Path) -> _File:
    return _opened(path, path.stat().st_mtime_ns)


def _stretches(lines: Iterable[int]) -> str | None:
    """Line numbers as "2-11, 20"; None where they are too many to list."""
    found: list[list[int]] = []
    for line in lines:
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    if not 0 < len(found) <= _MOST:
        return None
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _narrowed(key: str, paths: Sequence[Path]) -> list[Path]:
    """The files that the key names: each part of a path is a name, and of ``linear_ess.csv`` each word."""
    kept = list(paths)
    for level in range(max((len(path.parts) for path in paths), default=0)):
        names = {
            path: {path.stem, *path.stem.split("_")}
            if level == len(path.parts) - 1
            else set(path.parts[level : level + 1])
            for path in kept
        }
        hits = {path: len(names[path].intersection(key.split("/"))) for path in kept}
        kept = [path for path in kept if hits[path] == max(hits.values())]
    return kept


def _pattern(paths: Sequence[Path]) -> str:
    """One path, or what several of the same depth have in common, with ``*`` for the rest."""
    parts = []
    for names in zip(*(path.as_posix().split("/") for path in paths), strict=True):
        head = commonprefix(names)  # noqa: RUF071 (letters)
        tail = commonprefix([name[len(head) :][::-1] for name in names])[::-1]  # noqa: RUF071
        # "N50.csv" and "N200.csv" are N*.csv
        parts.append(
            head if len(set(names)) == 1 else f"{head}*{re.sub('^[A-Za-z0-9]+', '', tail)}"
        )
    return "/".join(parts)


class _Behind(NamedTuple):
    """Result rows: how many, what their seeds begin with, and their files."""

    number: int | None
    seed: str | None
    files: str | None


def _behind(key: str, paths: Sequence[Path], row: Mapping[str, str]) -> _Behind:
    """The result rows that the key names, or the row of a table that it has led to.

    Their number is None where neither narrows them down.
    """
    kept = _narrowed(key, paths)
    chosen, narrowed = {}, len(kept) < len(paths)
    for path in kept:
        file = _open(path)
        if "seed" in file.frame:
            named = {name: {entry} for name, entry in row.items() if name in file.names}
            chosen[path] = file.rows(file.named_by(key) | named)
            narrowed |= len(chosen[path]) < len(file.frame)
    found = _rows_of(chosen)
    return found if narrowed else found._replace(number=None)


def _rows_of(chosen: Mapping[Path, pd.DataFrame]) -> _Behind:
    """Number, seeds and files of rows; of those without a column of seeds the files alone."""
    count, seeds = 0, set()
    folders: dict[tuple[Path, bool], list[Path]] = {}
    for path, rows in chosen.items():
        if "seed" in rows:
            count += len(rows)
            seeds |= set(rows["seed"]) - {""}
        if len(rows):
            deep = path.parent.name.startswith("problem")
            folders.setdefault((path.parents[deep], deep), []).append(path)
    files = "; ".join(map(_pattern, folders.values()))
    return _Behind(count or None, commonpath(seeds) if seeds else None, files or None)


def _json_line(key: str, value: object, path: Path) -> str | None:
    """The line of a JSON file with an entry of that name, and with that value where several have it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for name in reversed(key.split("/")):
        spelt = (f'"{name}', f'"{name.replace("-", "_")}')
        here = [n for n, line in enumerate(lines, 1) if any(one in line for one in spelt)]
        if here:
            with_value = [number for number in here if str(value) in lines[number - 1]]
            return str((with_value or here)[0])
    return None


def trace(
    values: Mapping[str, Value],
    audited: pd.DataFrame,
    files: ResultFiles,
    folder: str | Path,
    reads: Mapping[str, Sequence[str]],
) -> dict[str, Value]:
    """Fill in where every value comes from.

    Parameters
    ----------
    values : mapping of str to Value
        `collect`.
    audited : DataFrame
        `read_audit` of cells and statements: values of a cell have its id in front, and values of a
        statement ``claim/`` and its id.
    files : ResultFiles
        All result files of the run.
    folder : path
        ``results/<scale>``, to which the sources of the values are relative, but those that begin with
        ``data/`` or name a result file in full.
    reads : mapping of str to sequence of str
        The kinds of result files (fields of `ResultFiles`) that each table reads.

    Returns
    -------
    dict of str to Value
        The same values with `line`, `rows`, `also`, `replicates`, `seed`, `cell` and `verdict`, and those
        of tables with `made`.
    """
    folder = Path(folder)
    cells = {
        # other values are called like statements: only keys with this beginning have their verdicts
        f"claim/{row['id']}" if _is_statement(row) else row["id"]: row
        for row in audited.to_dict("records")
    }
    read = {key: _runs_read(row, folder) for key, row in cells.items() if _is_statement(row)}
    return {
        key: _traced(key, value, cells, read, files, folder, reads) for key, value in values.items()
    }


def _traced(
    key: str,
    value: Value,
    cells: Mapping[str, Mapping[str, object]],
    read: Mapping[str, _Behind],
    files: ResultFiles,
    folder: Path,
    reads: Mapping[str, Sequence[str]],
) -> Value:
    of = key.rpartition("/")[0]
    if (cell := cells.get(of)) is not None:
        value = replace(value, cell=str(cell["id"]), verdict=str(cell["verdict"]))
    if value.source.startswith("src/"):
        source, _, where = value.source.partition(":")
        return replace(value, source=source, line=where or None)
    paths = _narrowed(key, _paths(value.source, folder))
    if not paths:  # said in the paper that is audited, or not run
        return value
    if paths[0].suffix == ".json":
        line = _json_line(key, value.value, paths[0])
        return replace(value, source=_pattern(paths), line=line)
    if paths[0].suffix != ".csv":
        return replace(value, source=_pattern(paths))
    value, row, behind = _placed(key, value, folder)
    table = Path(value.source).stem if "/tables/" in value.source else ""
    paths = []
    if table in reads:
        value = replace(value, made=value.made or code_of(TABLES[table]))
        paths = [p for kind in reads[table] if kind != "reference" for p in getattr(files, kind)]
    elif of in read:
        behind = read[of]
        value = replace(value, also=behind.files)
    elif cell is not None and behind.seed:  # the audit counts only rows that count
        behind = behind._replace(number=int(float(str(cell["replicates"]))))
        value = replace(value, also=_audited(cell, folder))
    if paths:
        entries = {name: _plain(row[name]) for name in _FOLLOWED if name in row}
        behind = _behind(key, _with_rows(paths), entries)
        if "runs" in row:  # so do tables
            behind = behind._replace(number=int(float(row["runs"])))
        value = replace(value, also=behind.files)
    return replace(value, replicates=behind.number, seed=behind.seed)


def _runs_read(claim: Mapping[str, object], folder: Path) -> _Behind:
    """The runs that the check of a statement reads: of its method and problem, if it has such."""
    given = dict(one.split("=", 1) for one in str(claim["parameters"]).split("; ") if one)
    paths = _with_rows(_paths(str(claim["result_file"]), folder))
    chosen = {}
    for path in paths:
        if not path.as_posix().startswith("data/"):  # the reference, kept with the repository
            file = _open(path)
            entries = {name: entry for name, entry in given.items() if name in file.frame}
            chosen[path] = file.selected(entries)
    return _rows_of(chosen)


def _placed(key: str, value: Value, folder: Path) -> tuple[Value, Mapping[str, str], _Behind]:
    """A value of CSV files with its line or what selects its rows, what is known of these, and results among them."""
    every = _paths(value.source, folder)
    opened = {path: _open(path) for path in _narrowed(key, every)}
    if (entries := value.rows) is not None:  # of several files those that have such rows
        chosen = {path: file.selected(entries) for path, file in opened.items()}
        chosen = {path: rows for path, rows in chosen.items() if len(rows)} or chosen
        behind = _rows_of(chosen)
    else:
        chosen = {path: file.rows(file.named_by(key)) for path, file in opened.items()}
        behind = _behind(key, every, {})
    value = replace(value, source=_pattern(list(chosen)))
    if len(chosen) > 1:
        return value, entries or {}, behind
    ((path, named),) = chosen.items()
    rows, whole = named, len(opened[path].frame)
    if entries is None:
        rows = opened[path].with_number(named, value.value)
        if len(rows) == len(named) < whole:
            value = replace(value, rows=opened[path].filter(key, named))
    # all rows of a file are meant if the value says so, or its key, which has named it among others
    if entries is not None or len(every) > 1 or len(rows) < whole or whole == 1:
        value = replace(value, line=_stretches(rows.index))
    if len(rows) != 1:
        return value, entries or {}, behind
    row = {name: entry for name, entry in rows.iloc[0].items() if entry != ""}
    return replace(value, verdict=value.verdict or row.get("verdict")), row, behind


def _is_statement(row: Mapping[str, object]) -> bool:
    """Whether a row of the audit is that of a statement."""
    return isinstance(row.get("statement"), str)


def _audited(cell: Mapping[str, object], folder: Path) -> str | None:
    """Where the audit has a cell, if it is written."""
    for path in _paths("audit.csv", folder):
        rows = _open(path).rows({"id": {str(cell["id"])}})
        return f"{path.as_posix()}:{_stretches(rows.index)}"
    return None


def _paths(source: str, folder: Path) -> list[Path]:
    """The files of a source: one, several with semicolons between, or all that fit a pattern."""
    found: list[Path] = []
    for name in source.split("; "):
        if "*" in name:
            found += sorted(folder.glob(name))
        else:
            found += [path for path in (Path(name), folder / name) if path.is_file()][:1]
    return [path for path in found if not path.name.endswith("_timing.csv")]


def _with_rows(paths: Iterable[Path]) -> list[Path]:
    """The files with a row for each result: neither arrays nor seconds."""
    return [path for path in paths if path.suffix == ".csv" and "_timing" not in path.stem]


def web_link(place: str, record: Mapping[str, object]) -> str | None:
    """Address of a file, or of ``file:lines``, at the commit; None without a remote or for what is not in it."""
    path, _, lines = place.partition(":")
    remote, commit = record.get("remote"), record.get("commit")
    if not remote or not commit or not path.startswith(_TRACKED) or "*" in path:
        return None
    span = re.match(r"(\d+)(?:-(\d+))?", lines)
    anchor = "#" + "-".join(f"L{line}" for line in span.groups() if line) if span else ""
    return f"{remote}/blob/{commit}/{quote(path)}{anchor}"


#: The appendix, and the note that captions end with. The audit's rows have anchors ``audit:<id>``.
_HEAD = r"""% Made by gpcmc.report.origins: where the numbers, tables and figures come from.
\newcommand{\gpcmcfiles}[2]{\expandafter\def\csname gpcmc@files@#1\endcsname{#2}}
% \origin{tables/<name>}, \origin{figures/<name>} or \origin{audit/<name>}: data, rule and code, for a caption
\protected\def\origin#1{{\scriptsize[\ifcsname gpcmc@files@#1\endcsname\csname gpcmc@files@#1\endcsname
  \else\gpcmcunknown{#1}\fi]}}
\makeatletter
\newcommand{\gpcmcrow}[3]{\ifcsname gpcmc@used@#1\endcsname\expandafter\@firstofone
  \else\expandafter\@gobble\fi{\raisebox{2ex}[0pt][0pt]{\hypertarget{val:#1}{}}\nolinkurl{#1}&#2&#3\\}}
\makeatother
"""

_TABLE = r"""\setlength{\tabcolsep}{3pt}\begin{longtable}{@{}>{\raggedright\arraybackslash}p{51mm}
  >{\raggedright\arraybackslash}p{40mm}>{\raggedright\arraybackslash}p{70mm}@{}}
\toprule key&number ($n$: result rows behind it)&file and line; seed; code\\\midrule\endhead"""


def _link(place: str, shown: str, record: Mapping[str, object], beside: Path) -> str:
    """A file as LaTeX that links to the commit on the web, or to where it lies beside the PDF."""
    address = web_link(place, record)
    if address is None:
        path, pattern, _ = place.partition(":")[0].partition("*")
        # of a pattern the folder; with a dot, or LaTeX takes it for a PDF without its ending
        folder = path.rpartition("/")[0]
        address = f"{relpath(folder, beside)}/." if pattern else relpath(path, beside)
    address = re.sub("[%#]", r"\\\g<0>", address)
    return rf"\href{{{address}}}{{\nolinkurl{{{shown}}}}}"


class _Made(NamedTuple):
    """What a caption names: the data beside the PDF, the kinds of result files read, rule and function."""

    data: str | None
    reads: Sequence[str]
    rule: str
    make: Callable[..., object]


def _made(reads: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, _Made]:
    r"""All that stands under a caption, by the name that it has for ``\origin``."""
    tables = {
        f"tables/{name}": _Made(
            f"tables/{name}.csv", reads["tables"].get(name, ()), f"tabulate_{name}", make
        )
        for name, make in TABLES.items()
    }
    figures = {
        f"figures/{name}": _Made(None, reads["figures"].get(name, ()), f"draw_{name}", make)
        for name, make in FIGURES.items()
    }
    audits = {
        "audit/cells": _Made("audit.csv", (), "compare_cells", appendix),
        "audit/columns": _Made("audit_columns.csv", (), "compare_cells", appendix),
        "audit/claims": _Made("audit_claims.csv", (), "judge_claims", claims_table),
        "audit/controls": _Made("controls.csv", (), "plant_faults", controls_table),
    }
    return tables | figures | audits


def write_origins(
    values: Mapping[str, Value],
    files: ResultFiles,
    record: Mapping[str, object],
    folder: str | Path,
    reads: Mapping[str, Mapping[str, Sequence[str]]],
    path: str | Path,
) -> None:
    r"""Write the appendix of the values, ``\gpcmcorigins``, and what ``\origin`` says in a caption.

    Parameters
    ----------
    values : mapping of str to Value
        `trace`.
    files : ResultFiles
        All result files of the run.
    record : mapping
        `provenance`: with a remote and a commit, files under version control are linked there, by line.
        All others are linked where they lie beside the PDF.
    folder : path
        ``results/<scale>``, where the PDF will be; shown without it.
    reads : mapping
        The kinds of result files that each of the ``tables`` and ``figures`` reads.
    path : path
        Where to write.
    """
    folder = Path(folder)

    def link(place: str) -> str:
        return _link(place, place.removeprefix(f"{folder.as_posix()}/"), record, folder)

    lines = []
    for name, (own, kinds, rule, make) in _made(reads).items():
        given = [getattr(files, kind) for kind in kinds]
        parts = [link(f"{folder.as_posix()}/{own}")] if own else []
        if data := [link(_pattern(paths)) for paths in given if paths]:
            parts.append(f"from {', '.join(data)}")
        parts.append(rf"rule \nolinkurl{{{rule}}} in {link(code_of(make))}")
        lines.append(rf"\gpcmcfiles{{{name}}}{{{'; '.join(parts)}}}")
    rows = []
    for key, value in values.items():
        digits = value.digits if len(value.digits) < 60 else f"{value.digits[:57]}..."
        number = [escape(digits).replace(" +- ", r" $\pm$ ")]
        if value.replicates is not None:
            number.append(f"$n={value.replicates}$")
        if value.verdict and value.verdict != digits:
            said = escape(value.verdict)
            number.append(rf"\hyperlink{{audit:{value.cell}}}{{{said}}}" if value.cell else said)
        where = [link(value.place) if "/" in value.source else escape(value.source)]
        if value.which:
            breaking = re.sub("[/|]", r"\g<0>\\allowbreak{}", escape(value.which))
            where[0] += rf" \texttt{{{breaking}}}"
        where += [link(place) for place in (value.also or "").split("; ") if place]
        if value.seed:
            where.append(rf"seed \nolinkurl{{{value.seed}}}")
        if value.made:
            where.append(f"made in {link(value.made)}")
        where.append(f"printed in {link(value.code)}" if value.made else link(value.code))
        rows.append(rf"\gpcmcrow{{{key}}}{{{'; '.join(number)}}}{{{'; '.join(where)}}}")
    lines += [r"\newcommand{\gpcmcorigins}{%", _TABLE, *rows, r"\bottomrule\end{longtable}}"]
    Path(path).write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
