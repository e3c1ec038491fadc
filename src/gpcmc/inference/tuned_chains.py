r"""Markov chains over any number of hyperparameters, whose proposals have a shape that a pilot chain found.

All propose theta' ~ N(theta, R R'). A pilot is a pseudo-marginal chain whose draws have the covariance that R R' is
proportional to. One pilot serves all pseudo-marginal chains of a problem, so that they differ in their estimates alone.
The chains that hold latent values take its shape, and tune its scale in burn-in.

`gpcmc.inference.hyperparameter_steps` derives pseudo-marginal, ancillary and surrogate transitions. The sufficient
one (SA) is added here: it holds f itself, so that with nu' = L'^-1 f

    ratio = p(theta') N(f; 0, K') / p(theta) N(f; 0, K).

Operations are counted that take of the order of n^3. The first count is the source's: one factorization for each
Newton step, five operations for each sweep of expectation propagation (its section 2.1), and one more for the draws of
an estimate; one factorization in an ancillary or sufficient update, and three in a surrogate one (of K + S, of R, and
the product that R takes).

The second count is of what this library does. A factorization of an (n, n) matrix is one operation, and so is a
triangular solution with n right sides, an inverse from a factor, and a product of two (n, n) matrices; the n rank-one
updates of a sweep together are one too. A Newton step takes one factorization. A sweep takes four operations: its
updates, and a factorization, a triangular solution and a product that make Sigma anew from the sites. Every estimate
takes six besides: a factorization that checks K, and five for the root of the Gaussian's covariance. There is one more
factorization at the mode, or three operations that make Sigma at the first sites. So an estimate takes seven with
Laplace's method, and nine with expectation propagation. A surrogate update takes five: three factorizations and two
products.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, sections 3, 4.2, 4.3, Tables I to III. Yu and Meng (2011), JCGS 20
(sufficient and ancillary augmentation).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_option, check_positive_int
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.evidence_estimators import Estimator
from gpcmc.inference.gaussian import GaussianApproximation
from gpcmc.inference.hyperparameter_chains import adapt
from gpcmc.inference.hyperparameter_steps import (
    PseudoMarginalState,
    WhitenedState,
    elliptical_slice,
    lower_root,
    surrogate,
    surrogate_noise,
    whitened_state,
)
from gpcmc.inference.importance import gaussian_proposal, log_evidence_estimate
from gpcmc.inference.laplace import Laplace
from gpcmc.inference.relevance import RelevanceModel

PSEUDO_MARGINAL = ("laplace", "ep")
#: Names of chains that hold latent values.
LATENT = ("sufficient", "ancillary", "surrogate")
#: Approximations of the pseudo-marginal schemes, by name.
GAUSSIAN: dict[str, GaussianApproximation] = {
    "laplace": Laplace(tolerance=1e-4),
    "ep": ExpectationPropagation(tolerance=1e-4),
}
_SHRINKAGE = 0.1  # of the pilot's covariance towards its diagonal
_PILOT_SAMPLES = 64

#: One transition: model, state, root of the proposal's covariance, generator; the state, and whether it is new.
Update = Callable[
    [RelevanceModel, WhitenedState, FloatArray, np.random.Generator], tuple[WhitenedState, bool]
]


@dataclass
class CountedEstimator:
    """Importance sampling (Eq. 25) from a Gaussian approximation, with counts of what it took.

    Attributes
    ----------
    name : {"laplace", "ep"}
        The approximation; its iteration stops at a tolerance of 1e-4.
    samples : int
        Of each estimate.
    work : Counter
        ``laplace_estimates`` and ``newton_steps``, or ``ep_estimates`` and ``sweeps``.
    """

    name: str
    samples: int
    work: Counter[str] = field(default_factory=Counter)

    def __call__(self, K: FloatArray, y: FloatArray, rng: np.random.Generator) -> float:
        """Return log of an unbiased estimate of p(y | K)."""
        proposal = gaussian_proposal(GAUSSIAN[self.name], K, y)
        self.work.update(proposal.work)
        self.work[f"{self.name}_estimates"] += 1
        return log_evidence_estimate(proposal, K, y, rng.standard_normal((self.samples, len(y))))


def cubic_operations(work: Counter[str], *, own: bool = False) -> int:
    """Return how many operations of the order of n^3 some work took: as the source counts, or our own.

    The module's text says what is counted.
    """
    each = {
        "newton_steps": (1, 1),
        "laplace_estimates": (1, 7),
        "sweeps": (5, 4),
        "ep_estimates": (1, 9),
        "ancillary": (1, 1),
        "sufficient": (1, 1),
        "surrogate": (3, 5),
    }
    return sum(count * each[name][own] for name, count in work.items() if name in each)


# --- transitions


def pseudo_marginal_update(
    model: RelevanceModel,
    estimator: Estimator,
    state: PseudoMarginalState,
    root: FloatArray,
    rng: np.random.Generator,
) -> tuple[PseudoMarginalState, bool]:
    """Make one transition of Algorithm 1; the estimate stays with the state."""
    theta = state.theta + root @ rng.standard_normal(len(root))
    log_prior = model.prior.log_density(theta)
    if log_prior == -np.inf:
        return state, False
    log_evidence = float(estimator(model.covariance(theta), model.y, rng))
    log_ratio = log_prior + log_evidence - (state.log_prior + state.log_evidence)
    if np.log(rng.random()) < log_ratio:
        return PseudoMarginalState(theta, log_prior, log_evidence), True
    return state, False


def sufficient_update(
    model: RelevanceModel, state: WhitenedState, root: FloatArray, rng: np.random.Generator
) -> tuple[WhitenedState, bool]:
    """Update theta with f held; the model needs jitter where K is singular."""
    theta = state.theta + root @ rng.standard_normal(len(root))
    log_prior = model.prior.log_density(theta)
    if log_prior == -np.inf:
        return state, False
    L = lower_root(model.covariance(theta))
    log_ratio = (
        log_prior - state.log_prior + latent_density(L, state.f) - latent_density(state.L, state.f)
    )
    if not np.log(rng.random()) < log_ratio:
        return state, False
    nu = solve_triangular(L, state.f, lower=True, check_finite=False)
    return WhitenedState(theta, log_prior, L, nu, state.f, state.log_likelihood), True


def latent_density(L: FloatArray, f: FloatArray) -> float:
    """Return log N(f; 0, L L') but for a constant; minus infinity where L is singular."""
    if not (L.diagonal() > 0.0).all():
        return -np.inf
    nu = solve_triangular(L, f, lower=True, check_finite=False)
    return float(-0.5 * nu @ nu - np.sum(np.log(L.diagonal())))


def ancillary_update(
    model: RelevanceModel, state: WhitenedState, root: FloatArray, rng: np.random.Generator
) -> tuple[WhitenedState, bool]:
    """Update theta with nu = L^-1 f held."""
    theta = state.theta + root @ rng.standard_normal(len(root))
    if model.prior.log_density(theta) == -np.inf:
        return state, False
    proposal = whitened_state(model, theta, state.nu)
    log_ratio = (
        proposal.log_prior - state.log_prior + proposal.log_likelihood - state.log_likelihood
    )
    accepted = bool(np.log(rng.random()) < log_ratio)
    return (proposal if accepted else state), accepted


def surrogate_update(
    model: RelevanceModel, state: WhitenedState, root: FloatArray, rng: np.random.Generator
) -> tuple[WhitenedState, bool]:
    """Draw surrogate data g, then update theta with g and eta held."""
    theta = state.theta + root @ rng.standard_normal(len(root))
    s = surrogate_noise(np.exp(state.theta[0]))
    g = state.f + np.sqrt(s) * rng.standard_normal(len(state.f))
    if model.prior.log_density(theta) == -np.inf:
        return state, False
    here = surrogate(state.L, s, g)
    eta = here.U.T @ (state.nu - here.mean)
    proposal, log_density = surrogate_state(model, theta, g, eta)
    log_ratio = (
        proposal.log_prior
        - state.log_prior
        + log_density
        - here.log_density
        + proposal.log_likelihood
        - state.log_likelihood
    )
    accepted = bool(np.log(rng.random()) < log_ratio)
    return (proposal if accepted else state), accepted


def surrogate_state(
    model: RelevanceModel, theta: FloatArray, g: FloatArray, eta: FloatArray
) -> tuple[WhitenedState, float]:
    """Return the state at theta that g and eta (n,) make, and log N(g; 0, K + S)."""
    L = lower_root(model.covariance(theta))
    there = surrogate(L, surrogate_noise(np.exp(theta[0])), g)
    nu = there.mean + solve_triangular(there.U, eta, lower=False, trans="T", check_finite=False)
    f = L @ nu
    log_prior = model.prior.log_density(theta)
    return WhitenedState(theta, log_prior, L, nu, f, model.log_likelihood(f)), there.log_density


UPDATES: dict[str, Update] = {
    "sufficient": sufficient_update,
    "ancillary": ancillary_update,
    "surrogate": surrogate_update,
}


# --- chains


class Chain(NamedTuple):
    """One chain after burn-in.

    Attributes
    ----------
    theta : (iterations, 1 + k) array
        (log sigma, log tau_1, ...).
    acceptance : float
        Of the updates of theta after burn-in.
    work : Counter
        Counts after burn-in, for `cubic_operations`.
    """

    theta: FloatArray
    acceptance: float
    work: Counter[str]


@one_thread()
def pseudo_marginal_chain(
    model: RelevanceModel,
    method: str,
    root: FloatArray,
    *,
    samples: int,
    iterations: int,
    burn_in: int,
    rng: np.random.Generator,
) -> Chain:
    """Run one pseudo-marginal chain from the prior; its proposal is fixed.

    Parameters
    ----------
    model : RelevanceModel
    method : {"laplace", "ep"}
        Whose Gaussian the importance samples are from.
    root : (1 + k, 1 + k) array
        R of the proposal N(theta, R R'), as `pilot` returns it.
    samples, iterations, burn_in : int
        Of each estimate; draws that are kept, and iterations before them.
    rng : Generator
        Consumed.

    Raises
    ------
    ValueError
        If an argument is not as above.
    """
    check_option("method", method, PSEUDO_MARGINAL)
    _check_lengths(samples=samples, iterations=iterations, burn_in=burn_in)
    _check_root(root, model)
    estimator = CountedEstimator(method, samples)
    state = _start(model, estimator, model.prior.draw(rng), rng)
    for _ in range(burn_in):
        state, _ = pseudo_marginal_update(model, estimator, state, root, rng)
    estimator.work.clear()
    kept, accepted = np.empty((iterations, len(root))), 0
    for i in range(iterations):
        state, moved = pseudo_marginal_update(model, estimator, state, root, rng)
        kept[i] = state.theta
        accepted += moved
    return Chain(kept, accepted / iterations, estimator.work)


@one_thread()
def latent_chain(
    model: RelevanceModel,
    scheme: str,
    root: FloatArray,
    *,
    repeats: int = 1,
    iterations: int,
    burn_in: int,
    rng: np.random.Generator,
) -> Chain:
    """Run one chain that holds latent values from the prior; burn-in tunes the scale of its proposal (`adapt`).

    Parameters
    ----------
    model : RelevanceModel
    scheme : {"sufficient", "ancillary", "surrogate"}
    root : (1 + k, 1 + k) array
        Shape of the proposal.
    repeats : int
        Updates of theta, and then elliptical slice updates of f, in an iteration after burn-in.
    iterations, burn_in : int
        Draws that are kept, and iterations before them.
    rng : Generator
        Consumed.

    Raises
    ------
    ValueError
        If an argument is not as above.
    """
    check_option("scheme", scheme, LATENT)
    _check_lengths(repeats=repeats, iterations=iterations, burn_in=burn_in)
    _check_root(root, model)
    update = UPDATES[scheme]
    state = whitened_state(model, model.prior.draw(rng), rng.standard_normal(len(model.y)))

    def transition(step: float) -> bool:
        nonlocal state
        state, moved = update(model, state, step * root, rng)
        state, _ = elliptical_slice(model, state, rng)
        return moved

    own = adapt(transition, burn_in) * root
    kept, accepted = np.empty((iterations, len(root))), 0
    for i in range(iterations):
        for _ in range(repeats):
            state, moved = update(model, state, own, rng)
            accepted += moved
        for _ in range(repeats):
            state, _ = elliptical_slice(model, state, rng)
        kept[i] = state.theta
    updates = iterations * repeats
    return Chain(kept, accepted / updates, Counter({scheme: updates}))


@one_thread()
def pilot(
    model: RelevanceModel,
    *,
    burn_in: int,
    iterations: int,
    rng: np.random.Generator,
    method: str = "ep",
) -> FloatArray:
    """Return R (1 + k, 1 + k), lower triangular, of a proposal N(theta, R R') that is accepted in 15 to 30 percent.

    A chain with the Gaussian of `method` and 64 samples finds the scale of a round proposal in `burn_in` iterations and
    makes as many draws as `iterations` has. The covariance of these, shrunk a little towards its diagonal, gives the
    shape of a second such chain; its draws give the final shape, and a third burn-in the scale.

    Raises
    ------
    ValueError
        If an argument is not as above, or the pilot does not move.
    """
    check_option("method", method, PSEUDO_MARGINAL)
    _check_lengths(iterations=iterations, burn_in=burn_in)
    estimator = CountedEstimator(method, _PILOT_SAMPLES)
    theta = model.prior.draw(rng)
    root = np.eye(len(theta))
    state = _start(model, estimator, theta, rng)

    def transition(step: float) -> bool:
        nonlocal state
        state, moved = pseudo_marginal_update(model, estimator, state, step * root, rng)
        return moved

    for _ in range(2):
        step, draws = adapt(transition, burn_in), np.empty((iterations, len(theta)))
        for i in range(iterations):
            transition(step)
            draws[i] = state.theta
        covariance = np.atleast_2d(np.cov(draws.T))
        if not (covariance.diagonal() > 0.0).all():
            raise ValueError(f"iterations must be more: in {iterations} the pilot did not move")
        shrunk = (1.0 - _SHRINKAGE) * covariance + _SHRINKAGE * np.diag(covariance.diagonal())
        root = cholesky(shrunk, lower=True)
    return adapt(transition, burn_in) * root


def _start(
    model: RelevanceModel, estimator: Estimator, theta: FloatArray, rng: np.random.Generator
) -> PseudoMarginalState:
    log_evidence = float(estimator(model.covariance(theta), model.y, rng))
    return PseudoMarginalState(theta, model.prior.log_density(theta), log_evidence)


def _check_lengths(**lengths: int) -> None:
    for name, value in lengths.items():
        if name != "burn_in" or value != 0:
            check_positive_int(name, value)


def _check_root(root: FloatArray, model: RelevanceModel) -> None:
    p = 1 + len(model.squared_distances)
    if root.shape != (p, p):
        raise ValueError(f"root must have shape ({p}, {p}), as theta has {p}; got {root.shape}")
