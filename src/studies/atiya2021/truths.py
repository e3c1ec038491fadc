"""The certified truths: the closed forms of Experiments 1 to 3 against the adapted orthant sampler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from gpcmc.gp.covariance import linear, prior
from gpcmc.inference.interface import Inference
from gpcmc.inference.orthant import Orthant
from gpcmc.orthant.sampler import orthant_probability
from gpcmc.orthant.truths import linear_kernel_truth, one_factor_log_probability
from studies.atiya2021.certify import (
    CERTIFIED,
    CERTIFIER,
    LEVEL,
    UNCERTIFIED,
    Array,
    Plan,
    differences,
    largest_of,
    sized,
)
from studies.atiya2021.problems import EXPERIMENT2, one_factor_vector, two_class_data
from studies.atiya2021.runs import infer
from studies.common.pieces import Piece, Pieces, Row, join
from studies.common.seeds import generator, seed


def certify_truths(
    *,
    root: int,
    pieces: Pieces,
    dimensions: Sequence[int] = (50, 200, 500),
    instances: int = 20,
    problems: Sequence[int] = (1, 2, 3, 4),
    data_sets: int = 5,
    plan: Plan | None = None,
) -> Piece:
    """Compare the closed forms of Experiments 1 to 3 with the adapted orthant sampler.

    Experiment 3 is Problem 3 of Experiment 2. The bounds are Sidak's for all rows together, and within a
    row for all its test probabilities: all right truths pass with a probability of at least 0.9946.

    Parameters
    ----------
    root : int
        Root of the random streams.
    pieces : Pieces
        Finished rows.
    dimensions : sequence of int
        Of Experiment 1.
    instances : int
        Problems of each.
    problems : sequence of int
        Of Experiment 2.
    data_sets : int
        Of each.
    plan : Plan, optional

    Returns
    -------
    rows : list of dict
        One row a truth.
    timing, arrays
        Empty.
    """
    plan = plan or Plan()
    jobs = [
        (f"experiment1_{dimension}_{k}", partial(_one_factor, root, plan, dimension, k))
        for dimension in dimensions
        for k in range(instances)
    ] + [
        (f"experiment2_{number}_{k}", partial(_two_classes, root, plan, number, k))
        for number in problems
        for k in range(data_sets)
    ]
    rows, _, _ = join(pieces.get(name, compute) for name, compute in jobs)
    everyone = -float(np.expm1(np.log1p(-LEVEL) / max(len(rows), 1)))
    limit = largest_of(1, everyone)
    for row in rows:
        threshold = largest_of(row["test_patterns"], everyone)
        small = row["certifier_se"] < CERTIFIER.evidence
        small &= row["certifier_max_probability_se"] < CERTIFIER.probability
        agrees = abs(row["z"]) < limit and row["max_z"] < threshold
        row["z_threshold"], row["max_z_threshold"] = limit, threshold
        row["verdict"] = CERTIFIED if small and agrees else UNCERTIFIED
    return rows, [], {}


def _one_factor(root: int, plan: Plan, dimension: int, instance: int) -> Piece:
    """A problem of Experiment 1."""
    d, path = one_factor_vector(root, dimension, instance)
    cov = np.outer(d, d)
    np.fill_diagonal(cov, 1.0)

    def run(samples: int, *, rng: np.random.Generator) -> Inference:
        found = orthant_probability(cov, samples=samples, scheme="adapted", rng=rng)
        work = {"samples": found.samples, "populations": found.populations}
        none = np.empty(0)
        return Inference(found.log_probability, found.standard_error, none, none, work)

    truth = _exact(one_factor_log_probability(d), np.empty(0))
    pilot = run(plan.pilot, rng=generator(seed(path, "pilot")))
    found = sized(run, pilot, path, plan.pilot, plan.max_samples)
    return [_truth_row(1, dimension, instance, path, truth, found)], [], {}


def _two_classes(root: int, plan: Plan, number: int, dataset: int) -> Piece:
    """A data set of Experiment 2."""
    path = seed(root, "experiment2", f"problem{number}", f"dataset{dataset}")
    x, y, x_star = two_class_data(EXPERIMENT2[number], generator(path))
    exact = linear_kernel_truth(x, y, x_star)
    truth = _exact(exact.log_evidence, exact.probability)
    gp = prior(linear(), x[:, None], x_star[:, None])

    def run(samples: int, *, rng: np.random.Generator) -> Inference:
        return infer(Orthant(samples=samples, scheme="adapted"), gp, y, rng=rng)

    pilot = run(plan.pilot, rng=generator(seed(path, "pilot")))
    found = sized(run, pilot, path, plan.pilot, plan.max_samples)
    return [_truth_row(2, number, dataset, path, truth, found)], [], {}


def _truth_row(
    experiment: int, problem: int, dataset: int, path: str, truth: Inference, found: Inference
) -> Row:
    z, max_z = differences(truth, found)
    return {
        "experiment": experiment,
        "problem": problem,
        "dataset": dataset,
        "seed": path,
        "truth": truth.log_evidence,
        "test_patterns": len(truth.probability),
        "certifier": "adapted orthant",
        "certifier_log_evidence": found.log_evidence,
        "certifier_se": found.log_evidence_se,
        "certifier_max_probability_se": float(np.max(found.probability_se, initial=0.0)),
        "certifier_samples": found.work["samples"],
        "z": z,
        "max_z": max_z,
    }


def _exact(log_evidence: float, probability: Array) -> Inference:
    return Inference(log_evidence, 0.0, probability, np.zeros_like(probability), {})
