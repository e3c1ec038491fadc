"""The check of every run: a few cells of the kept reference, estimated anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from gpcmc.covariance.kernels import rbf
from gpcmc.covariance.prior import prior
from gpcmc.methods import Inference
from gpcmc.rectangle.classification import Twisted
from studies.atiya2021.problems import Problem
from studies.atiya2021.reference.cells import Cell, CellKey, Reference, digest
from studies.atiya2021.reference.certify import AGREES, DIFFERS, adapted, differences, largest_of
from studies.atiya2021.runs import infer
from studies.common.rows import Line
from studies.common.seeds import generator, seed

#: How rarely a right value is refused in this check, which must not cry wolf.
CHECK_LEVEL = 1e-5
#: Randomisations of twisted EP in this check.
RUNS = 16

NO_REFERENCE = "no reference"
#: The methods, by the names that key their random streams.
METHODS = ("best", "adapted orthant")


def checked(
    reference: Reference, problem: Problem, cell: CellKey, counts: Mapping[str, int], path: str
) -> list[Line]:
    """Estimate a cell anew, by both methods with other seeds, and compare them with the reference.

    Every comparison raises a false alarm with a probability of 1e-5.

    Parameters
    ----------
    reference : Reference
    problem : Problem
        The first data set.
    cell : CellKey
    counts : {"points": int, "samples": int}
        Sobol' points of twisted EP, in `RUNS` randomisations; samples of the adapted orthant sampler, one population.
    path : str
        Seed of the cell.

    Returns
    -------
    list of dict
        One line a method: ``method``, ``seed``, both log evidences, differences and thresholds, and a ``verdict``,
        ``AGREES`` or ``DIFFERS``; or a single line with the verdict ``NO_REFERENCE``.

    Raises
    ------
    ValueError
        If the reference of the cell was computed on other data.
    """
    known = reference.cell(cell.problem, cell.set, digest(problem, cell.alpha, cell.beta))
    if known is None:
        return [{"verdict": NO_REFERENCE}]
    lines: list[Line] = []
    for method, run in _methods(problem, cell, **counts).items():
        of_run = seed(path, method)
        found = run(rng=generator(of_run))
        lines.append({"method": method, "seed": of_run} | _compared(found, known))
    return lines


def _methods(
    problem: Problem, cell: CellKey, points: int, samples: int
) -> dict[str, Callable[..., Inference]]:
    gp = prior(rbf(cell.alpha, cell.beta), problem.X_train, problem.X_test)
    twisted = Twisted(points=points, randomizations=RUNS)
    runs = (
        partial(infer, twisted, gp, problem.y_train),
        partial(adapted, problem, gp, samples, samples),
    )
    return dict(zip(METHODS, runs, strict=True))


def _compared(found: Inference, known: Cell) -> Line:
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
