"""Other classifiers of all ten digits (section 3.7.4)."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.rasmussen2006.config import Configuration

#: CPU seconds with all training cases, about.
_SECONDS = {"neighbour": 5.0, "linear": 8.0, "linear-best": 50.0, "svm": 12.0}


def plan(config: Configuration) -> list[Line]:
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
    share = given.training / 4649
    return planned(
        {**line, "seconds": share * _SECONDS[str(line["method"])], **sizes} for line in methods
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Classify the test cases: ``method``, ``training``, ``test``, ``theta``, ``quantity`` and ``value``."""
    from studies.rasmussen2006.tenclass import others

    return Result(
        others(row["method"], row.get("theta"), inputs["digits"], row["training"], row["test"])
    )
