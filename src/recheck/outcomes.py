"""Outcomes: every hypothesis of a study under each of its readings, with what the table of verdicts shows of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from recheck.claims import Quantity, quantity
from recheck.compare import Comparer, Levels, NotComparedError
from recheck.measures import COUNTED, fitting, join_sources, levels_of, reading_text
from recheck.predictive import Predictive, Ratio
from recheck.published import Claim, Contrast, Published

__all__ = ["QUANTILES", "Outcome", "outcomes"]

#: Columns of the quantiles of the replayed number.
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}

Row = dict[str, Any]
#: What was compared, the effect within which it agrees, and the detectable effect within which it is informative.
Compared = tuple[Predictive | Quantity, float, float]


@dataclass(frozen=True)
class Outcome:
    """One hypothesis under one reading: the entries that the table shows, and what was compared.

    `p` and `p_agree` are p-values of the hypotheses that it is as published, and that it is outside the margin. A
    detectable effect within `informative` makes it informative. It `scatters` if the cells of a column differ too much
    to be summarised, at the error rate without correction. `verdict` says why it was not compared.
    """

    id: str
    kind: str
    reading: str
    row: Row
    found: Any = None
    p: float = math.nan
    p_agree: float = math.nan
    informative: float = math.nan
    scatters: bool = False
    verdict: str = ""


def outcomes(
    measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
) -> list[Outcome]:
    """All hypotheses under all of their readings; the parameters are those of `recheck.judge.judge`."""
    _check_readings(measures, published)
    study = _Study(measures, estimates, published, seed)
    found = [
        study.outcome("cell", name, levels, study.cell)
        for name in published.cells.index
        for levels in published.combinations([name], "runs")
    ]
    compared = [(one.id, levels_of(one.reading).items()) for one in found if not one.verdict]
    for name, first, second, rule in published.pairs():
        for levels in published.combinations([first, second]):
            found.append(
                study.outcome("contrast", name, levels, study.contrast, first, second, rule)
            )
    for name, ids in study.comparer.columns.items():
        for levels in published.combinations(ids) if len(ids) > 1 else []:
            fits = {cell for cell, own in compared if own <= levels.items()}
            usable = [cell for cell in ids if cell in fits]
            found.append(study.outcome("column", name, levels, study.column, ids, usable))
    for claim in published.claims:
        name = f"claim/{claim.id}"
        for levels in published.combinations([name], "runs"):
            found.append(study.outcome("claim", name, levels, study.claim, claim))
    return found


def _check_readings(measures: pd.DataFrame, published: Published) -> None:
    judged = {*published.cells.index, *(f"claim/{claim.id}" for claim in published.claims)}
    for name, reading in measures[["id", "reading"]].drop_duplicates().itertuples(index=False):
        if name not in judged or not reading:
            continue
        allowed = published.combinations([name], "runs")
        if not any(levels_of(reading).items() <= levels.items() for levels in allowed):
            raise ValueError(
                f"measures: {name}: reading {reading!r} is none of readings.yaml for this cell or claim; "
                f"allowed are {[reading_text(levels) for levels in allowed]}"
            )


class _Study:
    """Builds outcomes. A method a kind fills in what the table shows of it, and returns what was compared."""

    def __init__(
        self, measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
    ) -> None:
        self.comparer, self.protocol = Comparer(measures, published, seed), published.protocol
        self.cells = self.comparer.cells
        claims = measures["id"].str.startswith("claim/")
        self.rows = dict(list(measures[claims].groupby(["id", "reading"], sort=False)))
        self.estimates: dict[str, dict[str, Row]] = {}
        for row in estimates.to_dict("records"):
            self.estimates.setdefault(row["id"], {})[row["reading"]] = row

    def outcome(
        self, kind: str, name: str, levels: Levels, build: Callable[..., Compared], *given: Any
    ) -> Outcome:
        """One hypothesis under one reading."""
        row: Row = {"note": ""}
        key = (name, kind, reading_text(levels), row)
        try:
            found, margin, informative = build(row, name, levels, *given)
        except NotComparedError as why:
            row["note"] = str(why)
            return Outcome(*key, verdict=why.verdict)
        low, high = found.interval(self.protocol.interval)
        scatters = found.heterogeneity <= self.protocol.family_error
        if scatters:
            cells = np.array(list(found.cells.values()))
            low, high = _over_cells(cells, self.protocol.interval)
            furthest = list(found.cells)[int(np.argmax(np.abs(cells - found.center)))]
            row["note"] += f"; the cells scatter, {furthest} most: the interval is over cells"
        logs = row["scale"] == "log"
        row |= {"effect": found.center, "sd": found.sd, "df": found.df}
        row |= {"low": _natural(low, logs), "high": _natural(high, logs)}
        row["heterogeneity_p"] = found.heterogeneity
        return Outcome(*key, found, found.p, found.p_agree(margin), informative, scatters)

    def cell(self, row: Row, name: str, levels: Levels) -> Compared:
        """A cell."""
        cell = self.cells[name]
        row |= {key: cell[key] for key in ("table", "printed", "scale")}
        row |= {"published": cell["value"], **self._ours(name, levels)}
        found, own = self.comparer.cell(name, levels), self.comparer.sample(name, levels)
        row["note"] = (
            f"ours: {_count(len(own.units), 'unit')} with {_count(own.runs(), 'run')}; "
            f"published: {_count(cell['units'], 'unit')} with {_count(cell['runs'], 'run')}"
        )
        logs, step = row["scale"] == "log", 2 * cell["rounding"]
        quantiles = _quantiles(found, logs)
        row |= {key: np.round(value / step) * step for key, value in quantiles.items()}
        return found, *self._margins(logs)

    def contrast(
        self, row: Row, name: str, levels: Levels, first: str, second: str, rule: Contrast
    ) -> Compared:
        """A difference or a ratio of two cells."""
        pair, logs = (first, second), rule.scale == "log"
        values = [self.cells[cell]["value"] for cell in pair]
        row |= {
            "table": self.cells[first]["table"],
            "printed": (" / " if logs else " - ").join(
                self.cells[cell]["printed"] for cell in pair
            ),
            "scale": rule.scale,
            "published": values[0] / values[1] if logs else values[0] - values[1],
        }
        found = self.comparer.contrast(name, pair, rule, levels)
        samples = [self.comparer.sample(cell, levels) for cell in pair]
        common = sum(unit in samples[1].units for unit in samples[0].units)
        ours = found.published + found.center
        row |= {
            "ours": math.exp(ours) if logs else ours,
            "units": common,
            "runs": min(sum(len(v) for v in sample.units.values()) for sample in samples),
            "note": f"{first} against {second} on {common} units",
            "source": join_sources([str(self._ours(cell, levels)["source"]) for cell in pair]),
            **_quantiles(found, logs),
        }
        limit = math.log(rule.margin) if logs else rule.margin
        return found, limit, limit

    def column(
        self, row: Row, name: str, levels: Levels, ids: Sequence[str], usable: Sequence[str]
    ) -> Compared:
        """A column: the mean over its cells that can be compared."""
        row |= {key: self.cells[ids[0]][key] for key in ("table", "scale")}
        found = self.comparer.column(name, usable, levels)
        ours = pd.DataFrame([self._ours(cell, levels) for cell in usable])
        logs = row["scale"] == "log"
        if logs:
            values = [self.cells[cell]["value"] for cell in usable]
            row["published"] = math.exp(np.log(values).mean())
            row["ours"] = math.exp(np.log(ours["ours"]).mean())
        row |= {
            "units": int(ours["units"].min()),
            "runs": int(ours["runs"].sum()),
            "note": f"mean over {len(usable)} of {len(ids)} cells",
            "source": "",
        }
        return found, *self._margins(logs)

    def claim(self, row: Row, name: str, levels: Levels, claim: Claim) -> Compared:
        """A claim: its margin is its region."""
        row |= {"table": "", "printed": _region(claim), "scale": "linear"}
        estimate = self.estimates.get(name, {}).get(reading_text(levels))
        if estimate is None:
            raise NotComparedError("not run")
        row |= {key: estimate[key] for key in ("units", "runs", "scale", "source")}
        row |= {"ours": estimate["value"], "ours_se": estimate["se"]}
        if estimate["status"] not in COUNTED:
            raise NotComparedError(str(estimate["status"]))
        found = quantity(claim, estimate, self.rows[name, estimate["reading"]])
        logs = found.scale == "log"
        if found.trials:
            row["note"] = f"{found.successes} of {found.trials}"
        elif found.bound:
            row["note"] = f"{found.bound} this"
        elif found.looks > 1:
            row["note"] = f"furthest outside of {found.looks}"
            row["ours"] = _natural(found.value, logs)
            row["ours_se"] = found.sd * row["ours"] if logs else found.sd
        if logs:
            return found, 0.0, math.log(self.protocol.informative)
        near = abs(found.low if math.isfinite(found.low) else found.high)
        width = found.high - found.low
        return found, 0.0, width if math.isfinite(width) else near

    def _margins(self, logs: bool) -> tuple[float, float]:
        agree, informative = self.protocol.agree, self.protocol.informative
        return (math.log(agree), math.log(informative)) if logs else (agree, agree)

    def _ours(self, name: str, levels: Levels) -> Row:
        readings = self.estimates.get(name, {})
        try:
            found = readings[self.comparer.sample(name, levels).reading]
        except NotComparedError:
            found = fitting(readings, levels)
        if found is None:
            return {}
        ours = {key: found[key] for key in ("units", "runs", "source")}
        return {**ours, "ours": found["value"], "ours_se": found["se"]}


def _quantiles(found: Predictive, logs: bool) -> dict[str, float]:
    """Quantiles of the replayed number."""
    quantiles = np.array(found.quantiles(list(QUANTILES.values())))
    natural = np.exp(quantiles) if logs and not isinstance(found, Ratio) else quantiles
    return dict(zip(QUANTILES, natural, strict=True))


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


def _over_cells(effects: np.ndarray, coverage: float) -> tuple[float, float]:
    """Interval of the mean over cells that scatter: their own deviation is its error."""
    half = stdtrit(len(effects) - 1.0, (1 + coverage) / 2) * effects.std(ddof=1)
    half /= math.sqrt(len(effects))
    return float(effects.mean() - half), float(effects.mean() + half)
