"""Kept pieces under changed code: recompute a random sample, then carry the rest over or discard it.

When the code that kept pieces were made from has changed, nobody knows whether it would still make the same numbers.
Three steps find out:

- `plan` draws pieces at random, by a seed. It draws at least two of each family of jobs, whose names differ in numbers
  alone (problem, size, point, chain), so that they run the same code. It goes on until the drawn pieces took a share of
  the CPU time of all. Within a family a piece is first drawn with a probability proportional to 1 / seconds, so that
  the two are affordable; the rest comes from jobs in proportion to their CPU time. A cheap piece runs the same code as
  a dear one, but an error that only large counts or late replicates meet is found less often than a share of the CPU
  time suggests.
- `verify_job` recomputes the drawn pieces of one job, and compares their content with the kept one.
- `carry_over` gives the pieces of each job the new record if all that were recomputed of its family are the same. If
  one differs, the pieces of the family are void and leave the store.

Pieces are matched by the names of job and piece; parameters that changed are therefore tested like changed code.
CPU seconds are not compared.

On the processor that made the pieces, bytes are compared; on another, numbers but for rounding (`ROUNDING`), which long
Markov chains exceed. Where both processors have the same instructions, OpenBLAS can be told to use the kernels of the
other one (``OPENBLAS_CORETYPE=SkylakeX``); then the bytes are usually the same, chains included.
"""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from studies.common.comparison import BYTES, ROUNDED, difference
from studies.common.kept import Archive, carried, job_of, read_archive, write_archive
from studies.common.machine import processor
from studies.common.pieces import Piece, Record, cpu_seconds, outdated, unverified
from studies.common.seeds import generator, seed

#: Share of the CPU time that is recomputed, and pieces of each family at least.
SHARE, LEAST = 0.03, 2
#: Seconds of a piece that says nothing of its seconds, and of one that took next to none.
_UNKNOWN, _SHORTEST = 1.0, 1e-3

Run = Callable[["Verification"], None]


def plan(
    store: str | Path,
    *,
    share: float = SHARE,
    least: int = LEAST,
    seed_root: int = 20210308,
    every: bool = False,
) -> dict[str, Any]:
    """Draw the pieces that are recomputed.

    Parameters
    ----------
    store : path
        Archives of pieces.
    share : float
        Share of the CPU time of all pieces, in [0, 1]; 1 draws every piece.
    least, seed_root : int
        Pieces of each family at least, 1 or more; root of the random streams of the draw.
    every : bool
        Whether to draw from all jobs, and not only from those whose code or libraries have changed.

    Returns
    -------
    dict
        ``seed``, ``share``, ``seconds`` (CPU time of all), ``drawn_seconds``, ``refused`` (damaged pieces);
        ``jobs``, by name ``drawn`` (pieces), ``pieces`` (how many there are) and ``outdated`` (what has changed).

    Raises
    ------
    ValueError
        If `share` is not in [0, 1] or `least` is below 1.
    """
    if least < 1:
        raise ValueError(f"least must be 1 or more; got {least!r}")
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must be in [0, 1]; got {share!r}")
    seconds, changed, refused = _inventory(store, every)
    drawn = _first(seconds, least, seed_root)
    total = sum(sum(of.values()) for of in seconds.values())
    rng = generator(seed(seed_root, "verify"))
    if share == 1.0:
        drawn = {job: sorted(of) for job, of in seconds.items()}
    while _cost(seconds, drawn) < share * total:
        _draw_one(seconds, drawn, rng)
    return {
        "seed": seed_root,
        "share": share,
        "seconds": total,
        "drawn_seconds": _cost(seconds, drawn),
        "refused": refused,
        "jobs": {
            job: {"drawn": sorted(names), "pieces": len(seconds[job]), "outdated": changed[job]}
            for job, names in drawn.items()
        },
    }


def family(job: str) -> str:
    """Return the name that jobs share which run the same code on another problem, size, point or chain.

    It is the job's name with ``*`` for each number below the first folder.
    """
    experiment, slash, name = job.partition("/")
    return experiment + slash + re.sub(r"\d+(\.\d+)?", "*", name)


def _first(
    seconds: Mapping[str, Mapping[str, float]], least: int, seed_root: int
) -> dict[str, list[str]]:
    """Draw so many pieces of each family."""
    drawn: dict[str, list[str]] = {job: [] for job in seconds}
    for name in sorted({family(job) for job in seconds}):
        members = [job for job in sorted(seconds) if family(job) == name]
        pieces = {
            f"{job}:{piece}": value for job in members for piece, value in seconds[job].items()
        }
        for chosen in _draw(pieces, min(least, len(pieces)), seed(seed_root, "verify", name)):
            job, _, piece = chosen.partition(":")
            drawn[job].append(piece)
    return drawn


def _draw_one(
    seconds: Mapping[str, Mapping[str, float]],
    drawn: Mapping[str, list[str]],
    rng: np.random.Generator,
) -> None:
    """Draw one more piece: its job by the CPU time that is left, the piece by 1 / seconds."""
    left = {job: of.keys() - set(drawn[job]) for job, of in seconds.items()}
    job = _choose({job: _cost(seconds, {job: sorted(names)}) for job, names in left.items()}, rng)
    drawn[job].append(_choose({name: 1.0 / seconds[job][name] for name in left[job]}, rng))


def _inventory(
    store: str | Path, every: bool
) -> tuple[dict[str, dict[str, float]], dict[str, list[str]], list[str]]:
    """CPU seconds by job and piece, what has changed by job, and what is damaged."""
    seconds: dict[str, dict[str, float]] = {}
    changed: dict[str, list[str]] = {}
    refused: list[str] = []
    for path in sorted(Path(store).rglob("*.zip")):
        archive = read_archive(path, job_of(path, store))
        refused += archive.refused
        names = sorted({name for record in archive.records.values() for name in outdated(record)})
        if archive.pieces and (names or every):
            changed[archive.job] = names
            seconds[archive.job] = {
                name: max(cpu_seconds(unverified(content)[0]) or _UNKNOWN, _SHORTEST)
                for (name, _), content in sorted(archive.pieces.items())
            }
    return seconds, changed, refused


def _cost(seconds: Mapping[str, Mapping[str, float]], drawn: Mapping[str, list[str]]) -> float:
    return sum(seconds[job][name] for job, names in drawn.items() for name in names)


def _draw(seconds: Mapping[str, float], count: int, path: str) -> list[str]:
    """Draw without replacement, with probabilities proportional to 1 / seconds."""
    names = sorted(seconds)
    weight = np.array([1.0 / seconds[name] for name in names])
    found = generator(path).choice(len(names), size=count, replace=False, p=weight / weight.sum())
    return [names[k] for k in found]


def _choose(weight: Mapping[str, float], rng: np.random.Generator) -> str:
    names = sorted(weight)
    p = np.array([weight[name] for name in names])
    return names[int(rng.choice(len(names), p=p / p.sum()))]


class _Enough(Exception):
    """Every drawn piece has been compared."""


@dataclass
class Verification:
    """What stands between a job and its pieces while they are verified (`studies.common.pieces.Check`).

    Attributes
    ----------
    kept : dict
        Kept pieces by name.
    drawn : set of str
        Pieces that are recomputed.
    comparison : str
        `BYTES` or `ROUNDED`.
    record : dict
        What the job's pieces are made from now.
    found : dict
        Drawn piece to its first difference; empty text if there is none.
    same_bytes : int
        Drawn pieces that are the same to the last bit.
    """

    kept: dict[str, Piece]
    drawn: set[str]
    comparison: str
    record: Record = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    same_bytes: int = 0

    def begin(self, record: Record) -> None:
        """Take note of what the pieces would be made from now."""
        self.record = record

    def get(self, name: str, compute: Callable[[], Piece]) -> Piece:
        """Return the kept piece; recompute and compare it if it was drawn."""
        if self.drawn <= self.found.keys():
            raise _Enough
        if name in self.drawn:
            made = compute()
            self.found[name] = difference(self.kept[name], made, BYTES)
            self.same_bytes += not self.found[name]
            if self.found[name] and self.comparison == ROUNDED:
                self.found[name] = difference(self.kept[name], made, ROUNDED)
        return self.kept[name] if name in self.kept else compute()


def verify_job(
    job: str, store: str | Path, drawn: Iterable[str], run: Run, *, made_on: str | None = None
) -> dict[str, Any]:
    """Recompute the drawn pieces of a job, and compare them with what is kept.

    Parameters
    ----------
    job : str
        The job's name.
    store : path
        Archives of pieces.
    drawn : iterable of str
        Names of pieces, as `plan` drew them.
    run : callable
        Runs the job with its argument as `verify`, as `studies.atiya2021.jobs.run_job` does.
    made_on : str, optional
        The processor that made the pieces, where their records do not say it. On the same one the bytes are compared.

    Returns
    -------
    dict
        ``job``, ``comparison``, ``processor``, ``record`` (new), ``pieces`` (kept ones), ``refused``,
        ``same_bytes`` (drawn pieces that are the same to the last bit), and ``found``: each drawn piece to its first
        difference, empty if there is none. JSON can hold it.
    """
    archive = read_archive(Path(store) / f"{job}.zip", job)
    kept = _by_name(archive)
    recorded = {record.get("processor", made_on) for record in archive.records.values()}
    here = processor()
    comparison = BYTES if recorded == {here} else ROUNDED
    check = Verification(kept, set(drawn) & kept.keys(), comparison)
    missing = sorted(set(drawn) - kept.keys())
    with contextlib.suppress(_Enough):
        run(check)
    never = dict.fromkeys(check.drawn - check.found.keys(), "the job has no such piece any more")
    lost = dict.fromkeys(missing, "the kept piece is damaged or missing")
    return {
        "job": job,
        "comparison": comparison,
        "processor": here,
        "record": check.record,
        "pieces": len(kept),
        "refused": archive.refused,
        "same_bytes": check.same_bytes,
        "found": dict(sorted((check.found | never | lost).items())),
    }


def _by_name(archive: Archive) -> dict[str, Piece]:
    """Kept pieces by name; of several under one name, the first in the order of keys."""
    found: dict[str, Piece] = {}
    for (name, _), content in sorted(archive.pieces.items()):
        found.setdefault(name, unverified(content)[0])
    return found


def carry_over(
    reports: Iterable[Mapping[str, Any]],
    store: str | Path,
    target: str | Path,
    *,
    share: float,
    seed_root: int,
    commit: str,
    made_on: str | None = None,
    date: datetime.date | None = None,
) -> dict[str, Any]:
    """Give the pieces of verified jobs their new record, and discard those of families that differ.

    Parameters
    ----------
    reports : iterable of dict
        As `verify_job` returned them.
    store : path
        Archives of pieces.
    target : path
        Where the archives with the new records go; may be `store`.
    share, seed_root
        As of `plan`.
    commit : str
        The commit whose code made the pieces.
    made_on : str, optional
        The processor that made them, where their records do not say it.
    date : date, optional
        Today by default.

    Returns
    -------
    dict
        ``carried`` and ``void``: jobs by name, with ``pieces``, ``recomputed`` and, of void ones, ``differences``;
        ``unverified``: jobs that no report names, which stay as they are; ``refused``: damaged pieces, a line each.
    """
    store, target = Path(store), Path(target)
    day = (date or datetime.datetime.now(datetime.UTC).date()).isoformat()
    found: dict[str, Any] = {"carried": {}, "void": {}, "unverified": [], "refused": []}
    reports = list(reports)
    named = {report["job"] for report in reports}
    sound = _sound(reports)
    for report in reports:
        job, drawn = report["job"], report["found"]
        archive = read_archive(store / f"{job}.zip", job)
        found["refused"] += archive.refused
        counts = {"pieces": len(archive.pieces), "recomputed": len(drawn)}
        if family(job) not in sound:
            (target / f"{job}.zip").unlink(missing_ok=True)
            differences = {name: text for name, text in drawn.items() if text}
            found["void"][job] = counts | {"differences": differences}
            continue
        step = counts | {"commit": commit, "date": day, "seed": seed_root, "share": share}
        step |= {key: report[key] for key in ("comparison", "same_bytes", "processor")}
        record = {**report["record"], **_history(archive, step, made_on)}
        write_archive(carried(archive, record, _by_name(archive)), target / f"{job}.zip")
        found["carried"][job] = counts
    found["unverified"] = sorted({job_of(path, store) for path in store.rglob("*.zip")} - named)
    return found


def _sound(reports: Iterable[Mapping[str, Any]]) -> set[str]:
    """Families of which pieces were recomputed, all of them the same."""
    found: dict[str, list[str]] = {}
    for report in reports:
        found.setdefault(family(report["job"]), []).extend(report["found"].values())
    return {name for name, differences in found.items() if differences and not any(differences)}


def _history(archive: Archive, step: Mapping[str, Any], made_on: str | None) -> dict[str, Any]:
    """The processor that made the pieces, as far as is known, and how they were carried over, last step last."""
    records = list(archive.records.values())
    said = [record["processor"] for record in records if "processor" in record]
    earlier = [earlier for record in records for earlier in record.get("carried", [])]
    return {"processor": next(iter(said), made_on or "unknown"), "carried": [*earlier, step]}


def summary(outcome: Mapping[str, Any]) -> str:
    """Say in a few lines what `carry_over` did."""
    carried_over, void = outcome["carried"], outcome["void"]
    pieces = sum(job["pieces"] for job in carried_over.values())
    again = sum(job["recomputed"] for job in (carried_over | void).values())
    lines = [
        f"{pieces} pieces of {len(carried_over)} jobs carried over; {again} pieces recomputed, "
        f"{len(void)} jobs void"
    ]
    for job, counts in void.items():
        lines += [f"{job}: void, {counts['pieces']} pieces"]
        lines += [] if counts["differences"] else ["  pieces of another job of its family differ"]
        lines += [f"  piece {name}: {text}" for name, text in counts["differences"].items()]
    lines += [f"{job}: not verified, left as it is" for job in outcome["unverified"]]
    return "\n".join([*lines, *outcome["refused"]])
