"""Figures 3.4 to 3.6 as they are drawn, and the lone points of Figure 3.5 over draws."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Row, Rows, exact

#: Cells and claims of this part.
IDS = ("claim/lone/*",)
#: Of one draw each.
_DRAWN = ("points", "probability")


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part."""
    rows = given.table("pictures")
    scalar = (rows["figure"] == 3.5) & ~rows["quantity"].isin(_DRAWN)
    return as_measures([*_curves(rows[~scalar]), *_lone(rows[scalar])])


def _curves(rows: pd.DataFrame) -> Iterator[Row]:
    for number, row in enumerate(rows.to_dict("records")):
        place = f"{number}/x{row['x']:.6g}/y{row['y']:.6g}"
        id = f"picture/figure{row['figure']}/{row['quantity']}/l{row['length']:g}/{place}"
        yield exact(id, row["value"], row["source"], seed=row["seed"])


def _lone(rows: pd.DataFrame) -> Iterator[Row]:
    """Shares of draws in which the text's statements hold, and the range of probabilities over the square."""
    for draw, own in rows.groupby("draw"):
        table = own.set_index(["length", "quantity"])["value"]
        found = {
            "claim/lone/short": table[0.1, "errors"] == 0,
            "claim/lone/long": table[0.3, "lone-errors"] == 2,
            "lone/least": table.xs("least", level="quantity").min(),
            "lone/greatest": table.xs("greatest", level="quantity").max(),
        }
        more = {"unit": f"square/draw{draw}", "run": 0, "scale": "linear"}
        for id, value in found.items():
            source, seed = own["source"].iloc[0], own["seed"].iloc[0]
            yield {"id": id, "value": float(value), "source": source, "seed": seed, **more}
