r"""Every number of the paper's text: one JSON file, and the same as LaTeX macros.

The set of keys does not depend on what was run. A value that a run does not have says so in words
("not run", "data not available"), and ``\ifval`` lets a sentence be left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.audit import VERDICTS, Estimator, ResultFiles, count_verdicts, read_long
from gpcmc.audit import findings as found
from gpcmc.report.experiment4 import (
    LABELS,
    NAMES,
    REFERENCE,
    differences,
    evidence,
    problems,
)
from gpcmc.report.latex import count, escape, number, scientific

__all__ = ["PUBLISHED_SCALE", "Value", "collect", "write_values"]

#: The scale with the published sample sizes and repetitions; a PDF of any other says so on every
#: page.
PUBLISHED_SCALE = "published"

#: LaTeX that comes before the values: how they are defined and how the text asks for them.
_MACROS = r"""% Made by gpcmc.report.values from the result files; every number of the text is here.
\newcommand{\gpcmcvalue}[2]{\expandafter\def\csname gpcmc@value@#1\endcsname{#2}%
  \expandafter\let\csname gpcmc@known@#1\endcsname\relax}
\newcommand{\gpcmcmissing}[2]{\expandafter\def\csname gpcmc@value@#1\endcsname{\textit{#2}}}
\newcommand{\gpcmcunknown}[1]{\PackageError{gpcmc}{Unknown value '#1'}{Needed is a key of values.json.}}
% \val{key}: the value as text, or in italics why there is none.
\newcommand{\val}[1]{\ifcsname gpcmc@value@#1\endcsname\csname gpcmc@value@#1\endcsname
  \else\gpcmcunknown{#1}\fi}
% \ifval{key}{text if there is a value}{text if there is none}
\newcommand{\ifval}[3]{\ifcsname gpcmc@value@#1\endcsname\else\gpcmcunknown{#1}\fi
  \ifcsname gpcmc@known@#1\endcsname#2\else#3\fi}
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One number of the text.

    Attributes
    ----------
    value : float, int, str or None
        In full precision; None where this run has none.
    se : float or None
        Its standard error.
    text : str
        LaTeX as printed, unit included; without a value, the reason in words.
    source : str
        The result file that it was read or computed from.
    """

    value: float | int | str | None
    se: float | None
    text: str
    source: str


class _Values(dict[str, Value]):
    """Values by key, with one way in for each kind."""

    def real(
        self,
        key: str,
        value: float,
        source: str,
        *,
        se: float = math.nan,
        unit: str = "",
        missing: str = "not run",
        decimals: int | None = None,
    ) -> None:
        if math.isfinite(value):
            text = number(value, se, decimals=decimals) + unit
            self[key] = Value(float(value), float(se) if math.isfinite(se) else None, text, source)
        else:
            self[key] = Value(None, None, missing, source)

    def power(self, key: str, value: float, source: str) -> None:
        """A positive value over many orders of magnitude."""
        if not math.isfinite(value):
            self[key] = Value(None, None, "not run", source)
        else:
            text = (
                number(value, decimals=max(0, 1 - math.floor(math.log10(value))))
                if value >= 1e-3
                else scientific(value)
            )
            self[key] = Value(float(value), None, text, source)

    def whole(self, key: str, value: int | None, source: str) -> None:
        if value is None:
            self[key] = Value(None, None, "not run", source)
        else:
            self[key] = Value(int(value), None, count(int(value)), source)

    def words(self, key: str, text: str | None, source: str, *, missing: str = "not known") -> None:
        self[key] = (
            Value(text, None, escape(text), source) if text else Value(None, None, missing, source)
        )

    def integers(self, key: str, values: Iterable[int], source: str) -> None:
        """A list such as "10 000, 30 000 and 100 000"; a single one alone."""
        texts = [count(int(value)) for value in sorted(set(values))]
        joined = ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else "".join(texts)
        self[key] = (
            Value(joined, None, joined, source) if texts else Value(None, None, "not run", source)
        )


def _audit_values(out: _Values, audited: pd.DataFrame, source: str) -> None:
    out.whole("audit/cells", len(audited), source)
    for scope, frame in [
        ("audit", audited),
        *((f"audit/table{t}", g) for t, g in audited.groupby("table")),
    ]:
        counts = count_verdicts(frame)
        for verdict in VERDICTS:
            out.whole(f"{scope}/{verdict.replace(' ', '-')}", counts[verdict], source)
        out.whole(f"{scope}/compared", counts["consistent"] + counts["discrepant"], source)
    counts = count_verdicts(audited)
    line = ", ".join(f"{number_} {verdict}" for verdict, number_ in counts.items())
    out.words("audit/line", f"{len(audited)} published cells: {line}", source)
    bad = audited[audited["verdict"] == "discrepant"]["id"].tolist()
    out.words("audit/discrepant-cells", ", ".join(bad), source, missing="none")
    for _, cell in audited.iterrows():
        name, where = cell["id"], cell["result_file"] or source
        unit = r"\,\%" if cell["table"] in (1, 3) else ""
        missing = cell["verdict"]
        digits = len(f"{cell['published']:.10f}".rstrip("0").split(".")[1])
        out.real(f"{name}/published", cell["published"], source, unit=unit, decimals=digits)
        out.real(
            f"{name}/ours", cell["ours"], where, se=cell["ours_se"], unit=unit, missing=missing
        )
        out.real(f"{name}/ratio", cell["ratio"], where, missing=missing)


def _design_values(out: _Values, files: ResultFiles) -> None:
    first, second = (
        read_long("experiment1", files.experiment1),
        read_long("experiment2", files.experiment2),
    )
    source = "experiment1/N*.csv"
    out.integers("experiment1/dimensions", first["dimension"], source)
    out.integers("experiment1/samples", first["samples"], source)
    vectors = first.groupby(["dimension", "samples"])["instance"].nunique()
    out.integers("experiment1/problems", vectors, source)
    source = "experiment2/problem*.csv"
    out.integers("experiment2/problems", second["problem"], source)
    out.integers("experiment2/samples", second["samples"], source)
    groups = second.groupby(["problem", "samples"])
    out.integers("experiment2/data-sets", groups["dataset"].nunique(), source)
    out.integers(
        "experiment2/runs", second.groupby(["problem", "samples", "dataset"]).size(), source
    )
    fourth, source = read_long("experiment4", files.experiment4), "experiment4/problem*/*.csv"
    mine = fourth[(fourth["method"] == REFERENCE) & (fourth["status"] == "ok")]
    out.integers("experiment4/samples", mine["samples"].dropna(), source)
    out.integers("experiment4/replicates", mine.groupby(["problem", "set"]).size(), source)
    out.integers("experiment4/sets", [fourth["set"].nunique()] if len(fourth) else [], source)
    available = {number_: problem.available for number_, problem in problems(files).items()}
    lost = [NAMES[number_] for number_, there in available.items() if not there]
    out.words(
        "experiment4/without-data", ", ".join(lost), "experiment4/problem*.npz", missing="none"
    )
    out.whole("experiment4/problems", len(available), "experiment4/problem*.npz")


def _bracket_values(out: _Values, registry: pd.DataFrame) -> None:
    source = "tables/brackets.csv"
    frame = found.brackets(registry)
    genuine = frame[frame["table"].isin([2, 3])]
    out.whole("brackets/cells", int(genuine["cells"].sum()), source)
    for key, numbers in (("problems1-3", [1, 2, 3]), ("problem4", [4])):
        part = genuine[genuine["problem"].isin(numbers)]
        low, high = part["runs_low"].max(), part["runs_high"].min()
        out.real(f"brackets/{key}/low", low, source, decimals=2)
        out.real(f"brackets/{key}/high", high, source, decimals=2)
        inside = range(math.ceil(low), math.floor(high) + 1)
        out.whole(f"brackets/{key}/runs", inside[0] if len(inside) == 1 else None, source)
    table1 = frame[frame["table"] == 1]
    out.real("brackets/table1/lowest", table1["ratio_low"].min(), source, decimals=1)
    out.real("brackets/table1/highest", table1["ratio_high"].max(), source, decimals=1)


def _floor_values(
    out: _Values, registry: pd.DataFrame, audited: pd.DataFrame, files: ResultFiles
) -> None:
    source = "tables/floor.csv"
    frame = found.floor(registry, audited)
    for dimension, cells in frame.groupby("dimension"):
        key = f"floor/N{dimension}"
        out.real(f"{key}/fit", cells["floor"].iloc[0], source, unit=r"\,\%", decimals=3)
        out.real(f"{key}/outlier-low", cells["outlier"].min(), source, unit=r"\,\%", decimals=2)
        out.real(f"{key}/outlier-high", cells["outlier"].max(), source, unit=r"\,\%", decimals=2)
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
        # what the wrong truth leaves unexplained: only where it is above one by two standard errors
        left = math.nan if last is None else last["without_outlier"] / ours
        left = left if left * (1 - 2 * se / ours) > 1 else math.nan
        out.real(f"{key}/remains", left, source, se=left * se / ours, missing="nothing")
    _grid_values(out, files, frame)


#: Grids of which the text speaks, from the coarsest.
GRIDS = 4


def _grid_values(out: _Values, files: ResultFiles, table: pd.DataFrame) -> None:
    """Errors of truths from coarse grids, and whether one wrong truth as implied is among them."""
    coarse, source = found.coarse_grid_errors(files), "experiment1/quadrature.csv"
    steps = coarse["du"].unique()
    steps = [*sorted(coarse["du"].unique(), reverse=True), *[math.nan] * GRIDS][:GRIDS]
    implied = table[table["constant"]].groupby("dimension")["outlier"].min()
    reproduced = []
    for rank, step in enumerate(steps, start=1):
        out.real(f"floor/grid/{rank}/step", step, source, decimals=2 if step > 0 else None)
        for dimension in (50, 200, 500):
            part = coarse[(coarse["dimension"] == dimension) & (coarse["du"] == step)]
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
                for name, place in (("first", 0), ("last", -1)):
                    there = len(ends) > 0
                    row = ends.iloc[place] if there else {}
                    number_, se = (
                        float(row[c]) if there else math.nan for c in ("error", "error_se")
                    )
                    out.real(
                        f"floor/grid/N{dimension}/{name}", number_, source, se=se, unit=r"\,\%"
                    )
                    samples = int(row["samples"]) if there else None
                    out.whole(f"floor/grid/N{dimension}/{name}-samples", samples, source)
    out.words("floor/grid/reproduced", ", ".join(reproduced), source, missing="no")


def _variance_values(out: _Values, files: ResultFiles) -> None:
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


def _slope_values(out: _Values, registry: pd.DataFrame, files: ResultFiles) -> None:
    for _, row in found.slopes(registry, files).iterrows():
        table, problem = int(row["table"]), int(row["problem"])
        source = {1: "experiment1/N*.csv"}.get(table, "experiment2/problem*.csv")
        for name, where in (("published", f"data/published/table{table}.csv"), ("ours", source)):
            key = f"slope/table{table}/problem{problem}/{name}"
            out.real(key, row[name], where, se=row[f"{name}_se"], decimals=2)


def _spread_values(out: _Values, registry: pd.DataFrame, files: ResultFiles) -> None:
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


def _experiment4_values(out: _Values, files: ResultFiles) -> None:
    logs, gaps = evidence(files), differences(files)
    good = logs[logs["status"] == "ok"]
    source = "tables/evidence.csv"
    trivial = good[good["trivial"]].drop_duplicates(["problem", "set"])
    out.whole("evidence/trivial", len(trivial) if len(good) else None, source)
    reference = good[good["method"] == REFERENCE]
    for name, pick in (("lowest", "min"), ("highest", "max")):
        value = float(getattr(reference["per_pattern"], pick)()) if len(reference) else math.nan
        out.real(f"evidence/per-pattern-{name}", value, source)
    coin = reference[reference["per_pattern"] <= -math.log(2)]
    out.whole(
        "evidence/below-coin", len(coin[~coin["trivial"]]) if len(reference) else None, source
    )
    for method in LABELS:
        part = good[(good["method"] == method) & ~good["trivial"].astype(bool)]
        nats = part["difference"].abs()
        out.power(f"evidence/{method}/mean-gap", float(nats.mean()), source)
        out.power(f"evidence/{method}/largest-gap", float(nats.max()), source)
        cell = part.loc[nats.idxmax()] if nats.notna().any() else None
        where = None if cell is None else f"{NAMES[cell['problem']]}, set {cell['set']}"
        out.words(f"evidence/{method}/largest-cell", where, source, missing="not run")
        out.power(f"evidence/{method}/median-gap", float(nats.median()), source)
        out.power(f"evidence/{method}/largest-se", float(part["log_evidence_se"].max()), source)
        rows = gaps[gaps["method"] == method]
        out.power(
            f"probability/{method}/mean-gap",
            float(rows["probability"].mean()),
            "tables/metrics.csv",
        )
        out.power(
            f"probability/{method}/largest-gap",
            float(rows["probability_max"].max()),
            "tables/metrics.csv",
        )
        for problem in range(1, 10):
            rates = rows[(rows["problem"] == problem)]["error_rate"]
            value = 100 * float(rates.iloc[0]) if len(rates) else math.nan
            missing = "not run" if rates.empty else "data not available"
            key = f"error-rate/problem{problem}/{method}"
            decimals = None if math.isnan(value) else 1
            out.real(
                key, value, "tables/metrics.csv", unit=r"\,\%", missing=missing, decimals=decimals
            )


def _mae_post_values(out: _Values, registry: pd.DataFrame, files: ResultFiles) -> None:
    """How far apart methods are in MAE-POST, beside how far apart data sets are; in percent of its mean."""
    source = "tables/table4.csv"
    cells = registry[registry["metric"] == "mae_post"].groupby("problem")["published"]
    published = 100 * (cells.max() - cells.min()) / cells.mean()
    estimator = Estimator(files, registry)
    methods = sorted(set(read_long("experiment4", files.experiment4)["method"]))
    found_ranges = {}
    for problem in range(1, 7):
        values = [estimator.mae_post(problem, method).value for method in methods]
        known = np.array([value for value in values if math.isfinite(value)])
        if len(known) > 1:
            found_ranges[problem] = 100 * float(np.ptp(known) / known.mean())
    ours = pd.Series(found_ranges, dtype=float)
    spread = read_long("spread", files.spread)
    means = spread.groupby(["problem", "dataset"])["mae_post"].mean().groupby("problem")
    between = (100 * means.std() / means.mean()).dropna()
    for key, value, where in (
        ("published-range", float(published.max()), "data/published/table4.csv"),
        ("ours-range", float(ours.max()), source),
        ("data-sets-lowest", float(between.min()), "experiment4/spread.csv"),
        ("data-sets-highest", float(between.max()), "experiment4/spread.csv"),
    ):
        decimals = 0 if value >= 10 else 1 if math.isfinite(value) else None
        out.real(f"mae-post/{key}", float(value), where, unit=r"\,\%", decimals=decimals)
    # problems in which methods differ by less than one standard deviation of data sets
    for key, ranges in (("published", published), ("ours", ours)):
        both = ranges.index.intersection(between.index)
        closer = int((ranges[both] < between[both]).sum()) if len(both) else None
        out.whole(f"mae-post/{key}-closer", closer, source)
        out.whole(f"mae-post/{key}-problems", len(both) or None, source)


def _hard_values(out: _Values, files: ResultFiles) -> None:
    """The cell in which the sampler and expectation propagation are furthest apart in log evidence."""
    source = "tables/evidence.csv"
    logs = evidence(files)
    logs = logs[(logs["method"] == "ep") & ~logs["trivial"].astype(bool)]
    logs = logs.dropna(subset="difference")
    cell = logs.loc[logs["difference"].abs().idxmax()] if len(logs) else None
    name = None if cell is None else f"{NAMES[cell['problem']]}, set {cell['set']}"
    out.words("hard/cell", name, source, missing="not run")
    for key in ("alpha", "beta"):
        out.words(f"hard/{key}", None if cell is None else f"{cell[key]:g}", source)
    gap, se = (math.nan, math.nan) if cell is None else cell[["difference", "difference_se"]]
    short = gap > 2 * se  # below expectation propagation, and not by the noise that we know of
    out.real("hard/short", float(gap) if short else math.nan, source, se=float(se), missing="no")
    runs = read_long("experiment4", files.experiment4)
    runs = runs[(runs["method"] == REFERENCE) & (runs["status"] == "ok")]
    where = (0, 0) if cell is None else (cell["problem"], cell["set"])
    runs = runs[(runs["problem"] == where[0]) & (runs["set"] == where[1])]
    there = len(runs) > 0
    source = "experiment4/problem*/orthant.csv"
    data = problems(files).get(int(where[0]))
    out.whole("hard/patterns", None if data is None else data.train, "experiment4/problem*.npz")
    out.whole("hard/samples", int(runs["samples"].iloc[0]) if there else None, source)
    out.whole("hard/replicates", len(runs) if there else None, source)
    spread = float(runs["log_evidence"].astype(float).std())
    own = (
        math.sqrt(float((runs["log_evidence_se"].astype(float) ** 2).mean())) if there else math.nan
    )
    out.power("hard/own", own, source)
    wide = spread > 2 * own
    out.power("hard/overdispersed", spread if wide else math.nan, source)


def _run_values(out: _Values, record: Mapping[str, object]) -> None:
    source = "provenance.json"
    scale = str(record["scale"])
    out.words("scale/name", scale, source)
    stamp = f"scale {scale}: fewer samples and repetitions than published"
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
    registry: pd.DataFrame, audited: pd.DataFrame, files: ResultFiles, record: Mapping[str, object]
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
        `provenance`.

    Returns
    -------
    dict of str to Value
        Sorted by key. The keys are the same at every scale.
    """
    out = _Values()
    _run_values(out, record)
    _audit_values(out, audited, "audit.csv")
    _design_values(out, files)
    _bracket_values(out, registry)
    _floor_values(out, registry, audited, files)
    _variance_values(out, files)
    _slope_values(out, registry, files)
    _spread_values(out, registry, files)
    _experiment4_values(out, files)
    _mae_post_values(out, registry, files)
    _hard_values(out, files)
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
        rf"\gpcmc{'missing' if value.value is None else 'value'}{{{key}}}{{{value.text}}}"
        for key, value in values.items()
    ]
    Path(as_tex).write_text(_MACROS + "\n".join(lines) + "\n", encoding="utf-8")
