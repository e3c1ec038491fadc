"""The normal distribution truncated to a rectangle."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, block_diag, cholesky, eigh, lstsq, solve_triangular

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, Rng
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.rectangle import draws, rounds
from gpcmc.rectangle.arguments import Problem, check_problem
from gpcmc.rectangle.blocks import reduce
from gpcmc.rectangle.draws import AcceptanceError, BlockSampler
from gpcmc.rectangle.estimate import Options, RectangleEstimate, estimate
from gpcmc.rectangle.limits import all_moments, draw
from gpcmc.rectangle.many import Problems, estimates
from gpcmc.rectangle.mixture import check_points

__all__ = ["AcceptanceError", "TruncatedMoment", "TruncatedNormal"]

_TAILS = ("lower", "upper", "both")
_REACH = 1e6  # standard deviations beyond which no quantile is looked for


@dataclass(frozen=True, slots=True)
class TruncatedMoment:
    """A moment of a truncated distribution.

    Attributes
    ----------
    value : (n,) or (n, n) array
    standard_error : (n,) or (n, n) array
        From the spread between 16 scrambles of Sobol' points; zero where the value is exact.
    effective_fraction : float
        Effective samples over samples, the least of the independent blocks of coordinates.
    status : str
        ``"ok"``; ``"not converged"``: fewer than a hundred effective samples; ``"weights not trusted"``: the largest
        weights have so heavy a tail that the errors may miss what no sample has seen. Of several blocks, the worst.
    """

    value: FloatArray
    standard_error: FloatArray
    effective_fraction: float
    status: str = OK


class TruncatedNormal:
    """v ~ N(mean, cov) given lower < v < upper; without limits it is the normal itself.

    Parameters
    ----------
    lower, upper : float or (n,) array
        Limits, of which any may be infinite.
    mean : float or (n,) array
    cov : (n, n) array
        May be singular.

    Raises
    ------
    ValueError
        As `gpcmc.rectangle_probability`; also if the rectangle has probability zero, because two limits are equal or
        a coordinate without variance is outside.

    Examples
    --------
    >>> import numpy as np
    >>> from gpcmc import TruncatedNormal
    >>> tail = TruncatedNormal(3.0, np.inf, cov=[[1.0, 0.5], [0.5, 1.0]])
    >>> v = tail.rvs(1000, rng=0)
    >>> v.shape, bool((v > 3).all())
    ((1000, 2), True)
    """

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, mean: ArrayLike = 0.0, cov: ArrayLike = 1.0
    ) -> None:
        self._problem = check_problem(lower, upper, mean, cov)
        self._reduced = reduce(self._problem)
        if not self._reduced.possible:
            raise ValueError(
                "lower and upper must leave a probability above zero: two limits are equal, or a coordinate "
                "without variance is outside its own"
            )
        self._prepared: dict[int, BlockSampler] = {}

    def __repr__(self) -> str:
        return f"TruncatedNormal({self._reduced.size} coordinates, {len(self._reduced.blocks)} independent blocks)"

    @one_thread()
    def log_probability(self, *, rng: Rng = None, **options: Any) -> RectangleEstimate:
        """Return the log of the probability of the rectangle.

        Parameters
        ----------
        rng : numpy.random.Generator, RandomState or int, optional
        **options
            Those of `gpcmc.rectangle_probability` but for the limits, the mean, the covariance and `df`.
        """
        random = validation.check_rng("rng", rng, optional=True)
        return estimate(self._problem, Options.of(**options), random)

    @one_thread()
    def logpdf(self, x: ArrayLike, *, rng: Rng = 0, **options: Any) -> Any:
        """Return the log density at x (..., n): (...), minus infinity outside the limits.

        Parameters
        ----------
        x : (..., n) array, or (...) of one coordinate
        rng, **options
            Of `log_probability`, whose error all values share. Equal calls give equal values.

        Raises
        ------
        ValueError
            If the covariance is singular: then there is no density.
        """
        p, points = self._problem, self._points(x)
        try:
            L = cholesky(p.cov, lower=True, check_finite=False)
        except LinAlgError:
            L = np.zeros((1, 1))
        if (L.diagonal() ** 2 <= p.slack * p.cov.diagonal()).any():
            raise ValueError("cov must be regular, for a density")
        inside = np.asarray(((p.lower < points) & (points < p.upper)).all(axis=-1))
        away = np.where(inside[..., None], points - p.mean, 0.0).reshape(-1, len(p.mean))
        z = solve_triangular(L, away.T, lower=True, check_finite=False)
        heights = -0.5 * np.einsum("ij,ij->j", z, z) - np.sum(np.log(L.diagonal()))
        heights -= 0.5 * len(p.mean) * math.log(2.0 * math.pi)
        mass = self.log_probability(rng=rng, **options).log_probability
        return np.where(inside, heights.reshape(inside.shape) - mass, -np.inf)[()]

    def pdf(self, x: ArrayLike, *, rng: Rng = 0, **options: Any) -> Any:
        """Return the density at x (..., n): (...); see `logpdf`."""
        return np.exp(self.logpdf(x, rng=rng, **options))

    @one_thread()
    def logcdf(self, x: ArrayLike, *, rng: Rng = 0, **options: Any) -> Any:
        """Return log P(v <= x) at x (..., n): (...), minus infinity where a coordinate is at its lower limit or below.

        Parameters
        ----------
        x : (..., n) array, or (...) of one coordinate
        rng, **options
            Of `log_probability`: of the two probabilities whose quotient it is. Up to three coordinates are exact.
        """
        p, points = self._problem, self._points(x)
        if np.isnan(points).any():
            raise ValueError("x must not be NaN")
        shape, n = points.shape[:-1], len(p.mean)
        high = np.clip(points, p.lower, p.upper).reshape(-1, n)
        low, mean = (np.broadcast_to(one, high.shape) for one in (p.lower, p.mean))
        problems = Problems(shape, low, high, mean, p.cov[None], p.slack)
        random = validation.check_rng("rng", rng, optional=True)
        part = estimates(problems, None, Options.of(**options), random).log_probability
        whole = estimate(p, Options.of(**options), random).log_probability
        return np.minimum(part - whole, 0.0)[()]

    def cdf(self, x: ArrayLike, *, rng: Rng = 0, **options: Any) -> Any:
        """Return P(v <= x) at x (..., n): (...); see `logcdf`."""
        return np.exp(self.logcdf(x, rng=rng, **options))

    @one_thread()
    def quantile(
        self,
        p: float,
        tail: Literal["lower", "upper", "both"] = "lower",
        *,
        rng: int = 0,
        **options: Any,
    ) -> float:
        """Return the equicoordinate quantile: the q for which all coordinates are on its side with probability p.

        Parameters
        ----------
        p : float
            Between 0 and 1.
        tail : {"lower", "upper", "both"}
            P(v_i <= q for all i), P(v_i >= q for all i), or P(-q <= v_i <= q for all i).
        rng : int
            A seed: all probabilities of the search have the same random numbers.
        **options
            Of `log_probability`; the quantile is as good as its `tolerance`.

        Raises
        ------
        ValueError
            If p is not between 0 and 1, or an option is not as above.
        """
        from scipy.optimize import brentq  # which takes a tenth of a second

        if isinstance(p, bool) or not isinstance(p, numbers.Real) or not 0.0 < float(p) < 1.0:
            raise ValueError(f"p must be a number between 0 and 1; got {p!r}")
        validation.check_option("tail", tail, _TAILS)
        given, wanted = self._problem, Options.of(**options)
        validation.check_rng("rng", rng)

        def log_p(low: float, high: float) -> float:
            lower, upper = np.maximum(given.lower, low), np.minimum(given.upper, high)
            if (lower >= upper).any():
                return -np.inf
            part = Problem(lower, upper, given.mean, given.cov, given.slack)
            return estimate(part, wanted, np.random.default_rng(rng)).log_probability

        target = log_p(-np.inf, np.inf) + math.log(p)
        sd = np.sqrt(given.cov.diagonal())

        def gap(q: float) -> float:
            low, high = {"lower": (-np.inf, q), "upper": (q, np.inf), "both": (-q, q)}[tail]
            # a finite value where nothing is left, for the search
            return max(log_p(low, high) - target, -1e9)

        ends = [0.0, 0.0] if tail == "both" else [float(np.mean(given.mean))] * 2
        for side in (-1, 1) if tail != "both" else (1,):
            step, below = float(sd.max()) or 1.0, (side < 0) == (tail != "upper")
            edge = ends[0]
            while (gap(edge) < 0.0) != below and step < _REACH * max(float(sd.max()), 1e-300):
                step *= 2.0
                edge += side * step
            ends[(side + 1) // 2] = edge
        return float(brentq(gap, *ends, xtol=1e-13 * max(sd.max(), 1e-300), rtol=1e-14))

    def _points(self, x: ArrayLike) -> FloatArray:
        """Return points (..., n)."""
        points, n = validation.as_real("x", x), len(self._problem.mean)
        if n == 1 and points.shape[-1:] != (1,):
            points = points[..., None]
        if points.shape[-1:] != (n,):
            raise ValueError(f"x must have shape (..., {n}); got {points.shape}")
        return points

    @one_thread()
    def rvs(
        self,
        size: int | tuple[int, ...] | None = 1,
        rng: Rng = None,
        *,
        method: Literal["exact", "gibbs"] = "exact",
        max_draws: int = 2**24,
        sweeps: int = draws.SWEEPS,
    ) -> FloatArray:
        """Return random draws.

        Parameters
        ----------
        size : int, tuple of int or None
            As NumPy's: how many, in which shape; None is one draw (n,).
        rng : numpy.random.Generator or int, optional
        method : {"exact", "gibbs"}
            Exact draws are independent: a proposal of minimax tilting is kept with probability weight over bound.
            ``"gibbs"`` is for rectangles where almost none is kept: each draw is the end of a chain of its own,
            started at a weighted proposal, and its law is right in the limit of many sweeps only.
        max_draws : int
            Proposals at most, of each independent block.
        sweeps : int
            Of each Gibbs chain.

        Returns
        -------
        (*size, n) array

        Raises
        ------
        AcceptanceError
            If exact draws are expected to take more than `max_draws` proposals, or a chain finds no start.
        ValueError
            If an option is not as above.
        """
        shape = _check_size(size)
        count = math.prod(shape)
        validation.check_option("method", method, ("exact", "gibbs"))
        max_draws = validation.check_positive_int("max_draws", max_draws)
        sweeps = validation.check_positive_int("sweeps", sweeps)
        random = validation.check_rng("rng", rng, optional=True)
        if not count:
            return np.empty((*shape, self._reduced.size))
        V = np.zeros((self._reduced.size, count))
        for k, block in enumerate(self._reduced.blocks):
            if len(block.R) == 1:
                low, high = np.full(count, block.lower[0]), np.full(count, block.upper[0])
                V[block.index] = block.sign * block.sd * draw(low, high, random.random(count))[1]
                continue
            one = self._sampler(k)
            exact = method == "exact"
            drawn = (
                one.exact(count, max_draws, random) if exact else one.gibbs(count, sweeps, random)
            )
            V[block.index] = one.units(drawn)
        self._add_free(V, random)
        drawn = np.ascontiguousarray((V + self._problem.mean[:, None]).T)
        return drawn.reshape(*shape, self._reduced.size)

    @one_thread()
    def mean(self, points: int = 1024, rng: Rng = None) -> TruncatedMoment:
        """Return E[v | lower < v < upper], by weighted Sobol' points of the better proposal.

        Parameters
        ----------
        points : int
            Of each of 16 scrambles, a power of two.
        rng : numpy.random.Generator or int, optional
        """
        return self._moments(points, rng)[0]

    @one_thread()
    def cov(self, points: int = 1024, rng: Rng = None) -> TruncatedMoment:
        """Return the covariance of v given lower < v < upper; see `mean` for the parameters."""
        return self._moments(points, rng)[1]

    def _sampler(self, k: int) -> BlockSampler:
        if k not in self._prepared:
            self._prepared[k] = BlockSampler.of(self._reduced.blocks[k])
        return self._prepared[k]

    def _limited(self) -> np.ndarray:
        return np.concatenate([b.index for b in self._reduced.blocks] or [np.zeros(0, np.intp)])

    def _regression(self) -> tuple[FloatArray, FloatArray]:
        """Return what maps limited coordinates to the conditional mean of the free ones, and these' covariance."""
        limited, free = self._limited(), self._reduced.free
        C = self._problem.cov
        cross = C[np.ix_(free, limited)]
        if not len(limited):
            return np.zeros((len(free), 0)), C[np.ix_(free, free)]
        # least squares, for the covariance may be singular; in correlations, for its scales may differ
        sd = np.sqrt(C.diagonal()[limited])
        R = C[np.ix_(limited, limited)] / np.outer(sd, sd)
        W = lstsq(R, (cross / sd).T, cond=self._problem.slack)[0].T / sd
        return W, C[np.ix_(free, free)] - W @ cross.T

    def _add_free(self, V: FloatArray, rng: np.random.Generator) -> None:
        if not len(free := self._reduced.free):
            return
        W, S = self._regression()
        values, vectors = eigh(S)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        V[free] = W @ V[self._limited()] + root @ rng.standard_normal((len(free), V.shape[1]))

    def _moments(self, points: int, rng: Rng) -> tuple[TruncatedMoment, TruncatedMoment]:
        check_points(points, rounds.SCRAMBLES)
        random = validation.check_rng("rng", rng, optional=True)
        parts = []
        for k, block in enumerate(self._reduced.blocks):
            if len(block.R) == 1:
                _, m, _, variance = all_moments(block.lower, block.upper)
                exact = (block.sign * block.sd * m, (block.sd**2 * variance)[:, None])
                none = (np.zeros((rounds.SCRAMBLES, 1)), np.zeros((rounds.SCRAMBLES, 1, 1)))
                parts.append((*exact, *none, 1.0, OK))
            else:
                parts.append(draws.moments(self._sampler(k), points, random))
        return self._assemble(parts)

    def _assemble(
        self, parts: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray, float, str]]
    ) -> tuple[TruncatedMoment, TruncatedMoment]:
        """Put the blocks together, and add the coordinates without limits."""
        n, limited, free = self._reduced.size, self._limited(), self._reduced.free
        # everything is B x + an independent normal, where x are the limited coordinates
        B = np.zeros((n, len(limited)))
        B[limited, np.arange(len(limited))] = 1.0
        own = np.zeros((n, n))
        if len(free):
            B[free], own[np.ix_(free, free)] = self._regression()
        if not len(limited):
            nothing = TruncatedMoment(self._problem.mean.copy(), np.zeros(n), 1.0)
            return nothing, TruncatedMoment(own, np.zeros((n, n)), 1.0)
        means, covs, mean_errors, cov_errors, fractions, statuses = zip(*parts, strict=True)
        root, effective = np.sqrt(rounds.SCRAMBLES), min(fractions)
        status = min(statuses, key=(UNTRUSTED, NOT_CONVERGED, OK).index)
        mean = self._problem.mean + B @ np.concatenate(means)
        of_mean = np.concatenate(mean_errors, axis=1) @ B.T
        each = [B @ block_diag(*[e[r] for e in cov_errors]) @ B.T for r in range(rounds.SCRAMBLES)]
        return (
            TruncatedMoment(mean, np.std(of_mean, axis=0, ddof=1) / root, effective, status),
            TruncatedMoment(
                own + B @ block_diag(*covs) @ B.T,
                np.std(each, axis=0, ddof=1) / root,
                effective,
                status,
            ),
        )


def _check_size(size: object) -> tuple[int, ...]:
    """Return a shape, from a number, several, or None for a single draw without an axis.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if size is None:
        return ()
    several = size if isinstance(size, tuple) else (size,)
    for one in several:
        if isinstance(one, bool) or not isinstance(one, numbers.Integral) or one < 0:
            raise ValueError(
                f"size must be an integer >= 0, a tuple of them, or None; got {size!r}"
            )
    return tuple(int(one) for one in several)
