"""Inference methods, one module each, behind one interface.

A new method is a new module, a row in `METHODS` and a row in the configuration.
"""

from gpcmc.inference.control_variables import ControlVariables
from gpcmc.inference.elliptical import EllipticalSlice
from gpcmc.inference.ep import ExpectationPropagation
from gpcmc.inference.gaussian import GaussianPosterior
from gpcmc.inference.gpml import GpmlMonteCarlo
from gpcmc.inference.hamiltonian import HamiltonianMonteCarlo
from gpcmc.inference.importance import ImportanceSampling
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
from gpcmc.inference.pseudo_marginal import PseudoMarginal
from gpcmc.inference.tilting import MinimaxTilting
from gpcmc.inference.twisted import Twisted

METHODS: dict[str, type] = {
    "orthant": Orthant,
    "best": Twisted,
    "minimax-tilting": MinimaxTilting,
    "importance": ImportanceSampling,
    "ess": EllipticalSlice,
    "hmc": HamiltonianMonteCarlo,
    "gpml": GpmlMonteCarlo,
    "control-variables": ControlVariables,
    "pseudo-marginal": PseudoMarginal,
    "laplace": Laplace,
    "ep": ExpectationPropagation,
}

__all__ = [
    "METHODS",
    "ControlVariables",
    "ConvergenceError",
    "EllipticalSlice",
    "ExpectationPropagation",
    "GaussianPosterior",
    "GpmlMonteCarlo",
    "HamiltonianMonteCarlo",
    "ImportanceSampling",
    "Inference",
    "Laplace",
    "Method",
    "MinimaxTilting",
    "Orthant",
    "Posterior",
    "Prediction",
    "PseudoMarginal",
    "Twisted",
    "infer",
]
