"""What the text of a paper is given: studies and facts that look-ups read, and the captions of the layouts."""

import re
from collections.abc import Mapping
from pathlib import Path

from recheck.judge.declared import read_yaml
from recheck.paper.lookups import Facts, Study, evidence
from recheck.record.files import read_csv, read_json
from recheck.report.book import Book
from recheck.report.layout import Layout, read_layout


def study_of(
    results: Path, published: Path, kept: Path | None, source: Path, roots: tuple[str, ...] = ()
) -> Study:
    """What look-ups need of a study: its results, published values, kept results, and the folder of its package.

    `roots` is what sources begin with that are named from the root of the repository.
    """
    layout = source / "layout.yaml"
    book = Book.read(results, published, kept)
    folder = kept.as_posix() if kept else ""
    where = results.as_posix(), published.as_posix(), folder, layout.as_posix()
    code = code_of_figures(source / "figures")
    return Study(book, read_layout(layout), *where, code=code, roots=roots)


def code_of_figures(folder: Path) -> dict[str, str]:
    """File and line of the function that draws each figure."""
    places = {}
    for path in sorted(folder.glob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := re.match(r"def ([a-z]\w*)\(", line):
                places[f"figures/{found[1]}"] = f"{path.as_posix()}:{number}"
    return places


def facts_of(studies: Mapping[str, Study], numbers: str) -> dict[str, Facts]:
    """Protocols, kept provenance and evidence of readings, by the names that the text gives them.

    Names of all studies but the first begin with the study.
    """
    values = {}
    for place, (name, one) in enumerate(studies.items()):
        front = f"{name}:" if place else ""
        path = f"{one.published}/protocol.yaml"
        values[f"{front}protocol"] = Facts(read_yaml(path), path)
        if one.kept:
            record = f"{one.kept}/provenance.json"
            values[f"{front}kept"] = Facts(read_json(record), record)
        judged = one.kept if one.kept and numbers == "kept" else one.results
        path = f"{judged}/readings.csv"
        values[f"{front}readings"] = Facts(evidence(read_csv(path)), path)
    return values


def captions(layouts: Mapping[str, Layout]) -> str:
    r"""``\tablecaption{name}`` and ``\figurecaption{name}``: title, caption, and where the data come from.

    Names of all studies but the first begin with the study.
    """
    lines = [r"\newcommand{\tablecaption}[1]{\csname tablecaption@#1\endcsname}"]
    lines += [r"\newcommand{\figurecaption}[1]{\csname figurecaption@#1\endcsname}"]
    for place, (study, layout) in enumerate(layouts.items()):
        front = f"{study}/" if place else ""
        for kind in ("tables", "figures"):
            for name, entry in getattr(layout, kind).items():
                text = f"{entry.caption} \\origin{{{front}{kind}/{name}}}"
                macro = f"{kind[:-1]}caption@{front}{name}"
                lines.append(rf"\expandafter\def\csname {macro}\endcsname{{{text}}}")
    return "\n".join([*lines, ""])
