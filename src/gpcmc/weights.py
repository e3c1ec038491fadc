"""What weights of samples say of themselves: effective samples, Pareto k-hat, and whether to believe their average.

And by what few values lengthen a standard error (`student_factor`).

The fit of the tail is that of Zhang and Stephens (2009), with the prior of Vehtari et al. (2024), section 3: the shape
is drawn a little towards one half, as by ten weights. It is arviz-stats' operation by operation, and gives its bits up
to version 0.8; from version 1 on that package refuses tails of fewer than 25 weights.

References
----------
Zhang and Stephens (2009), Technometrics 51, 316. Vehtari, Simpson, Gelman, Yao and Gabry (2024), Journal of Machine
Learning Research 25(72).
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, stdtrit

from gpcmc._validation import FloatArray
from gpcmc.posterior import MAX_K_HAT, MIN_EFFECTIVE, NOT_CONVERGED, OK, UNTRUSTED

#: The 97.5 % point of the normal distribution, by which readers multiply a standard error.
NORMAL_975 = 1.959963984540054
#: Fewer weights have no tail that a Pareto distribution could be fitted to.
MIN_TAIL = 25
_LARGE = 225  # weights, from which on the tail has three times the root of their number, and not a fifth of it
_PRIOR_WEIGHTS, _PRIOR_SHAPE = 10, 0.5


def weight_diagnostics(log_weights: FloatArray) -> dict[str, float]:
    """Return Pareto k-hat and effective samples of weights (m,).

    k-hat is minus infinity where the largest weights are equal, as weights that meet their bound are; and infinity
    where the largest few are all and the next have vanished, or where there are fewer than `MIN_TAIL` to fit.
    """
    top = log_weights.max()
    if np.isneginf(top):
        return {"k_hat": np.inf, "effective_samples": 0.0, "effective_fraction": 0.0}
    w = np.exp(log_weights - top)
    effective = float(w.sum() ** 2 / np.sum(w**2))
    tail = int(min(0.2 * len(w), 3 * len(w) ** 0.5))  # the weights that the fit sees
    cut, quarter = np.sort(w)[[-tail - 1, -tail + tail // 4]]
    if len(w) < MIN_TAIL or quarter < 1e-100:
        k_hat = np.inf
    elif quarter - cut <= 1e-9 * quarter:
        k_hat = -np.inf
    else:
        with np.errstate(all="ignore"):  # weights that differ by more than floating point can hold
            k_hat = pareto_shape(log_weights)
        k_hat = np.inf if np.isnan(k_hat) else k_hat
    return {
        "k_hat": k_hat,
        "effective_samples": effective,
        "effective_fraction": effective / len(w),
    }


def weights_status(diagnostics: dict[str, float]) -> str:
    """Say whether weighted samples can be believed.

    Where a proven bound leaves to no single sample, seen or not, more than a tenth of the sum of all weights, nothing
    can hide in their tail. Elsewhere the tail is judged by Pareto k-hat.
    """
    if hidden_tail(diagnostics):
        return UNTRUSTED
    return OK if diagnostics["effective_samples"] >= MIN_EFFECTIVE else NOT_CONVERGED


def hidden_tail(diagnostics: dict[str, float]) -> bool:
    """Say whether what no sample has seen may change the average; ``log_weight_bound`` is over the mean weight."""
    samples = diagnostics["effective_samples"] / max(diagnostics["effective_fraction"], 1e-300)
    hidden = diagnostics.get("log_weight_bound", np.inf) > np.log(0.1 * max(samples, 1e-300))
    return bool(hidden and diagnostics.get("k_hat", 0.0) > MAX_K_HAT)


def pareto_shape(log_weights: FloatArray) -> float:
    """Return k-hat of log weights (m,), m at least 25; NaN where no generalised Pareto distribution can be fitted."""
    m = len(log_weights)
    tail = int(np.floor(3 * m**0.5) if m > _LARGE else np.floor(m / 5))
    ordered = np.sort(log_weights - log_weights.max())[-tail - 1 :]
    excess = np.exp(ordered[1:]) - np.exp(ordered[0])
    count = 30 + int(tail**0.5)
    b = 1 - np.sqrt(count / (np.arange(1, count + 1, dtype=float) - 0.5))
    b /= 3 * excess[int(tail / 4 + 0.5) - 1]
    b += 1 / excess[-1]
    k = np.mean(np.log1p(-b[:, None] * excess), axis=1)
    log_likelihood = tail * (np.log(-b / k) - k - 1)
    posterior = np.exp(log_likelihood - logsumexp(log_likelihood))
    kept = posterior >= 10 * np.finfo(float).eps
    b, posterior = b[kept], posterior[kept]
    posterior /= posterior.sum()
    shape = np.mean(np.log1p(-np.sum(b * posterior) * excess))
    return float((tail * shape + _PRIOR_WEIGHTS * _PRIOR_SHAPE) / (tail + _PRIOR_WEIGHTS))


def student_factor(degrees: float) -> float:
    """Return the 97.5 % point of Student's t over the normal's."""
    return float(stdtrit(degrees, 0.975)) / NORMAL_975
