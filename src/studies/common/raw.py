"""Rows of measures: reading raw files, and estimates that are functions of known data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from recheck.files import read_csv
from recheck.measures import OK, join_sources
from recheck.published import read_cells
from studies.common.running import NO_DATA

Row = dict[str, Any]


class NoDataError(RuntimeError):
    """A raw file says that the data could not be had; the message names it."""


def read(root: Path, pattern: str) -> pd.DataFrame:
    """The rows of the raw files whose name fits a pattern, with their ``source``; no rows without files.

    Raises
    ------
    NoDataError
        If one says that the data could not be had.
    """
    rows, lost = read_some(root, pattern)
    if lost:
        raise NoDataError(lost[0])
    return rows


def read_some(root: Path, pattern: str) -> tuple[pd.DataFrame, list[str]]:
    """The same of the files that have data; and the source of each that says that its data could not be had."""
    frames, lost = [], []
    for path in sorted(Path(root).glob(pattern)):
        if path.stem.endswith("_timing"):
            continue
        frame, name = read_csv(path), path.relative_to(root).as_posix()
        if list(frame.columns) == ["status"] and (frame["status"] == NO_DATA).all():
            lost.append(f"{name}:2")
            continue
        frame["source"] = [f"{name}:{line + 2}" for line in range(len(frame))]
        frames.append(frame)
    return (pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()), lost


def exact(id: str, value: float, source: str | Iterable[str], **more: Any) -> Row:
    """An estimate that chance has no part in; `more` has ``reading``, ``status``, ``se`` with ``df``, and so on."""
    source = source if isinstance(source, str) else join_sources(source)
    row: Row = {"id": id, "value": float(value), "scale": "linear", "se": 0.0, "source": source}
    row |= more
    if not math.isfinite(row["value"]) and row.get("status", OK) == OK:
        row["status"] = "not defined"
    return row


def nearest(values: pd.Series, printed: float) -> float:
    """The value that is nearest to the printed one: what a number is at some point that rounds to the printed point."""
    return float(values[(values - printed).abs().idxmin()])


def unavailable(published: Path, ids: Sequence[str], source: str) -> pd.DataFrame:
    """Rows that say of all cells and claims whose ids fit globs that the data could not be had."""
    from recheck.measures import as_measures

    cells = read_cells(Path(published) / "cells.csv").index
    claims = yaml.safe_load((Path(published) / "claims.yaml").read_text(encoding="utf-8"))
    known = [*cells, *(f"claim/{claim['id']}" for claim in claims)]
    lost = [id for id in known if any(fnmatchcase(id, glob) for glob in ids)]
    row = {"scale": "linear", "value": math.nan, "status": NO_DATA, "source": source}
    return as_measures([{"id": id, **row} for id in lost])
