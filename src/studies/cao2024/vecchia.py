"""The covariance of a problem under Vecchia's approximation, as the authors have it.

The coordinates stand in the order in which they are drawn, and each is regressed on at most m nearest of those before
it. The authors regress v with its nugget, as here; `gpcmc.covariance.sparse` regresses the field without it.

References
----------
Cao and Katzfuss (2024), "Linear-cost Vecchia approximation of multivariate normal probabilities".
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from gpcmc.covariance.neighbours import Neighbours
from gpcmc.covariance.sparse import on_neighbours
from gpcmc.rectangle.vecchia import VecchiaFactor, earlier
from studies.cao2024.problems import RANGE, Problem

Array = np.ndarray


def factor_of(given: Problem, order: Array, neighbours: int) -> VecchiaFactor:
    """Regress each coordinate of a problem, in this order (n,), on so many earlier ones at most."""
    X = given.locations[order]
    near = Neighbours(
        X, np.ones(X.shape[1]), np.arange(len(X), dtype=np.int32), *earlier(X, neighbours)
    )
    kernel = Matern(RANGE * 3**0.5, nu=1.5) + WhiteKernel(given.nugget)
    return VecchiaFactor.of(on_neighbours(kernel, X, near))
