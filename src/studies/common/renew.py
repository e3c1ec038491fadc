"""Kept rows that other code made, made again and put in their place, a method of an experiment at a time.

`make republish` makes all rows of a version in one run, and keeps them at its end. This does it in parts, each of which
may be kept: after a change of one method its rows alone are made again, and what was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from recheck.record.files import gather_digests, read_csv, write_csv, write_json
from studies.common.blocks import Reader, read_block, write_block
from studies.common.code import digest_of_rows
from studies.common.kept import Kept, as_today, modules_of, store_rows, store_timing
from studies.common.plan import From, Plan, declared
from studies.common.rows import TEXT, Record, Row, Table, records_of, table_of

#: CPU seconds of the rows of a part, as their kept seconds say.
_PART = 60.0


class Group(NamedTuple):
    """Rows of an experiment that rest on the same modules.

    Attributes
    ----------
    study, experiment, modules : str
        The last as `studies.common.kept.modules_of` has it.
    code : str
        The digest of what they rest on today.
    rows : sequence of mapping
    seconds : float
        What the kept rows took.
    """

    study: str
    experiment: str
    modules: str
    code: str
    rows: Sequence[Row]
    seconds: float

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.study, self.experiment, self.modules)))


class Part(NamedTuple):
    """Rows of a group that are made in one go, with what they read, and the file that has them afterwards."""

    jobs: Sequence[Mapping[str, Any]]  # as `Plan.job_of` has them
    path: Path


def stale(kept: Kept, plan: Plan) -> list[Group]:
    """Return the groups that other code made than today's.

    An experiment that is planned otherwise than it was is left out: it takes a whole run.
    """
    study, found = kept.study, list[Group]()
    for experiment in kept.experiments:
        rows = plan.rows(study, experiment)
        names = {row["row"] for row in rows}
        if kept.same(experiment, rows) != names or set(kept.table(experiment).rows["row"]) != names:
            continue
        other, groups = as_today(kept, experiment, rows)[1], dict[str, list[Row]]()
        for row in rows:
            if row["row"] in other:
                groups.setdefault(modules_of(row), []).append(row)
        for modules, own in groups.items():
            seconds = sum(_seconds(kept, experiment, row) for row in own)
            code = digest_of_rows(study, experiment, own[:1])
            found.append(Group(study, experiment, modules, code, own, seconds))
    return found


def _seconds(kept: Kept, experiment: str, row: Row) -> float:
    return float(kept.seconds.get((experiment, row["row"]), 0.0))


def renew(
    groups: Iterable[Group],
    plan: Plan,
    reference: str | Path,
    folder: str | Path,
    processes: int,
    made: Mapping[str, Any],
) -> Iterator[str]:
    """Make groups again, and keep each as soon as it is whole; yield a line on each.

    Those that others read come first, and then those with the fewest seconds.

    Parameters
    ----------
    groups : iterable of Group
    plan : Plan
    reference : path
        ``data/reference``.
    folder : path
        Where parts wait for the rest of their group. Those that are there are not made again.
    processes : int
        How many parts are made at a time, one thread each.
    made : mapping
        What is said of rows that are made again: commit, processor, linear algebra.
    """
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    Path(folder).mkdir(parents=True, exist_ok=True)
    stages: tuple[list[Group], list[Group]] = ([], [])
    for group in sorted(groups, key=lambda one: one.seconds):
        stages[group.experiment not in _read(group.study)].append(group)
    for stage in stages:
        divided = [
            (group, parts(group, Kept(Path(reference, group.study)), plan, folder))
            for group in stage
        ]
        with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
            lost = pool.map(_make, [part for _, own in divided for part in own])
            for group, own in divided:
                if missing := [name for name in [next(lost) for _ in own] if name]:
                    yield f"{group}: not made again, {missing[0]} has none of its raw data"
                    continue
                found: dict[str, Record] = {}
                for part in own:
                    found |= read_block(part.path)[group.experiment]
                put(group, found, plan, Path(reference, group.study), made)
                yield f"{group}: {len(found)} rows made again"


def _read(study: str) -> set[str]:
    """Experiments whose rows others read."""
    sources = declared(study).experiments.values()
    return {one.experiment for own in sources for one in own.values() if isinstance(one, From)}


def parts(group: Group, kept: Kept, plan: Plan, folder: str | Path) -> list[Part]:
    """Divide a group into parts, each with a file of its own in a folder."""
    found, rows, spent = list[Part](), list[Row](), 0.0
    for k, row in enumerate(group.rows, start=1):
        rows.append(row)
        spent += _seconds(kept, group.experiment, row)
        if spent < _PART and k < len(group.rows):
            continue
        text = json.dumps([*group[:4], [one["row"] for one in rows]])
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        jobs = [plan.job_of(group.study, group.experiment, one) for one in rows]
        found.append(Part(jobs, Path(folder, f"{group.study}-{group.experiment}-{name}.npz")))
        rows, spent = [], 0.0
    return found


def _make(part: Part) -> str:
    """Make a part, unless it is there; return the name of patterns whose raw data could not be had."""
    if part.path.exists():
        return ""
    reader, found = Reader({}), dict[str, Record]()
    for job in part.jobs:
        if lost := reader.lost(job["inputs"]):
            return lost
        found[job["row"]["row"]] = reader.run(**job)
    write_block(part.path, {part.jobs[0]["experiment"]: found})
    return ""


def put(
    group: Group,
    found: Mapping[str, Record],
    plan: Plan,
    folder: str | Path,
    made: Mapping[str, Any],
) -> None:
    """Put the rows of a group in the place of those that are kept in a folder, and say with what they were made."""
    kept, experiment = Kept(folder), group.experiment
    old = kept.table(experiment)
    names = list(dict.fromkeys(old.rows["row"]))
    records = {one.row: one for one in records_of(old, dict.fromkeys(names, ""))} | dict(found)
    table = table_of(records[name] for name in names)
    gone = [name for name in table.rows if not _filled(table, name) and _filled(old, name)]
    table = table._replace(rows=table.rows.drop(columns=gone))
    others = kept.timing[kept.timing["experiment"] != experiment]
    timing = pd.concat([others, store_rows(kept.folder, experiment, table)])
    store_timing(kept.folder, [timing.sort_values("experiment", kind="stable")])
    record, today = kept.provenance, {modules_of(row) for row in plan.rows(kept.study, experiment)}
    code = record["code"][experiment] | {group.modules: group.code}
    record["code"][experiment] = {name: code[name] for name in sorted(code.keys() & today)}
    record.setdefault("renewed", {}).setdefault(experiment, {})[group.modules] = dict(made)
    _forget(kept.folder / "verified.csv", experiment, found)
    write_json(kept.folder / "provenance.json", record)
    gather_digests(kept.folder)


def _forget(path: Path, experiment: str, rows: Collection[str]) -> None:
    """Take out of ``verified.csv`` what it tells of former rows."""
    if path.exists():
        told = read_csv(path, **TEXT)
        write_csv(path, told[(told["experiment"] != experiment) | ~told["row"].isin(rows)])


def _filled(table: Table, column: str) -> bool:
    """Whether a row has an entry in a column."""
    return column in table.rows and bool((table.rows[column] != "").any())


def made_here(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a run's provenance (`recheck.record.provenance`) is said of rows that are made again."""
    names = ("commit", "commit_date", "dirty", "cpu", "blas")
    return {name: provenance[name] for name in names} | {"day": time.strftime("%Y-%m-%d")}
