"""Rows of measures: comparisons of two things on one unit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from recheck.judge.measures import join_sources
from studies.common.measuring import Row
from studies.common.rows import NO_DATA

#: Percents of the iterations after which R-hat is shown.
PARTS = (10, 20, 50, 100)


def row(id: str, unit: str, value: float, rows: pd.DataFrame | pd.Series, **more: Any) -> Row:
    """A measure from lines of results; it counts if it is finite."""
    source, path = rows["source"], rows["seed"]
    source = source if isinstance(source, str) else join_sources(source)
    path = path if isinstance(path, str) else path.iloc[0]
    found: Row = {"id": id, "unit": unit, "run": 0, "value": float(value), "scale": "linear"}
    found |= {"source": source, "seed": path, **more}
    if not np.isfinite(found["value"]):
        found["status"] = "not defined"
    return found


def log_ratio(above: float, below: float) -> float:
    """The logarithm of a ratio; NaN where one is not positive and finite."""
    if above > 0 and below > 0 and np.isfinite([above, below]).all():
        return float(np.log(above / below))
    return float("nan")


def without_data(ids: Iterable[str], sources: Iterable[str]) -> list[Row]:
    """Rows that say of claims that the data could not be had; none without such a source."""
    source = join_sources(sources)
    lost = {"scale": "linear", "value": float("nan"), "status": NO_DATA, "source": source}
    return [{"id": id, **lost} for id in ids] if source else []
