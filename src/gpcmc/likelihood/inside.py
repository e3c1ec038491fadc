"""A latent value that is known to be between two limits of its own, without noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.likelihood.form import Likelihood
from gpcmc.likelihood.interval import all_moments
from gpcmc.likelihood.tilted import Tilted

_LEAST = 1e-20  # share of a variance that an interval leaves, at least


@dataclass(frozen=True, eq=False)
class Inside(Likelihood):
    """The indicator of lower < f < upper. Labels are the places (n,) of the latent values: each has its own limits.

    The evidence is the probability of the rectangle.

    Attributes
    ----------
    lower, upper : (n,) arrays
        lower < upper; infinite where there is none.
    """

    name: ClassVar[str] = "inside"
    #: An interval that is narrow enough has any precision.
    largest_curvature: ClassVar[float] = np.inf

    lower: FloatArray
    upper: FloatArray

    def check_labels(self, y: Any, n: int) -> FloatArray:
        """Return all places (n,)."""
        return np.arange(n, dtype=np.float64)

    def limits(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the limits (n,) of places y (n,)."""
        at = np.asarray(y, dtype=np.intp)
        return self.lower[at], self.upper[at]

    def log_likelihood(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return zero inside, and minus infinity outside."""
        low, high = self.limits(y)
        return np.where((low < f) & (f < high), 0.0, -np.inf)

    def derivatives(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return zeros: inside the indicator is flat."""
        return np.zeros_like(f), np.zeros_like(f)

    def third_derivative(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros_like(f)

    def tilted(self, y: FloatArray, mean: FloatArray, variance: FloatArray) -> Tilted:
        """In closed form: a normal between its limits."""
        deviation = np.sqrt(variance)
        low, high = self.limits(y)
        log_z, centre, w, ratio = all_moments((low - mean) / deviation, (high - mean) / deviation)
        return Tilted(log_z, centre / deviation, w / variance, np.maximum(ratio, _LEAST))
