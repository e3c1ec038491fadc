"""Other classifiers beside Gaussian processes on threes against fives, over rejected shares (Figure 3.10)."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.rasmussen2006.config import Configuration

METHODS = ("laplace", "ep", "linear-probit", "svm", "svm-whole", "lsc", "p1nn")


def plan(config: Configuration) -> list[Line]:
    """Return a row a classifier; its seed is of the folds of the support vector machines."""
    return planned(
        {
            "row": method,
            "method": method,
            "shares": config.rasmussen2006.comparators.shares,
            "seed": seed(config.seed, "comparators", method),
        }
        for method in METHODS
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Classify the test cases, and reject shares of them: ``method``, ``quantity``, ``share`` and ``value``."""
    from studies.rasmussen2006.comparators import classified

    lines = classified(row["method"], row["shares"], row["seed"], inputs["digits"])
    return Result([{"method": row["method"], **line, "seed": row["seed"]} for line in lines])
