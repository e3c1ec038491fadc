"""What belongs to no experiment: orders and counts, equations, the toolbox's defects, the certified reference."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import Known, Row, each, estimate, estimates, measured, table
from studies.atiya2021.measures.convergence import jackknife_ratio
from studies.common.measuring import Rows

#: The defects of the toolbox, and what one of them does: differences between two sets of defects.
DEFECTS = ("right-end-point", "double-variance", "stale-energy", "shrinking-step")
COMPARISONS = {"repaired": ("all", "without-{}"), "alone": ("only-{}", "none")}
_DEFECT_QUANTITIES = {
    "nats": ("log_evidence_error", "linear"),
    "mape": ("ape_percent", "log"),
    "mae": ("probability_mae", "log"),
}
#: Quantities of the experiment on orders and counts, by column.
_OF_ORDERS = {
    "log_evidence_error": "nats",
    "probability_mae": "mae",
    "smallest_stage": "smallest-stage",
    "variance_eq44": "variance-eq44",
}
#: Claims about orders and counts: the column whose mean square is compared (of the last, the mean), and which
#: order and count stand over the shuffled patterns with the hard count.
_ORDERINGS = {
    "soft-count/evidence": ("nats", 2, ("shuffled", "soft")),
    "soft-count/probability": ("mae", 2, ("shuffled", "soft")),
    "order/sorted-evidence": ("nats", 2, ("sorted", "hard")),
    "order/sorted-probability": ("mae", 2, ("sorted", "hard")),
    "order/interleaved": ("nats", 2, ("interleaved", "hard")),
    "order/extreme": ("variance-eq44", 1, ("sorted", "hard")),
}
#: Claims that are formulas, by the name of the equation in the numerical check.
_EQUATIONS = {
    "section 3.3 (small)": "limit/small",
    "section 3.3 (large)": "limit/large",
    "31": "limit/alpha",
    "48-51": "recursion",
}
#: Columns of the reference whose largest entry is shown.
_LARGEST = ["log_evidence_se", "probability_se", "certifier_se", "z", "k_hat"]
CERTIFIED, AGREES, DIFFERS = "certified", "agrees", "differs"


def measure(given: Rows) -> pd.DataFrame:
    """All measures that belong to no experiment."""
    parts = _ordering(given), _defects(given), _equations(given), _reference(given.reference)
    return common.combine(parts, _reference_check(given))


def _ordering(given: Rows) -> Iterator[Any]:
    """Errors of the sampler by order of the patterns and count, and ratios of them over data sets.

    A claim is on the geometric mean of the ratios of single data sets. ``pooled`` is the ratio of the sums over data
    sets, which those with large errors decide. ``hardest`` is the ratio on the data set with the largest mean square
    of ``share`` of the sum, shuffled and counted hard.
    """
    columns = ["problem", "dataset", "order", "run", "count", "seed", *_OF_ORDERS]
    rows = table(given, "ordering", columns, finite=[*_OF_ORDERS]).rename(columns=_OF_ORDERS)
    rows = rows.assign(**{name: rows[name].astype(float).abs() for name in _OF_ORDERS.values()})
    unit = "experiment2/P{problem}/dataset{dataset}"
    for quantity in _OF_ORDERS.values():
        template = f"ordering/{{order}}/{{count}}/{quantity}"
        yield measured(rows, template, quantity, unit=unit, run="run")
    for claim, (quantity, power, above) in _ORDERINGS.items():
        means = (rows[quantity] ** power).groupby([rows["order"], rows["count"], rows["dataset"]])
        means, below = means.mean(), ("shuffled", "hard")
        if {above, below} <= set(means.index.droplevel("dataset")):
            ratio = common.geometric_mean(np.log(means[above] / means[below]))
            source = join_sources(rows["source"])
            yield estimate(f"claim/{claim}", ratio, source, scale="log")
            one, other = means[above], means[below]
            pooled = jackknife_ratio(one, other, pd.Series(one.index))
            yield estimate(f"ordering/pooled/{claim}", pooled, source, scale="log")
            hardest = other.idxmax()
            found = {claim: one[hardest] / other[hardest]}
            found |= {f"{claim}/share": other[hardest] / other.sum()}
            yield from estimates("ordering/hardest/", found, source)


def _equations(given: Rows) -> Iterator[Row]:
    """The largest error of each printed formula and of its correction, exact up to rounding."""
    columns = ["equation", "printed_error", "corrected_error"]
    rows = table(given, "equations", columns)
    rows["name"] = rows["equation"].str.replace(r"[()]", "", regex=True).str.replace(" ", "-")
    rows["claim"] = rows["equation"].map(_EQUATIONS)

    def largest(column: str, absent: str, group: pd.DataFrame) -> Known:
        value = float(group[column].max(skipna=False))
        return Known(value, 0.0, status=OK if math.isfinite(value) else absent)

    quantities = {
        # what has no value cannot be evaluated: blocks of a matrix that do not conform
        "printed": lambda group: largest("printed_error", "undefined", group),
        "corrected": lambda group: largest("corrected_error", "none", group),
    }
    yield from each(rows, "name", "equations/{name}/{quantity}", quantities)
    printed = {"": quantities["printed"]}
    yield from each(rows.dropna(subset="claim"), "claim", "claim/{claim}{quantity}", printed)


def _defects(given: Rows) -> Iterator[pd.DataFrame]:
    """Errors with sets of defects, at the longest and shorter chains, and what each defect does.

    Every run counts, converged or not. The sets share their random numbers, so their differences are those of runs.
    """
    columns = ["case", "sampler", "switched", "samples", "replicate", "status", "seed"]
    columns += [column for column, _ in _DEFECT_QUANTITIES.values()]
    rows = table(given, "defects", columns)
    if rows.empty:
        return
    rank = rows.groupby(["case", "sampler"])["samples"].rank(method="dense", ascending=False)
    rows["chain"] = rank.map(
        lambda place: {1: "longest", 2: "shorter"}.get(place, f"{place:.0f}th")
    )
    rows["set"] = rows["switched"].str.replace(" ", "-")
    # the linear case is the first data set of Problem 3 of Experiment 2
    rows["data"] = ("defects/" + rows["case"]).replace("defects/linear", "experiment2/P3/dataset0")
    base, keys = "{case}/{sampler}/", ["case", "sampler", "chain", "replicate"]
    about = {"unit": "{data}", "run": "replicate"}
    for quantity, (column, scale) in _DEFECT_QUANTITIES.items():
        template = f"defects/{base}{{set}}/{{chain}}/{quantity}"
        yield measured(rows, template, column, scale=scale, **about)
    for defect in DEFECTS:
        for comparison, names in COMPARISONS.items():
            one, other = (rows[rows["set"] == name.format(defect)] for name in names)
            pair = one.merge(other, on=keys, suffixes=("", "_other"))
            sources = zip(pair["source"], pair["source_other"], strict=True)
            pair["source"] = [join_sources(both) for both in sources]
            path = f"defects/effect/{base}{defect}/{comparison}/{{chain}}"
            for quantity, (column, _) in _DEFECT_QUANTITIES.items():
                change = pair[column] - pair[f"{column}_other"]
                yield measured(pair, f"{path}/{quantity}", change, scale="linear", **about)


def _reference(reference: Path) -> Iterator[Row]:
    """How many entries are certified, and how sure the least sure of them is."""
    columns = ["problem", "set", "verdict", "trivial"]
    columns += [name.replace("prob", "max_prob") for name in _LARGEST]
    rows = common.certified(reference, columns)
    rows = rows.rename(columns={"max_probability_se": "probability_se"})
    rows = rows.assign(z=rows["z"].abs())
    blocks = "P" + rows["problem"].astype(str)
    rows = pd.concat([rows.assign(block="all"), rows.assign(block=blocks)])
    certified = rows["verdict"] == CERTIFIED
    rows = rows.assign(certified=certified, **rows[_LARGEST].where(certified, axis="index"))
    counts = {"entries": len, "certified": ("certified", "sum"), "trivial": ("trivial", "sum")}
    yield from each(rows, "block", "reference/{block}/{quantity}", counts)
    for column in _LARGEST:
        rows["known"] = rows.groupby("block")[column].transform("count") > 0
        name = f"largest-{column}".replace("_", "-")
        largest = {name: (column, "max")}
        yield from each(rows[rows["known"]], "block", "reference/{block}/{quantity}", largest)


def _reference_check(given: Rows) -> Iterator[Row]:
    """How many entries of the reference this run drew, estimated again by two methods each, and found to agree."""
    rows = table(given, "reference_check", ["problem", "set", "verdict"])
    if rows.empty:
        return
    done = rows[rows["verdict"].isin([AGREES, DIFFERS])]
    agree = (done["verdict"] == AGREES).groupby([done["problem"], done["set"]]).all()
    drawn = len(rows.drop_duplicates(["problem", "set"]))
    for quantity, count in {"drawn": drawn, "done": len(agree), "agree": agree.sum()}.items():
        yield estimate(f"reference-check/all/{quantity}", count, join_sources(rows["source"]))
