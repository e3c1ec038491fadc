"""Figures of Experiment 4 and of the benchmark: reliability, accuracy, CPU time."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.markers import TICKDOWN, TICKLEFT, TICKRIGHT, TICKUP
from matplotlib.ticker import LogLocator, NullFormatter

from recheck.report import style
from recheck.report.book import Book
from studies.common.figures import METHODS, PASSING, handle, in_order, legend, named, nothing

_PROBLEMS = tuple(f"P{p}" for p in range(1, 10))
_GROUPS = {
    "synthetic": "synthetic problems",
    "crabs": "Crabs",
    "breast-cancer": "Breast Cancer",
    "usps": "USPS 3 v 5",
}
_DASHED: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}


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
    shown = ["orthant", "control-variables", "ess-gpml", "hmc-gpml", "ep"]
    figure = style.figure(2.6)
    panels = figure.subplots(1, 4, sharey=True)
    panels[0].set_ylabel("frequency of class 1")
    for axes, (group, title) in zip(panels, _GROUPS.items(), strict=True):
        axes.plot([0, 1], [0, 1], zorder=1, **_DASHED)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), aspect="equal")
        axes.set_xlabel("predicted $p(y_*=1)$")
        axes.set_title(title)
        part = frame[frame["group"] == group]
        if part.empty:
            nothing(axes, "no predictions")
        for place, method in enumerate(shown):
            mine = part[part["method"] == method].astype({"predicted": float})
            x = mine["predicted"] + 0.008 * (place - 2)
            look = METHODS[method].points | {"markersize": 3.2, "linestyle": "-"}
            axes.errorbar(x, mine["frequency"], mine["se"], linewidth=0.7, **look)
            if group == "synthetic" and method == "orthant":
                axes.plot(mine["predicted"], mine["bayes"], color=style.INK, linewidth=1, zorder=5)
    handles = named({*shown} & {*frame["method"]}, linestyle="-")
    legend(figure, [*handles, handle("mean Bayes posterior", style.INK, linestyle="-")], 3)
    return figure


def accuracy(book: Book) -> Figure:
    """Mean errors of every run against the reference: a row a method, in it a point a problem and a bar at the median.

    A point is hollow where at some setting no run passed its diagnostics. Methods are in order of the median for the
    probabilities, over all problems; a run without an estimate has the largest error.
    """
    texts = {
        "mae-reference": "mean $|p - p_{\\mathrm{ref}}|$",
        "nats": "$|\\log L - \\log L_{\\mathrm{ref}}|$ (nats)",
    }
    template = "experiment4/{problem}/%s/{method}/"
    keys = ["problem", "method"]
    frames = {}
    for name in texts:
        every, passed = (book.rows(template % of + name) for of in ("every-run", "certified"))
        passed = passed.loc[passed["status"] == "ok", keys].assign(passed=True)
        both = every[every["problem"].isin(_PROBLEMS)].merge(passed, "left", keys)
        frames[name] = both.assign(passed=both["passed"].eq(True))
    first = frames["mae-reference"].fillna({"value": np.inf})
    # importance sampling with the 64 points of a pseudo-marginal chain has no look: it is no competitor at equal time
    middles = first.groupby("method")["value"].median()
    methods = sorted(in_order(middles.index), key=lambda method: -middles[method])
    figure = style.figure(1.1 + 0.2 * max(len(methods), 4))
    panels = figure.subplots(1, 2, sharey=True)
    panels[0].set_yticks(range(len(methods)), [METHODS[m].label for m in methods])
    for axes, (name, text) in zip(panels, texts.items(), strict=True):
        axes.set(xlabel=text, xscale="log", ylim=(len(methods) - 0.4, -0.6))
        rows = frames[name][frames[name]["method"].isin(methods)]
        if rows.empty:
            nothing(axes, "no certified reference, or nothing run")
        across = axes.get_yaxis_transform()
        for row in rows.itertuples():
            look = METHODS[row.method]
            y = methods.index(row.method) + 0.06 * (int(row.problem[1:]) - 5)
            points = look.points if row.passed else look.hollow
            if row.value > 0:
                axes.plot(row.value, y, **points)
            else:
                axes.plot(1.0, y, **look.points | {"marker": "x"}, transform=across, clip_on=False)
        for method, own in rows.fillna({"value": np.inf}).groupby("method")["value"]:
            place, middle = methods.index(str(method)), own.median()
            axes.plot([middle] * 2, [place - 0.4, place + 0.4], color=style.INK, linewidth=1.4)
    handles = [*PASSING, handle("no estimate", style.INK, marker="x")]
    handles.append(handle("median problem", style.INK, linestyle="-"))
    for axes, name in zip(panels, ("probability", "log-evidence"), strict=True):
        own = book.select(f"experiment4/{{problem}}/certified/reference/{name}-se")["value"]
        if len(own):
            axes.axvline(own.median(), **_DASHED)
    if len(own):
        handles.append(handle("s.e. of the reference", **_DASHED))
    legend(figure, handles, 3)
    return figure


#: Methods whose runs report an error of the marginal likelihood, by panel.
_REPORTING = (
    *("orthant", "orthant-adapted", "minimax-tilting", "best"),
    *("hmc-gpml", "ess", "hmc", "importance-ep"),
)
#: Ends of both axes, in nats. What lies beyond is at the end, with a stroke outwards.
_ENDS = (1e-5, 2e3)
_STROKES = (TICKLEFT, TICKRIGHT, TICKDOWN, TICKUP)


def calibration(book: Book) -> Figure:
    """Error of single runs against the error that they report, one panel a method."""
    template, keys = "calibration/{method}/{problem}/{set}/", ["method", "problem", "set", "run"]
    error, reported = (book.rows(template + name) for name in ("error", "reported"))
    both = error.merge(reported, on=keys, suffixes=("", "_reported"))
    figure = style.figure(3.4)
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    for axes, method in zip(panels.ravel(), _REPORTING, strict=True):
        look = METHODS[method]
        axes.set(xscale="log", yscale="log", xlim=_ENDS, ylim=_ENDS)
        axes.set_title(look.label)
        axes.plot(_ENDS, _ENDS, zorder=1, **_DASHED)
        axes.axhline(1.0, color=style.GREY, linewidth=0.8, linestyle=":", zorder=1)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks([1e-4, 1e-2, 1.0, 1e2])
            axis.set_minor_formatter(NullFormatter())
        own = both[both["method"] == method]
        if own.empty:
            nothing(axes, "not run")
        for good, points in ((True, look.points), (False, look.hollow)):
            some = own[(own["status"] == "ok") == good]
            x, y = (some[name].clip(*_ENDS) for name in ("value_reported", "value"))
            beyond = [x == _ENDS[0], x == _ENDS[1], y == _ENDS[0], y == _ENDS[1]]
            looks = [points | {"markersize": 3.2, "markeredgewidth": 0.7}]
            looks += [points | {"marker": m, "markersize": 5.0, "zorder": 1} for m in _STROKES]
            for drawn, place in zip(looks, [x.notna(), *beyond], strict=True):
                if place.any():  # the layout cannot place nothing
                    axes.plot(x[place], y[place], clip_on=False, **drawn)
    for axes in panels[1]:
        axes.set_xlabel("reported s.e. (nats)")
    for axes in panels[:, 0]:
        axes.set_ylabel("$|\\log\\hat L-\\log L|$ (nats)")
    handles = [*PASSING, handle("beyond the frame", style.INK, marker=TICKDOWN)]
    handles.append(handle("error = reported", **_DASHED))
    handles.append(handle("one nat", style.GREY, linestyle=":", linewidth=0.8))
    legend(figure, handles, 5)
    return figure


#: Panels of the benchmark: problems by their training patterns, and settings with a smooth and a rough kernel.
_SIZES = {"P1": 50, "P2": 200, "P9": 750, "P6": 1000}
_ROUGHNESS = {
    "smooth": dict.fromkeys(_SIZES, "S2") | {"P9": "S1"},
    "rough": dict.fromkeys(_SIZES, "S6") | {"P9": "S3"},
}


def benchmark(book: Book) -> Figure:
    """Errors of probabilities against CPU seconds by method, one panel a problem and kernel; hollow if a run failed."""
    rows = book.rows("benchmark/{problem}/{setting}/{method}/{part}/{quantity}")
    rows = rows[rows["value"] > 0].assign(passed=rows["status"] == "ok")
    keys = ["problem", "setting", "method", "part"]
    means = rows.assign(value=np.log(rows["value"])).groupby([*keys, "quantity"])["value"].mean()
    points = np.exp(means.unstack()).reindex(columns=["seconds", "mae"]).dropna()
    points = points.join(rows.groupby(keys)["passed"].all()).reset_index()
    figure = style.figure(5.0)
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    for line, (kernel, settings) in zip(panels, _ROUGHNESS.items(), strict=True):
        for axes, (problem, setting) in zip(line, settings.items(), strict=True):
            own = points[(points["problem"] == problem) & (points["setting"] == setting)]
            axes.set(xscale="log", yscale="log")
            axes.xaxis.set_major_locator(LogLocator(numticks=4))
            axes.xaxis.set_minor_formatter(NullFormatter())
            for method in in_order(own["method"]):
                curve = own[own["method"] == method].sort_values("seconds")
                look = METHODS[method]
                axes.plot(curve["seconds"], curve["mae"], color=look.color, linewidth=0.8)
                for passed, mark in ((True, look.points), (False, look.hollow)):
                    some = curve[curve["passed"] == passed]
                    axes.plot(some["seconds"], some["mae"], **mark)
            if own.empty:
                nothing(axes, "not run")
            axes.set_title(f"$N={_SIZES[problem]}$, {kernel}")
    for axes in panels[1]:
        axes.set_xlabel("CPU seconds")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean $|p - p_{\\mathrm{ref}}|$")
    legend(figure, [*named(points["method"], linestyle="-"), *PASSING])
    return figure
