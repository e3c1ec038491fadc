"""All ten digits: Figure 3.11, and the other classifiers of section 3.7.4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, as_measures
from studies.common.measuring import Row, Rows, exact, nearest
from studies.rasmussen2006.grid import PRINTED, STEP
from studies.rasmussen2006.measures.binary import control

#: Cells and claims of this part.
IDS = ("figure3.11/*", "section3.7.4/*", "claim/ten/*")
#: Training and test cases of the book.
_HALF = 4649
#: Half a unit in the last place of the printed point, 2.35 and 2.6; and what is printed there.
_ROUNDING = (0.00501, 0.0501)
_PRINTED = {"error_percent": 3.1, "information": 2.67}
#: And half a unit in the last place of each.
_HALVES = {"log_evidence": (-1018, 0.5), "error_percent": (3.1, 0.05), "information": (2.67, 0.005)}
#: Values of log l at the printed log sf that a claim on a minimum needs.
_LINE = 6
#: Of the linear logistic model, as it is printed.
_THETA = 1.45
_SCORES = ("log_evidence", "error_percent", "information")
_COLUMNS = (
    *(*_SCORES, "information_se", "close_percent"),
    *("as_printed", "error_percent_by_mean", "newton_steps"),
)


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part."""
    points, others = given.table("tenclass"), given.table("others")
    found = [*_points(points), *_figure(points), *_others(others)]
    return as_measures([*found, *_by_entropy(found)])


def _points(points: pd.DataFrame) -> Iterator[Row]:
    for row in points.to_dict("records"):
        base = f"ten/n{row['training']}/l{row['log_length']:g}/a{row['log_amplitude']:g}"
        for name in _COLUMNS:
            yield exact(f"{base}/{name.replace('_', '-')}", row[name], row["source"])


def _figure(points: pd.DataFrame) -> Iterator[Row]:
    """What the figure prints: with all cases alone, and the optimum as the best of the book's grid."""
    whole = points[(points["training"] == _HALF) & (points["test"] == _HALF)]
    x, a = PRINTED["ten"]
    far_x, far_a = (whole["log_length"] - x).abs(), (whole["log_amplitude"] - a).abs()
    at = whole[(far_x <= _ROUNDING[0]) & (far_a <= _ROUNDING[1])]
    center = at[np.isclose(at["log_length"], x) & np.isclose(at["log_amplitude"], a)]
    for level, there in {"surface": at, "grid": center}.items():
        if len(there):
            found = {name: nearest(there[name], value) for name, value in _PRINTED.items()}
            found["log_evidence"] = there["log_evidence"].max()
            for name, value in found.items():
                id, reading = f"figure3.11/laplace/{name.replace('_', '-')}", f"optimum={level}"
                yield exact(id, value, there["source"], reading=reading)
    if len(at):
        away = [(at[name] - value).abs() / half for name, (value, half) in _HALVES.items()]
        joint = pd.concat(away, axis=1).max(axis=1)
        yield exact("claim/ten/joint", joint.min(), at["source"][joint.idxmin()])
        yield from control("line-16", at["as_printed"].max(), -1018, 0.5, at["source"])
    on_grid = [np.isclose(far % STEP, 0) | np.isclose(far % STEP, STEP) for far in (far_x, far_a)]
    near = whole[(far_x <= 1.01 * STEP) & (far_a <= 1.01 * STEP) & on_grid[0] & on_grid[1]]
    if len(near) == 9:  # the printed point and its neighbours
        best = near.loc[near["log_evidence"].idxmax()]
        for name in ("log_length", "log_amplitude"):
            yield exact(f"figure3.11/laplace/{name.replace('_', '-')}", best[name], near["source"])
    yield from _line(whole[np.isclose(whole["log_amplitude"], a)].sort_values("log_length"))


def _line(line: pd.DataFrame) -> Iterator[Row]:
    """Where evidence, errors and information are best along log l at the printed log sf."""
    if len(line) < _LINE:
        return
    x, errors, source = line["log_length"], line["error_percent"], line["source"]
    interior = min(errors.iloc[0], errors.iloc[-1]) - errors.iloc[1:-1].min()
    # where the least is at an end, a minimum may lie beyond
    status = OK if interior > 0 else "not comparable"
    yield exact("claim/ten/minimum", interior, source, status=status)
    shortest = x[errors.idxmin()]
    yield exact("claim/ten/shorter", x[line["log_evidence"].idxmax()] - shortest, source)
    yield exact("claim/ten/information", x[line["information"].idxmax()] - shortest, source)


def _by_entropy(found: Sequence[Row]) -> Iterator[Row]:
    """The printed information with the entropy of the test labels in the place of what their frequencies leave unknown.

    The book subtracts the former from the mean log probability; we subtract the cross entropy of Eq. 3.76.
    """
    others = ("prediction=mode", "optimum=surface")
    values = {row["id"]: row for row in found if not row.get("reading", "").startswith(others)}
    less = (
        values["ten-others/targets/baseline"]["value"]
        - values["figure3.11/targets/entropy"]["value"]
    )
    for method, id in {
        "laplace": "figure3.11/laplace/information",
        "p1nn": "section3.7.4/p1nn/information",
        "linear": "section3.7.4/linear/information",
    }.items():
        if id in values:
            yield exact(
                f"ten-others/{method}/by-entropy", values[id]["value"] - less, values[id]["source"]
            )


def _others(others: pd.DataFrame) -> Iterator[Row]:
    for row in others.to_dict("records"):
        method, quantity = row["method"], row["quantity"].replace("_", "-")
        full = row["training"] == _HALF and row["test"] == _HALF
        at = "" if math.isnan(row["theta"]) else f"/theta{row['theta']:g}"
        size = "" if method in ("targets", "p1nn") else f"n{row['training']}/"
        yield exact(f"ten-others/{size}{method}{at}/{quantity}", row["value"], row["source"])
        if method == "p1nn":
            yield exact(f"section3.7.4/p1nn/{quantity}", row["value"], row["source"])
        elif method == "targets" and quantity == "entropy":
            yield exact("figure3.11/targets/entropy", row["value"], row["source"])
        elif method == "svm" and full:
            id, level = quantity.rsplit("-", 1)
            reading = f"machine={level}"
            yield exact(f"section3.7.4/svm/{id}", row["value"], row["source"], reading=reading)
        elif method in ("linear", "linear-best") and full:
            yield from _linear(row, method, quantity)


def _linear(row: Row, method: str, quantity: str) -> Iterator[Row]:
    base, value = "section3.7.4/linear", row["value"]
    if method == "linear-best" and quantity == "theta":
        for level, theta in {"as-printed": value, "inverse": 1 / value}.items():
            yield exact(f"{base}/theta", theta, row["source"], reading=f"theta={level}")
        return
    theta = row["theta"]
    levels = {"as-printed": _THETA, "inverse": 1 / _THETA}
    level = next((name for name, one in levels.items() if abs(theta - one) < 0.01), "")
    if not level:
        return
    if quantity == "log-evidence" and method == "linear":
        yield exact(f"{base}/{quantity}", value, row["source"], reading=f"theta={level}")
    elif method == "linear":
        name, mode = quantity.removesuffix("-at-mode"), quantity.endswith("-at-mode")
        reading = f"prediction={'mode' if mode else 'averaged'};theta={level}"
        yield exact(f"{base}/{name}", value, row["source"], reading=reading)
