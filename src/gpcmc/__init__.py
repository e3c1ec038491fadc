"""Exact Gaussian process classification by Monte Carlo, after Atiya, Fayed and Abdel-Gawad (2021).

Notation (the paper's, where it has one)
----------------------------------------
K       (n, n) prior covariance of the latent values f at the training patterns (Sigma in the paper)
y       (n,) labels, -1 or +1
R       I + diag(y) K diag(y), covariance of v; p(y | X) = P(v >= 0)
L       lower Cholesky factor of a covariance
e       innovations: v = L e
M       Monte Carlo samples
alpha, beta
        length and variance of the RBF covariance, beta exp(-|x - x'|^2 / alpha^2)
*_star  belongs to test patterns
"""

from typing import TYPE_CHECKING

from gpcmc.orthant import OrthantEstimate, orthant_probability

if TYPE_CHECKING:
    from gpcmc.classifier import GaussianProcessClassifier

__all__ = ["GaussianProcessClassifier", "OrthantEstimate", "orthant_probability"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # The classifier costs a third of a second of scikit-learn that a job of the workflow has no use for.
    if name == "GaussianProcessClassifier":
        from gpcmc.classifier import GaussianProcessClassifier

        return GaussianProcessClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
