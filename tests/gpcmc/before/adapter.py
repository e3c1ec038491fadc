"""The calls whose form changes with the merge: all that has to be adapted for the problems to run on other code.

Every other call of the problems is of a public name that stays: `gpcmc.GaussianProcessClassifier`, `METHODS`, `Prior`,
`prior`, `rbf`, `rectangle_probability`, `TruncatedNormal`, `orthant_probability` and `compare`.
"""

import numpy as np

from gpcmc import GaussianProcessClassifier, lowrank
from gpcmc.inference import METHODS, draws_of
from gpcmc.inference.annealing import annealed_importance_sampling
from gpcmc.inference.hyperparameters import HyperparameterPrior
from gpcmc.inference.multiclass import MulticlassLaplace

DENSE, LOW_RANK, AUTO = "dense", "low-rank", "auto"
#: Arguments that a message calls otherwise than it did, by what they were called before; "form" is the classifier's.
NAMES = {"form": "approximation"}


def classifier(kernel=None, inference="ep", *, form=DENSE, **options):
    """A classifier whose covariance has the form."""
    approximation = None if form == DENSE else form
    return GaussianProcessClassifier(kernel, inference, approximation=approximation, **options)


def given_low_rank(F, D):
    """A prior with the covariance F F' + diag(D), of factors that are given."""
    return lowrank.LowRankPrior(lowrank.LowRank(F, D))


def low_rank_prior(kernel, X, X_star=None, **options):
    """A prior of low rank from a kernel: `tolerance` and `max_rank`, or `inducing` inputs."""
    return lowrank.low_rank_prior(kernel, X, X_star, **options)


def fit(method, prior, y, *, rng=None):
    """The posterior of a method under a prior of either form."""
    return method.fit(prior, y, rng=rng)


def softmax(prior, code, **options):
    """Laplace's posterior of several classes, 0 to C - 1, under a prior of either form."""
    method = MulticlassLaplace(**options)
    if isinstance(prior, lowrank.LowRankPrior):
        return lowrank.fit(method, prior, code)
    return method.fit(prior, code)


def latent_mean(posterior):
    """Means (n,) of the latent values at the training inputs, or (C, n) of several classes."""
    return posterior.mean


def latent_at_test(posterior, prior):
    """Means and variances of the latent values at the test inputs of a dense prior."""
    return posterior.latent(prior.K_star, prior.k_star_star)


def latent_variance(posterior, prior):
    """Variances (n,) of the latent values at the training inputs, under either form."""
    if isinstance(prior, lowrank.LowRankPrior):
        return posterior.variance
    return posterior.latent(prior.K, np.diag(prior.K).copy())[1]


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
