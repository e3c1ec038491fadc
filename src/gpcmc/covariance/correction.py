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

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_positive_int, check_rng
from gpcmc.covariance.form import Correction, GradientMatrix
from gpcmc.covariance.kernels import evaluate
from gpcmc.covariance.pivoted import blocks

if TYPE_CHECKING:
    from gpcmc.covariance.lowrank import LowRank

#: Patterns up to which every column of the error is evaluated.
EXACT = 2000
_COLUMNS = 128  # at once


def correction_of(K: LowRank, M: GradientMatrix) -> Correction:
    """Return what K leaves out of the evidence whose gradient matrix is M.

    The rest is the part of the correction that the second half of the further columns made (with up to 2000 patterns:
    that and what is beyond): what is left out is about as large at most. The diagnostics are ``rank``, that of F;
    ``residual``, the mean of D over the mean of the prior variance; and, with further columns, ``correction`` and
    ``correction_rest``. Without further columns nothing is corrected.
    """
    found = {
        "rank": float(K.rank),
        "residual": float(K.D.mean()) / max(float(np.mean(K.diagonal)), 1e-300),
    }
    if K.finer is None:
        return Correction(diagnostics=found)
    by_column = shares(M, K.finer.F[:, K.rank :])
    total, rest = float(by_column.sum()), float(by_column[len(by_column) // 2 :].sum())
    if len(K) <= EXACT:
        beyond = float(_columns_beyond(K, M, np.arange(len(K))).sum())
        total, rest = total + beyond, rest + beyond
    return Correction(total, rest, found | {"correction": total, "correction_rest": rest})


def shares(M: GradientMatrix, G: FloatArray) -> FloatArray:
    """Return by how much (s,) each column of G (n, s) raises log Z, after those before it.

    G G' without its diagonal is added to K. The diagonal and the moving mode count to first order.
    """
    V, C_A, F = M.conditioned.V, M.conditioned.C, M.conditioned.K.F
    k, r, s = len(V), F.shape[1], G.shape[1]
    if not s:
        return np.zeros(0)
    # the functions of a column stand together
    across, own = np.empty((k, r, s, k)), np.empty((s, k, s, k))
    for c in range(k):
        for d in range(k):
            VG = V[c, d][:, None] * G
            across[c, :, :, d], own[:, c, :, d] = F.T @ VG, G.T @ VG
    half = solve_triangular(C_A, across.reshape(k * r, s * k), lower=True, check_finite=False)
    C = own.reshape(s * k, s * k) - half.T @ half
    C.flat[:: len(C) + 1] += 1.0
    L = cholesky(C, lower=True, overwrite_a=True, check_finite=False)
    a, p = (M.q @ G).T, (M.p @ G).T
    z = solve_triangular(L, a.ravel(), lower=True, check_finite=False).reshape(s, k)
    mean = np.sum(2.0 * p * a - a**2 + z**2, axis=1)
    determinant = np.log(L.diagonal()).reshape(s, k).sum(axis=1)
    return 0.5 * (mean - M.diagonal @ G**2) - determinant


def columns(M: GradientMatrix, J: NDArray[np.intp]) -> FloatArray:
    """Return M (n, m) at columns J, with zero instead of M_jj."""
    V, C, F = M.conditioned.V, M.conditioned.C, M.conditioned.K.F
    rows = F[J]
    found = M.p.T @ M.q[:, J] + M.q.T @ M.p[:, J]
    for of_class in V:
        right = np.concatenate([(v[J, None] * rows).T for v in of_class])
        solved = cho_solve((C, True), right, check_finite=False)
        for v, u in zip(of_class, np.split(solved, len(V)), strict=True):
            found += v[:, None] * (F @ u)
    found[J, np.arange(len(J))] = 0.0
    return found


@one_thread()
def random_columns(
    K: LowRank, M: GradientMatrix, number: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Estimate the first-order change of the evidence by what the correction leaves out, without bias.

    Parameters
    ----------
    K : LowRank
        Made from a kernel by choice of inducing inputs.
    M : GradientMatrix
        Of a posterior of that covariance: ``method.gradient(K, y, posterior)``.
    number : int
        Columns of the error that are evaluated, of n; drawn without replacement.
    rng : numpy.random.Generator

    Returns
    -------
    change, standard_error : float
        In nats. The standard error is 0 with all n columns.

    Raises
    ------
    ValueError
        If `number` is not between 2 and n, or the covariance has no inducing inputs that were chosen.
    """
    rng = check_rng("rng", rng)
    n = len(K)
    if not 2 <= check_positive_int("number", number) <= n:
        raise ValueError(f"number must be between 2 and n = {n}; got {number}")
    if K.finer is None:
        raise ValueError(
            "the covariance must be made by gpcmc.gp.prior(kernel, X, covariance='low-rank') without inducing inputs"
        )
    J = rng.choice(n, number, replace=False)
    sums = _columns_beyond(K, M, J)
    error = np.std(sums, ddof=1) * np.sqrt((1.0 - number / n) / number)
    return float(n * sums.mean()), float(n * error)


def _columns_beyond(K: LowRank, M: GradientMatrix, J: NDArray[np.intp]) -> FloatArray:
    """Return sum_i M_ij E_ij / 2 (m,) for columns j, E what the finer covariance leaves of the kernel."""
    assert K.kernel is not None and K.finer is not None
    X, F = K.X, K.finer.F
    sums = np.empty(len(J))
    for start in range(0, len(J), _COLUMNS):
        some = J[start : start + _COLUMNS]
        of_M, total = columns(M, some), np.zeros(len(some))
        for here in blocks(len(X)):
            E = evaluate(K.kernel, X[here], X[some]) - F[here] @ F[some].T
            total += np.einsum("ij,ij->j", of_M[here], E)
        sums[start : start + len(some)] = 0.5 * total
    return sums
