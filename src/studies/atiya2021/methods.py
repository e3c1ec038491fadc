"""The methods of this study: those of the library, and the paper's toolbox.

The table of modules stands apart from the table of methods, because the workflow reads it before any job starts and a
method's module takes a second to import. A new method of the library is a row in `MODULES` and a row in
``config/<scale>.yaml``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    METHODS: dict[str, Any]

#: Where the options of each method are defined.
MODULES = {
    "orthant": "gpcmc.inference.orthant",
    "twisted-ep": "gpcmc.inference.twisted",
    "minimax-tilting": "gpcmc.inference.tilting",
    "importance": "gpcmc.inference.importance",
    "ess": "gpcmc.inference.elliptical",
    "hmc": "gpcmc.inference.hamiltonian",
    "gpml": "studies.atiya2021.toolbox",
    "control-variables": "gpcmc.inference.control_variables",
    "laplace": "gpcmc.inference.laplace",
    "ep": "gpcmc.inference.ep",
}

#: Methods that draw nothing at random, so that one run of them is enough.
DETERMINISTIC = ("laplace", "ep")

#: Of each method, the options that grow with a budget of CPU seconds: their shares, and the least value of the first.
SIZES: dict[str, tuple[dict[str, float], int]] = {
    "orthant": ({"samples": 1.0}, 2000),
    "twisted-ep": ({"points": 1.0}, 16),
    "minimax-tilting": ({"points": 1.0}, 16),
    "importance": ({"samples": 1.0}, 256),
    "ess": ({"samples": 1.0, "burn_in": 1 / 160, "temperatures": 1 / 80}, 1600),
    "hmc": ({"samples": 1.0, "burn_in": 1 / 80, "temperatures": 1 / 40}, 800),
    "gpml": ({"samples": 1.0}, 8),
}


def __getattr__(name: str) -> Any:
    """Load the table `METHODS`, name to class of options, at its first use."""
    if name != "METHODS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpcmc.inference import METHODS as LIBRARY
    from studies.atiya2021.toolbox import GpmlMonteCarlo

    globals()["METHODS"] = {key: value for key, value in LIBRARY.items() if key in MODULES} | {
        "gpml": GpmlMonteCarlo
    }
    return globals()["METHODS"]
