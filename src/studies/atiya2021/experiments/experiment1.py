"""Experiment 1: the sampler against orthants whose probability is known (section 6.1, Table 1)."""

from __future__ import annotations

from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds a sample and dimension, about.
SECONDS = 3e-8


def plan(config: Configuration) -> list[Line]:
    """Return a row a run: every sample size on every instance."""
    given = config.atiya2021.experiment1
    instances = max(cell.instances for cell in given.grid)
    lines = []
    # in the order of texts, in which the kept measures were summed
    for dimension in sorted(given.dimensions, key=str):
        for instance in range(instances):
            data = seed(config.seed, "experiment1", f"N{dimension}", f"instance{instance}")
            for cell in given.grid:
                if instance >= cell.instances:
                    continue
                line = {
                    "row": f"N{dimension}/instance{instance}/M{cell.samples}",
                    "dimension": dimension,
                    "instance": instance,
                    "samples": cell.samples,
                    "seconds": SECONDS * dimension * cell.samples,
                    "count": given.count,
                    "scheme": given.scheme,
                    "data": data,
                    "seed": seed(data, f"samples{cell.samples}"),
                }
                lines.append(line)
    return planned(lines)


def run(row: Row, inputs: Inputs) -> Result:
    """Run the sampler: ``truth``, ``estimate``, its own error and those of Eqs. (43) and (44)."""
    from studies.atiya2021.experiment1 import orthant_run

    options = {"count": row["count"], "scheme": row["scheme"]}
    found, seconds = orthant_run(
        row["data"], row["dimension"], row["samples"], row["seed"], **options
    )
    key = {name: row[name] for name in ("dimension", "instance", "samples")}
    return Result([key | found], timing=[key | {"cpu_seconds": seconds}])
