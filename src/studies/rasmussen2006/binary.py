"""Threes against fives by Laplace's method and expectation propagation (section 3.7.3, Figures 3.7 to 3.9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.posterior import GaussianPosterior
from studies.common.rows import Line
from studies.rasmussen2006.gp import Surface, maximise, squared_exponential
from studies.rasmussen2006.grid import STEP
from studies.rasmussen2006.patterns import Binary
from studies.rasmussen2006.scores import half_width, information

Array = np.ndarray
#: log l and log sf.
Point = tuple[float, float]
METHODS = {"laplace": Laplace, "ep": ExpectationPropagation}
#: Half a unit in the last place of a printed coordinate.
ROUNDING = 0.005
#: A misclassified case is confident if its probability is outside of this (Figure 3.9).
DOUBT = (0.1, 0.9)


@dataclass(frozen=True)
class Evidence:
    """The evidence by a method at points (log l, log sf), and what it says of the test cases there."""

    surface: Surface
    data: Binary

    @classmethod
    def of(cls, method: str, data: Binary) -> Evidence:
        """Return that of ``laplace`` or ``ep``."""
        return cls(Surface(METHODS[method](), data.distances, data.y), data)

    def around(self, printed: Point, ridge: bool) -> list[Line]:
        """Return lines of the book's grid around the printed point, and of what rounds to it.

        Parameters
        ----------
        printed : (float, float)
        ridge : bool
            Whether the neighbours are along the axes alone.
        """
        points = _square(printed, STEP, corners=not ridge, middles=True)
        found = [self.line("neighbour", point) for point in points]
        points = _square(printed, ROUNDING, corners=True, middles=False)
        points.append(self.best(printed, ROUNDING))
        return found + [self.line("rounding", point) for point in points]

    def maximum(self, printed: Point, ridge: bool) -> Line:
        """Return the line of the maximum near the printed point; of a ridge, over log l alone."""
        return self.line("maximum", self.best(printed, 2.0, 0.0 if ridge else 2.0))

    def best(self, start: Point, reach: float, amplitude: float | None = None) -> Point:
        """Return the best point within `reach` of the start in log l, and in log sf too unless another one is given."""
        reaches = (reach, reach if amplitude is None else amplitude)
        bounds = [(one - far, one + far) for one, far in zip(start, reaches, strict=True)]
        found = maximise(self.surface.value_and_gradient, start, bounds).theta
        return float(found[0]), float(found[1])

    def latent(self, point: Point) -> tuple[GaussianPosterior, Array, Array]:
        """Return the posterior at a point, and means and variances of the test latents."""
        found = self.surface.posterior(*point)
        across = squared_exponential(self.data.across, *point)
        variances = np.full(len(self.data.y_star), np.exp(2 * point[1]))
        return found, *found.latent(across, variances)

    def line(self, place: str, point: Point) -> Line:
        """Return the numbers at a point."""
        posterior, mean, variance = self.latent(point)
        y_star, bits = self.data.y_star, self.data.bits
        scale = np.sqrt(1.0 + variance)
        told = information(log_ndtr(y_star * mean / scale), bits)
        p, wrong = ndtr(mean / scale), y_star * mean <= 0
        sure = (p < DOUBT[0]) | (p > DOUBT[1])
        return {
            "place": place,
            "log_length": point[0],
            "log_amplitude": point[1],
            "log_evidence": posterior.log_evidence,
            "information": float(told.mean()),
            "half_width": half_width(told),
            "errors": int(wrong.sum()),
            "confident_errors": int((wrong & sure).sum()),
            "least_probability": float(p.min()),
            "greatest_probability": float(p.max()),
            "largest_latent": float(np.abs(mean).max()),
        }

    def arrays(self, point: Point) -> dict[str, Array]:
        """Return latent means of training and test cases, and probabilities and labels of test cases, at a point."""
        posterior, mean, variance = self.latent(point)
        return {
            "latent_train": posterior.mean,
            "latent_test": mean,
            "probability": ndtr(mean / np.sqrt(1.0 + variance)),
            "y_star": self.data.y_star,
        }

    def predictive_argument(self, point: Point) -> Array:
        """Return z (t,) of the probabilities Phi(z) of +1 at a point."""
        _, mean, variance = self.latent(point)
        argument: Array = mean / np.sqrt(1.0 + variance)
        return argument


def _square(center: Point, reach: float, *, corners: bool, middles: bool) -> list[Point]:
    """The center of a square, its corners, and the middles of its sides."""
    places = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    used = {0: True, 1: middles, 2: corners}
    chosen = sorted((abs(i) + abs(j), i, j) for i, j in places if used[abs(i) + abs(j)])
    return [(center[0] + i * reach, center[1] + j * reach) for _, i, j in chosen]


def counts(digits: Mapping[str, Array]) -> list[Line]:
    """Return the numbers of cases, and the bits of the baseline (Eq. 3.76): ``quantity`` and ``value``."""
    data, lines = Binary.of_digits(digits), []
    for part, y in {"train": data.y, "test": data.y_star}.items():
        numbers = {"cases": len(y), "threes": (y > 0).sum(), "fives": (y < 0).sum()}
        lines += [{"quantity": f"{part}-{key}", "value": float(v)} for key, v in numbers.items()]
    return [*lines, {"quantity": "baseline", "value": data.bits}]
