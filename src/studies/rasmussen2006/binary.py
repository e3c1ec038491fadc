"""Threes against fives by Laplace's method and expectation propagation (section 3.7.3, Figures 3.7 to 3.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy.special import log_ndtr, ndtr

from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.gaussian import GaussianPosterior
from gpcmc.inference.laplace import Laplace
from studies.common.pieces import Piece, Row, join
from studies.common.running import Keep
from studies.rasmussen2006.gp import Surface, maximise, squared_exponential
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import half_width, information

Array = np.ndarray
METHODS = {"laplace": Laplace, "ep": ExpectationPropagation}
#: Half a unit in the last place of a printed coordinate, and the step of the book's grid: all six coordinates that it
#: prints are 0.10 above a multiple of 0.25.
ROUNDING, STEP = 0.005, 0.25
#: A misclassified case is confident if its probability is outside of this (Figure 3.9).
DOUBT = (0.1, 0.9)


def surface(
    method: str,
    *,
    digits: Mapping[str, Array],
    printed: tuple[float, float],
    fixed_amplitude: bool,
    grid: Mapping[str, Sequence[float]],
    keep: Keep,
) -> Piece:
    """Evaluate a method on a grid, around the printed point, and at its own maximum.

    Parameters
    ----------
    method : {"laplace", "ep"}
    digits : mapping
        Arrays of `patterns.usps`.
    printed : (float, float)
        log l and log sf.
    fixed_amplitude : bool
        Whether the maximum is over log l at the printed log sf: EP's evidence has a ridge and no maximum.
    grid : mapping
        ``log_length`` and ``log_amplitude``, values of each.

    Returns
    -------
    rows : list of dict
        One row a point; ``place`` is ``grid``, ``neighbour`` (the points of the book's grid around the printed one),
        ``rounding`` (what rounds to the printed point: it, corners and the best point) or ``maximum``.
    timing : list of dict
    arrays : dict
        Latent means of training and test cases, and probabilities of test cases, at the printed point.
    """
    data = Binary.of_digits(digits)
    evidence = Surface(METHODS[method](), data.distances, data.y)
    row = partial(_row, evidence, data)

    def on_grid(log_length: float) -> tuple[list[Row], dict[str, Array]]:
        return [row("grid", log_length, a) for a in grid["log_amplitude"]], {}

    def around() -> tuple[list[Row], dict[str, Array]]:
        # of a ridge, along the axes alone
        points = _square(printed, STEP, corners=not fixed_amplitude, middles=True)
        found = [row("neighbour", *point) for point in points]
        points = _square(printed, ROUNDING, corners=True, middles=False)
        points.append(_best(evidence, printed, ROUNDING))
        found += [row("rounding", *point) for point in points]
        return found, _arrays(evidence, data, printed)

    def best() -> tuple[list[Row], dict[str, Array]]:
        reach = (2.0, 0.0 if fixed_amplitude else 2.0)
        return [row("maximum", *_best(evidence, printed, *reach))], {}

    parts = [keep("around", around), keep("maximum", best)]
    parts += [keep(f"grid{x:g}", partial(on_grid, x)) for x in grid["log_length"]]
    return join(parts)


def _square(
    center: tuple[float, float], reach: float, *, corners: bool, middles: bool
) -> list[tuple[float, float]]:
    """The center of a square, its corners, and the middles of its sides."""
    places = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    used = {0: True, 1: middles, 2: corners}
    chosen = sorted((abs(i) + abs(j), i, j) for i, j in places if used[abs(i) + abs(j)])
    return [(center[0] + i * reach, center[1] + j * reach) for _, i, j in chosen]


def _best(
    evidence: Surface, start: tuple[float, float], reach: float, amplitude: float | None = None
) -> tuple[float, float]:
    """The best point within `reach` of the start in log l, and in log sf too unless another one is given."""
    reaches = (reach, reach if amplitude is None else amplitude)
    bounds = [(one - far, one + far) for one, far in zip(start, reaches, strict=True)]
    found = maximise(evidence.value_and_gradient, start, bounds).theta
    return float(found[0]), float(found[1])


def _latent(
    evidence: Surface, data: Binary, point: tuple[float, float]
) -> tuple[GaussianPosterior, Array, Array]:
    """The posterior at a point, and means and variances of the test latents."""
    found = evidence.posterior(*point)
    across = squared_exponential(data.across, *point)
    return found, *found.latent(across, np.full(len(data.y_star), np.exp(2 * point[1])))


def predictive_argument(method: str, data: Binary, point: tuple[float, float]) -> Array:
    """Return z (t,) of the probabilities Phi(z) of +1 by a method at a point."""
    _, mean, variance = _latent(Surface(METHODS[method](), data.distances, data.y), data, point)
    return mean / np.sqrt(1.0 + variance)


def maximum(method: str, data: Binary, start: tuple[float, float]) -> tuple[float, float]:
    """Return the point with the largest evidence near a start."""
    return _best(Surface(METHODS[method](), data.distances, data.y), start, 2.0)


def _arrays(evidence: Surface, data: Binary, point: tuple[float, float]) -> dict[str, Array]:
    posterior, mean, variance = _latent(evidence, data, point)
    return {
        "latent_train": posterior.mean,
        "latent_test": mean,
        "probability": ndtr(mean / np.sqrt(1.0 + variance)),
        "y_star": data.y_star,
    }


def _row(
    evidence: Surface, data: Binary, place: str, log_length: float, log_amplitude: float
) -> Row:
    posterior, mean, variance = _latent(evidence, data, (log_length, log_amplitude))
    scale = np.sqrt(1.0 + variance)
    told = information(log_ndtr(data.y_star * mean / scale), data.bits)
    p, wrong = ndtr(mean / scale), data.y_star * mean <= 0
    sure = (p < DOUBT[0]) | (p > DOUBT[1])
    return {
        "place": place,
        "log_length": log_length,
        "log_amplitude": log_amplitude,
        "log_evidence": posterior.log_evidence,
        "information": float(told.mean()),
        "half_width": half_width(told),
        "errors": int(wrong.sum()),
        "confident_errors": int((wrong & sure).sum()),
        "least_probability": float(p.min()),
        "greatest_probability": float(p.max()),
        "largest_latent": float(np.abs(mean).max()),
    }


def counts(*, digits: Mapping[str, Array], keep: Keep) -> Piece:
    """Return the numbers of cases, and the bits of the baseline (Eq. 3.76)."""

    def one() -> tuple[list[Row], dict[str, Array]]:
        data, rows = Binary.of_digits(digits), []
        for part, y in {"train": data.y, "test": data.y_star}.items():
            numbers = {"cases": len(y), "threes": (y > 0).sum(), "fives": (y < 0).sum()}
            rows += [{"quantity": f"{part}-{key}", "value": float(v)} for key, v in numbers.items()]
        return [*rows, {"quantity": "baseline", "value": data.bits}], {}

    return keep("counts", one)
