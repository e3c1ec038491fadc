"""The tables of the typeset paper, each as a tidy CSV and as LaTeX: ours, with its standard error, beside published."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from decimal import Decimal

import pandas as pd

from gpcmc.audit import ResultFiles, read_long, side_by_side
from gpcmc.audit import findings as found
from gpcmc.audit.estimates import paper_scheme
from gpcmc.audit.experiment4 import (
    NAMES,
    NINE,
    READINGS,
    SHORT,
    STATUSES,
    Average,
    Over,
    all_cells,
    as_run,
    by_problem,
    cells_over,
    label,
    methods_in_order,
    readings,
    reference_summary,
    seconds_by_set,
    seconds_ratio,
)
from gpcmc.audit.published import METHODS
from gpcmc.experiments.classification import NO_DATA, REAL
from gpcmc.inference import (
    ControlVariables,
    EllipticalSlice,
    GpmlMonteCarlo,
    HamiltonianMonteCarlo,
)
from gpcmc.inference.interface import OK
from gpcmc.report.latex import concise, count, escape, in_last_digit, number, scientific, tabular
from gpcmc.report.table import Table, brief, empty

__all__ = ["TABLES"]

#: Put after one of our values that is from all runs, because those that count do not make one.
ALL_RUNS = r"\rlap{$^\circ$}"


# ---------------------------------------------------------------------------------------------------------------------
# Tables 1 to 3


def _absolute_nats(table: int, files: ResultFiles) -> pd.DataFrame:
    """Mean |log I-hat - log I| in nats, which unlike a percentage compares across dimensions."""
    kind = "experiment1" if table == 1 else "experiment2"
    frame = paper_scheme(read_long(kind, getattr(files, kind)))
    nats = (frame["estimate"] - frame["truth"]).abs().rename("ours_nats")
    return nats.groupby([frame["problem"], frame["samples"]]).mean().reset_index()


def _by_samples(table: int, registry: pd.DataFrame, files: ResultFiles) -> Table:
    cells = registry[registry["table"] == table]
    frame = side_by_side(registry, files)
    frame = frame[frame["table"] == table].drop(columns=["table", "method", "result_file", "note"])
    if table != 2:
        frame = frame.merge(_absolute_nats(table, files), on=["problem", "samples"], how="left")
    frame = frame.sort_values(["samples", "problem"], ascending=[False, True]).reset_index(
        drop=True
    )
    printed = cells.set_index("id")
    by_cell = frame.set_index(["samples", "problem"])
    sizes = cells.drop_duplicates("problem").set_index("problem")["dimension"]
    behind = _replication(table, files)
    frame = frame.merge(behind, on=["problem", "samples"], how="left")
    title = "$n$" if table == 1 else r"sets$\times$runs"
    head = ["$M$", "", title, *(f"Problem {p} ($N={sizes[p]}$)" for p in sizes.index)]
    body = []
    for samples in sorted(cells["samples"].unique(), reverse=True):
        rows = behind[behind["samples"] == samples]
        theirs, ours = [count(samples), "published", ""], ["", "ours", _numbers(rows)]
        for problem in sizes.index:
            cell = by_cell.loc[(samples, problem)]
            text = printed.loc[cell["id"]]
            theirs.append(f"${text['printed']}$ (${text['printed_bracket']}$)")
            places = max(
                len(text[name].partition(".")[2]) for name in ("printed", "printed_bracket")
            )
            ours.append(_ours(cell, places))
        body.append([theirs, ours])
    return Table(frame, tabular("rlr" + "r" * len(sizes), [head], body))


def _replication(table: int, files: ResultFiles) -> pd.DataFrame:
    """How many problems, or data sets and runs on each, are behind our value of a cell."""
    kind = "experiment1" if table == 1 else "experiment2"
    frame = paper_scheme(read_long(kind, getattr(files, kind)))
    cells = frame.groupby(["problem", "samples"])
    if table == 1:
        return cells["instance"].nunique().rename("problems").reset_index()
    runs = frame.groupby(["problem", "samples", "dataset"]).size().rename("runs").reset_index()
    return (
        runs.groupby(["problem", "samples"])["runs"]
        .agg(data_sets="size", runs_least="min", runs_most="max")
        .reset_index()
    )


def _numbers(rows: pd.DataFrame) -> str:
    """Those numbers for one row of a table; several where its columns differ."""
    if "problems" in rows:
        texts = [str(n) for n in rows["problems"]]
    else:
        texts = [
            rf"${sets}\times{least}$" if least == most else rf"${sets}\times({least}$--${most})$"
            for sets, least, most in zip(
                rows["data_sets"], rows["runs_least"], rows["runs_most"], strict=True
            )
        ]
    return ", ".join(dict.fromkeys(texts))


def _ours(cell: pd.Series, most: int) -> str:
    """Our value of a published cell, or why there is none."""
    if math.isnan(cell["ours"]):
        return brief(cell["status"])
    return number(cell["ours"], cell["ours_se"], most=most)


# ---------------------------------------------------------------------------------------------------------------------
# Table 4


def _short(problem: int) -> str:
    """A problem's name in the head of a narrow column."""
    return escape(NAMES[problem].split()[0]) if problem in REAL else f"P{problem}"


_TABLE4 = [
    *("id", "problem", "metric", "method", "published", "published_se", "ours", "ours_se"),
    *("replicates", "ratio", "status", "every", "note"),
]


def table4(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Table 4 as published: the paper's four methods, ours below the published value."""
    cells = registry[registry["table"] == 4].set_index("id")
    frame = side_by_side(registry, files)
    frame = frame[frame["table"] == 4][_TABLE4].reset_index(drop=True)
    frame = frame.join(as_run(registry, files), on="id")
    by_cell = frame.set_index(["metric", "method", "problem"])
    short = STATUSES | {"not comparable": "n.comp."}
    parts = []
    for metric, title, numbers, scale in (
        ("mae_post", "MAE-POST", range(1, 7), 1),
        ("mae_med", r"MAE-MED, $10^{-3}$", NINE, 1000),
    ):
        body = []
        for published, method in METHODS.items():
            theirs, ours = [published.upper(), "published"], [label(method), "ours"]
            for problem in numbers:
                if (metric, method, problem) not in by_cell.index:
                    theirs.append("--")
                    ours.append("--")
                    continue
                cell = by_cell.loc[(metric, method, problem)]
                text = cells.loc[cell["id"], "printed"]
                theirs.append(in_last_digit(_scaled(text, scale), scale * cell["published_se"]))
                value, se = cell["ours"], cell["ours_se"]
                mark = ALL_RUNS if cell["every"] else ""
                if math.isnan(value):
                    value, se, mark = cell["as_run"], cell["as_run_se"], ALL_RUNS
                if math.isnan(value):
                    ours.append(brief(short.get(cell["status"], cell["status"])))
                    continue
                value, se = scale * value, scale * se
                if metric == "mae_post":
                    ours.append(concise(value, se, decimals=4) + mark)
                else:
                    ours.append(_rounded(value, se) + mark)
            body.append([theirs, ours])
        head = [title, "", *(_short(p) for p in numbers)]
        parts.append(tabular("ll" + "r" * len(numbers), [head], body))
    return Table(frame, "\\par\\bigskip\n".join(parts))


def readings_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Table 4 from the toolbox's chains as shipped, and with the variance of predictions counted once."""
    frame = readings(registry, files)
    if frame.empty:
        return Table(frame, empty())
    printed = registry.set_index("id")["printed"]
    every = {reading: reading for reading in READINGS}
    # other methods have no part in MAE-POST
    own = {"as shipped": "as shipped", "both once": "once"}
    parts = []
    for metric, title, methods, shown, digits in (
        ("mae_med", "MAE-MED", METHODS.values(), every, 2),
        ("mae_post", "MAE-POST", READINGS["both once"], own, 4),
    ):
        part = frame[(frame["metric"] == metric) & frame["reading"].isin(shown)]
        numbers = sorted(part["problem"].unique())
        body = []
        for method in methods:
            name = label(method).removesuffix(" as shipped")
            columns = [[name, *([""] * len(shown))], ["published", *shown.values()]]
            for problem in numbers:
                mine = part[(part["method"] == method) & (part["problem"] == problem)]
                theirs = [f"${_scaled(printed[cell], 1000)}$" for cell in mine["id"].unique()]
                ours = [
                    _rounded(1000 * value, 1000 * se, digits)
                    for value, se in zip(mine["ours"], mine["ours_se"], strict=True)
                ]
                columns.append([*theirs, *ours] or ["--"] * (1 + len(shown)))
            body.append([list(row) for row in zip(*columns, strict=True)])
        head = [rf"{title}, $10^{{-3}}$", "", *(_short(p) for p in numbers)]
        parts.append(tabular("ll" + "r" * len(numbers), [head], body))
    return Table(frame, "\\par\\bigskip\n".join(parts))


def _scaled(printed: str, scale: int) -> str:
    """A printed number times a power of ten, with the digits that were printed: "1.7e-2" gives "17"."""
    return f"{Decimal(printed).scaleb(len(str(scale)) - 1):f}"


# ---------------------------------------------------------------------------------------------------------------------
# Experiment 4 beyond the published table


def _rounded(value: float, se: float, digits: int = 2) -> str:
    """A positive number with so many significant digits and its standard error in their last place."""
    if value == 0:
        return "$0$"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if decimals > 4:
        return scientific(value, digits)
    return concise(value, se, decimals=decimals)


def _block(
    frame: pd.DataFrame, column: str, over: Over, scale: float, digits: int
) -> tuple[list[list[str]], pd.DataFrame]:
    """Methods in rows, problems in columns: averages over hyperparameter sets.

    A raised number in brackets says how many sets an average is over, where that is fewer than there are; such
    an average is grey, for it cannot be compared with those over all sets.
    """
    found = by_problem(frame, column, over)
    numbers = _numbers_of(frame, column)
    by_cell = found.set_index(["method", "problem"])
    rows = []
    for method in methods_in_order(frame["method"]):
        row = []
        for problem in numbers:
            if (method, problem) not in by_cell.index:
                row.append("--")
                continue
            cell = by_cell.loc[(method, problem)]
            if cell["status"] != OK:
                short = {"none": "--", "uncertified": brief("uncert."), "no reference": "--"}
                status = cell["status"]
                row.append(short.get(status) or brief(STATUSES.get(status, status)))
                continue
            text = _rounded(scale * cell["value"], scale * cell["se"], digits)
            if cell["sets"] < cell["wanted"]:
                text = rf"\textcolor{{gray}}{{{text}$^{{[{cell['sets']}]}}$}}"
            row.append(text)
        rows.append([label(method), *row])
    return rows, found.assign(measure=column, over=over)


def _numbers_of(frame: pd.DataFrame, column: str) -> list[int]:
    """The problems that a measure has: real data have no Bayes posterior."""
    numbers = (int(p) for p in sorted(frame["problem"].unique()))
    return [p for p in numbers if column != "mae_post" or p not in REAL]


def _blocks(
    registry: pd.DataFrame,
    files: ResultFiles,
    wanted: Sequence[tuple[str, str, Over, float, int]],
    last: Callable[[pd.DataFrame], list[str]] | None = None,
) -> Table:
    """Several blocks below one another, one without a value in words; `last` makes one more row from the cells."""
    frame = all_cells(registry, files)
    columns = ["method", "problem", *Average._fields, "measure", "over"]
    if frame.empty:
        return Table(pd.DataFrame(columns=columns), empty())
    parts, frames = [], []
    for position, (column, title, over, scale, digits) in enumerate(wanted):
        rows, found = _block(frame, column, over, scale, digits)
        frames.append(found)
        if column == "mae_med" and found["value"].isna().all():
            parts.append(
                "MAE-MED: there is no set with runs of all of the paper's methods that count.\n"
            )
            continue
        numbers = _numbers_of(frame, column)
        groups = [rows]
        if last is not None and position == 0:
            groups.append([last(frame)])
        head = [title, *(_short(p) for p in numbers)]
        parts.append(tabular("l" + "r" * len(numbers), [head], groups))
    table = pd.concat(frames, ignore_index=True)[columns]
    return Table(table, "\\par\\bigskip\n".join(parts))


def posterior_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """MAE-POST and MAE-MED of every method, averaged over all hyperparameter sets as published."""
    return _blocks(
        registry,
        files,
        [
            ("mae_post", "MAE-POST", "all", 1.0, 3),
            ("mae_med", r"MAE-MED, $10^{-3}$", "all", 1000.0, 2),
        ],
    )


def accuracy_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Errors of every method against the certified reference."""

    def own(frame: pd.DataFrame) -> list[str]:
        errors = cells_over(frame, "certified").groupby("problem")["reference_p_se"].mean()
        numbers = sorted(frame["problem"].unique())
        texts = (_rounded(1000 * errors[p], 0.0) if p in errors else "--" for p in numbers)
        return [r"\textit{s.e.\ of the reference}", *texts]

    return _blocks(
        registry,
        files,
        [
            ("mae_reference", r"mean $|\Delta p|$, $10^{-3}$", "certified", 1000.0, 2),
            ("nats", r"$|\Delta\log L|$, nats", "certified", 1.0, 2),
        ],
        last=own,
    )


def metrics_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Test errors, and the largest error of a probability."""
    return _blocks(
        registry,
        files,
        [
            ("error_rate", "test errors, \\%", "telling", 100.0, 3),
            ("largest_reference", r"largest $|\Delta p|$, $10^{-3}$", "certified", 1000.0, 2),
        ],
    )


def efficiency_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """CPU seconds of a run, and effective samples a CPU second."""
    return _blocks(
        registry,
        files,
        [
            ("cpu_seconds", "CPU seconds a run", "telling", 1.0, 2),
            ("effective_per_second", "effective samples / s", "telling", 1.0, 2),
        ],
    )


def seconds_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """CPU seconds by hyperparameter set, and the ratio of the sets with the shortest length scale."""
    frame = seconds_by_set(all_cells(registry, files))
    if frame.empty:
        return Table(frame, empty())
    settings = frame.drop_duplicates("set").sort_values("set")
    by_cell = frame.set_index(["method", "set"])
    ratios = seconds_ratio(frame)
    body = []
    for method in methods_in_order(frame["method"]):
        row = [label(method)]
        for number_ in settings["set"]:
            value = (
                float(by_cell.loc[(method, number_), "relative"])
                if (method, number_) in by_cell.index
                else math.nan
            )
            row.append("--" if math.isnan(value) else _rounded(value, 0.0))
        ratio = ratios.get(method, math.nan)
        body.append([*row, "--" if math.isnan(ratio) else _rounded(ratio, 0.0)])
    top = ["set", *(str(int(k)) for k in settings["set"]), "ratio"]
    alphas = [r"$\alpha$", *(f"${a:g}$" for a in settings["alpha"]), ""]
    betas = [r"$\beta$", *(f"${b:g}$" for b in settings["beta"]), ""]
    columns = "l" + "r" * len(settings) + "r"
    return Table(frame, tabular(columns, [top, alphas, betas], [body]))


def _signed(value: float, se: float) -> str:
    """A difference with its standard error, three decimals at most."""
    if se >= 10:
        decimals = 0
    elif se >= 1 or abs(value) >= 10:
        decimals = 1
    else:
        decimals = 3 if abs(value) < 0.1 and se < 0.1 else 2
    return concise(round(value, decimals) + 0.0, se, decimals=decimals)


def _evidence_part(registry: pd.DataFrame, files: ResultFiles, part: int) -> Table:
    """Log evidence of each problem and hyperparameter set: the reference, and methods less it."""
    frame = all_cells(registry, files)
    keep = [*frame.columns[: frame.columns.get_loc("difference_se") + 1]]
    if frame.empty:
        return Table(frame[keep], empty())
    methods = [m for m in methods_in_order(frame["method"]) if m != "control-variables"]
    first = [m for m in methods if m in FIRST_EVIDENCE]
    methods = first if part == 1 else [m for m in methods if m not in FIRST_EVIDENCE]
    by_cell = frame.set_index(["problem", "set", "method"])
    body = []
    for problem, group in frame.groupby("problem"):
        rows: list[list[str]] = []
        for number_, one in group.drop_duplicates("set").set_index("set").iterrows():
            mark = "$^*$" if one["trivial"] else ""
            row = [_short(int(problem)) if not rows else "", f"{number_}{mark}"]
            if part == 1:
                row += [f"${one['alpha']:g}$", f"${one['beta']:g}$", _reference_text(one)]
            for method in methods:
                key = (problem, number_, method)
                cell = by_cell.loc[key] if key in by_cell.index else None
                row.append(_evidence_text(cell, 1000 if method in IN_THOUSANDTHS else 1))
            rows.append(row)
        body.append(rows)
    head = ["", "set"] + ([r"$\alpha$", r"$\beta$", "reference"] if part == 1 else [])
    units = [r"$10^{-3}$" if method in IN_THOUSANDTHS else "" for method in methods]
    heads = [[*head, *(SHORT.get(method, method) for method in methods)]]
    if any(units):
        heads.append([*([""] * len(head)), *units])
    columns = ("lrrrr" if part == 1 else "lr") + "r" * len(methods)
    table = frame[frame["method"].isin(methods)][keep].reset_index(drop=True)
    return Table(table, tabular(columns, heads, body))


#: Methods in the first of the two tables of log evidence: the paper's, and its chains done properly.
FIRST_EVIDENCE = ("orthant", "ess-gpml", "hmc-gpml", "ess", "hmc")
#: Methods whose differences are printed in thousandths of a nat, for in nats most would be zero.
IN_THOUSANDTHS = ("minimax-tilting", "importance-ep", "importance-laplace", "best")


def _reference_text(one: pd.Series) -> str:
    if one["reference"] == "none":
        return brief("no data") if one["status"] == NO_DATA else "--"
    text = concise(one["reference_log_evidence"], one["reference_log_evidence_se"], decimals=4)
    return text if one["reference"] == "certified" else text + r"\rlap{$^u$}"


def _evidence_text(cell: pd.Series | None, scale: int) -> str:
    if cell is None:
        return "--"
    short = brief(STATUSES.get(cell["status"], cell["status"]))
    if cell["ok"] == 0:
        return short
    bad = cell["runs"] - cell["ok"]
    fewer = f"$_{{{bad}/{cell['runs']}}}$" if bad else ""
    if math.isnan(cell["log_evidence"]):
        return "--"
    if math.isnan(cell["difference"]):  # no reference: the log evidence itself, in italics
        return rf"\textit{{{cell['log_evidence']:.3f}}}" + fewer
    return _signed(scale * cell["difference"], scale * cell["difference_se"]) + fewer


def _if_there(value: float, decimals: int | None = None) -> str:
    if not math.isfinite(value):
        return "--"
    return scientific(value) if decimals is None else number(value, decimals=decimals)


def reference_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """The certified reference by problem: how many cells, how sure."""
    frame = reference_summary(files)
    if frame.empty:
        return Table(frame, empty("no reference"))
    rows = [
        [
            escape(NAMES[int(row["problem"])]),
            *(str(int(row[name])) for name in ("cells", "certified", "trivial")),
            *(
                _if_there(row[f"{which}_se"])
                for which in ("log_evidence", "probability", "certifier")
            ),
            _if_there(row["z"], 1),
            _if_there(row["k_hat"], 2),
        ]
        for _, row in frame.iterrows()
    ]
    top = ["", r"\multicolumn{3}{c}{sets}", r"\multicolumn{2}{c}{largest s.e.}", "certifier's"]
    top += ["largest", "largest"]
    rules = [r"\cmidrule(lr){2-4}\cmidrule(lr){5-6}"]
    head = ["", "all", "certified", "trivial", r"$\log L$", "$p$", r"s.e.\ of $\log L$"]
    head += ["$|z|$", r"$\hat k$"]
    return Table(frame, tabular("lrrrrrrrr", [top, head], [rows], rules))


# ---------------------------------------------------------------------------------------------------------------------
# Findings


def spread_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Experiment 2: how much data sets differ."""
    frame = found.data_sets(registry, files)
    if frame.empty:
        return Table(frame, empty())
    body = []
    for table, title in ((2, "MAE"), (3, r"MAPE, \%")):
        rows: list[list[str]] = []
        for problem, group in frame[frame["table"] == table].groupby("problem"):
            # The sample size with most data sets; of those the smallest, where a user would first
            # look.
            best = group.sort_values(["data_sets", "samples"], ascending=[False, True]).iloc[0]
            rows.append(
                [
                    title if not rows else "",
                    str(problem),
                    count(int(best["samples"])),
                    str(int(best["data_sets"])),
                    *(
                        number(best[name], decimals=5 if table == 2 else 4)
                        for name in ("lowest", "mean", "highest")
                    ),
                    "--" if math.isnan(best["factor"]) else number(best["factor"], decimals=2),
                    number(best["published"], decimals=5 if table == 2 else 4),
                ]
            )
        body.append(rows)
    head = ["", "Problem", "$M$", "data sets", "lowest", "mean", "highest", "factor", "published"]
    return Table(frame, tabular("lrrrrrrrr", [head], body))


def brackets_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Value over bracket in Tables 1 to 3, and the number of runs that explains it."""
    frame = found.brackets(registry)
    body = []
    for table, group in frame.groupby("table"):
        rows: list[list[str]] = []
        for _, row in group.iterrows():
            none = row["runs_low"] > row["runs_high"]
            rows.append(
                [
                    str(table) if not rows else "",
                    str(row["problem"]),
                    f"{number(row['ratio_low'], decimals=2)} to {number(row['ratio_high'], decimals=2)}",
                    "none"
                    if none
                    else f"{number(row['runs_low'], decimals=2)} to {number(row['runs_high'], decimals=2)}",
                    "--" if pd.isna(row["runs"]) else str(row["runs"]),
                ]
            )
        body.append(rows)
    head = ["Table", "Problem", "value / bracket", "common interval of $n$", "integer $n$"]
    return Table(frame, tabular("rrccr", [head], body))


def variance_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Measured variance of the log estimate over that of Eq. (44), and over our own squared standard error."""
    overall = found.overall_variance(files).drop(columns="clusters")
    parts = [found.variance(files, pooled=True), overall, found.variance(files)]
    frame = pd.concat(parts, ignore_index=True)
    if frame.empty:
        return Table(frame, empty())
    frame = frame.astype(dict.fromkeys(("problem", "dimension"), "Int64"))
    body = []
    for experiment, group in frame[frame["samples"].isna()].groupby("experiment"):
        rows: list[list[str]] = []
        for _, row in group.iterrows():
            whole = pd.isna(row["problem"])
            rows.append(
                [
                    str(experiment) if not rows else "",
                    "all" if whole else f"{row['problem']} ($N={row['dimension']}$)",
                    count(int(row["runs"])),
                    *("--" if whole else number(row[name]) for name in ("predicted", "measured")),
                    number(row["ratio"], row["ratio_se"]),
                    number(row["own_ratio"], row["own_ratio_se"]),
                ]
            )
        body.append(rows)
    head = ["Experiment", "Problem", "runs", "$M\\times$ Eq.\\,(44)", "$M\\times$ measured"]
    head += ["measured / Eq.\\,(44)", "measured / own"]
    return Table(frame, tabular("rlrrrrr", [head], body))


def floor_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """What is left of Table 1 when the one wrong truth that its brackets imply is taken out."""
    frame = found.floor(registry, side_by_side(registry, files))
    cells = frame.set_index(["samples", "dimension"])
    dimensions = sorted(frame.dropna(subset="outlier")["dimension"].unique())
    rows = []
    for samples in sorted(frame["samples"].unique(), reverse=True):
        row = [count(samples)]
        for dimension in dimensions:
            cell = cells.loc[(samples, dimension)]
            row += [
                number(cell["published"], decimals=3),
                *(
                    "--" if math.isnan(cell[name]) else number(cell[name], decimals=decimals)
                    for name, decimals in (("outlier", 2), ("without_outlier", 3))
                ),
                brief("not run")
                if math.isnan(cell["ours"])
                else number(cell["ours"], cell["ours_se"], most=4),
            ]
        rows.append(row)
    top = ["", *(rf"\multicolumn{{4}}{{c}}{{$N={dimension}$}}" for dimension in dimensions)]
    rules = [" ".join(rf"\cmidrule(lr){{{2 + 4 * i}-{5 + 4 * i}}}" for i in range(len(dimensions)))]
    head = ["$M$", *(["published", "implied $e$", "without", "ours"] * len(dimensions))]
    return Table(frame, tabular("r" + "rrrr" * len(dimensions), [top, head], [rows], rules))


#: Counts of a run as the rows of a method have them, and how they are printed.
_SETTINGS = {
    "samples": "samples",
    "points": "points a set",
    "randomizations": "sets of points",
    "chains": "chains",
    "adaptation_rounds": "rounds of adaptation",
    "burn_in": "burn-in",
    "iterations": "iterations",
    "skip": "moves a sample",
    "temperatures": "temperatures",
    "annealing_runs": "annealed runs",
}
#: Whose defaults stand where a row, which has what was configured, has no such entry.
_DEFAULTS: dict[str, type] = {
    "control-variables": ControlVariables,
    "ess-gpml": GpmlMonteCarlo,
    "hmc-gpml": GpmlMonteCarlo,
    "ess": EllipticalSlice,
    "hmc": HamiltonianMonteCarlo,
}


def settings_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Counts of Experiment 4 by method and problem: those configured, and of chains the defaults beside them."""
    rows = read_long("experiment4", files.experiment4)
    if rows.empty:
        return Table(pd.DataFrame(columns=["method", "setting", "problem", "value"]), empty())
    numbers = sorted(int(p) for p in rows["problem"].unique())
    tidy, body = [], []
    for method in methods_in_order(rows["method"]):
        mine = rows[rows["method"] == method]
        of_class = fields(_DEFAULTS[method]) if method in _DEFAULTS else ()
        given = {field.name: field.default for field in of_class}
        group: list[list[str]] = []
        for setting, said in _SETTINGS.items():
            # of importance sampling "points" is a word
            counts = pd.to_numeric(mine.get(setting, pd.Series(dtype=float)), errors="coerce")
            if counts.isna().all():
                if setting not in given:
                    continue
                counts = pd.Series(given[setting], index=mine.index)
            row = [label(method) if not group else "", said]
            for problem in numbers:
                here = mine["problem"] == problem
                values = sorted(
                    {int(v) for v in counts[here & (mine["status"] != NO_DATA)].dropna()}
                )
                tidy += [(method, setting, problem, value) for value in values]
                none = brief("no data") if (mine[here]["status"] == NO_DATA).any() else "--"
                row.append(", ".join(map(count, values)) or none)
            group.append(row)
        if group:
            body.append(group)
    head = ["", "", *(_short(p) for p in numbers)]
    table = pd.DataFrame(tidy, columns=["method", "setting", "problem", "value"])
    return Table(table, tabular("ll" + "r" * len(numbers), [head], body))


#: Formulas as the numerical check writes them, and as LaTeX sets them.
_FORMULAS = {
    "C'(I + Sigma')C'": r"$C'(I+\Sigma')C'$",
    "(N+1) x (N+1)": r"$(N+1)\times(N+1)$",
    "N x N": r"$N\times N$",
    "Sigma_XX*^T C'": r"$\Sigma_{XX_*}^{T}C'$",
    "C' Sigma_XX*": r"$C'\Sigma_{XX_*}$",
    "sqrt(2 pi)": r"$\sqrt{2\pi}$",
    "b' = A_12 B^-1 b": r"$\mathbf b'=A_{12}B^{-1}\mathbf b$",
    "b' b'^T": r"$\mathbf b'\mathbf b'^{T}$",
    "+C'(I + Sigma^-1)^-1 a": r"$+C'(I+\Sigma^{-1})^{-1}\mathbf a$",
    "Sigma'": r"$\Sigma'$",
    "Sigma": r"$\Sigma$",
    "N = NTEST": r"$N=N_{\mathrm{test}}$",
    "alpha -> infinity": r"$\alpha\to\infty$",
    "alpha -> 0": r"$\alpha\to0$",
    "beta -> infinity": r"$\beta\to\infty$",
    "beta -> 0": r"$\beta\to0$",
    "L = 2^-N": r"$L=2^{-N}$",
    " -1 ": " $-1$ ",
}


def _formulas(text: str) -> str:
    """Plain text with its formulas set as mathematics, the longest first."""
    pattern = "|".join(re.escape(formula) for formula in sorted(_FORMULAS, key=len, reverse=True))
    pieces = re.split(f"({pattern})", text)
    return "".join(_FORMULAS.get(piece, escape(piece)) for piece in pieces)


def _equation_name(name: str) -> str:
    """An equation as it is cited; a section has no brackets."""
    if name.startswith("section"):
        return escape(name.replace("section", "sec."))
    return f"({escape(name)})".replace("-", ")--(")


def equations_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """The checked equations, those that are misprinted with their correction."""
    frame = read_long("equations", files.equations).drop(columns="file").fillna({"correction": ""})
    if frame.empty:
        return Table(frame, empty())
    rows = [
        [
            _equation_name(str(row["equation"])),
            _formulas(row["statement"]),
            _formulas(row["correction"]) if row["correction"] else "none needed",
            *(
                "--"
                if math.isnan(row[name])
                else number(row[name], decimals=1)
                if row[name] >= 0.1
                else scientific(row[name])
                for name in ("printed_error", "corrected_error")
            ),
        ]
        for _, row in frame.iterrows()
    ]
    head = ["Eq.", "as printed", "correction", "printed", "corrected"]
    top = ["", "", "", r"\multicolumn{2}{c}{largest error}"]
    wrap = r">{\raggedright\arraybackslash}p{48mm}"
    rules = [r"\cmidrule(lr){4-5}"]
    return Table(frame, tabular(f"r{wrap}{wrap}rr", [top, head], [[row] for row in rows], rules))


def _published(table: int) -> Callable[[pd.DataFrame, ResultFiles], Table]:
    return lambda registry, files: _by_samples(table, registry, files)


#: Every table by the name of its files. Each takes the published registry and the result files.
TABLES: dict[str, Callable[[pd.DataFrame, ResultFiles], Table]] = {
    "table1": _published(1),
    "table2": _published(2),
    "table3": _published(3),
    "table4": table4,
    "readings": readings_table,
    "posterior": posterior_table,
    "accuracy": accuracy_table,
    "metrics": metrics_table,
    "efficiency": efficiency_table,
    "seconds": seconds_table,
    "evidence": lambda registry, files: _evidence_part(registry, files, 1),
    "evidence_more": lambda registry, files: _evidence_part(registry, files, 2),
    "reference": reference_table,
    "spread": spread_table,
    "brackets": brackets_table,
    "variance": variance_table,
    "floor": floor_table,
    "equations": equations_table,
    "settings": settings_table,
}
