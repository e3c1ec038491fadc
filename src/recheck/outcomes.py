"""Outcomes: every hypothesis of a study under each of its readings, with what the table of verdicts shows of it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from recheck.claims import Quantity, quantity
from recheck.compare import Comparer, Levels, NotComparedError
from recheck.format import plain
from recheck.measures import COUNTED, fitting, join_sources, levels_of, reading_text
from recheck.published import Claim, Contrast, Published, half_unit
from recheck.replay import Predictive, Ratio

#: Columns of the quantiles of the replayed number.
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}

Row = dict[str, Any]
#: What was compared, the effect within which it agrees, and the detectable effect within which it is informative.
Compared = tuple[Predictive | Quantity, float, float]


def outcomes(
    measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
) -> pd.DataFrame:
    """All hypotheses under all of their readings, a row each, for `recheck.judge.judge`.

    ``row`` has the entries that the table shows, ``found`` what was compared; ``verdict`` says why nothing was. ``p``
    is that of the hypothesis that it is as published, ``p_agree`` that it is outside the margin. It ``scatters`` if the
    cells of a column differ too much to be summarised. A detectable effect within ``informative`` is informative.
    """
    study, found = _Study(measures, estimates, published, seed), list[Row]()
    readings = measures.groupby("id")["reading"].unique()

    def add(kind: str, name: str, ids: Sequence[str], *given: Any) -> None:
        # levels of a design belong to contrasts and columns
        kinds = ["runs"] if kind in ("cell", "claim") else []
        allowed = published.combinations(ids, *kinds)
        for reading in readings.get(name, []) if kinds else []:
            if not any(levels_of(reading).items() <= levels.items() for levels in allowed):
                raise ValueError(
                    f"measures: {name}: reading {reading!r} is none of readings.yaml for this cell or claim; "
                    f"allowed are {[reading_text(levels) for levels in allowed]}"
                )
        found.extend(study.outcome(kind, name, levels, *given) for levels in allowed)

    for name in published.cells.index:
        add("cell", name, [name])
    for name, first, second, rule in published.pairs():
        add("contrast", name, [first, second], (first, second), rule)
    for name, ids in study.comparer.columns.items():
        if len(ids) > 1:
            add("column", name, ids, ids)
    for claim in published.claims:
        add("claim", f"claim/{claim.id}", [f"claim/{claim.id}"], claim)
    return pd.DataFrame(found)


class _Study:
    """Builds outcomes. A method a kind fills in what the table shows of it, and returns what was compared."""

    def __init__(
        self, measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
    ) -> None:
        self.comparer, self.protocol = Comparer(measures, published, seed), published.protocol
        self.cells = self.comparer.cells
        #: Levels under which each cell was compared.
        self.compared: dict[str, list[Levels]] = defaultdict(list)
        known = measures["id"].str.startswith("claim/") | measures["se"].notna()
        self.rows = dict(list(measures[known].groupby(["id", "reading"], sort=False)))
        self.estimates: dict[str, dict[str, Row]] = defaultdict(dict)
        for row in estimates.to_dict("records"):
            self.estimates[row["id"]][row["reading"]] = row

    def outcome(self, kind: str, name: str, levels: Levels, *given: Any) -> Row:
        """One hypothesis under one reading."""
        row: Row = {"note": ""}
        whole = {"id": name, "kind": kind, "reading": reading_text(levels), "row": row}
        try:
            found, margin, informative = getattr(self, kind)(row, name, levels, *given)
        except NotComparedError as why:
            row["note"] = str(why)
            untested = dict.fromkeys(["p", "p_agree", "informative"], math.nan)
            return {**whole, "found": None, "scatters": False, "verdict": why.verdict, **untested}
        # of a claim on every run, one run is tested, and another may be shown
        shown = found.furthest or found if isinstance(found, Quantity) else found
        low, high = shown.interval(self.protocol.interval)
        scatters = found.heterogeneity <= self.protocol.family_error
        if scatters:
            cells = np.array(list(found.cells.values()))
            # the cells' own deviation is the error of their mean
            half = stdtrit(len(cells) - 1.0, (1 + self.protocol.interval) / 2) * cells.std(ddof=1)
            half /= math.sqrt(len(cells))
            low, high = cells.mean() - half, cells.mean() + half
            furthest = list(found.cells)[int(np.argmax(np.abs(cells - found.center)))]
            row["note"] += f"; the cells scatter, {furthest} most: the interval is over cells"
        logs = row["scale"] == "log"
        row |= {"effect": shown.center, "sd": shown.sd, "df": shown.df}
        row |= {"low": _natural(low, logs), "high": _natural(high, logs)}
        row["heterogeneity_p"] = found.heterogeneity
        tests = {"p": found.p, "p_agree": found.p_agree(margin), "informative": informative}
        return {**whole, "found": found, "scatters": scatters, "verdict": "", **tests}

    def cell(self, row: Row, name: str, levels: Levels) -> Compared:
        cell = self.cells[name]
        row |= {key: cell[key] for key in ("table", "printed", "scale")}
        row |= {"published": cell["value"], **self._ours(name, levels)}
        if (known := self._rounded(name, levels)) is not None:
            row["note"] = "judged by its rounding"
            return known, 0.0, cell["rounding"]
        found, own = self.comparer.cell(name, levels), self.comparer.sample(name, levels)
        self.compared[name].append(levels)
        row["note"] = (
            f"ours: {count(len(own.units), 'unit')} with {count(own.runs(), 'run')}; "
            f"published: {count(cell['units'], 'unit')} with {count(cell['runs'], 'run')}"
        )
        logs, step = row["scale"] == "log", 2 * half_unit(cell["printed"])
        quantiles = _quantiles(found, logs)
        row |= {key: np.round(value / step) * step for key, value in quantiles.items()}
        return found, *self._margins(logs)

    def _rounded(self, name: str, levels: Levels) -> Quantity | None:
        """A cell on the scale ``linear`` whose estimate has its own error: the region is what rounds to the number."""
        cell, estimate = self.cells[name], fitting(self.estimates[name], levels)
        rows = None if estimate is None else self.rows.get((name, estimate["reading"]))
        if rows is None or cell["scale"] != "linear" or not rows["status"].isin(COUNTED).any():
            return None
        return quantity((cell["low"], cell["high"]), estimate, rows)

    def contrast(
        self, row: Row, name: str, levels: Levels, pair: tuple[str, str], rule: Contrast
    ) -> Compared:
        """A difference or a ratio of two cells."""
        logs, cells = rule.scale == "log", [self.cells[cell] for cell in pair]
        (first, second), sign = (cell["value"] for cell in cells), " / " if logs else " - "
        row |= {"table": cells[0]["table"], "scale": rule.scale}
        row["printed"] = sign.join(cell["printed"] for cell in cells)
        row["published"] = first / second if logs else first - second
        found = self.comparer.contrast(name, pair, rule, levels)
        samples = [self.comparer.sample(cell, levels) for cell in pair]
        common = sum(unit in samples[1].units for unit in samples[0].units)
        row |= {
            "ours": _natural(found.published + found.center, logs),
            "units": common,
            "runs": min(sum(len(v) for v in sample.units.values()) for sample in samples),
            "note": f"{pair[0]} against {pair[1]} on {common} units",
            "source": join_sources([str(self._ours(cell, levels)["source"]) for cell in pair]),
            **_quantiles(found, logs),
        }
        limit = math.log(rule.margin) if logs else rule.margin
        return found, limit, limit

    def column(self, row: Row, name: str, levels: Levels, ids: Sequence[str]) -> Compared:
        """A column: the mean over its cells that can be compared."""
        usable = [
            cell
            for cell in ids
            if any(own.items() <= levels.items() for own in self.compared[cell])
        ]
        row |= {key: self.cells[ids[0]][key] for key in ("table", "scale")}
        found, logs = self.comparer.column(name, usable, levels), row["scale"] == "log"
        ours = pd.DataFrame([self._ours(cell, levels) for cell in usable])
        if logs:
            values = [self.cells[cell]["value"] for cell in usable]
            row["published"] = math.exp(np.log(values).mean())
            row["ours"] = math.exp(np.log(ours["ours"]).mean())
        row |= {"units": int(ours["units"].min()), "runs": int(ours["runs"].sum()), "source": ""}
        row["note"] = f"mean over {len(usable)} of {len(ids)} cells"
        return found, *self._margins(logs)

    def claim(self, row: Row, name: str, levels: Levels, claim: Claim) -> Compared:
        """A claim: its margin is its region."""
        row |= {"table": "", "printed": claim.text, "scale": "linear"}
        estimate = fitting(self.estimates[name], levels)
        if estimate is None:
            raise NotComparedError("not run")
        row |= _shown(estimate) | {"scale": estimate["scale"]}
        if estimate["status"] not in COUNTED:
            raise NotComparedError(str(estimate["status"]))
        found = quantity(claim.region, estimate, self.rows[name, estimate["reading"]])
        logs, shown = found.scale == "log", found.furthest or found
        if found.looks > 1:
            row["ours"], row["ours_se"] = _with_error(shown)
        notes = {
            f"{found.successes} of {found.trials}": found.trials,
            f"{shown.bound} this": shown.bound,
            f"furthest outside of {found.looks}": found.looks > 1,
        }
        if found.furthest:
            tested = plain(*_with_error(found))
            notes[f"tested is {found.name}, {tested}, the least certain to be inside"] = True
        row["note"] = "; ".join(note for note, said in notes.items() if said)
        if logs:
            return found, 0.0, math.log(self.protocol.margins.informative)
        width, ends = found.high - found.low, (found.low, found.high)
        near = next(abs(end) for end in (width, *ends) if math.isfinite(end))
        return found, 0.0, near

    def _margins(self, logs: bool) -> tuple[float, float]:
        margins = self.protocol.margins
        if logs:
            return math.log(margins.agree), math.log(margins.informative)
        return margins.difference or margins.agree, margins.difference or margins.informative

    def _ours(self, name: str, levels: Levels) -> Row:
        readings = self.estimates[name]
        try:
            found = readings[self.comparer.sample(name, levels).reading]
        except NotComparedError:
            found = fitting(readings, levels)
        return {} if found is None else _shown(found)


def _shown(estimate: Row) -> Row:
    """What the table shows of an estimate."""
    ours = {key: estimate[key] for key in ("units", "runs", "source")}
    return {**ours, "ours": estimate["value"], "ours_se": estimate["se"]}


def _with_error(found: Quantity) -> tuple[float, float]:
    """Value and standard error on the natural scale."""
    value = _natural(found.value, found.scale == "log")
    return value, found.sd * value if found.scale == "log" else found.sd


def _quantiles(found: Predictive, logs: bool) -> dict[str, float]:
    """Quantiles of the replayed number."""
    quantiles = np.array(found.quantiles(list(QUANTILES.values())))
    natural = np.exp(quantiles) if logs and not isinstance(found, Ratio) else quantiles
    return dict(zip(QUANTILES, natural, strict=True))


def count(number: float, noun: str) -> str:
    """A number of things in words: ``1 unit``, ``3 units``."""
    return f"{number:.3g} {noun}{'' if number == 1 else 's'}"


def _natural(value: float, logs: bool) -> float:
    return float(np.exp(min(value, 700.0))) if logs and value < math.inf else value
