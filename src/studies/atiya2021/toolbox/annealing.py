"""Transitions and annealed weights of the GPML toolbox's Markov chains, which `toolbox` puts together.

Chains are the rows of arrays (c, n); each has an inverse temperature, the power of the likelihood in its target.

References
----------
Murray, Adams, MacKay (2010), Elliptical slice sampling, Figure 2. Neal (1993), Probabilistic inference using
Markov chain Monte Carlo methods, section 5.2. Neal (2001), Annealed importance sampling, Eqs. (3), (5).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from gpcmc._validation import FloatArray
from gpcmc.likelihood.probit import log_likelihood

_SHRINKAGES = 21  # the point after so many is accepted unseen
#: Step size of hybrid Monte Carlo at first, and the target of the running average of acceptance.
FIRST_STEP, TARGET_ACCEPTANCE = 0.01, 0.9
_SHORTEST, _LONGEST = 1e-6, 0.9  # bounds of the step size
_LONGER, _SHORTER = 1.02, 0.98  # factors of the step size
_RATE = 0.01  # of the running average


# --- elliptical slice sampling


class EllipticalState(NamedTuple):
    """States of c chains."""

    f: FloatArray  # (c, n)
    log_likelihood: FloatArray  # (c,) at f
    evaluations: int = 0  # of the likelihood so far, over all chains
    off_slice: int = 0  # moves accepted without being on the slice


def elliptical_transition(
    state: EllipticalState,
    nu: FloatArray,
    uniform: FloatArray,
    inverse_temperature: FloatArray,
    y: FloatArray,
) -> EllipticalState:
    """Make one elliptical slice move of every chain (Murray, Adams, MacKay 2010, Figure 2).

    Parameters
    ----------
    state : EllipticalState
    nu : (c, n) array
        Draws from the prior.
    uniform : (c, 23) array
        Draws from [0, 1): of the height, of the first angle, of the angles after each shrinkage.
    inverse_temperature : (c,) array
        Power of the likelihood in each chain's target.
    y : (n,) array
        Labels -1/+1.
    """
    height = inverse_temperature * state.log_likelihood + np.log1p(-uniform[:, 0])
    angle = 2.0 * np.pi * uniform[:, 1]
    low, high = angle - 2.0 * np.pi, angle.copy()
    f, accepted = state.f.copy(), state.log_likelihood.copy()
    active, evaluations, off_slice = np.arange(len(f)), 0, 0
    for shrinkage in range(_SHRINKAGES + 1):
        a = angle[active, None]
        moved = np.cos(a) * state.f[active] + np.sin(a) * nu[active]
        new = log_likelihood(y, moved).sum(axis=1)
        evaluations += len(active)
        on = inverse_temperature[active] * new > height[active]
        if shrinkage == _SHRINKAGES:
            off_slice, on = int(np.count_nonzero(~on)), np.ones_like(on)
        f[active[on]], accepted[active[on]] = moved[on], new[on]
        active = active[~on]
        if not len(active):
            break
        rejected = angle[active]
        low[active] = np.where(rejected < 0.0, rejected, low[active])
        high[active] = np.where(rejected > 0.0, rejected, high[active])
        angle[active] = low[active] + (high - low)[active] * uniform[active, 2 + shrinkage]
    return EllipticalState(
        f, accepted, state.evaluations + evaluations, state.off_slice + off_slice
    )


def elliptical_block(
    state: EllipticalState,
    inverse_temperature: FloatArray,
    L: FloatArray,
    y: FloatArray,
    skip: int,
    rng: np.random.Generator,
) -> EllipticalState:
    """`skip` transitions; the draws from the prior come from one product."""
    c, n = state.f.shape
    nu = (rng.standard_normal((skip * c, n)) @ L.T).reshape(skip, c, n)
    uniform = rng.random((skip, c, _SHRINKAGES + 2))
    for step in range(skip):
        state = elliptical_transition(state, nu[step], uniform[step], inverse_temperature, y)
    return state


# --- hybrid Monte Carlo


class HamiltonianState(NamedTuple):
    """States of c chains in alpha = K^-1 f, of energy alpha' K alpha / 2 - tau log p(y | f).

    tau is the inverse temperature.
    """

    alpha: FloatArray  # (c, n)
    f: FloatArray  # (c, n) K alpha
    gradient: FloatArray  # (c, n) K times the gradient of log p(y | f)
    log_likelihood: FloatArray  # (c,) at f
    inverse_temperature: FloatArray  # (c,) at which energy and gradient were computed
    step: FloatArray  # (c,) step sizes
    average: FloatArray  # (c,) running averages of acceptance
    accepted: NDArray[np.int64]  # (c,) so far


def hamiltonian_transition(
    state: HamiltonianState,
    momentum: FloatArray,
    uniform: FloatArray,
    inverse_temperature: FloatArray,
    K: FloatArray,
    y: FloatArray,
    leapfrog_steps: int,
) -> HamiltonianState:
    """Make one leapfrog trajectory of every chain at its step size, and accept or not (Metropolis).

    The trajectory starts with the gradient, and the test compares with the energy, at the state's own inverse
    temperature; the transition leaves the target of `inverse_temperature` as it is if the two are equal.

    Parameters
    ----------
    state : HamiltonianState
    momentum : (c, n) array
        Standard normal draws.
    uniform : (c,) array
        Draws from [0, 1).
    inverse_temperature : (c,) array
        Power of the likelihood in each chain's target.
    K : (n, n) array
        Prior covariance.
    y : (n,) array
        Labels -1/+1.
    leapfrog_steps : int
        Of two products with K each.
    """
    c = len(inverse_temperature)
    step, power = state.step[:, None], inverse_temperature[:, None]
    # a step far too long for the curvature overflows; the energy is then infinite or NaN: rejected
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        p = momentum - 0.5 * step * (state.f - state.inverse_temperature[:, None] * state.gradient)
        alpha, f, gradient = state.alpha.copy(), np.empty_like(p), np.empty_like(p)
        for k in range(leapfrog_steps):
            alpha += step * p
            np.matmul(alpha, K, out=f)
            np.matmul(log_likelihood_gradient(y, f), K, out=gradient)
            p -= (step if k < leapfrog_steps - 1 else 0.5 * step) * (f - power * gradient)
        proposed = log_likelihood(y, f).sum(axis=1)
        before = _energy(
            state.alpha, state.f, state.log_likelihood, state.inverse_temperature, momentum
        )
        on = np.log1p(-uniform) < before - _energy(alpha, f, proposed, inverse_temperature, p)
    take = on[:, None]
    step_size, average = adapt(state.step, state.average, on)
    return HamiltonianState(
        np.where(take, alpha, state.alpha),
        np.where(take, f, state.f),
        np.where(take, gradient, state.gradient),
        np.where(on, proposed, state.log_likelihood),
        np.where(on, inverse_temperature, state.inverse_temperature).reshape(c),
        step_size,
        average,
        state.accepted + on,
    )


def adapt(
    step: FloatArray, average: FloatArray, accepted: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the step sizes and the averages of acceptance after one more transition.

    The step follows the average as it was before the transition.
    """
    longer = np.where(average > TARGET_ACCEPTANCE, _LONGER, _SHORTER)
    return (
        np.clip(step * longer, _SHORTEST, _LONGEST),
        (1.0 - _RATE) * average + _RATE * accepted,
    )


def _energy(
    alpha: FloatArray,
    f: FloatArray,
    log_likelihood: FloatArray,
    inverse_temperature: FloatArray,
    p: FloatArray,
) -> FloatArray:
    prior = 0.5 * np.einsum("cn,cn->c", alpha, f)
    return prior - inverse_temperature * log_likelihood + 0.5 * np.einsum("cn,cn->c", p, p)


def log_likelihood_gradient(y: FloatArray, f: FloatArray) -> FloatArray:
    """Return the gradient of log p(y | f); `derivatives` of the library has the second one too, ten times dearer."""
    return (np.sqrt(2.0 / np.pi) * y) / erfcx((-y / np.sqrt(2.0)) * f)


def hamiltonian_block(
    state: HamiltonianState,
    inverse_temperature: FloatArray,
    K: FloatArray,
    y: FloatArray,
    skip: int,
    leapfrog_steps: int,
    rng: np.random.Generator,
) -> HamiltonianState:
    """`skip` transitions at one temperature."""
    momentum = rng.standard_normal((skip, *state.f.shape))
    uniform = rng.random((skip, len(inverse_temperature)))
    for k in range(skip):
        state = hamiltonian_transition(
            state, momentum[k], uniform[k], inverse_temperature, K, y, leapfrog_steps
        )
    return state


# --- annealed runs


def temperatures(samples: int, burn_in: int) -> FloatArray:
    """Return the inverse temperatures of an annealed run: zeros, then (t / (samples - 1))^4."""
    return np.concatenate([np.zeros(burn_in), np.linspace(0.0, 1.0, samples)]) ** 4


def annealed_log_weights(
    inverse_temperature: FloatArray, log_likelihood: FloatArray, *, right: bool
) -> FloatArray:
    """Return the log weights (r,) of annealed runs.

    Parameters
    ----------
    inverse_temperature : (s,) array
        Rising from 0 to 1.
    log_likelihood : (r, s) array
        Of the state that each run leaves at each inverse temperature.
    right : bool
        Evaluate each step of temperature at the state left at its upper end, as the toolbox does,
        not at its lower end.
    """
    path = log_likelihood[:, 1:] if right else log_likelihood[:, :-1]
    return path @ np.diff(inverse_temperature)
