"""What the repository keeps of a long run, under ``data/reference/<scale>``.

- ``pieces/``: the finished pieces of its jobs, an archive a job. `resume` puts them back where the jobs look for
  them, if this tree would make them from the same code and libraries (`gpcmc.experiments.pieces` says what is
  trusted); each job then takes those that have its parameters, and computes the rest.
- ``results/``: its result tables, audit and provenance, without figures, arrays and timings. `compare` sets
  another run beside them.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.experiments.pieces import ASIDE, outdated

__all__ = [
    "DIFFERENT",
    "MISSING",
    "NEW",
    "ROUNDED",
    "ROUNDING",
    "SAME",
    "SECONDS",
    "SHAPE",
    "TIMED",
    "VERDICTS",
    "Stored",
    "compare",
    "keep_pieces",
    "keep_results",
    "resume",
    "summary_of_comparison",
    "summary_of_pieces",
]

#: Numbers that differ by less, relative to the larger of one and their size, differ by rounding. Measured at tiny scale
#: with the kernels of another processor (OPENBLAS_CORETYPE=HASWELL, no AVX-512 in NumPy): most files differ by
#: less than 1e-10, importance sampling by 2e-8, for eigenvalues that are zero to rounding enter through their root.
#: Markov chains are beyond it: one acceptance that falls otherwise gives another chain, and so another table, which
#: differs as another seed's would.
ROUNDING = 1e-7

SAME, ROUNDED, DIFFERENT = "same bytes", "within rounding", "different"
SHAPE, MISSING, NEW, SECONDS = "other rows or columns", "missing here", "not kept", "seconds"
VERDICTS = (SAME, ROUNDED, DIFFERENT, SHAPE, MISSING, NEW, SECONDS)

#: Tables that no two runs have alike, because they hold CPU seconds.
TIMED = ("accuracy", "chains", "claims", "efficiency", "seconds", "targets", "tradeoff", "tuning")
#: The same with what the audit says of them: statements on seconds are corrected for together with all others.
_TIMED_FILES = {*(f"tables/{table}.csv" for table in TIMED), "audit_claims.csv"}

#: The same bytes on every day: the earliest date that a zip archive can hold.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of the pieces of one job.

    Attributes
    ----------
    job : str
        As in ``experiment4/problem1_ess``.
    pieces : int
        Pieces that fit this tree, and were kept or put back.
    outdated : tuple of str
        Modules and libraries that have changed since the others were made.
    """

    job: str
    pieces: int
    outdated: tuple[str, ...]


def keep_pieces(pieces: str | Path, store: str | Path) -> list[Stored]:
    """Store the finished pieces of a run, of complete and of interrupted jobs alike.

    Parameters
    ----------
    pieces : path
        ``build/pieces/<scale>``.
    store : path
        ``data/reference/<scale>/pieces``; pieces that are there already and still fit this tree stay.

    Returns
    -------
    list of Stored
        One entry a job that has pieces in either place.
    """
    pieces, store = Path(pieces), Path(store)
    jobs: dict[str, dict[str, bytes]] = {}
    for archive in sorted(store.rglob("*.zip")):
        jobs[_job(archive.with_suffix(""), store)] = _unpack(archive)
    for record in sorted(pieces.rglob("*.json")):
        found = jobs.setdefault(_job(record.parent, pieces), {})
        for path in [record, *sorted(record.parent.glob(f"*-{record.stem}.npz"))]:
            found.setdefault(path.name, path.read_bytes())
    report = []
    for job, files in sorted(jobs.items()):
        fitting, changed = _fitting(files)
        archive = store / f"{job}.zip"
        if fitting:
            _pack(fitting, archive)
        else:
            archive.unlink(missing_ok=True)
        report.append(Stored(job, _count(fitting), changed))
    return report


def resume(store: str | Path, pieces: str | Path) -> list[Stored]:
    """Put stored pieces that fit this tree back where the jobs look for them.

    Parameters
    ----------
    store, pieces : path
        As for `keep_pieces`.

    Returns
    -------
    list of Stored
        One entry a stored job.

    Raises
    ------
    FileNotFoundError
        If nothing is stored.
    """
    archives = sorted(Path(store).rglob("*.zip"))
    if not archives:
        raise FileNotFoundError(f"store must hold archives of pieces; there are none in {store}")
    report = []
    for archive in archives:
        job = _job(archive.with_suffix(""), Path(store))
        fitting, changed = _fitting(_unpack(archive))
        folder = Path(pieces) / job
        for name, content in fitting.items():
            if not (folder / name).exists():
                folder.mkdir(parents=True, exist_ok=True)
                partial = folder / f"{name}.partial"
                partial.write_bytes(content)
                os.replace(partial, folder / name)
        report.append(Stored(job, _count(fitting), changed))
    return report


def summary_of_pieces(report: list[Stored], what: str) -> str:
    """Say in a few lines what became of pieces; `what` as in "kept"."""
    lines = [f"{sum(job.pieces for job in report)} pieces of {len(report)} jobs {what}"]
    for job in report:
        if job.outdated:
            lines.append(
                f"{job.job}: {job.pieces} {what}; others are outdated by {', '.join(job.outdated)}"
            )
    return "\n".join(lines)


def _job(folder: Path, root: Path) -> str:
    return folder.relative_to(root).as_posix().removesuffix(ASIDE)


def _count(files: dict[str, bytes]) -> int:
    return sum(name.endswith(".npz") for name in files)


def _fitting(files: dict[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Those of a job's files that this tree would make from the same code, and what has changed for the others."""
    fitting: dict[str, bytes] = {}
    changed: set[str] = set()
    for name, content in files.items():
        if not name.endswith(".json"):
            continue
        if found := outdated(json.loads(content)):
            changed |= set(found)
            continue
        own = {k: v for k, v in files.items() if k.endswith(f"-{name.removesuffix('.json')}.npz")}
        fitting |= {name: content, **own} if own else {}
    return fitting, tuple(sorted(changed))


def _pack(files: dict[str, bytes], archive: Path) -> None:
    """Write an archive whose bytes depend on the files alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as stored:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            stored.writestr(entry, files[name], compress_type=zipfile.ZIP_LZMA)
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial")
    partial.write_bytes(buffer.getvalue())
    os.replace(partial, archive)


def _unpack(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as stored:
        return {name: stored.read(name) for name in stored.namelist()}


def keep_results(results: str | Path, store: str | Path) -> int:
    """Store the tables of a finished run, the large ones compressed, and what they were made with.

    Parameters
    ----------
    results : path
        ``results/<scale>``.
    store : path
        ``data/reference/<scale>/results``; what it held is replaced.

    Returns
    -------
    int
        Files stored.
    """
    results, store = Path(results), Path(store)
    names = [*_tables(results), "provenance.json", "summary.txt", "schema.json"]
    found = {name: (results / name).read_bytes() for name in names}  # before anything is lost
    shutil.rmtree(store, ignore_errors=True)
    for name, content in found.items():
        target = store / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if len(content) > LARGE:
            compressed = gzip.compress(content, mtime=0)
            target.with_name(f"{target.name}.gz").write_bytes(compressed)
        else:
            target.write_bytes(content)
    return len(names)


#: Bytes above which a table is kept compressed.
LARGE = 100_000


def _tables(results: Path) -> Iterator[str]:
    """Result tables without timings, in the order in which the workflow makes them."""
    found = [path.relative_to(results).as_posix() for path in results.rglob("*.csv")]
    found = [name for name in found if not name.endswith("_timing.csv") and name != COMPARISON]
    yield from sorted(found, key=lambda name: (name.startswith(("tables/", "audit")), name))


#: What `compare` is written to.
COMPARISON = "comparison.csv"


def compare(results: str | Path, store: str | Path) -> pd.DataFrame:
    """Set a run beside the one that is kept.

    Tables that hold CPU seconds are not compared; what they count of samples stands in other files.

    Parameters
    ----------
    results, store : path
        As for `keep_results`.

    Returns
    -------
    DataFrame
        One row a table, in the order of the workflow, so that the first that differs is the cause of others:
        ``file``, ``verdict`` (one of `VERDICTS`), ``cells`` that differ by more than `ROUNDING`, and the
        first of them: ``row`` (1 is the first below the names), ``column``, ``kept``, ``here``.

    Raises
    ------
    FileNotFoundError
        If nothing is stored.
    """
    results, store = Path(results), Path(store)
    kept = {
        path.relative_to(store).as_posix().removesuffix(".gz"): path
        for path in sorted(store.rglob("*.csv*"))
    }
    if not kept:
        raise FileNotFoundError(f"store must hold result tables; there are none in {store}")
    rows = []
    for name in dict.fromkeys([*_tables(results), *sorted(kept)]):
        row: dict[str, object] = {"file": name, "verdict": "", "cells": 0}
        here = results / name
        if not here.exists():
            row["verdict"] = MISSING
        elif name not in kept:
            row["verdict"] = NEW
        elif name in _TIMED_FILES:
            row["verdict"] = SECONDS
        else:
            row |= _difference(_read(kept[name]), here.read_bytes())
        rows.append(row)
    columns = ["file", "verdict", "cells", "row", "column", "kept", "here"]
    return pd.DataFrame(rows, columns=columns).astype({"row": "Int64"})


def summary_of_comparison(frame: pd.DataFrame) -> str:
    """Say in a few lines what a comparison found, with the first difference by name."""
    counts = frame["verdict"].value_counts()
    lines = [", ".join(f"{counts[v]} {v}" for v in VERDICTS if v in counts)]
    for row in frame[frame["verdict"].isin([SHAPE, MISSING])].itertuples():
        lines.append(
            f"{row.file}: {row.verdict}"
            + (f", kept {row.kept}; here {row.here}" if row.kept else "")
        )
    different = frame[frame["verdict"] == DIFFERENT]
    for row in different.head(1).itertuples():
        lines.append(
            f"first difference: {row.file}, row {row.row}, column {row.column}: kept {row.kept}, here {row.here} "
            f"({row.cells} cells of this file differ)"
        )
    return "\n".join(lines)


def _read(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _difference(kept: bytes, here: bytes) -> dict[str, object]:
    """Verdict on one table, and the first cell that differs."""
    if kept == here:
        return {"verdict": SAME}
    one, two = (
        pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
        for content in (kept, here)
    )
    if list(one.columns) != list(two.columns) or len(one) != len(two):
        shapes = [f"{len(frame)} rows of {list(frame.columns)}" for frame in (one, two)]
        return {"verdict": SHAPE, "kept": shapes[0], "here": shapes[1]}
    differs = np.column_stack([_differs(one[name], two[name]) for name in one.columns])
    if not differs.any():
        return {"verdict": ROUNDED}
    row, column = (int(index[0]) for index in np.nonzero(differs))
    name = one.columns[column]
    return {
        "verdict": DIFFERENT,
        "cells": int(differs.sum()),
        "row": row + 1,
        "column": name,
        "kept": one[name].iloc[row],
        "here": two[name].iloc[row],
    }


def _differs(one: pd.Series, two: pd.Series) -> np.ndarray:
    """Which cells of a column differ by more than rounding; texts and empty cells must be the same."""
    a, b = (pd.to_numeric(column, errors="coerce").to_numpy(float) for column in (one, two))
    size = np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    with np.errstate(invalid="ignore"):  # infinities, which are the same text where they agree
        close = np.abs(a - b) <= ROUNDING * size
    return np.asarray((one != two).to_numpy() & ~close)
