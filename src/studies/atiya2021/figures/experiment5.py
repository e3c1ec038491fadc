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
from studies.atiya2021.figures.common import handle, label, legend, nothing

__all__ = ["posterior"]

_GREEN = "#009e73"


def posterior(book: Book) -> Figure:
    """Posterior draws of log alpha and log beta, the settings of Experiment 4 and the tuned values on top."""
    draws = book.rows("experiment5/{problem}/{method}/log-{parameter}-draws")
    problems = sorted(set(draws["problem"]), key=lambda name: int(name[1:]))
    columns = min(max(len(problems), 1), 3 if len(problems) > 4 else 2)
    rows = max(1, math.ceil(len(problems) / columns))
    figure = style.figure(0.6 + 2.45 * rows)
    panels = np.atleast_1d(np.asarray(figure.subplots(rows, columns, squeeze=False))).ravel()
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
    method = str(draws["method"].iloc[0])
    wide = draws.pivot(index="run", columns="parameter", values="value")
    converged = (draws["status"] == "ok").all()
    color = style.BLUE if converged else style.GREY
    look: dict[str, Any] = {
        "marker": ".",
        "markersize": 4,
        "markeredgewidth": 0,
        "linestyle": "none",
    }
    axes.plot(wide["alpha"], wide["beta"], color=color, alpha=0.45, zorder=1, **look)
    title = f"{label('problem', problem)}: {label('method', method)}"
    style.label_panel(axes, title + ("" if converged else " (not converged)"))
    means = book.select(f"experiment5/{problem}/{{method}}/{{quantity}}").dropna(subset="value")
    names = ["log-alpha-mean", "log-beta-mean"]
    means = means[means["quantity"].isin(names)]
    means = means.pivot(index="method", columns="quantity", values=["value", "se"])
    known = means.reindex(columns=pd.MultiIndex.from_product([["value", "se"], names])).dropna(
        subset=[("value", name) for name in names]
    )
    axes.errorbar(
        known["value", "log-alpha-mean"],
        known["value", "log-beta-mean"],
        xerr=known["se", "log-alpha-mean"],
        yerr=known["se", "log-beta-mean"],
        color=style.INK,
        marker=".",
        markersize=3,
        linewidth=0.6,
        linestyle="none",
        zorder=3,
    )
    pairs = book.select("experiment4/{setting}/{parameter}")
    pairs = pairs.pivot(index="setting", columns="parameter", values="value")
    for setting, row in pairs.iterrows():
        place = math.log(row["alpha"]), math.log(row["beta"])
        axes.plot(*place, color=style.ORANGE, marker="s", zorder=4)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.7}
        text: dict[str, Any] = {
            "xytext": (4, 2),
            "textcoords": "offset points",
            "fontsize": 8,
            "bbox": box,
        }
        axes.annotate(str(setting)[1:], place, color=style.ORANGE, zorder=4, **text)
    chosen = book.select(f"tuning/{problem}/chosen/{{quantity}}").set_index("quantity")["value"]
    if len(chosen) == 2:
        place = chosen["log-alpha"], chosen["log-beta"]
        axes.plot(*place, color=_GREEN, marker="X", markersize=7, zorder=5)
    axes.set(xlabel=r"$\log\alpha$", ylabel=r"$\log\beta$")
