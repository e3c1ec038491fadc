"""Outcomes: every hypothesis of a study under each of its readings, with what the table of verdicts shows of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from recheck.judge.claims import Quantity, quantity
from recheck.judge.compare import Comparer, Levels
from recheck.judge.format import count, plain
from recheck.judge.measures import COUNTED, fitting, join_sources, levels_of, reading_text
from recheck.judge.published import SPREAD, inside
from recheck.judge.replay import Predictive, Ratio
from recheck.judge.samples import NotComparedError
from recheck.judge.shares import Shares

if TYPE_CHECKING:
    import pandas as pd

    from recheck.judge.published import Claim, Contrast, Published
    from recheck.judge.samples import Sample

#: Columns of the quantiles of the replayed number.
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}

Row = dict[str, Any]
#: The note of a cell whose region is what rounds to it.
ROUNDED = "judged by its rounding"
#: Units of ours that show a share of failing runs of a twentieth.
_SEEN = 59
#: What was compared, the effect within which it agrees, and the detectable effect within which it is informative.
Compared = tuple[Predictive | Quantity, float, float]


def outcomes(
    measures: pd.DataFrame, estimates: pd.DataFrame, published: Published, seed: int
) -> pd.DataFrame:
    """All hypotheses under all of their readings, a row each, for `recheck.judge.verdicts.judge`.

    ``row`` has the entries that the table shows, ``found`` what was compared; ``verdict`` says why nothing was. ``p``
    is that of the hypothesis that it is as published, ``p_agree`` that it is outside the margin. It ``scatters`` if the
    cells of a column differ too much to be summarised. A detectable effect within ``informative`` is informative.
    """
    import pandas as pd

    study, found = _Study(measures, estimates, published, seed), list[Row]()
    readings = measures.groupby("id")["reading"].unique()

    def add(kind: str, name: str, ids: Sequence[str], *given: Any) -> None:
        # levels of a design belong to contrasts and columns
        kinds = ["runs"] if kind in ("cell", "claim", "spread") else []
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
    for name, error in published.cells["error"].items() if published.protocol.spreads else ():
        if error > 0 and study.comparer.units(str(name)) > 2:
            add("spread", str(name), [str(name)])
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
        shown_id = f"{name}/sd" if kind == "spread" else name
        whole = {"id": shown_id, "kind": kind, "reading": reading_text(levels), "row": row}
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
        logs, center = row["scale"] == "log", shown.center
        if scatters:
            center = float(cells.mean())
        row |= {"effect": center, "sd": shown.sd, "df": shown.df}
        row |= {"low": natural(low, logs), "high": natural(high, logs)}
        row["heterogeneity_p"] = found.heterogeneity
        tests = {"p": found.p, "p_agree": found.p_agree(margin), "informative": informative}
        return {**whole, "found": found, "scatters": scatters, "verdict": "", **tests}

    def cell(self, row: Row, name: str, levels: Levels) -> Compared:
        cell = self.cells[name]
        row |= {key: cell[key] for key in ("table", "printed", "scale")}
        row |= {"published": cell["value"], **self._ours(name, levels)}
        if (known := self._rounded(name, levels)) is not None:
            row["note"] = ROUNDED
            return known, 0.0, cell["rounding"]
        found, own = self.comparer.cell(name, levels), self.comparer.sample(name, levels)
        self.compared[name].append(levels)
        row["note"] = cell_note(cell, own, found)
        logs, step = row["scale"] == "log", 2 * cell["rounding"]
        quantiles = _quantiles(found, logs)
        row |= {key: np.round(value / step) * step for key, value in quantiles.items()}
        return found, *self._margins(logs)

    def spread(self, row: Row, name: str, levels: Levels) -> Compared:
        """The printed deviation between units beside ours: it agrees within a factor of two."""
        cell = self.cells[name]
        row |= {
            "table": cell["table"],
            "scale": "log",
            "printed": cell["bracket"].strip("()[] "),
        }
        row |= {"published": cell["error"] * math.sqrt(cell["units"])} | self._ours(name, levels)
        found, means = (
            self.comparer.spread(name, levels),
            self.comparer.sample(name, levels).means(),
        )
        row |= {"ours": float(means.std(ddof=1)), "ours_se": math.nan}
        row["note"] = f"deviations between {count(cell['units'], 'unit')} and {len(means)} of ours"
        return found, math.log(SPREAD), math.log(SPREAD)

    def _rounded(self, name: str, levels: Levels) -> Quantity | None:
        """A cell on the scale ``linear`` whose estimate has its own error: the region is what rounds to the number."""
        cell, estimate = self.cells[name], fitting(self.estimates[name], levels)
        rows = None if estimate is None else self.rows.get((name, estimate["reading"]))
        if rows is None or cell["scale"] != "linear" or not rows["status"].isin(COUNTED).any():
            return None
        return quantity(inside(cell), estimate, rows)

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
            "ours": natural(found.published + found.center, logs),
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
        import pandas as pd

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
        agree, informative = self.protocol.margins.on("log" if logs else "linear")
        return (math.log(agree), math.log(informative)) if logs else (agree, informative)

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
    value = natural(found.value, found.scale == "log")
    return value, found.sd * value if found.scale == "log" else found.sd


def _quantiles(found: Predictive, logs: bool) -> dict[str, float]:
    """Quantiles of the replayed number."""
    quantiles = np.array(found.quantiles(list(QUANTILES.values())))
    natural = np.exp(quantiles) if logs and not isinstance(found, Ratio) else quantiles
    return dict(zip(QUANTILES, natural, strict=True))


def proved(
    verdict: str, found: Any, interval: tuple[float, float], detectable: float, logs: bool
) -> tuple[float, float]:
    """The detectable factor (or difference), infinite where none is; what a verdict proves or would find."""
    shown, factor, (low, high) = detectable, math.nan, interval
    if logs:
        shown = math.inf if detectable > 40 else math.exp(detectable)
    if verdict == "undecided":
        factor = shown
    elif verdict == "agrees" and isinstance(found, Predictive):
        factor = max(high, 1 / low) if logs else max(abs(low), abs(high))
    return shown, factor


def cell_note(cell: Row, own: Sample, found: Predictive) -> str:
    """How a cell was compared, and what that cannot promise."""
    parts = [
        f"ours: {count(len(own.units), 'unit')} with {count(own.runs(), 'run')}",
        f"published: {count(cell['units'], 'unit')} with {count(cell['runs'], 'run')}",
    ]
    if isinstance(found, Shares):
        (k, n), (j, m) = found.ours, found.theirs
        parts = [f"ours: {k} of {n} items", f"published: {j} of {m}"]
        if not cell["low"] <= j / m <= cell["high"]:
            parts.append(f"no share of {m} prints as {cell['printed']}")
    elif own.coincides:
        parts.append("ours do not vary: without chance in them, give one value with se 0")
    elif len(own.units) == 1 and cell["error"] > 0:
        parts.append("one value of ours is taken to vary as the published ones do")
    elif found.p <= 0.05 and not found.ranks and len(own.units) < _SEEN:
        # (1 - share)^n = 5 %
        unseen = 1 - 0.05 ** (1 / len(own.units))
        parts.append(f"{unseen:.0%} of runs could fail unseen among ours")
    ratio = abs(float(own.means().mean()) / cell["value"]) if cell["value"] else 0.0
    if 60 < ratio < 160 or 60 < 1 / max(ratio, 1e-300) < 160:
        times = "100 times" if ratio > 1 else "a hundredth of"
        parts.append(f"ours are about {times} what was printed: is one in percent?")
    return "; ".join([*parts, *([own.dropped] if own.dropped else [])])


def natural(value: float, logs: bool) -> float:
    """A value, of which the logarithm is given where `logs` says so, without an overflow."""
    return float(np.exp(min(value, 700.0))) if logs and value < math.inf else value
