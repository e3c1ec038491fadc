r"""The average weight of samples from a proposal, with a defensive one mixed in.

The points are Sobol' points, scrambled anew for each of several independent randomisations, so that the estimate of
the *probability* is unbiased and its standard error is the spread between randomisations. Beyond five hundred
coordinates they are Latin hypercubes: balanced in each coordinate, which is all that a feasible number of Sobol'
points is there, at less cost, and for any number of coordinates (measured by benchmarks/evidence.py).

A proposal whose weights may be unbounded is mixed with one whose weights are bounded: with q = (1 - e) q_1 + e q_2 in
the denominator, the weight p/q is at most (p/q_2)/e. What the second one's draws cost where the first is good is won
back by the control variate q_1/q, whose mean is one (Owen and Zhou 2000); each randomisation takes its coefficient
from the others, which keeps the estimate unbiased.

Both proposals go through the coordinates together, block after block: what one has drawn the other weighs at once.

References
----------
Genz (1992), Journal of Computational and Graphical Statistics 1, 141. Owen (1998), ACM
Transactions on Modeling and Computer Simulation 8, 71. McKay, Beckman and Conover (1979), Technometrics 21, 239. Owen
and Zhou (2000), Journal of the American Statistical Association 95, 135.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gpcmc import _validation as validation
from gpcmc._sobol import Sobol
from gpcmc._validation import FloatArray
from gpcmc.rectangle.order import Tie
from gpcmc.rectangle.proposals import Pass, Points, Proposal
from gpcmc.weights import weight_diagnostics

#: The defensive proposal gets one draw for so many of the other's.
DEFENCE = 8
#: Coordinates up to which points are Sobol's.
MANY = 500
# Samples worked on at once: few enough for arrays of 32 MB, many enough for products of matrices.
_MOST, _LEAST, _NUMBERS = 4096, 256, 2**22
# Numbers of the states of draws that are worked on at once, where a state is all that is kept of them.
_STATES = 2**25
# Points of so many numbers are cut so that several threads have work.
_LONG = 2**24
# With fewer effective samples, of many, nothing is known of how far off the average is; nor where so small a share of
# the randomisations make it up: their spread would be an error of half the average and more, whatever the truth is.
_BLIND, _FEW = 4.0, 0.25


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one proposal, weighed."""

    k: int  # which proposal drew them
    randomizations: range  # whose they are, with equally many of each
    columns: slice  # their place among the samples of a randomisation
    log_weights: FloatArray  # (m,) target over mixture
    # (proposals, m) share of each proposal in the mixture's density at each sample
    log_share: FloatArray
    passes: list[Pass]  # of each proposal
    X: FloatArray | None = None  # (n, m) coordinates above their lower limits, if they are kept
    points: FloatArray | None = None  # (n, m) what they were made from, if they are kept

    def condensed(self) -> Samples:
        """Return the same with the last proposal's state alone."""
        last = self.passes[-1]
        kept = Pass(last.proposal, last.state, np.empty(0))
        return Samples(
            self.k, self.randomizations, self.columns, self.log_weights, np.empty(0), [kept]
        )


@dataclass(frozen=True, slots=True)
class Mixture:
    """One proposal, or one and its defence, and a bound on their weights."""

    # The last one's factor is that of v itself: its innovations are what ties are given in
    proposals: tuple[Proposal, ...]
    log_bound: float  # no log weight of the mixture is larger
    ties: dict[int, Tie] = field(default_factory=dict)  # further limits, by coordinate
    # What states of draws count from where these are resampled (`filter`), by one proposal whose factor is not of v
    centre: FloatArray | None = None

    @classmethod
    def defended(cls, proposal: Proposal, defence: Mixture) -> Mixture:
        """Mix a proposal with another whose weights are bounded."""
        bound = defence.log_bound + float(np.log(1 + DEFENCE))
        return cls((proposal, *defence.proposals), bound, defence.ties)

    def __len__(self) -> int:
        return len(self.proposals[0])

    @property
    def cost(self) -> float:
        """Work of a sample, in passes over the coordinates."""
        return float(len(self.proposals))

    def counts(self, points: int) -> list[int]:
        """Return the samples of each proposal in a randomisation."""
        return [points, -(-points // DEFENCE)][: len(self.proposals)]

    def weigh(
        self, k: int, samples: int, points: Points, log_share: FloatArray, keep: bool = False
    ) -> tuple[FloatArray, FloatArray, list[Pass], FloatArray | None]:
        """Draw by proposal k, and weigh by the mixture in which each has a share.

        Returns log weights (m,), log shares of each proposal at each sample (proposals, m), the passes, and the
        coordinates (n, m), if it is to `keep` these.
        """
        passes = [Pass.start(one, samples) for one in self.proposals]
        X = np.empty((len(self), samples)) if keep else None
        with np.errstate(invalid="ignore"):
            for block, here in enumerate(passes[0].proposal.factor.parts):
                ahead = [one.ahead(block) for one in passes]
                V = np.empty((here.stop - here.start, samples)) if X is None else X[here]
                # the one that draws comes first
                order = [k, *(j for j in range(len(passes)) if j != k)]
                if (tie := self.ties.get(here.start)) is not None:
                    ends = self._ends(tie, passes[-1], ahead[-1][0], here.start)
                    for j in order:
                        passes[j].between(block, ahead[j], V, ends, points if j == k else None)
                    continue
                passes[k].draw(block, ahead[k], V, points)
                for j in order[1:]:
                    passes[j].weigh(block, ahead[j], V)
        if len(passes) == 1:
            return passes[0].log_weights, np.zeros((1, samples)), passes, X
        log_q = log_share[:, None] - np.array([one.log_weights for one in passes])
        # a draw outside, where a tie leaves nothing, has no density under any of them
        outside = ~np.isfinite(log_q[k])
        if outside.any():
            log_q[:, outside] = np.where(np.arange(len(passes)) == k, 0.0, -np.inf)[:, None]
        log_w = -logsumexp(log_q, axis=0)
        share = log_q + log_w
        log_w[outside] = -np.inf
        return log_w, share, passes, X

    def _ends(self, tie: Tie, base: Pass, ahead: FloatArray, i: int) -> FloatArray:
        """Return the limits (2, m) of coordinate i above its lower one, with those of a tie."""
        shift, *_, d, width = base.proposal.coefficients[i]
        before = tie.rows[:, :-1] @ base.state[:i]
        slope = tie.rows[:, -1:]
        one, other = (tie.lower[:, None] - before) / slope, (tie.upper[:, None] - before) / slope
        low, high = np.minimum(one, other).max(axis=0), np.maximum(one, other).min(axis=0)
        c = ahead + shift
        return d * np.stack([np.maximum(c + low, 0.0), np.minimum(c + high, width)])


@dataclass(frozen=True, slots=True)
class Average:
    """The average weight of all samples.

    Attributes
    ----------
    log_probability : float
        Natural logarithm of the estimate.
    standard_error : float
        Of the logarithm, from the spread between randomisations. Infinite where no sample was inside, or where so few
        make up the average that nothing is known of its error.
    samples : int
        Of all randomisations and proposals.
    points : int
        Of the first proposal in a randomisation.
    log_plain : float
        The logarithm without the control variate.
    share : (r,) array
        Plain average of each randomisation over that of all.
    diagnostics : dict of str to float
        ``k_hat``, the Pareto shape of the largest weights: above 0.7 their average is not to be trusted;
        ``effective_samples`` and ``effective_fraction``, the effective samples over the samples: 1/(1 + squared
        coefficient of variation of the weights).
    """

    log_probability: float
    standard_error: float
    samples: int
    points: int
    log_plain: float
    share: FloatArray
    diagnostics: dict[str, float]


def draw(
    mixture: Mixture,
    points: int,
    seeds: NDArray[np.int64],
    *,
    n_jobs: int = 1,
    visit: Callable[[Samples], None] | None = None,
    keep: bool = False,
) -> Average:
    """Draw all randomisations, each with a seed and so many points of the first proposal, and average their weights.

    Equal seeds give equal bits on one machine, whatever `n_jobs`, the number of threads. `visit` sees all samples,
    those of one randomisation in order and in one thread; with their coordinates and points, if it is to `keep` these.
    """
    counts = mixture.counts(points)
    samples = sum(counts)
    log_share = np.log(np.array(counts) / samples)
    log_w, ratio = np.empty((len(seeds), samples)), np.ones((len(seeds), samples))
    size = int(np.clip(_NUMBERS // len(mixture), _LEAST, _MOST))
    last = mixture.proposals[-1].factor
    if last.condenses and not keep and len(mixture) > MANY:
        # nothing else of it is as long as the coordinates
        size = int(np.clip(_STATES // len(last.begin(1)), _LEAST, _MOST))

    def work(group: range) -> None:
        first = 0
        for k, count in enumerate(counts):
            for m, U in _streams(len(mixture), count, seeds[group.start : group.stop], k, size):
                columns = slice(first, first := first + m)
                kept = U(slice(None)) if keep else None
                if kept is not None:
                    U = kept.__getitem__
                found = mixture.weigh(k, m * len(group), U, log_share, keep)
                log_w[group, columns] = found[0].reshape(len(group), m)
                if len(counts) > 1:
                    ratio[group, columns] = np.exp(found[1][0] - log_share[0]).reshape(-1, m)
                if visit is not None:
                    visit(Samples(k, group, columns, *found, kept))

    # small randomisations are worked on together: each step from block to block has its price
    together = max(1, size // samples)
    if len(seeds) * samples * len(mixture) > _LONG:
        together = min(together, max(len(seeds) // 4, -(-_LEAST // samples)))
    groups = [range(r, min(r + together, len(seeds))) for r in range(0, len(seeds), together)]
    if n_jobs == 1:
        for group in groups:
            work(group)
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(work, groups))
    return average(log_w, ratio.mean(axis=1), points)


def average(
    log_weights: FloatArray,
    ratio: FloatArray,
    points: int,
    diagnostics: dict[str, float] | None = None,
) -> Average:
    """Average log weights (r, samples); ratio (r,) are means of the first proposal over the mixture.

    Diagnostics are those of the weights, unless others are given.
    """
    r, samples = log_weights.shape
    if diagnostics is None:
        diagnostics = weight_diagnostics(log_weights.ravel())
    if np.isneginf(log_weights).all():
        return Average(-np.inf, np.inf, log_weights.size, points, -np.inf, np.zeros(r), diagnostics)
    log_Z = logsumexp(log_weights, axis=1) - np.log(samples)
    log_plain = float(logsumexp(log_Z) - np.log(r))
    share = np.exp(log_Z - log_plain)
    # each randomisation takes its coefficient from the others, which keeps the mean unbiased
    controlled = share + (share.sum() - share) / (r - 1) * (1.0 - ratio)
    if not controlled.mean() > 0:
        controlled = share
    mean = float(controlled.mean())
    log_p = log_plain + float(np.log(mean))
    error = float(np.std(controlled, ddof=1)) / mean / np.sqrt(r)
    # equal weights are no proof of no error: what rounding leaves is the least
    error = max(error, 1e-15 * (1.0 + abs(log_p)))
    effective, alike = diagnostics["effective_samples"], diagnostics["effective_fraction"] >= 0.5
    if not alike and (effective < _BLIND or 1.0 / np.mean(share**2) < _FEW):
        error = np.inf
    return Average(log_p, error, log_weights.size, points, log_plain, share, diagnostics)


def _streams(
    n: int, count: int, seeds: NDArray[np.int64], k: int, size: int
) -> Iterator[tuple[int, Points]]:
    """Yield the points of proposal k in some randomisations, m of each at a time."""
    rngs = [np.random.default_rng([int(seed), k]) for seed in seeds]
    size = max(1, size // len(seeds))
    if n > MANY:
        for start in range(0, count, size):
            m = min(size, count - start)
            yield m, Latin(n, m, rngs)
        return
    sequences = [Sobol(n, rng) for rng in rngs]
    for start in range(0, count, size):
        m = min(size, count - start)
        U = np.concatenate([sequence.random(m) for sequence in sequences], axis=1)
        yield m, U.__getitem__


@dataclass(frozen=True, slots=True)
class Latin:
    """A Latin hypercube of m points in each randomisation, made where it is asked for, block after block."""

    n: int
    m: int
    rngs: list[np.random.Generator]

    def __call__(self, here: slice) -> FloatArray:
        """Return the points of some coordinates (rows, m r)."""
        rows = len(range(*here.indices(self.n)))
        strata = np.broadcast_to(np.arange(float(self.m)), (rows, self.m))
        each = [rng.permuted(strata, axis=1) + rng.random(strata.shape) for rng in self.rngs]
        return np.concatenate(each, axis=1) / self.m


class Means:
    """Means of what samples are worth under their weights, in each randomisation.

    Attributes
    ----------
    log_total : (r,) array
        Logarithms of the sums of the weights.
    values : (r, ...) array or None
        Means under them; None before there is a sample.
    """

    def __init__(self, randomizations: int) -> None:
        self.log_total = np.full(randomizations, -np.inf)
        self.values: FloatArray | None = None
        self._begun = Lock()  # randomisations are seen in threads; each has its own place

    def add(self, some: Samples, mean: Callable[[FloatArray], FloatArray]) -> None:
        """Take samples in; `mean` takes shares (g, m) of weights, and returns sums (g, ...) under them."""
        r = slice(some.randomizations.start, some.randomizations.stop)
        log_w = some.log_weights.reshape(len(some.randomizations), -1)
        old = self.log_total[r]
        with np.errstate(invalid="ignore"):
            new = np.logaddexp(old, logsumexp(log_w, axis=1))
        safe = np.where(np.isneginf(new), 0.0, new)
        found = mean(np.exp(log_w - safe[:, None]))
        with self._begun:
            if self.values is None:
                self.values = np.zeros((len(self.log_total), *found.shape[1:]))
        kept = np.exp(old - safe).reshape(-1, *[1] * (found.ndim - 1))
        self.values[r] = kept * self.values[r] + found
        self.log_total[r] = new

    def contributions(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of all, and what each randomisation's deviates from it, given its share of the weights."""
        assert self.values is not None
        share = share.reshape(-1, *[1] * (self.values.ndim - 1))
        mean = (share * self.values).mean(axis=0)
        return mean, share * (self.values - mean)


def deviation(errors: FloatArray) -> FloatArray:
    """Return the standard error of a mean over randomisations (r, ...)."""
    found: FloatArray = np.std(errors, axis=0, ddof=1) / np.sqrt(len(errors))
    return found


def check_points(points: int, randomizations: int) -> None:
    """Refuse points that are no power of two up to 2^30, and fewer than two randomisations."""
    validation.check_positive_int("points", points)
    validation.check_positive_int("randomizations", randomizations)
    if points & (points - 1) or points > 2**30:
        raise ValueError(
            f"points must be a power of two up to 2^30, for the balance of Sobol' points; got {points}"
        )
    if randomizations < 2:
        raise ValueError(
            f"randomizations must be at least 2, for a standard error; got {randomizations}"
        )
