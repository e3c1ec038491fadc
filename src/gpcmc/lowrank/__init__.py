"""Samplers and searches under covariances of low rank."""

from gpcmc.lowrank.dense_twisted import dense_twisted_ep
from gpcmc.lowrank.sampling import WeightedPosterior
from gpcmc.lowrank.surface import LowRankSurface, maximize_low_rank

__all__ = ["LowRankSurface", "WeightedPosterior", "dense_twisted_ep", "maximize_low_rank"]
