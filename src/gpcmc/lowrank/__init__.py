"""Covariances of low rank and a diagonal: the prior, the methods that work on it, and what it costs in evidence."""

from gpcmc.lowrank.correction import random_columns
from gpcmc.lowrank.covariance import LowRank
from gpcmc.lowrank.dense import parallel_ep
from gpcmc.lowrank.dense_twisted import dense_twisted_ep
from gpcmc.lowrank.gaussian import LowRankPosterior
from gpcmc.lowrank.methods import fit
from gpcmc.lowrank.multiclass import LowRankMulticlassPosterior
from gpcmc.lowrank.prior import LowRankPrior, low_rank_prior
from gpcmc.lowrank.sampling import WeightedPosterior
from gpcmc.lowrank.surface import LowRankSurface, maximize_low_rank

__all__ = [
    "LowRank",
    "LowRankMulticlassPosterior",
    "LowRankPosterior",
    "LowRankPrior",
    "LowRankSurface",
    "WeightedPosterior",
    "dense_twisted_ep",
    "fit",
    "low_rank_prior",
    "maximize_low_rank",
    "parallel_ep",
    "random_columns",
]
