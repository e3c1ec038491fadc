r"""Cholesky factors for drawing: the coordinates of v ~ N(0, R) in turn, a block of them at a time.

R = L L' with L = diag(d) G, G of unit diagonal. A draw is v = mean + L e, and for a block B of coordinates

    v_B / d_B = mean_B / d_B + (what earlier innovations contribute) + G_BB e_B.

The contribution is all that a block needs of the past. A dense factor has it from the earlier innovations themselves;
where R has generators it comes from a state of few numbers (`gpcmc.covariance.generators`).

Sites exp(nu v - tau v^2 / 2), tau >= 0, make of R the covariance S = (R^-1 + T)^-1 and the mean m = S nu. Its factor
comes without subtraction, so that no digits are lost where tau is large:

    S = L (I + L'TL)^-1 L' = (L K^-1)(L K^-1)',    K'K = I + L'TL,    K lower triangular.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dlauum

from gpcmc._validation import FloatArray

#: Coordinates of a block.
BLOCK = 32


@dataclass(frozen=True, slots=True)
class Sited:
    """What Gaussian sites make of a covariance.

    Attributes
    ----------
    factor : Factor
        Of S = (R^-1 + T)^-1.
    mean : (n,) array
        m = S nu.
    slope : (n,) array
        R^-1 m = nu - T m, without cancellation.
    log_constant : float
        Of the integral of N(v; 0, R) times sites exp(slope' x - tau x^2 / 2) in x = v - m: -m'R^-1 m / 2 less half of
        log |I + L'TL|.
    """

    factor: Factor
    mean: FloatArray
    slope: FloatArray
    log_constant: float


class Gram(ABC):
    """A = G G', for Newton's method on the bound of minimax tilting."""

    @abstractmethod
    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Return A x (n,)."""

    @abstractmethod
    def solve(self, w: FloatArray, x: FloatArray) -> FloatArray:
        """Return (I - W + W^(1/2) A W^(1/2))^-1 x, W = diag(w), w in [0, 1] (n,)."""


class Factor(ABC):
    """The lower Cholesky factor L of a covariance, drawn block after block.

    Attributes
    ----------
    d : (n,) array
        Its diagonal.
    parts : list of slice
        The blocks.
    """

    d: FloatArray
    parts: list[slice]
    #: Whether what is known of a finished draw takes fewer numbers than the draw.
    condenses: ClassVar[bool] = False
    #: Whether draws of very many coordinates are resampled as they go (`choose`).
    resamples: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.d)

    def coordinates(self, x: FloatArray) -> FloatArray:
        """Return what belongs to v (n,) at its coordinates, in the order in which these are drawn; zeros at others.

        A factor of v alone has no others, and draws in the order of the patterns.
        """
        return x

    def limits(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return limits of v (n,) as those of all coordinates; others have limits that no draw comes near."""
        return lower, upper

    @abstractmethod
    def __matmul__(self, x: FloatArray) -> FloatArray:
        """Return L x, x (n,) or (n, m)."""

    @abstractmethod
    def transposed(self, x: FloatArray) -> FloatArray:
        """Return L' x (n,)."""

    @abstractmethod
    def gram(self) -> Gram:
        """Return A = G G'."""

    @abstractmethod
    def sited(self, nu: FloatArray, tau: FloatArray) -> Sited:
        """Return what sites (n,) make of the covariance.

        Raises
        ------
        LinAlgError
            If that is lost in rounding.
        """

    @abstractmethod
    def test_rows(
        self, cross: Any, signs: FloatArray, order: NDArray[np.intp] | slice = slice(None)
    ) -> FloatArray:
        """Return rows (t, q) with P(y* = +1 | v) = Phi(rows @ state), `state` (q,) that of a finished draw.

        Parameters
        ----------
        cross : Cross
            Of the covariance K in R = I + C K C, whose form this factor belongs to.
        signs : (n,) array
            The diagonal of C, in the order of the factor.
        order : (n,) int array, optional
            Places in K of the factor's coordinates.

        Raises
        ------
        ValueError
            If the covariances of `cross` cannot belong to K.
        """

    def test_spread(self, cross: Any, rows: FloatArray) -> FloatArray:
        """Return the deviations (t,) of latent values with unit noise given v, from their `test_rows`.

        Here for a factor whose state is the innovations, which are independent.
        """
        return np.sqrt((1.0 + cross.variance) / (1.0 + np.einsum("ij,ij->i", rows, rows)))

    @abstractmethod
    def begin(self, draws: int) -> FloatArray:
        """Return the state of so many draws of which nothing is drawn."""

    @abstractmethod
    def within(self, k: int) -> FloatArray:
        """Return G_BB of block k."""

    @abstractmethod
    def ahead(self, k: int, state: FloatArray) -> FloatArray:
        """Return what earlier innovations contribute to v / d in block k (m, draws)."""

    @abstractmethod
    def place(self, k: int, state: FloatArray) -> FloatArray:
        """Return where the innovations of block k (m, draws) are to be written."""

    @abstractmethod
    def follow(self, k: int, state: FloatArray, E: FloatArray) -> None:
        """Take the innovations of block k into the state."""

    def centre(self, mean: FloatArray) -> FloatArray:
        """Return what states count from where draws have this mean (n,): nothing, where states are innovations."""
        return np.zeros(1)

    def choose(self, k: int, state: FloatArray, draws: NDArray[np.intp]) -> None:
        """Replace the state of draws by that of these draws (m,), after block k."""
        state[...] = state[:, draws]


@dataclass(frozen=True, slots=True)
class _DenseGram(Gram):
    A: FloatArray

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return self.A @ x

    def solve(self, w: FloatArray, x: FloatArray) -> FloatArray:
        root = np.sqrt(w)
        H = root[:, None] * self.A
        H *= root
        H.flat[:: len(H) + 1] += 1.0 - w
        # a symmetric array in C's order is its own transpose in Fortran's
        C = cholesky(H.T, lower=True, overwrite_a=True, check_finite=False)
        return cho_solve((C, True), x, check_finite=False)


@dataclass(frozen=True, slots=True, eq=False)
class DenseFactor(Factor):
    """A factor as an array; the state of a draw is its innovations (n, draws).

    Attributes
    ----------
    G : (n, n) array
        Lower triangular, of unit diagonal.
    d : (n,) array
    parts : list of slice
    """

    G: FloatArray
    d: FloatArray
    parts: list[slice]

    @classmethod
    def of(cls, R: FloatArray) -> DenseFactor:
        """Factorise a covariance (n, n), which is overwritten.

        Raises
        ------
        LinAlgError
            If it is not positive definite in floating point.
        """
        L = cholesky(R, lower=True, overwrite_a=True, check_finite=False)
        return cls.lower(np.ascontiguousarray(L))

    @classmethod
    def lower(cls, L: FloatArray, blocks: list[slice] | None = None) -> DenseFactor:
        """Take a factor (n, n) in C's order, which becomes G."""
        d = L.diagonal().copy()
        L /= d[:, None]
        return cls(L, d, parts(len(d), BLOCK) if blocks is None else blocks)

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return ((self.G @ x).T * self.d).T

    def transposed(self, x: FloatArray) -> FloatArray:
        """Return L' x (n,)."""
        return self.G.T @ (self.d * x)

    def solve(self, x: FloatArray) -> FloatArray:
        """Return L^-1 x, x (n,) or (n, m)."""
        return _solve(self.G, (x.T / self.d).T)

    def gram(self) -> Gram:
        """Return A = G G'."""
        return _DenseGram(self.G @ self.G.T)

    def sited(self, nu: FloatArray, tau: FloatArray) -> Sited:
        """As of `Factor`."""
        L = self.d[:, None] * self.G
        # in LAPACK's column-major reading the transpose of the scaled factor is upper triangular, and U U' = L'TL
        M = dlauum((np.sqrt(tau)[:, None] * L).T, lower=0, overwrite_c=1)[0]
        M.T.flat[:: len(L) + 1] += 1.0
        # with both axes reversed the upper triangle is the lower one, and K' becomes the factor C
        C = cholesky(M[::-1, ::-1], lower=True, check_finite=False)
        del M
        half_log_det = float(np.sum(np.log(C.diagonal())))
        own = solve_triangular(C, L.T[::-1], lower=True, check_finite=False)[::-1].T
        del C, L
        own = np.tril(own)
        mean = own @ (own.T @ nu)
        e = self.solve(mean)
        slope = _solve(self.G, e, trans="T") / self.d
        log_constant = -0.5 * float(e @ e) - half_log_det
        return Sited(DenseFactor.lower(own, self.parts), mean, slope, log_constant)

    def test_rows(
        self, cross: Any, signs: FloatArray, order: NDArray[np.intp] | slice = slice(None)
    ) -> FloatArray:
        """As of `Factor`."""
        A = self.solve(signs[:, None] * cross.covariances()[order])
        variance = 1.0 + cross.variance - np.einsum("ij,ij->j", A, A)
        if (variance <= 0).any():
            worst = int(np.argmin(variance))
            raise ValueError(
                "K_star and k_star_star must be covariances with the training patterns; test pattern "
                f"{worst} would have variance {variance[worst]:.3g} given them"
            )
        return np.ascontiguousarray((A / np.sqrt(variance)).T)

    def begin(self, draws: int) -> FloatArray:
        """As of `Factor`."""
        return np.empty((len(self), draws))

    def within(self, k: int) -> FloatArray:
        """As of `Factor`."""
        here = self.parts[k]
        return self.G[here, here]

    def ahead(self, k: int, state: FloatArray) -> FloatArray:
        """As of `Factor`."""
        here = self.parts[k]
        return self.G[here, : here.start] @ state[: here.start]

    def place(self, k: int, state: FloatArray) -> FloatArray:
        """As of `Factor`."""
        return state[self.parts[k]]

    def follow(self, k: int, state: FloatArray, E: FloatArray) -> None:
        """As of `Factor`."""
        pass  # they are where they belong


def parts(n: int, size: int, alone: tuple[int, ...] = ()) -> list[slice]:
    """Return slices of at most so many that cover n coordinates, some of which stand alone."""
    cuts = {*range(0, n, size), n, *alone, *(k + 1 for k in alone)}
    edges = sorted(cuts)
    return [slice(lo, hi) for lo, hi in pairwise(edges)]


def _solve(G: FloatArray, x: FloatArray, trans: str = "N") -> FloatArray:
    return solve_triangular(G, x, lower=True, unit_diagonal=True, trans=trans, check_finite=False)
