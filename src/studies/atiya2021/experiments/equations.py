"""The paper's doubtful equations and its limits, checked numerically."""

from __future__ import annotations

from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed


def plan(config: Configuration) -> list[Line]:
    """Return one row: all checks draw from one stream."""
    return planned([{"row": "equations", "seed": seed(config.seed, "equations")}])


def run(row: Row, inputs: Inputs) -> Result:
    """Check the equations, a line each: ``statement``, ``correction``, their errors and the ``verdict``."""
    from studies.atiya2021.equations import check_equations
    from studies.common.seeds import generator

    return Result(check_equations(generator(row["seed"])))
