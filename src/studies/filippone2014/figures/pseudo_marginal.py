"""Figure 2 redrawn, and two figures of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recheck.report import style
from recheck.report.book import Book
from studies.common.figures import METHODS, handle, nothing

_METHODS = ("laplace", "ep")
_SCHEMES = (*_METHODS, "ancillary", "surrogate")
_DATA = {
    "pima": "Pima",
    "breast": "Breast",
    "ionosphere": "Ionosphere",
    "sonar": "Sonar",
    "crabs": "Crabs",
}
_OTHERS = ("fitted", "mode", "svm")


def curves(book: Book) -> Figure:
    """Estimates over log tau: a row a number of cases, a column a method; fewest and most samples in each panel."""
    rows = book.select("curve/{method}/{n}/{s}/x{x}/{quantity}").astype({"x": float})
    sizes = sorted(rows["n"].unique(), key=lambda n: int(n[1:])) or ["n50"]
    figure = style.figure(1.2 + 1.7 * len(sizes))
    panels = figure.subplots(len(sizes), 2, sharex=True, squeeze=False)
    for line, n in zip(panels, sizes, strict=True):
        for axes, method in zip(line, _METHODS, strict=True):
            axes.set_title(f"{METHODS[method].label}, $n={n[1:]}$")
            own = rows[(rows["n"] == n) & (rows["method"] == method)]
            if own.empty:
                nothing(axes)
                continue
            numbers = sorted(own["s"].unique(), key=lambda s: int(s[1:]))
            # bands of the numbers between would hide these
            for s, colour in {numbers[0]: style.ORANGE, numbers[-1]: style.BLUE}.items():
                table = own[own["s"] == s].pivot(index="x", columns="quantity", values="value")
                label = "1 sample" if s == "s1" else f"{s[1:]} samples"
                axes.plot(table.index, table["mean"], color=colour, label=label)
                axes.fill_between(table.index, table["low"], table["high"], color=colour, alpha=0.2)
            exact = own[own["quantity"] == "exact"].drop_duplicates("x")
            axes.plot(exact["x"], exact["value"], ".", color=style.INK, label="exact")
            # what is far below the maximum no chain sees
            top = exact["value"].max()
            axes.set_ylim(top - 12, top + 4)
        line[0].set_ylabel("log estimate")
    for axes in panels[-1]:
        axes.set_xlabel(r"$\log\tau$")
    handles, labels = panels[0][0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def efficiency(book: Book) -> Figure:
    """Effective samples against operations: a column a kernel."""
    figure = style.figure(3.1)
    panels = figure.subplots(1, 2, sharey=True)
    rows = book.select("table1/{kernel}/{n}/{d}/{scheme}/{quantity}")
    rows = rows[rows["reading"].isin(["", "counts=source"])]
    table = rows.pivot_table(
        index=["kernel", "n", "d", "scheme"], columns="quantity", values="value"
    ).reset_index()
    markers = _markers(table) if len(table) else {}
    for axes, (kernel, title) in zip(
        panels, {"isotropic": "one length scale", "ard": "ARD"}.items(), strict=True
    ):
        axes.set_title(title)
        own = table[table["kernel"] == kernel] if len(table) else table
        if own.empty:
            nothing(axes)
        else:
            _panel(axes, own, markers)
        axes.set(xscale="log", yscale="log", xlabel="cubic operations an iteration")
    panels[0].set_ylabel("effective samples, % of draws")
    if markers:
        ran = {scheme.partition("-")[0] for scheme in table["scheme"]}
        looks = [METHODS[scheme] for scheme in _SCHEMES if scheme in ran]
        handles = [handle(look.label, look.color, linestyle="-") for look in looks]
        for (n, d), marker in markers.items():
            handles.append(handle(f"$n={n[1:]}$, $d={d[1:]}$", style.INK, marker=marker))
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _markers(table: pd.DataFrame) -> dict[tuple[str, str], str]:
    """A marker for each number of cases and of inputs."""
    problems = sorted({*zip(table["n"], table["d"], strict=True)}, key=lambda nd: _sizes(*nd))
    return dict(zip(problems, "os^Dv<>P", strict=False))


def _sizes(*names: str) -> list[int]:
    return [int(name[1:]) for name in names]


def _panel(axes: Axes, table: pd.DataFrame, markers: Mapping[tuple[str, str], str]) -> None:
    """A line a method and problem."""
    for (n, d), own in table.groupby(["n", "d"]):
        for scheme in _SCHEMES:
            some = own[own["scheme"].str.partition("-")[0] == scheme]
            if some.empty:  # not run on this problem
                continue
            some = some.assign(samples=some["scheme"].str.partition("-")[2].replace("", "0"))
            some = some.astype({"samples": int}).sort_values("samples")
            axes.plot(
                some["operations"], some["ess"], f"{markers[n, d]}-", color=METHODS[scheme].color
            )


def losses(book: Book) -> Figure:
    """Log losses of the other methods, less that of predictions integrated by quadrature, over data sets and sizes."""
    figure = style.figure(4.2)
    axes = figure.add_subplot(xlabel="data set, training cases", ylabel="excess log loss (nats)")
    rows = book.rows("prediction/{data}/{n}/{method}/log-loss")
    if rows.empty:
        nothing(axes)
        return figure
    table = rows.pivot_table(index=["data", "n", "unit"], columns="method", values="value")
    order = [*_DATA]
    places = sorted(
        {key[:2] for key in table.index}, key=lambda key: (order.index(key[0]), _sizes(key[1]))
    )
    for shift, method in enumerate(_OTHERS):
        found = [(table.loc[place][method] - table.loc[place]["quadrature"]) for place in places]
        means = [one.mean() for one in found]
        bars = [one.std(ddof=1) / np.sqrt(len(one)) if len(one) > 1 else 0.0 for one in found]
        at = np.arange(len(places)) + 0.2 * (shift - 1)
        look = METHODS[method]
        axes.errorbar(at, means, bars, label=look.label, **look.points)
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    turned: dict[str, Any] = {"rotation": 38, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(places)), [f"{_DATA[data]}, {n[1:]}" for data, n in places], **turned)
    figure.legend(loc="outside lower center", ncols=3)
    return figure
