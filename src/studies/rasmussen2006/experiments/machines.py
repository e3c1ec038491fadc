"""The book's search for C and l of the support vector machine (section 3.7.3)."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.rasmussen2006.config import Configuration


def plan(config: Configuration) -> list[Line]:
    """Return a row an assignment of the cases to folds."""
    return planned(
        {
            "row": f"search{k}",
            "seconds": 1.4,
            "run": k,
            "seed": seed(config.seed, "machines", f"search{k}"),
        }
        for k in range(config.rasmussen2006.comparators.searches)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Cross-validate on a grid: ``run``, ``machine``, ``length``, ``cost``, and held-out ``errors`` of ``cases``."""
    from studies.rasmussen2006.machines import search

    lines = search(row["seed"], inputs["digits"])
    return Result([{"run": row["run"], **line, "seed": row["seed"]} for line in lines])
