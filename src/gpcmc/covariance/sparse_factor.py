r"""The factor of v = C f + noise for a latent f of sparse precision P: f is drawn along with v.

The law of v alone has no sparse factor, but that of v and f has. They are drawn in turn, from the last that is
eliminated to the first: v_i given the f before, then f_i given these and v_i. Each takes two coordinates of the factor,
so that it has 2 n of them, and those of f have limits that no draw comes near. With P = L L' and mu_i, 1 / L_ii^2 the
mean and variance of f_i given the f before,

    v_i = c_i mu_i + d_i e_i,      f_i = mu_i + g_i d_i e_i + h_i e'_i,

d_i^2 = c_i^2 / L_ii^2 + s_i, g_i = c_i / (L_ii d_i)^2, h_i = s_i^(1/2) / (L_ii d_i), s_i the variance of the noise. A
draw takes 2 flops for each entry of L. Weights of v are the same functions as without f, of a mean that knows more:
they vary somewhat more, and their average has the same expectation. Minimax tilting needs the covariance of v / d
alone, for the bound's tangents are flat in f.

Sites of v make of P the precision P + diag(c^2 tau / (1 + s tau)), and of v given f the variance s / (1 + s tau).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular

from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import Factor, Gram, Sited
from gpcmc.covariance.sparse_cholesky import SparseCholesky

_PATTERNS = 16  # of a block
_ROWS = 1024  # of states at once
_FAR = 100.0  # standard deviations of f that no draw is away from zero


@dataclass(frozen=True, slots=True)
class _SparseGram(Gram):
    """That of the coordinates with limits; those without count as independent."""

    of: SparseFactor

    def __matmul__(self, x: FloatArray) -> FloatArray:
        one, v, found = self.of, self.of.values(x), np.array(x)
        scaled = v / one.spread
        lifted = one.made.back(one.made.forward(one.c * scaled))
        found[-2::-2] = (one.c * lifted + one.s * scaled) / one.spread
        return found

    def solve(self, w: FloatArray, x: FloatArray) -> FloatArray:
        # N + J P^-1 J with N = I - W + W^(1/2) diag(s / d^2) W^(1/2) and J = W^(1/2) C / d
        one, found = self.of, np.array(x)
        weight, right = one.values(w), one.values(x)
        N = 1.0 - weight + weight * one.s / one.spread**2
        J = np.sqrt(weight) * one.c / one.spread
        made = _with_diagonal(one, J**2 / N)
        lifted = made.back(made.forward(J * right / N))
        found[-2::-2] = (right - J * lifted) / N
        return found


@dataclass(frozen=True, eq=False)
class SparseFactor(Factor):
    """The factor of v and f, two coordinates a pattern; the state of a draw is f (n, draws), by order of elimination.

    Attributes
    ----------
    made : SparseCholesky
        Of P.
    precision : array
        P's entries at its pattern.
    c, s : (n,) arrays
        Slope of v in f, and the variance of the noise, in the order of elimination.
    largest : float
        About the largest standard deviation of f.
    d : (2 n,) array
    parts : list of slice
    """

    made: SparseCholesky
    precision: FloatArray
    c: FloatArray
    s: FloatArray
    largest: float
    d: FloatArray
    parts: list[slice]
    blocks: list[tuple[int, int, FloatArray, NDArray[np.int32]]]
    condenses: ClassVar[bool] = True
    resamples: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        made: SparseCholesky,
        precision: FloatArray,
        c: FloatArray,
        s: FloatArray,
        largest: float,
    ) -> SparseFactor:
        """Take a factor of P and its entries, slopes and the variances of the noise (n,), and of f the scale."""
        n, pivot, blocks = len(c), made.diagonal, list(made.blocks(_PATTERNS))
        d = np.empty(2 * n)
        d[-2::-2] = np.sqrt((c / pivot) ** 2 + s)
        d[-1::-2] = np.sqrt(s) / (pivot * d[-2::-2])
        parts = [slice(2 * (n - high), 2 * (n - low)) for low, high, *_ in blocks]
        return cls(made, precision, c, s, largest, d, parts, blocks)

    @property
    def spread(self) -> FloatArray:
        """The standard deviations d of v (n,), in the order of elimination."""
        return self.d[-2::-2]

    @cached_property
    def _gain(self) -> FloatArray:
        """The products g d (n,)."""
        return self.c / (self.made.diagonal**2 * self.spread)

    @property
    def _own(self) -> FloatArray:
        """The standard deviations h of f (n,)."""
        return self.d[-1::-2]

    def values(self, x: FloatArray) -> FloatArray:
        """Return what of x (2 n, ...) belongs to v, in the order of elimination."""
        return x[-2::-2]

    def coordinates(self, x: FloatArray) -> FloatArray:
        found = np.zeros(len(self))
        found[-2::-2] = x[self.made.symbolic.order]
        return found

    def limits(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        far = np.zeros(len(self))
        far[-1::-2] = _FAR * self.largest
        low, high = self.coordinates(lower), self.coordinates(upper)
        high[-1::-2] = np.inf
        return low - far, high

    def __matmul__(self, x: FloatArray) -> FloatArray:
        e, rest = (x[k::-2].T for k in (-2, -1))
        r = (self._gain * e + self._own * rest).T
        f = self.made.back((self.made.diagonal * r.T).T)
        found = np.empty_like(x)
        found[-2::-2] = (self.c * (f - r).T + self.spread * e).T
        found[-1::-2] = f
        return found

    def transposed(self, x: FloatArray) -> FloatArray:
        of_v, of_f = x[-2::-2], x[-1::-2]
        phi = self.made.diagonal * self.made.forward(of_f + self.c * of_v) - self.c * of_v
        found = np.empty_like(x)
        found[-2::-2] = self.spread * of_v + self._gain * phi
        found[-1::-2] = self._own * phi
        return found

    def gram(self) -> Gram:
        return _SparseGram(self)

    def sited(self, nu: FloatArray, tau: FloatArray) -> Sited:
        nu, tau = self.values(nu), self.values(tau)
        left = 1.0 / (1.0 + self.s * tau)
        made, data = _sited(self, self.c**2 * tau * left)
        centre = made.back(made.forward(self.c * nu * left))
        mean, slope = np.empty(len(self)), np.zeros(len(self))
        mean[-2::-2] = left * (self.c * centre + self.s * nu)
        mean[-1::-2] = centre
        slope[-2::-2] = left * (nu - tau * self.c * centre)
        half_log_det = 0.5 * (
            made.log_determinant - self.made.log_determinant - float(np.sum(np.log(left)))
        )
        log_constant = -0.5 * float(mean @ slope) - half_log_det
        own = SparseFactor.of(made, data, left * self.c, left * self.s, self.largest)
        return Sited(own, mean, slope, log_constant)

    def test_rows(
        self, cross: Any, signs: FloatArray, order: NDArray[np.intp] | slice = slice(None)
    ) -> Any:
        rows = cross.rows()[:, self.made.symbolic.order]
        return rows.multiply(1.0 / self.test_spread(cross, rows)[:, None]).tocsr()

    def test_spread(self, cross: Any, rows: Any) -> FloatArray:
        return np.sqrt(1.0 + cross.by.D)

    def begin(self, draws: int) -> FloatArray:
        return np.zeros((len(self.c), draws))

    @cached_property
    def _inside(self) -> list[tuple[FloatArray, FloatArray]]:
        """(G_BB, L_BB'^-1) of each block."""
        return [self._block(low, high, panel) for low, high, panel, _ in self.blocks]

    def _block(self, low: int, high: int, panel: FloatArray) -> tuple[FloatArray, FloatArray]:
        size, here = high - low, slice(low, high)
        upper = solve_triangular(
            panel[:size], np.eye(size), lower=True, trans="T", check_finite=False
        )
        T = upper * self.made.diagonal[here]
        spread, own, c = self.spread[here], self._own[here], self.c[here, None]
        of_v, of_f = T * self._gain[here], T * own
        G = np.empty((2 * size, 2 * size))
        beyond = T - np.eye(size)
        # in the order of the draws, which is the reverse
        G[-2::-2, -2::-2] = c * beyond * self._gain[here] / spread[:, None] + np.eye(size)
        G[-2::-2, -1::-2] = c * beyond * own / spread[:, None]
        G[-1::-2, -2::-2] = of_v / own[:, None]
        G[-1::-2, -1::-2] = of_f / own[:, None]
        return np.tril(G), upper

    def within(self, k: int) -> FloatArray:
        return self._inside[k][0]

    def ahead(self, k: int, state: FloatArray) -> FloatArray:
        low, high, panel, beyond = self.blocks[k]
        size, here = high - low, slice(low, high)
        found = np.zeros((2 * size, state.shape[1]))
        if len(beyond):
            f = -self._inside[k][1] @ (panel[size:].T @ state[beyond])
            state[here] = f
            found[-2::-2] = (self.c[here] / self.spread[here])[:, None] * f
            found[-1::-2] = f / self._own[here, None]
        return found

    def place(self, k: int, state: FloatArray) -> FloatArray:
        one = self.parts[k]
        return np.empty((one.stop - one.start, state.shape[1]))

    def follow(self, k: int, state: FloatArray, E: FloatArray) -> None:
        low, high, *_ = self.blocks[k]
        G = self._inside[k][0][-1::-2]
        state[low:high] += self._own[low:high, None] * (G @ E)

    def centre(self, mean: FloatArray) -> FloatArray:
        return mean[-1::-2]

    def choose(self, k: int, state: FloatArray, draws: NDArray[np.intp]) -> None:
        # a few rows at a time: the state is long
        for low in range(self.blocks[k][0], len(state), _ROWS):
            rows = state[low : low + _ROWS]
            rows[...] = np.take(rows, draws, axis=1)


def _with_diagonal(one: SparseFactor, more: FloatArray) -> SparseCholesky:
    return _sited(one, more)[0]


def _sited(one: SparseFactor, more: FloatArray) -> tuple[SparseCholesky, FloatArray]:
    """Return the factor of P + diag(more), and its entries."""
    symbolic, data = one.made.symbolic, one.precision.copy()
    data[symbolic.pointers[:-1]] += more
    try:
        return symbolic.factorize(data), data
    except ValueError as error:
        raise LinAlgError(str(error)) from error
