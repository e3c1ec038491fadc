"""Covariances of the latent values, which know of no labels and no method."""
