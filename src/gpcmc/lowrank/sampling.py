"""Monte Carlo under a covariance of low rank: the twisted orthant sampler.

`twisted_ep` is `gpcmc.inference.twisted` at O(n r) a draw. One draw in nine is by minimax tilting, which bounds the
weights. The points are independent, not Sobol': these end at 21,201 dimensions. The estimate is unbiased for the
evidence of the covariance F F' + D; the correction for what that leaves out comes from the Gaussian posterior, and is
added.

References
----------
Whiteley and Lee (2014), Annals of Statistics 42, 115. Owen and Zhou (2000), Journal of the American Statistical
Association 95, 135.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr, logsumexp, ndtr

from gpcmc._validation import FloatArray
from gpcmc.covariance.form import Cross
from gpcmc.covariance.lowrank import LowRank
from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import gaussian_proposal
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.inference.separated import weights_status
from gpcmc.inference.twisted import Twisted
from gpcmc.lowrank.filter import FilteredProposal, Pass, parts
from gpcmc.lowrank.proposals import tilted, twisted
from gpcmc.orthant.separation import DEFENCE, weight_diagnostics
from gpcmc.posterior import OK, FormPosterior, Prediction, with_prediction

_CHUNK = 256  # draws at once


@dataclass(frozen=True, kw_only=True)
class WeightedPosterior(FormPosterior):
    """Weighted draws of what u is known by, and the evidence as their mean weight.

    `log_evidence_se` is the Monte Carlo error of the evidence of F F' + D, from the spread between groups of draws. For
    the diagnostics see `gpcmc.covariance.correction`, and the dense method.

    Attributes
    ----------
    proposal : GaussianPosterior
        Expectation propagation's, whose sites were used.
    """

    log_evidence: float
    log_evidence_se: float
    proposal: GaussianPosterior
    _centres: FloatArray  # (r, groups, m): means of u given a draw
    _spread: FloatArray  # (r, k): a root of the covariance of u given a draw
    _weights: FloatArray  # (groups, m), of mean one

    def _predict_at(self, cross: Cross) -> Prediction:
        F, D = cross.rows()  # type: ignore[attr-defined]
        variance = 1.0 + D + np.sum((F @ self._spread) ** 2, axis=1)
        groups = len(self._weights)
        share = self._weights.mean(axis=1)
        scores = np.empty((groups, len(F)))
        for g in range(groups):
            p = ndtr((F @ self._centres[:, g]) / np.sqrt(variance)[:, None])
            scores[g] = p @ self._weights[g] / self._weights.shape[1]
        probability = scores.mean(axis=0) / share.mean()
        error = np.std(scores - share[:, None] * probability, axis=0, ddof=1)
        change, form_error = self.proposal.form_change(cross)
        probability = np.clip(probability + change, 0.0, 1.0)
        return Prediction(probability, error / np.sqrt(groups), form_error)


@dataclass(frozen=True, slots=True)
class _Draws:
    """Draws of all groups: log of target over mixture (groups, m), proposal over mixture, and means of u."""

    log_weights: FloatArray
    ratios: FloatArray
    centres: FloatArray  # (r, groups, m)


@dataclass(frozen=True, slots=True)
class ControlledMean:
    """The mean weight of a mixture, with the control variate of `gpcmc.orthant.separation`.

    Attributes
    ----------
    log_mean, standard_error : float
        The error is that of the logarithm, from the spread between groups.
    log_plain : float
        Without the control variate.
    share : (groups,) array
        Plain mean of each group over that of all.
    """

    log_mean: float
    standard_error: float
    log_plain: float
    share: FloatArray


def controlled_mean(log_weights: FloatArray, ratios: FloatArray) -> ControlledMean:
    """Average log weights (groups, m); ratios (groups,) are means of one proposal over the mixture."""
    groups, m = log_weights.shape
    log_Z = logsumexp(log_weights, axis=1) - np.log(m)
    log_plain = float(logsumexp(log_Z) - np.log(groups))
    share = np.exp(log_Z - log_plain)
    # each group takes its coefficient from the others, which keeps the mean unbiased
    controlled = share + (share.sum() - share) / (groups - 1) * (1.0 - ratios)
    mean = float(controlled.mean())
    error = float(np.std(controlled, ddof=1) / mean / groups**0.5)
    return ControlledMean(log_plain + float(np.log(mean)), error, log_plain, share)


def twisted_ep(
    prior: Prior, y: FloatArray, method: Twisted, rng: np.random.Generator
) -> WeightedPosterior:
    """Estimate the evidence by the orthant sampler with EP's sites as look-ahead.

    Parameters
    ----------
    prior : Prior
        With a covariance of low rank.
    y : (n,) array
        Labels -1/+1.
    method : Twisted
        Draws in a group, groups, threads.
    rng : numpy.random.Generator
    """
    K: LowRank = prior.K
    proposal = gaussian_proposal(ExpectationPropagation(), K, y)
    R = LowRank(y[:, None] * K.F, 1.0 + K.D)
    # the site on v = y f + noise which, convolved with that noise, is the one on f
    kept = 1.0 - proposal.S
    nu = y * (proposal.S * proposal.mean + proposal.a) / kept
    main = twisted(R, nu, proposal.S / kept)
    defence, log_bound, steps = tilted(R)
    counts = (method.points, -(-method.points // DEFENCE))
    seed = int(rng.integers(2**63))
    draws = _mixture((main, defence), counts, method.randomizations, method.n_jobs, seed)
    mean = controlled_mean(draws.log_weights, draws.ratios.mean(axis=1))
    diagnostics = weight_diagnostics(draws.log_weights.ravel())
    diagnostics["log_weight_bound"] = log_bound + np.log(1 + DEFENCE) - mean.log_mean
    values, vectors = np.linalg.eigh(main.filter.left)
    found = WeightedPosterior(
        covariance=K,
        log_evidence=mean.log_mean + proposal.diagnostics.get("correction", 0.0),
        log_evidence_se=mean.standard_error,
        work={"samples": draws.log_weights.size, "factorizations": steps}
        | {f"ep_{name}": count for name, count in proposal.work.items()},
        diagnostics=proposal.diagnostics | diagnostics,
        status=_first_not_ok(weights_status(diagnostics), proposal.status),
        proposal=proposal,
        _centres=draws.centres,
        _spread=vectors * np.sqrt(np.maximum(values, 0.0)),
        _weights=np.exp(draws.log_weights - mean.log_plain),
    )
    return with_prediction(found, prior)


def _first_not_ok(*statuses: str) -> str:
    return next((status for status in statuses if status != OK), OK)


def _mixture(
    sources: tuple[FilteredProposal, FilteredProposal],
    counts: tuple[int, int],
    groups: int,
    n_jobs: int,
    seed: int,
) -> _Draws:
    """Draw from both proposals, and weigh all by the mixture that has them in these proportions."""
    log_share = np.log(np.array(counts) / sum(counts))
    n = len(sources[0].mean)

    def run(task: tuple[int, int, int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        own, start, m = task
        rng = np.random.default_rng([seed, own, start])
        passes = [Pass.start(source, m) for source in sources]
        for k, here in enumerate(parts(n)):
            V = passes[own].draw(k, here, rng.random((here.stop - here.start, m)))
            passes[1 - own].given(k, here, V)
        log_q = log_share[:, None] - np.array([one.log_weights for one in passes])
        log_w = -logsumexp(log_q, axis=0)
        centres = sources[own].centre[:, None] + passes[own].state
        return log_w, np.exp(log_q[0] + log_w - log_share[0]), centres

    tasks = [
        (own, start, min(_CHUNK, groups * count - start))
        for own, count in enumerate(counts)
        for start in range(0, groups * count, _CHUNK)
    ]
    if n_jobs == 1:
        found = [run(task) for task in tasks]
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            found = list(pool.map(run, tasks))
    together = [np.concatenate(one, axis=-1) for one in zip(*found, strict=True)]
    first = groups * counts[0]

    def grouped(x: FloatArray) -> FloatArray:
        lead = x.shape[:-1]
        halves = [
            x[..., :first].reshape(*lead, groups, counts[0]),
            x[..., first:].reshape(*lead, groups, counts[1]),
        ]
        return np.concatenate(halves, axis=-1)

    return _Draws(*(grouped(one) for one in together))
