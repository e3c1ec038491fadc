"""Figures of the study, by name. Each reads a book and nothing else."""

from __future__ import annotations

from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book

_METHODS = {
    "minimax-tilting": "minimax tilting",
    "separation": "separation of variables",
    "twisted-ep": "twisted EP, 256 draws",
}
_LIMITS = {"orthant": "orthant", "shifted": "shifted limits"}


def spread(book: Book) -> Figure:
    """Standard deviations of both kinds of limits by method: published, and each of ours."""
    figure = style.figure(2.0, width=5.0)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    measures, printed = book.measures[book.measures["status"] == "ok"], book.cells["value"]
    for axes, (limits, title) in zip(panels, _LIMITS.items(), strict=True):
        axes.set(title=title, xscale="log", xlabel="standard deviation of log P")
        for place, method in enumerate(_METHODS):
            id = f"sd/{limits}-900/{method}"
            own = measures[(measures["id"] == id) & (measures["reading"] != "nugget=code")]
            axes.plot(own["value"], [-place] * len(own), ".", color=style.BLUE, label="ours")
            if id in printed:
                axes.plot(printed[id], -place, "D", color=style.ORANGE, label="published")
        axes.set_yticks([-place for place in range(len(_METHODS))], list(_METHODS.values()))
    panels[0].set_xticks([0.01, 0.03, 0.1, 0.3, 1], ["0.01", "0.03", "0.1", "0.3", "1"])
    panels[0].minorticks_off()
    handles, labels = panels[0].get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=2)
    return figure


#: Every figure by name.
FIGURES = {"spread": spread}
