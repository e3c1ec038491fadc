"""Gaussian approximations of the posterior over any covariance: expectation propagation and Laplace's method."""
