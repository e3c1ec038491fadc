"""Slices of long jobs: processes of minutes that compute some of a job's pieces, so that many cores share the job.

The pieces of a job do not depend on each other. A slice runs the job with a `Slice` between the job and its pieces: the
named ones are computed and left where the job looks for them, and in the place of the others are empty ones. The job
itself then finds its pieces finished, computes what no slice named, and joins all. Keys and content of the pieces are
those of a job that is not divided, so that results are too.

A piece that is too long is divided further, at its runs, where its function is a `functools.partial` whose last
argument lists them. Its runs wait in a folder beside the pieces until `gather` joins them.

`plan` divides jobs by the CPU seconds of kept pieces. A plan concerns speed alone: pieces that it does not name are
computed by the job, and names that no longer exist are passed over.
"""

from __future__ import annotations

import functools
import heapq
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from studies.common.kept import read_store
from studies.common.pieces import (
    DamagedPieceError,
    Piece,
    Pieces,
    Record,
    cpu_seconds,
    decode,
    encode,
    join,
    unverified,
    write,
)

#: CPU seconds of a slice, and of a job that is not divided: the shorter, the better they fill many cores.
LIMIT = 240.0
#: Jobs that do no more with their pieces than join them,
_DIVISIBLE = re.compile(r"(experiment[1-4]|benchmark|defects|binary|exact|crossvalidation)/")
#: but for pieces that the others are made with: the first slice that needs one makes it.
_COMMON = re.compile(r".*-reference")

#: Job to its slices, each a list of units: the name of a piece, or ``<piece>/<k>``, the k-th run of a piece.
Plan = dict[str, list[list[str]]]


class Slice:
    """What stands between a job and its pieces in a slice (`studies.common.pieces.Check`).

    Parameters
    ----------
    job : str
        The job's name.
    units : iterable of str
        What this slice computes, as in a `Plan`.
    pieces, runs : path
        Folders of the job's pieces, and of the runs of divided pieces.
    """

    def __init__(self, job: str, units: Iterable[str], pieces: Path, runs: Path) -> None:
        self._job, self._units = job, set(units)
        self._folders = pieces, runs

    def begin(self, record: Record) -> None:
        """Open the folders, with the key that the record has."""
        self._pieces, self._runs = (
            Pieces(folder, record["modules"], record["parameters"], job=self._job)
            for folder in self._folders
        )

    def get(self, name: str, compute: Callable[[], Piece]) -> Piece:
        """Return a piece of this slice; else compute its named runs, if there are any, and return an empty piece.

        Runs of a piece that is there, because kept ones were put back, are not computed.
        """
        if name in self._units or _COMMON.fullmatch(name):
            return self._pieces.get(name, compute)
        if self._pieces.has(name):
            return [], [], {}
        for k in sorted(_run(unit) for unit in self._units if unit.startswith(f"{name}/")):
            runs = _runs_of(compute)
            if k < len(runs):
                self._runs.get(f"{name}.{k}of{len(runs)}", runs[k])
        return [], [], {}


def gather(job: str, pieces: Path, runs: Path) -> None:
    """Join the runs of divided pieces of a job, where all are there, to pieces.

    Parameters
    ----------
    job : str
        The job's name.
    pieces, runs : path
        As of `Slice`.
    """
    for first in sorted(runs.glob("*.0of*.npz")):
        stem, _, key = first.stem.rpartition("-")
        name, _, count = stem.rpartition(".0of")
        target = pieces / f"{name}-{key}.npz"
        names = [f"{name}.{k}of{count}" for k in range(int(count))]
        try:
            found = [decode(job, one, (runs / f"{one}-{key}.npz").read_bytes()) for one in names]
        except (FileNotFoundError, DamagedPieceError):
            continue  # the job computes the piece
        if not target.exists():
            pieces.mkdir(parents=True, exist_ok=True)
            write(pieces / f"{key}.json", (runs / f"{key}.json").read_bytes())
            write(target, encode(job, name, join(found)))


def plan(store: str | Path, limit: float = LIMIT) -> Plan:
    """Divide the jobs whose kept pieces took longer than a limit.

    Parameters
    ----------
    store : path
        Archives of pieces, with their CPU seconds.
    limit : float
        CPU seconds of a slice, at most, unless one run is longer.

    Returns
    -------
    dict
        Job to its slices; jobs that are short enough or cannot be divided are not there.
    """
    found = {}
    for archive in read_store(Path(store)):
        if not _DIVISIBLE.match(archive.job):
            continue
        kept = {name: unverified(content)[0] for (name, _), content in archive.pieces.items()}
        units = _units(kept, limit)
        if sum(units.values()) > limit and len(units) > 1:
            found[archive.job] = _divided(units, limit)
    return dict(sorted(found.items()))


def seconds_of(units: Iterable[str], kept: Mapping[str, Piece]) -> float:
    """Return the CPU seconds of units, from a job's kept pieces by name."""
    found = 0.0
    for unit in units:
        name, _, run = unit.partition("/")
        timing = kept[name][1]
        found += cpu_seconds(([], [timing[int(run)]] if run else timing, {}))
    return found


def _units(kept: Mapping[str, Piece], limit: float) -> dict[str, float]:
    """Units and their CPU seconds: pieces, and the runs of those that are longer than the limit."""
    found: dict[str, float] = {}
    for name, piece in sorted(kept.items()):
        rows, timing, _ = piece
        if _COMMON.fullmatch(name):
            continue
        if cpu_seconds(piece) > limit and 1 < len(timing) == len(rows):
            found |= {f"{name}/{k}": cpu_seconds(([], [row], {})) for k, row in enumerate(timing)}
        else:
            found[name] = cpu_seconds(piece)
    return found


def _divided(units: Mapping[str, float], limit: float) -> list[list[str]]:
    """The fewest slices below a limit that the rule "longest first, to the emptiest" finds."""
    least = min(math.ceil(sum(units.values()) / limit), len(units))
    for count in range(least, len(units) + 1):
        slices: list[tuple[float, int, list[str]]] = [(0.0, k, []) for k in range(count)]
        for name in sorted(units, key=lambda name: (-units[name], name)):
            seconds, k, names = slices[0]
            heapq.heapreplace(slices, (seconds + units[name], k, [*names, name]))
        if max(slices)[0] <= max(limit, *units.values()):
            break
    return [sorted(names) for _, _, names in sorted(slices, key=lambda one: one[1])]


def _run(unit: str) -> int:
    return int(unit.rpartition("/")[2])


def _runs_of(compute: Callable[[], Piece]) -> Sequence[Callable[[], Piece]]:
    """The runs of a piece, each as a piece of its own; none if the piece does not say what its runs are."""
    if not isinstance(compute, functools.partial) or not compute.args:
        return []
    *given, runs = compute.args
    return [functools.partial(compute.func, *given, [run]) for run in runs] if _many(runs) else []


def _many(runs: object) -> bool:
    return isinstance(runs, list) and len(runs) > 1
