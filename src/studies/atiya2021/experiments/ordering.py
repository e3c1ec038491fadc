"""What the order of the patterns and the way of counting do to the sampler (sections 5.7, 6.2 and 6.5)."""

from __future__ import annotations

from itertools import product

from studies.atiya2021.names import COUNTS, ORDERS, PATTERNS
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: CPU seconds a sample and training pattern, about.
SECONDS = 3e-8


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set, order, run and count, on the first data sets of Experiment 2."""
    given = config.atiya2021.ordering
    seconds = SECONDS * PATTERNS[given.problem] * given.samples
    lines: list[Line] = []
    for dataset in range(given.data_sets):
        data = seed(config.seed, "experiment2", f"problem{given.problem}", f"dataset{dataset}")
        for order, run, count in product(ORDERS, range(given.runs), COUNTS):
            line = {
                "row": f"dataset{dataset}/{order}/run{run}/{count}",
                "problem": given.problem,
                "dataset": dataset,
                "order": order,
                "run": run,
                "count": count,
                "samples": given.samples,
                "data": data,
                # both counts share their random numbers, and with them their samples
                "seed": seed(data, "ordering", order, f"samples{given.samples}", f"run{run}"),
                "seconds": seconds,
            }
            lines.append(line)
    return planned(lines)


def run(row: Row, inputs: Inputs) -> Result:
    """Run the sampler: ``log_evidence_error`` (nats), ``probability_mae``, ``smallest_stage`` and ``variance_eq44``."""
    from studies.atiya2021.ordering import ordered_run

    names = ("problem", "dataset", "order", "run", "count", "samples", "seed")
    found = ordered_run(
        row["problem"], row["data"], row["order"], row["count"], row["samples"], row["seed"]
    )
    return Result([{name: row[name] for name in names} | found])
