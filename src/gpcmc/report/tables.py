"""The tables of the typeset paper, each as a tidy CSV and as LaTeX: ours, with its standard error, beside published."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pandas as pd

from gpcmc.audit import Estimator, ResultFiles, audit, read_long
from gpcmc.audit import findings as found
from gpcmc.audit.estimates import paper_scheme
from gpcmc.audit.published import METHODS
from gpcmc.report.experiment4 import (
    NAMES,
    REFERENCE,
    differences,
    evidence,
    label,
    methods_in_order,
)
from gpcmc.report.latex import concise, count, escape, number, scientific, tabular

__all__ = ["TABLES", "Table", "write_table"]

#: Put after one of our values that the audit calls discrepant.
MARK = r"\rlap{$^\dagger$}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table: ``frame`` goes to CSV, ``tex`` is a LaTeX tabular."""

    frame: pd.DataFrame
    tex: str


def _empty(text: str = "not run at this scale") -> str:
    return tabular("c", [["--"]], [[[escape(text)]]])


def _brief(verdict: str) -> str:
    return rf"\textit{{{escape(verdict)}}}"


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
    frame = audit(registry, files)
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
    """Our value of an audited cell, or why there is none; a dagger where it is discrepant."""
    if math.isnan(cell["ours"]):
        return _brief(cell["verdict"])
    mark = MARK if cell["verdict"] == "discrepant" else ""
    return number(cell["ours"], cell["ours_se"], most=most) + mark


# ---------------------------------------------------------------------------------------------------------------------
# Table 4


def _short(problem: int) -> str:
    """A problem's name in the head of a narrow column."""
    return f"P{problem}" if problem < 7 else escape(NAMES[problem].split()[0])


def _table4_rows(registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    cells = registry[registry["table"] == 4].set_index(["problem", "metric", "method"])
    frame = audit(registry, files)
    audited = frame[frame["table"] == 4].set_index("id")
    estimator = Estimator(files, registry)
    mine = methods_in_order([REFERENCE, *read_long("experiment4", files.experiment4)["method"]])
    names = {ours: theirs for theirs, ours in METHODS.items()}
    rows = []
    for problem in range(1, 10):
        for metric in ("mae_post", "mae_med"):
            if metric == "mae_post" and problem > 6:
                continue
            wanted = (
                methods_in_order([*mine, *METHODS.values()])
                if metric == "mae_post"
                else list(METHODS.values())
            )
            for method in wanted:
                key = (problem, metric, names.get(method, ""))
                row: dict[str, object] = {"problem": problem, "metric": metric, "method": method}
                if key in cells.index:
                    cell = audited.loc[cells.loc[key, "id"]]
                    row |= {
                        "id": cells.loc[key, "id"],
                        "published_as": key[2],
                        "printed": cells.loc[key, "printed"],
                    }
                    wanted_columns = [
                        "published",
                        "published_se",
                        "ours",
                        "ours_se",
                        "replicates",
                        "ratio",
                        "z",
                    ]
                    row |= {name: cell[name] for name in [*wanted_columns, "verdict"]}
                elif metric == "mae_post":
                    estimate = estimator.mae_post(problem, method)
                    status = estimate.status if estimate.status != "ok" else "not published"
                    row |= {"ours": estimate.value, "ours_se": estimate.standard_error}
                    row |= {"replicates": estimate.replicates, "verdict": status}
                else:
                    continue
                rows.append(row)
    columns = [
        "id",
        "problem",
        "metric",
        "method",
        "published_as",
        "printed",
        "published",
        "published_se",
    ]
    return pd.DataFrame(
        rows, columns=[*columns, "ours", "ours_se", "replicates", "ratio", "z", "verdict"]
    )


def _thousandths(printed: str) -> str:
    """A printed number times 1000, with the digits that were printed: "1.7e-2" gives "17"."""
    return f"${Decimal(printed).scaleb(3):f}$"


def table4(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Table 4: a further method is one further row of results, and one row here."""
    frame = _table4_rows(registry, files)
    parts = []
    for metric, title, numbers in (
        ("mae_post", "MAE-POST", range(1, 7)),
        ("mae_med", r"MAE-MED, $10^{-3}$", range(1, 10)),
    ):
        cells = frame[frame["metric"] == metric].set_index(["method", "problem"])
        theirs, ours = [], []
        for published, method in METHODS.items():
            printed = [
                cells.loc[(method, p), "printed"] if (method, p) in cells.index else None
                for p in numbers
            ]
            show = "${}$".format if metric == "mae_post" else _thousandths
            theirs.append(
                [published.upper(), *(show(x) if isinstance(x, str) else "--" for x in printed)]
            )
        for method in methods_in_order(cells.index.get_level_values("method")):
            row = [_table4_ours(cells, method, p) for p in numbers]
            if all(cell in ("--", _brief("not run")) for cell in row):
                row = [rf"\multicolumn{{{len(numbers)}}}{{c}}{{{_brief('not run')}}}"]
            ours.append([label(method), *row])
        body = [
            [[origin if i == 0 else "", *row] for i, row in enumerate(group)]
            for origin, group in (("published", theirs), ("ours", ours))
        ]
        head = [title, "", *(_short(p) for p in numbers)]
        parts.append(tabular("ll" + "r" * len(numbers), [head], body))
    return Table(frame.drop(columns="printed"), "\\par\\bigskip\n".join(parts))


def _table4_ours(cells: pd.DataFrame, method: str, problem: int) -> str:
    if (method, problem) not in cells.index:
        return "--"
    row = cells.loc[(method, problem)]
    if math.isnan(row["ours"]):
        return _brief("no data" if row["verdict"] == "data not available" else row["verdict"])
    mark = MARK if row["verdict"] == "discrepant" else ""
    if row["metric"] == "mae_med":
        return number(1000 * row["ours"], 1000 * row["ours_se"], most=2) + mark
    return concise(row["ours"], row["ours_se"], decimals=4) + mark


# ---------------------------------------------------------------------------------------------------------------------
# Experiment 4 beyond the published table


def evidence_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Log evidence of each problem, hyperparameter set and method."""
    frame = evidence(files)
    if frame.empty:
        return Table(frame, _empty())
    methods = methods_in_order(frame["method"])
    cells = frame.set_index(["problem", "set", "method"])
    body = []
    for problem, group in frame.groupby("problem"):
        rows: list[list[str]] = []
        for position, (setting, first) in enumerate(
            group.drop_duplicates("set").set_index("set").iterrows()
        ):
            name = escape(NAMES[int(problem)]) if position == 0 else ""
            mark = "$^*$" if first["trivial"] else ""
            row = [name, f"{setting}{mark}", f"${first['alpha']:g}$", f"${first['beta']:g}$"]
            for method in methods:
                key = (problem, setting, method)
                cell = cells.loc[key] if key in cells.index else None
                if cell is None:
                    row.append("--")
                elif cell["status"] != "ok":
                    row.append(_brief(cell["status"]))
                elif cell["log_evidence_se"] >= 0.0005:
                    row.append(number(cell["log_evidence"], cell["log_evidence_se"], most=3))
                else:
                    row.append(number(cell["log_evidence"], decimals=3))
            rows.append(row)
        body.append(rows)
    head = ["", "set", r"$\alpha$", r"$\beta$", *(label(method) for method in methods)]
    return Table(frame, tabular("lrrr" + "r" * len(methods), [head], body))


def metrics_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Error rates, and distances of the other methods from the orthant sampler."""
    frame = differences(files)
    if frame.empty:
        return Table(frame, _empty())
    numbers = sorted(frame["problem"].unique())
    cells = frame.set_index(["method", "problem"])
    blocks: list[tuple[str, str, Callable[[float], str]]] = [
        ("error_rate", "test errors, \\%", lambda x: number(100 * x, decimals=1)),
        ("probability", r"mean $|\Delta p|$, $10^{-3}$", lambda x: number(1000 * x, decimals=2)),
        (
            "probability_max",
            r"largest $|\Delta p|$, $10^{-3}$",
            lambda x: number(1000 * x, decimals=1),
        ),
        ("nats", r"mean $|\Delta\log L|$, nats", lambda x: number(x, decimals=3)),
    ]
    body = []
    for column, title, show in blocks:
        rows: list[list[str]] = []
        for method in methods_in_order(frame["method"]):
            row = []
            for problem in numbers:
                cell = cells.loc[(method, problem)] if (method, problem) in cells.index else None
                if cell is None or math.isnan(cell[column]):
                    missing = cell is not None and cell["status"] == "data not available"
                    row.append(_brief("no data") if missing else "--")
                else:
                    row.append(show(cell[column]))
            rows.append([title if not rows else "", label(method), *row])
        body.append(rows)
    head = [
        "",
        "",
        *(_short(p) for p in numbers),
    ]
    return Table(frame, tabular("ll" + "r" * len(numbers), [head], body))


# ---------------------------------------------------------------------------------------------------------------------
# Findings


def spread_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Experiment 2: how much data sets differ."""
    frame = found.data_sets(registry, files)
    if frame.empty:
        return Table(frame, _empty())
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
    frame = pd.concat(
        [found.variance(files, pooled=True), found.variance(files)], ignore_index=True
    )
    if frame.empty:
        return Table(frame, _empty())
    body = []
    for experiment, group in frame[frame["samples"].isna()].groupby("experiment"):
        rows: list[list[str]] = []
        for _, row in group.iterrows():
            rows.append(
                [
                    str(experiment) if not rows else "",
                    f"{row['problem']} ($N={row['dimension']}$)",
                    count(int(row["runs"])),
                    number(row["predicted"]),
                    number(row["measured"]),
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
    frame = found.floor(registry, audit(registry, files))
    cells = frame.set_index(["samples", "dimension"])
    dimensions = sorted(frame[frame["constant"]]["dimension"].unique())
    rows = []
    for samples in sorted(frame["samples"].unique(), reverse=True):
        row = [count(samples)]
        for dimension in dimensions:
            cell = cells.loc[(samples, dimension)]
            row += [
                number(cell["published"], decimals=3),
                number(cell["outlier"], decimals=2),
                number(cell["without_outlier"], decimals=3),
                _brief("not run")
                if math.isnan(cell["ours"])
                else number(cell["ours"], cell["ours_se"], most=4),
            ]
        rows.append(row)
    top = ["", *(rf"\multicolumn{{4}}{{c}}{{$N={dimension}$}}" for dimension in dimensions)]
    rules = [" ".join(rf"\cmidrule(lr){{{2 + 4 * i}-{5 + 4 * i}}}" for i in range(len(dimensions)))]
    head = ["$M$", *(["published", "implied $e$", "without", "ours"] * len(dimensions))]
    return Table(frame, tabular("r" + "rrrr" * len(dimensions), [top, head], [rows], rules))


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
    " -1 ": " $-1$ ",
}


def _formulas(text: str) -> str:
    """Plain text with its formulas set as mathematics, the longest first."""
    pattern = "|".join(re.escape(formula) for formula in sorted(_FORMULAS, key=len, reverse=True))
    pieces = re.split(f"({pattern})", text)
    return "".join(_FORMULAS.get(piece, escape(piece)) for piece in pieces)


def equations_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """The checked equations, those that are misprinted with their correction."""
    frame = read_long("equations", files.equations).drop(columns="file").fillna({"correction": ""})
    if frame.empty:
        return Table(frame, _empty())
    rows = [
        [
            f"({escape(str(row['equation']))})".replace("-", ")--("),
            _formulas(row["statement"]),
            _formulas(row["correction"]) if row["correction"] else "none needed",
            *(
                "--" if math.isnan(row[name]) else scientific(row[name])
                for name in ("printed_error", "corrected_error")
            ),
        ]
        for _, row in frame.iterrows()
    ]
    head = ["Eq.", "as printed", "correction", "printed", "corrected"]
    top = ["", "", "", r"\multicolumn{2}{c}{largest error}"]
    wrap = r">{\raggedright\arraybackslash}p{50mm}"
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
    "evidence": evidence_table,
    "metrics": metrics_table,
    "spread": spread_table,
    "brackets": brackets_table,
    "variance": variance_table,
    "floor": floor_table,
    "equations": equations_table,
}


def write_table(
    name: str, registry: pd.DataFrame, files: ResultFiles, csv: str | Path, tex: str | Path
) -> None:
    """Make one table and write it as CSV and LaTeX.

    Parameters
    ----------
    name : str
        A key of `TABLES`.
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        The result files that the table reads; absent ones read "not run".
    csv, tex : path
        Where to write.

    Raises
    ------
    ValueError
        The name is unknown.
    """
    if name not in TABLES:
        raise ValueError(f"table {name!r} is unknown; known are {sorted(TABLES)}")
    table = TABLES[name](registry, files)
    table.frame.to_csv(csv, index=False, float_format="%.8g", lineterminator="\n")
    Path(tex).write_text(table.tex, encoding="utf-8")
