"""The certified reference: log evidence and test probabilities of every cell of Experiment 4."""

from __future__ import annotations

from studies.atiya2021.names import PROBLEMS
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds of a cell, at most.
_SECONDS = 3600.0


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem and hyperparameter setting, each a job of its own."""
    settings = config.atiya2021.experiment4.hyperparameters
    return planned(
        {
            "row": f"problem{problem}/set{setting.set}",
            "problem": problem,
            "seconds": _SECONDS,
            **setting.model_dump(),
            "seed": seed(config.seed, "reference", f"problem{problem}", f"set{setting.set}"),
        }
        for problem in PROBLEMS
        for setting in settings
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Compute and certify a cell: what `studies.atiya2021.reference.cells.certified_cell` returns."""
    from studies.atiya2021.problems import Problem
    from studies.atiya2021.reference.cells import CellKey, certified_cell

    cell = CellKey(row["problem"], row["set"], float(row["alpha"]), float(row["beta"]))
    found = certified_cell(Problem(**inputs["problem"]), cell, row["seed"])
    arrays = {f"problem{row['problem']}/{name}": array for name, array in found.arrays.items()}
    return found._replace(arrays=arrays)
