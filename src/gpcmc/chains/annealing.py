"""Annealed importance sampling of the evidence (Neal 2001).

A run starts with an exact draw f_0 from the prior and moves once at each of the inverse temperatures 0 =
tau_0 < tau_1 < ... < tau_T = 1, tau_t = (t / T)^4, by a transition that leaves prior times
likelihood^tau_t as it is. Its log weight is the sum of (tau_t - tau_(t-1)) log p(y | f_(t-1)), with the
state *before* the move at tau_t: then the mean weight is p(y | X), for any T and any transition that
was tuned without the run. (The move at tau = 1 would come after the last weight, and is not
made.) The logarithm of an average of few runs is below log p(y | X) on average, by about half its
squared standard error.

The standard error is the jackknife's over the runs. Where one weight dominates, it says that the
estimate hangs on that run, by as many nats as the run outweighs the others; what no run has met, it
cannot know, and the evidence is then likely higher. The status says so.

References
----------
Neal (2001), Annealed importance sampling, Statistics and Computing 11, 125, Eqs. (3)-(11). Kuss and
Rasmussen (2005), JMLR 6, 1679 (fourth powers).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from gpcmc._threads import one_thread
from gpcmc._validation import (
    FloatArray,
    check_covariance,
    check_labels,
    check_positive_int,
    check_rng,
)
from gpcmc.chains.kernel import Kernel, KernelMaker
from gpcmc.posterior import MAX_K_HAT, OK, UNTRUSTED
from gpcmc.weights import MIN_TAIL, student_factor, weight_diagnostics

#: A smaller share of effective runs (squared coefficient of variation of the weights above 3), and
#: their average is not trusted.
MIN_EFFECTIVE_FRACTION = 0.25


@dataclass(frozen=True, slots=True)
class AnnealedEstimate:
    """The evidence by annealed runs.

    Attributes
    ----------
    log_weights : (m,) array
        Of the runs; the mean of the weights estimates p(y | X) without bias.
    log_evidence : float
        Logarithm of that mean, nats.
    log_evidence_se : float
        Its standard error, nats.
    work : dict of str to int
        Counts, as of `ChainPosterior`.
    diagnostics : dict of str to float
        ``effective_runs``, (sum w)^2 / sum w^2; ``effective_fraction``, the same over the number of runs;
        from 25 runs on ``k_hat``, the Pareto shape of the largest weights; ``annealing_acceptance``,
        the mean over all moves.
    status : str
        ``OK`` or ``UNTRUSTED``.
    """

    log_weights: FloatArray
    log_evidence: float
    log_evidence_se: float
    work: dict[str, int]
    diagnostics: dict[str, float]
    status: str


@one_thread()
def annealed_importance_sampling(
    K: ArrayLike,
    y: ArrayLike,
    *,
    transition: KernelMaker,
    temperatures: int,
    runs: int,
    rng: np.random.Generator,
) -> AnnealedEstimate:
    """Estimate log p(y | X) alone.

    Parameters
    ----------
    K : (n, n) array
        Prior covariance, positive semidefinite.
    y : (n,) array
        Labels -1/+1.
    transition : EllipticalSlice or HamiltonianMonteCarlo
        Options of the transition; of its counts, only those of the kernel matter.
    temperatures : int
        T, the steps of temperature, at least 1.
    runs : int
        At least 2; they advance side by side.
    rng : Generator
        Consumed.

    Raises
    ------
    ValueError
        If an argument is not as needed.
    """
    rng = check_rng("rng", rng)
    K = check_covariance("K", K, semidefinite=True)
    y = check_labels("y", y, len(K))
    check_positive_int("temperatures", temperatures)
    if check_positive_int("runs", runs) < 2:
        raise ValueError(f"runs must be at least 2, for a standard error; got {runs}")
    kernel, work = transition.kernel(K, y, rng=rng)
    return estimate(kernel, work, temperatures=temperatures, runs=runs, rng=rng)


def ladder(count: int) -> FloatArray:
    """Return the inverse temperatures (t / count)^4, t = 0 ... count."""
    return np.linspace(0.0, 1.0, count + 1) ** 4


def anneal(
    kernel: Kernel,
    state: Any,
    inverse_temperatures: FloatArray,
    work: Counter[str],
    *,
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Lead runs along inverse temperatures; return log weights (c,) and the mean acceptance, and add to `work`.

    The state holds exact draws at the first inverse temperature. With these rising from 0 to 1, the mean weight is
    p(y | X); falling from 1 to 0, it is 1 / p(y | X).
    """
    steps = np.diff(inverse_temperatures)
    log_weights = steps[0] * state.log_likelihood
    acceptance, runs = 0.0, len(log_weights)
    moves = kernel.run(state, inverse_temperatures[1:-1], rng=rng)
    for change, (moved, effort) in zip(steps[1:], moves, strict=True):
        log_weights += change * moved.log_likelihood
        acceptance += effort.acceptance
        effort.add_to(work, runs)
    return log_weights, acceptance / max(1, len(inverse_temperatures) - 2)


def estimate(
    kernel: Kernel, work: Counter[str], *, temperatures: int, runs: int, rng: np.random.Generator
) -> AnnealedEstimate:
    """Average `runs` runs of a kernel that is tuned already; `work` is what that took."""
    work = work.copy()
    start = kernel.init(kernel.coordinates.draw_prior(runs, rng=rng))
    work["likelihood_evaluations"] += runs
    work["matrix_vector_products"] += runs
    log_weights, acceptance = anneal(kernel, start, ladder(temperatures), work, rng=rng)
    weights = weight_diagnostics(log_weights)
    diagnostics = {
        "effective_runs": weights["effective_samples"],
        "effective_fraction": weights["effective_fraction"],
        "annealing_acceptance": acceptance,
    }
    if runs >= MIN_TAIL:
        diagnostics["k_hat"] = weights["k_hat"]
    trusted = (
        diagnostics["effective_fraction"] >= MIN_EFFECTIVE_FRACTION
        and diagnostics.get("k_hat", 0.0) <= MAX_K_HAT
    )
    return AnnealedEstimate(
        log_weights=log_weights,
        log_evidence=float(logsumexp(log_weights) - np.log(runs)),
        log_evidence_se=jackknife(log_weights),
        work=dict(work),
        diagnostics=diagnostics,
        status=OK if trusted else UNTRUSTED,
    )


def jackknife(log_weights: FloatArray) -> float:
    """Return the standard error of the log mean weight, nats, such that 1.96 of it cover 95 %.

    The jackknife's, times the 97.5 % point of Student's t over the normal's.
    """
    m = len(log_weights)
    without = np.broadcast_to(log_weights, (m, m))[~np.eye(m, dtype=bool)].reshape(m, m - 1)
    spread = np.sqrt((m - 1) * np.var(logsumexp(without, axis=1)))
    return float(spread * student_factor(m - 1))
