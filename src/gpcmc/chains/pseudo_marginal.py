"""Inference that integrates over the hyperparameters of an RBF kernel, isotropic or ARD, by Markov chains.

`gpcmc.chains.hyperparameter_chains` runs them, `gpcmc.chains.hyperparameter_steps` has their transitions.

References
----------
Filippone and Girolami (2014), IEEE TPAMI 36, 2214.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcmc._threads import one_thread
from gpcmc._validation import FloatArray, check_array, check_positive, check_positive_int
from gpcmc.chains.convergence import mean_samples
from gpcmc.chains.estimators import Estimator
from gpcmc.chains.hyperparameter_chains import ChainOptions, HyperparameterChains, run_chains
from gpcmc.chains.hyperparameters import (
    HyperparameterPrior,
    covariance_at,
    default_prior,
    length_scales_of,
    squared_differences,
)
from gpcmc.covariance.prior import Prior
from gpcmc.methods import Method
from gpcmc.orthant.method import Orthant
from gpcmc.posterior import PosteriorRecord, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperparameterPosterior(PosteriorRecord):
    """Chains of hyperparameters and what predictions from them need.

    The chains give no marginal likelihood. Work, diagnostics (``effective_samples``, ``r_hat``, ``acceptance``) and
    status are those of the chains. `predict` raises ValueError, because one cross-covariance does not serve all
    hyperparameters: see `predict_inputs`. For the other attributes see `PosteriorRecord`.

    Attributes
    ----------
    chains : HyperparameterChains
    """

    chains: HyperparameterChains
    _X: FloatArray
    _y: FloatArray
    _draws: int
    _predictor: Method
    _seed: NDArray[np.int64]

    @property
    def _patterns(self) -> int:
        return len(self._X)

    def draws(self, K: ArrayLike | None = None) -> dict[str, dict[str, Any]]:
        """Return the draws by group and name, as `gpcmc.inference.draws_of` says; K is not used."""
        chains = self.chains
        scale = np.exp(chains.theta[..., 1:])
        values = {
            "variance": chains.beta,
            "length_scale": scale[..., 0] if scale.shape[-1] == 1 else scale,
        }
        stats = {} if chains.log_evidence is None else {"lp": chains.log_evidence}
        return {"posterior": values, "sample_stats": stats}

    def _predict(self, K_star: FloatArray, k_star_star: FloatArray) -> Prediction:
        raise ValueError(
            "pseudo-marginal: K_star belongs to one setting of the hyperparameters; use "
            "predict_inputs(X_star), or fit to a prior with test inputs and read `prediction`"
        )

    @one_thread()
    def predict_inputs(self, X_star: ArrayLike) -> Prediction:
        """P(y* = +1 | y), averaged over draws of the hyperparameters.

        The standard errors are those of the average over the chains' thinned draws, correlated as
        they are; they contain the errors of the prediction at each draw.

        Parameters
        ----------
        X_star : (t, d) array

        Raises
        ------
        ValueError
            If X_star is not finite or has not as many columns as X.
        """
        p = self._probabilities(self._checked(X_star))
        spread = p.std(axis=(0, 1), ddof=1)
        effective = mean_samples(p)
        # more effective draws than draws happens where they alternate; nothing rests on that here
        effective = np.clip(effective, 1.0, p[..., 0].size)
        return Prediction(p.mean(axis=(0, 1)), spread / np.sqrt(effective))

    @one_thread()
    def predict_interval(self, X_star: ArrayLike, level: float = 0.95) -> FloatArray:
        """Return central intervals (t, 2) of P(y* = +1 | y, theta), theta drawn from its posterior.

        They say how much the class probability depends on hyperparameters that the labels leave open. Errors of the
        predictor at each draw widen them.

        Parameters
        ----------
        X_star : (t, d) array
        level : float
            Share of the draws inside, between 0 and 1.

        Raises
        ------
        ValueError
            If X_star is not as in `predict_inputs`, or level is not between 0 and 1.
        """
        if not 0.0 < check_positive("level", level) < 1.0:
            raise ValueError(f"level must be between 0 and 1; got {level!r}")
        p = self._probabilities(self._checked(X_star))
        tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        return np.quantile(p, tails, axis=(0, 1)).T

    def _probabilities(self, X_star: FloatArray) -> FloatArray:
        """Return P(y* = +1 | y, theta) (chains, draws, t) at thinned draws of theta."""
        theta = self.chains.theta
        n_chains, length, count = theta.shape
        within, across = (
            squared_differences(self._X, other, count - 1) for other in (self._X, X_star)
        )
        kept = np.linspace(0, length - 1, self._draws // n_chains).round().astype(int)
        rng = np.random.default_rng(self._seed)
        p = np.empty((n_chains, len(kept), len(X_star)))
        for c in range(n_chains):
            for i, at in enumerate(kept):
                one = theta[c, at]
                own = np.full(len(X_star), np.exp(one[0]))
                prior = Prior(covariance_at(within, one), covariance_at(across, one), own)
                p[c, i] = self._predictor.fit(prior, self._y, rng=rng).prediction.probability
        return p

    def _checked(self, X_star: ArrayLike) -> FloatArray:
        """Return test inputs as an array; refuse others than `predict_inputs` takes."""
        X_star = check_array("X_star", X_star, ndim=2)
        if X_star.shape[1] != self._X.shape[1] or len(X_star) == 0:
            raise ValueError(
                f"X_star must have rows, and {self._X.shape[1]} columns as X has; got shape "
                f"{X_star.shape}"
            )
        return X_star


@dataclass(frozen=True, slots=True)
class PseudoMarginal(ChainOptions, Method[HyperparameterPosterior]):
    """Options of inference that integrates over the hyperparameters too. It gives no marginal likelihood.

    The prior must hold its kernel, ``ConstantKernel() * RBF()``, and the inputs, as `gpcmc.gp.prior` makes it. Where
    the kernel has a length scale for each input, each is integrated over (automatic relevance determination). The
    kernel's own values are not used: the chains start in `prior`.

    Attributes
    ----------
    method, samples, iterations, burn_in, chains, latent_updates
        As of `ChainOptions`.
    prior : HyperparameterPrior, optional
        By default `default_prior`, which supposes standardised inputs. As many length scales as the kernel has.
    draws : int
        Draws of the hyperparameters that predictions average over, evenly from the chains.
    predictor : Method
        What predicts at each of them.

    Raises
    ------
    ValueError
        If an option is not as above.
    """

    method: str | Estimator = "orthant"
    iterations: int = 1000
    burn_in: int = 400
    chains: int = 4
    prior: HyperparameterPrior | None = None
    draws: int = 100
    predictor: Method = field(default_factory=lambda: Orthant(samples=1024, scheme="adapted"))

    def __post_init__(self) -> None:
        ChainOptions.__post_init__(self)
        check_positive_int("draws", self.draws)
        if not isinstance(self.predictor, Method):
            raise ValueError(f"predictor must be a method's options; got {self.predictor!r}")
        if not 4 * self.chains <= self.draws <= self.chains * self.iterations:
            raise ValueError(
                f"draws must be from {4 * self.chains} (four a chain) to "
                f"{self.chains * self.iterations} (all); got {self.draws}"
            )

    def memory(self, n: int) -> float:
        """As `Method.memory`, or what the predictor needs."""
        return max(Method.memory(self, n), self.predictor.memory(n))

    def _fit(
        self, prior: Prior, y: FloatArray, rng: np.random.Generator
    ) -> HyperparameterPosterior:
        if prior.X is None or (prior.X_star is None and len(prior.k_star_star)):
            raise ValueError(
                "prior must hold the inputs: pseudo-marginal integrates over the kernel's "
                "hyperparameters, and K is one setting of them; make it by "
                "gpcmc.gp.prior(kernel, X, X_star)"
            )
        count = length_scales_of(prior.kernel, prior.X.shape[1])
        hyperprior = self.prior or default_prior(prior.X.shape[1], count)
        if (given := hyperprior.length_scales) != count:
            raise ValueError(
                f"prior must have as many length scales as the kernel, {count}; got {given}. Use "
                f"HyperparameterPrior(shape, rate, length_scales={count})"
            )
        chains = run_chains(prior.X, y, self, prior=hyperprior, rng=rng)
        seed = rng.integers(2**63, size=2)
        posterior = HyperparameterPosterior(
            work=chains.work,
            diagnostics=chains.diagnostics,
            status=chains.status,
            chains=chains,
            _X=prior.X,
            _y=y,
            _draws=self.draws,
            _predictor=self.predictor,
            _seed=seed,
        )
        if prior.X_star is None:
            return posterior
        return replace(posterior, prediction=posterior.predict_inputs(prior.X_star))
