"""Rounds of randomised quasi-Monte Carlo, each larger than the last, until the error is small enough.

A round is an average over independent scrambles of Sobol' points, each of which is unbiased for the probability. The
last round alone is the estimate. How large it is depends on earlier rounds only, whose points are others: it is made
large enough for three quarters of the error asked for, and is the last if its own error is below all of that, as it
nearly always is. A round that was not expected to be the last is so only if its error is below the three quarters. What
is left of optional stopping is a second-order effect of skewed weights.

A proposal whose weights may be unbounded is mixed with a defensive one, with the other's density as a control
variate: see `gpcmc.orthant.separation`, whose scheme this is.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, stdtrit

from gpcmc._validation import FloatArray
from gpcmc.orthant.separation import CHUNK, DEFENCE, Change, weight_diagnostics
from gpcmc.rectangle.engine import Sampler

#: Independent scrambles of a round.
SCRAMBLES = 16
#: Points of a scramble in the first round.
FIRST = 64
#: A round is at most so many times the one before.
_GROWTH = 16
#: The error is taken to fall as this power of the points.
_RATE = 0.8
# Share of the error asked for that a round is made large enough for. To stop at the first round whose error happens to
# look small enough would select errors that are too small.
_AIM = 0.75
#: With fewer effective samples the spread between scrambles is not believed.
_MIN_EFFECTIVE = 100.0
# Dimensions that Sobol' points are tabulated for.
_MAX_DIMENSION = 21_201


@dataclass(frozen=True, slots=True)
class Mixture:
    """One or two samplers, and a bound on the weights of their mixture.

    Attributes
    ----------
    samplers : tuple of Sampler
        The second, if any, is the defence, which gets an eighth as many points as the first.
    log_bound : float
        No log weight of the mixture is larger.
    cost : float
        Work of a sample of the mixture, in passes over the coordinates.
    """

    samplers: tuple[Sampler, ...]
    log_bound: float
    cost: float

    @classmethod
    def of(cls, sampler: Sampler, log_bound: float, defence: Sampler | None = None) -> Mixture:
        """Make a mixture; `log_bound` is of the defence where there is one."""
        if defence is None:
            return cls((sampler,), log_bound, 1.0)
        return cls((sampler, defence), log_bound + float(np.log(1 + DEFENCE)), 2.5)

    @property
    def dimension(self) -> int:
        """Number of innovations."""
        return len(self.samplers[0].proposal.L)

    def counts(self, points: int) -> list[int]:
        """Return the points of each sampler in a scramble."""
        return [points, -(-points // DEFENCE)][: len(self.samplers)]

    def changes(self) -> list[list[Change]]:
        """Return the maps from the row's innovations to the column's."""
        return [
            [Change.between(s.proposal, o.proposal) for o in self.samplers] for s in self.samplers
        ]

    def weigh(
        self, k: int, U: FloatArray, log_share: FloatArray, changes: list[list[Change]]
    ) -> tuple[FloatArray, FloatArray]:
        """Draw by sampler k from points U, which become its innovations.

        Returns
        -------
        log_w : (m,) array
            Log weights under the mixture.
        ratio : (m,) array
            Density of the first sampler over that of the mixture.
        """
        log_q = np.empty((len(self.samplers), U.shape[1]))
        log_q[k] = log_share[k] - self.samplers[k].run(U)
        for j, other in enumerate(self.samplers):
            if j != k:
                log_q[j] = log_share[j] - other.run(np.ascontiguousarray(changes[k][j](U)), True)
        if len(self.samplers) == 1:
            return -log_q[0], np.ones(U.shape[1])
        with np.errstate(invalid="ignore"):
            log_w = -logsumexp(log_q, axis=0)
            ratio = np.exp(log_q[0] + log_w - log_share[0])
        # a draw outside, where a tie leaves nothing, has no density under any of them
        outside = np.isposinf(log_q[k])
        log_w[outside], ratio[outside] = -np.inf, float(k == 0) / np.exp(log_share[k])
        return log_w, ratio


@dataclass(frozen=True, slots=True)
class Round:
    """What a round found.

    Attributes
    ----------
    log_probability, standard_error : float
        The error is that of the logarithm; infinite where no sample was inside.
    points, samples : int
        Of a scramble, and of all.
    diagnostics : dict of str to float
        See `gpcmc.orthant.separation.SeparationEstimate`.
    """

    log_probability: float
    standard_error: float
    points: int
    samples: int
    diagnostics: dict[str, float]

    def good(self, largest_se: float) -> bool:
        """Say whether the error is small enough, and to be believed."""
        enough = self.diagnostics["effective_samples"] >= _MIN_EFFECTIVE
        return enough and self.standard_error <= largest_se


def student(confidence: float) -> float:
    """Return the quantile of Student's t for a two-sided interval from the scrambles of a round."""
    return float(stdtrit(SCRAMBLES - 1, 0.5 + 0.5 * confidence))


def sobol(dimension: int, count: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield scrambled Sobol' points, (dimension, m) at a time."""
    from scipy.stats import qmc  # costs half a second to import

    engine = qmc.Sobol(dimension, rng=rng)
    for start in range(0, count, CHUNK):
        yield np.ascontiguousarray(engine.random(min(CHUNK, count - start)).T)


def run_round(mixture: Mixture, points: int, seeds: np.ndarray, n_jobs: int) -> Round:
    """Average the weights of one round.

    Parameters
    ----------
    mixture : Mixture
    points : int
        Of the first sampler in a scramble, a power of two.
    seeds : (r,) int array
        One of each scramble.
    n_jobs : int
        Threads; the result has the same bits whatever it is.
    """
    counts, changes = mixture.counts(points), mixture.changes()
    samples = sum(counts)
    log_share = np.log(np.array(counts) / samples)
    log_w, ratio = np.empty((len(seeds), samples)), np.empty((len(seeds), samples))

    def work(group: range) -> None:
        first = 0
        for k, count in enumerate(counts):
            streams = [
                sobol(mixture.dimension, count, np.random.default_rng([int(seeds[r]), k]))
                for r in group
            ]
            for parts in zip(*streams, strict=True):
                m = parts[0].shape[1]
                U = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
                here = slice(first, first + m)
                found = mixture.weigh(k, U, log_share, changes)
                log_w[group, here], ratio[group, here] = (x.reshape(len(group), m) for x in found)
                first += m

    # small scrambles are worked on together: each step from coordinate to coordinate has its price
    size = max(1, CHUNK // samples)
    groups = [range(r, min(r + size, len(seeds))) for r in range(0, len(seeds), size)]
    if n_jobs == 1:
        for group in groups:
            work(group)
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(work, groups))
    return _average(log_w, ratio.mean(axis=1), points)


def _average(log_w: FloatArray, ratio: FloatArray, points: int) -> Round:
    scrambles, samples = log_w.shape
    if np.isneginf(log_w).all():
        nothing = {"k_hat": np.inf, "effective_samples": 0.0, "effective_fraction": 0.0}
        return Round(-np.inf, np.inf, points, log_w.size, nothing)
    log_Z = logsumexp(log_w, axis=1) - np.log(samples)
    log_mean = logsumexp(log_Z) - np.log(scrambles)
    share = np.exp(log_Z - log_mean)
    # each scramble takes its coefficient from the others, which keeps it unbiased
    controlled = share + (share.sum() - share) / (scrambles - 1) * (1.0 - ratio)
    if not controlled.mean() > 0:
        controlled = share
    mean = float(controlled.mean())
    log_p = float(log_mean + np.log(mean))
    error = float(np.std(controlled, ddof=1)) / mean / np.sqrt(scrambles)
    # equal weights are no proof of no error: what rounding leaves is the least
    error = max(error, 1e-15 * (1.0 + abs(log_p)))
    return Round(log_p, error, points, log_w.size, weight_diagnostics(log_w.ravel()))


def _growth(last: Round, aim: float) -> float:
    """Return the growth that brings the error to `aim`, if it falls a little slower than 1 / points."""
    factor = min(max(last.standard_error / aim, 1.0), 1e6)
    return float(2.0 ** np.ceil(np.log2(factor) / _RATE))


def run_rounds(
    mixture: Mixture,
    largest_se: float,
    budget: int,
    rng: np.random.Generator,
    n_jobs: int,
    first: Round | None = None,
) -> tuple[Round, int, int]:
    """Go on until the error is small enough, or the samples are spent.

    Returns
    -------
    last : Round
    samples : int
        Of all rounds.
    rounds : int
    """
    check_dimension(mixture.dimension)
    last, spent, rounds = first, 0, 0
    aim, expected, points = _AIM * largest_se, False, FIRST
    while last is None or not last.good(largest_se if expected else aim):
        if last is not None:
            growth = _growth(last, aim)
            expected = growth <= _GROWTH
            points = last.points * int(np.clip(growth, 2, _GROWTH))
            while points > last.points and spent + _size(mixture, points) > budget:
                points, expected = points // 2, False
            if points == last.points:
                break
        last = run_round(mixture, points, rng.integers(2**63, size=SCRAMBLES), n_jobs)
        spent, rounds = spent + last.samples, rounds + 1
    return last, spent, rounds


def _size(mixture: Mixture, points: int) -> int:
    return SCRAMBLES * sum(mixture.counts(points))


def check_dimension(n: int) -> None:
    """Refuse more correlated coordinates than Sobol' points have.

    Raises
    ------
    ValueError
        If there are more than 21,201.
    """
    if n > _MAX_DIMENSION:
        raise ValueError(
            f"cov must have at most {_MAX_DIMENSION} coordinates that are correlated with each other, the "
            f"dimension of Sobol' points; got {n}"
        )
