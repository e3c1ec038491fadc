"""Controls: faults of known size that are planted, and how many of them the judge finds.

- Shifted cell: a published cell of each column is off by the factor that is found with the protocol's power
  (``detectable``), or by its square root (``half``), which is rarely found.
- Swapped pair: the two published numbers of a column with the largest ratio change places.
- Biased truth: all our measures of a column are off by the factor that is found with the protocol's power in it.
- Dropped row: a verdict is left out, which `check` has to refuse, or all measures of a cell: it has to be "not run".

A planted fault is found if Holm's test over the family rejects its cell or its column. `expected` is the sum of the
probabilities of that under the replayed design, `low` and `high` an interval of 95 % for the number found; trials of
different columns are taken as independent.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np
import pandas as pd

from recheck.judge.compare import Comparer
from recheck.judge.measures import estimate
from recheck.judge.published import Published
from recheck.judge.samples import NotComparedError
from recheck.judge.verdicts import check, holm, judge

COLUMNS = ["control", "trials", "expected", "low", "high", "found", "as_expected", "places"]
_CONTROLS = [
    *("shifted cell, detectable", "shifted cell, half", "swapped pair"),
    *("biased truth", "dropped row"),
]
#: Rows that are left out in turn.
_DROPPED = 10

#: A trial: the control, where the fault was planted, the probability that it is found, whether it was.
Trial = tuple[str, str, float, bool]


def controls(
    measures: pd.DataFrame, verdicts: pd.DataFrame, published: Published, seed: int
) -> pd.DataFrame:
    """Plant faults, few of each kind, in measures that have these verdicts; a row a control, with `COLUMNS`."""
    from scipy.stats import poisson_binom

    planted, rows = _Planted(measures, verdicts, published, seed), []
    trials = [*planted.shifted(), *planted.dropped()]
    for control in _CONTROLS:
        own = [trial[1:] for trial in trials if trial[0] == control]
        if own:
            places, chances, found = zip(*own, strict=True)
            low, high = map(int, poisson_binom(chances).interval(0.95))
            numbers = [len(own), float(sum(chances)), low, high, sum(found)]
            rows.append([control, *numbers, low <= sum(found) <= high, "; ".join(places)])
    return pd.DataFrame(rows, columns=COLUMNS)


class _Planted:
    """Faults in the family of the numbers, a few a column."""

    def __init__(
        self, measures: pd.DataFrame, verdicts: pd.DataFrame, published: Published, seed: int
    ) -> None:
        self.measures, self.verdicts, self.published = measures, verdicts, published
        self.seed = seed
        self.comparer = Comparer(measures, published, seed)
        kinds = next(kinds for kinds in published.protocol.families.values() if "cell" in kinds)
        # cells without a part of chance are in no family
        tested = verdicts["kind"].isin(kinds) & verdicts["p"].notna() & (verdicts["sd"] != 0)
        rows = verdicts[tested].set_index("id")
        self.p, self.detectable = rows["p"].astype(float), rows["detectable"].astype(float)
        self.clean = set(rows.index[rows["verdict"] != "differs"])
        self.level = published.protocol.family_error / max(len(rows), 1)

    def shifted(self) -> Iterator[Trial]:
        """Faults in cells to which no reading applies and which do not differ, on the scale ``log``."""
        cells, signs = self.comparer.cells, cycle((-1.0, 1.0))
        for column, ids in self.comparer.columns.items():
            usable = [
                name
                for name in ids
                if name in self.clean
                and cells[name]["scale"] == "log"
                and self.published.combinations([name], "runs") == [{}]
            ]
            if not usable:
                continue
            sign = next(signs)
            # the cell of a column with the smallest detectable factor is off by a power of this factor
            name = self.detectable[usable].idxmin()
            if math.isfinite(self.detectable[name]):
                for control, part in (("detectable", sign), ("half", 0.5 * sign)):
                    factors = {name: self.detectable[name] ** part}
                    yield f"shifted cell, {control}", name, *self._altered(factors)
            # the smallest and the largest number of a column change places
            values = {cell: cells[cell]["value"] for cell in usable}
            small, large = min(usable, key=values.__getitem__), max(usable, key=values.__getitem__)
            if values[small] < values[large]:
                ratio = values[large] / values[small]
                found = self._altered({small: ratio, large: 1 / ratio})
                yield "swapped pair", f"{small} and {large}", *found
            yield from self._biased(column, usable, sign)

    def _altered(self, factors: Mapping[str, float]) -> tuple[float, bool]:
        """The chance that printed numbers which are off by factors are found, and whether they are.

        Cells that share units are found or missed together in part: the bolder fault decides.
        """
        before, after = (
            {name: one.cell(name, {}) for name in factors}
            for one in (self.comparer, self.comparer.altered(factors))
        )
        chances = [before[n].power(-math.log(factor), self.level) for n, factor in factors.items()]
        return max(chances), self._rejects({name: one.p for name, one in after.items()})

    def _biased(self, column: str, cells: Sequence[str], sign: float) -> Iterator[Trial]:
        """All our measures of a column times its detectable factor."""
        factor = self.detectable.get(column, math.inf)
        if not math.isfinite(factor) or column not in self.clean:
            return
        factor **= sign
        rows = self.measures[self.measures["id"].isin(cells)]
        wrong = Comparer(rows.assign(value=rows["value"] * factor), self.published, self.seed)
        designs = self.published.combinations(cells, "design")
        try:
            before = [self.comparer.column(column, cells, one) for one in designs]
            after = [wrong.column(column, cells, one) for one in designs]
        except NotComparedError:
            return
        chance = min(one.power(math.log(factor), self.level) for one in before)
        yield "biased truth", column, chance, self._rejects({column: max(one.p for one in after)})

    def _rejects(self, changed: Mapping[str, float]) -> bool:
        """Whether Holm's test rejects one of these hypotheses with p-values changed."""
        p = pd.Series({**self.p, **changed})
        adjusted = pd.Series(holm(p.to_numpy()), p.index)[[*changed]]
        return bool((adjusted <= self.published.protocol.family_error).any())

    def dropped(self) -> Iterator[Trial]:
        """Leave verdicts out, one at a time, and the measures of one cell."""
        rng, verdicts, published = np.random.default_rng(self.seed), self.verdicts, self.published
        registered = verdicts["id"][verdicts["kind"].isin(["cell", "claim"])]
        for name in registered.iloc[rng.permutation(len(registered))[:_DROPPED]]:
            found = False
            try:
                check(verdicts[verdicts["id"] != name], published)
            except ValueError:
                found = True
            yield "dropped row", name, 1.0, found
        cells = verdicts["id"][(verdicts["kind"] == "cell") & verdicts["p"].notna()]
        if len(cells):
            name = str(cells.iloc[int(rng.integers(len(cells)))])
            column = published.cells["column"]
            some = replace(published, cells=published.cells[column == column[name]], claims=())
            own = self.measures["id"].isin(some.cells.index) & (self.measures["id"] != name)
            rest = self.measures[own]
            frame = judge(rest, estimate(rest), some, self.seed).frame.set_index("id")
            found = frame.loc[name, "verdict"] == "not run" and len(frame) >= len(some.cells)
            yield "dropped row", f"measures of {name}", 1.0, bool(found)
