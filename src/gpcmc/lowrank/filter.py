r"""Coordinates of v = H u + w drawn in turn, with a state of r numbers: a Kalman filter with gains known beforehand.

With u ~ N(0, P) and independent w_i of variance g_i, v has covariance H P H' + diag(g), and its Cholesky factor L has
generators: for a block B of coordinates, with P_B the covariance of u given those before,

    L_BB L_BB' = diag(g_B) + H_B P_B H_B',    W_B = P_B H_B' L_BB^-T,    L_B,earlier = H_B W_earlier'.

With v = mean + L e, the state W e of earlier innovations is all that a block needs of them. The factorisation takes
4 n r^2 flops, a draw 4 n r. After the last block the state is E[u | v], and P the covariance that is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from gpcmc._validation import FloatArray
from gpcmc.covariance.pivoted import blocks

#: Coordinates between two updates of the state.
BLOCK = 32
_FAR = -8.0  # below, the normal distribution is on the log scale
_LOG_ONE = -(2.0**-54)


@dataclass(frozen=True, slots=True)
class Filter:
    """The generators of L.

    Attributes
    ----------
    H, W : (n, r) array
    blocks : list of (m, m) array
        L_BB of each block.
    d : (n,) array
        Diagonal of L.
    left : (r, r) array
        Covariance of u given all coordinates.
    """

    H: FloatArray
    W: FloatArray
    blocks: list[FloatArray]
    d: FloatArray
    left: FloatArray

    @classmethod
    def of(cls, H: FloatArray, g: FloatArray, P: FloatArray) -> Filter:
        """Factorise H P H' + diag(g), g > 0."""
        P, W, found = P.copy(), np.empty_like(H), []
        for here in parts(len(H)):
            PH = P @ H[here].T
            S = H[here] @ PH
            S.flat[:: len(S) + 1] += g[here]
            L = cholesky(S, lower=True, check_finite=False)
            gain = solve_triangular(L, PH.T, lower=True, check_finite=False)
            P -= gain.T @ gain
            W[here] = gain
            found.append(L)
        d = np.concatenate([np.diag(L) for L in found])
        return cls(H, W, found, d, 0.5 * (P + P.T))

    def transposed(self, x: FloatArray) -> FloatArray:
        """Return L' x (n,)."""
        found, later = np.empty_like(x), np.zeros(self.H.shape[1])
        for here, L in reversed(list(zip(parts(len(x)), self.blocks, strict=True))):
            found[here] = L.T @ x[here] + self.W[here] @ later
            later += self.H[here].T @ x[here]
        return found


def parts(n: int) -> list[slice]:
    """Return the blocks of n coordinates."""
    return blocks(n, BLOCK)


@dataclass(frozen=True, slots=True)
class FilteredProposal:
    """A proposal for the orthant as of `gpcmc.orthant.separation.Proposal`, with L by its generators.

    Attributes
    ----------
    filter : Filter
    mean : (n,) array
    coefficients : (n, 7) array
        a, b, scale, w0, w1, w2, d of each coordinate, in units of the diagonal of L.
    log_constant : float
        Logarithm of the factor that the average weight is to be multiplied with.
    centre : (r,) array
        Mean of u before anything is drawn.
    """

    filter: Filter
    mean: FloatArray
    coefficients: FloatArray
    log_constant: float
    centre: FloatArray


@dataclass(slots=True)
class Pass:
    """One pass over the coordinates of m draws.

    Attributes
    ----------
    state : (r, m) array
        W e of the innovations so far.
    log_weights : (m,) array
        Target over proposal, so far.
    """

    proposal: FilteredProposal
    state: FloatArray
    log_weights: FloatArray

    @classmethod
    def start(cls, proposal: FilteredProposal, draws: int) -> Pass:
        """Begin with nothing drawn."""
        return cls(
            proposal,
            np.zeros((len(proposal.centre), draws)),
            np.full(draws, proposal.log_constant),
        )

    def draw(self, k: int, here: slice, U: FloatArray) -> FloatArray:
        """Draw the coordinates (m, draws) of block k, inside the orthant, from points U in [0, 1)."""
        of, own = self.proposal, self.proposal.coefficients[here]
        L = of.filter.blocks[k]
        C = of.mean[here, None] + of.filter.H[here] @ self.state
        E = np.empty_like(U)
        d = of.filter.d[here]
        for i, (a, b, scale, *_) in enumerate(own):
            c = C[i]
            if i:
                c = c + L[i, :i] @ E[:i]
            c = c / d[i]
            t = (c + a + b * c) / scale
            if t.min() > _FAR:
                normal = ndtri((1.0 - U[i]) * ndtr(t))
            else:
                normal = ndtri_exp(np.minimum(np.log1p(-U[i]) + log_ndtr(t), _LOG_ONE))
            E[i] = a + b * c - scale * np.minimum(normal, t)
        V = C + L @ E
        self._weigh(here, V, E)
        return V

    def given(self, k: int, here: slice, V: FloatArray) -> None:
        """Weigh the coordinates V (m, draws) of block k, which another proposal drew."""
        of = self.proposal
        C = of.mean[here, None] + of.filter.H[here] @ self.state
        E = solve_triangular(of.filter.blocks[k], V - C, lower=True, check_finite=False)
        self._weigh(here, V, E)

    def _weigh(self, here: slice, V: FloatArray, E: FloatArray) -> None:
        of = self.proposal
        a, b, scale, w0, w1, w2, d = of.coefficients[here].T[:, :, None]
        c = V / of.filter.d[here, None] - E
        self.log_weights += np.sum(
            log_ndtr((c + a + b * c) / scale) + w0 + c * (w1 + w2 * c) - d * E, axis=0
        )
        self.state += of.filter.W[here].T @ E
