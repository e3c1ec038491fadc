"""What belongs to no experiment: orders and counts, equations, the toolbox's defects, the certified reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import join_sources
from studies.atiya2021.measures.common import (
    Known,
    Row,
    combine,
    each,
    estimate,
    geometric_mean,
    measured,
    raw_rows,
)

#: The defects of the toolbox, and what one of them does: differences between two sets of defects.
DEFECTS = ("right-end-point", "double-variance", "stale-energy", "shrinking-step")
COMPARISONS = {"repaired": ("all", "without-{}"), "alone": ("only-{}", "none")}
_DEFECT_QUANTITIES = {
    "nats": ("log_evidence_error", "linear"),
    "mape": ("ape_percent", "log"),
    "mae": ("probability_mae", "log"),
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
CERTIFIED, AGREES, DIFFERS = "certified", "agrees", "differs"
_REFERENCE = "data/reference/atiya2021"


def measure(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures that belong to no experiment."""
    parts = [_ordering(root), _defects(root), [_equations(root), _reference(reference)]]
    return combine(*(rows for part in parts for rows in part), _reference_check(root))


def _ordering(root: Path) -> Iterator[Any]:
    """Errors of the sampler by order of the patterns and count, and ratios of them over data sets."""
    columns = ["problem", "dataset", "order", "run", "count", "seed"]
    numbers = ["log_evidence_error", "probability_mae", "smallest_stage", "variance_eq44"]
    rows = raw_rows(root, "ordering.csv", [*columns, *numbers], finite=numbers)
    names = dict(zip(numbers, ("nats", "mae", "smallest-stage", "variance-eq44"), strict=True))
    rows = rows.rename(columns=names)
    rows[list(names.values())] = rows[list(names.values())].astype(float).abs()
    unit = "experiment2/P{problem}/dataset{dataset}"
    for quantity in names.values():
        template = f"ordering/{{order}}/{{count}}/{quantity}"
        yield measured(rows, template, rows[quantity], unit=unit, run=rows["run"])
    for claim, (quantity, power, above) in _ORDERINGS.items():
        means = (rows[quantity] ** power).groupby([rows["order"], rows["count"], rows["dataset"]])
        means, below = means.mean(), ("shuffled", "hard")
        if {above, below} <= set(means.index.droplevel("dataset")):
            ratio = geometric_mean(np.log(means[above] / means[below]))
            yield [estimate(f"claim/{claim}", ratio, join_sources(rows["source"]), scale="log")]


def _equations(root: Path) -> Iterator[Row]:
    """The largest error of each printed formula and of its correction, exact up to rounding."""
    columns = ["equation", "printed_error", "corrected_error"]
    rows = raw_rows(root, "equations.csv", columns)
    rows["name"] = rows["equation"].str.replace(r"[()]", "", regex=True).str.replace(" ", "-")
    rows["claim"] = rows["equation"].map(_EQUATIONS)

    def largest(column: str, absent: str, group: pd.DataFrame) -> Known:
        value = float(group[column].max(skipna=False))
        return Known(value) if math.isfinite(value) else Known(value, status=absent)

    quantities = {
        # what has no value cannot be evaluated: blocks of a matrix that do not conform
        "printed": lambda group: largest("printed_error", "undefined", group),
        "corrected": lambda group: largest("corrected_error", "none", group),
    }
    yield from each(rows, "name", "equations/{name}/{quantity}", quantities)
    printed = {"": quantities["printed"]}
    yield from each(rows.dropna(subset="claim"), "claim", "claim/{claim}{quantity}", printed)


def _defects(root: Path) -> Iterator[pd.DataFrame]:
    """Errors with sets of defects, at the longest and shorter chains, and what each defect does.

    Every run counts, converged or not. The sets share their random numbers, so their differences are those of runs.
    """
    columns = ["sampler", "switched", "samples", "replicate", "status", "seed"]
    columns += [column for column, _ in _DEFECT_QUANTITIES.values()]
    rows = raw_rows(root, "defects/*.csv", columns)
    if rows.empty:
        return
    rows["case"] = rows["source"].str.extract(r"defects/([^_]+)_")[0]
    rank = rows.groupby(["case", "sampler"])["samples"].rank(method="dense", ascending=False)
    rows["chain"] = rank.map(
        lambda place: {1: "longest", 2: "shorter"}.get(place, f"{place:.0f}th")
    )
    rows["set"] = rows["switched"].str.replace(" ", "-")
    # the linear case is the first data set of Problem 3 of Experiment 2
    rows["data"] = ("defects/" + rows["case"]).replace("defects/linear", "experiment2/P3/dataset0")
    base, keys = "{case}/{sampler}/", ["case", "sampler", "chain", "replicate"]
    for quantity, (column, scale) in _DEFECT_QUANTITIES.items():
        template, given = f"defects/{base}{{set}}/{{chain}}/{quantity}", {"unit": "{data}"}
        yield measured(rows, template, rows[column], run=rows["replicate"], scale=scale, **given)
        for defect in DEFECTS:
            for comparison, names in COMPARISONS.items():
                one, other = (rows[rows["set"] == name.format(defect)] for name in names)
                pair = one.merge(other, on=keys, suffixes=("", "_other"))
                sources = zip(pair["source"], pair["source_other"], strict=True)
                pair["source"] = [join_sources(both) for both in sources]
                change, run = pair[column] - pair[f"{column}_other"], pair["replicate"]
                template = f"defects/effect/{base}{defect}/{comparison}/{{chain}}/{quantity}"
                yield measured(pair, template, change, run=run, scale="linear", **given)


def _reference(reference: Path) -> Iterator[Row]:
    """How many entries are certified, and how sure the least sure of them is."""
    largest = {
        "log-evidence-se": "log_evidence_se",
        "probability-se": "max_probability_se",
        "certifier-se": "certifier_se",
        "z": "z",
        "k-hat": "k_hat",
    }
    columns = ["problem", "set", "verdict", "trivial", *largest.values()]
    rows = raw_rows(reference, "evidence.csv", columns)
    rows = rows.assign(source=f"{_REFERENCE}/" + rows["source"], z=rows["z"].abs())
    blocks = "P" + rows["problem"].astype(str)
    rows = pd.concat([rows.assign(block="all"), rows.assign(block=blocks)])
    certified = rows[rows["verdict"] == CERTIFIED]
    template = "reference/{block}/{quantity}"
    counts = {
        "entries": len,
        "certified": lambda group: (group["verdict"] == CERTIFIED).sum(),
        "trivial": lambda group: group["trivial"].sum(),
    }
    yield from each(rows, "block", template, counts)
    sources = rows.groupby("block")["source"].agg(join_sources)
    for quantity, column in largest.items():
        values = certified.groupby("block")[column].max().dropna()
        for block, value in values.items():
            yield estimate(f"reference/{block}/largest-{quantity}", value, sources[block])
    truths = raw_rows(reference, "truths.csv", ["verdict"])
    if len(truths):
        source = join_sources(f"{_REFERENCE}/" + truths["source"])
        yield estimate("reference/truths/entries", len(truths), source)


def _reference_check(root: Path) -> Iterator[Row]:
    """How many entries of the reference this run drew, estimated again by two methods each, and found to agree."""
    rows = raw_rows(root, "reference_check.csv", ["problem", "set", "verdict"])
    if rows.empty:
        return
    done = rows[rows["verdict"].isin([AGREES, DIFFERS])]
    agree = (done["verdict"] == AGREES).groupby([done["problem"], done["set"]]).all()
    drawn = len(rows.drop_duplicates(["problem", "set"]))
    for quantity, count in {"drawn": drawn, "done": len(agree), "agree": agree.sum()}.items():
        yield estimate(f"reference-check/all/{quantity}", count, join_sources(rows["source"]))
