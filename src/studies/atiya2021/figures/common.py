"""Parts of several figures: logarithmic axes, error bars, handles of legends, and the look of each method."""

from __future__ import annotations

from collections.abc import Sequence
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

__all__ = [
    "LOOKS",
    "SAMPLES",
    "band",
    "columns",
    "drawn",
    "falling",
    "handle",
    "label",
    "legend",
    "log_samples",
    "log_values",
    "nothing",
    "published",
]

SAMPLES = "number of samples $M$"
#: Colour, marker and line of each method.
LOOKS: dict[str, tuple[str, str, str]] = {
    "orthant": (style.BLUE, "o", "-"),
    "orthant-adapted": ("#56b4e9", "s", "-"),
    "best": (style.INK, "*", "-"),
    "minimax-tilting": ("#009e73", "P", "-"),
    "importance-ep": ("#882255", "X", "-"),
    "ess": (style.ORANGE, "^", "-"),
    "ess-gpml": (style.ORANGE, "v", "--"),
    "hmc": ("#e69f00", "<", "-"),
    "hmc-gpml": ("#e69f00", ">", "--"),
    "laplace": (style.GREY, "D", ":"),
    "ep": ("#cc79a7", "h", ":"),
}


def columns(book: Book, template: str, name: str) -> pd.DataFrame:
    """Estimates of a template that have a value: its fields (M, N, size as numbers), `name` and its error."""
    rows = book.select(template)
    rows = rows[rows["value"].notna()].rename(columns={"value": name, "se": f"{name}_se"})
    for field in ("M", "N", "size"):
        if field in rows:
            rows[field] = rows[field].astype(float)
    return rows


def published(book: Book, pattern: str) -> pd.DataFrame:
    """Published cells whose id fits a regular expression, with its groups as columns."""
    fields = book.cells["id"].str.extract(pattern)
    fields = fields[fields.notna().all(axis=1)]
    if "M" in fields:
        fields["M"] = fields["M"].astype(float)
    return fields.join(book.cells[["value", "bracket_value"]])


@lru_cache(maxsize=1)
def _layout() -> Layout:
    return read_layout(Path(__file__).parents[1] / "layout.yaml")


def label(field: str, value: str) -> str:
    """How the tables print a value of a field."""
    return _layout().labels.get(field, {}).get(value, value)


def log_samples(axes: Axes) -> None:
    """A logarithmic axis of sample sizes."""
    axes.set_xscale("log")
    axes.set_xlim(7e3, 4.3e6)
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_minor_formatter(NullFormatter())


def log_values(axes: Axes) -> None:
    """A logarithmic axis of values, with decimals and no powers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(style.plain))
    axes.yaxis.set_minor_formatter(NullFormatter())


def drawn(
    axes: Axes,
    x: pd.Series,
    value: pd.Series,
    se: pd.Series | None = None,
    *,
    shift: float = 1.0,
    **look: Any,
) -> None:
    """Points on a logarithmic axis, moved to the right by a factor; with standard errors also bars."""
    y = value.to_numpy(dtype=float)
    bars = None if se is None else np.stack(style.log_error_bars(y, se.to_numpy(dtype=float)))
    axes.errorbar(x.to_numpy(dtype=float) * shift, y, yerr=bars, **{"linestyle": "none", **look})


def falling(axes: Axes, samples: pd.Series, values: pd.Series) -> None:
    """The line through the level of values (mean of log value + log M / 2) that falls as M^(-1/2)."""
    level = np.exp(np.mean(np.log(values.astype(float)) + 0.5 * np.log(samples.astype(float))))
    ends = np.array([8e3, 3.8e6])
    axes.plot(ends, level * ends**-0.5, color=style.GREY, linestyle="--", linewidth=0.8, zorder=1)


def handle(label: str, color: str, marker: str = "", **look: Any) -> Line2D:
    """An entry of a legend; points only unless a line is asked for."""
    return Line2D([], [], color=color, marker=marker, label=label, **{"linestyle": "none", **look})


def band(label: str, color: str) -> Line2D:
    """An entry of a legend for a shaded range."""
    return Line2D([], [], color=color, alpha=0.2, linewidth=6, label=label)


def legend(figure: Figure, handles: Sequence[Line2D], entries: int) -> None:
    """A legend below the panels, with so many entries a row."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=entries)


def nothing(axes: Axes, text: str = "not run at this scale") -> None:
    """Say in an empty panel why it is empty."""
    axes.text(0.04, 0.04, text, transform=axes.transAxes, color=style.GREY)
