"""Measures of Experiment 4: the cells of Table 4, errors against the reference, and the claims of section 6.4."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.measures import OK, as_measures, join_sources
from studies.atiya2021.measures.common import Known, Row, combine, each, estimate
from studies.atiya2021.measures.experiment4_cells import (
    between_data_sets,
    contrasts,
    medians_of,
    table4,
)
from studies.atiya2021.measures.experiment4_claims import (
    claims,
    mae_post_ranges,
    only_chains,
    works,
)
from studies.atiya2021.measures.experiment4_runs import (
    ERRORS,
    Runs,
    predictions,
    read_runs,
    summarise,
)
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
        return as_measures(between_data_sets(runs))
    medians = medians_of(published)
    strict = summarise(runs, runs.first["status"] == OK, medians)
    loose = summarise(runs, runs.first["counts"], medians)
    cells = as_measures(table4(runs, published))
    rows = [
        *between_data_sets(runs),
        *_by_setting(strict),
        *_reference(runs, strict),
        *_accuracy(strict),
        *_against_ep(strict),
        *_samples(runs),
        *_reliability(runs),
        *mae_post_ranges(runs, strict, published),
        *claims(runs, loose),
        only_chains(strict),
    ]
    return combine(cells, contrasts(cells), rows, *works(runs))


def _by_setting(summary: pd.DataFrame) -> Iterator[Row]:
    """Differences of log evidence from the reference by setting, and averages of errors over certified settings.

    Only an average over all settings counts, because settings differ much more than methods do. One over fewer has a
    value, and a status that says how many.
    """
    gives = summary.groupby("method")["log_evidence"].transform(lambda found: found.notna().any())
    for row in summary[gives].itertuples():
        name = f"experiment4/P{row.problem}/S{row.set}/{row.method}/difference"
        if math.isnan(row.log_evidence):
            yield estimate(name, Known(math.nan, math.nan, status=row.status), row.source)
        elif not pd.isna(row.reference):
            se = float(np.hypot(row.log_evidence_se, row.reference_se))
            yield estimate(name, Known(row.log_evidence - row.reference, se), row.source)
    certified = summary[summary["certified"]]
    for (problem, method), group in summary.groupby(["problem", "method"]):
        mine = certified[(certified["problem"] == problem) & (certified["method"] == method)]
        for column, last in ERRORS.items():
            known = _over_settings(mine, column)
            status = known.status or _absent(summary, group, column)
            name = f"experiment4/P{problem}/certified/{method}/{last}"
            if status:
                found, source = known._replace(status=status), join_sources(mine["source"])
                yield estimate(name, found, source, scale="log")


def _over_settings(used: pd.DataFrame, column: str) -> Known:
    """Mean of a column over settings; one with one run is given the mean variance of the others."""
    there = used[column].notna()
    n = int(there.sum())
    if not n:
        return Known(math.nan, math.nan, status="")
    variances = used.loc[there, f"{column}_se"] ** 2
    se = math.sqrt(float(variances.fillna(variances.mean()).sum(skipna=False))) / n
    status = OK if n == len(used) else f"{n} of {len(used)}"
    return Known(float(used.loc[there, column].mean()), se, status=status)


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


def _reference(runs: Runs, summary: pd.DataFrame) -> Iterator[Row]:
    """The certified reference by setting, its mean standard error of a probability by problem, and the settings."""
    for (problem, number), cell in runs.reference.iterrows():
        path, source = f"experiment4/P{problem}/S{number}/reference", cell["source"]
        evidence, se = float(cell["log_evidence"]), float(cell["log_evidence_se"])
        size = len(runs.problems[problem]["y_train"])
        yield estimate(f"{path}/per-pattern", Known(evidence / size, se / size), source)
        yield estimate(f"{path}/certified", cell["verdict"] == "certified", source)
    ran = summary[summary["certified"]].drop_duplicates(["problem", "set"])[["problem", "set"]]
    cells = runs.reference.reindex(pd.MultiIndex.from_frame(ran)).reset_index()
    errors = {"probability-se": lambda group: np.mean(group["probability_se"])}
    template = "experiment4/P{problem}/certified/reference/{quantity}"
    yield from each(cells, "problem", template, errors)
    settings = {name: lambda rows, name=name: rows[name].iloc[0] for name in ("alpha", "beta")}
    yield from each(
        summary.drop_duplicates("set"), "set", "experiment4/S{set}/{quantity}", settings
    )


def _accuracy(strict: pd.DataFrame) -> Iterator[Row]:
    """Mean and largest errors against the certified reference, over problems and settings."""
    for method, group in strict[strict["certified"]].groupby("method"):
        errors = group["mae_reference"].dropna()
        if len(errors):
            mean, source = Known(errors.mean(), np.nan), join_sources(group["source"])
            yield estimate(f"accuracy/{method}/mean", mean, source, scale="log")
        if group["nats"].notna().any():
            worst = group.loc[group["nats"].idxmax()]
            largest = Known(worst["nats"], np.nan)
            yield estimate(f"accuracy/{method}/nats-largest", largest, worst["source"], scale="log")


def _against_ep(strict: pd.DataFrame) -> Iterator[Row]:
    """In how many settings expectation propagation is closer to the reference than a Monte Carlo method."""
    certified = strict[strict["certified"]]
    wide = certified.pivot(index=["problem", "set"], columns="method", values="mae_reference")
    for method in sorted(set(wide) - {"ep", "laplace"}) if "ep" in wide else ():
        both = wide[["ep", method]].dropna()
        if len(both):
            source = join_sources(certified.loc[certified["method"].isin(both.columns), "source"])
            yield estimate(f"ep/common/{method}", len(both), source)
            yield estimate(f"ep/closer/{method}", (both["ep"] < both[method]).sum(), source)


def _samples(runs: Runs) -> Iterator[Row]:
    """Samples that methods had, by problem."""
    there = runs.rows[runs.rows["samples"].notna() & (runs.rows["status"] != NO_DATA)]
    most = {"samples": lambda group: group["samples"].max()}
    yield from each(there, ["method", "problem"], "settings/{method}/{quantity}/P{problem}", most)


def _reliability(runs: Runs) -> Iterator[Row]:
    """Predicted probability of class 1 against the frequency of class 1, in bins of the prediction.

    Settings in which the prior is the same for every pattern but itself predict one half everywhere and are left out.
    The settings share their test patterns, so the standard error of a frequency counts distinct patterns.
    """
    first = runs.first
    shown = first[(first["status"] == OK) & ~first["trivial"] & first["problem"].isin(_NINE)]
    pieces = []
    for (problem, method, _), rows in shown.groupby(["problem", "method", "set"]):
        found, data = predictions(rows["probability"]), runs.problems.get(problem)
        if not data or not len(found):
            continue
        mean = found.mean(axis=0)
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
            "predicted": lambda rows: rows["predicted"].mean(),
            "patterns": lambda rows: rows["pattern"].nunique(),
        }
        template = "reliability/{group}/{method}/bin{bin}/{quantity}"
        yield from each(bins, by, template, quantities)
        bayes = {"bayes": lambda rows: rows["bayes"].mean()}
        yield from each(bins[bins["group"] == "synthetic"], by, template, bayes)


def _frequency(rows: pd.DataFrame) -> Known:
    """Frequency of class 1; half a pattern more on either side keeps a bin of one class from claiming to be exact."""
    n, frequency = rows["pattern"].nunique(), float(rows["positive"].mean())
    smoothed = (frequency * n + 0.5) / (n + 1)
    return Known(frequency, float(np.sqrt(smoothed * (1 - smoothed) / n)))
