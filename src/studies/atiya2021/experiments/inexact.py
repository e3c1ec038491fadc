"""What makes the errors of Table 1 level off: truths by adaptive rules and others, on many problems of Experiment 1.

AFA's problems are not known. How often 50 problems give a column such as theirs takes more than 50 of ours.
"""

from __future__ import annotations

from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds of a problem and dimension, about.
SECONDS = 0.07


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem of each dimension."""
    given = config.atiya2021.experiment1
    return planned(
        {
            "row": f"N{dimension}/problem{problem}",
            "dimension": dimension,
            "problem": problem,
            "seed": seed(config.seed, "inexact", f"N{dimension}", f"problem{problem}"),
            "seconds": SECONDS * len(given.dimensions),
        }
        for dimension in given.dimensions
        for problem in range(given.inexact)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Apply every rule: ``rule``, ``truth`` and ``off``, a line a rule."""
    from studies.atiya2021.inexact import inexact

    key = {name: row[name] for name in ("dimension", "problem", "seed")}
    return Result([key | line for line in inexact(row["seed"], row["dimension"])])
