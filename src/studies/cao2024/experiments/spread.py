"""Estimates of one probability again and again, by each method of the paper: how much they vary."""

from __future__ import annotations

from collections.abc import Iterator

from studies.cao2024.config import Configuration
from studies.cao2024.problems import NUGGETS, SCENARIOS
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds of a draw of one coordinate: with a dense factor of 900, and under Vecchia's approximation.
_DENSE, _SPARSE = 5.5e-8, 6e-8


def plan(config: Configuration) -> list[Line]:
    """Return a row for each scenario, dimension and method."""
    return planned(_rows(config))


def _rows(config: Configuration) -> Iterator[Line]:
    given = config.cao2024.spread
    for dimension, design in zip(NUGGETS, (given.small, given.large), strict=True):
        for method, one in design.methods.items():
            each = _SPARSE if method == "vecchia" else _DENSE * design.size / 900
            order = 40.0 * (design.size / 6400) ** 3
            for scenario in SCENARIOS:
                name = f"{method}/{scenario}-{dimension}"
                yield {
                    "row": name,
                    "seconds": order + each * one.estimates * one.draws * design.size,
                    "megabytes": int(400 + 2800 * (design.size / 6400) ** 2),
                    "scenario": scenario,
                    "dimension": dimension,
                    "size": design.size,
                    "method": method,
                    "neighbours": given.neighbours if method == "vecchia" else 0,
                    "draws": one.draws,
                    "estimates": one.estimates,
                    "seed": seed(config.seed, "cao2024", name),
                }


def run(row: Row, inputs: Inputs) -> Result:
    """Estimate: a line an estimate, its logarithm under ``value``; seconds of one are its draws and what is before."""
    from studies.cao2024.estimates import estimates
    from studies.cao2024.problems import problem
    from studies.common.seeds import generator

    given = problem(row["scenario"], row["size"], NUGGETS[row["dimension"]])
    found, before, each = estimates(
        given,
        row["method"],
        row["draws"],
        row["estimates"],
        generator(row["seed"]),
        row["neighbours"],
    )
    names = ("scenario", "dimension", "size", "method", "neighbours", "draws", "seed")
    key = {name: row[name] for name in names}
    lines = [{**key, "estimate": k, "value": float(x)} for k, x in enumerate(found)]
    return Result(
        lines, timing=[{"cpu_seconds": before + len(found) * each, "one_seconds": before + each}]
    )
