"""What each defect of the toolbox that the paper used does to its answers: table, figure, values."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from scipy.stats import t as student

from gpcmc.audit.results import ResultFiles, mean_and_error, read
from gpcmc.inference.gpml import DEFECTS
from gpcmc.inference.interface import MIN_EFFECTIVE, OK
from gpcmc.report import style
from gpcmc.report.latex import number, tabular
from gpcmc.report.table import Table, brief, empty
from gpcmc.report.value import Source, Values

__all__ = ["FIGURES", "TABLES", "add_values", "defect_effects", "defect_means"]

CASES = {
    "linear": "linear kernel, $N=400$",
    "smooth": r"RBF, $\alpha=3$, $\beta=2$",
    "rough": r"RBF, $\alpha=1/2$, $\beta=3$",
}
SAMPLERS = {"ess": "ESS", "hmc": "HMC"}
_SWITCHED = (
    "all",
    *(f"without {one}" for one in DEFECTS),
    *(f"only {one}" for one in DEFECTS),
    "none",
)
_SHOWN = {"all": "all, as shipped", "none": "none, repaired"}


def _defect_rows(files: ResultFiles) -> pd.DataFrame:
    needs = ["sampler", "switched", "samples", "replicate", "status"]
    needs += ["log_evidence_error", "ape_percent", "probability_mae"]
    frame = read(files.defects, needs)
    return frame.assign(case=[Path(path).stem.split("_")[0] for path in frame["file"]])


def defect_means(files: ResultFiles) -> pd.DataFrame:
    """Errors of the toolbox with each set of defects: one row a case, sampler, number of samples and set.

    All replicates are averaged, converged or not, for the sets share their chains and it is the sets
    that are compared; ``converged`` says how many are.
    """
    rows = []
    keys = ["case", "sampler", "samples", "switched"]
    for key, group in _defect_rows(files).groupby(keys):
        row: dict[str, object] = dict(zip(keys, key, strict=True))
        row |= {"replicates": len(group), "converged": int((group["status"] == OK).sum())}
        for name, column in _COLUMNS.items():
            row[name], row[f"{name}_se"] = mean_and_error(group[column])
        rows.append(row)
    columns = [*keys, "replicates", "converged"]
    columns += [part for name in _COLUMNS for part in (name, f"{name}_se")]
    return pd.DataFrame(rows, columns=columns)


_COLUMNS = {"nats": "log_evidence_error", "mape": "ape_percent", "mae": "probability_mae"}


def defect_effects(files: ResultFiles) -> pd.DataFrame:
    """What one defect does: differences of replicates that share their random numbers.

    Returns
    -------
    DataFrame
        One row a case, sampler, number of samples, defect and ``setting``: ``repaired`` (all defects less all
        but this one) or ``alone`` (this one less none). ``nats``, ``mape`` and ``mae`` with standard errors, and
        ``nats_clear``, ``mae_clear``: whether zero is outside 95 % by Student's t.
    """
    rows = []
    keys = ["case", "sampler", "samples"]
    for key, group in _defect_rows(files).groupby(keys):
        wide = group.set_index(["replicate", "switched"])[list(_COLUMNS.values())].unstack()
        for defect in DEFECTS:
            pairs = {
                "repaired": ("all", f"without {defect}"),
                "alone": (f"only {defect}", "none"),
            }
            for setting, (with_it, without) in pairs.items():
                row: dict[str, object] = dict(zip(keys, key, strict=True))
                row |= {"defect": defect, "setting": setting}
                if not {with_it, without} <= set(group["switched"]):
                    continue
                for name, column in _COLUMNS.items():
                    change = (wide[column][with_it] - wide[column][without]).dropna()
                    mean, se = mean_and_error(change)
                    beyond = student.ppf(0.975, max(len(change) - 1, 1)) * se
                    # chains that the defect cannot touch are the same to the last bit
                    clear = abs(mean) > beyond if se > 0 else False
                    row |= {name: mean, f"{name}_se": se, f"{name}_clear": bool(clear)}
                rows.append(row)
    columns = [*keys, "defect", "setting"]
    columns += [f"{name}{end}" for name in _COLUMNS for end in ("", "_se", "_clear")]
    return pd.DataFrame(rows, columns=columns)


def _largest(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with the most samples of each case and sampler."""
    if frame.empty:
        return frame
    most = frame.groupby(["case", "sampler"])["samples"].transform("max")
    return frame[frame["samples"] == most]


def defects_table(registry: pd.DataFrame, files: ResultFiles) -> Table:
    """Errors with sets of defects switched on, at the largest number of samples."""
    frame = defect_means(files)
    if frame.empty:
        return Table(frame, empty())
    cells = _largest(frame).set_index(["case", "sampler", "switched"])
    body = []
    for sampler, title in SAMPLERS.items():
        rows: list[list[str]] = []
        for switched in _SWITCHED:
            keys = [(case, sampler, switched) for case in CASES]
            if not any(key in cells.index for key in keys):
                continue
            row = [title if not rows else "", _SHOWN.get(switched, switched)]
            for key in keys:
                if key not in cells.index:
                    row.append(rf"\multicolumn{{3}}{{c}}{{{brief('not run')}}}")
                    continue
                cell = cells.loc[key]
                row.append(number(cell["nats"], cell["nats_se"], most=3))
                row.append(number(cell["mape"], decimals=2))
                row.append(number(1e3 * cell["mae"], decimals=2))
            rows.append(row)
        if rows:
            body.append(rows)
    top = ["", "", *(rf"\multicolumn{{3}}{{c}}{{{case}}}" for case in CASES.values())]
    head = ["", "defects", *(["nats", r"\%", "MAE"] * len(CASES))]
    rules = ["".join(rf"\cmidrule(lr){{{3 + 3 * i}-{5 + 3 * i}}}" for i in range(len(CASES)))]
    return Table(frame, tabular("ll" + "rrr" * len(CASES), [top, head], body, rules))


def defects_figure(registry: pd.DataFrame, files: ResultFiles) -> Figure:
    """Error of the log evidence (above) and of probabilities (below) with sets of defects switched on."""
    frame = _largest(defect_means(files))
    drawn = style.figure(5.0)
    panels = drawn.subplots(2, 3, sharey=True)
    place = {switched: i for i, switched in enumerate(_SWITCHED)}
    looks = {"ess": (style.ORANGE, "^", -0.17), "hmc": (style.BLUE, "o", 0.17)}
    measures = (
        ("nats", "error of $\\log L$ (nats)", 1.0),
        ("mae", "MAE of $p(y_*=1)$, $10^{-3}$", 1e3),
    )
    for row, (name, title, unit) in zip(panels, measures, strict=True):
        for axes, case in zip(row, CASES, strict=True):
            part = frame[frame["case"] == case]
            for sampler, (color, marker, shift) in looks.items():
                mine = part[part["sampler"] == sampler]
                values = unit * mine[name].to_numpy(dtype=float)
                se = unit * np.nan_to_num(mine[f"{name}_se"].to_numpy(dtype=float))
                axes.errorbar(
                    values,
                    [place[s] + shift for s in mine["switched"]],
                    xerr=np.stack([np.minimum(se, 0.9 * values) if name == "mae" else se, se]),
                    color=color,
                    marker=marker,
                    linestyle="none",
                )
            if part.empty:
                axes.text(
                    *(0.5, 4.5, "not run"),
                    ha="center",
                    color=style.GREY,
                    transform=axes.get_yaxis_transform(),
                )
            wide = name == "nats" and (part["nats"].abs() > 1.0).any()
            if wide:
                axes.set_xscale("symlog", linthresh=1.0, linscale=1.0)
            else:
                axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.xaxis.set_major_formatter(FuncFormatter(style.plain))
            if name == "mae":
                axes.set_xlim(left=0.0)
            else:
                axes.axvline(0.0, color=style.INK, linewidth=0.8, linestyle="--", zorder=1)
                style.label_panel(axes, CASES[case])
            for edge in (0.5, 4.5, 8.5):
                axes.axhline(edge, color=style.GREY, linewidth=0.5, zorder=0)
            axes.set_xlabel(f"{title}\nlinear between $\\pm1$" if wide else title)
            axes.grid(visible=False, axis="y")
        row[0].set_ylim(len(_SWITCHED) - 0.5, -0.5)
        row[0].set_yticks(range(len(_SWITCHED)), [_SHOWN.get(s, s) for s in _SWITCHED])
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="none", label=SAMPLERS[sampler])
        for sampler, (color, marker, _) in looks.items()
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=2)
    return drawn


#: Sets of defects of which the text speaks.
_TOLD = (
    *("all", "none", "without stale-energy", "without double-variance"),
    "only double-variance",
)


def add_values(out: Values, files: ResultFiles) -> None:
    """Add the values of the study of the defects."""
    source = "tables/defects.csv"
    means, effects = _largest(defect_means(files)), _largest(defect_effects(files))
    out.integers("defects/samples", means["samples"], source)
    short = means["samples"].max() < MIN_EFFECTIVE  # no chain can converge, however well it mixes
    out.words("defects/short", "none can" if short else None, source, missing="no")
    out.integers("defects/replicates", means["replicates"], source)
    share = means[means["switched"].isin(["all", "none"])]
    where = Source(source, {"switched": ("all", "none")})
    out.whole("defects/runs", int(share["replicates"].sum()) if len(share) else None, where)
    out.whole("defects/converged", int(share["converged"].sum()) if len(share) else None, where)
    cells = means.set_index(["case", "sampler", "switched"])
    changes = effects.set_index(["case", "sampler", "defect", "setting"])
    # shifts by one defect beside the others: which are clear of zero, and by case the largest, clear or not
    clear_of_zero: dict[str, list[str]] = {sampler: [] for sampler in SAMPLERS}
    largest: dict[str, list[str]] = {sampler: [] for sampler in SAMPLERS}
    repaired = effects[effects["setting"] == "repaired"].dropna(subset="nats")
    for (sampler, case), group in repaired.groupby(["sampler", "case"]):
        for defect in group["defect"][group["nats_clear"].astype(bool)]:
            clear_of_zero[sampler].append(f"{defect} ({case})")
        row = group.loc[group["nats"].abs().idxmax()]
        shift = number(row["nats"], row["nats_se"])
        largest[sampler].append(f"{row['defect']} ({case}, {shift} nats)")
    for sampler in SAMPLERS:
        there = bool((repaired["sampler"] == sampler).any())
        out.words(
            f"defects/{sampler}/clear",
            ", ".join(clear_of_zero[sampler]),
            source,
            missing="none of them" if there else "not run",
        )
        listed = ", ".join(largest[sampler])
        plain = listed.replace("$", "") if there else None
        out.put(f"defects/{sampler}/largest", plain, listed or "not run", source)
    for case in CASES:
        for sampler in SAMPLERS:
            key = f"defects/{case}/{sampler}"
            for switched in _TOLD:
                there = (case, sampler, switched) in cells.index
                row = cells.loc[(case, sampler, switched)] if there else None
                name = f"{key}/{switched.replace(' ', '-')}"
                for what, unit in (("nats", " nats"), ("mape", r"\,\%")):
                    value, se = (
                        (math.nan, math.nan) if row is None else (row[what], row[f"{what}_se"])
                    )
                    out.real(f"{name}/{what}", float(value), source, se=float(se), unit=unit)
                mae = math.nan if row is None else float(row["mae"])
                out.power(f"{name}/mae", mae, source)
                log = math.log(mae) if mae > 0 else math.nan
                out.real(f"{name}/log-mae", log, source, decimals=2 if mae > 0 else None)
            file = f"defects/{case}_{sampler}.csv"
            for defect in DEFECTS:
                pairs = {
                    "repaired": ("all", f"without {defect}"),
                    "alone": ("none", f"only {defect}"),
                }
                for setting, pair in pairs.items():
                    runs = Source(file, {"switched": pair}, defect_effects)
                    place = (case, sampler, defect, setting)
                    there = place in changes.index
                    row = changes.loc[place] if there else None
                    name = f"{key}/{defect}/{setting}"
                    missing = "no clear effect" if there else "not run"
                    for what in ("nats", "mae"):
                        clear = row is not None and bool(row[f"{what}_clear"])
                        value = float(row[what]) if row is not None and clear else math.nan
                        se = float(row[f"{what}_se"]) if row is not None and clear else math.nan
                        if what == "nats":
                            out.real(
                                f"{name}/nats", value, runs, se=se, unit=" nats", missing=missing
                            )
                        else:
                            scaled = 1e3 * value
                            unit = r"$\,\cdot10^{-3}$" if clear else ""
                            out.real(
                                f"{name}/mae",
                                scaled,
                                runs,
                                se=1e3 * se,
                                unit=unit,
                                missing=missing,
                            )


TABLES = {"defects": defects_table}
FIGURES = {"defects": defects_figure}
