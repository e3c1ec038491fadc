"""Calibration of the judge: simulated studies with a known answer, in every shape that is in use.

A shape is a design on both sides: units, runs, cells that share units, rounding. Its studies are drawn from one known
distribution, and the judge's own code compares them. Nothing in a null study differs, so that the share of p-values
below 5 % is a rate of false alarms. In a shifted study the published number is off by the factor that the judge calls
detectable there at 5 %, so that this share is a power. An interval of 90 % covers the truth in nine of ten. Where the
published number is off by exactly the margin, "agrees" is wrong, and may come up in one of twenty.

``python -m recheck.calibrate --studies 2000 --output data/published/calibration.csv`` writes the table.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.compare import Comparer
from recheck.measures import estimate
from recheck.published import STANDARD_ERROR, Contrast, Protocol, Published, half_unit, number

__all__ = ["COLUMNS", "SHAPES", "Shape", "calibrate", "family", "main", "simulate"]

LEVEL, POWER, COVERAGE, MARGIN = 0.05, 0.8, 0.9, 2.0
#: Studies of a shape that the power is computed from, each with its own detectable effect.
_POWER_STUDIES = 400
COLUMNS = [
    *["shape", "kind", "studies", "false_alarms", "coverage", "false_agreement"],
    *["power", "detectable", "scatter_alarms"],
]


@dataclass(frozen=True)
class Shape:
    """A design and the distribution that its studies are drawn from.

    Attributes
    ----------
    name : str
    units, runs : tuple of int
        Ours, by cell of a column. A cell with fewer units has the first ones.
    their_units, their_runs : int
    noise : str
        Of runs: ``normal`` (a smooth error, relative deviation `run_sd`) or ``half-normal`` (the absolute value of a
        centred normal, as the error of one estimate is).
    between : float
        Standard deviation of a unit's logarithm.
    run_sd : float
    digits : int
        Printed significant digits.
    bracket : bool
        Whether a standard error is printed.
    fresh : bool
        Whether published cells had units of their own.
    wrong : float
        Error of a wrong truth that one of the published units has in all cells, as a multiple of the mean error.
    elsewhere : int
        Units with which the distribution between units is measured elsewhere.
    apart : bool
        Whether each cell has units of its own, as a column over problems does.
    linear : float
        Standard deviation between units of a difference of two cells: the shape is a contrast. 0: it is none.
    """

    name: str
    units: tuple[int, ...]
    runs: tuple[int, ...]
    their_units: int = 1
    their_runs: int = 1
    noise: str = "normal"
    between: float = 0.2
    run_sd: float = 0.2
    digits: int = 3
    bracket: bool = False
    fresh: bool = False
    wrong: float = 0.0
    elsewhere: int = 0
    apart: bool = False
    linear: float = 0.0


_MANY = (50, 50, 50)
SHAPES = (
    Shape("50 x 1 beside 50 x 1, printed errors", _MANY, (1, 1, 1), 50, bracket=True,
          noise="half-normal", between=0.3),
    Shape("20 x 1 beside 50 x 1, printed errors, fresh", (20,) * 3, (1, 1, 1), 50, bracket=True,
          noise="half-normal", between=0.3, fresh=True),
    Shape("50 x 1 beside 50 x 1", _MANY, (1, 1, 1), 50, noise="half-normal", between=0.3),
    Shape("20 x 4 beside 1 x 20, smooth", (20, 20, 10), (20, 4, 2), 1, 20, run_sd=0.3, digits=2),
    Shape("20 x 4 beside 1 x 20, absolute errors", (20, 20, 10), (20, 4, 2), 1, 20,
          noise="half-normal", between=0.15, digits=2),
    Shape("the same, fresh", (20, 20, 10), (20, 4, 2), 1, 20, noise="half-normal", between=0.15,
          digits=2, fresh=True),
    Shape("the same, units alike", (20, 20, 10), (20, 4, 2), 1, 20, noise="half-normal",
          between=0.0, digits=2),
    Shape("5 x 6 beside 1 x 20", (5, 5, 5), (6, 2, 1), 1, 20, noise="half-normal", digits=2),
    Shape("3 x 3 beside 1 x 20", (3, 3), (3, 1), 1, 20, noise="half-normal", digits=2),
    Shape("10 x 1 beside 1 x 1", (10,), (1,), digits=2),
    Shape("10 x 3 beside 1 x 1, six problems", (10,) * 6, (3,) * 6, digits=2, apart=True),
    Shape("3 x 5 beside 1 x 1", (3, 3), (5, 5), digits=2, apart=True),
    Shape("1 x 5 beside 1 x 1, 20 units elsewhere", (1,), (5,), elsewhere=20),
    Shape("10 x 2 beside 1 x 1, coarse rounding", (10,), (2,), between=0.02, run_sd=0.02, digits=1),
    Shape("contrast, 10 x 3 beside 1 x 1", (10, 10), (3, 3), linear=0.02, run_sd=0.1),
    Shape("contrast, 3 x 1 beside 1 x 1", (3, 3), (1, 1), linear=0.02, run_sd=0.1),
)  # fmt: skip


@dataclass(frozen=True)
class Simulated:
    """Studies of a shape as the judge reads them.

    Attributes
    ----------
    measures : DataFrame
    published : Published
        One column a study; its cells are the shape's.
    """

    measures: pd.DataFrame
    published: Published


def simulate(shape: Shape, studies: int, seed: int, shift: np.ndarray | float = 0.0) -> Simulated:
    """Draw studies of a shape.

    Parameters
    ----------
    shape : Shape
    studies : int
    seed : int
    shift : float or ndarray, shape (studies,)
        What is added to the logarithm of each published number (to the first cell of a contrast, not as a logarithm).
        Our side is the same whatever it is.
    """
    rng = np.random.default_rng(seed)
    k, most = len(shape.units), max(shape.units)
    true = 10.0 ** -np.arange(k) if not shape.linear else np.ones(k)
    effects = _effects(shape, rng, (studies, most, k))
    rows: dict[str, list[np.ndarray]] = {"id": [], "unit": [], "run": [], "value": []}
    for cell, (units, runs) in enumerate(zip(shape.units, shape.runs, strict=True)):
        values = _runs(shape, rng, true[cell] * effects[:, :units, cell], runs)
        where = np.indices(values.shape)
        study = np.char.mod("s%d", where[0].ravel())
        own = f"/c{cell}" if shape.apart else ""
        rows["id"].append(np.char.add(np.char.add(study, "/"), f"c{cell}"))
        unit = np.char.add(np.char.add(study, own + "/u"), np.char.mod("%d", where[1].ravel()))
        rows["unit"].append(unit)
        rows["run"].append(np.char.mod("%d", where[2].ravel()))
        rows["value"].append(values.ravel())
    if shape.elsewhere:
        extra = _effects(shape, rng, (studies, shape.elsewhere, 1))[:, :, 0]
        where = np.indices(extra.shape)
        rows["id"].append(np.char.mod("between/s%d/c0", where[0].ravel()))
        rows["unit"].append(np.char.mod("other%d", where[1].ravel()))
        rows["run"].append(np.full(extra.size, "0"))
        rows["value"].append(extra.ravel())
    table = {name: np.concatenate(parts) for name, parts in rows.items()}
    blank = dict.fromkeys(["reading", "source", "seed"], "")
    measures = pd.DataFrame({**table, "scale": "log", "status": "ok", **blank}).assign(
        se=math.nan, df=math.nan
    )
    measures["id"] = measures["id"].astype(object)
    measures["unit"] = measures["unit"].astype(object)
    return Simulated(measures, Published(_printed(shape, rng, studies, true, shift)))


def _effects(shape: Shape, rng: np.random.Generator, size: tuple[int, int, int]) -> np.ndarray:
    """Factors of units: common to the cells of a column, with a little of each cell's own."""
    if shape.linear:
        common = 1.0 + 0.2 * rng.standard_normal((*size[:2], 1)) * np.ones(size[2])
        common[:, :, 0] += shape.linear * rng.standard_normal(size[:2])
        return common
    own = 1.0 if shape.apart else 0.4
    common = math.sqrt(1 - own**2) * rng.standard_normal((*size[:2], 1))
    return np.exp(shape.between * (common + own * rng.standard_normal(size)))


def _runs(shape: Shape, rng: np.random.Generator, means: np.ndarray, runs: int) -> np.ndarray:
    """Values of runs on units with these means, shape (..., runs)."""
    normal = rng.standard_normal((*means.shape, runs))
    if shape.noise == "half-normal":
        return means[..., None] * np.abs(normal)
    if shape.linear:
        return means[..., None] + shape.run_sd * shape.linear * normal
    return means[..., None] * np.exp(shape.run_sd * normal - shape.run_sd**2 / 2)


def _printed(
    shape: Shape,
    rng: np.random.Generator,
    studies: int,
    true: np.ndarray,
    shift: np.ndarray | float,
) -> pd.DataFrame:
    """The published cells of simulated studies: rounded, with a bracket where the shape has one."""
    k, size = len(true), (studies, shape.their_units, len(true))
    effects = _effects(shape, rng, size)
    if shape.fresh:
        effects = np.stack([_effects(shape, rng, size)[:, :, c] for c in range(k)], axis=2)
    values = _runs(shape, rng, true * effects, shape.their_runs).mean(axis=-1)
    if shape.wrong:
        # one truth is off by so many times the mean error with the fewest samples
        values[:, 0, :] += shape.wrong * true[0]
    shifts, rows = np.broadcast_to(shift, (studies,)), []
    if shape.linear:
        values[:, :, 0] += shifts[:, None]
    else:
        values = values * np.exp(shifts)[:, None, None]
    means = values.mean(axis=1)
    errors = values.std(axis=1, ddof=1) if shape.their_units > 1 else np.full_like(means, np.nan)
    errors = errors / math.sqrt(shape.their_units)
    for study in range(studies):
        for cell in range(k):
            printed = f"{means[study, cell]:.{shape.digits - 1}e}"
            rows.append((f"s{study}/c{cell}", f"s{study}", printed, errors[study, cell]))
    frame = pd.DataFrame(rows, columns=["id", "column", "printed", "bracket_value"])
    return frame.assign(
        table="t",
        scale="log",
        units=shape.their_units,
        runs=shape.their_runs,
        bracket_kind=STANDARD_ERROR if shape.bracket else "",
        value=frame["printed"].map(number),
        rounding=frame["printed"].map(half_unit),
    ).set_index("id", drop=False)


def _comparisons(shape: Shape, drawn: Simulated, studies: int, kind: str) -> list[tuple]:
    """Predictive, p-value and p-value of the scatter of each study."""
    comparer = Comparer(drawn.measures, drawn.published, 7)
    levels = {"instances": "fresh" if shape.fresh else "shared"}
    found = []
    for study in range(studies):
        ids = [f"s{study}/c{cell}" for cell in range(len(shape.units))]
        if kind == "contrast":
            rule = Contrast(id="d", first=ids[0], second=ids[1], scale="linear", margin=1.0)
            one = comparer.contrast(f"s{study}", (ids[0], ids[1]), rule, levels)
            found.append((one, one.p, math.nan))
        elif kind == "column":
            column = comparer.column(f"s{study}", ids, levels)
            found.append((column, column.p, column.heterogeneity))
        else:  # the cell with the fewest runs is the hardest
            one = comparer.cell(ids[-1], levels)
            found.append((one, one.p, math.nan))
    return found


def calibrate(studies: int, seed: int = 20210308, shapes: Sequence[Shape] = SHAPES) -> pd.DataFrame:
    """Rates of the judge over simulated studies.

    Parameters
    ----------
    studies : int
        Of each shape and kind.
    seed : int
    shapes : sequence of Shape

    Returns
    -------
    DataFrame
        `COLUMNS`: ``false_alarms`` and ``scatter_alarms`` at a level of 5 %, ``coverage`` of the interval of 90 %,
        ``false_agreement`` at a level of 5 %, ``power`` at each study's own detectable effect at 5 %; ``detectable`` is
        the median of these (a factor; a difference of a contrast).
    """
    rows = []
    for place, shape in enumerate(shapes):
        kinds = ["contrast"] if shape.linear else ["cell", "column"][: len(shape.units)]
        for kind in kinds:
            rows.append(_rates(shape, kind, studies, seed + 1000 * place))
    return pd.DataFrame(rows, columns=COLUMNS)


def _rates(shape: Shape, kind: str, studies: int, seed: int) -> dict[str, object]:
    null = _comparisons(shape, simulate(shape, studies, seed), studies, kind)
    tail = (1 - COVERAGE) / 2
    covered = [tail <= one.above(0.0) <= 1 - tail for one, _, _ in null]
    some = np.array([one.detectable(LEVEL, POWER) for one, _, _ in null[:_POWER_STUDIES]])
    # the published number is off in either direction, by what our own data make detectable
    shift = np.where(np.arange(len(some)) % 2, 1.0, -1.0) * some
    margin = 0.1 if shape.linear else math.log(MARGIN)
    off = simulate(shape, studies, seed + 1, margin)
    wrong = [one.p_agree(margin) <= LEVEL for one, _, _ in _comparisons(shape, off, studies, kind)]
    power = math.nan
    if np.isfinite(shift).all():
        every = np.pad(shift, (0, studies - len(shift)))
        shifted = _comparisons(shape, simulate(shape, studies, seed, every), len(shift), kind)
        power = float(np.mean([p <= LEVEL for _, p, _ in shifted]))
    scatter = [p for _, _, p in null if not math.isnan(p)]
    return {
        "shape": shape.name,
        "kind": kind,
        "studies": studies,
        "false_alarms": float(np.mean([p <= LEVEL for _, p, _ in null])),
        "coverage": float(np.mean(covered)),
        "false_agreement": float(np.mean(wrong)),
        "power": power,
        "detectable": float(np.median(some if shape.linear else np.exp(some))),
        "scatter_alarms": float(np.mean([p <= LEVEL for p in scatter])) if scatter else math.nan,
    }


def family(studies: int, seed: int = 20210308) -> tuple[float, float]:
    """Whole studies of 30 cells in ten columns, judged as a family.

    Returns
    -------
    (float, float)
        Share of null studies with a verdict "differs"; mean share of wrong ones among all "agrees" in studies half of
        whose columns are off by the margin.
    """
    from recheck.judge import judge

    shape = next(shape for shape in SHAPES if shape.name.startswith("20 x 4"))
    rates = []
    for shift in (0.0, math.log(MARGIN)):
        found = []
        for study in range(studies):
            null = simulate(shape, 10, seed + study)
            cells, other = null.published.cells, simulate(shape, 10, seed + study, shift)
            half = cells["column"].str[1:].astype(int) < 5
            cells = pd.concat([other.published.cells[half], cells[~half]])
            off = set(cells["column"].iloc[: half.sum()]) | set(cells["id"].iloc[: half.sum()])
            published = replace(null.published, cells=cells, protocol=Protocol())
            frame = judge(null.measures, estimate(null.measures), published, study).frame
            if not shift:
                found.append(float((frame["verdict"] == "differs").any()))
                continue
            agreed = frame[frame["verdict"] == "agrees"]
            found.append(float(agreed["id"].isin(off).mean()) if len(agreed) else 0.0)
        rates.append(float(np.mean(found)))
    return rates[0], rates[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of rates."""
    parser = argparse.ArgumentParser(prog="recheck.calibrate", description=main.__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    table = calibrate(given.studies)
    wholes = max(given.studies // 10, 20)
    alarms, wrong = family(wholes)
    last = {"shape": "30 cells in 10 columns", "kind": "family", "studies": wholes}
    row = {**last, "false_alarms": alarms, "false_agreement": wrong}
    table = pd.concat([table, pd.DataFrame([row])])[COLUMNS]
    table.to_csv(given.output, index=False, lineterminator="\n", float_format="%.4g")
    return 0


if __name__ == "__main__":
    sys.exit(main())
