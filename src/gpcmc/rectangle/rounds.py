"""Rounds of randomised quasi-Monte Carlo, each larger than the last, until the error is small enough.

A round is an average over independent scrambles of Sobol' points, each of which is unbiased for the probability. The
last round alone is the estimate. How large it is depends on earlier rounds only, whose points are others: it is made
large enough for three quarters of the error asked for, and is the last if its own error is below all of that, as it
nearly always is. A round that was not expected to be the last is so only if its error is below the three quarters. What
is left of optional stopping is a second-order effect of skewed weights.

Where the tail of the weights has no mean, as far as two rounds in a row tell, further samples are no help. None are
drawn if the error asked for would take more of them than are left, and a proven bound on the weights says nothing of so
many either.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from gpcmc.rectangle.mixture import Average, Mixture, draw

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
#: Pareto k-hat from which weights have no mean.
_NO_MEAN = 1.0


def good(found: Average, largest_se: float) -> bool:
    """Say whether the error of a round is small enough, and to be believed."""
    enough = found.diagnostics["effective_samples"] >= _MIN_EFFECTIVE
    return enough and found.standard_error <= largest_se


def student(confidence: float) -> float:
    """Return the quantile of Student's t for a two-sided interval from the scrambles of a round."""
    return float(stdtrit(SCRAMBLES - 1, 0.5 + 0.5 * confidence))


def run_round(mixture: Mixture, points: int, rng: np.random.Generator, n_jobs: int = 1) -> Average:
    """Average the weights of one round, of so many points in a scramble."""
    return draw(mixture, points, rng.integers(2**63, size=SCRAMBLES), n_jobs=n_jobs)


def _growth(last: Average, aim: float) -> float:
    """Return the growth that brings the error to `aim`, if it falls a little slower than 1 / points."""
    factor = min(max(last.standard_error / aim, 1.0), 1e6)
    return float(2.0 ** np.ceil(np.log2(factor) / _RATE))


def run_rounds(
    mixture: Mixture,
    largest_se: float,
    budget: int,
    rng: np.random.Generator,
    n_jobs: int,
    first: Average | None = None,
) -> tuple[Average, int, int]:
    """Go on until the error is small enough, or the samples are spent.

    Returns the last round, the samples of all rounds, and the number of rounds.
    """
    last, spent, rounds, heavy = first, 0, 0, 0
    aim, expected, points = _AIM * largest_se, False, FIRST
    while last is None or not good(last, largest_se if expected else aim):
        if last is not None:
            growth = _growth(last, aim)
            heavy = heavy + 1 if _has_no_mean(last) else 0
            hidden = mixture.log_bound - last.log_probability > np.log(0.1 * max(budget, 1))
            if heavy > 1 and hidden and growth * last.samples > budget - spent:
                break
            expected = growth <= _GROWTH
            points = last.points * int(np.clip(growth, 2, _GROWTH))
            while points > last.points and spent + _size(mixture, points) > budget:
                points, expected = points // 2, False
            if points == last.points:
                break
        last = run_round(mixture, points, rng, n_jobs)
        spent, rounds = spent + last.samples, rounds + 1
    return last, spent, rounds


def _has_no_mean(found: Average) -> bool:
    """Say whether the weights have no mean, as far as a round can tell."""
    told = found.diagnostics
    few = 0.0 < told["effective_samples"] < _MIN_EFFECTIVE
    return few and told["k_hat"] > _NO_MEAN


def _size(mixture: Mixture, points: int) -> int:
    return SCRAMBLES * sum(mixture.counts(points))
