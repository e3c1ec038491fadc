"""Searches under covariances of low rank."""

from gpcmc.lowrank.surface import LowRankSurface, maximize_low_rank

__all__ = ["LowRankSurface", "maximize_low_rank"]
