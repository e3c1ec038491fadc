"""Twisted expectation propagation of a rectangle under the library's sparse covariance, as an evidence.

The field is measured in deviations of the nugget, which is then noise of variance one: a pattern's label says that its
value, with the noise, is between limits of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from gpcmc.covariance.prior import prior
from gpcmc.likelihood import Ordinal
from gpcmc.rectangle.classification import OrdinalTwisted, SampledPosterior
from studies.cao2024.problems import RANGE, Problem

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Between(Ordinal):
    """A likelihood whose label i says that value i, with its noise, is between limits of its own."""

    limits_of_each: tuple[Array, ...] = ()

    def limits(self, y: Any) -> tuple[Array, Array]:
        """Return the limits of labels (n,)."""
        lower, upper = self.limits_of_each
        i = np.asarray(y, dtype=int)
        return lower[i], upper[i]

    def check_labels(self, y: Any, n: int) -> Array:
        """Return the labels (n,), which are numbers of patterns."""
        return np.arange(n, dtype=float)


def twisted(
    given: Problem, neighbours: int, points: int, groups: int, rng: np.random.Generator
) -> SampledPosterior:
    """Return the posterior whose evidence is the probability; the spread of `groups` of so many points is its error."""
    kernel = ConstantKernel(1.0 / given.nugget) * Matern(RANGE * 3**0.5, nu=1.5)
    K = prior(kernel, given.locations, covariance="sparse", neighbours=neighbours)
    noise = given.nugget**0.5
    each = Between((0.0,), limits_of_each=(given.lower / noise, given.upper / noise))
    method = OrdinalTwisted(points, groups, likelihood=each)
    return cast(SampledPosterior, method.fit(K, np.arange(len(given.locations)), rng=rng))
