"""Figures of the study, by name. Each reads a book and nothing else."""

from __future__ import annotations

from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book
from studies.common.figures import METHODS, few, handle, legend, shown

#: Methods by row, and what is said of them beside their names.
_METHODS = {"minimax-tilting": "", "separation": "", "twisted-ep": ",\n256 draws"}
_LIMITS = {"orthant": "orthant", "shifted": "shifted limits"}


def spread(book: Book) -> Figure:
    """Standard deviations of both kinds of limits by method: published, and each of ours."""
    figure = style.figure(2.4)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    measures, printed = book.measures[book.measures["status"] == "ok"], book.cells["value"]
    for axes, (limits, title) in zip(panels, _LIMITS.items(), strict=True):
        axes.set(title=title, xscale="log", xlabel="s.d. of $\\log P$ (nats)")
        for place, method in enumerate(_METHODS):
            id = f"sd/{limits}-900/{method}"
            own = measures[(measures["id"] == id) & (measures["reading"] != "nugget=code")]
            axes.plot(own["value"], [-place] * len(own), **METHODS[method].points)
            if id in printed:
                axes.plot(printed[id], -place, "D", color=style.ORANGE, fillstyle="none")
                if own.empty:
                    few(axes)
        names = [METHODS[method].label + more for method, more in _METHODS.items()]
        axes.set(
            yticks=[-place for place in range(len(names))], yticklabels=names, ylim=(-2.5, 0.5)
        )
    panels[0].set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    panels[0].minorticks_off()
    published = handle("published", style.ORANGE, marker="D", fillstyle="none")
    legend(
        figure,
        [handle("ours, full, in the colour of the method", style.INK, marker="o"), published],
    )
    return figure


#: Every figure by name.
FIGURES = {"spread": shown(spread, 0.8)}
