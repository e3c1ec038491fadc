"""The calls whose form changes with the merge: all that has to be adapted for the problems to run on other code.

Every other call of the problems is of a public name that stays: `gpcmc.GaussianProcessClassifier`, `METHODS`, `Prior`,
`prior`, `rbf`, `rectangle_probability`, `TruncatedNormal`, `orthant_probability` and `compare`.
"""

import numpy as np

from gpcmc import GaussianProcessClassifier
from gpcmc.chains.annealing import annealed_importance_sampling
from gpcmc.chains.hyperparameters import HyperparameterPrior
from gpcmc.covariance import LowRank
from gpcmc.gp import Prior
from gpcmc.gp import prior as prior_of
from gpcmc.inference import METHODS, MulticlassLaplace, draws_of

DENSE, LOW_RANK, AUTO = "dense", "low-rank", "auto"
#: Arguments that a message calls otherwise than it did, by what they were called before; "form" is the classifier's.
NAMES = {"form": "covariance", "n_restarts": "n_restarts_optimizer", "surface": "optimizer"}


def classifier(kernel=None, inference="ep", *, form=DENSE, surface="approximate", **options):
    """A classifier whose covariance has the form."""
    if "n_restarts" in options:
        options["n_restarts_optimizer"] = options.pop("n_restarts")
    if surface == "exact":
        options["optimizer"] = "exact"
    return GaussianProcessClassifier(kernel, inference, covariance=form, **options)


def given_low_rank(F, D):
    """A prior with the covariance F F' + diag(D), of factors that are given."""
    return Prior(LowRank(F, D))


def low_rank_prior(kernel, X, X_star=None, **options):
    """A prior of low rank from a kernel: `tolerance` and `max_rank`, or `inducing` inputs."""
    return prior_of(kernel, X, X_star, covariance="low-rank", **options)


def fit(method, prior, y, *, rng=None):
    """The posterior of a method under a prior of either form."""
    return method.fit(prior, y, rng=rng)


def softmax(prior, code, **options):
    """Laplace's posterior of several classes, 0 to C - 1, under a prior of either form."""
    return MulticlassLaplace(**options).fit(prior, code)


def latent_mean(posterior):
    """Means (n,) of the latent values at the training inputs, or (C, n) of several classes."""
    return posterior.mean


def latent_at_test(posterior, prior):
    """Means and variances of the latent values at the test inputs of a dense prior."""
    return posterior.latent(prior.K_star, prior.k_star_star)


def latent_variance(posterior, prior):
    """Variances (n,) of the latent values at the training inputs, under either form."""
    return posterior.variance


def left_out(posterior):
    """What a covariance of low rank costs in evidence: the correction, which is in the evidence."""
    return posterior.diagnostics["correction"]


def latent_draws(posterior, K):
    """Draws (chains, draws, n) of the latent values."""
    return draws_of(posterior, K)["posterior"]["f"]


def hyperparameter_draws(posterior):
    """Draws (chains, draws) of the logarithms of variance and length scale, by name."""
    return {name: np.log(x) for name, x in draws_of(posterior)["posterior"].items()}


def hyperparameter_prior(shape, rate):
    """Gamma priors of the variance and the length scale."""
    return HyperparameterPrior(shape, rate)


def annealed(method, K, y, *, temperatures, runs, rng):
    """Annealed importance sampling alone, with the transition of a chain's method."""
    transition = METHODS[method]()
    return annealed_importance_sampling(
        K, y, transition=transition, temperatures=temperatures, runs=runs, rng=rng
    )
