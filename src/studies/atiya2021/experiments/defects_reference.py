"""A long run of the adapted orthant sampler: the reference of the problems on which defects are studied."""

from __future__ import annotations

from studies.atiya2021.names import CASES
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem whose truth has no closed form."""
    return planned(
        {
            "row": case,
            "case": case,
            "seconds": 3.0,
            "points": config.atiya2021.defects.reference_points,
            "data": seed(config.seed, "defects", "rbf"),
            "seed": seed(config.seed, "defects", case, "reference"),
        }
        for case in CASES
        if case != "linear"
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Run the sampler: ``log_evidence`` and ``probability`` (t,) with their standard errors; all are arrays."""
    from studies.atiya2021.defects import long_run

    found = long_run(row["case"], row["data"], row["points"], row["seed"])
    key = {name: row[name] for name in ("case", "points", "seed")}
    numbers = {name: float(value) for name, value in found.items() if not value.ndim}
    return Result([key | numbers], found)
