"""Summaries of Experiment 4 that its tables, figures and values share.

`all_cells` has one row for each problem, hyperparameter set and method, of the problem's first data set; only
runs with the status "ok" enter a value. `by_problem` averages a column of it over hyperparameter sets.
Errors are those of one run, averaged over runs: at equal CPU seconds this is what a user would get.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from gpcmc.audit.estimates import Estimator, at_published_budget, median_errors
from gpcmc.audit.published import METHODS, PUBLISHED_SETS
from gpcmc.audit.results import (
    Predictions,
    Problem,
    ResultFiles,
    mean_and_error,
    problem_number,
    read_long,
    read_probabilities,
    read_problem,
)
from gpcmc.experiments import classification
from gpcmc.experiments.classification import EXTINCT, NO_DATA, REAL
from gpcmc.experiments.reference import (
    CERTIFIED,
    EVIDENCE,
    MAX_Z,
    Cell,
    Reference,
    digest,
    load_reference,
)
from gpcmc.gp import rbf
from gpcmc.inference.control_variables import ControlVariables
from gpcmc.inference.interface import NOT_CONVERGED, OK, STOPPED, UNTRUSTED

__all__ = [
    "LABELS",
    "NAMES",
    "NINE",
    "PAPER",
    "READINGS",
    "SAMPLER",
    "SHORT",
    "STATUSES",
    "Average",
    "ControlInputs",
    "all_cells",
    "as_run",
    "average",
    "by_problem",
    "cells_over",
    "certified_reference",
    "control_inputs",
    "data_set_range",
    "label",
    "mae_med_by_problem",
    "mae_post_ranges",
    "methods_in_order",
    "problems",
    "readings",
    "reference_summary",
    "references",
    "reliability",
    "run_gaps",
    "seconds_by_problem",
    "seconds_by_set",
    "seconds_ratio",
    "seconds_where_trivial",
    "subnormal_share",
]

#: The paper's own method.
SAMPLER = "orthant"

#: How a method is printed. The order is that of tables and figures: the four of the paper, its Markov
#: chains done properly, other people's methods, ours, and the deterministic ones. A method that is not
#: here comes last.
LABELS: dict[str, str] = {
    "orthant": "orthant (soft)",
    "control-variables": "control variables",
    "ess-gpml": "ESS as shipped",
    "hmc-gpml": "HMC as shipped",
    "ess": "ESS (proper)",
    "hmc": "HMC (proper)",
    "minimax-tilting": "minimax tilting",
    "importance-ep": "EP importance",
    "importance-laplace": "Laplace importance",
    "pseudo-marginal-ep": "64 weights, EP",
    "pseudo-marginal-laplace": "64 weights, Laplace",
    "orthant-adapted": "orthant (adapted)",
    "best": "twisted (best)",
    "laplace": "Laplace",
    "ep": "EP",
}

#: The same in the head of a narrow column.
SHORT: dict[str, str] = {
    "orthant": "orthant",
    "control-variables": "CV",
    "ess-gpml": "ESS-s",
    "hmc-gpml": "HMC-s",
    "ess": "ESS",
    "hmc": "HMC",
    "minimax-tilting": "tilting",
    "importance-ep": "EP-IS",
    "importance-laplace": "LA-IS",
    "pseudo-marginal-ep": "EP-64",
    "pseudo-marginal-laplace": "LA-64",
    "orthant-adapted": "adapted",
    "best": "twisted",
    "laplace": "Laplace",
    "ep": "EP",
}

#: The four whose median MAE-MED is taken from (three on USPS).
PAPER: tuple[str, ...] = ("orthant", "control-variables", "ess-gpml", "hmc-gpml")

#: Statuses of a run that does not count, and how a narrow cell says so.
STATUSES: dict[str, str] = {
    NOT_CONVERGED: "n.c.",
    UNTRUSTED: "n.t.",
    STOPPED: "stopped",
    EXTINCT: "extinct",
    NO_DATA: "no data",
}

#: How a problem of Experiment 4 is printed.
NAMES: dict[int, str] = {number: f"Problem {number}" for number in range(1, 7)} | {
    7: "Crabs",
    8: "Breast Cancer",
    9: "USPS 3 v 5",
}


#: The problems of the paper. Figures of these leave out what was added.
NINE = range(1, 10)


def label(method: str) -> str:
    """The printed name of a method."""
    return LABELS.get(method, method)


def methods_in_order(methods: Iterable[str], known: Iterable[str] = LABELS) -> list[str]:
    """Distinct methods in the order of those that are known, others after them by name."""
    order = list(known)
    return sorted(
        set(methods), key=lambda name: (order.index(name) if name in order else len(order), name)
    )


def problems(files: ResultFiles) -> dict[int, Problem]:
    """The problems of Experiment 4 by number, in order."""
    found = [read_problem(path) for path in files.problems]
    return {
        problem.number: problem for problem in sorted(found, key=lambda problem: problem.number)
    }


def is_trivial(column: pd.Series) -> pd.Series:
    """Whether rows are of a set in which K is beta I to rounding; an absent entry says no."""
    return column.astype(str).str.lower() == "true"


def certified_reference(files: ResultFiles) -> Reference | None:
    """The certified reference, if it is among the files."""
    paths = [Path(path) for path in files.reference if Path(path).name == EVIDENCE]
    return load_reference(paths[0].parent) if paths else None


def references(files: ResultFiles, rows: pd.DataFrame) -> dict[tuple[int, int], Cell]:
    """The certified reference of the cells of a run.

    Parameters
    ----------
    files : ResultFiles
        ``reference`` and ``problems``.
    rows : DataFrame
        Rows with ``problem``, ``set``, ``alpha``, ``beta``.

    Returns
    -------
    dict
        By problem and set; without the cells that have no reference.

    Raises
    ------
    ValueError
        The reference of a cell was computed on other data or hyperparameters.
    """
    certified = certified_reference(files)
    if certified is None:
        return {}
    wanted = rows[["problem", "set", "alpha", "beta"]].drop_duplicates()
    found = {}
    for path in files.problems:
        number = read_problem(path).number
        with np.load(path) as stored:
            if not stored.files:
                continue
            problem = classification.Problem(**stored)
        for row in wanted[wanted["problem"] == number].itertuples():
            name = digest(problem, float(row.alpha), float(row.beta))
            cell = certified.cell(number, int(row.set), name)
            if cell is not None:
                found[number, int(row.set)] = cell
    return found


def run_gaps(files: ResultFiles, method: str) -> pd.DataFrame:
    """Log evidence of single runs less the reference: an average over runs hides what one of them is off.

    Here are all pairs of problem and set in which the two methods of the reference agree in log evidence. They may be
    uncertified for other reasons, such as a second method that is not as exact as a certificate asks for: its error
    counts here with that of the first.

    Parameters
    ----------
    files : ResultFiles
        ``experiment4``, ``problems``, ``reference``.
    method : str

    Returns
    -------
    DataFrame
        One row a run that counts, on the first data set of a problem, where K is not beta I to rounding: ``problem``,
        ``set``, ``replicate``, ``seed``, ``alpha``, ``beta``, ``samples``, ``log_evidence_se`` (what the run says
        of itself), ``gap`` (nats), ``joint_se`` (of run and reference), ``beyond`` (|gap| less three of these),
        ``certified`` and ``certifier_se``.

    Raises
    ------
    ValueError
        As `references`.
    """
    pair = ["problem", "set"]
    columns = ["alpha", "beta", "samples", "log_evidence_se", "gap", "joint_se", "beyond"]
    columns = [*pair, "replicate", "seed", *columns, "certified", "certifier_se"]
    rows = read_long("experiment4", files.experiment4)
    rows = rows[(rows["method"] == method) & (rows["status"] == OK) & (rows["dataset"] == 0)]
    rows = rows[~is_trivial(rows["trivial"])]
    known, certified = references(files, rows), certified_reference(files)
    if certified is None or not known:
        return pd.DataFrame(columns=columns)
    looked = certified.evidence.set_index(pair).loc[list(known)]
    looked = looked[looked["z"].abs() < MAX_Z]
    names = {"log_evidence": "known", "log_evidence_se": "known_se"}
    looked = looked.rename(columns=names)[[*names.values(), "certifier_se", "verdict"]]
    found = rows.join(looked, on=pair, how="inner").reset_index(drop=True)
    numbers = ["alpha", "beta", "samples", "log_evidence", "log_evidence_se"]
    found = found.astype(dict.fromkeys(numbers, float))
    errors = found[["log_evidence_se", "known_se", "certifier_se"]]
    found["gap"] = found["log_evidence"] - found["known"]
    found["joint_se"] = np.sqrt((errors**2).sum(axis=1, skipna=False))
    found["beyond"] = found["gap"].abs() - MAX_Z * found["joint_se"]
    return found.assign(certified=found["verdict"] == CERTIFIED)[columns]


class ControlInputs(NamedTuple):
    """Why runs of control variables were stopped before they sampled.

    Attributes
    ----------
    least, most : int
        Control inputs that the runs need at least, over hyperparameter sets.
    limit : int
        How many we allow.
    """

    least: int
    most: int
    limit: int


def control_inputs(rows: pd.DataFrame) -> ControlInputs | None:
    """What the stopped runs of control variables among rows of Experiment 4 needed; None without such runs."""
    stopped = rows[(rows["status"] == STOPPED) & rows["controls_needed"].notna()]
    if stopped.empty:
        return None
    needed = stopped["controls_needed"].astype(float)
    limit = stopped["max_controls"].astype(float).fillna(ControlVariables().max_controls)
    return ControlInputs(int(needed.min()), int(needed.max()), int(limit.max()))


def _average_evidence(logs: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Average of replicates' evidence estimates, on the probability scale, and the error of its log.

    Two errors are at hand: from what the replicates say of themselves, and from how they differ. The
    larger counts, for where the samples are too few a replicate does not know how wrong it is.
    """
    value = float(logsumexp(logs) - np.log(len(logs)))
    own = float(np.sqrt(np.sum((softmax(logs) * errors) ** 2)))
    between = float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else 0.0
    return value, max(own, between)


def _mean(values: np.ndarray, exact: bool) -> tuple[float, float]:
    """Mean over runs and its standard error: none from one run, zero for a method that is not random."""
    values = values[np.isfinite(values)]
    if not len(values):
        return math.nan, math.nan
    if exact:
        return float(values.mean()), 0.0
    se = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), float(se)


_PAIRS = ("nats", "mae_reference", "mae_post", "mae_med")

#: Columns of the result files that `all_cells` reads.
_READ = [
    *("alpha", "beta", "trivial", "exact", "status", "log_evidence", "log_evidence_se"),
    *("mae_post", "error_rate", "cpu_seconds", "effective_samples", "k_hat", "r_hat"),
]

_COLUMNS = [
    *("problem", "set", "alpha", "beta", "trivial", "method", "runs", "ok", "status"),
    *("reference", "reference_log_evidence", "reference_log_evidence_se", "reference_p_se"),
    *("log_evidence", "log_evidence_se", "per_pattern", "difference", "difference_se"),
    *(f"{name}{end}" for name in _PAIRS for end in ("", "_se")),
    *("largest_reference", "error_rate", "cpu_seconds", "effective_samples"),
    *("effective_per_second", "k_hat", "r_hat", "gives_evidence"),
]


def all_cells(
    registry: pd.DataFrame, files: ResultFiles, *, as_published: bool = False
) -> pd.DataFrame:
    """What every method gave on the first data set of each problem, with each hyperparameter set.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`: it says which methods the median is over.
    files : ResultFiles
        ``experiment4``, ``experiment4_timing``, ``probabilities``, ``problems``, ``reference``.
    as_published : bool
        Whether every run that predicted counts, converged or not, on problems that had the paper's budget
        (`at_published_budget`).

    Returns
    -------
    DataFrame
        ``problem``, ``set``, ``alpha``, ``beta``, ``trivial``, ``method``;
        ``runs``, ``ok`` (how many of them count), ``status`` ("ok" if all do, else the most frequent
        other one); ``reference`` ("certified", "uncertified", "none"), ``reference_log_evidence``
        (nats) and ``reference_p_se`` (mean standard error of its probabilities). Of the runs that
        count: ``log_evidence`` (nats, averaged on the probability scale), ``per_pattern`` (nats a
        training pattern), ``difference`` (nats, from the reference), ``nats`` (mean over runs of
        |log L - reference|), ``mae_reference`` and ``largest_reference`` (mean and maximum of
        |p - p of the reference|), ``mae_post``, ``mae_med`` (from the median of the paper's methods),
        each with ``_se`` from the spread of the runs; ``error_rate``; ``cpu_seconds`` a run (of all that
        did their work, converged or not), ``effective_samples``, ``effective_per_second``, ``k_hat`` and
        ``r_hat`` (the largest), and ``gives_evidence`` (whether the method has a log evidence anywhere).

    Raises
    ------
    ValueError
        As `references`.
    """
    rows = read_long("experiment4", files.experiment4)
    rows = rows[rows["dataset"] == 0]
    timing = read_long("experiment4_timing", files.experiment4_timing)
    key = ["problem", "method", "set", "dataset", "replicate"]
    rows = rows.merge(timing[[*key, "cpu_seconds"]], on=key, how="left")
    predicted = read_probabilities(files.probabilities)
    if as_published:
        loose = at_published_budget(rows)
        counts = rows["problem"].isin(loose) & rows["error_rate"].notna()
        rows = rows.assign(status=rows["status"].mask(counts, OK))
        every = read_probabilities(files.probabilities, every=True)
        predicted |= {key: found for key, found in every.items() if key[0] in loose}
    known = references(files, rows)
    # a problem that the paper does not have is judged as the paper judges its own
    consensus = {p: Estimator(ResultFiles(), registry).consensus(p) or [*PAPER] for p in NAMES}
    sizes = {number: problem.train for number, problem in problems(files).items()}
    rows = rows.assign(trivial=is_trivial(rows["trivial"]), exact=rows["seed"].isna())
    text = ("status", "trivial", "exact")
    columns = {name: rows[name].to_numpy(None if name in text else float) for name in _READ}
    giving = set(rows["method"][rows["log_evidence"].notna()])
    found = []
    for (problem, number, method), index in rows.groupby(
        ["problem", "set", "method"]
    ).indices.items():
        problem, number = int(problem), int(number)
        run = {name: column[index] for name, column in columns.items()}
        ok = run["status"] == OK
        good = {name: column[ok] for name, column in run.items()}
        bad = pd.Series(run["status"][~ok])
        exact = bool(run["exact"].all())
        row: dict[str, object] = {
            "problem": problem,
            "set": number,
            "alpha": run["alpha"][0],
            "beta": run["beta"][0],
            "trivial": bool(run["trivial"].any()),
            "method": method,
            "runs": len(ok),
            "ok": int(ok.sum()),
            "status": str(bad.mode().iloc[0]) if len(bad) else OK,
            "reference": "none",
        }
        cell = known.get((problem, number))
        if cell is not None:
            row |= {
                "reference": "certified" if cell.certified else "uncertified",
                "reference_log_evidence": cell.log_evidence,
                "reference_log_evidence_se": cell.log_evidence_se,
                "reference_p_se": float(np.mean(cell.probability_se)),
            }
        row |= _evidence(good["log_evidence"], good["log_evidence_se"], cell, exact)
        if "log_evidence" in row and sizes.get(problem):
            row["per_pattern"] = row["log_evidence"] / sizes[problem]  # type: ignore[operator]
        row |= _probabilities(predicted.get((problem, method, number)), cell, exact)
        row["mae_post"], row["mae_post_se"] = _mean(good["mae_post"], exact)
        needed = [(problem, name, number) for name in (*consensus[problem], method)]
        if all(key in predicted and len(predicted[key].on(0)) for key in needed):
            errors = median_errors(predicted, problem, consensus[problem], str(method), number)
            row["mae_med"], row["mae_med_se"] = _mean(errors, exact=False)
        did = np.isin(run["status"], [OK, NOT_CONVERGED, UNTRUSTED])
        row |= {
            "error_rate": _mean(good["error_rate"], exact)[0],
            "cpu_seconds": _mean(run["cpu_seconds"][did], exact)[0],
            "effective_samples": _mean(good["effective_samples"], exact)[0],
            "effective_per_second": _mean(good["effective_samples"] / good["cpu_seconds"], exact)[
                0
            ],
            "k_hat": _largest(run["k_hat"]),
            "r_hat": _largest(run["r_hat"]),
            "gives_evidence": method in giving,
        }
        found.append(row)
    table = pd.DataFrame(found, columns=_COLUMNS)
    order = methods_in_order(table["method"])
    return table.sort_values(
        ["problem", "set", "method"], key=lambda c: c.map(order.index) if c.name == "method" else c
    ).reset_index(drop=True)


def _largest(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else math.nan


def _evidence(
    logs: np.ndarray, errors: np.ndarray, cell: Cell | None, exact: bool
) -> dict[str, float]:
    there = np.isfinite(logs)
    logs, errors = logs[there], errors[there]
    if not len(logs):
        return {}
    value, se = _average_evidence(logs, errors)
    row = {"log_evidence": value, "log_evidence_se": se}
    if cell is not None:
        row["difference"] = value - cell.log_evidence
        row["difference_se"] = math.hypot(se, cell.log_evidence_se)
        row["nats"], row["nats_se"] = _mean(np.abs(logs - cell.log_evidence), exact)
    return row


def _probabilities(p: Predictions | None, cell: Cell | None, exact: bool) -> dict[str, float]:
    if p is None or cell is None or not len(p.on(0)):
        return {}
    errors = np.abs(p.on(0) - cell.probability)
    value, se = _mean(errors.mean(axis=1), exact)
    return {
        "mae_reference": value,
        "mae_reference_se": se,
        "largest_reference": float(errors.max(axis=1).mean()),
    }


class Average(NamedTuple):
    """A mean over hyperparameter sets.

    Attributes
    ----------
    value, se : float
        NaN where there is none.
    sets, wanted : int
        Sets averaged over, and those that there are.
    status : str
        "ok", or why there is no value.
    """

    value: float
    se: float
    sets: int
    wanted: int
    status: str


#: Which hyperparameter sets an average is over: all; those where K is not beta I to rounding; of these the
#: ones whose reference is certified.
Over = Literal["all", "telling", "certified"]


def cells_over(frame: pd.DataFrame, over: Over) -> pd.DataFrame:
    """The rows of `all_cells` that an average is over."""
    if over == "all":
        return frame
    frame = frame[~frame["trivial"].astype(bool)]
    return frame[frame["reference"] == "certified"] if over == "certified" else frame


#: Columns that a method without a log evidence cannot have, whatever its runs say of themselves.
_OF_EVIDENCE = ("log_evidence", "per_pattern", "difference", "nats")


def average(group: pd.DataFrame, column: str, over: Over = "telling") -> Average:
    """Average a column of `all_cells` over the hyperparameter sets of one problem and method."""
    used = cells_over(group, over)
    values = used[column].dropna()
    statuses = group["status"][group["status"] != OK]
    if len(values):
        status = OK
    elif (group["status"] == NO_DATA).any():
        status = NO_DATA
    elif column in _OF_EVIDENCE and not group["gives_evidence"].any():
        status = "none"
    elif used.empty and over == "certified":
        status = "no reference" if (group["reference"] == "none").all() else "uncertified"
    else:
        status = str(statuses.mode().iloc[0]) if len(statuses) else "none"
    errors = used[f"{column}_se"][values.index] if f"{column}_se" in used else pd.Series([math.nan])
    se = math.sqrt(float((errors.astype(float) ** 2).sum(skipna=False))) / max(len(values), 1)
    value = float(values.mean()) if len(values) else math.nan
    return Average(value, se if len(values) else math.nan, len(values), len(used), status)


def by_problem(frame: pd.DataFrame, column: str, over: Over = "telling") -> pd.DataFrame:
    """`average` for every method and problem, in one frame: ``method``, ``problem`` and its fields."""
    rows = [
        {"method": method, "problem": int(problem)} | average(group, column, over)._asdict()
        for (problem, method), group in frame.groupby(["problem", "method"])
    ]
    return pd.DataFrame(rows, columns=["method", "problem", *Average._fields])


def _relative_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `all_cells` with ``relative``: CPU seconds over those of set 1, same method and problem."""
    base = frame[frame["set"] == 1][["problem", "method", "cpu_seconds"]]
    both = frame.merge(base, on=["problem", "method"], suffixes=("", "_base"))
    both["relative"] = both["cpu_seconds"] / both["cpu_seconds_base"]
    return both.dropna(subset="relative")


def seconds_by_set(frame: pd.DataFrame) -> pd.DataFrame:
    """CPU seconds of a run by method and hyperparameter set, relative to set 1 of the same problem.

    Pairs in which K is beta I to rounding are left out: see `seconds_where_trivial`.

    Parameters
    ----------
    frame : DataFrame
        `all_cells`.

    Returns
    -------
    DataFrame
        ``method``, ``set``, ``alpha``, ``beta``, ``relative`` (geometric mean over problems), ``lowest``,
        ``highest``, ``problems`` (how many; those where the method did its work with both sets).
    """
    both = cells_over(_relative_seconds(frame), "telling")
    columns = ["method", "set", "alpha", "beta"]
    grouped = both.groupby(columns)["relative"]
    table = grouped.agg(
        relative=lambda x: float(np.exp(np.log(x).mean())),
        lowest="min",
        highest="max",
        problems="size",
    )
    return table.reset_index()


def seconds_where_trivial(frame: pd.DataFrame) -> pd.Series:
    """By method: CPU seconds relative to set 1, geometric mean over the pairs in which K is beta I to rounding.

    There the entries of K beside its diagonal are in part subnormal numbers (`subnormal_share`), with which most
    processors are many times slower: such seconds tell of the processor and not of the method.

    Parameters
    ----------
    frame : DataFrame
        `all_cells`.
    """
    both = _relative_seconds(frame)
    both = both[both["trivial"].astype(bool)]
    return np.exp(np.log(both["relative"]).groupby(both["method"]).mean())


def subnormal_share(frame: pd.DataFrame, files: ResultFiles) -> float:
    """Share of subnormal numbers among the entries of K, mean over the pairs in which it is beta I to rounding.

    Parameters
    ----------
    frame : DataFrame
        `all_cells`.
    files : ResultFiles
        ``problems``.

    Returns
    -------
    float
        NaN without such a pair.
    """
    stored = {problem_number(path): path for path in files.problems}
    pairs = frame[frame["trivial"].astype(bool) & frame["problem"].isin(list(stored))]
    tiny, shares = np.finfo(float).tiny, []
    for pair in pairs.drop_duplicates(["problem", "set"]).itertuples():
        with np.load(stored[pair.problem]) as data:
            entries = rbf(pair.alpha, pair.beta)(data["X_train"])
        shares.append(float(np.mean((entries > 0) & (entries < tiny))))
    return float(np.mean(shares)) if shares else math.nan


def seconds_ratio(frame: pd.DataFrame) -> dict[str, float]:
    """By method: relative CPU seconds of the sets with the smallest alpha, over those with the largest.

    Geometric means; the paper speaks of sets 4 and 6 compared to 1 and 2.

    Parameters
    ----------
    frame : DataFrame
        `seconds_by_set`.
    """
    ratios = {}
    for method, rows in frame.groupby("method"):
        short = rows[rows["alpha"] == frame["alpha"].min()]["relative"]
        long = rows[rows["alpha"] == frame["alpha"].max()]["relative"]
        if len(short) and len(long):
            ratios[str(method)] = float(np.exp(np.log(short).mean() - np.log(long).mean()))
    return ratios


def seconds_by_problem(frame: pd.DataFrame, method: str) -> pd.Series:
    """As `seconds_ratio`, of one method, problem by problem: those where it did its work with both ends of alpha.

    Parameters
    ----------
    frame : DataFrame
        `all_cells`.
    """
    rows = cells_over(frame[frame["method"] == method], "telling")
    logs = np.log(rows["cpu_seconds"].where(rows["cpu_seconds"] > 0))
    ends = {
        name: logs[rows["alpha"] == end].groupby(rows["problem"]).mean()
        for name, end in (("short", frame["alpha"].min()), ("long", frame["alpha"].max()))
    }
    if frame["alpha"].nunique() < 2:
        return pd.Series(dtype=float)
    return np.exp(ends["short"] - ends["long"]).dropna()


def as_run(registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """Table 4 from every run that predicted, whether or not it counts: the paper does not speak of convergence.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        ``experiment4``, ``probabilities``, ``spread``.

    Returns
    -------
    DataFrame
        By the id of the cell: ``as_run``, ``as_run_se`` (from the spread of the runs); NaN where a set has no such run.
    """
    cells = registry[registry["table"] == 4]
    estimator = Estimator(files, registry, every=True)
    found = [estimator(cell) for _, cell in cells.iterrows()]
    return pd.DataFrame(
        {"as_run": [e.value for e in found], "as_run_se": [e.standard_error for e in found]},
        index=pd.Index(cells["id"], name="id"),
        dtype=float,
    )


#: Whose variance is counted once, by reading of the toolbox's chains.
READINGS: dict[str, tuple[str, ...]] = {
    "as shipped": (),
    "ESS once": ("ess-gpml",),
    "both once": ("ess-gpml", "hmc-gpml"),
}


def readings(registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """Table 4 with the toolbox's double variance and without it, from the same chains.

    Of each method the first run on each data set counts, converged or not, as in the paper. The chains that count
    the variance once were run again from the seeds of Experiment 4.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        ``experiment4``, ``probabilities``, ``single_variance``, ``single_variance_probabilities``.

    Returns
    -------
    DataFrame
        One row a published cell and reading, where all six sets have such runs of all methods of its median:
        ``id``, ``metric``, ``problem``, ``method``, ``reading`` (a key of `READINGS`), ``published``, ``data_sets``,
        ``ours`` and ``ours_se`` (over data sets; NaN for one).
    """
    runs, errors = {}, {}  # by whether the variance is counted once
    for repaired, paths, predicted in (
        (False, files.experiment4, files.probabilities),
        (True, files.single_variance, files.single_variance_probabilities),
    ):
        frame = read_long("experiment4", paths)
        first = frame[frame["replicate"] == 0].groupby(["problem", "method", "dataset"])
        errors[repaired] = first["mae_post"].mean()
        every = read_probabilities(predicted, every=True)
        runs[repaired] = {key: found.of(0) for key, found in every.items()}
    estimator = Estimator(files, registry, every=True)
    rows = []
    for _, cell in registry[registry["table"] == 4].iterrows():
        if estimator(cell).status != OK:
            continue
        problem, method = int(cell["problem"]), METHODS[cell["method"]]
        consensus = estimator.consensus(problem)
        needed = [(problem, name, k) for name in consensus for k in PUBLISHED_SETS]
        there = [runs[key[1] in once].get(key) for once in READINGS.values() for key in needed]
        shared = sorted(set.intersection(*({*run.dataset} if run else set() for run in there)))
        if not shared:
            continue
        for reading, once in READINGS.items():
            read = {key: runs[key[1] in once][key] for key in needed}
            if cell["metric"] == "mae_med":
                ours = [
                    np.mean(
                        [
                            median_errors(read, problem, consensus, method, k, dataset=dataset)
                            for k in PUBLISHED_SETS
                        ]
                    )
                    for dataset in shared
                ]
            else:
                ours = [errors[method in once][problem, method, dataset] for dataset in shared]
            value, se = mean_and_error(pd.Series(ours))
            rows.append(
                {
                    "id": cell["id"],
                    "metric": cell["metric"],
                    "problem": problem,
                    "method": method,
                    "reading": reading,
                    "published": cell["published"],
                    "data_sets": len(shared),
                    "ours": value,
                    "ours_se": se,
                }
            )
    columns = ["id", "metric", "problem", "method", "reading", "published", "data_sets"]
    return pd.DataFrame(rows, columns=[*columns, "ours", "ours_se"])


def mae_med_by_problem(frame: pd.DataFrame) -> pd.DataFrame:
    """MAE-MED of the paper's methods (columns) by problem, where all hyperparameter sets have one; else NaN.

    Parameters
    ----------
    frame : DataFrame
        `all_cells`.
    """
    return pd.DataFrame(
        {
            method: {
                int(problem): found.value
                for problem, group in frame[frame["method"] == method].groupby("problem")
                if (found := average(group, "mae_med", "all")).sets == found.wanted > 0
            }
            for method in PAPER
        },
        dtype=float,
    )


def _whole_means(frame: pd.DataFrame, methods: Iterable[str]) -> pd.DataFrame:
    """MAE-POST of methods by problem, where all hyperparameter sets have one."""
    means = by_problem(frame[frame["method"].isin(list(methods))], "mae_post", "all")
    return means[(means["sets"] == means["wanted"]) & (means["status"] == OK)]


def _data_set_means(files: ResultFiles) -> pd.Series:
    """MAE-POST of Laplace's approximation by problem and data set, averaged over hyperparameter sets."""
    spread = read_long("spread", files.spread)
    return spread.groupby(["problem", "dataset"])["mae_post"].mean()


def mae_post_ranges(
    registry: pd.DataFrame, frame: pd.DataFrame, files: ResultFiles
) -> pd.DataFrame:
    """How far apart the paper's methods are in MAE-POST, and how far data sets are; in percent of its mean.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    frame : DataFrame
        `all_cells`.
    files : ResultFiles
        ``spread``.

    Returns
    -------
    DataFrame
        One row a problem: ``published`` and ``ours`` (range over the methods in `PAPER`; ours where two of them or more
        have all sets), ``methods`` (how many these are), ``between`` (standard deviation of data sets, by Laplace's
        approximation); NaN where not known.
    """
    cells = registry[registry["metric"] == "mae_post"].groupby("problem")["published"]
    values = _whole_means(frame, PAPER).groupby("problem")["value"]
    several = values.size() > 1
    ours = (100 * (values.max() - values.min()) / values.mean())[several]
    data_sets = _data_set_means(files).groupby("problem")
    return pd.DataFrame(
        {
            "published": 100 * (cells.max() - cells.min()) / cells.mean(),
            "ours": ours,
            "methods": values.size()[several],
            "between": (100 * data_sets.std() / data_sets.mean()).dropna(),
        },
        dtype=float,
    )


def data_set_range(frame: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """The range of MAE-POST over data sets by problem, on the scale of the paper's own method.

    The data sets are known by Laplace's approximation, whose bias can be larger than they differ: all are
    multiplied by the sampler's value over Laplace's on the first data set. Problems on which not all sets of
    either count have no row.

    Parameters
    ----------
    frame : DataFrame
        `all_cells`.
    files : ResultFiles
        ``spread``.

    Returns
    -------
    DataFrame
        By problem: ``low``, ``high``, ``data_sets``.
    """
    by_data_set = _data_set_means(files)
    both = [SAMPLER, "laplace"]
    wide = _whole_means(frame, both).pivot(index="problem", columns="method", values="value")
    wide = wide.reindex(columns=both).astype(float)
    scaled = by_data_set * (wide[SAMPLER] / wide["laplace"]).reindex(by_data_set.index, level=0)
    return (
        scaled.dropna()
        .groupby("problem")
        .agg(low="min", high="max", data_sets="size")
        .astype(float)
    )


def reference_summary(files: ResultFiles) -> pd.DataFrame:
    """The reference by problem.

    Returns
    -------
    DataFrame
        ``problem``, ``cells``, ``certified``, ``trivial``; of certified cells the largest of:
        ``log_evidence_se`` (nats), ``probability_se``, ``certifier_se`` (nats), ``z`` (|difference| of the
        log evidences in joint standard errors) and ``k_hat``; NaN where none is certified.
    """
    columns = ["problem", "cells", "certified", "trivial", "log_evidence_se", "probability_se"]
    columns += ["certifier_se", "z", "k_hat"]
    certified = certified_reference(files)
    if certified is None:
        return pd.DataFrame(columns=columns)
    rows = certified.evidence.copy()
    rows["certified"] = rows["verdict"] == CERTIFIED
    rows["z"] = rows["z"].abs()
    largest = ["log_evidence_se", "max_probability_se", "certifier_se", "z", "k_hat"]
    rows[largest] = rows[largest].where(rows["certified"])
    table = rows.groupby("problem").agg(
        cells=("set", "size"),
        certified=("certified", "sum"),
        trivial=("trivial", "sum"),
        log_evidence_se=("log_evidence_se", "max"),
        probability_se=("max_probability_se", "max"),
        certifier_se=("certifier_se", "max"),
        z=("z", "max"),
        k_hat=("k_hat", "max"),
    )
    return table.reset_index()[columns]


def reliability(files: ResultFiles, bins: int = 10) -> pd.DataFrame:
    """Predicted probability of class 1 against the frequency of class 1, in bins of the prediction.

    First data sets of the paper's problems only.

    Hyperparameter sets in which the prior is the same for every pattern but itself (``trivial``)
    are left out: they predict one half everywhere. The sets share their test patterns, so the
    standard error of a frequency counts the distinct patterns in its bin.

    Parameters
    ----------
    files : ResultFiles
        Experiment 4.
    bins : int
        Number of equal bins of [0, 1].

    Returns
    -------
    DataFrame
        One row a (group, method, bin) with predictions: ``group`` ("synthetic" or a real problem's
        name), ``method``, ``bin``, ``predictions``, ``patterns``, ``predicted`` (mean),
        ``frequency``, ``frequency_se``, ``bayes`` (mean Bayes posterior; NaN for real data).
    """
    data = problems(files)
    rows = read_long("experiment4", files.experiment4)
    coin = rows[is_trivial(rows["trivial"])]
    trivial = set(zip(coin["problem"], coin["set"], strict=True))
    pieces = []
    predicted = read_probabilities(files.probabilities)
    for problem, method, number in sorted(predicted):
        probability = predicted[problem, method, number].on(0)
        known = problem in NINE and problem in data and data[problem].available
        if not known or (problem, number) in trivial or not len(probability):
            continue
        mean = probability.mean(axis=0)
        pieces.append(
            pd.DataFrame(
                {
                    "group": NAMES[problem] if problem in REAL else "synthetic",
                    "method": method,
                    "bin": np.minimum((mean * bins).astype(int), bins - 1),
                    "pattern": [f"{problem}/{i}" for i in range(len(mean))],
                    "predicted": mean,
                    "positive": data[problem].labels > 0,
                    "bayes": data[problem].bayes_posterior,
                }
            )
        )
    columns = [
        "group",
        "method",
        "bin",
        "predictions",
        "patterns",
        "predicted",
        "frequency",
        "frequency_se",
        "bayes",
    ]
    if not pieces:
        return pd.DataFrame(columns=columns)
    grouped = pd.concat(pieces, ignore_index=True).groupby(["group", "method", "bin"])
    table = grouped.agg(
        predictions=("pattern", "size"),
        patterns=("pattern", "nunique"),
        predicted=("predicted", "mean"),
        frequency=("positive", "mean"),
        bayes=("bayes", "mean"),
    ).reset_index()
    # Half a pattern is added on either side, so that a bin of one class only does not claim to be
    # exact.
    smoothed = (table["frequency"] * table["patterns"] + 0.5) / (table["patterns"] + 1)
    table["frequency_se"] = np.sqrt(smoothed * (1 - smoothed) / table["patterns"])
    return table[columns]
