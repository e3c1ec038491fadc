"""Standard normal points that are drawn again when they are needed, not stored: random, antithetic, Sobol's.

References
----------
Owen (2013), Monte Carlo theory, methods and examples, chapters 9 and 17.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri

from gpcmc._sobol import BITS, Sobol
from gpcmc._validation import FloatArray

Points = Literal["random", "antithetic", "sobol"]

_BLOCK = 1024  # points held at once, unless a randomisation of Sobol's points has more
_SOBOL_DIRECTIONS = 16  # with more, the points cost more than they gain


def principal_directions(F: FloatArray) -> FloatArray:
    """Return the rotation (r, r) after which the columns of F are orthogonal, longest first."""
    return np.linalg.eigh(F.T @ F)[1][:, ::-1]


@dataclass(frozen=True, slots=True)
class PointSet:
    """Standard normal points that can be made again from their seed."""

    # Independent; pairs of opposite ones; or scrambled Sobol' points in the first 16 coordinates and
    # independent ones in the others
    kind: Points
    samples: int  # points in all
    unit: int  # points that belong together, side by side: pairs, or a randomisation of Sobol's
    dimension: int
    seed: tuple[int, ...]

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the points, (m, dimension) at a time; a block holds whole units."""
        rng = np.random.default_rng(self.seed)
        size = self.unit if self.kind == "sobol" else _BLOCK
        for start in range(0, self.samples, size):
            m = min(size, self.samples - start)
            if self.kind == "random":
                yield rng.standard_normal((m, self.dimension))
            elif self.kind == "antithetic":
                half = rng.standard_normal((m // 2, self.dimension))
                yield np.stack([half, -half], axis=1).reshape(m, self.dimension)
            else:
                yield _sobol_normals(m, self.dimension, rng)


def _sobol_normals(m: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Return one randomisation of m points: Sobol's in the first coordinates, plain normals after.

    Scrambling alone leaves points on a grid of 2^-30 that contains zero; the shift within a cell makes
    each of them uniform.
    """
    plain = rng.standard_normal((m, max(dimension - _SOBOL_DIRECTIONS, 0)))
    leading = dimension - plain.shape[1]
    if leading == 0:
        return plain
    grid = Sobol(leading, rng).random(m).T
    uniform = grid + rng.uniform(2.0**-54, 2.0**-BITS, grid.shape)
    return np.hstack([ndtri(uniform), plain])
