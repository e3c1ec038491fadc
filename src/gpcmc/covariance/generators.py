"""The factor of H P H' + diag(g) by its generators: coordinates drawn with a state of r numbers.

For v = H u + w with u ~ N(0, P) of r entries and independent w_i of variance g_i the Cholesky factor L has generators,
those of a Kalman filter whose gains are known beforehand: for a block B of coordinates, with P_B the covariance of u
given those before,

    L_BB L_BB' = diag(g_B) + H_B P_B H_B',    W_B = P_B H_B' L_BB^-T,    L_B,earlier = H_B W_earlier'.

Factor and draw take 4 n r^2 and 4 n r flops. After the last block the state is E[u | v], and P the covariance that is
left. Sites of precision tau make of R = H H' + diag(g), with s = 1 / (1 + tau g), the covariance

    S = diag(s) H P H' diag(s) + diag(s g),    P = (I + H' diag(s tau) H)^-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk

from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import BLOCK, Factor, Gram, Sited, parts

_ROWS = 2048  # of tall arrays that are worked on at once


@dataclass(frozen=True, slots=True)
class _LowRankGram(Gram):
    """A = F F' + diag(g)."""

    F: FloatArray
    g: FloatArray

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return self.F @ (self.F.T @ x) + self.g * x

    def solve(self, w: FloatArray, x: FloatArray) -> FloatArray:
        # N + J J' with N = I - W + W^(1/2) diag(g) W^(1/2) and J = W^(1/2) F
        t = 1.0 / (1.0 - w + w * self.g)
        root = np.sqrt(w)
        C = _inner(self.F, t * w)
        tx = t * x
        inner = cho_solve((C, True), self.F.T @ (root * tx), check_finite=False)
        return tx - t * root * (self.F @ inner)


@dataclass(frozen=True, slots=True, eq=False)
class GeneratorFactor(Factor):
    """The factor of H H' + diag(g) by its generators; the state of a draw is what u is known to be (r, draws).

    Attributes
    ----------
    H, W : (n, r) array
        H with its rows over d.
    inside : list of (m, m) array
        G_BB of each block.
    d : (n,) array
    g : (n,) array
    left : (r, r) array
        Covariance of u given all coordinates.
    parts : list of slice
    """

    H: FloatArray
    W: FloatArray
    inside: list[FloatArray]
    d: FloatArray
    g: FloatArray
    left: FloatArray
    parts: list[slice]
    condenses: ClassVar[bool] = True

    @classmethod
    def of(cls, H: FloatArray, g: FloatArray, P: FloatArray | None = None) -> GeneratorFactor:
        """Factorise H P H' + diag(g), g > 0 (n,), H (n, r); P (r, r) is the identity if None.

        Raises
        ------
        LinAlgError
            If a block of it is not positive definite in floating point.
        """
        P = np.eye(H.shape[1]) if P is None else P.copy()
        here, W, blocks = parts(len(H), BLOCK), np.empty_like(H), []
        for one in here:
            PH = P @ H[one].T
            S = H[one] @ PH
            S.flat[:: len(S) + 1] += g[one]
            L = cholesky(S, lower=True, check_finite=False)
            gain = solve_triangular(L, PH.T, lower=True, check_finite=False)
            P -= gain.T @ gain
            W[one] = gain
            blocks.append(np.ascontiguousarray(L))
        d = np.concatenate([L.diagonal() for L in blocks])
        inside = [L / L.diagonal()[:, None] for L in blocks]
        return cls(H / d[:, None], W, inside, d, g, 0.5 * (P + P.T), here)

    def __matmul__(self, x: FloatArray) -> FloatArray:
        found, state = np.empty_like(x), np.zeros((self.H.shape[1], *x.shape[1:]))
        for one, G in zip(self.parts, self.inside, strict=True):
            found[one] = G @ x[one] + self.H[one] @ state
            state += self.W[one].T @ x[one]
        return (found.T * self.d).T

    def transposed(self, x: FloatArray) -> FloatArray:
        """Return L' x (n,)."""
        found, later, x = np.empty_like(x), np.zeros(self.H.shape[1]), self.d * x
        for one, G in reversed(list(zip(self.parts, self.inside, strict=True))):
            found[one] = G.T @ x[one] + self.W[one] @ later
            later += self.H[one].T @ x[one]
        return found

    def gram(self) -> Gram:
        """Return A = G G'."""
        return _LowRankGram(self.H, self.g / self.d**2)

    def sited(self, nu: FloatArray, tau: FloatArray) -> Sited:
        """As of `Factor`."""
        s, H = 1.0 / (1.0 + tau * self.g), self.d[:, None] * self.H
        C = _inner(H, s * tau)
        centre = cho_solve((C, True), H.T @ (s * nu), check_finite=False)
        mean = s * (H @ centre + self.g * nu)
        slope = s * (nu - tau * (H @ centre))
        half_log_det = float(np.sum(np.log(C.diagonal())) + 0.5 * np.sum(np.log1p(tau * self.g)))
        P = cho_solve((C, True), np.eye(len(C)), check_finite=False)
        H *= s[:, None]
        log_constant = -0.5 * float(mean @ slope) - half_log_det
        return Sited(GeneratorFactor.of(H, self.g * s, P), mean, slope, log_constant)

    def test_rows(
        self, cross: Any, signs: FloatArray, order: NDArray[np.intp] | slice = slice(None)
    ) -> FloatArray:
        """As of `Factor`."""
        F, _ = cross.rows()
        return F / self.test_spread(cross, F)[:, None]

    def test_spread(self, cross: Any, rows: FloatArray) -> FloatArray:
        """As of `Factor`; the state is not the innovations, and `rows` are not looked at."""
        F, D = cross.rows()
        return np.sqrt(1.0 + D + np.einsum("ij,ij->i", F @ self.left, F))

    def begin(self, draws: int) -> FloatArray:
        """As of `Factor`."""
        return np.zeros((self.H.shape[1], draws))

    def within(self, k: int) -> FloatArray:
        """As of `Factor`."""
        return self.inside[k]

    def ahead(self, k: int, state: FloatArray) -> FloatArray:
        """As of `Factor`."""
        return self.H[self.parts[k]] @ state

    def place(self, k: int, state: FloatArray) -> FloatArray:
        """As of `Factor`."""
        return np.empty((len(self.inside[k]), state.shape[1]))

    def follow(self, k: int, state: FloatArray, E: FloatArray) -> None:
        """As of `Factor`."""
        state += self.W[self.parts[k]].T @ E


def _inner(F: FloatArray, t: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of I + F' diag(t) F, t >= 0."""
    A = np.eye(F.shape[1], order="F")
    for one in parts(len(F), _ROWS):
        half = np.sqrt(t[one])[:, None] * F[one]
        A = dsyrk(1.0, half.T, beta=1.0, c=A, lower=1, overwrite_c=1)
    return cholesky(A, lower=True, overwrite_a=True, check_finite=False)
