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

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_positive_int, check_rng
from gpcmc.inference.interface import OK
from gpcmc.lowrank.covariance import LowRank, blocks
from gpcmc.lowrank.gaussian import LowRankPosterior
from gpcmc.lowrank.prior import LowRankPrior

#: A run whose evidence may be off by more than `MAX_REST` nats for what the covariance leaves out.
TOO_ROUGH = "covariance too rough"
MAX_REST = 1.0
#: Patterns up to which every column of the error is evaluated.
EXACT = 2000
_COLUMNS = 128  # at once


@dataclass(frozen=True, slots=True)
class GradientMatrix:
    """The symmetric M = p q' + q p' - R with d log Z = tr(M dK) / 2, R = diag(t) - diag(t) F A^-1 F' diag(t).

    Attributes
    ----------
    p, q, t : (n,) array
    F : (n, r) array
    C : (r, r) array
        Lower Cholesky factor of A.
    diagonal : (n,) array
        M_ii.
    """

    p: FloatArray
    q: FloatArray
    t: FloatArray
    F: FloatArray
    C: FloatArray
    diagonal: FloatArray

    @classmethod
    def of(cls, K: LowRank, posterior: LowRankPosterior) -> GradientMatrix:
        """Return that of a posterior at its fixed point."""
        s = 1.0 / (1.0 + posterior.S * K.D)
        p, q, t = posterior.v + 0.5 * posterior.a, posterior.a, posterior.S * s
        # R_ii = t_i - t_i^2 F_i A^-1 F_i', and the variance is D s + s^2 F_i A^-1 F_i'
        noise = t - posterior.S**2 * (posterior.variance - K.D * s)
        return cls(p, q, t, K.F, posterior.C, 2.0 * p * q - noise)

    def columns(self, J: NDArray[np.intp]) -> FloatArray:
        """Return M (n, m) at columns J, with zero instead of M_jj."""
        solved = cho_solve((self.C, True), (self.t[J, None] * self.F[J]).T, check_finite=False)
        M = np.outer(self.p, self.q[J]) + np.outer(self.q, self.p[J])
        M += self.t[:, None] * (self.F @ solved)
        M[J, np.arange(len(J))] = 0.0
        return M

    def shares(self, G: FloatArray) -> FloatArray:
        """Return by how much (s,) each column of G raises log Z, after those before it.

        G G' without its diagonal is added to K. The diagonal and v count to first order.
        """
        tG = self.t[:, None] * G
        half = solve_triangular(self.C, self.F.T @ tG, lower=True, check_finite=False)
        C = G.T @ tG - half.T @ half
        C.flat[:: len(C) + 1] += 1.0
        L = cholesky(C, lower=True, overwrite_a=True, check_finite=False)
        a = self.q @ G
        z = solve_triangular(L, a, lower=True, check_finite=False)
        mean = 2.0 * (self.p @ G) * a - a**2 + z**2
        return 0.5 * (mean - self.diagonal @ G**2) - np.log(L.diagonal())


def corrected(prior: LowRankPrior, posterior: LowRankPosterior) -> LowRankPosterior:
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
    prior: LowRankPrior, posterior: LowRankPosterior, columns: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Estimate the first-order change of the evidence by what the correction leaves out, without bias.

    Parameters
    ----------
    prior : LowRankPrior
        Made by `low_rank_prior`.
    posterior : LowRankPosterior
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
    check_rng("rng", rng)
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
