"""The probability of one rectangle: its estimate, from independent blocks of coordinates."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.posterior import NOT_MET, OK, TOO_ROUGH, UNTRUSTED
from gpcmc.rectangle import guarantee, rounds
from gpcmc.rectangle.arguments import Problem
from gpcmc.rectangle.blocks import Reduced, reduce
from gpcmc.rectangle.gradient import RectangleGradient, gradient
from gpcmc.rectangle.mixture import check_points
from gpcmc.rectangle.small import LARGEST
from gpcmc.rectangle.solve import (
    CLOSED,
    METHODS,
    NOTHING,
    Method,
    Request,
    Solution,
    combine,
    solve,
)

_WORST = (NOTHING, UNTRUSTED, TOO_ROUGH, NOT_MET, OK)
_KINDS = ("asymptotic", "guaranteed")
_FAR = 1e70  # standard deviations: the log of the probability beyond is -5e139, and products of such are no numbers


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
        ``"ok"``; ``"tolerance not met"``: `max_samples` are spent; ``"covariance too rough"``: what the neighbours of
        a `FieldCovariance` leave out may be more than the tolerance; ``"weights not trusted"``: the largest weights
        have so heavy a tail (Pareto k-hat above 0.7) that the standard error may miss what no sample has seen; ``"no
        sample inside"``. Of several independent blocks of coordinates, the worst.
    method : str
        ``"closed form"`` (blocks of one to three dimensions, by quadrature), or the one that drew the samples of the
        largest block.
    diagnostics : dict of str to float
        Of the largest sampled block: ``k_hat``, ``effective_samples``, ``effective_fraction`` (see
        `gpcmc.rectangle.mixture.Average`), ``log_weight_bound``, the proven bound on log(weight / mean
        weight), ``rank`` and ``rounds``. And ``blocks``, the number of independent blocks.
    confidence : float
        Level of `interval` unless it is given another.

    Of Student's t the samples are those of all scales that the normal is averaged over, and `method` and
    `diagnostics` those of the scale that counts most; the diagnostic ``scales`` is their number.
    """

    log_probability: float
    standard_error: float
    samples: int
    status: str
    method: str
    diagnostics: dict[str, float]
    confidence: float
    _blocks: tuple[Solution, ...] = field(repr=False, compare=False)
    _reduced: Reduced | None = field(repr=False, compare=False)  # None of a field's values
    _seed: int = field(repr=False, compare=False)
    _scales: tuple[Scale, ...] = field(default=(), repr=False, compare=False)

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
            The first rests on Student's t for the 16 scrambles, and is wider by ``correction_rest`` on both sides. The
            second holds at any number of samples: it
            makes as many new, independent draws as the last round had, and uses nothing but that their weights
            are bounded, which is proven (see `gpcmc.rectangle.guarantee`). It is a few times wider, and says nothing
            (minus infinity to the bound) where the bound is out of proportion. Equal calls give equal intervals.

        Raises
        ------
        ValueError
            If `confidence` is not between 0 and 1, `kind` is not one of these, or a guaranteed interval is asked of
            Student's t, or of a `FieldCovariance` that is not made an array.
        """
        level = self.confidence if confidence is None else check_confidence(confidence)
        validation.check_option("kind", kind, _KINDS)
        log_p = self.log_probability
        if kind == "asymptotic":
            half = quantile_of(level, self.samples) * self.standard_error
            if not math.isfinite(log_p):
                return -math.inf, 0.0 if self.standard_error > 0 else log_p
            rest = self.diagnostics.get("correction_rest", 0.0)
            low = log_p + math.log1p(-half) - rest if half < 1.0 else -math.inf
            return low, min(log_p + math.log1p(half) + rest, 0.0)
        if self._reduced is None:
            raise ValueError(
                "kind='guaranteed' is for a covariance as an array: what a FieldCovariance leaves out has no "
                "proven bound"
            )
        if self._scales:
            raise ValueError(
                "kind='guaranteed' is for the normal: of Student's t the quadrature over its scale is not proven"
            )
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
            If `points` is not a power of two, the probability is zero, or the covariance is singular, or a
            `FieldCovariance` that is not made an array.
        """
        check_points(points, rounds.SCRAMBLES)
        if self._reduced is None:
            raise ValueError(
                "the gradient is for a covariance as an array: give cov=kernel(X) in place of a FieldCovariance"
            )
        if self._scales:
            return averaged_gradient(
                [(one.weight, one.scale, one.gradient(points)) for one in self._scales]
            )
        guided = [block.method == "twisted-ep" for block in self._blocks]
        return gradient(self._reduced, guided, points, np.random.default_rng([self._seed, 1]))


@dataclass(frozen=True, slots=True)
class Scale:
    """A normal rectangle that a Student's t is averaged over.

    Attributes
    ----------
    weight : float
        Its share of the probability.
    scale : float
        By which the limits, less the mean, are multiplied.
    reduced : Reduced
        With its limits.
    guided : tuple of bool
        Of each block, whether its draws are twisted.
    seed : int
    """

    weight: float
    scale: float
    reduced: Reduced
    guided: tuple[bool, ...]
    seed: int

    def gradient(self, points: int) -> RectangleGradient:
        """Return the gradient of the log of the normal probability."""
        return gradient(self.reduced, self.guided, points, np.random.default_rng([self.seed, 1]))


def quantile_of(level: float, samples: int) -> float:
    """Return the quantile of a two-sided interval: Student's t where anything was sampled."""
    return rounds.student(level) if samples else float(ndtri(0.5 + 0.5 * level))


def averaged_gradient(parts: list[tuple[float, float, RectangleGradient]]) -> RectangleGradient:
    """Return the gradient of a mean of rectangles, from (share, factor of the limits, gradient) of each."""
    found: dict[str, Any] = {}
    for name in ("lower", "upper", "mean", "cov"):
        by = [share * (scale if name != "cov" else 1.0) for share, scale, _ in parts]
        each = [weight * getattr(one, name) for weight, (*_, one) in zip(by, parts, strict=True)]
        errors = [
            (weight * getattr(one, f"{name}_se")) ** 2
            for weight, (*_, one) in zip(by, parts, strict=True)
        ]
        found[name], found[f"{name}_se"] = sum(each), np.sqrt(sum(errors))
    return RectangleGradient(
        **found, effective_fraction=min(one.effective_fraction for *_, one in parts)
    )


def check_confidence(value: object) -> float:
    """Return a level strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ValueError(f"confidence must be a number between 0 and 1, e.g. 0.95; got {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller wants, checked.

    Attributes
    ----------
    request : Request
    confidence : float
    """

    request: Request
    confidence: float

    @classmethod
    def of(
        cls,
        method: Method = "auto",
        tolerance: float = 1e-3,
        max_samples: int = 2**22,
        confidence: float = 0.95,
        n_jobs: int = 1,
    ) -> Options:
        """Check options of `gpcmc.rectangle_probability`.

        Raises
        ------
        ValueError
            If one is not as said there.
        """
        validation.check_option("method", method, METHODS)
        tolerance = validation.check_positive("tolerance", tolerance)
        max_samples = validation.check_positive_int("max_samples", max_samples)
        confidence = check_confidence(confidence)
        n_jobs = validation.check_positive_int("n_jobs", n_jobs)
        largest_se = tolerance / rounds.student(confidence)
        return cls(Request(method, largest_se, max_samples, n_jobs), confidence)


def estimate(problem: Problem, options: Options, rng: np.random.Generator) -> RectangleEstimate:
    """Estimate the probability of one checked rectangle."""
    reduced, request = reduce(without_overflow(problem)), options.request
    blocks, seed = reduced.blocks, int(rng.integers(2**63))
    if not (reduced.possible and blocks):
        exact = 0.0 if reduced.possible else -math.inf
        return RectangleEstimate(
            exact, 0.0, 0, OK, CLOSED, {"blocks": 0.0}, options.confidence, (), reduced, seed
        )
    # the error and the samples are shared between the blocks that need any
    closed = LARGEST if request.method == "auto" else 1
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
        status=worst([s.status for s in solved]),
        method=largest.method,
        diagnostics=largest.diagnostics | {"blocks": float(len(solved))},
        confidence=options.confidence,
        _blocks=tuple(solved),
        _reduced=reduced,
        _seed=seed,
    )


def bounded(limit: FloatArray) -> FloatArray:
    """Return limits in standard units; infinity for those so far out that floating point loses their products."""
    return np.where(np.abs(limit) > _FAR, np.copysign(np.inf, limit), limit)


def without_overflow(problem: Problem) -> Problem:
    """Return a problem whose limits are infinite where they are so far out."""
    sd = np.sqrt(problem.cov.diagonal())
    sd = np.where(sd == 0.0, np.inf, sd)
    with np.errstate(over="ignore", invalid="ignore"):
        far = [
            np.isinf(bounded((limit - problem.mean) / sd))
            for limit in (problem.lower, problem.upper)
        ]
    if not (far[0] | far[1]).any():
        return problem
    lower, upper = (
        np.where(there, np.copysign(np.inf, limit), limit)
        for there, limit in zip(far, (problem.lower, problem.upper), strict=True)
    )
    return replace(problem, lower=lower, upper=upper)


def worst(statuses: list[str]) -> str:
    """Return the worst status."""
    return min(statuses, key=_WORST.index)
