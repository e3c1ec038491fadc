"""The abstract's claim: predictions that integrate over hyperparameters by quadrature, on the same training sets."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.filippone2014.config import Configuration
from studies.filippone2014.experiments.prediction import splits


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set, number of training cases and training set."""
    grid = config.filippone2014.prediction.quadrature.model_dump()
    return planned({**line, "seconds": 0.3 * line["n"], "grid": grid} for line in splits(config))


def run(row: Row, inputs: Inputs) -> Result:
    """Predict the test cases: scores, and as of `studies.filippone2014.quadrature.integrated`."""
    from studies.filippone2014.prediction import task_of
    from studies.filippone2014.quadrature import integrated

    found = integrated(task_of(inputs["data"], row["n"], row["seed"]), **row["grid"])
    key = {key: row[key] for key in ("data", "n", "split")}
    return Result([{**key, "method": "quadrature", **found, "seed": row["seed"]}])
