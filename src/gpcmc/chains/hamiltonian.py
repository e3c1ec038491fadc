"""Hamiltonian Monte Carlo over the latent values, in coordinates where the posterior is nearly round.

The coordinates are those of `gpcmc.chains.coordinates.whiten`: the prior is white, and Laplace's
approximation has a diagonal precision 1 + s. At inverse temperature tau the masses are 1 + tau s, so that one
step size serves all temperatures: a leapfrog step of size 1 is one radian of the oscillation about
the mode, in every direction. In a trial (N = 200 and 400, smooth and rough kernels) this gave 8 to 54
times the effective samples a second of unit masses with 15 leapfrog steps; other numbers of steps were
not tried for the latter, whose short chains had not converged, so that the factor is rough.

The step size is tuned in a pilot of its own, at tau = 1 to a mean acceptance of 0.8 by dual
averaging, and not made so long that a trajectory exceeds a quarter of a period; then it is frozen, for
the chains and the annealed runs alike, and each trajectory's is drawn within 10 % of it. A state caches
the likelihood and its gradient, not energies: these are computed at the temperature of each transition.

A leapfrog step takes two products with a root of K; those of all chains are made together.

References
----------
Neal (2011), MCMC using Hamiltonian dynamics, Handbook of Markov Chain Monte Carlo, ch. 5. Hoffman and
Gelman (2014), JMLR 15, 1593, section 3.2 (dual averaging).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray, check_positive_int
from gpcmc.chains._probit import log_likelihood_and_slope
from gpcmc.chains.chain import ChainMethod
from gpcmc.chains.coordinates import Coordinates, whiten
from gpcmc.chains.kernel import Effort

_JITTER = 0.1  # step sizes are uniform within this share of the tuned one
_TARGET = 0.8  # mean acceptance of the pilot
_GAMMA, _T0, _KAPPA = 0.05, 10.0, 0.75  # of dual averaging, as Hoffman and Gelman have them


class HamiltonianState(NamedTuple):
    """States of c chains."""

    w: FloatArray  # (c, r) whitened latent values
    log_likelihood: FloatArray  # (c,) at w
    gradient: FloatArray  # (c, r) its gradient with respect to w


class HamiltonianInfo(NamedTuple):
    """What one transition of c chains did."""

    acceptance: FloatArray  # (c,) probabilities
    accepted: NDArray[np.bool_]  # (c,)


def init(w: FloatArray, coordinates: Coordinates) -> HamiltonianState:
    """Return the state of chains at coordinates w (c, r)."""
    log_likelihood, gradient = log_likelihood_and_slope(w @ coordinates.margin_map)
    return HamiltonianState(w, log_likelihood, gradient @ coordinates.gradient_map)


def energy(state: HamiltonianState, velocity: FloatArray, inverse_temperature: float) -> FloatArray:
    """Return minus the log density (c,) of positions and velocities, up to a constant."""
    squares = np.einsum("cr,cr->c", state.w, state.w) + np.einsum("cr,cr->c", velocity, velocity)
    return 0.5 * squares - inverse_temperature * state.log_likelihood


def leapfrog(
    state: HamiltonianState,
    velocity: FloatArray,
    inverse_temperature: float,
    size: FloatArray,
    steps: int,
    coordinates: Coordinates,
) -> tuple[HamiltonianState, FloatArray]:
    """Follow trajectories from states with velocities (c, r), momenta over the roots of the masses; return their ends.

    `size` (c, 1) is in radians. Two products with a root of K a step.
    """
    full = size / np.sqrt(1.0 + inverse_temperature * coordinates.precision)
    velocity = velocity - 0.5 * full * (state.w - inverse_temperature * state.gradient)
    for k in range(steps):
        state = init(state.w + full * velocity, coordinates)
        share = full if k < steps - 1 else 0.5 * full
        velocity -= share * (state.w - inverse_temperature * state.gradient)
    return state, velocity


def step(
    state: HamiltonianState,
    inverse_temperature: float,
    size: float,
    steps: int,
    coordinates: Coordinates,
    *,
    rng: np.random.Generator,
) -> tuple[HamiltonianState, HamiltonianInfo]:
    """Make one transition of every chain: a trajectory, accepted or not (Metropolis); `size` is that before jitter."""
    velocity = rng.standard_normal(state.w.shape)
    jittered = size * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER, (len(velocity), 1))
    # a trajectory may diverge; its energy is then infinite or NaN, and it is rejected
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        end, arrival = leapfrog(state, velocity, inverse_temperature, jittered, steps, coordinates)
        gain = energy(state, velocity, inverse_temperature)
        gain = gain - energy(end, arrival, inverse_temperature)
        gain = np.where(np.isnan(gain), -np.inf, gain)
    on = np.log1p(-rng.random(len(gain))) <= gain
    chosen = HamiltonianState(
        np.where(on[:, None], end.w, state.w),
        np.where(on, end.log_likelihood, state.log_likelihood),
        np.where(on[:, None], end.gradient, state.gradient),
    )
    return chosen, HamiltonianInfo(np.exp(np.minimum(gain, 0.0)), on)


def tune_step_size(
    coordinates: Coordinates, steps: int, *, transitions: int, chains: int, rng: np.random.Generator
) -> float:
    """Return the step size at which a pilot at inverse temperature 1 accepts 0.8, or a shorter one.

    Dual averaging (Hoffman and Gelman 2014, Eq. 6) of the logarithm, shrunk to and never above that
    at which `steps` steps are a quarter of a period.
    """
    longest = np.log(0.5 * np.pi / steps)
    state = init(coordinates.draw_laplace(chains, rng=rng), coordinates)
    log_size, smoothed, shortfall = longest, longest, 0.0
    for t in range(1, transitions + 1):
        state, info = step(state, 1.0, float(np.exp(log_size)), steps, coordinates, rng=rng)
        shortfall += _TARGET - float(np.mean(info.acceptance))
        log_size = min(longest, longest - np.sqrt(t) / _GAMMA * shortfall / (t + _T0))
        smoothed += t**-_KAPPA * (log_size - smoothed)
    return float(np.exp(smoothed))


@dataclass(frozen=True, slots=True)
class HamiltonianKernel:
    """Hamiltonian Monte Carlo in given coordinates, with a frozen step size."""

    coordinates: Coordinates
    step_size: float
    leapfrog_steps: int

    @property
    def settings(self) -> dict[str, float]:
        """The step size."""
        return {"step_size": self.step_size}

    def init(self, w: FloatArray) -> HamiltonianState:
        """Return the state of chains at coordinates w (c, r)."""
        return init(w, self.coordinates)

    def run(
        self, state: HamiltonianState, inverse_temperatures: FloatArray, *, rng: np.random.Generator
    ) -> Iterator[tuple[HamiltonianState, Effort]]:
        """Make one transition of all chains at each inverse temperature; yield the state after each."""
        evaluations = len(state.w) * self.leapfrog_steps
        for inverse_temperature in inverse_temperatures:
            state, info = step(
                state,
                float(inverse_temperature),
                self.step_size,
                self.leapfrog_steps,
                self.coordinates,
                rng=rng,
            )
            yield state, Effort(evaluations, 2 * evaluations, float(np.mean(info.acceptance)))


@dataclass(frozen=True, slots=True)
class HamiltonianMonteCarlo(ChainMethod):
    """Options of Hamiltonian Monte Carlo with annealed importance sampling for the evidence.

    Attributes
    ----------
    samples, burn_in, thin, chains, temperatures, annealing_runs : int
        As of `ChainMethod`.
    leapfrog_steps : int
        Of a trajectory.
    tuning : int
        Transitions of each chain of the pilot that finds the step size.

    Raises
    ------
    ValueError
        If a count is too small, or is not an integer.
    """

    samples: int = 8000
    burn_in: int = 50
    thin: int = 1
    chains: int = 16
    temperatures: int = 200
    annealing_runs: int = 32
    leapfrog_steps: int = 5
    tuning: int = 100

    def __post_init__(self) -> None:
        ChainMethod.__post_init__(self)
        check_positive_int("leapfrog_steps", self.leapfrog_steps)
        check_positive_int("tuning", self.tuning)

    def kernel(
        self, K: FloatArray, y: FloatArray, *, rng: np.random.Generator
    ) -> tuple[HamiltonianKernel, Counter[str]]:
        """Return the kernel, its step size tuned by a pilot, and the work that this took."""
        coordinates = whiten(K, y)
        size = tune_step_size(
            coordinates, self.leapfrog_steps, transitions=self.tuning, chains=self.chains, rng=rng
        )
        transitions = self.tuning * self.chains
        evaluations = transitions * self.leapfrog_steps + self.chains
        work = Counter(
            transitions=transitions,
            likelihood_evaluations=evaluations,
            matrix_vector_products=2 * evaluations,
            factorizations=coordinates.factorizations,
        )
        return HamiltonianKernel(coordinates, size, self.leapfrog_steps), work
