"""The check of every run: a few cells of the kept reference, estimated anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gpcmc.gp.covariance import prior, rbf
from gpcmc.inference.interface import Inference
from gpcmc.inference.twisted import Twisted
from studies.atiya2021.certify import AGREES, DIFFERS, adapted, differences, largest_of
from studies.atiya2021.problems import Problem
from studies.atiya2021.reference import Cell, Reference, digest, load_reference
from studies.atiya2021.runs import NO_DATA, infer
from studies.common.pieces import Piece, Row
from studies.common.seeds import generator, seed

#: How rarely a right value is refused in this check, which must not cry wolf.
CHECK_LEVEL = 1e-5
#: Randomisations of twisted EP in this check.
RUNS = 16

NO_REFERENCE = "no reference"


def check_reference(
    *, problems: Mapping[int, Problem | None], reference: str, **arguments: Any
) -> Piece:
    """Return the rows of `recertify` for the reference in a folder, no timing and no arrays."""
    return recertify(load_reference(reference), problems, **arguments), [], {}


def recertify(
    reference: Reference,
    problems: Mapping[int, Problem | None],
    *,
    root: int,
    hyperparameters: Sequence[Mapping[str, float]],
    cells: int,
    points: int,
    samples: int,
) -> list[Row]:
    """Estimate a few cells anew, by both methods with other seeds, and compare them with the reference.

    Every comparison raises a false alarm with a probability of 1e-5.

    Parameters
    ----------
    reference : Reference
    problems : mapping
        First data sets by number; None where the data could not be had.
    root : int
        Root of the random streams; also draws the cells.
    hyperparameters : sequence of {"set": int, "alpha": float, "beta": float}
    cells : int
        How many; fewer where fewer are configured.
    points : int
        Sobol' points of twisted EP, in `RUNS` randomisations.
    samples : int
        Samples of the adapted orthant sampler, one population.

    Returns
    -------
    list of dict
        One row a cell and method: both log evidences, differences and thresholds, and a ``verdict``: ``AGREES``,
        ``DIFFERS``, ``NO_DATA`` or ``NO_REFERENCE``.

    Raises
    ------
    ValueError
        If the reference of a drawn cell was computed on other data.
    """
    path = seed(root, "reference_check")
    every = [(number, dict(hyper)) for number in sorted(problems) for hyper in hyperparameters]
    drawn = generator(path).choice(len(every), size=min(cells, len(every)), replace=False)
    rows: list[Row] = []
    for number, hyper in [every[k] for k in sorted(drawn)]:
        key = {"problem": number, "set": int(hyper["set"])}
        problem = problems[number]
        if problem is None:
            rows.append(key | {"verdict": NO_DATA})
            continue
        known = reference.cell(number, key["set"], digest(problem, hyper["alpha"], hyper["beta"]))
        if known is None:
            rows.append(key | {"verdict": NO_REFERENCE})
            continue
        methods = _methods(problem, hyper, points, samples)
        for method, run in methods.items():
            of_run = seed(path, f"problem{number}", f"set{key['set']}", method)
            found = run(rng=generator(of_run))
            rows.append(key | {"method": method, "seed": of_run} | _compared(found, known))
    return rows


def _methods(
    problem: Problem, hyper: Mapping[str, float], points: int, samples: int
) -> dict[str, Callable[..., Inference]]:
    """The two methods by the names that key their random streams."""
    gp = prior(rbf(hyper["alpha"], hyper["beta"]), problem.X_train, problem.X_test)
    twisted = Twisted(points=points, randomizations=RUNS)
    return {
        "best": partial(infer, twisted, gp, problem.y_train),
        "adapted orthant": partial(adapted, problem, gp, samples, samples),
    }


def _compared(found: Inference, known: Cell) -> Row:
    """An estimate beside the reference."""
    z, max_z = differences(found, known)
    # a standard error from few randomisations is itself uncertain: Student's t
    limit = largest_of(1, CHECK_LEVEL, RUNS - 1)
    threshold = largest_of(len(found.probability), CHECK_LEVEL, RUNS - 1)
    return {
        "reference": known.log_evidence,
        "reference_se": known.log_evidence_se,
        "certified": known.certified,
        "log_evidence": found.log_evidence,
        "log_evidence_se": found.log_evidence_se,
        "z": z,
        "z_threshold": limit,
        "max_z": max_z,
        "max_z_threshold": threshold,
        "verdict": AGREES if abs(z) < limit and max_z < threshold else DIFFERS,
    }
