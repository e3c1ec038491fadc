"""The floor of Table 1 (Experiment 1), and errors against CPU seconds (Experiment 3)."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from recheck.judge.measures import with_fields
from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures.common import handle, label, legend, nothing

_HOLLOW: dict[str, Any] = {"color": style.ORANGE, "marker": "s", "markerfacecolor": "none"}
_OURS: dict[str, Any] = {"color": style.BLUE, "marker": "o"}


def _columns(book: Book, template: str, name: str) -> pd.DataFrame:
    """Estimates of a template that have a value: its fields (M, N, size as numbers), `name` and its error."""
    rows = book.select(template)
    rows = rows[rows["value"].notna()].rename(columns={"value": name, "se": f"{name}_se"})
    return rows.astype({field: float for field in ("M", "N", "size") if field in rows})


def floor(book: Book) -> Figure:
    """Table 1 against our errors, scored against exact truths and against truths from coarse grids."""
    cells = with_fields(book.cells, "table1/N{N}/M{M}").astype({"N": float, "M": float})
    ours = _columns(book, "table1/N{N}/M{M}", "mape")
    coarse = _columns(book, "experiment1/N{N}/step{step}/M{M}/error", "mape").sort_values("M")
    steps = sorted(coarse["step"].unique(), key=float, reverse=True)
    colours = dict(zip(steps, style.COLOURS[2:], strict=False))
    figure = style.figure(2.5)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, dimension in zip(panels, (50, 200, 500), strict=True):
        axes.set(xscale="log", yscale="log", xlim=(7e3, 4.3e6), xlabel="samples $M$")
        axes.xaxis.set_major_locator(LogLocator(numticks=8))
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        axes.set_title(f"$N={dimension}$")
        theirs, own = (rows[rows["N"] == dimension] for rows in (cells, ours))
        for step, color in colours.items():
            rows = coarse[(coarse["N"] == dimension) & (coarse["step"] == step)]
            axes.plot(rows["M"], rows["mape"], color=color, linewidth=1.1)
        axes.plot(theirs["M"], theirs["value"], linestyle="none", **_HOLLOW)
        axes.plot(own["M"], own["mape"], linestyle="none", **_OURS)
        if own.empty:
            nothing(axes)
    panels[0].set_ylabel("MAPE of $\\log I$ (%)")
    handles = [handle("published", **_HOLLOW), handle("ours, exact truth", **_OURS)]
    for step, color in colours.items():
        handles.append(handle(rf"ours, grid truth, $\Delta u={step}$", color, linestyle="-"))
    legend(figure, handles, 3)
    return figure


#: Rows of the configuration that stand for a method in the curves of the marginal likelihood.
_ANNEALED = {"ess": "ess-ais", "hmc": "hmc-ais"}
#: Forms of chains between the toolbox's and ours, which a table has.
_TABLED = {f"{sampler}-{form}" for sampler in ("ess", "hmc") for form in ("repaired", "scheduled")}
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
    points = _columns(book, f"{template}/{quantity}", "error")
    seconds = _columns(book, f"{template}/seconds", "seconds")[["method", "size", "seconds"]]
    both = points[points["error"] > 0].merge(seconds, on=["method", "size"])
    both["error_se"] = both["error_se"].fillna(0.0) / both["error"]  # of the logarithm
    return both.assign(error=np.log(both["error"].astype(float))).sort_values("seconds")


def _curves(axes: Axes, book: Book, quantity: str, annealed: dict[str, str]) -> list[Line2D]:
    """Draw log errors of every method against CPU seconds, and return a legend's handles."""
    full, unconverged = (_curve(book, base, quantity) for base in ("", "/unconverged"))
    rows = {annealed.get(method, method): method for method in _LOOKS}
    further = sorted({*full["method"]} - {*rows, *_ANNEALED, *_ANNEALED.values(), *_TABLED})
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
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    if not handles:
        nothing(axes)
    return handles


def figure1(book: Book) -> Figure:
    """Figure 1 of the paper: log of the MAE of class probabilities against CPU seconds."""
    figure = style.figure(3.1)
    axes = figure.subplots()
    handles = _curves(axes, book, "mae", {})
    axes.set_ylabel(r"$\ln$ MAE of $p(y_*=1)$")
    legend(figure, handles)
    return figure


def figure2(book: Book) -> Figure:
    """Figure 2 of the paper: log of the MAPE of the log marginal likelihood against CPU seconds; nats at the right."""
    figure = style.figure(3.0)
    axes = figure.subplots()
    handles = _curves(axes, book, "mape", _ANNEALED)
    named = (("new", "sampler", "$\\oplus$"), ("ess", "ESS", "$\\otimes$"))
    for name, text, marker in named:
        place = [
            book.get(f"experiment3/quoted/{name}/{of}").value for of in ("seconds", "log-mape")
        ]
        look: dict[str, Any] = {"marker": marker, "markersize": 9, "markeredgewidth": 0.4}
        axes.plot(*place, color=style.INK, linestyle="none", **look)
        handles.append(handle(f"published {text}", style.INK, **look))
    axes.set_ylabel(r"$\ln$ MAPE of $\log L$ (MAPE in %)")
    template, sizes = "experiment3/{method}/size{size}/", ["method", "size"]
    nats, mape = (_columns(book, template + name, name) for name in ("nats", "mape"))
    both = nats.merge(mape, on=sizes)
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
        right.yaxis.set_major_formatter("{x:g}")
        right.set_ylabel(r"mean $|\log\hat L-\log L|$ (nats)")
    legend(figure, handles, 3)
    return figure
