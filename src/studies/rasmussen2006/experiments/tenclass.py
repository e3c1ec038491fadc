"""Laplace's approximation for all ten digits (section 3.7.4, Figure 3.11)."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.rasmussen2006.config import Configuration
from studies.rasmussen2006.grid import name


def plan(config: Configuration) -> list[Line]:
    """Return a row a point (log l, log sf), in alphabetical order."""
    given = config.rasmussen2006.ten_classes
    seconds = 170.0 * (given.training / 4649) ** 2
    points = sorted(given.points, key=lambda point: f"l{point[0]:g}_a{point[1]:g}.")
    return planned(
        {
            "row": name((x, a)),
            "seconds": seconds,
            # a matrix for each class, and as much again for the others and for the blocks of test cases
            "megabytes": 1000 + int(20 * 8 * given.training**2 / 1e6),
            "training": given.training,
            "test": given.test,
            "log_length": x,
            "log_amplitude": a,
        }
        for x, a in points
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Fit all classes at a point: one line with evidence, errors and information."""
    from studies.rasmussen2006.tenclass import laplace

    sizes = {key: row[key] for key in ("training", "test")}
    point = row["log_length"], row["log_amplitude"]
    found = laplace(point, inputs["digits"], **sizes)
    return Result([{**sizes, "log_length": point[0], "log_amplitude": point[1], **found}])
