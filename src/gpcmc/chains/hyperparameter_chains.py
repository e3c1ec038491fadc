"""Markov chains over hyperparameters, run side by side from their prior.

One iteration costs one covariance, and: one fit of the Gaussian and one root of it (pseudo-marginal with
importance sampling); one adapted pass (with the orthant sampler); or one Cholesky factorization (surrogate:
two) and `latent_updates` products with L.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_option, check_positive_int, check_rng
from gpcmc.chains.convergence import hyperparameter_convergence
from gpcmc.chains.estimators import Estimator, estimator_named, laplace_log_evidence
from gpcmc.chains.hyperparameter_steps import (
    Info,
    PseudoMarginalState,
    Root,
    WhitenedState,
    ancillary_step,
    pseudo_marginal_step,
    slice_latent,
    surrogate_step,
    whitened_state,
)
from gpcmc.chains.hyperparameters import HyperparameterPrior, Model, model_of
from gpcmc.posterior import OK, chain_status

_NAMES = ("laplace", "ep", "orthant", "ancillary", "surrogate")
_BATCHES = 20  # of burn-in, after each of which the proposal's step is reconsidered
_ACCEPTANCE = (0.15, 0.30)
#: Standard deviation of the proposal at first, in log units.
FIRST_STEP = 0.5
_BATCH = 10  # transitions, at least: the rate of fewer says nothing of the step


@dataclass(frozen=True, slots=True)
class HyperparameterChains:
    """Chains of hyperparameters, after burn-in.

    Attributes
    ----------
    theta : (chains, draws, 1 + k) array
        (log sigma, log tau_1, ..., log tau_k), k = 1 or one length scale for each input: beta = sigma,
        alpha = sqrt(2) tau.
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
        ``effective_samples`` (bulk) and ``r_hat``, of the worst hyperparameter, and
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
        """Length scales in units of the inputs: (chains, draws), or (chains, draws, k) of k inputs."""
        length_scales = np.sqrt(2.0) * np.exp(self.theta[..., 1:])
        return length_scales[..., 0] if length_scales.shape[-1] == 1 else length_scales

    @property
    def beta(self) -> FloatArray:
        """Latent function scales (chains, draws): prior variances of f."""
        return np.exp(self.theta[..., 0])


@dataclass(frozen=True, slots=True)
class ChainOptions:
    """How chains over hyperparameters are run.

    Attributes
    ----------
    method : str or callable
        Pseudo-marginal with importance sampling from "laplace" or "ep", with the adapted "orthant"
        sampler, or with ``estimator(K, y, rng)``; or "ancillary" or "surrogate".
    samples : int
        Of each estimate of the evidence.
    iterations : int
        Draws kept of each chain.
    burn_in : int
        Iterations before them.
    chains : int
        At least two.
    latent_updates : int
        Elliptical slice updates between the updates of theta; ancillary and surrogate only.

    Raises
    ------
    ValueError
        If an option is not as above; the message names it.
    """

    method: str | Estimator = "laplace"
    samples: int = 64
    iterations: int = 10_000
    burn_in: int = 2_000
    chains: int = 10
    latent_updates: int = 1

    def __post_init__(self) -> None:
        if not callable(self.method):
            check_option("method", self.method, (*_NAMES, "a callable estimator(K, y, rng)"))
        for name in ("samples", "iterations", "chains", "latent_updates", "burn_in"):
            value = getattr(self, name)
            if name != "burn_in" or value != 0:
                check_positive_int(name, value)
        if self.chains < 2 or self.iterations < 4:
            raise ValueError(
                "chains must be at least 2 and iterations at least 4, for R-hat; got "
                f"{self.chains} and {self.iterations}"
            )
        if self.method == "orthant" and self.samples < 2:
            raise ValueError(
                f"samples must be at least 2 with method='orthant'; got {self.samples}"
            )


@one_thread()
def run_chains(
    X: ArrayLike,
    y: ArrayLike,
    options: ChainOptions | None = None,
    *,
    prior: HyperparameterPrior | None = None,
    rng: np.random.Generator,
) -> HyperparameterChains:
    """Draw from p(theta | y) by independent chains that start in the prior.

    The proposal's step adapts in burn-in (`adapt`) and is frozen then. A pseudo-marginal chain burns in on
    Laplace's evidence, the others on their own target.

    Parameters
    ----------
    X : (n, d) array
        Inputs; the default prior of the length scale supposes unit variances.
    y : (n,) array
        Labels -1/+1.
    options : ChainOptions, optional
        By default ``ChainOptions()``.
    prior : HyperparameterPrior, optional
        By default `default_prior`, with one length scale; it may have one for each input.
    rng : Generator
        Consumed.

    Raises
    ------
    ValueError
        If an argument is not as above.
    """
    rng = check_rng("rng", rng)
    given = ChainOptions() if options is None else options
    model = model_of(X, y, prior)
    generators = [np.random.default_rng(rng.integers(2**63, size=2)) for _ in range(given.chains)]
    if given.method in ("ancillary", "surrogate"):
        return _joined([_latent_run(model, given, one) for one in generators])
    estimator = estimator_named(given.method, given.samples)
    return _joined([_pseudo_marginal_run(model, estimator, given, one) for one in generators])


S = TypeVar("S", PseudoMarginalState, WhitenedState)


@dataclass
class Chain(Generic[S]):
    """One chain: a state, and the update that moves it with a given root of the proposal's covariance."""

    state: S  # where it is
    update: Callable[[S, Root], tuple[S, Info]]  # returns the next state and its `Info`
    accepted: int = 0  # of its updates so far
    evaluations: int = 0

    def move(self, root: Root) -> bool:
        """Make one update; return whether it was accepted."""
        self.state, info = self.update(self.state, root)
        self.accepted += info.accepted
        self.evaluations += info.evaluations
        return info.accepted

    def draws(self, root: Root, iterations: int) -> Iterator[S]:
        """Make updates with one proposal, counted afresh; yield the state after each."""
        self.accepted = self.evaluations = 0
        for _ in range(iterations):
            self.move(root)
            yield self.state


@dataclass(frozen=True, slots=True)
class _Run:
    """One chain after burn-in."""

    theta: FloatArray
    log_evidence: FloatArray | None
    accepted: int
    step: float
    work: Counter[str]


def _pseudo_marginal_run(
    model: Model, estimator: Estimator, options: ChainOptions, rng: np.random.Generator
) -> _Run:
    """Burn in on Laplace's evidence; from the estimate of the state where that ends on, run Algorithm 1."""

    def chain(estimator: Estimator, theta: FloatArray, value: float) -> Chain[PseudoMarginalState]:
        state = PseudoMarginalState(theta, model.prior.log_density(theta), value)
        return Chain(state, lambda at, root: pseudo_marginal_step(model, estimator, at, root, rng))

    burning = chain(laplace_log_evidence, model.prior.draw(rng), -np.inf)
    step = adapt(burning.move, options.burn_in)
    end = burning.state.theta
    running = chain(estimator, end, estimator(model.covariance(end), model.y, rng))
    kept = list(running.draws(step, options.iterations))
    work = Counter(
        laplace_fits_of_burn_in=burning.evaluations, evidence_estimates=1 + running.evaluations
    )
    return _Run(
        theta=np.array([state.theta for state in kept]),
        log_evidence=np.array([state.log_evidence for state in kept]),
        accepted=running.accepted,
        step=step,
        work=work,
    )


def _latent_run(model: Model, options: ChainOptions, rng: np.random.Generator) -> _Run:
    """Run a chain that keeps f, which moves by elliptical slices between the updates of theta."""
    update = ancillary_step if options.method == "ancillary" else surrogate_step
    work = Counter(covariance_factorizations=1, likelihood_evaluations=1)

    def move(state: WhitenedState, root: Root) -> tuple[WhitenedState, Info]:
        state, info = update(model, state, root, rng)
        state, used = slice_latent(model, state, rng, options.latent_updates)
        work["covariance_factorizations"] += info.evaluations
        work["likelihood_evaluations"] += info.evaluations + used
        return state, info

    start = whitened_state(model, model.prior.draw(rng), rng.standard_normal(len(model.y)))
    chain = Chain(start, move)
    step = adapt(chain.move, options.burn_in)
    theta = np.array([state.theta for state in chain.draws(step, options.iterations)])
    return _Run(theta, None, chain.accepted, step, work)


def _joined(runs: list[_Run]) -> HyperparameterChains:
    """Return the chains side by side, with their diagnostics."""
    theta = np.stack([run.theta for run in runs])
    acceptance = np.array([run.accepted / len(run.theta) for run in runs])
    diagnostics = hyperparameter_convergence(theta) | {"acceptance": float(acceptance.mean())}
    log_evidence = [run.log_evidence for run in runs if run.log_evidence is not None]
    return HyperparameterChains(
        theta=theta,
        log_evidence=np.stack(log_evidence) if log_evidence else None,
        acceptance=acceptance,
        step=np.array([run.step for run in runs]),
        work={key: sum(run.work[key] for run in runs) for key in runs[0].work},
        diagnostics=diagnostics,
        status=chain_status(diagnostics),
    )


def adapt(transition: Callable[[float], bool], burn_in: int) -> float:
    """Run burn-in, by a transition that takes the step and says whether it was accepted; return the step it ended with.

    Burn-in is shared evenly by 20 batches, or by as many of 10 as there are; fewer than 10 leave the step as it was.
    After the b-th batch the step moves by the factor 5 - 3.9 min(b / 4, 1) towards an acceptance of 15 to 30 percent.
    """
    step = FIRST_STEP
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
