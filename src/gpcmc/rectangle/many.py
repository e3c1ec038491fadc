"""Many rectangles at once: checked and solved together where they have up to three coordinates, else one by one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.posterior import OK
from gpcmc.rectangle import small
from gpcmc.rectangle.arguments import Problem, check_semidefinite, slack_of
from gpcmc.rectangle.estimate import (
    Options,
    RectangleEstimate,
    bounded,
    check_confidence,
    estimate,
    quantile_of,
)
from gpcmc.rectangle.gradient import RectangleGradient
from gpcmc.rectangle.solve import CLOSED, out_of_reach
from gpcmc.rectangle.student import student_estimate


@dataclass(frozen=True, slots=True)
class Problems:
    """Checked arguments of m rectangles.

    Attributes
    ----------
    shape : tuple of int
        The leading axes, m in all.
    lower, upper, mean : (m, n) array
    cov : (m, n, n) array, or (1, n, n) of one for all
    slack : float
        As of `Problem`.
    """

    shape: tuple[int, ...]
    lower: FloatArray
    upper: FloatArray
    mean: FloatArray
    cov: FloatArray
    slack: float

    def __len__(self) -> int:
        return len(self.lower)

    def one(self, k: int) -> Problem:
        """Return a problem."""
        cov = self.cov[k if len(self.cov) > 1 else 0]
        return Problem(self.lower[k], self.upper[k], self.mean[k], cov, self.slack)

    def standard(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return limits in standard units, correlations, and deviations (1 or m, n), which are 1 where there is none.

        A coordinate without variance has no limits there, or is outside them.
        """
        sd = np.sqrt(np.einsum("mii->mi", self.cov))
        certain = sd == 0.0
        sd = np.where(certain, 1.0, sd)
        R = np.clip(self.cov / sd[:, :, None] / sd[:, None, :], -1.0, 1.0)
        R[:, range(R.shape[1]), range(R.shape[1])] = 1.0
        with np.errstate(over="ignore"):
            low, high = (self.lower - self.mean) / sd, (self.upper - self.mean) / sd
        if certain.any():
            inside = (low < 0.0) & (high > 0.0)
            low = np.where(certain, np.where(inside, -np.inf, 0.0), low)
            high = np.where(certain, np.where(inside, np.inf, 0.0), high)
        return bounded(low), bounded(high), R, sd


@dataclass(frozen=True, slots=True)
class RectangleEstimates:
    """Estimated probabilities of many rectangles: arrays of the leading axes of the limits, means and covariances.

    Attributes
    ----------
    log_probability : (...) array
        Natural logarithms of the probabilities.
    standard_error : (...) array
        Their standard errors, as of `RectangleEstimate`.
    samples : (...) int array
        Samples drawn; 0 for closed forms.
    status : (...) array of str
        As of `RectangleEstimate`.
    method : (...) array of str
        As of `RectangleEstimate`.
    confidence : float
        Level of `interval` unless it is given another.
    """

    log_probability: FloatArray
    standard_error: FloatArray
    samples: Any
    status: Any
    method: Any
    confidence: float
    _problems: Problems = field(repr=False, compare=False)
    _each: tuple[RectangleEstimate, ...] = field(default=(), repr=False, compare=False)

    @property
    def probability(self) -> FloatArray:
        """The probabilities; zero where floating point cannot hold one."""
        return np.exp(self.log_probability)

    def interval(self, confidence: float | None = None) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of intervals for the logarithms, by a normal approximation.

        Raises
        ------
        ValueError
            If `confidence` is not between 0 and 1.
        """
        level = self.confidence if confidence is None else check_confidence(confidence)
        quantile = np.where(self.samples > 0, quantile_of(level, 1), quantile_of(level, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            half = quantile * self.standard_error
            low = self.log_probability + np.log1p(-np.minimum(half, 1.0))
            high = np.minimum(self.log_probability + np.log1p(half), 0.0)
        nothing = np.isneginf(self.log_probability)
        unknown = nothing & (self.standard_error > 0)
        return np.where(nothing, -np.inf, low), np.where(
            unknown, 0.0, np.where(nothing, -np.inf, high)
        )

    @one_thread()
    def gradient(self, points: int = 1024) -> RectangleGradient:
        """Return the gradients of all logarithms, as `RectangleEstimate.gradient` of one.

        Raises
        ------
        ValueError
            If `points` is not a power of two, a probability is zero, or a covariance is singular; the message has the
            index of the problem.
        """
        shape, n = self._problems.shape, self._problems.lower.shape[1]
        if self._each:
            found = [
                _named(partial(one.gradient, points), k, shape) for k, one in enumerate(self._each)
            ]
            names = [name for name in RectangleGradient.__slots__ if name != "effective_fraction"]
            arrays = {name: np.stack([getattr(one, name) for one in found]) for name in names}
            effective = min(one.effective_fraction for one in found)
        else:
            arrays, effective = self._exact_gradient(), 1.0
        return RectangleGradient(
            **{name: one.reshape(*shape, *([n] * (one.ndim - 1))) for name, one in arrays.items()},
            effective_fraction=effective,
        )

    def _exact_gradient(self) -> dict[str, FloatArray]:
        low, high, R, sd = self._problems.standard()
        n, slack = low.shape[1], self._problems.slack
        singular = (np.einsum("mii->mi", self._problems.cov) == 0.0).any(axis=1)
        singular |= np.linalg.eigvalsh(R)[:, 0] <= slack
        for bad, text in (
            (np.broadcast_to(singular, len(low)), "cov must be regular, for a gradient"),
            (
                np.isneginf(self.log_probability.ravel()),
                "lower and upper must leave a probability above zero, for its logarithm's gradient",
            ),
        ):
            if bad.any():
                index = np.unravel_index(int(np.argmax(bad)), self._problems.shape)
                raise ValueError(f"{text}; at index {tuple(int(i) for i in index)} it is not")
        R = np.broadcast_to(R, (len(low), n, n))
        _, by_low, by_high, by_cov = small.slopes(low, high, R)
        by_low, by_high = by_low / sd, by_high / sd
        arrays = {
            "lower": by_low,
            "upper": by_high,
            "mean": -(by_low + by_high),
            "cov": by_cov / sd[:, :, None] / sd[:, None, :],
        }
        return arrays | {f"{name}_se": np.zeros_like(one) for name, one in arrays.items()}


def check_problems(
    lower: ArrayLike, upper: ArrayLike, mean: ArrayLike, cov: ArrayLike
) -> Problems | None:
    """Return checked arguments of many rectangles; None where no argument has leading axes.

    Raises
    ------
    ValueError
        As `gpcmc.rectangle_probability` says.
    """
    given = {"lower": lower, "upper": upper, "mean": mean}
    arrays = {name: validation.as_real(name, value) for name, value in given.items()}
    C = validation.as_real("cov", cov)
    if C.ndim < 3 and all(one.ndim < 2 for one in arrays.values()):
        return None
    C = C.reshape(1, 1) if C.ndim == 0 else C
    n = C.shape[-1]
    if C.ndim < 2 or C.shape[-2] != n or n == 0:
        raise ValueError(f"cov must be square in its last two axes; got shape {C.shape}")
    for name, one in arrays.items():
        if one.shape[-1:] not in ((), (n,)):
            raise ValueError(
                f"{name} must be a number or of shape (..., {n}); got shape {one.shape}"
            )
    try:
        shape = np.broadcast_shapes(*(one.shape[:-1] for one in arrays.values()), C.shape[:-2])
    except ValueError as error:
        told = ", ".join(f"{name} {one.shape}" for name, one in (arrays | {"cov": C}).items())
        raise ValueError(f"leading axes must broadcast; got {told}") from error
    low, high, middle = (
        np.ascontiguousarray(np.broadcast_to(one, (*shape, n))).reshape(-1, n)
        for one in arrays.values()
    )
    _refuse(np.isnan(low), "lower must not be NaN; got NaN", shape)
    _refuse(np.isnan(high), "upper must not be NaN; got NaN", shape)
    _refuse(~np.isfinite(middle), "mean must be finite; it is not", shape)
    _refuse(low > high, "lower must not exceed upper; it does", shape)
    whole = C.reshape(-1, n, n)
    if C.ndim == 2:
        A, slack = check_semidefinite("cov", whole[0])
        return Problems(shape, low, high, middle, A[None], slack)
    slack = slack_of(np.asarray(cov), n)
    whole = _check_covariances(whole, C.shape[:-2], np.asarray(cov).dtype, slack)
    if len(whole) > 1:
        whole = np.broadcast_to(whole.reshape(C.shape), (*shape, n, n)).reshape(-1, n, n)
    return Problems(shape, low, high, middle, whole, slack)


def _refuse(bad: Any, text: str, shape: tuple[int, ...]) -> None:
    if bad.any():
        k, i = (int(x) for x in np.argwhere(bad)[0])
        index = (*(int(x) for x in np.unravel_index(k, shape)), i)
        raise ValueError(f"{text} at index {index}")


def _check_covariances(
    C: FloatArray, shape: tuple[int, ...], dtype: Any, slack: float
) -> FloatArray:
    """Return covariances (k, n, n), exactly symmetric; the first that is none is refused as one alone would be."""
    finite = np.isfinite(C).all(axis=(1, 2))
    variance = np.einsum("mii->mi", C)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(variance)
        gap = np.abs(C - C.transpose(0, 2, 1)) > 1e-8 * sd[:, :, None] * sd[:, None, :]
        A = 0.5 * (C + C.transpose(0, 2, 1))
        safe = np.where(sd > 0.0, sd, 1.0)
        R = A / safe[:, :, None] / safe[:, None, :]
    good = finite & (variance >= 0.0).all(axis=1) & ~gap.any(axis=(1, 2))
    good &= ~((R != 0.0) & (sd[:, :, None] == 0.0)).any(axis=(1, 2))
    n = C.shape[1]
    if n == 2:
        good &= np.abs(R[:, 0, 1]) <= 1.0 + slack
    elif n > 2:
        R[:, range(n), range(n)] = 1.0
        good[good] &= np.linalg.eigvalsh(R[good])[:, 0] >= -slack
    for k in np.flatnonzero(~good):
        index = ", ".join(str(int(i)) for i in np.unravel_index(k, shape))
        A[k] = check_semidefinite(f"cov[{index}]", C[k].astype(dtype))[0]
    return A


@one_thread()
def _alone(
    problem: Problem, df: float | None, options: Options, seed: tuple[int, int]
) -> RectangleEstimate:
    """Estimate one of many, in whichever process."""
    rng = np.random.default_rng(seed)
    if df is not None:
        return student_estimate(problem, df, options, rng)
    return estimate(problem, options, rng)


def estimates(
    problems: Problems, df: float | None, options: Options, rng: np.random.Generator
) -> RectangleEstimates:
    """Estimate all probabilities; `n_jobs` threads share closed forms, and as many processes the rest."""
    seed, n_jobs = int(rng.integers(2**63)), options.request.n_jobs
    alone = replace(options, request=replace(options.request, n_jobs=1))
    n, m, shape = problems.lower.shape[1], len(problems), problems.shape
    each: tuple[RectangleEstimate, ...] = ()
    if n <= small.LARGEST and df is None and options.request.method == "auto":
        log_p, error = _closed(problems, n_jobs)
        samples, status, method = (
            np.zeros(m, int),
            np.full(m, OK, object),
            np.full(m, CLOSED, object),
        )
        for k in np.flatnonzero(np.isinf(error)).tolist():
            found = _alone(problems.one(k), df, alone, (seed, k))
            log_p[k], error[k] = found.log_probability, found.standard_error
            samples[k], status[k], method[k] = found.samples, found.status, found.method
    else:
        if n_jobs == 1:
            each = tuple(_alone(problems.one(k), df, alone, (seed, k)) for k in range(m))
        else:
            from sklearn.utils.parallel import Parallel, delayed

            calls = (delayed(_alone)(problems.one(k), df, alone, (seed, k)) for k in range(m))
            each = tuple(Parallel(n_jobs=n_jobs)(calls))
        log_p = np.array([found.log_probability for found in each])
        error = np.array([found.standard_error for found in each])
        samples = np.array([found.samples for found in each], int)
        status = np.array([found.status for found in each], dtype=str)
        method = np.array([found.method for found in each], dtype=str)
    return RectangleEstimates(
        log_p.reshape(shape),
        error.reshape(shape),
        samples.reshape(shape),
        status.astype(str).reshape(shape),
        method.astype(str).reshape(shape),
        options.confidence,
        problems,
        each,
    )


def _closed(problems: Problems, n_jobs: int) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities and errors (m,) of up to three coordinates."""
    low, high, R, _ = problems.standard()
    # sampled one by one
    far = out_of_reach(low, high)
    low[far], high[far] = -np.inf, np.inf
    R = np.broadcast_to(R, (len(low), *R.shape[1:]))

    def some(part: slice) -> tuple[FloatArray, FloatArray]:
        return small.log_probabilities(low[part], high[part], R[part], problems.slack)

    edges = np.linspace(0, len(low), min(n_jobs, max(prod(problems.shape), 1)) + 1).astype(int)
    parts = [slice(*ends) for ends in pairwise(edges)]
    if len(parts) == 1:
        log_p, error = some(parts[0])
    else:
        with ThreadPoolExecutor(n_jobs) as pool:
            found = list(pool.map(some, parts))
        log_p, error = (np.concatenate([one[k] for one in found]) for k in range(2))
    error[far] = np.inf
    return np.minimum(log_p, 0.0), error


def _named(call: Callable[[], Any], k: int, shape: tuple[int, ...]) -> Any:
    try:
        return call()
    except ValueError as error:
        index = tuple(int(i) for i in np.unravel_index(k, shape))
        raise ValueError(f"{error}; at index {index}") from error
