"""Why a discrepancy is one: ``data/published/explanations.yaml``, and what happens to those without a reason.

A row has the id of a cell, column or statement, a reason, and as evidence the result file that shows it. The
reason is printed where the discrepancy is. A discrepancy without one stops the typesetting at the published scale, and
stands on the first page of the PDF at any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

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


class Explanation(NamedTuple):
    """The reason of a discrepancy, and the result file (below ``results/<scale>``) that shows it."""

    reason: str
    evidence: str


class UnexplainedError(RuntimeError):
    """A discrepancy at the published scale has no explanation."""


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
        A row lacks a key or has another, an id is unknown or comes twice, or a reason is empty.
    """
    with Path(path).open(encoding="utf-8") as stream:
        rows = yaml.safe_load(stream) or []
    found: dict[str, Explanation] = {}
    for place, row in enumerate(rows, start=1):
        where = f"{path}: explanation {place}"
        if not isinstance(row, dict) or set(row) != {"id", "reason", "evidence"}:
            raise ValueError(f"{where}: needed are id, reason and evidence, given was {row!r}")
        name, reason = row["id"], " ".join(str(row["reason"] or "").split())
        if name not in ids:
            raise ValueError(f"{where}: no cell, column or statement is called {name!r}")
        if name in found:
            raise ValueError(f"{where}: {name!r} is explained twice")
        if not reason or not row["evidence"]:
            raise ValueError(f"{where} ({name}): a reason and its evidence are needed")
        found[name] = Explanation(reason, str(row["evidence"]))
    return found


def explain(frame: pd.DataFrame, explanations: dict[str, Explanation]) -> pd.DataFrame:
    """Add ``explanation`` and ``evidence`` to the discrepant rows of cells, columns or statements; else empty."""
    nothing = Explanation("", "")
    rows = [
        explanations.get(name, nothing) if verdict == "discrepant" else nothing
        for name, verdict in zip(frame["id"], frame["verdict"], strict=True)
    ]
    return frame.assign(
        explanation=[row.reason for row in rows], evidence=[row.evidence for row in rows]
    )


def unexplained(frames: Iterable[pd.DataFrame]) -> list[str]:
    """Ids of discrepant rows without an explanation."""
    return [
        str(name)
        for frame in frames
        for name in frame["id"][(frame["verdict"] == "discrepant") & (frame["explanation"] == "")]
    ]


def check_explained(frames: Iterable[pd.DataFrame], scale: str) -> None:
    """Refuse to go on at the published scale with a discrepancy that has no explanation.

    Raises
    ------
    UnexplainedError
        The message names them, and where to explain them.
    """
    if scale == STRICT_SCALE and (ids := unexplained(frames)):
        raise UnexplainedError(
            f"the paper is not typeset: {len(ids)} discrepancies at scale {scale} have no explanation "
            f"({', '.join(ids)}). Find the reason, and give id, reason and the result file that shows it in "
            "data/published/explanations.yaml"
        )
