"""Columns: the mean of a column's cells, and whether they scatter more than one design lets them.

The mean is taken unit by unit over the cells that share units, and over independent groups of such cells. Where the
paper leaves open whether cells had units in common, the reading ``instances`` says how the published side is replayed:
``shared``, as ours are, or ``fresh``, each cell on units of its own.

A column speaks for its cells only if they are alike. Its hypothesis is that every cell is drawn as ours are. Two tests
look at it, one of the mean and one of the scatter about the mean (Cochran's Q, with uncertain variances and the
covariance of cells that share units). The p-value is twice the smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, fdtrc

from recheck.compare import Comparer, NotComparedError, Sample
from recheck.predictive import Predictive, Sampler, combined, excess
from recheck.published import STANDARD_ERROR
from recheck.replay import Between, RunNoise, one_unit, printed_error, run_noise, several_units

__all__ = ["Column", "compare_column"]


class Column(NamedTuple):
    """A column beside ours.

    Attributes
    ----------
    predictive : Predictive
        Of the mean over cells.
    heterogeneity : float
        p-value of the scatter; NaN if it cannot be tested.
    effects : dict of str to float
        Of the cells, with which they enter.
    """

    predictive: Predictive
    heterogeneity: float
    effects: dict[str, float]

    @property
    def p(self) -> float:
        """p-value of the hypothesis that every cell is drawn as ours are."""
        if math.isnan(self.heterogeneity):
            return self.predictive.p
        return min(1.0, 2.0 * min(self.predictive.p, self.heterogeneity))


class _Group(NamedTuple):
    predictive: Predictive
    heterogeneity: float
    effects: dict[str, float]


def compare_column(
    comparer: Comparer, name: str, cells: Sequence[str], levels: Mapping[str, str]
) -> Column:
    """Compare a column.

    Parameters
    ----------
    comparer : Comparer
    name : str
    cells : sequence of str
        Ids of cells that can be compared, two or more.
    levels : mapping of str to str
        Levels by choice, of cells and of the column's design.

    Raises
    ------
    NotComparedError
        Fewer than two cells can be taken together.
    """
    designs = {
        (comparer.cells[c]["bracket_kind"] == STANDARD_ERROR, comparer.cells[c]["scale"])
        for c in cells
    }
    if len(cells) < 2 or len(designs) > 1:
        why = (
            "fewer than two cells can be compared" if len(cells) < 2 else "cells of several designs"
        )
        raise NotComparedError("not comparable", why)
    samples = {cell: comparer.sample(cell, levels) for cell in cells}
    groups = [
        _group(comparer, f"{name}/{place}", group, samples, levels)
        for place, group in enumerate(_shared(samples))
    ]
    weights = [float(len(group.effects)) for group in groups]
    tests = [group.heterogeneity for group in groups if not math.isnan(group.heterogeneity)]
    whole = groups[0].predictive
    if len(groups) > 1:
        whole = combined([group.predictive for group in groups], weights)
        variances = np.stack([group.predictive.deviation**2 for group in groups])
        tests.append(excess(np.array([g.predictive.center for g in groups]), variances))
    effects = {cell: effect for group in groups for cell, effect in group.effects.items()}
    worst = min(1.0, len(tests) * min(tests)) if tests else math.nan
    return Column(whole, worst, effects)


def _shared(samples: Mapping[str, Sample]) -> list[list[str]]:
    """Cells in groups that share units."""
    groups: list[tuple[set[str], list[str]]] = []
    for name, sample in samples.items():
        units, names = set(sample.units), [name]
        rest = []
        for other, members in groups:
            if other.isdisjoint(units):
                rest.append((other, members))
            else:
                units |= other
                names = members + names
        groups = [*rest, (units, names)]
    return [names for _, names in groups]


def _group(
    comparer: Comparer,
    name: str,
    cells: Sequence[str],
    samples: Mapping[str, Sample],
    levels: Mapping[str, str],
) -> _Group:
    common = [
        unit
        for unit in samples[cells[0]].units
        if all(unit in samples[cell].units for cell in cells)
    ]
    if len(cells) == 1 or len(common) < 2:
        if len(cells) > 1:
            why = f"its cells share {len(common)} units of ours"
            raise NotComparedError("not comparable", why)
        only = comparer.cell(cells[0], levels)
        return _Group(only, math.nan, {cells[0]: only.center})
    row = comparer.cells[cells[0]]
    if row["bracket_kind"] == STANDARD_ERROR:
        return _printed(comparer, name, cells, samples, common, levels)
    return _replayed(comparer, name, cells, samples, common, levels)


def _replayed(
    comparer: Comparer,
    name: str,
    cells: Sequence[str],
    samples: Mapping[str, Sample],
    common: Sequence[str],
    levels: Mapping[str, str],
) -> _Group:
    """Cells that share units, without printed standard errors."""
    k, n, rows = len(cells), len(common), [comparer.cells[cell] for cell in cells]
    their_units = int(max(row["units"] for row in rows))
    logs = rows[0]["scale"] == "log"
    several = their_units > 1
    values = np.array([math.log(r["value"]) if logs else r["value"] for r in rows])
    if several:
        means = np.stack([samples[cell].means(common) for cell in cells], axis=1)
        level = means.mean(axis=0)
        table = means / level if logs else means
        center = np.log(level) if logs else level
    else:
        table = np.stack([samples[cell].statistic(common) for cell in cells], axis=1)
        center = table.mean(axis=0)
    noises = [comparer.pool(cell, levels)[1] for cell in cells]
    noises = [noise.plain for noise in noises] if several else noises
    runs = [samples[cell].runs(common) for cell in cells]
    each = [
        run_noise([(1.0, noise, mine, float(row["runs"]))])
        for noise, mine, row in zip(noises, runs, rows, strict=True)
    ]
    terms = run_noise(
        [
            (1.0 / k, noise, mine, float(row["runs"]))
            for noise, mine, row in zip(noises, runs, rows, strict=True)
        ]
    )
    sampler = comparer.sampler(f"{name}@{sorted(levels.items())}")
    between = Between(float(table.mean(axis=1).var(ddof=1)), n - 1.0, terms.ours)
    mean_noise = float(np.mean([one.ours for one in each]))
    own = Between(float(table.var(axis=0, ddof=1).mean()), n - 1.0, mean_noise)
    fresh = None
    if levels.get("instances") == "fresh":
        fresh = Between(own.variance / k, own.df, own.contained / k)
    effects = center - values
    rounding = np.array([comparer.rounding(cell) for cell in cells])
    total, effect = float(rounding.sum()) / k**2, float(effects.mean())
    if several:
        counts = (n, their_units)
        predictive = several_units(
            effect, values.mean(), counts, between, terms, sampler, rounding=total, fresh=fresh
        )
    else:
        predictive = one_unit(
            effect, values.mean(), n, between, terms, sampler, rounding=total, fresh=fresh
        )
    shifts = np.array([0.0 if several else one.shift for one in each])
    p = _scatter(
        effects - shifts, table, each, own, fresh is not None, their_units, rounding, sampler
    )
    return _Group(predictive, p, dict(zip(cells, (effects - shifts).tolist(), strict=True)))


def _scatter(
    effects: np.ndarray,
    table: np.ndarray,
    noises: Sequence[RunNoise],
    own: Between,
    fresh: bool,
    their_units: int,
    rounding: np.ndarray,
    sampler: Sampler,
) -> float:
    """p-value of effects that differ more than what is left of units beside their means and the cells' lets them."""
    n, k = table.shape
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    square, df = float((rest**2).sum() / ((n - 1) * (k - 1))), (n - 1.0) * (k - 1.0)
    inner = sampler(noises[0].df)
    mixed = Between(square, df, own.contained).draws(sampler, inner)
    theirs = own.draws(sampler, inner) if fresh else mixed
    variances = [
        (theirs + one.theirs * inner) / their_units + (mixed + one.ours * inner) / n + r
        for one, r in zip(noises, rounding, strict=True)
    ]
    return excess(effects, np.maximum(np.stack(variances), 1e-24))


def _printed(
    comparer: Comparer,
    name: str,
    cells: Sequence[str],
    samples: Mapping[str, Sample],
    common: Sequence[str],
    levels: Mapping[str, str],
) -> _Group:
    """Cells with printed standard errors: relative to ours, on the linear scale.

    Under ``fresh`` the published errors are independent. Under ``shared`` they have two parts. One varies as much as
    ours and is as correlated as ours; what a bracket has beyond it is common to all cells.
    """
    k, n, rows = len(cells), len(common), [comparer.cells[cell] for cell in cells]
    means = np.stack([samples[cell].means(common) for cell in cells], axis=1)
    level = means.mean(axis=0)
    if not (level > 0).all():
        raise NotComparedError("not comparable", "a mean of ours is zero")
    ours = np.cov(means / level, rowvar=False) / n
    value, bracket, rounding = (
        np.array([row[key] for row in rows]) / level
        for key in ("value", "bracket_value", "rounding")
    )
    units = np.array([float(row["units"]) for row in rows])
    if levels.get("instances") == "fresh":
        theirs = np.diag(bracket**2)
    else:
        variance = np.diag(ours) * n / units
        part = np.minimum(variance, bracket**2)
        scale = np.sqrt(part / np.where(variance > 0, variance, 1.0))
        beyond = np.sqrt(bracket**2 - part)
        theirs = ours * n / units[0] * np.outer(scale, scale) + np.outer(beyond, beyond)
    sampler = comparer.sampler(f"{name}@{sorted(levels.items())}")
    predictive = printed_error(
        (1.0, math.sqrt(ours.mean()), n - 1.0),
        (float(value.mean()), math.sqrt(theirs.mean()), float(units.min()) - 1.0),
        float((rounding**2).sum() / 3) / k**2,
        sampler,
    )
    # one ratio for all cells: what is left over has the covariance of both sides
    covariance = theirs + value.mean() ** 2 * ours + np.diag(rounding**2 / 3)
    inverse = np.linalg.inv(covariance)
    ones = np.ones(k)
    rest = value - (ones @ inverse @ value) / (ones @ inverse @ ones)
    q, df = float(rest @ inverse @ rest), min(n, float(units.min())) - 1.0
    p = _hotelling(q, k - 1, df)
    return _Group(predictive, p, dict(zip(cells, (-np.log(value)).tolist(), strict=True)))


def _hotelling(q: float, rank: int, df: float) -> float:
    """p-value of a quadratic form with an estimated covariance; NaN with too few units."""
    rest = df - rank + 1
    if rest <= 0:
        return math.nan
    if df > 1e6:
        return float(chdtrc(rank, q))
    return float(fdtrc(rank, rest, q * rest / (rank * df)))
