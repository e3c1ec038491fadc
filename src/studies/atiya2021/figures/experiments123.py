"""Errors against the number of samples (Experiments 1 and 2), the floor of Table 1, and errors against CPU seconds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

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


#: Rows of the configuration that stand for a method in the curves of the marginal likelihood.
_ANNEALED = {"ess": "ess-ais", "hmc": "hmc-ais"}
#: Colour, marker and line of each method.
_LOOKS = {
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
#: Looks of methods that have none of their own.
_FURTHER = [("#999933", "p", "-"), ("#44aa99", "d", "-"), ("#332288", "8", "-")]


def _curve(book: Book, base: str, quantity: str) -> pd.DataFrame:
    """Points of all rows: seconds, error and its standard error, by size."""
    template = f"experiment3/{{method}}/size{{size}}{base}"
    points = columns(book, f"{template}/{quantity}", "error")
    seconds = columns(book, f"{template}/seconds", "seconds")[["method", "size", "seconds"]]
    both = points[points["error"] > 0].merge(seconds, on=["method", "size"])
    both["error_se"] = both["error_se"].fillna(0.0) / both["error"]  # of the logarithm
    return both.assign(error=np.log(both["error"].astype(float))).sort_values("seconds")


def _curves(axes: Axes, book: Book, quantity: str, annealed: dict[str, str]) -> list[Line2D]:
    """Draw log errors of every method against CPU seconds, and return a legend's handles."""
    full, unconverged = (_curve(book, base, quantity) for base in ("", "/unconverged"))
    rows = {annealed.get(method, method): method for method in _LOOKS}
    further = sorted({*full["method"]} - {*rows, *_ANNEALED, *_ANNEALED.values()})
    rows |= {method: method for method in further}
    looks, handles = _LOOKS | dict(zip(further, _FURTHER, strict=False)), []
    for row, method in rows.items():
        color, marker, line = looks[method]
        look: dict[str, Any] = {"color": color, "marker": marker}
        look["markersize"] = {"*": 7.0, "D": 4.0}.get(marker, 5.0)
        good, other = (points[points["method"] == row] for points in (full, unconverged))
        if good.empty and other.empty:
            continue
        curve: dict[str, Any] = {"linestyle": line, "linewidth": 0.9}
        axes.errorbar(good["seconds"], good["error"], yerr=good["error_se"], **curve, **look)
        if len(good) and line == ":":
            level = good["error"].iloc[0]
            axes.axhline(level, color=color, linestyle=":", linewidth=0.8, zorder=1)
        hollow = {"linestyle": "none", "markerfacecolor": "white", **look}
        axes.plot(other["seconds"], other["error"], **hollow)
        look |= {"markerfacecolor": "white"} if good.empty else {}
        text = label("method", method) + (" (not converged)" if good.empty else "")
        handles.append(handle(text, **curve, **look))
    axes.set(xscale="log", xlabel="CPU seconds")
    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(style.plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if not handles:
        nothing(axes)
    return handles


def figure1(book: Book) -> Figure:
    """Figure 1 of the paper: log of the MAE of class probabilities against CPU seconds."""
    figure = style.figure(4.1)
    axes = figure.subplots()
    handles = _curves(axes, book, "mae", {})
    axes.set_ylabel(r"$\ln$ MAE of $p(y_*=1)$")
    legend(figure, handles, 4)
    return figure


def figure2(book: Book) -> Figure:
    """Figure 2 of the paper: log of the MAPE of the log marginal likelihood against CPU seconds; nats at the right."""
    figure = style.figure(4.4)
    axes = figure.subplots()
    handles = _curves(axes, book, "mape", _ANNEALED)
    for name, marker in (("new", "$\\oplus$"), ("ess", "$\\otimes$")):
        x, y = (
            book.get(f"experiment3/quoted/{name}/{what}").value for what in ("seconds", "log-mape")
        )
        look: dict[str, Any] = {"marker": marker, "markersize": 9, "markeredgewidth": 0.4}
        axes.plot([x], [y], color=style.INK, linestyle="none", **look)
        handles.append(handle(f"published {name.upper()}", style.INK, **look))
    axes.set_ylabel(r"$\ln$ MAPE of $\log L$ (MAPE in %)")
    nats, mape = (
        columns(book, f"experiment3/{{method}}/size{{size}}/{what}", what)
        for what in ("nats", "mape")
    )
    both = nats.merge(mape, on=["method", "size"])
    if len(both):  # the truth is one number: nats are percents times a constant
        factor = math.exp(np.log(both["nats"] / both["mape"]).mean())
        right = axes.secondary_yaxis(
            "right",
            functions=(
                lambda y: factor * np.exp(np.clip(y, -50, 50)),
                lambda y: np.log(np.maximum(y, 1e-20) / factor),
            ),
        )
        right.set_yticks([10.0**k for k in range(-4, 2)])
        right.yaxis.set_major_formatter(FuncFormatter(style.plain))
        right.set_ylabel(r"mean $|\log\hat L-\log L|$ (nats)")
    legend(figure, handles, 4)
    return figure
