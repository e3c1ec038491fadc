"""Draws of a block of correlated coordinates inside its rectangle: exact by acceptance, or by a Gibbs chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.rectangle import rounds
from gpcmc.rectangle.blocks import Block
from gpcmc.rectangle.engine import Sampler
from gpcmc.rectangle.factor import Factor, factorize
from gpcmc.rectangle.intervals import draw
from gpcmc.rectangle.solve import tilting

#: Sweeps of a Gibbs chain from its start to the draw that is kept.
SWEEPS = 100
_BATCH = 4096
_ROUNDING = 1e-9  # that a computed weight may be above its proven bound


class AcceptanceError(RuntimeError):
    """Exact draws would take more proposals than allowed."""


@dataclass(frozen=True, slots=True)
class BlockSampler:
    """A block, and what draws from it.

    Attributes
    ----------
    block : Block
    factor : Factor
    sampler : Sampler
        Minimax tilting.
    log_bound : float
        No log weight is larger.
    """

    block: Block
    factor: Factor
    sampler: Sampler
    log_bound: float

    @classmethod
    def of(cls, block: Block) -> BlockSampler:
        """Prepare a block.

        Raises
        ------
        ValueError
            If it has more coordinates than Sobol' points have dimensions.
        """
        factor = factorize(block)
        rounds.check_dimension(factor.rank)
        mixture, sampler = tilting(factor)
        return cls(block, factor, sampler, mixture.log_bound)

    def values(self, E: FloatArray) -> FloatArray:
        """Return the coordinates (m, count) of tilting's innovations, in standard units and the block's order."""
        V = np.empty((len(self.block.R), E.shape[1]))
        V[self.factor.order] = self.factor.L @ E
        for k, tie in self.factor.ties.items():
            V[tie.index] = tie.rows @ E[: k + 1]
        return V

    def units(self, V: FloatArray) -> FloatArray:
        """Return coordinates in the problem's units, but for their mean."""
        return (self.block.sign * self.block.sd)[:, None] * V

    def exact(self, count: int, max_draws: int, rng: np.random.Generator) -> FloatArray:
        """Return independent draws (m, count): a proposal is kept with probability weight / bound.

        Raises
        ------
        AcceptanceError
            If that is expected to take more than `max_draws` proposals, or a weight is above its bound: the rectangle
            is then so many standard deviations away that rounding is larger than the weights differ.
        """
        kept: list[FloatArray] = []
        found, proposed, total, rate = 0, 0, 0.0, 1.0
        while found < count:
            size = int(np.clip(1.1 * (count - found) / rate, _BATCH, 16 * _BATCH))
            U = rng.random((self.factor.rank, size))
            accept = np.log1p(-rng.random(size))
            below = self.sampler.run(U) - (self.log_bound + _ROUNDING)
            if below.max() > 0.0:
                raise AcceptanceError(
                    "lower and upper are too many standard deviations from the mean for exact draws: a weight is "
                    f"{below.max():.3g} nats above its bound, by rounding; use method='gibbs'"
                )
            inside = accept < below
            kept.append(self.values(U[:, inside]))
            found, proposed = found + int(inside.sum()), proposed + size
            # the mean of weight / bound: it has less noise than the share of what was kept
            total += float(np.sum(np.exp(below)))
            rate = max(total, 1e-300) / proposed
            if found < count and proposed + (count - found) / rate > max_draws:
                raise AcceptanceError(
                    f"about one proposal in {1 / rate:.3g} is accepted, so that {count} exact draws would take "
                    f"more than max_draws = {max_draws}; raise it, or use method='gibbs'"
                )
        return np.concatenate(kept, axis=1)[:, :count]

    def gibbs(self, count: int, sweeps: int, rng: np.random.Generator) -> FloatArray:
        """Return the ends (m, count) of as many Gibbs chains, started at weighted draws of minimax tilting.

        The chains move one innovation at a time, inside the interval that all limits leave it: they also run where the
        covariance is singular.
        """
        E = self._starts(count, rng)
        m, rank = len(self.block.R), self.factor.rank
        B = np.zeros((m, rank))
        B[self.factor.order] = self.factor.L
        for k, tie in self.factor.ties.items():
            B[tie.index, : k + 1] = tie.rows
        V = B @ E
        moving = [np.flatnonzero(B[:, k]) for k in range(rank)]
        for _ in range(sweeps):
            for k in range(rank):
                i = moving[k]
                slope = B[i, k][:, None]
                rest = V[i] - slope * E[k]
                one = (self.block.lower[i][:, None] - rest) / slope
                other = (self.block.upper[i][:, None] - rest) / slope
                low, high = np.minimum(one, other).max(axis=0), np.maximum(one, other).min(axis=0)
                # rounding may leave nothing of a narrow interval: then the chain stays where it is
                new = np.where(low < high, draw(low, high, rng.random(count))[1], E[k])
                V[i] = rest + slope * new
                E[k] = new
            V = B @ E  # or rounding would add up
        return V

    def _starts(self, count: int, rng: np.random.Generator) -> FloatArray:
        U = rng.random((self.factor.rank, max(_BATCH, count)))
        log_w = self.sampler.run(U)
        if np.isneginf(log_w).all():
            raise AcceptanceError(
                f"none of {U.shape[1]} proposals was inside the rectangle, so that a chain has no start"
            )
        w = np.exp(log_w - log_w.max())
        return np.ascontiguousarray(U[:, rng.choice(U.shape[1], size=count, p=w / w.sum())])


def moments(
    one: BlockSampler, points: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Return weighted first and second moments of a block, in the problem's units but for its mean.

    Returns
    -------
    mean, covariance : (m,), (m, m) array
    mean_errors, covariance_errors : (r, m), (r, m, m) array
        What each scramble contributes to their errors: the standard error is the deviation over root r.
    effective : float
        Effective samples over samples.
    """
    seeds = rng.integers(2**63, size=rounds.SCRAMBLES)
    top, centre = _provisional(one, rng)
    m = len(one.block.R)
    S0, S1, S2 = np.zeros(len(seeds)), np.zeros((len(seeds), m)), np.zeros((len(seeds), m, m))
    squares = 0.0
    for r, seed in enumerate(seeds):
        for U in rounds.sobol(one.factor.rank, points, np.random.default_rng(int(seed))):
            w = np.exp(one.sampler.run(U) - top)
            V = one.units(one.values(U)) - centre[:, None]
            S0[r] += w.sum()
            S1[r] += V @ w
            S2[r] += (V * w) @ V.T
            squares += float(w @ w)
    if not S0.sum() > 0:
        raise AcceptanceError("no sample was inside the rectangle")
    share = S0 / S0.mean()
    mean = S1.sum(axis=0) / S0.sum()
    mean_errors = S1 / S0.mean() - share[:, None] * mean
    crossed = S1[:, :, None] * mean
    about = S2 - crossed - crossed.transpose(0, 2, 1) + S0[:, None, None] * np.outer(mean, mean)
    covariance = about.sum(axis=0) / S0.sum()
    covariance_errors = about / S0.mean() - share[:, None, None] * covariance
    effective = float(S0.sum() ** 2 / squares / (points * len(seeds)))
    return mean + centre, covariance, mean_errors, covariance_errors, effective


def _provisional(one: BlockSampler, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Return a scale of the log weights, and a point about which sums of squares keep their digits."""
    U = rng.random((one.factor.rank, 64))
    log_w = one.sampler.run(U)
    if np.isneginf(log_w).all():
        return one.log_bound, np.zeros(len(one.block.R))
    w = np.exp(log_w - log_w.max())
    return float(log_w.max()), one.units(one.values(U)) @ (w / w.sum())
