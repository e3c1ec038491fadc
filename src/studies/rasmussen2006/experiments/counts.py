"""Numbers of threes and fives, and the bits of the baseline (Eq. 3.76)."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.rasmussen2006.config import Configuration


def plan(config: Configuration) -> list[Line]:
    """Return one row."""
    return planned([{"row": "counts"}])


def run(row: Row, inputs: Inputs) -> Result:
    """Count the cases: ``quantity`` and ``value``."""
    from studies.rasmussen2006.binary import counts

    return Result(counts(inputs["digits"]))
