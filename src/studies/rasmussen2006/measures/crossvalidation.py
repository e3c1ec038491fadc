"""Cross-validation: Table 1 of Kuss and Rasmussen (2005)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from recheck.measures import as_measures, join_sources
from studies.common.raw import read

#: Cells of this part.
IDS = ("kuss2005/*",)
_SCALES = {"error_percent": "log", "information": "linear"}


def measure(root: Path) -> pd.DataFrame:
    """All measures of this part: a unit is an assignment of the cases to folds, which all methods share."""
    folds = read(root, "crossvalidation/*.csv")
    folds["told"] = folds["cases"] * folds["information"]
    of_seed = folds.groupby(["data", "method", "run"], sort=False)
    rows = of_seed[["cases", "errors", "told"]].sum()
    rows = rows.join(of_seed.agg({"source": join_sources, "seed": "first"})).reset_index()
    rows["error_percent"] = 100 * rows["errors"] / rows["cases"]
    rows["information"] = rows["told"] / rows["cases"]
    base = "kuss2005/" + rows["data"] + "/" + rows["method"]
    common = {
        "unit": rows["data"] + "/seed" + rows["run"].astype(str),
        "run": 0,
        "source": rows["source"],
        "seed": rows["seed"],
    }
    parts = [
        pd.DataFrame(
            {
                "id": base + "/" + name.replace("_", "-"),
                "value": rows[name].astype(float),
                "scale": scale,
                **common,
            }
        )
        for name, scale in _SCALES.items()
    ]
    return as_measures(pd.concat(parts))
