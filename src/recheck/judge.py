"""The judge: one verdict for each cell, contrast, column and claim.

Hypotheses
    A printed number is drawn from the same design as ours (cells, contrasts, columns: `recheck.compare`,
    `recheck.columns`), or a quantity lies inside its region (claims: `recheck.claims`). Each has a p-value under every
    reading of what the paper leaves unsaid, and counts with the largest of them.
differs
    The p-value is significant in Holm's test over the family, at the protocol's error rate. If everything were drawn
    alike, one verdict "differs" or more would come up in at most one study of twenty. Every reading must have been run.
agrees
    A ratio outside the margin (a difference, a quantity outside its region) is rejected by two one-sided tests under
    every reading, with Benjamini and Hochberg's correction over the family: of all verdicts "agrees", at most one in
    twenty is expected to be wrong. `factor` is the factor that the interval proves. A column agrees only if its cells
    do not scatter either, and none of them differs.
depends on a reading
    It agrees under one reading, and differs under another in Holm's test over all pairs of a hypothesis and a reading.
undecided
    None of these. `factor` is then what the first, hardest step of Holm's test finds with the protocol's power, under
    the least favourable reading. A cell is *informative* if that factor is within the protocol's margin, whatever comes
    out.
not comparable, not run, data not available
    Nothing was compared, and the note says why. These are in no family.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import UNSEEN, levels_of
from recheck.outcomes import QUANTILES, Outcome, outcomes
from recheck.published import Published

__all__ = [
    "COLUMNS",
    "VERDICTS",
    "Verdicts",
    "benjamini_hochberg",
    "check",
    "decide",
    "holm",
    "judge",
]

VERDICTS = ("agrees", "undecided", "differs", "depends on a reading", *UNSEEN)
COLUMNS = [
    *["id", "kind", "table", "family", "published", "printed", "ours", "ours_se", "units", "runs"],
    *["scale", "effect", "sd", "df", "low", "high", "p", "p_adjusted", "p_agree", "factor"],
    *["detectable", "informative", "heterogeneity_p", "readings", "verdict", "note", "source"],
    *QUANTILES,
]


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on a study.

    Attributes
    ----------
    frame : DataFrame
        `COLUMNS`: a row for each cell, contrast, column and claim, in this order. ``effect`` is log(ours/published),
        less what it is expected to be, or ours minus published on the scale ``linear``. Of a claim it is the distance
        from the nearest end of the region, positive inside. ``published`` and ``ours`` of a column are geometric means.
    readings : DataFrame
        Evidence on the readings: ``choice``, ``level``, ``kind``, ``compared``, ``agrees``, ``differs`` (numbers of
        hypotheses), ``log_likelihood`` (sum of the log densities of the printed numbers, at the best levels of others).
    outcomes : list of Outcome
    """

    frame: pd.DataFrame
    readings: pd.DataFrame
    outcomes: list[Outcome] = field(repr=False)


def judge(
    measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
) -> Verdicts:
    """Judge a study.

    Parameters
    ----------
    measures : DataFrame
        `recheck.measures.COLUMNS`.
    estimates : DataFrame
        `recheck.measures.estimate` of them.
    published : Published
    seed : int
        Of the draws of uncertain variances.

    Raises
    ------
    ValueError
        A reading of the measures of a cell is not in ``readings.yaml`` for this cell.
    """
    verdicts = decide(outcomes(measures, estimates, published, seed), published)
    check(verdicts.frame, published)
    return verdicts


def check(frame: pd.DataFrame, published: Published) -> None:
    """Count verdicts against the registered cells and claims.

    Parameters
    ----------
    frame : DataFrame
        `Verdicts.frame`.
    published : Published

    Raises
    ------
    ValueError
        A cell or a claim is absent, comes twice or is not registered, or a verdict is unknown.
    """
    for kind, wanted in (
        ("cell", list(published.cells.index)),
        ("claim", [f"claim/{claim.id}" for claim in published.claims]),
    ):
        ids = frame["id"][frame["kind"] == kind].tolist()
        absent, strange = sorted(set(wanted) - set(ids)), sorted(set(ids) - set(wanted))
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if absent or strange or twice:
            raise ValueError(
                f"verdicts: of {len(wanted)} {kind}s absent are {absent}, not registered {strange}, twice {twice}"
            )
    if unknown := sorted(set(frame["verdict"]) - set(VERDICTS)):
        raise ValueError(f"verdicts: {unknown} are unknown; known are {list(VERDICTS)}")


def decide(found: Sequence[Outcome], published: Published) -> Verdicts:
    """Give verdicts to outcomes, family by family.

    Parameters
    ----------
    found : sequence of Outcome
    published : Published
    """
    protocol = published.protocol
    cases = [
        _Case(name, kind, list(some))
        for (name, kind), some in itertools.groupby(found, lambda one: (one.id, one.kind))
    ]
    for name, kinds in protocol.families.items():
        family = [case for case in cases if case.kind in kinds and case.compared]
        chance = [case for case in family if not case.exact]
        _correct(chance, protocol.family_error)
        level = protocol.family_error / max(len(chance), 1)
        for case in family:
            case.detect(level)
        for case in cases:
            if case.kind in kinds:
                case.family = name
    differing = set()
    for case in cases:
        case.decide(protocol.family_error)
        if case.verdict == "differs":
            differing.add(case.id)
    for case in cases:
        if case.kind == "column" and case.verdict == "agrees":
            cells = published.cells.index[published.cells["column"] == case.id]
            if lost := sorted(differing & set(cells)):
                case.verdict = "undecided"
                case.note = f"{', '.join(lost)} of its cells differ"
    frame = pd.DataFrame([case.row() for case in cases], columns=COLUMNS)
    return Verdicts(frame, _evidence(cases, published), list(found))


class _Case:
    """One id with its outcomes under all readings."""

    def __init__(self, name: str, kind: str, found: list[Outcome]) -> None:
        self.id, self.kind, self.found = name, kind, found
        self.compared = [one for one in found if not one.verdict]
        self.unseen = [one for one in found if one.verdict]
        self.exact = bool(self.compared) and all(one.exact for one in self.compared)
        self.family, self.verdict, self.note = "", "", ""
        self.detectable = math.nan
        self.p = max((one.p for one in self.compared), default=math.nan)
        self.p_agree = max((one.p_agree for one in self.compared), default=math.nan)
        self.adjusted, self.agreement = self.p, self.p_agree
        self.each: dict[str, tuple[float, float]] = {
            one.reading: (one.p, one.p_agree) for one in self.compared
        }

    def detect(self, level: float) -> None:
        """The detectable effect under the least favourable reading."""
        self.detectable = max(one.detect(level) for one in self.compared)

    def _agrees(self, one: Outcome, p: float, rate: float) -> bool:
        return p <= rate and not one.scatters

    def decide(self, rate: float) -> None:
        """The verdict of this hypothesis."""
        self.readings = [
            one.reading
            for one in self.compared
            if self._agrees(one, self.each[one.reading][1], rate)
            and self.each[one.reading][0] > rate
        ]
        against = [name for name, (p, _) in self.each.items() if p <= rate]
        if not self.compared:
            order = ("data not available", "not comparable", "not run")
            self.verdict = min((one.verdict for one in self.unseen), key=order.index)
        elif self.adjusted <= rate and not self.unseen:
            self.verdict = "differs"
        elif self.agreement <= rate and not any(one.scatters for one in self.compared):
            self.verdict = "agrees"
        elif self.readings and against:
            self.verdict = "depends on a reading"
        else:
            self.verdict = "undecided"
        if self.compared and self.unseen:
            lost = ", ".join(one.reading for one in self.unseen)
            self.note = f"{self.unseen[0].verdict} under {lost}"

    def row(self) -> dict[str, Any]:
        """The row of the table: under the reading that fits best."""
        best = max(self.compared or self.found, key=lambda one: (one.p, one.p_agree))
        logs = best.row.get("scale") == "log"
        low, high = (best.row.get(name, math.nan) for name in ("low", "high"))
        factor = math.nan
        if self.verdict == "undecided":
            factor = self._factor(logs)
        elif self.verdict == "agrees" and self.kind != "claim":
            factor = max(high, 1 / low) if logs else max(abs(low), abs(high))
        several = len(self.found) > 1 and best.reading
        notes = [best.row.get("note", ""), f"shown under {best.reading}" if several else ""]
        return {
            **best.row,
            "id": self.id,
            "kind": self.kind,
            "family": self.family,
            "p": self.p,
            "p_adjusted": self.adjusted,
            "p_agree": self.agreement,
            "factor": factor,
            "detectable": self._factor(logs),
            "informative": bool(self.detectable <= best.informative),
            "readings": "; ".join(name for name in self.readings if name),
            "verdict": self.verdict,
            "note": "; ".join(note for note in [*notes, self.note] if note),
        }

    def _factor(self, logs: bool) -> float:
        """The detectable effect as the table shows it; infinite where nothing is found."""
        far = self.detectable > 40
        return (math.inf if far else math.exp(self.detectable)) if logs else self.detectable


def _correct(cases: Sequence[_Case], rate: float) -> None:
    """Adjust the p-values of a family: of its hypotheses, and of all pairs of hypothesis and reading."""
    if not cases:
        return
    adjusted = holm(np.array([case.p for case in cases]))
    agreement = benjamini_hochberg(np.array([case.p_agree for case in cases]))
    for case, p, other in zip(cases, adjusted, agreement, strict=True):
        case.adjusted, case.agreement = float(p), float(other)
    pairs = [(case, one) for case in cases for one in case.compared]
    p = holm(np.array([one.p for _, one in pairs]))
    q = benjamini_hochberg(np.array([one.p_agree for _, one in pairs]))
    for (case, one), first, second in zip(pairs, p, q, strict=True):
        case.each[one.reading] = (float(first), float(second))


def _evidence(cases: Sequence[_Case], published: Published) -> pd.DataFrame:
    """What the printed numbers say about each level of each choice."""
    rows = []
    for choice in published.readings.values():
        for kind, level in itertools.product(("cell", "contrast", "column"), choice.levels):
            some = [c for c in cases if c.kind == kind and _covers(c, choice.name, choice.levels)]
            total, agrees, differs = 0.0, 0, 0
            for case in some:
                own = [o for o in case.compared if levels_of(o.reading)[choice.name] == level]
                best = max(own, key=lambda one: one.p)
                agrees += best.reading in case.readings
                differs += case.each[best.reading][0] <= published.protocol.family_error
                one = best.compared
                total += getattr(one, "predictive", one).log_density
            if some:
                rows.append(
                    {
                        "choice": choice.name,
                        "level": level,
                        "kind": kind,
                        "compared": len(some),
                        "agrees": agrees,
                        "differs": differs,
                        "log_likelihood": total,
                    }
                )
    names = ["choice", "level", "kind", "compared", "agrees", "differs", "log_likelihood"]
    return pd.DataFrame(rows, columns=names)


def _covers(case: _Case, choice: str, levels: Any) -> bool:
    """Whether a case was compared under every level of a choice."""
    return {levels_of(one.reading).get(choice) for one in case.compared} >= set(levels)


# ---------------------------------------------------------------------------------------------------------------------
# Families


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's adjusted p-values."""
    order = np.argsort(-p, kind="stable")
    n = len(p)
    steps = np.minimum.accumulate(p[order] * n / (n - np.arange(n)))
    adjusted = np.empty(n)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
