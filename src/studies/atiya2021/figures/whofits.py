"""Real data sets that are fitted: the evidence that an optimum loses, against the error of log L there."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures.common import label
from studies.common.figures import METHODS, handle, legend, named, nothing

_CELL = "whofits/{data}/{kernel}/{quantity}"
_KERNELS = ("isotropic", "ard")
_CLIMBED = ("ep", "laplace")
#: Nats: smaller losses stand in a strip of their own below it, all at one height.
_LEAST, _STRIP = 1e-4, 2.5e-5
_EDGE = style.GREY


def whofits(book: Book) -> Figure:
    """Evidence that an optimum loses by the error of log L there: a panel a kernel, a point a data set and method."""
    points = _points(book)
    figure = style.figure(2.15)
    panels = figure.subplots(1, len(_KERNELS), sharex=True, sharey=True)
    for axes, kernel in zip(panels, _KERNELS, strict=True):
        axes.set(xscale="log", yscale="log", title=label("kernel", kernel))
        axes.set_xlabel("error of $\\log L$ at the optimum (nats)")
        own = points[points["kernel"] == kernel]
        if own.empty:
            nothing(axes)
        for method in _CLIMBED:
            _cloud(axes, own[own["method"] == method], method)
    if len(points):
        low, high = points["off"].min() / 1.6, points["off"].max() * 1.6
        panels[0].set(xlim=(low, high), ylim=(_STRIP / 2.0, max(high, points["lost"].max() * 1.6)))
        for axes in panels:
            axes.plot([low, high], [low, high], color=_EDGE, linestyle="--", linewidth=0.8)
            axes.axhline(_LEAST, color=_EDGE, linewidth=0.6)
        least, most = np.log10([_LEAST, panels[0].get_ylim()[1]])
        powers = range(round(least), int(most) + 1)
        panels[0].set_yticks([_STRIP, *(10.0**power for power in powers)])
        panels[0].set_yticklabels(["less", *(f"$10^{{{power}}}$" for power in powers)])
        panels[0].minorticks_off()
        figure.suptitle(_message(points), x=0.01, ha="left")
    panels[0].set_ylabel("evidence lost (nats)")
    every = [
        *named(_CLIMBED),
        handle("loses as much as it errs", _EDGE, linestyle="--", linewidth=0.8),
    ]
    legend(figure, every, 3)
    return figure


def _points(book: Book) -> pd.DataFrame:
    """Off and lost in nats by data set, kernel and method, where the judge has converged."""
    rows = book.select(_CELL)
    parts = rows["quantity"].astype(str).str.extract(rf"^(off|lost)-({'|'.join(_CLIMBED)})$")
    rows = rows.assign(what=parts[0], method=parts[1]).dropna(subset=["what"])
    wide = rows.pivot(index=["data", "kernel", "method"], columns="what", values="value")
    wide = wide.reindex(columns=["off", "lost"]).astype(float).dropna().reset_index()
    return wide.assign(off=wide["off"].abs())


def _cloud(axes: Axes, own: pd.DataFrame, method: str) -> None:
    """The data sets of a method."""
    lost = own["lost"].where(own["lost"] >= _LEAST, _STRIP)
    axes.plot(own["off"], lost, **METHODS[method].points)


def _message(points: pd.DataFrame) -> str:
    """What the optima are found to lose at most."""
    largest = points.groupby("method")[["lost", "off"]].max()
    found = [
        f"{largest.loc[name, 'lost']:.2g} nats by {METHODS[name].label}"
        for name in _CLIMBED
        if name in largest.index
    ]
    return f"Largest mean loss found on a data set: {', '.join(found)}"
