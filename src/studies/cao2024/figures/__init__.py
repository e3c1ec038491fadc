"""Figures of the study, by name. Each reads a book and nothing else."""

from __future__ import annotations

from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book
from studies.common.figures import METHODS, Look, few, handle, legend, shown

#: Methods by what ids call them; those with numbers behind them are one.
_LOOKS = {
    "vecchia": Look("Vecchia tilting", style.BLUE, "o"),
    "minimax-tilting": METHODS["minimax-tilting"],
    "separation": METHODS["separation"],
    "library": Look("this library's call", style.ORANGE, "s"),
    "twisted-ep": METHODS["twisted-ep"],
}
_SCENARIOS = {"orthant": "orthant", "shifted": "shifted limits", "box": "box"}
_SIZES = {"900": 0.85, "6400": 1.35}


def spread(book: Book) -> Figure:
    """Standard deviation of an estimate beside its seconds: the authors' hollow, ours full, of N = 6,400 large."""
    figure = style.figure(2.7)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    found = book.select("{quantity}/{scenario}-{dimension}/{method}/{whose}")
    found = found[(found["status"] == "ok") & found["quantity"].isin(["sd", "seconds"])]
    keys = ["scenario", "dimension", "method", "whose"]
    points = found.pivot_table(index=keys, columns="quantity", values="value").reset_index()
    seen = set()
    for axes, (scenario, title) in zip(panels, _SCENARIOS.items(), strict=True):
        axes.set(title=title, xscale="log", yscale="log", xlabel="seconds of an estimate")
        own = points[points["scenario"] == scenario]
        for point in own.to_dict("records"):
            method = next(name for name in _LOOKS if point["method"].startswith(name))
            look, size = _LOOKS[method], _SIZES[point["dimension"]]
            style_of = look.hollow if point["whose"] == "theirs" else look.points
            size *= style_of["markersize"]
            axes.plot(point["seconds"], point["sd"], **{**style_of, "markersize": size})
            seen.add(method)
        if not (own["whose"] == "ours").any():
            few(axes)
    panels[0].set_ylabel("s.d. of $\\log P$ (nats)")
    looks = [handle(look.label, **look.points) for name, look in _LOOKS.items() if name in seen]
    hollow = handle("the authors'", style.INK, marker="o", markerfacecolor="white")
    legend(figure, [*(one for one in looks), hollow])
    return figure


#: Every figure by name.
FIGURES = {"spread": shown(spread, 0.8)}
