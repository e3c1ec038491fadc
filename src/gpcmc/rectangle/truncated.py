"""The normal distribution truncated to a rectangle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, eigh, lstsq

from gpcmc import _validation as validation
from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, Rng
from gpcmc.posterior import NOT_CONVERGED, OK, UNTRUSTED
from gpcmc.rectangle import draws, rounds
from gpcmc.rectangle.arguments import check_problem
from gpcmc.rectangle.blocks import reduce
from gpcmc.rectangle.draws import AcceptanceError, BlockSampler
from gpcmc.rectangle.estimate import RectangleEstimate, rectangle_probability
from gpcmc.rectangle.limits import all_moments, draw
from gpcmc.rectangle.mixture import check_points

__all__ = ["AcceptanceError", "TruncatedMoment", "TruncatedNormal"]


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
    """v ~ N(mean, cov) given lower < v < upper.

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

    def log_probability(self, **options: Any) -> RectangleEstimate:
        """Return the log of the probability of the rectangle.

        Parameters
        ----------
        **options
            Those of `gpcmc.rectangle_probability` but for the limits, the mean and the covariance.
        """
        p = self._problem
        return rectangle_probability(p.lower, p.upper, mean=p.mean, cov=p.cov, **options)

    @one_thread()
    def rvs(
        self,
        size: int = 1,
        rng: Rng = None,
        *,
        method: Literal["exact", "gibbs"] = "exact",
        max_draws: int = 2**24,
        sweeps: int = draws.SWEEPS,
    ) -> FloatArray:
        """Return random draws.

        Parameters
        ----------
        size : int
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
        (size, n) array

        Raises
        ------
        AcceptanceError
            If exact draws are expected to take more than `max_draws` proposals, or a chain finds no start.
        ValueError
            If an option is not as above.
        """
        size = validation.check_positive_int("size", size)
        validation.check_option("method", method, ("exact", "gibbs"))
        max_draws = validation.check_positive_int("max_draws", max_draws)
        sweeps = validation.check_positive_int("sweeps", sweeps)
        random = validation.check_rng("rng", rng, optional=True)
        V = np.zeros((self._reduced.size, size))
        for k, block in enumerate(self._reduced.blocks):
            if len(block.R) == 1:
                low, high = np.full(size, block.lower[0]), np.full(size, block.upper[0])
                V[block.index] = block.sign * block.sd * draw(low, high, random.random(size))[1]
                continue
            one = self._sampler(k)
            exact = method == "exact"
            drawn = one.exact(size, max_draws, random) if exact else one.gibbs(size, sweeps, random)
            V[block.index] = one.units(drawn)
        self._add_free(V, random)
        return np.ascontiguousarray((V + self._problem.mean[:, None]).T)

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
