"""Truths of Experiment 1 from coarse rectangle rules for Eq. (63).

The published column for N = 500 has an error that does not fall with the number of samples, as an inexact "truth" would
give. This shows how large such an error is for a given grid.
"""

from __future__ import annotations

from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed


def plan(config: Configuration) -> list[Line]:
    """Return a row an instance of Experiment 1."""
    given = config.atiya2021.experiment1
    return planned(
        {
            "row": f"N{dimension}/instance{instance}",
            "dimension": dimension,
            "instance": instance,
            "steps": given.quadrature.steps,
            "limit": given.quadrature.limit,
            "seconds": 0.03,
            "seed": seed(config.seed, "experiment1", f"N{dimension}", f"instance{instance}"),
        }
        for dimension in given.dimensions
        for instance in range(max(cell.instances for cell in given.grid))
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Integrate on each grid: ``du``, ``truth``, ``coarse`` and ``ape_percent``, a line a step."""
    from studies.atiya2021.experiment1 import quadrature_errors

    key = {name: row[name] for name in ("dimension", "instance", "seed")}
    found = quadrature_errors(row["seed"], row["dimension"], row["steps"], row["limit"])
    return Result([key | line for line in found])
