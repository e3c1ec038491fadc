"""The comparison cell by cell: a z on the log ratio and a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from scipy.special import ndtri, stdtr

from gpcmc.audit.estimates import Estimate, Estimator, Term
from gpcmc.audit.published import CELLS, METHODS
from gpcmc.audit.results import ResultFiles

__all__ = [
    "COLUMNS",
    "VERDICTS",
    "Z_LIMIT",
    "audit",
    "check_complete",
    "compare",
    "count_verdicts",
    "write_audit",
]

COLUMNS = [
    "id",
    "table",
    "problem",
    "dimension",
    "samples",
    "method",
    "metric",
    "published",
    "published_bracket",
    "published_se",
    "rounding",
    "ours",
    "ours_se",
    "replicates",
    "ratio",
    "z",
    "verdict",
    "result_file",
    "note",
]

VERDICTS = ("consistent", "discrepant", "not run", "data not available")

#: |z| above this is a discrepancy: 0.3 false alarms are expected among 125 cells that all agree.
Z_LIMIT = 3.0


def compare(published: float, rounding: float, estimate: Estimate) -> tuple[float, float]:
    """Return z of the log ratio ours/published, and the published value's standard error.

    The variances of both sides and that of rounding (uniform within half a unit of the last place)
    are added. Some of them rest on few replicates, so the quotient is referred to Student's t with
    the degrees of freedom of Welch and Satterthwaite and given back as the normal quantile of the
    same tail: z is on one scale in every cell. Their formula is for independent variances, so terms
    that multiples of one estimate stand in (on both sides, as often) are summed first.

    Parameters
    ----------
    published : float
        The published value, positive.
    rounding : float
        Half a unit in its last printed place.
    estimate : Estimate
        Our side, with both sides' sources of variation.

    Returns
    -------
    z, published_se : float
        Both NaN where the estimate names no sources of variation.

    Raises
    ------
    ValueError
        The published value is not positive.
    """
    if not published > 0:
        raise ValueError(f"published: needed is a positive value, given was {published}")
    if not estimate.ours or not estimate.theirs:
        return math.nan, math.nan
    published_se = published * math.sqrt(sum(term.variance for term in estimate.theirs))
    terms = [*estimate.ours, *estimate.theirs, Term((rounding / published) ** 2 / 3)]
    total = sum(term.variance for term in terms)
    if estimate.value > 0:
        t = (math.log(estimate.value / published) - estimate.expected) / math.sqrt(total)
    else:  # a log ratio does not exist: the difference, in units of the published value
        t = (estimate.value / published - 1) / math.sqrt(total)
    tail = stdtr(_degrees_of_freedom(terms), -abs(t))
    z = -float(ndtri(tail)) if tail > 1e-300 else abs(t)
    return math.copysign(z, t), published_se


def _degrees_of_freedom(terms: Sequence[Term]) -> float:
    """Welch and Satterthwaite's, each estimate counted once however many terms are made of it."""
    estimates: dict[str, Term] = {}
    for position, term in enumerate(terms):
        key = term.source or f"term {position}"
        before = estimates.get(key, Term(0.0, term.df))
        estimates[key] = Term(before.variance + term.variance, term.df)
    total = sum(term.variance for term in terms)
    spent = sum(term.variance**2 / term.df for term in estimates.values())
    return total**2 / spent if spent > 0 else 1e12


def _row(cell: pd.Series, estimate: Estimate) -> dict[str, object]:
    z, published_se = compare(cell["published"], cell["rounding"], estimate)
    if estimate.status == "data not available":
        verdict = "data not available"
    elif estimate.status != "ok" or math.isnan(z):
        verdict = "not run"
    else:
        verdict = "consistent" if abs(z) <= Z_LIMIT else "discrepant"
    note = estimate.note
    if estimate.status not in ("ok", *VERDICTS):
        note = f"{estimate.status}: {note}"
    return {
        **{name: cell[name] for name in COLUMNS[:9]},
        "method": METHODS[cell["method"]],
        "published_se": published_se,
        "rounding": cell["rounding"],
        "ours": estimate.value,
        "ours_se": estimate.standard_error,
        "replicates": estimate.replicates,
        "ratio": estimate.value / cell["published"],
        "z": z,
        "verdict": verdict,
        "result_file": estimate.result_file,
        "note": note,
    }


def audit(registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """One row for every published cell.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        What was run.

    Returns
    -------
    DataFrame
        The columns `COLUMNS`, in the registry's order. A cell that was not run has the verdict "not
        run"; so has one that was run but lacks what a comparison needs, and its note says what.
        ``ratio`` is that of the two values as displayed; z allows for its expectation
        (`Estimate.expected`).

    Raises
    ------
    ValueError
        A cell is absent, comes twice, or is not in the registry.
    """
    estimator = Estimator(files, registry)
    frame = pd.DataFrame(
        [_row(cell, estimator(cell)) for _, cell in registry.iterrows()], columns=COLUMNS
    )
    check_complete(frame, registry)
    return frame


def check_complete(frame: pd.DataFrame, registry: pd.DataFrame) -> None:
    """Count an audit against the registry and against the number of cells of each published table.

    Raises
    ------
    ValueError
        A cell is absent, comes twice, is not in the registry, or has a verdict of its own making.
    """
    absent = sorted(set(registry["id"]) - set(frame["id"]))
    strange = sorted(set(frame["id"]) - set(registry["id"]))
    twice = sorted(frame["id"][frame["id"].duplicated()])
    if absent or strange or twice:
        raise ValueError(
            f"audit: {len(absent)} cells absent {absent}, {len(twice)} twice {twice}, "
            f"{len(strange)} not in the registry {strange}; needed is each registered cell once"
        )
    counts = frame.groupby("table").size().to_dict()
    if counts != CELLS:
        raise ValueError(f"audit: cells by table are {counts}; the published tables have {CELLS}")
    unknown = sorted(set(frame["verdict"]) - set(VERDICTS))
    if unknown:
        raise ValueError(f"audit: verdicts {unknown} are unknown; known are {list(VERDICTS)}")


def count_verdicts(frame: pd.DataFrame) -> dict[str, int]:
    """Number of cells by verdict, all verdicts named, in their fixed order."""
    counts = frame["verdict"].value_counts().to_dict()
    return {verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS}


def write_audit(frame: pd.DataFrame, registry: pd.DataFrame, path: str | Path) -> None:
    """Write ``audit.csv``, after counting its cells once more."""
    check_complete(frame, registry)
    frame.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


def read_audit(path: str | Path) -> pd.DataFrame:
    """Read ``audit.csv`` back; text columns without an entry are empty strings, numbers NaN."""
    text = ("id", "method", "metric", "verdict", "result_file", "note")
    frame = pd.read_csv(
        path, dtype={**dict.fromkeys(text, str), "dimension": "Int64", "samples": "Int64"}
    )
    return frame.fillna(dict.fromkeys(text, ""))
