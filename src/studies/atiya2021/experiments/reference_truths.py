"""The certified truths: the closed forms of Experiments 1 to 3 against the adapted orthant sampler."""

from __future__ import annotations

from studies.atiya2021.names import PATTERNS
from studies.atiya2021.settings import Configuration
from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed

#: Problems of each dimension of Experiment 1, and data sets of each problem of Experiment 2.
DIMENSIONS, INSTANCES, DATA_SETS = (50, 200, 500), 20, 5
#: CPU seconds of a truth, at most.
_SECONDS = 60.0


def plan(config: Configuration) -> list[Line]:
    """Return a row a truth; at every scale they are the same."""
    named = [(1, d, k, f"N{d}", f"instance{k}") for d in DIMENSIONS for k in range(INSTANCES)]
    named += [(2, p, k, f"problem{p}", f"dataset{k}") for p in PATTERNS for k in range(DATA_SETS)]
    return planned(
        {
            "row": "/".join((f"experiment{experiment}", *names)),
            "seconds": _SECONDS,
            "experiment": experiment,
            "problem": problem,
            "dataset": dataset,
            "seed": seed(config.seed, f"experiment{experiment}", *names),
            "together": len(named),
        }
        for experiment, problem, dataset, *names in named
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Certify a truth: its key, and what functions of `studies.atiya2021.reference.truths` return."""
    from studies.atiya2021.reference.truths import certified_classes, certified_orthant

    certify = certified_orthant if row["experiment"] == 1 else certified_classes
    key = {name: row[name] for name in ("experiment", "problem", "dataset", "seed")}
    return Result([key | certify(row["problem"], row["seed"], row["together"])])
