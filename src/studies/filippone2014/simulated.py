"""Data simulated from the model, and real data as the source standardises them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import gamma

from gpcmc.chains import hyperparameters
from gpcmc.chains.hyperparameter_steps import lower_root
from gpcmc.chains.hyperparameters import HyperparameterPrior, Model, default_prior
from studies.common.seeds import generator

Array = np.ndarray
#: Inputs drawn for each that is kept; a class that is still short makes us draw anew.
_POOL = 4
_DRAWS = 100


class Simulated(NamedTuple):
    """A data set: inputs (n, d) in the unit cube, labels (n,), and (log sigma, log tau) that made it."""

    X: Array
    y: Array
    theta: Array


def truth(d: int) -> Array:
    """Return (log sigma, log tau): the medians of the priors. The source's are not stated in what we have of it."""
    prior = default_prior(d)
    return np.log(gamma.median(prior.shape, scale=1.0 / np.asarray(prior.rate)))


def simulate(n: int, d: int, path: str, *, balanced: bool) -> Simulated:
    """Draw inputs, latent values and labels from the isotropic model at `truth`.

    Parameters
    ----------
    n, d : int
        Cases, an even number, and inputs.
    path : str
        Of the random stream.
    balanced : bool
        Take the first n / 2 of each class (section 4.2), else the first n (section 4.1).

    Raises
    ------
    ValueError
        If n is odd.
    """
    if n % 2:
        raise ValueError(f"n must be even, half of it is of each class; got {n}")
    rng, theta = generator(path), truth(d)
    for _ in range(_DRAWS):
        X = rng.random((_POOL * n, d))
        K = model_of(X, np.ones(len(X)), relevance=False)
        f = lower_root(K.covariance(theta)) @ rng.standard_normal(len(X))
        y = np.where(f + rng.standard_normal(len(X)) > 0, 1.0, -1.0)
        if not balanced:
            return Simulated(X[:n], y[:n], theta)
        classes = [np.flatnonzero(y == label)[: n // 2] for label in (-1.0, 1.0)]
        if all(len(one) == n // 2 for one in classes):
            used = np.sort(np.concatenate(classes))
            return Simulated(X[used], y[used], theta)
    raise ValueError(f"{path}: one class has fewer than n / 2 cases in each of {_DRAWS} draws")


def standardised(data: Mapping[str, Array], cases: int = 0) -> tuple[Array, Array]:
    """Return X with mean 0 and standard deviation 1 over all cases, and y; of many cases the first so many, if not 0.

    An input that does not vary is left out. The order of cases is drawn once, for files may be sorted by class.
    """
    X, y = data["X"], data["y"]
    varies = np.ptp(X, axis=0) > 0
    X = (X[:, varies] - X[:, varies].mean(axis=0)) / X[:, varies].std(axis=0)
    order = generator("20140101/order").permutation(len(y))[: cases or None]
    return X[order], y[order]


def model_of(X: Array, y: Array, *, relevance: bool, jitter: float = 0.0) -> Model:
    """Return the model with the source's priors."""
    d = X.shape[1]
    prior = default_prior(d, d if relevance else 1)
    return hyperparameters.model_of(X, y, prior, jitter=jitter)


def problem(data: Mapping[str, Array], kernel: str, cases: int | None) -> Model:
    """Return the model of chains: of simulated data as they are, of real ones (if `cases` is a number) standardised."""
    X, y = (data["X"], data["y"]) if cases is None else standardised(data, cases)
    return model_of(X, y, relevance=kernel == "ard")


def median_start(prior: HyperparameterPrior) -> Array:
    """Return the medians of a prior as theta (1 + k,)."""
    each = [0] + [1] * prior.length_scales
    medians = gamma.median(prior.shape, scale=1.0 / np.asarray(prior.rate))
    return np.log(medians[each])
