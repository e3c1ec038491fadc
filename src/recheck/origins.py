r"""LaTeX of the look-ups: ``values.tex`` with their texts, ``origins.tex`` with where each comes from.

``\val{key}`` prints a text as a link to the key's row in the appendix, ``\recheckorigins``. The pointer shows all
digits and the source. Where the appendix is in another document, ``\newcommand{\recheckdocument}{supplement.pdf}``
in front of ``\input{values}`` makes the links go there. ``\origin{tables/<name>}`` in a caption names data, rule
and code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from os.path import relpath
from pathlib import Path
from urllib.parse import quote

from recheck.files import write_text
from recheck.format import escape
from recheck.lookups import Found, Study

__all__ = ["web_link", "write_origins", "write_values"]

#: Folders that are under version control.
_TRACKED = ("config/", "data/published/", "data/reference/", "paper/", "src/", "workflow/")
_MOST = 3  # files listed of one number

_MACROS = r"""% Made by recheck.origins. Arguments: options, key, text, what the pointer shows (in hexadecimal digits).
\makeatletter
\newcommand{\recheck@missing}[4]{\expandafter\def\csname recheck@text@#1@#2\endcsname{#3}%
  \expandafter\def\csname recheck@tip@#1@#2\endcsname{#4}}
\newcommand{\recheck@value}[4]{\recheck@missing{#1}{#2}{#3}{#4}%
  \expandafter\let\csname recheck@known@#2\endcsname\relax}
\newcommand{\recheck@unknown}[1]{\PackageError{recheck}{Unknown key '#1'}{Run snakemake again.}}
\providecommand{\recheckdocument}{}
\newcommand{\recheck@goal}[1]{\ifx\recheckdocument\@empty/S/GoTo\else/S/GoToR/F(\recheckdocument)\fi/D(val:#1)}
\newcount\recheck@tips
% \valtext[options]{key}: the text alone. \ifval{key}{if there is a value}{if there is none}
\NewExpandableDocumentCommand{\valtext}{O{}m}{\ifcsname recheck@text@#1@#2\endcsname
  \csname recheck@text@#1@#2\endcsname\else\recheck@unknown{#2}\fi}
\newcommand{\ifval}[3]{\ifcsname recheck@known@#1\endcsname#2\else#3\fi}
% \val[options]{key}: a link, and over it a button with the same target, because that is the annotation of which viewers
% show a text under the pointer.
\NewDocumentCommand{\val}{O{}m}{\leavevmode\global\advance\recheck@tips1
  \pdfstartlink attr{/Border[0 0 0]} user{/Subtype/Link/A<<\recheck@goal{#2}>>}%
  \pdfstartlink user{/Subtype/Widget/FT/Btn/Ff 65536/H/N/F 768/T(value \the\recheck@tips)%
    /TU<\ifcsname recheck@tip@#1@#2\endcsname\csname recheck@tip@#1@#2\endcsname\fi>/A<<\recheck@goal{#2}>>}%
  \valtext[#1]{#2}\pdfendlink\pdfendlink}
"""

_HEAD = r"""% Made by recheck.origins: where numbers, tables and figures come from.
\makeatletter
\newcommand{\recheck@file}[2]{\expandafter\def\csname recheck@origin@#1\endcsname{#2}}
\newcommand{\recheck@row}[3]{\raisebox{2ex}[0pt][0pt]{\hypertarget{val:#1}{}}\nolinkurl{#1}&#2&#3\\}
\newcommand{\recheck@also}[3]{\nolinkurl{#1}&#2&#3\\}
\protected\def\origin#1{{\scriptsize[\ifcsname recheck@origin@#1\endcsname\csname recheck@origin@#1\endcsname
  \else\PackageError{recheck}{Unknown origin '#1'}{Needed is a table or a figure of a layout.}\fi]}}
"""

_TABLE = r"""\newcommand{\recheckorigins}{\begingroup\setlength{\tabcolsep}{3pt}%
\begin{longtable}{@{}>{\raggedright\arraybackslash}p{0.3\textwidth}
  >{\raggedright\arraybackslash}p{0.24\textwidth}>{\raggedright\arraybackslash}p{0.42\textwidth}@{}}
\toprule key&number&file and line; seed\\\midrule\endhead"""


def web_link(place: str, record: Mapping[str, object]) -> str | None:
    """Address of ``file`` or ``file:lines`` at the commit; None without a remote, or if the file is not tracked."""
    path, _, lines = place.partition(":")
    remote, commit = record.get("remote"), record.get("commit")
    if not remote or not commit or not path.startswith(_TRACKED):
        return None
    span = re.match(r"(\d+)(?:-(\d+))?", lines)
    anchor = "#" + "-".join(f"L{line}" for line in span.groups() if line) if span else ""
    return f"{remote}/blob/{commit}/{quote(path)}{anchor}"


def write_values(found: Iterable[Found], path: str | Path) -> None:
    """Write ``values.tex``: the texts of look-ups and the macros that print them."""
    lines = [_MACROS]
    for one in found:
        tip = "; ".join(filter(None, (one.digits, _short(one.source), one.seed)))
        digits = (b"\xfe\xff" + tip.encode("utf-16-be")).hex()
        macro = "value" if one.known else "missing"
        lines.append(rf"\recheck@{macro}{{{one.options}}}{{{one.key}}}{{{one.text}}}{{{digits}}}")
    write_text(path, "\n".join([*lines, r"\makeatother", ""]))


def write_origins(
    found: Iterable[Found],
    studies: Mapping[str, Study],
    record: Mapping[str, object],
    folder: str | Path,
    path: str | Path,
) -> None:
    r"""Write ``origins.tex``: the rows of the appendix, and what ``\origin`` prints.

    Parameters
    ----------
    found : iterable of Found
        `recheck.lookups.collect`.
    studies : mapping of str to Study
        Their tables and figures have entries ``tables/<name>``; of all but the first ``<study>/tables/<name>``.
    record : mapping
        Provenance: with ``remote`` and ``commit``, tracked files are linked on the web, by line.
    folder : path
        Where the PDF will be, from the root of the repository; other files are linked from there.
    path : path
        Where to write.
    """
    folder = Path(folder).as_posix()
    lines = [_HEAD]
    for number, (name, study) in enumerate(studies.items()):
        for key, text in _entries(study, record, folder):
            lines.append(rf"\recheck@file{{{f'{name}/' if number else ''}{key}}}{{{text}}}")
    # a key can be looked up in kept results and in this run
    rows: dict[str, dict[str, str]] = {}
    lines_of_rows = []
    for one in found:
        rows.setdefault(one.key, {}).setdefault(one.source, _row(one, record, folder))
    for key, texts in rows.items():
        for number, text in enumerate(texts.values()):
            anchor = rf"\recheck@{'also' if number else 'row'}"
            lines_of_rows.append(f"{anchor}{{{key}}}{text}")
    lines += [_TABLE, *lines_of_rows, r"\bottomrule\end{longtable}\endgroup}", r"\makeatother", ""]
    write_text(path, "\n".join(lines))


def _row(one: Found, record: Mapping[str, object], folder: str) -> str:
    digits = one.digits if len(one.digits) < 60 else f"{one.digits[:57]}..."
    number = [escape(digits).replace(" +- ", r" $\pm$ ")]
    if one.count:
        number.append(one.count)
    if one.verdict and one.verdict != digits:
        number.append(escape(one.verdict))
    places = one.source.split("; ")
    where = [_link(place, record, folder) for place in places[:_MOST] if place]
    if len(places) > _MOST:
        where.append(f"and {len(places) - _MOST} more")
    if one.seed:
        where.append(rf"seed \nolinkurl{{{one.seed}}}")
    return f"{{{'; '.join(number)}}}{{{'; '.join(where)}}}"


def _entries(study: Study, record: Mapping[str, object], folder: str) -> Iterable[tuple[str, str]]:
    """Data, rule and code of each table and figure."""
    for kind, entries in (("tables", study.layout.tables), ("figures", study.layout.figures)):
        for name, entry in entries.items():
            places = [f"{study.results}/measures/{part}.csv" for part in entry.reads]
            data = [f"{study.results}/tables/{name}.csv"] if kind == "tables" else []
            code = study.code.get(f"{kind}/{name}", study.layout_file)
            parts = [_link(place, record, folder) for place in data]
            if places:
                parts.append("from " + ", ".join(_link(one, record, folder) for one in places))
            parts.append(rf"rule \nolinkurl{{{name}}}")
            if code:
                parts.append(_link(code, record, folder))
            yield f"{kind}/{name}", "; ".join(parts)


def _link(place: str, record: Mapping[str, object], folder: str) -> str:
    """A file as a link to the commit on the web, or to where it lies beside the PDF."""
    address = web_link(place, record)
    if address is None:
        file = place.partition(":")[0]
        address = f"run:{relpath(file, folder)}"
    address = re.sub("[%#]", r"\\\g<0>", address)
    return rf"\href{{{address}}}{{\nolinkurl{{{_short(place.removeprefix(f'{folder}/'))}}}}}"


def _short(source: str) -> str:
    """A source whose lists of lines and of files are cut short."""
    places = []
    for place in source.split("; "):
        file, colon, lines = place.partition(":")
        places.append(file + colon + (lines if len(lines) <= 24 else f"{lines[:21]}..."))
    return "; ".join([*places[:_MOST], *(["..."] if len(places) > _MOST else [])])
