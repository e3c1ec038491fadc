"""The one-dimensional example in distribution: Figure 3.6."""

from __future__ import annotations

import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Rows

#: The printed maximum of Laplace's evidence.
_PRINTED = {"length": 2.6, "amplitude": 7.0}
#: Draws with a larger amplitude are like the book's in how firmly the groups are apart.
_AMPLITUDE = 5.0
#: Cells and claims of this part.
IDS = ("figure3.6/*", "claim/toy/*")


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part."""
    rows = given.table("toy")
    laplace, own = rows["method"] == "laplace", rows["setting"] == "own"
    negative = rows["mean_far"] - 2 * rows["deviation_far"] < 0
    statements = {
        "laplace-band": negative[laplace],
        "ep-band": ~negative[~laplace],
        "falls": (rows["p_four"] < rows["p_two"])[laplace],
    }
    frames = []
    for name in ("length", "amplitude"):
        part = rows[laplace & own]
        table = {"id": f"figure3.6/laplace/{name}", "value": part[name], "scale": "log"}
        frames.append(_frame(part, table))
        below = (part[name] < _PRINTED[name]).astype(float)
        table = {"id": f"claim/toy/{name}", "value": below, "scale": "linear"}
        frames.append(_frame(part, table))
    like = rows[laplace & own & (rows["amplitude"] > _AMPLITUDE)]
    table = {"id": "toy/laplace-band/large-amplitude", "scale": "linear"}
    frames.append(_frame(like, table | {"value": negative[like.index].astype(float)}))
    for name, holds in statements.items():
        part = rows.loc[holds.index]
        table = {"id": f"claim/toy/{name}", "value": holds.astype(float), "scale": "linear"}
        table |= {"reading": "hyperparameters=" + part["setting"]}
        frames.append(_frame(part, table))
    return as_measures(pd.concat(frames))


def _frame(part: pd.DataFrame, table: dict[str, object]) -> pd.DataFrame:
    unit = "toy/draw" + part["draw"].astype(str)
    return pd.DataFrame(
        {**table, "unit": unit, "run": 0, "source": part["source"], "seed": part["seed"]},
        index=part.index,
    )
