"""Markov chains over the latent values of the probit model: what the samplers share.

All chains of a run advance side by side, as the rows of one array. The latent values are written
f = root w with root root' = K and w standard normal a priori, where the root comes from the
eigenvectors of K and has as many columns as K has rank: a singular K is a case like any other, and a
linear kernel one of a few columns. The chains' products with the root are then matrix products.

The likelihood depends on f through the margins y f only, so the labels are multiplied into the root
once, and a state carries margins.

A test pattern's probability is the average of P(y* = +1 | f) = Phi(m(f) / sqrt(1 + v)), with m(f) =
k*' K^-1 f and v = k** - k*' K^-1 k* the mean and variance of f* given f, which the posterior does not
change (Rasmussen and Williams 2006, Eq. 2.19 and Eq. 3.82).

References
----------
Rasmussen and Williams (2006), Eqs. (2.19), (3.26), (3.82).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtr, stdtrit

from gpcmc.covariance.dense import Dense
from gpcmc._validation import FloatArray
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.posterior import ConvergenceError, PosteriorRecord, Prediction
from gpcmc.gaussian.laplace import Laplace

_EPS = float(np.finfo(float).eps)
_BATCHES = 32  # batch means of a standard error, over all chains, at least
_ROWS = 4096  # draws that are read at once in a prediction
#: The 97.5 % point of the normal distribution, by which readers multiply a standard error.
NORMAL_975 = 1.959963984540054


# --- coordinates


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Coordinates w, standard normal a priori, of the latent values at n training inputs.

    Attributes
    ----------
    margin_map : (r, n) array
        Margins y f are ``w @ margin_map``.
    gradient_map : (n, r) array
        Its transpose, stored: gradients with respect to margins, times it, are those with respect to w.
    back : (n, r) array
        With cross-covariances K* (n, t), the means of f* given w are ``w @ back.T @ K*``.
    mode, precision : (r,) array
        Laplace's approximation of the posterior: N(mode, 1 / (1 + precision)), by coordinate.
    factorizations : int
        Of matrices, that it took to find them.
    """

    margin_map: FloatArray
    gradient_map: FloatArray
    back: FloatArray
    mode: FloatArray
    precision: FloatArray
    factorizations: int

    def draw_prior(self, count: int, *, rng: np.random.Generator) -> FloatArray:
        """Return (count, r) draws from the prior."""
        return rng.standard_normal((count, len(self.mode)))

    def draw_laplace(self, count: int, *, rng: np.random.Generator) -> FloatArray:
        """Return (count, r) draws from Laplace's approximation, where chains start.

        The posterior has one mode (it is log-concave), so that these lie about it, and about as far
        from each other as draws of the posterior do.
        """
        return self.mode + self.draw_prior(count, rng=rng) / np.sqrt(1.0 + self.precision)


def whiten(K: FloatArray, y: FloatArray) -> Coordinates:
    """Return coordinates in which the prior is white and Laplace's approximation diagonal.

    Along the eigenvectors of K, over their deviations, the prior is white and the precision of
    Laplace's approximation is I + root' W root (Rasmussen and Williams 2006, Eq. 3.20). Turned to
    that matrix's eigenvectors the coordinates remain white.

    Parameters
    ----------
    K : (n, n) array
        Prior covariance, positive semidefinite. Directions of variance below n eps times the
        largest are rounding errors of K, and left out.
    y : (n,) array
        Labels -1/+1.
    """
    variance, V = eigh(K, check_finite=False)
    kept = variance > len(K) * _EPS * variance[-1]
    deviation, V = np.sqrt(variance[kept]), V[:, kept]
    try:
        laplace = Laplace().approximate(Dense(K), y)
    except ConvergenceError as error:  # the coordinates serve as well when it is not exact
        laplace = cast(GaussianPosterior, error.posterior)
    half = np.sqrt(laplace.S)[:, None] * V * deviation
    precision, U = eigh(half.T @ half, check_finite=False)
    root = (V * deviation) @ U
    gradient_map = y[:, None] * root
    return Coordinates(
        margin_map=np.ascontiguousarray(gradient_map.T),
        gradient_map=gradient_map,
        back=(V / deviation) @ U,
        mode=root.T @ laplace.a,
        precision=np.maximum(precision, 0.0),
        factorizations=3 + laplace.work["newton_steps"],
    )


# --- kernels


class State(Protocol):
    """What the states of all samplers have."""

    @property
    def w(self) -> FloatArray:
        """Coordinates (c, r) of c chains."""
        ...

    @property
    def log_likelihood(self) -> FloatArray:
        """Log p(y | f) (c,) at w."""
        ...


class Effort(NamedTuple):
    """What a transition of c chains took; sums over the chains."""

    likelihood_evaluations: int
    matrix_vector_products: int
    acceptance: float  # mean probability over the chains


class Kernel(Protocol):
    """A Markov transition that leaves prior times likelihood^tau as it is, at any inverse temperature tau."""

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
        """Return the kernel, tuned once and for all, and the work that this took."""
        ...


# --- samples of the posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPosterior(PosteriorRecord):
    """Draws of the latent values from Markov chains, and the evidence from annealed runs.

    A prediction is the average over the draws of the exact conditional probability. Its standard errors are those of
    batch means: each chain is cut into equal pieces, at least 32 in all, and their means compared with the mean of all,
    so that chains that disagree lengthen the error; Student's t for their number is allowed for.

    There is no evidence without annealed runs. The work counts transitions, likelihood_evaluations,
    matrix_vector_products, factorizations and samples kept. The diagnostics are ``effective_samples`` and ``r_hat``,
    the worst over the log likelihood and at most 50 latent values; ``acceptance``; what the kernel was tuned to; of the
    annealed runs ``k_hat``, ``effective_runs`` and ``effective_fraction``. The status is ``OK``, ``NOT_CONVERGED`` (the
    chains) or ``UNTRUSTED`` (the annealed runs' weights). For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    w : (c, s, r) array
        Kept draws of c chains, in coordinates that are standard normal a priori.
    log_likelihood : (c, s) array
        Log p(y | f) of the draws.
    log_weights : (m,) array or None
        Log weights of the annealed runs: the evidence is the mean of the weights.
    back : (n, r) array
        With cross-covariances K* (n, t), the means of f* given w are ``w @ back.T @ K*``.
    """

    w: FloatArray
    log_likelihood: FloatArray
    log_weights: FloatArray | None = None
    back: FloatArray

    @property
    def _patterns(self) -> int:
        return len(self.back)

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        P = self.back.T @ K_star
        variance = k_star_star - np.einsum("rt,rt->t", P, P)
        if (variance < -1e-6 * np.maximum(k_star_star, 1.0)).any():
            raise ValueError(
                "K_star and k_star_star do not belong to K: a conditional variance would be "
                f"{variance.min():.3g}"
            )
        P /= np.sqrt(1.0 + np.maximum(variance, 0.0))
        chains, draws, _ = self.w.shape
        pieces = min(-(-_BATCHES // chains), draws)
        edges = np.linspace(0, draws, pieces + 1).astype(int)
        sums = np.zeros((chains, pieces, P.shape[1]))
        for piece, (start, stop) in enumerate(pairwise(edges)):
            stride = max(1, _ROWS // chains)
            for low in range(start, stop, stride):
                z = self.w[:, low : min(low + stride, stop)] @ P
                sums[:, piece] += ndtr(z, out=z).sum(axis=1)
        means = (sums / np.diff(edges)[:, None]).reshape(chains * pieces, -1)
        return Prediction(sums.sum(axis=(0, 1)) / (chains * draws), standard_error(means))


def student_975(degrees: int) -> float:
    """Return the 97.5 % point of Student's t."""
    return float(stdtrit(degrees, 0.975))


def standard_error(values: FloatArray) -> FloatArray:
    """Return the standard error of the mean of (m, ...) independent values, m at least 2.

    Scaled such that 1.96 of it cover 95 % of normal values, few as they may be.
    """
    m = len(values)
    scale = student_975(m - 1) / NORMAL_975 / np.sqrt(m)
    return scale * np.std(values, axis=0, ddof=1)


def draw_chains(
    kernel: Kernel,
    work: Counter[str],
    *,
    chains: int,
    burn_in: int,
    kept: int,
    thin: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, float]:
    """Run chains from draws of Laplace's approximation, and drop their burn-in.

    Parameters
    ----------
    kernel : Kernel
    work : Counter
        Added to.
    chains : int
    burn_in : int
        Transitions of each chain that are dropped.
    kept, thin : int
        Draws kept of each chain, one in `thin` transitions.
    rng : Generator
        Consumed.

    Returns
    -------
    w : (c, s, r) array
    log_likelihood : (c, s) array
    acceptance : float
        Mean over the transitions after burn-in.
    """
    w = np.empty((chains, kept, len(kernel.coordinates.mode)))
    log_likelihood = np.empty((chains, kept))
    start, acceptance = kernel.init(kernel.coordinates.draw_laplace(chains, rng=rng)), 0.0
    work["likelihood_evaluations"] += chains
    work["matrix_vector_products"] += chains
    moves = kernel.run(start, np.ones(burn_in + kept * thin), rng=rng)
    for k, (state, effort) in enumerate(moves, 1 - burn_in):
        count_effort(work, effort, chains)
        if k > 0:
            acceptance += effort.acceptance
            if k % thin == 0:
                w[:, k // thin - 1] = state.w
                log_likelihood[:, k // thin - 1] = state.log_likelihood
    return w, log_likelihood, acceptance / (kept * thin)


def count_effort(work: Counter[str], effort: Effort, chains: int) -> None:
    """Add one transition of all chains to the counts of work."""
    work["transitions"] += chains
    work["likelihood_evaluations"] += effort.likelihood_evaluations
    work["matrix_vector_products"] += effort.matrix_vector_products
