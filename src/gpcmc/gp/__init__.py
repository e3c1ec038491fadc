"""The Gaussian process prior, its kernels, and the probit likelihood."""

from gpcmc.covariance.kernels import linear, orthant_covariance, rbf
from gpcmc.covariance.prior import Prior, prior
from gpcmc.likelihood.probit import derivatives, log_likelihood, predictive_probability

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
