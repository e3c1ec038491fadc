"""Covariances of latent values as objects: the contract (`form`), and a file for each form. They know no labels."""

from gpcmc.covariance.cross import Cross
from gpcmc.covariance.dense import Dense
from gpcmc.covariance.form import Conditioned, Correction, Covariance, GradientMatrix, Latent
from gpcmc.covariance.kernels import linear, rbf
from gpcmc.covariance.lowrank import LowRank, low_rank
from gpcmc.covariance.prior import Prior, prior
from gpcmc.covariance.sparse import Sparse

__all__ = [
    "Conditioned",
    "Correction",
    "Covariance",
    "Cross",
    "Dense",
    "GradientMatrix",
    "Latent",
    "LowRank",
    "Prior",
    "Sparse",
    "linear",
    "low_rank",
    "prior",
    "rbf",
]
