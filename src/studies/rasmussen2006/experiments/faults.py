"""Wrong data and wrong formulas on purpose: each must give another number than the book prints."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.rasmussen2006.config import Configuration

#: The faults; see `studies.rasmussen2006.faults`.
CONTROLS = ("raw", "zip-split", "no-half", "raw-ep", "amplitude", "theta")


def plan(config: Configuration) -> list[Line]:
    """Return a row a fault."""
    return planned({"row": name, "control": name} for name in CONTROLS)


def run(row: Row, inputs: Inputs) -> Result:
    """Evaluate the log evidence with a fault: ``control`` and ``log_evidence``."""
    from studies.rasmussen2006.faults import log_evidence

    value = log_evidence(row["control"], **inputs)
    return Result([{"control": row["control"], "log_evidence": value}])
