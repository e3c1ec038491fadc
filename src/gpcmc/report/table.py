"""A table of the paper as it goes to files, and what its cells say where there is no number."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from gpcmc.report.latex import escape, tabular

__all__ = ["Table", "brief", "empty"]


@dataclass(frozen=True, slots=True)
class Table:
    """One table: ``frame`` goes to CSV, ``tex`` is a LaTeX tabular."""

    frame: pd.DataFrame
    tex: str


def empty(text: str = "not run at this scale") -> str:
    """The LaTeX of a table without rows: why it has none."""
    return tabular("c", [["--"]], [[[escape(text)]]])


def brief(verdict: str) -> str:
    """Why there is no number, as LaTeX in italics."""
    return rf"\textit{{{escape(verdict)}}}"
