"""Calibration of the judge: simulated studies with a known answer, in every shape that is in use.

A shape is a design on both sides: units, runs, cells that share units, rounding. Its studies are drawn from one known
distribution, and the judge's own code compares them. Nothing in a null study differs, so that the share of p-values
below 5 % is a rate of false alarms. In a shifted study the published number is off by the factor that the judge calls
detectable there at 5 %, so that this share is a power. An interval of 90 % covers the truth in nine of ten. Where the
published number is off by exactly the margin, "agrees" is wrong, and may come up in one of twenty.

It is an instrument that tests the engine, and no part of it. This command writes the table that is kept:
``.venv/bin/python tests/recheck/calibrate.py --studies 2000 --output data/published/calibration.csv``
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from recheck.judge.compare import Comparer
from recheck.judge.measures import estimate
from recheck.judge.printed import half_unit
from recheck.judge.published import STANDARD_ERROR, Contrast, Protocol, Published, number
from recheck.judge.replay import Predictive
from recheck.judge.samples import NotComparedError
from recheck.judge.verdicts import judge

__all__ = ["COLUMNS", "SHAPES", "Shape", "calibrate", "family", "main", "simulate"]

LEVEL, POWER, COVERAGE, MARGIN = 0.05, 0.8, 0.9, 2.0
#: Studies of a shape that the power is computed from, each with its own detectable effect.
_POWER_STUDIES = 400
#: The level of one of twenty numbers in Holm's test.
RARE = LEVEL / 20
COLUMNS = [
    *["shape", "kind", "studies", "false_alarms", "coverage", "false_agreement"],
    *["power", "detectable", "scatter_alarms", "rare_alarms", "compared"],
]


@dataclass(frozen=True)
class Shape:
    """A design and the distribution that its studies are drawn from."""

    name: str
    #: Ours, by cell of a column. A cell with fewer units has the first ones.
    units: Sequence[int]
    runs: Sequence[int]
    their_units: int = 1
    their_runs: int = 1
    #: Of runs: ``normal`` is a smooth error, ``half-normal`` the absolute value of a centred normal, as the error of
    #: one estimate is.
    noise: str = "normal"
    #: Standard deviations of a unit's logarithm and, relative to it, of a run.
    between: float = 0.2
    run_sd: float = 0.2
    #: Printed significant digits, and whether a standard error is printed.
    digits: int = 3
    bracket: bool = False
    #: Whether published cells had units of their own, and whether each cell of ours has, as a column over problems.
    fresh: bool = False
    apart: bool = False
    #: Units with which the distribution between units is measured elsewhere.
    elsewhere: int = 0
    #: Standard deviation between units of a difference of two cells: the shape is a contrast. 0: it is none.
    linear: float = 0.0
    #: Runs on the first unit, where only that one is repeated.
    repeats: int = 0
    #: Mean of the first cell, and the step of the grid to which every value is rounded; 0: to none.
    level: float = 1.0
    step: float = 0.0
    #: What the protocol takes for granted, and how numbers are compared; the margin of a difference.
    distribution: str = "smooth"
    scale: str = "log"
    difference: float = 0.0
    #: Decimals, where digits are not significant ones.
    decimals: int | None = None

    def effects(self, rng: np.random.Generator, size: tuple[int, int, int]) -> np.ndarray:
        """Factors of units: common to the cells of a column, with a little of each cell's own."""
        if self.linear:
            common = 1.0 + 0.2 * rng.standard_normal((*size[:2], 1)) * np.ones(size[2])
            common[:, :, 0] += self.linear * rng.standard_normal(size[:2])
            return common
        own = 1.0 if self.apart else 0.4
        common = math.sqrt(1 - own**2) * rng.standard_normal((*size[:2], 1))
        return np.exp(self.between * (common + own * rng.standard_normal(size)))

    def values(self, rng: np.random.Generator, means: np.ndarray, runs: int) -> np.ndarray:
        """Values of runs on units with these means, shape (..., runs)."""
        normal, means = rng.standard_normal((*means.shape, runs)), means[..., None]
        if self.noise in _DISCRETE:
            return _DISCRETE[self.noise](self, rng, means * np.ones(runs), normal)
        if self.noise == "half-normal":
            return means * np.abs(normal)
        if self.linear:
            return means + self.run_sd * self.linear * normal
        values = means * np.exp(self.run_sd * normal - self.run_sd**2 / 2)
        return np.round(values / self.step) * self.step if self.step else values


def _failing(shape, rng, means, normal):
    """A fifth of the runs fails: a third of the value."""
    factor = np.where(rng.random(means.shape) < 0.2, 1 / 3, 1.0)
    return means * factor * np.exp(shape.run_sd * normal)


#: Values of runs with these means, which are no smooth ones, by name.
_DISCRETE = {
    "failing": _failing,
    "two levels": lambda _, rng, means, normal: means * rng.choice([5 / 7, 9 / 7], means.shape),
    "deterministic": lambda _, rng, means, normal: means * 0.98765432,
    "items": lambda _, rng, means, normal: rng.binomial(1, np.minimum(means, 1.0)).astype(float),
    "shares of 20": lambda _, rng, means, normal: rng.binomial(20, np.minimum(means, 1.0)) / 20,
    "shares of 100": lambda _, rng, means, normal: rng.binomial(100, np.minimum(means, 1.0)) / 100,
    "shares of 300": lambda _, rng, means, normal: rng.binomial(300, np.minimum(means, 1.0)) / 300,
    "counts": lambda _, rng, means, normal: rng.poisson(means).astype(float),
}


_TABLE = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
SHAPES = tuple(Shape(**row) for row in yaml.safe_load(_TABLE))


class Simulated(NamedTuple):
    """Studies of a shape as the judge reads them: one column a study, with the shape's cells."""

    measures: pd.DataFrame
    published: Published


def simulate(shape: Shape, studies: int, seed: int, shift: np.ndarray | float = 0.0) -> Simulated:
    """Draw studies of a shape.

    `shift`, one number or one a study, is added to the logarithm of each published number (to the first cell of a
    contrast, not as a logarithm). Our side is the same whatever it is.
    """
    rng = np.random.default_rng(seed)
    k, most = len(shape.units), max(shape.units)
    true = shape.level * 10.0 ** -np.arange(k) if not shape.linear else np.ones(k)
    effects = shape.effects(rng, (studies, most, k))
    parts = []
    for cell, (units, runs) in enumerate(zip(shape.units, shape.runs, strict=True)):
        values = shape.values(rng, true[cell] * effects[:, :units, cell], shape.repeats or runs)
        unit = f"s{{0}}/c{cell}/u{{1}}" if shape.apart else "s{0}/u{1}"
        rows = _rows(values, f"s{{0}}/c{cell}", unit)
        once = rows["unit"].str.endswith("/u0") | (rows["run"].astype(int) < runs)
        parts.append(rows[once])
    if shape.elsewhere:
        extra = shape.effects(rng, (studies, shape.elsewhere, 1))
        parts.append(_rows(extra, "between/s{0}/c0", "other{1}"))
    blank = dict.fromkeys(["reading", "source", "seed"], "")
    numbers = dict.fromkeys(["se", "df"], math.nan)
    measures = pd.concat(parts).assign(scale=shape.scale, status="ok", **blank, **numbers)
    protocol = Protocol(distribution=shape.distribution)
    cells = _printed(shape, rng, studies, true, shift)
    return Simulated(measures, Published(cells, protocol=protocol))


def _rows(values: np.ndarray, name: str, unit: str) -> pd.DataFrame:
    """Measures of values by study, unit and run; `name` and `unit` are templates of the first two."""
    study, place, run = (axis.ravel() for axis in np.indices(values.shape))
    studies, units, _ = values.shape
    names = np.array([name.format(s) for s in range(studies)], dtype=object)
    texts = [[unit.format(s, u) for u in range(units)] for s in range(studies)]
    columns = {"id": names[study], "unit": np.array(texts, dtype=object)[study, place]}
    return pd.DataFrame({**columns, "run": run.astype(str), "value": values.ravel()})


def _printed(
    shape: Shape,
    rng: np.random.Generator,
    studies: int,
    true: np.ndarray,
    shift: np.ndarray | float,
) -> pd.DataFrame:
    """The published cells of simulated studies: rounded, with a bracket where the shape has one."""
    k, size = len(true), (studies, shape.their_units, len(true))
    effects = shape.effects(rng, size)
    if shape.fresh:
        effects = np.stack([shape.effects(rng, size)[:, :, c] for c in range(k)], axis=2)
    shifts = np.broadcast_to(shift, (studies,))[:, None, None]
    means = true * effects
    if not shape.linear:
        means = means * np.exp(shifts) if shape.scale == "log" else means + shifts
    values = shape.values(rng, means, shape.their_runs).mean(axis=-1)
    if shape.linear:
        values[:, :, 0] += shifts[:, 0]
    errors = np.full((studies, k), math.nan)
    if shape.their_units > 1:
        errors = values.std(axis=1, ddof=1) / math.sqrt(shape.their_units)
    form = f".{shape.digits - 1}e" if shape.decimals is None else f".{shape.decimals}f"
    printed = [f"{mean:{form}}" for mean in values.mean(axis=1).ravel()]
    columns = [f"s{study}" for study in range(studies) for _ in range(k)]
    frame = pd.DataFrame({"column": columns, "printed": printed, "bracket_value": errors.ravel()})
    value, half = frame["printed"].map(number), frame["printed"].map(half_unit)
    return frame.assign(
        id=[f"s{study}/c{cell}" for study in range(studies) for cell in range(k)],
        table="t",
        scale=shape.scale,
        units=shape.their_units,
        runs=shape.their_runs,
        bracket="",
        bracket_kind=STANDARD_ERROR if shape.bracket else "",
        relation="",
        value=value,
        rounding=half,
        low=value - half,
        high=value + half,
        error=frame["bracket_value"] if shape.bracket else math.nan,
    ).set_index("id", drop=False)


def _compared(shape: Shape, drawn: Simulated, studies: int, kind: str) -> list[Predictive]:
    """The comparison in each study; of cells the one with the fewest runs, which is the hardest."""
    comparer = Comparer(drawn.measures, drawn.published, 7)
    levels = {"instances": "fresh" if shape.fresh else "shared"}
    found = []
    for study in range(studies):
        ids = [f"s{study}/c{cell}" for cell in range(len(shape.units))]
        if kind == "contrast":
            rule = Contrast(id="d", first=ids[0], second=ids[1], scale="linear", margin=1.0)
            found.append(comparer.contrast(f"s{study}", (ids[0], ids[1]), rule, levels))
        elif kind == "column":
            found.append(comparer.column(f"s{study}", ids, levels))
        else:
            with suppress(NotComparedError):  # a mean of zero is no ratio
                found.append(comparer.cell(ids[-1], levels))
    return found


def calibrate(
    studies: int, seed: int = 20210308, shapes: Sequence[Shape] | None = None
) -> pd.DataFrame:
    """Rates of the judge over so many simulated studies of each shape and kind, one row each with `COLUMNS`.

    ``false_alarms``, ``scatter_alarms`` and ``false_agreement`` are at a level of 5 %, ``coverage`` is that of the
    interval of 90 %, and ``power`` is at each study's own detectable effect at 5 %. ``detectable`` is the median of
    these effects (a factor; a difference of a contrast). ``rare_alarms`` are those at the level of one of twenty
    numbers, which is where ties and failing runs show, and ``compared`` is the share of studies that could be compared.
    """
    rows = []
    for place, shape in enumerate(SHAPES if shapes is None else shapes):
        kinds = ["contrast"] if shape.linear else ["cell", "column"][: len(shape.units)]
        rows += [_rates(shape, kind, studies, seed + 1000 * place) for kind in kinds]
    return pd.DataFrame(rows, columns=COLUMNS)


def _rates(shape: Shape, kind: str, studies: int, seed: int) -> dict[str, object]:
    null = _compared(shape, simulate(shape, studies, seed), studies, kind)
    tail = (1 - COVERAGE) / 2
    some = np.array([one.detectable(LEVEL, POWER) for one in null[:_POWER_STUDIES]])
    # the published number is off in either direction, by what our own data make detectable
    shift = np.where(np.arange(len(some)) % 2, 1.0, -1.0) * some
    margin = shape.difference or (0.1 if shape.linear else math.log(MARGIN))
    off = _compared(shape, simulate(shape, studies, seed + 1, margin), studies, kind)
    margin = abs(margin)
    power = math.nan
    # of what is no smooth distribution, or judged by ranks, the detectable effect is an approximation
    if np.isfinite(shift).all() and shape.noise not in _DISCRETE and shape.distribution == "smooth":
        every = np.pad(shift, (0, studies - len(shift)))
        shifted = _compared(shape, simulate(shape, studies, seed, every), len(shift), kind)
        power = float(np.mean([one.p <= LEVEL for one in shifted]))
    scatter = pd.Series([one.heterogeneity for one in null], dtype=float).dropna()
    return {
        "shape": shape.name,
        "kind": kind,
        "studies": studies,
        "false_alarms": float(np.mean([one.p <= LEVEL for one in null])),
        "coverage": float(np.mean([_covered(one, tail) for one in null])),
        "false_agreement": float(np.mean([one.p_agree(margin) <= LEVEL for one in off])),
        "power": power,
        "detectable": float(
            np.median(np.exp(some) if shape.scale == "log" and not shape.linear else some)
        ),
        "scatter_alarms": (scatter <= LEVEL).mean(),
        "rare_alarms": float(np.mean([one.p <= RARE for one in null])),
        "compared": len(null) / studies,
    }


def _covered(found: Predictive, tail: float) -> bool:
    """Whether the interval contains no effect; without its ends, which take longer to find."""
    inside = min(found.above(0.0), found.below(0.0)) >= tail
    if found.ranks and not inside:
        low, high = found.ranks.interval(1 - 2 * tail)
        inside = low <= 0 <= high
    return inside


def family(studies: int, seed: int = 20210308) -> tuple[float, float]:
    """Whole studies of 30 cells in ten columns, judged as a family.

    The first rate is the share of null studies with a verdict "differs". The second is the mean share of wrong ones
    among all "agrees" in studies half of whose columns are off by the margin.
    """
    shape = next(shape for shape in SHAPES if shape.name.startswith("20 x 4"))
    alarms, wrong = [], []
    for study in range(studies):
        null, off = (simulate(shape, 10, seed + study, shift) for shift in (0.0, math.log(MARGIN)))
        cells = null.published.cells
        half = cells["column"].str[1:].astype(int) < 5
        mixed = pd.concat([off.published.cells[half], cells[~half]])
        frames = [
            judge(null.measures, estimate(null.measures), replace(null.published, cells=own), study)
            for own in (cells, mixed)
        ]
        alarms.append(float((frames[0].frame["verdict"] == "differs").any()))
        agreed = frames[1].frame.query("verdict == 'agrees'")["id"]
        false = agreed.isin({*cells.loc[half, "column"], *cells.loc[half, "id"]})
        wrong.append(float(false.mean()) if len(agreed) else 0.0)
    return float(np.mean(alarms)), float(np.mean(wrong))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of rates."""
    parser = argparse.ArgumentParser(prog="calibrate.py", description=main.__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    table, wholes = calibrate(given.studies), max(given.studies // 10, 20)
    alarms, wrong = family(wholes)
    last = ["30 cells in 10 columns", "family", wholes, alarms, math.nan, wrong]
    table.loc[len(table), COLUMNS[:6]] = last
    table.to_csv(given.output, index=False, lineterminator="\n", float_format="%.4g")
    return 0


if __name__ == "__main__":
    sys.exit(main())
