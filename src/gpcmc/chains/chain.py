"""What elliptical slice sampling and Hamiltonian Monte Carlo share: chains, then annealed runs, with one kernel.

A test pattern's probability is the average of P(y* = +1 | f) = Phi(m(f) / sqrt(1 + v)), with m(f) = k*' K^-1 f and
v = k** - k*' K^-1 k* the mean and variance of f* given f, which the posterior does not change.

References
----------
Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, Eqs. (2.19), (3.82).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from gpcmc._validation import FloatArray, check_covariance, check_positive_int
from gpcmc.chains import annealing
from gpcmc.chains.convergence import convergence, monitored
from gpcmc.chains.kernel import Kernel, draw_chains, standard_error
from gpcmc.covariance.prior import Prior
from gpcmc.methods import Method
from gpcmc.posterior import OK, PosteriorRecord, Prediction, chain_status, with_prediction

_BATCHES = 32  # batch means of a standard error, over all chains, at least
_ROWS = 4096  # draws that are read at once in a prediction


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

    def draws(self, K: ArrayLike | None = None) -> dict[str, dict[str, Any]]:
        """Return the draws by group and name, as `gpcmc.inference.draws_of` says."""
        values = {"w": self.w}
        if K is not None:
            K = check_covariance("K", K)
            if len(K) != len(self.back):
                raise ValueError(f"K must be of order {len(self.back)}; got {len(K)}")
            values = {"f": self.w @ (self.back.T @ K)}
        return {"posterior": values, "sample_stats": {"lp": self.log_likelihood}}

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


@dataclass(frozen=True, slots=True)
class ChainMethod(Method[ChainPosterior]):
    """Options of a method that runs chains, and annealed runs for the evidence, with one kernel.

    Attributes
    ----------
    samples : int
        Transitions after burn-in, in all chains together; rounded up to a multiple of `chains`. Every chain must keep
        at least 4 draws.
    burn_in : int
        Transitions of each chain that are dropped; may be 0.
    thin : int
        Keep every `thin`-th transition: a draw costs memory.
    chains : int
        Chains side by side, at least 2.
    temperatures : int
        Steps of temperature of an annealed run; 0 for no annealed runs and no evidence.
    annealing_runs : int
        Annealed runs side by side, at least 2.

    Raises
    ------
    ValueError
        If a count is too small, or is not an integer.
    """

    samples: int
    burn_in: int
    thin: int
    chains: int
    temperatures: int
    annealing_runs: int

    def __post_init__(self) -> None:
        for name in ("samples", "burn_in", "thin", "chains", "temperatures", "annealing_runs"):
            value = getattr(self, name)
            if name in ("burn_in", "temperatures") and value == 0 and not isinstance(value, bool):
                continue
            check_positive_int(name, value)
        for name in ("chains", "annealing_runs"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2; got {getattr(self, name)}")
        check_kept("samples", self.samples, self.chains, self.thin, "transitions")

    @property
    def kept(self) -> int:
        """Draws kept of each chain."""
        return kept_draws(self.samples, self.chains, self.thin)

    def memory(self, n: int) -> float:
        """As `Method.memory`; the draws count too."""
        return Method.memory(self, n) + 8.0 * self.chains * self.kept * n

    @abstractmethod
    def kernel(
        self, K: FloatArray, y: FloatArray, *, rng: np.random.Generator
    ) -> tuple[Kernel, Counter[str]]:
        """Return the kernel for K (n, n) and y (n,), tuned once and for all by `rng`, and the work that this took."""

    def _fit(self, prior: Prior, y: FloatArray, rng: np.random.Generator) -> ChainPosterior:
        kernel, work = self.kernel(prior.K, y, rng=rng)
        lengths = {"burn_in": self.burn_in, "kept": self.kept, "thin": self.thin}
        w, log_likelihood, acceptance = draw_chains(
            kernel, work, chains=self.chains, **lengths, rng=rng
        )
        work["samples"] = log_likelihood.size
        margin_map = kernel.coordinates.margin_map
        diagnostics = convergence(log_likelihood, w @ margin_map[:, monitored(len(y))])
        diagnostics |= {"acceptance": acceptance, **kernel.settings}
        status = chain_status(diagnostics)
        annealed = None
        if self.temperatures:
            annealed = annealing.estimate(
                kernel, work, temperatures=self.temperatures, runs=self.annealing_runs, rng=rng
            )
            diagnostics |= annealed.diagnostics
            status = annealed.status if status == OK else status
        posterior = ChainPosterior(
            w=w,
            log_likelihood=log_likelihood,
            log_weights=annealed.log_weights if annealed else None,
            log_evidence=annealed.log_evidence if annealed else None,
            log_evidence_se=annealed.log_evidence_se if annealed else None,
            work=annealed.work if annealed else dict(work),
            diagnostics=diagnostics,
            status=status,
            back=kernel.coordinates.back,
        )
        return with_prediction(posterior, prior)


def kept_draws(transitions: int, chains: int, thin: int) -> int:
    """Return how many draws each chain keeps, of so many transitions in all."""
    return -(-transitions // chains) // thin


def check_kept(name: str, transitions: int, chains: int, thin: int, unit: str) -> None:
    """Refuse so many transitions as leave a chain fewer than four draws."""
    if (kept := kept_draws(transitions, chains, thin)) < 4:
        raise ValueError(
            f"{name} must leave every chain at least 4 draws, that is {4 * chains * thin} {unit} with "
            f"chains={chains} and thin={thin}; got {name}={transitions}, which leaves {kept}"
        )
