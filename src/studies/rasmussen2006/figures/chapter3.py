"""Figures 3.7 to 3.12 of the book, redrawn from our measures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recheck import style
from recheck.book import Book
from studies.rasmussen2006.jobs import AMPLITUDES, LENGTHS, PRINTED, STEP

_NAMES = {
    "laplace": "Laplace",
    "ep": "EP",
    "linear-probit": "linear probit",
    "svm": "SVM",
    "svm-whole": "SVM without 1/2",
    "lsc": "least squares",
    "p1nn": "nearest neighbour",
}
_PANELS = {"log-evidence": "log evidence", "information": "information", "errors": "test errors"}
_LABELS = {"xlabel": r"$\log\ell$", "ylabel": r"$\log\sigma_f$"}
_CONTOURS: dict[str, list[float]] = {
    "log-evidence": [-300, -200, -150, -120, -105, -95],
    "information": [0.1, 0.3, 0.5, 0.7, 0.8, 0.86],
}
#: Of the three surfaces side by side: the printed optima are -99 and -90.
_SIDE_BY_SIDE = [-300, -200, -150, -120, -105, -100, -95, -92, -90]


def _nothing(axes: Axes) -> None:
    axes.text(0.04, 0.04, "not run at this scale", transform=axes.transAxes, color=style.GREY)


def surfaces(book: Book) -> Figure:
    """Evidence, information and errors over (log l, log sf), by both methods, with the printed points."""
    figure = style.figure(4.2)
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    for line, method in zip(panels, ("laplace", "ep"), strict=True):
        for axes, (quantity, title) in zip(line, _PANELS.items(), strict=True):
            axes.set_title(f"{_NAMES[method]}: {title}")
            rows = book.select(f"surface/{method}/l{{x}}/a{{a}}/{quantity}")
            if quantity == "errors":
                _numbers(axes, rows)
            else:
                _contours(axes, rows, _CONTOURS[quantity])
            axes.plot(*PRINTED[method], "D", color=style.ORANGE, zorder=3)
            _limits(axes)
        line[0].set_ylabel(_LABELS["ylabel"])
    for axes in panels[-1]:
        axes.set_xlabel(_LABELS["xlabel"])
    return figure


def evidence(book: Book) -> Figure:
    """Log evidence by Laplace's method, by EP and exact, with the printed points."""
    figure = style.figure(2.7)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    names = {"laplace": "Laplace", "ep": "EP", "exact": "exact"}
    for axes, (method, name) in zip(panels, names.items(), strict=True):
        rows = book.select(f"surface/{method}/l{{x}}/a{{a}}/log-evidence")
        _contours(axes, rows[rows["status"] == "ok"], _SIDE_BY_SIDE)
        for other, marker in (("laplace", "s"), ("ep", "D")):
            if method in (other, "exact"):
                label = f"printed optimum, {names[other]}"
                axes.plot(*PRINTED[other], marker, color=style.ORANGE, zorder=3, label=label)
        axes.set(title=name, xlabel=_LABELS["xlabel"])
        _limits(axes)
    panels[0].set_ylabel(_LABELS["ylabel"])
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _contours(axes: Axes, rows: pd.DataFrame, levels: Sequence[float]) -> None:
    """Labelled contours over log l (field x) and log sf (field a); none of a grid with fewer than three lines."""
    table = rows.astype({"x": float, "a": float}).pivot(index="a", columns="x", values="value")
    if min(table.shape) < 3:
        _nothing(axes)
        return
    grid = table.columns.to_numpy(), table.index.to_numpy(), table.to_numpy()
    lines = axes.contour(
        *grid, levels=levels, colors=style.BLUE, linewidths=0.8, linestyles="solid"
    )
    # where contours are close, every other one has its number
    axes.clabel(lines, [*lines.levels][::2], fontsize=8, inline_spacing=2)


def _limits(axes: Axes) -> None:
    """The book's grid, with a step around it."""
    for (low, values), limit in ((LENGTHS, axes.set_xlim), (AMPLITUDES, axes.set_ylim)):
        limit(low - STEP, low + STEP * values)


def _numbers(axes: Axes, rows: pd.DataFrame) -> None:
    """Numbers in their places; of a fine grid one in so many lines and columns that they do not touch."""
    rows = rows.astype({"x": float, "a": float})
    some = [sorted(rows[name].unique()) for name in ("x", "a")]
    lengths, amplitudes = (
        values[:: -(-len(values) // most)] for values, most in zip(some, (6, 9), strict=True)
    )
    for row in rows[rows["x"].isin(lengths) & rows["a"].isin(amplitudes)].itertuples():
        axes.text(row.x, row.a, f"{row.value:.0f}", ha="center", va="center", fontsize=8)


def latents(book: Book) -> Figure:
    """Histograms of latent means, and of probabilities averaged and at the mean."""
    figure = style.figure(4.0)
    panels = figure.subplots(2, 2)
    for line, method in zip(panels, ("laplace", "ep"), strict=True):
        for axes, kind in zip(line, ("latent", "probability"), strict=True):
            rows = book.select(f"histogram/{method}/{kind}/{{part}}/{{center}}")
            rows = rows.astype({"center": float}).sort_values("center")
            axes.set_title(f"{_NAMES[method]}: {kind}{'' if kind[0] == 'p' else ' mean'}")
            colours = zip(rows["part"].unique(), style.COLOURS, strict=False)
            for part, colour in colours:
                own = rows[rows["part"] == part]
                label = {"map": "at the mean"}.get(str(part), part)
                axes.step(own["center"], own["value"], where="mid", color=colour, label=label)
            if rows.empty:
                _nothing(axes)
            else:
                axes.legend()
            if kind == "probability":
                axes.set_ylim(0, 30)  # as in Figure 3.9
        line[0].set_ylabel("cases")
    return figure


def predictions(book: Book) -> Figure:
    """Probabilities of test cases by EP, averaged over the latent Gaussian against those at its mean."""
    figure = style.figure(2.6, width=3.2)
    axes = figure.add_subplot(xlabel="probability at the mean", ylabel="averaged probability")
    rows = book.select("prediction/{case}/{quantity}")
    table = rows.pivot(index="case", columns="quantity", values="value")
    if table.empty:
        _nothing(axes)
        return figure
    right, wrong = (table[table["wrong"] == value] for value in (0, 1))
    axes.plot(right["map"], right["averaged"], ".", color=style.BLUE, label="right")
    place = wrong["map"], wrong["averaged"]
    axes.plot(*place, "s", color=style.ORANGE, fillstyle="none", label="misclassified")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def rejects(book: Book) -> Figure:
    """Error rate and information of the cases that are kept."""
    figure = style.figure(2.8)
    panels = figure.subplots(1, 2)
    for axes, quantity in zip(panels, ("error", "information"), strict=True):
        rows = book.select(f"figure3.10/{{method}}/{quantity}/{{share}}").astype({"share": float})
        looks = zip(_NAMES.items(), style.COLOURS, style.MARKERS, strict=False)
        for (method, name), colour, marker in looks:
            own = rows[rows["method"] == method].sort_values("share")
            look = {"color": colour, "marker": marker, "markersize": 3}
            axes.plot(own["share"], own["value"], label=name, **look)
        axes.set(xlabel="rejected share", ylabel={"error": "error rate"}.get(quantity, "bits"))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def exact(book: Book) -> Figure:
    """Errors of both approximations against the exact evidence."""
    figure = style.figure(2.8, width=4.0)
    axes = figure.add_subplot(xlabel="exact log evidence", ylabel="approximation less exact, nats")
    base = "exact/twisted-ep/l{x}/a{a}/"
    truth = book.select(f"{base}log-evidence").set_index(["x", "a"])["value"]
    for method, colour, marker in (("ep", style.BLUE, "o"), ("laplace", style.ORANGE, "s")):
        rows = book.select(f"{base}{method}-error").set_index(["x", "a"])
        x = truth.reindex(rows.index)
        bars, name = 2 * rows["se"].fillna(0.0), _NAMES[method]
        axes.errorbar(x, rows["value"], bars, fmt=marker, color=colour, label=name)
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def tenclass(book: Book) -> Figure:
    """Evidence, information and error rate of ten classes over log l, a line for each amplitude."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 3)
    titles = {"log-evidence": "log evidence", "information": "bits", "error-percent": "errors, %"}
    for axes, (quantity, title) in zip(panels, titles.items(), strict=True):
        rows = book.select(f"ten/n{{n}}/l{{x}}/a{{a}}/{quantity}").astype({"x": float})
        lines = rows.sort_values("x").groupby(["n", "a"], sort=False)
        for ((n, a), own), colour in zip(lines, style.COLOURS, strict=False):
            label = rf"$n={n}$, $\log\sigma_f={a}$"
            axes.plot(own["x"], own["value"], "o-", color=colour, label=label)
        axes.set(xlabel=_LABELS["xlabel"], ylabel=title)
        cell = f"figure3.11/laplace/{quantity}"
        if cell in book.cells.index and "4649" in set(rows["n"]):
            axes.plot(PRINTED["ten"][0], book.cells.loc[cell, "value"], "D", color=style.INK)
    handles, labels = panels[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
