"""Filippone and Girolami (2014): pseudo-marginal inference for Gaussian processes."""
