"""Figure 1: how wide the conditionals of a length scale are."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.filippone2014.config import Configuration
from studies.filippone2014.problems import INPUTS, data_path


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set."""
    given = config.filippone2014.conditionals
    return planned(
        {
            "row": f"set{number}",
            "set": number,
            "seconds": 3.0,
            "d": INPUTS,
            **given.model_dump(exclude={"sets"}),
            "seed": data_path(config.seed, "figure1", given.n, INPUTS, number),
        }
        for number in range(given.sets)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Compare variances of log tau: ``set``, ``marginal``, ``sufficient``, ``ancillary``, ``surrogate``."""
    from studies.filippone2014.estimates import conditionals

    given = {key: row[key] for key in ("n", "d", "draws", "sweeps", "values")}
    return Result([{"set": row["set"], **conditionals(row["seed"], **given), "seed": row["seed"]}])
