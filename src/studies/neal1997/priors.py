"""Figure 1 of the paper: functions of one input, drawn from Gaussian processes with four covariances."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Kernel

from studies.common.rows import Line
from studies.common.seeds import generator
from studies.neal1997.model.kernel import SquaredExponential

Array = np.ndarray
#: Where functions are drawn. The paper does not print its interval.
GRID = np.linspace(-3.0, 3.0, 121)
#: Functions of each covariance.
DRAWS = 2
#: Added to the diagonal; cannot be seen.
_JITTER = 1e-8


def covariances() -> dict[str, Kernel]:
    """Return the covariances below the graphs, from left to right and from top to bottom."""
    small = ConstantKernel(0.1**2)
    return {
        "long": SquaredExponential(1.0),
        "short": SquaredExponential(5.0),
        "linear": ConstantKernel(1.0) + DotProduct(0.0) + small * SquaredExponential(3.0),
        "two": SquaredExponential(1.0) + small * SquaredExponential(5.0),
    }


def draws(name: str, path: str) -> Iterator[Line]:
    """Draw functions from a covariance, by its name and the path of its random stream.

    Yields
    ------
    dict
        ``prior``, ``draw``, ``place`` (the input) and ``value``.
    """
    rng = generator(path)
    kernel = covariances()[name]
    lower = np.linalg.cholesky(kernel(GRID[:, None]) + _JITTER * np.eye(len(GRID)))
    for draw in range(DRAWS):
        values = lower @ rng.standard_normal(len(GRID))
        for x, y in zip(GRID.tolist(), values.tolist(), strict=True):
            yield {"prior": name, "draw": draw, "seed": path, "place": x, "value": y}
