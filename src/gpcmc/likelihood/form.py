"""What a likelihood p(y | f) of labels -1/+1 is, with one latent value a pattern.

A new likelihood is a subclass with log p(y | f) and its first three derivatives in f. The moments that expectation
propagation needs, and predictive probabilities, come by quadrature unless it knows them in closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._validation import FloatArray, check_labels
from gpcmc.likelihood.tilted import Tilted, by_quadrature


class Likelihood(ABC):
    """A likelihood of labels -1/+1, log-concave in the latent value; all functions are elementwise."""

    __slots__ = ()

    #: For messages and options.
    name: ClassVar[str]
    #: The largest value of minus the second derivative, which no site's precision exceeds.
    largest_curvature: ClassVar[float]

    def check_labels(self, y: ArrayLike, n: int) -> FloatArray:
        """Return n labels as the other functions take them: -1/+1 (n,).

        Raises
        ------
        ValueError
            If they are not.
        """
        return check_labels("y", y, n)

    @abstractmethod
    def log_likelihood(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return log p(y | f)."""

    @abstractmethod
    def derivatives(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first derivative of log p(y | f) in f, and W, minus the second one."""

    @abstractmethod
    def third_derivative(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the third derivative of log p(y | f) in f."""

    def tilted(self, y: FloatArray, mean: FloatArray, variance: FloatArray) -> Tilted:
        """Return what the likelihood makes of Gaussians N(mean, variance): normalisers and moments."""
        return by_quadrature(self.log_likelihood, self.derivatives, y, mean, variance)

    def predictive_probability(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean of p(+1 | f) over f ~ N(mean, variance)."""
        return np.exp(self.tilted(np.ones_like(mean), mean, variance).log_z)

    def average(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return predictive probabilities and their standard errors, which are zeros."""
        probability = self.predictive_probability(mean, variance)
        return probability, np.zeros_like(probability)

    def roughly(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return predictive probabilities."""
        return self.predictive_probability(mean, variance)
