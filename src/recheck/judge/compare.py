"""Cells, contrasts and columns: weighted sums of cells on units of ours, beside the same sums of printed numbers.

What cannot be compared
    One unit of ours says nothing about how much units differ, unless a measure ``between/...`` does. One run a unit of
    ours beside several of theirs does not tell the noise of runs from the variation between units, unless other cells
    of the column that share these units have repeated runs.
What varies at least
    Values on a grid (`recheck.judge.shares.grid`) vary by its steps. Where all of ours coincide, "differs" needs as
    many of ours as their order alone would: a value that comes up in one run of five is not seen in three.
What is pooled
    Cells of one column that share units have the same relative variation between units and between runs. Both are
    pooled over these cells, as their sample sizes change an error by a factor that is common to all units.
Columns
    The mean is taken unit by unit over the cells that share units, and over independent groups of such cells. Every
    cell should be drawn as ours are. Two tests look at that, one of the mean and one of the scatter about the mean
    (Cochran's Q, with uncertain variances and the covariance of cells that share units); p is twice the smaller one.
    The reading ``instances`` says whether published cells had units in common (``shared``) or not (``fresh``).
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import fdtrc

from recheck.judge.measures import fitting, levels_of
from recheck.judge.noise import DRAWS, Between, Noise, Sampler, run_noise
from recheck.judge.printed import half_unit
from recheck.judge.published import inside
from recheck.judge.replay import (
    OneSided,
    Predictive,
    Ranks,
    Spread,
    combined,
    excess,
    printed_error,
    replayed,
)
from recheck.judge.samples import NotComparedError, Sample, Samples, Statuses, linked, samples_of
from recheck.judge.shares import counted, shares

if TYPE_CHECKING:
    import pandas as pd

    from recheck.judge.published import Contrast, Published

#: Levels by choice, of what the paper does not say.
Levels = Mapping[str, str]
_PRINTED = ("value", "error", "rounding", "units", "runs")


class Comparer:
    """Compares cells, contrasts and columns of a study; `seed` is that of the draws of uncertain variances."""

    def __init__(self, measures: pd.DataFrame, published: Published, seed: int) -> None:
        self.published = published
        cells: dict[str, dict[str, Any]] = published.cells.to_dict("index")
        self._given(cells, *samples_of(measures, cells), seed, published.protocol.distribution)

    @classmethod
    def of(
        cls, cells: dict[str, dict[str, Any]], samples: Samples, distribution: str, seed: int
    ) -> Self:
        """The comparison of cells with samples that are there already."""
        found = cls.__new__(cls)
        found._given(cells, samples, {}, seed, distribution)
        return found

    def _given(
        self,
        cells: dict[str, dict[str, Any]],
        samples: Samples,
        statuses: Statuses,
        seed: int,
        distribution: str,
    ) -> None:
        self.cells, self.seed, self._any = cells, seed, distribution == "any"
        self.columns: dict[str, list[str]] = defaultdict(list)
        for name, cell in cells.items():
            self.columns[str(cell["column"])].append(name)
        self._samples: Samples = defaultdict(dict, samples)
        self._status: Statuses = defaultdict(dict, statuses)
        self._noises: dict[tuple[str, frozenset[tuple[str, str]]], Noise] = {}
        self._cheap = [name for name in self._samples if name.startswith("between/")]

    def altered(self, factors: Mapping[str, float]) -> Self:
        """The comparison with published numbers, and their brackets, times these factors."""
        found, names = copy.copy(self), ("value", "error", "rounding", "low", "high")
        found.cells = dict(self.cells)
        for cell, factor in factors.items():
            found.cells[cell] = self.cells[cell] | {n: self.cells[cell][n] * factor for n in names}
        return found

    def sample(self, name: str, levels: Levels) -> Sample:
        """Our side of a cell: of the rows whose levels are among those asked for, those with the most."""
        found = fitting(self._samples[name], levels)
        if found is None:
            raise NotComparedError(fitting(self._status[name], levels) or "not run")
        return found

    def units(self, name: str) -> int:
        """The most units of ours that any reading of a cell has."""
        return max((len(one.units) for one in self._samples[name].values()), default=0)

    def _relatives(self, name: str, levels: Levels, scale: str) -> list[Sample]:
        """Samples with the same relative variation: of the column's cells that share a unit, this one first."""
        own = self.sample(name, levels)
        if "linear" in (scale, self.cells[name]["scale"]):
            return [own]
        column = self.columns[self.cells[name]["column"]]
        others = [fitting(self._samples[other], levels) for other in column if other != name]
        return [own, *(one for one in others if one and own.units.keys() & one.units.keys())]

    def _noise(self, name: str, levels: Levels, scale: str) -> Noise:
        """Variation between runs, which has to be known where the published runs differ from ours in number."""
        samples = self._relatives(name, levels, scale)
        key = scale, frozenset((sample.id, sample.reading) for sample in samples)
        if key not in self._noises:
            runs = [values for sample in samples for values in sample.units.values()]
            noise = Noise.of_units(runs, scale)
            if noise.df and any(one.step for one in samples):
                coarse = float(np.mean([one.coarse(scale) * one.runs() for one in samples]))
                noise = replace(noise, variance=noise.variance + coarse)
            self._noises[key] = noise
        theirs = self.cells[name]["runs"]
        if not self._noises[key].df and samples[0].runs() != theirs:
            raise NotComparedError(
                f"ours is one run a unit and theirs {theirs}: the noise of runs is unknown"
            )
        return self._noises[key]

    def _between(self, name: str, levels: Levels, noise: Noise, scale: str) -> Between:
        """Variation between units: measured elsewhere, or pooled over the cells that share them."""
        samples = self._relatives(name, levels, scale)
        cheap = self._elsewhere(samples[0])
        if cheap and len(cheap.units) > max(len(samples[0].units), 1):
            return Between(float(cheap.statistic(scale).var(ddof=1)), len(cheap.units) - 1.0)
        several = [sample for sample in samples if len(sample.units) > 1]
        if not several:
            raise NotComparedError(
                "one unit on each side, and the variation between units was not measured"
            )
        n = np.array([len(sample.units) for sample in several], dtype=float)
        variances = np.array(
            [sample.statistic(scale).var(ddof=1) + sample.coarse(scale) for sample in several]
        )
        contained = np.array([noise.of_mean(sample.runs())[1] for sample in several])
        base = max(float(np.average(variances - contained, weights=n - 1)), 0.1 * contained.mean())
        # units may be alike to the last digit: the square must not underflow
        weights = (n - 1) / np.maximum(base + contained, 1e-100) ** 2
        variance, inside = (np.average(x, weights=weights) for x in (variances, contained))
        return Between(float(variance), float(n.max() - 1), float(inside))

    def _elsewhere(self, own: Sample) -> Sample | None:
        """The distribution between units that was measured elsewhere, under the id that says most of the cell's."""
        whole, names = own.id.split("/"), []
        for name in self._cheap:
            (_, *part), rest = name.split("/"), iter(whole)
            ends = part[0] == whole[0] and part[-1] == whole[-1]
            if ends and all(one in rest for one in part):  # in the same order
                names.append((len(part), name))
        return fitting(self._samples[max(names)[1]], levels_of(own.reading)) if names else None

    def cell(self, name: str, levels: Levels) -> Predictive:
        """Compare one cell under these levels by choice."""
        sample, cell = self.sample(name, levels), self.cells[name]
        count, items = counted(list(sample.units.values())), int(cell["units"] * cell["runs"])
        within = cell["low"] + cell["rounding"] >= 0 and cell["high"] - cell["rounding"] <= 1
        if count and within and not cell["relation"]:
            return shares(count, cell["low"], cell["high"], items, cell["scale"])
        found = self._together(f"{name}@{sample.reading}", [name], levels)
        if cell["relation"] in ("<", "<=", ">", ">="):
            side = -1 if "<" in cell["relation"] else 1
            found = OneSided(found.effect, found.deviation, found.published, side=side)
        if self._any or (sample.coincides and not self._prints(sample, cell)):
            logs, ends = cell["scale"] == "log", inside(cell)
            found = replace(found, ranks=Ranks.of(sample.means(), *ends, int(cell["units"]), logs))
        return found

    @staticmethod
    def _prints(sample: Sample, cell: Mapping[str, Any]) -> bool:
        """Whether ours, which coincide, print as the published number does."""
        return bool(cell["low"] <= sample.means()[0] <= cell["high"])

    def spread(self, name: str, levels: Levels) -> Predictive:
        """Compare the printed deviation between units with ours.

        Variances of heavier tails than normal ones say less: of our values' kurtosis, or of 4 where it is less.
        """
        cell, means = self.cells[name], self.sample(name, levels).means()
        n, theirs = len(means), int(cell["units"])
        if n < 3 or theirs < 3 or not means.std():
            raise NotComparedError("a deviation needs three units on each side, and ours that vary")
        sample, rest = self.sample(name, levels), means - means.mean()
        kurtosis = max(float((rest**4).mean() / (rest**2).mean() ** 2), 4.0)
        ours = float(means.var(ddof=1)) + sample.coarse("linear")
        printed = cell["error"] * math.sqrt(theirs)
        sampler = Sampler(self.seed, f"{name}/spread")
        draws = [np.log(sampler(2 * (k - 1) / (kurtosis - 1))) / 2 for k in (n, theirs)]
        published = math.log(printed)
        effect = math.log(ours) / 2 - published + draws[0] - draws[1]
        rounding = half_unit(cell["bracket"]) / max(cell["bracket_value"], 1e-300)
        sd = np.full(DRAWS, max(min(rounding, 1.0) / 3**0.5, 1e-6))
        return Spread(
            effect, sd, published, observed=math.log(float(means.std(ddof=1))) - published
        )

    def contrast(
        self, name: str, pair: tuple[str, str], rule: Contrast, levels: Levels
    ) -> Predictive:
        """Compare a difference of two cells on the same units; printed standard errors are not used."""
        stream = f"{name}@{self.sample(pair[0], levels).reading}"
        return self._replayed(stream, pair, levels, np.array([1.0, -1.0]), rule.scale)

    def column(self, name: str, cells: Sequence[str], levels: Levels) -> Predictive:
        """Compare a column; `cells` are those that can be compared, `levels` has those of the column's design too."""
        if len(cells) < 2:
            raise NotComparedError("fewer than two cells can be compared")
        rows = [self.cells[cell] for cell in cells]
        if len({(row["error"] > 0, row["scale"]) for row in rows}) > 1:
            raise NotComparedError("cells of several designs")
        groups = []
        for place, group in enumerate(linked([self.sample(cell, levels) for cell in cells])):
            if len(group) > 1:
                stream = f"{name}/{place}@{sorted(levels.items())}"
                groups.append(self._together(stream, group, levels))
            else:
                one = self.cell(group[0], levels)
                groups.append(replace(one, cells={group[0]: one.center}))
        if len(groups) == 1:
            return groups[0]
        tests = [one.heterogeneity for one in groups if not math.isnan(one.heterogeneity)]
        variances = np.stack([one.deviation**2 for one in groups])
        tests.append(excess(np.array([one.center for one in groups]), variances))
        effects = {cell: effect for one in groups for cell, effect in one.cells.items()}
        whole = combined(groups, [float(len(one.cells)) for one in groups])
        return replace(whole, cells=effects, heterogeneity=min(1.0, len(tests) * min(tests)))

    def _together(self, stream: str, cells: Sequence[str], levels: Levels) -> Predictive:
        """The mean of cells that share units; `stream` names the draws."""
        row = self.cells[cells[0]]
        if row["error"] > 0:
            return self._printed(stream, cells, levels)
        weights = np.full(len(cells), 1.0 / len(cells))
        return self._replayed(stream, cells, levels, weights, row["scale"])

    def _sides(
        self, cells: Sequence[str], levels: Levels
    ) -> tuple[list[Sample], list[str], np.ndarray]:
        """Our samples of cells, the units that all of them have, and `_PRINTED` of the cells."""
        samples = [self.sample(cell, levels) for cell in cells]
        units = [unit for unit in samples[0].units if all(unit in one.units for one in samples)]
        if len(cells) > 1 and len(units) < 2:
            raise NotComparedError(f"the cells share {len(units)} units of ours")
        printed = [[self.cells[cell][name] for cell in cells] for name in _PRINTED]
        return samples, units, np.array(printed, dtype=float)

    def _replayed(
        self, stream: str, cells: Sequence[str], levels: Levels, weights: np.ndarray, scale: str
    ) -> Predictive:
        """A weighted sum of cells without printed standard errors; a mean of several has a test of its scatter."""
        samples, units, (value, _, rounding, published, runs) = self._sides(cells, levels)
        noises, logs = [self._noise(cell, levels, scale) for cell in cells], scale == "log"
        n, theirs = len(units), int(published.max())
        if theirs > 1:
            table = np.stack([sample.means(units) for sample in samples], axis=1)
            center = table.mean(axis=0)
            if n < 2 or (logs and not (center > 0).all()):
                raise NotComparedError("one unit only: no variation between units")
            noises = [noise.plain for noise in noises]
            table, center = (table / center, np.log(center)) if logs else (table, center)
        else:
            table = np.stack([sample.statistic(scale, units) for sample in samples], axis=1)
            center = table.mean(axis=0)
        values, half = (np.log(value), rounding / value) if logs else (value, rounding)
        effects, rounded = center - values, half**2 / 3
        terms = list(zip(noises, [one.runs(units) for one in samples], runs.tolist(), strict=True))
        noise = run_noise([(w, *term) for w, term in zip(weights, terms, strict=True)])
        fresh, sampler = None, Sampler(self.seed, stream)
        if theirs == len(cells) == 1:
            between = self._between(cells[0], levels, noises[0], scale)
        else:
            coarse = weights**2 @ [one.coarse(scale, units) for one in samples]
            variance = float((table @ weights).var(ddof=1) + coarse)
            between = Between(variance, n - 1.0, noise.ours)
        if len(cells) > 1 and levels.get("instances") == "fresh":
            variance = float(weights**2 @ table.var(axis=0, ddof=1) + coarse)
            fresh = Between(variance, n - 1.0, noise.ours)
        sums, error = (float(effects @ weights), float(values @ weights)), weights**2 @ rounded
        found = replayed(
            *sums, (n, theirs), between, noise, sampler, rounding=float(error), fresh=fresh
        )
        if len(cells) == 1 or weights.min() < 0:
            return found
        effects, p = _scatter(table, effects, terms, rounded, theirs, fresh is not None, sampler)
        by_cell = dict(zip(cells, effects.tolist(), strict=True))
        return replace(found, cells=by_cell, heterogeneity=p)

    def _printed(self, stream: str, cells: Sequence[str], levels: Levels) -> Predictive:
        """Cells with printed standard errors: on the linear scale, relative to ours where there are several.

        Under ``fresh`` the published errors are independent. Under ``shared`` they have two parts. One varies as much
        as ours and is as correlated as ours; what a bracket has beyond it is common to all cells.
        """
        samples, shared, printed = self._sides(cells, levels)
        k, n, units = len(cells), len(shared), printed[3]
        means = np.stack([sample.means(shared) for sample in samples], axis=1)
        level = means.mean(axis=0)
        scale = self.cells[cells[0]]["scale"]
        if (n < 2 and k > 1) or (scale == "log" and not (level > 0).all()):
            raise NotComparedError("one unit only, or a mean of zero: no standard error of ours")
        unit = level if k > 1 and scale == "log" else np.ones(k)
        value, bracket, rounding = printed[:3] / unit
        if n < 2:  # one value of ours varies as the published ones say they do
            ours, df = np.atleast_2d(bracket**2 * units), float(units.min()) - 1.0
        else:
            ours, df = np.atleast_2d(np.cov(means / unit, rowvar=False)) / n, n - 1.0
            coarse = [one.coarse("linear", shared) for one in samples]
            ours = ours + np.diag(coarse / unit**2) / n
        theirs = np.diag(bracket**2)
        if k > 1 and levels.get("instances") != "fresh":
            variance = np.diag(ours) * n / units
            part = np.minimum(variance, bracket**2)
            alike = np.sqrt(part / np.where(variance > 0, variance, 1.0))
            beyond = np.sqrt(bracket**2 - part)
            theirs = ours * n / units[0] * np.outer(alike, alike) + np.outer(beyond, beyond)
        found = printed_error(
            (float((level / unit).mean()), math.sqrt(ours.mean()), df),
            (float(value.mean()), math.sqrt(theirs.mean()), float(units.min()) - 1.0),
            float((rounding**2).sum() / 3) / k**2,
            Sampler(self.seed, stream),
            scale,
            same=n < 2,
        )
        if k == 1:
            return found
        # one ratio, or one difference, for all cells: what is left over has the covariance of both sides
        logs = scale == "log"
        factor = value.mean() ** 2 if logs else 1.0
        inverse = np.linalg.inv(theirs + factor * ours + np.diag(rounding**2 / 3))
        ones, apart = np.ones(k), value if logs else value - level
        rest = apart - (ones @ inverse @ apart) / (ones @ inverse @ ones)
        # Hotelling's test: the covariance is estimated
        q, df, rank = float(rest @ inverse @ rest), min(n, float(units.min())) - 1.0, k - 1
        free = df - rank + 1
        p = float(fdtrc(rank, free, q * free / (rank * df))) if free > 0 else math.nan
        effects = dict(zip(cells, (-np.log(value) if logs else -apart).tolist(), strict=True))
        return replace(found, cells=effects, heterogeneity=p)


def _scatter(
    table: np.ndarray,
    effects: np.ndarray,
    terms: Sequence[tuple[Noise, float, float]],
    rounded: np.ndarray,
    theirs: int,
    fresh: bool,
    sampler: Sampler,
) -> tuple[np.ndarray, float]:
    """Effects of the cells, and the p-value of a scatter that units and their runs do not explain.

    `table` has our statistics by unit and cell, `terms` noise, our and published runs of each cell; `rounded` are
    variances, `theirs` is the number of published units, and `fresh` says that each cell has its own.
    """
    n, k = table.shape
    noises = [run_noise([(1.0, *term)]) for term in terms]
    effects = effects - [noise.shift for noise in noises]
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    square, df = float((rest**2).sum() / ((n - 1) * (k - 1))), (n - 1.0) * (k - 1.0)
    contained, known = float(np.mean([one.ours for one in noises])), noises[0].df
    ours, inner = Between(square, df, contained).draws(sampler, sampler(known), known)
    others = ours
    if fresh:
        variance = float(table.var(axis=0, ddof=1).mean())
        others, _ = Between(variance, n - 1.0, contained).draws(sampler, inner, known)
    variances = [
        (others + one.theirs * inner) / theirs + (ours + one.ours * inner) / n + rounding
        for one, rounding in zip(noises, rounded, strict=True)
    ]
    return effects, excess(effects, np.maximum(np.stack(variances), 1e-24))
