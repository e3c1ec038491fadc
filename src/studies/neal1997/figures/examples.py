"""Figures 1 and 3 to 5 of the paper, redrawn from our measures."""

from __future__ import annotations

from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book
from studies.common.figures import few, nothing
from studies.neal1997.chains import true_function

#: Fewest iterations of a chain that is drawn: the relevances need half of them to fall.
_ITERATIONS = 100


def priors(book: Book) -> Figure:
    """Two functions from each of four Gaussian processes."""
    figure = style.figure(3.6)
    panels = figure.subplots(2, 2, sharex=True)
    titles = {
        "long": r"$\exp(-d^2)$",
        "short": r"$\exp(-5^2 d^2)$",
        "linear": r"$1 + x x' + 0.1^2 \exp(-3^2 d^2)$",
        "two": r"$\exp(-d^2) + 0.1^2 \exp(-5^2 d^2)$",
    }
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=True):
        axes.set_title(title)
        rows = book.select(f"figure1/{name}/{{draw}}/{{x}}").astype({"x": float})
        for (_, own), look in zip(rows.groupby("draw"), style.LINES, strict=False):
            own = own.sort_values("x")
            axes.plot(own["x"], own["value"], **look)
        if rows.empty:
            nothing(axes)
    for axes in panels[1]:
        axes.set_xlabel("input")
    for axes in panels[:, 0]:
        axes.set_ylabel("function")
    return figure


def traces(book: Book) -> Figure:
    """Relevances, and latent values of one case, along the first chain with 400 cases."""
    figure = style.figure(2.8)
    panels = figure.subplots(1, 2)
    names = [f"rho{u + 1}" for u in range(4)], [f"latent{k}" for k in range(3)]
    labels = [rf"$\rho_{u + 1}$" for u in range(4)], [f"class {k}" for k in range(3)]
    titles = ("relevances", "latent values of one case")
    for axes, own, texts, title in zip(panels, names, labels, titles, strict=True):
        axes.set_title(title)
        for name, label, look in zip(own, texts, style.LINES, strict=False):
            rows = book.select(f"trace/{name}/{{iteration}}").astype({"iteration": int})
            rows = rows.sort_values("iteration")
            axes.plot(rows["iteration"], rows["value"], label=label, **look)
        axes.set_xlabel("iteration")
        if not axes.lines or not len(axes.lines[0].get_xdata()):
            nothing(axes)
        else:
            compact = {"columnspacing": 0.8, "handlelength": 1.6, "handletextpad": 0.4}
            axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.3), **compact)
            if len(axes.lines[0].get_xdata()) < _ITERATIONS:
                few(axes)
    if len(panels[0].lines[0].get_xdata()):
        panels[0].set_yscale("log")
    return figure


def outliers(book: Book) -> Figure:
    """Predictive means of both noise models, and the true function."""
    figure = style.figure(2.6, width=4.4)
    axes = figure.add_subplot(xlabel="input", ylabel="predictive mean")
    runs = {"1997-t": "t noise", "1997-gaussian": "Gaussian noise"}
    for (run, label), look in zip(runs.items(), style.LINES, strict=False):
        rows = book.select(f"figure5/{run}/{{x}}").astype({"x": float}).sort_values("x")
        if rows.empty:
            nothing(axes)
            continue
        axes.plot(rows["x"], rows["value"], label=label, **look)
        if run == "1997-t":
            x = rows["x"].to_numpy()
            axes.plot(x, true_function(x), color=style.GREY, label="true function")
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend()
    return figure
