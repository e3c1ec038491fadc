"""Laplace's approximation under a covariance of low rank: probit and logistic likelihoods.

Newton's iteration is that of `gpcmc.inference.laplace`; a step takes one factorisation of order r, n r^2 flops.

References
----------
Rasmussen and Williams (2006), Algorithms 3.1, 5.1, Eqs. (3.32), (5.22)-(5.24).
"""

from __future__ import annotations

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.gp.likelihood import Likelihood
from gpcmc.inference.interface import ConvergenceError
from gpcmc.lowrank.covariance import LowRank
from gpcmc.lowrank.gaussian import LowRankPosterior, NoisePrecision, Update

_HALVINGS = 40


def laplace(
    K: LowRank,
    y: FloatArray,
    likelihood: Likelihood,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 200,
    start: LowRankPosterior | None = None,
) -> LowRankPosterior:
    """Find the mode of p(f | y) and the Gaussian there.

    Parameters
    ----------
    K : LowRank
    y : (n,) array
        Labels -1/+1.
    likelihood : Likelihood
    tolerance : float
        No entry of the gradient of log p(f | y) exceeds this times ``max(1, max |a|)``, rounding apart.
    max_iterations : int
        Newton steps at most.
    start : LowRankPosterior, optional
        Of another covariance and the same labels.

    Raises
    ------
    ConvergenceError
        If the tolerance is not met; it carries the last iterate.
    """

    def objective(a: FloatArray, f: FloatArray) -> float:
        return float(np.sum(likelihood.log_likelihood(y, f)) - 0.5 * a @ f)

    a, f = np.zeros(len(y)), np.zeros(len(y))
    psi = objective(a, f)
    if start is not None and objective(start.a, K @ start.a) > psi:
        a, f = start.a, K @ start.a
        psi = objective(a, f)
    eps = np.sqrt(len(y)) * np.finfo(float).eps
    size = np.sqrt(np.einsum("ij,ij->i", K.F, K.F) + K.D)
    for step in range(max_iterations + 1):
        gradient, W = likelihood.derivatives(y, f)
        rounding = eps * size * (size @ np.abs(a))  # of f = K a
        steepness = np.abs(gradient - a)
        flat = steepness <= tolerance * max(1.0, np.max(np.abs(a))) + W * rounding
        if (done := bool(flat.all())) or step == max_iterations:
            break
        # the dense step, from what is left of the gradient: its rounding falls with that
        left = gradient - a
        direction = left - NoisePrecision.of(K, W) @ (K @ left)
        for halving in range(_HALVINGS):
            a_new = a + 0.5**halving * direction
            f_new = K @ a_new
            psi_new = objective(a_new, f_new)
            if psi_new >= psi - eps * abs(psi) - np.abs(a) @ rounding:
                break
        else:
            break  # no ascent along a Newton direction: the iterate is as good as it gets
        a, f, psi = a_new, f_new, psi_new
    update = Update.of(K, W, W * f + a)
    s = 0.5 * update.variance * likelihood.third_derivative(y, f)
    posterior = LowRankPosterior(
        log_evidence=psi - 0.5 * update.log_det,
        mean=f,
        variance=update.variance,
        a=a,
        S=W,
        b=update.b,
        C=update.C,
        v=s - NoisePrecision(K.F, W / (1.0 + W * K.D), update.C) @ (K @ s),
        work={"newton_steps": step},
        likelihood=likelihood,
    )
    if not done:
        raise ConvergenceError(
            f"laplace: Newton stopped after {step} steps with gradient {steepness.max():.3g}; raise "
            "max_iterations or tolerance",
            posterior,
        )
    return posterior
