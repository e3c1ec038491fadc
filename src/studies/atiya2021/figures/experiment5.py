"""Figure of Experiment 5: the posterior of the hyperparameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recheck import style
from recheck.book import Book
from studies.atiya2021.figures.common import handle, label, legend, nothing, table

__all__ = ["posterior"]

_GREEN = "#009e73"


def posterior(book: Book) -> Figure:
    """Posterior draws of log alpha and log beta, the settings of Experiment 4 and the tuned values on top."""
    draws = book.rows("experiment5/{problem}/{method}/log-{parameter}-draws")
    problems = sorted(set(draws["problem"]), key=lambda name: int(name[1:]))
    columns = min(max(len(problems), 1), 3 if len(problems) > 4 else 2)
    rows = max(1, math.ceil(len(problems) / columns))
    figure = style.figure(0.6 + 2.45 * rows)
    panels = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axes in panels[max(len(problems), 1) :]:
        axes.set_axis_off()
    if not problems:
        nothing(panels[0])
    for axes, problem in zip(panels, problems, strict=False):
        _panel(axes, book, problem, draws[draws["problem"] == problem])
    handles = [
        handle("posterior draws", style.BLUE, "."),
        handle("means of all methods", style.INK, ".", linestyle="-"),
        handle("settings of Experiment 4", style.ORANGE, "s"),
        handle("tuned: most evidence", _GREEN, "X"),
    ]
    legend(figure, handles, 4)
    return figure


def _panel(axes: Axes, book: Book, problem: str, draws: pd.DataFrame) -> None:
    wide = draws.pivot(index="run", columns="parameter", values="value")
    converged = (draws["status"] == "ok").all()
    look: dict[str, Any] = {"marker": ".", "linestyle": "none"}
    color = style.BLUE if converged else style.GREY
    small: dict[str, Any] = {"markersize": 4, "markeredgewidth": 0, "alpha": 0.45, "zorder": 1}
    axes.plot(wide["alpha"], wide["beta"], color=color, **look, **small)
    title = f"{label('problem', problem)}: {label('method', draws['method'].iloc[0])}"
    style.label_panel(axes, title + ("" if converged else " (not converged)"))
    alpha, beta = (
        book.select(f"experiment5/{problem}/{{method}}/log-{name}-mean").set_index("method")
        for name in ("alpha", "beta")
    )
    known = alpha.merge(beta, on="method", suffixes=("", "_beta")).dropna(
        subset=["value", "value_beta"]
    )
    look |= {"color": style.INK, "markersize": 3, "linewidth": 0.6, "zorder": 3}
    axes.errorbar(known["value"], known["value_beta"], known["se_beta"], known["se"], **look)
    pairs = table(book, "experiment4/{setting}/{parameter}", "setting", "parameter")
    for setting, row in pairs.iterrows():
        place = math.log(row["alpha"]), math.log(row["beta"])
        axes.plot(*place, color=style.ORANGE, marker="s", zorder=4)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.7}
        text: dict[str, Any] = {"xytext": (4, 2), "textcoords": "offset points", "fontsize": 8}
        axes.annotate(str(setting)[1:], place, color=style.ORANGE, zorder=4, bbox=box, **text)
    chosen = book.select(f"tuning/{problem}/chosen/{{quantity}}").set_index("quantity")["value"]
    if len(chosen) == 2:
        place = chosen["log-alpha"], chosen["log-beta"]
        axes.plot(*place, color=_GREEN, marker="X", markersize=7, zorder=5)
    axes.set(xlabel=r"$\log\alpha$", ylabel=r"$\log\beta$")
