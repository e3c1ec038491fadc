"""Figure 1, how wide the conditionals of a length scale are; and Figure 2, how the estimates of the evidence spread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import logsumexp

from gpcmc.chains.hyperparameter_steps import (
    WhitenedState,
    slice_latent,
    surrogate,
    surrogate_noise,
    surrogate_state,
    whitened_state,
)
from gpcmc.chains.hyperparameters import Model
from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.importance import Proposal, gaussian_proposal
from gpcmc.orthant.method import Orthant
from gpcmc.posterior import ConvergenceError, Posterior
from gpcmc.rectangle.classification import Twisted
from studies.common.rows import Line
from studies.common.seeds import generator, seed
from studies.filippone2014.simulated import Simulated, model_of, simulate
from studies.filippone2014.tuned_chains import GAUSSIAN, latent_density

Array = np.ndarray
#: Range of log tau about the true value that the quadrature covers.
LOW, HIGH = -4.5, 3.5
#: The densities of f given theta need it: covariances of smooth kernels are singular to rounding.
JITTER = 1e-6
#: Points of a conditional's grid, and how far below its maximum, in nats, the grid ends.
_POINTS, _DEPTH = 25, 12.0
_REFINEMENTS = 8
#: Of the points of the twisted sampler: their number less one is the degrees of freedom of its standard error.
RANDOMIZATIONS = 8


def conditionals(path: str, *, n: int, d: int, draws: int, sweeps: int, values: int) -> Line:
    """Compare the variance of log tau given y with those given f (SA), nu (AA) or eta and g (SURR), sigma fixed.

    Parameters
    ----------
    path : str
        Of the stream that makes the data set.
    n, d : int
        Cases and inputs.
    draws, sweeps : int
        Joint draws of tau and f, over which conditional variances are averaged, and elliptical slice updates for each.
    values : int
        Of log tau in the quadrature of the marginal.

    Returns
    -------
    dict
        ``marginal``, ``sufficient``, ``ancillary``, ``surrogate`` variances of log tau.
    """
    data = simulate(n, d, path, balanced=True)
    model = model_of(data.X, data.y, relevance=False, jitter=JITTER)
    rng = generator(seed(path, "draws"))
    grid = data.theta[1] + np.linspace(LOW, HIGH, values)
    log_p = true_curve(data, grid, rng)[0] + log_prior(model, data, grid)
    weights = np.exp(log_p - logsumexp(log_p))
    found: dict[str, list[float]] = {name: [] for name in _CONDITIONALS}
    below = np.cumsum(weights)
    for u in (np.arange(draws) + rng.random(draws)) / draws:
        # the density is smooth: linear between two values of the grid
        x = float(np.interp(u, below, grid + 0.5 * (grid[1] - grid[0])))
        state = draw_latent(model, np.array([data.theta[0], x]), sweeps, rng)
        for name, conditional in _CONDITIONALS.items():
            found[name].append(variance(conditional(model, state, rng), x))
    mean = float(weights @ grid)
    means = {name: float(np.mean(some)) for name, some in found.items()}
    return {"marginal": float(weights @ (grid - mean) ** 2), **means}


def true_curve(
    data: Simulated, grid: Array, rng: np.random.Generator, points: int = 64
) -> tuple[Array, Array]:
    """Return log p(y | tau) over values of log tau, with standard errors, sigma as it was."""
    model, found = model_of(data.X, data.y, relevance=False), []
    for x in grid:
        prior = Prior(model.covariance(np.array([data.theta[0], x])))
        try:
            method = Twisted(points=points, randomizations=RANDOMIZATIONS)
            fit: Posterior = method.fit(prior, data.y, rng=rng)
        except ConvergenceError as failure:
            warnings.warn(
                f"log tau {x:.3f}: the orthant sampler instead, for {failure}", stacklevel=2
            )
            fit = Orthant(samples=64 * points, scheme="adapted").fit(prior, data.y, rng=rng)
        found.append((fit.log_evidence, fit.log_evidence_se))
    value, error = np.array(found, dtype=float).T
    return value, error


def log_prior(model: Model, data: Simulated, grid: Array) -> Array:
    """Return the log density of log tau at values of it, but for a constant."""
    return np.array([model.prior.log_density(np.array([data.theta[0], x])) for x in grid])


def draw_latent(model: Model, theta: Array, sweeps: int, rng: np.random.Generator) -> WhitenedState:
    """Return f from about p(f | y, theta): elliptical slice updates from where the prior puts it."""
    state = whitened_state(model, theta, rng.standard_normal(len(model.y)))
    return slice_latent(model, state, rng, sweeps)[0]


#: The log density of log tau, but for a constant.
Density = Callable[[float], float]


def _at(state: WhitenedState, x: float) -> Array:
    return np.array([state.theta[0], x])


def _sufficient(model: Model, state: WhitenedState, rng: np.random.Generator) -> Density:
    def density(x: float) -> float:
        other = whitened_state(model, _at(state, x), state.nu)
        return other.log_prior + latent_density(other.L, state.f)

    return density


def _ancillary(model: Model, state: WhitenedState, rng: np.random.Generator) -> Density:
    def density(x: float) -> float:
        other = whitened_state(model, _at(state, x), state.nu)
        return other.log_prior + other.log_likelihood

    return density


def _surrogate(model: Model, state: WhitenedState, rng: np.random.Generator) -> Density:
    s = surrogate_noise(np.exp(state.theta[0]))
    g = state.f + np.sqrt(s) * rng.standard_normal(len(state.f))
    here = surrogate(state.L, s, g)
    eta = here.U.T @ (state.nu - here.mean)

    def density(x: float) -> float:
        other, log_density = surrogate_state(model, _at(state, x), g, eta)
        return other.log_prior + log_density + other.log_likelihood

    return density


_CONDITIONALS = {"sufficient": _sufficient, "ancillary": _ancillary, "surrogate": _surrogate}


def variance(density: Density, start: float) -> float:
    """Return the variance of a density on the line whose logarithm is given, but for a constant.

    The grid closes in on where the density is within 12 nats of its largest value, and is refined until half of it is.
    """
    low, high = start + LOW, start + HIGH
    for _ in range(_REFINEMENTS):
        # `start` is among the points: no narrow peak about it is missed
        grid = np.unique(np.append(np.linspace(low, high, _POINTS), start))
        values = np.array([density(x) for x in grid])
        inside = np.flatnonzero(values > values.max() - _DEPTH)
        if len(inside) > _POINTS // 2:
            break
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, len(grid) - 1)
        low, high = grid[first], grid[last]
    # the trapezoidal rule, for `start` makes the grid uneven
    steps = np.diff(grid, prepend=grid[0], append=grid[-1])
    weights = np.exp(values - values.max()) * (steps[:-1] + steps[1:])
    weights /= weights.sum()
    return float(weights @ (grid - weights @ grid) ** 2)


def spread(
    path: str, *, n: int, d: int, samples: Sequence[int], repetitions: int, values: int
) -> list[Line]:
    """Repeat the estimate of p(y | tau) over a grid of tau, sigma as it was (Figure 2).

    Parameters
    ----------
    path : str
        Of the stream that makes the data set.
    n, d : int
        Cases and inputs.
    samples : sequence of int
        Importance samples of an estimate.
    repetitions, values : int
        Estimates at each tau, and values of tau.

    Returns
    -------
    list of dict
        A line a log tau, method and number of samples: ``low``, ``high``, ``mean``, the 2.5 and 97.5 percent quantiles
        of the log estimate and the log of the mean estimate; ``exact`` and ``exact_se``; ``weight`` under the
        posterior, and ``log_prior``.
    """
    data = simulate(n, d, path, balanced=False)
    model = model_of(data.X, data.y, relevance=False)
    rng = generator(seed(path, "estimates"))
    grid = data.theta[1] + np.linspace(LOW, HIGH, values)
    exact, error = true_curve(data, grid, rng)
    density = exact + log_prior(model, data, grid)
    weight = np.exp(density - logsumexp(density))
    lines = []
    for k, x in enumerate(grid):
        K = model.covariance(np.array([data.theta[0], x]))
        at = {
            "log_tau": float(x),
            "exact": exact[k],
            "exact_se": error[k],
            "weight": weight[k],
            "log_prior": density[k] - exact[k],
        }
        for method in GAUSSIAN:
            for size in samples:
                found = _estimates(K, data.y, method, size, repetitions, rng)
                low, high = np.quantile(found, [0.025, 0.975])
                mean = float(logsumexp(found) - np.log(repetitions))
                numbers = {"low": low, "high": high, "mean": mean}
                lines.append({"method": method, "samples": size, **at, **numbers})
    return lines


def _estimates(
    K: Array, y: Array, method: str, samples: int, repetitions: int, rng: np.random.Generator
) -> Array:
    """Return the logarithms of so many estimates (Eq. 25), all from one Gaussian."""
    proposal = Proposal.of(gaussian_proposal(GAUSSIAN[method], K, y))
    normals = rng.standard_normal((repetitions * samples, len(proposal.T)))
    log_w = proposal.log_weights(y, normals).reshape(repetitions, samples)
    return logsumexp(log_w, axis=1) - np.log(samples)
