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

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpcmc.classifier import GaussianProcessClassifier
    from gpcmc.comparison import Comparison, compare
    from gpcmc.ordinal import OrdinalGaussianProcessClassifier
    from gpcmc.orthant import OrthantEstimate, orthant_probability
    from gpcmc.rectangle import (
        FieldCovariance,
        RectangleEstimate,
        RectangleEstimates,
        TruncatedNormal,
        rectangle_probability,
    )

__all__ = [
    "Comparison",
    "FieldCovariance",
    "GaussianProcessClassifier",
    "OrdinalGaussianProcessClassifier",
    "OrthantEstimate",
    "RectangleEstimate",
    "RectangleEstimates",
    "TruncatedNormal",
    "compare",
    "orthant_probability",
    "rectangle_probability",
]
__version__ = "0.3.0"

# SciPy costs a third of a second and scikit-learn one and a half: each name loads what it needs.
_HOME = {
    "Comparison": "gpcmc.comparison",
    "FieldCovariance": "gpcmc.rectangle",
    "GaussianProcessClassifier": "gpcmc.classifier",
    "OrdinalGaussianProcessClassifier": "gpcmc.ordinal",
    "OrthantEstimate": "gpcmc.orthant",
    "RectangleEstimate": "gpcmc.rectangle",
    "RectangleEstimates": "gpcmc.rectangle",
    "TruncatedNormal": "gpcmc.rectangle",
    "compare": "gpcmc.comparison",
    "orthant_probability": "gpcmc.orthant",
    "rectangle_probability": "gpcmc.rectangle",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
