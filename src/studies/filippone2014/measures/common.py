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
#: Operations as the source counts and by our own count: columns by the level of the reading.
COUNTS = {"source": "operations", "own": "operations_own"}


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


def of_chains(base: str, unit: str, one: pd.Series, percent: float, **more: Any) -> list[Row]:
    """What the tables show of the chains of a line, whose effective samples are so many percent of the draws."""
    found = [row(f"{base}/ess", unit, percent, one, **more)]
    for part in PARTS:
        found.append(row(f"{base}/r-hat-{part}", unit, one[f"r_hat_{part}"], one, **more))
    found.append(row(f"{base}/acceptance", unit, 100 * one["acceptance"], one, **more))
    for level, column in COUNTS.items():
        own = {"reading": f"counts={level}", **more}
        found.append(row(f"{base}/operations", unit, one[column], one, **own))
        found.append(row(f"{base}/rate", unit, percent / one[column], one, **own))
    return found


def scheme_of(one: pd.Series) -> str:
    """The name of what was run: with its importance samples, if it has any."""
    return str(one["scheme"]) if not one["samples"] else f"{one['scheme']}-{one['samples']}"


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
