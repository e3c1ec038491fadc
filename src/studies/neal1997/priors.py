"""Figure 1 of the paper: functions of one input, drawn from Gaussian processes with four covariances."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Kernel

from gpcmc.neal.kernel import PowerExponential
from studies.common.pieces import Piece, Row
from studies.common.running import Keep
from studies.common.seeds import generator, seed

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
        "long": PowerExponential(1.0),
        "short": PowerExponential(5.0),
        "linear": ConstantKernel(1.0) + DotProduct(0.0) + small * PowerExponential(3.0),
        "two": PowerExponential(1.0) + small * PowerExponential(5.0),
    }


def priors(*, root: int, keep: Keep) -> Piece:
    """Draw from each covariance.

    Returns
    -------
    rows : list of dict
        ``prior``, ``draw``, ``place`` (the input) and ``value``.
    """

    def one() -> tuple[list[Row], dict[str, Array]]:
        rows: list[Row] = []
        for name, kernel in covariances().items():
            path = seed(root, "priors", name)
            rng = generator(path)
            lower = np.linalg.cholesky(kernel(GRID[:, None]) + _JITTER * np.eye(len(GRID)))
            for draw in range(DRAWS):
                values = lower @ rng.standard_normal(len(GRID))
                row: Row = {"prior": name, "draw": draw, "seed": path}
                pairs = zip(GRID.tolist(), values.tolist(), strict=True)
                rows += [{**row, "place": x, "value": y} for x, y in pairs]
        return rows, {}

    return keep("draws", one)
