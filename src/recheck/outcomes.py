"""Outcomes: every hypothesis of a study under each of its readings, with what the table of verdicts shows of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from recheck.claims import Quantity, quantity
from recheck.columns import Column, compare_column
from recheck.compare import Comparer, NotComparedError
from recheck.measures import COUNTED, UNSEEN, join_sources, levels_of, reading_text
from recheck.predictive import Predictive, Ratio
from recheck.published import Claim, Contrast, Published

__all__ = ["QUANTILES", "Outcome", "outcomes"]

#: Columns of the quantiles of the replayed number.
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


@dataclass(frozen=True)
class Outcome:
    """One hypothesis under one reading.

    Attributes
    ----------
    id, kind, reading : str
    row : dict
        What the table shows of it.
    p, p_agree : float
        p-values of the hypotheses that it is as published, and that it is outside the margin. NaN: not compared.
    detect : callable
        Detectable effect, by level.
    margin : float
        Effect within which it agrees; the detectable effect within which it is informative is `informative`.
    scatters : bool
        Whether the cells of a column scatter too much to be summarised, at the error rate without correction.
    exact : bool
        Whether chance has no part.
    verdict : str
        Why it was not compared.
    compared : Predictive or Column or Quantity or None
    """

    id: str
    kind: str
    reading: str
    row: dict[str, Any]
    p: float = math.nan
    p_agree: float = math.nan
    detect: Callable[[float], float] = lambda level: math.nan
    informative: float = math.nan
    scatters: bool = False
    exact: bool = False
    verdict: str = ""
    compared: Any = None


def outcomes(
    measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
) -> list[Outcome]:
    """All hypotheses under all of their readings; the parameters are those of `recheck.judge.judge`."""
    _check_readings(measures, published)
    comparer = Comparer(measures, published, seed)
    shown = _Shown(comparer, estimates)
    found = [
        shown.cell(name, levels)
        for name in published.cells.index
        for levels in published.combinations([name], "runs")
    ]
    compared = {(one.id, one.reading) for one in found if not one.verdict}
    for name, first, second, rule in published.pairs():
        for levels in _all_levels(published, [first, second]):
            found.append(shown.contrast(name, (first, second), rule, levels))
    for name, ids in comparer.columns().items():
        for levels in _all_levels(published, ids):
            usable = [c for c in ids if (c, _restricted(published, c, levels)) in compared]
            if len(ids) > 1:
                found.append(shown.column(name, ids, usable, levels))
    by_id = dict(list(measures.groupby("id", sort=False)))
    for claim in published.claims:
        found += shown.claim(claim, by_id)
    return found


def _all_levels(published: Published, ids: Sequence[str]) -> list[dict[str, str]]:
    runs, designs = (published.combinations(ids, kind) for kind in ("runs", "design"))
    return [{**one, **other} for one in runs for other in designs]


def _restricted(published: Published, name: str, levels: Mapping[str, str]) -> str:
    """The part of a reading that applies to the runs of one cell."""
    own = published.combinations([name], "runs")[0]
    return reading_text({choice: levels[choice] for choice in own})


def _check_readings(measures: pd.DataFrame, published: Published) -> None:
    claims = {claim.id for claim in published.claims}
    for name, reading in measures[["id", "reading"]].drop_duplicates().itertuples(index=False):
        claim = name.removeprefix("claim/") in claims and name.startswith("claim/")
        if not reading or not (claim or name in published.cells.index):
            continue
        allowed = published.combinations([name], "runs")
        if not any(levels_of(reading).items() <= levels.items() for levels in allowed):
            raise ValueError(
                f"measures: {name}: reading {reading!r} is none of readings.yaml for this cell or claim; "
                f"allowed are {[reading_text(levels) for levels in allowed]}"
            )


class _Shown:
    """Outcomes with the entries that the table shows."""

    def __init__(self, comparer: Comparer, estimates: pd.DataFrame) -> None:
        self.comparer, self.published = comparer, comparer.published
        self.protocol = comparer.published.protocol
        keys = zip(estimates["id"], estimates["reading"], strict=True)
        self.estimates = dict(zip(keys, estimates.to_dict("records"), strict=True))

    def cell(self, name: str, levels: dict[str, str]) -> Outcome:
        cell = self.comparer.cells[name]
        row: dict[str, Any] = {
            **{key: cell[key] for key in ("table", "printed", "scale")},
            "published": cell["value"],
            "note": "",
            **self._ours(name, levels),
        }
        try:
            one = self.comparer.cell(name, levels)
            own = self.comparer.sample(name, levels)
        except NotComparedError as why:
            row["note"] = str(why)
            return Outcome(name, "cell", reading_text(levels), row, verdict=why.verdict)
        row["note"] = (
            f"ours: {_count(len(own.units), 'unit')} with {_count(own.runs(), 'run')}; "
            f"published: {_count(cell['units'], 'unit')} with {_count(cell['runs'], 'run')}"
        )
        step = 2 * cell["rounding"]
        quantiles = np.array(one.quantiles(list(QUANTILES.values())))
        if cell["scale"] == "log" and not isinstance(one, Ratio):
            quantiles = np.exp(quantiles)
        row |= zip(QUANTILES, np.round(quantiles / step) * step, strict=True)
        return self._outcome("cell", name, levels, row, one, self.protocol.agree)

    def contrast(
        self, name: str, pair: tuple[str, str], rule: Contrast, levels: dict[str, str]
    ) -> Outcome:
        cells = [self.comparer.cells[one] for one in pair]
        values = [cell["value"] for cell in cells]
        logs = rule.scale == "log"
        row: dict[str, Any] = {
            "table": cells[0]["table"],
            "printed": " / ".join(c["printed"] for c in cells)
            if logs
            else " - ".join(c["printed"] for c in cells),
            "scale": rule.scale,
            "published": values[0] / values[1] if logs else values[0] - values[1],
        }
        try:
            one = self.comparer.contrast(name, pair, rule, levels)
            samples = [self.comparer.sample(cell, levels) for cell in pair]
        except NotComparedError as why:
            row["note"] = str(why)
            return Outcome(name, "contrast", reading_text(levels), row, verdict=why.verdict)
        common = sum(unit in samples[1].units for unit in samples[0].units)
        ours = one.published + one.center
        quantiles = np.array(one.quantiles(list(QUANTILES.values())))
        row |= {
            "ours": math.exp(ours) if logs else ours,
            "units": common,
            "runs": min(sum(len(v) for v in sample.units.values()) for sample in samples),
            "note": f"{pair[0]} against {pair[1]} on {common} units",
            "source": join_sources(
                [str(self._ours(cell, levels).get("source", "")) for cell in pair]
            ),
            **dict(zip(QUANTILES, np.exp(quantiles) if logs else quantiles, strict=True)),
        }
        return self._outcome("contrast", name, levels, row, one, rule.margin)

    def column(
        self, name: str, ids: Sequence[str], usable: Sequence[str], levels: dict[str, str]
    ) -> Outcome:
        cells = self.comparer.cells
        row: dict[str, Any] = {"table": cells[ids[0]]["table"], "scale": cells[ids[0]]["scale"]}
        try:
            found = compare_column(self.comparer, name, usable, levels)
        except NotComparedError as why:
            row["note"] = str(why)
            return Outcome(name, "column", reading_text(levels), row, verdict=why.verdict)
        ours = [self._ours(cell, levels) for cell in usable]
        if row["scale"] == "log":
            values = [cells[cell]["value"] for cell in usable]
            row["published"] = math.exp(np.log(values).mean())
            row["ours"] = math.exp(np.log([one["ours"] for one in ours]).mean())
        row |= {
            "units": min(int(one["units"]) for one in ours),
            "runs": sum(int(one["runs"]) for one in ours),
            "note": f"mean over {len(usable)} of {len(ids)} cells",
            "source": "",
        }
        return self._outcome("column", name, levels, row, found, self.protocol.agree)

    def _ours(self, name: str, levels: Mapping[str, str]) -> dict[str, Any]:
        try:
            reading = self.comparer.sample(name, levels).reading
        except NotComparedError:
            readings = [
                r for i, r in self.estimates if i == name and levels_of(r).items() <= levels.items()
            ]
            if not readings:
                return {}
            reading = readings[-1]
        found = self.estimates[name, reading]
        ours = {key: found[key] for key in ("units", "runs", "source")}
        return {**ours, "ours": found["value"], "ours_se": found["se"]}

    def _outcome(
        self,
        kind: str,
        name: str,
        levels: Mapping[str, str],
        row: dict[str, Any],
        found: Predictive | Column,
        margin: float,
    ) -> Outcome:
        one = found.predictive if isinstance(found, Column) else found
        logs = row["scale"] == "log"
        p, scatters, half = found.p, False, 1.0
        low, high = one.interval(self.protocol.interval)
        informative = self.protocol.informative
        if isinstance(found, Column):
            row["heterogeneity_p"], half = found.heterogeneity, 0.5
            scatters = found.heterogeneity <= self.protocol.family_error
            if scatters:
                low, high = _over_cells(found, self.protocol.interval)
                furthest = max(found.effects, key=lambda c: abs(found.effects[c] - one.center))
                row["note"] += f"; the cells scatter, {furthest} most: the interval is over cells"
        row |= {"effect": one.center, "sd": one.sd, "df": one.df}
        row |= {"low": _natural(low, logs), "high": _natural(high, logs)}
        limit = math.log(margin) if logs else margin
        return Outcome(
            name,
            kind,
            reading_text(levels),
            row,
            p,
            one.p_agree(limit),
            lambda level: one.detectable(level * half, self.protocol.power),
            (math.log(informative) if kind != "contrast" else limit) if logs else limit,
            scatters,
            compared=found,
        )

    def claim(self, claim: Claim, rows: Mapping[str, pd.DataFrame]) -> list[Outcome]:
        name = f"claim/{claim.id}"
        shown: dict[str, Any] = {"table": "", "printed": _region(claim), "scale": "linear"}
        found = []
        for levels in self.published.combinations([name], "runs"):
            reading = reading_text(levels)
            if (name, reading) not in self.estimates:
                row = {**shown, "note": ""}
                found.append(Outcome(name, "claim", reading, row, verdict="not run"))
                continue
            estimate = self.estimates[name, reading]
            row = {
                **shown,
                **{key: estimate[key] for key in ("units", "runs", "scale", "source")},
                **{"ours": estimate["value"], "ours_se": estimate["se"], "note": ""},
            }
            if estimate["status"] not in COUNTED:
                status = str(estimate["status"])
                verdict = status if status in UNSEEN else "not comparable"
                row["note"] = "" if status in UNSEEN else status
                found.append(Outcome(name, "claim", reading, row, verdict=verdict))
                continue
            own = rows[name][rows[name]["reading"] == reading]
            judged = (
                "no region" if math.isnan(claim.low) else quantity(claim, pd.Series(estimate), own)
            )
            if isinstance(judged, str):
                row["note"] = judged
                found.append(Outcome(name, "claim", reading, row, verdict="not comparable"))
            else:
                found.append(self._judged(name, reading, row, judged))
        return found

    def _judged(self, name: str, reading: str, row: dict[str, Any], one: Quantity) -> Outcome:
        inside, outside = one.p_values()
        logs = one.scale == "log"
        low, high = one.interval(self.protocol.interval)
        if one.trials:
            row["note"] = f"{one.successes} of {one.trials}"
        elif one.bound:
            row["note"] = f"{one.bound} this"
        elif one.looks > 1:
            row["note"] = f"furthest outside of {one.looks}"
            row["ours"] = _natural(one.value, logs)
            row["ours_se"] = one.se * row["ours"] if logs else one.se
        row |= {"effect": one.distance, "sd": one.se, "df": one.df}
        row |= {"low": _natural(low, logs), "high": _natural(high, logs)}
        width = one.high - one.low
        near = abs(one.low if math.isfinite(one.low) else one.high)
        limit = math.log(self.protocol.informative) if logs else near
        return Outcome(
            name,
            "claim",
            reading,
            row,
            inside,
            outside,
            lambda level: one.detectable(level, self.protocol.power),
            width if math.isfinite(width) and not logs else limit,
            exact=one.exact,
            compared=one,
        )


def _count(number: float, noun: str) -> str:
    return f"{number:.3g} {noun}{'' if number == 1 else 's'}"


def _natural(value: float, logs: bool) -> float:
    return float(np.exp(min(value, 700.0))) if logs and value < math.inf else value


def _region(claim: Claim) -> str:
    if math.isnan(claim.low):
        return ""
    if math.isinf(claim.low):
        return f"below {claim.high:g}"
    return f"above {claim.low:g}" if math.isinf(claim.high) else f"{claim.low:g} to {claim.high:g}"


def _over_cells(column: Column, coverage: float) -> tuple[float, float]:
    """Interval of the mean over cells that scatter: their own deviation is its error."""
    effects = np.array(list(column.effects.values()))
    half = stdtrit(len(effects) - 1.0, (1 + coverage) / 2) * effects.std(ddof=1)
    half /= math.sqrt(len(effects))
    return float(effects.mean() - half), float(effects.mean() + half)
