"""Exact inference by an orthant sampler that expectation propagation guides: our best estimator, ``twisted-ep``.

Expectation propagation leaves a Gaussian site on f_i for each label. The site on v_i = y_i f_i + noise that,
convolved with the probit's unit noise, is that one stands for v_i >= 0. `gpcmc.orthant.twisting` draws with these
sites as look-ahead, and scrambled Sobol' points make the draws even. A ninth of the draws are by minimax
tilting, which bounds all weights; ``diagnostics["log_weight_bound"]`` says how tightly, and its description when that
helps. The estimate of the evidence is unbiased whatever the sites and tilts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky

from gpcmc.covariance.dense import Dense
from gpcmc.covariance.kernels import orthant_covariance
from gpcmc.covariance.lowrank import LowRank
from gpcmc.covariance.prior import Prior
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.inference.separated import Separated, SeparatedSampler
from gpcmc.orthant.sampler import Array
from gpcmc.orthant.tilting import minimax_tilt, tilted_proposal
from gpcmc.orthant.twisting import twisted_proposal


@dataclass(frozen=True, slots=True)
class Twisted(Separated):
    """Options of the orthant sampler twisted by expectation propagation (the method ``twisted-ep``).

    Attributes
    ----------
    points : int
        Sobol' points of a randomisation, a power of two; an eighth as many more bound the weights.
    randomizations : int
        Independent randomisations: their spread is the standard error.
    n_jobs : int
        Threads that these are spread over; the result has the same bits whatever it is.
    """

    matrices: ClassVar[float] = 12.0
    any_form: ClassVar[bool] = True

    def _fit(self, prior: Prior, y: Array, rng: np.random.Generator) -> Any:
        if isinstance(prior.K, LowRank):
            from gpcmc.lowrank.sampling import twisted_ep  # which imports this module

            return twisted_ep(prior, y, self, rng)
        return Separated._fit(self, prior.densified(), y, rng)

    def prepare(self, K: Array, y: Array) -> SeparatedSampler:
        """Return the proposal that the sites make, and its defence.

        Raises
        ------
        ConvergenceError
            If expectation propagation does not converge.
        """
        ep = ExpectationPropagation().approximate(Dense(K), y)
        R = orthant_covariance(K, y)
        # the site on v = y f + noise which, convolved with that noise, is EP's on f
        nu = y * (ep.S * ep.mean + ep.a) / (1.0 - ep.S)
        L = cholesky(R, lower=True, check_finite=False)
        tilt = minimax_tilt(L)
        return SeparatedSampler(
            proposal=twisted_proposal(R, nu, ep.S / (1.0 - ep.S)),
            defence=tilted_proposal(L, tilt.mu),
            log_bound=tilt.log_bound,
            L=L,
            order=np.arange(len(y)),
            signs=y,
            work={"ep_sweeps": ep.work["sweeps"], "factorizations": tilt.steps},
        )
