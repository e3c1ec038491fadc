"""Rows of Experiment 4 with parts of their counts: with the whole counts, error against CPU seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from studies.atiya2021.experiments import experiment4
from studies.atiya2021.methods import SIZES
from studies.atiya2021.settings import Configuration
from studies.atiya2021.settings import Row as MethodRow
from studies.common.rows import Inputs, Line, Result, Row, planned


def plan(config: Configuration) -> list[Line]:
    """Return a row a problem, method with a part of its counts, setting and replicate; on first data sets."""
    given, methods = config.atiya2021.benchmark, config.atiya2021.experiment4.methods
    runs = [(0, replicate) for replicate in range(given.replicates)]
    return planned(
        line
        for part in sorted(given.parts, key=str)
        for problem in sorted(given.problems)
        for name in given.methods
        for line in experiment4.lines(
            config, problem, f"{name}-part{part}", _part_of(methods[name], problem, part), runs
        )
    )


def _part_of(row: MethodRow, problem: int, part: int) -> MethodRow:
    options = part_of(row.method, row.options_on(problem), part)
    return MethodRow.model_validate({"method": row.method, "replicates": row.replicates, **options})


def part_of(method: str, options: Mapping[str, Any], part: int) -> dict[str, Any]:
    """Return options whose counts are a part of the given ones, and no smaller than a method can use."""
    counts, least = SIZES.get(method, ({"iterations": 1.0, "burn_in": 0.1}, 1000))
    scaled = {
        name: max(options[name] // (2 * part) * 2, math.ceil(least * share))  # antithetic: even
        for name, share in counts.items()
        if name in options
    }
    return dict(options) | scaled


def run(row: Row, inputs: Inputs) -> Result:
    """Run a method once, as in Experiment 4; of its arrays, the probabilities alone."""
    found = experiment4.run(row, inputs)
    arrays = {name: one for name, one in found.arrays.items() if name.endswith("/probability")}
    return found._replace(arrays=arrays)
