r"""Tables as people have them: CSV with any separator, Excel, Markdown, a LaTeX tabular, columns copied from a PDF.

`read_sheet` returns rows of text with their lines in the file. `long` makes one row a number of a wide table, with ids
that a person recognises: ``ResNet-18/CIFAR-10/Top-1``.
"""

import codecs
import csv
import io
import itertools
import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from recheck.judge.printed import ABSENT, Printed, read, refuse, shortly

#: Bytes and cells of a table.
_BYTES, _CELLS = 20_000_000, 500_000
#: What a packed file begins with, such as a workbook of Excel, and an old workbook.
_PACKED, _OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_RULES = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfoot|endfirsthead|endlastfoot|tabularnewline)(?![A-Za-z])(?:\[[^\]]*\])?"
    r"|\\(?:cmidrule|cline|cmidrule)\s*(?:\([^)]*\))?\s*\{[^{}]*\}|\\addlinespace(?:\[[^\]]*\])?"
)
_SPAN = re.compile(
    r"\\multicolumn\s*\{(\d+)\}\s*\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}\s*\{(.*)\}\s*$", re.S
)
_DOWN = re.compile(
    r"\\multirow\s*(?:\[[^\]]*\])?\{\*?\d*\}\s*(?:\[[^\]]*\])?\{[^{}]*\}\s*\{(.*)\}\s*$", re.S
)
_BEGINS = re.compile(r"[-+<>~($\[*\\]*\d")
_BLANK = re.compile(r"(?<=[\d%)\]}])\s*(±|\\pm|\+/-)\s*(?=[\d.])")


class Sheet(NamedTuple):
    """Rows of text, each with its line in the file, and what the file is called in messages."""

    rows: list[list[str]]
    lines: list[int]
    name: str


def read_sheet(path: str | Path, comma: bool = False) -> Sheet:
    """Read a table; the path ``-`` is standard input. ValueError names the file and the remedy.

    `comma` says that decimals stand behind a comma, which then separates no columns.
    """
    name = "standard input" if str(path) == "-" else str(path)
    content = _content(path, name)
    if content.startswith(_PACKED) or Path(path).suffix.lower() in (".xlsx", ".xlsm"):
        return _excel(content, name)
    text = _text(content, name)
    if r"\begin{tabular" in text or r"\begin{longtable" in text or re.search(r"&.*\\\\", text):
        rows, lines = _latex(text)
    elif re.search(r"^\s*\|.*\|\s*$", text, re.M) and re.search(
        r"^\s*\|?[\s:|-]*-[\s:|-]*\|", text, re.M
    ):
        rows, lines = _markdown(text)
    else:
        rows, lines = _separated(text, name, comma)
    return _checked(rows, lines, name)


def _content(path: str | Path, name: str) -> bytes:
    if str(path) == "-":
        content = sys.stdin.buffer.read(_BYTES + 1)
    else:
        if not Path(path).exists() or Path(path).is_dir():
            raise ValueError(f"{path}: there is no such file")
        with Path(path).open("rb") as stream:
            content = stream.read(_BYTES + 1)
    if len(content) > _BYTES:
        raise ValueError(f"{name}: needed is a table of at most {_BYTES} bytes")
    return content


def _text(content: bytes, name: str) -> str:
    if content.startswith(_OLD):
        raise ValueError(f"{name}: this is a workbook of an old Excel: save it as .xlsx or as CSV")
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(f"{name}: line {line}: needed is text in UTF-8; save it as that") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise ValueError(f"{name}: line {line}: needed is text; there is a zero byte")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _checked(rows: list[list[str]], lines: list[int], name: str) -> Sheet:
    kept = [(row, line) for row, line in zip(rows, lines, strict=True) if any(map(str.strip, row))]
    if not kept:
        needed = (
            "needed is a CSV file whose first line has the names of its columns, or another table"
        )
        raise ValueError(f"{name}: it has no rows; {needed}")
    if sum(len(row) for row, _ in kept) > _CELLS:
        raise ValueError(f"{name}: needed is a table of at most {_CELLS} cells")
    return Sheet(
        [[one.strip() for one in row] for row, _ in kept], [line for _, line in kept], name
    )


def _excel(content: bytes, name: str) -> Sheet:
    """The first sheet of a workbook; numbers have the decimals of their format."""
    try:
        from openpyxl import load_workbook  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(
            f"{name}: Excel needs openpyxl: pip install openpyxl, or save it as CSV"
        ) from None
    try:
        sheet = load_workbook(io.BytesIO(content), read_only=True, data_only=True).worksheets[0]
        rows = [
            [_shown(one.value, getattr(one, "number_format", "")) for one in row]
            for row in sheet.iter_rows()
        ]
    except Exception as error:  # the library has many kinds of them
        raise ValueError(
            f"{name}: not a workbook of Excel ({type(error).__name__}); save it as CSV"
        ) from None
    return _checked(rows, list(range(1, len(rows) + 1)), name)


def _shown(value: object, form: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    found = re.fullmatch(r"[#,]*0(?:\.(0+))?(%?)", form or "")
    if not found:
        return repr(value)
    return f"{value * (100 if found[2] else 1):.{len(found[1] or '')}f}{found[2]}"


def _markdown(text: str) -> tuple[list[list[str]], list[int]]:
    rows, lines = [], []
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare.count("|") < 2 or re.fullmatch(r"[\s:|-]+", bare):
            continue
        cells = re.split(r"(?<!\\)\|", bare.removeprefix("|"))
        rows.append(
            [one.replace(r"\|", "|") for one in (cells[:-1] if bare.endswith("|") else cells)]
        )
        lines.append(number)
    return rows, lines


def _latex(text: str) -> tuple[list[list[str]], list[int]]:
    text = re.sub(r"(?<!\\)%[^\n]*", "", text)
    start = re.search(r"\\begin\{(?:tabular[*x]?|longtable)\}", text)
    first = text.count("\n", 0, start.start()) + 1 if start else 1
    body = text[start.end() :] if start else text
    body = re.split(r"\\end\{(?:tabular[*x]?|longtable)\}", body)[0]
    if start:
        body = _after_columns(body)
    rows: list[list[str]] = []
    lines: list[int] = []
    above: list[str] = []
    line = first
    for part in re.split(r"\\\\(?:\[[^\]]*\])?", body):
        lead = len(part) - len(part.lstrip())
        place, line = line + part[:lead].count("\n"), line + part.count("\n")
        bare = _RULES.sub(" ", part).strip()
        if not bare:
            continue
        row: list[str] = []
        for cell in re.split(r"(?<!\\)&", bare):
            span = _SPAN.search(cell.strip())
            inner = span[2] if span else cell
            down = _DOWN.search(inner.strip())
            row += [(down[1] if down else inner).strip()] * (min(int(span[1]), 100) if span else 1)
            if down:
                above = [*row]
        # below a cell that spans several rows stands an empty one
        if row and not row[0] and above and above[0]:
            row[0] = above[0]
        rows.append(row)
        lines.append(place)
    return rows, lines


def _after_columns(body: str) -> str:
    """What follows the specification of the columns, and options in front of it."""
    place = 0
    for _ in range(2):
        rest = re.match(r"\s*(?:\[[^\]]*\])?\s*\{", body[place:])
        if not rest:
            break
        depth, end = 1, place + rest.end()
        while depth and end < len(body):
            depth += {"{": 1, "}": -1}.get(body[end], 0)
            end += 1
        inner = body[place + rest.end() : end - 1]
        place = end
        if not re.fullmatch(
            r"\s*(?:[\d.]*\s*\\?[A-Za-z]{2,}\s*|[\d.]+\s*(?:pt|cm|in|mm|em))", inner
        ):
            break
    return body[place:]


def _separated(text: str, name: str, comma: bool) -> tuple[list[list[str]], list[int]]:
    """CSV with its separator, or columns that spaces set apart."""
    every = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    every = [(n, line) for n, line in every if not line.lstrip().startswith("#")]
    sample = [line for _, line in every[:50]]
    marks = ["\t", ";", "|"] + ([] if comma else [","])
    counts = {mark: [line.count(mark) for line in sample] for mark in marks}
    good = [mark for mark, some in counts.items() if some and min(some[:1]) > 0 and _steady(some)]
    # a line of names without any mark: words of a PDF, in which a label may have a comma
    bare = len(every) > 1 and not any(some[0] for some in counts.values())
    if bare and not good and any(" " in line.strip() for line in sample[1:]):
        return _spaced(every)
    mark = good[0] if good else ","
    # a # within a line begins no comment
    kept = "\n".join("" if line.lstrip().startswith("#") else line for line in text.split("\n"))
    rows, lines = [], []
    reader = csv.reader(io.StringIO(kept), delimiter=mark, strict=True)
    try:
        for row in reader:
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        what = f"not CSV: {error}"
        if "end of data" in str(error):
            what = "a quote that opens is never closed: close it, or take it out"
        raise ValueError(f"{name}: line {reader.line_num}: {what}") from None
    if (
        mark == ";" and not comma
    ):  # where a semicolon sets columns apart, a comma may stand before decimals
        unclear = [
            f"{name}: line {line}: {shortly(cell)} may be a thousand or have three decimals: type --comma (of ours "
            "--our-comma) if a comma stands before decimals, else leave it out"
            for row, line in zip(rows, lines, strict=True)
            for cell in row
            if re.fullmatch(r"\W*[1-9]\d{0,2},\d{3}\W*", cell)
        ]
        refuse(unclear)
    return rows, lines


def _steady(counts: Sequence[int]) -> bool:
    """Whether nearly all lines have a mark as often as the first."""
    return sum(one == counts[0] for one in counts) >= 0.8 * len(counts)


def _spaced(every: Sequence[tuple[int, str]]) -> tuple[list[list[str]], list[int]]:
    """Columns of a PDF: set apart by two spaces or more or, from the right, by one."""
    wide = [re.split(r"\s{2,}", line.strip()) for _, line in every]
    if len(wide[0]) > 1 and _steady([len(row) for row in wide]):
        return wide, [n for n, _ in every]
    split = [_BLANK.sub(r"±", line.strip()).split() for _, line in every]
    numbers = [
        len(list(itertools.takewhile(lambda one: _number(one) is not False, reversed(row))))
        for row in split
    ]
    body = [count for count in numbers if count]
    columns = max(set(body), key=body.count) if body else 0
    rows = []
    for row, count in zip(split, numbers, strict=True):
        cut = len(row) - (min(count, columns) if count else columns)
        if cut <= 0 and not count and len(row) == columns:
            cut = 0
        rows.append([" ".join(row[: max(cut, 0)]), *row[max(cut, 0) :]])
    return rows, [n for n, _ in every]


def _number(text: str, comma: bool = False) -> Printed | Literal[False] | None:
    """The number in a cell, None where it says that there is none, False where it is neither."""
    try:
        return read(text, comma)
    except ValueError:
        return False


def slug(label: str) -> str:
    """A label as part of an id: letters, digits and ``. _ = : + -``; empty of nothing else."""
    bare = re.sub(r"\\[A-Za-z]+\*?|[${}*\\]|</?[a-z]+>", " ", label)
    bare = bare.replace("±", "+-").replace("↑", "").replace("↓", "").replace("%", " percent")
    bare = unicodedata.normalize("NFKD", bare).encode("ascii", "ignore").decode()
    return re.sub(r"[^\w.=:+]+", "-", bare.strip(), flags=re.ASCII).strip("-:")[:80]


def long(
    sheet: Sheet,
    *,
    headers: int | None = None,
    labels: int | None = None,
    skip: Sequence[str] = (),
    comma: bool = False,
) -> tuple[list[dict[str, str]], int]:
    """Rows ``id`` and ``printed`` of a wide table, with ``line``, and how many cells hold no number.

    Parameters
    ----------
    sheet : Sheet
    headers, labels : int, optional
        Rows above, and columns in front, that name the numbers; by default those without numbers.
    skip : sequence of str
        Columns that are left out, by their names.
    comma : bool
        Decimals stand behind a comma.

    Raises
    ------
    ValueError
        With a line for every cell that is no number: row, column, text and remedy.
    """
    width = max(map(len, sheet.rows))
    rows = [row + [""] * (width - len(row)) for row in sheet.rows]

    def numeric(text: str) -> bool:
        return bool(_number(text, comma))

    if headers is None:  # what begins as a number but is none is no name: it is refused below
        numbers = (any(numeric(one) or _BEGINS.match(one) for one in row[1:]) for row in rows[1:])
        headers = next((n for n, there in enumerate(numbers, 1) if there), 1)
        # 2020 may be the name of a column, and 93.02 is hardly one
        heads = zip(sheet.lines, rows[:headers], strict=False)
        for line, text in ((line, one) for line, row in heads for one in row[1:]):
            name = _number(text, comma)
            if name and not name.digits.isdigit() and headers < len(rows):
                raise ValueError(
                    f"{sheet.name}: line {line}: is {shortly(text)} the name of a column? Type --headers {headers} if "
                    "it is, or --headers 0 if no row has names"
                )
    if not 0 <= headers <= 2 or headers >= len(rows):
        raise ValueError(
            f"{sheet.name}: {headers} rows before the first number: needed are one or two with names (--headers 1)"
        )
    body = rows[headers:]

    def numbers_in(column: int) -> bool:
        """Whether a column has numbers, or begins like them all along: it is refused below and no name."""
        cells = [row[column] for row in body if row[column]]
        begin = column > 0 and bool(cells) and all(map(_BEGINS.match, cells))
        return begin or any(map(numeric, cells))

    if labels is None:
        labels = 0
        while labels < width - 1 and not numbers_in(labels):
            labels += 1
        if not labels and width > 1 and headers and not any(row[0] for row in rows[:headers]):
            labels = 1  # a column without a name, as an index has none
        if not labels and min(width, len(body)) > 1:
            raise ValueError(
                f"{sheet.name}: do the first columns name the rows, or are they numbers of the table? "
                "Type --labels 1 or --labels 2 if they name them, or --labels 0 if none does"
            )
    if not 0 <= labels < width:
        raise ValueError(f"{sheet.name}: labels: needed are at most {width - 1} of {width} columns")
    names = _names(rows[:headers], width)
    found, wrong, absent = [], [], 0
    known: dict[str, int] = {}
    for place, (row, line) in enumerate(zip(body, sheet.lines[headers:], strict=True), 1):
        label = "/".join(filter(None, map(slug, row[:labels]))) or f"row{place}"
        for column in range(labels, width):
            if names[column] in skip or slug(names[column]) in skip:
                continue
            try:
                if read(row[column], comma) is None:
                    absent += row[column].lower() in ABSENT
                    continue
            except ValueError as error:
                where = f"{sheet.name}: line {line}: row {shortly(' '.join(row[:labels]))}"
                wrong.append(f"{where}, column {shortly(names[column])}: {error}")
                continue
            one = "/".join([label, *filter(None, map(slug, names[column].split("/")))])
            known[one] = known.get(one, 0) + 1
            one += f":{known[one]}" if known[one] > 1 else ""
            found.append({"id": one, "printed": row[column], "line": str(line)})
    hint = "leave columns without numbers out: --skip NAME; in a cell without a number write - or n/a; "
    refuse(wrong, f"{hint}say how many columns name the rows: --labels {max(labels, 1)}")
    if not found:
        raise ValueError(
            f"{sheet.name}: it has no rows with numbers; needed is one for each printed number"
        )
    return found, absent


def _names(heads: Sequence[Sequence[str]], width: int) -> list[str]:
    """Names of columns: of two rows, the upper one holds for the columns to its right."""
    filled = []
    for place, row in enumerate(heads):
        names, last = [], ""
        for text in row:
            last = text or (last if place < len(heads) - 1 else "")
            names.append(last)
        filled.append(names)
    if not filled:
        return [f"column{n}" for n in range(1, width + 1)]
    joined = [
        "/".join(dict.fromkeys(filter(None, (row[n] for row in filled)))) for n in range(width)
    ]
    return [name or f"column{n}" for n, name in enumerate(joined, 1)]
