"""What a sparse covariance costs in evidence.

With the likelihood's Gaussian terms exp(nu' f - f' W f / 2) held, another covariance K' changes the evidence by

    l(nu) = nu' (P'^-1 - P^-1) nu / 2 - (log |I + K' W| - log |I + K W|) / 2,      P = K^-1 + W,

to all orders. EP's evidence is flat in the terms, so that holding them costs little. With nu = W f + e, f ~ N(0, K) and
e ~ N(0, W), as a model that holds has it, l is the log ratio of two Gaussian laws of what the terms see. Then E l^2 is
near twice their Kullback-Leibler divergence, and how large a change comes out is chance: a draw of that variance. The
estimates of what is left rest on this. Prior divergences would not do: those of a smooth kernel are in directions that
no label sees.

- Up to 2000 patterns K' is the kernel's own covariance. The terms' answer is left: of second order, as the divergence.
- With more, K' has twice the neighbours. Divergences of nested regressions add up, and as the number m of neighbours
  grows what is left falls as a power of m. Its exponent is seen at half, all and twice the neighbours in

      sum_i log (1 + W_ii D_i) / 2,

  the divergence site by site, where the noise of each drowns what is below it.

References
----------
Vecchia (1988), Journal of the Royal Statistical Society B 50, 297. Schaefer, Katzfuss and Owhadi (2021), SIAM Journal
on Scientific Computing 43, A2019 (divergences of nested regressions). Rasmussen and Williams (2006), Eq. (5.27).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcmc._memory import available_memory
from gpcmc._validation import FloatArray
from gpcmc.covariance.dense import Dense
from gpcmc.covariance.form import Correction, GradientMatrix
from gpcmc.covariance.kernels import evaluate

_EXACT = 2000  # patterns up to which the kernel's own covariance is factorised
_DRAWS = 16  # of nu
_LEAST = 2.0**0.5  # by which twice the neighbours lower what is left, at least
_ANSWER = 0.2  # of the divergence is left by terms that are held, at most, in calibration
_DEVIATIONS = 2.5


def correction_of(K: Any, M: GradientMatrix) -> Correction:
    """Return what K, a sparse one, leaves out of the evidence whose gradient matrix is M, and what may be missing.

    Beyond twice the neighbours the rest is two and a half standard deviations, and more where the change that came out
    is more already. It is an estimate, and no bound.
    """
    if K.exact:
        return Correction()
    conditioned, mean = M.conditioned, (K @ M.q.T).T
    needed = Dense.memory(len(K), len(M.q) + 3.0)  # an array a function, and what a factor takes
    exactly = len(K) <= _EXACT and needed <= available_memory().bytes
    to = Dense(evaluate(K.kernel, K.X), K.kernel, K.X) if exactly else K.finer
    other, lifted = conditioned.on(to), _lifted_by_array if exactly else _lifted
    moved = (to @ M.q.T).T
    ratio = other.log_determinant - conditioned.log_determinant
    nu = (M.q + conditioned.times_noise(mean))[..., None]
    change = 0.5 * float(np.sum(nu[..., 0] * (lifted(other, nu)[..., 0] - mean)) - ratio)
    # where the terms move with the mode, to first order
    change += float(np.sum((M.p - 0.5 * M.q) * (moved - mean)))
    drawn = _drawn(conditioned)
    squares = np.einsum("cik,cik->k", drawn, lifted(other, drawn) - conditioned.lifted(drawn))
    v = float(np.mean((0.5 * (squares - ratio)) ** 2))
    more = max(_DEVIATIONS, abs(change) / max(v, 1e-300) ** 0.5)  # than a deviation came out
    if exactly:
        divergence = (1.0 + v) ** 0.5 - 1.0  # v = E l^2 is 2 divergence + divergence^2
        rest = _ANSWER * divergence * (more / _DEVIATIONS) ** 2
    else:
        rest = more * (v * _beyond(K, conditioned)) ** 0.5
    told = {"neighbours": float(K.near.near), "correction": change, "correction_rest": rest}
    return Correction(change, rest, told)


def _drawn(conditioned: Any) -> FloatArray:
    """Return draws of nu (C, n, k)."""
    K, rng = conditioned.K, np.random.default_rng(0)
    C, n = conditioned.precisions.shape
    f = K.draws(rng.standard_normal((n, C * _DRAWS))).reshape(n, C, _DRAWS).swapaxes(0, 1)
    return conditioned.times_noise(f) + conditioned.noise(rng.standard_normal(f.shape))


def _lifted(conditioned: Any, nu: FloatArray) -> FloatArray:
    """Return P^-1 nu (C, n, k) under a sparse form."""
    return conditioned.lifted(nu)


def _lifted_by_array(conditioned: Any, nu: FloatArray) -> FloatArray:
    """The same under the dense form."""
    K, found = conditioned.K, np.empty_like(nu)
    for k in range(nu.shape[-1]):
        f = nu[..., k] @ K
        found[..., k] = f - np.atleast_2d(conditioned.solve(f if len(f) > 1 else f[0])) @ K
    return found


def _beyond(K: Any, conditioned: Any) -> float:
    """Return the divergence left by twice the neighbours, over that between them and K's own."""
    half, own, twice = (
        float(np.sum(np.log1p(conditioned.precisions * D)))
        for D in (K.left_by_half(), K.by.D, K.finer.by.D)
    )
    if own <= twice:
        return 0.0
    return 1.0 / (max((half - own) / (own - twice), _LEAST) - 1.0)
