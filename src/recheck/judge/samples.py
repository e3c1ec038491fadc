"""Our side of cells: values of runs by unit, and why there are none."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from recheck.judge.measures import COUNTED, OK, UNSEEN
from recheck.judge.shares import grid

if TYPE_CHECKING:
    import pandas as pd

#: Samples, and why there are none, by id and reading.
Samples = dict[str, dict[str, "Sample"]]
Statuses = dict[str, dict[str, str]]


class NotComparedError(Exception):
    """No comparison is possible. The reason is a text, or one of `recheck.judge.measures.UNSEEN`, then the verdict."""

    def __init__(self, why: str) -> None:
        super().__init__("" if why in UNSEEN else why)
        self.verdict = why if why in UNSEEN else "not comparable"


@dataclass(frozen=True, eq=False)
class Sample:
    """Our side of a cell under one reading: values of the runs that count, by unit."""

    id: str
    reading: str
    units: Mapping[str, np.ndarray]
    dropped: str = ""  # rows that do not count, and why

    @functools.cached_property
    def step(self) -> float:
        """Variance of a uniform value over a step of the grid on which the values lie."""
        return grid(np.concatenate(list(self.units.values()))) ** 2 / 12

    @property
    def coincides(self) -> bool:
        """Whether all values are one."""
        every = np.concatenate(list(self.units.values()))
        return len(every) > 1 and bool((every == every[0]).all())

    def coarse(self, scale: str, names: Sequence[str] | None = None) -> float:
        """What the grid adds to the variance of a unit's mean, on the scale ``log`` relative to their mean."""
        means = self.means(names)
        level = float(means.mean()) if scale == "log" else 1.0
        return self.step / self.runs(names) / max(level**2, 1e-300) if self.step else 0.0

    def means(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Means over runs of these units, or of all."""
        return np.array([self.units[name].mean() for name in names or self.units])

    def runs(self, names: Sequence[str] | None = None) -> float:
        """Harmonic mean of the runs a unit; exact, for it is compared with the printed number of runs."""
        counts = [len(self.units[name]) for name in names or self.units]
        return float(len(counts) / sum(Fraction(1, count) for count in counts))

    def statistic(self, scale: str, names: Sequence[str] | None = None) -> np.ndarray:
        """Means, or their logarithms on the scale ``log``."""
        means = self.means(names)
        if scale == "linear":
            return means
        if not (means > 0).all():
            raise NotComparedError(f"a unit of {self.id} has the mean zero")
        return np.log(means)


def samples_of(measures: pd.DataFrame, cells: Mapping[str, Any]) -> tuple[Samples, Statuses]:
    """Our side by id and reading, or why there is none."""
    samples: Samples = defaultdict(dict)
    statuses: Statuses = defaultdict(dict)
    wanted = measures["id"].isin(cells) | measures["id"].str.startswith("between/")
    rows = measures[wanted & measures["reading"].notna()]
    ids, readings, units, said = (
        rows[name].to_numpy() for name in ("id", "reading", "unit", "status")
    )
    values, ok = rows["value"].to_numpy(dtype=float), said == OK
    counts = ok & rows["se"].isna().to_numpy()
    # of arrays: a frame for each of thousands of groups takes longer than all that is made of it
    number = rows.groupby(["id", "reading"], sort=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(rows) else []:
        name, reading, good = ids[group[0]], readings[group[0]], group[counts[group]]
        if not len(good):
            status = str(rows["status"].iloc[group].value_counts().index[0])
            own = "rows have standard errors of their own: needed is a row for each unit or run, without se"
            statuses[name][reading] = own if status in COUNTED else status
            continue
        of_unit = {unit: values[good[units[good] == unit]] for unit in dict.fromkeys(units[good])}
        lost = said[group[~ok[group]]]
        dropped = f"{len(lost)} of {len(group)} rows left out ({lost[0]})" if len(lost) else ""
        samples[name][reading] = Sample(name, reading, of_unit, dropped)
    return samples, statuses


def linked(samples: Sequence[Sample]) -> list[list[str]]:
    """Cells in groups that share units."""
    groups: list[list[Sample]] = []
    for sample in samples:
        common = [some for some in groups if any(one.units.keys() & sample.units for one in some)]
        groups = [some for some in groups if some not in common]
        groups.append([*chain(*common), sample])
    return [[one.id for one in some] for some in groups]
