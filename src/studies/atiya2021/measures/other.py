"""What belongs to no experiment: orders and counts, equations, the toolbox's defects, the certified reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import (
    combine,
    estimate,
    mean_and_error,
    measure,
    raw_rows,
    whole,
)

__all__ = ["measure_other"]

#: The defects of the toolbox, in the order of tables.
DEFECTS = ("right-end-point", "double-variance", "stale-energy", "shrinking-step")
#: Claims about orders and counts: the quantity, and which (order, count) stands over which other.
_ORDERINGS = {
    "soft-count/evidence": ("square-error", ("shuffled", "soft"), ("shuffled", "hard")),
    "soft-count/probability": ("square-mae", ("shuffled", "soft"), ("shuffled", "hard")),
    "order/sorted-evidence": ("square-error", ("sorted", "hard"), ("shuffled", "hard")),
    "order/sorted-probability": ("square-mae", ("sorted", "hard"), ("shuffled", "hard")),
    "order/interleaved": ("square-error", ("interleaved", "hard"), ("shuffled", "hard")),
    "order/extreme": ("variance-eq44", ("sorted", "hard"), ("shuffled", "hard")),
}
#: Claims that are formulas: the name of the equation in the numerical check.
_EQUATIONS = {
    "limit/small": "section 3.3 (small)",
    "limit/large": "section 3.3 (large)",
    "limit/alpha": "31",
    "recursion": "48-51",
}
CERTIFIED, AGREES, DIFFERS = "certified", "agrees", "differs"
_REFERENCE = "data/reference/atiya2021"


def measure_other(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures that belong to no experiment.

    Parameters
    ----------
    root : path
        Folder of the study's results.
    published : path
        Not needed here.
    reference : path
        Folder of the certified reference: ``evidence.csv``, ``truths.csv``.
    """
    return combine(
        *_ordering(root),
        _equations(root),
        *_defects(root),
        *_defect_effects(root),
        _reference(reference),
        _reference_check(root),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Orders and counts, equations


def _ordering(root: Path) -> Iterator[Any]:
    """Errors of the sampler by order of the patterns and count, and ratios of them over data sets."""
    columns = ["problem", "dataset", "order", "run", "count", "seed"]
    numbers = ["log_evidence_error", "probability_mae", "smallest_stage", "variance_eq44"]
    rows = raw_rows(root, "ordering.csv", [*columns, *numbers], finite=numbers)
    if rows.empty:
        return
    values = {
        "nats": rows["log_evidence_error"].abs(),
        "square-error": rows["log_evidence_error"].abs() ** 2,
        "mae": rows["probability_mae"],
        "square-mae": rows["probability_mae"].abs() ** 2,
        "smallest-stage": rows["smallest_stage"],
        "variance-eq44": rows["variance_eq44"].abs(),
    }
    unit = "experiment2/P{problem}/dataset{dataset}"
    for quantity, value in values.items():
        template = f"ordering/{{order}}/{{count}}/{quantity}"
        yield measure(rows, template, value, unit=unit, run=rows["run"])
    source = join_sources(rows["source"])
    for claim, (quantity, above, below) in _ORDERINGS.items():
        means = values[quantity].groupby([rows["order"], rows["count"], rows["dataset"]]).mean()
        if {above, below} <= set(means.index.droplevel("dataset")):
            logs = np.log(means[above] / means[below])
            log, se = mean_and_error(pd.Series(logs.to_numpy()))
            value, df = math.exp(log), len(logs) - 1.0
            status = OK if math.isfinite(se) else "not comparable"
            row = estimate(f"claim/{claim}", value, source, se=value * se, df=df, scale="log")
            yield [row | {"status": status}]


def _equations(root: Path) -> Iterator[dict[str, Any]]:
    """The largest error of each printed formula and of its correction, exact up to rounding."""
    rows = raw_rows(root, "equations.csv", ["equation", "printed_error", "corrected_error"])
    claims = {equation: claim for claim, equation in _EQUATIONS.items()}
    for equation, group in rows.groupby("equation", sort=False):
        source = join_sources(group["source"])
        name = str(equation).replace(" ", "-").replace("(", "").replace(")", "")
        for kind in ("printed", "corrected"):
            value = group[f"{kind}_error"].max(skipna=False)
            # what has no value cannot be evaluated: blocks of a matrix that do not conform
            status = OK if math.isfinite(value) else "undefined" if kind == "printed" else "none"
            yield whole(f"equations/{name}/{kind}", value, source) | {"status": status}
        if equation in claims:
            largest = float(group["printed_error"].max(skipna=False))
            yield whole(f"claim/{claims[str(equation)]}", largest, source)


# ---------------------------------------------------------------------------------------------------------------------
# Defects of the toolbox


def _defect_rows(root: Path) -> pd.DataFrame:
    """Runs with sets of defects: their ``case``, ``chain`` (longest, shorter, ...) and ``set`` as ids have them."""
    columns = ["sampler", "switched", "samples", "replicate", "status", "seed"]
    columns += ["log_evidence_error", "ape_percent", "probability_mae"]
    rows = raw_rows(root, "defects/*.csv", columns)
    if rows.empty:
        return rows
    rows["case"] = rows["source"].str.extract(r"defects/([^_]+)_")[0]
    rank = rows.groupby(["case", "sampler"])["samples"].rank(method="dense", ascending=False)
    names = {1: "longest", 2: "shorter"}
    rows["chain"] = rank.map(lambda place: names.get(int(place), f"shorter{place:.0f}"))
    rows["set"] = rows["switched"].str.replace(" ", "-")
    # the linear case is the first data set of Problem 3 of Experiment 2
    own = {"linear": "experiment2/P3/dataset0"}
    rows["data"] = rows["case"].map(lambda case: own.get(case, f"defects/{case}"))
    return rows


_DEFECT_QUANTITIES = {
    "nats": ("log_evidence_error", "linear"),
    "mape": ("ape_percent", "log"),
    "mae": ("probability_mae", "log"),
}


def _defects(root: Path) -> Iterator[Any]:
    """Errors with sets of defects. Every run counts, converged or not: the sets share their chains and are compared."""
    rows = _defect_rows(root)
    if rows.empty:
        return
    base = "defects/{case}/{sampler}/{set}/{chain}"
    for quantity, (column, scale) in _DEFECT_QUANTITIES.items():
        run = rows["replicate"]
        yield measure(rows, f"{base}/{quantity}", rows[column], unit="{data}", run=run, scale=scale)
    exact: list[dict[str, Any]] = []
    for (case, sampler, switched, chain), group in rows.groupby(
        ["case", "sampler", "set", "chain"]
    ):
        name, source = f"defects/{case}/{sampler}/{switched}/{chain}", join_sources(group["source"])
        exact.append(whole(f"{name}/converged", int((group["status"] == OK).sum()), source))
        mae, se = mean_and_error(group["probability_mae"])
        if mae > 0:
            log, df = math.log(mae), len(group) - 1.0
            exact.append(estimate(f"{name}/log-mae", log, source, se=se / mae, df=df))
    for chain, group in rows.groupby("chain"):
        ends = group[group["set"].isin(["all", "none"])]
        source = join_sources(ends["source"])
        counts = {
            "samples": int(group["samples"].max()),
            "replicates": int(group["replicate"].nunique()),
            "runs": len(ends),
            "converged": int((ends["status"] == OK).sum()),
        }
        exact += [whole(f"defects/all/{chain}/{key}", n, source) for key, n in counts.items()]
    yield exact


def _defect_effects(root: Path) -> Iterator[pd.DataFrame]:
    """What one defect does: differences between runs that share their random numbers.

    ``repaired`` is the toolbox with all defects less the toolbox with all but this one; ``alone`` is the toolbox with
    this one less the toolbox with none.
    """
    rows = _defect_rows(root)
    if rows.empty:
        return
    keys = ["case", "sampler", "chain", "replicate"]
    by_set = dict(list(rows.groupby("set")))
    for defect in DEFECTS:
        pairs = {
            "repaired": ("all", f"without-{defect}"),
            "alone": (f"only-{defect}", "none"),
        }
        for comparison, (name, other) in pairs.items():
            if not {name, other} <= by_set.keys():
                continue
            pair = by_set[name].merge(by_set[other], on=keys, suffixes=("", "_other"))
            pair["source"] = [
                join_sources([a, b])
                for a, b in zip(pair["source"], pair["source_other"], strict=True)
            ]
            for quantity, (column, _) in _DEFECT_QUANTITIES.items():
                change = pair[column] - pair[f"{column}_other"]
                template = f"defects/effect/{{case}}/{{sampler}}/{defect}/{comparison}/{{chain}}/{quantity}"
                run, unit = pair["replicate"], "{data}"
                yield measure(pair, template, change, unit=unit, run=run, scale="linear")


# ---------------------------------------------------------------------------------------------------------------------
# The certified reference


def _reference(reference: Path) -> Iterator[dict[str, Any]]:
    """How many entries are certified, and how sure the least sure of them is."""
    columns = ["problem", "set", "verdict", "trivial", "log_evidence_se", "max_probability_se"]
    rows = raw_rows(reference, "evidence.csv", [*columns, "certifier_se", "z", "k_hat"])
    rows["source"] = f"{_REFERENCE}/" + rows["source"]
    largest = {
        "log-evidence-se": "log_evidence_se",
        "probability-se": "max_probability_se",
        "certifier-se": "certifier_se",
        "z": "z",
        "k-hat": "k_hat",
    }
    groups = [
        ("all", rows),
        *((f"P{problem}", group) for problem, group in rows.groupby("problem")),
    ]
    for block, group in groups:
        if group.empty:
            continue
        good, source = group[group["verdict"] == CERTIFIED], join_sources(group["source"])
        yield whole(f"reference/{block}/entries", len(group), source)
        yield whole(f"reference/{block}/certified", len(good), source)
        yield whole(f"reference/{block}/uncertified", len(group) - len(good), source)
        yield whole(f"reference/{block}/trivial", int(group["trivial"].sum()), source)
        for quantity, column in largest.items():
            values = good[column].abs() if column == "z" else good[column]
            if values.notna().any():
                yield whole(f"reference/{block}/largest-{quantity}", float(values.max()), source)
    truths = raw_rows(reference, "truths.csv", ["verdict"])
    if len(truths):
        source = join_sources(f"{_REFERENCE}/" + truths["source"])
        yield whole("reference/truths/entries", len(truths), source)
        certified = int((truths["verdict"] == CERTIFIED).sum())
        yield whole("reference/truths/certified", certified, source)


def _reference_check(root: Path) -> Iterator[dict[str, Any]]:
    """Entries of the reference that this run estimated again, by two methods each."""
    columns = ["problem", "set", "method", "z", "max_z", "verdict"]
    rows = raw_rows(root, "reference_check.csv", columns)
    for _, row in rows.iterrows():
        name = f"P{row['problem']}/S{row['set']}/{str(row['method']).replace(' ', '-')}"
        for quantity, column in (("z", "z"), ("largest-z", "max_z")):
            if math.isfinite(row[column]):
                value = float(row[column])
                yield whole(f"reference-check/{name}/{quantity}", value, row["source"])
    if rows.empty:
        return
    source = join_sources(rows["source"])
    done = rows[rows["verdict"].isin([AGREES, DIFFERS])]
    agree = (done["verdict"] == AGREES).groupby([done["problem"], done["set"]]).all()
    drawn = len(rows.drop_duplicates(["problem", "set"]))
    counts = {"drawn": drawn, "done": len(agree), "agree": int(agree.sum())}
    for key, count in counts.items():
        yield whole(f"reference-check/all/{key}", count, source)
