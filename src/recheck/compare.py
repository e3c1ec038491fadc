"""Cells and contrasts: our units beside a printed number, as `recheck.replay` compares them.

What cannot be compared
    One unit of ours beside one published unit says nothing about how much units differ. Such a cell is not comparable,
    unless a measure ``between/...`` gives the distribution between units. Where the paper averaged over more runs than
    one and ours is one run a unit, the noise of runs cannot be told from the variation between units: that is
    not comparable either, unless other cells of the column that share these units have repeated runs.
What is pooled
    Cells of one column that share units have the same relative variation between units and between runs. Both are
    pooled over these cells, as their sample sizes change an error by a factor that is common to all units.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recheck.measures import COUNTED, OK, UNSEEN, levels_of
from recheck.predictive import Predictive, Sampler
from recheck.published import STANDARD_ERROR, Contrast, Published
from recheck.replay import (
    Between,
    Noise,
    RunNoise,
    one_unit,
    printed_error,
    run_noise,
    several_units,
)

__all__ = ["Comparer", "NotComparedError", "Sample"]


class NotComparedError(Exception):
    """No comparison is possible: `verdict` is one of `recheck.measures.UNSEEN`, the text says why."""

    def __init__(self, verdict: str, why: str) -> None:
        super().__init__(why)
        self.verdict = verdict


@dataclass(frozen=True, eq=False)
class Sample:
    """Our side of a cell under one reading.

    Attributes
    ----------
    id, reading, scale : str
    units : mapping of str to ndarray
        Values of the runs that count, by unit.
    """

    id: str
    reading: str
    scale: str
    units: Mapping[str, np.ndarray]

    def means(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Means over runs of these units, or of all."""
        return np.array([self._mean[name] for name in names or self.units])

    @functools.cached_property
    def _mean(self) -> dict[str, float]:
        return {name: float(values.mean()) for name, values in self.units.items()}

    def runs(self, names: Sequence[str] | None = None) -> float:
        """Harmonic mean of the runs a unit."""
        return 1.0 / float(np.mean([1.0 / len(self.units[name]) for name in names or self.units]))

    def statistic(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Means, or their logarithms on the scale ``log``.

        Raises
        ------
        NotComparedError
            A mean is zero.
        """
        means = self.means(names)
        if self.scale == "linear":
            return means
        if not (means > 0).all():
            raise NotComparedError("not comparable", f"a unit of {self.id} has the mean zero")
        return np.log(means)


class Comparer:
    """Compares cells and contrasts of a study.

    Parameters
    ----------
    measures : DataFrame
        `recheck.measures.COLUMNS`.
    published : Published
    seed : int
    """

    def __init__(self, measures: pd.DataFrame, published: Published, seed: int) -> None:
        self.published, self.seed = published, seed
        self.cells: dict[str, dict[str, Any]] = published.cells.to_dict("index")
        self._status: dict[str, dict[str, str]] = {}
        self._samples: dict[str, dict[str, Sample]] = {}
        self._pools: dict[tuple[str, str], tuple[Between | None, Noise]] = {}
        self._noises: dict[frozenset[tuple[str, str]], Noise] = {}
        self._columns = {
            str(name): list(ids)
            for name, ids in published.cells.groupby("column", sort=False).groups.items()
        }
        wanted = measures["id"].isin(self.cells) | measures["id"].str.startswith("between/")
        for (name, reading), rows in measures[wanted].groupby(["id", "reading"], sort=False):
            good = rows[(rows["status"] == OK) & rows["se"].isna()]
            if good.empty:
                status = str(rows["status"].value_counts().index[0])
                own = "rows have standard errors of their own and are no runs of units"
                self._status.setdefault(name, {})[reading] = own if status in COUNTED else status
                continue
            values, names = good["value"].to_numpy(dtype=float), good["unit"].to_numpy()
            units = {unit: values[names == unit] for unit in dict.fromkeys(names)}
            scale = self.cells.get(name, {"scale": rows["scale"].iloc[0]})["scale"]
            sample = Sample(name, reading, scale, units)
            self._samples.setdefault(name, {})[reading] = sample
        self._cheap = [name for name in self._samples if name.startswith("between/")]

    def sampler(self, name: str) -> Sampler:
        """Draws for one comparison."""
        return Sampler(self.seed, name)

    def columns(self) -> dict[str, list[str]]:
        """Ids of cells by column."""
        return self._columns

    def sample(self, name: str, levels: Mapping[str, str]) -> Sample:
        """Our side of a cell: of the rows whose levels are among those asked for, those with the most.

        Raises
        ------
        NotComparedError
            No row counts, with the status of the rows.
        """
        found = _fitting(self._samples.get(name, {}), levels)
        if found is not None:
            return found
        status = _fitting(self._status.get(name, {}), levels) or "not run"
        verdict = status if status in UNSEEN else "not comparable"
        raise NotComparedError(verdict, "" if status in UNSEEN else status)

    def relatives(self, name: str, levels: Mapping[str, str]) -> list[Sample]:
        """Samples of the column's cells that share a unit with this one and have its design, itself first."""
        own = self.sample(name, levels)
        if self.cells[name]["scale"] == "linear":
            return [own]
        found = [own]
        for other in self._columns[self.cells[name]["column"]]:
            sample = _fitting(self._samples.get(other, {}), levels)
            if (
                other != name
                and sample is not None
                and not own.units.keys().isdisjoint(sample.units)
            ):
                found.append(sample)
        return found

    def pool(self, name: str, levels: Mapping[str, str]) -> tuple[Between | None, Noise]:
        """Variation between units and between runs; None without two units."""
        own = self.sample(name, levels)
        key = (name, own.reading)
        if key not in self._pools:
            samples = self.relatives(name, levels)
            same = frozenset((sample.id, sample.reading) for sample in samples)
            if same not in self._noises:
                runs = [values for sample in samples for values in sample.units.values()]
                self._noises[same] = Noise.of_units(runs, own.scale)
            noise = self._noises[same]
            self._pools[key] = self._between(samples, noise), noise
        return self._pools[key]

    def _between(self, samples: Sequence[Sample], noise: Noise) -> Between | None:
        own = samples[0]
        several = [sample for sample in samples if len(sample.units) > 1]
        cheap = self._elsewhere(own)
        if cheap is not None and len(cheap.units) > max(len(own.units), 1):
            cheap = Sample(cheap.id, "", own.scale, cheap.units)
            return Between(float(cheap.statistic().var(ddof=1)), len(cheap.units) - 1.0)
        if not several:
            return None
        n = np.array([len(sample.units) for sample in several], dtype=float)
        variances = np.array([sample.statistic().var(ddof=1) for sample in several])
        contained = np.array([noise.of_mean(sample.runs())[1] for sample in several])
        base = max(float(np.average(variances - contained, weights=n - 1)), 0.1 * contained.mean())
        weights = (n - 1) / np.maximum(base + contained, 1e-300) ** 2
        variance, inside = (np.average(x, weights=weights) for x in (variances, contained))
        return Between(float(variance), float(n.max() - 1), float(inside))

    def _elsewhere(self, own: Sample) -> Sample | None:
        """The distribution between units that was measured elsewhere, under the id that says most of the cell's."""
        names = [
            (name.count("/"), name)
            for name in self._cheap
            if _within(name.split("/")[1:], own.id.split("/"))
        ]
        found = _fitting(self._samples[max(names)[1]], levels_of(own.reading)) if names else None
        return found if isinstance(found, Sample) else None

    def known_noise(self, name: str, levels: Mapping[str, str], noise: Noise) -> None:
        """Refuse a cell whose published runs differ from ours in number where the noise of runs is unknown.

        Raises
        ------
        NotComparedError
        """
        runs, theirs = self.sample(name, levels).runs(), self.cells[name]["runs"]
        if not noise.df and runs != theirs:
            why = f"ours is one run a unit and theirs {theirs}: the noise of runs is unknown"
            raise NotComparedError("not comparable", why)

    def cell(self, name: str, levels: Mapping[str, str]) -> Predictive:
        """Compare one cell.

        Parameters
        ----------
        name : str
            Its id.
        levels : mapping of str to str
            Levels by choice.

        Raises
        ------
        NotComparedError
        """
        row, own = self.cells[name], self.sample(name, levels)
        sampler = self.sampler(f"{name}@{own.reading}")
        if row["bracket_kind"] == STANDARD_ERROR:
            n, means = len(own.units), own.means()
            if n < 2 or not means.mean() > 0:
                raise NotComparedError("not comparable", "one unit only: no standard error of ours")
            ours = (float(means.mean()), float(means.std(ddof=1) / math.sqrt(n)), n - 1.0)
            theirs = (row["value"], row["bracket_value"], row["units"] - 1.0)
            return printed_error(ours, theirs, row["rounding"] ** 2 / 3, sampler)
        if row["units"] > 1:
            return self._several(name, own, levels, sampler)
        between, noise = self.pool(name, levels)
        self.known_noise(name, levels, noise)
        if between is None:
            why = "one unit on each side, and the variation between units was not measured"
            raise NotComparedError("not comparable", why)
        terms = run_noise([(1.0, noise, own.runs(), float(row["runs"]))])
        value = math.log(row["value"]) if own.scale == "log" else row["value"]
        effect = float(own.statistic().mean()) - value
        rounding = self.rounding(name)
        return one_unit(effect, value, len(own.units), between, terms, sampler, rounding=rounding)

    def rounding(self, name: str) -> float:
        """Variance of rounding, relative on the scale ``log``."""
        row = self.cells[name]
        relative = row["value"] if row["scale"] == "log" else 1.0
        return float((row["rounding"] / relative) ** 2 / 3)

    def _several(
        self, name: str, own: Sample, levels: Mapping[str, str], sampler: Sampler
    ) -> Predictive:
        row, means, n = self.cells[name], own.means(), len(own.units)
        _, noise = self.pool(name, levels)
        self.known_noise(name, levels, noise)
        if n < 2 or (own.scale == "log" and not means.mean() > 0):
            raise NotComparedError("not comparable", "one unit only: no variation between units")
        relative = means.mean() if own.scale == "log" else 1.0
        terms = run_noise([(1.0, noise.plain, own.runs(), float(row["runs"]))])
        between = Between(float(means.var(ddof=1) / relative**2), n - 1.0, terms.ours)
        value = math.log(row["value"]) if own.scale == "log" else row["value"]
        effect = (math.log(means.mean()) if own.scale == "log" else means.mean()) - value
        counts, rounding = (n, row["units"]), self.rounding(name)
        return several_units(effect, value, counts, between, terms, sampler, rounding=rounding)

    def contrast(
        self, name: str, pair: tuple[str, str], rule: Contrast, levels: Mapping[str, str]
    ) -> Predictive:
        """Compare a difference of two cells on the same units.

        Parameters
        ----------
        name : str
            Id of the contrast.
        pair : (str, str)
            Ids of the cells.
        rule : Contrast
        levels : mapping of str to str
            With ``instances=fresh`` the published cells are taken for ones on different units.

        Raises
        ------
        NotComparedError
        """
        rows = [self.cells[one] for one in pair]
        if any(row["units"] > 1 for row in rows):
            raise NotComparedError(
                "not comparable", "published means over several units are not paired"
            )
        samples = [self.sample(one, levels) for one in pair]
        samples = [Sample(s.id, s.reading, rule.scale, s.units) for s in samples]
        common = [unit for unit in samples[0].units if unit in samples[1].units]
        if len(common) < 2:
            raise NotComparedError("not comparable", f"the cells share {len(common)} units of ours")
        terms = self._noise_of_difference(pair, samples, common, levels)
        logs = rule.scale == "log"
        values = [math.log(row["value"]) if logs else row["value"] for row in rows]
        relative = [row["rounding"] / (row["value"] if logs else 1.0) for row in rows]
        rounding = sum(one**2 for one in relative) / 3
        first, second = (sample.statistic(common) for sample in samples)
        df, published = len(common) - 1.0, values[0] - values[1]
        effect = float((first - second).mean()) - published
        between = Between(float((first - second).var(ddof=1)), df, terms.ours)
        fresh = None
        if levels.get("instances") == "fresh":
            fresh = Between(float(first.var(ddof=1) + second.var(ddof=1)), df, terms.ours)
        sampler, n = self.sampler(f"{name}@{samples[0].reading}"), len(common)
        return one_unit(
            effect, published, n, between, terms, sampler, rounding=rounding, fresh=fresh
        )

    def _noise_of_difference(
        self,
        pair: tuple[str, str],
        samples: Sequence[Sample],
        common: Sequence[str],
        levels: Mapping[str, str],
    ) -> RunNoise:
        """Noise of runs in a difference of two cells on these units."""
        terms = []
        for sign, name, sample in zip((1.0, -1.0), pair, samples, strict=True):
            noise = Noise.of_units(list(sample.units.values()), sample.scale)
            if sample.scale == "log":
                noise = self.pool(name, levels)[1]
            self.known_noise(name, levels, noise)
            terms.append((sign, noise, sample.runs(common), float(self.cells[name]["runs"])))
        return run_noise(terms)


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether components occur in the same order, with the first and the last in common."""
    rest = iter(whole)
    return part[0] == whole[0] and part[-1] == whole[-1] and all(one in rest for one in part)


def _fitting(by_reading: Mapping[str, Any], levels: Mapping[str, str]) -> Any:
    """The entry whose levels are all asked for, with the most of them; None without one."""
    fits = [
        (len(own), reading)
        for reading in by_reading
        if (own := levels_of(reading)).items() <= levels.items()
    ]
    return by_reading[max(fits)[1]] if fits else None
