"""What a covariance of low rank costs in evidence.

To first order, d log Z = tr(M dK) / 2 with M = a a' + v a' + a v' - R. With the error E = K - F F' - D, whose diagonal
is zero, log Z changes by sum_ij M_ij E_ij / 2. Three estimates of that:

- Further columns G of the factorisation have a share of E, G G' without its diagonal. Their part is found at n r s
  flops for s columns. How the columns' shares fall off tells how much is still further.
- All columns of E, in blocks: what G leaves, to first order, in n^2 r flops.
- Columns of E drawn at random: unbiased to first order, with a standard error. It grows as n^(3/2), because the
  columns' sums cancel.

First order is not enough for G. A smooth direction of small variance is seen by all patterns, so that C = G' R G, its
variance over that of the noise, may be large. With the Gaussian likelihood terms held, the change is known to all
orders: a' G (I + C)^-1 G' a / 2 - log |I + C| / 2 takes the place of a' G G' a / 2 - tr C / 2.

References
----------
Rasmussen and Williams (2006), Eqs. (5.22)-(5.27), (A.9), (A.10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_positive_int, check_rng
from gpcmc.inference.interface import OK
from gpcmc.lowrank.covariance import LowRank, blocks
from gpcmc.lowrank.multiclass import Gaussian
from gpcmc.lowrank.prior import LowRankPrior

#: A run whose evidence may be off by more than `MAX_REST` nats for what the covariance leaves out.
TOO_ROUGH = "covariance too rough"
MAX_REST = 1.0
#: Patterns up to which every column of the error is evaluated.
EXACT = 2000
_COLUMNS = 128  # at once


@dataclass(frozen=True, slots=True)
class GradientMatrix:
    """The symmetric M with d log Z = tr(M dK) / 2, of k latent functions: one, or for the softmax one a class.

    M is the sum over them of p q' + q p' - R, R = V - V F A^-1 F' V, where V has the precisions that each pattern has
    for its F u. R has blocks between the functions too; those on its diagonal count.

    Attributes
    ----------
    p, q : (k, n) array
    V : (k, k, n) array
    F : (n, r) array
    C : (k r, k r) array
        Lower Cholesky factor of A.
    diagonal : (n,) array
        M_ii.
    """

    p: FloatArray
    q: FloatArray
    V: FloatArray
    F: FloatArray
    C: FloatArray
    diagonal: FloatArray

    @classmethod
    def of(cls, K: LowRank, posterior: Gaussian) -> GradientMatrix:
        """Return that of a posterior at its fixed point."""
        p, q = np.atleast_2d(posterior.v + 0.5 * posterior.a, posterior.a)
        V, noise = posterior.noise_precision(K)
        return cls(p, q, V, K.F, posterior.C, np.sum(2.0 * p * q, axis=0) - noise)

    def times_factor(self) -> FloatArray:
        """Return (M - diag(M)) F (n, r)."""
        k, r = len(self.p), self.F.shape[1]
        inverse = cho_solve((self.C, True), np.eye(k * r), check_finite=False).reshape(k, r, k, r)
        found = -self.diagonal[:, None] * self.F
        for c in range(k):
            found += np.outer(self.p[c], self.q[c] @ self.F)
            found += np.outer(self.q[c], self.p[c] @ self.F)
            for d in range(c + 1):  # (R F)_c is the sum over d of V_cd F (A^-1)_dc
                both = inverse[c, :, d] + (inverse[d, :, c] if d < c else 0.0)
                found -= self.V[c, d][:, None] * (self.F @ both)
        return found

    def columns(self, J: NDArray[np.intp]) -> FloatArray:
        """Return M (n, m) at columns J, with zero instead of M_jj."""
        M, rows = np.zeros((len(self.F), len(J))), self.F[J]
        for p, q, V in zip(self.p, self.q, self.V, strict=True):
            right = np.concatenate([(v[J, None] * rows).T for v in V])
            solved = cho_solve((self.C, True), right, check_finite=False)
            M += np.outer(p, q[J])
            M += np.outer(q, p[J])
            for v, u in zip(V, np.split(solved, len(V)), strict=True):
                M += v[:, None] * (self.F @ u)
        M[J, np.arange(len(J))] = 0.0
        return M

    def shares(self, G: FloatArray) -> FloatArray:
        """Return by how much (s,) each column of G raises log Z, after those before it.

        G G' without its diagonal is added to K. The diagonal and v count to first order.
        """
        (k, _), (r, s) = self.p.shape, (self.F.shape[1], G.shape[1])
        # the functions of a column stand together
        across, own = np.empty((k, r, s, k)), np.empty((s, k, s, k))
        for c in range(k):
            for d in range(k):
                VG = self.V[c, d][:, None] * G
                across[c, :, :, d], own[:, c, :, d] = self.F.T @ VG, G.T @ VG
        half = solve_triangular(
            self.C, across.reshape(k * r, s * k), lower=True, check_finite=False
        )
        C = own.reshape(s * k, s * k) - half.T @ half
        C.flat[:: len(C) + 1] += 1.0
        L = cholesky(C, lower=True, overwrite_a=True, check_finite=False)
        a, p = (self.q @ G).T, (self.p @ G).T
        z = solve_triangular(L, a.ravel(), lower=True, check_finite=False).reshape(s, k)
        mean = np.sum(2.0 * p * a - a**2 + z**2, axis=1)
        determinant = np.log(L.diagonal()).reshape(s, k).sum(axis=1)
        return 0.5 * (mean - self.diagonal @ G**2) - determinant


P = TypeVar("P", bound=Gaussian)


def corrected(prior: LowRankPrior, posterior: P) -> P:
    """Return the posterior with its evidence corrected, and diagnostics that say by how much.

    ``correction`` is what was added to the evidence, in nats. ``correction_rest`` is the part of it that the second
    half of the further columns made (with up to 2000 patterns: that and what is beyond): what is left out is
    about as large at most. ``rank`` is that of F, and ``residual`` the mean of D over the mean of the prior
    variance. Without further columns nothing is corrected. A rest above `MAX_REST` makes an ``"ok"`` the status
    `TOO_ROUGH`.
    """
    K, finer = prior.covariance, prior.finer
    variance = float(np.mean(np.einsum("ij,ij->i", K.F, K.F) + K.D))
    found = {"rank": float(K.rank), "residual": float(K.D.mean()) / max(variance, 1e-300)}
    if finer is None:
        return replace(posterior, diagnostics=found)
    M = GradientMatrix.of(K, posterior)
    shares = M.shares(finer.F)
    total, rest = float(shares.sum()), float(shares[len(shares) // 2 :].sum())
    if len(K) <= EXACT:
        beyond = float(_columns_beyond(prior, M, np.arange(len(K))).sum())
        total, rest = total + beyond, rest + beyond
    found |= {"correction": total, "correction_rest": rest}
    rough = posterior.status == OK and abs(rest) > MAX_REST
    return replace(
        posterior,
        log_evidence=posterior.log_evidence + total,
        diagnostics=found,
        status=TOO_ROUGH if rough else posterior.status,
    )


@one_thread()
def random_columns(
    prior: LowRankPrior,
    posterior: Gaussian,
    columns: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Estimate the first-order change of the evidence by what the correction leaves out, without bias.

    Parameters
    ----------
    prior : LowRankPrior
        Made by `low_rank_prior`.
    posterior : LowRankPosterior or LowRankMulticlassPosterior
        Of that prior, by expectation propagation or Laplace's method.
    columns : int
        Columns of the error that are evaluated, of n; drawn without replacement.
    rng : numpy.random.Generator

    Returns
    -------
    change, standard_error : float
        In nats. The standard error is 0 with all n columns.

    Raises
    ------
    ValueError
        If `columns` is not between 2 and n, or the prior has no inducing inputs that were chosen.
    """
    rng = check_rng("rng", rng)
    n = len(prior)
    if not 2 <= check_positive_int("columns", columns) <= n:
        raise ValueError(f"columns must be between 2 and n = {n}; got {columns}")
    if prior.finer is None:
        raise ValueError("prior must be made by low_rank_prior(kernel, X) without inducing inputs")
    J = rng.choice(n, columns, replace=False)
    sums = _columns_beyond(prior, GradientMatrix.of(prior.covariance, posterior), J)
    error = np.std(sums, ddof=1) * np.sqrt((1.0 - columns / n) / columns)
    return float(n * sums.mean()), float(n * error)


def _columns_beyond(prior: LowRankPrior, M: GradientMatrix, J: NDArray[np.intp]) -> FloatArray:
    """Return sum_i M_ij E_ij / 2 (m,) for columns j, E what F F' + G G' leaves of the kernel."""
    kernel, X, F, finer = prior.kernel, prior.X, prior.covariance.F, prior.finer
    assert kernel is not None and X is not None and finer is not None
    sums = np.empty(len(J))
    for start in range(0, len(J), _COLUMNS):
        some = J[start : start + _COLUMNS]
        of_M, total = M.columns(some), np.zeros(len(some))
        for here in blocks(len(X)):
            E = kernel(X[here], X[some]) - F[here] @ F[some].T - finer.F[here] @ finer.F[some].T
            total += np.einsum("ij,ij->j", of_M[here], E)
        sums[start : start + len(some)] = 0.5 * total
    return sums
