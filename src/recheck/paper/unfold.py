r"""The LaTeX source of a paper as one text that a converter reads: inputs, captions and numbers put in their places.

A converter does not know the macros of `recheck.paper.lookups` (``\val``, ``\tablecaption``, ``\origin`` ...), which
are expanded here, nor how wide a column is, which is left out. A number becomes a link to ``lookup:`` and its place in
the list.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

#: What the links of numbers begin with.
LOOKUP = "lookup:"
#: What the first cell of a row of a table's head begins with.
HEAD = "\uf8ff"
#: What the marks of origins in captions begin with.
ORIGIN = "origin:"
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*\n?[ \t]*")


@dataclass(frozen=True, slots=True)
class Sources:
    """Files that a paper is made of; `drawn` has its tables (``<name>.tex``) and figures (``<name>.png``)."""

    main: Path
    captions: Path
    origins: Path
    drawn: Path


class _Macro(NamedTuple):
    """How many arguments a macro has, and what stands in its place: a function of the option and the arguments."""

    arguments: int
    text: Callable[..., str]


def unfold(sources: Sources, numbers: Sequence[Mapping[str, Any]]) -> str:
    """The whole text, with the definitions of the preamble that it uses.

    `numbers` are `recheck.paper.records.records` of its look-ups. ValueError names a look-up, a caption or a file that
    is not there.
    """
    whole = _read(sources.main)
    preamble, _, body = whole.partition(r"\begin{document}")
    for name in re.findall(r"\\input\{([^{}]+)\}", preamble):
        if (path := sources.main.parent / f"{name}.tex").exists():
            preamble += _read(path)
    body = _expanded(body, _parts(sources))
    body = _expanded(body, {"ifval": _Macro(3, _choice(numbers))})
    body = _simple_tables(_expanded(body, _boxes()))
    body = re.sub(r"(?m)^([ \t]*)\\quad(?![A-Za-z])[ \t]*", "\\1\N{EM SPACE}", body)
    definitions = "\n".join(_definitions(preamble, body))
    body = "\n".join([*_front_matter(preamble), rf"\begin{{document}}{body}"])
    return f"{definitions}\n{_with_numbers(body, numbers)}"


def _read(path: Path) -> str:
    return _COMMENT.sub(r"\1", path.read_text(encoding="utf-8"))


def _group(text: str, start: int) -> tuple[str, int]:
    """The group in braces that begins at or after a place, and where it ends."""
    opened = re.compile(r"\s*\{").match(text, start)
    if not opened:
        raise ValueError(f"needed is a group in braces: {text[max(start - 40, 0) : start + 20]!r}")
    depth, place = 1, opened.end()
    for brace in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, place):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return text[place : brace.start()], brace.end()
    raise ValueError(f"a brace is not closed: {text[start : start + 60]!r}")


def _calls(
    text: str, macros: Mapping[str, _Macro], place: int = 0
) -> Iterator[tuple[int, int, str, list[str]]]:
    """Where each macro stands and ends, its name, and its option and arguments."""
    names = "|".join(map(re.escape, macros))
    head = re.compile(rf"\\({names})(?![A-Za-z@])\s*(?:\[([^\]]*)\])?")
    while call := head.search(text, place):
        given, place = [call[2] or ""], call.end()
        for _ in range(macros[call[1]].arguments):
            argument, place = _group(text, place)
            given.append(argument)
        yield call.start(), place, call[1], given


def _expanded(text: str, macros: Mapping[str, _Macro]) -> str:
    """The text with macros replaced, those of replacements too; ValueError if one comes up in its own text."""
    place, depth = (
        0,
        list[tuple[int, str]](),
    )  # of the replacements around a place: how much follows, and the call
    while call := next(_calls(text, macros, place), None):
        place, end, name, given = call
        depth = [one for one in depth if len(text) - place > one[0]]
        if (said := f"\\{name}{given}") in [one for _, one in depth]:
            raise ValueError(f"{said} is put into itself")
        depth.append((len(text) - end, said))
        text = text[:place] + macros[name].text(*given) + text[end:]
    return text


def _parts(sources: Sources) -> dict[str, _Macro]:
    """What the build puts into the text: tables, captions and origins."""
    captions, origins = _read(sources.captions), _read(sources.origins)
    defined = re.compile(r"\\expandafter\\def\\csname ((?:table|figure)caption@[^\\]+)\\endcsname")
    said = {one[1]: _group(captions, one.end())[0] for one in defined.finditer(captions)}
    filed = re.compile(r"\\recheck@file\{([^{}]*)\}")
    places = {one[1]: _group(origins, one.end())[0] for one in filed.finditer(origins)}

    def there(known: Mapping[str, str], name: str, what: str) -> str:
        if name not in known:
            raise ValueError(f"{sources.main}: there is no {what} {name!r}")
        return known[name]

    def put(_: str, name: str) -> str:
        path = sources.drawn / f"{name.removeprefix('tables/')}.tex"
        if not path.exists():
            raise ValueError(f"{sources.main}: {name!r} is not there: {path}")
        return _read(path)

    return {
        "input": _Macro(1, put),
        "tablecaption": _Macro(1, lambda _, x: there(said, f"tablecaption@{x}", "caption")),
        "figurecaption": _Macro(1, lambda _, x: there(said, f"figurecaption@{x}", "caption")),
        "origin": _Macro(
            1,
            lambda _, x: rf"\hypertarget{{{ORIGIN}{x}}}{{[{there(places, x, 'origin').strip()}]}}",
        ),
    }


def _choice(numbers: Sequence[Mapping[str, Any]]) -> Callable[..., str]:
    known = {one["key"] for one in numbers if one["known"]}
    return lambda _, key, there, missing: there if key in known else missing


def _boxes() -> dict[str, _Macro]:
    """A box around a paragraph is a division of the page; other boxes are left out."""

    def box(_: str, content: str) -> str:
        inner = content.strip()
        if not inner.startswith(r"\begin{minipage}"):
            return content
        _, start = _group(inner, len(r"\begin{minipage}"))
        inner = inner[start:].removesuffix(r"\end{minipage}")
        return rf"\begin{{note}}{inner}\end{{note}}"

    return {"fbox": _Macro(1, box)}


def _simple_tables(text: str) -> str:
    """Columns of tables have an alignment alone, for widths, spaces and places are those of a printed page."""

    def simple(columns: str) -> str:
        kept, place = "", 0
        while place < len(columns):
            letter, place = columns[place], place + 1
            if letter in "@><!pmb":
                _, place = _group(columns, place)
            kept += "l" if letter in "pmb" else letter if letter in "lrc|" else ""
        return kept

    for start in (r"\begin{tabular}", r"\begin{longtable}"):
        parts = text.split(start)
        for number, part in enumerate(parts[1:], 1):
            part = re.sub(r"^\s*\[\w\]", "", part)
            columns, end = _group(part, 0)
            parts[number] = f"{{{simple(columns)}}}{part[end:]}"
        text = start.join(parts)
    spans = {"multicolumn": _Macro(2, lambda *_: "")}
    pieces, place = [], 0
    for begin, end, name, (_, width, columns) in _calls(text, spans):
        pieces += [text[place:begin], rf"\{name}{{{width}}}{{{simple(columns)}}}"]
        place = end
    # a converter takes what follows a space between rows, a number for example, for its argument
    rules = r"\\addlinespace(?:\[[^\]]*\])?|\\cmidrule(?:\([^)]*\))?\{[^{}]*\}"
    text = re.sub(rules, "", "".join([*pieces, text[place:]]))
    return re.sub(r"(?s)(\\toprule)(.*?)(?=\\midrule)", _marked, text)


def _marked(head: re.Match[str]) -> str:
    """The rows of a head, each with a mark: a converter does not tell a second one from the table's first row."""
    rows = re.split(r"\\\\(?:\[[^\]]*\])?", head[2])
    marked = [f"\n{HEAD}{row.lstrip()}" if row.strip() else row for row in rows]
    return head[1] + "\\\\".join(marked)


def _definitions(preamble: str, body: str) -> Iterator[str]:
    """Macros that the preamble defines and the text uses."""
    for found in re.finditer(r"\\newcommand\{\\([A-Za-z]+)\}(?:\[[^\]]*\])*", preamble):
        if re.search(rf"\\{found[1]}(?![A-Za-z])", body):
            content, _ = _group(preamble, found.end())
            yield f"{found[0]}{{{content}}}"


def _front_matter(preamble: str) -> Iterator[str]:
    for start, end, *_ in _calls(preamble, {n: _Macro(1, str) for n in ("title", "author")}):
        yield preamble[start:end]


def _with_numbers(text: str, numbers: Sequence[Mapping[str, Any]]) -> str:
    r"""Look-ups replaced by links, or by their text alone (``\valtext``); a formula is closed around a link."""
    places = {(one["key"], one["options"]): place for place, one in enumerate(numbers)}
    macros = {name: _Macro(1, str) for name in ("val", "valtext")}
    pieces, place, formula = [], 0, False
    for start, end, name, (options, key) in _calls(text, macros):
        if (key, options) not in places:
            raise ValueError(f"\\{name}[{options}]{{{key}}}: this look-up has no answer")
        before = text[place:start]
        formula ^= len(re.findall(r"(?<!\\)\$", before)) % 2 == 1
        number = places[key, options]
        shown = numbers[number]["tex"]
        if name == "val":
            shown = rf"\href{{{LOOKUP}{number}}}{{{shown}}}"
        pieces += [before, f"${shown}$" if formula else shown]
        place = end
    return re.sub(r"(?<!\\)\$\s*\$", "", "".join([*pieces, text[place:]]))
