r"""Transitions of Markov chains over hyperparameters: pseudo-marginal, ancillary, surrogate data.

All leave p(theta | y) as it is and propose theta' ~ N(theta, R R'), R a number times I or any square root of a
covariance; they differ in what they do about f.

*Pseudo-marginal* (Filippone and Girolami, Algorithm 1) puts an unbiased estimate of p(y | theta)
where the Hastings ratio has p(y | theta). The estimate is made once for each proposal and stays with
it while the chain does: made afresh at the current state, the chain would have another law.

*Ancillary* (AA) holds nu = L^-1 f, L L' = K, which is N(0, I) a priori whatever theta is:

    ratio = p(theta') p(y | f = L' nu) / p(theta) p(y | f = L nu).

*Surrogate data* (SURR; Murray and Adams) draws g ~ N(f, S), S = s(theta) I, and holds g and the eta of
f = m + chol(R) eta, where R = (K^-1 + S^-1)^-1 and m = R S^-1 g. Both the prior of f and the law of g
change with theta; with the Jacobian |chol R| their product is N(g; 0, K + S) N(eta; 0, I), so that

    ratio = p(theta') N(g; 0, K' + S') p(y | f') / p(theta) N(g; 0, K + S) p(y | f).

In terms of nu, of G = I + L'S^-1 L = U U' with U upper triangular, chol(R) = L U^-T: nothing is inverted
and K may be singular. In both, f moves by elliptical slice sampling between the updates of theta.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214, Algorithm 1, sections 3.2, 3.3. Murray and Adams
(2010), NIPS 23, sections 3, 4. Murray, Adams and MacKay (2010), AISTATS 13. Andrieu and Roberts (2009),
Annals of Statistics 37, 697. Yu and Meng (2011), JCGS 20 (sufficient and ancillary augmentation).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from gpcmc._validation import FloatArray
from gpcmc.chains import elliptical
from gpcmc.chains._probit import log_likelihood_and_slope
from gpcmc.chains.estimators import Estimator
from gpcmc.chains.hyperparameters import Model

#: R of a proposal: a standard deviation in log units, or a matrix (1 + k, 1 + k).
Root = float | FloatArray


def proposed(theta: FloatArray, root: Root, rng: np.random.Generator) -> FloatArray:
    """Return one draw (1 + k,) from N(theta, R R')."""
    normals = rng.standard_normal(len(theta))
    return theta + (root @ normals if isinstance(root, np.ndarray) else root * normals)


# --- the pseudo-marginal chain


class PseudoMarginalState(NamedTuple):
    """Where the chain is, with the estimate that it came with."""

    theta: FloatArray
    log_prior: float
    log_evidence: float


class Info(NamedTuple):
    """What one transition did."""

    accepted: bool
    evaluations: int  # evidence estimates, or likelihoods of a whole f


def pseudo_marginal_step(
    model: Model,
    estimator: Estimator,
    state: PseudoMarginalState,
    root: Root,
    rng: np.random.Generator,
) -> tuple[PseudoMarginalState, Info]:
    """Make one Metropolis-Hastings transition (Algorithm 1); the estimate stays with the state."""
    theta = proposed(state.theta, root, rng)
    log_prior = model.prior.log_density(theta)
    if log_prior == -np.inf:
        return state, Info(False, 0)
    log_evidence = float(estimator(model.covariance(theta), model.y, rng))
    log_ratio = log_prior + log_evidence - (state.log_prior + state.log_evidence)
    if np.log(rng.random()) < log_ratio:
        return PseudoMarginalState(theta, log_prior, log_evidence), Info(True, 1)
    return state, Info(False, 1)


# --- the chains that keep the latent values


class WhitenedState(NamedTuple):
    """Hyperparameters and latent values f = L nu, L L' = K(theta)."""

    theta: FloatArray
    log_prior: float
    L: FloatArray
    nu: FloatArray
    f: FloatArray
    log_likelihood: float
    slope: FloatArray  # its gradient with respect to the margins y f


def whitened_state(model: Model, theta: FloatArray, nu: FloatArray) -> WhitenedState:
    """Return the state at theta (1 + k,) and nu (n,)."""
    L = lower_root(model.covariance(theta))
    return _state_at(model, theta, L, nu)


def _state_at(model: Model, theta: FloatArray, L: FloatArray, nu: FloatArray) -> WhitenedState:
    f = L @ nu
    level, slope = log_likelihood_and_slope((model.y * f)[None])
    return WhitenedState(theta, model.prior.log_density(theta), L, nu, f, float(level[0]), slope[0])


def lower_root(K: FloatArray) -> FloatArray:
    """Return lower triangular L with L L' = K, which may be singular.

    A smooth kernel's covariance is singular to rounding. Its root is then that of its eigenvalues,
    those below zero taken as zero, brought to triangular form, so that L is the limit of Cholesky
    factors and f = L nu depends on theta without jumps.
    """
    try:
        return cholesky(K, lower=True, check_finite=False)
    except LinAlgError:
        eigenvalues, vectors = np.linalg.eigh(K)
        root = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T
        (R,) = qr(root, mode="r", overwrite_a=True, check_finite=False)
        return (np.where(R.diagonal() < 0, -1.0, 1.0)[:, None] * R).T


def ancillary_step(
    model: Model, state: WhitenedState, root: Root, rng: np.random.Generator
) -> tuple[WhitenedState, Info]:
    """Update theta with nu = L^-1 f held."""
    theta = proposed(state.theta, root, rng)
    if model.prior.log_density(theta) == -np.inf:
        return state, Info(False, 0)
    proposal = whitened_state(model, theta, state.nu)
    log_ratio = (
        proposal.log_prior - state.log_prior + proposal.log_likelihood - state.log_likelihood
    )
    accepted = bool(np.log(rng.random()) < log_ratio)
    return (proposal if accepted else state), Info(accepted, 1)


class Surrogate(NamedTuple):
    """The law of nu given g, N(mean, (U U')^-1), and the density of g."""

    U: FloatArray
    mean: FloatArray
    log_density: float


def surrogate_noise(sigma: float) -> float:
    """Return s: the noise that would leave one f, of prior variance sigma, as its label does.

    The posterior variance of f ~ N(0, sigma) after one label is
    v = sigma - (2 / pi) sigma^2 / (1 + sigma), and s = 1 / (1 / v - 1 / sigma).
    """
    return 0.5 * np.pi * (1.0 + sigma * (1.0 - 2.0 / np.pi))


def surrogate(L: FloatArray, s: float, g: FloatArray) -> Surrogate:
    """Return the law of nu given g = L nu + sqrt(s) noise, and log N(g; 0, L L' + s I)."""
    G = L.T @ L / s
    G.flat[:: len(g) + 1] += 1.0
    # Cholesky from the last row up: G = U U' with U upper, so that L U^-T is lower, chol(R)
    U = cholesky(G[::-1, ::-1], lower=True, check_finite=False)[::-1, ::-1]
    half = solve_triangular(U, L.T @ g / s, lower=False, check_finite=False)
    mean = solve_triangular(U, half, lower=False, trans="T", check_finite=False)
    log_det = len(g) * np.log(s) + 2.0 * np.sum(np.log(U.diagonal()))
    quadratic = (g @ g) / s - half @ half
    log_density = -0.5 * (log_det + quadratic + len(g) * np.log(2.0 * np.pi))
    return Surrogate(U, mean, float(log_density))


def surrogate_step(
    model: Model, state: WhitenedState, root: Root, rng: np.random.Generator
) -> tuple[WhitenedState, Info]:
    """Draw theta' and g, then update theta with g and eta held."""
    theta = proposed(state.theta, root, rng)
    s = surrogate_noise(np.exp(state.theta[0]))
    g = state.f + np.sqrt(s) * rng.standard_normal(len(state.f))
    if model.prior.log_density(theta) == -np.inf:
        return state, Info(False, 0)
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
    return (proposal if accepted else state), Info(accepted, 1)


def surrogate_state(
    model: Model, theta: FloatArray, g: FloatArray, eta: FloatArray
) -> tuple[WhitenedState, float]:
    """Return the state at theta that g and eta (n,) make, and log N(g; 0, K + S)."""
    L = lower_root(model.covariance(theta))
    there = surrogate(L, surrogate_noise(np.exp(theta[0])), g)
    nu = there.mean + solve_triangular(there.U, eta, lower=False, trans="T", check_finite=False)
    return _state_at(model, theta, L, nu), there.log_density


def slice_latent(
    model: Model, state: WhitenedState, rng: np.random.Generator, updates: int = 1
) -> tuple[WhitenedState, int]:
    """Update nu by elliptical slice sampling with theta held; also return the likelihood evaluations it took."""
    y = model.y
    start = elliptical.EllipticalState(
        state.nu[None], (y * state.f)[None], np.array([state.log_likelihood]), state.slope[None]
    )

    def margins(nu: FloatArray) -> FloatArray:
        return y * (nu @ state.L.T)

    moves = list(elliptical.run(start, margins, np.ones(updates), rng=rng))
    end, evaluations = moves[-1][0], sum(int(info.evaluations[0]) for _, info in moves)
    moved = state._replace(
        nu=end.w[0],
        f=y * end.margin[0],
        log_likelihood=float(end.log_likelihood[0]),
        slope=end.slope[0],
    )
    return moved, evaluations
