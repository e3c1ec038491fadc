"""Experiment 5, the posterior over (alpha, beta) and tuning by the evidence: tables, figure, values."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import norm

from gpcmc.audit.experiment4 import NAMES, methods_in_order
from gpcmc.audit.published import PUBLISHED_SETS
from gpcmc.audit.results import ResultFiles, mean_and_error, read
from gpcmc.audit.tuning import NEAR, tuned, tuning_means
from gpcmc.experiments.classification import NO_DATA
from gpcmc.experiments.tuning import start_and_bounds
from gpcmc.inference.interface import OK
from gpcmc.inference.pseudo_marginal import default_prior
from gpcmc.report import style
from gpcmc.report.latex import count, escape, number, tabular
from gpcmc.report.table import Table, brief, empty
from gpcmc.report.value import Source, Values, code_of, defined

__all__ = [
    "FIGURES",
    "TABLES",
    "add_values",
    "agreement",
    "chains",
]

#: How rows of the configuration are printed, in the order of the tables; others follow by name.
CHAINS = {
    "pm-laplace-1": "PM, Laplace, 1",
    "pm-laplace-64": "PM, Laplace, 64",
    "pm-ep-1": "PM, EP, 1",
    "pm-ep-10": "PM, EP, 10",
    "pm-ep-64": "PM, EP, 64",
    "pm-orthant": "PM, orthant",
    "pm-best": "PM, best",
    "ancillary": "ancillary",
    "surrogate": "surrogate",
}
TUNERS = {"laplace": "Laplace", "ep": "EP", "best": "best"}
PARAMETERS = {"log_alpha": r"\alpha", "log_beta": r"\beta"}
#: Probability of a false alarm among all pairs together.
FALSE_ALARM = 0.01


# ---------------------------------------------------------------------------------------------------------------------
# The posterior


def chains(files: ResultFiles) -> pd.DataFrame:
    """The chains: one row a problem and method, with their CPU seconds; summaries that are not there are NaN.

    Besides the columns of the result files: ``r_hat`` (the larger of the two hyperparameters'),
    ``effective_samples`` and ``effective_per_second`` (the smaller).
    """
    keys = ["problem", "method"]
    frame = read(files.experiment5, [*keys, "status"])
    timing = read(files.experiment5_timing, [*keys])
    seconds = [f"{which}_effective_per_second" for which in PARAMETERS]
    for name in ("cpu_seconds", "prediction_cpu_seconds", *seconds):
        if name not in timing:
            timing[name] = math.nan
    timing = timing[[*keys, "cpu_seconds", "prediction_cpu_seconds", *seconds]]
    frame = frame.merge(timing, on=keys, how="left")
    needs = [f"{w}_{x}" for w in PARAMETERS for x in ("mean", "mean_se", "sd", "r_hat")]
    needs += [f"{w}_effective_samples" for w in PARAMETERS]
    for name in [*needs, "acceptance", "log_loss", "log_loss_se", "error_rate"]:
        if name not in frame:
            frame[name] = math.nan
    frame["r_hat"] = frame[[f"{w}_r_hat" for w in PARAMETERS]].max(axis=1)
    frame["effective_samples"] = frame[[f"{w}_effective_samples" for w in PARAMETERS]].min(axis=1)
    frame["effective_per_second"] = frame[seconds].min(axis=1)
    return frame


def agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """Posterior means of all pairs of methods that have converged on a problem.

    Parameters
    ----------
    frame : DataFrame
        `chains`.

    Returns
    -------
    DataFrame
        ``problem``, ``parameter``, ``first``, ``second``, ``difference``, its joint standard error ``se``, ``z``.
    """
    rows = []
    good = frame[frame["status"] == OK]
    for problem, group in good.groupby("problem"):
        for (_, a), (_, b) in itertools.combinations(group.iterrows(), 2):
            for which in PARAMETERS:
                gap = a[f"{which}_mean"] - b[f"{which}_mean"]
                se = math.hypot(a[f"{which}_mean_se"], b[f"{which}_mean_se"])
                row = {"problem": problem, "parameter": which, "first": a["method"]}
                row |= {"second": b["method"], "difference": gap, "se": se, "z": gap / se}
                rows.append(row)
    columns = ["problem", "parameter", "first", "second", "difference", "se", "z"]
    return pd.DataFrame(rows, columns=columns)


def threshold(comparisons_made: int) -> float:
    """|z| that so many comparisons together exceed by chance with probability `FALSE_ALARM` at most (Bonferroni)."""
    return float(norm.isf(FALSE_ALARM / (2 * comparisons_made))) if comparisons_made else math.nan


def chains_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Posterior of log alpha and log beta by every method, and what it costs."""
    frame = chains(files)
    if frame.empty:
        return Table(frame, empty())
    body = []
    for problem, group in frame.groupby("problem"):
        by_method = group.set_index("method")
        rows: list[list[str]] = []
        for method in methods_in_order(group["method"], CHAINS):
            cell = by_method.loc[method]
            row = [
                escape(NAMES[int(problem)]) if not rows else "",
                escape(CHAINS.get(method, method)),
            ]
            if cell["status"] == OK:
                for which in PARAMETERS:
                    row.append(_with_error(cell[f"{which}_mean"], cell[f"{which}_mean_se"], 3))
                    row.append(number(cell[f"{which}_sd"], decimals=2))
            else:
                row.append(rf"\multicolumn{{4}}{{c}}{{{brief(cell['status'])}}}")
            # what tells whether it has converged is said of every chain
            row += [
                _number(cell["r_hat"], 3),
                _number(cell["effective_samples"], 0),
                _number(cell["effective_per_second"], None),
                _number(cell["acceptance"], 2),
            ]
            shown = cell["status"] == OK and math.isfinite(cell["log_loss"])
            row.append(_with_error(cell["log_loss"], cell["log_loss_se"], 4) if shown else "--")
            rows.append(row)
        body.append(rows)
    top = ["", "", r"\multicolumn{2}{c}{$\log\alpha$}", r"\multicolumn{2}{c}{$\log\beta$}"]
    top += [""] * 5
    head = ["", "", *(["mean", "sd"] * 2), r"$\hat R$", "eff.", "eff./s", "acc.", "log loss"]
    rules = [r"\cmidrule(lr){3-4}\cmidrule(lr){5-6}"]
    return Table(frame.drop(columns="file"), tabular("llrrrrrrrrr", [top, head], body, rules))


def _with_error(value: float, se: float, most: int) -> str:
    """A value and its standard error, which is left out where it rounds to nothing."""
    return number(value, se, most=most) if se >= 0.5 * 10**-most else number(value, decimals=most)


def _number(value: float, decimals: int | None) -> str:
    return number(value, decimals=decimals) if math.isfinite(value) else "--"


def _draws(files: ResultFiles) -> dict[tuple[int, str], tuple[np.ndarray, np.ndarray]]:
    """(log alpha, log beta) of every problem and method, all chains together."""
    found = {}
    for path in files.draws:
        place = re.search(r"problem(\d+)/([^/]+)\.npz$", Path(path).as_posix())
        if place is None:
            raise ValueError(f"{path}: the path has to end in problem<number>/<method>.npz")
        with np.load(path) as data:
            if "log_alpha" in data.files:
                pair = data["log_alpha"].ravel(), data["log_beta"].ravel()
                found[int(place.group(1)), place.group(2)] = pair
    return found


def posterior_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Posterior draws of log alpha and log beta, the six sets of Experiment 4 and the tuned values on top."""
    frame, draws, best = chains(files), _draws(files), _chosen(tuned(files))
    numbers = sorted({int(p) for p in frame["problem"]})
    columns = min(max(len(numbers), 1), 3 if len(numbers) > 4 else 2)
    rows = max(1, math.ceil(len(numbers) / columns))
    drawn = style.figure(0.6 + 2.35 * rows)
    panels = np.atleast_1d(np.asarray(drawn.subplots(rows, columns, squeeze=False))).ravel()
    for axes in panels[max(len(numbers), 1) :]:
        axes.set_axis_off()
    if not numbers:
        panels[0].text(*(0.5, 0.5, "not run at this scale"), ha="center", color=style.GREY)
    for axes, problem in zip(panels, numbers, strict=False):
        group = frame[frame["problem"] == problem]
        shown = group.sort_values("effective_samples", ascending=False)
        good = shown[shown["status"] == OK]
        name = None if shown.empty else (good if len(good) else shown)["method"].iloc[0]
        title = f"{NAMES[problem]}: {CHAINS.get(str(name), str(name))}"
        if (group["status"] == NO_DATA).all():
            title = f"{NAMES[problem]}: {NO_DATA}"
        elif good.empty:
            title += " (not converged)"
        style.label_panel(axes, title)
        if (problem, str(name)) in draws:
            alpha, beta = draws[problem, str(name)]
            look = {"linestyle": "none", "markersize": 3.0, "markeredgewidth": 0.4}
            color = style.BLUE if len(good) else style.GREY
            axes.plot(alpha, beta, color=color, marker=".", alpha=0.35, zorder=1, **look)
        for _, one in good.iterrows():
            axes.errorbar(
                one["log_alpha_mean"],
                one["log_beta_mean"],
                xerr=one["log_alpha_mean_se"],
                yerr=one["log_beta_mean_se"],
                color=style.INK,
                marker=".",
                markersize=3,
                linewidth=0.6,
                zorder=3,
            )
        for number_, (alpha_, beta_) in PUBLISHED_SETS.items():
            axes.plot(math.log(alpha_), math.log(beta_), color=style.ORANGE, marker="s", zorder=4)
            axes.annotate(
                str(number_),
                (math.log(alpha_), math.log(beta_)),
                xytext=(4, 2),
                textcoords="offset points",
                fontsize=7.5,
                color=style.ORANGE,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.7},
                zorder=4,
            )
        if problem in best:
            axes.plot(*best[problem], color="#009e73", marker="X", markersize=7, zorder=5)
        axes.set_xlabel(r"$\log\alpha$")
        axes.set_ylabel(r"$\log\beta$")
    handles = [
        Line2D([], [], color=style.BLUE, marker=".", linestyle="none", label="posterior draws"),
        Line2D([], [], color=style.INK, marker=".", linewidth=0.6, label="means of all methods"),
        Line2D(
            [], [], color=style.ORANGE, marker="s", linestyle="none", label="sets of Experiment 4"
        ),
        Line2D([], [], color="#009e73", marker="X", linestyle="none", label="tuned: most evidence"),
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=4)
    return drawn


# ---------------------------------------------------------------------------------------------------------------------
# Tuning


def _chosen(frame: pd.DataFrame) -> dict[int, tuple[float, float]]:
    """By problem, the hyperparameters with the most evidence that any method has found."""
    good = frame[frame["status"] == OK].dropna(subset="evidence")
    best = good.loc[good.groupby("problem")["evidence"].idxmax()] if len(good) else good
    return {
        int(row["problem"]): (float(row["log_alpha"]), float(row["log_beta"]))
        for _, row in best.iterrows()
    }


def _adapted(method: str) -> bool:
    """Whether a way to tune is by the adapted scheme, which is not the paper's."""
    return method.startswith("orthant-adapted")


def tuner(method: str, samples: float) -> str:
    """The printed name of a way to tune."""
    if method.startswith("orthant") and math.isfinite(samples):
        name = "adapted" if _adapted(method) else "orthant"
        return f"{name}, $M={count(int(samples))}$"
    return escape(TUNERS.get(method, method))


def tuning_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Hyperparameters chosen by every method, their evidence, and how they classify."""
    frame = tuning_means(tuned(files))
    if frame.empty:
        return Table(frame, empty())
    body = []
    for problem, group in frame.groupby("problem"):
        rows: list[list[str]] = []
        order = {name: i for i, name in enumerate(methods_in_order(group["method"], TUNERS))}
        group = group.sort_values("method", key=lambda column: column.map(order), kind="stable")
        for _, cell in group.iterrows():
            title = tuner(cell["method"], cell["samples"])
            if cell["stage"] == "final":
                title = rf"\quad second look, {title.partition(', ')[2] or title}"
            row = [escape(NAMES[int(problem)]) if not rows else "", title]
            row.append(f"{cell['ok']} of {cell['runs']}")
            if not cell["ok"]:
                rows.append([*row, rf"\multicolumn{{8}}{{c}}{{{brief(cell['status'])}}}"])
                continue
            mark = r"\rlap{$^b$}" if cell["at_bound"] else ""
            row += [_number(cell["log_alpha"], 2), _number(cell["log_beta"], 2) + mark]
            row.append(_with_error(cell["evidence"], cell["evidence_se"], 3))
            row.append(_with_error(cell["shortfall"], cell["shortfall_se"], 3))
            row.append(_number(cell["log_loss"], 4))
            row.append(_number(100 * cell["error_rate"], 1))
            row.append(_number(cell["cpu_seconds"], None))
            row.append(_number(cell["evaluations"], 0))
            rows.append(row)
        body.append(rows)
    head = ["", "tuned by", "ok runs", r"$\log\alpha$", r"$\log\beta$", r"$\log L$", "short, nats"]
    head += ["log loss", r"errors, \%", "CPU s", "eval."]
    return Table(frame, tabular("llrrrrrrrrr", [head], body))


# ---------------------------------------------------------------------------------------------------------------------
# Values


def add_values(out: Values, files: ResultFiles) -> None:
    """Add the values of Experiment 5."""
    _posterior_values(out, chains(files))
    _tuning_values(out, tuned(files))


def _posterior_values(out: Values, frame: pd.DataFrame) -> None:
    source = Source("tables/chains.csv", {})
    there = frame[frame["status"] != NO_DATA]
    good = there[there["status"] == OK]
    out.whole("posterior/problems", there["problem"].nunique() or None, source)
    out.whole("posterior/methods", there["method"].nunique() or None, source)
    out.whole("posterior/chains", len(there) or None, source)
    converged = Source("tables/chains.csv", {"status": OK})
    out.whole("posterior/converged", len(good) if len(there) else None, converged)
    settings = there.reindex(columns=["chains", "iterations", "burn_in"]).dropna()
    out.integers("posterior/each", settings["chains"], source)
    for column in ("iterations", "burn_in"):
        for end in ("min", "max"):
            value = int(settings[column].agg(end)) if len(settings) else None
            out.whole(f"posterior/{column.replace('_', '-')}/{end}", value, source)
    lost = [
        CHAINS.get(m, m)
        for m in methods_in_order(there["method"], CHAINS)
        if m not in set(good["method"])
    ]
    out.words("posterior/none", "; ".join(lost) or None, source, missing="none")
    prior, where = default_prior(1), code_of(default_prior)
    out.real("posterior/prior/beta-shape", prior.shape[0], where, decimals=1)
    out.real("posterior/prior/beta-rate", prior.rate[0], where, decimals=1)
    out.real("posterior/prior/alpha-shape", prior.shape[1], where, decimals=0)
    pairs = agreement(frame)
    out.whole("posterior/compared", pairs["problem"].nunique() or None, source)
    worst = pairs.loc[pairs["z"].abs().idxmax()] if len(pairs) else None
    limit, largest = threshold(len(pairs)), math.nan if worst is None else abs(worst["z"])
    compared = converged._replace(by=agreement)
    out.whole("posterior/pairs", len(pairs) or None, compared)
    two = compared
    if worst is not None:
        both = {"problem": worst["problem"], "method": (worst["first"], worst["second"])}
        two = compared._replace(rows=both)
    out.real("posterior/largest-z", largest, two, decimals=1 if worst is not None else None)
    limited = converged._replace(by=threshold)
    out.real("posterior/threshold", limit, limited, decimals=1 if worst is not None else None)
    name = None
    if worst is not None:
        name = f"{NAMES[int(worst['problem'])]}, {CHAINS.get(worst['first'], worst['first'])} "
        name += f"against {CHAINS.get(worst['second'], worst['second'])}"
    out.words("posterior/largest-pair", name, two, missing="not run")
    apart = worst is not None and largest > limit
    out.words("posterior/apart", "differ" if apart else None, two, missing="no")
    # problem by problem, since methods converge on different ones
    speed = good.dropna(subset="effective_per_second").sort_values("effective_per_second")
    for key, keep in (("fastest", "last"), ("slowest", "first")):
        ends = speed.drop_duplicates("problem", keep=keep).sort_values("problem")
        who = [
            f"{CHAINS.get(method, method)} ({', '.join(NAMES[int(p)] for p in rows['problem'])})"
            for method, rows in ends.groupby("method", sort=False)
        ]
        out.words(f"posterior/{key}", "; ".join(who) or None, converged, missing="none")
    for method in CHAINS:
        source = Source("tables/chains.csv", {"method": method})
        part = there[there["method"] == method]
        mine = part[part["status"] == OK]
        key = f"posterior/{method}"
        out.whole(f"{key}/converged", len(mine) if len(part) else None, source)
        out.whole(f"{key}/problems", len(part) or None, source)
        rate = float(mine["effective_per_second"].median()) if len(mine) else math.nan
        missing = "not converged" if len(part) else "not run"
        out.real(f"{key}/rate", rate, source, missing=missing)


def _tuning_values(out: Values, frame: pd.DataFrame) -> None:
    name = "tables/tuning.csv"
    source = Source(name, {})
    means = tuning_means(frame)
    there = means[means["status"] != NO_DATA]
    out.whole("tuning/problems", there["problem"].nunique() or None, source)
    out.real("tuning/near", NEAR, defined("gpcmc.audit.tuning", "NEAR"), decimals=0)
    orthant = there[there["method"].str.startswith("orthant") & ~there["method"].map(_adapted)]
    orthant = orthant.assign(samples=pd.to_numeric(orthant["samples"]))
    looks = orthant[orthant["stage"] == "search"].dropna(subset="samples")
    small = looks.loc[looks["samples"].idxmin(), "method"] if len(looks) else None
    large = looks.loc[looks["samples"].idxmax(), "method"] if len(looks) else None
    ways = {
        "small": (small, "search"),
        "small-final": (small, "final"),
        "large": (large, "search"),
        "large-final": (large, "final"),
        "ep": ("ep", "search"),
        "laplace": ("laplace", "search"),
        "best": ("best", "search"),
    }
    reached = {}
    for key, (method, stage) in ways.items():
        part = means[(means["method"] == method) & (means["stage"] == stage)]
        source = Source(name, {"method": method or "", "stage": stage})
        mine = part[part["ok"] > 0].dropna(subset="shortfall")
        worst = worst_se = math.nan
        if len(mine):
            furthest = mine.loc[mine["shortfall"].idxmax()]
            worst, worst_se = float(furthest["shortfall"]), float(furthest["shortfall_se"])
        reached[key] = worst
        said = "not run" if part.empty else str(part["status"].iloc[0])
        out.real(f"tuning/{key}/worst", worst, source, se=worst_se, unit=" nats", missing=said)
        mean, se = mean_and_error(mine["shortfall"])
        out.real(f"tuning/{key}/mean", mean, source, se=se, unit=" nats", missing=said)
        loss = mean_and_error(mine["log_loss"])[0]
        out.real(f"tuning/{key}/log-loss", loss, source, missing=said)
        seconds = mean_and_error(mine["cpu_seconds"])[0]
        out.real(f"tuning/{key}/cpu", seconds, source, unit=" s", missing=said)
    for key, way in (("small", small), ("large", large)):
        rows = looks[looks["method"] == way]
        samples = int(rows["samples"].iloc[0]) if len(rows) else None
        source = Source(name, {"method": way or "", "stage": "search"})
        out.whole(f"tuning/{key}/samples", samples, source)
    again = orthant[(orthant["stage"] == "final") & (orthant["method"] == small)]
    again = again.dropna(subset="samples")
    source = Source(name, {"method": small or "", "stage": "final"})
    out.whole("tuning/final-samples", int(again["samples"].max()) if len(again) else None, source)
    good, source = frame[frame["status"] == OK], Source(name, {})
    judge = float(good["evidence_se"].astype(float).max())
    out.real("tuning/judge-se", judge, source, unit=" nats", decimals=3 if judge > 0 else None)
    for key in ("small", "small-final", "ep", "laplace"):
        near = math.isfinite(reached[key]) and reached[key] <= NEAR
        far = math.isfinite(reached[key]) and reached[key] > NEAR
        out.words(f"tuning/{key}/suffices", "suffices" if near else None, source, missing="no")
        out.words(f"tuning/{key}/misses", "does not suffice" if far else None, source, missing="no")
    where = code_of(start_and_bounds)
    (log_alpha, _), bounds = start_and_bounds(np.array([[0.0], [1.0]]))
    out.real("tuning/reach-alpha", bounds[0, 1] - log_alpha, where, decimals=0)
    out.real("tuning/least-beta", bounds[1, 0], where, decimals=0)
    out.real("tuning/largest-beta", bounds[1, 1], where, decimals=0)
    bound = int((there["at_bound"] > 0).sum())
    out.whole("tuning/at-bound", bound or None, source)


TABLES = {"chains": chains_table, "tuning": tuning_table}
FIGURES = {"posterior": posterior_figure}
