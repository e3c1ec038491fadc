"""Inducing inputs, and their choice among the patterns by a pivoted Cholesky factorisation of a kernel: K ~ F F' + D.

F (n, r) has as its columns what r inducing inputs know of all patterns, and D the variance that they leave, so that all
variances are exact. Only columns of the kernel are evaluated: no (n, n) array is ever made. The inducing inputs are
patterns. Next comes, of a few drawn in proportion to the variance that is left, the one that leaves least. (The one
whose variance is largest, the classical choice, needs up to twice the rank in six dimensions: it takes outliers.)

References
----------
Harbrecht, Peters and Schneider (2012), Applied Numerical Mathematics 62, 428 (the factorisation). Chen, Epperly, Tropp
and Webber (2025), Communications on Pure and Applied Mathematics 78, 995 (random pivots). Snelson and Ghahramani
(2006), NIPS 18, 1257 (the exact diagonal).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from gpcmc._validation import FloatArray, check_positive, check_positive_int
from gpcmc.covariance.kernels import diagonal, evaluate

if TYPE_CHECKING:  # scikit-learn takes half a second
    from sklearn.gaussian_process.kernels import Kernel

#: Patterns that are worked on at once.
BLOCK = 2048
#: Patterns that pivots are chosen from at first.
CANDIDATES = 8000
#: Default share of the prior variance that may be left: the evidence of expectation propagation is within a few
#: hundredths of a nat of the dense one.
TOLERANCE = 1e-4
#: Ranks above need seconds and memory that should be asked for.
MAX_RANK = 2000
_DIAGONAL_BLOCK = 32
_EXHAUSTED = 1e-12  # variance left over the largest one: below, rounding
_TRIALS = 8  # candidates that a pivot is the best of
_SLACK = 1.1  # over the tolerance, and no further round
_ALLOWED = 0.8  # of the largest rank, where the tolerance needs more
_FINER = 0.1  # of the tolerance: what the correction still sees


def check_tolerance(tolerance: object) -> float:
    """Return a share of the prior variance that may be left, as a float.

    Raises
    ------
    ValueError
        If it is not a number above 0 and below 1: a larger one leaves a covariance without any column.
    """
    value = check_positive("tolerance", tolerance)
    if value >= 1.0:
        raise ValueError(
            "tolerance is the share of the prior variance that may be left unexplained: it must be above 0 and below "
            f"1, and 1e-4 is the default; got {tolerance!r}"
        )
    return value


def blocks(n: int, size: int = BLOCK) -> list[slice]:
    """Return slices that cover n patterns."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


@dataclass(frozen=True, slots=True)
class Inducing:
    """Inducing inputs, which a covariance of low rank and its predictions rest on.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    Z : (r, d) array
        Inducing inputs.
    L : (r, r) array
        Lower Cholesky factor of their covariance, noise of a `WhiteKernel` left out.
    pivots : (r,) array of int, optional
        Which patterns they are.
    """

    kernel: Kernel
    Z: FloatArray
    L: FloatArray
    pivots: NDArray[np.intp] | None = None

    def first(self, rank: int) -> Inducing:
        """Return the first ones alone."""
        pivots = None if self.pivots is None else self.pivots[:rank]
        return Inducing(self.kernel, self.Z[:rank], self.L[:rank, :rank], pivots)

    def rows(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return F (n, r) and D (n,) of inputs X (n, d)."""
        F = np.empty((len(X), len(self.Z)))
        for here in blocks(len(X)):
            F[here] = self.coordinates(evaluate(self.kernel, X[here], self.Z).T)
        left = diagonal(self.kernel, X) - np.einsum("ij,ij->i", F, F)
        return F, np.maximum(left, 0.0)

    def coordinates(self, K: FloatArray) -> FloatArray:
        """Return F (t, r) of inputs whose covariances with Z are the columns of K (r, t)."""
        return solve_triangular(self.L, K, lower=True, check_finite=False).T


def inducing_at(kernel: Kernel, Z: FloatArray, pivots: NDArray[np.intp] | None = None) -> Inducing:
    """Return inducing inputs that are given; `pivots` says which patterns they are.

    Raises
    ------
    ValueError
        If their covariance is singular.
    """
    K = evaluate(kernel, Z, Z)
    K.flat[:: len(Z) + 1] *= 1.0 + _EXHAUSTED
    try:
        L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise ValueError(
            f"inducing: the kernel must be positive definite at the {len(Z)} inputs; two of them may be equal"
        ) from error
    return Inducing(kernel, Z, L, pivots)


def pivoted(
    kernel: Kernel,
    X: FloatArray,
    tolerance: float,
    max_rank: int = MAX_RANK,
    *,
    strict: bool = True,
) -> tuple[Inducing, FloatArray, FloatArray, int]:
    """Choose patterns as inducing inputs, until little variance is left.

    The candidates are 8000 of the patterns, and more in further rounds where the variance left at all patterns is above
    the tolerance. They are drawn with a fixed seed: equal arguments give equal bits. The choice goes on to a tenth of
    the tolerance, if the largest rank allows: the columns beyond the tolerance are for the correction.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : (n, d) array
    tolerance : float
        Largest mean of the variance left, over the mean of the prior variance.
    max_rank : int
        Patterns at most.
    strict : bool
        Whether a tolerance that needs more is an error. Else four fifths of `max_rank` take its place, and the others
        are for the correction, which then says how much is left out.

    Returns
    -------
    inducing : Inducing
    F, D : (n, r), (n,) arrays
        With all of them.
    rank : int
        How many of the first columns meet the tolerance.

    Raises
    ------
    ValueError
        If `tolerance` is not between 0 and 1, `max_rank` not at least one, the kernel has no variance, or the tolerance
        needs a larger rank and that is an error; the message then says which.
    """
    check_tolerance(tolerance)
    check_positive_int("max_rank", max_rank)
    rng = np.random.default_rng(0)
    prior = _smooth_diagonal(kernel, X)
    noise = np.maximum(diagonal(kernel, X) - prior, 0.0)
    variance, total = prior, float(prior.sum())
    if not total > 0.0:
        raise ValueError("kernel must have a variance above zero at some pattern")
    pivots, F, found, aim = np.empty(0, dtype=np.intp), np.empty((len(X), 0)), 1.0, tolerance
    while True:
        pool, weight = _pool(variance, rng)
        fresh = ~np.isin(pool, pivots)  # of these nothing but rounding is left
        pool, weight = pool[fresh], weight[fresh]
        if not len(pool):
            break
        candidates = _Candidates(X[pool], F[pool].T, variance[pool], weight)
        chosen, left = _choose(kernel, candidates, aim / found, max_rank - len(pivots), rng)
        pivots = np.concatenate([pivots, pool[chosen]])
        inducing = inducing_at(kernel, X[pivots], pivots)
        F = inducing.rows(X)[0]
        variance = np.maximum(prior - np.einsum("ij,ij->i", F, F), 0.0)
        found = float(variance.sum()) / total
        if found <= _SLACK * aim or len(pivots) >= max_rank or not len(chosen):
            if aim < tolerance or found <= aim * _FINER or not len(chosen):
                break
            if found > _SLACK * tolerance and not strict:
                return inducing, F, variance + noise, max(int(_ALLOWED * len(pivots)), 1)
            if found > _SLACK * tolerance:
                needed = _rank_needed(left, found, len(pivots), tolerance)
                raise ValueError(
                    f"tolerance={tolerance:g} needs a rank of about {needed}; max_rank={max_rank} leaves "
                    f"{found:.2g} of the variance: raise tolerance or max_rank, or use the dense covariance"
                )
            if len(pivots) >= max_rank:
                break
            aim = _FINER * tolerance
    shares = 1.0 - np.cumsum(np.einsum("ij,ij->j", F, F)) / total
    rank = 1 + int(np.argmax(shares <= max(_SLACK * tolerance, shares[-1])))
    return inducing, F, variance + noise, rank


def _pool(variance: FloatArray, rng: np.random.Generator) -> tuple[NDArray[np.intp], FloatArray]:
    """Draw candidates about in proportion to the variance left; also return for how many patterns each stands."""
    there = np.flatnonzero(variance)
    if len(there) <= CANDIDATES:
        return there, np.ones(len(there))
    # the first arrivals of Poisson processes: without replacement
    arrival = rng.exponential(size=len(there)) / variance[there]
    order = np.argpartition(arrival, CANDIDATES)
    pool = there[order[:CANDIDATES]]
    return pool, -1.0 / np.expm1(-variance[pool] * arrival[order[CANDIDATES]])


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Patterns (m, d) that pivots are chosen from, what earlier pivots know of them (k, m) and leave (m,).

    Each stands for `weight` (m,) patterns.
    """

    X: FloatArray
    known: FloatArray
    variance: FloatArray
    weight: FloatArray


def _choose(
    kernel: Kernel, candidates: _Candidates, aim: float, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], FloatArray]:
    """Choose pivots among candidates: of a few in proportion to the variance left, the one that leaves least.

    Parameters
    ----------
    aim : float
        Share of the variance that is to be left.
    most : int
        Pivots at most.

    Returns
    -------
    pivots : (r,) array of int
    left : (r + 1,) array
        Share left with 0, 1, ... of them.
    """
    X, known, variance = candidates.X, candidates.known, candidates.variance.copy()
    weight = candidates.weight / (candidates.weight @ variance)
    n, k = len(X), len(known)
    floor = _EXHAUSTED * float(diagonal(kernel, X).max())
    F = np.concatenate([known, np.empty((min(64, n), n))])  # a row a pivot
    chosen: list[int] = []
    left = [1.0]
    while left[-1] > aim and len(chosen) < most:
        variance[variance <= floor] = 0.0
        if not (total := variance.sum()) > 0.0:
            break
        few = rng.choice(n, size=_TRIALS, p=variance / total)
        columns = evaluate(kernel, X[few], X) - F[:k, few].T @ F[:k]
        gain = (columns**2) @ weight / variance[few]
        best = int(np.argmax(gain))
        j = int(few[best])
        if k == len(F):
            F = np.concatenate([F, np.empty((k, n))])
        F[k] = columns[best] / np.sqrt(variance[j])
        variance -= F[k] ** 2
        variance[j] = 0.0
        chosen.append(j)
        k += 1
        left.append(float(np.maximum(variance, 0.0) @ weight))
    return np.array(chosen, dtype=np.intp), np.array(left)


def _smooth_diagonal(kernel: Kernel, X: FloatArray) -> FloatArray:
    """Return the prior variances (n,) without the noise of a `WhiteKernel`, which no other pattern tells of."""
    variance = np.empty(len(X))
    for here in blocks(len(X), _DIAGONAL_BLOCK):
        variance[here] = evaluate(kernel, X[here], X[here]).diagonal()
    return variance


def _rank_needed(left: FloatArray, found: float, rank: int, tolerance: float) -> int:
    """Extrapolate: the share left falls as exp(-c r^(1/2)) in the plane, and slower in more dimensions."""
    first = len(left) // 2
    roots = np.sqrt(rank - len(left) + 1.0 + np.array([first, len(left) - 1]))
    slope = np.log(left[-1] / left[first]) / max(roots[1] - roots[0], 1e-9)
    more = np.log(tolerance / found) / min(slope, -1e-3)
    return int(np.ceil((np.sqrt(rank) + more) ** 2))
