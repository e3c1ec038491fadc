"""The regressions with Gaussian noise by quadrature: they have three hyperparameters, and latent values integrate out.

Magnitude, relevance and noise lie on a grid of their logarithms, where the trapezoidal rule of a density that dies out
at both ends is a sum. All covariances of one relevance share their eigenvectors. The constant part of the covariance is
a mean that is integrated out, which keeps digits where it is large.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp
from scipy.stats import norm

from studies.common.rows import Line
from studies.neal1997.chains import VAGUE, true_function
from studies.neal1997.runs import OUTLIERS

Array = np.ndarray
#: Ends of the grid, logarithms of magnitude, relevance and noise; and its step. Half the step changes no score by 1e-5.
ETA, RHO, SIGMA, STEP = (-3.0, 5.0), (-4.0, 7.0), (-5.0, 1.0), 0.1
#: Points whose log density is so far below the largest make no predictions.
_FAR = 20.0


class Quadrature:
    """The posterior of the three hyperparameters on a grid.

    Parameters
    ----------
    X : (n,) array
        Inputs.
    t : (n,) array
        Targets.
    constant : float
        Standard deviation of the constant part of the covariance.
    eta, rho, sigma : arrays
        Logarithms of the grid, with equal steps on each axis.

    Attributes
    ----------
    log_weight : (len(rho), len(eta), len(sigma)) array
        Logarithms of the probabilities of the points.
    """

    def __init__(
        self, X: Array, t: Array, constant: float, *, eta: Array, rho: Array, sigma: Array
    ) -> None:
        self.X, self.t, self.constant = X, t, constant
        self.axes = {"rho": rho, "eta": eta, "sigma": sigma}
        self._magnitude, self._noise = (
            one.ravel() for one in np.meshgrid(eta, sigma, indexing="ij")
        )
        prior = [np.array([VAGUE.log_density(x)[0] for x in axis]) for axis in (rho, eta, sigma)]
        of_two = (prior[1][:, None] + prior[2]).ravel()
        levels = [
            self._log_likelihood(x) + own + of_two for x, own in zip(rho, prior[0], strict=True)
        ]
        level = np.array(levels) - logsumexp(levels)
        self.log_weight = level.reshape(len(rho), len(eta), len(sigma))

    def _correlation(self, x: float, others: Array) -> Array:
        return np.exp(-((np.exp(x) * (others[:, None] - self.X)) ** 2))

    def _spectrum(self, x: float) -> tuple[Array, Array]:
        values, vectors = eigh(self._correlation(x, self.X), check_finite=False)
        return np.maximum(values, 0.0), vectors

    def _inverse(self, values: Array, some: Array | slice) -> Array:
        """Inverse eigenvalues (points, n) of the covariance of targets but for the constant."""
        magnitude, noise = np.exp(2 * self._magnitude[some]), np.exp(2 * self._noise[some])
        return 1.0 / (magnitude[:, None] * values + noise[:, None])

    def _log_likelihood(self, x: float) -> Array:
        """Of all magnitudes and noises at one log relevance."""
        values, vectors = self._spectrum(x)
        inverse = self._inverse(values, slice(None))
        t, one = self.t @ vectors, vectors.sum(axis=0)
        precision = self.constant**-2 + inverse @ one**2
        square = inverse @ t**2 - (inverse @ (one * t)) ** 2 / precision
        log_det = -np.log(inverse).sum(axis=1) + np.log(self.constant**2 * precision)
        return -0.5 * (square + log_det + len(t) * np.log(2 * np.pi))

    def marginal(self, name: str) -> Array:
        """Return the probabilities of the points of one axis, ``rho``, ``eta`` or ``sigma``."""
        others = tuple(k for k, axis in enumerate(self.axes) if axis != name)
        return np.exp(logsumexp(self.log_weight, axis=others))

    def predict(self, X: Array, t: Array) -> tuple[Array, Array]:
        """Return means (m,) of latent values at inputs (m,), and the log densities (m,) of targets there."""
        mean, density = np.zeros(len(X)), np.zeros(len(X))
        for x, level in zip(self.axes["rho"], self.log_weight, strict=True):
            near = np.flatnonzero(level.ravel() > self.log_weight.max() - _FAR)
            if not len(near):
                continue
            weight = np.exp(level.ravel()[near])
            values, vectors = self._spectrum(x)
            inverse = self._inverse(values, near).T
            magnitude, noise = np.exp(2 * self._magnitude[near]), np.exp(2 * self._noise[near])
            target, one = self.t @ vectors, vectors.sum(axis=0)
            cross = self._correlation(x, X) @ vectors
            precision = self.constant**-2 + one**2 @ inverse
            missed = 1.0 - magnitude * (cross @ (one[:, None] * inverse))
            level_of = ((one * target) @ inverse) / precision
            means = magnitude * (cross @ (target[:, None] * inverse)) + missed * level_of
            variance = magnitude - magnitude**2 * (cross**2 @ inverse) + missed**2 / precision
            deviation = np.sqrt(np.maximum(variance, 0.0) + noise)
            mean += means @ weight
            density += norm.pdf(t[:, None], means, deviation) @ weight
        return mean, np.log(density)


def valley(density: Array) -> int | None:
    """Return where a density (k,) is least between its two highest modes; None if it has one mode."""
    inner = density[1:-1]
    modes = 1 + np.flatnonzero((inner > density[:-2]) & (inner >= density[2:]))
    if len(modes) < 2:
        return None
    first, last = sorted(modes[np.argsort(density[modes])[-2:]])
    return int(first + np.argmin(density[first : last + 1]))


def integrated(run: str, data: Mapping[str, Array]) -> list[Line]:
    """Integrate the posterior of a run with Gaussian noise.

    Parameters
    ----------
    run : str
        Key of `studies.neal1997.runs.OUTLIERS`.
    data : mapping
        ``X`` (n, 1), ``t`` (n,) and ``training``.

    Returns
    -------
    list of dict
        ``run``, ``quantity``, ``value``: the scores that `studies.neal1997.chains.outliers` has; geometric means
        ``eta``, ``rho``, ``sigma``; and, if the relevance has two modes, the relevance that divides them
        (``divide``) and the probability of a larger one (``above``).
    """
    X, t, test = data["X"][:, 0], data["t"], int(data["training"])
    axes = [np.arange(low, high + STEP / 2, STEP) for low, high in (ETA, RHO, SIGMA)]
    grid = dict(zip(("eta", "rho", "sigma"), axes, strict=True))
    found = Quadrature(X[:test], t[:test], OUTLIERS[run].constant, **grid)
    mean, log_density = found.predict(X[test:], t[test:])
    values = {
        "squared-error": ((mean - t[test:]) ** 2).mean(),
        "function-error": ((mean - true_function(X[test:])) ** 2).mean(),
        "log-probability": log_density.mean(),
    }
    values |= {name: np.exp(found.marginal(name) @ axis) for name, axis in grid.items()}
    rho = found.marginal("rho")
    divide = valley(rho)
    if divide is not None:
        values |= {"divide": np.exp(grid["rho"][divide]), "above": rho[divide + 1 :].sum()}
    return [{"run": run, "quantity": k, "value": float(v)} for k, v in values.items()]
