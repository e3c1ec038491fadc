"""The exact evidence of threes against fives beside Laplace's and EP's: Figure 3.12, and the surface on the grid."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from recheck.judge.measures import OK, as_measures
from studies.common.measuring import Row, Rows, exact

#: Claims of this part.
IDS = ("claim/exact/*",)
#: Points of the grid with a larger standard error, in nats, say nothing of an error that is a few tenths.
PRECISE = 0.1


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part."""
    table = given.table("exact")
    places = [("figure", "twisted-ep"), ("figure", "annealing"), ("grid", "twisted-ep")]
    rows, annealed, surface = (
        table[(table["place"] == place) & (table["method"] == method)].reset_index(drop=True)
        for place, method in places
    )
    found = [*_points(rows), *_points(annealed), *_surface(surface)]
    for number, row in enumerate(rows.to_dict("records")):
        error, own = row["ep"] - row["log_evidence"], _error(row)
        distance = row["ep"] - row["laplace"]
        more = {"unit": f"point{number}", "status": row["status"]}
        found.append(exact("claim/exact/ep", abs(error), row["source"], **own, **more))
        own = {"se": own["se"] / abs(distance), "df": own["df"]}
        share = abs(error / distance)
        found.append(exact("claim/exact/laplace", share, row["source"], **own, **more))
    keys = ["log_length", "log_amplitude"]
    both = annealed.merge(rows, on=keys, suffixes=("", "_twisted"))
    for number, row in enumerate(both.to_dict("records")):
        difference = row["log_evidence"] - row["log_evidence_twisted"]
        joint = math.hypot(row["standard_error"], row["standard_error_twisted"])
        own = {"se": joint, "df": float(row["degrees"])}
        more = {"status": row["status"], "unit": f"point{number}"}
        found.append(exact("claim/exact/annealing", difference, row["source"], **own, **more))
    return as_measures(found)


def _surface(table: pd.DataFrame) -> Iterator[Row]:
    """The surface on the grid, and how far each approximation is from it at the points that count."""
    trusted, precise = table["status"] == OK, table["standard_error"] < PRECISE
    for row in table.to_dict("records"):
        base = f"surface/exact/l{row['log_length']:g}/a{row['log_amplitude']:g}"
        own = {"status": row["status"], "seed": row["seed"]}
        yield exact(
            f"{base}/log-evidence", row["log_evidence"], row["source"], **own, **_error(row)
        )
        yield exact(f"{base}/information", row["information"], row["source"], **own)
        for method in ("laplace", "ep"):
            error = row[method] - row["log_evidence"]
            yield exact(f"{base}/{method}-error", error, row["source"], **own, **_error(row))
    numbers = {"points": len(table), "not-trusted": (~trusted).sum()}
    numbers |= {"not-precise": (trusted & ~precise).sum(), "used": (trusted & precise).sum()}
    for name, number in numbers.items():
        yield exact(f"surface/exact-points/{name}", number, table["source"])
    used = table[trusted & precise]
    for method in ("laplace", "ep"):
        errors = (used[method] - used["log_evidence"]).abs()
        if len(used):
            row = used.loc[errors.idxmax()].to_dict()
            found = {
                "largest": errors.max(),
                **{k: row[k] for k in ("log_length", "log_amplitude")},
            }
            for name, value in found.items():
                own = _error(row) if name == "largest" else {}
                id = f"surface/exact-{method}-error/{name.replace('_', '-')}"
                yield exact(id, value, row["source"], **own)
        for number, error in errors.items() if method == "ep" else ():
            row = used.loc[number].to_dict()
            own = {"unit": f"point{number}", **_error(row)}
            yield exact("claim/exact/ep-surface", error, row["source"], **own)


def _points(table: pd.DataFrame) -> Iterator[Row]:
    for row in table.to_dict("records"):
        base = f"exact/{row['method']}/l{row['log_length']:g}/a{row['log_amplitude']:g}"
        own = {"status": row["status"], "seed": row["seed"], **_error(row)}
        yield exact(f"{base}/log-evidence", row["log_evidence"], row["source"], **own)
        for method in ("laplace", "ep"):
            difference = row[method] - row["log_evidence"]
            yield exact(f"{base}/{method}-error", difference, row["source"], **own)
        if math.isfinite(row["information"]):
            yield exact(f"{base}/information", row["information"], row["source"])


def _error(row: dict[str, float]) -> dict[str, float]:
    return {"se": row["standard_error"], "df": float(row["degrees"])}
