"""Figures of what the judge does: two cells that are replayed, and Table 4 under the readings of what is unsaid."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from recheck.judge.measures import OK, fitting
from recheck.judge.outcomes import QUANTILES
from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures.common import label
from studies.common.figures import handle, legend, nothing

#: Two cells of the same runs: one that is informative, and one that is not.
_EXAMPLES = ("table2/P2/M10000", "table3/P2/M10000")
_TITLES = ("(a) probability (Table 2)", r"(b) marginal likelihood (Table 3)")
#: The readings of Table 4 that are drawn: levels of the choices, colour and marker.
_SHOWN = {
    "counted twice": ({"variance": "twice"}, style.ORANGE, "s"),
    "counted once": ({"variance": "once"}, style.BLUE, "o"),
    "once, sampler with $10^6$, hard": ({"count": "million-hard"}, style.GREEN, "^"),
    "once, HMC with 20, ESS with 400": ({"hmc": "20", "ess": "400"}, style.PINK, "v"),
}


def replay(book: Book) -> Figure:
    """Our data sets, what a number printed from one of them would be, and the printed number, of two cells."""
    figure = style.figure(1.9)
    for axes, name, title in zip(figure.subplots(1, 2), _EXAMPLES, _TITLES, strict=True):
        axes.set_title(title)
        quantiles = book.verdicts.reindex([name], columns=list(QUANTILES)).astype(float).iloc[0]
        if quantiles.isna().any():
            nothing(axes, "not compared at this scale")
            continue
        verdict, rows = book.verdicts.loc[name], book.measures[book.measures["id"] == name]
        means = rows[rows["status"] == OK].groupby("unit")["value"].mean()
        axes.plot(means, np.full(len(means), 2.0), "o", color=style.GREY, markersize=3, alpha=0.7)
        low, q25, middle, q75, high = quantiles
        axes.plot([low, high], [1, 1], color=style.BLUE)
        axes.plot([q25, q75], [1, 1], color=style.BLUE, linewidth=6, solid_capstyle="butt")
        axes.plot(middle, 1, color="white", marker="|", markersize=7, markeredgewidth=1.5)
        axes.plot(verdict["published"], 0, color=style.INK, marker="D", markersize=5)
        factor = float(verdict["detectable"])
        for end in (middle / factor, middle * factor):
            axes.axvline(end, color=style.ORANGE, linestyle="--", linewidth=0.9)
        axes.set(xscale="log", xlim=(middle / 8, middle * 8), ylim=(-0.6, 2.6), yticks=[2, 1, 0])
        axes.set_yticklabels(["our data sets", "replayed", "printed"])
        axes.set_xlabel("MAE" if name.startswith("table2") else "MAPE of $\\log L$, %")
        _ticks(axes, (1.0, 2.0, 5.0))
        axes.grid(visible=False, axis="y")
    handles = [
        handle("5, 25, 50, 75 and 95 % of what would be printed", style.BLUE, linestyle="-"),
        handle("smallest shift that would be detected", style.ORANGE, linestyle="--"),
    ]
    legend(figure, handles, 2)
    return figure


def table4(book: Book) -> Figure:
    """MAE-MED as a ratio to the printed one, and differences in MAE-POST between methods, by reading."""
    figure = style.figure(4.5)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[3, 2.1]).ravel()
    panels = above.subplots(1, 4, sharey=True, squeeze=False)[0]
    for axes, method in zip(panels, ("new", "titsias", "ess", "hmc"), strict=True):
        axes.set_title(label("paper", method))
        axes.axvline(1.0, color=style.INK, linewidth=0.8)
        _by_reading(axes, book, f"table4/P{{}}/{method}/mae-med", range(1, 10))
        axes.set(xscale="log", xlim=(0.07, 14), xlabel="ours / printed")
        _ticks(axes, (1.0,))
    panels[0].set_ylabel("MAE-MED")
    panels = below.subplots(1, 3, sharey=True, squeeze=False, width_ratios=[1, 1, 0.8])[0]
    for axes, method in zip(panels, ("ess", "hmc"), strict=False):
        axes.set_title(f"{label('paper', method)} less {label('paper', 'new')}")
        _by_reading(axes, book, f"contrast/table4/P{{}}/{method}-new/mae-post", range(1, 7))
        axes.set(xlabel="percentage points", xlim=(-1.3, 2.2))
    panels[0].set_ylabel("MAE-POST")
    handles = [handle(name, color, marker=mark) for name, (_, color, mark) in _SHOWN.items()]
    handles.append(handle("printed", style.INK, marker="D"))
    panels[2].set_axis_off()
    panels[2].legend(handles=handles, loc="center left", borderaxespad=0)
    return figure


def _by_reading(axes: Axes, book: Book, template: str, problems: range) -> None:
    """A row a problem, in it the intervals of our ratio or value under each reading that is drawn."""
    axes.set(ylim=(problems[-1] + 0.6, problems[0] - 0.6))
    axes.set_yticks(list(problems), [label("short", f"P{problem}") for problem in problems])
    width, empty = 0.16, True
    for problem in [] if book.outcomes.empty else problems:
        own = book.outcomes[book.outcomes["id"] == template.format(problem)]
        own = own[np.isfinite(own["effect"].astype(float))]
        rows = dict(own.set_index("reading", drop=False).iterrows())
        drawn = set()
        for place, (levels, color, marker) in enumerate(_SHOWN.values()):
            row = fitting(rows, {**book.defaults, **levels})
            if row is None or row["reading"] in drawn:  # these levels do not apply, or were not run
                continue
            drawn.add(row["reading"])
            empty = False
            y = problem + width * (place - (len(_SHOWN) - 1) / 2)
            center, low, high = _interval(row)
            axes.plot([low, high], [y, y], color=color, linewidth=1)
            axes.plot(center, y, color=color, marker=marker, markersize=3.2)
        if len(own) and own["scale"].iloc[0] == "linear":
            axes.plot(100 * own["published"].iloc[0], problem, color=style.INK, marker="D")
    if empty:
        nothing(axes)


def _interval(row: pd.Series) -> tuple[float, float, float]:
    """Ratio with its interval; of a difference our value, in percentage points, with the interval of the replay."""
    if row["scale"] == "log":
        return float(np.exp(row["effect"])), row["low"], row["high"]
    published = row["published"]
    return 100 * row["ours"], 100 * (published + row["low"]), 100 * (published + row["high"])


def _ticks(axes: Axes, multiples: tuple[float, ...]) -> None:
    """Logarithmic ticks at these multiples of powers of ten, as decimals."""
    axes.xaxis.set_major_locator(LogLocator(subs=multiples))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
