"""Errors against the number of samples (Experiments 1 and 2), the floor of Table 1, and the variance formula."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from recheck import style
from recheck.book import Book
from studies.atiya2021.figures.common import (
    SAMPLES,
    band,
    columns,
    drawn,
    falling,
    handle,
    label,
    legend,
    log_samples,
    log_values,
    nothing,
    published,
)

__all__ = ["error_experiment1", "error_experiment2", "floor", "variance"]

_HOLLOW: dict[str, Any] = {"color": style.ORANGE, "marker": "s", "markerfacecolor": "none"}
_DIMENSIONS = ("50", "200", "500")
_PATTERNS = {"P1": 100, "P2": 200, "P3": 400, "P4": 800}


def _ours_and_published() -> list[Line2D]:
    return [
        handle("ours", style.BLUE, "o"),
        handle("published", **_HOLLOW),
        handle(r"$\propto M^{-1/2}$", style.GREY, linestyle="--", linewidth=0.8),
    ]


def error_experiment1(book: Book) -> Figure:
    """MAPE of the log orthant probability against M, one panel a dimension."""
    cells = published(book, r"table1/N(?P<N>\d+)/M(?P<M>\d+)$")
    ours = columns(book, "table1/N{N}/M{M}", "mape")
    figure = style.figure(2.6)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, dimension in zip(panels, _DIMENSIONS, strict=True):
        log_samples(axes)
        log_values(axes)
        style.label_panel(axes, f"$N={dimension}$")
        theirs = cells[cells["N"] == dimension]
        drawn(axes, theirs["M"], theirs["value"], theirs["bracket_value"], shift=1.06, **_HOLLOW)
        own = ours[ours["N"] == float(dimension)]
        if own.empty:
            nothing(axes)
        else:
            look = {"color": style.BLUE, "marker": "o"}
            drawn(axes, own["M"], own["mape"], own["mape_se"], shift=1 / 1.06, **look)
            falling(axes, own["M"], own["mape"])
        axes.set_xlabel(SAMPLES)
    panels[0].set_ylabel("MAPE of $\\log I$ (%)")
    legend(figure, _ours_and_published(), 3)
    return figure


def error_experiment2(book: Book) -> Figure:
    """Errors of Experiment 2 against M: class probabilities above, log marginal likelihood below."""
    figure = style.figure(3.9)
    panels = figure.subplots(2, 4, sharex=True, sharey="row")
    titles = {"table2": "MAE of $p(y_*=1)$", "table3": "MAPE of $\\log L$ (%)"}
    for row, (table, title) in zip(panels, titles.items(), strict=True):
        row[0].set_ylabel(title)
        cells = published(book, rf"{table}/(?P<problem>P\d)/M(?P<M>\d+)$")
        ours = columns(book, f"{table}/{{problem}}/M{{M}}", "error")
        ends = [
            columns(book, f"spread/{table}/{{problem}}/M{{M}}/{end}", end)[["problem", "M", end]]
            for end in ("lowest", "highest")
        ]
        ours = ours.merge(ends[0], on=["problem", "M"]).merge(ends[1], on=["problem", "M"])
        for axes, (problem, patterns) in zip(row, _PATTERNS.items(), strict=True):
            log_samples(axes)
            log_values(axes)
            axes.set_xticks([1e4, 1e5, 1e6])
            if table == "table2":
                style.label_panel(axes, f"{label('problem', problem)}, $N={patterns}$")
            else:
                axes.set_xlabel("samples $M$")
            theirs = cells[cells["problem"] == problem]
            drawn(axes, theirs["M"], theirs["value"], shift=1.06, **_HOLLOW)
            own = ours[ours["problem"] == problem].sort_values("M")
            if own.empty:
                nothing(axes, "not run")
                continue
            look = {"color": style.BLUE, "alpha": 0.2, "linewidth": 0}
            axes.fill_between(own["M"], own["lowest"], own["highest"], **look)
            look = {"color": style.BLUE, "marker": "o"}
            drawn(axes, own["M"], own["error"], own["error_se"], shift=1 / 1.06, **look)
            falling(axes, own["M"], own["error"])
    first, *others = _ours_and_published()
    legend(figure, [first, band("ours, range over data sets", style.BLUE), *others], 4)
    return figure


def floor(book: Book) -> Figure:
    """Table 1 against our errors, scored against exact truths and against truths from coarse grids."""
    cells = published(book, r"table1/N(?P<N>\d+)/M(?P<M>\d+)$")
    ours = columns(book, "table1/N{N}/M{M}", "mape")
    coarse = columns(book, "experiment1/N{N}/step{step}/M{M}/error", "mape")
    steps = sorted(coarse["step"].unique(), key=float, reverse=True)
    looks = dict(zip(steps, style.COLOURS[2:], strict=False))
    figure = style.figure(2.9)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, dimension in zip(panels, _DIMENSIONS, strict=True):
        log_samples(axes)
        log_values(axes)
        style.label_panel(axes, f"$N={dimension}$")
        theirs, own = cells[cells["N"] == dimension], ours[ours["N"] == float(dimension)]
        for step, color in looks.items():
            rows = coarse[(coarse["N"] == float(dimension)) & (coarse["step"] == step)]
            rows = rows.sort_values("M")
            axes.plot(rows["M"], rows["mape"], color=color, linewidth=1.1)
        drawn(axes, theirs["M"], theirs["value"], **_HOLLOW)
        drawn(axes, own["M"], own["mape"], color=style.BLUE, marker="o")
        if own.empty:
            nothing(axes)
        axes.set_xlabel(SAMPLES)
    panels[0].set_ylabel("MAPE of $\\log I$ (%)")
    handles = [handle("published", **_HOLLOW), handle("ours, exact truth", style.BLUE, "o")]
    for step, color in looks.items():
        handles.append(handle(rf"ours, grid truth, $\Delta u={step}$", color, linestyle="-"))
    legend(figure, handles, 3)
    return figure


def variance(book: Book) -> Figure:
    """Measured variance of the log estimate over Eq. (44), and over the sampler's own squared standard error."""
    figure = style.figure(4.2)
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    titles = {"ratio": "measured / Eq. (44)", "own-ratio": "measured / own"}
    problems = ("P1", "P2", "P3", "P4")
    looks = dict(zip(problems, zip(style.COLOURS, style.MARKERS, strict=False), strict=False))
    for row, (quantity, title) in zip(panels, titles.items(), strict=True):
        row[0].set_ylabel(title)
        for axes, number in zip(row, (1, 2), strict=True):
            template = f"variance/experiment{number}/{{problem}}/M{{M}}/{quantity}"
            rows = columns(book, template, "ratio")
            axes.axhline(1.0, color=style.INK, linewidth=0.8, linestyle="--")
            log_samples(axes)
            if quantity == "ratio":
                style.label_panel(axes, f"Experiment {number}")
            else:
                axes.set_xlabel(SAMPLES)
            if rows.empty:
                nothing(axes)
            for place, (problem, (color, marker)) in enumerate(looks.items()):
                mine = rows[rows["problem"] == problem]
                x = mine["M"] * 1.1 ** (place - 1.5)
                look = {"color": color, "marker": marker, "linestyle": "none"}
                axes.errorbar(x, mine["ratio"], yerr=mine["ratio_se"], **look)
        row[0].set_ylim(bottom=0.0)
    handles = [handle(label("problem", problem), *look) for problem, look in looks.items()]
    legend(figure, handles, 4)
    return figure
