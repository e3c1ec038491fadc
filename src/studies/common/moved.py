"""What moved between two runs: measures of this run beside those of the run before, in one folder of results."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.judge.measures import estimate
from recheck.report.book import read

#: The measures of the last run, and of the one before that had others.
LAST, BEFORE = ".measures-last.csv", ".measures-before.csv"
_KEYS = ["id", "reading"]


def keep_last(study: Path) -> None:
    """Note the measures of a study as those of the last run; where they are others than noted, these are of before.

    Parameters
    ----------
    study : path
        ``results/<scale>/<study>``, with ``measures.csv``.
    """
    made, last = study / "measures.csv", study / LAST
    if last.exists() and last.read_bytes() != made.read_bytes():
        _move(last, study / BEFORE)
    for one, other in _with_digests(made, last):
        shutil.copyfile(one, other)


def _move(one: Path, other: Path) -> None:
    for source, target in _with_digests(one, other):
        source.replace(target)


def _with_digests(one: Path, other: Path) -> list[tuple[Path, Path]]:
    return [(one, other), (Path(f"{one}.digest"), Path(f"{other}.digest"))]


def moved(study: Path) -> pd.DataFrame | None:
    """Return the estimates of a study that are others than in the run before; None if there was none.

    Returns
    -------
    DataFrame
        ``id``, ``reading``, ``before``, ``now``, ``errors`` (the difference over the joint standard error, not defined
        where none is known), the largest first. What is in one of the runs alone has nothing for the other.
    """
    if not (study / BEFORE).exists():
        return None
    old, new = (
        estimate(read(study / name)).set_index(_KEYS)[["value", "se"]]
        for name in (BEFORE, "measures.csv")
    )
    both = old.join(new, how="outer", lsuffix="_before", rsuffix="_now")
    same = (both["value_before"] == both["value_now"]) | both[
        ["value_before", "value_now"]
    ].isna().all(axis=1)
    both = both[~same]
    joint = np.hypot(both["se_before"].fillna(0.0), both["se_now"].fillna(0.0)).replace(0.0, np.nan)
    errors = (both["value_now"] - both["value_before"]) / joint
    frame = both.assign(errors=errors).rename(
        columns={"value_before": "before", "value_now": "now"}
    )
    frame = frame.iloc[np.argsort(-errors.abs().fillna(np.inf).to_numpy(), kind="stable")]
    return frame[["before", "now", "errors"]].reset_index()
