"""The abstract's claim: predictions that integrate over hyperparameters by quadrature, on the same training sets."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.filippone2014.config import Configuration
from studies.filippone2014.experiments.prediction import split_path


def plan(config: Configuration) -> list[Line]:
    """Return a row a data set, number of training cases and training set."""
    given = config.filippone2014.prediction
    return planned(
        {
            "row": f"{data}/n{n}/split{split}",
            "data": data,
            "n": n,
            "split": split,
            "seconds": 0.3 * n,
            "grid": given.quadrature.model_dump(),
            "seed": split_path(config.seed, data, n, split),
        }
        for data in given.data
        for n in given.sizes
        for split in range(given.splits)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Predict the test cases: scores, and as of `studies.filippone2014.quadrature.integrated`."""
    from studies.filippone2014.prediction import task_of
    from studies.filippone2014.quadrature import integrated

    found = integrated(task_of(inputs["data"], row["n"], row["seed"]), **row["grid"])
    key = {key: row[key] for key in ("data", "n", "split")}
    return Result([{**key, "method": "quadrature", **found, "seed": row["seed"]}])
