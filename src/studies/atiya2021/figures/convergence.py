"""Errors against the number of samples (Experiments 1 and 2), and the floor of Table 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recheck import style
from recheck.book import Book
from studies.atiya2021.figures.common import (
    columns,
    drawn,
    handle,
    label,
    legend,
    log_axes,
    nothing,
    published,
)

__all__ = ["errors", "floor"]

_HOLLOW: dict[str, Any] = {"color": style.ORANGE, "marker": "s", "markerfacecolor": "none"}
_OURS: dict[str, Any] = {"color": style.BLUE, "marker": "o"}
_BAND: dict[str, Any] = {"color": style.BLUE, "alpha": 0.2}
_LINE: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}
_SAMPLES = "samples $M$"
_DIMENSIONS = ("50", "200", "500")
_PATTERNS = {"P1": 100, "P2": 200, "P3": 400, "P4": 800}
#: The vertical axis of each table, and its panels with their titles.
_ROWS = {
    "table1": ("MAPE of $\\log I$ (%)", {f"N{n}": f"$N={n}$" for n in _DIMENSIONS}),
    "table2": (
        "MAE of $p(y_*=1)$",
        {name: f"{label('problem', name)}, $N={n}$" for name, n in _PATTERNS.items()},
    ),
    "table3": ("MAPE of $\\log L$ (%)", dict.fromkeys(_PATTERNS, "")),
}


def errors(book: Book) -> Figure:
    """Errors against M: log orthant probabilities, class probabilities, log marginal likelihoods."""
    figure = style.figure(5.6)
    panels = figure.subplots(3, 4, sharey="row")
    for row, (table, (title, blocks)) in zip(panels, _ROWS.items(), strict=True):
        row[0].set_ylabel(title)
        cells = published(book, rf"{table}/(?P<block>\w+)/M(?P<M>\d+)$")
        ours = columns(book, f"{table}/{{block}}/M{{M}}", "error")
        for axes, (block, text) in zip(row, blocks.items(), strict=False):
            log_axes(axes)
            axes.set_xticks([1e4, 1e5, 1e6])
            style.label_panel(axes, text)
            theirs = cells[cells["block"] == block]
            bars = theirs["bracket_value"] if table == "table1" else None
            drawn(axes, theirs["M"] * 1.06, theirs["value"], bars, **_HOLLOW)
            _ours(axes, book, f"spread/{table}/{block}/M{{M}}", ours[ours["block"] == block])
    panels[0, 3].set_axis_off()
    for axes in panels[2]:
        axes.set_xlabel(_SAMPLES)
    handles = [
        handle("ours", **_OURS),
        handle("ours, range over data sets", **_BAND, linestyle="-", linewidth=6),
        handle("published", **_HOLLOW),
        handle(r"$\propto M^{-1/2}$", **_LINE),
    ]
    legend(figure, handles, 4)
    return figure


def _ours(axes: Axes, book: Book, spread: str, own: pd.DataFrame) -> None:
    """Our errors, the range of data sets, and the line through the level of the errors that falls as M^(-1/2)."""
    if own.empty:
        nothing(axes, "not run")
        return
    drawn(axes, own["M"] / 1.06, own["error"], own["error_se"], **_OURS)
    ends = columns(book, f"{spread}/{{end}}", "value").pivot(
        index="M", columns="end", values="value"
    )
    if len(ends):
        axes.fill_between(ends.index, ends["lowest"], ends["highest"], linewidth=0, **_BAND)
    level = np.exp(np.mean(np.log(own["error"]) + 0.5 * np.log(own["M"])))
    place = np.array([8e3, 3.8e6])
    axes.plot(place, level * place**-0.5, zorder=1, **_LINE)


def floor(book: Book) -> Figure:
    """Table 1 against our errors, scored against exact truths and against truths from coarse grids."""
    cells = published(book, r"table1/N(?P<N>\d+)/M(?P<M>\d+)$")
    ours = columns(book, "table1/N{N}/M{M}", "mape")
    coarse = columns(book, "experiment1/N{N}/step{step}/M{M}/error", "mape").sort_values("M")
    steps = sorted(coarse["step"].unique(), key=float, reverse=True)
    colours = dict(zip(steps, style.COLOURS[2:], strict=False))
    figure = style.figure(2.9)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, dimension in zip(panels, _DIMENSIONS, strict=True):
        log_axes(axes)
        style.label_panel(axes, f"$N={dimension}$")
        theirs, own = (rows[rows["N"] == float(dimension)] for rows in (cells, ours))
        for step, color in colours.items():
            rows = coarse[(coarse["N"] == float(dimension)) & (coarse["step"] == step)]
            axes.plot(rows["M"], rows["mape"], color=color, linewidth=1.1)
        drawn(axes, theirs["M"], theirs["value"], **_HOLLOW)
        drawn(axes, own["M"], own["mape"], **_OURS)
        if own.empty:
            nothing(axes)
        axes.set_xlabel(_SAMPLES)
    panels[0].set_ylabel("MAPE of $\\log I$ (%)")
    handles = [handle("published", **_HOLLOW), handle("ours, exact truth", **_OURS)]
    for step, color in colours.items():
        handles.append(handle(rf"ours, grid truth, $\Delta u={step}$", color, linestyle="-"))
    legend(figure, handles, 3)
    return figure
