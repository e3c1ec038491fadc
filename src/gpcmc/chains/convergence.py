"""Whether Markov chains have converged: effective sample sizes and R-hat of the worst quantity.

References
----------
Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Bayesian Analysis 16, 667 (rank R-hat, bulk
effective sample size).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpcmc._validation import FloatArray

_MONITORED = 50  # latent values whose convergence is judged
_GLANCE = 5000  # draws of all chains, through which each of them is looked at
_WORST = 5  # that many are then looked at with all draws
_AXES = {"chain_axis": 0, "draw_axis": 1}


def monitored(n: int) -> NDArray[np.intp]:
    """Return which of n latent values are judged: at most 50, evenly chosen."""
    return np.unique(np.linspace(0, n - 1, min(n, _MONITORED)).astype(np.intp))


def convergence(log_likelihood: FloatArray, latent: FloatArray) -> dict[str, float]:
    """Return the smallest bulk effective sample size and the largest rank R-hat of latent values.

    Of several chains, or of the two halves of one. A quantity that does not vary at all is known
    exactly, and left out. Ranking all draws of all quantities would take longer than good chains do:
    each is looked at through some of its draws, and the effective samples of those that look worst
    are found from all.

    Parameters
    ----------
    log_likelihood : (c, s) array
        Of the kept draws of c chains.
    latent : (c, s, k) array
        Latent values, or margins, at k training inputs (`monitored`).

    Returns
    -------
    dict
        ``effective_samples`` and ``r_hat``.
    """
    series = np.concatenate([log_likelihood[:, :, None], latent], axis=2)
    if len(series) == 1:
        half = series.shape[1] // 2
        series = series[0, : 2 * half].reshape(2, half, -1)
    series = series[:, :, np.ptp(series, axis=(0, 1)) > 0.0]
    if series.shape[2] == 0:
        return {"effective_samples": float(log_likelihood.size), "r_hat": 1.0}
    glance = series[:, :: max(1, series[:, :, 0].size // _GLANCE)]
    r_hat, ess = _r_hat(glance), _bulk_samples(glance, undefined=1.0)
    if glance.shape[1] < series.shape[1]:
        ess = _bulk_samples(series[:, :, np.argsort(ess)[:_WORST]], undefined=1.0)
    return {"effective_samples": float(np.min(ess)), "r_hat": r_hat}


def hyperparameter_convergence(theta: FloatArray) -> dict[str, float]:
    """Return the same of the worst hyperparameter, from all draws.

    A chain that has not moved has no effective samples and an infinite R-hat.

    Parameters
    ----------
    theta : (c, s, p) array
        Draws of c chains.
    """
    if (np.ptp(theta, axis=1) == 0).any():
        return {"effective_samples": 0.0, "r_hat": np.inf}
    ess = _bulk_samples(theta, undefined=0.0)
    return {"effective_samples": float(np.min(ess)), "r_hat": _r_hat(theta)}


def mean_samples(series: FloatArray) -> FloatArray:
    """Return effective sample sizes (k,) of the means of (c, s, k) series of c chains."""
    from arviz_stats.base import array_stats

    return array_stats.ess(series, method="mean", **_AXES)


def _bulk_samples(series: FloatArray, *, undefined: float) -> FloatArray:
    """Return bulk effective sample sizes (k,); `undefined` where half a chain has not moved."""
    from arviz_stats.base import array_stats  # half a second, and only chains need it

    with np.errstate(all="ignore"):
        return np.nan_to_num(array_stats.ess(series, method="bulk", **_AXES), nan=undefined)


def _r_hat(series: FloatArray) -> float:
    """Return the largest rank R-hat of (c, s, k) series; infinite where half a chain has not moved."""
    from arviz_stats.base import array_stats

    with np.errstate(all="ignore"):
        r_hat = array_stats.rhat(series, method="rank", **_AXES)
    return float(np.max(np.nan_to_num(r_hat, nan=np.inf, posinf=np.inf)))
