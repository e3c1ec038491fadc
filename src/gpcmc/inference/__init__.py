"""Inference methods, one module each, behind one interface: ``fit(prior, y, *, rng) -> Posterior``.

A new method is a new module with a subclass of `Method`, and a row in `METHODS`.
"""

from gpcmc.chains.arviz import draws_of, to_arviz
from gpcmc.chains.control_variables import ControlVariables
from gpcmc.chains.elliptical import EllipticalSlice
from gpcmc.chains.hamiltonian import HamiltonianMonteCarlo
from gpcmc.chains.pseudo_marginal import PseudoMarginal
from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.importance import ImportanceSampling
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.posterior import GaussianPosterior
from gpcmc.gaussian.softmax_mode import MulticlassLaplace
from gpcmc.methods import Inference, Method, infer
from gpcmc.orthant.method import Orthant
from gpcmc.posterior import ConvergenceError, Posterior, PosteriorRecord, Prediction
from gpcmc.rectangle.classification import MinimaxTilting, Twisted

#: Methods by name.
METHODS: dict[str, type[Method]] = {
    "orthant": Orthant,
    "twisted-ep": Twisted,
    "minimax-tilting": MinimaxTilting,
    "importance": ImportanceSampling,
    "ess": EllipticalSlice,
    "hmc": HamiltonianMonteCarlo,
    "control-variables": ControlVariables,
    "pseudo-marginal": PseudoMarginal,
    "laplace": Laplace,
    "ep": ExpectationPropagation,
}

#: Former names, accepted wherever a method is named.
ALIASES = {"best": "twisted-ep"}


def method_class(name: str, *, argument: str = "method") -> type[Method]:
    """Return the class of options that a name, or a former name, stands for.

    Parameters
    ----------
    name : str
        A name in `METHODS` or `ALIASES`.
    argument : str
        How the message calls the name.

    Raises
    ------
    ValueError
        If there is no method of that name; the message lists them.
    """
    found = METHODS.get(ALIASES.get(name, name)) if isinstance(name, str) else None
    if found is None:
        former = ", ".join(f"{old} for {new}" for old, new in ALIASES.items())
        raise ValueError(
            f"{argument} must be one of {', '.join(METHODS)} (or {former}); got {name!r}"
        )
    return found


__all__ = [
    "ALIASES",
    "METHODS",
    "ControlVariables",
    "ConvergenceError",
    "EllipticalSlice",
    "ExpectationPropagation",
    "GaussianPosterior",
    "HamiltonianMonteCarlo",
    "ImportanceSampling",
    "Inference",
    "Laplace",
    "Method",
    "MinimaxTilting",
    "MulticlassLaplace",
    "Orthant",
    "Posterior",
    "PosteriorRecord",
    "Prediction",
    "PseudoMarginal",
    "Twisted",
    "draws_of",
    "infer",
    "method_class",
    "to_arviz",
]
