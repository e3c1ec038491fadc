"""Cross-validation: Table 1 of Kuss and Rasmussen (2005)."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from recheck.judge.measures import as_measures, join_sources
from studies.common.measuring import Rows

#: Cells of this part.
IDS = ("kuss2005/*",)
#: Information by the two kinds of probabilities of a machine's scores, as levels of the reading `scores`.
_SCORES = {"probit": "information", "logistic": "information_logistic"}


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part: a unit is an assignment of the cases to folds, which all methods share."""
    folds = given.table("crossvalidation")
    quantities = [name for name in _SCORES.values() if name in folds]
    for name in quantities:
        folds[name] *= folds["cases"]
    of_seed = folds.groupby(["data", "inputs", "method", "run"], sort=False)
    rows = of_seed[["cases", "errors", *quantities]].sum()
    rows = rows.join(of_seed.agg({"source": join_sources, "seed": "first", "at_bound": "mean"}))
    rows = rows.reset_index()
    for name in quantities:
        rows[name] /= rows["cases"]
    rows["error_percent"] = 100 * rows["errors"] / rows["cases"]
    rows["base"] = "kuss2005/" + rows["data"] + "/" + rows["method"]
    inputs = rows["inputs"].map({"prepared": "prepared", "unprepared": "as-they-come"})
    rows["reading"] = "inputs=" + inputs
    return as_measures(pd.concat(_frames(rows)))


def _frames(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    machines = rows["method"] == "svm"
    yield _frame(rows, "error-percent", "error_percent", "log")
    yield _frame(rows[~machines], "information", "information", "linear")
    for level, column in _SCORES.items():
        part = rows[machines]
        yield _frame(
            part.assign(reading=part["reading"] + f";scores={level}"),
            "information",
            column,
            "linear",
        )
    yield _frame(rows[~machines], "at-bound", "at_bound", "linear")


def _frame(rows: pd.DataFrame, name: str, column: str, scale: str) -> pd.DataFrame:
    if column not in rows:  # no machine was trained
        return pd.DataFrame()
    return pd.DataFrame(
        {
            "id": rows["base"] + "/" + name,
            "reading": rows["reading"],
            "unit": rows["data"] + "/seed" + rows["run"].astype(str),
            "run": 0,
            "value": rows[column].astype(float),
            "scale": scale,
            "source": rows["source"],
            "seed": rows["seed"],
        }
    )
