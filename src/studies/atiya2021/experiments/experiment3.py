"""Experiment 3: error against CPU seconds where the truth is known (section 6.3, Figures 1 and 2).

Each method runs at several sizes; a size is whatever costs time and buys accuracy, most often the number of samples.
The first data set gets several runs at each size, further ones get one, because runs on one data set say nothing about
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from studies.atiya2021.methods import MODULES
from studies.atiya2021.settings import Configuration, TradeoffRow
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds a sample, about, of methods whose runs are more than one job.
SECONDS = {"orthant": 3e-5, "ess": 1.5e-5, "hmc": 3e-5, "gpml ess": 0.01, "gpml hmc": 0.1}


def plan(config: Configuration) -> list[Line]:
    """Return a row a run: all sizes of each method. Their options key the random streams."""
    given = config.atiya2021.experiment3
    return planned(
        line
        for name, row in given.methods.items()
        for line in _runs(name, row, given.runs, config.seed)
    )


def _runs(name: str, given: TradeoffRow, runs: int, root: int) -> Iterator[Line]:
    """The runs of a method; one that has no grid draws nothing at random, and runs once."""
    grid, several = given.grid or [{}], runs if given.grid else 1
    options = [given.options | cell for cell in grid]
    first = [(0, size, run) for size in range(len(grid)) for run in range(several)]
    others = [(k, size, 0) for k in range(1, given.data_sets) for size in range(len(grid))]
    for dataset, size, run in first + others:
        line = {
            "row": f"{name}/dataset{dataset}/size{size}/run{run}",
            "method": name,
            "dataset": dataset,
            "size": size,
            "run": run,
            "seconds": _seconds(given.method, options[size]),
            "modules": [MODULES[given.method]],
            "inference": given.method,
            "options": options[size],
            "data": seed(root, "experiment2", "problem3", f"dataset{dataset}"),
        }
        if given.grid:
            label = ",".join(f"{key}={grid[size][key]}" for key in sorted(grid[size]))
            further = [f"dataset{dataset}"] if dataset else []
            line["seed"] = seed(root, "experiment3", name, label, *further, f"run{run}")
        yield line


def _seconds(method: str, options: dict[str, Any]) -> float:
    """CPU seconds of a run, about."""
    rate = SECONDS.get(f"{method} {options['sampler']}" if "sampler" in options else method, 0.0)
    return 0.5 + options.get("samples", 0) * rate


def run(row: Row, inputs: Inputs) -> Result:
    """Run a method: its options, ``truth``, errors against it (nats, per cent), what the method says of itself.

    A run that failed has its status, and no seconds.
    """
    from studies.atiya2021.experiment3 import tradeoff_run

    key = {name: row[name] for name in ("method", "dataset", "size", "run")}
    found, seconds = tradeoff_run(row["inference"], row["options"], row["data"], row.get("seed"))
    timing = [] if seconds is None else [key | {"cpu_seconds": seconds}]
    return Result([key | found], timing=timing)
