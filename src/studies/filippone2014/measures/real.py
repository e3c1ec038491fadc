"""Section 4.4: chains on real data. The source's numbers are lost, so that these are shown and not judged."""

from __future__ import annotations

import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Rows
from studies.filippone2014.measures.common import PARTS, row


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part: a unit is a data set."""
    rows, _ = given.available("real")
    found = []
    for _, one in rows.iterrows():
        name = one["scheme"] if not one["samples"] else f"{one['scheme']}-{one['samples']}"
        if one["repeats"] > 1:
            continue
        base = f"real/{one['name']}/{name}"
        values = {
            "ess": 100 * one["ess"] / one["draws"],
            **{f"r-hat-{part}": one[f"r_hat_{part}"] for part in PARTS},
            "acceptance": 100 * one["acceptance"],
        }
        for what, value in values.items():
            found.append(row(f"{base}/{what}", "", value, one, se=0.0))
        for level, column in {"source": "operations", "own": "operations_own"}.items():
            own = {"reading": f"counts={level}", "se": 0.0}
            found.append(row(f"{base}/operations", "", one[column], one, **own))
            rate = 100 * one["ess"] / one["draws"] / one[column]
            found.append(row(f"{base}/rate", "", rate, one, **own))
    return as_measures(found)
