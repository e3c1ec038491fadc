"""Figure 1: functions of one input, drawn from Gaussian processes with four covariances."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.neal1997.config import Configuration

#: The covariances below the graphs, from left to right and from top to bottom.
PRIORS = ("long", "short", "linear", "two")


def plan(config: Configuration) -> list[Line]:
    """Return a row a covariance."""
    return planned(
        {"row": name, "prior": name, "seed": seed(config.seed, "priors", name)} for name in PRIORS
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Draw functions: ``prior``, ``draw``, ``place`` (the input) and ``value``."""
    from studies.neal1997.priors import draws

    return Result([*draws(row["prior"], row["seed"])])
