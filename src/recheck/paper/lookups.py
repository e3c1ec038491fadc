r"""Numbers of the text by name: ``\val{table1/N50/M100}`` prints an estimate and links to where it comes from.

The source of a paper is scanned for look-ups, and only what it uses is written: ``values.tex`` with the texts, and
``origins.tex`` with the lines of the list that they link to. ``\origin{tables/<name>}`` in a caption names data,
rule and code. A key that does not exist stops the build. Section 6 of ``STUDY.md`` beside this file has all of them.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import pandas as pd

from recheck.judge.declared import checked, read_yaml
from recheck.judge.format import Format, full
from recheck.judge.published import Protocol
from recheck.record.files import write_text
from recheck.report.audit import COMPARED, KINDS, VERDICTS, informative
from recheck.report.book import Book
from recheck.report.latex import escape, latex, missing, printed
from recheck.report.layout import Layout
from recheck.report.tables import shown
from recheck.report.templates import rendered

_FLAGS = {"value", "percent", "integer", "nounit"}
_USE = re.compile(r"\\(?:val|valtext|ifval)(?![A-Za-z])\s*(?:\[([^\]]*)\])?\s*\{([^{}]*)\}")
#: Files listed of one number.
MOST = 3


class UnknownKeyError(LookupError):
    """Keys that do not exist, one a line, with the place in the text and keys that are close."""


class Use(NamedTuple):
    """A look-up of the text: its key, its options as typed, and ``file:line`` of the first."""

    key: str
    options: str
    place: str


class Facts(NamedTuple):
    """Values of a JSON or YAML file by nested name, and the file, from the root of the repository."""

    values: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class Study:
    """What look-ups need of a study; folders are named from the root of the repository."""

    book: Book
    layout: Layout
    results: str
    published: str
    kept: str = ""  # folder of kept results
    layout_file: str = ""
    code: Mapping[str, str] = field(default_factory=dict)  # ``file:line`` of ``figures/<name>``
    roots: tuple[str, ...] = ()  # what sources begin with that are named from the root, too


@dataclass(frozen=True, slots=True)
class Found:
    """A look-up that was answered.

    ``text`` is LaTeX: the value if it is ``known``, else a word that says why there is none.
    """

    use: Use
    text: str
    known: bool
    digits: str  # the value in full
    source: str  # ``file:lines`` from the root of the repository, joined by ``"; "``
    seed: str = ""  # what all seeds begin with
    count: str = ""  # units and runs
    verdict: str = ""


class _Asked(NamedTuple):
    """A look-up, and the results in which it is answered."""

    use: Use
    options: Mapping[str, str]
    study: Study
    book: Book
    folder: str

    def form(self, unit: str = "", integer: bool = False) -> Format:
        """How the options print a number."""
        percent = "percent" in self.options
        unit = "" if "nounit" in self.options else unit
        return Format(
            significant=int(self.options["digits"]) if "digits" in self.options else None,
            se="value" not in self.options,
            factor=100.0 if percent else 1.0,
            unit="%" if percent else unit,
            integer=integer or "integer" in self.options,
        )


def uses(files: Iterable[str | Path]) -> list[Use]:
    r"""Find the look-ups (``\val``, ``\valtext``, ``\ifval``) of LaTeX files, each key and option once.

    ValueError if a key has an argument of a macro or white space in it: keys have to be written out.
    """
    found: dict[tuple[str, str], Use] = {}
    for path in map(Path, files):
        text = re.sub(r"(?<!\\)%[^\n]*", "", path.read_text(encoding="utf-8"))
        for match in _USE.finditer(text):
            options, key = match[1] or "", match[2]
            place = f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}"
            if not re.fullmatch(r"[\w./=@:+,;-]+", key, re.ASCII):
                needed = "needed is a key that is written out, of letters, digits and . _ / = @ : + , ; -"
                raise ValueError(f"{place}: key {key!r}: {needed}")
            found.setdefault((key, options), Use(key, options, place))
    return list(found.values())


def collect(
    wanted: Iterable[Use],
    studies: Mapping[str, Study],
    facts: Mapping[str, Facts],
    numbers: str,
) -> list[Found]:
    """Answer look-ups; keys without a study in front are of the first, `facts` are files by name, as keys have it.

    `numbers` is ``kept`` (estimates and verdicts are those of kept results where there are any) or ``run``.
    UnknownKeyError lists all keys that are not there; an unknown option is a ValueError.
    """
    if numbers not in ("kept", "run"):
        raise ValueError(f"numbers: needed is kept or run, given was {numbers!r}")
    answers, unknown = [], []
    for use in wanted:
        try:
            answers.append(_answer(use, studies, facts, numbers))
        except KeyError as error:
            unknown.append(f"{use.place}: key {use.key!r} {error.args[0]}")
    if unknown:
        raise UnknownKeyError("\n".join(unknown))
    return answers


def evidence(readings: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """What speaks for each level, by choice and kind, with how far it is ``behind`` the ``best`` in log likelihood.

    Where no number has a likelihood, the best level is the one under which most numbers agree.
    """
    values: dict[str, dict[str, Any]] = {}
    order = ["log_likelihood", "agrees"]
    ordered = readings.sort_values(order, ascending=False, kind="stable")
    for (choice, kind), rows in ordered.groupby(["choice", "kind"]):
        behind = rows["log_likelihood"].max() - rows["log_likelihood"]
        levels = rows.assign(behind=behind).set_index("level").to_dict("index")
        values.setdefault(choice, {})[kind] = levels | {"best": rows["level"].iloc[0]}
    return values


def _answer(
    use: Use, studies: Mapping[str, Study], facts: Mapping[str, Facts], numbers: str
) -> Found:
    options, (front, study, key) = _options(use), study_and_key(use.key, studies)
    kind, _, rest = key.partition(":")
    old = study.book.kept if numbers == "kept" else None
    asked = _Asked(use, options, study, old or study.book, study.kept if old else study.results)
    if not rest:
        return _estimate(asked, key)
    if front + kind in facts:
        return _fact(asked, rest, facts[front + kind])
    answers = {"verdict": _verdict, "count": _count, "published": _published}
    if kind not in answers:
        raise KeyError(f"begins with {kind!r}; known are {[*facts, *answers, *studies]}")
    return answers[kind](asked, rest)


def study_and_key(key: str, studies: Mapping[str, Study]) -> tuple[str, Study, str]:
    """What a key has in front of it to name a study, that study (the first without a name), and the rest of the key."""
    name, _, rest = key.partition(":")
    if name in studies:
        return f"{name}:", studies[name], rest
    return "", next(iter(studies.values())), key


def _options(use: Use) -> dict[str, str]:
    options = {}
    for option in filter(None, map(str.strip, use.options.split(","))):
        name, _, value = option.partition("=")
        wrong = name not in {*_FLAGS, "digits", "field"} or (name in _FLAGS) == bool(value)
        if wrong or (name == "digits" and not value.isdigit()):
            raise ValueError(
                f"{use.place}: option {option!r}: known are {sorted(_FLAGS)}, digits=3, field=name"
            )
        options[name] = value
    return options


def _close(key: str, there: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, list(there), 3)
    return f"; close are {near}" if near else ""


def _estimate(asked: _Asked, key: str) -> Found:
    use, study, book = asked.use, asked.study, asked.book
    id, _, reading = key.partition("@")
    row = book.pick(id, reading, use.place)
    if row is None:
        books = [one for one in (study.book, study.book.kept) if one]
        elsewhere = any(one.pick(id, reading, use.place) for one in books)
        if not (elsewhere or (id in study.book.cells.index and not reading)):
            there = [one for some in books for one in some.estimates.index]
            if readings := sorted({own for name, own in there if name == id}):
                raise KeyError(f"has the readings {readings}")
            raise KeyError(f"is no id{_close(id, {name for name, _ in there})}")
        return Found(use, missing("not run"), False, "not run", study.results)
    value, se, status = float(row["value"]), float(row["se"]), str(row["status"])
    known = math.isfinite(value)
    # files of a run as paths from the root of the repository
    roots, places = study.roots, filter(None, str(row["source"]).split("; "))
    return Found(
        use,
        shown(value, se, status, asked.form(study.layout.unit(id))),
        known,
        full(value, se) if known else status,
        "; ".join(one if one.startswith(roots) else f"{asked.folder}/{one}" for one in places),
        str(row["seed"]),
        f"{row['units']} units, {row['runs']} runs" if row["runs"] else "",
        str(book.verdicts.loc[id, "verdict"]) if id in book.verdicts.index else "",
    )


def _verdict(asked: _Asked, id: str) -> Found:
    frame, column = asked.book.verdicts, asked.options.get("field", "verdict")
    if id not in frame.index:
        raise KeyError(f"has no verdict{_close(id, frame.index)}")
    if column not in frame.columns:
        raise KeyError(f"asks for the column {column!r}; there are {list(frame.columns)}")
    value, source = (
        frame.loc[id, column],
        f"{asked.folder}/verdicts.csv:{frame.index.get_loc(id) + 2}",
    )
    if column == "printed":
        return Found(asked.use, printed(value), True, value, source)
    return _given(asked, value, source)


def _count(asked: _Asked, path: str) -> Found:
    frame, parts = asked.book.verdicts, path.split("/")
    tables = frame["table"].astype(str)
    masks = {
        **{name: frame["kind"] == kind for kind, name in KINDS.items()},
        **{verdict.replace(" ", "-"): frame["verdict"] == verdict for verdict in VERDICTS},
        **{f"table{name}": tables == name for name in tables.unique()},
        **{"informative": informative(frame), "compared": frame["verdict"].isin(COMPARED)},
        **_by_protocol(frame, asked.study.published),
    }
    masks |= {f"except-{name}": ~mask for name, mask in masks.items()}
    if wrong := [part for part in parts if part not in masks]:
        raise KeyError(f"has the part {wrong[0]!r}; known are {list(masks)}")
    parts += [] if {*KINDS.values()} & {*parts} else ["cells"]
    number = pd.DataFrame({part: masks[part] for part in parts}).all(axis=1).sum()
    return _given(asked._replace(options={}), number, f"{asked.folder}/verdicts.csv")


def _by_protocol(frame: pd.DataFrame, published: str) -> dict[str, pd.Series]:
    """Rows that the protocol's margins and rates tell.

    Those whose ratio lies within the root of the margin of agreement (``near``); those of which their interval shows it
    (``shown-near``); and those that every reading rejects that could be compared (``rejected``).
    """
    rules = Path(published, "protocol.yaml")
    protocol = checked(Protocol, read_yaml(rules, dict), str(rules))
    root = math.sqrt(protocol.margins.agree)
    rows = frame.reindex(columns=["scale", "effect", "factor", "p_adjusted"])
    logs, agrees = rows["scale"] == "log", frame["verdict"] == "agrees"
    near = logs & (rows["effect"].astype(float).abs() <= math.log(root))
    shown = logs & agrees & (rows["factor"].astype(float) <= root)
    rejected = rows["p_adjusted"].astype(float) <= protocol.family_error
    return {"near": near, "shown-near": shown, "rejected": rejected}


def _published(asked: _Asked, id: str) -> Found:
    cells = asked.study.book.cells
    if id not in cells.index:
        raise KeyError(f"is no cell{_close(id, cells.index)}")
    row, form = cells.loc[id], asked.form(asked.study.layout.unit(id))
    text = printed(row["printed"], row["bracket"], form)
    text += rf"\,{escape(form.unit)}" if form.unit else ""
    digits = " ".join(filter(None, (row["printed"], row["bracket"])))
    source = f"{asked.study.published}/cells.csv:{cells.index.get_loc(id) + 2}"
    return Found(asked.use, text, True, digits, source)


def _fact(asked: _Asked, path: str, facts: Facts) -> Found:
    value: Any = facts.values
    for part in [path] if path in facts.values else path.split("/"):
        there = value if isinstance(value, Mapping) else {}
        if part not in there:
            raise KeyError(f"has no entry {part!r} in {facts.source}{_close(part, there)}")
        value = there[part]
    return _given(asked, value, facts.source)


def _given(asked: _Asked, value: Any, source: str) -> Found:
    """A value without a standard error: counts and given numbers keep their digits."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or value == "" or (isinstance(value, float) and not math.isfinite(value)):
        return Found(asked.use, r"\textit{none}", False, "none", source)
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif not isinstance(value, int | float):
        text = escape(str(value))
    elif isinstance(value, int):
        text = latex(float(value), form=asked.form(integer=True))
    elif {"field", "digits"} & asked.options.keys():
        text = latex(float(value), form=asked.form())
    else:  # a number that somebody chose: as many digits as were written
        form = asked.form()
        text = f"${float(f'{value * form.factor:.12g}'):g}$" + (r"\,\%" if form.unit else "")
    return Found(asked.use, text, True, full(value), source)


def web_link(place: str, record: Mapping[str, object]) -> str | None:
    """Address of ``file`` or ``file:lines`` at the commit; None without a remote, or if the file is not tracked.

    A record has ``remote``, ``commit``, and ``tracked``: what names of files begin with that are under version control.
    """
    path, _, lines = place.partition(":")
    remote, commit = record.get("remote"), record.get("commit")
    tracked = tuple(map(str, cast(Iterable[str], record.get("tracked", ()))))
    if not remote or not commit or not path.startswith(tracked):
        return None
    span = re.match(r"(\d+)(?:-(\d+))?", lines)
    anchor = "#" + "-".join(f"L{line}" for line in span.groups() if line) if span else ""
    return f"{remote}/blob/{commit}/{quote(path)}{anchor}"


def address(place: str, record: Mapping[str, object], folder: str, front: str = "") -> str:
    """Where a link from `folder` finds a file: on the web, or beside it with `front` before the path."""
    return web_link(place, record) or front + relpath(place.partition(":")[0], folder)


def write_values(found: Iterable[Found], path: str | Path) -> None:
    """Write ``values.tex``: the texts of look-ups and the macros that print them."""

    def tip(one: Found) -> str:
        text = "; ".join(filter(None, (one.digits, _short(one.source), one.seed)))
        return (b"\xfe\xff" + text.encode("utf-16-be")).hex()

    write_text(path, rendered("values.tex.j2", found=found, tip=tip))


def write_origins(
    found: Iterable[Found],
    studies: Mapping[str, Study],
    record: Mapping[str, object],
    folder: str | Path,
    path: str | Path,
) -> None:
    r"""Write ``origins.tex``: the keys of all numbers, and what ``\origin`` prints.

    Tables and figures have entries ``tables/<name>``; of all studies but the first ``<study>/tables/<name>``. In their
    captions, a word for each file is a link, because names of files and lines would be longer than captions. `record`
    is the provenance: with its ``remote`` and ``commit``, tracked files are linked on the web, by line. Other files
    are linked from `folder`, where the PDF will be, from the root of the repository.
    """
    link = partial(_link, record=record, folder=Path(folder).as_posix())
    keys = list(dict.fromkeys(one.use.key for one in found))
    given = {"studies": studies, "keys": keys, "link": link}
    write_text(path, rendered("origins.tex.j2", **given))


def _link(place: str, word: str, *, record: Mapping[str, object], folder: str) -> str:
    """A word that is a link to a file, at the commit on the web or where it lies beside the PDF."""
    target = re.sub("[%#]", r"\\\g<0>", address(place, record, folder, "run:"))
    return rf"\href{{{target}}}{{{word}}}"


def _short(source: str) -> str:
    """A source whose lists of lines and of files are cut short."""
    places = [cut(place, 24) for place in source.split("; ")]
    return "; ".join([*places[:MOST], *(["..."] if len(places) > MOST else [])])


def cut(place: str, most: int) -> str:
    """A file with its list of lines, of which so many characters are shown at most."""
    file, colon, lines = place.partition(":")
    return file + colon + (lines if len(lines) <= most else f"{lines[: most - 3]}...")
