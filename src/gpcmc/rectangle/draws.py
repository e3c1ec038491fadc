"""Draws of a block of correlated coordinates inside its rectangle: exact by acceptance, or by a Gibbs chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.rectangle import rounds, solve
from gpcmc.rectangle.blocks import Block
from gpcmc.rectangle.limits import draw as draw_between
from gpcmc.rectangle.mixture import Means, Mixture, Samples, draw
from gpcmc.rectangle.order import Ordered, ordered
from gpcmc.weights import weights_status

#: Sweeps of a Gibbs chain from its start to the draw that is kept.
SWEEPS = 100
_BATCH = 4096
_AIM = 1e-3  # error of the probability that proposals are compared for
_POOR = 0.1  # share of the proposals kept, below which another start of the tilt is tried
_ROUNDING = 1e-9  # that a computed weight may be above its proven bound


class AcceptanceError(RuntimeError):
    """Exact draws would take more proposals than allowed."""


@dataclass(slots=True)
class BlockSampler:
    """A block, and what draws from it."""

    block: Block
    given: Ordered
    # Minimax tilting: of all proposals it has the least bound, so that most of its draws are accepted
    tilted: Mixture
    _best: Mixture | None = None
    _guided: bool = False

    @classmethod
    def of(cls, block: Block) -> BlockSampler:
        """Prepare a block."""
        given = ordered(block.R, block.lower, block.upper, block.slack)
        return cls(block, given, solve.tilting(given))

    def best(self, rng: np.random.Generator) -> Mixture:
        """Return the proposal of the smaller error, as `rectangle_probability` chooses it."""
        if self._best is None:
            request = solve.Request("auto", _AIM, 0, 1)
            self._best = solve.choose(self.given, request, rng, self.tilted)[1]
        return self._best

    def values(self, X: FloatArray) -> FloatArray:
        """Return the coordinates (m, count), in standard units and the block's order, of those drawn."""
        return self.given.coordinates(len(self.block.R), X)

    def units(self, V: FloatArray) -> FloatArray:
        """Return coordinates in the problem's units, but for their mean."""
        return (self.block.sign * self.block.sd)[:, None] * V

    def exact(self, count: int, max_draws: int, rng: np.random.Generator) -> FloatArray:
        """Return independent draws (m, count): a proposal is kept with probability weight / bound.

        An AcceptanceError says that this is expected to take more than `max_draws` proposals, or that a weight is above
        its bound: the rectangle is then so many standard deviations away that rounding is larger than the weights
        differ.
        """
        kept: list[FloatArray] = []
        found, proposed, total, rate = 0, 0, 0.0, 1.0
        while found < count:
            size = int(np.clip(1.1 * (count - found) / rate, _BATCH, 16 * _BATCH))
            X, log_w = self._propose(self.tilted, [size], rng)
            accept = np.log1p(-rng.random(size))
            below = log_w - (self.tilted.log_bound + _ROUNDING)
            if below.max() > 0.0:
                raise AcceptanceError(
                    "lower and upper are too many standard deviations from the mean for exact draws: a weight is "
                    f"{below.max():.3g} nats above its bound, by rounding; use method='gibbs'"
                )
            inside = accept < below
            kept.append(self.values(X[:, inside]))
            found, proposed = found + int(inside.sum()), proposed + size
            # the mean of weight / bound: it has less noise than the share of what was kept
            total += float(np.sum(np.exp(below)))
            rate = max(total, 1e-300) / proposed
            if rate < _POOR and not self._guided:
                self._guided, before = True, self.tilted
                self.tilted = solve.guided(self.given, before)[0]
                if self.tilted is not before:
                    return self.exact(count, max_draws, rng)
            if found < count and proposed + (count - found) / rate > max_draws:
                raise AcceptanceError(
                    f"about one proposal in {1 / rate:.3g} is accepted, so that {count} exact draws would take "
                    f"more than max_draws = {max_draws}; raise it, or use method='gibbs'"
                )
        return np.concatenate(kept, axis=1)[:, :count]

    def gibbs(self, count: int, sweeps: int, rng: np.random.Generator) -> FloatArray:
        """Return the ends (m, count) of as many Gibbs chains, started at weighted draws of the better proposal.

        The chains move one innovation at a time, inside the interval that all limits leave it: they also run where the
        covariance is singular.
        """
        given, block = self.given, self.block
        E = given.factor.solve(self._starts(count, rng) + given.lower[:, None])
        B = np.zeros((len(block.R), given.rank))
        B[given.order] = given.factor @ np.eye(given.rank)
        for k, tie in given.ties.items():
            B[tie.index, : k + 1] = tie.rows
        V = B @ E
        moving = [np.flatnonzero(B[:, k]) for k in range(given.rank)]
        for _ in range(sweeps):
            for k in range(given.rank):
                i = moving[k]
                slope = B[i, k][:, None]
                rest = V[i] - slope * E[k]
                one = (block.lower[i][:, None] - rest) / slope
                other = (block.upper[i][:, None] - rest) / slope
                low, high = np.minimum(one, other).max(axis=0), np.maximum(one, other).min(axis=0)
                # rounding may leave nothing of a narrow interval: then the chain stays where it is
                new = draw_between(low, high, rng.random(count))[1]
                new = np.where(low < high, new, E[k])
                V[i] = rest + slope * new
                E[k] = new
            V = B @ E  # or rounding would add up
        return V

    def _starts(self, count: int, rng: np.random.Generator) -> FloatArray:
        best = self.best(rng)
        X, log_w = self._propose(best, best.counts(max(_BATCH, count)), rng)
        if np.isneginf(log_w).all():
            raise AcceptanceError(
                f"none of {X.shape[1]} proposals was inside the rectangle, so that a chain has no start"
            )
        w = np.exp(log_w - log_w.max())
        return X[:, rng.choice(X.shape[1], size=count, p=w / w.sum())]

    @staticmethod
    def _propose(
        mixture: Mixture, counts: list[int], rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return coordinates above their lower limits (r, m) and log weights (m,) of so many independent draws."""
        share = np.log(np.array(counts) / sum(counts))
        found = []
        for k, count in enumerate(counts):
            U = rng.random((len(mixture), count))
            log_w, *_, X = mixture.weigh(k, count, U.__getitem__, share, keep=True)
            found.append((X, log_w))
        return np.concatenate([X for X, _ in found], axis=1), np.concatenate([w for _, w in found])


def moments(
    one: BlockSampler, points: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float, str]:
    """Return the weighted mean (m,) and covariance (m, m) of a block, in the problem's units but for its mean.

    Then what each scramble contributes to their errors, (r, m) and (r, m, m), whose deviation over root r is the
    standard error; effective samples over samples; and a status (`gpcmc.weights.weights_status`).
    """
    best, m = one.best(rng), len(one.block.R)
    seeds = rng.integers(2**63, size=rounds.SCRAMBLES)
    # a point about which sums of squares keep their digits
    X, log_w = one._propose(best, best.counts(64), rng)
    w = np.exp(log_w - max(log_w.max(), -1e300))
    centre = one.units(one.values(X)) @ (w / max(w.sum(), 1e-300))
    sums = Means(len(seeds))

    def visit(some: Samples) -> None:
        assert some.X is not None
        V = one.units(one.values(some.X)) - centre[:, None]
        V = V.reshape(m, len(some.randomizations), -1)

        def under(share: FloatArray) -> FloatArray:
            first = np.einsum("igj,gj->gi", V, share)
            second = [(V[:, g] * share[g]) @ V[:, g].T for g in range(len(share))]
            return np.concatenate([first, np.reshape(second, (len(share), -1))], axis=1)

        sums.add(some, under)

    found = draw(best, points, seeds, visit=visit, keep=True)
    if np.isneginf(found.log_plain):
        raise AcceptanceError("no sample was inside the rectangle")
    both, errors = sums.contributions(found.share)
    mean, about = both[:m], errors[:, :m]
    second, of_second = both[m:].reshape(m, m), errors[:, m:].reshape(-1, m, m)
    crossed = about[:, :, None] * mean
    return (
        mean + centre,
        second - np.outer(mean, mean),
        about,
        of_second - crossed - crossed.transpose(0, 2, 1),
        found.diagnostics["effective_fraction"],
        weights_status(
            found.diagnostics | {"log_weight_bound": best.log_bound - found.log_probability}
        ),
    )
