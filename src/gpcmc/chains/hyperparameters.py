"""Hyperparameters of the RBF kernel, with one length scale or one for each input: prior and covariances.

The kernel is sigma exp(-sum_u (x_u - x'_u)^2 / (2 tau_u^2)), and theta = (log sigma, log tau_1, ..., log tau_k), sigma
a variance, with gamma priors. With k = d length scales an input that tells nothing of the labels gets a long one
(automatic relevance determination); with k = 1 all inputs share it. In the paper's notation beta = sigma and
alpha = sqrt(2) tau.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, Eqs. (5), (6), sections 4.2, 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._validation import FloatArray, check_labels, check_positive, check_positive_int
from gpcmc.covariance.kernels import flush_subnormal, rbf_parameters
from gpcmc.covariance.prior import check_inputs

#: Of the absolute value of a logarithm: beyond 1e150 a gamma density is zero, and squares would overflow.
_LARGEST = 345.0
#: The logarithm of the least number above zero.
_LEAST_LOG_DENSITY = -745.0


@dataclass(frozen=True, slots=True)
class HyperparameterPrior:
    """Gamma priors of sigma and of each tau, independent; all length scales have the same.

    Attributes
    ----------
    shape : (2,) tuple of float
        Of sigma (a variance) and of every tau (in units of the inputs).
    rate : (2,) tuple of float
        The same. Filippone and Girolami have tau's rate 1 / sqrt(d) for d inputs.
    length_scales : int
        How many there are: one, or as many as inputs.

    Raises
    ------
    ValueError
        If one of these is not as above.
    """

    shape: tuple[float, float]
    rate: tuple[float, float]
    length_scales: int = 1

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            if len(getattr(self, name)) != 2:
                raise ValueError(f"{name} must be two numbers; got {getattr(self, name)!r}")
            for value in getattr(self, name):
                check_positive(name, value)
        check_positive_int("length_scales", self.length_scales)

    def log_density(self, theta: FloatArray) -> float:
        """Return log p(theta) but for a constant, theta (1 + k,); the density is that of the logarithms."""
        if np.abs(theta).max() > _LARGEST:
            return -np.inf
        # exp(theta) is the Jacobian's
        total = float(self._each(self.shape) @ theta - self._each(self.rate) @ np.exp(theta))
        # no chain comes where the density is zero in floating point, and the covariance there is no
        # matrix to factorise
        return total if total > _LEAST_LOG_DENSITY * len(theta) / 2 else -np.inf

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Return one theta (1 + k,) from the prior."""
        return np.log(rng.gamma(self._each(self.shape), 1.0 / self._each(self.rate)))

    def _each(self, pair: tuple[float, float]) -> FloatArray:
        """Return sigma's number and then tau's, as often as there are length scales."""
        return np.repeat(np.asarray(pair, dtype=np.float64), [1, self.length_scales])


def default_prior(d: int, length_scales: int = 1) -> HyperparameterPrior:
    """Return Filippone and Girolami's prior for d standardised inputs (their section 4.4).

    sigma ~ Gamma(1.1, rate 0.1), tau ~ Gamma(1, rate 1 / sqrt(d)).

    Parameters
    ----------
    d : int
        Inputs.
    length_scales : int
        One, or d for automatic relevance determination.
    """
    return HyperparameterPrior((1.1, 1.0), (0.1, 1.0 / np.sqrt(d)), length_scales)


@dataclass(frozen=True, slots=True)
class Model:
    """What all chains share."""

    squares: FloatArray  # (k, n, n) squared differences of the inputs, as of `squared_differences`
    y: FloatArray  # (n,) labels -1/+1
    prior: HyperparameterPrior  # with k length scales
    # Share of sigma that is added to the diagonal. The densities of f need one, because smooth kernels make
    # covariances that are singular to rounding; the evidence does not.
    jitter: float = 0.0

    def covariance(self, theta: FloatArray) -> FloatArray:
        """Return K (n, n) at hyperparameters theta (1 + k,)."""
        K = covariance_at(self.squares, theta)
        if self.jitter:
            K.flat[:: len(K) + 1] += self.jitter * np.exp(theta[0])
        return K


def model_of(
    X: ArrayLike, y: ArrayLike, prior: HyperparameterPrior | None, *, jitter: float = 0.0
) -> Model:
    """Return the model of inputs X (n, d) and labels y (n,), -1/+1.

    The prior has one length scale, or d; None is `default_prior` with one.
    """
    X = check_inputs("X", X)
    y = check_labels("y", y, len(X))
    prior = default_prior(X.shape[1]) if prior is None else prior
    if prior.length_scales not in (1, X.shape[1]):
        raise ValueError(
            f"prior must have one length scale, or {X.shape[1]} as X has columns; got "
            f"{prior.length_scales}"
        )
    if not 0.0 <= jitter < 1.0:
        raise ValueError(f"jitter must be at least 0 and below 1; got {jitter}")
    return Model(squared_differences(X, X, prior.length_scales), y, prior, jitter)


def squared_differences(a: FloatArray, b: FloatArray, length_scales: int) -> FloatArray:
    """Return (a_iu - b_ju)^2 (d, m, n) of rows of a (m, d) and b (n, d); with one length scale, their sum (1, m, n)."""
    if length_scales == 1:
        from scipy.spatial.distance import cdist

        return cdist(a, b, "sqeuclidean")[None]
    return (a.T[:, :, None] - b.T[:, None, :]) ** 2


def covariance_at(squares: FloatArray, theta: FloatArray) -> FloatArray:
    """Return K (m, n) at hyperparameters theta (1 + k,), from the `squared_differences` (k, m, n)."""
    K = np.tensordot(-0.5 * np.exp(-2.0 * theta[1:]), squares, axes=1)
    return flush_subnormal(np.exp(K, out=K) * np.exp(theta[0]))


def length_scales_of(kernel: object, d: int) -> int:
    """Return how many length scales a constant times an RBF has: one, or d for d inputs; refuse any other kernel."""
    from sklearn.gaussian_process.kernels import Product

    if isinstance(kernel, Product):
        parameters = rbf_parameters(kernel)
        if parameters is not None and parameters[1].size in (1, d):
            return parameters[1].size
    raise ValueError(
        "kernel must be ConstantKernel() * RBF() with one length scale, or one for each input, whose "
        f"hyperparameters are integrated over; got {kernel!r} for {d} input(s)"
    )
