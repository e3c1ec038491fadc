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
from studies.common.figures import METHODS, PASSING, handle, in_order, legend, named, nothing

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
    ramp = zip(("#c8c8c8", "#9a9a9a", "#6c6c6c", "#3e3e3e"), ("-", "--", "-.", ":"), strict=True)
    looks = {
        step: {"color": c, "linestyle": line} for step, (c, line) in zip(steps, ramp, strict=False)
    }
    figure = style.figure(2.3)
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
        for step, look in looks.items():
            rows = coarse[(coarse["N"] == dimension) & (coarse["step"] == step)]
            axes.plot(rows["M"], rows["mape"], linewidth=1.3, **look)
        axes.plot(theirs["M"], theirs["value"], linestyle="none", **_HOLLOW)
        axes.plot(own["M"], own["mape"], linestyle="none", **_OURS)
        if own.empty:
            nothing(axes)
    panels[0].set_ylabel("MAPE of $\\log I$ (%)")
    handles = [handle("published", **_HOLLOW), handle("ours, exact truth", **_OURS)]
    for step, look in looks.items():
        handles.append(handle(rf"ours, grid truth, $\Delta u={step}$", **look))
    legend(figure, handles, 3)
    return figure


#: Rows of the configuration that stand for a method in the curves of the marginal likelihood.
_ANNEALED = {"ess": "ess-ais", "hmc": "hmc-ais"}
#: Methods that more time does not improve.
_FIXED = ("laplace", "ep")


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
    # of the chains one row stands for the method
    other = {*annealed, *_ANNEALED.values()} - {*annealed.values()}
    methods = in_order({*full["method"], *unconverged["method"]} - other)
    for method in methods:
        look = METHODS[method]
        good, hollow = (points[points["method"] == method] for points in (full, unconverged))
        solid = look.points | {"linestyle": "-"}
        axes.errorbar(good["seconds"], good["error"], good["error_se"], linewidth=0.9, **solid)
        axes.plot(hollow["seconds"], hollow["error"], **look.hollow)
        if len(good) and method in _FIXED:
            level: dict[str, Any] = {
                "color": look.color,
                "linestyle": ":",
                "linewidth": 0.9,
                "zorder": 1,
            }
            axes.axhline(good["error"].iloc[0], **level)
    axes.set(xscale="log", xlabel="CPU seconds")
    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    if not methods:
        nothing(axes)
        return []
    return [*named(methods, linestyle="-"), *PASSING]


def figure1(book: Book) -> Figure:
    """Figure 1 of the paper: log of the MAE of class probabilities against CPU seconds."""
    figure = style.figure(3.1)
    axes = figure.subplots()
    handles = _curves(axes, book, "mae", {})
    axes.set_ylabel(r"$\ln$ MAE of $p(y_*=1)$")
    legend(figure, handles)
    return figure


def figure2(book: Book) -> Figure:
    """Figure 2 of the paper: errors of the log marginal likelihood against CPU seconds, in nats and as it has them.

    What the paper quotes has a margin of its own, because its seconds are of another machine.
    """
    figure = style.figure(2.9)
    axes, margin = figure.subplots(1, 2, sharey=True, width_ratios=[8, 1])
    handles = _curves(axes, book, "mape", _ANNEALED)
    places: list[str] = []
    for name, text, marker in (("new", "sampler", "$\\oplus$"), ("ess", "ESS", "$\\otimes$")):
        seconds, level = (
            book.get(f"experiment3/quoted/{name}/{of}").value for of in ("seconds", "log-mape")
        )
        look: dict[str, Any] = {"marker": marker, "markersize": 9, "markeredgewidth": 0.4}
        look |= {"color": style.INK, "linestyle": "none"}
        margin.plot(len(places), level, **look)
        places.append(f"{seconds:g}")
        handles.append(handle(f"published {text}", **look))
    margin.set_xticks(range(len(places)), places)
    margin.set(xlim=(-0.7, 1.7), xlabel="theirs")
    margin.grid(visible=False, axis="x")
    margin.yaxis.tick_right()
    margin.yaxis.set_label_position("right")
    margin.spines[["left", "right"]].set_visible(True)
    margin.tick_params(labelright=True, labelleft=False)
    axes.tick_params(left=False, labelleft=False)
    axes.spines["left"].set_visible(True)
    margin.set_ylabel(r"$\ln$ (MAPE in %), as published")
    template, sizes = "experiment3/{method}/size{size}/", ["method", "size"]
    nats, mape = (_columns(book, template + name, name) for name in ("nats", "mape"))
    both = nats.merge(mape, on=sizes)
    if len(both):  # the truth is one number: nats are percents times a constant
        factor = math.exp(np.log(both["nats"] / both["mape"]).mean())
        left = axes.secondary_yaxis(
            "left",
            functions=(
                lambda y: factor * np.exp(np.clip(y, -50, 50)),
                lambda y: np.log(np.maximum(y, 1e-20) / factor),
            ),
        )
        left.set_yticks([10.0**k for k in range(-4, 2)])
        left.yaxis.set_major_formatter("{x:g}")
        left.set_ylabel(r"mean $|\log\hat L-\log L|$ (nats)")
    legend(figure, handles)
    return figure
