"""The abstract's claim: predictions that integrate over the hyperparameters against three others."""

from __future__ import annotations

import pandas as pd

from recheck.judge.measures import as_measures
from studies.common.measuring import Row, Rows
from studies.filippone2014.measures.common import row, without_data

_SCORES = ("log_loss", "brier", "error_rate", "auc", "calibration")
#: Other numbers of a method, where it has them: by column, its name and a factor.
_FACTS = {"ess": ("effective", 1), "at_bound": ("at-bound", 100), "change": ("change", 1)}
#: Claims on the loss of another method less that of the integrated one, by quadrature.
_CLAIMS = {
    "claim/prediction/fitted": ("fitted", "log_loss"),
    "claim/prediction/mode": ("mode", "log_loss"),
    "claim/prediction/svm": ("svm", "log_loss"),
    "claim/prediction/calibration": ("fitted", "calibration"),
}
_MOST = "claim/prediction/most"
#: The log loss of the chains less that of the quadrature; and on how many training sets integrating loses less.
_APART, _WINS = "chain-less-quadrature", "wins/fitted"
#: Effective samples of the worst hyperparameter below which predictions of chains do not count.
LEAST_ESS = 20.0
NOT_IN_EQUILIBRIUM = "not in equilibrium"


def measure(given: Rows) -> pd.DataFrame:
    """All measures of this part. Of a claim a unit is a data set, and its runs are training sets of all sizes."""
    found = [given.available(name) for name in ("prediction", "quadrature")]
    rows = pd.concat([frame for frame, _ in found], ignore_index=True)
    if rows.empty:
        lost = [source for _, sources in found for source in sources]
        return as_measures(without_data([*_CLAIMS, _MOST, _APART, _WINS], lost))
    measures = [one for _, own in rows.iterrows() for one in _scores(own)]
    for (data, n, split), own in rows.groupby(["data", "n", "split"]):
        measures += _differences(str(data), f"n{n}-split{split}", own.set_index("method"))
    return as_measures([*measures, *_most(measures)])


def _scores(one: pd.Series) -> list[Row]:
    """What the table shows of one method and training set."""
    base = f"prediction/{one['data']}/n{one['n']}/{one['method']}"
    unit = f"{one['data']}/n{one['n']}/split{one['split']}"
    found = []
    for score in _SCORES:
        factor = 100 if score in ("error_rate", "calibration") else 1
        id = f"{base}/{score.replace('_', '-')}"
        found.append(row(id, unit, factor * one[score], one, **_equilibrium(one["ess"])))
    for column, (name, factor) in _FACTS.items():
        if pd.notna(one[column]):
            found.append(row(f"{base}/{name}", unit, factor * float(one[column]), one))
    return found


def _equilibrium(ess: float) -> dict[str, str]:
    """Says of predictions of chains that did not mix that they do not count; other methods have no such number."""
    return {"status": NOT_IN_EQUILIBRIUM} if ess < LEAST_ESS else {}


def _differences(data: str, run: str, own: pd.DataFrame) -> list[Row]:
    """Losses of other methods less that of the quadrature; and of the chains, where they mixed."""
    found = []
    for claim, (method, score) in _CLAIMS.items():
        pair = own.loc[[method, "quadrature"]]
        value = pair[score].iloc[0] - pair[score].iloc[1]
        found.append(row(claim, data, value, pair, run=run))
    pair = own.loc[["integrated", "quadrature"]]
    value = pair["log_loss"].iloc[0] - pair["log_loss"].iloc[1]
    more = {"run": run, **_equilibrium(pair["ess"].iloc[0])}
    return [*found, row(_APART, data, value, pair, **more)]


def _most(rows: list[Row]) -> list[Row]:
    """Whether integrating loses less than fitting: of each data set, for the claim, and of each training set."""
    frame = pd.DataFrame([one for one in rows if one["id"] == "claim/prediction/fitted"])
    found = []
    for data, own in frame.groupby("unit"):
        found.append(row(_MOST, str(data), float(own["value"].mean() > 0), own))
        for _, one in own.iterrows():
            value = 100.0 * (one["value"] > 0)
            found.append(row(_WINS, str(data), value, one, run=one["run"]))
    return found
