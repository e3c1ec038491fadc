"""The regression with outliers: section 7, Figure 5, and the files of 2022."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, as_measures
from studies.common.measuring import Row, Rows, exact
from studies.neal1997.measures.classes import ASTRAY, FEWER
from studies.neal1997.runs import MINOR, OUTLIERS_FIRST, OUTLIERS_ITERATIONS, used

#: Cells and claims of this part.
IDS = ("documentation/*/squared-error", "software2022/2022-t/*", "software2022/2022-gaussian/*",
       "claim/outliers")  # fmt: skip
#: Ids of cells by run, but for the quantity, and the quantities that are printed there.
_PRINTED = {
    "1997-t": ("documentation", ["squared-error"]),
    "2022-t": ("software2022", ["squared-error", "log-probability"]),
    "2022-gaussian": ("software2022", ["squared-error", "log-probability"]),
}
_SCALES = {"squared-error": "log", "function-error": "log", "log-probability": "linear"}


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part: a unit is a chain. The chain of Figure 5 is the first of each run.

    With Gaussian noise the posterior is known by quadrature. A chain that makes its predictions from a mode with little
    of it does not count, and the share of such chains is a measure.
    """
    rows, known = given.table("outliers"), given.table("exact")
    arrays = given.arrays("outliers")
    curves = dict(zip(arrays["curve/rows"], arrays["curve"], strict=True))
    found: list[Row] = []
    posteriors = {run: own.set_index("quantity") for run, own in known.groupby("run", sort=False)}
    for run, own in posteriors.items():
        found += _exact(run, own["value"], own["source"])
    for (run, chain), own in rows.groupby(["run", "chain"], sort=False):
        last, iterations = own.iloc[-1], len(own)
        common: Row = {"unit": f"outliers/chain{chain}", "run": 0}
        common |= {"seed": last["seed"], "source": last["source"]}
        common["status"] = OK if iterations == OUTLIERS_ITERATIONS else FEWER
        if run in posteriors and common["status"] == OK:
            saved = own["iteration"].isin(used(iterations, OUTLIERS_FIRST, OUTLIERS_ITERATIONS))
            lost = is_astray(own.loc[saved, "rho"].median(), posteriors[run]["value"])
            row = {**common, "id": f"chains/{run}/astray", "scale": "linear", "value": float(lost)}
            found.append(row)
            common["status"] = ASTRAY if lost else OK
        found += _chain(run, last, common)
        for name in ("eta", "rho", "sigma"):
            value = float(np.exp(np.log(own[name].iloc[iterations // 2 :]).mean()))
            found.append({**common, "id": f"chains/{run}/{name}", "scale": "log", "value": value})
        if chain == 0:
            found += [
                exact(f"figure5/{run}/{x:.2f}", y, last["source"])
                for x, y in curves[last["row"]].T.tolist()
            ]
    return as_measures([*found, *_claim(pd.DataFrame(found))])


def is_astray(rho: float, posterior: Mapping[str, float]) -> bool:
    """Whether a relevance is in a mode that has little of the posterior; see `studies.neal1997.exact`."""
    if "divide" not in posterior:
        return False
    above = posterior["above"]
    return bool((above if rho > posterior["divide"] else 1.0 - above) < MINOR)


def _exact(run: str, values: pd.Series, sources: pd.Series) -> list[Row]:
    found = [
        exact(f"exact/{run}/{name}", values[name], sources[name])
        for name in (*_SCALES, "eta", "rho", "sigma")
    ]
    if "divide" in values:
        minor = min(values["above"], 1.0 - values["above"])
        found.append(exact(f"exact/{run}/minor", minor, sources["above"]))
    return found


def _chain(run: str, scores: pd.Series, common: Row) -> list[Row]:
    """Its scores, which are in the line of its last iteration."""
    found = []
    for name, scale in _SCALES.items():
        row = {**common, "scale": scale, "value": float(scores[name])}
        found.append({**row, "id": f"chains/{run}/{name}"})
        place, names = _PRINTED.get(run, ("", []))
        if name not in names:
            continue
        id = f"{place}/{run}/{name}"
        if name == "log-probability" and run == "2022-t":
            found.append({**row, "id": id, "reading": "density=integrated"})
            own = float(scores[f"{name}-software"])
            found.append({**row, "id": id, "reading": "density=software", "value": own})
        else:
            found.append({**row, "id": id})
    return found


def _claim(found: pd.DataFrame) -> list[Row]:
    """How much closer t noise comes to the function than Gaussian noise, chain by chain."""
    rows: list[Row] = []
    t = found[found["id"] == "chains/1997-t/function-error"].set_index("unit")
    for level, run in {"paper": "1997-gaussian", "release": "1997-gaussian-100"}.items():
        other = found[found["id"] == f"chains/{run}/function-error"].set_index("unit")
        for unit in t.index.intersection(other.index, sort=False):
            row = t.loc[unit, ["run", "source", "seed", "status"]].to_dict()
            if row["status"] == OK:
                row["status"] = other.loc[unit, "status"]
            ratio = t.loc[unit, "value"] / other.loc[unit, "value"]
            row |= {"id": "claim/outliers", "unit": unit, "value": ratio, "scale": "log"}
            rows.append(row | {"reading": f"constant={level}"})
    return rows
