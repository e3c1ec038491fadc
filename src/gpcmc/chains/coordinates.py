"""Coordinates of the latent values in which the prior is white and the posterior nearly round.

The latent values are written f = root w with root root' = K and w standard normal a priori, where the root comes from
the eigenvectors of K and has as many columns as K has rank: a singular K is a case like any other, and a linear kernel
one of a few columns. The likelihood depends on f through the margins y f only, so the labels are multiplied into the
root once.

References
----------
Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, Eqs. (3.20), (3.26).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from gpcmc._validation import FloatArray
from gpcmc.covariance.dense import Dense
from gpcmc.gaussian.laplace import Laplace

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Coordinates w, standard normal a priori, of the latent values at n training inputs."""

    margin_map: FloatArray  # (r, n) margins y f are ``w @ margin_map``
    # (n, r) its transpose, stored: gradients with respect to margins, times it, are those with respect to w
    gradient_map: FloatArray
    back: FloatArray  # (n, r) with cross-covariances K* (n, t), the means of f* given w are ``w @ back.T @ K*``
    # (r,) Laplace's approximation of the posterior: N(mode, 1 / (1 + precision)), by coordinate
    mode: FloatArray
    precision: FloatArray  # (r,)
    factorizations: int  # of matrices, that it took to find them

    def draw_prior(self, count: int, *, rng: np.random.Generator) -> FloatArray:
        """Return (count, r) draws from the prior."""
        return rng.standard_normal((count, len(self.mode)))

    def draw_laplace(self, count: int, *, rng: np.random.Generator) -> FloatArray:
        """Return (count, r) draws from Laplace's approximation, where chains start.

        The posterior has one mode (it is log-concave), so that these lie about it, and about as far from each other as
        draws of the posterior do.
        """
        return self.mode + self.draw_prior(count, rng=rng) / np.sqrt(1.0 + self.precision)


def whiten(K: FloatArray, y: FloatArray) -> Coordinates:
    """Return coordinates in which the prior is white and Laplace's approximation diagonal.

    Along the eigenvectors of K (n, n), over their deviations, the prior is white and the precision of Laplace's
    approximation is I + root' W root. Turned to that matrix's eigenvectors the coordinates remain white. K is positive
    semidefinite: directions of variance below n eps times the largest are rounding errors of it, and left out.
    """
    variance, V = eigh(K, check_finite=False)
    kept = variance > len(K) * _EPS * variance[-1]
    deviation, V = np.sqrt(variance[kept]), V[:, kept]
    laplace = Laplace().last(Dense(K), y)  # the coordinates serve as well when it is not exact
    half = np.sqrt(laplace.S)[:, None] * V * deviation
    precision, U = eigh(half.T @ half, check_finite=False)
    root = (V * deviation) @ U
    gradient_map = y[:, None] * root
    return Coordinates(
        margin_map=np.ascontiguousarray(gradient_map.T),
        gradient_map=gradient_map,
        back=(V / deviation) @ U,
        mode=root.T @ laplace.a,
        precision=np.maximum(precision, 0.0),
        factorizations=3 + laplace.work["newton_steps"],
    )
