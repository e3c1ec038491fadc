"""What figures of several studies share."""

from matplotlib.axes import Axes

from recheck.report import style


def nothing(axes: Axes) -> None:
    """Say in an empty panel why it is empty."""
    axes.text(0.04, 0.04, "not run at this scale", transform=axes.transAxes, color=style.GREY)
