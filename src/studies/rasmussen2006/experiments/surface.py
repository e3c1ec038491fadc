"""The evidence of threes against fives, by Laplace's method and by EP, over log l and log sf (Figures 3.7 to 3.9)."""

from __future__ import annotations

from collections.abc import Iterator

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.rasmussen2006.config import Configuration
from studies.rasmussen2006.grid import PRINTED, grid

#: About the CPU seconds of a row.
_SECONDS = {"laplace": 2.5, "ep": 18.0}


def plan(config: Configuration) -> list[Line]:
    """Return three kinds of rows a method: what is around the printed point, the maximum, and the grid by log l."""
    every = {"laplace": config.rasmussen2006.surface.laplace, "ep": config.rasmussen2006.surface.ep}
    return planned(
        {"seconds": _SECONDS[method], **line}
        for method, step in every.items()
        for line in _of_method(method, step)
    )


def _of_method(method: str, every: int) -> Iterator[Line]:
    # EP's evidence has a ridge and no maximum: it is searched over log l alone
    key = {"method": method, "printed": [*PRINTED[method]], "ridge": method == "ep"}
    for place in ("around", "maximum"):
        yield {"row": f"{method}/{place}", "place": place, **key}
    lengths, amplitudes = grid(every)
    for x in lengths:
        where = {"place": "grid", "log_length": x, "log_amplitudes": amplitudes}
        yield {"row": f"{method}/grid/l{x:g}", **where, **key}


def run(row: Row, inputs: Inputs) -> Result:
    """Evaluate a method at some points.

    Lines have ``method``; ``place``: ``grid``, ``neighbour`` (the points of the book's grid around the printed one),
    ``rounding`` (what rounds to the printed point: it, corners and the best point) or ``maximum``; and the numbers at
    ``log_length`` and ``log_amplitude``. Arrays are those of the printed point.
    """
    from studies.rasmussen2006.binary import Evidence
    from studies.rasmussen2006.patterns import Binary

    own = Evidence.of(row["method"], Binary.of_digits(inputs["digits"]))
    if row["place"] == "grid":
        lines = [own.line("grid", (row["log_length"], a)) for a in row["log_amplitudes"]]
    elif row["place"] == "maximum":
        lines = [own.maximum(row["printed"], row["ridge"])]
    else:
        lines = own.around(row["printed"], row["ridge"])
    arrays = own.arrays(row["printed"]) if row["place"] == "around" else {}
    return Result([{"method": row["method"], **line} for line in lines], arrays)
