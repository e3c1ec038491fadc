"""Expectation propagation for the probit model under a covariance of low rank.

All sites are updated at once, from one Gaussian update of 2 n r^2 flops, and Anderson's extrapolation takes the place
of damping. The fixed points are those of the sequential algorithm. Sweeps start from the sites of a half of the rank,
and these from a quarter, where they cost a fourth and a sixteenth. For moment matching in the cavity's mean and
variance see `gpcmc.inference.ep`.

References
----------
Rasmussen and Williams (2006), Algorithm 3.5, Eqs. (3.56)-(3.59), (3.65). Walker and Ni (2011), SIAM Journal on
Numerical Analysis 49, 1715 (Anderson). Van Gerven, Cseke, de Lange and Heskes (2010), NeuroImage 50, 150
(parallel updates).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np
from scipy.special import log_ndtr

from gpcmc._validation import FloatArray
from gpcmc.gp.likelihood import hazard
from gpcmc.inference.interface import ConvergenceError, Posterior
from gpcmc.lowrank.covariance import LowRank
from gpcmc.lowrank.gaussian import LowRankPosterior, Update

#: Sites that move a marginal by less change the evidence by less than 1e-9 of it.
TOLERANCE = 1e-4
_ROUGH = 1e-2  # the same, for sites to start from
_DEPTH = 4  # updates that the extrapolation looks back on
_FAR = 0.5  # where sites move so much, the last updates say little of the next
_NESTED = 160  # ranks below start from nothing
_PATIENCE = 8  # sweeps without a record before the steps get shorter
_LARGEST = 1.0 - 1e-12  # precision of a probit site


def expectation_propagation(
    K: LowRank,
    y: FloatArray,
    *,
    tolerance: float = TOLERANCE,
    max_sweeps: int = 500,
    start: LowRankPosterior | None = None,
) -> LowRankPosterior:
    """Match all moments, until no site moves its own marginal by more than the tolerance.

    Parameters
    ----------
    K : LowRank
    y : (n,) array
        Labels -1/+1.
    tolerance : float
        Of the change of precision times variance, and of nu times standard deviation.
    max_sweeps : int
        Sweeps at most.
    start : LowRankPosterior, optional
        Of another covariance and the same labels.

    Raises
    ------
    ConvergenceError
        If the tolerance is not met; it carries the last state.
    """
    n = len(y)
    sites = np.zeros((2, n))
    if start is not None:
        sites = np.array([start.S, start.a + start.S * start.mean])
    elif K.rank >= _NESTED:
        for rank in (K.rank // 4, K.rank // 2):
            less = K.truncated(rank)
            rough = iterate(partial(Update.of, less), y, sites, _ROUGH, max_sweeps)
            sites = rough.sites
    found = iterate(partial(Update.of, K), y, sites, tolerance, max_sweeps)
    tau, nu = found.sites
    update = found.update
    posterior = LowRankPosterior(
        log_evidence=found.log_evidence,
        mean=update.mean,
        variance=update.variance,
        a=nu - tau * update.mean,
        S=tau,
        b=update.b,
        C=update.C,
        work={"sweeps": found.sweeps},
    )
    check_settled(found, tolerance, posterior)
    return posterior


class Moments(Protocol):
    """What a sweep needs of the Gaussian posterior that sites make."""

    @property
    def log_det(self) -> float:
        """Log |I + S^(1/2) K S^(1/2)|."""

    @property
    def mean(self) -> FloatArray:
        """Of the latent values (n,)."""

    @property
    def variance(self) -> FloatArray:
        """Of the latent values (n,)."""


M = TypeVar("M", bound=Moments)


@dataclass(frozen=True, slots=True)
class State(Generic[M]):
    """Where an iteration stopped: sites (2, n) of tau and nu, the Gaussian they make, log Z, and the last move."""

    sites: FloatArray
    update: M
    log_evidence: float
    moved: float
    sweeps: int


def check_settled(found: State[M], tolerance: float, posterior: Posterior) -> None:
    """Refuse an iteration that stopped at its limit; the error carries the posterior."""
    if found.moved > tolerance:
        raise ConvergenceError(
            f"ep: sites still move by {found.moved:.3g} after {found.sweeps} sweeps; raise max_sweeps or "
            "tolerance",
            posterior,
        )


def iterate(
    condition: Callable[[FloatArray, FloatArray], M],
    y: FloatArray,
    sites: FloatArray,
    tolerance: float,
    max_sweeps: int,
) -> State[M]:
    """Sweep until nothing moves.

    Parameters
    ----------
    condition : callable
        Takes tau and nu (n,), and returns the Gaussian that they make.
    y : (n,) array
        Labels -1/+1.
    sites : (2, n) array
        To start from.
    tolerance, max_sweeps
        As of `expectation_propagation`.
    """
    tried: list[FloatArray] = []
    matched: list[FloatArray] = []
    best, since, step = np.inf, 0, 1.0
    for sweep in range(1, max_sweeps + 1):
        update = condition(*sites)
        target, log_z = _match(y, sites, update)
        scale = np.array([update.variance, np.sqrt(update.variance)])
        moved = float(np.max(np.abs(target - sites) * scale))
        if moved <= tolerance or sweep == max_sweeps:
            break
        since = 0 if moved < best else since + 1
        best = min(best, moved)
        if since >= _PATIENCE:  # it circles: shorter steps, and a fresh start of the extrapolation
            step, since, best, tried, matched = 0.5 * step, 0, moved, [], []
        tried, matched = [*tried[-_DEPTH:], sites], [*matched[-_DEPTH:], target]
        sites = sites + step * (target - sites)
        if moved > _FAR:
            tried, matched = [], []
        elif len(tried) > 1:
            sites = _extrapolated(tried, matched, scale, step)
        sites[0] = np.clip(sites[0], 0.0, _LARGEST)
    return State(sites, update, log_z, moved, sweep)


def _extrapolated(
    tried: list[FloatArray], matched: list[FloatArray], scale: FloatArray, step: float
) -> FloatArray:
    """Return the combination of the last updates whose residual is least, in units of the marginals."""
    residual = np.array([((g - x) * scale).ravel() for x, g in zip(tried, matched, strict=True)])
    change = np.diff(residual, axis=0)
    gamma = np.linalg.lstsq(change.T, residual[-1], rcond=1e-8)[0]
    moved = [x + step * (g - x) for x, g in zip(tried, matched, strict=True)]
    return moved[-1] - np.tensordot(gamma, np.diff(np.array(moved), axis=0), 1)


def _match(y: FloatArray, sites: FloatArray, update: Moments) -> tuple[FloatArray, float]:
    """Return the sites (2, n) that match moments, and log Z at those given (Eqs. 3.58, 3.59, 3.65)."""
    tau, nu = sites
    kept = 1.0 - update.variance * tau
    mean, variance = (update.mean - update.variance * nu) / kept, update.variance / kept
    joint = 1.0 + tau * variance
    scale = np.sqrt(1.0 + variance)
    z = y * mean / scale
    log_z = (
        0.5 * np.sum(np.log(joint))
        - 0.5 * update.log_det
        + 0.5 * (nu @ update.mean - np.sum(nu**2 * variance / joint))
        + 0.5 * np.sum(mean * (tau * mean - 2.0 * nu) / joint)
        + np.sum(log_ndtr(z))
    )
    r, w = hazard(z)
    shrunk = 1.0 + variance * (1.0 - w)
    return np.array([w / shrunk, (y * r * scale + mean * w) / shrunk]), float(log_z)
