"""The figures of the typeset paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, SymmetricalLogLocator

from gpcmc.audit import METHODS, ResultFiles, read_long, side_by_side
from gpcmc.audit import findings as found
from gpcmc.audit.estimates import absolute_percentage_error, data_set_spread, paper_scheme
from gpcmc.audit.experiment4 import (
    NAMES,
    NINE,
    PAPER,
    SAMPLER,
    all_cells,
    by_problem,
    cells_over,
    data_set_range,
    is_trivial,
    label,
    methods_in_order,
    reliability,
    seconds_by_set,
)
from gpcmc.experiments.classification import EXTINCT, NO_DATA, REAL
from gpcmc.inference.interface import NOT_CONVERGED, OK, STOPPED, UNTRUSTED
from gpcmc.report import style
from gpcmc.report.tables import TABLES

__all__ = ["FIGURES"]

SAMPLES = "number of samples $M$"
CHANCE = -math.log(2.0)


def _note(axes: Axes, text: str = "ours: not run at this scale") -> None:
    """Say in an otherwise silent panel why it is silent, clear of the published points."""
    axes.text(
        *(0.04, 0.04, text),
        transform=axes.transAxes,
        fontsize=7.5,
        color=style.GREY,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )


def _log_axes(axes: Axes, limits: tuple[float, float] = (7e3, 4.3e6)) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(style.plain))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _slope(axes: Axes, samples: np.ndarray, values: np.ndarray) -> None:
    """The line through the values' level (mean of log value + log M / 2) that falls as M^-1/2."""
    level = np.exp(np.mean(np.log(values) + 0.5 * np.log(samples)))
    ends = np.array([8e3, 3.8e6])
    axes.plot(ends, level * ends**-0.5, color=style.GREY, linestyle="--", linewidth=0.8, zorder=1)


def _legend(drawn: Figure, handles: Sequence[object], columns: int) -> None:
    drawn.legend(handles=handles, loc="outside lower center", ncols=columns)


def _points(color: str, marker: str, text: str, **extra: Any) -> Line2D:
    return Line2D([], [], color=color, marker=marker, linestyle="none", label=text, **extra)


def _ours_and_published() -> list[object]:
    return [
        _points(style.BLUE, "o", "ours"),
        _points(style.ORANGE, "s", "published", markerfacecolor="none"),
        Line2D(
            [], [], color=style.GREY, linestyle="--", linewidth=0.8, label=r"$\propto M^{-1/2}$"
        ),
    ]


def error_experiment1(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Error of the log orthant probability against M, one panel a dimension."""
    frame = side_by_side(registry, files)
    frame = frame[frame["table"] == 1].sort_values("samples")
    drawn = style.figure(2.5)
    panels = drawn.subplots(1, 3, sharey=True)
    for axes, (dimension, cells) in zip(panels, frame.groupby("dimension"), strict=True):
        _log_axes(axes)
        style.label_panel(axes, f"$N={dimension}$")
        samples = cells["samples"].to_numpy(dtype=float)
        axes.errorbar(
            samples * 1.06,
            cells["published"],
            yerr=_log_bars(cells["published"], cells["published_bracket"]),
            color=style.ORANGE,
            marker="s",
            markerfacecolor="none",
            linestyle="none",
        )
        run = cells.dropna(subset="ours")
        if run.empty:
            _note(axes)
        else:
            own = run["samples"].to_numpy(dtype=float)
            axes.errorbar(
                own / 1.06,
                run["ours"],
                yerr=_log_bars(run["ours"], run["ours_se"]),
                color=style.BLUE,
                marker="o",
                linestyle="none",
            )
            _slope(axes, own, run["ours"].to_numpy())
        axes.set_xlabel(SAMPLES)
    panels[0].set_ylabel("MAPE of $\\log I$ (%)")
    _legend(drawn, _ours_and_published(), 3)
    return drawn


def _log_bars(value: pd.Series, se: pd.Series) -> np.ndarray:
    """One standard error up and down; downwards at most to a tenth of the value, as the axis is logarithmic."""
    value, se = value.to_numpy(dtype=float), np.nan_to_num(se.to_numpy(dtype=float))
    return np.stack([np.minimum(se, 0.9 * value), se])


def error_experiment2(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Errors of Experiment 2 against M: class probabilities above, log evidence below, one column a problem."""
    frame = paper_scheme(read_long("experiment2", files.experiment2))
    drawn = style.figure(3.6)
    panels = drawn.subplots(2, 4, sharex=True, sharey="row")
    measures = ((2, "MAE of $p(y_*=1)$"), (3, "MAPE of $\\log L$ (%)"))
    for row, (table, text) in zip(panels, measures, strict=True):
        row[0].set_ylabel(text)
        for axes, problem in zip(row, range(1, 5), strict=True):
            _log_axes(axes)
            cells = registry[(registry["table"] == table) & (registry["problem"] == problem)]
            axes.plot(
                cells["samples"].to_numpy(dtype=float) * 1.06,
                cells["published"],
                color=style.ORANGE,
                marker="s",
                markerfacecolor="none",
                linestyle="none",
                zorder=3,
            )
            if table == 2:
                style.label_panel(axes, f"Problem {problem}, $N={cells['dimension'].iloc[0]}$")
            else:
                axes.set_xlabel("$M$")
            rows = frame[frame["problem"] == problem]
            if rows.empty:
                _note(axes)
                continue
            error = rows["mae"] if table == 2 else absolute_percentage_error(rows)
            spread = data_set_spread(rows, error)
            by_samples = spread.means.groupby("samples")["mean"].agg(["mean", "min", "max", "size"])
            samples = by_samples.index.to_numpy(dtype=float)
            axes.fill_between(
                samples,
                by_samples["min"],
                by_samples["max"],
                color=style.BLUE,
                alpha=0.18,
                linewidth=0,
            )
            relative = math.sqrt(spread.between.variance) if spread.between.df > 0 else 0.0
            axes.errorbar(
                samples / 1.06,
                by_samples["mean"],
                yerr=_log_bars(
                    by_samples["mean"], by_samples["mean"] * relative / np.sqrt(by_samples["size"])
                ),
                color=style.BLUE,
                marker="o",
                linestyle="none",
            )
            _slope(axes, samples, by_samples["mean"].to_numpy())
    band = Line2D(
        [], [], color=style.BLUE, alpha=0.18, linewidth=6, label="ours, range over data sets"
    )
    handles = _ours_and_published()
    _legend(drawn, [handles[0], band, *handles[1:]], 4)
    return drawn


def _colours(methods: list[str]) -> dict[str, tuple[str, str]]:
    return {m: (style.COLOURS[i % 10], style.MARKERS[i % 10]) for i, m in enumerate(methods)}


def _named(method: str, drawn: Collection[str]) -> str:
    """A method in a legend or on an axis; one without a run that counts says so."""
    return label(method) + ("" if method in drawn or not drawn else " (none counts)")


def reliability_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Predicted probability against frequency, and the error against the Bayes posterior beside the published one."""
    frame = reliability(files)
    table4 = TABLES["table4"](registry, files).frame
    methods = methods_in_order({*PAPER, "ep"})
    colours = _colours(methods)
    drawn = style.figure(3.8)
    panels = drawn.subplots(2, 3).ravel()
    groups = ["synthetic", *(NAMES[p] for p in (7, 8, 9))]
    for axes, group in zip(panels, groups, strict=False):
        axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), aspect="equal")
        style.label_panel(axes, "synthetic problems" if group == "synthetic" else group)
        part = frame[(frame["group"] == group) & (frame["patterns"] >= 5)]
        if part.empty:
            _note(axes, "no predictions")
        for position, method in enumerate(m for m in methods if m in set(part["method"])):
            rows = part[part["method"] == method]
            color, marker = colours[method]
            axes.errorbar(
                rows["predicted"] + 0.008 * (position - 1),
                rows["frequency"],
                yerr=rows["frequency_se"],
                color=color,
                marker=marker,
                markersize=3.2,
                linewidth=0.7,
            )
            if group == "synthetic" and method == SAMPLER:
                axes.plot(
                    rows["predicted"], rows["bayes"], color=style.INK, linewidth=1.0, zorder=5
                )
        axes.set_xlabel("predicted $p(y_*=1)$")
        axes.set_ylabel("frequency of class 1")
    _mae_post(panels[4], table4, colours, data_set_range(all_cells(registry, files), files))
    panels[5].set_axis_off()
    handles = [
        Line2D([], [], color=c, marker=m, linewidth=0.7, label=_named(name, set(frame["method"])))
        for name, (c, m) in colours.items()
    ]
    handles.append(Line2D([], [], color=style.INK, linewidth=1.0, label="mean Bayes posterior"))
    handles.append(
        Line2D(
            *([], []), color=_PUBLISHED, marker="_", linewidth=1.4, label="published, four methods"
        )
    )
    data_sets = Line2D([], [], color=_BAND, linewidth=6, label="range over data sets")
    handles.append(data_sets)
    panels[5].legend(handles=handles, loc="center", ncols=1)
    return drawn


#: The range over data sets, behind everything else.
_BAND = "#e0e0e0"
_PUBLISHED = style.COLOURS[8]


def _mae_post(
    axes: Axes, frame: pd.DataFrame, colours: dict[str, tuple[str, str]], data_sets: pd.DataFrame
) -> None:
    part = frame[frame["metric"] == "mae_post"]
    for problem, low, high in data_sets[["low", "high"]].itertuples():
        axes.bar(problem, high - low, bottom=low, width=0.8, color=_BAND, zorder=0.5)
    # the published four are hardly apart: four markers would hide one another
    for problem, low, high in part.groupby("problem")["published"].agg(["min", "max"]).itertuples():
        axes.plot([problem - 0.24] * 2, [low, high], color=_PUBLISHED, marker="_", linewidth=1.4)
    for position, method in enumerate(METHODS.values()):
        rows = part[part["method"] == method]
        color, marker = colours[method]
        ours = rows.dropna(subset="ours")
        axes.errorbar(
            ours["problem"] + 0.02 + 0.11 * position,
            ours["ours"],
            yerr=ours["ours_se"].fillna(0.0),
            color=color,
            marker=marker,
            markersize=3,
            linestyle="none",
        )
    axes.set(xlim=(0.5, 6.5), ylim=(0, None), xlabel="problem", ylabel="MAE-POST")
    axes.set_xticks(range(1, 7))
    style.label_panel(axes, "error against Bayes posterior")


#: Methods whose log evidence the figure shows: the paper's, and the deterministic one beside them.
_EVIDENCE = ("orthant", "ess-gpml", "hmc-gpml", "ep")


def evidence_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Reference log evidence per training pattern by problem and set; beside it, methods less the reference."""
    frame = all_cells(registry, files)
    drawn = style.figure(4.0)
    left, right = drawn.subplots(1, 2, width_ratios=[1.0, 1.0], sharey=True)
    offsets = np.linspace(-0.32, 0.32, 6)
    sets = frame.drop_duplicates("set").sort_values("set")
    first = frame.drop_duplicates(["problem", "set"])
    sizes = (frame["log_evidence"] / frame["per_pattern"]).groupby(frame["problem"]).median()
    for _, row in sets.iterrows():
        index = int(row["set"]) - 1
        rows = first[first["set"] == row["set"]]
        for certified, part in rows.groupby(rows["reference"] == "certified"):
            left.plot(
                part["reference_log_evidence"] / part["problem"].map(sizes),
                part["problem"] + offsets[index % 6],
                color=style.COLOURS[index % 10],
                marker=style.MARKERS[index % 10],
                markerfacecolor=style.COLOURS[index % 10] if certified else "none",
                linestyle="none",
            )
    left.axvline(CHANCE, color=style.INK, linewidth=0.8, linestyle="--")
    left.set_xlabel("reference $\\log L / N$ (nats per training pattern)")
    left.set_xlim(right=0.02)
    for position, method in enumerate(_EVIDENCE):
        rows = frame[(frame["method"] == method)].dropna(subset="difference")
        shift = rows["set"].map(lambda k: offsets[(int(k) - 1) % 6])
        right.errorbar(
            rows["difference"],
            rows["problem"] + shift + 0.035 * (position - 1.5),
            xerr=rows["difference_se"].fillna(0.0),
            color=style.COLOURS[position],
            marker=style.MARKERS[position],
            linestyle="none",
            markersize=3,
            linewidth=0.7,
        )
    right.axvline(0.0, color=style.INK, linewidth=0.8, linestyle="--")
    right.set_xscale("symlog", linthresh=0.1, linscale=0.7)
    right.xaxis.set_major_locator(SymmetricalLogLocator(linthresh=0.1, base=10))
    right.xaxis.set_major_formatter(FuncFormatter(style.plain))
    right.set_xlabel("$\\log L$ less the reference (nats; linear between $\\pm0.1$)")
    lost = frame.groupby("problem")["difference"].count()
    unknown = first.groupby("problem")["reference_log_evidence"].count()
    for axes, count in ((left, unknown), (right, lost)):
        axes.set_ylim(9.55, 0.45)
        axes.set_yticks(NINE, [NAMES[p] for p in NINE])
        axes.grid(visible=False, axis="y")
        for edge in np.arange(1.5, 9.0):
            axes.axhline(edge, color="#dddddd", linewidth=0.5, zorder=0)
        for p in NINE:
            if count.get(p, 0):
                continue
            rows = frame[frame["problem"] == p]
            text = "no reference"
            if rows.empty:
                text = "not run"
            elif (rows["status"] == NO_DATA).all():
                text = NO_DATA
            axes.text(
                0.5,
                p,
                text,
                transform=axes.get_yaxis_transform(),
                ha="center",
                va="center",
                color=style.GREY,
            )
    right.tick_params(axis="y", left=False)
    there = set(frame.dropna(subset="difference")["method"])
    handles = [
        _points(
            style.COLOURS[(int(row["set"]) - 1) % 10],
            style.MARKERS[(int(row["set"]) - 1) % 10],
            rf"$\alpha={row['alpha']:g}$, $\beta={row['beta']:g}$",
        )
        for _, row in sets.iterrows()
    ]
    handles.append(
        Line2D([], [], color=style.INK, linewidth=0.8, linestyle="--", label=r"$-\log 2$ (coin)")
    )
    left.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.42, 1.0),
        ncols=3,
        columnspacing=0.9,
    )
    handles = [
        _points(style.COLOURS[i], style.MARKERS[i], _named(m, there))
        for i, m in enumerate(_EVIDENCE)
    ]
    right.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return drawn


def accuracy_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Errors against the reference by method, one point a problem and a bar at their median."""
    frame = all_cells(registry, files)
    methods = methods_in_order(frame["method"])
    drawn = style.figure(5.2)
    panels = drawn.subplots(2, 1, sharex=True)
    measures = (
        ("mae_reference", "mean $|p - p_{\\mathrm{ref}}|$"),
        ("nats", "$|\\log L - \\log L_{\\mathrm{ref}}|$ (nats)"),
    )
    certified = cells_over(frame, "certified")
    there = set(certified.dropna(subset=[measures[0][0]])["method"])
    names = [_named(m, there) for m in methods]
    for axes, (column, text) in zip(panels, measures, strict=True):
        found = by_problem(frame, column, "certified").dropna(subset="value")
        axes.set_ylabel(text)
        axes.set_xlim(-0.6, max(len(methods), 1) - 0.4)
        axes.set_xticks(range(len(methods)), names, rotation=38, ha="right")
        if found.empty:
            _note(axes, "no certified reference, or nothing run")
            continue
        axes.set_yscale("log")
        for x, method in enumerate(methods):
            rows = found[(found["method"] == method) & (found["value"] > 0)]
            for row in rows.itertuples():
                k = int(row.problem) - 1
                whole = row.sets == row.wanted
                axes.plot(
                    x + 0.07 * (k - 4),
                    row.value,
                    color=style.COLOURS[k],
                    marker=style.MARKERS[k],
                    markerfacecolor=style.COLOURS[k] if whole else "none",
                    linestyle="none",
                )
            if len(rows):
                middle = float(rows["value"].median())
                axes.plot([x - 0.35, x + 0.35], [middle] * 2, color=style.INK, linewidth=1.2)
        if column == "mae_reference":
            floor = float(certified["reference_p_se"].median())
            axes.axhline(floor, color=style.GREY, linestyle="--", linewidth=0.8)
    handles = [_points(style.COLOURS[p - 1], style.MARKERS[p - 1], NAMES[p]) for p in NINE]
    handles.append(Line2D([], [], color=style.INK, linewidth=1.2, label="median"))
    handles.append(_points(style.GREY, "o", "not all sets", markerfacecolor="none"))
    handles.append(
        Line2D(
            [], [], color=style.GREY, linestyle="--", linewidth=0.8, label="s.e. of the reference"
        )
    )
    drawn.legend(handles=handles, loc="outside upper center", ncols=4)
    return drawn


#: CPU seconds within this factor of those of set 1 are alike for all sets.
_FLAT = 1.5


def seconds_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """CPU seconds by hyperparameter set relative to set 1: the paper's methods, and the others."""
    frame = seconds_by_set(all_cells(registry, files))
    settings = frame.drop_duplicates("set").sort_values(["alpha", "beta"], ascending=[False, True])
    place = {int(k): i for i, k in enumerate(settings["set"])}
    ticks = [f"{row.alpha:g}, {row.beta:g}" for row in settings.itertuples()]
    drawn = style.figure(2.9)
    panels = drawn.subplots(1, 2, sharey=True)
    groups = (list(PAPER), [m for m in methods_in_order(frame["method"]) if m not in PAPER])
    for axes, methods, text in zip(
        panels, groups, ("methods of the paper", "other methods"), strict=True
    ):
        style.label_panel(axes, text)
        axes.axhline(1.0, color=style.INK, linewidth=0.8, linestyle="--")
        axes.set_yscale("log")
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(r"$\alpha$, $\beta$")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(style.plain))
        axes.yaxis.set_minor_formatter(NullFormatter())
        placed = frame.assign(place=frame["set"].map(place)).sort_values("place")
        lines = {m: placed[placed["method"] == m] for m in methods}
        # lines that stay near one hide one another: of many, they are drawn as one grey range
        flat = [m for m in methods if np.abs(np.log(lines[m]["relative"])).max() < math.log(_FLAT)]
        flat = flat if len(methods) > len(PAPER) and len(flat) > 2 else []
        if flat:
            range_ = pd.concat(lines[m] for m in flat).groupby("place")["relative"]
            said = f"{len(flat)} methods, within a factor of {_FLAT:g}"
            axes.fill_between(
                *(list(range_.groups), range_.min(), range_.max()), color=_BAND, label=said
            )
        for position, method in enumerate(m for m in methods if m not in flat):
            axes.plot(
                lines[method]["place"] + 0.03 * (position - 1.5),
                lines[method]["relative"],
                color=style.COLOURS[position % 10],
                marker=style.MARKERS[position % 10],
                linewidth=0.8,
                label=label(method),
            )
        if frame.empty:
            _note(axes)
        else:
            axes.legend(loc="upper left", fontsize=7)
    values = frame["relative"]
    if len(values):
        panels[0].set_ylim(0.7 * values.min(), max(8.0 * values.max(), 10.0))
    panels[0].set_ylabel("CPU seconds / those of set 1")
    return drawn


#: How the map of statuses is coloured.
_MAP = {
    OK: "#f4f4f4",
    NOT_CONVERGED: "#e69f00",
    UNTRUSTED: "#56b4e9",
    STOPPED: "#cc79a7",
    EXTINCT: style.INK,
    NO_DATA: "#d0d0d0",
}


def status_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Which runs of Experiment 4 count: one column a problem and hyperparameter set, one row a method."""
    rows = read_long("experiment4", files.experiment4)
    rows = rows[rows["dataset"] == 0]
    methods = methods_in_order(rows["method"])
    drawn = style.figure(3.3)
    axes = drawn.subplots()
    axes.grid(visible=False)
    numbers = sorted(rows["set"].unique())
    width = max(len(numbers), 1)
    for (problem, number, method), group in rows.groupby(["problem", "set", "method"]):
        x, y = (problem - 1) * (width + 0.8) + numbers.index(number), methods.index(method)
        left = 0.0
        for status, share in group["status"].value_counts(normalize=True, sort=False).items():
            axes.barh(
                y,
                0.92 * share,
                left=x + left,
                height=0.86,
                align="center",
                color=_MAP.get(str(status), style.ORANGE),
                edgecolor="none",
            )
            left += 0.92 * share
        if is_trivial(group["trivial"]).any():
            axes.plot(x + 0.46, y, marker=".", markersize=1.5, color=style.GREY)
    problems = sorted({*NINE, *rows["problem"]})
    axes.set_xticks(
        [(p - 1) * (width + 0.8) + width / 2 for p in problems],
        [NAMES[p].split()[0] if p in REAL else f"P{p}" for p in problems],
    )
    axes.set_yticks(range(len(methods)), [label(m) for m in methods])
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    if rows.empty:
        _note(axes)
    there = set(rows["status"])
    handles = [
        Line2D([], [], color=color, marker="s", markersize=7, linestyle="none", label=status)
        for status, color in _MAP.items()
        if status == OK or status in there
    ]
    handles.append(_points(style.GREY, ".", r"$\Sigma=\beta I$ to rounding"))
    drawn.legend(handles=handles, loc="outside upper center", ncols=4)
    return drawn


def floor_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Table 1 against our errors, and our estimates scored against truths from a coarse grid."""
    table = found.floor(registry, side_by_side(registry, files))
    coarse = found.coarse_grid_errors(files)
    steps = sorted(coarse["du"].unique(), reverse=True)
    looks = dict(
        zip(steps, ["#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999933"] * 3, strict=False)
    )
    drawn = style.figure(2.75)
    panels = drawn.subplots(1, 3, sharey=True)
    for axes, (dimension, cells) in zip(panels, table.groupby("dimension"), strict=True):
        _log_axes(axes)
        style.label_panel(axes, f"$N={dimension}$")
        for name, color, marker, face in (
            ("published", style.ORANGE, "s", "none"),
            ("without_outlier", style.ORANGE, "x", None),
            ("ours", style.BLUE, "o", None),
        ):
            there = cells.dropna(subset=name)
            axes.plot(
                there["samples"].to_numpy(dtype=float),
                there[name],
                color=color,
                marker=marker,
                markerfacecolor=face,
                linestyle="none",
            )
        if cells["ours"].isna().all():
            _note(axes)
        for du in steps:
            rows = coarse[(coarse["dimension"] == dimension) & (coarse["du"] == du)].dropna(
                subset="samples"
            )
            axes.plot(
                rows["samples"].to_numpy(dtype=float), rows["error"], color=looks[du], linewidth=1.1
            )
        axes.set_xlabel(SAMPLES)
    panels[0].set_ylabel("MAPE of $\\log I$ (%)")
    handles = [
        _points(style.ORANGE, "s", "published", markerfacecolor="none"),
        _points(style.ORANGE, "x", "published, less one wrong truth"),
        _points(style.BLUE, "o", "ours, exact truth"),
        *(
            Line2D([], [], color=looks[du], label=rf"ours, grid truth, $\Delta u={du:g}$")
            for du in steps
        ),
    ]
    _legend(drawn, handles, 3)
    return drawn


def variance_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Measured variance of the log estimate over Eq. (44), and over our own squared standard error."""
    frame = found.variance(files)
    drawn = style.figure(2.5)
    panels = drawn.subplots(1, 2, sharey=True)
    for axes, experiment in zip(panels, (1, 2), strict=True):
        part = frame[frame["experiment"] == experiment]
        axes.axhline(1.0, color=style.INK, linewidth=0.8, linestyle="--")
        axes.set_xscale("log")
        axes.set_xlim(7e3, 4.3e6)
        axes.xaxis.set_minor_formatter(NullFormatter())
        style.label_panel(axes, f"Experiment {experiment}")
        if part.empty:
            _note(axes)
        for position, (_, rows) in enumerate(part.groupby("problem")):
            color, marker = style.COLOURS[position], style.MARKERS[position]
            shift = 1.05 ** (position - 1.5)
            axes.errorbar(
                rows["samples"].to_numpy(dtype=float) * shift,
                rows["ratio"],
                yerr=rows["ratio_se"],
                color=color,
                marker=marker,
                linewidth=0.7,
                label=f"Problem {rows['problem'].iloc[0]}, $N={rows['dimension'].iloc[0]}$",
            )
            axes.plot(
                rows["samples"].to_numpy(dtype=float) * shift,
                rows["own_ratio"],
                color=color,
                marker=marker,
                markerfacecolor="none",
                linestyle="none",
                markersize=3,
            )
        axes.set_xlabel(SAMPLES)
    highest = (frame["ratio"] + frame["ratio_se"].fillna(0.0)).max()
    panels[0].set_ylim(0, 1.05 * highest if highest > 1 else 2)
    panels[0].set_ylabel("ratio of variances")
    handles = [
        Line2D([], [], color=style.INK, marker="o", linewidth=0.7, label="measured / Eq. (44)"),
        _points(
            style.INK,
            "o",
            "measured / our standard error squared",
            markerfacecolor="none",
            markersize=3,
        ),
    ]
    colours = [
        _points(style.COLOURS[i], style.MARKERS[i], text)
        for i, text in enumerate(["Problem 1", "Problem 2", "Problem 3", "Problem 4"])
    ]
    _legend(drawn, [*handles, *colours], 3)
    return drawn


#: Every figure by the name of its files. Each takes the published registry and the result files.
FIGURES: dict[str, Callable[[pd.DataFrame, ResultFiles], Figure]] = {
    "error_experiment1": error_experiment1,
    "error_experiment2": error_experiment2,
    "reliability": reliability_figure,
    "evidence": evidence_figure,
    "accuracy": accuracy_figure,
    "seconds": seconds_figure,
    "status": status_figure,
    "floor": floor_figure,
    "variance": variance_figure,
}
