"""Hyperparameters of the RBF kernel: their prior, and the covariances that they make.

The kernel is beta exp(-|x - x'|^2 / alpha^2), and theta = (log sigma, log tau) with sigma = beta, a
variance, and tau = alpha / sqrt(2), both with gamma priors.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, section 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcmc._validation import FloatArray, check_positive
from gpcmc.covariance.kernels import flush_subnormal, rbf_parameters
from gpcmc.likelihood.probit import log_likelihood

#: Of the absolute value of a logarithm: beyond 1e150 a gamma density is zero, and squares would overflow.
LARGEST = 345.0
#: The logarithm of the least number above zero.
LEAST_LOG_DENSITY = -745.0


@dataclass(frozen=True, slots=True)
class HyperparameterPrior:
    """Gamma priors of sigma = beta and tau = alpha / sqrt(2), independent.

    Attributes
    ----------
    shape : (2,) tuple of float
        Of sigma (a variance) and of tau (in units of the inputs).
    rate : (2,) tuple of float
        The same. Filippone and Girolami have tau's
        rate 1 / sqrt(d) for d inputs.
    """

    shape: tuple[float, float]
    rate: tuple[float, float]

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            if len(getattr(self, name)) != 2:
                raise ValueError(f"{name} must be two numbers; got {getattr(self, name)!r}")
            for value in getattr(self, name):
                check_positive(name, value)

    def log_density(self, theta: FloatArray) -> float:
        """Return log p(theta) but for a constant; the density is that of the logarithms."""
        total = 0.0
        for value, shape, rate in zip(theta.tolist(), self.shape, self.rate, strict=True):
            if value > LARGEST or value < -LARGEST:
                return -np.inf
            total += shape * value - rate * float(np.exp(value))  # exp(theta) is the Jacobian's
        # no chain comes where the density is zero in floating point, and the covariance there is no
        # matrix to factorise
        return total if total > LEAST_LOG_DENSITY else -np.inf

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Return one theta from the prior, (2,) with one length scale."""
        return np.log(rng.gamma(self._each(self.shape), 1.0 / self._each(self.rate)))

    def _each(self, pair: tuple[float, float]) -> FloatArray:
        """Return sigma's number and then that of every tau."""
        return np.array(pair)


def default_prior(d: int) -> HyperparameterPrior:
    """Return Filippone and Girolami's prior for d standardised inputs (their section 4.4).

    sigma ~ Gamma(1.1, rate 0.1), tau ~ Gamma(1, rate 1 / sqrt(d)).
    """
    return HyperparameterPrior(shape=(1.1, 1.0), rate=(0.1, 1.0 / np.sqrt(d)))


def squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return |a_i - b_j|^2 (m, n) of the rows of a (m, d) and b (n, d)."""
    from scipy.spatial.distance import cdist

    return cdist(a, b, "sqeuclidean")


def rbf_covariance(distances: FloatArray, theta: FloatArray) -> FloatArray:
    """Return sigma exp(-d^2 / (2 tau^2)).

    Parameters
    ----------
    distances : (m, n) array
        Squared distances d^2, in squared units of the inputs.
    theta : (2,) array
        (log sigma, log tau).
    """
    K = distances * (-0.5 * np.exp(-2.0 * theta[1]))
    return flush_subnormal(np.exp(K, out=K) * np.exp(theta[0]))


def length_scales_of(kernel: object, d: int) -> int:
    """Return how many length scales a constant times an RBF has for d inputs: one, or one for each of them.

    Raises
    ------
    ValueError
        If it is another kernel.
    """
    from sklearn.gaussian_process.kernels import Kernel, Product

    if isinstance(kernel, Kernel) and isinstance(kernel, Product):
        parameters = rbf_parameters(kernel)
        if parameters is not None and parameters[1].size in (1, d):
            return parameters[1].size
    raise ValueError(
        "kernel must be ConstantKernel() * RBF() with one length scale, or one for each input, whose "
        f"hyperparameters are integrated over; got {kernel!r} for {d} input(s)"
    )


@dataclass(frozen=True, slots=True)
class Model:
    """What all chains share.

    Attributes
    ----------
    squared_distances : (n, n) array
        Of the inputs, in their units squared.
    y : (n,) array
        Labels -1/+1.
    prior : HyperparameterPrior
    """

    squared_distances: FloatArray
    y: FloatArray
    prior: HyperparameterPrior

    def covariance(self, theta: FloatArray) -> FloatArray:
        """Return K (n, n) at hyperparameters theta (2,)."""
        return rbf_covariance(self.squared_distances, theta)

    def log_likelihood(self, f: FloatArray) -> float:
        """Return log p(y | f)."""
        return float(np.sum(log_likelihood(self.y, f)))
