"""The certified reference: log evidence and test probabilities of every cell of Experiment 4.

A cell is one problem's first data set at one hyperparameter setting. `studies.atiya2021.reference.certify` computes and
certifies it; a cell that fails reads "uncertified", with the reason. The reference is computed once, kept with the
repository, and read at every scale. Each cell carries a digest of its data and hyperparameters, so that results on
other data cannot be compared with it by mistake.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import Prior, prior
from gpcmc.methods import Inference
from recheck.record.files import read_arrays, read_csv, write_arrays, write_csv
from studies.atiya2021.problems import Problem, digest_bytes, trivial
from studies.atiya2021.reference.certify import (
    CERTIFIED,
    DIFFERS,
    Array,
    Plan,
    best,
    certifier_columns,
    differences,
    latent,
    latent_again,
    sampler,
    verdict,
)
from studies.common.rows import NO_DATA, Line, Result

EVIDENCE, PROBABILITIES, TRUTHS = "evidence.csv", "probabilities.npz", "truths.csv"


class CellKey(NamedTuple):
    """Which cell it is: the number of the problem and of the setting, and its hyperparameters."""

    problem: int
    set: int
    alpha: float
    beta: float


@dataclass(frozen=True, slots=True)
class Cell:
    """The reference values of one problem at one hyperparameter set.

    Attributes
    ----------
    log_evidence, log_evidence_se : float
        Log p(y | X), nats, and its standard error.
    probability, probability_se : (t,) array
        P(y* = +1 | y) at the test patterns, and the standard errors.
    certified, trivial : bool
        Whether the certifier agrees; whether K is beta I to rounding.
    """

    log_evidence: float
    log_evidence_se: float
    probability: Array
    probability_se: Array
    certified: bool
    trivial: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """All cells.

    Attributes
    ----------
    evidence : DataFrame
        One row a cell.
    arrays : dict of str to array
        Test probabilities ``problem<p>_set<k>`` and standard errors ``problem<p>_set<k>_se``.
    """

    evidence: pd.DataFrame
    arrays: Mapping[str, Array]

    def cell(self, problem: int, number_of_set: int, expected: str) -> Cell | None:
        """Return a cell, or None where there is no reference for it.

        Parameters
        ----------
        problem, number_of_set : int
        expected : str
            `digest` of the data that results were computed on.

        Raises
        ------
        ValueError
            If the reference was computed on other data or hyperparameters.
        """
        rows = self.evidence
        rows = rows[(rows["problem"] == problem) & (rows["set"] == number_of_set)]
        if rows.empty:
            return None
        row = rows.iloc[0]
        refuse_other_data(problem, number_of_set, row["digest"], expected)
        name = _name(problem, number_of_set)
        return Cell(
            log_evidence=float(row["log_evidence"]),
            log_evidence_se=float(row["log_evidence_se"]),
            probability=self.arrays[name],
            probability_se=self.arrays[f"{name}_se"],
            certified=row["verdict"] == CERTIFIED,
            trivial=bool(row["trivial"]),
        )


def digest(problem: Problem, alpha: float, beta: float) -> str:
    """Return 16 hexadecimal digits that name a problem's patterns, its labels and its kernel.

    The features are rounded to 8 decimals, which moves a log evidence by less than 1e-5 nats.
    """
    found = hashlib.sha256()
    for array in (problem.X_train, problem.y_train, problem.X_test):
        found.update(digest_bytes(array))
    found.update(np.array([alpha, beta], dtype="<f8").tobytes())
    return found.hexdigest()[:16]


def refuse_other_data(problem: int, number_of_set: int, known: str, expected: str) -> None:
    """Raise ValueError if the `digest` of a cell is not the expected one."""
    if known != expected:
        raise ValueError(
            f"the reference of problem {problem}, set {number_of_set} was computed on other data or hyperparameters: "
            f"its digest is {known}, that of these is {expected}; run `snakemake reference` to compute it anew"
        )


def load_reference(folder: str | Path) -> Reference:
    """Read the reference that `save_reference` wrote.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a cell has no probabilities, or there are two rows for one cell.
    """
    evidence = read_csv(Path(folder) / EVIDENCE)
    arrays = read_arrays(Path(folder) / PROBABILITIES)
    _check_complete(evidence, arrays)
    return Reference(evidence, arrays)


def save_reference(folder: str | Path, evidence: pd.DataFrame, arrays: Mapping[str, Array]) -> None:
    """Write evidence.csv and probabilities.npz, in the order of problems and sets.

    Parameters
    ----------
    folder : path
        Made if absent.
    evidence : DataFrame
        Lines of `certified_cell`.
    arrays : dict of str to array
        As `Reference.arrays`.

    Raises
    ------
    ValueError
        As `load_reference`.
    """
    evidence = evidence.sort_values(["problem", "set"])
    _check_complete(evidence, arrays)
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_csv(Path(folder) / EVIDENCE, evidence)
    write_arrays(Path(folder) / PROBABILITIES, arrays)


def certified_cell(problem: Problem, cell: CellKey, path: str, plan: Plan | None = None) -> Result:
    """Compute and certify the reference of one cell.

    Parameters
    ----------
    problem : Problem
        The first data set.
    cell : CellKey
        Its number, and the hyperparameter setting.
    path : str
        Seed of the cell.
    plan : Plan, optional

    Returns
    -------
    Result
        A line, and arrays ``probability`` and ``probability_se`` (t,).
    """
    plan = plan or Plan()
    gp = prior(rbf(cell.alpha, cell.beta), problem.X_train, problem.X_test)
    value = best(gp, problem.y_train, path, plan)
    certifier = latent(problem, cell.alpha, cell.beta, path, plan)
    second = sampler(problem, gp, path, plan)
    looks = 1
    if DIFFERS in verdict(value, certifier)["reason"]:
        certifier, looks = latent_again(problem, cell.alpha, cell.beta, path, plan), 2
    line = (
        _cell_columns(cell, problem, gp)
        | _columns(value, path, plan.randomizations)
        | _certifier_columns(value, certifier, second)
        | {"certifier_looks": looks}
        | verdict(value, certifier, second)
    )
    arrays = {"probability": value.probability, "probability_se": value.probability_se}
    return Result([line], arrays)


def _cell_columns(cell: CellKey, problem: Problem, gp: Prior) -> Line:
    """What a line says of the cell."""
    return {
        "problem": cell.problem,
        "set": cell.set,
        "alpha": cell.alpha,
        "beta": cell.beta,
        "digest": digest(problem, cell.alpha, cell.beta),
        "trivial": trivial(gp.K, cell.beta),
        "train_patterns": len(problem.y_train),
        "test_patterns": len(problem.X_test),
    }


def _columns(value: Inference, path: str, randomizations: int) -> Line:
    """What a line says of the reference value."""
    return {
        "log_evidence": value.log_evidence,
        "log_evidence_se": value.log_evidence_se,
        "max_probability_se": float(np.max(value.probability_se)),
        "method": "best",
        "seed": path,
        "samples": value.work["samples"],
        "randomizations": randomizations,
        "k_hat": value.diagnostics["k_hat"],
        "effective_fraction": value.diagnostics["effective_fraction"],
    }


def _certifier_columns(value: Inference, other: Inference, second: Inference | None) -> Line:
    """What a line says of the certifier's value, and of the adapted sampler's where it was run."""
    z, max_z = (np.nan, np.nan) if second is None else differences(value, second)
    return {
        "certifier": "latent annealing",
        **certifier_columns(other),
        "certifier_k_hat": other.diagnostics["k_hat"],
        "sampler_log_evidence": np.nan if second is None else second.log_evidence,
        "sampler_se": np.nan if second is None else second.log_evidence_se,
        "sampler_samples": 0 if second is None else second.work["samples"],
        "sampler_z": z,
        "sampler_max_z": max_z,
    }


def _name(problem: int, number_of_set: int) -> str:
    return f"problem{problem}_set{number_of_set}"


def _check_complete(evidence: pd.DataFrame, arrays: Mapping[str, Array]) -> None:
    names = [_name(*key) for key in zip(evidence["problem"], evidence["set"], strict=True)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"reference: one row a cell is needed; there are several of {twice}")
    for name, t_patterns in zip(names, evidence["test_patterns"], strict=True):
        for array in (name, f"{name}_se"):
            shape = np.shape(arrays[array]) if array in arrays else None
            if shape != (t_patterns,):
                raise ValueError(
                    f"reference: {array} must have shape ({t_patterns},); got {shape}; "
                    "run `snakemake reference` to compute it anew"
                )


def store(
    folder: str | Path, cells: str | Path, probabilities: str | Path, truths: str | Path
) -> None:
    """Put a complete reference, and the certified truths, in the place of what is kept.

    Parameters
    ----------
    folder : path
        Where the reference is kept.
    cells, probabilities, truths : path
        Rows and arrays of the experiment ``reference_cells``, and rows of ``reference_truths``.

    Raises
    ------
    ValueError
        If the kept reference has cells that would be lost, a cell has no data, or a file is damaged.
    """
    folder, evidence = Path(folder), read_csv(cells).drop(columns="row")
    if "status" in evidence:
        without = sorted(evidence.loc[evidence["status"] == NO_DATA, "problem"].unique().tolist())
        raise ValueError(f"problems {without} must have data; their raw files are not available")
    if (folder / EVIDENCE).exists():
        key = ["problem", "set"]
        known = pd.MultiIndex.from_frame(read_csv(folder / EVIDENCE)[key])
        lost = known.difference(pd.MultiIndex.from_frame(evidence[key])).tolist()
        if lost:
            raise ValueError(
                f"{folder} has cells (problem, set) that this scale does not configure, and would lose them: {lost}; "
                "use another scale"
            )
    save_reference(folder, evidence, _by_cell(read_arrays(probabilities)))
    write_csv(folder / TRUTHS, read_csv(truths).drop(columns="row"))


def _by_cell(stacked: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays of rows ``problem<p>/set<k>`` by the names that a reference has."""
    found = {}
    for name, arrays in stacked.items():
        last = name.rpartition("/")[2]
        if last in ("probability", "probability_se"):
            for row, array in zip(stacked[f"{name}/rows"], arrays, strict=True):
                found[row.replace("/", "_") + last.removeprefix("probability")] = array
    return found
