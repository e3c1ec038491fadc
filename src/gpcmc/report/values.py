r"""Every number of the paper's text: one JSON file, and the same as LaTeX macros.

The set of keys does not depend on what was run. A value that a run does not have says so in words
("not run", "data not available"), and ``\ifval`` lets a sentence be left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import chdtri

from gpcmc.audit import METHODS, VERDICTS, Estimator, ResultFiles, count_verdicts, read_long
from gpcmc.audit import audit as compare_cells
from gpcmc.audit import findings as found
from gpcmc.audit.compare import ALPHA, NOT_COMPARED
from gpcmc.audit.experiment4 import (
    LABELS,
    NAMES,
    NINE,
    PAPER,
    READINGS,
    SAMPLER,
    all_cells,
    as_run,
    by_problem,
    cells_over,
    certified_reference,
    control_inputs,
    data_set_range,
    label,
    mae_med_by_problem,
    mae_post_ranges,
    problems,
    readings,
    run_gaps,
    seconds_by_set,
    seconds_ratio,
    seconds_where_trivial,
    subnormal_share,
)
from gpcmc.audit.results import mean_and_error
from gpcmc.experiments.classification import NO_DATA
from gpcmc.experiments.reference import AGREES, CERTIFIED, DIFFERS, TRUTHS
from gpcmc.inference import GpmlMonteCarlo
from gpcmc.inference.interface import MIN_EFFECTIVE, NOT_CONVERGED, OK
from gpcmc.report import audit as report_audit
from gpcmc.report import comparisons
from gpcmc.report.latex import decimals_for
from gpcmc.report.value import Source, Value, Values, defined

__all__ = ["PUBLISHED_SCALE", "collect", "write_values"]

#: The scale with the published sample sizes and repetitions; a PDF of any other says on every page
#: that it is another.
PUBLISHED_SCALE = "published"

#: LaTeX that comes before the values: how they are defined and how the text asks for them.
_MACROS = r"""% Made by gpcmc.report.values from the result files; every number of the text is here.
% Arguments: key, text, and in hexadecimal what is shown under the pointer.
\newcommand{\gpcmcmissing}[3]{\expandafter\def\csname gpcmc@value@#1\endcsname{\textit{#2}}%
  \expandafter\def\csname gpcmc@tip@#1\endcsname{#3}}
\newcommand{\gpcmcvalue}[3]{\gpcmcmissing{#1}{}{#3}\expandafter\def\csname gpcmc@value@#1\endcsname{#2}%
  \expandafter\let\csname gpcmc@known@#1\endcsname\relax}
\newcommand{\gpcmcunknown}[1]{\PackageError{gpcmc}{Unknown value '#1'}{Needed is a key of values.json.}}
% \valtext{key}: the value as text, or in italics why there is none.
\newcommand{\valtext}[1]{\ifcsname gpcmc@value@#1\endcsname\csname gpcmc@value@#1\endcsname
  \else\gpcmcunknown{#1}\fi}
% \val{key}: the same as a link to its row in the appendix. Over the link lies a button with the same
% target, because that is the annotation of which viewers show a text under the pointer.
\newcount\gpcmctips
\protected\def\val#1{\expandafter\global\expandafter\let\csname gpcmc@used@#1\endcsname\relax
  \hyperlink{val:#1}{\global\advance\gpcmctips1
    \pdfstartlink user{/Subtype/Widget/FT/Btn/Ff 65536/H/N/F 768/T(value \the\gpcmctips)%
      /TU<\ifcsname gpcmc@tip@#1\endcsname\csname gpcmc@tip@#1\endcsname\fi>/A<</S/GoTo/D(val:#1)>>}%
    \valtext{#1}\pdfendlink}}
% \ifval{key}{text if there is a value}{text if there is none}
% An empty text between two spaces takes the second with it.
\newcommand{\ifval}[3]{\ifcsname gpcmc@value@#1\endcsname\else\gpcmcunknown{#1}\fi
  \ifcsname gpcmc@known@#1\endcsname#2\else\ifx\relax#3\relax\gpcmcnothing\else#3\fi\fi}
\protected\def\gpcmcnothing{\ifdim\lastskip>0pt \ignorespaces\fi}
"""


def _estimated_by(cell: pd.Series) -> Callable[..., object]:
    """What computes our side of a cell."""
    if cell["table"] == 4:
        return Estimator.mae_post if cell["metric"] == "mae_post" else Estimator._mae_med
    return Estimator._table1 if cell["table"] == 1 else Estimator._table2or3


def _audit_values(out: Values, audited: pd.DataFrame, source: str) -> None:
    every = Source(source, {})
    out.whole("audit/cells", len(audited), every)
    named = tuple(verdict for verdict in VERDICTS if verdict not in NOT_COMPARED)
    tables = [(f"audit/table{t}", {"table": t}, g) for t, g in audited.groupby("table")]
    for scope, rows, frame in [("audit", {}, audited), *tables]:
        counts = count_verdicts(frame)
        for verdict in VERDICTS:
            where = Source(source, rows | {"verdict": verdict})
            out.whole(f"{scope}/{verdict.replace(' ', '-')}", counts[verdict], where)
        where = Source(source, rows | {"verdict": named})
        out.whole(f"{scope}/compared", int(frame["z"].notna().sum()), where)
    counts = count_verdicts(audited)
    line = ", ".join(f"{number_} {verdict}" for verdict, number_ in counts.items())
    out.words("audit/line", f"{len(audited)} published cells: {line}", every)
    bad = audited[audited["verdict"] == "discrepant"]["id"].tolist()
    where = Source(source, {"verdict": "discrepant"})
    out.words("audit/discrepant-cells", ", ".join(bad), where, missing="none")
    for _, cell in audited.iterrows():
        name, where = cell["id"], Source(cell["result_file"] or source, by=_estimated_by(cell))
        unit = r"\,\%" if cell["table"] in (1, 3) else ""
        missing = cell["verdict"]
        digits = len(f"{cell['published']:.10f}".rstrip("0").split(".")[1])
        out.real(f"{name}/published", cell["published"], source, unit=unit, decimals=digits)
        out.real(
            f"{name}/ours", cell["ours"], where, se=cell["ours_se"], unit=unit, missing=missing
        )
        where = where._replace(by=compare_cells)
        out.real(f"{name}/ratio", cell["ratio"], where, missing=missing)


def _design_values(out: Values, files: ResultFiles) -> None:
    first, second = (
        read_long("experiment1", files.experiment1),
        read_long("experiment2", files.experiment2),
    )
    source = Source("experiment1/N*.csv", {})
    out.integers("experiment1/dimensions", first["dimension"], source)
    out.integers("experiment1/samples", first["samples"], source)
    vectors = first.groupby(["dimension", "samples"])["instance"].nunique()
    out.integers("experiment1/problems", vectors, source)
    source = Source("experiment2/problem*.csv", {})
    out.integers("experiment2/problems", second["problem"], source)
    out.integers("experiment2/samples", second["samples"], source)
    groups = second.groupby(["problem", "samples"])
    out.integers("experiment2/data-sets", groups["dataset"].nunique(), source)
    out.integers(
        "experiment2/runs", second.groupby(["problem", "samples", "dataset"]).size(), source
    )
    fourth, name = read_long("experiment4", files.experiment4), "experiment4/problem*/*.csv"
    mine = fourth[(fourth["method"] == SAMPLER) & (fourth["status"] == OK)]
    mine = mine[mine["dataset"] == 0]
    source = Source(name, {"method": SAMPLER, "status": OK, "dataset": 0})
    out.integers("experiment4/replicates", mine.groupby(["problem", "set"]).size(), source)
    source = Source(name, {})
    out.integers("experiment4/sets", [fourth["set"].nunique()] if len(fourth) else [], source)
    for method in ("ess-gpml", "hmc-gpml"):  # too short to converge, however well they mix
        kept = fourth[fourth["method"] == method].groupby("problem")["samples"].max().dropna()
        short = kept[kept < MIN_EFFECTIVE]
        most = int(short.max()) if len(short) else None
        missing = "enough" if len(kept) else "not run"
        named = ", ".join(NAMES[int(problem)] for problem in short.index)
        named = "every problem" if len(short) == len(kept) > 0 else named
        source = Source(name, {"method": method, "problem": tuple(map(int, short.index))})
        out.whole(f"experiment4/short/{method}/most", most, source, missing=missing)
        out.words(f"experiment4/short/{method}/problems", named, source, missing=missing)
    _settings_values(out, fourth.reindex(columns=[*fourth.columns.union(["iterations", "skip"])]))
    available = {number_: problem.available for number_, problem in problems(files).items()}
    lost = [NAMES[number_] for number_, there in available.items() if not there]
    out.words(
        "experiment4/without-data", ", ".join(lost), "experiment4/problem*.npz", missing="none"
    )
    out.whole("experiment4/problems", len(available), "experiment4/problem*.npz")


def _settings_values(out: Values, rows: pd.DataFrame) -> None:
    """Where counts of Experiment 4 are below those of the paper."""
    source = "tables/settings.csv"
    most = rows[rows["method"] == "control-variables"]["iterations"].max()
    out.whole("settings/control-variables/iterations", None if pd.isna(most) else int(most), source)
    skip = GpmlMonteCarlo().skip
    out.whole("settings/hmc-gpml/skip", skip, defined("gpcmc.inference.gpml", "skip"))
    fewer = rows[(rows["method"] == "hmc-gpml") & (rows["skip"] < skip)]
    named = ", ".join(NAMES[problem] for problem in sorted(fewer["problem"].unique()))
    out.words("settings/hmc-gpml/fewer", named or None, source, missing="none")


def _bracket_values(out: Values, registry: pd.DataFrame) -> None:
    name = "tables/brackets.csv"
    frame = found.brackets(registry)
    genuine = frame[frame["table"].isin([2, 3])]
    out.whole("brackets/cells", int(genuine["cells"].sum()), Source(name, {"table": (2, 3)}))
    for key, numbers in (("problems1-3", (1, 2, 3)), ("problem4", (4,))):
        part = genuine[genuine["problem"].isin(numbers)]
        source = Source(name, {"table": (2, 3), "problem": numbers})
        low, high = part["runs_low"].max(), part["runs_high"].min()
        out.real(f"brackets/{key}/low", low, source, decimals=2)
        out.real(f"brackets/{key}/high", high, source, decimals=2)
        inside = range(math.ceil(low), math.floor(high) + 1)
        out.whole(f"brackets/{key}/runs", inside[0] if len(inside) == 1 else None, source)
    table1 = frame[frame["table"] == 1]
    out.real("brackets/table1/lowest", table1["ratio_low"].min(), name, decimals=1)
    out.real("brackets/table1/highest", table1["ratio_high"].max(), name, decimals=1)


def _floor_values(
    out: Values, registry: pd.DataFrame, audited: pd.DataFrame, files: ResultFiles
) -> None:
    source = "tables/floor.csv"
    frame = found.floor(registry, audited)
    left = found.floor_left(registry, frame, files)
    for dimension, cells in frame.groupby("dimension"):
        key = f"floor/N{dimension}"
        out.real(f"{key}/fit", cells["floor"].iloc[0], source, unit=r"\,\%", decimals=3)
        for name, value in (("low", cells["outlier"].min()), ("high", cells["outlier"].max())):
            out.real(
                f"{key}/outlier-{name}", value, source, unit=r"\,\%", missing="none", decimals=2
            )
        implied = cells.dropna(subset="outlier")["samples"]
        least = int(implied.min()) if len(implied) else None
        out.whole(f"{key}/outlier-samples", least, source, missing="none")
        out.real(f"{key}/bracket-low", cells["bracket"].min(), source, unit=r"\,\%", decimals=4)
        out.real(f"{key}/bracket-high", cells["bracket"].max(), source, unit=r"\,\%", decimals=4)
        run = cells.dropna(subset="ours")
        last = run.sort_values("samples").iloc[-1] if len(run) else None
        out.whole(f"{key}/largest-samples", None if last is None else last["samples"], source)
        for name in ("published", "without_outlier"):
            value = math.nan if last is None else last[name]
            out.real(f"{key}/{name.replace('_', '-')}", value, source, unit=r"\,\%", decimals=3)
        ours, se = (math.nan, math.nan) if last is None else (last["ours"], last["ours_se"])
        out.real(f"{key}/ours", ours, source, se=se, unit=r"\,\%")
        behind = 0 if last is None else int(last["replicates"])
        out.whole(f"{key}/largest-problems", behind or None, source)
        column = left.reindex([dimension]).iloc[0]
        out.real(f"{key}/ratio", column["ratio"], source, decimals=1)
        out.real(f"{key}/left", column["left"], source, se=column["left_se"])
        clear = column["left"] > 1 and column["p"] < ALPHA
        out.words(f"{key}/remains", "yes" if clear else None, source, missing="no")
    _grid_values(out, files, frame)


#: Grids of which the text speaks, from the coarsest.
GRIDS = 4


def _grid_values(out: Values, files: ResultFiles, table: pd.DataFrame) -> None:
    """Errors of truths from coarse grids, and whether one wrong truth as implied is among them."""
    coarse, name = found.coarse_grid_errors(files), "experiment1/quadrature.csv"
    steps = [*sorted(coarse["du"].unique(), reverse=True), *[math.nan] * GRIDS][:GRIDS]
    implied = table.dropna(subset="outlier").groupby("dimension")["outlier"].min()
    reproduced = []
    for rank, step in enumerate(steps, start=1):
        rows: dict[str, object] = {"du": step}
        source = Source(name, rows, found.coarse_grid_errors)
        out.real(f"floor/grid/{rank}/step", step, source, decimals=2 if step > 0 else None)
        for dimension in (50, 200, 500):
            part = coarse[(coarse["dimension"] == dimension) & (coarse["du"] == step)]
            source = source._replace(rows=rows | {"dimension": dimension})
            mean, largest = (
                float(part[column].iloc[0]) if len(part) else math.nan
                for column in ("truth_error", "truth_error_max")
            )
            key = f"floor/grid/{rank}/N{dimension}"
            out.power(f"{key}/mean", mean, source)
            out.power(f"{key}/largest", largest, source)
            share = largest / mean if mean > 0 else math.nan
            out.real(f"{key}/share", share, source, decimals=0 if share > 0 else None)
            # most of the error in one truth, and that truth as wrong as the brackets say
            if share > 25 and largest >= implied.get(dimension, math.inf):
                reproduced.append(f"N = {dimension} and spacing {step:g}")
            if rank == 1:
                ends = part.dropna(subset="samples").sort_values("samples")
                for end, place in (("first", 0), ("last", -1)):
                    there = len(ends) > 0
                    row = ends.iloc[place] if there else {}
                    number_, se = (
                        float(row[c]) if there else math.nan for c in ("error", "error_se")
                    )
                    out.real(f"floor/grid/N{dimension}/{end}", number_, source, se=se, unit=r"\,\%")
                    samples = int(row["samples"]) if there else None
                    out.whole(f"floor/grid/N{dimension}/{end}-samples", samples, source)
    out.words("floor/grid/reproduced", ", ".join(reproduced), name, missing="no")


def _variance_values(out: Values, files: ResultFiles) -> None:
    source = "tables/variance.csv"
    frame = found.variance(files, pooled=True)
    cells = frame.set_index(["experiment", "problem"])
    for experiment, numbers in ((1, [1, 2, 3]), (2, [1, 2, 3, 4])):
        for problem in numbers:
            there = (experiment, problem) in cells.index
            for name in ("ratio", "own_ratio"):
                value, se = (
                    (cells.loc[(experiment, problem), [name, f"{name}_se"]])
                    if there
                    else (math.nan, math.nan)
                )
                key = f"variance/experiment{experiment}/problem{problem}/{name.replace('_', '-')}"
                out.real(key, float(value), source, se=float(se))
    overall = found.overall_variance(files).set_index("experiment")
    for experiment in (1, 2):
        for name in ("ratio", "own_ratio"):
            value, se = math.nan, math.nan
            if experiment in overall.index:
                value, se = (
                    float(overall.loc[experiment, column]) for column in (name, f"{name}_se")
                )
            out.real(
                f"variance/experiment{experiment}/{name.replace('_', '-')}", value, source, se=se
            )
        # here of the second: the measured variance over the square of our own standard error
        short = 100 * (1 - value**-0.5) if value - 2 * se > 1 else math.nan
        decimals = 0 if short > 0 else None
        key = f"variance/experiment{experiment}/own-short"
        out.real(key, short, source, unit=r"\,\%", decimals=decimals, missing="no")


def _slope_values(out: Values, registry: pd.DataFrame, files: ResultFiles) -> None:
    frame = found.slopes(registry, files)
    for _, row in frame.iterrows():
        table, problem = int(row["table"]), int(row["problem"])
        dimensions = dict(enumerate((50, 200, 500), start=1))
        file = f"experiment2/problem{problem}.csv"
        if table == 1:
            file = f"experiment1/N{dimensions[problem]}.csv"
        published = Source(f"data/published/table{table}.csv", {"problem": problem}, found.slopes)
        for name, where in (("published", published), ("ours", Source(file, {}, found.slopes))):
            key = f"slope/table{table}/problem{problem}/{name}"
            out.real(key, row[name], where, se=row[f"{name}_se"], decimals=2)
    first = frame[frame["table"] == 1]  # the sampler's own slope is -1/2
    far = float(((first["ours"] + 0.5).abs() / first["ours_se"]).max())
    decimals = 1 if math.isfinite(far) else None
    source = Source("experiment1/N*.csv", {}, found.slopes)
    out.real("slope/table1/furthest", far, source, decimals=decimals)


def _spread_values(out: Values, registry: pd.DataFrame, files: ResultFiles) -> None:
    source = "tables/spread.csv"
    frame = found.data_sets(registry, files)
    for table in (2, 3):
        factors = []
        unit = r"\,\%" if table == 3 else ""
        for problem in (1, 2, 3, 4):
            part = frame[(frame["table"] == table) & (frame["problem"] == problem)]
            key = f"spread/table{table}/problem{problem}"
            best = part.sort_values(["data_sets", "samples"], ascending=[False, True]).head(1)
            row = best.iloc[0] if len(best) else {}
            factor = float(row.get("factor", math.nan))
            factors.append(factor)
            out.real(f"{key}/factor", factor, source, decimals=None if math.isnan(factor) else 2)
            for name in ("lowest", "highest"):
                out.real(f"{key}/{name}", float(row.get(name, math.nan)), source, unit=unit)
            out.whole(f"{key}/data-sets", row.get("data_sets"), source)
            out.whole(f"{key}/samples", row.get("samples"), source)
        known = [factor for factor in factors if not math.isnan(factor)]
        for name, pick in (("lowest", min), ("highest", max)):
            value = pick(known) if known else math.nan
            out.real(
                f"spread/table{table}/factor-{name}", value, source, decimals=2 if known else None
            )


def _experiment4_values(out: Values, frame: pd.DataFrame, files: ResultFiles) -> None:
    """Errors, statuses and seconds of every method."""
    there = frame[frame["ok"] > 0]
    pairs = there[there["trivial"].astype(bool)].drop_duplicates(["problem", "set"])
    where = Source("tables/evidence.csv", {"trivial": True})
    out.whole("experiment4/trivial", len(pairs) if len(there) else None, where)
    where = Source("tables/accuracy.csv", {})
    out.whole("experiment4/methods", frame["method"].nunique() or None, where)
    share = 100 * subnormal_share(frame, files)
    where = Source("experiment4/problem*.npz", {}, subnormal_share)
    decimals = None if math.isnan(share) else 0
    out.real("seconds/trivial/subnormal", share, where, unit=r"\,\%", decimals=decimals)
    slow = seconds_where_trivial(frame)
    for name, pick in (("lowest", "min"), ("highest", "max")):
        method = getattr(slow, f"idx{pick}")() if len(slow) else None
        where = Source(
            "experiment4/problem*/*_timing.csv", {"method": method}, seconds_where_trivial
        )
        value = float(getattr(slow, pick)())
        out.real(f"seconds/trivial/{name}", value, where, decimals=None if method is None else 1)
        said = None if method is None else label(method)
        out.words(f"seconds/trivial/{name}-method", said, where, missing="not run")
    ratios = seconds_ratio(seconds_by_set(frame))
    telling = cells_over(frame, "certified")
    for method in LABELS:
        part, name = telling[telling["method"] == method], "tables/accuracy.csv"
        source = Source(name, {"method": method, "measure": "mae_reference"})
        errors = part["mae_reference"].dropna()
        out.whole(f"accuracy/{method}/cells", len(errors) or None, source)
        out.power(f"accuracy/{method}/mean", float(errors.mean()), source)
        largest = float(part["largest_reference"].max())
        out.power(f"accuracy/{method}/largest", largest, "tables/metrics.csv")
        nats = part["nats"].dropna()
        rows: dict[str, object] = {"method": method, "measure": "nats"}
        out.power(f"accuracy/{method}/nats-median", float(nats.median()), Source(name, rows))
        cell = part.loc[nats.idxmax()] if len(nats) else None
        source = Source(name, rows if cell is None else rows | {"problem": cell["problem"]})
        out.power(f"accuracy/{method}/nats-largest", float(nats.max()), source)
        said = None if cell is None else f"{NAMES[cell['problem']]}, set {cell['set']}"
        out.words(f"accuracy/{method}/nats-cell", said, source, missing="not run")
        mine = frame[frame["method"] == method]
        source = Source("experiment4/problem*/*.csv", {"method": method}, all_cells)
        mine = mine[mine["status"] != NO_DATA]
        out.whole(f"status/{method}/runs", int(mine["runs"].sum()) if len(mine) else None, source)
        bad = int((mine["runs"] - mine["ok"]).sum()) if len(mine) else None
        out.whole(f"status/{method}/bad", bad, source)
        ratio = ratios.get(method, math.nan)
        decimals = 1 if ratio >= 2 else 2
        out.real(f"seconds/{method}/ratio", ratio, "tables/seconds.csv", decimals=decimals)
        speed = mine["effective_per_second"].dropna()
        speed = float(np.exp(np.log(speed[speed > 0]).median())) if len(speed) else math.nan
        rows = {"method": method, "measure": "effective_per_second"}
        out.power(f"efficiency/{method}", speed, Source("tables/efficiency.csv", rows))
        rates = by_problem(frame[frame["method"] == method], "error_rate")
        for problem in NINE:
            row = rates[rates["problem"] == problem]
            value = 100 * float(row["value"].iloc[0]) if len(row) else math.nan
            missing = str(row["status"].iloc[0]) if len(row) else "not run"
            key = f"error-rate/problem{problem}/{method}"
            decimals = None if math.isnan(value) else 1
            rows = {"method": method, "measure": "error_rate", "problem": problem}
            source = Source("tables/metrics.csv", rows)
            out.real(key, value, source, unit=r"\,\%", missing=missing, decimals=decimals)


def _mae_post_values(
    out: Values, registry: pd.DataFrame, frame: pd.DataFrame, files: ResultFiles
) -> None:
    """How far apart methods are in MAE-POST, beside how far apart data sets are; in percent of its mean."""
    source = Source("tables/posterior.csv", {"measure": "mae_post"}, mae_post_ranges)
    published_cells = registry[registry["metric"] == "mae_post"]
    ranges = mae_post_ranges(registry, frame, files)
    published, ours, between = (ranges[name].dropna() for name in ("published", "ours", "between"))
    methods = ranges["methods"].dropna()
    theirs = Source("data/published/table4.csv", {"metric": "mae_post"}, mae_post_ranges)
    drawn = Source("experiment4/spread.csv", {}, mae_post_ranges)
    for key, range_, pick, where in (
        ("published-range", published, "max", theirs),
        ("ours-range", ours, "max", source),
        ("data-sets-lowest", between, "min", drawn),
        ("data-sets-highest", between, "max", drawn),
    ):
        value = float(getattr(range_, pick)())
        if len(range_):
            problem = getattr(range_, f"idx{pick}")()
            where = where._replace(rows={**(where.rows or {}), "problem": problem})
        out.real(f"mae-post/{key}", value, where, unit=r"\,\%", decimals=decimals_for(value))
    # problems in which methods differ by less than one standard deviation of data sets
    for key, ranges in (("published", published), ("ours", ours)):
        both = ranges.index.intersection(between.index)
        closer = int((ranges[both] < between[both]).sum()) if len(both) else None
        out.whole(f"mae-post/{key}-closer", closer, source)
        out.whole(f"mae-post/{key}-problems", len(both) or None, source)
    out.integers("mae-post/ours-methods", methods, source)
    where = drawn._replace(by=data_set_range)
    limits = data_set_range(frame, files)
    known = published_cells[published_cells["problem"].isin(limits.index)]
    inside = known["published"].between(
        known["problem"].map(limits["low"]), known["problem"].map(limits["high"])
    )
    out.whole("mae-post/inside", int(inside.sum()) if len(known) else None, where)
    out.whole("mae-post/inside-of", len(known) or None, where)
    out.integers("mae-post/data-sets", limits["data_sets"], where)


def _median_values(
    out: Values, registry: pd.DataFrame, frame: pd.DataFrame, files: ResultFiles
) -> None:
    """MAE-MED of the paper's methods, and who is furthest from the median and from the reference."""
    ours = mae_med_by_problem(frame)
    theirs = registry[registry["metric"] == "mae_med"]
    theirs = theirs.assign(method=theirs["method"].map(METHODS))
    theirs = theirs.join(as_run(registry, files), on="id")
    published, all_runs = (
        theirs.pivot_table(index="problem", columns="method", values=column)
        for column in ("published", "as_run")
    )
    spelt = {ours_: theirs_ for theirs_, ours_ in METHODS.items()}
    for name, table, where in (
        ("published", published, Source("data/published/table4.csv", {"metric": "mae_med"})),
        ("ours", ours, Source("tables/posterior.csv", {"measure": "mae_med", "method": PAPER})),
        ("all-runs", all_runs, Source("tables/table4.csv", {"metric": "mae_med"})),
    ):
        for method in PAPER:
            named = {"method": spelt[method] if name == "published" else method}
            mine = where._replace(rows={**(where.rows or {}), **named})
            values = table[method].dropna() if method in table else pd.Series(dtype=float)
            for end, pick in (("lowest", "min"), ("highest", "max")):
                out.power(f"mae-med/{name}/{method}/{end}", float(getattr(values, pick)()), mine)
        others = [m for m in PAPER if m != "hmc-gpml"]
        both = table.dropna(subset="hmc-gpml") if "hmc-gpml" in table else table.iloc[:0]
        furthest = both["hmc-gpml"] > both[others].max(axis=1) if len(both) else pd.Series()
        out.whole(f"mae-med/{name}/hmc-furthest", int(furthest.sum()) if len(both) else None, where)
        out.whole(f"mae-med/{name}/problems", len(both) or None, where)
    telling = cells_over(frame, "certified")
    wide = telling[telling["method"].isin(PAPER)].pivot_table(
        index=["problem", "set"], columns="method", values="mae_reference"
    )
    whole = wide.dropna() if set(PAPER) <= set(wide.columns) else wide.iloc[:0]
    order = whole.mean().sort_values(ascending=False) if len(whole) else pd.Series(dtype=float)
    rows: dict[str, object] = {"measure": "mae_reference", "method": PAPER}
    out.whole("furthest/cells", len(whole) or None, Source("tables/accuracy.csv", rows))
    for place, name in enumerate(("first", "second", "third", "fourth")):
        there = place < len(order)
        own = str(order.index[place]) if there else None
        said = None if own is None else label(own)
        source = Source("tables/accuracy.csv", rows | {"method": own or PAPER})
        out.words(f"furthest/{name}", said, source, missing="not run")
        value = float(order.iloc[place]) if there else math.nan
        out.power(f"furthest/{name}-error", value, source)


def _reading_values(out: Values, registry: pd.DataFrame, files: ResultFiles) -> None:
    """Table 4 beside the published one with the double variance of the toolbox and without it."""
    frame = readings(registry, files)
    frame["log_ratio"] = np.log(frame["ours"] / frame["published"])
    table, near = "tables/readings.csv", frame[frame["metric"] == "mae_med"]
    medians = {"metric": "mae_med"}
    every = Source(table, medians, readings)
    out.whole("readings/problems", near["problem"].nunique() or None, every)
    for method in PAPER:
        for reading in READINGS:
            where = every._replace(rows=medians | {"method": method, "reading": reading})
            mine = near[(near["method"] == method) & (near["reading"] == reading)]["log_ratio"]
            mean, se = mean_and_error(mine)
            key = f"readings/{method}/{reading.lower().replace(' ', '-')}"
            out.real(key, math.exp(mean), where, se=math.exp(mean) * se, unit=" times")
    wide = near.pivot(index="id", columns="reading", values="log_ratio").abs()
    wide = wide.reindex(columns=list(READINGS)).astype(float)
    judged = wide[~wide.index.str.contains("/hmc/")]
    closer = judged["ESS once"] < judged["as shipped"]
    out.whole("readings/closer", int(closer.sum()) if len(judged) else None, every)
    out.whole("readings/closer-of", len(judged) or None, every)
    # over the sampler's, which has no part in the choice of a reading
    posterior = frame[frame["metric"] == "mae_post"]
    for method in READINGS["both once"]:
        for key, reading, column in (
            ("published", "as shipped", "published"),
            ("as-shipped", "as shipped", "ours"),
            ("once", "both once", "ours"),
        ):
            both = posterior[posterior["reading"] == reading]
            by_method = both.pivot(index="problem", columns="method", values=column)
            by_method = by_method.reindex(columns=[method, SAMPLER]).astype(float)
            value, se = mean_and_error(by_method[method] / by_method[SAMPLER] - 1)
            rows = {"metric": "mae_post", "method": (method, SAMPLER), "reading": reading}
            where = Source(table, rows, readings)
            out.real(
                f"readings/mae-post/{method}/{key}", 100 * value, where, se=100 * se, unit=r"\,\%"
            )


def _exactness_values(out: Values, frame: pd.DataFrame) -> None:
    """Expectation propagation beside the Monte Carlo methods of the paper, cell by cell."""
    rows: dict[str, object] = {"measure": "mae_reference", "method": ("ep", *PAPER)}
    source = Source("tables/accuracy.csv", rows)
    wide = cells_over(frame, "certified").pivot_table(
        index=["problem", "set"], columns="method", values="mae_reference"
    )
    shares = []
    for method in [m for m in LABELS if m not in ("ep", "laplace")]:
        pair = Source("tables/accuracy.csv", rows | {"method": ("ep", method)})
        there = {"ep", method} <= set(wide.columns)
        both = wide[["ep", method]].dropna() if there else wide.iloc[:0]
        closer = int((both["ep"] < both[method]).sum()) if len(both) else None
        out.whole(f"ep/common/{method}", len(both) or None, pair)
        out.whole(f"ep/closer/{method}", closer, pair)
        for name in ("ep", method):
            value = float(both[name].mean()) if len(both) else math.nan
            where = Source("tables/accuracy.csv", rows | {"method": name})
            out.power(f"ep/mean/{method}/{'ep' if name == 'ep' else 'own'}", value, where)
        if method in PAPER and closer is not None:
            shares.append(closer / len(both))
    verdict = None
    if shares:
        beaten = sum(share > 0.5 for share in shares)
        verdict = (
            f"expectation propagation is closer to the reference than {beaten} of them in most pairs"
            if beaten
            else "each is closer to the reference than expectation propagation in at least half of the pairs"
        )
        verdict = f"{len(shares)} have pairs that count, and {verdict}"
    out.words("ep/verdict", verdict, source, missing="not run")
    out.words(
        "ep/stands",
        None if not shares else "does not stand" if max(shares) > 0.5 else "stands",
        source,
        missing="not run",
    )


def _percent(out: Values, key: str, values: pd.Series, source: str | Source) -> None:
    """Median and largest of some percentages, and how many there are."""
    values = values.dropna()
    out.whole(f"{key}/cells", len(values) or None, source)
    for name, value in (("median", values.median()), ("largest", values.max())):
        value = float(value)
        decimals = None
        if math.isfinite(value):
            decimals = 0 if value >= 10 else 2 if value >= 0.01 else 4
        out.real(f"{key}/{name}", value, source, unit=r"\,\%", decimals=decimals)


def _evidence_values(out: Values, frame: pd.DataFrame, files: ResultFiles) -> None:
    """Log evidence of the paper's chains, in percent of the sampler's and of the reference's."""
    source = "tables/evidence.csv"
    telling = cells_over(frame, "telling")
    wide = telling.pivot_table(index=["problem", "set"], columns="method", values="log_evidence")
    certified = cells_over(frame, "certified")
    runs = read_long("experiment4", files.experiment4)
    runs = runs[(runs["dataset"] == 0) & (runs["status"] == NOT_CONVERGED)]
    known = certified.drop_duplicates(["problem", "set"])
    known = known[["problem", "set", "reference_log_evidence"]]
    stray = runs.merge(known, on=["problem", "set"])
    for method in ("ess-gpml", "hmc-gpml", "ess", "hmc", SAMPLER, "ep", "laplace"):
        there = {SAMPLER, method} <= set(wide.columns)
        both = wide[[SAMPLER, method]].dropna() if there else wide.iloc[:0]
        gaps = pd.Series(dtype=float)
        if there:
            gaps = 100 * (both[method] / both[SAMPLER] - 1).abs()
        if method != SAMPLER:
            _percent(out, f"evidence/{method}/sampler", gaps, source)
        part = certified[certified["method"] == method]
        gaps = 100 * (part["nats"] / part["reference_log_evidence"]).abs()
        _percent(out, f"evidence/{method}/reference", gaps, source)
        usps = gaps[part["problem"] == 9]
        _percent(out, f"evidence/{method}/usps", usps, source)
        part = stray[stray["method"] == method]
        gaps = 100 * (part["log_evidence"].astype(float) / part["reference_log_evidence"] - 1).abs()
        # of runs that do not count: said apart, and averaged with none that does
        rows = {"method": method, "status": NOT_CONVERGED, "dataset": 0}
        where = Source("experiment4/problem*/*.csv", rows)
        _percent(out, f"evidence/{method}/stray", gaps, where)
        where = where._replace(file="experiment4/problem9/*.csv")
        _percent(out, f"evidence/{method}/stray-usps", gaps[part["problem"] == 9], where)


def _control_variable_values(out: Values, frame: pd.DataFrame, files: ResultFiles) -> None:
    """How control variables ended on USPS, and whether they had equal time otherwise."""
    source = Source("experiment4/problem9/control-variables.csv", {}, all_cells)
    mine = frame[(frame["method"] == "control-variables") & (frame["problem"] == 9)]
    counts = mine["status"].value_counts()
    said = ", ".join(f"{n} {status}" for status, n in counts.items())
    out.words("control-variables/usps", said or None, source, missing="not run")
    out.whole("control-variables/usps-sets", len(mine) or None, source)
    done = int((mine["ok"] == mine["runs"]).sum()) if len(mine) else None
    out.whole("control-variables/usps-ok", done, source)
    rows = read_long("experiment4", files.experiment4)
    mine = rows[(rows["method"] == "control-variables") & (rows["problem"] == 9)]
    inputs = control_inputs(mine)
    for name in ("least", "most", "limit"):
        value = None if inputs is None else getattr(inputs, name)
        out.whole(f"control-variables/usps-{name}", value, source, missing="none")
    first = frame[(frame["set"] == 1) & ~frame["method"].isin(["ep", "laplace"])]
    wide = first.pivot_table(index="problem", columns="method", values="cpu_seconds")
    ratios = pd.Series(dtype=float)
    if "control-variables" in wide:
        others = [m for m in wide if not m.startswith(("pseudo", "control"))]
        logs = np.log(wide[others].div(wide["control-variables"], axis=0))
        ratios = np.exp(logs.mean()).dropna()
    # of the first set on the first data set of each problem
    source = Source("experiment4/problem*/*.csv", {"set": 1, "dataset": 0}, all_cells)
    for name, pick in (("lowest", "idxmin"), ("highest", "idxmax")):
        method = getattr(ratios, pick)() if len(ratios) else None
        value = float(ratios[method]) if method is not None else math.nan
        out.real(f"budget/{name}", value, source, decimals=2 if method is not None else None)
        named = None if method is None else label(str(method))
        out.words(f"budget/{name}-method", named, source, missing="not run")
    # budgets are equal on average: where they are least so
    runs = first[~first["method"].str.startswith("pseudo")].dropna(subset="cpu_seconds")
    runs = runs.sort_values("cpu_seconds")
    ends = runs.groupby("problem")[["method", "cpu_seconds"]].agg(["first", "last"])
    ratios = ends["cpu_seconds", "last"] / ends["cpu_seconds", "first"]
    worst = int(ratios.idxmax()) if len(ratios) else None
    apart = math.nan if worst is None else float(ratios[worst])
    out.real("budget/apart", apart, source, decimals=None if worst is None else 1)
    for name, end in (("quickest", "first"), ("slowest", "last")):
        named = None if worst is None else label(str(ends.loc[worst, ("method", end)]))
        out.words(f"budget/apart-{name}", named, source, missing="not run")
    named = None if worst is None else NAMES[worst]
    out.words("budget/apart-problem", named, source, missing="not run")


def _hard_values(out: Values, frame: pd.DataFrame, files: ResultFiles) -> None:
    """Where a run of the sampler is furthest from the reference, and how many are off by more than a nat."""
    name = "experiment4/problem*/orthant.csv"
    where = Source(name, {})
    runs = read_long("experiment4", files.experiment4)
    runs = runs[(runs["method"] == SAMPLER) & (runs["status"] != NO_DATA)]
    out.whole("hard/runs", len(runs) or None, where)
    out.whole("hard/failed", int((runs["status"] != OK).sum()) if len(runs) else None, where)
    runs = run_gaps(files, SAMPLER)
    pairs = runs.drop_duplicates(["problem", "set"])
    wrong = runs[runs["beyond"] > 1]  # nats
    there = len(runs) > 0
    where = Source(name, {"status": OK, "dataset": 0, "trivial": False}, run_gaps)
    out.whole("hard/judged", len(runs) or None, where)
    out.whole("hard/cells", len(pairs) or None, where)
    out.whole("hard/uncertified", int((~pairs["certified"]).sum()) if there else None, where)
    where = where._replace(rows={"seed": tuple(wrong["seed"])})
    out.whole("hard/wrong", len(wrong) if there else None, where)
    names = [f"{NAMES[p]}, set {k}" for p, k in wrong.groupby(["problem", "set"]).groups]
    out.words("hard/wrong-cells", "; ".join(names) or None, where, missing="none")
    worst = runs.loc[runs["gap"].abs().idxmax()] if there else None
    place = (0, 0) if worst is None else (worst["problem"], worst["set"])
    pair: dict[str, object] = {"problem": place[0], "set": place[1]}
    where = Source(name, pair, run_gaps)

    def run(row: pd.Series) -> Source:
        return where._replace(rows=pair | {"dataset": 0, "replicate": row["replicate"]})

    furthest = where if worst is None else run(worst)
    named = None if worst is None else f"{NAMES[worst['problem']]}, set {worst['set']}"
    out.words("hard/cell", named, furthest, missing="not run")
    for key in ("alpha", "beta"):
        out.words(f"hard/{key}", None if worst is None else f"{worst[key]:g}", furthest)
    error = math.nan
    if worst is not None and not worst["certified"]:
        error = float(worst["certifier_se"])
    out.power("hard/certifier-se", error, Source("data/reference/evidence.csv", pair))
    here = cells_over(frame, "telling")
    here = here[(here["problem"] == place[0]) & (here["set"] == place[1])]
    for method in ("ep", "best"):
        other = here[here["method"] == method]["nats"]
        value = float(other.iloc[0]) if len(other) else math.nan
        source = Source("tables/evidence_more.csv", pair | {"method": method})
        out.power(f"hard/{method}", value, source)
    runs = runs[(runs["problem"] == place[0]) & (runs["set"] == place[1])]
    data = problems(files).get(int(place[0]))
    stored = f"experiment4/problem{place[0] or '*'}.npz"
    out.whole("hard/patterns", None if data is None else data.train, stored)
    out.whole("hard/samples", int(runs["samples"].iloc[0]) if there else None, where)
    out.whole("hard/replicates", len(runs) if there else None, where)
    out.power("hard/furthest", float(runs["gap"].abs().max()), furthest)
    gaps = -runs["gap"] if (runs["gap"] < 0).all() else runs["gap"][:0]  # all below, or nothing
    decimals = 1 if len(gaps) else None
    source = where if gaps.empty else run(runs.loc[gaps.idxmin()])
    out.real("hard/short", float(gaps.min()), source, missing="no", decimals=decimals)
    spread = float(runs["gap"].std())
    own = math.sqrt(float((runs["log_evidence_se"] ** 2).mean())) if there else math.nan
    out.power("hard/own", own, where)
    # the pair was chosen for a run that is far off: one percent over all pairs
    df = len(runs) - 1
    wide = df > 0 and df * (spread / own) ** 2 > chdtri(df, 0.01 / len(pairs))
    out.power("hard/overdispersed", spread if wide else math.nan, where)


def _reference_values(out: Values, files: ResultFiles) -> None:
    """What the reference is certified for, and what this run found when it looked again."""
    name, certified = "data/reference/evidence.csv", certified_reference(files)
    rows = None if certified is None else certified.evidence
    counts: dict[str, int | None] = dict.fromkeys(("cells", "certified", "uncertified", "trivial"))
    lost, certifiers = None, None
    largest = dict.fromkeys(("log_evidence_se", "max_probability_se", "certifier_se"), math.nan)
    if rows is not None:
        good = rows["verdict"] == CERTIFIED
        counts = {
            "cells": len(rows),
            "certified": int(good.sum()),
            "uncertified": int((~good).sum()),
            "trivial": int(rows["trivial"].sum()),
        }
        bad = rows[~good]
        lost = "; ".join(f"{NAMES[r.problem]}, set {r.set}" for r in bad.itertuples())
        if "certifier" in rows:
            named = rows[good]["certifier"].value_counts()
            certifiers = " and ".join(f"{name} in {n}" for name, n in named.items())
        largest = {name: float(rows[good][name].max()) for name in largest}
    others = set() if rows is None else set(rows["verdict"]) - {CERTIFIED}
    selected: dict[str, dict[str, object]] = {
        "cells": {},
        "certified": {"verdict": CERTIFIED},
        "uncertified": {"verdict": tuple(sorted(others))},
        "trivial": {"trivial": True},
    }
    for key, value in counts.items():
        out.whole(f"reference/{key}", value, Source(name, selected[key]))
    source = Source(name, selected["uncertified"])
    out.words("reference/uncertified-cells", lost, source, missing="none")
    source = Source(name, selected["certified"])
    out.words("reference/certifiers", certifiers, source, missing="not known")
    for key, number_ in largest.items():
        out.power(f"reference/{key.replace('_', '-')}", number_, name)
    source = Source("data/reference/truths.csv", {})
    kept = [path for path in files.reference if Path(path).name == TRUTHS]
    truths = pd.read_csv(kept[0]) if kept else None
    out.whole("reference/truths", None if truths is None else len(truths), source)
    good_truths = None if truths is None else int((truths["verdict"] == CERTIFIED).sum())
    source = Source("data/reference/truths.csv", {"verdict": CERTIFIED})
    out.whole("reference/truths-certified", good_truths, source)
    source = Source("reference_check.csv", {})
    check = read_long("reference_check", files.reference_check)
    done = check[check["verdict"].isin([AGREES, DIFFERS])]
    cells = done.groupby(["problem", "set"])["verdict"].agg(lambda v: bool((v == AGREES).all()))
    out.whole(
        "reference/check-drawn", len(check.drop_duplicates(["problem", "set"])) or None, source
    )
    source = Source("reference_check.csv", {"verdict": (AGREES, DIFFERS)})
    out.whole("reference/check-cells", len(cells) if len(check) else None, source)
    out.whole("reference/check-agree", int(cells.sum()) if len(check) else None, source)
    differ = "; ".join(f"{NAMES[int(p)]}, set {k}" for (p, k), ok in cells.items() if not ok)
    out.words("reference/check-differ", differ, source, missing="none")


def _run_values(out: Values, record: Mapping[str, object]) -> None:
    source = "provenance.json"
    hours = float(str(record.get("cpu_hours", math.nan)))
    decimals = None if math.isnan(hours) else 1 if hours < 10 else 0
    unit = r"\,CPU hours of the methods"
    out.real("run/cpu-hours", hours, source, unit=unit, decimals=decimals)
    scale = str(record["scale"])
    out.words("scale/name", scale, source)
    stamp = f"scale {scale}: counts or settings differ from the published ones"
    out.words(
        "scale/stamp",
        None if scale == PUBLISHED_SCALE else stamp,
        source,
        missing="published scale",
    )
    commit = record["commit"]
    out.words("run/commit", commit[:12] if isinstance(commit, str) else None, source)
    out.words(
        "run/dirty", "with uncommitted changes" if record["dirty"] else None, source, missing="none"
    )
    out.words("run/config", str(record["config_sha256"])[:12], source)
    out.words("run/seed", str(record["seed"]) if record["seed"] is not None else None, source)
    out.words("run/cpu", str(record["cpu"]), source)
    out.words("run/python", str(record["python"]), source)
    packages = record["packages"]
    versions = packages if isinstance(packages, Mapping) else {}
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "snakemake", "cython"):
        out.words(f"software/{name}", versions.get(name), source)
    libraries = record["blas"]
    named = [
        f"{library.get('internal_api')} {library.get('version', '')} ({library.get('architecture', '')})"
        for library in (libraries if isinstance(libraries, list) else [])
        if library.get("user_api") == "blas"
    ]
    out.words("software/blas", ", ".join(sorted(set(named))), source)


def collect(
    registry: pd.DataFrame,
    audited: pd.DataFrame,
    files: ResultFiles,
    record: Mapping[str, object],
    *,
    more: report_audit.Audited | None = None,
) -> dict[str, Value]:
    """Every value that the text may use, by key.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    audited : DataFrame
        `audit` on the same files.
    files : ResultFiles
        All result files of the run.
    record : mapping
        `provenance`, with `run_timing` where the run is timed.
    more : Audited, optional
        Columns, statements and controls of the audit; without them the text has no values of these.

    Returns
    -------
    dict of str to Value
        Sorted by key. The keys are the same at every scale.
    """
    out = Values()
    _run_values(out, record)
    _audit_values(out, audited, "audit.csv")
    _design_values(out, files)
    _bracket_values(out, registry)
    _floor_values(out, registry, audited, files)
    _variance_values(out, files)
    _slope_values(out, registry, files)
    _spread_values(out, registry, files)
    frame = all_cells(registry, files)
    _experiment4_values(out, frame, files)
    _mae_post_values(out, registry, frame, files)
    _median_values(out, registry, frame, files)
    _reading_values(out, registry, files)
    _exactness_values(out, frame)
    _evidence_values(out, frame, files)
    _control_variable_values(out, frame, files)
    _hard_values(out, frame, files)
    _reference_values(out, files)
    if more is not None:
        report_audit.add_values(out, more)
    out |= comparisons.values(files)
    return dict(sorted(out.items()))


def write_values(values: Mapping[str, Value], as_json: str | Path, as_tex: str | Path) -> None:
    r"""Write the values as JSON and as LaTeX that defines ``\val{key}`` and ``\ifval{key}{yes}{no}``."""
    plain = {key: asdict(value) for key, value in values.items()}
    text = json.dumps(
        plain,
        indent=1,
        sort_keys=True,
        default=lambda x: x.item() if isinstance(x, np.generic) else str(x),
    )
    Path(as_json).write_text(text + "\n", encoding="utf-8")
    lines = [
        rf"\gpcmc{'missing' if value.value is None else 'value'}{{{key}}}{{{value.text}}}{{{_tip(value)}}}"
        for key, value in values.items()
    ]
    Path(as_tex).write_text(_MACROS + "\n".join(lines) + "\n", encoding="utf-8")


def _tip(value: Value) -> str:
    """What is shown under the pointer, as the digits of a PDF string."""
    parts = [
        value.digits.replace(" +- ", " \xb1 "),
        f"{value.replicates} replicates" if value.replicates is not None else "",
        f"seed {value.seed}" if value.seed else "",
        value.verdict or "",
        value.which,
        value.place,
    ]
    # PDF's own encoding agrees with Latin-1 in what occurs here
    return "; ".join(part for part in parts if part).encode("latin-1", errors="replace").hex()
