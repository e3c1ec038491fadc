"""What methods by separation of variables share: passes over samples that can be drawn again, and their status.

The orthant is the paper's (Eqs 25 to 30): p(y | X) = P(v >= 0) for v ~ N(0, R), R = I + C K C, C = diag(y).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from gpcmc import _validation as validation
from gpcmc.covariance.prior import Prior
from gpcmc.methods import Method
from gpcmc.posterior import MAX_K_HAT, MIN_EFFECTIVE, NOT_CONVERGED, OK, UNTRUSTED, PosteriorRecord, Prediction
from gpcmc.orthant.sampler import Array, test_rows
from gpcmc.orthant.separation import (
    DEFENCE,
    Proposal,
    SeparationEstimate,
    check_points,
    estimate,
)


@dataclass(frozen=True, slots=True)
class SeparatedSampler:
    """All that a pass over the samples needs; every pass draws the same ones.

    Attributes
    ----------
    proposal, defence : Proposal
        The second, or None, bounds the weights; see `gpcmc.orthant.separation.estimate`.
    log_bound : float
        Of the weights of the defence, or of the proposal where there is none.
    L : (n, n) array
        Lower Cholesky factor of v's covariance, in the order in which coordinates are drawn.
    order : (n,) int array
    signs : (n,) array
        y in that order.
    work : dict of str to int
        What the preparation took.
    """

    proposal: Proposal
    defence: Proposal | None
    log_bound: float
    L: Array
    order: NDArray[np.intp]
    signs: Array
    work: dict[str, int]

    def run(
        self,
        K_star: Array,
        k_star_star: Array,
        *,
        points: int,
        seeds: NDArray[np.int64],
        n_jobs: int,
    ) -> SeparationEstimate:
        """Estimate the evidence, and the test patterns' probabilities."""
        A = test_rows(self.L, self.signs[:, None] * K_star[self.order], 1.0 + k_star_star)
        rows = solve_triangular(self.L, A.T, lower=True, trans=1, check_finite=False).T
        found = estimate(
            self.proposal, rows, points=points, seeds=seeds, defence=self.defence, n_jobs=n_jobs
        )
        share = 0.0 if self.defence is None else np.log(1 + DEFENCE)
        bound = self.log_bound + share - found.log_probability
        return replace(found, diagnostics=found.diagnostics | {"log_weight_bound": float(bound)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparatedPosterior(PosteriorRecord):
    """Evidence, and the means to draw the same samples again for test patterns.

    The standard errors are from the randomisations: one degree of freedom less than these. The work counts samples, and
    what the preparation took. The status is that of `weights_status`.

    The diagnostics are Pareto k-hat, effective samples and their share, and ``log_weight_bound``. The last is a proven
    bound on log(weight / mean weight). Where it is below the logarithm of a tenth of the samples, no weight that was
    never drawn could change the average by much. Above, it is vacuous: it proves that the variance is finite, and not
    that the standard error is right; k-hat is then all there is to go by. On large problems with rough kernels it is
    vacuous at any number of samples. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    estimate : SeparationEstimate
        The training pass, with the test pass at the prior's test inputs.
    """

    log_evidence: float
    log_evidence_se: float
    estimate: SeparationEstimate
    _sampler: SeparatedSampler
    _points: int
    _seeds: NDArray[np.int64]
    _n_jobs: int

    @property
    def _patterns(self) -> int:
        return len(self._sampler.signs)

    def _predict(self, K_star: Array, k_star_star: Array) -> Prediction:
        found = self._sampler.run(
            K_star, k_star_star, points=self._points, seeds=self._seeds, n_jobs=self._n_jobs
        )
        return Prediction(found.conditional, found.conditional_se)


@dataclass(frozen=True, slots=True)
class Separated(Method[SeparatedPosterior]):
    """Options that such methods share. The random numbers of a fit seed its randomisations.

    Attributes
    ----------
    points : int
        Sobol' points of a randomisation, a power of two.
    randomizations : int
        Independent randomisations: their spread is the standard error.
    n_jobs : int
        Threads that the randomisations are spread over. The result has the same bits whatever it is; each thread needs
        memory for up to 4096 points of n coordinates, a few times over.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    points: int = 1024
    randomizations: int = 16
    n_jobs: int = 1

    def __post_init__(self) -> None:
        check_points(self.points, self.randomizations)
        validation.check_positive_int("n_jobs", self.n_jobs)

    def memory(self, n: int) -> float:
        """As `Method.memory`; the points that each thread works on count too."""
        return Method.memory(self, n) + 8.0 * self.n_jobs * 4 * min(self.points, 4096) * n

    @abstractmethod
    def prepare(self, K: Array, y: Array) -> SeparatedSampler:
        """Make what the passes need, for arguments that are checked already.

        Parameters
        ----------
        K : (n, n) array
            Prior covariance, positive semidefinite.
        y : (n,) array
            Labels -1/+1.

        Raises
        ------
        ConvergenceError
            If the proposal comes from an iteration that does not converge.
        """

    def _fit(self, prior: Prior, y: Array, rng: np.random.Generator) -> SeparatedPosterior:
        seeds = rng.integers(2**63, size=self.randomizations)
        sampler = self.prepare(prior.K, y)
        found = sampler.run(
            prior.K_star, prior.k_star_star, points=self.points, seeds=seeds, n_jobs=self.n_jobs
        )
        return SeparatedPosterior(
            log_evidence=found.log_probability,
            log_evidence_se=found.standard_error,
            work={"samples": found.samples} | sampler.work,
            diagnostics=found.diagnostics,
            status=weights_status(found.diagnostics),
            prediction=Prediction(found.conditional, found.conditional_se),
            estimate=found,
            _sampler=sampler,
            _points=self.points,
            _seeds=seeds,
            _n_jobs=self.n_jobs,
        )


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
