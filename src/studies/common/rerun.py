"""Kept rows that are run again: what they give now beside what is kept."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from recheck.judge import law
from recheck.record.files import gather_digests, read_csv, write_csv
from recheck.record.provenance import blas
from studies.common.blocks import Reader
from studies.common.code import digest_of_rows
from studies.common.kept import (
    DIFFERENT,
    IDENTICAL,
    ROUNDED,
    SAME_LAW,
    UNJUDGED,
    Kept,
    differences,
    kernels,
    modules_of,
)
from studies.common.rows import NO_DATA, TEXT, Row, Table, part_of, table_of
from studies.common.samelaw import beside, keys


def run_again(jobs: Iterable[Mapping[str, Any]], processes: int) -> pd.DataFrame:
    """Run kept rows again, in parallel, one thread each.

    Parameters
    ----------
    jobs : iterable of mapping
        ``study``, ``experiment``, ``row`` and ``inputs`` (`studies.common.plan.Plan.job_of`).
    processes : int
        How many rows run at a time.

    Returns
    -------
    DataFrame
        A line a row: ``study``, ``experiment``, ``row``, digest of its ``code``, ``cpu_seconds``, ``outcome``, the
        first ``difference``, and ``beside``, its first results, the kept one and that of this run. An outcome is
        *identical*; *rounding*; *same law*, if differences of estimates are no larger than errors allow, at
        `recheck.judge.law.RATE` over all rows; *different*; *not judged*, if numbers of a row with a seed
        differ and none has an error, and rows of the same code are of the same law; or that the data are not available.
    """
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        found = list(pool.map(_again, jobs))
    _judge(found)
    columns = ["study", "experiment", "row", "code", "cpu_seconds"]
    columns += ["outcome", "difference", "beside"]
    return pd.DataFrame(found, columns=columns)


@cache
def _kept(study: str, experiment: str) -> Table:
    return Kept(f"data/reference/{study}").table(experiment)


def _again(job: Mapping[str, Any]) -> dict[str, Any]:
    study, experiment, row = job["study"], job["experiment"], job["row"]
    reader = Reader({})
    found = {"study": study, "experiment": experiment, "row": row["row"]}
    found |= {"code": digest_of_rows(study, experiment, [row]), "cpu_seconds": 0.0, "beside": ""}
    found |= {"apart": None, "draws": "seed" in row}
    if lost := reader.lost(job["inputs"]):
        return found | {"outcome": NO_DATA, "difference": f"{lost} has none of its raw data"}
    here = table_of([reader.run(**job)])
    old = part_of(_kept(study, experiment), [row["row"]])
    different = differences(old, here)
    rounded = different.startswith(ROUNDED)
    label = ", ".join([study, experiment, str(row.get("method", modules_of(row)))])
    seconds = here.timing.filter(regex="cpu_seconds$").replace("", "0").astype(float).sum().sum()
    return found | {
        "cpu_seconds": round(float(seconds), 3),
        "outcome": ROUNDED if rounded else DIFFERENT if different else IDENTICAL,
        "difference": different,
        "beside": _beside(old, here, row),
        "apart": beside(_kept(study, experiment), old, here, row, label)
        if different and not rounded
        else None,
    }


def _judge(found: list[dict[str, Any]]) -> None:
    """Tell rows of the same law from others, by all estimates of all rows together."""
    lines = {f"{k}": line for k, line in enumerate(found) if line["apart"]}
    right = {key: line for key, line in lines.items() if not line["apart"].wrong}
    other = law.others(
        pair._replace(row=key) for key, line in right.items() for pair in line["apart"].pairs
    )
    for key, line in lines.items():
        pairs, unjudged, wrong = line["apart"]
        if why := wrong or other.get(key, ""):
            line["difference"] = why
        elif pairs:
            line["outcome"] = SAME_LAW
            line["difference"] = f"{len(pairs)} estimates within their errors"
            if unjudged:
                line["difference"] += f"; without an error: {', '.join(unjudged)}"
    of_law = {line["code"] for line in found if line["outcome"] == SAME_LAW}
    for key, line in right.items():
        judged = key in other or line["apart"].pairs
        if not judged and line["draws"] and line["code"] in of_law:
            line["outcome"] = UNJUDGED


def _beside(old: Table, found: Table, row: Row) -> str:
    """The first results of a row that are numbers and no settings, the kept one and that of this run."""
    given = {"row", *keys(row)}
    pairs = (
        (name, old.rows[name].iloc[0], found.rows[name].iloc[0])
        for name in found.rows
        if name not in given and name in old.rows
    )
    first = list(islice((pair for pair in pairs if _decimal(pair[1]) and _decimal(pair[2])), 4))
    return "; ".join(f"{name} {one} | {two}" for name, one, two in first)


def _decimal(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and not text.lstrip("-").isdigit()
    except ValueError:
        return False


def other_kernels(studies: Iterable[str], reference: str | Path) -> str:
    """Return a remark if kept rows were made with other kernels of the linear algebra than those here; else nothing."""
    here = kernels(blas())
    kept = [Kept(Path(reference, study)) for study in studies]
    there = {
        name for one in kept for experiment in one.experiments for name in one.kernels(experiment)
    } - {here}
    if not there:
        return ""
    return (
        f"The kept rows were made with the kernels {'; '.join(sorted(there))} of the linear algebra, those here are "
        f"{here}. They round otherwise; a Markov chain that takes one decision otherwise is another "
        "chain from there on. With the same kernels, every row must be identical."
    )


def note(found: pd.DataFrame, reference: str | Path) -> None:
    """Write ``verified.csv`` of each study below the folder of kept results, of rows that were run again.

    Rows that were run again before stay in it, but for those of these methods' former code.
    """
    for study, every in found.groupby("study"):
        path = Path(reference, str(study), "verified.csv")
        own = every[every["outcome"] != NO_DATA]
        if own.empty:
            continue
        own = own.drop(columns=["study", "beside"]).assign(kernels=kernels(blas()))
        if path.exists():
            before = _still_told(read_csv(path, **TEXT), own, every)
            own = pd.concat([before, own], ignore_index=True)
        write_csv(path, own)
        gather_digests(path.parent)


def _still_told(before: pd.DataFrame, now: pd.DataFrame, drawn: pd.DataFrame) -> pd.DataFrame:
    """Rows run again before that are not among those of now, nor of an experiment that has other code now.

    What code an experiment has all rows say that were `drawn`, those without data among them.
    """
    keys = pd.MultiIndex.from_frame(now[["experiment", "row"]])
    again = pd.MultiIndex.from_frame(before[["experiment", "row"]]).isin(keys)
    former = before["experiment"].isin(drawn["experiment"]) & ~before["code"].isin(drawn["code"])
    return before[~again & ~former]
