"""What Figures 3.4 to 3.6 draw: one likelihood term, one draw of the toy, and lone points in the square."""

from __future__ import annotations

from studies.common.rows import Inputs, Line, Result, Row, planned
from studies.common.seeds import seed
from studies.rasmussen2006.config import Configuration


def plan(config: Configuration) -> list[Line]:
    """Return a row for each of Figures 3.4 and 3.6, and one a draw of the points of Figure 3.5."""
    root = config.seed
    return planned(
        [
            {"row": "term", "figure": "3.4"},
            {"row": "line", "figure": "3.6", "seed": seed(root, "pictures", "line")},
            *(
                {
                    "row": f"square{k}",
                    "seconds": 0.03,
                    "figure": "3.5",
                    "draw": k,
                    "seed": seed(root, "pictures", f"square{k}"),
                }
                for k in range(config.rasmussen2006.toy.draws)
            ),
        ]
    )


def run(row: Row, inputs: Inputs) -> Result:
    """Draw one: ``figure``, ``quantity``, ``draw``, ``length``, ``seed``, place ``x`` and ``y``, and ``value``."""
    from studies.rasmussen2006 import pictures

    if row["figure"] == "3.4":
        return Result(pictures.term())
    if row["figure"] == "3.6":
        return Result(pictures.line(row["seed"]))
    return Result(pictures.squares(row["draw"], row["seed"]))
