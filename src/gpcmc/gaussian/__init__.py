"""Gaussian approximations of the posterior, and importance sampling from them."""
