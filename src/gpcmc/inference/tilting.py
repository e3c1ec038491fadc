"""Exact inference by minimax exponential tilting (Botev 2017), with reordered variables and Sobol' points.

The weights are bounded, so that their average has a variance and its standard error a meaning; how far the
bound lies above their mean is among the diagnostics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import cholesky

from gpcmc import _validation as validation
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.inference.separated import Separated, SeparatedSampler
from gpcmc.orthant.sampler import Array
from gpcmc.orthant.tilting import gibson_order, minimax_tilt, tilted_proposal


@dataclass(frozen=True, slots=True)
class MinimaxTilting(Separated):
    """Options of minimax exponential tilting.

    Attributes
    ----------
    points : int
        Sobol' points of a randomisation, a power of two.
    randomizations : int
        Independent randomisations: their spread is the standard error.
    order : {"gibson", "given"}
        Order in which coordinates are drawn: the least likely to be inside first, or that of the patterns.
    """

    points: int = 4096
    order: Literal["gibson", "given"] = "gibson"

    def __post_init__(self) -> None:
        Separated.__post_init__(self)
        validation.check_option("order", self.order, ("gibson", "given"))

    matrices: ClassVar[float] = 12.0

    def prepare(self, K: Array, y: Array) -> SeparatedSampler:
        """Order and tilt."""
        R = orthant_covariance(K, y)
        if self.order == "gibson":
            order, L = gibson_order(R)
        else:
            order, L = np.arange(len(y)), cholesky(R, lower=True, check_finite=False)
        tilt = minimax_tilt(L)
        return SeparatedSampler(
            proposal=tilted_proposal(L, tilt.mu),
            defence=None,
            log_bound=tilt.log_bound,
            L=L,
            order=order,
            signs=y[order],
            work={"factorizations": 1 + tilt.steps},  # the order and each Newton step
        )
