"""Figures 3.4 to 3.12 of the book, redrawn from our measures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book
from studies.common.figures import METHODS, few, legend, named, nothing
from studies.rasmussen2006.grid import AMPLITUDES, LENGTHS, PRINTED, STEP

_PANELS = {"log-evidence": "log evidence", "information": "information", "errors": "test errors"}
#: Methods whose surfaces stand side by side.
_NAMES = {"laplace": METHODS["laplace"].label, "ep": METHODS["ep"].label, "exact": "exact"}
_REJECTING = ("laplace", "ep", "linear-probit", "svm", "svm-whole", "lsc", "p1nn")
#: Fewest values of log l of a grid whose contours are where the surface has them.
_FINE = 8
_LABELS = {"xlabel": r"$\log\ell$", "ylabel": r"$\log\sigma_f$"}
_CONTOURS: dict[str, list[float]] = {
    "log-evidence": [-300, -150, -105, -95],
    "information": [0.1, 0.5, 0.8, 0.86],
}
#: Of the three surfaces side by side: the printed optima are -99 and -90.
_SIDE_BY_SIDE = [-300, -200, -150, -120, -105, -100, -95, -92, -90]


def surfaces(book: Book) -> Figure:
    """Evidence, information and errors over (log l, log sf), by both methods, with the printed points."""
    figure = style.figure(5.0)
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    for line, method in zip(panels, ("laplace", "ep"), strict=True):
        for axes, (quantity, title) in zip(line, _PANELS.items(), strict=True):
            axes.set_title(f"{_NAMES[method]}: {title}")
            rows = book.select(f"surface/{method}/l{{x}}/a{{a}}/{quantity}")
            if quantity == "errors":
                _numbers(axes, rows)
                look = {"fillstyle": "none", "markersize": 13}  # the number within can be read
            else:
                _contours(axes, rows, _CONTOURS[quantity])
                look = {}
            axes.plot(*PRINTED[method], "D", color=style.ORANGE, zorder=3, **look)
            _limits(axes)
        line[0].set_ylabel(_LABELS["ylabel"])
    for axes in panels[-1]:
        axes.set_xlabel(_LABELS["xlabel"])
    return figure


def evidence(book: Book) -> Figure:
    """Log evidence by Laplace's method, by EP and exact, with the printed points."""
    figure = style.figure(3.3)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (method, name) in zip(panels, _NAMES.items(), strict=True):
        rows = book.select(f"surface/{method}/l{{x}}/a{{a}}/log-evidence")
        _contours(axes, rows[rows["status"] == "ok"], _SIDE_BY_SIDE)
        for other, marker in (("laplace", "s"), ("ep", "D")):
            if method in (other, "exact"):
                label = f"printed optimum, {_NAMES[other]}"
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
        nothing(axes)
        return
    if len(table.columns) < _FINE:
        few(axes)
    grid = table.columns.to_numpy(), table.index.to_numpy(), table.to_numpy()
    lines = axes.contour(
        *grid, levels=levels, colors=style.BLUE, linewidths=0.8, linestyles="solid"
    )
    # where contours are close, every other one has its number
    axes.clabel(lines, [*lines.levels][:: 2 if len(levels) > 6 else 1], fontsize="small", fmt="%g")


def _limits(axes: Axes) -> None:
    """The book's grid, with a step around it."""
    for (low, values), limit in ((LENGTHS, axes.set_xlim), (AMPLITUDES, axes.set_ylim)):
        limit(low - STEP, low + STEP * values)


def _numbers(axes: Axes, rows: pd.DataFrame) -> None:
    """Numbers in their places; of a fine grid one in so many lines and columns that they do not touch."""
    if rows.empty:  # the data could not be had
        nothing(axes)
        return
    rows = rows.astype({"x": float, "a": float})
    some = [sorted(rows[name].unique()) for name in ("x", "a")]
    lengths, amplitudes = (
        values[:: -(-len(values) // most)] for values, most in zip(some, (6, 9), strict=True)
    )
    for row in rows[rows["x"].isin(lengths) & rows["a"].isin(amplitudes)].itertuples():
        axes.text(row.x, row.a, f"{row.value:.0f}", ha="center", va="center", fontsize="small")


def latents(book: Book) -> Figure:
    """Histograms of latent means, and of probabilities averaged and at the mean."""
    figure = style.figure(4.8)
    panels = figure.subplots(2, 2)
    label_of = {"latent": "latent mean", "probability": "predictive probability"}
    for line, method in zip(panels, ("laplace", "ep"), strict=True):
        for axes, kind in zip(line, ("latent", "probability"), strict=True):
            rows = book.select(f"histogram/{method}/{kind}/{{part}}/{{center}}")
            rows = rows.astype({"center": float}).sort_values("center")
            axes.set(title=_NAMES[method], xlabel=label_of[kind])
            for part, look in zip(rows["part"].unique(), style.LINES, strict=False):
                own = rows[rows["part"] == part]
                label = {"map": "at the mean"}.get(str(part), part)
                axes.step(own["center"], own["value"], where="mid", label=label, **look)
            if rows.empty:
                nothing(axes)
            elif method == "laplace":  # that of the other is the same
                solid = {"frameon": True, "framealpha": 1.0, "edgecolor": "none"}
                axes.legend(
                    handlelength=1.2, columnspacing=1.0, loc="upper center", ncols=2, **solid
                )
            axes.margins(y=0.25)
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
        nothing(axes)
        return figure
    right, wrong = (table[table["wrong"] == value] for value in (0, 1))
    axes.plot(right["map"], right["averaged"], ".", color=style.BLUE, label="right")
    place = wrong["map"], wrong["averaged"]
    axes.plot(*place, "s", color=style.ORANGE, fillstyle="none", label="misclassified")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def rejects(book: Book) -> Figure:
    """Error rate and information of the cases that are kept."""
    figure = style.figure(3.3)
    panels = figure.subplots(1, 2)
    for axes, quantity in zip(panels, ("error", "information"), strict=True):
        rows = book.select(f"figure3.10/{{method}}/{quantity}/{{share}}").astype({"share": float})
        for method in _REJECTING:
            own = rows[rows["method"] == method].sort_values("share")
            axes.plot(own["share"], own["value"], **METHODS[method].points | {"linestyle": "-"})
        axes.set(xlabel="rejected share")
        axes.set_ylabel({"error": "error rate"}.get(quantity, "information, bits"))
    legend(figure, named(_REJECTING, linestyle="-"), 3)
    return figure


def exact(book: Book) -> Figure:
    """Errors of both approximations over the grid, and information by both and exact."""
    figure = style.figure(5.4)
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    panels = above.subplots(1, 2)
    base = "surface/exact/l{x}/a{a}/"
    truth = book.select(f"{base}log-evidence").set_index(["x", "a"])["value"]
    for axes, method in zip(panels, ("ep", "laplace"), strict=True):
        rows = book.select(f"{base}{method}-error")
        rows = rows[rows["status"] == "ok"].set_index(["x", "a"])
        bars = 2 * rows["se"].fillna(0.0)
        look = METHODS[method].points | {"markersize": 3.0, "elinewidth": 0.6}
        axes.errorbar(-truth.reindex(rows.index), rows["value"], bars, **look)
        axes.axhline(0.0, color=style.GREY, linewidth=0.8)
        axes.set(title=_NAMES[method], xlabel="minus exact log evidence", xscale="log")
        axes.set_xticks(ticks := [90, 120, 200, 300, 500], [str(tick) for tick in ticks])
        axes.minorticks_off()
    panels[0].set_ylabel("error (nats)")
    lower = below.subplots(1, 3, sharex=True, sharey=True)
    for axes, (method, name) in zip(lower, _NAMES.items(), strict=True):
        rows = book.select(f"surface/{method}/l{{x}}/a{{a}}/information")
        _contours(axes, rows[rows["status"] == "ok"], _CONTOURS["information"])
        axes.set(title=f"{name}: information", xlabel=_LABELS["xlabel"])
        _limits(axes)
    lower[0].set_ylabel(_LABELS["ylabel"])
    return figure


def terms(book: Book) -> Figure:
    """One likelihood term and its Gaussian; one draw of the one-dimensional example by both methods."""
    figure = style.figure(2.7)
    term, shares, functions = figure.subplots(1, 3)
    names = {"posterior": "product", "gaussian": "matched Gaussian"}
    parts = ("likelihood", "cavity", "posterior", "gaussian")
    for name, look in zip(parts, style.LINES, strict=True):
        own = _curve(book, f"figure3.4/{name}")
        term.plot(own["x"], own["value"], label=names.get(name, name), **look)
    term.set(xlabel="$f$", ylabel="value or density", title="Figure 3.4")
    for method in ("laplace", "ep"):
        colour = METHODS[method].color
        own = _curve(book, f"figure3.6/{method}-probability")
        shares.plot(own["x"], own["value"], color=colour, label=_NAMES[method])
        mean, spread = (_curve(book, f"figure3.6/{method}-{q}") for q in ("mean", "deviation"))
        for times, width in ((-2, 0.7), (0, 1.3), (2, 0.7)):
            curve = mean["value"].to_numpy() + times * spread["value"].to_numpy()
            functions.plot(mean["x"], curve, color=colour, linewidth=width)
    own = _curve(book, "figure3.6/truth-probability")
    shares.plot(own["x"], own["value"], ":", color=style.INK, label="true probability")
    own = _curve(book, "figure3.6/points")
    shares.plot(own["x"], (own["value"] > 0).astype(float), ".", color=style.INK, markersize=3)
    shares.set(xlabel="$x$", ylabel="probability of $+1$", title="Figure 3.6(a)")
    functions.axhline(0.0, color=style.GREY, linewidth=0.8)
    functions.set(xlabel="$x$", ylabel="$f(x)$", title="Figure 3.6(b)")
    handles = [handle for axes in (term, shares) for handle in axes.get_legend_handles_labels()[0]]
    legend(figure, handles)
    return figure


def _curve(book: Book, name: str) -> pd.DataFrame:
    """Rows of a picture with their places as numbers, in the order in which they were made."""
    rows = book.select(f"picture/{name}/l{{length}}/{{number}}/x{{x}}/y{{y}}")
    kinds = {"x": float, "y": float, "length": float, "number": int}
    return rows.astype(kinds).sort_values("number")


def lone(book: Book) -> Figure:
    """Predictive probability over the square at three length scales."""
    figure = style.figure(2.4)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    points, rows = (_curve(book, f"figure3.5/{name}") for name in ("points", "probability"))
    for axes, length in zip(panels, (0.1, 0.2, 0.3), strict=True):
        table = rows[rows["length"] == length].pivot(index="y", columns="x", values="value")
        grid = table.columns.to_numpy(), table.index.to_numpy(), table.to_numpy()
        levels = [0.2, 0.3, 0.4, 0.6, 0.7, 0.8]
        lines = axes.contour(*grid, levels=levels, colors=style.BLUE, linewidths=0.7)
        axes.clabel(lines, fontsize="small", inline_spacing=1)
        axes.contour(*grid, levels=[0.5], colors=style.INK, linewidths=1.8)
        for label, fill in ((1.0, "none"), (-1.0, "full")):
            own = points[points["value"] == label]
            axes.plot(own["x"], own["y"], "o", color=style.INK, fillstyle=fill, markersize=4)
        axes.set(title=rf"$\ell={length}$", aspect="equal", xlim=(0, 1), ylim=(0, 1))
        axes.set(xlabel="$x_1$", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    panels[0].set_ylabel("$x_2$")
    return figure


def tenclass(book: Book) -> Figure:
    """Evidence, information and error rate of ten classes over log l: a line at the printed log sf, dots at others."""
    figure = style.figure(2.6)
    panels = figure.subplots(1, 3)
    titles = {
        "log-evidence": "log evidence, nats",
        "information": "information, bits",
        "error-percent": "errors, %",
    }
    for axes, (quantity, title) in zip(panels, titles.items(), strict=True):
        rows = book.select(f"ten/n{{n}}/l{{x}}/a{{a}}/{quantity}").astype({"x": float, "a": float})
        for n, own in rows.groupby("n", sort=False):
            printed = own["a"] == PRINTED["ten"][1]
            line, rest = own[printed].sort_values("x"), own[~printed]
            name = rf"$n={n}$, $\log\sigma_f={PRINTED['ten'][1]}$"
            axes.plot(line["x"], line["value"], "o-", color=style.BLUE, label=name)
            if len(rest):
                look = {"color": style.ORANGE, "fillstyle": "none", "linestyle": "none"}
                axes.plot(rest["x"], rest["value"], "s", label=r"other $\log\sigma_f$", **look)
        axes.set(xlabel=_LABELS["xlabel"], ylabel=title)
        cell = f"figure3.11/laplace/{quantity}"
        if "4649" not in set(rows["n"]):  # what is printed is of all of them
            few(axes)
        elif cell in book.cells.index:
            printed = PRINTED["ten"][0], book.cells.loc[cell, "value"]
            axes.plot(*printed, "D", color=style.INK, label="printed")
    handles, labels = panels[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
