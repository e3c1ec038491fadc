"""How each method scales: errors by patterns above, by CPU seconds below, a column a kernel."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures.common import label, layout
from studies.common.figures import METHODS, PASSING, handle, legend, nothing

_CELL = "scaling/{kernel}/N{N}/{method}/{quantity}"
_CURVE = "scaling/curve/{kernel}/N{N}/{method}/{count}/{quantity}"
_QUANTITIES = ["median", "apart", "flagged", "failed", "seconds", "truth-se"]
#: What is drawn; the table has all kernels and methods.
_KERNELS = ("smooth", "rough")
_METHODS = ("sampler", "hmc-annealed", "ep", "importance-ep", "minimax-tilting", "twisted-ep")
#: A method of which the truth's standard error is the same as of all but the two that have a long run.
_PLAIN = "ep"
#: Nats: a bound above this has an arrow.
_SMALL = 0.03
_DASHED: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}
#: Ticks of the axis of N, among which there is room for labels.
_TICKS = (50, 200, 500, 1000, 2000)


def scaling(book: Book) -> Figure:
    """Median error of log L by patterns above, by CPU seconds at one N below: a column a kernel, a line a method."""
    points, curve = _points(book, _CELL), _points(book, _CURVE)
    there = [name for name in layout().order["kernel"] if name in {*points["kernel"]}]
    kernels = [name for name in there if name in _KERNELS] or there[:1] or [*_KERNELS[:1]]
    middle = curve["N"].max() if len(curve) else points["N"].max()
    at = pd.concat([points[points["N"] == middle], curve])
    figure = style.figure(4.1)
    # a narrow column more, for the names of the methods
    widths = [*[1.0] * len(kernels), 0.24 * len(kernels)]
    panels = figure.subplots(2, len(widths), sharex="row", sharey="row", width_ratios=widths)
    panels, margin = panels[:, :-1], panels[:, -1]
    for axes in margin:
        axes.set_axis_off()
    for kernel, upper, lower in zip(kernels, *panels, strict=True):
        upper.set_title(label("kernel", kernel))
        for axes, frame, across in ((upper, points, "N"), (lower, at, "seconds")):
            axes.set(xscale="log", yscale="log")
            own = frame[frame["kernel"] == kernel]
            if own.empty:
                nothing(axes)
            else:
                _panel(axes, own, across)
    shown = points["kernel"].isin(kernels) & points["method"].isin(_METHODS)
    errors = points.loc[(points["error"] > 0) & shown, "error"]
    if len(errors):  # errors of the truth may be far below all others
        panels[0, 0].set_ylim(bottom=errors.min() / 1.5)
        figure.suptitle(_message(points[points["kernel"] == kernels[-1]]), x=0.01, ha="left")
    for left in panels[:, 0]:
        _ticks(left.yaxis, left.get_ylim())
        left.set_ylabel("median error of $\\log L$ (nats)")
    sizes = sorted(points["N"].unique())
    ticks = [n for n in sizes if n in _TICKS] or sizes[:1]
    for upper, lower in panels.T:
        upper.set_xticks(ticks, [f"{n:g}" for n in ticks])
        upper.xaxis.set_minor_formatter(NullFormatter())
        upper.set_xlabel("training patterns $N$")
        _ticks(lower.xaxis, lower.get_xlim())
        lower.set_xlabel(f"CPU seconds, $N={middle}$" if len(points) else "CPU seconds")
    _names(margin[0], points[points["kernel"] == kernels[-1]])
    drawn = pd.concat([points, at])
    here = drawn["kernel"].isin(kernels) & drawn["method"].isin(_METHODS)
    legend(figure, _handles(drawn[here]), 5)
    return figure


def _points(book: Book, template: str) -> pd.DataFrame:
    """Errors, seconds and what is said of them by kernel, N, method and count, in rising order of N and seconds.

    The error of twisted EP is its distance from its own long run, for the other's may not resolve it.
    """
    rows = book.select(template).astype({"N": int})
    rows = rows[rows["quantity"].isin(_QUANTITIES) & rows["method"].isin(METHODS)]
    keys = [name for name in ("kernel", "method", "N", "count") if name in rows]
    points = rows.pivot(index=keys, columns="quantity", values="value").reindex(columns=_QUANTITIES)
    status = rows[rows["quantity"] == "median"].set_index(keys)["status"]
    bound = (status == "at most").reindex(points.index, fill_value=False)
    points = points.astype(float).assign(bound=bound).reset_index()
    points["error"] = points["apart"].fillna(points["median"])
    points["bound"] &= points["apart"].isna()
    return points.sort_values(["N", "seconds"])


def _message(points: pd.DataFrame) -> str:
    """What the sampler and EP err by at most patterns, and how far two runs of twisted EP are apart."""
    largest = points[points["N"] == points["N"].max()].set_index("method")["error"]
    named = {"sampler": "{} {}", "ep": "{} {}", "twisted-ep": "two runs of {} are {} apart"}
    found = [
        text.format(METHODS[name].label, f"{largest[name]:.2g}")
        for name, text in named.items()
        if name in largest
    ]
    where = f"{label('kernel', points['kernel'].iloc[0])}, $N={points['N'].max()}$"
    return f"Median error of $\\log L$ in nats ({where}): {', '.join(found)}"


def _panel(axes: Axes, own: pd.DataFrame, across: str) -> None:
    """The lines of one kernel: a marker is hollow where most runs fail their diagnostics."""
    truth = own[(own["method"] == _PLAIN) & (own["truth-se"] > 0)]
    if across == "N":
        axes.plot(truth["N"], truth["truth-se"], zorder=1, **_DASHED)
    elif len(truth):
        axes.axhline(truth["truth-se"].iloc[0], zorder=1, **_DASHED)
    for method in _METHODS:
        mine, look = own[own["method"] == method].sort_values(across), METHODS[method]
        there = mine[mine["error"] > 0]
        axes.plot(there[across], there["error"], color=look.color, linewidth=0.9)
        warned = there["flagged"] >= 0.5
        # a filled marker would hide a hollow one
        looks = look.points, look.hollow | {"zorder": 3}
        for part, mark in zip((there[~warned], there[warned]), looks, strict=True):
            axes.plot(part[across], part["error"], **mark)
        bounds = there[_marked(there)]
        if len(bounds):
            arrows: dict[str, Any] = {"color": look.color, "elinewidth": 0.6, "capsize": 1.5}
            length = 0.75 * bounds["error"]
            axes.errorbar(
                bounds[across], bounds["error"], length, uplims=True, fmt="none", **arrows
            )
        lost = mine.loc[mine["failed"] > 0, across]
        if len(lost):
            crosses: dict[str, Any] = {"color": look.color, "marker": "x", "linestyle": "none"}
            height = axes.get_xaxis_transform()
            axes.plot(lost, np.full(len(lost), 0.97), transform=height, **crosses)


def _ticks(axis: Axis, limits: tuple[float, float]) -> None:
    """Powers of ten, and three times these where there are few."""
    low, high = np.log10(limits)
    multiples = (1.0,) if high - low > 2.5 else (1.0, 3.0)
    axis.set_major_locator(LogLocator(subs=multiples, numticks=12))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def _names(axes: Axes, own: pd.DataFrame) -> None:
    """The names of the methods beside the ends of their lines, apart from one another."""
    there = own[own["method"].isin(_METHODS) & (own["error"] > 0)]
    ends = there.groupby("method")["error"].last().sort_values()
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


def _marked(points: pd.DataFrame) -> pd.Series:
    """Which errors are bounds, and have an arrow."""
    return points["bound"] & (points["error"] > _SMALL)


def _handles(drawn: pd.DataFrame) -> list[Any]:
    """What the markers mean, of those that are drawn."""
    found = [*PASSING]
    if (drawn["failed"] > 0).any():
        found.append(handle("no estimate", style.INK, marker="x"))
    if _marked(drawn).any():
        arrow = {"marker": r"$\downarrow$", "markersize": 6}
        found.append(handle("at most: two s.e. added", style.INK, **arrow))
    return [*found, handle("s.e. of the truth", **_DASHED)]
