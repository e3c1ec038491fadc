"""Beside the chains of section 6: Laplace's method with one length scale an input."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.neal1997.config import Configuration


def plan(config: Configuration) -> list[Line]:
    """Return a row a number of training cases."""
    sizes = config.neal1997.laplace.training
    return planned({"row": f"n{size}", "training": size} for size in sizes)


def run(row: Row, inputs: Inputs) -> Result:
    """Fit the three-way problem of 1997: ``training``, ``quantity`` and ``value``."""
    from studies.neal1997.laplace import fitted

    return Result(fitted(row["training"], inputs["data"]))
