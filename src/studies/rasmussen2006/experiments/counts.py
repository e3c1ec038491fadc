"""Numbers of threes and fives, and the bits of the baseline (Eq. 3.76)."""

from __future__ import annotations

import pandas as pd

from studies.common.rows import Inputs, Result, Row, planned
from studies.rasmussen2006.config import Configuration


def plan(config: Configuration) -> pd.DataFrame:
    """Return one row."""
    return planned([{"row": "counts"}])


def run(row: Row, inputs: Inputs) -> Result:
    """Count the cases: ``quantity`` and ``value``."""
    from studies.rasmussen2006.binary import counts

    return Result(counts(inputs["digits"]))
