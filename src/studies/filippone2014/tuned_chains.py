r"""Markov chains over any number of hyperparameters, whose proposals have a shape that a pilot chain found.

All propose theta' ~ N(theta, R R'). A pilot is a pseudo-marginal chain whose draws have the covariance that R R' is
proportional to. One pilot serves all pseudo-marginal chains of a problem, so that they differ in their estimates alone.
The chains that hold latent values take its shape, and tune its scale in burn-in.

`gpcmc.chains.hyperparameter_steps` derives the pseudo-marginal, ancillary and surrogate updates. The *sufficient* one
(SA) holds f itself, so that with nu' = L'^-1 f

    ratio = p(theta') N(f; 0, K') / p(theta) N(f; 0, K).

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
from gpcmc._validation import FloatArray
from gpcmc.chains import hyperparameter_chains as library
from gpcmc.chains.estimators import Estimator
from gpcmc.chains.hyperparameter_chains import adapt
from gpcmc.chains.hyperparameter_steps import (
    Info,
    PseudoMarginalState,
    Root,
    WhitenedState,
    ancillary_step,
    lower_root,
    proposed,
    pseudo_marginal_step,
    slice_latent,
    surrogate_step,
    whitened_state,
)
from gpcmc.chains.hyperparameters import Model
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import gaussian_proposal, log_evidence_estimate
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.posterior import GaussianApproximation

#: Approximations of the pseudo-marginal schemes, by name.
GAUSSIAN: dict[str, GaussianApproximation] = {
    "laplace": Laplace(tolerance=1e-4),
    "ep": ExpectationPropagation(tolerance=1e-4),
}
_SHRINKAGE = 0.1  # of the pilot's covariance towards its diagonal
_PILOT_SAMPLES = 64

#: One transition: model, state, root of the proposal's covariance, generator; the state, and what was done.
Update = Callable[[Model, WhitenedState, Root, np.random.Generator], tuple[WhitenedState, Info]]


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
        return log_evidence_estimate(proposal, y, rng.standard_normal((self.samples, len(y))))


def sufficient_step(
    model: Model, state: WhitenedState, root: Root, rng: np.random.Generator
) -> tuple[WhitenedState, Info]:
    """Update theta with f held; the model needs jitter where K is singular."""
    theta = proposed(state.theta, root, rng)
    log_prior = model.prior.log_density(theta)
    if log_prior == -np.inf:
        return state, Info(False, 0)
    L = lower_root(model.covariance(theta))
    log_ratio = (
        log_prior - state.log_prior + latent_density(L, state.f) - latent_density(state.L, state.f)
    )
    if not np.log(rng.random()) < log_ratio:
        return state, Info(False, 1)
    nu = solve_triangular(L, state.f, lower=True, check_finite=False)
    return state._replace(theta=theta, log_prior=log_prior, L=L, nu=nu), Info(True, 1)


def latent_density(L: FloatArray, f: FloatArray) -> float:
    """Return log N(f; 0, L L') but for a constant; minus infinity where L is singular."""
    if not (L.diagonal() > 0.0).all():
        return -np.inf
    nu = solve_triangular(L, f, lower=True, check_finite=False)
    return float(-0.5 * nu @ nu - np.sum(np.log(L.diagonal())))


#: Transitions of chains that hold latent values.
UPDATES: dict[str, Update] = {
    "sufficient": sufficient_step,
    "ancillary": ancillary_step,
    "surrogate": surrogate_step,
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
        Counts after burn-in. Of a pseudo-marginal chain ``laplace_estimates`` and ``newton_steps``, or ``ep_estimates``
        and ``sweeps``, and the ``cholesky_factorizations`` of the approximation itself. Of the others the updates of
        theta, under the name of the scheme.
    """

    theta: FloatArray
    acceptance: float
    work: Counter[str]


@one_thread()
def pseudo_marginal_chain(
    model: Model,
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
    model : Model
    method : {"laplace", "ep"}
        Whose Gaussian the importance samples are from.
    root : (1 + k, 1 + k) array
        R of the proposal N(theta, R R'), as `pilot` returns it.
    samples, iterations, burn_in : int
        Of each estimate; draws that are kept, and iterations before them.
    rng : Generator
        Consumed.
    """
    estimator = CountedEstimator(method, samples)
    chain = _pseudo_marginal(model, estimator, model.prior.draw(rng), rng)
    for _ in range(burn_in):
        chain.move(root)
    estimator.work.clear()
    theta = np.array([state.theta for state in chain.draws(root, iterations)])
    return Chain(theta, chain.accepted / iterations, estimator.work)


@one_thread()
def latent_chain(
    model: Model,
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
    model : Model
    scheme : {"sufficient", "ancillary", "surrogate"}
    root : (1 + k, 1 + k) array
        Shape of the proposal.
    repeats : int
        Updates of theta, and then elliptical slice updates of f, in an iteration after burn-in.
    iterations, burn_in : int
        Draws that are kept, and iterations before them.
    rng : Generator
        Consumed.
    """
    start = whitened_state(model, model.prior.draw(rng), rng.standard_normal(len(model.y)))
    chain = library.Chain(start, lambda state, own: UPDATES[scheme](model, state, own, rng))

    def transition(step: float) -> bool:
        accepted = chain.move(step * root)
        chain.state, _ = slice_latent(model, chain.state, rng)
        return accepted

    own, theta, accepted = adapt(transition, burn_in) * root, np.empty((iterations, len(root))), 0
    for i in range(iterations):
        accepted += sum(chain.move(own) for _ in range(repeats))
        chain.state, _ = slice_latent(model, chain.state, rng, repeats)
        theta[i] = chain.state.theta
    updates = iterations * repeats
    return Chain(theta, accepted / updates, Counter({scheme: updates}))


@one_thread()
def pilot(
    model: Model,
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
        If the pilot does not move.
    """
    theta = model.prior.draw(rng)
    chain = _pseudo_marginal(model, CountedEstimator(method, _PILOT_SAMPLES), theta, rng)
    root = np.eye(len(theta))
    for _ in range(2):
        own = _adapted(chain, root, burn_in)
        draws = np.array([state.theta for state in chain.draws(own, iterations)])
        covariance = np.atleast_2d(np.cov(draws.T))
        if not (covariance.diagonal() > 0.0).all():
            raise ValueError(f"iterations must be more: in {iterations} the pilot did not move")
        shrunk = (1.0 - _SHRINKAGE) * covariance + _SHRINKAGE * np.diag(covariance.diagonal())
        root = cholesky(shrunk, lower=True)
    return _adapted(chain, root, burn_in)


def _adapted(
    chain: library.Chain[PseudoMarginalState], root: FloatArray, burn_in: int
) -> FloatArray:
    """Return a root in the scale that a burn-in finds for it."""
    return adapt(lambda step: chain.move(step * root), burn_in) * root


def _pseudo_marginal(
    model: Model, estimator: Estimator, theta: FloatArray, rng: np.random.Generator
) -> library.Chain[PseudoMarginalState]:
    """Return the chain of Algorithm 1 from theta on."""
    value = float(estimator(model.covariance(theta), model.y, rng))
    start = PseudoMarginalState(theta, model.prior.log_density(theta), value)
    return library.Chain(
        start, lambda state, root: pseudo_marginal_step(model, estimator, state, root, rng)
    )
