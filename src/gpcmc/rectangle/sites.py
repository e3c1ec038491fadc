"""Gaussian sites that stand for limits, by expectation propagation.

Any sites make a valid proposal (`proposals.twisted`). They need not have converged, and the iteration is stopped where
a further change would not be noticed.

References
----------
Cunningham, Hennig and Lacoste-Julien (2011), "Gaussian probabilities and expectation propagation".
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray
from gpcmc.covariance.factor import DenseFactor
from gpcmc.rectangle.limits import all_moments

_MAX_SWEEPS = 60
_SETTLED = 1e-3  # change of a site, in standard deviations of its coordinate, that is of no matter to a proposal
_SHARPEST = 1e6  # of a proposal's site, as a precision over that of its coordinate given all others


@one_thread()
def propagate(
    factor: DenseFactor, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, int]:
    """Return sites nu and tau (n,) for limits (n,), lower < upper, and the number of sweeps.

    Steps are damped when they begin to grow.
    """
    n = len(factor)
    nu, tau = np.zeros(n), np.zeros(n)
    damping, last = 1.0, np.inf
    for sweep in range(1, _MAX_SWEEPS + 1):  # noqa: B007
        found = factor.sited(nu, tau)
        own = cast(DenseFactor, found.factor)
        mean, variance = found.mean, own.d**2 * np.einsum("ij,ij->i", own.G, own.G)
        kept = 1.0 - tau * variance
        if not (kept > 0).all():  # lost in rounding
            break
        s2, m = variance / kept, (mean - nu * variance) / kept
        s = np.sqrt(s2)
        _, psi, w, ratio = all_moments((lower - m) / s, (upper - m) / s)
        rest = s2 * np.maximum(ratio, 1e-20)
        new_tau, new_nu = w / rest, (m * w + s * psi) / rest
        change = max(
            float(np.max(np.abs(new_tau - tau) * variance)),
            float(np.max(np.abs(new_nu - nu - (new_tau - tau) * mean) * np.sqrt(variance))),
        )
        if not np.isfinite(change):
            break
        if change > last:
            damping = max(0.5 * damping, 0.1)
        last = change
        tau += damping * (new_tau - tau)
        nu += damping * (new_nu - nu)
        if change < _SETTLED:
            break
    return nu, tau, sweep


def held(factor: DenseFactor, nu: FloatArray, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sites (n,) that are not so sharp that a proposal's weights are lost in rounding.

    Weights are off by about tau times the variance times machine precision. A site for two limits that are very close
    is sharp, and a proposal is as good with a wider one: each coordinate is drawn between its own limits, and what a
    site tells the coordinates before it need not be known to a thousandth of what these leave to it. The centres stay.
    """
    if not (tau * factor.d**2 * np.einsum("ij,ij->i", factor.G, factor.G) > _SHARPEST).any():
        return nu, tau
    root = factor.solve(np.eye(len(factor)))  # L^-1: its columns' lengths are those precisions
    sharpest = _SHARPEST * np.einsum("ij,ij->j", root, root)
    return nu * sharpest / np.maximum(tau, sharpest), np.minimum(tau, sharpest)
