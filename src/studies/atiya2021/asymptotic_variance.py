r"""The asymptotic variance of the sampler's estimate, from the covariance alone, by expectation propagation.

With M samples, M times the relative variance of the estimate of P(v > 0), v ~ N(0, R), tends to

    sum over i of (1 - P_i) / P_i + c_i^2 (1 / P_i - P_i)

for the hard count, where P_i = P(v_i > 0 | v_1, ..., v_{i-1} > 0), and c_i is the coefficient of variation of
h_i = P(v_{i+1}, ..., v_n > 0 | v_1, ..., v_i) over samples that meet the first i conditions. For the soft count the
second terms are the same, and what stands for the first ones is smaller.

The square of h_i is the probability that two copies of v_{i+1}, ..., v_n, independent given v_1, ..., v_i, are both
positive. So c_i is a ratio of orthant probabilities: with Z_i = P(v_1, ..., v_i > 0), and Z_{i,2} that of v_1, ..., v_i
and two copies of the others,

    1 + c_i^2 = Z_{i,2} Z_i / Z_n^2.

Expectation propagation gives each. Both copies have the same sites, so that a sweep with copies factorises two
matrices, of n and of n - i rows: one for the sum of the copies, one for their difference.

References
----------
Chopin (2004), Annals of Statistics 32, 2385, for the central limit theorem; Cunningham, Hennig and Lacoste-Julien
(2011), "Gaussian probabilities and expectation propagation".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri
from scipy.special import log_ndtr

from gpcmc.likelihood.probit import hazard

Array = NDArray[np.float64]

_MAX_SWEEPS = 500
_LEAST = 1e-300  # of a site's precision, which divides


class Variance(NamedTuple):
    """M times the relative variance of the sampler's estimate, for large M.

    Attributes
    ----------
    independent : float
        What independent coordinates would have (AFA, Eq. 44): the sum of (1 - P_i) / P_i.
    coupling : float
        What dependence adds: the sum of c_i^2 (1 / P_i - P_i).
    largest : float
        The largest log(1 + c_i^2) of those computed.
    log_probability : float
        Log of P(v > 0), by expectation propagation.
    """

    independent: float
    coupling: float
    largest: float
    log_probability: float

    @property
    def hard(self) -> float:
        """The variance with the hard count. So many samples give a relative standard deviation of one."""
        return self.independent + self.coupling


class Orthant(NamedTuple):
    """Log of an orthant probability, and the sites (2, n) that it comes from: precisions tau, and shifts nu."""

    log_probability: float
    sites: Array


def asymptotic_variance(R: Array, *, stages: int = 12, tolerance: float = 1e-3) -> Variance:
    """Predict the variance of the sampler on P(v > 0), v ~ N(0, R), without drawing a sample.

    Parameters
    ----------
    R : (n, n) array
        Positive definite covariance, n >= 2, in the order in which the sampler takes the coordinates.
    stages : int
        In how many equal parts the coordinates fall at most. c_i is computed where parts meet, and log(1 + c_i^2) is
        interpolated linearly.
    tolerance : float
        As in `orthant`.

    Raises
    ------
    ValueError
        If `R` is no square matrix of two rows or more, or there are fewer than two stages.
    """
    n = len(R)
    if R.shape != (n, n) or n < 2:
        raise ValueError(f"R must have two rows or more, and as many columns; got shape {R.shape}")
    if stages < 2:
        raise ValueError(f"stages must be 2 or more; got {stages}")
    whole = orthant(R, n, tolerance=tolerance)
    meet = np.unique(np.round(n * np.arange(1, stages) / stages).astype(int))
    meet = meet[(meet > 0) & (meet < n)]
    log_stage, log_ratio, last = np.zeros(n), [], 0
    for i in [*meet, n]:
        first = whole
        if i < n:
            first = orthant(R[:i, :i], i, whole.sites[:, :i], tolerance=tolerance)
            twice = orthant(R, i, whole.sites, tolerance=tolerance)
            gain = twice.log_probability + first.log_probability - 2.0 * whole.log_probability
            log_ratio.append(max(gain, 0.0))  # a variance is not negative; EP's errors may be
        log_stage[last:i] = _stage_probabilities(R[:i, :i], first.sites)[last:]
        last = i
    known = np.concatenate([[0.0], log_ratio, [0.0]])
    squares = np.expm1(np.interp(np.arange(1, n + 1), [0, *meet, n], known))
    P = np.exp(log_stage)
    return Variance(
        independent=float(np.sum((1.0 - P) / P)),
        coupling=float(np.sum(squares * (1.0 / P - P))),
        largest=max(log_ratio),
        log_probability=whole.log_probability,
    )


def shared_information(R: Array) -> float:
    """Return what the first coordinates of N(0, R) tell of the others, in nats, for the cut at which that is most.

    Averaged over labels that the model draws, the Kullback-Leibler divergence of the law of v_1, ..., v_i given all
    conditions from that given the first i is what the later conditions tell of v_1, ..., v_i; no more than the later
    coordinates tell themselves.
    """
    first = np.cumsum(np.log(cholesky(R, lower=True).diagonal()))
    later = np.cumsum(np.log(cholesky(R[::-1, ::-1], lower=True).diagonal()))[::-1]
    return float(np.max(first[:-1] + later[1:])) - float(first[-1])


def orthant(R: Array, i: int, sites: Array | None = None, *, tolerance: float = 1e-3) -> Orthant:
    """Approximate P(v > 0), v ~ N(0, R), with two copies of all coordinates but the first i.

    All sites are moved at once, which settles here without damping: R is far from singular, as each v_i has noise of
    its own.

    Parameters
    ----------
    R : (n, n) array
    i : int
        Coordinates that there are once, 1 to n. The others are independent copies given these.
    sites : (2, n) array, optional
        Where to begin.
    tolerance : float
        Sweeps stop when no site moves its marginal by more than this: precisions times variance, shifts times standard
        deviation. The log probability is flat in the sites, and good to about the square of it.

    Raises
    ------
    RuntimeError
        If 500 sweeps do not settle.
    """
    n = len(R)
    tau, nu = np.zeros((2, n)) if sites is None else sites
    later, root = slice(i, n), np.sqrt(np.repeat([1.0, 2.0], [i, n - i]))
    total, apart = R, R[later, later]
    if i < n:
        shared = R[:i, later].T @ cho_solve(cho_factor(R[:i, :i], lower=True), R[:i, later])
        total = R * np.outer(root, root)  # of the first, and of the sum of copies over sqrt(2)
        total[later, later] = apart + shared
        apart = apart - shared
    for _ in range(_MAX_SWEEPS):
        variance, mean, log_det = _conditioned(total, tau, root * nu)
        mean /= root
        if i < n:
            own, _, log_det_apart = _conditioned(apart, tau[later], np.zeros(n - i))
            variance[later] = 0.5 * (variance[later] + own)
            log_det += log_det_apart
        kept = 1.0 - tau * variance
        s2, m = variance / kept, (mean - variance * nu) / kept
        z = m / np.sqrt(s2)
        ratio, w = hazard(z)
        joint = 1.0 + tau * s2
        terms = (m * (tau * m - 2.0 * nu) - nu**2 * s2) / joint + nu * mean
        terms = log_ndtr(z) + 0.5 * (np.log(joint) + terms)
        matched = np.array([w / s2, ratio / np.sqrt(s2) + m * w / s2]) / (1.0 - w)
        moves = np.abs(matched - [tau, nu]) * [variance, np.sqrt(variance)]
        if np.max(moves) <= tolerance:
            return Orthant(float(root**2 @ terms) - 0.5 * log_det, np.array([tau, nu]))
        tau, nu = matched
    raise RuntimeError(f"sites still move by {np.max(moves):.3g} after {_MAX_SWEEPS} sweeps")


def _conditioned(R: Array, tau: Array, nu: Array) -> tuple[Array, Array, float]:
    """Variances and means (n,) of N(0, R) given sites, and log det(1 + tau R) (Rasmussen and Williams, Eq. 3.67)."""
    s = np.sqrt(tau)
    B = s[:, None] * R * s
    B.flat[:: len(B) + 1] += 1.0
    L = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    inverse = dtrtri(L, lower=1)[0]
    kept = np.einsum("ij,ij->j", inverse, inverse)
    variance = np.where(tau > 0.0, (1.0 - kept) / np.maximum(tau, _LEAST), R.diagonal())
    shift = nu - s * (inverse.T @ (inverse @ (s * (R @ nu))))
    return variance, R @ shift, 2.0 * float(np.sum(np.log(L.diagonal())))


def _stage_probabilities(R: Array, sites: Array) -> Array:
    """Log of P(v_i > 0) (n,) given the sites of all coordinates before i, which stand for their conditions."""
    tau, nu = sites
    s = np.sqrt(np.maximum(tau, _LEAST))
    B = s[:, None] * R * s
    B.flat[:: len(B) + 1] += 1.0
    L = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    d = L.diagonal()
    # innovations of nu / tau, which is as if observed with noise of variance 1 / tau
    mean = (nu / s - d * solve_triangular(L, nu / s, lower=True, check_finite=False)) / s
    deviation = np.sqrt((d**2 - 1.0) / s**2)
    found: Array = log_ndtr(mean / deviation)
    return found
