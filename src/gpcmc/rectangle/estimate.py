"""Gaussian rectangle probabilities: the public function and its result."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc._validation import Rng
from gpcmc.posterior import OK, UNTRUSTED
from gpcmc.rectangle import guarantee, rounds
from gpcmc.rectangle.arguments import check_problem
from gpcmc.rectangle.blocks import Reduced, reduce
from gpcmc.rectangle.gradient import RectangleGradient, gradient
from gpcmc.rectangle.mixture import check_points
from gpcmc.rectangle.solve import (
    CLOSED,
    METHODS,
    NOT_MET,
    NOTHING,
    Method,
    Request,
    Solution,
    combine,
    solve,
)

_WORST = (NOTHING, UNTRUSTED, NOT_MET, OK)
_KINDS = ("asymptotic", "guaranteed")


@dataclass(frozen=True, slots=True)
class RectangleEstimate:
    """An estimated rectangle probability.

    Attributes
    ----------
    log_probability : float
        Natural logarithm of the probability; the estimate of the probability itself is what has no bias.
    standard_error : float
        Standard error of `log_probability`, which is the relative one of the probability: from the spread between
        the 16 independent scrambles of the last round. Infinite where no sample was inside, or where a few make up the
        average. Of a closed form it is a bound on the rounding, and 0 only where the probability is exactly zero.
    samples : int
        Samples drawn in all rounds; 0 for closed forms.
    status : str
        ``"ok"``; ``"tolerance not met"``: `max_samples` are spent; ``"weights not trusted"``: the largest weights
        have so heavy a tail (Pareto k-hat above 0.7) that the standard error may miss what no sample has seen; ``"no
        sample inside"``. Of several independent blocks of coordinates, the worst.
    method : str
        ``"closed form"`` (one or two dimensions, or several independent of each other), or the one that drew the
        samples of the largest block.
    diagnostics : dict of str to float
        Of the largest sampled block: ``k_hat``, ``effective_samples``, ``effective_fraction`` (see
        `gpcmc.rectangle.mixture.Average`), ``log_weight_bound``, the proven bound on log(weight / mean
        weight), ``rank`` and ``rounds``. And ``blocks``, the number of independent blocks.
    confidence : float
        Level of `interval` unless it is given another.
    """

    log_probability: float
    standard_error: float
    samples: int
    status: str
    method: str
    diagnostics: dict[str, float]
    confidence: float
    _blocks: tuple[Solution, ...] = field(repr=False, compare=False)
    _reduced: Reduced = field(repr=False, compare=False)
    _seed: int = field(repr=False, compare=False)

    @property
    def probability(self) -> float:
        """The probability; zero where floating point cannot hold it."""
        return float(np.exp(self.log_probability))

    @one_thread()
    def interval(
        self, confidence: float | None = None, kind: str = "asymptotic"
    ) -> tuple[float, float]:
        """Return an interval for the log of the probability.

        Parameters
        ----------
        confidence : float, optional
            Its level; that of the request if None.
        kind : {"asymptotic", "guaranteed"}
            The first rests on Student's t for the 16 scrambles. The second holds at any number of samples: it
            makes as many new, independent draws as the last round had, and uses nothing but that their weights
            are bounded, which is proven (see `gpcmc.rectangle.guarantee`). It is a few times wider, and says nothing
            (minus infinity to the bound) where the bound is out of proportion. Equal calls give equal intervals.

        Raises
        ------
        ValueError
            If `confidence` is not between 0 and 1, or `kind` is not one of these.
        """
        level = self.confidence if confidence is None else check_confidence(confidence)
        validation.check_option("kind", kind, _KINDS)
        log_p = self.log_probability
        if kind == "asymptotic":
            sampled = any(block.mixture is not None for block in self._blocks)
            quantile = rounds.student(level) if sampled else float(ndtri(0.5 + 0.5 * level))
            if not math.isfinite(log_p):
                return -math.inf, 0.0 if self.standard_error > 0 else log_p
            half = quantile * self.standard_error
            low = log_p + math.log1p(-half) if half < 1.0 else -math.inf
            return low, min(log_p + math.log1p(half), 0.0)
        return self._guaranteed(level)

    def _guaranteed(self, level: float) -> tuple[float, float]:
        if not self._blocks:
            return self.log_probability, self.log_probability
        sampled = sum(block.mixture is not None for block in self._blocks)
        each = 1.0 - (1.0 - level) / max(sampled, 1)  # Bonferroni's inequality
        low = high = 0.0
        for k, block in enumerate(self._blocks):
            if block.mixture is None:
                ends = (
                    block.log_probability - block.standard_error,
                    block.log_probability + block.standard_error,
                )
            else:
                rng = np.random.default_rng([self._seed, 0, k])
                ends = guarantee.log_interval(block.mixture, block.last, each, rng)
            low, high = low + ends[0], high + ends[1]
        return low, min(high, 0.0)

    @one_thread()
    def gradient(self, points: int = 1024) -> RectangleGradient:
        """Return the gradient of `log_probability` in the limits, the mean and the covariance.

        The draws are those of the method of the estimate. Equal calls give equal gradients.

        Parameters
        ----------
        points : int
            Sobol' points of each of 16 scrambles, a power of two.

        Raises
        ------
        ValueError
            If `points` is not a power of two, the probability is zero, or the covariance is singular.
        """
        check_points(points, rounds.SCRAMBLES)
        guided = [block.method == "twisted-ep" for block in self._blocks]
        return gradient(self._reduced, guided, points, np.random.default_rng([self._seed, 1]))


def check_confidence(value: object) -> float:
    """Return a level strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ValueError(f"confidence must be a number between 0 and 1, e.g. 0.95; got {value!r}")
    return float(value)


@one_thread()
def rectangle_probability(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    mean: ArrayLike = 0.0,
    cov: ArrayLike,
    method: Method = "auto",
    tolerance: float = 1e-3,
    max_samples: int = 2**22,
    confidence: float = 0.95,
    n_jobs: int = 1,
    rng: Rng = None,
) -> RectangleEstimate:
    """Estimate P(lower < v < upper) for v ~ N(mean, cov), in one to thousands of dimensions and far into the tails.

    Coordinates that do not depend on each other are taken apart. One and two dimensions are closed forms. Elsewhere
    samples are drawn in rounds, each larger than the last, until the relative half-width of the interval meets
    `tolerance`.

    Parameters
    ----------
    lower, upper : float or (n,) array
        Limits; ``-np.inf`` and ``np.inf`` stand for none.
    mean : float or (n,) array
    cov : (n, n) array
        Covariance, which may be singular.
    method : {"auto", "minimax-tilting", "twisted-ep", "separation"}
        Botev's minimax exponential tilting; a proposal twisted by expectation propagation, defended by the former;
        Genz's separation of variables. ``"auto"`` uses closed forms, and otherwise the one of the first two with
        the smaller error for its work in a pilot round.
    tolerance : float
        Half-width of the interval at `confidence`, over the probability.
    max_samples : int
        Samples of all rounds; the result says so where the tolerance needs more. The first rounds, of up to 4,352, are
        made in any case.
    confidence : float
    n_jobs : int
        Threads; the result has the same bits whatever it is.
    rng : numpy.random.Generator, RandomState or int, optional
        Or a seed: equal seeds give equal bits on one machine.

    Returns
    -------
    RectangleEstimate

    Raises
    ------
    ValueError
        If a limit is NaN, a lower limit is above its upper one, shapes do not agree, `cov` is not symmetric
        (relative to the variances of each pair), has a negative variance or eigenvalue, or an option is not as
        above.

    Examples
    --------
    >>> import numpy as np
    >>> from gpcmc import rectangle_probability
    >>> cov = 0.5 + 0.5 * np.eye(100)
    >>> found = rectangle_probability(0.0, np.inf, cov=cov, rng=0)
    >>> bool(abs(found.log_probability + np.log(101)) < 5 * found.standard_error)
    True
    >>> found.status
    'ok'

    References
    ----------
    Botev (2017), Journal of the Royal Statistical Society B 79, 125. Genz (1992), Journal of Computational and
    Graphical Statistics 1, 141. Cunningham, Hennig and Lacoste-Julien (2011), "Gaussian probabilities and
    expectation propagation".
    """
    reduced = reduce(check_problem(lower, upper, mean, cov))
    validation.check_option("method", method, METHODS)
    tolerance = validation.check_positive("tolerance", tolerance)
    max_samples = validation.check_positive_int("max_samples", max_samples)
    confidence = check_confidence(confidence)
    n_jobs = validation.check_positive_int("n_jobs", n_jobs)
    random = validation.check_rng("rng", rng, optional=True)
    largest_se = tolerance / rounds.student(confidence)
    return _estimate(reduced, Request(method, largest_se, max_samples, n_jobs), confidence, random)


def _estimate(
    reduced: Reduced, request: Request, confidence: float, rng: np.random.Generator
) -> RectangleEstimate:
    blocks, seed = reduced.blocks, int(rng.integers(2**63))
    if not (reduced.possible and blocks):
        exact = 0.0 if reduced.possible else -math.inf
        return RectangleEstimate(
            exact, 0.0, 0, OK, CLOSED, {"blocks": 0.0}, confidence, (), reduced, seed
        )
    # the error and the samples are shared between the blocks that need any
    closed = 2 if request.method == "auto" else 1
    large = max(1, sum(len(block.R) > closed for block in blocks))
    share = replace(
        request,
        largest_se=request.largest_se / math.sqrt(large),
        budget=max(1, request.budget // large),
    )
    solved = [solve(block, share, rng) for block in blocks]
    log_p, error = combine(solved)
    sampled = [s for s in solved if s.mixture is not None]
    largest = max(sampled, key=lambda s: s.diagnostics["rank"]) if sampled else solved[0]
    return RectangleEstimate(
        log_probability=min(log_p, 0.0),
        standard_error=error,
        samples=sum(s.samples for s in solved),
        status=min((s.status for s in solved), key=_WORST.index),
        method=largest.method,
        diagnostics=largest.diagnostics | {"blocks": float(len(solved))},
        confidence=confidence,
        _blocks=tuple(solved),
        _reduced=reduced,
        _seed=seed,
    )
