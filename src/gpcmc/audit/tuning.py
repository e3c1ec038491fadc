"""Summaries of the tuning of Experiment 5: what each way of tuning has chosen, and how far below the best."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpcmc.audit.results import ResultFiles, mean_and_error, read
from gpcmc.inference.interface import OK

__all__ = ["NEAR", "tuned", "tuning_means"]

#: Nats below the best: of a posterior over two hyperparameters that is nearly normal, the mean draw lies
#: so far below the mode.
NEAR = 1.0


def tuned(files: ResultFiles) -> pd.DataFrame:
    """Tuning: one row a problem, method, replicate and stage, with its CPU seconds.

    ``cpu_seconds`` of a second look has that of the search before it in it.
    """
    keys = ["problem", "method", "replicate", "stage"]
    frame = read(files.tuning, [*keys, "status"])
    timing = read(files.tuning_timing, [*keys, "cpu_seconds"])
    timing = timing.sort_values("stage", ascending=False)  # the search comes first
    timing["cpu_seconds"] = timing["cpu_seconds"].astype(float)
    timing["cpu_seconds"] = timing.groupby(keys[:3])["cpu_seconds"].cumsum()
    frame = frame.merge(timing[[*keys, "cpu_seconds"]], on=keys, how="left")
    needs = ["log_alpha", "log_beta", "evidence", "evidence_se", "evidence_shortfall", "samples"]
    for name in [*needs, "log_loss", "error_rate", "evaluations", "at_bound", "failures"]:
        if name not in frame:
            frame[name] = math.nan
    return frame


def tuning_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over replicates that may be compared: one row a problem, method and stage, with standard errors.

    The error of ``evidence`` has the judge's in it, that of ``shortfall`` has not: the judge uses the same
    random numbers throughout.
    """
    rows = []
    keys = ["problem", "method", "stage"]
    for key, group in frame.groupby(keys, sort=False):
        row: dict[str, object] = dict(zip(keys, key, strict=True))
        good = group[group["status"] == OK]
        bad = group[group["status"] != OK]
        row |= {"runs": len(group), "ok": len(good), "samples": group["samples"].iloc[0]}
        row["status"] = OK if len(good) else bad["status"].mode().iloc[0]
        row["at_bound"] = int((good["at_bound"].astype(str).str.lower() == "true").sum())
        for name, column in _TUNED.items():
            row[name], row[f"{name}_se"] = mean_and_error(good[column].dropna())
        judged = good["evidence_se"].astype(float).mean()
        row["evidence_se"] = math.hypot(
            judged, float(np.nan_to_num(float(str(row["evidence_se"]))))
        )
        rows.append(row)
    columns = [*keys, "runs", "ok", "samples", "status", "at_bound"]
    columns += [part for name in _TUNED for part in (name, f"{name}_se")]
    return pd.DataFrame(rows, columns=columns)


_TUNED = {
    "log_alpha": "log_alpha",
    "log_beta": "log_beta",
    "evidence": "evidence",
    "shortfall": "evidence_shortfall",
    "log_loss": "log_loss",
    "error_rate": "error_rate",
    "cpu_seconds": "cpu_seconds",
    "evaluations": "evaluations",
}
