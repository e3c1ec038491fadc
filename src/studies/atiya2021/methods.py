"""The methods of this study: those of the library, and the paper's toolbox.

The table of modules stands apart from the table of methods, because the workflow reads it before any job starts and a
method's module takes a second to import. A new method of the library is a row in `MODULES` and a row in
``config/default.yaml``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    METHODS: dict[str, Any]

#: Where the options of each method are defined.
MODULES = {
    "orthant": "gpcmc.orthant.method",
    "twisted-ep": "gpcmc.rectangle.classification",
    "minimax-tilting": "gpcmc.rectangle.classification",
    "importance": "gpcmc.gaussian.importance",
    "ess": "gpcmc.chains.elliptical",
    "hmc": "gpcmc.chains.hamiltonian",
    "gpml": "studies.atiya2021.toolbox.gpml",
    "control-variables": "gpcmc.chains.control_variables",
    "laplace": "gpcmc.gaussian.laplace",
    "ep": "gpcmc.gaussian.ep",
    "ordered": "studies.atiya2021.ordered",
    "annealed": "studies.atiya2021.evidence_alone",
    "annealed-latent": "studies.atiya2021.evidence_alone",
    "genz-bretz": "studies.atiya2021.evidence_alone",
}

#: Methods that estimate the marginal likelihood and predict nothing: they are for the study of scaling alone.
WITHOUT_PREDICTIONS = ("annealed", "annealed-latent", "genz-bretz")

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

#: Of each method, the options whose product is its count, and CPU seconds a count: a constant, and as much again for
#: each training pattern. They serve to divide rows into jobs, and are right within a factor of about three.
_SECONDS: dict[str, tuple[tuple[str, ...], float, float]] = {
    "orthant": (("samples",), 0.0, 5e-8),
    "twisted-ep": (("points", "randomizations"), 0.0, 1e-7),
    "minimax-tilting": (("points", "randomizations"), 0.0, 5e-8),
    "importance": (("samples",), 0.0, 7e-8),
    "ess": (("samples",), 1e-5, 7e-8),
    "hmc": (("samples",), 3e-5, 9e-7),
    "gpml-ess": (("samples",), 4e-3, 4e-5),
    "gpml-hmc": (("samples",), 3e-3, 9e-5),
    "control-variables": (("iterations",), 3e-4, 3e-6),
    "ordered": (("samples",), 0.0, 2e-8),
    "annealed-ess": (("temperatures", "runs"), 1e-5, 7e-8),
    "annealed-hmc": (("temperatures", "runs"), 2e-5, 2e-7),
    "annealed-latent": (("chains",), 0.0, 3e-5),
    "genz-bretz": (("randomizations",), 0.0, 1e-3),
}


def seconds(method: str, options: Mapping[str, Any], patterns: int) -> float:
    """Return about how many CPU seconds a run takes, with so many training patterns."""
    name = f"{method}-{options['sampler']}" if method in ("gpml", "annealed") else method
    counts, constant, each = _SECONDS.get(name, ((), 0.0, 0.0))
    count = math.prod(options.get(option, 16) for option in counts)
    # the toolbox's chains are burnt in, in the time of some ten samples
    count += 10 if method == "gpml" else 0
    return 1e-3 + 1.5e-9 * patterns**3 + count * (constant + each * patterns)


def __getattr__(name: str) -> Any:
    """Load the table `METHODS`, name to class of options, at its first use."""
    if name != "METHODS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpcmc.inference import METHODS as LIBRARY
    from studies.atiya2021.evidence_alone import Annealed, AnnealedLatent, GenzBretz
    from studies.atiya2021.ordered import OrderedSampler
    from studies.atiya2021.toolbox.gpml import GpmlMonteCarlo

    globals()["METHODS"] = {key: value for key, value in LIBRARY.items() if key in MODULES} | {
        "gpml": GpmlMonteCarlo,
        "ordered": OrderedSampler,
        "annealed": Annealed,
        "annealed-latent": AnnealedLatent,
        "genz-bretz": GenzBretz,
    }
    return globals()["METHODS"]
