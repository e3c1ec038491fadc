"""Markov transitions of many chains side by side, and the chains that they make.

All chains of a run advance together, as the rows of one array, so that their products with a root of K are matrix
products. A transition leaves prior times likelihood^tau as it is, at any inverse temperature tau in [0, 1]: one kernel
draws from the posterior (tau = 1) and anneals from the prior to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.chains.coordinates import Coordinates
from gpcmc.weights import student_factor


class Effort(NamedTuple):
    """What a transition of c chains took; sums over the chains."""

    likelihood_evaluations: int
    matrix_vector_products: int
    acceptance: float  # mean probability over the chains

    def add_to(self, work: Counter[str], chains: int) -> None:
        """Add one transition of all chains to the counts of work."""
        work["transitions"] += chains
        work["likelihood_evaluations"] += self.likelihood_evaluations
        work["matrix_vector_products"] += self.matrix_vector_products


class Kernel(Protocol):
    """A Markov transition. States have ``w`` (c, r), coordinates of c chains, and their ``log_likelihood`` (c,)."""

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates it moves."""
        ...

    @property
    def settings(self) -> dict[str, float]:
        """What it was tuned to."""
        ...

    def init(self, w: FloatArray) -> Any:
        """Return the state of chains at coordinates w (c, r)."""
        ...

    def run(
        self, state: Any, inverse_temperatures: FloatArray, *, rng: np.random.Generator
    ) -> Iterator[tuple[Any, Effort]]:
        """Make one transition of all chains at each inverse temperature; yield the state after each."""
        ...


class KernelMaker(Protocol):
    """Options that a kernel is made from."""

    def kernel(
        self, K: FloatArray, y: FloatArray, *, rng: np.random.Generator
    ) -> tuple[Kernel, Counter[str]]:
        """Return the kernel for K (n, n) and y (n,), tuned once and for all, and the work that this took."""
        ...


class Draws(NamedTuple):
    """Kept draws of c chains."""

    w: FloatArray  # (c, s, r) coordinates
    log_likelihood: FloatArray  # (c, s)
    acceptance: float  # mean over the transitions after burn-in


def draw_chains(
    kernel: Kernel,
    work: Counter[str],
    *,
    chains: int,
    burn_in: int,
    kept: int,
    thin: int,
    rng: np.random.Generator,
) -> Draws:
    """Run chains from draws of Laplace's approximation, drop their burn-in, and keep one in `thin` transitions."""
    w = np.empty((chains, kept, len(kernel.coordinates.mode)))
    log_likelihood = np.empty((chains, kept))
    start, acceptance = kernel.init(kernel.coordinates.draw_laplace(chains, rng=rng)), 0.0
    work["likelihood_evaluations"] += chains
    work["matrix_vector_products"] += chains
    moves = kernel.run(start, np.ones(burn_in + kept * thin), rng=rng)
    for k, (state, effort) in enumerate(moves, 1 - burn_in):
        effort.add_to(work, chains)
        if k > 0:
            acceptance += effort.acceptance
            if k % thin == 0:
                w[:, k // thin - 1] = state.w
                log_likelihood[:, k // thin - 1] = state.log_likelihood
    return Draws(w, log_likelihood, acceptance / (kept * thin))


def standard_error(values: FloatArray) -> FloatArray:
    """Return the standard error of the mean of (m, ...) independent values, m at least 2.

    Scaled such that 1.96 of it cover 95 % of normal values, few as they may be.
    """
    m = len(values)
    return student_factor(m - 1) / np.sqrt(m) * np.std(values, axis=0, ddof=1)
