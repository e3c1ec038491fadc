"""One number, looked up: what was printed, what we have, and the rows that it rests on.

A number is named as the text of the paper names it: ``table4/P7/new/mae-med``, ``neal1997:exact/1997-gaussian/rho``,
``tables/table4``. What is known of it comes from the kept results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.judge.measures import join_sources, pattern
from recheck.paper.lookups import Facts, Study, UnknownKeyError, Use, collect
from recheck.paper.text import facts_of, study_of
from recheck.report.book import Book, read
from studies.common.kept import Kept

#: CPU seconds that a row costs beside its own: data, kernels, start-up.
_OVERHEAD = 0.2


@dataclass(frozen=True)
class Asked:
    """A number, and the rows behind it.

    Attributes
    ----------
    study : str
    facts : list of (str, str)
        What is known, by what it is: printed, ours, verdict, reading, seed, source.
    rows : dict
        Names of the kept rows by experiment, with the line and the CPU seconds of each.
    own : set of (str, str)
        Experiment and row of those that the number itself rests on; its verdict may rest on more.
    seconds : float
        CPU seconds that running rows again may take.
    """

    study: str
    facts: list[tuple[str, str]]
    rows: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)
    own: Collection[tuple[str, str]] = ()
    seconds: float = 60.0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.rows.values()))

    def again(self, plans: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
        """Return the rows that fit into the seconds, of those that plans have; at least one.

        Those that the number itself rests on come first, then the cheapest.
        """
        costs = sorted(
            ((experiment, name) not in self.own, seconds, experiment, name)
            for experiment, rows in self.rows.items()
            for name, (_, seconds) in rows.items()
            if name in plans[experiment]
        )
        spent, chosen = 0.0, dict[str, list[str]]()
        for _, seconds, experiment, name in costs:
            spent += seconds + _OVERHEAD
            if chosen and spent > self.seconds:
                break
            chosen.setdefault(experiment, []).append(name)
        return chosen

    def report(self, found: pd.DataFrame) -> str:
        """Return what is known of the number, and the rows that were run again, old beside new."""
        lines = [f"{what + ':':20}{value}" for what, value in self.facts]
        ran = f"{self.count}, {len(found)} of them run again within {self.seconds:g} CPU seconds"
        if self.count:
            lines.append(f"{'rows:':20}{ran}")
        elif "source" in dict(self.facts):
            lines.append(f"{'rows:':20}none; the number follows from its source")
        for one in found.to_dict("records"):
            line, _ = self.rows[one["experiment"]][one["row"]]
            place = f"data/reference/{self.study}/{one['experiment']}.csv:{line}"
            lines.append(f"  {one['outcome']}: {one['row']} ({place}, {one['cpu_seconds']:.1f} s)")
            lines.append(f"      {one['difference'] or one['beside']}")
        return "\n".join(lines)


def asked(key: str, studies: Sequence[str], seconds: float) -> Asked:
    """Look a number up in the kept results.

    Parameters
    ----------
    key : str
        An id of the measures, perhaps with ``@reading``, or a key as the text has it; ``tables/<name>`` or
        ``figures/<name>``. A key may have its study in front, as in ``neal1997:exact/1997-gaussian/rho``.
    studies : sequence of str
        The first one is the paper's.
    seconds : float
        CPU seconds for running rows again.

    Raises
    ------
    KeyError
        If there is no such number; the message names those that are close. Of a key that ends in ``/`` it lists the ids
        that begin so, of an empty one the tables and figures.
    ValueError
        If a reading is not of the form ``name=level``.
    """
    if not key:
        raise KeyError(_overview(studies))
    study, rest = _place(key, studies)
    front = "" if study == studies[0] else f"{study}:"
    folder = Path("data/reference", study)
    kept, roots = Kept(folder), ("data/", "src/", "results/")
    printed, source_of = Path("data/published", study), Path("src/studies", study)
    known = replace(study_of(folder, printed, None, source_of, roots), kept=str(folder))
    if rest.endswith("/"):
        raise KeyError(_listed(front, rest, known.book))
    if rest.startswith(("tables/", "figures/")):
        facts, source = _shown(rest, known)
        own = ""
    else:
        facts, source, own = _one(rest, kept, known)
    first = {(name, row) for name, rows in _rows(kept, own).items() for row in rows}
    return Asked(study, facts, _rows(kept, source), first, seconds)


def _place(key: str, studies: Sequence[str]) -> tuple[str, str]:
    """The study of a key, and the key within it; where none is in front, the first study that has the id."""
    for name in studies:
        if key.startswith((f"{name}:", f"{name}/")):
            return name, key[len(name) + 1 :]
    id = key.partition("@")[0]
    for name in studies:
        path = Path(f"data/reference/{name}/measures.csv.gz")
        if path.exists() and (read(path)["id"] == id).any():
            return name, key
    return studies[0], key


def _overview(studies: Sequence[str]) -> str:
    lines = [
        "id: needed is one, as in `make number ID=table4/P7/new/mae-med`. An id that ends in / lists those below:"
    ]
    for place, study in enumerate(studies):
        path = Path(f"data/reference/{study}/measures.csv.gz")
        if not path.exists():
            continue
        measures, front = read(path), f"{study}:" if place else ""
        first = measures["id"].str.partition("/")[0].drop_duplicates()
        lines.append("  " + " ".join(f"{front}{name}/" for name in first))
    return "\n".join(lines)


def _listed(front: str, rest: str, book: Book) -> str:
    ids = [id for id in dict.fromkeys(book.measures["id"]) if id.startswith(rest)]
    if not ids:
        return f"{front}{rest}: no id begins so; `make number` without an id lists the tables"
    return "\n".join(
        [f"{len(ids)} ids begin with {front}{rest}:", *(f"  {front}{id}" for id in ids)]
    )


def _one(key: str, kept: Kept, known: Study) -> tuple[list[tuple[str, str]], str, str]:
    """What is known of a number, what it and its verdict rest on, and what it rests on itself."""
    book, studies = known.book, {kept.study: known}
    id = key.partition("@")[0].removeprefix("verdict:").removeprefix("published:")
    record = Facts(kept.provenance, f"{kept.folder}/provenance.json")
    facts = {"run": record, **facts_of(studies, "run")}
    try:
        (found,) = collect([Use(key, "", "id")], studies, facts, "run")
    except UnknownKeyError as error:
        raise KeyError(error.args[0]) from None
    said, source = [("ours", found.digits), ("units and runs", found.count)], found.source
    if id in book.cells.index:
        cell = book.cells.loc[id]
        said.insert(0, ("printed", " ".join(filter(None, (cell["printed"], cell["bracket"])))))
    if id in book.verdicts.index:
        verdict = book.verdicts.loc[id]
        said += [("verdict", verdict["verdict"]), ("readings that agree", str(verdict["readings"]))]
        source = join_sources([source, *_sources(book, [id])])
    said += [("seed", found.seed), ("source", found.source)]
    return [(what, str(value)) for what, value in said if value], source, found.source


def _shown(key: str, known: Study) -> tuple[list[tuple[str, str]], str]:
    """What a table shows, and the sources of its numbers; or what a figure is drawn from, and by which line."""
    kind, _, name = key.partition("/")
    items: Mapping[str, Any] = getattr(known.layout, kind)
    if name not in items:
        raise KeyError(f"{key}: there are the {kind} {list(items)}")
    if kind == "figures":
        parts = ", ".join(items[name].reads)
        drawn = [("drawn from", parts), ("drawn by", known.code[key])]
        return [("title", items[name].title), *drawn], ""
    book, templates = known.book, [block.cell for block in items[name].blocks]
    every = dict.fromkeys(book.measures["id"])
    ids = [id for id in every if any(pattern(one).fullmatch(id) for one in templates)]
    verdicts = book.verdicts.loc[book.verdicts.index.isin(ids), "verdict"].value_counts()
    said = [("title", items[name].title), ("numbers", str(len(ids)))]
    said += [(f"of which {verdict}", str(count)) for verdict, count in verdicts.items()]
    return said, join_sources(_sources(book, ids))


def _sources(book: Book, ids: Collection[str]) -> list[str]:
    return book.measures.loc[book.measures["id"].isin(ids), "source"].unique().tolist()


def _rows(kept: Kept, source: str) -> dict[str, dict[str, tuple[int, float]]]:
    """The kept rows that a source names."""
    found: dict[str, dict[str, tuple[int, float]]] = {}
    for place in source.split("; "):
        file, _, lines = place.partition(":")
        name = Path(file).name.removesuffix(".csv")
        # measures name a file of rows alone, look-ups with its folder
        ours = Path(file).parent in (Path(), kept.folder)
        if name not in kept.experiments or not lines or not ours:
            continue
        rows = kept.table(name).rows["row"]
        for span in re.findall(r"(\d+)(?:-(\d+))?", lines):
            for line in range(int(span[0]), int(span[1] or span[0]) + 1):
                row = str(rows.iloc[line - 2])
                cost = float(kept.seconds.get((name, row), 0.0))
                found.setdefault(name, {}).setdefault(row, (line, cost))
    return found
