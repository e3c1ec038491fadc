"""Why a discrepancy is one: ``data/published/explanations.yaml``, and what happens to those without a reason.

A row has the ids of cells, columns and statements, a reason, as evidence the result file that shows it, and which
way ours has to be off: a reason for values that are too low says nothing of ones that are too high. The
reason is printed where the discrepancy is. A discrepancy without one that fits stops the typesetting at the published
scale, and stands on the first page of the PDF at any other. At the published scale a published cell that leaves the
comparison needs a reason as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

__all__ = [
    "Explanation",
    "UnexplainedError",
    "check_explained",
    "explain",
    "read_explanations",
    "unexplained",
]

#: The scale at which a discrepancy needs a reason.
STRICT_SCALE = "published"
#: What can be explained: ours below or above the published value or the region of a statement, or a published cell
#: that was not run, or whose value cannot be compared.
SIDES = ("below", "above", "not compared")


class Explanation(NamedTuple):
    """One of `SIDES`, the reason why ours is there, and the result file (below ``results/<scale>``) that shows it."""

    ours: str
    reason: str
    evidence: str


class UnexplainedError(RuntimeError):
    """At the published scale a discrepancy, or a cell that is not compared, has no explanation."""


def read_explanations(path: str | Path, ids: Collection[str]) -> dict[str, Explanation]:
    """Read and check the explanations.

    Parameters
    ----------
    path : path
        ``explanations.yaml``.
    ids : collection of str
        Cells, columns and statements that there are.

    Returns
    -------
    dict
        By id.

    Raises
    ------
    ValueError
        A row lacks a key or has another, an id is unknown or comes twice, the side is unknown, or a reason is empty.
    """
    with Path(path).open(encoding="utf-8") as stream:
        rows = yaml.safe_load(stream) or []
    found: dict[str, Explanation] = {}
    for place, row in enumerate(rows, start=1):
        where = f"{path}: explanation {place}"
        if not isinstance(row, dict) or set(row) != {"id", "ours", "reason", "evidence"}:
            raise ValueError(
                f"{where}: needed are id, ours, reason and evidence, given was {row!r}"
            )
        reason = " ".join(str(row["reason"] or "").split())
        if row["ours"] not in SIDES:
            raise ValueError(f"{where}: ours: needed is one of {SIDES}, given was {row['ours']!r}")
        if not reason or not row["evidence"]:
            raise ValueError(f"{where} ({row['id']}): a reason and its evidence are needed")
        for name in row["id"] if isinstance(row["id"], list) else [row["id"]]:
            if name not in ids:
                raise ValueError(f"{where}: no cell, column or statement is called {name!r}")
            if name in found:
                raise ValueError(f"{where}: {name!r} is explained twice")
            found[name] = Explanation(row["ours"], reason, str(row["evidence"]))
    return found


def _sides(frame: pd.DataFrame) -> list[str]:
    """Which of `SIDES` each row of cells, columns or statements is on; empty where nothing is to be explained."""
    high = frame["effect"] > frame["high"] if "effect" in frame else frame["z"] > 0
    sides = np.where(high, "above", "below")
    lost = np.zeros(len(frame), dtype=bool)
    if "ours" in frame:
        # the note of any other cell that is not comparable names the status of its runs
        mute = (frame["verdict"] == "not comparable") & frame["ours"].notna()
        lost = (mute | (frame["verdict"] == "not run")).to_numpy()
    discrepant = frame["verdict"] == "discrepant"
    return list(np.select([discrepant, lost], [sides, "not compared"], ""))


def explain(frame: pd.DataFrame, explanations: dict[str, Explanation]) -> pd.DataFrame:
    """Add reasons to cells, columns or statements.

    Returns
    -------
    DataFrame
        With ``explanation`` and ``evidence`` of what is discrepant, or a cell that is not compared, and
        ``unexplained``: why there is none. All are empty where nothing is to be explained.
    """
    added = []
    for name, side in zip(frame["id"], _sides(frame), strict=True):
        known = explanations.get(name)
        if not side:
            added.append(("", "", ""))
        elif known is None:
            added.append(("", "", "no reason is known"))
        elif known.ours != side:
            added.append(("", "", f"the known reason is for ours {known.ours}, and it is {side}"))
        else:
            added.append((known.reason, known.evidence, ""))
    names = ["explanation", "evidence", "unexplained"]
    return frame.assign(**{name: [row[k] for row in added] for k, name in enumerate(names)})


def unexplained(frames: Iterable[pd.DataFrame]) -> list[str]:
    """Ids of discrepant rows without an explanation."""
    return [
        str(name)
        for frame in frames
        for name in frame["id"][(frame["verdict"] == "discrepant") & (frame["unexplained"] != "")]
    ]


def check_explained(frames: Iterable[pd.DataFrame], scale: str) -> None:
    """Refuse to go on at the published scale with something that needs an explanation and has none.

    Raises
    ------
    UnexplainedError
        The message names discrepancies and published cells that are not compared, and where to explain them.
    """
    lost = [
        f"{row['id']}: {row['verdict']}, {row['unexplained']}"
        for frame in frames
        for _, row in frame[frame["unexplained"] != ""].iterrows()
    ]
    if scale == STRICT_SCALE and lost:
        raise UnexplainedError(
            f"the paper is not typeset: {len(lost)} rows of the audit at scale {scale} have no explanation "
            f"({'; '.join(lost)}). Find the reason, and give id, ours, reason and the result file that shows it in "
            "data/published/explanations.yaml"
        )
