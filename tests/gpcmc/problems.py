"""Small problems of classification that the tests share: labels follow the first input, with noise."""

import numpy as np
from numpy.random import default_rng

from gpcmc.gp import prior, rbf


def noisy_problem(seed, n=40, d=2):
    """Inputs (n, d) and labels."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


def random_problem(seed=0, n=40, d=2, alpha=1.0, beta=4.0):
    """Their covariance, and labels."""
    X, y = noisy_problem(seed, n, d)
    return rbf(alpha, beta)(X), y


def small_problem(n=12, seed=0, alpha=1.0, beta=2.0):
    """Covariances of a problem with five test inputs, and labels."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return prior(rbf(alpha, beta), X, rng.standard_normal((5, 2))), y


def classes(n, seed, alpha=1.0, beta=2.0):
    """The same with more noise."""
    rng = default_rng(seed)
    X, X_star = rng.standard_normal((n, 2)), rng.standard_normal((5, 2))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return prior(rbf(alpha, beta), X, X_star), y
