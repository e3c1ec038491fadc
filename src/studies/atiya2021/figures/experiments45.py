"""Figures of Experiments 4 and 5: reliability, evidence, accuracy, and the posterior of the hyperparameters."""

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
from studies.atiya2021.figures.common import (
    handle,
    label,
    legend,
    looks,
    nothing,
    ordered,
    published,
    table,
)

#: The paper's methods by the names that it prints.
_PAPER = {"new": "orthant", "titsias": "control-variables", "ess": "ess-gpml", "hmc": "hmc-gpml"}
_BAND = "#e0e0e0"
_PROBLEMS = tuple(f"P{p}" for p in range(1, 10))
_GROUPS = {
    "synthetic": "synthetic problems",
    "crabs": "Crabs",
    "breast-cancer": "Breast Cancer",
    "usps": "USPS 3 v 5",
}


def reliability(book: Book) -> Figure:
    """Predicted probability against the frequency of class 1, and the error against the Bayes posterior."""
    keys, template = ["group", "method", "bin"], "reliability/{group}/{method}/{bin}/"
    frame = table(book, template + "{quantity}", keys, "quantity")
    frame = frame.reindex(columns=["predicted", "frequency", "patterns", "bayes"])
    frame = frame.join(book.select(template + "frequency").set_index(keys)["se"]).reset_index()
    frame = frame[frame["patterns"] >= 5].sort_values("predicted")
    methods = looks([*_PAPER.values(), "ep"])
    figure = style.figure(4.3)
    panels = figure.subplots(2, 3).ravel()
    for axes, (group, title) in zip(panels, _GROUPS.items(), strict=False):
        axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), aspect="equal")
        axes.set(xlabel="predicted $p(y_*=1)$", ylabel="frequency of class 1")
        style.label_panel(axes, title)
        part = frame[frame["group"] == group]
        if part.empty:
            nothing(axes, "no predictions")
        for place, (method, (color, marker)) in enumerate(methods.items()):
            mine = part[part["method"] == method].astype({"predicted": float})
            x, look = mine["predicted"] + 0.008 * (place - 2), {"color": color, "marker": marker}
            axes.errorbar(x, mine["frequency"], mine["se"], markersize=3.2, linewidth=0.7, **look)
            if group == "synthetic" and method == "orthant":
                axes.plot(mine["predicted"], mine["bayes"], color=style.INK, linewidth=1, zorder=5)
    _mae_post(panels[4], book, methods)
    panels[5].set_axis_off()
    handles = [handle(label("method", m), *look, linestyle="-") for m, look in methods.items()]
    handles += [
        handle("variance counted twice", style.GREY, "o", markerfacecolor="white"),
        handle("mean Bayes posterior", style.INK, linestyle="-"),
        handle("published, four methods", style.COLOURS[8], "_", linestyle="-"),
        handle("range over data sets", _BAND, linestyle="-", linewidth=6),
    ]
    panels[5].legend(handles=handles, loc="center")
    return figure


def _mae_post(axes: Axes, book: Book, methods: dict[str, tuple[str, str]]) -> None:
    """MAE-POST by problem: published, ours (variance counted once and twice), and how far apart data sets are."""
    ends = table(book, "mae-post/data-sets/P{problem}/{end}", "problem", "end")
    for problem, row in ends.iterrows():
        height = row["high"] - row["low"]
        axes.bar(int(str(problem)), height, 0.8, row["low"], color=_BAND, zorder=0.5)
    theirs = published(book, r"table4/P(?P<problem>\d)/(?P<method>\w+)/mae-post$")
    # the published four are hardly apart: four markers would hide one another
    for problem, found in theirs.groupby("problem")["value"]:
        x = [int(str(problem)) - 0.3] * 2
        axes.plot(x, [found.min(), found.max()], color=style.COLOURS[8], marker="_", linewidth=1.4)
    for place, (name, method) in enumerate(_PAPER.items()):
        color, marker = methods[method]
        for twice in (False, True):
            reading = "variance=twice" if twice else ""
            ours = {k: book.pick(f"table4/P{k}/{name}/mae-post", reading) for k in range(1, 7)}
            mine = pd.DataFrame.from_dict({k: row for k, row in ours.items() if row}, "index")
            if mine.empty or (twice and method not in ("ess-gpml", "hmc-gpml")):
                continue
            x = mine.index - 0.12 + 0.12 * place + 0.06 * twice
            look: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none"}
            look |= {"markersize": 3, "markerfacecolor": "white" if twice else color}
            axes.errorbar(x, mine["value"], yerr=mine["se"].fillna(0.0), **look)
    axes.set(xlim=(0.5, 6.5), ylim=(0, None), xlabel="problem", ylabel="MAE-POST")
    axes.set_xticks(range(1, 7))
    style.label_panel(axes, "error against Bayes posterior")


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
    look: dict[str, Any] = {"linestyle": "none"}
    for setting, (color, marker) in settings.items():
        for certified, part in known[known["setting"] == setting].groupby("certified"):
            face = {"markerfacecolor": color if certified else "white"}
            left.plot(part["per-pattern"], part["row"], color=color, marker=marker, **face, **look)
    left.axvline(-np.log(2.0), color=style.INK, linewidth=0.8, linestyle="--")
    left.set_xlabel("reference $\\log L / N$ (nats per training pattern)")
    left.set_xlim(right=0.02)
    methods = looks(["orthant", "ess-gpml", "hmc-gpml", "ep"])
    look |= {"linewidth": 0.7, "markersize": 3}
    for place, (method, (color, marker)) in enumerate(methods.items()):
        rows = gaps[gaps["method"] == method]
        y, se = rows["row"] + 0.035 * (place - 1.5), rows["se"].fillna(0.0)
        right.errorbar(rows["value"], y, xerr=se, color=color, marker=marker, **look)
    right.axvline(0.0, color=style.INK, linewidth=0.8, linestyle="--")
    right.set_xscale("symlog", linthresh=0.1, linscale=0.7)
    right.xaxis.set_major_locator(SymmetricalLogLocator(linthresh=0.1, base=10))
    right.xaxis.set_major_formatter(FuncFormatter(style.plain))
    right.set_xlabel("$\\log L$ less the reference (nats)")
    _rows_of_problems(left, set(known["problem"]), "no reference")
    _rows_of_problems(right, set(gaps["problem"]), "not run")
    right.tick_params(axis="y", left=False)
    pairs = table(book, "experiment4/{setting}/{parameter}", "setting", "parameter")
    handles = [
        handle(rf"$\alpha={row['alpha']:g}$, $\beta={row['beta']:g}$", *settings[str(setting)])
        for setting, row in pairs.iterrows()
        if setting in settings
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
    methods = ordered(frames["mae-reference"]["method"])
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
            color, marker = problems[row.problem]
            x = methods.index(row.method) + 0.07 * (int(row.problem[1:]) - 5)
            face = color if row.status == "ok" else "white"
            axes.plot(x, row.value, color=color, marker=marker, markerfacecolor=face)
        for method, middle in rows.groupby("method")["value"].median().items():
            x = methods.index(str(method))
            axes.plot([x - 0.38, x + 0.38], [middle] * 2, color=style.INK, linewidth=1.2)
    own = book.select("experiment4/{problem}/certified/reference/probability-se")["value"]
    dashed: dict[str, Any] = {"linestyle": "--", "linewidth": 0.8}
    if len(own):
        panels[0].axhline(own.median(), color=style.GREY, **dashed)
    handles = [handle(label("problem", p), *look) for p, look in problems.items()]
    handles.append(handle("median", style.INK, linestyle="-"))
    handles.append(handle("not all settings", style.GREY, "o", markerfacecolor="white"))
    handles.append(handle("s.e. of the reference", style.GREY, **dashed))
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
    methods = looks(ordered(points["method"]))
    figure = style.figure(5.0)
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    for line, (kernel, settings) in zip(panels, _ROUGHNESS.items(), strict=True):
        for axes, (problem, setting) in zip(line, settings.items(), strict=True):
            own = points[(points["problem"] == problem) & (points["setting"] == setting)]
            axes.set(xscale="log", yscale="log")
            for method, curve in own.groupby("method"):
                color, marker = methods[str(method)]
                curve = curve.sort_values("seconds")
                look = {"color": color, "marker": marker, "markersize": 3, "linewidth": 0.8}
                axes.plot(curve["seconds"], curve["mae"], **look)
            if own.empty:
                nothing(axes, "not run")
            style.label_panel(axes, f"$N={_SIZES[problem]}$, {kernel}")
    for axes in panels[1]:
        axes.set_xlabel("CPU seconds")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean $|p - p_{\\mathrm{ref}}|$")
    handles = [handle(label("method", m), *look, linestyle="-") for m, look in methods.items()]
    if handles:
        legend(figure, handles, 4)
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
        handle("posterior draws", style.BLUE, "."),
        handle("means of all methods", style.INK, ".", linestyle="-"),
        handle("settings of Experiment 4", style.ORANGE, "s"),
        handle("tuned: most evidence", _GREEN, "X"),
    ]
    legend(figure, handles, 4)
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
