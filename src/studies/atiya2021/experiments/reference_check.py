"""The check of every run: a few cells of the certified reference, estimated anew."""

from __future__ import annotations

from studies.atiya2021.names import REFERENCE
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import generator, seed


def plan(config: Configuration) -> list[Line]:
    """Return a row a cell: a few are drawn of all that Experiment 4 has; fewer where it has fewer."""
    four, given = config.atiya2021.experiment4, config.atiya2021.reference_check
    path = seed(config.seed, "reference_check")
    every = [(problem, one) for problem in sorted(four.problems) for one in four.hyperparameters]
    drawn = generator(path).choice(len(every), size=min(given.cells, len(every)), replace=False)
    return planned(
        {
            "row": f"problem{problem}/set{setting.set}",
            "problem": problem,
            **setting.model_dump(),
            "seconds": 2.5,
            "counts": {"points": given.points, "samples": given.samples},
            "seed": seed(path, f"problem{problem}", f"set{setting.set}"),
        }
        for problem, setting in (every[k] for k in sorted(drawn))
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Estimate a cell by two methods: ``problem``, ``set``, and what `studies.atiya2021.reference.check` returns."""
    from studies.atiya2021.problems import Problem
    from studies.atiya2021.reference.cells import CellKey, load_reference
    from studies.atiya2021.reference.check import checked

    cell = CellKey(row["problem"], row["set"], row["alpha"], row["beta"])
    problem = Problem(**inputs["problem"])
    found = checked(load_reference(REFERENCE), problem, cell, row["counts"], row["seed"])
    key = {"problem": row["problem"], "set": row["set"]}
    return Result([key | line for line in found])
