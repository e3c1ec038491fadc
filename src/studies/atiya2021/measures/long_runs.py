"""What stands for the truth of log L, and how far other runs are from it.

Two long runs stand for the truth of a data set: twisted EP's and minimax tilting's. Where they agree, the truth is
their mean, weighted by inverse variances. On large rough problems minimax tilting's has a large standard error, and may
not pass its diagnostics: it then adds little to the mean, and confirms it within that error. Where the two disagree,
the truth is twisted EP's, with the distance between them for its standard error. No method is scored against a long run
of its own: for twisted EP the truth is minimax tilting's long run alone, and the other way round.

An error is judged by the standard error of the truth. It is a bound, "at most", and twice that standard error is added
to it, where it is below twice that, where the long runs do not agree, or where the one long run that it is measured
against does not pass its diagnostics.
"""

import numpy as np
import pandas as pd

from recheck.judge.measures import OK, join_sources
from studies.atiya2021.experiments.scaling import REFERENCES
from studies.atiya2021.measures.common import needed

#: Of the two long runs: the one whose truth is taken where they differ, and the other.
FIRST, SECOND = "twisted-ep", "minimax-tilting"
#: In joint standard errors, the largest distance between long runs that agree. They have 15 degrees of freedom or more.
MAX_Z = 4.0
#: Standard errors of the truth within which an error is not resolved.
WIDTH = 2.0
#: Nats: a larger error is what a run should warn of.
LARGE = 1.0
#: What names a data set, and what a run says of it.
DATA = ["kernel", "N", "dataset"]
NUMBERS = ["log_evidence", "log_evidence_se"]


def truths(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what stands for the truth of each data set, from the rows of the two long runs.

    By data set: the estimate ``value_<method>``, ``se_<method>``, ``sound_<method>`` and ``source_<method>`` of either
    method and of both (``combined``); ``z``, their distance in joint standard errors; whether they ``agree``, and
    whether both are ``sound``.
    """
    frame = needed(rows, [*DATA, "method", *NUMBERS, "status", "source"]).set_index(DATA)
    runs = {name: frame[frame["method"] == REFERENCES[name]] for name in (FIRST, SECOND)}
    known = pd.DataFrame(index=runs[FIRST].index)
    for name, own in runs.items():
        own = own.reindex(known.index)
        known[f"value_{name}"] = own["log_evidence"].astype(float)
        known[f"se_{name}"] = own["log_evidence_se"].astype(float)
        known[f"sound_{name}"] = (own["status"] == OK) & known[f"value_{name}"].notna()
        known[f"source_{name}"] = own["source"].fillna("")
    gap = known[f"value_{FIRST}"] - known[f"value_{SECOND}"]
    joint = np.hypot(known[f"se_{FIRST}"], known[f"se_{SECOND}"])
    # two exact values may differ by rounding
    rounding = gap.abs() <= 1e-9 * known[f"value_{FIRST}"].abs()
    known["z"] = (gap / joint.where(joint > 0)).mask(rounding, 0.0)
    known["agree"] = known[f"sound_{FIRST}"] & (known["z"].abs() <= MAX_Z)
    known["sound"] = known[f"sound_{FIRST}"] & known[f"sound_{SECOND}"]
    share = (known[f"se_{SECOND}"] / joint.where(joint > 0)).fillna(1.0) ** 2
    mean = known[f"value_{SECOND}"] + share * gap
    se = known[f"se_{FIRST}"] * np.sqrt(share)
    apart = np.fmax(gap.abs(), known[f"se_{FIRST}"])
    known["value_combined"] = mean.where(known["agree"], known[f"value_{FIRST}"])
    known["se_combined"] = se.where(known["agree"], apart)
    known["sound_combined"] = known["agree"]
    pairs = zip(known[f"source_{FIRST}"], known[f"source_{SECOND}"], strict=True)
    known["source_combined"] = [join_sources(pair) for pair in pairs]
    return known


def scored(runs: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Return runs with their distance from the truth (``difference``), its standard error, and what follows."""
    against = runs["inference"].map({FIRST: SECOND, SECOND: FIRST}).fillna("combined")
    for name in ("value", "se", "sound", "source"):
        found = pd.Series(index=runs.index, dtype=object)
        for method in (FIRST, SECOND, "combined"):
            own = against == method
            keys = pd.MultiIndex.from_frame(runs.loc[own, DATA])
            found[own] = known[f"{name}_{method}"].reindex(keys).to_numpy()
        runs = runs.assign(**{f"truth_{name}": found})
    runs[["truth_value", "truth_se"]] = runs[["truth_value", "truth_se"]].astype(float)
    # a data set may have no long run
    runs["truth_sound"] = runs["truth_sound"].isin([True])
    pairs = zip(runs["source"], runs["truth_source"].fillna(""), strict=True)
    both = pd.Series([join_sources(pair) for pair in pairs], index=runs.index, dtype=object)
    difference, width = runs["log_evidence"] - runs["truth_value"], WIDTH * runs["truth_se"]
    size = difference.abs()
    bound = ~runs["truth_sound"] | (size < width)
    return runs.assign(
        difference=difference,
        failed=runs["log_evidence"].isna(),
        flagged=runs["log_evidence"].notna() & (runs["status"] != OK),
        error=size + width.where(bound, 0.0),
        bound=bound,
        wrong=runs["truth_sound"] & (size - width > LARGE),
        right=runs["truth_sound"] & (size + width <= LARGE),
        error_source=both,
    )
