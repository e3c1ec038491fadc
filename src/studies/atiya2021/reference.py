"""The certified reference: log evidence and test probabilities of every cell of Experiment 4.

A cell is one problem's first data set at one hyperparameter setting. `studies.atiya2021.certify` computes and certifies
it; a cell that fails reads "uncertified", with the reason. The reference is computed once, kept with the repository,
and read at every scale. Each cell carries a digest of its data and hyperparameters, so that results on other data
cannot be compared with it by mistake.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from gpcmc.gp.covariance import Prior, prior, rbf
from gpcmc.inference.interface import Inference
from recheck.files import read_arrays, read_csv, write_arrays, write_csv
from studies.atiya2021.certify import (
    CERTIFIED,
    DIFFERS,
    Array,
    Plan,
    best,
    differences,
    latent,
    latent_again,
    sampler,
    verdict,
)
from studies.atiya2021.problems import Problem, digest_bytes, trivial
from studies.common.pieces import Piece, Pieces, Row
from studies.common.seeds import seed

EVIDENCE, PROBABILITIES, TRUTHS = "evidence.csv", "probabilities.npz", "truths.csv"


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
        if row["digest"] != expected:
            raise ValueError(
                f"the reference of problem {problem}, set {number_of_set} was computed on other data "
                f"or hyperparameters: its digest is {row['digest']}, that of these is {expected}; "
                "run `snakemake reference` to compute it anew"
            )
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
        Rows of `reference_problem`.
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


def reference_problem(
    number: int,
    problem: Problem | None,
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    pieces: Pieces,
    plan: Plan | None = None,
) -> Piece:
    """Compute and certify the reference of one problem at every hyperparameter set.

    Parameters
    ----------
    number : int
        Problem, 1 to 9.
    problem : Problem
    root : int
        Root of the random streams.
    hyperparameters : sequence of {"set": int, "alpha": float, "beta": float}
    pieces : Pieces
        Finished hyperparameter sets.
    plan : Plan, optional

    Returns
    -------
    Piece
        One row a cell, no timing, and arrays as `Reference.arrays`.

    Raises
    ------
    ValueError
        If the problem has no data.
    """
    if problem is None:
        raise ValueError(f"problem {number} must have data; its raw files are not available")
    plan = plan or Plan()
    rows: list[Row] = []
    arrays: dict[str, Array] = {}
    for hyper in hyperparameters:
        number_of_set = int(hyper["set"])
        gp = prior(rbf(hyper["alpha"], hyper["beta"]), problem.X_train, problem.X_test)
        path = seed(root, "reference", f"problem{number}", f"set{number_of_set}")
        compute: dict[str, Callable[[], Inference | None]] = {
            "set": partial(best, gp, problem.y_train, path, plan),
            "latent": partial(latent, problem, hyper["alpha"], hyper["beta"], path, plan),
            "sampler": partial(sampler, problem, gp, path, plan),
        }
        value, certifier, second = (
            _stored(pieces, f"{piece}{number_of_set}", run) for piece, run in compute.items()
        )
        assert value is not None and certifier is not None
        looks = 1
        if DIFFERS in verdict(value, certifier)["reason"]:
            again = partial(latent_again, problem, hyper["alpha"], hyper["beta"], path, plan)
            certifier, looks = _stored(pieces, f"again{number_of_set}", again), 2
            assert certifier is not None
        rows.append(
            _cell_columns(number, hyper, problem, gp)
            | _columns(value, path, plan.randomizations)
            | _certifier_columns(value, certifier, second)
            | {"certifier_looks": looks}
            | verdict(value, certifier, second)
        )
        name = _name(number, number_of_set)
        arrays |= {name: value.probability, f"{name}_se": value.probability_se}
    return rows, [], arrays


def _cell_columns(number: int, hyper: Mapping[str, float], problem: Problem, gp: Prior) -> Row:
    """What a row says of the cell."""
    alpha, beta = float(hyper["alpha"]), float(hyper["beta"])
    return {
        "problem": number,
        "set": int(hyper["set"]),
        "alpha": alpha,
        "beta": beta,
        "digest": digest(problem, alpha, beta),
        "trivial": trivial(gp.K, beta),
        "train_patterns": len(problem.y_train),
        "test_patterns": len(problem.X_test),
    }


def _columns(value: Inference, path: str, randomizations: int) -> Row:
    """What a row says of the reference value."""
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


def _certifier_columns(value: Inference, other: Inference, second: Inference | None) -> Row:
    """What a row says of the certifier's value, and of the adapted sampler's where it was run."""
    z, max_z = (np.nan, np.nan) if second is None else differences(value, second)
    return {
        "certifier": "latent annealing",
        "certifier_log_evidence": other.log_evidence,
        "certifier_se": other.log_evidence_se,
        "certifier_max_probability_se": float(np.max(other.probability_se)),
        "certifier_samples": other.work["samples"],
        "certifier_k_hat": other.diagnostics["k_hat"],
        "sampler_log_evidence": np.nan if second is None else second.log_evidence,
        "sampler_se": np.nan if second is None else second.log_evidence_se,
        "sampler_samples": 0 if second is None else second.work["samples"],
        "sampler_z": z,
        "sampler_max_z": max_z,
    }


def _stored(pieces: Pieces, name: str, compute: Callable[[], Inference | None]) -> Inference | None:
    """Keep a method's estimates as a finished piece, and give them back; None where it gave none."""

    def piece() -> Piece:
        found = compute()
        if found is None:
            return [], [], {}
        row = {
            "log_evidence": found.log_evidence,
            "log_evidence_se": found.log_evidence_se,
            "work": found.work,
            "diagnostics": found.diagnostics,
            "status": found.status,
        }
        arrays = {"probability": found.probability, "probability_se": found.probability_se}
        return [row], [], arrays

    rows, _, arrays = pieces.get(name, piece)
    return Inference(**(rows[0] | arrays)) if rows else None


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
    folder: str | Path,
    rows: Sequence[str | Path],
    probabilities: Sequence[str | Path],
    truths: str | Path,
) -> None:
    """Put a complete reference, and the certified truths, in the place of what is kept.

    Parameters
    ----------
    folder : path
        Where the reference is kept.
    rows, probabilities : sequence of path
        Results of the jobs of kind ``reference``.
    truths : path
        Result of the job ``reference/truths``.

    Raises
    ------
    ValueError
        If the kept reference has cells that would be lost, or a file is damaged.
    """
    folder = Path(folder)
    evidence = pd.concat([read_csv(path) for path in rows], ignore_index=True)
    arrays: dict[str, Array] = {}
    for path in probabilities:
        arrays |= read_arrays(path)
    if (folder / EVIDENCE).exists():
        key = ["problem", "set"]
        known = pd.MultiIndex.from_frame(read_csv(folder / EVIDENCE)[key])
        lost = known.difference(pd.MultiIndex.from_frame(evidence[key])).tolist()
        if lost:
            raise ValueError(
                f"{folder} has cells (problem, set) that this scale does not configure, and would lose them: {lost}; "
                "use another scale"
            )
    save_reference(folder, evidence, arrays)
    write_csv(folder / TRUTHS, read_csv(truths))
