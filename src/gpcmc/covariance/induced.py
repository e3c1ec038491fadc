"""Predictions under a covariance of low rank: through its inducing inputs, corrected for what these leave out.

F F' + D knows of a test input x* what the inducing inputs do, F* u, and takes the rest of f* as independent of the
training values. That is off where x* is near patterns that are not inducing inputs. With the exact cross-covariances
k* = k(X, x*) the mean is k*' a, to first order in what is left out if a = K^-1 mean is corrected too. With the further
columns of the finer covariance K' and the likelihood's terms held, a moves by -R E a, E = K' - K. The terms answer: at
the new mean they have another precision S', and fail by r = nu' - S' mean - a, so that a step to all orders is

    a + r - R' K' r,      R' = (K' + S'^-1)^-1.

A second step shows how far the first was from the end. The variance is that of K' and S', through the inducing inputs.

The same without the last half of the further columns, and without the second step, are the others that a `Latent`
holds: the largest distance says how far off a prediction may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.covariance.form import Answer, Cross, Latent, Predictor
from gpcmc.covariance.kernels import evaluate
from gpcmc.covariance.pivoted import Inducing, blocks

if TYPE_CHECKING:
    from gpcmc.covariance.lowrank import LowRank, LowRankConditions

_ENTRIES = 2**22  # of cross-covariances at once


@dataclass(frozen=True, slots=True, eq=False)
class LowRankCross(Cross):
    """Test inputs, as inputs X_star (t, d) or as covariances K_star (n, t) with the training values.

    Attributes
    ----------
    of : LowRank
    k_star_star : (t,) array
    """

    of: LowRank
    k_star_star: FloatArray
    X_star: FloatArray | None = None
    K_star: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.k_star_star)

    @property
    def variance(self) -> FloatArray:
        return self.k_star_star

    def rows(self, inducing: Inducing | None = None) -> tuple[FloatArray, FloatArray]:
        """Return F (t, r) and D (t,) of the test inputs, for the inducing inputs of `of` or for others.

        Raises
        ------
        ValueError
            If K_star and k_star_star do not belong to the covariance.
        """
        inducing = self.of.inducing if inducing is None else inducing
        assert inducing is not None
        if self.X_star is not None:
            return inducing.rows(self.X_star)
        assert self.K_star is not None and inducing.pivots is not None
        F = inducing.coordinates(self.K_star[inducing.pivots])
        left = self.k_star_star - np.einsum("ij,ij->i", F, F)
        if (left < -1e-6 * np.maximum(self.k_star_star, 1.0)).any():
            raise ValueError(
                f"K_star and k_star_star do not belong to the prior: a variance would be {left.min():.3g}"
            )
        return F, np.maximum(left, 0.0)

    def covariances(self) -> FloatArray:
        return self.of.F @ self.rows()[0].T

    def exact(self, a: FloatArray) -> FloatArray:
        """Return a k(X, X_star) (m, t) for a (m, n), the kernel's own covariances in blocks."""
        if self.K_star is not None:
            return a @ self.K_star
        assert self.X_star is not None and self.of.kernel is not None
        found = np.empty((len(a), len(self)))
        for here in blocks(len(self), max(_ENTRIES // len(self.of), 1)):
            found[:, here] = a @ evaluate(self.of.kernel, self.of.X, self.X_star[here])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LowRankPredictor(Predictor):
    """A conditioned covariance with its weights a, (n,) or (k, n), and those with the further columns.

    Attributes
    ----------
    conditioned : LowRankConditions
    a : (n,) or (k, n) array
    finer : tuple of (LowRankConditions, array)
        The covariance with all further columns, and its weights; with half of them; and with all, after one step of the
        terms. Empty without a finer covariance.
    """

    conditioned: LowRankConditions
    a: FloatArray
    finer: tuple[tuple[LowRankConditions, FloatArray], ...] = ()

    @classmethod
    def of(
        cls, conditioned: LowRankConditions, a: FloatArray, answer: Answer | None
    ) -> LowRankPredictor:
        """Correct the weights for the further columns, if there are some."""
        K, finest = conditioned.K, conditioned.K.finer
        if finest is None or finest.rank == K.rank:
            return cls(conditioned, a)
        held = _moved(conditioned, K, finest, a)
        noise, r = conditioned.noise, np.zeros_like(a)
        if answer is not None:
            noise, r = answer(conditioned, held, _product(finest, held))
        whole = conditioned.on(finest, noise)
        once = held + _stepped(whole, r)
        if answer is not None:
            r = answer(whole, once, _product(finest, once))[1]
        twice = once + _stepped(whole, r)
        less = finest.truncated((K.rank + finest.rank + 1) // 2)
        half = conditioned.on(less, noise)
        return cls(
            conditioned,
            a,
            ((whole, twice), (half, _moved(half, finest, less, twice)), (whole, once)),
        )

    def latent(self, cross: Any) -> Latent:
        own = _through(self.conditioned, self.a, cross)
        if not self.finer:
            return own
        a = np.array([weights for _, weights in self.finer])
        means = cross.exact(a.reshape(-1, a.shape[-1])).reshape(*a.shape[:-1], -1)
        means = np.moveaxis(means, -1, 1)  # (t,) or (t, k) each
        variances = [_through(one, self.a, cross).variance for one, _ in self.finer[:2]]
        others = (Latent(means[1], variances[1]), Latent(means[2], variances[0]))
        return Latent(means[0], variances[0], own, others)


def _product(K: LowRank, a: FloatArray) -> FloatArray:
    """K a of each latent function."""
    return (K @ a.T).T


def _moved(conditioned: LowRankConditions, K: LowRank, other: LowRank, a: FloatArray) -> FloatArray:
    """Weights under another covariance than K, with the terms held, to first order in R of either."""
    return a - conditioned.solve(_product(other, a) - _product(K, a))


def _stepped(conditioned: LowRankConditions, r: FloatArray) -> FloatArray:
    """What terms that fail by r add to the weights."""
    return r - conditioned.solve(_product(conditioned.K, r))


def _through(conditioned: LowRankConditions, a: FloatArray, cross: Any) -> Latent:
    """Means and variances through the inducing inputs of a conditioned covariance."""
    K = conditioned.K
    F, D = cross.rows(K.inducing)
    covariance = conditioned.spread_of(F)
    each = np.arange(covariance.shape[1])
    covariance[:, each, each] += D[:, None]
    return Latent(F @ (a @ K.F).T, covariance if a.ndim > 1 else covariance[:, 0, 0])
