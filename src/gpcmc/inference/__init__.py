"""Inference methods, one module each, behind one interface.

A new method is a new module, a row in `METHODS` and a row in the configuration.
"""

from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.gaussian import GaussianPosterior
from gpcmc.inference.gpml import GpmlMonteCarlo
from gpcmc.inference.interface import (
    ConvergenceError,
    Inference,
    Method,
    Posterior,
    Prediction,
    infer,
)
from gpcmc.inference.laplace import Laplace
from gpcmc.inference.orthant import Orthant
from gpcmc.inference.tilting import MinimaxTilting
from gpcmc.inference.twisted import Twisted

METHODS: dict[str, type] = {
    "orthant": Orthant,
    "laplace": Laplace,
    "ep": ExpectationPropagation,
    "best": Twisted,
    "gpml": GpmlMonteCarlo,
    "minimax-tilting": MinimaxTilting,
}

__all__ = [
    "METHODS",
    "ConvergenceError",
    "ExpectationPropagation",
    "GaussianPosterior",
    "GpmlMonteCarlo",
    "Inference",
    "Laplace",
    "Method",
    "MinimaxTilting",
    "Orthant",
    "Posterior",
    "Prediction",
    "Twisted",
    "infer",
]
