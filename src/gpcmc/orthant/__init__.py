"""Gaussian orthant probabilities: the sampler, and closed forms to test it against."""

from gpcmc.orthant.populations import ExtinctionError, OrthantEstimate
from gpcmc.orthant.sampler import orthant_probability

__all__ = ["ExtinctionError", "OrthantEstimate", "orthant_probability"]
