"""The Gaussian process prior and the likelihoods: what every inference method shares."""

from gpcmc.covariance.kernels import linear, orthant_covariance, rbf
from gpcmc.covariance.prior import Prior, prior
from gpcmc.gp.likelihood import derivatives, log_likelihood, predictive_probability

__all__ = [
    "Prior",
    "derivatives",
    "linear",
    "log_likelihood",
    "orthant_covariance",
    "predictive_probability",
    "prior",
    "rbf",
]
