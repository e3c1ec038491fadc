"""Experiment 4 as it was run: every run with its predictions and its errors against the certified reference.

Two rules say which runs count. Of our own questions a run counts if its status is "ok", whatever its method
(`studies.atiya2021.measures.common.statuses`). At the paper's budget, where control variables had the published number
of iterations, every run that predicted counts, converged or not, because the paper looks at no diagnostics; this rule
(the column ``counts``) holds for the published cells and the paper's claims, and for no method alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from gpcmc.posterior import NOT_CONVERGED, UNTRUSTED
from recheck.judge.measures import OK, join_sources
from recheck.record.files import read_arrays
from studies.atiya2021.measures import common
from studies.atiya2021.measures.common import READINGS
from studies.atiya2021.names import REAL, SCANNED
from studies.atiya2021.problems import Problem
from studies.common.measuring import Rows

#: The paper's own method, and its four methods by the names that the paper prints.
SAMPLER = "orthant"
PAPER = {"new": SAMPLER, "titsias": "control-variables", "ess": "ess-gpml", "hmc": "hmc-gpml"}
#: The row of twisted EP.
TWISTED = "best"
#: Iterations of control variables in Experiment 4 (section 6.4), whose CPU time every method had.
PUBLISHED_ITERATIONS = 50_000

#: Errors against the reference, and the last part of their ids.
ERRORS = {"mae_reference": "mae-reference", "nats": "nats"}
#: Largest difference between log evidences, in joint standard errors, of estimates that agree.
_MAX_Z = 3.0
#: Statuses of runs whose seconds count: they did their work.
_WORKED = [OK, NOT_CONVERGED, UNTRUSTED]

_KEY = ["problem", "set", "method"]
_RUN = ["row", "problem", "method", "set", "dataset", "replicate"]
_NUMBERS = ["alpha", "beta", "log_evidence", "log_evidence_se", "mae_post", "error_rate"]
_NUMBERS += ["samples", "iterations", "controls_needed", "max_controls"]
_NUMBERS += ["work_samples", "work_populations", "randomizations"]
_OPTIONAL = ["trivial", "seed", "count", "scheme", "effective_eves"]
#: Columns of the reference as the rows of runs call them.
_REFERENCE = {"log_evidence": "reference", "log_evidence_se": "reference_se", "verdict": "verdict"}
_REFERENCE |= {"certifier_se": "certifier_se", "randomizations": "known_sets", "z": "z"}


@dataclass(frozen=True)
class Runs:
    """What Experiment 4 left, read once.

    `rows` has one row a run: what it measured, its ``probability`` (class 1 at the test patterns, or None), whether it
    ``counts`` by the paper's rule, whether the prior is ``trivial`` (K is beta I to rounding), the reference of its
    setting, and on the first data set its errors ``nats`` and ``mae_reference``; of the toolbox's chains also
    ``probability_<reading>`` and ``mae_post_<reading>``. `scanned` has the runs of Problem 9 on images that are not
    smoothed, `problems` the arrays of first data sets (none without data), `reference` the certified reference by
    problem and setting, `spread` the errors of Laplace's approximation on further data sets.
    """

    rows: pd.DataFrame
    scanned: pd.DataFrame
    problems: dict[int, dict[str, np.ndarray]]
    reference: pd.DataFrame
    spread: pd.DataFrame

    @property
    def first(self) -> pd.DataFrame:
        """Runs on the first data set of each problem."""
        return self.rows[self.rows["dataset"] == 0]


def from_median(paper: Mapping[str, Sequence[np.ndarray]]) -> dict[str, np.ndarray]:
    """Mean |P - median of methods| over test patterns of each method's runs (runs, t), which are paired in order."""
    n = min(map(len, paper.values()), default=0)
    if not n:
        return dict.fromkeys(paper, np.empty(0))
    runs = np.array([list(p[:n]) for p in paper.values()])
    return dict(zip(paper, np.abs(runs - np.median(runs, axis=0)).mean(axis=2), strict=True))


def read_runs(given: Rows, experiment: str = "experiment4") -> Runs:
    """Read the runs of Experiment 4, or of another experiment of such runs, and the certified reference, each once."""
    every = _read(given, experiment)
    scanned = every["problem"] == SCANNED
    numbers = every["problem"].mask(scanned, SCANNED.partition("_")[0]).astype(int)
    every = every.assign(problem=numbers)
    rows, scanned = (every[of].reset_index(drop=True) for of in (~scanned, scanned))
    problems = {
        int(number): given.patterns(f"experiment4/problem{number}.npz")
        for number in sorted(rows["problem"].unique())
    }
    known = _reference(given.reference, rows, problems)
    columns = ["problem", "dataset", "seed", "set", "method", "mae_post"]
    there = "spread" in given.experiments
    spread = common.needed(given.lines("spread") if there else pd.DataFrame(), columns)
    return Runs(_with_errors(rows, known), scanned, problems, known, spread)


def _read(given: Rows, experiment: str) -> pd.DataFrame:
    """Runs on all images, and which of them count by the paper's rule."""
    numbers = [*_NUMBERS, *(f"mae_post_{reading}" for reading in READINGS)]
    lines = given.lines(experiment, dtype={**common.TEXT, "problem": str})
    rows = common.needed(lines, [*_RUN, "status"], optional=[*numbers, *_OPTIONAL])
    rows = rows.merge(given.timing(experiment)[["row", "cpu_seconds"]], on="row", how="left")
    rows[[*numbers, "cpu_seconds"]] = rows[[*numbers, "cpu_seconds"]].astype(float)
    rows["status"] = common.statuses(rows)
    rows["trivial"] = rows["trivial"].astype(str).str.lower() == "true"
    real = rows["problem"].isin([*map(str, REAL), SCANNED])
    gaps = rows[(rows["status"] == OK) & ~real]
    common.refuse(gaps[~np.isfinite(gaps["mae_post"])], "mae_post")
    found = _predictions(given.arrays(experiment))
    for column in ("probability", *(f"probability_{reading}" for reading in READINGS)):
        own = found.get(column, {})
        rows[column] = pd.Series([own.get(row) for row in rows["row"]], dtype=object)
    checks = [one is None or np.isfinite(one).all() for one in rows["probability"]]
    finite = np.array(checks, dtype=bool)
    common.refuse(rows[(rows["status"] == OK) & ~finite], "probability")
    rows["probability"] = rows["probability"].where(finite, None)
    own = rows[rows["method"] == PAPER["titsias"]]
    at_budget = set(own.loc[own["iterations"] == PUBLISHED_ITERATIONS, "problem"])
    loose = rows["problem"].isin(at_budget) & rows["error_rate"].notna()
    return rows.assign(counts=(rows["status"] == OK) | loose)


def _predictions(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Test probabilities by column and row; a chain of the toolbox predicts as its first reading does."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, stacked in arrays.items():
        column = name.partition("/")[2]
        if not column.endswith("/rows"):
            rows = arrays[f"{name}/rows"].tolist()
            found.setdefault(column, {}).update(zip(rows, stacked, strict=True))
    others = found.get(f"probability_{READINGS[1]}", {})
    found[f"probability_{READINGS[0]}"] = {row: found["probability"][row] for row in others}
    return found


def _reference(
    folder: Path, rows: pd.DataFrame, problems: dict[int, dict[str, np.ndarray]]
) -> pd.DataFrame:
    """The reference of the settings that were run, by problem and setting; without those that have none."""
    from studies.atiya2021.reference.cells import (  # the library's kernels come with it
        digest,
        refuse_other_data,
    )

    keys, columns = ["problem", "set"], [*_REFERENCE, "samples", "digest", "alpha", "beta"]
    evidence = common.certified(folder, [*keys, *columns])
    wanted = rows[[*keys, "alpha", "beta"]].drop_duplicates(keys)
    found = evidence.merge(wanted, on=keys, suffixes=("", "_run"))
    there = [number for number, arrays in problems.items() if arrays]
    found = found[found["problem"].isin(there)]
    for row in found.itertuples():
        of_run = digest(Problem(**problems[row.problem]), row.alpha_run, row.beta_run)
        refuse_other_data(row.problem, row.set, row.digest, of_run)
    arrays = read_arrays(folder / "certified" / "probabilities.npz") if len(found) else {}
    names = [f"problem{row.problem}_set{row.set}" for row in found.itertuples()]
    found["probability"] = pd.Series([arrays[name] for name in names], found.index, dtype=object)
    found["probability_se"] = [float(np.mean(arrays[f"{name}_se"])) for name in names]
    return found.set_index(keys)


def _with_errors(rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Rows with the reference of their settings and, on the first data set, with their errors against it."""
    first, settings = rows["dataset"] == 0, ["problem", "set"]
    both = rows[first].join(known["probability"].rename("truth"), on=settings)
    both = both[["probability", "truth"]].dropna()
    errors = [float(np.abs(p - truth).mean()) for p, truth in both.itertuples(index=False)]
    rows = rows.join(known[list(_REFERENCE)].rename(columns=_REFERENCE), on=settings)
    nats = (rows["log_evidence"] - rows["reference"].astype(float)).abs()
    return rows.assign(
        nats=nats.where(first),
        mae_reference=pd.Series(errors, both.index, dtype=float).reindex(rows.index),
        certified=(rows["verdict"] == "certified") & ~rows["trivial"],
    )


def with_known_error(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs whose error in log evidence the reference gives, ``off`` in nats, and ``known_se``, its standard error.

    These are the runs on first data sets at all settings where the prior is not trivial and the two methods of the
    reference agree in log evidence. A setting may be uncertified for another reason, such as a second method that is
    not as exact as a certificate asks for: its standard error counts with that of the first.
    """
    there = (rows["dataset"] == 0) & ~rows["trivial"] & np.isfinite(rows["log_evidence"])
    known = rows[there & (rows["z"].astype(float).abs() < _MAX_Z)]
    errors = known[["reference_se", "certifier_se"]].astype(float)
    signed = known["log_evidence"] - known["reference"].astype(float)
    return known.assign(signed=signed, off=signed.abs(), known_se=np.hypot(*errors.to_numpy().T))


def summarise(runs: Runs, counts: pd.Series) -> pd.DataFrame:
    """Means over the runs on first data sets that count, by problem, setting and method.

    ``status`` is "ok" if all runs count, else the most frequent other one. Standard errors of errors are from the
    spread of the runs, and zero of methods that draw nothing.
    """
    first, shared = runs.first, ["certified", "trivial", "reference", "reference_se", "alpha"]
    table = first.groupby(_KEY)[shared].first()
    table["source"] = first.groupby(_KEY)["source"].agg(join_sources)
    good = first[counts].groupby(_KEY)
    bad = first[~counts].groupby(_KEY)["status"].agg(lambda found: found.mode().iloc[0])
    table["status"] = bad.reindex(table.index).fillna(OK)
    exact = first["seed"].isna().groupby([first[key] for key in _KEY]).all()
    exact &= good.size().reindex(table.index).notna()
    for name in ERRORS:
        table[name] = good[name].mean()
        table[f"{name}_se"] = (good[name].std() / np.sqrt(good[name].count())).mask(exact, 0.0)
    table["mae_post"] = good["mae_post"].mean()
    table["cpu_seconds"] = first[first["status"].isin(_WORKED)].groupby(_KEY)["cpu_seconds"].mean()
    logs = pd.DataFrame({key: _average_evidence(group) for key, group in good}).T
    table[["log_evidence", "log_evidence_se"]] = logs.reindex(table.index, columns=[0, 1])
    return table.reset_index()


def _average_evidence(group: pd.DataFrame) -> tuple[float, float]:
    """Average of the evidence over runs, on the probability scale, and the standard error of its logarithm.

    Two errors are at hand: from what the runs say of themselves, and from how they differ. The larger counts, for
    a run with too few samples does not know how wrong it is.
    """
    there = group[np.isfinite(group["log_evidence"])]
    logs, errors = there["log_evidence"].to_numpy(), there["log_evidence_se"].to_numpy()
    if not len(logs):
        return math.nan, math.nan
    own = float(np.sqrt(np.sum((softmax(logs) * errors) ** 2)))
    between = float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else 0.0
    return float(logsumexp(logs) - np.log(len(logs))), max(own, between)
