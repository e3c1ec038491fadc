"""Experiments 1 and 2: the sampler against orthants whose probability is known (Tables 1 to 3).

Experiment 1 (paper, section 6.1) draws covariances with R_ij = d_i d_j off a unit diagonal, d uniform on
[-1, 1], and takes the truth from Eq. (63). Experiment 2 (section 6.2) draws one-dimensional two-class
problems, classifies them with a linear kernel, and takes the truth from Eq. (66).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpcmc.experiments.pieces import Piece, Pieces, Row, join
from gpcmc.experiments.seeds import generator, seed
from gpcmc.gp import linear, orthant_covariance, prior
from gpcmc.orthant.sampler import OrthantEstimate, orthant_probability, orthant_ratio
from gpcmc.orthant.truths import (
    linear_kernel_truth,
    one_factor_log_probability,
    rectangle_rule_log_probability,
)


@dataclass(frozen=True, slots=True)
class TwoClasses:
    """A problem of Experiment 2: normal class-conditional densities of one feature.

    Attributes
    ----------
    n_train, n_test : int
        Patterns, half of them of each class.
    means, deviations : (float, float)
        Of class 1 (+1) and class 2 (-1).
    """

    n_train: int
    n_test: int
    means: tuple[float, float]
    deviations: tuple[float, float]


#: Section 6.2.
EXPERIMENT2 = {
    1: TwoClasses(100, 50, (0.0, 1.0), (0.2, 0.3)),
    2: TwoClasses(200, 100, (0.0, 1.0), (2.0, 1.0)),
    3: TwoClasses(400, 200, (0.0, 1.5), (0.5, 0.75)),
    4: TwoClasses(800, 400, (0.0, 1.0), (1.0, 0.75)),
}


def one_factor_vector(root: int, dimension: int, instance: int) -> tuple[np.ndarray, str]:
    """Return the vector d of one problem of Experiment 1, and its seed."""
    path = seed(root, "experiment1", f"N{dimension}", f"instance{instance}")
    return generator(path).uniform(-1.0, 1.0, dimension), path


def experiment1(
    dimension: int, *, root: int, grid: Sequence[dict[str, int]], pieces: Pieces, **options: Any
) -> Piece:
    """Run Experiment 1 at one dimension.

    Parameters
    ----------
    dimension : int
    root : int
        Root of the random streams.
    grid : sequence of {"samples": int, "instances": int}
        Sample sizes, and on how many problems each is run.
    pieces : Pieces
        Finished problems.
    **options
        `count` and `scheme` of the sampler.

    Returns
    -------
    rows, timing : list of dict
        One row a run.
    arrays : dict
        Empty.
    """

    def one(instance: int) -> Piece:
        d, path = one_factor_vector(root, dimension, instance)
        cov = np.outer(d, d)
        np.fill_diagonal(cov, 1.0)
        truth = one_factor_log_probability(d)
        rows, timing = [], []
        for cell in grid:
            if instance >= cell["instances"]:
                continue
            samples = cell["samples"]
            run_seed = seed(path, f"samples{samples}")
            start = time.process_time()
            estimate = orthant_probability(cov, samples=samples, rng=generator(run_seed), **options)
            seconds = time.process_time() - start
            key = {"dimension": dimension, "instance": instance, "samples": samples}
            rows.append(key | _row(run_seed, truth, estimate, options))
            timing.append(key | {"cpu_seconds": seconds})
        return rows, timing, {}

    instances = max(cell["instances"] for cell in grid)
    return join(pieces.get(f"instance{k}", partial(one, k)) for k in range(instances))


def quadrature_errors(
    dimensions: Sequence[int], *, root: int, instances: int, steps: Sequence[float], limit: float
) -> list[Row]:
    """Return the error of coarse rectangle rules for Eq. (63), problem by problem.

    The published column for N = 500 has an error that does not fall with the number of samples, as
    an inexact "truth" would give; this shows how large such an error is for a given grid.

    Parameters
    ----------
    dimensions : sequence of int
    root, instances : int
        The problems of Experiment 1 that these name.
    steps : sequence of float
        Grid steps du.
    limit : float
        The grid covers [-limit, limit].
    """
    rows = []
    for dimension in dimensions:
        for instance in range(instances):
            d, path = one_factor_vector(root, dimension, instance)
            truth = one_factor_log_probability(d)
            for du in steps:
                coarse = rectangle_rule_log_probability(d, du, limit)
                rows.append(
                    {
                        "dimension": dimension,
                        "instance": instance,
                        "seed": path,
                        "du": du,
                        "truth": truth,
                        "coarse": coarse,
                        "ape_percent": 100 * abs((coarse - truth) / truth),
                    }
                )
    return rows


def two_class_data(
    problem: TwoClasses, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw training features, training labels (shuffled) and test features of Experiment 2.

    The paper does not say how many patterns each class has; here it is half.
    """

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.repeat([1.0, -1.0], [n - n // 2, n // 2])
        which = (y < 0).astype(int)
        x = rng.normal(np.take(problem.means, which), np.take(problem.deviations, which))
        order = rng.permutation(n)
        return x[order], y[order]

    x, y = draw(problem.n_train)
    x_star, _ = draw(problem.n_test)
    return x, y, x_star


def experiment2(
    number: int, *, root: int, grid: Sequence[dict[str, int]], pieces: Pieces, **options: Any
) -> Piece:
    """Run Experiment 2 on one problem.

    Parameters
    ----------
    number : {1, 2, 3, 4}
        Problem of section 6.2.
    root : int
        Root of the random streams.
    grid : sequence of {"samples": int, "datasets": int, "runs": int}
        Sample sizes, on how many data sets each is run, and how often on each.
    pieces : Pieces
        Finished data sets.
    **options
        `count` and `scheme` of the sampler.

    Returns
    -------
    rows, timing : list of dict
        One row a run.
    arrays : dict
        `truth_dataset<k>` (t,): exact test probabilities of each data set.
    """
    problem = EXPERIMENT2[number]

    def one(dataset: int) -> Piece:
        path = seed(root, "experiment2", f"problem{number}", f"dataset{dataset}")
        x, y, x_star = two_class_data(problem, generator(path))
        truth = linear_kernel_truth(x, y, x_star)
        gp = prior(linear(), x[:, None], x_star[:, None])
        cov = orthant_covariance(gp.K, y)
        rows, timing = [], []
        for cell in grid:
            if dataset >= cell["datasets"]:
                continue
            for run in range(cell["runs"]):
                samples = cell["samples"]
                run_seed = seed(path, f"samples{samples}", f"run{run}")
                start = time.process_time()
                estimate, probability, _ = orthant_ratio(
                    cov,
                    y[:, None] * gp.K_star,
                    1.0 + gp.k_star_star,
                    samples=samples,
                    runs=None,
                    rng=generator(run_seed),
                    **options,
                )
                seconds = time.process_time() - start
                key = {"problem": number, "dataset": dataset, "samples": samples, "run": run}
                mae = float(np.mean(np.abs(probability - truth.probability)))  # Eq. 67
                rows.append(
                    key
                    | {"dimension": len(y), "test_patterns": len(x_star)}
                    | _row(run_seed, truth.log_evidence, estimate, options)
                    | {"mae": mae}
                )
                timing.append(key | {"cpu_seconds": seconds})
        return rows, timing, {f"truth_dataset{dataset}": truth.probability}

    datasets = max(cell["datasets"] for cell in grid)
    return join(pieces.get(f"dataset{k}", partial(one, k)) for k in range(datasets))


def variance_eq44(log_stages: np.ndarray, samples: int) -> float:
    """Return the paper's variance of the log estimate (Eq. 44); its bias (Eq. 43) is minus half of that.

    Parameters
    ----------
    log_stages : (n,) array
        Logs of the conditional probabilities of the stages.
    samples : int
        M.
    """
    p = np.exp(log_stages)
    return float(np.sum((1.0 - p) / p)) / samples


def _row(run_seed: str, truth: float, estimate: OrthantEstimate, options: dict[str, Any]) -> Row:
    excess = variance_eq44(estimate.log_stage_probabilities, estimate.samples)
    return {
        **options,
        "populations": estimate.populations,
        "seed": run_seed,
        "truth": truth,
        "estimate": estimate.log_probability,
        "standard_error": estimate.standard_error,
        "bias_eq43": -excess / 2,
        "variance_eq44": excess,
    }
