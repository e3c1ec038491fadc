"""The Pareto shape of the importance weights behind Figure 2."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.filippone2014.config import Configuration
from studies.filippone2014.experiments import spread


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set of Figure 2."""
    names = ("row", "n", "d", "set", "seed")
    return planned({name: row[name] for name in names} for row in spread.plan(config))


def run(row: Row, inputs: Inputs) -> Result:
    """Estimate shapes: ``n``, ``set``, ``method``, ``length`` (of the length scale) and ``k_hat``."""
    from studies.filippone2014.weights import shapes

    key = {"n": row["n"], "set": row["set"]}
    lines = shapes(row["seed"], n=row["n"], d=row["d"])
    return Result([{**key, **line, "seed": row["seed"]} for line in lines])
