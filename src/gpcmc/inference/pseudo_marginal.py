r"""The posterior over hyperparameters by Markov chains: pseudo-marginal, ancillary, surrogate data.

The kernel is beta exp(-|x - x'|^2 / alpha^2), and theta = (log sigma, log tau) with sigma = beta, a
variance, and tau = alpha / sqrt(2), both with gamma priors. All chains have p(theta | y) as their
stationary law and propose theta' ~ N(theta, step^2 I); they differ in what they do about f.

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
Annals of Statistics 37, 697.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Product
from threadpoolctl import threadpool_limits

from gpcmc._validation import (
    FloatArray,
    check_array,
    check_labels,
    check_option,
    check_positive,
    check_positive_int,
    check_rng,
)
from gpcmc.gp.covariance import orthant_covariance
from gpcmc.gp.likelihood import log_likelihood
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.importance import gaussian_proposal, log_evidence_estimate
from gpcmc.inference.interface import (
    OK,
    Method,
    Prediction,
    chain_status,
)
from gpcmc.inference.laplace import Laplace
from gpcmc.inference.orthant import Orthant
from gpcmc.orthant.sampler import ExtinctionError, orthant_probability

#: An unbiased estimate of p(y | K), its logarithm returned: estimator(K, y, rng).
Estimator = Callable[[FloatArray, FloatArray, np.random.Generator], float]
Name = Literal["laplace", "ep", "orthant", "ancillary", "surrogate"]

_NAMES = ("laplace", "ep", "orthant", "ancillary", "surrogate")
_LAPLACE = Laplace(tolerance=1e-6)
_EP = ExpectationPropagation(tolerance=1e-4)
_BATCHES = 20  # of burn-in, after each of which the proposal's step is reconsidered
_ACCEPTANCE = (0.15, 0.30)
_FIRST_STEP = 0.5
_BATCH = 10  # transitions, at least: the rate of fewer says nothing of the step
_LEAST_LOG_DENSITY = -745.0  # the logarithm of the least number above zero


@dataclass(frozen=True, slots=True)
class HyperparameterPrior:
    """Gamma priors of sigma = beta and tau = alpha / sqrt(2), independent.

    Attributes
    ----------
    shape, rate : (2,) tuple of float
        Of sigma (a variance) and of tau (in units of the inputs). Filippone and Girolami have tau's
        rate 1 / sqrt(d) for d inputs.
    """

    shape: tuple[float, float]
    rate: tuple[float, float]

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            if len(getattr(self, name)) != 2:
                raise ValueError(f"{name} must be two numbers; got {getattr(self, name)!r}")
            for value in getattr(self, name):
                check_positive(name, value)

    def log_density(self, theta: FloatArray) -> float:
        """Return log p(theta) but for a constant; the density is that of the logarithms."""
        total = 0.0
        for value, shape, rate in zip(theta.tolist(), self.shape, self.rate, strict=True):
            # beyond 1e150 a gamma density is zero, and squares would overflow
            if value > 345.0 or value < -345.0:
                return -np.inf
            total += shape * value - rate * float(np.exp(value))  # exp(theta) is the Jacobian's
        # no chain comes where the density is zero in floating point, and the covariance there is no
        # matrix to factorise
        return total if total > _LEAST_LOG_DENSITY else -np.inf

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Return one theta (2,) from the prior."""
        return np.log(rng.gamma(self.shape, 1.0 / np.asarray(self.rate)))


@dataclass(frozen=True, slots=True)
class Model:
    """What all chains share.

    Attributes
    ----------
    squared_distances : (n, n) array
        Of the inputs, in their units squared.
    y : (n,) array
        Labels -1/+1.
    prior : HyperparameterPrior
    """

    squared_distances: FloatArray
    y: FloatArray
    prior: HyperparameterPrior

    def covariance(self, theta: FloatArray) -> FloatArray:
        """Return K (n, n) = sigma exp(-d^2 / (2 tau^2))."""
        K = self.squared_distances * (-0.5 * np.exp(-2.0 * theta[1]))
        return np.exp(K, out=K) * np.exp(theta[0])

    def log_likelihood(self, f: FloatArray) -> float:
        """Return log p(y | f)."""
        return float(np.sum(log_likelihood(self.y, f)))


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
    step: float,
    rng: np.random.Generator,
) -> tuple[PseudoMarginalState, Info]:
    """Make one Metropolis-Hastings transition (Algorithm 1).

    Parameters
    ----------
    model : Model
    estimator : callable
        ``estimator(K, y, rng)``, log of an unbiased estimate of p(y | K); minus infinity for zero.
    state : PseudoMarginalState
    step : float
        Standard deviation of the proposal, in log units.
    rng : Generator
        Consumed.
    """
    theta = state.theta + step * rng.standard_normal(2)
    log_prior = model.prior.log_density(theta)
    if log_prior == -np.inf:
        return state, Info(False, 0)
    log_evidence = float(estimator(model.covariance(theta), model.y, rng))
    log_ratio = log_prior + log_evidence - (state.log_prior + state.log_evidence)
    if np.log(rng.random()) < log_ratio:
        return PseudoMarginalState(theta, log_prior, log_evidence), Info(True, 1)
    return state, Info(False, 1)


def laplace_log_evidence(K: FloatArray, y: FloatArray, rng: np.random.Generator) -> float:
    """Return Laplace's approximation; deterministic and not unbiased, so for burn-in only."""
    return gaussian_proposal(_LAPLACE, K, y).log_evidence


def importance_estimator(
    K: FloatArray, y: FloatArray, rng: np.random.Generator, *, method: Method, samples: int
) -> float:
    """Return log of Eq. (25) with `samples` draws from the Gaussian of `method`."""
    proposal = gaussian_proposal(method, K, y)
    return log_evidence_estimate(proposal, K, y, rng.standard_normal((samples, len(y))))


def orthant_estimator(
    K: FloatArray, y: FloatArray, rng: np.random.Generator, *, samples: int
) -> float:
    """Return log of the adapted orthant sampler's estimate of P(v >= 0), v ~ N(0, I + C K C)."""
    R = orthant_covariance(K, y)
    try:
        return orthant_probability(R, samples=samples, scheme="adapted", rng=rng).log_probability
    except ExtinctionError:
        return -np.inf  # an unbiased estimate may be zero


# --- the chains that keep the latent values


class WhitenedState(NamedTuple):
    """Hyperparameters and latent values f = L nu, L L' = K(theta)."""

    theta: FloatArray
    log_prior: float
    L: FloatArray
    nu: FloatArray
    f: FloatArray
    log_likelihood: float


def whitened_state(model: Model, theta: FloatArray, nu: FloatArray) -> WhitenedState:
    """Return the state at theta (2,) and nu (n,)."""
    L = lower_root(model.covariance(theta))
    f = L @ nu
    return WhitenedState(theta, model.prior.log_density(theta), L, nu, f, model.log_likelihood(f))


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
    model: Model, state: WhitenedState, step: float, rng: np.random.Generator
) -> tuple[WhitenedState, Info]:
    """Update theta with nu held."""
    theta = state.theta + step * rng.standard_normal(2)
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
    model: Model, state: WhitenedState, step: float, rng: np.random.Generator
) -> tuple[WhitenedState, Info]:
    """Draw g, then update theta with g and eta held."""
    s = surrogate_noise(np.exp(state.theta[0]))
    g = state.f + np.sqrt(s) * rng.standard_normal(len(state.f))
    theta = state.theta + step * rng.standard_normal(2)
    if model.prior.log_density(theta) == -np.inf:
        return state, Info(False, 0)
    here = surrogate(state.L, s, g)
    eta = here.U.T @ (state.nu - here.mean)
    L = lower_root(model.covariance(theta))
    there = surrogate(L, surrogate_noise(np.exp(theta[0])), g)
    nu = there.mean + solve_triangular(there.U, eta, lower=False, trans="T", check_finite=False)
    f = L @ nu
    proposal = WhitenedState(
        theta, model.prior.log_density(theta), L, nu, f, model.log_likelihood(f)
    )
    log_ratio = (
        proposal.log_prior
        - state.log_prior
        + there.log_density
        - here.log_density
        + proposal.log_likelihood
        - state.log_likelihood
    )
    accepted = bool(np.log(rng.random()) < log_ratio)
    return (proposal if accepted else state), Info(accepted, 1)


def elliptical_slice(
    model: Model, state: WhitenedState, rng: np.random.Generator
) -> tuple[WhitenedState, int]:
    """Update nu with theta held; also return the likelihood evaluations it took."""
    other = rng.standard_normal(len(state.nu))
    f_other = state.L @ other
    height = state.log_likelihood + np.log(rng.random())
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    evaluations = 1
    while True:
        f = np.cos(angle) * state.f + np.sin(angle) * f_other
        value = model.log_likelihood(f)
        # at angle zero f is the current one, so this ends; the bound is for rounding
        if value > height or evaluations == 1000:
            break
        low, high = (low, angle) if angle > 0 else (angle, high)
        angle = rng.uniform(low, high)
        evaluations += 1
    if value <= height:
        return state, evaluations
    nu = np.cos(angle) * state.nu + np.sin(angle) * other
    return state._replace(nu=nu, f=f, log_likelihood=value), evaluations


# --- running them


@dataclass(frozen=True, slots=True)
class HyperparameterChains:
    """Chains of hyperparameters, after burn-in.

    Attributes
    ----------
    theta : (chains, draws, 2) array
        (log sigma, log tau): beta = sigma, alpha = sqrt(2) tau.
    log_evidence : (chains, draws) array or None
        The estimate of log p(y | theta) that each draw came with, in nats; None for the chains that
        keep the latent values. These are draws of the chain, too high on average: not an estimate.
    acceptance : (chains,) array
        Of the updates of theta, after burn-in.
    step : (chains,) array
        Standard deviation of the proposal in log units, as burn-in left it.
    work : dict of str to int
        Counts, burn-in included.
    diagnostics : dict of str to float
        ``effective_samples`` (bulk) and ``r_hat``, of the worse of the two hyperparameters, and
        ``acceptance``.
    status : str
        ``OK`` or ``NOT_CONVERGED``.
    """

    theta: FloatArray
    log_evidence: FloatArray | None
    acceptance: FloatArray
    step: FloatArray
    work: dict[str, int]
    diagnostics: dict[str, float] = field(default_factory=dict)
    status: str = OK

    @property
    def alpha(self) -> FloatArray:
        """Length scales (chains, draws), in units of the inputs."""
        return np.sqrt(2.0) * np.exp(self.theta[..., 1])

    @property
    def beta(self) -> FloatArray:
        """Latent function scales (chains, draws): prior variances of f."""
        return np.exp(self.theta[..., 0])


@threadpool_limits.wrap(limits=1)
def run_chains(
    X: ArrayLike,
    y: ArrayLike,
    *,
    method: Name | Estimator = "laplace",
    samples: int = 64,
    iterations: int = 10_000,
    burn_in: int = 2_000,
    chains: int = 10,
    latent_updates: int = 1,
    prior: HyperparameterPrior | None = None,
    rng: np.random.Generator,
) -> HyperparameterChains:
    """Draw from p(theta | y) by independent chains that start in the prior.

    The proposal's step adapts in burn-in only, in at most 20 batches, towards an acceptance of 15 to 30 percent
    by the factor 5 - 3.9 min(b / 4, 1) after the b-th, and is frozen then. A pseudo-marginal chain
    burns in on Laplace's evidence, the others on their own target.

    Parameters
    ----------
    X : (n, d) array
        Inputs; the default prior of the length scale supposes unit variances.
    y : (n,) array
        Labels -1/+1.
    method : str or callable
        Pseudo-marginal with importance sampling from "laplace" or "ep", with the adapted "orthant"
        sampler, or with ``estimator(K, y, rng)``; or "ancillary" or "surrogate".
    samples : int
        Of each estimate of the evidence.
    iterations, burn_in, chains : int
        Draws kept of each chain, iterations before them, and chains, at least two.
    latent_updates : int
        Elliptical slice updates between the updates of theta; ancillary and surrogate only.
    prior : HyperparameterPrior, optional
        By default Filippone and Girolami's: sigma ~ Gamma(1.1, rate 0.1), tau ~ Gamma(1, rate
        1 / sqrt(d)).
    rng : Generator
        Consumed.

    Raises
    ------
    ValueError
        If an argument is not as above.

    Notes
    -----
    One iteration costs one covariance, and: one fit of the Gaussian and one root of it; one adapted
    pass; or one Cholesky factorization (surrogate: two) and `latent_updates` products with L.
    """
    X, y, rng = _check_problem(X, y, rng)
    _check_settings(method, samples, iterations, burn_in, chains, latent_updates)
    prior = default_prior(X.shape[1]) if prior is None else prior
    model = Model(cdist(X, X, "sqeuclidean"), y, prior)
    seeds = [rng.integers(2**63, size=2) for _ in range(chains)]
    if method in ("ancillary", "surrogate"):
        update = ancillary_step if method == "ancillary" else surrogate_step
        runs = [
            _whitened_chain(
                model, update, iterations, burn_in, latent_updates, np.random.default_rng(seed)
            )
            for seed in seeds
        ]
    else:
        estimator = _estimator(method, samples)
        runs = [
            _pseudo_marginal_chain(
                model, estimator, iterations, burn_in, np.random.default_rng(seed)
            )
            for seed in seeds
        ]
    theta = np.stack([run.theta for run in runs])
    acceptance = np.array([run.accepted / iterations for run in runs])
    diagnostics = convergence(theta) | {"acceptance": float(acceptance.mean())}
    return HyperparameterChains(
        theta=theta,
        log_evidence=(
            None
            if runs[0].log_evidence is None
            else np.stack([run.log_evidence for run in runs if run.log_evidence is not None])
        ),
        acceptance=acceptance,
        step=np.array([run.step for run in runs]),
        work={key: sum(run.work[key] for run in runs) for key in runs[0].work},
        diagnostics=diagnostics,
        status=chain_status(diagnostics),
    )


def default_prior(d: int) -> HyperparameterPrior:
    """Return Filippone and Girolami's prior for d standardised inputs (their section 4.4)."""
    return HyperparameterPrior(shape=(1.1, 1.0), rate=(0.1, 1.0 / np.sqrt(d)))


def convergence(theta: FloatArray) -> dict[str, float]:
    """Return the worst R-hat and the least bulk effective sample size of theta (chains, draws, p).

    A chain that has not moved has no effective samples and an infinite R-hat.
    """
    from arviz_stats.base import array_stats  # costs a second to import

    if (np.ptp(theta, axis=1) == 0).any():
        return {"effective_samples": 0.0, "r_hat": np.inf}
    ary = np.moveaxis(theta, -1, 0)
    with np.errstate(all="ignore"):  # halves of chains that have not moved
        ess = array_stats.ess(ary, chain_axis=1, draw_axis=2, method="bulk")
        r_hat = array_stats.rhat(ary, chain_axis=1, draw_axis=2)
    return {
        "effective_samples": float(np.min(np.nan_to_num(ess, nan=0.0))),
        "r_hat": float(np.max(np.nan_to_num(r_hat, nan=np.inf, posinf=np.inf))),
    }


class _Run(NamedTuple):
    """One chain."""

    theta: FloatArray
    log_evidence: FloatArray | None
    accepted: int
    step: float
    work: dict[str, int]


def _estimator(method: Name | Estimator, samples: int) -> Estimator:
    """Return the estimator that `method` names, or is."""
    if method == "orthant":
        return partial(orthant_estimator, samples=samples)
    if method in ("laplace", "ep"):
        gaussian = _LAPLACE if method == "laplace" else _EP
        return partial(importance_estimator, method=gaussian, samples=samples)
    assert callable(method)
    return method


def _pseudo_marginal_chain(
    model: Model,
    estimator: Estimator,
    iterations: int,
    burn_in: int,
    rng: np.random.Generator,
) -> _Run:
    theta = model.prior.draw(rng)
    state = PseudoMarginalState(theta, model.prior.log_density(theta), -np.inf)
    evaluations = 0

    def transition(step: float) -> bool:
        nonlocal state, evaluations
        state, info = pseudo_marginal_step(model, laplace_log_evidence, state, step, rng)
        evaluations += info.evaluations
        return info.accepted

    step = adapt(transition, burn_in)
    work = {"laplace_fits_of_burn_in": evaluations}
    # the estimate of the state where burn-in ended: from here on the chain is Algorithm 1
    state = state._replace(log_evidence=estimator(model.covariance(state.theta), model.y, rng))
    kept, log_evidence = np.empty((iterations, 2)), np.empty(iterations)
    accepted, evaluations = 0, 1
    for i in range(iterations):
        state, info = pseudo_marginal_step(model, estimator, state, step, rng)
        kept[i], log_evidence[i] = state.theta, state.log_evidence
        accepted += info.accepted
        evaluations += info.evaluations
    return _Run(kept, log_evidence, accepted, step, work | {"evidence_estimates": evaluations})


def _whitened_chain(
    model: Model,
    update: Callable[
        [Model, WhitenedState, float, np.random.Generator], tuple[WhitenedState, Info]
    ],
    iterations: int,
    burn_in: int,
    latent_updates: int,
    rng: np.random.Generator,
) -> _Run:
    state = whitened_state(model, model.prior.draw(rng), rng.standard_normal(len(model.y)))
    proposals, evaluations = 1, 1

    def transition(step: float) -> bool:
        nonlocal state, proposals, evaluations
        state, info = update(model, state, step, rng)
        proposals += info.evaluations
        evaluations += info.evaluations
        for _ in range(latent_updates):
            state, used = elliptical_slice(model, state, rng)
            evaluations += used
        return info.accepted

    step = adapt(transition, burn_in)
    kept, accepted = np.empty((iterations, 2)), 0
    for i in range(iterations):
        accepted += transition(step)
        kept[i] = state.theta
    work = {"covariance_factorizations": proposals, "likelihood_evaluations": evaluations}
    return _Run(kept, None, accepted, step, work)


def adapt(transition: Callable[[float], bool], burn_in: int) -> float:
    """Run burn-in and return the step it ended with.

    Parameters
    ----------
    transition : callable
        Makes one transition with the given step; says whether it was accepted.
    burn_in : int
        Transitions, shared evenly by 20 batches, or by as many of 10 as there are; fewer than 10 leave
        the step as it was.
    """
    step = _FIRST_STEP
    batches = max(min(_BATCHES, burn_in // _BATCH), 1)
    for b in range(batches):
        size = burn_in // batches + (b < burn_in % batches)
        accepted = sum(transition(step) for _ in range(size))
        if size < _BATCH:
            break
        rate = accepted / size
        factor = 5.0 - 3.9 * min(b + 1, _BATCHES / 5) / (_BATCHES / 5)
        if rate < _ACCEPTANCE[0]:
            step /= factor
        elif rate > _ACCEPTANCE[1]:
            step *= factor
    return step


def _check_problem(
    X: ArrayLike, y: ArrayLike, rng: object
) -> tuple[FloatArray, FloatArray, np.random.Generator]:
    X = check_array("X", X, ndim=2)
    if 0 in X.shape:
        raise ValueError(f"X must not be empty; got shape {X.shape}")
    return X, check_labels("y", y, len(X)), check_rng("rng", rng)


def _check_settings(
    method: object,
    samples: int,
    iterations: int,
    burn_in: int,
    chains: int,
    latent_updates: int,
) -> None:
    if not callable(method):
        check_option("method", method, (*_NAMES, "a callable estimator(K, y, rng)"))
    for name, value in (
        ("samples", samples),
        ("iterations", iterations),
        ("chains", chains),
        ("latent_updates", latent_updates),
    ):
        check_positive_int(name, value)
    if burn_in != 0:
        check_positive_int("burn_in", burn_in)
    if chains < 2 or iterations < 4:
        raise ValueError(
            "chains must be at least 2 and iterations at least 4, for R-hat; got "
            f"{chains} and {iterations}"
        )
    if method == "orthant" and samples < 2:
        raise ValueError(f"samples must be at least 2 with method='orthant'; got {samples}")


# --- as a method of the classifier


@dataclass(frozen=True, slots=True)
class HyperparameterPosterior:
    """Chains of hyperparameters and what predictions from them need.

    Attributes
    ----------
    chains : HyperparameterChains
    log_evidence, log_evidence_se : None
        The chains give no marginal likelihood.
    """

    chains: HyperparameterChains
    _X: FloatArray
    _y: FloatArray
    _draws: int
    _predictor: Method
    _seed: NDArray[np.int64]
    log_evidence: None = None
    log_evidence_se: None = None

    @property
    def work(self) -> dict[str, int]:
        """Counts of what was done; never seconds."""
        return self.chains.work

    @property
    def diagnostics(self) -> dict[str, float]:
        """``effective_samples``, ``r_hat`` and ``acceptance`` of the chains."""
        return self.chains.diagnostics

    @property
    def status(self) -> str:
        """``OK`` or ``NOT_CONVERGED``."""
        return self.chains.status

    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """Raise: one cross-covariance does not serve all hyperparameters.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            "pseudo-marginal: K_star belongs to one setting of the hyperparameters; use "
            "predict_inputs(X_star)"
        )

    @threadpool_limits.wrap(limits=1)
    def predict_inputs(self, X_star: ArrayLike) -> Prediction:
        """P(y* = +1 | y), averaged over draws of the hyperparameters.

        The standard errors are those of the average over the chains' thinned draws, correlated as
        they are; they contain the errors of the prediction at each draw.

        Parameters
        ----------
        X_star : (t, d) array

        Raises
        ------
        ValueError
            If X_star is not finite or has not as many columns as X.
        """
        from arviz_stats.base import array_stats  # costs a second to import

        X_star = check_array("X_star", X_star, ndim=2)
        if X_star.shape[1] != self._X.shape[1] or len(X_star) == 0:
            raise ValueError(
                f"X_star must have rows, and {self._X.shape[1]} columns as X has; got shape "
                f"{X_star.shape}"
            )
        distances = cdist(self._X, self._X, "sqeuclidean")
        distances_star = cdist(self._X, X_star, "sqeuclidean")
        theta = self.chains.theta
        n_chains, length = theta.shape[:2]
        kept = np.linspace(0, length - 1, self._draws // n_chains).round().astype(int)
        rng = np.random.default_rng(self._seed)
        p = np.empty((n_chains, len(kept), len(X_star)))
        for c in range(n_chains):
            for i, at in enumerate(kept):
                sigma, tau = np.exp(theta[c, at])
                K = sigma * np.exp(-0.5 * distances / tau**2)
                K_star = sigma * np.exp(-0.5 * distances_star / tau**2)
                posterior = self._predictor.fit(K, self._y, rng=rng)
                p[c, i] = posterior.predict(K_star, np.full(len(X_star), sigma)).probability
        spread = p.std(axis=(0, 1), ddof=1)
        effective = array_stats.ess(np.moveaxis(p, -1, 0), chain_axis=1, draw_axis=2, method="mean")
        # more effective draws than draws happens where they alternate; nothing rests on that here
        effective = np.clip(effective, 1.0, p[..., 0].size)
        return Prediction(p.mean(axis=(0, 1)), spread / np.sqrt(effective))


@dataclass(frozen=True, slots=True)
class PseudoMarginal:
    """Options of inference that integrates over the hyperparameters too.

    Attributes
    ----------
    method : str or callable
        As in `run_chains`: "laplace", "ep", "orthant", "ancillary", "surrogate", or an estimator.
    samples : int
        Of each estimate of the evidence.
    iterations, burn_in, chains, latent_updates : int
        As in `run_chains`.
    prior : HyperparameterPrior, optional
        By default `default_prior`, which supposes standardised inputs.
    draws : int
        Draws of the hyperparameters that predictions average over, evenly from the chains.
    predictor : Method
        What predicts at each of them.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    method: Name | Estimator = "orthant"
    samples: int = 64
    iterations: int = 1000
    burn_in: int = 400
    chains: int = 4
    latent_updates: int = 1
    prior: HyperparameterPrior | None = None
    draws: int = 100
    predictor: Method = field(default_factory=lambda: Orthant(samples=1024, scheme="adapted"))

    def __post_init__(self) -> None:
        _check_settings(
            self.method,
            self.samples,
            self.iterations,
            self.burn_in,
            self.chains,
            self.latent_updates,
        )
        check_positive_int("draws", self.draws)
        if not isinstance(self.predictor, Method):
            raise ValueError(f"predictor must be a method's options; got {self.predictor!r}")
        if not 4 * self.chains <= self.draws <= self.chains * self.iterations:
            raise ValueError(
                f"draws must be from {4 * self.chains} (four a chain) to "
                f"{self.chains * self.iterations} (all); got {self.draws}"
            )

    def fit(
        self, K: ArrayLike, y: ArrayLike, *, rng: np.random.Generator | None = None
    ) -> HyperparameterPosterior:
        """Raise: a covariance is one setting of the hyperparameters.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            "pseudo-marginal: K is one setting of the hyperparameters, and this method integrates "
            "over them; it needs the inputs: fit_inputs(kernel, X, y)"
        )

    def fit_inputs(
        self,
        kernel: Kernel,
        X: ArrayLike,
        y: ArrayLike,
        *,
        rng: np.random.Generator | None = None,
    ) -> HyperparameterPosterior:
        """Run the chains on inputs and labels.

        Parameters
        ----------
        kernel : sklearn.gaussian_process.kernels.Kernel
            ``ConstantKernel() * RBF()`` with one length scale. Its values are not used: the chains
            start in the prior.
        X : (n, d) array
        y : (n,) array
            Labels -1/+1.
        rng : Generator
            Required. Consumed.

        Raises
        ------
        ValueError
            If an argument is not as needed.
        """
        _check_kernel(kernel)
        X, y, rng = _check_problem(X, y, rng)
        chains = run_chains(
            X,
            y,
            method=self.method,
            samples=self.samples,
            iterations=self.iterations,
            burn_in=self.burn_in,
            chains=self.chains,
            latent_updates=self.latent_updates,
            prior=self.prior,
            rng=rng,
        )
        seed = rng.integers(2**63, size=2)
        return HyperparameterPosterior(chains, X, y, self.draws, self.predictor, seed)


def _check_kernel(kernel: object) -> None:
    """Refuse what is not a constant times an isotropic RBF."""
    if isinstance(kernel, Product):
        for constant, shape in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if type(constant) is ConstantKernel and type(shape) is RBF and not shape.anisotropic:
                return
    raise ValueError(
        "kernel must be ConstantKernel() * RBF() with one length scale, whose two hyperparameters are "
        f"integrated over; got {kernel!r}"
    )
