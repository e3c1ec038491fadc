"""Standard deviations of estimates (the cells), their means, and the reference beside them (the claims)."""

from __future__ import annotations

import math

import pandas as pd

from recheck.judge.measures import OK, as_measures, join_sources
from studies.cao2024.experiments.reference import DENSE
from studies.cao2024.experiments.spread import BETWEEN
from studies.common.measuring import Row, Rows, exact

#: Cells and claims of this part.
IDS = ("sd/*", "claim/*")
#: The design of the printed numbers: dimension, estimates, and draws of each by method.
SIZE, ESTIMATES = 900, 30
DRAWS = {"minimax-tilting": 10_000, "separation": 90_000}
#: The larger dimension, of claims alone.
LARGE = 6400
#: Statuses of what does not count.
FEWER = "fewer draws, estimates or dimensions than the paper's"
NO_VECCHIA = "the library has no Vecchia factor"
TOO_LONG = "five hours for one standard deviation"
#: Cells that nothing is run for, and why.
NOT_RUN = {
    **{f"sd/{name}/vecchia": NO_VECCHIA
       for name in ("orthant-900", "shifted-900", "orthant-6400", "shifted-6400", "box-6400")},
    **{f"sd/{name}/separation": TOO_LONG
       for name in ("orthant-6400", "shifted-6400", "box-6400")},
}  # fmt: skip


def measure(given: Rows) -> pd.DataFrame:
    """All measures: a unit is a standard deviation of estimates of one probability."""
    found: list[Row] = []
    for _, own in given.table("spread").groupby("row", sort=False):
        found += _unit(own)
    for row in given.table("reference").to_dict("records"):
        found += _reference(row)
    for id, why in NOT_RUN.items():
        found.append({"id": id, "scale": "log", "value": math.nan, "status": why})
    return as_measures(found)


def _unit(own: pd.DataFrame) -> list[Row]:
    first = own.iloc[0]
    kind = str(first["kind"])
    common = {
        "unit": f"{first['limits']}/unit{first['unit']}",
        "run": 0,
        "seed": first["seed"],
        "source": join_sources(own["source"]),
    }
    spread = {**common, "scale": "log", "value": float(own["value"].std(ddof=1))}
    name = f"{first['limits']}-900"
    whole = first["size"] == SIZE and len(own) == ESTIMATES
    if kind.startswith(BETWEEN):
        id = f"between/sd/{name}/{kind.removeprefix(BETWEEN)}"
        return [{**spread, "id": id, "status": OK if whole else FEWER}]
    reading = {"reading": f"nugget={first['nugget']}"} if kind == "minimax-tilting" else {}
    whole &= first["draws"] == DRAWS.get(kind, first["draws"])
    status = {"status": OK if whole else FEWER}
    mean = {**common, "scale": "linear", "value": float(own["value"].mean())}
    return [
        {**spread, **reading, **status, "id": f"sd/{name}/{kind}"},
        {**mean, **reading, "id": f"mean/{name}/{kind}"},
    ]


def _reference(row: Row) -> list[Row]:
    """A probability; where its weights are not trusted, what no draw has seen may be missing: it is a bound."""
    known = {"seed": row["seed"], "se": row["se"]}
    if row["row"].startswith(DENSE):
        id, reading = "mean/orthant-900/reference", f"nugget={row['nugget']}"
        return [exact(id, row["value"], row["source"], reading=reading, df=15.0, **known)]
    bound = OK if row["status"] == OK else "at least"
    known |= {"df": row["groups"] - 1.0, "status": bound if row["size"] == LARGE else FEWER}
    names = ("mean/orthant-6400/reference", "claim/mean", "claim/neighbours")
    found = [exact(id, row["value"], row["source"], **known) for id in names]
    rest = ("rank", "correction", "correction_rest", "k_hat", "ep")
    return found + [exact(f"low-rank/{name}", row[name], row["source"]) for name in rest]
