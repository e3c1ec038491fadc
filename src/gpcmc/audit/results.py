"""Reading of the result files (long form, one row a replicate) that the audit and the report summarise."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.experiments.classification import REAL
from gpcmc.inference.interface import OK

__all__ = [
    "Predictions",
    "Problem",
    "ResultFiles",
    "mean_and_error",
    "problem_number",
    "read",
    "read_long",
    "read_probabilities",
    "read_problem",
]

#: Columns that a file of each kind has to have.
COLUMNS: dict[str, list[str]] = {
    "experiment1": [
        "dimension",
        "instance",
        "samples",
        "populations",
        "count",
        "scheme",
        "seed",
        "truth",
        "estimate",
        "standard_error",
        "bias_eq43",
        "variance_eq44",
    ],
    "quadrature": ["dimension", "instance", "du", "truth", "coarse", "ape_percent"],
    "experiment2": [
        "problem",
        "dimension",
        "dataset",
        "run",
        "samples",
        "populations",
        "count",
        "scheme",
        "seed",
        "truth",
        "estimate",
        "standard_error",
        "bias_eq43",
        "variance_eq44",
        "mae",
    ],
    "experiment4": [
        "problem",
        "method",
        "set",
        "alpha",
        "beta",
        "dataset",
        "replicate",
        "status",
    ],
    "experiment4_timing": ["problem", "method", "set", "dataset", "replicate", "cpu_seconds"],
    "reference_check": ["problem", "set", "verdict"],
    "spread": ["problem", "dataset", "set", "mae_post"],
    "equations": [
        "equation",
        "statement",
        "correction",
        "printed_error",
        "corrected_error",
        "verdict",
    ],
}

#: Columns that a file may lack: rows without a result, or of a method that draws nothing at random,
#: have no such entry.
OPTIONAL: dict[str, list[str]] = {
    "experiment4": [
        "seed",
        "count",
        "scheme",
        "samples",
        "log_evidence",
        "log_evidence_se",
        "mae_post",
        "error_rate",
        "trivial",
        "effective_samples",
        "r_hat",
        "k_hat",
        "controls_needed",
        "max_controls",
    ],
    "reference_check": ["method", "z", "max_z", "certified"],
}

#: Columns without which a row that counts says nothing: what a published cell rests on.
FINITE: dict[str, list[str]] = {
    "experiment1": ["truth", "estimate", "standard_error", "variance_eq44"],
    "quadrature": ["truth", "coarse", "ape_percent"],
    "experiment2": ["truth", "estimate", "standard_error", "variance_eq44", "mae"],
    "experiment4": ["mae_post"],
    "spread": ["mae_post"],
}

#: The paper's numbers of the problems of Experiment 1.
_PROBLEMS = {50: 1, 200: 2, 500: 3}


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The files of one run that a table, a figure or the audit reads; absent ones are not run.

    Attributes
    ----------
    experiment1, quadrature, experiment2, experiment4, spread, equations : tuple of Path
        Long CSV files. ``spread`` holds the error against the Bayes posterior on further data sets
        of Experiment 4; ``quadrature`` the truths of Experiment 1 by a coarse grid.
    experiment4_timing : tuple of Path
        CPU seconds of the runs of Experiment 4.
    reference : tuple of Path
        The certified reference: ``evidence.csv``, ``probabilities.npz``, ``truths.csv``.
    reference_check : tuple of Path
        Cells of the reference that this run estimated anew.
    problems : tuple of Path
        ``experiment4/problem{p}.npz``: the data of each problem.
    probabilities : tuple of Path
        ``experiment4/problem{p}/{method}_set{k}.npz``: predicted probabilities.
    single_variance, single_variance_probabilities : tuple of Path
        As ``experiment4`` and ``probabilities``: the toolbox's chains without their double variance.
    experiment3, experiment3_timing, defects : tuple of Path
        Long CSV files: errors and CPU seconds by method and size; the toolbox with its defects.
    experiment5, experiment5_timing, draws : tuple of Path
        Chains over the hyperparameters: long CSV files, and ``experiment5/problem{p}/{method}.npz``.
    tuning, tuning_timing : tuple of Path
        ``experiment5/problem{p}_tuning.csv`` and its CPU seconds.
    ordering : tuple of Path
        ``ordering.csv``: the sampler on patterns in three orders with both counts.
    broken : tuple of Path
        ``controls/{kind}_experiment{1,2}.csv``: runs that are wrong on purpose.
    data : tuple of Path
        ``data/{file}.json``: whether a raw file could be had, and where it goes if not.
    """

    experiment1: tuple[Path, ...] = ()
    quadrature: tuple[Path, ...] = ()
    experiment2: tuple[Path, ...] = ()
    problems: tuple[Path, ...] = ()
    experiment4: tuple[Path, ...] = ()
    experiment4_timing: tuple[Path, ...] = ()
    probabilities: tuple[Path, ...] = ()
    single_variance: tuple[Path, ...] = ()
    single_variance_probabilities: tuple[Path, ...] = ()
    reference: tuple[Path, ...] = ()
    reference_check: tuple[Path, ...] = ()
    spread: tuple[Path, ...] = ()
    equations: tuple[Path, ...] = ()
    experiment3: tuple[Path, ...] = ()
    experiment3_timing: tuple[Path, ...] = ()
    defects: tuple[Path, ...] = ()
    experiment5: tuple[Path, ...] = ()
    experiment5_timing: tuple[Path, ...] = ()
    draws: tuple[Path, ...] = ()
    tuning: tuple[Path, ...] = ()
    tuning_timing: tuple[Path, ...] = ()
    ordering: tuple[Path, ...] = ()
    broken: tuple[Path, ...] = ()
    data: tuple[Path, ...] = ()

    @classmethod
    def of(cls, inputs: Mapping[str, str | Path | Iterable[str | Path]]) -> ResultFiles:
        """From a mapping of names to one path or many; names that are no result files are passed over."""
        known = {field.name for field in fields(cls)}
        found = {}
        for name, value in inputs.items():
            if name in known:
                paths = [value] if isinstance(value, str | Path) else list(value)
                found[name] = tuple(Path(path) for path in paths)
        return cls(**found)


def read_long(kind: str, paths: Iterable[Path]) -> pd.DataFrame:
    """The rows of the files of one kind, under one another, with a column ``file``.

    Parameters
    ----------
    kind : str
        Name of a field of `ResultFiles` that holds CSV files.
    paths : iterable of Path
        Files; none gives an empty frame with the columns of that kind.

    Returns
    -------
    DataFrame
        The columns of the files and ``file`` (path as given, with forward slashes).

    Raises
    ------
    ValueError
        A file lacks a column, or a row that counts (with the status "ok", where there is one) has an entry that is
        infinite or missing. No run writes one: a population without samples counts as probability zero in
        the average, and where every one is lost the job stops (Experiments 1 and 2) or the row says "extinct".
    """
    # copy on write: callers may add columns to theirs
    return _read_long(kind, *_as_they_are(paths)).copy(deep=False)


def _as_they_are(paths: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[tuple[int, int], ...]]:
    """Paths, with what changes when their files do: a page of the audit reads the same ones dozens of times."""
    paths = tuple(Path(path) for path in paths)
    states = (path.stat() for path in paths)
    return paths, tuple((state.st_mtime_ns, state.st_size) for state in states)


@lru_cache(maxsize=64)
def _read_long(kind: str, paths: tuple[Path, ...], _states: object) -> pd.DataFrame:
    columns, optional = COLUMNS[kind], OPTIONAL.get(kind, [])
    text = dict.fromkeys(
        ["seed", "status", "method", "count", "scheme", "equation", "verdict"], str
    )
    frames = []
    for path in paths:
        frame = pd.read_csv(
            path, dtype={name: text[name] for name in [*columns, *optional] if name in text}
        )
        missing = [name for name in columns if name not in frame]
        if missing:
            raise ValueError(
                f"{path}: columns {missing} are missing; a file of {kind} has {columns}"
            )
        _refuse_gaps(kind, path, frame)
        absent = {name: np.nan for name in optional if name not in frame}
        frames.append(frame.assign(file=Path(path).as_posix(), **absent))
    nothing = pd.DataFrame(columns=[*columns, *optional, "file"])
    frame = pd.concat(frames, ignore_index=True) if frames else nothing
    if kind in ("experiment1", "quadrature"):
        frame["problem"] = frame["dimension"].map(_PROBLEMS)
    return frame


def _refuse_gaps(kind: str, path: Path, frame: pd.DataFrame) -> None:
    """Raise ValueError, by file and line, for a number that is none: a mean would pass it over."""
    counts = frame
    if kind == "experiment4":  # real data have no Bayes posterior
        counts = frame[(frame["status"] == OK) & ~frame["problem"].isin(REAL)]
    for name in FINITE.get(kind, []):
        values = counts.get(name, pd.Series(np.nan, counts.index)).astype(float)
        gaps = values.index[~np.isfinite(values)]
        if len(gaps):
            value = values[gaps[0]]
            raise ValueError(
                f"{path}: line {gaps[0] + 2}: {name} is {value} in a row that counts; needed is a "
                f"finite number ({len(gaps)} such rows)"
            )


def read(paths: Iterable[Path], columns: Sequence[str]) -> pd.DataFrame:
    """The rows of result files under one another, with a column ``file``; without files only `columns`.

    Raises
    ------
    ValueError
        A file lacks one of the columns.
    """
    frames = []
    for path in paths:
        frame = pd.read_csv(path, dtype={"status": str, "method": str, "seed": str})
        if missing := [name for name in columns if name not in frame]:
            raise ValueError(f"{path}: columns {missing} are missing; needed are {list(columns)}")
        frames.append(frame.assign(file=Path(path).as_posix()))
    if not frames:
        return pd.DataFrame(columns=[*columns, "file"])
    return pd.concat(frames, ignore_index=True)


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Mean and standard error of the mean; NaN for the latter of a single value."""
    values = values.astype(float)
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return float(values.mean()) if len(values) else math.nan, se


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of Experiment 4.

    Attributes
    ----------
    number : int
        1 to 9.
    train, test : int
        Patterns (0 where the data could not be had).
    labels : ndarray, shape (test,)
        Test labels, -1 or +1.
    bayes_posterior : ndarray, shape (test,)
        P(class 1) by Bayes' formula; NaN for real data.
    available : bool
        Whether the data could be had.
    """

    number: int
    train: int
    test: int
    labels: np.ndarray
    bayes_posterior: np.ndarray
    available: bool


def problem_number(path: Path) -> int:
    """The problem's number in a path such as ``experiment4/problem7.npz`` or ``.../problem7/ep_set1.npz``."""
    found = re.search(r"problem(\d+)", Path(path).as_posix().split("experiment4")[-1])
    if found is None:
        raise ValueError(f"{path}: no problem number in the path; needed is .../problem<number>...")
    return int(found.group(1))


def read_problem(path: Path) -> Problem:
    """Sizes, test labels and Bayes posteriors of one problem of Experiment 4; a file without arrays has no data."""
    with np.load(path) as data:
        available = bool(data.files)
        empty = np.empty(0)
        labels = np.asarray(data["y_test"], dtype=float) if available else empty
        return Problem(
            number=problem_number(path),
            train=len(data["y_train"]) if available else 0,
            test=len(labels),
            labels=labels,
            bayes_posterior=np.asarray(data["bayes_posterior"], dtype=float)
            if available
            else empty,
            available=available,
        )


@dataclass(frozen=True, slots=True)
class Predictions:
    """Test probabilities of the runs of one method on one problem with one hyperparameter set.

    Attributes
    ----------
    probability, probability_se : ndarray, shape (runs, test)
        P(class 1) and its Monte Carlo standard error.
    dataset, replicate : ndarray of int, shape (runs,)
        Which run it is; data set 0 is the problem's first.
    """

    probability: np.ndarray
    probability_se: np.ndarray
    dataset: np.ndarray
    replicate: np.ndarray

    def of(self, replicate: int) -> Predictions:
        """One run on each data set."""
        kept = self.replicate == replicate
        return Predictions(
            *(
                array[kept]
                for array in (self.probability, self.probability_se, self.dataset, self.replicate)
            )
        )

    def on(self, dataset: int) -> np.ndarray:
        """Probabilities on one data set, shape (runs, test); none gives no rows."""
        return self.probability[self.dataset == dataset]


_ARRAYS = ("probability", "probability_se", "dataset", "replicate", "ok")


def read_probabilities(
    paths: Iterable[Path], *, every: bool = False
) -> dict[tuple[int, str, int], Predictions]:
    """Predictions by (problem, method, set), of the runs whose status is "ok", or of every run that predicted.

    Sets without such a run are left out, and so are runs with NaN whose status is another.

    Raises
    ------
    ValueError
        A file's name or its arrays are not those of Experiment 4, or a run that is "ok" has no finite probabilities.
    """
    return dict(_read_probabilities(*_as_they_are(paths), every))


@lru_cache(maxsize=4)
def _read_probabilities(
    paths: tuple[Path, ...], _states: object, every: bool
) -> dict[tuple[int, str, int], Predictions]:
    found = {}
    for path in paths:
        name = re.fullmatch(r"(.+)_set(\d+)", Path(path).stem)
        if name is None:
            raise ValueError(f"{path}: the name has to be <method>_set<number>.npz")
        with np.load(path) as data:
            if not data.files:
                continue
            if missing := sorted(set(_ARRAYS) - set(data.files)):
                raise ValueError(f"{path}: arrays {missing} are missing; needed are {_ARRAYS}")
            arrays = {name: np.asarray(data[name]) for name in _ARRAYS}
        # a run that is not "ok" may have predicted: it is never compared
        ok, finite = arrays.pop("ok").astype(bool), np.isfinite(arrays["probability"]).all(axis=1)
        if (ok & ~finite).any():
            row = int(np.flatnonzero(ok & ~finite)[0])
            raise ValueError(f"{path}: row {row} of probability is not finite, and its run is ok")
        good = (ok | every) & finite
        if good.any():
            key = problem_number(path), name.group(1), int(name.group(2))
            found[key] = Predictions(**{name: array[good] for name, array in arrays.items()})
    return found
