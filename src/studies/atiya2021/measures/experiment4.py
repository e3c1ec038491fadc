"""Measures of Experiment 4: the cells of Table 4, errors against the reference, and the claims of section 6.4."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.measures import OK, join_sources
from studies.atiya2021.measures.common import Known, Row, combine, each, estimate
from studies.atiya2021.measures.experiment4_cells import between_data_sets, contrasts, table4
from studies.atiya2021.measures.experiment4_claims import claims, works
from studies.atiya2021.measures.experiment4_runs import ERRORS, Runs, read_runs, summarise
from studies.atiya2021.names import REAL
from studies.atiya2021.runs import NO_DATA

#: The problems of the paper; the reliability diagrams leave out what was added.
_NINE = range(1, 10)
#: Bins of equal width of the predicted probability.
_BINS = 10


def measure(root: Path, published: Path, reference: Path) -> pd.DataFrame:
    """All measures of Experiment 4."""
    runs = read_runs(root, reference)
    if runs.rows.empty:
        return combine(between_data_sets(runs))
    strict = summarise(runs, runs.first["status"] == OK)
    loose = summarise(runs, runs.first["counts"])
    certified, cells = strict[strict["certified"]], combine(table4(runs, published))
    keys = ["problem", "set"]
    settings = certified[keys].drop_duplicates()
    settings = settings.join(runs.reference[["probability_se", "source"]], on=keys)
    errors = {"probability-se": ("probability_se", "mean")}
    had = runs.rows[runs.rows["samples"].notna() & (runs.rows["status"] != NO_DATA)]
    samples = {"samples": ("samples", "max")}
    return combine(
        cells,
        contrasts(cells),
        between_data_sets(runs),
        _by_setting(strict),
        _over_settings(strict),
        each(settings, "problem", "experiment4/P{problem}/certified/reference/{quantity}", errors),
        _accuracy(certified),
        each(had, ["method", "problem"], "settings/{method}/{quantity}/P{problem}", samples),
        _reliability(runs),
        claims(runs, strict, loose, cells, published),
        works(runs),
    )


def _by_setting(summary: pd.DataFrame) -> Iterator[Row]:
    """Differences of log evidence from the reference by setting."""
    gives = summary.groupby("method")["log_evidence"].transform("count") > 0
    for row in summary[gives].itertuples():
        name = f"experiment4/P{row.problem}/S{row.set}/{row.method}/difference"
        if math.isnan(row.log_evidence):
            yield estimate(name, Known(status=row.status), row.source)
        elif not pd.isna(row.reference):
            se = float(np.hypot(row.log_evidence_se, row.reference_se))
            yield estimate(name, Known(row.log_evidence - row.reference, se), row.source)


def _over_settings(summary: pd.DataFrame) -> Iterator[Row]:
    """Averages of errors over certified settings. A setting with one run is given the mean variance of the others.

    Only an average over all settings counts, because settings differ much more than methods do. One over fewer has a
    value, and a status that says how many.
    """
    for (problem, method), group in summary.groupby(["problem", "method"]):
        mine = group[group["certified"]]
        for column, last in ERRORS.items():
            there = mine[mine[column].notna()]
            n, found = len(there), Known(status=_absent(summary, group, column))
            if n:
                variances = there[f"{column}_se"] ** 2
                total = float(variances.fillna(variances.mean()).sum(skipna=False))
                status = OK if n == len(mine) else f"{n} of {len(mine)}"
                found = Known(float(there[column].mean()), math.sqrt(total) / n, status=status)
            if found.status:
                name = f"experiment4/P{problem}/certified/{method}/{last}"
                yield estimate(name, found, join_sources(mine["source"]), scale="log")


def _absent(summary: pd.DataFrame, group: pd.DataFrame, column: str) -> str:
    """Why there is no average; empty if the method or the problem cannot have it."""
    if (group["status"] == NO_DATA).any():
        return NO_DATA
    possible = all(
        summary[column][summary[key] == group[key].iloc[0]].notna().any()
        for key in ("problem", "method")
    )
    bad = group.loc[group["status"] != OK, "status"]
    return str(bad.mode().iloc[0]) if possible and len(bad) else ""


def _accuracy(certified: pd.DataFrame) -> Iterator[Row]:
    """Mean and largest errors against the reference, and in how many settings EP is closer to it than a method."""
    for method, group in certified.groupby("method"):
        mean, name = Known(group["mae_reference"].mean()), f"accuracy/{method}"
        if math.isfinite(mean.value):
            yield estimate(f"{name}/mean", mean, join_sources(group["source"]), scale="log")
        for worst in group.dropna(subset="nats").nlargest(1, "nats").to_dict("records"):
            largest = Known(worst["nats"])
            yield estimate(f"{name}/nats-largest", largest, worst["source"], scale="log")
    wide = certified.pivot(index=["problem", "set"], columns="method", values="mae_reference")
    for method in sorted(set(wide) - {"ep", "laplace"}) if "ep" in wide else ():
        both = wide[["ep", method]].dropna()
        if len(both):
            source = join_sources(certified.loc[certified["method"].isin(both.columns), "source"])
            yield estimate(f"ep/common/{method}", len(both), source)
            yield estimate(f"ep/closer/{method}", (both["ep"] < both[method]).sum(), source)


def _reliability(runs: Runs) -> Iterator[Row]:
    """Predicted probability of class 1 against the frequency of class 1, in bins of the prediction.

    Settings in which the prior is the same for every pattern but itself predict one half everywhere and are left out.
    The settings share their test patterns, so the standard error of a frequency counts distinct patterns.
    """
    first = runs.first
    shown = first[(first["status"] == OK) & ~first["trivial"] & first["problem"].isin(_NINE)]
    pieces = []
    for (problem, method, _), rows in shown.groupby(["problem", "method", "set"]):
        found, data = rows["probability"].dropna(), runs.problems.get(problem)
        if not data or not len(found):
            continue
        mean = np.mean(list(found), axis=0)
        columns = {
            "group": REAL.get(problem, "synthetic").replace("_", "-"),
            "method": method,
            "bin": np.minimum((mean * _BINS).astype(int), _BINS - 1),
            "pattern": [f"{problem}/{i}" for i in range(len(mean))],
            "predicted": mean,
            "positive": data["y_test"] > 0,
            "bayes": data["bayes_posterior"],
            "source": f"experiment4/problem{problem}/{method}.npz",
        }
        pieces.append(pd.DataFrame(columns))
    if pieces:
        bins, by = pd.concat(pieces, ignore_index=True), ["group", "method", "bin"]
        quantities = {
            "frequency": _frequency,
            "predicted": ("predicted", "mean"),
            "patterns": ("pattern", "nunique"),
        }
        template = "reliability/{group}/{method}/bin{bin}/{quantity}"
        yield from each(bins, by, template, quantities)
        synthetic = bins[bins["group"] == "synthetic"]
        yield from each(synthetic, by, template, {"bayes": ("bayes", "mean")})


def _frequency(rows: pd.DataFrame) -> Known:
    """Frequency of class 1; half a pattern more on either side keeps a bin of one class from claiming to be exact."""
    n, frequency = rows["pattern"].nunique(), float(rows["positive"].mean())
    smoothed = (frequency * n + 0.5) / (n + 1)
    return Known(frequency, float(np.sqrt(smoothed * (1 - smoothed) / n)))
