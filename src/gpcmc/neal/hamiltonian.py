"""Hamiltonian Monte Carlo over log hyperparameters: long trajectories, or one step at a time with lasting momentum.

With persistence d the momentum is renewed in part before each trajectory, p <- d p + sqrt(1 - d^2) N(0, I). After a
rejection it is reversed (Horowitz 1991, Physics Letters B 268, 247). With d = 0 and many leapfrog steps this is the
original method of Duane et al. (1987). See section 5 of Neal (1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcmc._validation import FloatArray


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


def transition(
    point: Point,
    momentum: FloatArray,
    target: Target,
    *,
    steps: FloatArray,
    leapfrogs: int = 1,
    persistence: float = 0.0,
    rng: np.random.Generator,
) -> tuple[Point, FloatArray, bool]:
    """Make one transition, which leaves exp(log density - |p|^2 / 2) invariant.

    Parameters
    ----------
    point : Point
        Where the chain is, evaluated under the present target.
    momentum : (p,) array
    target : callable
    steps : (p,) array
        Step size of each coordinate.
    leapfrogs : int
        Leapfrog steps of the trajectory.
    persistence : float
        d: how much of the momentum stays, 0 to 1.
    rng : numpy.random.Generator

    Returns
    -------
    point : Point
    momentum : (p,) array
        At the end of the trajectory if it was accepted, otherwise the former one reversed.
    accepted : bool
    """
    noise = rng.standard_normal(len(momentum))
    momentum = persistence * momentum + math.sqrt(1.0 - persistence**2) * noise
    level = point.log_density - 0.5 * momentum @ momentum
    threshold = level - rng.standard_exponential()
    end, speed = point, momentum
    for _ in range(leapfrogs):
        speed = speed + 0.5 * steps * end.gradient
        reached = target(end.x + steps * speed)
        if reached is None:
            return point, -momentum, False
        end = reached
        speed = speed + 0.5 * steps * end.gradient
    if end.log_density - 0.5 * speed @ speed > threshold:
        return end, speed, True
    return point, -momentum, False
