"""Hyperparameters of the RBF kernel with a length scale for each input, or one for all: prior and covariances.

The kernel is sigma exp(-sum_u (x_u - x'_u)^2 / (2 tau_u^2)), and theta = (log sigma, log tau_1, ..., log tau_k). With
k = d length scales an input that tells nothing of the labels gets a long one (automatic relevance determination).
With k = 1 this is `gpcmc.inference.hyperparameters`.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, Eqs. (5), (6), sections 4.2, 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._validation import FloatArray, check_array, check_labels, check_positive_int
from gpcmc.covariance.kernels import flush_subnormal
from gpcmc.inference.hyperparameters import (
    LARGEST,
    LEAST_LOG_DENSITY,
    HyperparameterPrior,
    Model,
    rbf_covariance,
    squared_distances,
)


@dataclass(frozen=True, slots=True)
class RelevancePrior(HyperparameterPrior):
    """Gamma priors of sigma and of each tau, independent; all length scales have the same.

    Attributes
    ----------
    shape : (2,) tuple of float
        Of sigma (a variance) and of every tau (in units of the inputs).
    rate : (2,) tuple of float
        The same.
    length_scales : int
        How many there are.
    """

    length_scales: int = 1

    def __post_init__(self) -> None:
        # a dataclass with slots is another class than the one that super() would see
        HyperparameterPrior.__post_init__(self)
        check_positive_int("length_scales", self.length_scales)

    def log_density(self, theta: FloatArray) -> float:
        """Return log p(theta) but for a constant; the density is that of the logarithms."""
        if np.abs(theta).max() > LARGEST:
            return -np.inf
        shape, rate = self._each(self.shape), self._each(self.rate)
        total = float(shape @ theta - rate @ np.exp(theta))  # exp(theta) is the Jacobian's
        return total if total > LEAST_LOG_DENSITY * len(theta) / 2 else -np.inf

    def _each(self, pair: tuple[float, float]) -> FloatArray:
        """Return sigma's number and then tau's, as often as there are length scales."""
        return np.repeat(pair, [1, self.length_scales])


def relevance_prior(d: int, *, relevance: bool = True) -> RelevancePrior:
    """Return Filippone and Girolami's prior for d inputs: sigma ~ Gamma(1.1, rate 0.1), tau ~ Gamma(1, rate 1/sqrt(d)).

    Parameters
    ----------
    d : int
        Inputs.
    relevance : bool
        Whether each input has its own length scale.
    """
    return RelevancePrior((1.1, 1.0), (0.1, 1.0 / np.sqrt(d)), d if relevance else 1)


@dataclass(frozen=True, slots=True)
class RelevanceModel(Model):
    """What all chains share, with any number of length scales.

    Attributes
    ----------
    squared_distances : (k, n, n) array
        Squared differences of the inputs, of each of them or (k = 1) summed over them.
    y : (n,) array
        Labels -1/+1.
    prior : HyperparameterPrior
        With k length scales.
    jitter : float
        Share of sigma that is added to the diagonal. The densities of f need one, because smooth kernels make
        covariances that are singular to rounding; the evidence does not.
    """

    jitter: float = 0.0

    def covariance(self, theta: FloatArray) -> FloatArray:
        """Return K (n, n) at hyperparameters theta (1 + k,)."""
        K = relevance_covariance(self.squared_distances, theta)
        if self.jitter:
            K.flat[:: len(K) + 1] += self.jitter * np.exp(theta[0])
        return K


def relevance_model(
    X: ArrayLike, y: ArrayLike, prior: RelevancePrior, *, jitter: float = 0.0
) -> RelevanceModel:
    """Return the model of inputs X (n, d) and labels y (n,), -1/+1.

    Raises
    ------
    ValueError
        If the prior has neither one length scale nor d, or the arrays are not as above.
    """
    X = check_array("X", X, ndim=2)
    if 0 in X.shape:
        raise ValueError(f"X must not be empty; got shape {X.shape}")
    y = check_labels("y", y, len(X))
    if prior.length_scales not in (1, X.shape[1]):
        raise ValueError(
            f"prior must have one length scale, or {X.shape[1]} as X has columns; got "
            f"{prior.length_scales}"
        )
    if not 0.0 <= jitter < 1.0:
        raise ValueError(f"jitter must be at least 0 and below 1; got {jitter}")
    return RelevanceModel(differences(X, X, prior.length_scales), y, prior, jitter)


def differences(a: FloatArray, b: FloatArray, length_scales: int) -> FloatArray:
    """Return (a_iu - b_ju)^2 (d, m, n) of rows of a (m, d) and b (n, d); with one length scale, their sum (1, m, n)."""
    each = (a.T[:, :, None] - b.T[:, None, :]) ** 2
    return each if length_scales > 1 else each.sum(axis=0, keepdims=True)


def relevance_covariance(squares: FloatArray, theta: FloatArray) -> FloatArray:
    """Return K (m, n) at hyperparameters theta (1 + k,), from the `differences` (k, m, n)."""
    K = np.tensordot(-0.5 * np.exp(-2.0 * theta[1:]), squares, axes=1)
    return flush_subnormal(np.exp(K, out=K) * np.exp(theta[0]))


def model_of(X: FloatArray, y: FloatArray, prior: HyperparameterPrior) -> Model:
    """Return the model of checked inputs X (n, d) and labels y (n,) with a prior of either kind.

    Raises
    ------
    ValueError
        If the prior has neither one length scale nor d.
    """
    if isinstance(prior, RelevancePrior):
        return relevance_model(X, y, prior)
    return Model(squared_distances(X, X), y, prior)


def covariances(
    a: FloatArray, b: FloatArray, length_scales: int
) -> Callable[[FloatArray], FloatArray]:
    """Return K (m, n) of rows of a (m, d) and b (n, d) as a function of theta (1 + length_scales,)."""
    if length_scales == 1:
        return partial(rbf_covariance, squared_distances(a, b))
    return partial(relevance_covariance, differences(a, b, length_scales))
