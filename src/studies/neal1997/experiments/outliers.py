"""Chains on the regression with outliers (section 7, Figure 5)."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.neal1997.config import Configuration
from studies.neal1997.runs import OUTLIERS


def plan(config: Configuration) -> list[Line]:
    """Return a row a chain."""
    given = config.neal1997.outliers
    return planned(
        {
            "row": f"{run}/chain{chain}",
            "run": run,
            "release": OUTLIERS[run].data,
            "seconds": given.iterations / 40,
            "chain": chain,
            "iterations": given.iterations,
            "seed": seed(config.seed, "outliers", run, f"chain{chain}"),
        }
        for run, chains in given.runs.items()
        for chain in sorted(range(chains), key=_place)
    )


def _place(chain: int) -> str:
    """Where a chain is in the plan. The last digits of kept standard errors depend on this order of their sums."""
    return str(chain // 4 * 4)


def run(row: Row, inputs: Inputs) -> Result:
    """Run a chain: a line an iteration, and the array ``curve``; see `studies.neal1997.chains.outliers`."""
    from studies.common.seeds import generator
    from studies.neal1997.chains import outliers

    settings, rng = OUTLIERS[row["run"]], generator(row["seed"])
    key = {name: row[name] for name in ("run", "chain", "seed")}
    lines, curve = outliers(settings, row["iterations"], inputs["data"], rng)
    return Result([{**key, **line} for line in lines], {"curve": curve})
