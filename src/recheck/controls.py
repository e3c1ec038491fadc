"""Controls: faults of known size that are planted, and how many of them the judge finds.

shifted cell
    A published cell of each column is off by the factor that is found with the protocol's power (``detectable``), or by
    its square root (``half``), which is rarely found.
swapped pair
    Two published numbers of each column change places, those with the largest ratio.
biased truth
    All our measures of a column are off by the factor that is found with the protocol's power in the column.
dropped row
    A verdict is left out, which the count has to refuse; all measures of a cell are left out, which has to read
    "not run".

A planted fault is found if Holm's test over the family rejects its cell or its column. `expected` is the sum of the
probabilities of that, under the replayed design. Columns have data of their own, so that trials of different columns
are taken as independent. An interval of 95 % for the number found goes with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from recheck.compare import Comparer, NotComparedError
from recheck.judge import check, holm, judge
from recheck.measures import estimate
from recheck.published import Published

__all__ = ["COLUMNS", "controls"]

COLUMNS = ["control", "trials", "expected", "low", "high", "found", "as_expected", "places"]
#: Rows that are left out in turn.
_DROPPED = 10


class _Planted:
    """Trials of one control: where, with what chance, and whether it was found."""

    def __init__(self, control: str) -> None:
        self.control = control
        self.trials: list[tuple[str, float, bool]] = []

    def add(self, place: str, chance: float, found: bool) -> None:
        self.trials.append((place, chance, found))

    def row(self) -> dict[str, object]:
        chances = np.array([chance for _, chance, _ in self.trials])
        found = sum(found for _, _, found in self.trials)
        low, high = _range(chances)
        return {
            "control": self.control,
            "trials": len(chances),
            "expected": float(chances.sum()),
            "low": low,
            "high": high,
            "found": found,
            "as_expected": low <= found <= high,
            "places": "; ".join(place for place, _, _ in self.trials),
        }


def _range(chances: np.ndarray) -> tuple[int, int]:
    """Interval of 95 % for the number of independent events with these chances."""
    density = np.ones(1)
    for chance in chances:
        density = np.convolve(density, [1 - chance, chance])
    total = density.cumsum()
    low = int(np.searchsorted(total, 0.025, side="right"))
    return low, int(np.searchsorted(total, 0.975 - 1e-12))


def controls(
    measures: pd.DataFrame, verdicts: pd.DataFrame, published: Published, seed: int
) -> pd.DataFrame:
    """Plant faults, few of each kind.

    Parameters
    ----------
    measures : DataFrame
        `recheck.measures.COLUMNS`.
    verdicts : DataFrame
        `recheck.judge.Verdicts.frame` of them.
    published : Published
    seed : int
        Of the judge.

    Returns
    -------
    DataFrame
        `COLUMNS`, one row a control.
    """
    family = next(kinds for kinds in published.protocol.families.values() if "cell" in kinds)
    rows = verdicts[verdicts["kind"].isin(family) & verdicts["p"].notna()]
    judged = _Family(rows, published, Comparer(measures, published, seed))
    shifted = [_Planted("shifted cell, detectable"), _Planted("shifted cell, half")]
    swapped, biased = _Planted("swapped pair"), _Planted("biased truth")
    for place, (column, cells) in enumerate(judged.columns().items()):
        sign = 1.0 if place % 2 else -1.0
        for planted, part in zip(shifted, (1.0, 0.5), strict=True):
            judged.shift(planted, cells, part * sign)
        judged.swap(swapped, cells)
        judged.bias(biased, column, cells, measures, seed, sign)
    left_out = _dropped(measures, verdicts, published, seed)
    found = [*shifted, swapped, biased, left_out]
    return pd.DataFrame([one.row() for one in found if one.trials], columns=COLUMNS)


class _Family:
    """The family of the numbers, with what a planted fault changes of it."""

    def __init__(self, rows: pd.DataFrame, published: Published, comparer: Comparer) -> None:
        self.published, self.comparer, self.protocol = published, comparer, published.protocol
        self.p = dict(zip(rows["id"], rows["p"].astype(float), strict=True))
        self.detectable = dict(zip(rows["id"], rows["detectable"].astype(float), strict=True))
        self.clean = set(rows["id"][rows["verdict"] != "differs"])
        self.level = self.protocol.family_error / len(self.p) if len(self.p) else 1.0

    def columns(self) -> dict[str, list[str]]:
        """Cells by column to which no reading applies and which do not differ, on the scale ``log``."""
        found = {}
        for column, ids in self.comparer.columns.items():
            cells = [
                name
                for name in ids
                if name in self.clean
                and self.comparer.cells[name]["scale"] == "log"
                and self.published.combinations([name], "runs") == [{}]
            ]
            if cells:
                found[column] = cells
        return found

    def rejects(self, changed: dict[str, float]) -> bool:
        """Whether Holm's test rejects one of these hypotheses with p-values changed."""
        p = {**self.p, **changed}
        adjusted = dict(zip(p, holm(np.array(list(p.values()))), strict=True))
        return any(adjusted[name] <= self.protocol.family_error for name in changed)

    def shift(self, planted: _Planted, cells: Sequence[str], part: float) -> None:
        """Move the cell of a column with the smallest detectable factor by a power of this factor."""
        able = [name for name in cells if math.isfinite(self.detectable[name])]
        if not able:
            return
        name = min(able, key=lambda one: self.detectable[one])
        factor = self.detectable[name] ** part
        chance = self.comparer.cell(name, {}).power(-math.log(factor), self.level)
        p = self.comparer.altered({name: factor}).cell(name, {}).p
        planted.add(name, chance, self.rejects({name: p}))

    def swap(self, planted: _Planted, cells: Sequence[str]) -> None:
        """Exchange the smallest and the largest number of a column."""
        values = {name: self.comparer.cells[name]["value"] for name in cells}
        pair = (min(cells, key=values.__getitem__), max(cells, key=values.__getitem__))
        if values[pair[0]] == values[pair[1]]:
            return
        ratio = values[pair[1]] / values[pair[0]]
        factors = {pair[0]: ratio, pair[1]: 1 / ratio}
        missed = [
            1 - self.comparer.cell(name, {}).power(-math.log(factor), self.level)
            for name, factor in factors.items()
        ]
        altered = self.comparer.altered(factors)
        found = self.rejects({name: altered.cell(name, {}).p for name in pair})
        # the cells of a pair share units: both are found or missed together in part, the bolder one decides
        planted.add(" and ".join(pair), 1 - min(missed), found)

    def bias(
        self,
        planted: _Planted,
        column: str,
        cells: Sequence[str],
        measures: pd.DataFrame,
        seed: int,
        sign: float,
    ) -> None:
        """Multiply all our measures of a column, and compare it again."""
        factor = self.detectable.get(column, math.inf)
        if not math.isfinite(factor) or column not in self.clean:
            return
        factor **= sign
        rows = measures[measures["id"].isin(cells)]
        wrong = Comparer(rows.assign(value=rows["value"] * factor), self.published, seed)
        designs = self.published.combinations(cells, "design")
        try:
            before = [self.comparer.column(column, cells, one) for one in designs]
            after = [wrong.column(column, cells, one) for one in designs]
        except NotComparedError:
            return
        chance = min(one.power(math.log(factor), self.level) for one in before)
        planted.add(column, chance, self.rejects({column: max(one.p for one in after)}))


def _dropped(
    measures: pd.DataFrame, verdicts: pd.DataFrame, published: Published, seed: int
) -> _Planted:
    """Leave verdicts out, one at a time, and the measures of one cell."""
    planted = _Planted("dropped row")
    rng = np.random.default_rng(seed)
    registered = verdicts[verdicts["kind"].isin(["cell", "claim"])]
    for place in rng.permutation(len(registered))[:_DROPPED]:
        row = registered.iloc[int(place)]
        rest = verdicts[verdicts["id"] != row["id"]]
        planted.add(row["id"], 1.0, _refused(rest, published))
    cells = verdicts[(verdicts["kind"] == "cell") & verdicts["p"].notna()]
    if len(cells):
        name = str(cells["id"].iloc[int(rng.integers(len(cells)))])
        column = published.cells.loc[name, "column"]
        some = published.cells["column"] == column
        part = Published(published.cells[some], (), published.readings, published.protocol)
        rest = measures[measures["id"].isin(part.cells.index) & (measures["id"] != name)]
        frame = judge(rest, estimate(rest), part, seed).frame.set_index("id")
        found = frame.loc[name, "verdict"] == "not run" and len(frame.index) >= int(some.sum())
        planted.add(f"measures of {name}", 1.0, bool(found))
    return planted


def _refused(verdicts: pd.DataFrame, published: Published) -> bool:
    try:
        check(verdicts, published)
    except ValueError:
        return True
    return False
