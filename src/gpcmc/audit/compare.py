r"""The comparison with the published values: cell by cell, column by column, and all of them together.

A cell compares log(ours/published), less what it is expected to be, with its standard deviation. The quotient
is Student's with the degrees of freedom of Welch and Satterthwaite; z is the normal quantile of the same
tail and p its two-sided probability. A column (a problem of Tables 1 to 3, a method and measure of Table 4)
compares the mean of its compared cells, with all that these have in common counted as such: where
much of a cell's variation is its own, a column sees smaller deviations than any of its cells.

Verdicts, in this order:

data not available
    the raw data of a cell could not be had.
not run
    there are no rows for it at this scale.
not comparable
    there are rows, but no run that counts, or other settings than published, or nothing is known
    of how much the value varies.
discrepant
    p is significant in Holm's step-down test over the family of all compared cells and columns
    together, at 5 %: were all of them right, one discrepancy or more would come up in at most one
    audit of twenty, however the comparisons depend on one another.
equivalent
    two one-sided tests, each at 5 %, reject a ratio outside 1/sqrt(2) .. sqrt(2). Errors fall as M^-1/2: such a
    ratio is worth less than a doubling of the samples. Each is a statement on its own, and not
    corrected for their number.
consistent
    the same for a ratio outside 1/2 .. 2.
inconclusive
    none of these: not significant, but a factor of two is not excluded either.

``detectable`` is the factor at which a comparison would have been called discrepant in the first, hardest step
of Holm's test with a probability of 80 %. It says how strong a comparison is, whatever came out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtri, ndtri, stdtr, stdtrit

from gpcmc.audit.estimates import Estimate, Estimator, Term
from gpcmc.audit.published import CELLS, METHODS
from gpcmc.audit.results import ResultFiles
from gpcmc.experiments.classification import NO_DATA
from gpcmc.inference.interface import OK

__all__ = [
    "ALPHA",
    "COLUMNS",
    "CONSISTENT",
    "EQUIVALENT",
    "NOT_COMPARED",
    "POWER",
    "TOO_GOOD",
    "VERDICTS",
    "Audit",
    "Comparison",
    "Comparisons",
    "Power",
    "agreement",
    "audit",
    "check_complete",
    "compare",
    "comparisons",
    "count_verdicts",
    "holm",
    "read_audit",
    "side_by_side",
    "welch_satterthwaite",
    "write_audit",
    "write_rows",
]

#: Family-wise probability of a false discrepancy, and the level of each one-sided test.
ALPHA = 0.05
#: Probability with which a deviation of the factor ``detectable`` is found.
POWER = 0.8
#: |log ratio| within which two values are called equivalent: a doubling of the samples.
EQUIVALENT = math.log(2.0) / 2.0
#: |log ratio| beyond which a deviation has to be excluded for a value to be called consistent.
CONSISTENT = math.log(2.0)
#: Probability at which agreement is called too good.
TOO_GOOD = 0.01

#: Verdicts of what is not compared, whatever the reason.
NOT_COMPARED = ("not comparable", "not run", NO_DATA)
VERDICTS = ("equivalent", "consistent", "inconclusive", "discrepant", *NOT_COMPARED)

#: Columns that a cell has from the registry.
_REGISTERED = [
    "id",
    "table",
    "problem",
    "dimension",
    "samples",
    "method",
    "metric",
    "published",
    "published_bracket",
]

COLUMNS = [
    *_REGISTERED,
    "published_se",
    "rounding",
    "ours",
    "ours_se",
    "replicates",
    "ratio",
    "expected",
    "sd",
    "df",
    "z",
    "p",
    "p_family",
    "ratio_low",
    "ratio_high",
    "detectable",
    "verdict",
    "result_file",
    "note",
]


class Comparison(NamedTuple):
    """One published value beside ours; all NaN where no comparison is possible.

    Attributes
    ----------
    z : float
        On the scale of a standard normal.
    published_se : float
        Standard error of the published value, in its units.
    difference : float
        log(ours/published) less its expectation.
    sd, df : float
        Its standard deviation, and the degrees of freedom that this rests on.
    """

    z: float
    published_se: float
    difference: float
    sd: float
    df: float


def compare(published: float, rounding: float, estimate: Estimate) -> Comparison:
    """Compare the logarithms of two values.

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
    Comparison
        All NaN where the estimate names no sources of variation.

    Raises
    ------
    ValueError
        The published value is not positive.
    """
    if not published > 0:
        raise ValueError(f"published: needed is a positive value, given was {published}")
    if not estimate.ours or not estimate.theirs:
        return Comparison(*[math.nan] * 5)
    published_se = published * math.sqrt(sum(term.variance for term in estimate.theirs))
    terms = [*estimate.ours, *estimate.theirs, _rounding(published, rounding)]
    sd = math.sqrt(sum(term.variance for term in terms))
    if estimate.value > 0:
        difference = math.log(estimate.value / published) - estimate.expected
    else:  # a log ratio does not exist: the difference, in units of the published value
        difference = estimate.value / published - 1
    df = _degrees_of_freedom(terms)
    return Comparison(_normal(difference / sd, df), published_se, difference, sd, df)


def _rounding(published: float, rounding: float) -> Term:
    return Term((rounding / published) ** 2 / 3)


def _normal(t: float, df: float) -> float:
    """The normal quantile that has the tail of Student's t."""
    tail = stdtr(df, -abs(t))
    return math.copysign(-float(ndtri(tail)) if tail > 1e-300 else abs(t), t)


def _degrees_of_freedom(terms: Sequence[Term]) -> float:
    """Welch and Satterthwaite's, each estimate counted once however many terms are made of it."""
    estimates: dict[str, Term] = {}
    for position, term in enumerate(terms):
        key = term.source or f"term {position}"
        before = estimates.get(key, Term(0.0, term.df))
        estimates[key] = Term(before.variance + term.variance, term.df)
    kept = estimates.values()
    return welch_satterthwaite([term.variance for term in kept], [term.df for term in kept])


def welch_satterthwaite(variances: ArrayLike, dfs: ArrayLike) -> float:
    """Degrees of freedom of a sum of independent variances, each estimated with its own; 1e12 of none."""
    parts = np.asarray(variances, dtype=float)
    spent = float((parts**2 / np.asarray(dfs, dtype=float)).sum())
    return float(parts.sum()) ** 2 / spent if spent > 0 else 1e12


# ---------------------------------------------------------------------------------------------------------------------
# All comparisons together


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Cells and columns that are compared, as arrays: what each one says and what they have in common.

    Attributes
    ----------
    cells : DataFrame
        One row a compared cell: ``id``, ``table``, ``unit`` (the problem whose data it shares),
        ``column``, ``published``, ``difference``, ``sd``, ``df``, ``share`` (of its variance, what it has in
        common with the other cells of its unit).
    columns : DataFrame
        One row a column of two compared cells or more: ``id``, ``table``, ``cells``, ``difference`` (mean
        over them), ``sd``, ``df``.
    """

    cells: pd.DataFrame
    columns: pd.DataFrame

    @property
    def size(self) -> int:
        """Of the family: all compared cells and columns."""
        return len(self.cells) + len(self.columns)

    def shifted(self, shift: np.ndarray) -> Comparisons:
        """The same with the logarithm of each published value raised by so much."""
        cells = self.cells.assign(difference=self.cells["difference"] - shift)
        means = cells.groupby("column")["difference"].mean()
        columns = self.columns.assign(difference=self.columns["id"].map(means))
        return Comparisons(cells, columns)

    def judged(self) -> pd.DataFrame:
        """Cells, then columns: ``id``, ``table``, ``z``, ``p``, ``p_family``, the interval, ``verdict``."""
        names = ["id", "table", "difference", "sd", "df"]
        frame = pd.concat([self.cells[names], self.columns[names]], ignore_index=True)
        difference, sd, df = (frame[name].to_numpy(dtype=float) for name in names[2:])
        t = difference / sd
        p = 2.0 * stdtr(df, -np.abs(t))
        p_family = holm(p)
        low, high = (
            difference - stdtrit(df, 1 - ALPHA) * sd,
            difference + stdtrit(df, 1 - ALPHA) * sd,
        )
        size = np.abs(np.stack([low, high])).max(axis=0) if len(frame) else p
        verdicts = np.select(
            [p_family <= ALPHA, size < EQUIVALENT, size < CONSISTENT],
            ["discrepant", "equivalent", "consistent"],
            "inconclusive",
        )
        return frame.assign(
            z=[_normal(*pair) for pair in zip(t, df, strict=True)],
            p=p,
            p_family=p_family,
            ratio_low=np.exp(low),
            ratio_high=np.exp(high),
            detectable=np.exp(detectable(sd, df, self.size)),
            verdict=verdicts,
        )


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values: a hypothesis is rejected at the family-wise level that its value is below."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty_like(steps)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def detectable(sd: np.ndarray, df: np.ndarray, family: int) -> np.ndarray:
    """|log ratio| that Holm's first step finds with probability `POWER` in a family of so many."""
    level = ALPHA / max(family, 1)
    return (stdtrit(df, 1 - level / 2) + stdtrit(df, POWER)) * sd


def _unit(cell: pd.Series) -> str:
    """The problem whose data a cell shares with others; Tables 2 and 3 come from the same runs."""
    if cell["table"] == 1:
        return f"experiment1/N{cell['dimension']}"
    return f"experiment{4 if cell['table'] == 4 else 2}/problem{cell['problem']}"


def column_of(cell: pd.Series) -> str:
    """The id of the column that a cell is in."""
    if cell["table"] == 4:
        return f"table4/{cell['method']}/{cell['metric']}"
    return str(cell["id"]).rsplit("/", 1)[0]


def comparisons(registry: pd.DataFrame, estimates: Sequence[Estimate]) -> Comparisons:
    """The cells of a registry that can be compared with their estimates, and their columns."""
    rows, terms = [], {}
    for (_, cell), estimate in zip(registry.iterrows(), estimates, strict=True):
        found = compare(cell["published"], cell["rounding"], estimate)
        if estimate.status != OK or math.isnan(found.z):
            continue
        used = [*estimate.ours, *estimate.theirs, _rounding(cell["published"], cell["rounding"])]
        common = sum(term.variance for term in used if term.shared)
        terms[cell["id"]] = used, estimate
        rows.append(
            {
                "id": cell["id"],
                "table": cell["table"],
                "unit": _unit(cell),
                "column": column_of(cell),
                "published": cell["published"],
                "difference": found.difference,
                "sd": found.sd,
                "df": found.df,
                "share": common / found.sd**2,
            }
        )
    names = ["id", "table", "unit", "column", "published", "difference", "sd", "df", "share"]
    cells = pd.DataFrame(rows, columns=names)
    columns = [
        _column(str(name), group, [terms[name] for name in group["id"]])
        for name, group in cells.groupby("column", sort=False)
        if len(group) > 1
    ]
    names = ["id", "table", "cells", "difference", "sd", "df"]
    return Comparisons(cells, pd.DataFrame(columns, columns=names))


def _column(
    name: str, cells: pd.DataFrame, used: Sequence[tuple[list[Term], Estimate]]
) -> dict[str, object]:
    """The mean of a column's differences: what its cells share adds up as deviations, the rest as variances."""
    n, whole = len(cells), []
    for unit, places in cells.reset_index(drop=True).groupby("unit").groups.items():
        for side in ("ours", "theirs"):
            sources: dict[str, list[Term]] = {}
            for place in places:
                for term in getattr(used[place][1], side):
                    if term.shared:
                        sources.setdefault(term.source, []).append(term)
            for source, shared in sources.items():
                variance = (sum(math.sqrt(term.variance) for term in shared) / n) ** 2
                df = min(term.df for term in shared)
                whole.append(Term(variance, df, f"{unit}/{source}"))
        for place in places:
            for position, term in enumerate(used[place][0]):
                if not term.shared:
                    key = f"{unit}/{term.source or f'{place}/{position}'}"
                    whole.append(Term(term.variance / n**2, term.df, key))
    return {
        "id": name,
        "table": cells["table"].iloc[0],
        "cells": n,
        "difference": float(cells["difference"].mean()),
        "sd": math.sqrt(sum(term.variance for term in whole)),
        "df": _degrees_of_freedom(whole),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Simulation: agreement that is too good, and power

#: Draws of the simulations below, and the seed of all of them: the same results give the same bytes.
DRAWS = 10_000
_SEED = 20210308


def _drawn(compared: Comparisons) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Errors of cells and columns, and estimated over true deviations, had all published values been right.

    Cells of one unit share as much of their variance as they do in the data, and their estimated standard
    deviations err together.

    Returns
    -------
    cells, columns : (DRAWS, n) arrays
        Errors over their standard deviations.
    cell_scale, column_scale : (DRAWS, n) arrays
        Estimated over true standard deviation.
    """
    rng = np.random.default_rng(_SEED)
    cells, columns = compared.cells, compared.columns
    units, unit = np.unique(cells["unit"].to_numpy(dtype=str), return_inverse=True)
    shared = rng.standard_normal((DRAWS, len(units)))
    own = rng.standard_normal((DRAWS, len(cells)))
    share, sd = (cells[name].to_numpy(dtype=float) for name in ("share", "sd"))
    errors = np.sqrt(share) * shared[:, unit] + np.sqrt(1 - share) * own
    quantile = rng.random((DRAWS, len(units)))
    scales = _scale(quantile[:, unit], cells["df"].to_numpy(dtype=float))
    means = np.empty((DRAWS, len(columns)))
    first = np.zeros(len(columns), dtype=int)
    for place, name in enumerate(columns["id"]):
        inside = np.flatnonzero(cells["column"] == name)
        means[:, place] = errors[:, inside] @ sd[inside] / len(inside)
        first[place] = unit[inside[0]]
    deviations = columns["sd"].to_numpy(dtype=float)
    column_scales = _scale(quantile[:, first], columns["df"].to_numpy(dtype=float))
    return errors, means / deviations, scales, column_scales


def _scale(quantile: np.ndarray, df: np.ndarray) -> np.ndarray:
    """sqrt(chi^2 / df) at upper quantiles; nearly one where a variance is known."""
    df = np.minimum(df, 1e6)
    return np.sqrt(chdtri(df, quantile) / df)


def agreement(compared: Comparisons) -> pd.DataFrame:
    """Whether published values and ours agree better than chance would let them, problem by problem.

    A problem's score is the mean of z^2 over its compared cells. The sum over problems is set beside that
    of `DRAWS` simulated audits in which all published values are right. A published value that was copied, or
    results that were tuned to it, make it too small; a set of small deviations makes it too large.

    Returns
    -------
    DataFrame
        One row a problem: ``unit``, ``cells``, ``score``; and a last one, ``all``, with the sum and ``p_low`` and
        ``p_high``, the shares of simulated audits with a smaller and a larger one (NaN with nothing compared).
    """
    cells = compared.cells
    z = np.array([_normal(d / s, f) for d, s, f in cells[["difference", "sd", "df"]].to_numpy()])
    scores = pd.Series(z**2, dtype=float).groupby(cells["unit"].to_numpy()).agg(["size", "mean"])
    p_low = p_high = math.nan
    if len(cells):
        errors, _, scales, _ = _drawn(compared)
        df = cells["df"].to_numpy(dtype=float)
        tails = np.maximum(stdtr(df, -np.abs(errors / scales)), 1e-300)
        squares = ndtri(tails) ** 2
        drawn = np.zeros(DRAWS)
        for unit in scores.index:
            drawn += squares[:, (cells["unit"] == unit).to_numpy()].mean(axis=1)
        total = scores["mean"].sum()
        p_low = float((1 + (drawn <= total).sum()) / (DRAWS + 1))
        p_high = float((1 + (drawn >= total).sum()) / (DRAWS + 1))
    rows = [
        {"unit": unit, "cells": int(row["size"]), "score": float(row["mean"])}
        for unit, row in scores.iterrows()
    ]
    last = {"unit": "all", "cells": len(cells), "score": float(scores["mean"].sum())}
    frame = pd.DataFrame([*rows, last | {"p_low": p_low, "p_high": p_high}])
    return frame[["unit", "cells", "score", "p_low", "p_high"]]


class Power:
    """How likely an audit is to go red on an alteration of published values, by simulation.

    An alteration is found if a cell or column that it touches is significant in Holm's first, hardest step.

    Parameters
    ----------
    compared : Comparisons
    """

    def __init__(self, compared: Comparisons) -> None:
        self._compared = compared
        self._errors = _drawn(compared)
        level = ALPHA / max(compared.size, 1)
        cells, columns = compared.cells, compared.columns
        self._limits = [
            stdtrit(part["df"].to_numpy(dtype=float), 1 - level / 2) for part in (cells, columns)
        ]

    def __call__(self, shift: np.ndarray) -> float:
        """Probability that the audit finds it; `shift` is what is added to each cell's log published value."""
        return float(self.found(shift).mean())

    def found(self, shift: np.ndarray) -> np.ndarray:
        """Whether each of the `DRAWS` simulated audits finds it, shape (DRAWS,); all shifts see the same draws."""
        cells, columns = self._compared.cells, self._compared.columns
        means = pd.Series(shift).groupby(cells["column"].to_numpy()).mean()
        touched = pd.Series(shift != 0).groupby(cells["column"].to_numpy()).any()
        moved = columns["id"].map(means).to_numpy(dtype=float) / columns["sd"].to_numpy(dtype=float)
        errors, column_errors, scales, column_scales = self._errors
        red = np.zeros(DRAWS, dtype=bool)
        cell = np.flatnonzero(shift != 0)
        off = shift / cells["sd"].to_numpy(dtype=float)
        t = (errors[:, cell] - off[cell]) / scales[:, cell]
        red |= (np.abs(t) > self._limits[0][cell]).any(axis=1)
        column = np.flatnonzero(columns["id"].map(touched).to_numpy(dtype=bool))
        t = (column_errors[:, column] - moved[column]) / column_scales[:, column]
        red |= (np.abs(t) > self._limits[1][column]).any(axis=1)
        return red

    def smallest(self, inside: np.ndarray) -> float:
        """The smallest factor on all cells `inside` that is found with probability `POWER`; infinite without any."""
        if not inside.any():
            return math.inf
        low, high = 0.0, 1e-3
        while self(np.where(inside, high, 0.0)) < POWER:
            low, high = high, 2.0 * high
            if high > 700:
                return math.inf
        for _ in range(20):
            middle = (low + high) / 2
            if self(np.where(inside, middle, 0.0)) < POWER:
                low = middle
            else:
                high = middle
        return math.exp(high)


# ---------------------------------------------------------------------------------------------------------------------
# The audit


@dataclass(frozen=True, slots=True)
class Audit:
    """What the comparison with the published values gives.

    Attributes
    ----------
    cells : DataFrame
        One row for every published cell, with the columns `COLUMNS`, in the registry's order.
    columns : DataFrame
        One row for every column that is compared: ``id``, ``table``, ``cells``, ``ratio`` (geometric mean, less
        what it is expected to be), and from ``sd`` to ``verdict`` as a cell.
    compared : Comparisons
        What `agreement` and `Power` start from.
    """

    cells: pd.DataFrame
    columns: pd.DataFrame
    compared: Comparisons


_JUDGED = ["sd", "df", "z", "p", "p_family", "ratio_low", "ratio_high", "detectable", "verdict"]


def _row(cell: pd.Series, estimate: Estimate) -> dict[str, object]:
    named = estimate.status in (OK, *NOT_COMPARED)
    return {
        **{name: cell[name] for name in _REGISTERED},
        "method": METHODS[cell["method"]],
        "published_se": compare(cell["published"], cell["rounding"], estimate).published_se,
        "rounding": cell["rounding"],
        "ours": estimate.value,
        "ours_se": estimate.standard_error,
        "replicates": estimate.replicates,
        "ratio": estimate.value / cell["published"],
        "expected": math.exp(estimate.expected),
        "status": estimate.status,
        "every": estimate.every,
        "result_file": estimate.result_file,
        "note": estimate.note if named else f"{estimate.status}: {estimate.note}",
    }


def _rows(registry: pd.DataFrame, estimates: Sequence[Estimate]) -> pd.DataFrame:
    cells = [cell for _, cell in registry.iterrows()]
    return pd.DataFrame(
        [_row(cell, estimate) for cell, estimate in zip(cells, estimates, strict=True)]
    )


def side_by_side(registry: pd.DataFrame, files: ResultFiles) -> pd.DataFrame:
    """Put our values beside the published ones, without a verdict.

    A verdict belongs to the family of all cells that are compared, and one table or figure does not read
    them all: its own Holm's test would call discrepant what the audit does not.

    Returns
    -------
    DataFrame
        One row for every published cell, with the columns `COLUMNS` up to ``expected``, ``result_file``, ``note``,
        ``status`` and ``every`` (`Estimate`).
    """
    estimator = Estimator(files, registry)
    return _rows(registry, [estimator(cell) for _, cell in registry.iterrows()])


def audit(registry: pd.DataFrame, files: ResultFiles) -> Audit:
    """Compare everything that was run with everything that is published.

    Parameters
    ----------
    registry : DataFrame
        `read_registry`.
    files : ResultFiles
        What was run.

    Returns
    -------
    Audit
        ``ratio`` of a cell is that of the two values as displayed; z and the interval allow for its
        expectation, ``expected`` (`Estimate.expected`).

    Raises
    ------
    ValueError
        A cell is absent, comes twice, or is not in the registry.
    """
    estimator = Estimator(files, registry)
    estimates = [estimator(cell) for _, cell in registry.iterrows()]
    compared = comparisons(registry, estimates)
    judged = compared.judged().set_index("id")
    rows = _rows(registry, estimates)
    cells = rows.reindex(columns=COLUMNS)
    for name in _JUDGED[:-1]:
        cells[name] = cells["id"].map(judged[name])
    verdicts = judged["verdict"].to_dict()
    cells["verdict"] = [
        verdicts.get(name, status if status in NOT_COMPARED else "not comparable")
        for name, status in zip(rows["id"], rows["status"], strict=True)
    ]
    check_complete(cells, registry)
    columns = compared.columns[["id", "table", "cells"]].copy()
    columns["ratio"] = np.exp(compared.columns["difference"].astype(float))
    columns = columns.join(judged[_JUDGED], on="id")
    return Audit(cells, columns, compared)


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
    """Number of rows by verdict, all verdicts named, in their fixed order."""
    counts = frame["verdict"].value_counts().to_dict()
    return {verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS}


def write_audit(frame: pd.DataFrame, registry: pd.DataFrame, path: str | Path) -> None:
    """Write ``audit.csv``, after counting its cells once more."""
    check_complete(frame, registry)
    write_rows(frame, path)


def write_rows(frame: pd.DataFrame, path: str | Path) -> None:
    """Write columns, statements, scores of agreement or controls."""
    frame.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


#: Columns of text in the files of the audit.
_TEXT = (
    *(
        "id",
        "method",
        "metric",
        "verdict",
        "result_file",
        "note",
        "explanation",
        "unexplained",
        "evidence",
        "unit",
    ),
    *("section", "statement", "check", "parameters", "quantity", "kind", "control", "place"),
)


def read_audit(path: str | Path) -> pd.DataFrame:
    """Read a file of the audit back; text columns without an entry are empty strings, numbers NaN."""
    frame = pd.read_csv(
        path, dtype={**dict.fromkeys(_TEXT, str), "dimension": "Int64", "samples": "Int64"}
    )
    return frame.fillna(dict.fromkeys(_TEXT, ""))
