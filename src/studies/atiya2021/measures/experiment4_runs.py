"""Experiment 4 as it was run: every run with its errors against the certified reference.

Two rules say which runs count. Of our own questions a run counts if its status is "ok". At the paper's budget, where
control variables had the published number of iterations, every run that predicted counts, converged or not, because
the paper looks at no diagnostics; this rule (`Runs.counts`) holds for the published cells and the paper's claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from recheck.files import read_arrays, read_csv
from recheck.measures import OK
from studies.atiya2021.names import REAL
from studies.atiya2021.problems import Problem

__all__ = [
    "MEASURES",
    "PAPER",
    "PUBLISHED_SETTINGS",
    "SAMPLER",
    "Predictions",
    "Runs",
    "common_path",
    "read_runs",
]

#: The paper's own method, and its four methods by the names that the paper prints.
SAMPLER = "orthant"
PAPER = {"new": SAMPLER, "titsias": "control-variables", "ess": "ess-gpml", "hmc": "hmc-gpml"}
#: Hyperparameter settings that a published cell of Table 4 is an average over: (alpha, beta) by number.
PUBLISHED_SETTINGS = {
    1: (5.0, 1.0),
    2: (5.0, 5.0),
    3: (3.0, 2.0),
    4: (0.5, 0.5),
    5: (3.0, 1.0),
    6: (0.5, 3.0),
}
#: Iterations of control variables in Experiment 4 (section 6.4), whose CPU time every method had.
PUBLISHED_ITERATIONS = 50_000

#: What is measured of a run: the column of `Runs.rows`, the last part of the id, and the scale of comparison.
MEASURES = {
    "nats": ("nats", "log"),
    "mae_reference": ("mae-reference", "log"),
    "largest_reference": ("largest-reference", "log"),
    "mae_post": ("mae-post", "log"),
    "mae_med": ("mae-med", "log"),
    "error_rate": ("error-rate", "linear"),
    "cpu_seconds": ("cpu-seconds", "log"),
    "effective_samples": ("effective-samples", "log"),
    "effective_per_second": ("effective-per-second", "log"),
}

_KEY = ["problem", "method", "set", "dataset", "replicate"]
_NUMBERS = ["log_evidence", "log_evidence_se", "mae_post", "error_rate", "effective_samples"]
_NUMBERS += ["k_hat", "r_hat", "samples", "iterations", "controls_needed", "max_controls"]
_TEXT = ["seed", "status", "count", "scheme", "trivial"]


@dataclass(frozen=True, slots=True)
class Predictions:
    """Test probabilities of the runs of one method on one problem with one hyperparameter setting.

    Attributes
    ----------
    probability : (runs, t) array
        P(class 1) at the test patterns; only runs that predicted.
    dataset, replicate : (runs,) arrays of int
        Which run it is; data set 0 is the problem's first.
    ok : (runs,) array of bool
        Whether the status of the run is "ok".
    """

    probability: np.ndarray
    dataset: np.ndarray
    replicate: np.ndarray
    ok: np.ndarray

    def on(self, dataset: int, *, every: bool, first: bool = False) -> np.ndarray:
        """Probabilities on one data set, shape (runs, t): of every run or those that are "ok"; of the first alone."""
        kept = (self.dataset == dataset) & (self.ok | every)
        return self.probability[kept & (self.replicate == 0) if first else kept]


@dataclass(frozen=True)
class Runs:
    """What Experiment 4 left, read once.

    Attributes
    ----------
    rows : DataFrame
        One row a run: ``problem``, ``set``, ``method``, ``dataset``, ``replicate``, ``alpha``, ``beta``, ``status``,
        ``counts`` (by the paper's rule), ``trivial`` (K is beta I to rounding), ``exact`` (nothing is drawn at random),
        ``seed``, ``source``, what the run measured, and ``cpu_seconds``. On the first data set also its errors
        against the reference: ``nats``, ``mae_reference``, ``largest_reference``.
    predictions : dict
        `Predictions` by (problem, method, setting).
    single_rows, single_predictions
        The same of the toolbox's chains with the variance of predictions counted once.
    problems : dict
        Arrays of each problem's first data set by number; without arrays if the data are not available.
    reference : DataFrame
        The certified reference by (problem, setting), with ``probability`` and ``probability_se``, arrays.
    at_budget : frozenset of int
        Problems whose runs had the paper's budget.
    spread : DataFrame
        Errors of Laplace's approximation on further data sets.
    """

    rows: pd.DataFrame
    predictions: dict[tuple[int, str, int], Predictions]
    single_rows: pd.DataFrame
    single_predictions: dict[tuple[int, str, int], Predictions]
    problems: dict[int, dict[str, np.ndarray]]
    reference: pd.DataFrame
    at_budget: frozenset[int]
    spread: pd.DataFrame

    @property
    def first(self) -> pd.DataFrame:
        """Runs on the first data set of each problem."""
        return self.rows[self.rows["dataset"] == 0]


def common_path(seeds: Iterable[str]) -> str:
    """The part of seeds, which are paths, that all have in common; empty without any."""
    parts = [seed.split("/") for seed in set(seeds) if isinstance(seed, str)]
    same = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        same.append(names[0])
    return "/".join(same)


def read_runs(root: Path, reference: Path) -> Runs:
    """Read all files of Experiment 4 and the certified reference, each once.

    Parameters
    ----------
    root : Path
        Results of the study.
    reference : Path
        Folder of the certified reference.

    Raises
    ------
    DamagedFileError
        A file is not what was written.
    ValueError
        A run whose status is "ok" has a number that is missing or infinite, or the reference of a setting was
        computed on other data.
    """
    rows, predictions = _read_folder(root, "experiment4")
    single_rows, single_predictions = _read_folder(root, "experiment4/single_variance")
    problems = {
        int(path.stem.removeprefix("problem")): read_arrays(path)
        for path in root.glob("experiment4/problem*.npz")
    }
    known = _reference(reference, rows, problems)
    own = rows[rows["method"] == PAPER["titsias"]]
    budget = frozenset(own.loc[own["iterations"] == PUBLISHED_ITERATIONS, "problem"])
    loose = rows["problem"].isin(budget) & rows["error_rate"].notna()
    rows["counts"] = (rows["status"] == OK) | loose
    spread = root / "experiment4/spread.csv"
    columns = ["problem", "dataset", "seed", "set", "method", "mae_post"]
    further = read_csv(spread) if spread.exists() else pd.DataFrame(columns=columns)
    further = further.assign(line=further.index + 2, file="experiment4/spread.csv")
    return Runs(
        _with_errors(rows, predictions, known),
        predictions,
        single_rows,
        single_predictions,
        dict(sorted(problems.items())),
        known,
        budget,
        further,
    )


def _read_folder(
    root: Path, folder: str
) -> tuple[pd.DataFrame, dict[tuple[int, str, int], Predictions]]:
    """Rows and predictions of all methods below a folder."""
    frames = []
    predictions: dict[tuple[int, str, int], Predictions] = {}
    for path in sorted(root.glob(f"{folder}/problem*/*.csv")):
        if path.stem.endswith("_timing"):
            continue
        frame = read_csv(path, dtype=dict.fromkeys(_TEXT, str))
        name = path.relative_to(root).as_posix()
        timing = path.with_name(f"{path.stem}_timing.csv")
        if timing.exists():
            seconds = read_csv(timing)[["set", "dataset", "replicate", "cpu_seconds"]]
            frame = frame.merge(seconds, on=["set", "dataset", "replicate"], how="left")
        frame = frame.assign(method=path.stem, file=name, line=frame.index + 2)
        _refuse_gaps(frame, name)
        frames.append(frame)
        arrays = path.with_suffix(".npz")
        if arrays.exists():
            problem = int(frame["problem"].iloc[0])
            found = _predictions(read_arrays(arrays), name)
            predictions |= {(problem, path.stem, number): p for number, p in found.items()}
    wanted = [*_KEY, *_TEXT, *_NUMBERS, "alpha", "beta", "cpu_seconds", "file", "line"]
    rows = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=wanted)
    rows = rows.reindex(columns=[*rows.columns, *(n for n in wanted if n not in rows.columns)])
    rows[[*_NUMBERS, "cpu_seconds"]] = rows[[*_NUMBERS, "cpu_seconds"]].astype(float)
    rows["exact"] = rows["seed"].isna()
    rows["trivial"] = rows["trivial"].astype(str).str.lower() == "true"
    rows["source"] = rows["file"] + ":" + rows["line"].astype(str)
    rows["effective_per_second"] = rows["effective_samples"] / rows["cpu_seconds"]
    return rows, predictions


def _refuse_gaps(frame: pd.DataFrame, name: str) -> None:
    """Raise ValueError, by file and line, for an error of a run that counts which is no number."""
    counts = frame[(frame["status"] == OK) & ~frame["problem"].isin(list(REAL))]
    values = counts.get("mae_post", pd.Series(np.nan, counts.index)).astype(float)
    gaps = values.index[~np.isfinite(values)]
    if len(gaps):
        raise ValueError(
            f"{name}: line {gaps[0] + 2}: mae_post is {values[gaps[0]]} in a run that is ok; needed is a "
            f"finite number ({len(gaps)} such rows)"
        )


def _predictions(arrays: dict[str, np.ndarray], name: str) -> dict[int, Predictions]:
    """Predictions by setting, of the runs that predicted."""
    found = {}
    numbers = (re.fullmatch(r"probability_set(\d+)", array) for array in arrays)
    for number in sorted(int(match.group(1)) for match in numbers if match):
        probability, ok = (
            arrays[f"probability_set{number}"],
            arrays[f"ok_set{number}"].astype(bool),
        )
        finite = np.isfinite(probability).all(axis=1)
        if (ok & ~finite).any():
            row = int(np.flatnonzero(ok & ~finite)[0])
            raise ValueError(
                f"{name}: row {row} of probability_set{number} in the npz file beside it is not finite, "
                "although its run is ok"
            )
        dataset, replicate = (arrays[f"{which}_set{number}"] for which in ("dataset", "replicate"))
        if finite.any():
            found[number] = Predictions(
                probability[finite], dataset[finite], replicate[finite], ok[finite]
            )
    return found


def _reference(
    folder: Path, rows: pd.DataFrame, problems: dict[int, dict[str, np.ndarray]]
) -> pd.DataFrame:
    """The reference of the settings that were run, by problem and setting; without those that have none."""
    from studies.atiya2021.reference import digest  # the library's kernels come with it

    path = folder / "evidence.csv"
    if not path.exists():
        return pd.DataFrame(columns=["log_evidence", "log_evidence_se", "verdict", "probability"])
    evidence = read_csv(path).assign(file="data/reference/atiya2021/evidence.csv")
    evidence = evidence.assign(line=evidence.index + 2)
    arrays = read_arrays(folder / "probabilities.npz")
    wanted = rows[["problem", "set", "alpha", "beta"]].drop_duplicates(["problem", "set"])
    found = evidence.merge(wanted, on=["problem", "set"], suffixes=("", "_run"))
    found = found[[bool(problems.get(number)) for number in found["problem"]]]
    for row in found.itertuples():
        of_run = digest(Problem(**problems[row.problem]), row.alpha_run, row.beta_run)
        if of_run != row.digest:
            raise ValueError(
                f"the reference of problem {row.problem}, setting {row.set} was computed on other data or "
                f"hyperparameters: its digest is {row.digest}, that of these is {of_run}; "
                "run `snakemake reference` to compute it anew"
            )
    names = [f"problem{row.problem}_set{row.set}" for row in found.itertuples()]
    found["probability"] = [arrays[name] for name in names]
    found["probability_se"] = [arrays[f"{name}_se"] for name in names]
    return found.set_index(["problem", "set"])


def _with_errors(
    rows: pd.DataFrame, predictions: dict[tuple[int, str, int], Predictions], known: pd.DataFrame
) -> pd.DataFrame:
    """Rows with the errors of runs on the first data set against the reference."""
    found = []
    for (problem, method, number), run in predictions.items():
        if (problem, number) not in known.index:
            continue
        first = run.dataset == 0
        errors = np.abs(run.probability[first] - known.at[(problem, number), "probability"])
        found.append(
            pd.DataFrame(
                {
                    "problem": problem,
                    "method": method,
                    "set": number,
                    "dataset": 0,
                    "replicate": run.replicate[first],
                    "mae_reference": errors.mean(axis=1),
                    "largest_reference": errors.max(axis=1),
                }
            )
        )
    names = ["mae_reference", "largest_reference"]
    nothing = pd.DataFrame(columns=[*_KEY, *names])
    errors_ = pd.concat(found, ignore_index=True) if found else nothing.astype(object)
    rows = rows.merge(errors_, on=_KEY, how="left")
    rows[names] = rows[names].astype(float)
    truth = known[["log_evidence"]].rename(columns={"log_evidence": "truth"}).reset_index()
    rows = rows.merge(truth, on=["problem", "set"], how="left") if len(known) else rows
    truth_ = rows["truth"].astype(float) if "truth" in rows else pd.Series(np.nan, rows.index)
    nats = (rows["log_evidence"] - truth_).abs()
    return rows.assign(nats=nats.where(rows["dataset"] == 0)).drop(columns="truth", errors="ignore")
