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

`run` draws what 1 to 3 and 6 need, for many transitions by one matrix product, and the compiled `first_on_slice` is
the loop over 3 to 6. The log likelihood is concave, so it lies below its tangent plane at f, which on the ellipse is a
number for each angle: where even that is below the slice, the point is rejected without a look at the patterns. The law
of the moves is the textbook's.

A transition takes one product with a root of K, and 3 to 6 evaluations of the likelihood.

References
----------
Murray, Adams, MacKay (2010), Elliptical slice sampling, AISTATS, JMLR W&CP 9, 541.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray
from gpcmc.chains._probit import first_on_slice, log_likelihood_and_slope
from gpcmc.chains.chain import ChainMethod
from gpcmc.chains.coordinates import Coordinates, whiten
from gpcmc.chains.kernel import Effort

_ROWS = 512  # transitions of single chains whose draws are made at once
#: Points of an ellipse that are tried. A chain that has found none by then stays where it is, which leaves the target
#: as it is: a move and its reverse take equally many shrinkages.
MAX_POINTS = 40


class EllipticalState(NamedTuple):
    """States of c chains."""

    w: FloatArray  # (c, r) whitened latent values
    margin: FloatArray  # (c, n) y f, with f = root w
    log_likelihood: FloatArray  # (c,) at f
    slope: FloatArray  # (c, n) its gradient with respect to the margins


class EllipticalInfo(NamedTuple):
    """What one transition of c chains did."""

    angle: FloatArray  # (c,) of the accepted points, radians; 0 where there is none
    evaluations: NDArray[np.int64]  # (c,) of the likelihood


class Draws(NamedTuple):
    """The random numbers of one transition of c chains."""

    z: FloatArray  # (c, r) prior draws, in whitened coordinates
    nu: FloatArray  # (c, n) the same as margins: y times the root times z
    log_uniform: FloatArray  # (c,) logarithms of uniform draws, for the heights
    uniform: FloatArray  # (c, MAX_POINTS) for the angles of the points, in the order in which they are tried


def step(
    state: EllipticalState, draws: Draws, inverse_temperature: float
) -> tuple[EllipticalState, EllipticalInfo]:
    """Make one transition of every chain, to the first of its points that is on the slice."""
    log_height = inverse_temperature * state.log_likelihood + draws.log_uniform  # 2
    angle, evaluations, margin, log_likelihood, slope = first_on_slice(  # 3 to 6
        state.margin,
        draws.nu,
        state.log_likelihood,
        state.slope,
        draws.uniform,
        log_height,
        inverse_temperature,
    )
    w = np.cos(angle)[:, None] * state.w + np.sin(angle)[:, None] * draws.z
    return (
        EllipticalState(w, margin, log_likelihood, slope),
        EllipticalInfo(angle, evaluations),
    )


def run(
    state: EllipticalState,
    margins: Callable[[FloatArray], FloatArray],
    inverse_temperatures: FloatArray,
    *,
    rng: np.random.Generator,
) -> Iterator[tuple[EllipticalState, EllipticalInfo]]:
    """Make one transition of every chain at each inverse temperature; yield the state after each.

    `margins` returns y f (m, n) at coordinates w (m, r), by one product with a root of K.
    """
    c, r = state.w.shape
    block = max(1, _ROWS // c)
    for start in range(0, len(inverse_temperatures), block):
        part = inverse_temperatures[start : start + block]
        z = rng.standard_normal((len(part) * c, r))
        nu = margins(z)
        log_uniform = np.log1p(-rng.random(len(z)))
        uniform = np.ascontiguousarray(rng.random((MAX_POINTS, len(z))).T)
        for k, inverse_temperature in enumerate(part):
            rows = slice(k * c, (k + 1) * c)
            draws = Draws(z[rows], nu[rows], log_uniform[rows], uniform[rows])
            state, info = step(state, draws, float(inverse_temperature))
            yield state, info


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
        margin = self._margins(w)
        return EllipticalState(w, margin, *log_likelihood_and_slope(margin))

    def run(
        self, state: EllipticalState, inverse_temperatures: FloatArray, *, rng: np.random.Generator
    ) -> Iterator[tuple[EllipticalState, Effort]]:
        """Make one transition of all chains at each inverse temperature; yield the state after each."""
        for moved, info in run(state, self._margins, inverse_temperatures, rng=rng):
            yield moved, Effort(int(info.evaluations.sum()), len(moved.w), 1.0)

    def _margins(self, w: FloatArray) -> FloatArray:
        return w @ self.coordinates.margin_map


@dataclass(frozen=True, slots=True)
class EllipticalSlice(ChainMethod):
    """Options of elliptical slice sampling with annealed importance sampling for the evidence; see `ChainMethod`."""

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
