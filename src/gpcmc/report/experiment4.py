"""Summaries of Experiment 4 that its tables and figures share: evidence, differences between methods, reliability."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from gpcmc.audit import Problem, ResultFiles, read_long, read_probabilities, read_problem

__all__ = [
    "LABELS",
    "NAMES",
    "REFERENCE",
    "differences",
    "evidence",
    "label",
    "methods_in_order",
    "problems",
    "reliability",
]

#: The method that the others are set beside.
REFERENCE = "orthant"

#: How a method is printed. The order is that of tables and figures; a method that is not here comes
#: last.
LABELS: dict[str, str] = {
    "orthant": "orthant",
    "laplace": "Laplace",
    "ep": "EP",
    "importance": "importance",
    "minimax-tilting": "minimax tilting",
    "best": "best",
    "ess": "ESS",
    "hmc": "HMC",
    "control-variables": "control variables",
    "pseudo-marginal": "pseudo-marginal",
}

#: How a problem of Experiment 4 is printed.
NAMES: dict[int, str] = {number: f"Problem {number}" for number in range(1, 7)} | {
    7: "Crabs",
    8: "Breast Cancer",
    9: "USPS 3 v 5",
}


def label(method: str) -> str:
    """The printed name of a method."""
    return LABELS.get(method, method)


def methods_in_order(methods: Iterable[str]) -> list[str]:
    """Distinct methods in the order of `LABELS`, others after them by name."""
    order = list(LABELS)
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


def _status(group: pd.DataFrame) -> str:
    bad = group[group["status"] != "ok"]
    return "ok" if bad.empty else str(bad["status"].iloc[0])


def _average_evidence(logs: pd.Series, errors: pd.Series) -> tuple[float, float]:
    """Average of replicates' evidence estimates, on the probability scale, and the error of its log.

    Two errors are at hand: from what the replicates say of themselves, and from how they differ. The
    larger counts, for where the samples are too few a replicate does not know how wrong it is.
    """
    value = float(logsumexp(logs) - np.log(len(logs)))
    weights = softmax(logs)
    own = float(np.sqrt(np.sum((weights * errors.to_numpy(dtype=float)) ** 2)))
    between = float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else 0.0
    return value, max(own, between)


def evidence(files: ResultFiles) -> pd.DataFrame:
    """Log evidence by problem, hyperparameter set and method.

    Returns
    -------
    DataFrame
        ``problem``, ``set``, ``alpha``, ``beta``, ``trivial``, ``method``, ``status``,
        ``replicates``, ``log_evidence`` (nats, averaged over replicates on the probability scale), ``log_evidence_se``,
        ``per_pattern`` (nats a training pattern), ``difference`` (nats, from the reference method),
        ``difference_se``. Values are NaN unless the status is "ok".
    """
    frame = read_long("experiment4", files.experiment4)
    sizes = {number: problem.train for number, problem in problems(files).items()}
    rows = []
    for (problem, number, method), group in frame.groupby(["problem", "set", "method"]):
        status = _status(group)
        value, se = math.nan, math.nan
        if status == "ok":
            value, se = _average_evidence(group["log_evidence"], group["log_evidence_se"])
        size = sizes.get(int(problem), 0)
        first = group.iloc[0]
        rows.append(
            {
                "problem": int(problem),
                "set": int(number),
                "alpha": float(first["alpha"]),
                "beta": float(first["beta"]),
                "trivial": bool(is_trivial(group["trivial"]).iloc[0]),
                "method": method,
                "status": status,
                "replicates": len(group),
                "log_evidence": value,
                "log_evidence_se": se,
                "per_pattern": value / size if size else math.nan,
            }
        )
    columns = [
        "problem",
        "set",
        "alpha",
        "beta",
        "trivial",
        "method",
        "status",
        "replicates",
        "log_evidence",
        "log_evidence_se",
        "per_pattern",
    ]
    table = pd.DataFrame(rows, columns=columns)
    reference = table[table["method"] == REFERENCE][
        ["problem", "set", "log_evidence", "log_evidence_se"]
    ]
    table = table.merge(reference, on=["problem", "set"], how="left", suffixes=("", "_reference"))
    table["difference"] = table["log_evidence"] - table["log_evidence_reference"]
    table["difference_se"] = np.hypot(table["log_evidence_se"], table["log_evidence_se_reference"])
    table.loc[table["method"] == REFERENCE, ["difference", "difference_se"]] = math.nan
    order = methods_in_order(table["method"])
    table = table.sort_values(
        ["problem", "set", "method"], key=lambda c: c.map(order.index) if c.name == "method" else c
    )
    return table.drop(columns=["log_evidence_reference", "log_evidence_se_reference"]).reset_index(
        drop=True
    )


def differences(files: ResultFiles) -> pd.DataFrame:
    """Error rates, and how far each method is from the reference method.

    Hyperparameter sets in which the prior is the same for every pattern but itself (``trivial``)
    are left out: they toss a coin with every method.

    Returns
    -------
    DataFrame
        One row a (problem, method): ``status``, ``sets`` (hyperparameter sets averaged over),
        ``error_rate`` (fraction of test patterns, mean over sets), ``probability`` (mean over sets
        and test patterns of |p - p of the reference|; for the reference its own standard error,
        which is the noise in the others' numbers), ``probability_max`` (largest over all of them),
        ``nats`` and ``nats_max`` (the same of the log evidence).
    """
    frame = read_long("experiment4", files.experiment4)
    predicted = read_probabilities(files.probabilities)
    logs = evidence(files)
    logs = logs[~logs["trivial"]]
    rows = []
    for (problem, method), group in frame.groupby(["problem", "method"]):
        usable = group[(group["status"] == "ok") & ~is_trivial(group["trivial"])]
        gaps = []
        for number in sorted(usable["set"].unique()):
            mine, other = (predicted.get((problem, name, number)) for name in (method, REFERENCE))
            if mine is None or other is None:
                continue
            if method != REFERENCE:
                gaps.append(np.abs(mine.mean(axis=0) - other.mean(axis=0)))
            elif len(mine) > 1:
                gaps.append(mine.std(axis=0, ddof=1) / math.sqrt(len(mine)))
        nats = logs[
            (logs["problem"] == problem) & (logs["method"] == method) & (logs["status"] == "ok")
        ]
        nats = nats["difference"].abs() if method != REFERENCE else nats["log_evidence_se"]
        rows.append(
            {
                "problem": int(problem),
                "method": method,
                "status": _status(group),
                "sets": int(usable["set"].nunique()),
                "error_rate": float(usable.groupby("set")["error_rate"].mean().mean()),
                "probability": float(np.mean([gap.mean() for gap in gaps])) if gaps else math.nan,
                "probability_max": float(max(gap.max() for gap in gaps)) if gaps else math.nan,
                "nats": float(nats.mean()),
                "nats_max": float(nats.max()),
            }
        )
    columns = ["problem", "method", "status", "sets", "error_rate"]
    columns += ["probability", "probability_max", "nats", "nats_max"]
    return pd.DataFrame(rows, columns=columns)


def reliability(files: ResultFiles, bins: int = 10) -> pd.DataFrame:
    """Predicted probability of class 1 against the frequency of class 1, in bins of the prediction.

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
    logs = evidence(files)
    trivial = set(zip(logs["problem"][logs["trivial"]], logs["set"][logs["trivial"]], strict=True))
    pieces = []
    for (problem, method, number), probability in sorted(
        read_probabilities(files.probabilities).items()
    ):
        if problem not in data or not data[problem].available or (problem, number) in trivial:
            continue
        mean = probability.mean(axis=0)
        pieces.append(
            pd.DataFrame(
                {
                    "group": "synthetic" if problem < 7 else NAMES[problem],
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
