"""Figures of Experiment 4 and of the benchmark: reliability, accuracy, CPU time."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from recheck.report import style
from recheck.report.book import Book
from studies.atiya2021.figures.common import handle, label, layout, legend, nothing

_PASSED: dict[str, Any] = {
    "color": style.BLUE,
    "marker": "o",
    "markersize": 2.5,
    "linestyle": "none",
}
_FAILED: dict[str, Any] = _PASSED | {
    "color": style.ORANGE,
    "markerfacecolor": "none",
    "markersize": 3.5,
}
_PROBLEMS = tuple(f"P{p}" for p in range(1, 10))
_GROUPS = {
    "synthetic": "synthetic problems",
    "crabs": "Crabs",
    "breast-cancer": "Breast Cancer",
    "usps": "USPS 3 v 5",
}


def _looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour and marker by name."""
    return {
        name: {"color": style.COLOURS[place % 10], "marker": style.MARKERS[place % 10]}
        for place, name in enumerate(names)
    }


def _ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the order of the tables, others after them by name."""
    known = [*layout().order["method"]]
    return sorted(set(methods), key=lambda m: (known.index(m) if m in known else len(known), m))


def reliability(book: Book) -> Figure:
    """Predicted probability against the frequency of class 1."""
    keys = ["group", "method", "bin"]
    template = "reliability/{group}/{method}/{bin}/"
    frame = book.select(template + "{quantity}").pivot(
        index=keys, columns="quantity", values="value"
    )
    frame = frame.reindex(columns=["predicted", "frequency", "patterns", "bayes"])
    frame = frame.join(book.select(template + "frequency").set_index(keys)["se"]).reset_index()
    frame = frame[frame["patterns"] >= 5].sort_values("predicted")
    methods = _looks(["orthant", "control-variables", "ess-gpml", "hmc-gpml", "ep"])
    figure = style.figure(2.6)
    panels = figure.subplots(1, 4, sharey=True)
    panels[0].set_ylabel("frequency of class 1")
    for axes, (group, title) in zip(panels, _GROUPS.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), aspect="equal")
        axes.set_xlabel("predicted $p(y_*=1)$")
        axes.set_title(title)
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


def accuracy(book: Book) -> Figure:
    """Errors against the reference by method, one point a problem and a bar at the median of full points.

    Methods are in order of that median; a name is followed by the number of its full points.
    """
    problems = _looks(_PROBLEMS)
    texts = {
        "mae-reference": "mean $|p - p_{\\mathrm{ref}}|$",
        "nats": "$|\\log L - \\log L_{\\mathrm{ref}}|$ (nats)",
    }
    template = "experiment4/{problem}/certified/{method}/"
    frames = {name: book.rows(template + name) for name in texts}
    # importance sampling with the 64 points of a pseudo-marginal chain is no competitor at equal time
    methods = [m for m in _ordered(frames["mae-reference"]["method"]) if "pseudo" not in m]
    full = frames["mae-reference"][frames["mae-reference"]["status"] == "ok"]
    middles = full.groupby("method")["value"].median()
    methods.sort(key=lambda method: -middles.get(method, np.inf))
    passing = full[full["problem"].isin(problems)].groupby("method")["problem"].nunique()
    names = [f"{label('method', m)}, {passing.get(m, 0)}" for m in methods]
    figure = style.figure(4.0)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, (name, text) in zip(panels, texts.items(), strict=True):
        axes.set_ylabel(text)
        axes.set_xlim(-0.6, max(len(methods), 1) - 0.4)
        turned: dict[str, Any] = {"rotation": 38, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(methods)), names, **turned)
        rows = frames[name][(frames[name]["value"] > 0) & frames[name]["problem"].isin(problems)]
        rows = rows[rows["method"].isin(methods)]
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
        good = rows[rows["status"] == "ok"]
        for method, middle in good.groupby("method")["value"].median().items():
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


#: Methods whose runs report an error of the marginal likelihood, by panel.
_REPORTING = (
    *("orthant", "orthant-adapted", "minimax-tilting", "importance-ep", "best"),
    *("ess-gpml", "hmc-gpml", "ess", "hmc", "importance-laplace"),
)
#: Ends of both axes, in nats; what lies beyond is drawn at the end.
_ENDS = (1e-5, 2e3)


def calibration(book: Book) -> Figure:
    """Error of single runs against the error that they report, one panel a method."""
    template, keys = "calibration/{method}/{problem}/{set}/", ["method", "problem", "set", "run"]
    error, reported = (book.rows(template + name) for name in ("error", "reported"))
    both = error.merge(reported, on=keys, suffixes=("", "_reported"))
    figure = style.figure(3.3)
    panels = figure.subplots(2, 5, sharex=True, sharey=True)
    for axes, method in zip(panels.ravel(), _REPORTING, strict=True):
        axes.set(xscale="log", yscale="log", xlim=_ENDS, ylim=_ENDS)
        axes.set_title(label("method", method), fontsize="small")
        axes.plot(_ENDS, _ENDS, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
        axes.axhline(1.0, color=style.GREY, linewidth=0.8, linestyle=":", zorder=1)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0,), numticks=5))
            axis.set_minor_formatter(NullFormatter())
        own = both[both["method"] == method]
        if own.empty:
            nothing(axes, "not run")
        for good, look in ((True, _PASSED), (False, _FAILED)):
            some = own[(own["status"] == "ok") == good]
            x, y = (some[name].clip(*_ENDS) for name in ("value_reported", "value"))
            axes.plot(x, y, **look)
    panels[1, 2].set_xlabel("reported standard error (nats)")
    for axes in panels[:, 0]:
        axes.set_ylabel("$|\\log\\hat L-\\log L|$ (nats)")
    marks = (("passes its diagnostics", _PASSED), ("fails them", _FAILED))
    handles = [handle(text, **look) for text, look in marks]
    handles.append(handle("error = reported", style.GREY, linestyle="--", linewidth=0.8))
    handles.append(handle("one nat", style.GREY, linestyle=":", linewidth=0.8))
    legend(figure, handles)
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
    methods = _looks(_ordered(points["method"]))
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
            axes.set_title(f"$N={_SIZES[problem]}$, {kernel}")
    for axes in panels[1]:
        axes.set_xlabel("CPU seconds")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean $|p - p_{\\mathrm{ref}}|$")
    legend(
        figure, [handle(label("method", m), **look, linestyle="-") for m, look in methods.items()]
    )
    return figure
