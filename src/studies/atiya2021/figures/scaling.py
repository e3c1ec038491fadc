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
from studies.atiya2021.figures.common import label, layout
from studies.common.figures import METHODS, PASSING, handle, legend, nothing

_TEMPLATE = "scaling/{kernel}/N{N}/{method}/{quantity}"
_QUANTITIES = ["median", "flagged", "failed", "seconds", "truth-se"]
#: What is drawn; the table has all kernels and methods. The CPU seconds of the first method are one: those of all
#: grow a hundredfold, and would hide how they differ.
_KERNELS = ("smooth", "rough", "rough-8")
_METHODS = ("sampler", "hmc-annealed", "ep", "importance-ep", "minimax-tilting", "twisted-ep")
#: A method of which the truth's standard error is the same as of all but the two that have a long run.
_PLAIN = "ep"
#: Nats: a bound above the first has an arrow, and an error above the second is in the title.
_SMALL, _LARGE = 0.03, 1.0
_DASHED: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}
#: Ticks of the axis of N, among which there is room for labels.
_TICKS = (50, 200, 500, 2000)


def scaling(book: Book) -> Figure:
    """Median error of log L above and CPU seconds over the sampler's below: a column a kernel, a line a method."""
    rows = book.select(_TEMPLATE).astype({"N": int})
    rows = rows[rows["quantity"].isin(_QUANTITIES)]
    keys = ["kernel", "method", "N"]
    points = rows.pivot(index=keys, columns="quantity", values="value").reindex(columns=_QUANTITIES)
    middle = rows[rows["quantity"] == "median"].set_index(keys)["status"]
    bound = (middle == "at most").reindex(points.index, fill_value=False)
    points = points.astype(float).assign(bound=bound).reset_index().sort_values("N")
    points["times"] = points["seconds"] / _seconds_of(_METHODS[0], points)
    there = [name for name in layout().order["kernel"] if name in {*points["kernel"]}]
    kernels = [name for name in there if name in _KERNELS] or there[:1] or [*_KERNELS[:1]]
    figure = style.figure(4.2)
    # a narrow column more, for the names of the methods
    widths = [*[1.0] * len(kernels), 0.24 * len(kernels)]
    shape: dict[str, Any] = {"width_ratios": widths, "height_ratios": [1.7, 1.0]}
    panels = figure.subplots(2, len(widths), sharex=True, sharey="row", **shape)
    panels, margin = panels[:, :-1], panels[:, -1]
    for axes in margin:
        axes.set_axis_off()
    for kernel, upper, lower in zip(kernels, *panels, strict=True):
        own = points[points["kernel"] == kernel]
        upper.set_title(label("kernel", kernel))
        _axes(upper, lower, [*points["N"].unique()])
        if own.empty:
            nothing(upper)
            continue
        _panel(upper, lower, own)
    errors = points.loc[(points["median"] > 0) & points["method"].isin(_METHODS), "median"]
    if len(errors):  # errors of the truth may be far below all others
        panels[0, 0].set_ylim(bottom=errors.min() / 2.0)
        figure.suptitle(_message(points[points["kernel"].isin(kernels)]), x=0.01, ha="left")
    for axes in panels[:, 0]:
        _ticks(axes)
    _names(margin[0], points[points["kernel"] == kernels[-1]])
    panels[0, 0].set_ylabel("median error of $\\log L$ (nats)")
    panels[1, 0].set_ylabel("CPU time\n(sampler's = 1)")
    for axes in panels[1]:
        axes.set_xlabel("training patterns $N$")
    legend(figure, _handles(), 5)
    return figure


def _message(points: pd.DataFrame) -> str:
    """On how many kernels the sampler, and twisted EP, err by more than a nat."""
    largest = points[points["N"] == points["N"].max()]
    errors = largest.pivot(index="kernel", columns="method", values="median")
    errors = errors.reindex(columns=["sampler", "twisted-ep"])
    wrong = (errors > _LARGE).sum()
    return (
        f"More than a nat from $\\log L$ at $N={largest['N'].iloc[0]}$: the sampler on {wrong['sampler']}"
        f" of {len(errors)} kernels, twisted EP on {wrong['twisted-ep'] or 'none'}"
    )


def _seconds_of(method: str, points: pd.DataFrame) -> pd.Series:
    """The CPU seconds that a method takes for the kernel and N of each line."""
    own = points[points["method"] == method].set_index(["kernel", "N"])["seconds"]
    return own.reindex(pd.MultiIndex.from_frame(points[["kernel", "N"]])).set_axis(points.index)


def _panel(upper: Axes, lower: Axes, own: pd.DataFrame) -> None:
    """The lines of one kernel: a marker is hollow where most runs warn of themselves."""
    truth = own[(own["method"] == _PLAIN) & (own["truth-se"] > 0)]
    upper.plot(truth["N"], truth["truth-se"], zorder=1, **_DASHED)
    for method in _METHODS:
        mine, look = own[own["method"] == method], METHODS[method]
        color = look.color
        for axes, quantity in ((upper, "median"), (lower, "times")):
            there = mine[mine[quantity] > 0]
            axes.plot(there["N"], there[quantity], color=color, linewidth=0.9)
            warned = there["flagged"] >= 0.5
            for part, mark in ((there[~warned], look.points), (there[warned], look.hollow)):
                axes.plot(part["N"], part[quantity], **mark)
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
    there = own[own["method"].isin(_METHODS) & (own["median"] > 0)]
    ends = there.groupby("method")["median"].last().sort_values()
    low, high = np.log10(axes.get_ylim())
    places = (np.log10(ends.to_numpy()) - low) / (high - low)
    for (method, _), place in zip(ends.items(), _apart(places, 0.1), strict=True):
        look = METHODS[str(method)]
        across: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot(-0.1, place, **across, **look.points)
        text = axes.text(0.02, place, look.label, color=look.color, va="center", **across)
        text.set_in_layout(False)


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
        *PASSING,
        handle("no estimate", style.INK, marker="x"),
        handle("at most", style.INK, marker=r"$\downarrow$", markersize=6),
        handle("s.e. of the truth", **_DASHED),
    ]
