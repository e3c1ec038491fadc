"""Rounds of randomised quasi-Monte Carlo, each larger than the last, until the error is small enough.

A round is an average over independent randomisations, each of which is unbiased for the probability. The last round
alone is the estimate. How large it is depends on earlier rounds only, whose points are others: it is made large enough
for three quarters of the error asked for, and is the last if its own error is below all of that, as it nearly always
is. A round that was not expected to be the last is so only if its error is below the three quarters. What is left of
optional stopping is a second-order effect of skewed weights.

Where the tail of the weights has no mean, as far as two rounds in a row tell, further samples are no help. None are
drawn if the error asked for would take more of them than are left, and a proven bound on the weights says nothing of so
many either.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import stdtrit

from gpcmc.rectangle.mixture import Average, Mixture, draw

#: Independent scrambles of a round.
SCRAMBLES = 16
#: Points of a randomisation in the first round.
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


def student(confidence: float, randomizations: int = SCRAMBLES) -> float:
    """Return the quantile of Student's t for a two-sided interval from the randomisations of a round."""
    return float(stdtrit(randomizations - 1, 0.5 + 0.5 * confidence))


def run_round(mixture: Mixture, points: int, rng: np.random.Generator, n_jobs: int = 1) -> Average:
    """Average the weights of one round, of so many points in a scramble."""
    return draw(mixture, points, rng.integers(2**63, size=SCRAMBLES), n_jobs=n_jobs)


def round_size(mixture: Mixture, points: int) -> int:
    """Return the samples of a round of so many points in a scramble."""
    return SCRAMBLES * sum(mixture.counts(points))


def _growth(last: Average, aim: float) -> float:
    """Return the growth that brings the error to `aim`, if it falls a little slower than 1 / points."""
    factor = min(max(last.standard_error / aim, 1.0), 1e6)
    return float(2.0 ** np.ceil(np.log2(factor) / _RATE))


def run_rounds(
    run: Callable[[int], Average],
    largest_se: float,
    allowed: Callable[[int, int], bool],
    *,
    first: Average | None = None,
    points: int = FIRST,
    trusted: Callable[[Average], bool] = lambda found: True,
    futile: Callable[[Average, float, int], bool] = lambda last, needed, spent: False,
) -> tuple[Average, int, int]:
    """Go on until the error is small enough and the weights are trusted, or no larger round is allowed.

    `run` makes a round of so many points, of new random numbers; `allowed` says whether one may follow so many samples.
    Without a `first` round, that is of `points`. `futile` says whether so many samples more, after so many, are out of
    reach; then weights without a mean end it. Returns the last round, and the samples and the number of those
    made here.
    """
    last, spent, rounds, heavy = first, 0, 0, 0
    aim, expected = _AIM * largest_se, False
    while last is None or not (good(last, largest_se if expected else aim) and trusted(last)):
        if last is not None:
            growth = _growth(last, aim)
            heavy = heavy + 1 if _has_no_mean(last) else 0
            if heavy > 1 and futile(last, growth * last.samples, spent):
                break
            expected = growth <= _GROWTH
            points = last.points * int(np.clip(growth, 2, _GROWTH))
            while points > last.points and not allowed(points, spent):
                points, expected = points // 2, False
            if points == last.points:
                break
        last = run(points)
        spent, rounds = spent + last.samples, rounds + 1
    return last, spent, rounds


def beyond(mixture: Mixture, budget: int) -> Callable[[Average, float, int], bool]:
    """Return what says, after a round, whether the samples needed are beyond a budget that proves nothing either."""

    def says(last: Average, needed: float, spent: int) -> bool:
        hidden = mixture.log_bound - last.log_probability > np.log(0.1 * max(budget, 1))
        return bool(hidden and needed > budget - spent)

    return says


def _has_no_mean(found: Average) -> bool:
    """Say whether the weights have no mean, as far as a round can tell."""
    told = found.diagnostics
    few = 0.0 < told["effective_samples"] < _MIN_EFFECTIVE
    return few and told["k_hat"] > _NO_MEAN
