"""The look of every figure, and writing them so that equal results give equal bytes.

Fonts come with matplotlib and are 8 points and larger in print. Colours are those of Okabe and Ito, which readers with
any common colour blindness can tell apart, and each series has its own marker besides.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.style import context

#: Width of a figure in inches: the text width of the paper, so that nothing is scaled there.
WIDTH = 6.3

INK, GREY, BLUE, ORANGE = "#1a1a1a", "#8c8c8c", "#0072b2", "#d55e00"
GREEN, PINK = "#009e73", "#cc79a7"
#: Looks of lines that are told by their number alone.
LINES: list[dict[str, Any]] = [
    {"color": BLUE, "linestyle": "solid"},
    {"color": ORANGE, "linestyle": "dashed"},
    {"color": GREEN, "linestyle": "dashdot"},
    {"color": PINK, "linestyle": "dotted"},
]

#: Points in print; of text without a size of its own "small" is 8.
_SIZES = {
    **dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.titlesize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8),
    "font.size": 9.61,
}
_STYLE: dict[str, Any] = {
    **{"font.family": "STIXGeneral", "mathtext.fontset": "stix"},
    **dict.fromkeys(("legend.frameon", "axes.spines.top", "axes.spines.right"), False),
    **{"axes.edgecolor": INK, "axes.linewidth": 0.6, "axes.grid": True, "axes.axisbelow": True},
    **{"grid.color": "#dddddd", "grid.linewidth": 0.4, "errorbar.capsize": 1.5},
    **{"lines.linewidth": 1.1, "lines.markersize": 4},
    "axes.titlelocation": "left",
    **{"pdf.fonttype": 42, "ps.fonttype": 42, "pdf.compression": 6},
    **{"savefig.dpi": 200, "figure.dpi": 100},
}


def style(scale: float = 1.0) -> AbstractContextManager[None]:
    """Matplotlib's defaults with the settings of this module on top, whatever the user's own file says.

    The paper prints the figure at this scale, and text is so much larger before.
    """
    sizes = {name: points / scale for name, points in _SIZES.items()}
    return context(_STYLE | sizes, after_reset=True)


def figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of this height and width in inches, without any global state."""
    return Figure(figsize=(width, height), layout="constrained")


def save(drawn: Figure, pdf: str | Path, png: str | Path) -> None:
    """Write one figure as PDF (fonts embedded as TrueType) and as PNG, without dates in either."""
    for path in (pdf, png):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    with style():
        drawn.savefig(pdf, metadata={"CreationDate": None, "Creator": None, "Producer": None})
        # panels stay where they are in the PDF: another search for their places takes a third of the drawing
        drawn.set_layout_engine("none")
        drawn.savefig(png, metadata={"Software": None})
