"""The three-way problem: section 6, Figures 3 and 4, and the files of 2022."""

from __future__ import annotations

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, as_measures
from studies.common.measuring import Row, Rows, exact
from studies.neal1997.runs import CLASSES, CLASSES_ITERATIONS, used

#: Cells and claims of this part.
IDS = ("*/*/error-*", "software2022/2022-400/*", "software2022/2022-100/*", "software2022/2022-logistic/*",
       "claim/relevance", "claim/equilibrium", "claim/latent")  # fmt: skip
#: Statuses of chains that do not count.
FEWER, ASTRAY = "fewer iterations", "not in equilibrium"
#: Ids of cells by run, but for the quantity, and the quantities that are printed there.
_PRINTED = {
    "1997-400": {"section6": ["error-percent"], "documentation": ["error-rate"]},
    "1997-100": {"section6": ["error-percent"]},
    **{run: {"software2022": ["error-rate", "log-probability"]}
       for run in ("2022-400", "2022-100", "2022-logistic")},
}  # fmt: skip
_SCALES = {"error-percent": "log", "error-rate": "log", "log-probability": "linear"}
#: The run and the chain that figures show.
SHOWN = ("1997-400", 0)
_RELEVANCES = ("rho1", "rho2", "rho3", "rho4")


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part: a unit is a chain.

    A chain on the 100 cases may stay where the latent values are nothing but jitter. Its magnitude is then far below
    the jitter, which a look at its trace shows. It does not count, and the share of such chains is a measure.
    """
    found: list[Row] = []
    for (run, chain), own in given.table("classes").groupby(["run", "chain"], sort=False):
        last = own.iloc[-1]
        common = {"unit": last["row"], "run": 0, "seed": last["seed"], "source": last["source"]}
        common["status"], lost = _status(run, own)
        if common["status"] != FEWER:
            row = {**common, "status": OK, "id": f"chains/{run}/astray", "scale": "linear"}
            found.append({**row, "value": float(lost)})
        found += _chain(run, own, common)
        if (run, chain) == SHOWN:
            found += _trace(own)
    return as_measures(found)


def _status(run: str, table: pd.DataFrame) -> tuple[str, bool]:
    """Whether a chain counts, and whether its magnitude was far below the jitter when predictions were made."""
    settings, iterations = CLASSES[run], len(table)
    saved = table["iteration"].isin(used(iterations, settings.first, CLASSES_ITERATIONS))
    lost = bool(table.loc[saved, "eta"].median() < 0.1 * settings.jitter)
    if iterations < CLASSES_ITERATIONS:
        return FEWER, lost
    return (ASTRAY if lost else OK), lost


def _chain(run: str, table: pd.DataFrame, common: Row) -> list[Row]:
    """The measures of a chain with a line an iteration."""
    last = table.iloc[-1]
    scores = {
        "error-percent": 100 * last["error-rate"],
        "error-rate": last["error-rate"],
        "log-probability": last["log-probability"],
    }
    named = {"chains": ["error-percent", "log-probability"], **_PRINTED[run]}
    found = [
        {**common, "id": f"{place}/{run}/{name}", "scale": _SCALES[name], "value": scores[name]}
        for place, names in named.items()
        for name in names
    ]
    half, quarter = len(table) // 2, len(table) // 4
    for name in ("eta", *_RELEVANCES):
        value = float(np.exp(np.log(table[name].iloc[half:]).mean()))
        found.append({**common, "id": f"chains/{run}/{name}", "scale": "log", "value": value})
    accepted = table["accepted"].mean() / 5
    found.append({**common, "id": f"chains/{run}/accepted", "scale": "linear", "value": accepted})
    if run == SHOWN[0]:
        logs = np.log(table[["eta", *_RELEVANCES]])
        # rows one after the other, whatever the table's layout in memory: so it rounds the same
        second = np.array(logs[half:], order="C").mean(axis=0)
        matter = (second[1] + second[2] - second[3] - second[4]) / 2
        change = logs["eta"].iloc[-quarter:].mean() - logs["eta"].iloc[half:-quarter].mean()
        claims = {"relevance": matter, "equilibrium": change, "latent": _persistence(table[half:])}
        for name, value in claims.items():
            row = {**common, "id": f"claim/{name}", "scale": "linear", "value": float(value)}
            found.append(row if np.isfinite(value) else row | {"status": FEWER})
    return found


def _persistence(table: pd.DataFrame) -> float:
    """Mean over classes of the correlation of a latent value with itself an iteration later."""
    if len(table) < 3:
        return float("nan")
    latent = [table[f"latent{k}"].to_numpy() for k in range(3)]
    return float(np.mean([np.corrcoef(one[:-1], one[1:])[0, 1] for one in latent]))


def _trace(own: pd.DataFrame) -> list[Row]:
    names = (*_RELEVANCES, "latent0", "latent1", "latent2")
    return [
        exact(f"trace/{name}/{row['iteration']}", row[name], row["source"])
        for row in own.to_dict("records")
        for name in names
    ]
