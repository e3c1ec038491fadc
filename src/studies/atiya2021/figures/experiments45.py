"""Figures of Experiments 4 and 5 and of the benchmark: reliability, evidence, accuracy, CPU time, hyperparameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from recheck import style
from recheck.book import Book
from studies.atiya2021.figures import common
from studies.atiya2021.figures.common import handle, label, legend, looks, nothing, table

_PROBLEMS = tuple(f"P{p}" for p in range(1, 10))
_GROUPS = {
    "synthetic": "synthetic problems",
    "crabs": "Crabs",
    "breast-cancer": "Breast Cancer",
    "usps": "USPS 3 v 5",
}


def reliability(book: Book) -> Figure:
    """Predicted probability against the frequency of class 1."""
    keys = ["group", "method", "bin"]
    template = "reliability/{group}/{method}/{bin}/"
    frame = table(book, template + "{quantity}", keys, "quantity")
    frame = frame.reindex(columns=["predicted", "frequency", "patterns", "bayes"])
    frame = frame.join(book.select(template + "frequency").set_index(keys)["se"]).reset_index()
    frame = frame[frame["patterns"] >= 5].sort_values("predicted")
    methods = looks(["orthant", "control-variables", "ess-gpml", "hmc-gpml", "ep"])
    figure = style.figure(2.6)
    panels = figure.subplots(1, 4, sharey=True)
    panels[0].set_ylabel("frequency of class 1")
    for axes, (group, title) in zip(panels, _GROUPS.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), aspect="equal")
        axes.set_xlabel("predicted $p(y_*=1)$")
        style.label_panel(axes, title)
        part = frame[frame["group"] == group]
        if part.empty:
            nothing(axes, "no predictions")
        for place, (method, look) in enumerate(methods.items()):
            mine = part[part["method"] == method].astype({"predicted": float})
            x = mine["predicted"] + 0.008 * (place - 2)
            axes.errorbar(x, mine["frequency"], mine["se"], markersize=3.2, linewidth=0.7, **look)
            if group == "synthetic" and method == "orthant":
                axes.plot(mine["predicted"], mine["bayes"], color=style.INK, linewidth=1, zorder=5)
    handles = [handle(label("method", m), **look, linestyle="-") for m, look in methods.items()]
    legend(figure, [*handles, handle("mean Bayes posterior", style.INK, linestyle="-")], 3)
    return figure


def evidence(book: Book) -> Figure:
    """Reference log evidence per training pattern by problem and setting; beside it, methods less the reference."""
    template = "experiment4/P{problem}/{setting}/"
    known = table(book, template + "reference/{quantity}", ["problem", "setting"], "quantity")
    known = known.reindex(columns=["per-pattern", "certified"]).reset_index()
    gaps = book.select(template + "{method}/difference").dropna(subset="value")
    settings = looks([f"S{k}" for k in range(1, 7)])
    shift = dict(zip(settings, np.linspace(-0.33, 0.33, 6), strict=True))
    gaps = gaps[gaps["setting"].isin(list(settings))]
    for frame in (known, gaps):
        frame["row"] = frame["problem"].astype(int) + frame["setting"].map(shift)
    figure = style.figure(4.9)
    left, right = figure.subplots(1, 2, sharey=True)
    for (setting, certified), part in known.groupby(["setting", "certified"]):
        look = settings[str(setting)] | {"linestyle": "none"}
        face = look["color"] if certified else "white"
        left.plot(part["per-pattern"], part["row"], markerfacecolor=face, **look)
    dashed: dict[str, Any] = {"color": style.INK, "linestyle": "--"}
    left.axvline(-math.log(2.0), linewidth=0.8, **dashed)
    left.set_xlabel("reference $\\log L / N$ (nats per training pattern)")
    left.set_xlim(right=0.02)
    methods = looks(["orthant", "ess-gpml", "hmc-gpml", "ep"])
    for place, (method, look) in enumerate(methods.items()):
        rows = gaps[gaps["method"] == method]
        y, bars = rows["row"] + 0.035 * (place - 1.5), {"linewidth": 0.7, "markersize": 3}
        right.errorbar(
            rows["value"], y, xerr=rows["se"].fillna(0.0), linestyle="none", **bars, **look
        )
    right.axvline(0.0, linewidth=0.8, **dashed)
    right.set_xscale("symlog", linthresh=0.1, linscale=0.7)
    right.xaxis.set_major_locator(SymmetricalLogLocator(linthresh=0.1, base=10))
    right.xaxis.set_major_formatter(FuncFormatter(style.plain))
    right.set_xlabel("$\\log L$ less the reference (nats)")
    _rows_of_problems(left, set(known["problem"]), "no reference")
    _rows_of_problems(right, set(gaps["problem"]), "not run")
    right.tick_params(axis="y", left=False)
    pairs = table(book, "experiment4/{setting}/{parameter}", "setting", "parameter")
    handles = [
        handle(rf"$\alpha={row['alpha']:g}$, $\beta={row['beta']:g}$", **settings[str(setting)])
        for setting, row in pairs.iterrows()
        if setting in settings
    ]
    handles.append(handle("not certified", style.GREY, marker="o", markerfacecolor="white"))
    handles.append(handle(r"$-\log 2$ (coin)", **dashed))
    above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.45, 1.0)}
    left.legend(handles=handles, ncols=2, columnspacing=1.0, **above)
    right.legend(
        handles=[handle(label("method", m), **look) for m, look in methods.items()], **above
    )
    return figure


def _rows_of_problems(axes: Axes, there: set[str], absent: str) -> None:
    """A vertical axis with one row a problem."""
    axes.set_ylim(9.55, 0.45)
    axes.set_yticks(range(1, 10), [label("problem", p) for p in _PROBLEMS])
    axes.grid(visible=False, axis="y")
    for place in range(1, 10):
        axes.axhline(place + 0.5, color="#dddddd", linewidth=0.5, zorder=0)
        if str(place) not in there:
            where: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "color": style.GREY}
            axes.text(0.5, place, absent, ha="center", va="center", **where)


def accuracy(book: Book) -> Figure:
    """Errors against the reference by method, one point a problem and a bar at their median."""
    problems = looks(_PROBLEMS)
    texts = {
        "mae-reference": "mean $|p - p_{\\mathrm{ref}}|$",
        "nats": "$|\\log L - \\log L_{\\mathrm{ref}}|$ (nats)",
    }
    template = "experiment4/{problem}/certified/{method}/"
    frames = {name: book.rows(template + name) for name in texts}
    methods = common.ordered(frames["mae-reference"]["method"])
    figure = style.figure(5.4)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, (name, text) in zip(panels, texts.items(), strict=True):
        axes.set_ylabel(text)
        axes.set_xlim(-0.6, max(len(methods), 1) - 0.4)
        turned: dict[str, Any] = {"rotation": 38, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(methods)), [label("method", m) for m in methods], **turned)
        rows = frames[name][(frames[name]["value"] > 0) & frames[name]["problem"].isin(problems)]
        if rows.empty:
            nothing(axes, "no certified reference, or nothing run")
            continue
        axes.set_yscale("log")
        for row in rows.itertuples():
            look, x = problems[row.problem], methods.index(row.method)
            face = look["color"] if row.status == "ok" else "white"
            axes.plot(
                x + 0.07 * (int(row.problem[1:]) - 5), row.value, markerfacecolor=face, **look
            )
        for method, middle in rows.groupby("method")["value"].median().items():
            x = methods.index(str(method))
            axes.plot([x - 0.38, x + 0.38], [middle] * 2, color=style.INK, linewidth=1.2)
    own = book.select("experiment4/{problem}/certified/reference/probability-se")["value"]
    dashed: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}
    if len(own):
        panels[0].axhline(own.median(), **dashed)
    handles = [handle(label("problem", p), **look) for p, look in problems.items()]
    handles.append(handle("median", style.INK, linestyle="-"))
    handles.append(handle("not all settings", style.GREY, marker="o", markerfacecolor="white"))
    handles.append(handle("s.e. of the reference", **dashed))
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return figure


#: Panels of the benchmark: problems by their training patterns, and settings with a smooth and a rough kernel.
_SIZES = {"P1": 50, "P2": 200, "P9": 750, "P6": 1000}
_ROUGHNESS = {
    "smooth": dict.fromkeys(_SIZES, "S2"),
    "rough": dict.fromkeys(_SIZES, "S6") | {"P9": "S3"},
}


def benchmark(book: Book) -> Figure:
    """Errors of probabilities against CPU seconds by method, one panel a problem and kernel."""
    rows = book.rows("benchmark/{problem}/{setting}/{method}/{part}/{quantity}")
    rows = rows[(rows["status"] == "ok") & (rows["value"] > 0)]
    keys = ["problem", "setting", "method", "part"]
    means = rows.assign(value=np.log(rows["value"])).groupby([*keys, "quantity"])["value"].mean()
    points = np.exp(means.unstack()).reindex(columns=["seconds", "mae"]).dropna().reset_index()
    methods = looks(common.ordered(points["method"]))
    figure = style.figure(5.0)
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    for line, (kernel, settings) in zip(panels, _ROUGHNESS.items(), strict=True):
        for axes, (problem, setting) in zip(line, settings.items(), strict=True):
            own = points[(points["problem"] == problem) & (points["setting"] == setting)]
            axes.set(xscale="log", yscale="log")
            for method, curve in own.sort_values("seconds").groupby("method"):
                look = methods[str(method)] | {"markersize": 3, "linewidth": 0.8}
                axes.plot(curve["seconds"], curve["mae"], **look)
            if own.empty:
                nothing(axes, "not run")
            style.label_panel(axes, f"$N={_SIZES[problem]}$, {kernel}")
    for axes in panels[1]:
        axes.set_xlabel("CPU seconds")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean $|p - p_{\\mathrm{ref}}|$")
    legend(
        figure, [handle(label("method", m), **look, linestyle="-") for m, look in methods.items()]
    )
    return figure


_GREEN = "#009e73"


def posterior(book: Book) -> Figure:
    """Posterior draws of log alpha and log beta, the settings of Experiment 4 and the tuned values on top."""
    draws = book.rows("experiment5/{problem}/{method}/log-{parameter}-draws")
    problems = sorted(set(draws["problem"]), key=lambda name: int(name[1:]))
    columns = min(max(len(problems), 1), 3 if len(problems) > 4 else 2)
    rows = max(1, math.ceil(len(problems) / columns))
    figure = style.figure(0.6 + 2.45 * rows)
    panels = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axes in panels[max(len(problems), 1) :]:
        axes.set_axis_off()
    if not problems:
        nothing(panels[0])
    for axes, problem in zip(panels, problems, strict=False):
        _panel(axes, book, problem, draws[draws["problem"] == problem])
    handles = [
        handle("posterior draws", style.BLUE, marker="."),
        handle("means of all methods", style.INK, marker=".", linestyle="-"),
        handle("settings of Experiment 4", style.ORANGE, marker="s"),
        handle("tuned: most evidence", _GREEN, marker="X"),
    ]
    legend(figure, handles)
    return figure


def _panel(axes: Axes, book: Book, problem: str, draws: pd.DataFrame) -> None:
    wide = draws.pivot(index="run", columns="parameter", values="value")
    converged = (draws["status"] == "ok").all()
    look: dict[str, Any] = {"marker": ".", "linestyle": "none"}
    color = style.BLUE if converged else style.GREY
    small: dict[str, Any] = {"markersize": 4, "markeredgewidth": 0, "alpha": 0.45, "zorder": 1}
    axes.plot(wide["alpha"], wide["beta"], color=color, **look, **small)
    title = f"{label('problem', problem)}: {label('method', draws['method'].iloc[0])}"
    style.label_panel(axes, title + ("" if converged else " (not converged)"))
    alpha, beta = (
        book.select(f"experiment5/{problem}/{{method}}/log-{name}-mean").set_index("method")
        for name in ("alpha", "beta")
    )
    known = alpha.merge(beta, on="method", suffixes=("", "_beta")).dropna(
        subset=["value", "value_beta"]
    )
    look |= {"color": style.INK, "markersize": 3, "linewidth": 0.6, "zorder": 3}
    axes.errorbar(known["value"], known["value_beta"], known["se_beta"], known["se"], **look)
    pairs = table(book, "experiment4/{setting}/{parameter}", "setting", "parameter")
    for setting, row in pairs.iterrows():
        place = math.log(row["alpha"]), math.log(row["beta"])
        axes.plot(*place, color=style.ORANGE, marker="s", zorder=4)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.7}
        text: dict[str, Any] = {"xytext": (4, 2), "textcoords": "offset points", "fontsize": 8}
        axes.annotate(str(setting)[1:], place, color=style.ORANGE, zorder=4, bbox=box, **text)
    chosen = book.select(f"tuning/{problem}/chosen/{{quantity}}").set_index("quantity")["value"]
    if len(chosen) == 2:
        place = chosen["log-alpha"], chosen["log-beta"]
        axes.plot(*place, color=_GREEN, marker="X", markersize=7, zorder=5)
    axes.set(xlabel=r"$\log\alpha$", ylabel=r"$\log\beta$")
