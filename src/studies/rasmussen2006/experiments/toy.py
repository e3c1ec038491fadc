"""The one-dimensional example (section 3.7.2, Figure 3.6) on many draws of its data."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.rasmussen2006.config import Configuration


def plan(config: Configuration) -> list[Line]:
    """Return a row a draw."""
    return planned(
        {
            "row": f"draw{k}",
            "seconds": 0.1,
            "draw": k,
            "seed": seed(config.seed, "toy", f"draw{k}"),
        }
        for k in range(config.rasmussen2006.toy.draws)
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Look at Laplace's method and EP on a draw, at its own hyperparameters (``setting``) and at the printed ones."""
    from studies.common.seeds import generator
    from studies.rasmussen2006.toy import described

    lines = described(generator(row["seed"]))
    return Result([{"draw": row["draw"], **line, "seed": row["seed"]} for line in lines])
