"""Experiment 2: the sampler on one-dimensional classification problems (section 6.2, Tables 2 and 3)."""

from __future__ import annotations

from studies.atiya2021.names import PATTERNS
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds a sample and training pattern, about.
SECONDS = 3e-8


def plan(config: Configuration) -> list[Line]:
    """Return a row a run: every sample size on every data set, as often as it says."""
    given = config.atiya2021.experiment2
    data_sets = max(cell.datasets for cell in given.grid)
    lines = []
    for problem in given.problems:
        for dataset in range(data_sets):
            data = seed(config.seed, "experiment2", f"problem{problem}", f"dataset{dataset}")
            for cell in given.sizes(problem):
                seconds = SECONDS * PATTERNS[problem] * cell.samples
                for run in range(cell.runs if dataset < cell.datasets else 0):
                    line = {
                        "row": f"problem{problem}/dataset{dataset}/M{cell.samples}/run{run}",
                        "problem": problem,
                        "dataset": dataset,
                        "samples": cell.samples,
                        "run": run,
                        "seconds": seconds,
                        "count": given.count,
                        "scheme": given.scheme,
                        "data": data,
                        "seed": seed(data, f"samples{cell.samples}", f"run{run}"),
                    }
                    lines.append(line)
    return planned(lines)


def run(row: Row, inputs: Inputs) -> Result:
    """Run the sampler: ``truth``, ``estimate``, its errors, and ``mae`` of the class probabilities (Eq. 67)."""
    from studies.atiya2021.experiment2 import classification_run

    options = {"count": row["count"], "scheme": row["scheme"]}
    found, seconds = classification_run(
        row["problem"], row["data"], row["samples"], row["seed"], **options
    )
    key = {name: row[name] for name in ("problem", "dataset", "samples", "run")}
    return Result([key | found], timing=[key | {"cpu_seconds": seconds}])
