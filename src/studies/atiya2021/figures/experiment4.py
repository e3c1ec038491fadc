"""Figures of Experiment 4: reliability, evidence, accuracy, CPU seconds by setting, and which runs count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, SymmetricalLogLocator

from recheck import style
from recheck.book import Book
from recheck.layout import Layout, read_layout
from studies.atiya2021.figures.common import band, handle, label, legend, nothing, published

__all__ = ["accuracy", "evidence", "reliability", "seconds", "status"]

#: The paper's methods by the names that it prints, and their colours and markers.
_PAPER = {"new": "orthant", "titsias": "control-variables", "ess": "ess-gpml", "hmc": "hmc-gpml"}
_BAND = "#e0e0e0"
_PROBLEMS = tuple(f"P{p}" for p in range(1, 10))
_GROUPS = {
    "synthetic": "synthetic problems",
    "crabs": "Crabs",
    "breast-cancer": "Breast Cancer",
    "usps": "USPS 3 v 5",
}
#: CPU seconds within this factor of those of setting 1 are alike for all settings.
_FLAT = 1.5
#: How the map of statuses is coloured; other statuses are red.
_MAP = {
    "ok": "#f0f0f0",
    "not converged": "#e69f00",
    "weights not trusted": "#56b4e9",
    "stopped at its limit": "#cc79a7",
    "extinct": style.INK,
    "data not available": "#b0b0b0",
}


@lru_cache(maxsize=1)
def _layout() -> Layout:
    return read_layout(Path(__file__).parents[1] / "layout.yaml")


def _ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the order of the tables, others after them by name."""
    known = list(_layout().order.get("method", ()))
    return sorted(set(methods), key=lambda m: (known.index(m) if m in known else len(known), m))


def _looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker by name."""
    return {n: (style.COLOURS[i % 10], style.MARKERS[i % 10]) for i, n in enumerate(names)}


def _number(names: pd.Series) -> pd.Series:
    """The number in names such as P3 or S2."""
    return names.str[1:].astype(int)


def reliability(book: Book) -> Figure:
    """Predicted probability against the frequency of class 1, and the error against the Bayes posterior."""
    rows = book.select("reliability/{group}/{method}/{bin}/{quantity}")
    keys = ["group", "method", "bin"]
    frame = rows.pivot(index=keys, columns="quantity", values="value").reset_index()
    errors = rows[rows["quantity"] == "frequency"].set_index(keys)["se"].rename("se")
    frame = frame.join(errors, on=keys).sort_values(["predicted"] if len(frame) else keys)
    looks = _looks([*_PAPER.values(), "ep"])
    figure = style.figure(4.3)
    panels = figure.subplots(2, 3).ravel()
    for axes, (group, title) in zip(panels, _GROUPS.items(), strict=False):
        axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), aspect="equal")
        axes.set(xlabel="predicted $p(y_*=1)$", ylabel="frequency of class 1")
        style.label_panel(axes, title)
        part = frame[(frame["group"] == group)]
        part = part[part["patterns"] >= 5] if len(part) else part
        if part.empty:
            nothing(axes, "no predictions")
        for place, (method, (color, marker)) in enumerate(looks.items()):
            mine = part[part["method"] == method]
            axes.errorbar(
                mine["predicted"] + 0.008 * (place - 2) if len(mine) else [],
                mine["frequency"] if len(mine) else [],
                yerr=mine["se"] if len(mine) else None,
                color=color,
                marker=marker,
                markersize=3.2,
                linewidth=0.7,
            )
            if group == "synthetic" and method == "orthant" and len(mine):
                axes.plot(mine["predicted"], mine["bayes"], color=style.INK, linewidth=1, zorder=5)
    _mae_post(panels[4], book, looks)
    panels[5].set_axis_off()
    handles = [handle(label("method", m), c, k, linestyle="-") for m, (c, k) in looks.items()]
    handles += [
        handle("variance counted once", style.GREY, "o", markerfacecolor="white"),
        handle("mean Bayes posterior", style.INK, linestyle="-"),
        handle("published, four methods", style.COLOURS[8], "_", linestyle="-"),
        Line2D([], [], color=_BAND, linewidth=6, label="range over data sets"),
    ]
    panels[5].legend(handles=handles, loc="center")
    return figure


def _mae_post(axes: Axes, book: Book, looks: dict[str, tuple[str, str]]) -> None:
    """MAE-POST by problem: published, ours under both readings, and how far apart data sets are."""
    ends = book.select("mae-post/data-sets/{problem}/{end}")
    ends = ends.pivot(index="problem", columns="end", values="value")
    for problem, row in ends.iterrows():
        place, height = int(str(problem)[1:]), row["high"] - row["low"]
        axes.bar(place, height, bottom=row["low"], width=0.8, color=_BAND, zorder=0.5)
    theirs = published(book, r"table4/P(?P<problem>\d)/(?P<method>\w+)/mae-post$")
    # the published four are hardly apart: four markers would hide one another
    for problem, found in theirs.groupby("problem")["value"]:
        x = [int(str(problem)) - 0.3] * 2
        axes.plot(x, [found.min(), found.max()], color=style.COLOURS[8], marker="_", linewidth=1.4)
    ours = book.select("table4/{problem}/{method}/mae-post").dropna(subset="value")
    for place, (name, method) in enumerate(_PAPER.items()):
        color, marker = looks[method]
        for once in (False, True):
            mine = ours[(ours["method"] == name) & (ours["reading"] == "variance=once")]
            mine = (
                ours[(ours["method"] == name) & ~ours.index.isin(mine.index)] if not once else mine
            )
            if len(mine):
                axes.errorbar(
                    _number(mine["problem"]) - 0.12 + 0.12 * place + 0.06 * once,
                    mine["value"],
                    yerr=mine["se"].fillna(0.0),
                    color=color,
                    marker=marker,
                    markersize=3,
                    markerfacecolor="white" if once else color,
                    linestyle="none",
                )
    axes.set(xlim=(0.5, 6.5), ylim=(0, None), xlabel="problem", ylabel="MAE-POST")
    axes.set_xticks(range(1, 7))
    style.label_panel(axes, "error against Bayes posterior")


def evidence(book: Book) -> Figure:
    """Reference log evidence per training pattern by problem and setting; beside it, methods less the reference."""
    known = book.select("experiment4/{problem}/{setting}/reference/{quantity}")
    known = known.pivot(index=["problem", "setting"], columns="quantity", values="value")
    known = known.reindex(columns=["per-pattern", "certified"]).reset_index()
    gaps = book.select("experiment4/{problem}/{setting}/{method}/difference").dropna(subset="value")
    pairs = book.select("experiment4/{setting}/{parameter}")
    pairs = pairs.pivot(index="setting", columns="parameter", values="value")
    looks = _looks([f"S{k}" for k in range(1, 7)])
    shift = dict(zip(looks, np.linspace(-0.33, 0.33, 6), strict=True))
    figure = style.figure(4.9)
    left, right = figure.subplots(1, 2, sharey=True)
    for setting, (color, marker) in looks.items():
        for certified, part in known[known["setting"] == setting].groupby("certified"):
            y = _number(part["problem"]) + shift[setting]
            face = color if certified else "white"
            look = {"color": color, "marker": marker, "markerfacecolor": face, "linestyle": "none"}
            left.plot(part["per-pattern"], y, **look)
    left.axvline(-np.log(2.0), color=style.INK, linewidth=0.8, linestyle="--")
    left.set_xlabel("reference $\\log L / N$ (nats per training pattern)")
    left.set_xlim(right=0.02)
    methods = _looks(["orthant", "ess-gpml", "hmc-gpml", "ep"])
    for place, (method, (color, marker)) in enumerate(methods.items()):
        rows = gaps[(gaps["method"] == method) & gaps["setting"].isin(list(looks))]
        if len(rows):
            y = _number(rows["problem"]) + rows["setting"].map(shift) + 0.035 * (place - 1.5)
            points: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none"}
            right.errorbar(
                rows["value"], y, xerr=rows["se"].fillna(0.0), linewidth=0.7, markersize=3, **points
            )
    right.axvline(0.0, color=style.INK, linewidth=0.8, linestyle="--")
    right.set_xscale("symlog", linthresh=0.1, linscale=0.7)
    right.xaxis.set_major_locator(SymmetricalLogLocator(linthresh=0.1, base=10))
    right.xaxis.set_major_formatter(FuncFormatter(style.plain))
    right.set_xlabel("$\\log L$ less the reference (nats)")
    _rows_of_problems(left, set(known["problem"]), "no reference")
    _rows_of_problems(right, set(gaps["problem"]), "not run")
    right.tick_params(axis="y", left=False)
    handles = [
        handle(rf"$\alpha={row['alpha']:g}$, $\beta={row['beta']:g}$", *looks[str(setting)])
        for setting, row in pairs.iterrows()
        if setting in looks
    ]
    handles.append(handle("not certified", style.GREY, "o", markerfacecolor="white"))
    handles.append(handle(r"$-\log 2$ (coin)", style.INK, linestyle="--"))
    above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.45, 1.0)}
    left.legend(handles=handles, ncols=2, columnspacing=1.0, **above)
    handles = [handle(label("method", m), *look) for m, look in methods.items()]
    right.legend(handles=handles, **above)
    return figure


def _rows_of_problems(axes: Axes, there: set[str], absent: str) -> None:
    """A vertical axis with one row a problem."""
    axes.set_ylim(9.55, 0.45)
    axes.set_yticks(range(1, 10), [label("problem", p) for p in _PROBLEMS])
    axes.grid(visible=False, axis="y")
    for edge in np.arange(1.5, 9.0):
        axes.axhline(edge, color="#dddddd", linewidth=0.5, zorder=0)
    for place, problem in enumerate(_PROBLEMS, 1):
        if problem not in there:
            where = axes.get_yaxis_transform()
            axes.text(
                *(0.5, place, absent), transform=where, ha="center", va="center", color=style.GREY
            )


def accuracy(book: Book) -> Figure:
    """Errors against the reference by method, one point a problem and a bar at their median."""
    looks = _looks(_PROBLEMS)
    measures = {
        "mae-reference": "mean $|p - p_{\\mathrm{ref}}|$",
        "nats": "$|\\log L - \\log L_{\\mathrm{ref}}|$ (nats)",
    }
    frames = {
        name: book.rows(f"experiment4/{{problem}}/certified/{{method}}/{name}") for name in measures
    }
    methods = _ordered(frames["mae-reference"]["method"])
    figure = style.figure(5.4)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, (name, text) in zip(panels, measures.items(), strict=True):
        axes.set_ylabel(text)
        axes.set_xlim(-0.6, max(len(methods), 1) - 0.4)
        axes.set_xticks(range(len(methods)), [label("method", m) for m in methods], rotation=38)
        axes.tick_params(axis="x", rotation=38)
        for text_ in axes.get_xticklabels():
            text_.set(ha="right", rotation_mode="anchor")
        rows = frames[name][(frames[name]["value"] > 0) & frames[name]["problem"].isin(looks)]
        if rows.empty:
            nothing(axes, "no certified reference, or nothing run")
            continue
        axes.set_yscale("log")
        for row in rows.itertuples():
            color, marker = looks[row.problem]
            x = methods.index(row.method) + 0.07 * (int(row.problem[1:]) - 5)
            face = color if row.status == "ok" else "white"
            axes.plot(x, row.value, color=color, marker=marker, markerfacecolor=face)
        for method, middle in rows.groupby("method")["value"].median().items():
            x = methods.index(str(method))
            axes.plot([x - 0.38, x + 0.38], [middle] * 2, color=style.INK, linewidth=1.2)
    own = book.select("experiment4/{problem}/certified/reference/probability-se")["value"]
    if len(own):
        panels[0].axhline(own.median(), color=style.GREY, linestyle="--", linewidth=0.8)
    handles = [handle(label("problem", p), *look) for p, look in looks.items()]
    handles.append(handle("median", style.INK, linestyle="-"))
    handles.append(handle("not all settings", style.GREY, "o", markerfacecolor="white"))
    handles.append(handle("s.e. of the reference", style.GREY, linestyle="--", linewidth=0.8))
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return figure


def seconds(book: Book) -> Figure:
    """CPU seconds by setting relative to setting 1: the paper's methods, and the others."""
    frame = book.select("seconds/{method}/{setting}")
    frame = frame[frame["setting"].str.fullmatch(r"S\d+")]
    pairs = book.select("experiment4/{setting}/{parameter}")
    pairs = pairs.pivot(index="setting", columns="parameter", values="value")
    pairs = pairs.sort_values(["alpha", "beta"], ascending=[False, True]) if len(pairs) else pairs
    frame = frame.assign(place=frame["setting"].map({s: i for i, s in enumerate(pairs.index)}))
    paper = list(_PAPER.values())
    groups = {
        "methods of the paper": [m for m in paper if m in set(frame["method"])],
        "other methods": [m for m in _ordered(frame["method"]) if m not in paper],
    }
    figure = style.figure(3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (text, methods) in zip(panels, groups.items(), strict=True):
        style.label_panel(axes, text)
        axes.axhline(1.0, color=style.INK, linewidth=0.8, linestyle="--")
        axes.set_yscale("log")
        ticks = [f"{row['alpha']:g}, {row['beta']:g}" for _, row in pairs.iterrows()]
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(r"$\alpha$, $\beta$")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(style.plain))
        axes.yaxis.set_minor_formatter(NullFormatter())
        if not methods:
            nothing(axes)
            continue
        handles = _lines(axes, frame.sort_values("place"), methods, gather=methods[0] not in paper)
        where: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.22)}
        axes.legend(handles=handles, ncols=2, columnspacing=1.0, **where)
    panels[0].set_ylabel("CPU seconds / those of setting 1")
    return figure


def _lines(axes: Axes, frame: pd.DataFrame, methods: list[str], *, gather: bool) -> list[Line2D]:
    """One line a method; of many that stay near one, which would hide one another, a grey range."""
    lines = {m: frame[frame["method"] == m] for m in methods}
    flat = [m for m in methods if np.abs(np.log(lines[m]["value"])).max() < np.log(_FLAT)]
    flat = flat if gather and len(flat) > 2 else []
    handles = []
    if flat:
        found = pd.concat([lines[m] for m in flat]).groupby("place")["value"]
        axes.fill_between(list(found.groups), found.min(), found.max(), color=_BAND)
        handles.append(band(f"{len(flat)} methods, within {_FLAT:g}", style.GREY))
    rest = _looks([m for m in methods if m not in flat])
    for place, (method, (color, marker)) in enumerate(rest.items()):
        mine = lines[method]
        x = mine["place"] + 0.05 * (place - len(rest) / 2)
        axes.errorbar(x, mine["value"], mine["se"].fillna(0.0), color=color, marker=marker, lw=0.8)
        handles.append(handle(label("method", method), color, marker, linestyle="-"))
    return handles


def status(book: Book) -> Figure:
    """Which runs of Experiment 4 count: one column a problem and setting, one row a method."""
    rows = book.rows("experiment4/{problem}/{setting}/{method}/error-rate")
    rows = rows[rows["setting"].str.fullmatch(r"S\d+")]
    known = book.select("experiment4/{problem}/{setting}/reference/trivial")
    trivial = known.loc[known["value"] == 1, ["problem", "setting"]]
    methods, settings = _ordered(rows["method"]), sorted(set(rows["setting"]))
    problems = sorted({*_PROBLEMS, *rows["problem"]}, key=lambda name: int(name[1:]))
    width = max(len(settings), 1)
    figure = style.figure(3.6)
    axes = figure.subplots()
    axes.grid(visible=False)
    for (problem, setting, method), group in rows.groupby(["problem", "setting", "method"]):
        x = problems.index(problem) * (width + 0.8) + settings.index(setting)
        left, y = float(x), methods.index(method)
        for said, share in group["status"].value_counts(normalize=True, sort=False).items():
            color = _MAP.get(str(said), style.ORANGE)
            axes.barh(y, 0.92 * share, left=left, height=0.86, color=color, edgecolor="none")
            left += 0.92 * share
    for problem, setting in trivial.itertuples(index=False):
        if setting in settings:
            x = problems.index(problem) * (width + 0.8) + settings.index(setting) + 0.46
            axes.plot(x, -0.75, color=style.INK, marker="v", markersize=3, clip_on=False)
    axes.set_xticks(
        [i * (width + 0.8) + width / 2 for i in range(len(problems))],
        [label("problem", p).split()[0] if int(p[1:]) > 6 else p for p in problems],
    )
    axes.set_yticks(range(len(methods)), [label("method", m) for m in methods])
    axes.set_ylim(len(methods) - 0.4, -0.95)
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    if rows.empty:
        nothing(axes)
    there = set(rows["status"])
    handles = [
        handle(said, color, "s", markersize=7)
        for said, color in _MAP.items()
        if said == "ok" or said in there
    ]
    handles.append(handle(r"$\Sigma=\beta I$ to rounding", style.INK, "v", markersize=3))
    legend(figure, handles, 5)
    return figure
