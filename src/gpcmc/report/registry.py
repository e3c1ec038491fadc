"""Every table and figure by the name of its files, and how they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from gpcmc.audit import ResultFiles
from gpcmc.report import comparisons, figures, style, tables
from gpcmc.report.table import Table

__all__ = ["FIGURES", "TABLES", "write_figure", "write_table"]

#: Each takes the published registry and the result files.
TABLES: dict[str, Callable[[pd.DataFrame, ResultFiles], Table]] = {
    **tables.TABLES,
    **comparisons.TABLES,
}
FIGURES: dict[str, Callable[[pd.DataFrame, ResultFiles], Figure]] = {
    **figures.FIGURES,
    **comparisons.FIGURES,
}


def write_table(
    name: str, registry: pd.DataFrame, files: ResultFiles, csv: str | Path, tex: str | Path
) -> None:
    """Make one table and write it as CSV and LaTeX.

    Parameters
    ----------
    name : str
        A key of `TABLES`.
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        The result files that the table reads; absent ones read "not run".
    csv, tex : path
        Where to write.

    Raises
    ------
    ValueError
        The name is unknown.
    """
    if name not in TABLES:
        raise ValueError(f"table {name!r} is unknown; known are {sorted(TABLES)}")
    table = TABLES[name](registry, files)
    table.frame.to_csv(csv, index=False, float_format="%.8g", lineterminator="\n")
    Path(tex).write_text(table.tex, encoding="utf-8")


def write_figure(
    name: str, registry: pd.DataFrame, files: ResultFiles, pdf: str | Path, png: str | Path
) -> None:
    """Draw one figure and write it as PDF and PNG.

    Parameters
    ----------
    name : str
        A key of `FIGURES`.
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        The result files that the figure reads; a panel without any says so.
    pdf, png : path
        Where to write.

    Raises
    ------
    ValueError
        The name is unknown.
    """
    if name not in FIGURES:
        raise ValueError(f"figure {name!r} is unknown; known are {sorted(FIGURES)}")
    with style.style():
        style.save(FIGURES[name](registry, files), pdf, png)
