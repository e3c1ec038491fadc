"""Other classifiers of all ten digits (section 3.7.4)."""

from __future__ import annotations

import pandas as pd

from studies.common.rows import Inputs, Result, Row, planned
from studies.rasmussen2006.config import Configuration


def plan(config: Configuration) -> pd.DataFrame:
    """Return a row for the nearest neighbour, each theta of the linear model, its best theta, and the machines."""
    given = config.rasmussen2006.ten_classes
    methods: list[dict[str, object]] = [{"row": "neighbour", "method": "neighbour"}]
    methods += [
        {"row": f"linear/theta{theta:g}", "method": "linear", "theta": theta}
        for theta in given.thetas
    ]
    methods += [{"row": "linear-best", "method": "linear-best"}] * given.search
    methods += [{"row": "svm", "method": "svm"}] * given.machines
    sizes = {"training": given.training, "test": given.test}
    return planned({**line, **sizes} for line in methods)


def run(row: Row, inputs: Inputs) -> Result:
    """Classify the test cases: ``method``, ``training``, ``test``, ``theta``, ``quantity`` and ``value``."""
    from studies.rasmussen2006.tenclass import others

    return Result(
        others(row["method"], row.get("theta"), inputs["digits"], row["training"], row["test"])
    )
