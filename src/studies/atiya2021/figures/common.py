"""Parts of several figures: labels of the layout, legends, empty panels."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from recheck.report import style
from recheck.report.layout import Layout, read_layout


@cache
def layout() -> Layout:
    """The layout of the study's tables."""
    return read_layout(Path(__file__).parents[1] / "layout.yaml")


def label(field: str, value: str) -> str:
    """How the tables print a value of a field."""
    return layout().labels.get(field, {}).get(value, value)


def handle(label: str, color: str, **look: Any) -> Line2D:
    """An entry of a legend; points only unless a line is asked for."""
    return Line2D([], [], color=color, label=label, **{"linestyle": "none", **look})


def legend(figure: Figure, handles: Sequence[Line2D], entries: int = 4) -> None:
    """A legend below the panels, with so many entries a row; none without entries."""
    if handles:
        figure.legend(handles=list(handles), loc="outside lower center", ncols=entries)


def nothing(axes: Axes, text: str = "not run at this scale") -> None:
    """Say in an empty panel why it is empty."""
    axes.text(0.04, 0.04, text, transform=axes.transAxes, color=style.GREY)
