"""Threes against fives: Figures 3.7 to 3.9, the numbers of cases, and the controls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from scipy.special import ndtr
from scipy.stats import spearmanr

from recheck.judge.measures import OK, as_measures
from studies.common.measuring import Row, Rows, exact, nearest
from studies.rasmussen2006.grid import AMPLITUDES, LENGTHS, PRINTED

#: Cells and claims of this part.
IDS = (
    *("figure3.[789]/*", "equation3.76/*", "section3.7.3/t*", "section3.7.3/ep-laplace/*"),
    *("claim/ep/*", "claim/laplace/information"),
)
#: Where the numbers of each method are printed.
_FIGURE = {"laplace": "figure3.7/laplace", "ep": "figure3.8/ep"}
_COUNTS = {"laplace": "figure3.7/laplace", "ep": "figure3.9/ep"}
#: Printed numbers that are nearest at a point which rounds to the printed point.
_PRINTED = {
    "laplace": {"errors": 21, "half_width": 0.03},
    "ep": {"errors": 21, "confident_errors": 4, "half_width": 0.035},
}
#: Log evidence that is printed, of the controls where it is not Laplace's.
_OF_CONTROL = {"theta": -105, "raw-ep": -90}
#: Latent means that are larger are well in excess of 50, or 50 at least.
_LARGE = 50
#: A confident prediction is outside of this (Figure 3.9).
_DOUBT = (0.1, 0.9)
#: Marks that are closer, in parts of the side of Figure 3.9(a), are one to the eye: a quarter of a millimetre if the
#: side is five centimetres.
_ONE_MARK = 0.005
#: Half a unit in the last place of a printed coordinate.
_ROUNDING = 0.005
_SURFACES = ("log_evidence", "information", "errors")
_BINS = 30


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part."""
    surfaces = dict([*given.table("surface").groupby("method", sort=False)])
    found: list[Row] = [*_counts(given), *_controls(given, surfaces["laplace"])]
    best = {}
    for method in _FIGURE:
        places = {str(place): part for place, part in surfaces[method].groupby("place")}
        best[method] = {
            "grid": places["rounding"]["log_evidence"].max(),
            "surface": places["maximum"]["log_evidence"].max(),
        }
        found += [*_optimum(method, places, best[method]), *_grid(method, places["grid"])]
        found += _predictions(method, given.arrays("surface"))
        if method == "laplace":
            found += _of_laplace(places["grid"])
        else:
            found += _of_ep(places)
    source = "surface.csv"
    for level in ("grid", "surface"):
        difference = best["ep"][level] - best["laplace"][level]
        reading = f"optimum={level}"
        found.append(
            exact("section3.7.3/ep-laplace/log-evidence", difference, source, reading=reading)
        )
    grids = {m: surfaces[m].query("place != 'maximum'") for m in best}
    gain = grids["ep"]["information"].max() - grids["laplace"]["information"].max()
    found.append(exact("claim/ep/information", gain, source))
    return as_measures(sorted(found, key=lambda row: row["id"]))


def _counts(given: Rows) -> Iterator[Row]:
    for row in given.table("counts").to_dict("records"):
        part, _, kind = row["quantity"].partition("-")
        name = f"section3.7.3/{part}/{kind}" if kind else "equation3.76/baseline/information"
        yield exact(name, row["value"], row["source"])


def control(
    name: str, value: float, printed: float, half: float, source: str | Iterable[str]
) -> Iterator[Row]:
    """A number with a fault beside the printed one; a distance in halves of its last place that is above 1 is red."""
    found = {"value": value, "printed": printed, "distance": abs(value - printed) / half}
    for quantity, one in found.items():
        yield exact(f"control/{name}/{quantity}", one, source)


def _controls(given: Rows, laplace: pd.DataFrame) -> Iterator[Row]:
    for row in given.table("faults").to_dict("records"):
        printed = _OF_CONTROL.get(row["control"], -99)
        yield from control(row["control"], row["log_evidence"], printed, 0.5, row["source"])
    # without its 1/2 a kernel with l is the book's with l / sqrt(2), so that the whole surface is ours, moved
    best = laplace.query("place == 'maximum'").iloc[0]
    moved = best["log_length"] + math.log(2) / 2
    yield from control("no-half-length", moved, PRINTED["laplace"][0], _ROUNDING, best["source"])


def _optimum(method: str, places: dict[str, pd.DataFrame], best: dict[str, float]) -> Iterator[Row]:
    """The optimum, and numbers there, as the best point of the book's grid and as the maximum of the surface."""
    around, maximum = places["rounding"], places["maximum"]
    neighbours = places["neighbour"]
    if method == "ep":  # across its ridge
        neighbours = neighbours[np.isclose(neighbours["log_amplitude"], PRINTED["ep"][1])]
    top = neighbours.loc[neighbours["log_evidence"].idxmax()]
    parts = {"grid": (top, neighbours, around), "surface": (maximum.iloc[0], maximum, maximum)}
    for level, (where, sources, there) in parts.items():
        more = {"reading": f"optimum={level}"}
        for name in ("log_length", "log_amplitude")[: 1 if method == "ep" else 2]:
            id = f"{_FIGURE[method]}/{name.replace('_', '-')}"
            yield exact(id, where[name], sources["source"], **more)
        yield exact(f"{_FIGURE[method]}/log-evidence", best[level], there["source"], **more)
        for name, printed in _PRINTED[method].items():
            base = _FIGURE if name == "half_width" else _COUNTS
            value, own = nearest(there[name], printed), dict(more)
            if name == "confident_errors":
                own["reading"] = f"count=cases;{own['reading']}"
            yield exact(f"{base[method]}/{name.replace('_', '-')}", value, there["source"], **own)
        information = there["information"].iloc[0]  # at the center
        yield exact(f"{method}/information", information, there["source"], **more)


def _grid(method: str, grid: pd.DataFrame) -> Iterator[Row]:
    for row in grid.to_dict("records"):
        base = f"surface/{method}/l{row['log_length']:g}/a{row['log_amplitude']:g}"
        for name in _SURFACES:
            yield exact(f"{base}/{name.replace('_', '-')}", row[name], row["source"])


def _of_laplace(grid: pd.DataFrame) -> Iterator[Row]:
    least, whole = grid["errors"].min(), len(grid) == LENGTHS[1] * AMPLITUDES[1]
    rows = grid[grid["errors"] == least]
    status = OK if whole else "at most"
    yield exact("figure3.7/laplace/errors-least", least, rows["source"], status=status)
    # every grid has this point: see `grid.grid`
    corner = grid.sort_values(["log_length", "log_amplitude"], ascending=[True, False]).iloc[0]
    for name in ("least", "greatest"):
        value = corner[f"{name}_probability"]
        yield exact(f"corner/laplace/{name}", value, corner["source"])
    rank = float(spearmanr(grid["log_evidence"], grid["information"]).statistic)
    yield exact("claim/laplace/information", rank, grid["source"])


def _of_ep(places: dict[str, pd.DataFrame]) -> Iterator[Row]:
    rows = pd.concat([places["neighbour"], places["grid"]])
    ridge = rows[np.isclose(rows["log_length"], PRINTED["ep"][0]) & (rows["log_amplitude"] > 3.9)]
    ridge = ridge.drop_duplicates("log_amplitude").sort_values("log_amplitude")
    slopes = np.diff(ridge["log_evidence"]) / np.diff(ridge["log_amplitude"])
    steepest = slopes[np.abs(slopes).argmax()] if len(slopes) else math.nan
    yield exact("claim/ep/ridge", steepest, ridge["source"])
    center = places["rounding"].iloc[0]
    yield exact("ep/largest-latent", center["largest_latent"], center["source"])


def _predictions(method: str, stacked: dict[str, np.ndarray]) -> Iterator[Row]:
    """Numbers of latent means by bin, of training and test cases; and of probabilities, averaged and at the mean.

    By EP also both probabilities of each test case, and whether it is misclassified.
    """
    name, row = "surface.npz", f"{method}/around"
    arrays = {
        key: stacked[key][stacked[f"{key}/rows"] == row][0]
        for key in ("latent_train", "latent_test", "probability", "y_star")
    }
    latent = {"train": arrays["latent_train"], "test": arrays["latent_test"]}
    far = math.ceil(max(np.abs(values).max() for values in latent.values()))
    edges = np.linspace(-far, far, _BINS + 1)
    shares = {"averaged": arrays["probability"], "map": ndtr(arrays["latent_test"])}
    tables = {"latent": (latent, edges), "probability": (shares, np.linspace(0, 1, 21))}
    for kind, (parts, limits) in tables.items():
        for part, values in parts.items():
            numbers = np.histogram(values, limits)[0]
            for center, number in zip((limits[1:] + limits[:-1]) / 2, numbers, strict=True):
                yield exact(f"histogram/{method}/{kind}/{part}/{center:.4g}", number, name)
    if method == "ep":
        wrong = (arrays["latent_test"] * arrays["y_star"] <= 0).astype(float)
        for quantity, values in {**shares, "wrong": wrong}.items():
            for case, value in enumerate(values):
                yield exact(f"prediction/{case}/{quantity}", value, name)
        sure = (shares["averaged"] < _DOUBT[0]) | (shares["averaged"] > _DOUBT[1])
        places = np.column_stack([*shares.values()])[sure & (wrong == 1)]
        yield from _marks(places, name)
        yield exact("claim/ep/latents", np.mean(np.abs(arrays["latent_test"]) > _LARGE), name)
        yield from _softened(shares, name)


def _marks(places: np.ndarray, source: str) -> Iterator[Row]:
    """How many confident errors can be told apart in Figure 3.9(a), and distances between them."""
    apart = pdist(places)
    number = len(places)
    if number > 1:
        labels = fcluster(linkage(apart, "single"), _ONE_MARK, "distance")
        number = len(set(labels))
    reading = "count=marks;optimum=grid"
    yield exact("figure3.9/ep/confident-errors", number, source, reading=reading)
    for rank, distance in zip(("nearest", "next"), sorted(apart)[:2], strict=False):
        yield exact(f"marks/{rank}", distance, source)


def _softened(shares: dict[str, np.ndarray], source: str) -> Iterator[Row]:
    """In how many cases averaging keeps the more probable class, and comes no further from 1/2 than the mean does."""
    averaged, at_mean = (shares[name] - 0.5 for name in ("averaged", "map"))
    yield exact("averaging/same-class", float(np.mean(averaged * at_mean >= 0)), source)
    yield exact(
        "averaging/less-extreme", float(np.mean(np.abs(averaged) <= np.abs(at_mean))), source
    )
