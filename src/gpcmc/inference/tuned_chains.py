r"""Markov chains over any number of hyperparameters, whose proposals have a shape that a pilot chain found.

All propose theta' ~ N(theta, R R'). A pilot is a pseudo-marginal chain whose draws have the covariance that R R' is
proportional to. One pilot serves all pseudo-marginal chains of a problem, so that they differ in their estimates alone.
The chains that hold latent values take its shape, and tune its scale in burn-in.

`gpcmc.inference.hyperparameter_steps` derives the transitions.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, sections 3, 4.2, 4.3, Tables I to III.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_option, check_positive_int
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.inference.evidence_estimators import Estimator
from gpcmc.gaussian.posterior import GaussianApproximation
from gpcmc.inference.hyperparameter_chains import adapt
from gpcmc.inference.hyperparameter_steps import (
    Info,
    PseudoMarginalState,
    WhitenedState,
    ancillary_step,
    elliptical_slice,
    pseudo_marginal_step,
    sufficient_step,
    surrogate_step,
    whitened_state,
)
from gpcmc.inference.hyperparameters import Model
from gpcmc.gaussian.importance import gaussian_proposal, log_evidence_estimate
from gpcmc.gaussian.laplace import Laplace
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

#: One transition: model, state, root of the proposal's covariance, generator; the state, and what was done.
Update = Callable[
    [Model, WhitenedState, FloatArray, np.random.Generator], tuple[WhitenedState, Info]
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
        return log_evidence_estimate(proposal, y, rng.standard_normal((self.samples, len(y))))


#: Transitions of chains that hold latent values; a surrogate one draws theta' before g.
UPDATES: dict[str, Update] = {
    "sufficient": sufficient_step,
    "ancillary": ancillary_step,
    "surrogate": partial(surrogate_step, theta_first=True),
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
        state, _ = pseudo_marginal_step(model, estimator, state, root, rng)
    estimator.work.clear()
    kept, accepted = np.empty((iterations, len(root))), 0
    for i in range(iterations):
        state, info = pseudo_marginal_step(model, estimator, state, root, rng)
        kept[i] = state.theta
        accepted += info.accepted
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
        state, info = update(model, state, step * root, rng)
        state, _ = elliptical_slice(model, state, rng)
        return info.accepted

    own = adapt(transition, burn_in) * root
    kept, accepted = np.empty((iterations, len(root))), 0
    for i in range(iterations):
        for _ in range(repeats):
            state, info = update(model, state, own, rng)
            accepted += info.accepted
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
        state, info = pseudo_marginal_step(model, estimator, state, step * root, rng)
        return info.accepted

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
