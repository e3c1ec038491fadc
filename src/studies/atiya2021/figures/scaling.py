"""How each method scales: errors and relative CPU seconds by patterns, a column a kernel."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures.common import handle, label, layout, legend, nothing

_TEMPLATE = "scaling/{kernel}/N{N}/{method}/{quantity}"
#: Colour, marker and line of each method that is drawn, from what is least accurate where kernels are rough to what is
#: most accurate. The table has the others.
_LOOKS = {
    "sampler": (style.BLUE, "o", "-"),
    "sampler-pivoting": (style.BLUE, "v", "--"),
    "adapted": ("#56b4e9", "s", "-"),
    "hmc-annealed": ("#e69f00", "<", "-"),
    "ep": ("#cc79a7", "h", "-"),
    "minimax-tilting": ("#009e73", "P", "-"),
    "importance-ep": ("#882255", "X", "-"),
    "twisted-ep": (style.INK, "*", "-"),
}
#: A method of which the truth's standard error is the same as of all but the two that have a long run.
_PLAIN = "ep"
#: The method whose CPU seconds are one: those of all methods grow a hundredfold, and would hide how they differ.
_UNIT = "sampler"
#: Nats; a bound above it has an arrow.
_SMALL = 0.03
_DASHED: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}
#: Ticks of the axis of N, among which there is room for labels.
_TICKS = (50, 200, 1000)


def scaling(book: Book) -> Figure:
    """Median error of log L above and CPU seconds over the sampler's below: a column a kernel, a line a method."""
    rows = book.select(_TEMPLATE).astype({"N": int})
    rows = rows[rows["quantity"].isin(["median", "flagged", "failed", "seconds", "truth-se"])]
    keys = ["kernel", "method", "N"]
    points = rows.pivot(index=keys, columns="quantity", values="value")
    points = points.reindex(columns=["median", "flagged", "failed", "seconds", "truth-se"])
    middle = rows[rows["quantity"] == "median"].set_index(keys)["status"]
    bound = (middle == "at most").reindex(points.index, fill_value=False)
    points = points.astype(float).assign(bound=bound).reset_index().sort_values("N")
    points["times"] = points["seconds"] / _seconds_of(_UNIT, points)
    known = [*layout().order["kernel"]]
    kernels = [name for name in known if name in {*points["kernel"]}] or known[:1]
    figure = style.figure(3.3)
    # a narrow column more, for the names of the methods
    widths = [*[1.0] * len(kernels), 0.2 * len(kernels)]
    shape: dict[str, Any] = {"width_ratios": widths, "height_ratios": [1.7, 1.0]}
    panels = figure.subplots(2, len(widths), sharex=True, sharey="row", **shape)
    panels, margin = panels[:, :-1], panels[:, -1]
    for axes in margin:
        axes.set_axis_off()
    for kernel, upper, lower in zip(kernels, *panels, strict=True):
        own = points[points["kernel"] == kernel]
        upper.set_title(label("kernel", kernel), fontsize=8)
        _axes(upper, lower, [*points["N"].unique()])
        if own.empty:
            nothing(upper)
            continue
        _panel(upper, lower, own)
    errors = points.loc[points["median"] > 0, "median"]
    if len(errors):  # errors of the truth may be far below all others
        panels[0, 0].set_ylim(bottom=errors.min() / 2.0)
    for axes in panels[:, 0]:
        _ticks(axes)
    _names(margin[0], points[points["kernel"] == kernels[-1]])
    panels[0, 0].set_ylabel("error of $\\log L$, nats")
    panels[1, 0].set_ylabel("time / sampler's")
    for axes in panels[1]:
        axes.set_xlabel("$N$")
    legend(figure, _handles(), 5)
    return figure


def _seconds_of(method: str, points: pd.DataFrame) -> pd.Series:
    """The CPU seconds that a method takes for the kernel and N of each line."""
    own = points[points["method"] == method].set_index(["kernel", "N"])["seconds"]
    return own.reindex(pd.MultiIndex.from_frame(points[["kernel", "N"]])).set_axis(points.index)


def _panel(upper: Axes, lower: Axes, own: pd.DataFrame) -> None:
    """The lines of one kernel: a marker is hollow where most runs warn of themselves."""
    truth = own[(own["method"] == _PLAIN) & (own["truth-se"] > 0)]
    upper.plot(truth["N"], truth["truth-se"], zorder=1, **_DASHED)
    for method, (color, marker, line) in _LOOKS.items():
        mine = own[own["method"] == method]
        look: dict[str, Any] = {"color": color, "linewidth": 0.9, "linestyle": line}
        mark: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none"}
        # a hollow star has to be told from a full one
        mark |= {"markersize": {"*": 7.0}.get(marker, 3.6), "markeredgewidth": 0.7}
        for axes, quantity in ((upper, "median"), (lower, "times")):
            there = mine[mine[quantity] > 0]
            axes.plot(there["N"], there[quantity], **look)
            warned = there["flagged"] >= 0.5
            for part, face in ((there[~warned], color), (there[warned], "white")):
                axes.plot(part["N"], part[quantity], markerfacecolor=face, **mark)
        bounds = mine[mine["bound"] & (mine["median"] > _SMALL)]
        if len(bounds):
            arrows: dict[str, Any] = {"color": color, "elinewidth": 0.6, "capsize": 1.5}
            length = 0.75 * bounds["median"]
            upper.errorbar(bounds["N"], bounds["median"], length, uplims=True, fmt="none", **arrows)
        lost = mine.loc[mine["failed"] > 0, "N"]
        if len(lost):
            crosses: dict[str, Any] = {"color": color, "marker": "x", "linestyle": "none"}
            across = upper.get_xaxis_transform()
            upper.plot(lost, np.full(len(lost), 0.97), transform=across, **crosses)


def _axes(upper: Axes, lower: Axes, sizes: Sequence[int]) -> None:
    """Logarithmic axes whose labels are the numbers themselves."""
    for axes in (upper, lower):
        axes.set(xscale="log", yscale="log")
        ticks = [n for n in sizes if n in _TICKS] or sorted(sizes)[:1]
        axes.set_xticks(ticks, [f"{n:g}" for n in ticks])
        axes.set_xticks([n for n in sizes if n not in ticks], minor=True)
        axes.xaxis.set_minor_formatter(NullFormatter())


def _ticks(axes: Axes) -> None:
    """Powers of ten, and three times these where there are few."""
    low, high = np.log10(axes.get_ylim())
    multiples = (1.0,) if high - low > 2.5 else (1.0, 3.0)
    axes.yaxis.set_major_locator(LogLocator(subs=multiples, numticks=12))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _names(axes: Axes, own: pd.DataFrame) -> None:
    """The names of the methods beside the ends of their lines, apart from one another."""
    there = own[own["method"].isin(_LOOKS) & (own["median"] > 0)]
    ends = there.groupby("method")["median"].last().sort_values()
    low, high = np.log10(axes.get_ylim())
    places = (np.log10(ends.to_numpy()) - low) / (high - low)
    for (method, _), place in zip(ends.items(), _apart(places, 0.105), strict=True):
        color, marker, line = _LOOKS[str(method)]
        across: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot(
            [-0.08, 0.0], [place, place], color=color, linestyle=line, linewidth=0.9, **across
        )
        axes.plot(-0.04, place, color=color, marker=marker, markersize=3.6, **across)
        name = label("method", str(method))
        axes.text(0.06, place, name, color=color, fontsize=8, va="center", **across).set_in_layout(
            False
        )


def _apart(places: np.ndarray, least: float) -> np.ndarray:
    """Rising places, moved as little as keeps neighbours so far apart, between the ends of the axis."""
    steps = least * np.arange(len(places))
    # the nearest rising sequence to places - steps, by pooling those that fall
    pools: list[list[float]] = []
    for value in places - steps:
        pools.append([value])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    moved = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools] or [places])
    most = 1.0 - steps[-1] if len(steps) else 1.0
    return np.clip(moved, 0.0, max(most, 0.0)) + steps


def _handles() -> list[Any]:
    """What the markers mean."""
    return [
        handle("diagnostics pass", style.INK, marker="o"),
        handle("do not pass", style.INK, marker="o", markerfacecolor="white"),
        handle("no estimate", style.INK, marker="x"),
        handle("at most", style.INK, marker=r"$\downarrow$", markersize=6),
        handle("s.e. of the truth", **_DASHED),
    ]
