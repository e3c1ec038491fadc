r"""Experiments 3 and 5 and the defects of the toolbox: their tables and figures by name, and all their values.

Figures 1 and 2 show natural logarithms, MAPE in percent, as the paper's appear to (the operating points
that its section 6.3 quotes fit no other reading). Bars reach from the log of the mean error less one
standard error to that of the mean plus one; a hollow point is of runs that have not converged.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gpcmc.audit.results import ResultFiles
from gpcmc.audit.tradeoff import (
    CLAIMS,
    FARTHEST,
    FORMS,
    NOTHING,
    PUBLISHED,
    SERIES,
    Crossing,
    against,
    claims,
    crossing,
    line_of,
    needed,
    points,
    series_of,
    targets,
)
from gpcmc.inference.interface import OK
from gpcmc.report import defects, hyperparameters, style
from gpcmc.report.latex import count, escape, number, tabular
from gpcmc.report.table import Table, brief, empty
from gpcmc.report.value import Source, Value, Values

__all__ = ["FIGURES", "TABLES", "values"]

# ---------------------------------------------------------------------------------------------------------------------
# Experiment 3: tables


def times(one: Crossing, mark: str = "") -> str:
    """Seconds or a ratio of them as LaTeX, with its standard error; bounds as an inequality."""
    if one.kind == "none" or not math.isfinite(one.log):
        return "--"
    mark = "e" * (one.kind == "extrapolated") + mark
    marked = rf"\rlap{{$^{{{mark}}}$}}" if mark else ""
    if one.kind in ("at most", "at least"):
        sign = r"\le" if one.kind == "at most" else r"\ge"
        return f"${sign}{_two_digits(one)}$" + marked
    if _vague(one):
        return rf"$\approx{_two_digits(one)}$" + marked
    value = math.exp(one.log)
    return (number(value, value * one.se) if one.se > 0 else f"${_two_digits(one)}$") + marked


def _vague(one: Crossing) -> bool:
    """Whether the standard error is a factor of e or more: then it says no more than the order."""
    return one.se > 1


def _two_digits(one: Crossing) -> str:
    value = math.exp(one.log)
    digits = max(0, (0 if _vague(one) else 1) - math.floor(math.log10(value)))
    return f"{value:.{digits}f}"


def in_words(one: Crossing, unit: str = "") -> str:
    """The same for a sentence, such as "at least 7.1" or "0.52 (0.11) (extrapolated)"."""
    plain = Crossing(one.log, 0.0 if _vague(one) else one.se, "measured")
    if one.kind in ("at most", "at least"):
        return f"{one.kind} ${_two_digits(one)}$" + unit
    about = f"about ${_two_digits(one)}$" if _vague(one) else times(plain)
    return about + unit + (" (extrapolated)" if one.kind == "extrapolated" else "")


def tradeoff_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Operating points: CPU seconds, errors, and CPU seconds over the orthant sampler's for the same error."""
    frame = points(files)
    if frame.empty:
        return Table(frame, empty())
    ratios = [against(frame, point) for _, point in frame.iterrows()]
    frame = frame.assign(
        log_ratio=[r.log for r in ratios],
        log_ratio_se=[r.se for r in ratios],
        ratio_kind=[r.kind for r in ratios],
    )
    printed = pd.Series([times(ratio) for ratio in ratios], index=frame.index)
    body = []
    series = series_of(frame["method"])
    for name in series:
        mine = frame[frame["series"] == name]
        for method in mine["method"].drop_duplicates():
            rows: list[list[str]] = []
            for _, sizes in mine[mine["method"] == method].groupby("size"):
                first = sizes.iloc[0]
                title = series[name].label + (" chain" if method != series[name].evidence else "")
                title += " annealed" if method != series[name].probability else ""
                runs = f"{first['ok']} of {first['runs']}"
                row = [escape(title) if not rows else "", _setting(first["setting"]), runs]
                if not first["full"]:
                    row.append(rf"\multicolumn{{6}}{{c}}{{{brief(first['status'])}}}")
                else:
                    row.append(_plain(first["cpu_seconds"]))
                    cells = {m: (i, c) for i, c in sizes.iterrows() for m in [c["measure"]]}
                    row += _errors(cells.get("probability"), printed, [("error", 1e3)])
                    row += _errors(cells.get("evidence"), printed, [("error", 1e3), ("nats", 1e3)])
                rows.append(row)
            body.append(rows)
    top = [*([""] * 4), r"\multicolumn{2}{c}{probabilities}", r"\multicolumn{3}{c}{log evidence}"]
    head = ["", "size", "ok runs", "CPU s", "MAE, $10^{-3}$", "ratio"]
    head += [r"MAPE, $10^{-3}\,\%$", "nats, $10^{-3}$", "ratio"]
    rules = [r"\cmidrule(lr){5-6}\cmidrule(lr){7-9}"]
    return Table(frame, tabular("llrrrrrrr", [top, head], body, rules))


def _setting(plain: str) -> str:
    """A size such as "3000 samples" with its digits in groups."""
    size, _, what = plain.partition(" ")
    return f"{count(int(size))} {escape(what)}" if what else escape(plain)


def _plain(value: float) -> str:
    return number(value) if math.isfinite(value) else "--"


def _errors(
    cell: tuple[int, pd.Series] | None, ratios: pd.Series, columns: list[tuple[str, float]]
) -> list[str]:
    if cell is None or not math.isfinite(cell[1]["error"]):
        return ["--"] * (len(columns) + 1)
    index, row = cell
    shown = [number(u * row[name], u * row[f"{name}_se"], most=5) for name, u in columns]
    return [*shown, ratios[index]]


def targets_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """CPU seconds that each method needs for the quoted log MAPE and for one MAE."""
    frame = points(files)
    if frame.empty:
        return Table(frame, empty())
    aims, rows, body = targets(frame), [], []
    for name, series in series_of(frame["method"]).items():
        row = [escape(series.label)]
        for measure, aim in aims.items():
            one = needed(frame, measure, name, aim)
            ratio = (
                one.over(needed(frame, measure, "orthant", aim)) if name != "orthant" else NOTHING
            )
            line = line_of(frame, measure, name)
            said = "not run" if line.empty else str(line["status"].iloc[-1])
            if one.kind == "none" and said != OK:
                row.append(rf"\multicolumn{{2}}{{c}}{{{brief(said)}}}")
            else:
                row += [times(one), times(ratio)]
            rows.append(
                {
                    "measure": measure,
                    "log_error": aim,
                    "series": name,
                    "log_cpu_seconds": one.log,
                    "log_cpu_seconds_se": one.se,
                    "kind": one.kind,
                    "log_ratio": ratio.log,
                    "log_ratio_se": ratio.se,
                    "ratio_kind": ratio.kind,
                    "status": said,
                }
            )
        body.append(row)
    names = {"evidence": r"$\ln$ MAPE", "probability": r"$\ln$ MAE"}
    top = [""]
    for measure, aim in aims.items():
        aimed = f"$={aim:.1f}$" if math.isfinite(aim) else "unknown"
        top.append(rf"\multicolumn{{2}}{{c}}{{{names[measure]} {aimed}}}")
    head = ["", *(["CPU s", "ratio"] * len(aims))]
    rules = [r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}"]
    return Table(pd.DataFrame(rows), tabular("lrrrr", [top, head], [body], rules))


def claims_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """The paper's statements about CPU seconds, against the samplers as shipped and done properly."""
    frame = claims(points(files))
    body = []
    for measure in ("evidence", "probability"):
        rows: list[list[str]] = []
        for _, pair in frame[frame["measure"] == measure].groupby("claim", sort=False):
            row = ["" if rows else {"evidence": "log evidence"}.get(measure, "probabilities")]
            row.append(pair["statement"].iloc[0])
            for _, one in pair.iterrows():
                there = math.isfinite(one["log_error"])
                row.append(f"${one['log_error']:.1f}$" if there else "--")
                ratio = Crossing(one["log_ratio"], one["log_ratio_se"], one["kind"])
                if one["status"] == OK:  # the audit's verdict, and no other
                    key = f"claim/time/{one['claim']}/{one['form']}/words"
                    row += [times(ratio), rf"\val{{{key}}}"]
                else:
                    row += [times(ratio, r"\dagger"), brief(one["status"])]
            rows.append(row)
        body.append(rows)
    top = ["", "", r"\multicolumn{3}{c}{as shipped}", r"\multicolumn{3}{c}{done properly}"]
    head = ["", "statement", *(["at", "ratio", ""] * 2)]
    rules = [r"\cmidrule(lr){3-5}\cmidrule(lr){6-8}"]
    return Table(frame, tabular("llrrlrrl", [top, head], body, rules))


# ---------------------------------------------------------------------------------------------------------------------
# Experiment 3: figures

#: Colour, marker and line of each series.
_LOOKS = {
    "orthant": (style.BLUE, "o", "-"),
    "orthant-adapted": ("#56b4e9", "s", "-"),
    "best": (style.INK, "*", "-"),
    "minimax-tilting": ("#009e73", "P", "-"),
    "importance-ep": ("#882255", "X", "-"),
    "ess": (style.ORANGE, "^", "-"),
    "ess-gpml": (style.ORANGE, "v", "--"),
    "hmc": ("#e69f00", "<", "-"),
    "hmc-gpml": ("#e69f00", ">", "--"),
    "laplace": (style.GREY, "D", ":"),
    "ep": ("#cc79a7", "h", ":"),
}
#: Those of rows that are none of these, in turn.
_FURTHER_LOOKS = [(c, m, "-") for m in ("p", "d", "8") for c in ("#999933", "#44aa99", "#332288")]


def _time_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("CPU seconds")


def _draw(axes: Axes, frame: pd.DataFrame, measure: str, *, nats: bool = False) -> list[Line2D]:
    """Draw log errors of every series, or nats on a logarithmic axis, and return a legend's handles."""
    handles = []
    rows = frame[frame["measure"] == measure].dropna(subset=["cpu_seconds", "log_error"])
    shift, further = 0.0, itertools.cycle(_FURTHER_LOOKS)
    if nats and len(rows):  # the truth is one number: nats are percents times a constant
        shift = float(np.log(rows["nats"].astype(float) / rows["error"].astype(float)).mean())
    for name, series in series_of(frame["method"]).items():
        line = rows[rows["series"] == name].sort_values("cpu_seconds")
        if line.empty:
            continue
        color, marker, joined = _LOOKS.get(name) or next(further)
        look: dict[str, Any] = {"color": color, "marker": marker}
        size = {"*": 7.0, "D": 4.0}.get(marker, 5.0)
        full, other = line[line["full"].astype(bool)], line[~line["full"].astype(bool)]
        seconds = full["cpu_seconds"].to_numpy(dtype=float)
        middle, low, high = _log_bars(full)
        change = np.exp if nats else np.asarray
        middle, low, high = (change(v + shift) for v in (middle, low, high))
        bars = np.stack([middle - low, high - middle])
        axes.errorbar(
            seconds,
            middle,
            yerr=bars,
            linestyle=joined,
            markersize=size,
            linewidth=0.9,
            **look,
        )
        if len(full) and full["deterministic"].all():  # more time would not help it
            axes.axhline(middle[0], color=color, linestyle=":", linewidth=0.8, zorder=1)
        axes.plot(
            other["cpu_seconds"].to_numpy(dtype=float),
            change(other["log_error"].to_numpy(dtype=float) + shift),
            linestyle="none",
            markerfacecolor="white",
            markersize=size,
            **look,
        )
        hollow: dict[str, Any] = {"markerfacecolor": "white"} if full.empty else {}
        line_style: Any = "none" if full.empty else joined
        said = series.label + (f" ({other['status'].iloc[-1]})" if full.empty else "")
        handles.append(
            Line2D(
                [],
                [],
                label=said,
                linestyle=line_style,
                linewidth=0.9,
                markersize=size,
                **look,
                **hollow,
            )
        )
    if nats:
        axes.set_yscale("log")
    if rows.empty:
        axes.text(
            *(0.04, 0.04, "not run at this scale"), transform=axes.transAxes, color=style.GREY
        )
    return handles


def _log_bars(line: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log of the error and of the error less and plus one standard error; the former at least a tenth of the error."""
    error = line["error"].to_numpy(dtype=float)
    se = np.nan_to_num(line["error_se"].to_numpy(dtype=float))
    return np.log(error), np.log(np.maximum(error - se, 0.1 * error)), np.log(error + se)


def figure1(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Figure 1 of the paper: log of the MAE of probabilities against CPU seconds."""
    drawn = style.figure(3.9)
    axes = drawn.subplots()
    handles = _draw(axes, points(files), "probability")
    axes.set_ylabel(r"$\ln$ MAE of $p(y_*=1)$")
    _time_axis(axes)
    drawn.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawn


def figure2(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Figure 2 of the paper: log of the MAPE of the log evidence against CPU seconds, and nats beside."""
    frame = points(files)
    drawn = style.figure(4.1)
    left, right = drawn.subplots(1, 2, width_ratios=[1.25, 1.0])
    handles = _draw(left, frame, "evidence")
    for (name, seconds, log), marker in zip(
        PUBLISHED.values(), ("$\\oplus$", "$\\otimes$"), strict=True
    ):
        look: dict[str, Any] = {"color": style.INK, "marker": marker, "linestyle": "none"}
        look |= {"markersize": 8, "markeredgewidth": 0.4}
        left.plot([seconds], [log], **look)
        said = f"published {name} (another machine)"
        handles.append(Line2D([], [], label=said, **look))
    left.set_ylabel(r"$\ln$ MAPE of $\log L$ (MAPE in %)")
    style.label_panel(left, "as in the paper")
    _draw(right, frame, "evidence", nats=True)
    right.set_ylabel(r"mean $|\log\hat L-\log L|$ (nats)")
    style.label_panel(right, "in nats")
    for axes in (left, right):
        _time_axis(axes)
    drawn.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawn


# ---------------------------------------------------------------------------------------------------------------------
# Values


def values(files: ResultFiles) -> dict[str, Value]:
    """Every value of Experiments 3 and 5 and of the defects, by key; the keys are the same at every scale."""
    out = Values()
    _tradeoff_values(out, points(files))
    defects.add_values(out, files)
    hyperparameters.add_values(out, files)
    return dict(out)


def _phrase(ratio: Crossing) -> str | None:
    """A ratio of CPU seconds as words, such as "takes 7.1 (0.5) times as long"."""
    if ratio.kind == "none" or not math.isfinite(ratio.log):
        return None
    return f"takes {in_words(ratio, ' times as long')}"


def _add_phrase(out: Values, key: str, ratio: Crossing, source: str, missing: str) -> None:
    said = _phrase(ratio)
    value = None if said is None else math.exp(ratio.log)
    out.put(key, value, missing if said is None else said, source)


def _tradeoff_values(out: Values, frame: pd.DataFrame) -> None:
    source = "tables/tradeoff.csv"
    random = frame[~frame["deterministic"].astype(bool)]
    out.integers("tradeoff/runs", random["runs"], source)
    absent = [one.label for name, one in SERIES.items() if name not in set(frame["series"])]
    out.words("tradeoff/not-run", ", ".join(absent), source, missing="none")
    section = "paper, section 6.3"
    for name, (_, seconds, log) in PUBLISHED.items():
        out.whole(f"tradeoff/published/{name}/cpu", int(seconds), section)
        out.real(f"tradeoff/published/{name}/log-mape", log, section, decimals=2)
    ratio = PUBLISHED["ess"][1] / PUBLISHED["new"][1]
    out.real("tradeoff/published/ratio", ratio, section, decimals=1)
    aims = targets(frame)
    for measure, aim in aims.items():
        decimals = 1 if math.isfinite(aim) else None
        out.real(f"tradeoff/{measure}/target", aim, section, decimals=decimals)
        _measure_values(out, frame, measure, aim)
    _claim_values(out, claims(frame))


def _measure_values(out: Values, frame: pd.DataFrame, measure: str, aim: float) -> None:
    source = "tables/targets.csv"
    here = frame[frame["measure"] == measure]
    lost = [
        f"{SERIES[name].label} ({group['status'].iloc[-1]})"
        for name, group in here.groupby("series", sort=False)
        if name in SERIES and not group["full"].any()
    ]
    out.words(f"tradeoff/{measure}/not-converged", ", ".join(lost), source, missing="none")
    orthant = needed(frame, measure, "orthant", aim)
    quickest: dict[str, float] = {}
    for name in SERIES:
        line = line_of(frame, measure, name)
        missing = "not run" if line.empty else str(line["status"].iloc[-1])
        missing = "not reached" if missing == OK else missing
        one = needed(frame, measure, name, aim)
        key = f"tradeoff/{measure}/{name}"
        value = None if one.kind == "none" else math.exp(one.log)
        shown = missing if value is None else in_words(one, r"\,s")
        out.put(f"{key}/cpu", value, shown, source)
        if name != "orthant":
            _add_phrase(out, f"{key}/phrase", one.over(orthant), source, missing)
        if one.kind in ("measured", "at most", "extrapolated"):
            quickest[name] = one.log
    fast = min(quickest, key=lambda name: quickest[name]) if quickest else None
    out.words(f"tradeoff/{measure}/fastest", SERIES[fast].label if fast else None, source)
    for name in ("ep", "laplace"):
        line = line_of(frame, measure, name)
        point = line.iloc[0] if len(line) and line["full"].iloc[0] else None
        key, where = f"tradeoff/{measure}/{name}", "tables/tradeoff.csv"
        out.power(f"{key}/error", math.nan if point is None else float(point["error"]), where)
        seconds = math.nan if point is None else float(point["cpu_seconds"])
        out.real(f"{key}/seconds", seconds, where, unit=r"\,s")
        match = NOTHING
        if point is not None:
            match = crossing(line_of(frame, measure, "orthant"), float(point["log_error"]))
        there = match.kind != "none"
        shown = in_words(match, r"\,s") if there else "not run"
        if match.kind == "at least":  # further than is extrapolated, which is the bound
            match = replace(match, log=match.log + math.log(FARTHEST))
            shown = rf"more than ${math.exp(match.log):.0f}$\,s (extrapolated)"
        value = math.exp(match.log) if there else None
        out.put(f"{key}/match", value, shown, source)


def _claim_values(out: Values, frame: pd.DataFrame) -> None:
    source = "tables/claims.csv"
    out.whole("claims/count", len(CLAIMS), Source(source, {"form": next(iter(FORMS))}))
    for form, group in frame.groupby("form", sort=False):
        for _, row in group.iterrows():
            key = f"claims/{row['claim']}/{form}"
            judged = row["status"] == OK
            ratio = Crossing(row["log_ratio"], row["log_ratio_se"], row["kind"])
            trusted = ratio if judged else NOTHING
            missing = "no error that both reach" if judged else row["status"]
            _add_phrase(out, f"{key}/phrase", trusted, source, missing)
            _add_phrase(out, f"{key}/face", NOTHING if judged else ratio, source, "not needed")


#: Every table by the name of its files.
TABLES = {
    "tradeoff": tradeoff_table,
    "targets": targets_table,
    "claims": claims_table,
    **defects.TABLES,
    **hyperparameters.TABLES,
}

#: Every figure by the name of its files.
FIGURES = {
    "figure1": figure1,
    "figure2": figure2,
    **defects.FIGURES,
    **hyperparameters.FIGURES,
}
