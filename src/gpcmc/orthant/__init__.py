"""Gaussian orthant probabilities: the sampler, and closed forms to test it against."""

from gpcmc.orthant.sampler import ExtinctionError, OrthantEstimate, orthant_probability

__all__ = ["ExtinctionError", "OrthantEstimate", "orthant_probability"]
