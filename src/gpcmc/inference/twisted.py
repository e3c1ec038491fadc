"""Exact inference by an orthant sampler that expectation propagation guides: our best estimator.

The orthant is the paper's (Eqs 25 to 30). Expectation propagation leaves a Gaussian site for each
label; convolved with the probit's unit noise it is a site on v_i = y_i f_i + noise, and stands there for
v_i >= 0. `gpcmc.orthant.twisting` draws with these sites as look-ahead, and scrambled Sobol' points make the
draws even. A ninth of the draws are by minimax tilting, which bounds all weights. The estimate of the
evidence is unbiased whatever the sites and tilts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from threadpoolctl import threadpool_limits

from gpcmc import _validation as validation
from gpcmc.gp.covariance import Prior
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.interface import (
    MAX_K_HAT,
    MIN_EFFECTIVE,
    NOT_CONVERGED,
    OK,
    UNTRUSTED,
    Inference,
    Prediction,
)
from gpcmc.orthant.sampler import Array, test_rows
from gpcmc.orthant.separation import (
    DEFENCE,
    Proposal,
    SeparationEstimate,
    check_points,
    estimate,
)
from gpcmc.orthant.tilting import minimax_tilt, tilted_proposal
from gpcmc.orthant.twisting import twisted_proposal


@dataclass(frozen=True, slots=True)
class _Sampler:
    """All that a pass over the samples needs; every pass draws the same ones."""

    proposal: Proposal
    defence: Proposal
    log_bound: float  # of the defence's weights
    signs: Array
    points: int
    seeds: NDArray[np.int64]

    def run(self, K_star: ArrayLike, k_star_star: ArrayLike, name: str = "") -> SeparationEstimate:
        cross, variance = validation.check_cross_covariance(
            f"{name}K_star", K_star, f"{name}k_star_star", k_star_star, len(self.signs)
        )
        root = self.defence.L  # Cholesky factor of v's covariance
        A = test_rows(root, self.signs[:, None] * cross, 1.0 + variance)
        rows = solve_triangular(root, A.T, lower=True, trans=1, check_finite=False).T
        found = estimate(
            self.proposal, rows, points=self.points, seeds=self.seeds, defence=self.defence
        )
        bound = self.log_bound + np.log(1 + DEFENCE) - found.log_probability
        return replace(found, diagnostics=found.diagnostics | {"log_weight_bound": float(bound)})


@dataclass(frozen=True, slots=True)
class TwistedPosterior:
    """Evidence, and the means to draw the same samples again for test patterns.

    Attributes
    ----------
    estimate : SeparationEstimate
        The training pass.
    work : dict of str to int
        Samples, and sweeps of expectation propagation.
    """

    estimate: SeparationEstimate
    work: dict[str, int]
    _sampler: _Sampler

    @property
    def log_evidence(self) -> float:
        """Log p(y | X), nats."""
        return self.estimate.log_probability

    @property
    def log_evidence_se(self) -> float:
        """Its standard error, nats, from the randomisations."""
        return self.estimate.standard_error

    @property
    def diagnostics(self) -> dict[str, float]:
        """Pareto k-hat, effective samples and their share, and the bound on log(weight/mean weight)."""
        return self.estimate.diagnostics

    @property
    def status(self) -> str:
        """Whether the weights may be averaged, and whether there are enough effective samples."""
        return weights_status(self.diagnostics)

    @threadpool_limits.wrap(limits=1)
    def predict(self, K_star: ArrayLike, k_star_star: ArrayLike) -> Prediction:
        """P(y* = +1 | y), from the training pass's samples, drawn again.

        Parameters
        ----------
        K_star : (n, t) array
        k_star_star : (t,) array

        Raises
        ------
        ValueError
            If shapes do not agree or an entry is not finite.
        """
        found = self._sampler.run(K_star, k_star_star)
        return Prediction(found.conditional, found.conditional_se)


@dataclass(frozen=True, slots=True)
class Twisted:
    """Options of the orthant sampler twisted by expectation propagation.

    Attributes
    ----------
    points : int
        Sobol' points of a randomisation, a power of two; an eighth as many bound the weights.
    randomizations : int
        Independent randomisations: their spread is the standard error.
    """

    points: int = 1024
    randomizations: int = 16

    def __post_init__(self) -> None:
        check_points(self.points, self.randomizations)

    def fit(
        self, K: ArrayLike, y: ArrayLike, *, rng: np.random.Generator | None = None
    ) -> TwistedPosterior:
        """Estimate the evidence.

        Parameters
        ----------
        K : (n, n) array
        y : (n,) array
            Labels -1/+1.
        rng : numpy.random.Generator
            Required; seeds the randomisations.

        Raises
        ------
        ValueError
            If an argument is not as needed.
        ConvergenceError
            If expectation propagation does not converge.
        """
        sampler, sweeps = self._prepare(K, y, rng)
        n = len(sampler.signs)
        found = sampler.run(np.empty((n, 0)), np.empty(0))
        return TwistedPosterior(found, _work(found, sweeps), sampler)

    def infer(self, prior: Prior, y: ArrayLike, *, rng: np.random.Generator | None) -> Inference:
        """Evidence and test probabilities in one pass.

        Raises
        ------
        ValueError, ConvergenceError
            As `fit`.
        """
        sampler, sweeps = self._prepare(prior.K, y, rng)
        found = sampler.run(prior.K_star, prior.k_star_star, "prior.")
        return Inference(
            log_evidence=found.log_probability,
            log_evidence_se=found.standard_error,
            probability=found.conditional,
            probability_se=found.conditional_se,
            work=_work(found, sweeps),
            diagnostics=found.diagnostics,
            status=weights_status(found.diagnostics),
        )

    @threadpool_limits.wrap(limits=1)
    def _prepare(
        self, K: ArrayLike, y: ArrayLike, rng: np.random.Generator | None
    ) -> tuple[_Sampler, int]:
        """Sites, and the proposal that they make."""
        rng = validation.check_rng("rng", rng)
        ep = ExpectationPropagation().fit(K, y)
        K, y = np.asarray(K, dtype=np.float64), np.asarray(y, dtype=np.float64)
        R = np.eye(len(y)) + y[:, None] * K * y
        # a site exp(nu f - S f^2/2), convolved with the probit's unit noise, is one on v = y f + noise
        nu = y * (ep.S * ep.mean + ep.a) / (1.0 - ep.S)
        proposal = twisted_proposal(R, nu, ep.S / (1.0 - ep.S))
        L = cholesky(R, lower=True, check_finite=False)
        tilt = minimax_tilt(L)
        defence = tilted_proposal(L, tilt.mu)
        seeds = rng.integers(2**63, size=self.randomizations)
        return _Sampler(proposal, defence, tilt.log_bound, y, self.points, seeds), ep.work["sweeps"]


def _work(found: SeparationEstimate, sweeps: int) -> dict[str, int]:
    return {"samples": found.samples, "ep_sweeps": sweeps}


def weights_status(diagnostics: dict[str, float]) -> str:
    """Say whether weighted samples can be believed.

    Where the proven bound leaves to no single sample, seen or not, more than a tenth of the sum of all weights,
    nothing can hide in their tail. Elsewhere the tail is judged by Pareto k-hat.
    """
    samples = diagnostics["effective_samples"] / diagnostics["effective_fraction"]
    hidden = diagnostics.get("log_weight_bound", np.inf) > np.log(0.1 * samples)
    if hidden and diagnostics["k_hat"] > MAX_K_HAT:
        return UNTRUSTED
    return OK if diagnostics["effective_samples"] >= MIN_EFFECTIVE else NOT_CONVERGED
