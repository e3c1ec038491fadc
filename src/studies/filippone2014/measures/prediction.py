"""The abstract's claim: predictions that integrate over the hyperparameters against three others."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from recheck.measures import as_measures
from studies.common.raw import Row, read_some
from studies.filippone2014.measures.common import row, without_data

_SCORES = ("log_loss", "brier", "error_rate", "auc", "calibration")
#: Claims on the loss of another method less that of the integrated one.
_CLAIMS = {
    "claim/prediction/fitted": ("fitted", "log_loss"),
    "claim/prediction/mode": ("mode", "log_loss"),
    "claim/prediction/svm": ("svm", "log_loss"),
    "claim/prediction/calibration": ("fitted", "calibration"),
}


def measure(root: Path) -> pd.DataFrame:
    """All measures of this part. Of a claim a unit is a data set, and its runs are training sets of all sizes."""
    rows, lost = read_some(root, "prediction/*.csv")
    if rows.empty:
        return as_measures(without_data(_CLAIMS, lost))
    found: list[Row] = []
    for _, one in rows.iterrows():
        base = f"prediction/{one['data']}/n{one['n']}/{one['method']}"
        unit = f"{one['data']}/n{one['n']}/split{one['split']}"
        for score in _SCORES:
            factor = 100 if score in ("error_rate", "calibration") else 1
            id = f"{base}/{score.replace('_', '-')}"
            found.append(row(id, unit, factor * one[score], one))
    for (data, n, split), own in rows.groupby(["data", "n", "split"]):
        by_method = own.set_index("method")
        for claim, (method, score) in _CLAIMS.items():
            value = by_method.loc[method, score] - by_method.loc["integrated", score]
            pair = own[own["method"].isin([method, "integrated"])]
            found.append(row(claim, str(data), value, pair, run=f"n{n}-split{split}"))
    return as_measures(found)
