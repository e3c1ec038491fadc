"""Chains on the three-way problem (section 6, Figures 3 and 4)."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.neal1997.config import Configuration
from studies.neal1997.runs import CLASSES


def plan(config: Configuration) -> list[Line]:
    """Return a row a chain."""
    given = config.neal1997.classes
    return planned(
        {
            "row": f"{run}/chain{chain}",
            "run": run,
            "release": CLASSES[run].data,
            # with 400 cases an iteration takes up to 0.4 s
            "seconds": given.iterations * CLASSES[run].training / 1000,
            "chain": chain,
            "iterations": given.iterations,
            "seed": seed(config.seed, "classes", run, f"chain{chain}"),
        }
        for run, chains in given.runs.items()
        for chain in range(chains)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Run a chain: a line an iteration, see `studies.neal1997.chains.classes`."""
    from studies.common.seeds import generator
    from studies.neal1997.chains import classes

    settings, rng = CLASSES[row["run"]], generator(row["seed"])
    key = {name: row[name] for name in ("run", "chain", "seed")}
    lines = classes(settings, row["iterations"], inputs["data"], rng)
    return Result([{**key, **line} for line in lines])
