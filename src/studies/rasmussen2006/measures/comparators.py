"""Other classifiers on threes against fives: Figure 3.10, and the linear probit model."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Row, Rows, exact

#: Cells and claims of this part.
IDS = (
    *("section3.7.3/linear-probit/*", "claim/best-three", "claim/least-squares-best"),
    *("claim/laplace-ep/*", "claim/p1nn/*", "claim/machine/*"),
)
#: The share of rejections at which the nearest neighbour is looked at.
_REJECTED = 0.3


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part."""
    rows = given.table("comparators")
    curves = rows[rows["quantity"].isin(["error", "information"])]
    found = [
        exact(f"figure3.10/{row['method']}/{row['quantity']}/{row['share']:g}", row["value"], row["source"])
        for row in curves.to_dict("records")
    ]  # fmt: skip
    facts = rows.drop(curves.index)
    for row in facts.to_dict("records"):
        name = f"comparator/{row['method']}/{row['quantity'].replace('_', '-')}"
        found.append(exact(name, row["value"], row["source"]))
    table = rows[rows["share"] == 0].set_index(["method", "quantity"])["value"]
    source = rows["source"]
    surface = given.table("surface").query("method == 'laplace'")
    found += [*_linear_probit(table, surface, rows), *_claims(table, curves)]
    found += _searches(given.table("machines"))
    return as_measures([{"source": source.iloc[0], **row} for row in found])


def _linear_probit(table: pd.Series, surface: pd.DataFrame, rows: pd.DataFrame) -> Iterator[Row]:
    own, base = table["linear-probit"], "section3.7.3/linear-probit"
    source = rows.loc[rows["method"] == "linear-probit", "source"]
    yield exact(f"{base}/log-evidence", own["log_evidence"], source)
    for level, theta in {"as-printed": own["theta"], "inverse": 1 / own["theta"]}.items():
        yield exact(f"{base}/theta", theta, source, reading=f"theta={level}")
    for level, place in {"grid": "rounding", "surface": "maximum"}.items():
        best = surface.loc[surface["place"] == place, "log_evidence"].max()
        reading = f"optimum={level}"
        yield exact(f"{base}/below", best - own["log_evidence"], source, reading=reading)


def _searches(rows: pd.DataFrame) -> Iterator[Row]:
    """Held-out errors by C and l, and by how many percent of cases the printed point is above the least."""
    for row in rows.to_dict("records"):
        key = {
            "id": f"machine/C{row['cost']:g}/l{row['length']:g}/errors",
            "reading": f"machine={row['machine']}",
            "unit": f"search{row['run']}",
            "seed": row["seed"],
        }
        yield {**key, "value": float(row["errors"]), "scale": "linear", "source": row["source"]}
    for (run, machine), own in rows.groupby(["run", "machine"], sort=False):
        there = own[(own["cost"] == 1) & (own["length"] == 10)].iloc[0]
        yield {
            **{"id": "claim/machine/best", "reading": f"machine={machine}", "scale": "linear"},
            **{"unit": f"search{run}", "seed": there["seed"], "source": there["source"]},
            "value": 100 * float(there["errors"] - own["errors"].min()) / there["cases"],
        }


def _claims(table: pd.Series, curves: pd.DataFrame) -> Iterator[Row]:
    errors, source = table.xs("errors", level="quantity"), curves["source"]
    by_rejected = {"none": table.xs("information", level="quantity"), "curve": _over_curve(curves)}
    for rejected, told in by_rejected.items():
        yield from _information(told, f"rejected={rejected}", source)
    yield exact("claim/laplace-ep/errors", errors["ep"] - errors["laplace"], source)
    yield exact("claim/p1nn/comparable", _over(errors["p1nn"], errors["laplace"]), source)
    own = curves[(curves["method"] == "p1nn") & (curves["quantity"] == "error")]
    by_share = own.set_index("share")["value"]
    if _REJECTED in by_share.index:
        flat = _over(by_share[_REJECTED], by_share[0.0])
        yield exact("claim/p1nn/flat", flat, own["source"])


def _over_curve(curves: pd.DataFrame) -> pd.Series:
    """The mean information of each method over the rejected shares, by the trapezium rule."""
    rows = curves[curves["quantity"] == "information"]
    table = rows.pivot(index="share", columns="method", values="value").sort_index()
    share = table.index.to_numpy()
    if len(share) < 2:
        return pd.Series(math.nan, table.columns)
    return pd.Series(np.trapezoid(table, share, axis=0) / (share[-1] - share[0]), table.columns)


def _information(told: pd.Series, rejected: str, source: pd.Series) -> Iterator[Row]:
    """Claims on the information by method, at no rejections or over the curve."""
    for level, other in {"half": "svm-whole", "whole": "svm"}.items():
        here, more = told.drop(other), {"reading": f"machine={level};{rejected}"}
        best = ["ep", "lsc", *here.index.intersection(["svm", "svm-whole"])]
        least = here[best].min() - here.drop(best).max()
        yield exact("claim/best-three", least, source, **more)
        first = here["lsc"] - here.drop("lsc").max()
        yield exact("claim/least-squares-best", first, source, **more)
    more = {"reading": rejected}
    yield exact("claim/laplace-ep/information", told["ep"] - told["laplace"], source, **more)
    yield exact("claim/p1nn/worse", told["p1nn"] - told.drop("p1nn").min(), source, **more)
    for method, value in told.items() if rejected == "rejected=curve" else ():
        yield exact(f"figure3.10/{method}/information-over-curve", value, source)


def _over(one: float, other: float) -> float:
    """A ratio; NaN over zero."""
    return float(one / other) if other else math.nan
