"""Parts of several figures: logarithmic axes, error bars, legends, and the look of each method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from recheck import style
from recheck.book import Book
from recheck.layout import Layout, read_layout


def columns(book: Book, template: str, name: str) -> pd.DataFrame:
    """Estimates of a template that have a value: its fields (M, N, size as numbers), `name` and its error."""
    rows = book.select(template)
    rows = rows[rows["value"].notna()].rename(columns={"value": name, "se": f"{name}_se"})
    return rows.astype({field: float for field in ("M", "N", "size") if field in rows})


def table(book: Book, template: str, rows: str | list[str], field: str) -> pd.DataFrame:
    """Values of a template, with one column for each value of a field."""
    return book.select(template).pivot(index=rows, columns=field, values="value")


@lru_cache(maxsize=1)
def _layout() -> Layout:
    return read_layout(Path(__file__).parents[1] / "layout.yaml")


def label(field: str, value: str) -> str:
    """How the tables print a value of a field."""
    return _layout().labels.get(field, {}).get(value, value)


def ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the order of the tables, others after them by name."""
    known = list(_layout().order.get("method", ()))
    return sorted(set(methods), key=lambda m: (known.index(m) if m in known else len(known), m))


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour and marker by name."""
    return {
        n: {"color": style.COLOURS[i % 10], "marker": style.MARKERS[i % 10]}
        for i, n in enumerate(names)
    }


def log_axes(axes: Axes) -> None:
    """Logarithmic axes of sample sizes, and of values with decimals and no powers."""
    axes.set(xscale="log", yscale="log", xlim=(7e3, 4.3e6))
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(style.plain))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())


def drawn(
    axes: Axes, x: pd.Series, value: pd.Series, se: pd.Series | None = None, **look: Any
) -> None:
    """Points on logarithmic axes; with standard errors also bars."""
    y = value.to_numpy(dtype=float)
    bars = None if se is None else np.stack(style.log_error_bars(y, se.to_numpy(dtype=float)))
    axes.errorbar(x.to_numpy(dtype=float), y, yerr=bars, **{"linestyle": "none", **look})


def handle(label: str, color: str, **look: Any) -> Line2D:
    """An entry of a legend; points only unless a line is asked for."""
    return Line2D([], [], color=color, label=label, **{"linestyle": "none", **look})


def legend(figure: Figure, handles: Sequence[Line2D], entries: int = 4) -> None:
    """A legend below the panels, with so many entries a row; none without entries."""
    if handles:
        figure.legend(handles=list(handles), loc="outside lower center", ncols=entries)


def nothing(axes: Axes, text: str = "not run at this scale") -> None:
    """Say in an empty panel why it is empty."""
    axes.text(0.04, 0.04, text, transform=axes.transAxes, color=style.GREY)
