"""What is foretold of the sampler without a sample: its errors, and what sets them."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures.common import label, layout
from studies.common.figures import handle, legend, nothing

_PATH = "asymptotic-variance/"
#: Of kernels, in their order.
_LOOKS: list[dict[str, Any]] = [
    {"color": style.BLUE, "marker": "o"},
    {"color": style.ORANGE, "marker": "s"},
    {"color": style.GREEN, "marker": "^"},
    {"color": style.PINK, "marker": "D"},
    {"color": style.GREY, "marker": "P"},
    {"color": style.INK, "marker": "v"},
]
_DASHED: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8, "zorder": 1}


def foretold(book: Book) -> Figure:
    """Errors of the sampler by the standard deviation that is foretold; and the largest c_i by shared information."""
    figure = style.figure(2.9)
    left, right = figure.subplots(1, 2)
    errors = _pivoted(
        book, f"{_PATH}{{kernel}}/N{{N}}/{{method}}/{{quantity}}", ["foretold", "error"]
    )
    ratios = _pivoted(book, f"{_PATH}{{kernel}}/N{{N}}/{{quantity}}", ["information", "largest"])
    left.set(xscale="log", yscale="log", xlabel="predicted standard deviation $\\sigma/\\sqrt{M}$")
    left.set_ylabel("error of $\\log L$ (nats)")
    left.set_title("Errors are as predicted, up to a nat")
    right.set(xscale="log", yscale="log", xlabel="shared information $I$ (nats)")
    right.set_ylabel("largest $\\log(1+c_i^2)$")
    right.set_title("The kernel sets them")
    looks = _looks([*errors["kernel"], *ratios["kernel"]])
    for axes, frame, factor in ((left, errors, 1.0), (right, ratios, 1.0 / 3.0)):
        if frame.empty:
            nothing(axes)
        else:
            _panel(axes, frame, factor, looks)
    legend(figure, [handle(label("kernel", name), **look) for name, look in looks.items()], 3)
    return figure


def _pivoted(book: Book, template: str, quantities: list[str]) -> pd.DataFrame:
    """Two quantities of each kernel, number of patterns and method, as x and y."""
    rows = book.select(template)
    keys = [name for name in ("kernel", "N", "method") if name in rows]
    rows = rows[rows["quantity"].isin(quantities)]
    frame = rows.pivot(index=keys, columns="quantity", values="value").reindex(columns=quantities)
    return frame.set_axis(["x", "y"], axis=1).astype(float).dropna().reset_index()


def _looks(kernels: list[str]) -> dict[str, dict[str, Any]]:
    """Colour and marker of each kernel that there is."""
    known = zip(layout().order["kernel"], _LOOKS, strict=True)
    return {name: look for name, look in known if name in kernels}


def _panel(axes: Axes, frame: pd.DataFrame, factor: float, looks: dict[str, Any]) -> None:
    """Points by kernel, and a line on which y is x times a factor."""
    ends = np.array([frame["x"].min(), frame["x"].max()])
    low, high = frame["y"].min(), frame["y"].max()
    ends = np.clip(ends, low / factor, 3.0 * high / factor)
    axes.plot(ends, factor * ends, **_DASHED)
    for kernel, own in frame.groupby("kernel", sort=False):
        axes.plot(own["x"], own["y"], linestyle="none", **looks[str(kernel)])
