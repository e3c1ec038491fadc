"""Experiment 4 as it was run: every run with its predictions and its errors against the certified reference.

Two rules say which runs count. Of our own questions a run counts if its status is "ok". At the paper's budget, where
control variables had the published number of iterations, every run that predicted counts, converged or not, because
the paper looks at no diagnostics; this rule (the column ``counts``) holds for the published cells and the paper's
claims.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.files import read_arrays
from recheck.measures import OK
from studies.atiya2021.measures.common import raw_rows
from studies.atiya2021.names import REAL
from studies.atiya2021.problems import Problem

__all__ = ["PAPER", "READINGS", "SAMPLER", "Runs", "predictions", "read_runs"]

#: The paper's own method, and its four methods by the names that the paper prints.
SAMPLER = "orthant"
PAPER = {"new": SAMPLER, "titsias": "control-variables", "ess": "ess-gpml", "hmc": "hmc-gpml"}
#: Ways to read a prediction from a chain of the toolbox (`studies.atiya2021.toolbox_posterior`).
READINGS = ("twice", "moments", "once")
#: Iterations of control variables in Experiment 4 (section 6.4), whose CPU time every method had.
PUBLISHED_ITERATIONS = 50_000

_RUN = ["problem", "method", "set", "dataset", "replicate"]
_NUMBERS = ["log_evidence", "log_evidence_se", "mae_post", "error_rate", "cpu_seconds", "samples"]
_NUMBERS += ["iterations", "controls_needed", "max_controls"]
_NEEDED = [*_RUN, "alpha", "beta", "trivial", "status"]
#: Columns of the reference as the rows of runs call them.
_REFERENCE = {"log_evidence": "reference", "log_evidence_se": "reference_se", "verdict": "verdict"}
_REFERENCE |= {"certifier_se": "certifier_se", "randomizations": "known_sets", "z": "z"}


@dataclass(frozen=True)
class Runs:
    """What Experiment 4 left, read once.

    `rows` has one row a run: what the run measured, its ``source`` and its ``probability`` (class 1 at the test
    patterns, or None), whether it ``counts`` by the paper's rule, whether the prior is ``trivial`` (K is beta I to
    rounding), the reference of its setting, and on the first data set its errors ``nats`` and ``mae_reference``. The
    toolbox's chains also have ``probability_<reading>`` and ``mae_post_<reading>`` for each of `READINGS`. `scanned`
    has the runs of Problem 9 on images that are not smoothed. `problems` has the arrays of each
    problem's first data set, none if the data are not available; `reference` the certified reference by problem and
    setting; `spread` the errors of Laplace's approximation on further data sets.
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


def predictions(rows: pd.DataFrame) -> np.ndarray:
    """Test probabilities of the runs that predicted, shape (runs, t)."""
    there = [one for one in rows["probability"] if one is not None]
    return np.stack(there) if there else np.empty((0, 0))


def read_runs(root: Path, reference: Path) -> Runs:
    """Read all files of Experiment 4 and the certified reference, each once."""
    rows = _counted(_read_folder(root, "experiment4/problem[0-9]"))
    problems = {
        int(path.stem.removeprefix("problem")): read_arrays(path)
        for path in sorted(root.glob("experiment4/problem[0-9].npz"))
    }
    known = _reference(reference, rows, problems)
    columns = ["problem", "dataset", "seed", "set", "method", "mae_post"]
    return Runs(
        _with_errors(rows, known),
        _counted(_read_folder(root, "experiment4/problem[0-9]_raw")),
        dict(sorted(problems.items())),
        known,
        raw_rows(root, "experiment4/spread.csv", columns),
    )


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs with the paper's rule: at its budget every run that predicted counts."""
    own = rows[rows["method"] == PAPER["titsias"]]
    at_budget = set(own.loc[own["iterations"] == PUBLISHED_ITERATIONS, "problem"])
    loose = rows["problem"].isin(at_budget) & rows["error_rate"].notna()
    return rows.assign(counts=(rows["status"] == OK) | loose)


def _read_folder(root: Path, folder: str) -> pd.DataFrame:
    """Runs of all methods in folders that fit a pattern, one a problem."""
    rows = raw_rows(root, f"{folder}/*.csv", _NEEDED)
    timing = raw_rows(root, f"{folder}/*_timing.csv", [*_RUN, "cpu_seconds"])
    rows = rows.merge(timing[[*_RUN, "cpu_seconds"]], on=_RUN, how="left")
    numbers = [*_NUMBERS, *(f"mae_post_{reading}" for reading in READINGS)]
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *numbers, "seed", "count", "scheme"])))
    rows[numbers] = rows[numbers].astype(float)
    rows["trivial"] = rows["trivial"].astype(str).str.lower() == "true"
    gaps = rows[(rows["status"] == OK) & ~rows["problem"].isin(list(REAL))]
    _refuse(gaps[~np.isfinite(gaps["mae_post"])], "mae_post")
    found = _predictions(root, folder)
    keys = list(zip(*(rows[name] for name in _RUN), strict=True))
    for column in ("probability", *(f"probability_{reading}" for reading in READINGS)):
        rows[column] = pd.Series([found.get((column, *key)) for key in keys], dtype=object)
    finite = [one is None or bool(np.isfinite(one).all()) for one in rows["probability"]]
    _refuse(rows[(rows["status"] == OK) & ~pd.Series(finite, dtype=bool)], "probability")
    rows["probability"] = rows["probability"].where(pd.Series(finite, dtype=bool), None)
    return rows


def _refuse(rows: pd.DataFrame, column: str) -> None:
    """Refuse runs that count and lack a number, by file and line of the first."""
    for row in rows.head(1).to_dict("records"):
        file, _, line = row["source"].rpartition(":")
        raise ValueError(
            f"{file}: line {line}: {column} is {row[column]} in a run that is ok; needed is a finite number "
            f"({len(rows)} such rows)"
        )


def _predictions(root: Path, folder: str) -> dict[tuple[str, int, str, int, int, int], np.ndarray]:
    """Test probabilities by column and run."""
    found, pattern = {}, rf"(probability(?:_(?:{'|'.join(READINGS)}))?)_set(\d+)"
    for path in sorted(root.glob(f"{folder}/*.npz")):
        problem, arrays = int(path.parent.name.removeprefix("problem")[0]), read_arrays(path)
        for name in arrays:
            if match := re.fullmatch(pattern, name):
                column, number = match.group(1), int(match.group(2))
                runs = (arrays[f"{which}_set{number}"] for which in ("dataset", "replicate"))
                for dataset, replicate, probability in zip(*runs, arrays[name], strict=True):
                    run = (problem, path.stem, number, int(dataset), int(replicate))
                    found[column, *run] = probability
    return found


def _reference(
    folder: Path, rows: pd.DataFrame, problems: dict[int, dict[str, np.ndarray]]
) -> pd.DataFrame:
    """The reference of the settings that were run, by problem and setting; without those that have none."""
    from studies.atiya2021.reference import digest  # the library's kernels come with it

    keys, columns = ["problem", "set"], [*_REFERENCE, "digest", "alpha", "beta"]
    evidence = raw_rows(folder, "evidence.csv", [*keys, *columns])
    evidence["source"] = "data/reference/atiya2021/" + evidence["source"]
    wanted = rows[[*keys, "alpha", "beta"]].drop_duplicates(keys)
    found = evidence.merge(wanted, on=keys, suffixes=("", "_run"))
    there = [number for number, arrays in problems.items() if arrays]
    found = found[found["problem"].isin(there)]
    for row in found.itertuples():
        of_run = digest(Problem(**problems[row.problem]), row.alpha_run, row.beta_run)
        if of_run != row.digest:
            raise ValueError(
                f"the reference of problem {row.problem}, setting {row.set} was computed on other data or "
                f"hyperparameters: its digest is {row.digest}, that of these is {of_run}; "
                "run `snakemake reference` to compute it anew"
            )
    arrays = read_arrays(folder / "probabilities.npz") if len(found) else {}
    names = [f"problem{row.problem}_set{row.set}" for row in found.itertuples()]
    found["probability"] = pd.Series([arrays[name] for name in names], found.index, dtype=object)
    found["probability_se"] = [float(np.mean(arrays[f"{name}_se"])) for name in names]
    return found.set_index(keys)


def _with_errors(rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Rows with the reference of their settings and, on the first data set, with their errors against it."""
    rows = rows.join(known[list(_REFERENCE)].rename(columns=_REFERENCE), on=["problem", "set"])
    first = rows["dataset"] == 0
    nats = (rows["log_evidence"] - rows["reference"].astype(float)).abs()
    errors = [
        np.abs(row.probability - known.at[(row.problem, row.set), "probability"]).mean()
        if row.dataset == 0
        and row.probability is not None
        and (row.problem, row.set) in known.index
        else np.nan
        for row in rows.itertuples()
    ]
    return rows.assign(
        nats=nats.where(first),
        mae_reference=pd.Series(errors, rows.index, dtype=float),
        certified=rows["verdict"] == "certified",
    )
