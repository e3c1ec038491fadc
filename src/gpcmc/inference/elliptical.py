"""Elliptical slice sampling of the latent values (Murray, Adams and MacKay 2010, Figure 2).

There is nothing to tune. One transition from f, at inverse temperature tau in [0, 1], leaves prior times
likelihood^tau as it is:

1. draw nu ~ N(0, K), which makes the ellipse of points f cos(a) + nu sin(a);
2. draw the height of the slice: log h = tau log p(y | f) + log u, u uniform on (0, 1);
3. draw an angle a uniform on [0, 2 pi), and set the bracket [a - 2 pi, a];
4. f' = f cos(a) + nu sin(a);
5. if tau log p(y | f') >= log h, accept f' and stop;
6. else shrink the bracket to a, from below if a < 0 and from above otherwise, which keeps angle 0 (f
   itself) inside; draw a new a uniform on the bracket, and go to 4.

`draw_angles` makes the angles of 3 and 6, `step` the height (2), and the compiled `first_on_slice` is the
loop over 4 and 5. They part so because all chains move at once: the angles that a bracket shrinks to, as
long as points are rejected, do not depend on the likelihood. They are drawn ahead for many transitions,
as is nu, by one matrix product. The log likelihood is concave, so it lies below its tangent plane at f,
which on the ellipse is a number for each angle: where even that is below the slice, the point is
rejected without a look at the patterns. The law of the moves is the textbook's.

A transition takes one product with a root of K, and 3 to 6 evaluations of the likelihood.

References
----------
Murray, Adams, MacKay (2010), Elliptical slice sampling, AISTATS, JMLR W&CP 9, 541.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray
from gpcmc.gp._likelihood import first_on_slice, log_likelihood_and_slope
from gpcmc.inference.chain_method import ChainMethod
from gpcmc.inference.chains import Coordinates, Effort, whiten

_ROWS = 512  # transitions of single chains whose draws are made at once
#: Points of an ellipse that are tried. A chain that has found none by then stays where it is, which
#: leaves the target as it is: a move and its reverse take equally many shrinkages.
MAX_POINTS = 40


class EllipticalState(NamedTuple):
    """States of c chains."""

    w: FloatArray  # (c, r) whitened latent values
    margin: FloatArray  # (c, n) y f, with f = root w
    log_likelihood: FloatArray  # (c,) at f
    gradient: FloatArray  # (c, n) its gradient with respect to the margins


class EllipticalInfo(NamedTuple):
    """What one transition of c chains did."""

    angle: FloatArray  # (c,) of the accepted points, radians; 0 where there is none
    evaluations: NDArray[np.int64]  # (c,) of the likelihood


class Draws(NamedTuple):
    """The random numbers of one transition of c chains."""

    z: FloatArray  # (c, r) prior draws, in whitened coordinates
    nu: FloatArray  # (c, n) the same as margins: y times the root times z
    log_uniform: FloatArray  # (c,) logarithms of uniform draws, for the heights
    angle: FloatArray  # (c, MAX_POINTS) of the points, in the order in which they are tried


def draw_angles(count: int, *, rng: np.random.Generator) -> FloatArray:
    """Return the angles (count, MAX_POINTS) of brackets that shrink to each rejected angle (3 and 6)."""
    uniform = rng.random((MAX_POINTS, count))
    angle = np.empty((MAX_POINTS, count))
    angle[0] = 2.0 * np.pi * uniform[0]
    low, high = angle[0] - 2.0 * np.pi, angle[0].copy()
    for k in range(1, MAX_POINTS):
        low = np.where(angle[k - 1] < 0.0, angle[k - 1], low)
        high = np.where(angle[k - 1] < 0.0, high, angle[k - 1])
        angle[k] = low + (high - low) * uniform[k]
    return np.ascontiguousarray(angle.T)


def step(
    state: EllipticalState, draws: Draws, inverse_temperature: float
) -> tuple[EllipticalState, EllipticalInfo]:
    """Make one transition of every chain, to the first of its points that is on the slice.

    Parameters
    ----------
    state : EllipticalState
    draws : Draws
    inverse_temperature : float
        Power of the likelihood in the target, from 0 to 1.
    """
    log_height = inverse_temperature * state.log_likelihood + draws.log_uniform  # 2
    cos, sin = np.cos(draws.angle), np.sin(draws.angle)
    along_f = np.einsum("cn,cn->c", state.gradient, state.margin)[:, None]
    along_nu = np.einsum("cn,cn->c", state.gradient, draws.nu)[:, None]
    bound = state.log_likelihood[:, None] + (cos - 1.0) * along_f + sin * along_nu
    # "not below": at inverse temperature 0 every point is on the slice, whatever the uniform draw
    candidate = inverse_temperature * bound >= log_height[:, None]

    chosen, evaluations, margin, log_likelihood, gradient = first_on_slice(  # 4, 5
        state.margin,
        draws.nu,
        cos,
        sin,
        candidate.view(np.uint8),
        log_height,
        inverse_temperature,
    )
    stay = np.flatnonzero(chosen < 0)
    margin[stay], log_likelihood[stay], gradient[stay] = (
        state.margin[stay],
        state.log_likelihood[stay],
        state.gradient[stay],
    )
    angle = np.where(chosen < 0, 0.0, draws.angle[np.arange(len(chosen)), chosen])
    w = np.cos(angle)[:, None] * state.w + np.sin(angle)[:, None] * draws.z
    return (
        EllipticalState(w, margin, log_likelihood, gradient),
        EllipticalInfo(angle, evaluations),
    )


@dataclass(frozen=True, slots=True)
class EllipticalKernel:
    """Elliptical slice sampling in given coordinates."""

    coordinates: Coordinates

    @property
    def settings(self) -> dict[str, float]:
        """None: nothing is tuned."""
        return {}

    def init(self, w: FloatArray) -> EllipticalState:
        """Return the state of chains at coordinates w (c, r)."""
        margin = w @ self.coordinates.margin_map
        return EllipticalState(w, margin, *log_likelihood_and_slope(margin))

    def run(
        self, state: EllipticalState, inverse_temperatures: FloatArray, *, rng: np.random.Generator
    ) -> Iterator[tuple[EllipticalState, Effort]]:
        """Make one transition of all chains at each inverse temperature; yield the state after each."""
        c = len(state.w)
        block = max(1, _ROWS // c)
        for start in range(0, len(inverse_temperatures), block):
            part = inverse_temperatures[start : start + block]
            z = self.coordinates.draw_prior(len(part) * c, rng=rng)
            nu = z @ self.coordinates.margin_map
            log_uniform = np.log1p(-rng.random(len(z)))
            angle = draw_angles(len(z), rng=rng)
            for k, inverse_temperature in enumerate(part):
                rows = slice(k * c, (k + 1) * c)
                draws = Draws(z[rows], nu[rows], log_uniform[rows], angle[rows])
                state, info = step(state, draws, float(inverse_temperature))
                yield state, Effort(int(info.evaluations.sum()), c, 1.0)


@dataclass(frozen=True, slots=True)
class EllipticalSlice(ChainMethod):
    """Options of elliptical slice sampling with annealed importance sampling for the evidence.

    Attributes
    ----------
    samples : int
        Transitions after burn-in, in all chains together; rounded up to a multiple of `chains`. Every
        chain must keep at least 4 draws.
    burn_in : int
        Transitions of each chain that are dropped; may be 0.
    thin : int
        Keep every `thin`-th transition: a transition moves little, and a draw costs memory.
    chains : int
        Chains side by side, at least 2.
    temperatures : int
        Steps of temperature of an annealed run; 0 for no annealed runs and no evidence.
    annealing_runs : int
        Annealed runs side by side, at least 2.

    Raises
    ------
    ValueError
        If a count is too small, or is not an integer.
    """

    samples: int = 80_000
    burn_in: int = 500
    thin: int = 10
    chains: int = 16
    temperatures: int = 1000
    annealing_runs: int = 32

    def kernel(
        self, K: FloatArray, y: FloatArray, *, rng: np.random.Generator
    ) -> tuple[EllipticalKernel, Counter[str]]:
        """Return the kernel, which needs no tuning, and the work that it took; `rng` is not used."""
        coordinates = whiten(K, y)
        return EllipticalKernel(coordinates), Counter(factorizations=coordinates.factorizations)
