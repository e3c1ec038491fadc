"""The look of every figure, and writing them so that equal results give equal bytes.

Fonts come with matplotlib (no LaTeX run inside a figure), colours are those of Okabe and Ito, which
readers with any common colour blindness can tell apart, and each series has its own marker besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "INK",
    "MARKERS",
    "ORANGE",
    "WIDTH",
    "figure",
    "label_panel",
    "plain",
    "save",
    "style",
]

#: Width of a figure in inches: the text width of the paper, so that nothing is scaled there.
WIDTH = 6.3

INK = "#1a1a1a"
GREY = "#8c8c8c"
BLUE = "#0072b2"
ORANGE = "#d55e00"
COLOURS = [
    BLUE,
    ORANGE,
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    INK,
    "#999933",
    "#882255",
    "#44aa99",
]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">", "*"]

_STYLE: dict[str, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "errorbar.capsize": 1.5,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "pdf.compression": 6,
    "savefig.dpi": 200,
    "figure.dpi": 100,
}


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults with the settings of this module on top, whatever the user's own file says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in _STYLE.items():
            mpl.rcParams[name] = value  # type: ignore[index]
        yield


def figure(height: float) -> Figure:
    """An empty figure of the paper's text width, without any global state."""
    canvas = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas


def label_panel(axes: mpl.axes.Axes, text: str) -> None:
    """A panel's title, set flush left."""
    axes.set_title(text, loc="left")


def plain(value: float, _: object = None) -> str:
    """A tick as a decimal without trailing zeros, with a minus sign and no hyphen."""
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def save(drawn: Figure, pdf: str | Path, png: str | Path) -> None:
    """Write one figure as PDF (fonts embedded as TrueType) and as PNG, without dates in either."""
    drawn.savefig(pdf, metadata={"CreationDate": None, "Creator": None, "Producer": None})
    drawn.savefig(png, metadata={"Software": None})
