"""Hamiltonian Monte Carlo over log hyperparameters: one step at a time with lasting momentum, or long trajectories.

With persistence d the momentum is renewed in part before each step, p <- d p + sqrt(1 - d^2) N(0, I). After a rejection
it is reversed (Horowitz 1991, Physics Letters B 268, 247).

A trajectory has windows (Neal 1994, Journal of Computational Physics 111, 194): the state is somewhere in the first
window of its trajectory, and the new state is drawn from the last window or, if that is refused, from the first. This
accepts more. It also makes the number of steps random: without that, twenty steps of the size that Neal's software has
for the scale of t noise in 100 cases are five whole periods, and the chain stands still.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcmc._validation import FloatArray

#: A momentum beyond it counts as impossible: its square would overflow.
_FASTEST = 1e100


@dataclass(frozen=True)
class Point:
    """A position with what the density costs there.

    Attributes
    ----------
    x : (p,) array
    log_density : float
    gradient : (p,) array
    factor : object
        What the target has computed at x and wants to keep.
    """

    x: FloatArray
    log_density: float
    gradient: FloatArray
    factor: Any = None


#: The target at x; None where it cannot be computed, which counts as density zero.
Target = Callable[[FloatArray], Point | None]


def leapfrog(
    point: Point, momentum: FloatArray, target: Target, steps: FloatArray
) -> tuple[Point, FloatArray] | None:
    """Return where one leapfrog step of these sizes (p,) leads; None where its density is zero to any precision."""
    momentum = momentum + 0.5 * steps * point.gradient
    end = target(point.x + steps * momentum)
    if end is None:
        return None
    momentum = momentum + 0.5 * steps * end.gradient
    return (end, momentum) if np.abs(momentum).max(initial=0.0) < _FASTEST else None


def log_joint(point: Point, momentum: FloatArray) -> float:
    """Return the log density of a position and a momentum, up to a constant."""
    return point.log_density - 0.5 * float(momentum @ momentum)


def persistent_step(
    point: Point,
    momentum: FloatArray,
    target: Target,
    *,
    steps: FloatArray,
    persistence: float,
    rng: np.random.Generator,
) -> tuple[Point, FloatArray, bool]:
    """Renew the momentum in part, then make one leapfrog step and accept or refuse it.

    Parameters
    ----------
    point : Point
        Where the chain is, evaluated under the present target.
    momentum : (p,) array
    target : callable
    steps : (p,) array
        Step size of each coordinate.
    persistence : float
        How much of the momentum stays, 0 to 1.
    rng : numpy.random.Generator

    Returns
    -------
    point : Point
    momentum : (p,) array
        At the end of the step if it was accepted, otherwise the former one reversed.
    accepted : bool
    """
    noise = rng.standard_normal(len(momentum))
    momentum = persistence * momentum + math.sqrt(1.0 - persistence**2) * noise
    threshold = log_joint(point, momentum) - rng.standard_exponential()
    reached = leapfrog(point, momentum, target, steps)
    if reached is not None and log_joint(*reached) > threshold:
        return *reached, True
    return point, -momentum, False


def trajectory(
    point: Point,
    target: Target,
    *,
    steps: FloatArray,
    leapfrogs: int,
    window: int,
    rng: np.random.Generator,
) -> tuple[Point, bool]:
    """Draw a momentum, follow a trajectory, and draw the new state from one of its two windows.

    Parameters
    ----------
    point : Point
        Where the chain is.
    target : callable
    steps : (p,) array
        Step size of each coordinate.
    leapfrogs : int
        Steps of the whole trajectory.
    window : int
        States of a window, 1 (the original method of Duane et al., 1987) to ``leapfrogs + 1``.
    rng : numpy.random.Generator

    Returns
    -------
    point : Point
    accepted : bool
        Whether it is from the last window.
    """
    momentum = rng.standard_normal(len(point.x))
    before = int(rng.integers(window))
    # times from the start of the trajectory; what cannot be computed has no density
    states = {before: (point, momentum)}
    for sign, end in ((-1, 0), (1, leapfrogs)):
        at, speed = point, sign * momentum
        for time in range(before + sign, end + sign, sign):
            reached = leapfrog(at, speed, target, steps)
            if reached is None:
                break
            at, speed = reached
            states[time] = at, speed
    first, last = (
        [states[time] for time in range(start, start + window) if time in states]
        for start in (0, leapfrogs + 1 - window)
    )
    threshold = _log_sum(first) - rng.standard_exponential()
    accepted = _log_sum(last) > threshold
    chosen = last if accepted else first
    levels = np.array([log_joint(*state) for state in chosen])
    shares = np.cumsum(np.exp(levels - levels.max()))
    place = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
    return chosen[place][0], accepted


def _log_sum(states: list[tuple[Point, FloatArray]]) -> float:
    """The log of the sum of the densities of some states."""
    levels = [log_joint(*state) for state in states]
    return float(np.logaddexp.reduce(levels)) if levels else -math.inf
