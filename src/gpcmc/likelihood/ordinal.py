"""The ordered probit likelihood: p(y = c | f) = Phi(b_c+1 - f) - Phi(b_c - f), between rising edges b.

f + noise, the noise of variance one, is of class c where it is between the edges b_c and b_c+1; the first edge is minus
infinity and the last is infinity. One edge at zero is the probit. All is the mass and the moments of a normal between
two limits, accurate in both tails.

References
----------
Chu and Ghahramani (2005), Journal of Machine Learning Research 6, 1019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from gpcmc._validation import FloatArray, check_array
from gpcmc.likelihood.form import Likelihood
from gpcmc.likelihood.interval import all_moments
from gpcmc.likelihood.tilted import Tilted

# Of 16 panels on [-1, 1].
_NODE, _WEIGHT = np.polynomial.legendre.leggauss(16)
_NODE = ((np.arange(-15, 16, 2)[:, None] + _NODE) / 16.0).ravel()
_WEIGHT = np.tile(_WEIGHT / 16.0, 16)
_REACH = 45.0  # deviations of an exponential law, the widest, beyond which nothing of its third moment is left
_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class Ordinal(Likelihood):
    """The likelihood of ordered classes, whose labels are 0, 1, ..., C - 1.

    Attributes
    ----------
    edges : tuple of float
        The C - 1 finite ones, rising.

    Raises
    ------
    ValueError
        If there is none, or they are not finite and rising.
    """

    name: ClassVar[str] = "ordinal"
    largest_curvature: ClassVar[float] = 1.0

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = check_array("edges", self.edges, ndim=1)
        if not len(edges) or (np.diff(edges) <= 0.0).any():
            raise ValueError(f"edges must be one number or more, rising; got {edges.tolist()}")
        object.__setattr__(self, "edges", tuple(edges.tolist()))

    @property
    def at(self) -> FloatArray:
        """The edges as an array (C - 1,)."""
        return np.array(self.edges)

    @property
    def n_classes(self) -> int:
        """C."""
        return len(self.edges) + 1

    def check_labels(self, y: ArrayLike, n: int) -> FloatArray:
        """Return n class numbers as floats (n,).

        Raises
        ------
        ValueError
            If there are not n, or one is not a whole number from 0 to C - 1.
        """
        labels = check_array("y", y, ndim=1)
        if labels.shape != (n,) or not np.isin(labels, np.arange(self.n_classes)).all():
            raise ValueError(
                f"y must hold {n} class numbers from 0 to {self.n_classes - 1}; got shape {labels.shape} with values "
                f"from {labels.min(initial=np.inf):g} to {labels.max(initial=-np.inf):g}"
            )
        return labels

    def limits(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the edges (n,) below and above the classes y (n,)."""
        every, c = np.array([-np.inf, *self.edges, np.inf]), np.asarray(y, dtype=np.intp)
        return every[c], every[c + 1]

    def rectangle(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return signs and limits with p(y | f) = P(lower < sign f + noise < upper), the lower ones finite."""
        low, high = self.limits(y)
        lowest = np.isneginf(low)
        signs = np.where(lowest, -1.0, 1.0)
        return signs, np.where(lowest, -high, low), np.where(lowest, np.inf, high)

    def log_likelihood(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return log p(y | f)."""
        low, high = self.limits(y)
        return all_moments(low - f, high - f)[0]

    def derivatives(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of a normal between the edges, and one less its variance."""
        low, high = self.limits(y)
        return all_moments(low - f, high - f)[1:3]

    def third_derivative(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """The third central moment of a normal between the edges."""
        low, high = self.limits(y)
        low, high = low - f, high - f
        log_mass, mean, _, variance = all_moments(low, high)
        reach = _REACH * np.sqrt(variance)
        low, high = np.maximum(low, mean - reach), np.minimum(high, mean + reach)
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        z = middle[:, None] + half[:, None] * _NODE
        density = np.exp(-0.5 * z**2 - log_mass[:, None] - _LOG_ROOT_2PI)
        found: FloatArray = half * ((density * (z - mean[:, None]) ** 3) @ _WEIGHT)
        return found

    def tilted(self, y: FloatArray, mean: FloatArray, variance: FloatArray) -> Tilted:
        """In closed form: the latent value with its noise is a normal between the edges."""
        joint = 1.0 + variance
        scale = np.sqrt(joint)
        low, high = self.limits(y)
        log_z, centre, w, inside = all_moments((low - mean) / scale, (high - mean) / scale)
        return Tilted(log_z, centre / scale, w / joint, (1.0 + variance * inside) / joint)

    def edge_slopes(self, y: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the derivatives (C - 1,) of the sum of the log normalisers of `tilted` in the edges."""
        scale, c = np.sqrt(1.0 + variance), np.asarray(y, dtype=np.intp)
        ends = [(edge - mean) / scale for edge in self.limits(y)]
        log_z = all_moments(*ends)[0]
        # a density of an infinite edge is zero
        below, above = (np.exp(-0.5 * z**2 - _LOG_ROOT_2PI - log_z) / scale for z in ends)
        every = np.zeros(self.n_classes + 1)
        every += np.bincount(c + 1, above, self.n_classes + 1)
        every -= np.bincount(c, below, self.n_classes + 1)
        return every[1:-1]

    def average(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities (t, C) of all classes, and zeros."""
        probability = self.predictive_probability(mean, variance)
        return probability, np.zeros_like(probability)

    def predictive_probability(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the means (..., C) of p(c | f) over f ~ N(mean, variance), both (...)."""
        spread = np.sqrt(1.0 + variance)[..., None]
        z = (np.array([-np.inf, *self.edges, np.inf]) - mean[..., None]) / spread
        low, high = z[..., :-1], z[..., 1:]
        return np.where(low > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
