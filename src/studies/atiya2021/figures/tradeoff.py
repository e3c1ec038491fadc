"""Errors against CPU seconds (Experiment 3), and what each defect of the toolbox does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from recheck import style
from recheck.book import Book
from studies.atiya2021.figures.common import LOOKS, columns, handle, label, legend, nothing

__all__ = ["defects", "figure1", "figure2"]

#: Rows of the configuration that stand for a method in the curves of the marginal likelihood.
_ANNEALED = {"ess": "ess-ais", "hmc": "hmc-ais"}
#: Looks of methods that have none of their own.
_FURTHER = [("#999933", "p", "-"), ("#44aa99", "d", "-"), ("#332288", "8", "-")]


def _curve(book: Book, base: str, row: str, quantity: str) -> pd.DataFrame:
    """Points of one row: seconds, error and its standard error, by size."""
    points = columns(book, f"experiment3/{{method}}/size{{size}}{base}/{quantity}", "error")
    seconds = columns(book, f"experiment3/{{method}}/size{{size}}{base}/seconds", "seconds")
    both = points.merge(seconds[["method", "size", "seconds"]], on=["method", "size"])
    both = both[(both["method"] == row) & (both["error"] > 0)]
    return both.sort_values("seconds")


def _curves(axes: Axes, book: Book, quantity: str, annealed: dict[str, str]) -> list[Line2D]:
    """Draw log errors of every method against CPU seconds, and return a legend's handles."""
    there = columns(book, f"experiment3/{{method}}/size{{size}}/{quantity}", "error")["method"]
    rows = {annealed.get(method, method): method for method in LOOKS}
    further = sorted(set(there) - set(rows) - set(_ANNEALED) - set(_ANNEALED.values()))
    looks = LOOKS | dict(zip(further, _FURTHER, strict=False))
    handles = []
    for method, (color, marker, line) in looks.items():
        row = annealed.get(method, method)
        full = _curve(book, "", row, quantity)
        other = _curve(book, "/unconverged", row, quantity)
        look: dict[str, Any] = {"color": color, "marker": marker}
        look["markersize"] = {"*": 7.0, "D": 4.0}.get(marker, 5.0)
        if full.empty and other.empty:
            continue
        error = full["error"].to_numpy(dtype=float)
        se = np.nan_to_num(full["error_se"].to_numpy(dtype=float)) / error  # of the logarithm
        middle = np.log(error)
        axes.errorbar(full["seconds"], middle, yerr=se, linestyle=line, linewidth=0.9, **look)
        if len(full) and line == ":":
            axes.axhline(middle[0], color=color, linestyle=":", linewidth=0.8, zorder=1)
        hollow = {"linestyle": "none", "markerfacecolor": "white", **look}
        axes.plot(other["seconds"], np.log(other["error"]), **hollow)
        look |= {"markerfacecolor": "white"} if full.empty else {}
        text = label("method", method) + (" (not converged)" if full.empty else "")
        handles.append(handle(text, linestyle=line, linewidth=0.9, **look))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(style.plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("CPU seconds")
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
        point = [book.get(f"experiment3/quoted/{name}/{what}") for what in ("seconds", "log-mape")]
        look: dict[str, Any] = {"marker": marker, "markersize": 9, "markeredgewidth": 0.4}
        axes.plot([point[0].value], [point[1].value], color=style.INK, linestyle="none", **look)
        handles.append(handle(f"published {name.upper()}", style.INK, **look))
    axes.set_ylabel(r"$\ln$ MAPE of $\log L$ (MAPE in %)")
    nats = columns(book, "experiment3/{method}/size{size}/nats", "nats")
    mape = columns(book, "experiment3/{method}/size{size}/mape", "mape")
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


#: Cases and sets of defects in the order of panels and rows.
_CASES = ("linear", "smooth", "rough")
_DEFECTS = ("right-end-point", "double-variance", "stale-energy", "shrinking-step")
_SETS = [
    "all",
    *(f"without-{one}" for one in _DEFECTS),
    *(f"only-{one}" for one in _DEFECTS),
    "none",
]
_SAMPLERS = {"ess": (style.ORANGE, "^", -0.17), "hmc": (style.BLUE, "o", 0.17)}


def defects(book: Book) -> Figure:
    """Error of the log marginal likelihood (above) and of probabilities (below) with sets of defects switched on."""
    figure = style.figure(5.6)
    panels = figure.subplots(2, 3, sharey=True)
    titles = {"nats": "error of $\\log L$ (nats)", "mae": "MAE of $p(y_*=1)$, $10^{-3}$"}
    for row, (quantity, title) in zip(panels, titles.items(), strict=True):
        rows = columns(book, f"defects/{{case}}/{{sampler}}/{{set}}/longest/{quantity}", "error")
        for axes, case in zip(row, _CASES, strict=True):
            _defect_panel(axes, rows[rows["case"] == case], 1.0 if quantity == "nats" else 1e3)
            if quantity == "mae":
                axes.set_xlim(left=0.0)
            else:
                axes.axvline(0.0, color=style.INK, linewidth=0.8, linestyle="--", zorder=1)
                style.label_panel(axes, label("case", case))
            axes.set_xlabel(title)
        row[0].set_ylim(len(_SETS) - 0.5, -0.5)
        row[0].set_yticks(range(len(_SETS)), [label("set", one) for one in _SETS])
    handles = [
        handle(label("sampler", sampler), color, marker)
        for sampler, (color, marker, _) in _SAMPLERS.items()
    ]
    legend(figure, handles, 2)
    return figure


def _defect_panel(axes: Axes, rows: pd.DataFrame, factor: float) -> None:
    place = {name: number for number, name in enumerate(_SETS)}
    for sampler, (color, marker, shift) in _SAMPLERS.items():
        mine = rows[rows["sampler"] == sampler]
        values = factor * mine["error"].to_numpy(dtype=float)
        se = factor * np.nan_to_num(mine["error_se"].to_numpy(dtype=float))
        heights = [place[name] + shift for name in mine["set"]]
        look: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none"}
        axes.errorbar(values, heights, xerr=se, **look)
    if rows.empty:
        nothing(axes, "not run")
    elif factor == 1.0 and (rows["error"].abs() > 1.0).any():
        axes.set_xscale("symlog", linthresh=1.0, linscale=1.0)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(style.plain))
    for edge in (0.5, 4.5, 8.5):
        axes.axhline(edge, color=style.GREY, linewidth=0.5, zorder=0)
    axes.grid(visible=False, axis="y")
